//! What clients see before and around tool calls.

use testkit::rmcp::model::{CallToolRequest, CallToolRequestParams, ProtocolVersion};
use testkit::rmcp::service::{PeerRequestOptions, ServiceError};
use testkit::{Setup, Transport, Tree, Value, json};

use super::Workspace;
use crate::harness::{ToolSet, becomes, catalogue, tool_names};

#[tokio::test]
async fn workspace_nfr_012_descriptions_stand_alone() {
    Workspace::both(Tree::new, async |workspace| {
        let tools = workspace.server.list_tools().await;
        assert_eq!(tool_names(&tools), catalogue("workspace").await);
        for tool in &tools {
            let long = |value: &Value, least: usize| {
                value.as_str().is_some_and(|text| text.len() >= least)
            };
            assert!(
                long(&tool["title"], 3) && long(&tool["description"], 60),
                "{tool:#}"
            );
            for (name, property) in properties(tool) {
                // Names that say it all need no words, which every request would cost; the root is explained everywhere.
                let explains = property["description"].is_string() || property["enum"].is_array();
                assert!(
                    explains || SAYS_IT_ALL.contains(&name.as_str()),
                    "{name}: {property:#}"
                );
                assert!(
                    name != "root" || long(&property["description"], 10),
                    "{property:#}"
                );
            }
            assert_eq!(tool["outputSchema"]["type"], "object", "{tool:#}");
        }
    })
    .await;
}

/// Arguments whose names tell what they are.
const SAYS_IT_ALL: [&str; 17] = [
    "dry_run",
    "client",
    "limit",
    "diff",
    "change",
    "last",
    "path",
    "source_path",
    "dest_path",
    "content",
    "limit_bytes",
    "limit_lines",
    "case_insensitive",
    "max_results",
    "timeout_seconds",
    "files",
    "paths",
];

fn properties(tool: &Value) -> Vec<(&String, &Value)> {
    tool["inputSchema"]["properties"]
        .as_object()
        .into_iter()
        .flatten()
        .collect()
}

#[tokio::test]
async fn workspace_nfr_012_hints_are_true() {
    let writing = [
        "write_file",
        "edit_file",
        "remove_file",
        "patch_file",
        "create_folder",
        "remove_folder",
        "copy",
        "move",
        "undo",
    ];
    Workspace::both(Tree::new, async |workspace| {
        for tool in workspace.server.list_tools().await {
            let name = tool["name"].as_str().unwrap();
            let hints = &tool["annotations"];
            assert_eq!(hints["readOnlyHint"], !writing.contains(&name), "{name}");
            assert_eq!(hints["destructiveHint"], false, "{name}");
            assert_eq!(hints["openWorldHint"], false, "{name}");
            assert!(
                hints["idempotentHint"].is_boolean() || hints["readOnlyHint"] == true,
                "{name}"
            );
        }
    })
    .await;
}

#[tokio::test]
async fn workspace_nfr_012_defaults_are_in_the_schema() {
    Workspace::both(Tree::new, async |workspace| {
        let tools = workspace.server.list_tools().await;
        let schema = |tool: &str, argument: &str| {
            let found = tools.iter().find(|own| own["name"] == tool).unwrap();
            found["inputSchema"]["properties"][argument].clone()
        };
        for (tool, argument, default) in [
            ("write_file", "mode", json!("overwrite")),
            ("grep", "path", json!(".")),
            ("grep", "case_insensitive", json!(false)),
            ("grep", "context_lines", json!(0)),
            ("grep", "max_results", json!(100)),
            ("glob", "max_results", json!(100)),
            ("grep", "output", json!("matches")),
            ("glob", "type_filter", json!("all")),
        ] {
            assert_eq!(
                schema(tool, argument)["default"],
                default,
                "{tool}.{argument}"
            );
        }
        assert_eq!(
            schema("hash_file", "algorithm")["enum"],
            json!(["md5", "sha1", "sha256"])
        );
        assert_eq!(
            schema("write_file", "mode")["enum"],
            json!(["overwrite", "append", "create_only"])
        );
        assert_eq!(schema("read_file", "root")["x-mcp-header"], "Root");
    })
    .await;
}

#[tokio::test]
async fn workspace_root_header_can_be_switched_off() {
    Workspace::both_with(
        Tree::new,
        |setup| setup.set("server.root_header", false),
        async |workspace| {
            let tools = workspace.server.list_tools().await;
            assert!(!json!(tools).to_string().contains("x-mcp-header"));
        },
    )
    .await;
}

#[tokio::test]
async fn workspace_every_revision_is_served() {
    testkit::over_both(async |transport| {
        let tree = Tree::new().file("f", "x");
        for revision in ProtocolVersion::KNOWN_VERSIONS {
            let setup = Workspace::setup(&tree).revision(revision.clone());
            let server = setup.start(transport).await;
            let info = server.info();
            assert_eq!(info["protocolVersion"], revision.as_str(), "{transport:?}");
            assert_eq!(info["serverInfo"]["name"], "mcp-filesystem");
            let tools = server.list_tools().await;
            assert_eq!(
                tool_names(&tools),
                catalogue("workspace").await,
                "{revision}"
            );
            let read = server
                .call("read_file", json!({"root": "workspace", "path": "f"}))
                .await;
            assert_eq!(read.ok()["content"], "x", "{revision}");
            let failed = server
                .call("read_file", json!({"root": "workspace", "path": "no"}))
                .await;
            assert_eq!(failed.error()["error"]["code"], "not_found", "{revision}");
        }
    })
    .await;
}

#[tokio::test]
async fn workspace_unknown_tools_are_protocol_errors() {
    Workspace::both(Tree::new, async |workspace| {
        let error = workspace
            .server
            .try_call("read_flie", json!({}))
            .await
            .unwrap_err();
        let ServiceError::McpError(error) = error else {
            panic!("{error:?}")
        };
        assert!(error.message.contains("read_flie"), "{error:?}");
    })
    .await;
}

#[tokio::test]
async fn workspace_its_own_endpoint() {
    let tree = Tree::new();
    let setup = Workspace::setup(&tree).endpoint("/mcp/workspace");
    let server = setup.start(Transport::Http).await;
    let tools = server.list_tools().await;
    assert_eq!(tool_names(&tools), catalogue("workspace").await);
    let request = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    let reply = server.http().post("/mcp/memory", &[], &request).await;
    assert_eq!(reply.status, 404, "{reply:?}");
}

#[tokio::test]
async fn workspace_one_half_of_a_reply_can_be_dropped() {
    testkit::over_both(async |transport| {
        let tree = Tree::new().file("f", "x");
        let setup = Workspace::setup(&tree);
        let hash = json!({"root": "workspace", "path": "f", "algorithm": "md5"});
        let server = setup
            .clone()
            .set("server.replies", "text")
            .start(transport)
            .await;
        let reply = server.call("hash_file", hash.clone()).await;
        assert!(
            reply.structured.is_null() && reply.text.contains("\nmd5: "),
            "{}",
            reply.story()
        );
        tree.write("binary", b"\0\x01");
        let binary = json!({"root": "workspace", "path": "binary"});
        let reply = server.call("read_file", binary).await;
        assert!(reply.text.contains("AAE="), "{}", reply.story());
        let server = setup
            .set("server.replies", "structured")
            .start(transport)
            .await;
        let reply = server.call("hash_file", hash).await;
        assert!(
            reply.text.is_empty() && reply.ok()["algorithm"] == "md5",
            "{}",
            reply.story()
        );
    })
    .await;
}

fn hash_endless() -> Value {
    json!({"root": "workspace", "path": "endless", "algorithm": "sha256"})
}

fn with_an_endless_file() -> (Tree, Setup) {
    let tree = Tree::new().sparse("endless", 1 << 42);
    let setup = Workspace::setup(&tree).set("limits.request_timeout", 300);
    (tree, setup)
}

#[tokio::test]
async fn workspace_cancelling_stops_the_work() {
    let (tree, setup) = with_an_endless_file();
    let server = setup.start(Transport::Stdio).await;
    let params = json!({"name": "hash_file", "arguments": hash_endless()});
    let params: CallToolRequestParams = serde_json::from_value(params).unwrap();
    let request = CallToolRequest::new(params).into();
    let call = server
        .client()
        .send_cancellable_request(request, PeerRequestOptions::no_options());
    let call = call.await.unwrap();
    let file = tree.join("endless");
    assert!(
        becomes(async || server.has_open(&file)).await,
        "the work never began"
    );
    call.cancel(Some("enough".to_owned())).await.unwrap();
    let line = server.logged(|line| line["tool"] == "hash_file").await;
    assert_eq!(line["outcome"], "error");
    assert_eq!(line["error_code"], "cancelled");
    assert!(
        becomes(async || !server.has_open(&file)).await,
        "the work goes on"
    );
}

#[tokio::test]
async fn workspace_hanging_up_stops_the_work() {
    let (tree, setup) = with_an_endless_file();
    let server = setup.start(Transport::Http).await;
    let request = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call",
        "params": {"name": "hash_file", "arguments": hash_endless()}});
    let file = tree.join("endless");
    let http = server.http().clone();
    let call = tokio::spawn(async move { http.post("/mcp", &[], &request).await });
    assert!(
        becomes(async || server.has_open(&file)).await,
        "the work never began"
    );
    call.abort();
    assert!(
        becomes(async || !server.has_open(&file)).await,
        "the work goes on"
    );
}

#[tokio::test]
async fn workspace_long_work_tells_its_progress() {
    testkit::over_both(async |transport| {
        let (_tree, setup) = with_an_endless_file();
        let server = setup
            .set("limits.request_timeout", 2)
            .start(transport)
            .await;
        let outcome = server.call("hash_file", hash_endless()).await;
        assert_eq!(outcome.error()["error"]["code"], "timeout");
        let notes = server.progress();
        let steps: Vec<f64> = notes
            .iter()
            .filter_map(|note| note["progress"].as_f64())
            .collect();
        assert!(!steps.is_empty(), "no progress over {transport:?}");
        assert!(steps.is_sorted_by(|one, next| one < next), "{steps:?}");
    })
    .await;
}

#[tokio::test]
async fn workspace_a_stopped_server_leaves_nothing_behind() {
    testkit::over_both(async |transport| {
        let tree = Tree::new().sparse("large", 1 << 40);
        let server = Workspace::setup(&tree).start(transport).await;
        let hash = json!({"root": "workspace", "path": "large", "algorithm": "sha256"});
        let call = server.spawn_call("hash_file", hash);
        server.call("list_roots", json!({})).await.ok();
        call.abort();
        let ended = server.stop().await;
        assert_eq!(ended.code, Some(0), "{ended:?}");
        assert_eq!(tree.close().map_err(|error| error.to_string()), Ok(()));
    })
    .await;
}
