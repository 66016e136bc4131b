//! `list_roots` and what each root allows.

use testkit::{Tree, json};

use super::Workspace;
use crate::harness::{catalogue, each, program, tool_names};

const READING: &[&str] = &["list_folder", "read_file", "stat_file", "grep", "glob"];

fn three_roots() -> Vec<(&'static str, Tree, &'static [&'static str])> {
    vec![
        ("workspace", Tree::new(), &["*"]),
        ("config", Tree::new(), READING),
        ("logs", Tree::new(), &["list_folder", "read_file"]),
    ]
}

#[tokio::test]
async fn workspace_e2e_061_list_roots() {
    Workspace::both_on(three_roots, async |workspace| {
        let listed = workspace.ok("list_roots", json!({})).await;
        assert_eq!(
            each(&listed["roots"], "name"),
            ["workspace", "config", "logs"]
        );
        assert_eq!(listed["roots"][1]["allowed_tools"], json!(READING));
        let all = listed["roots"][0]["allowed_tools"].as_array().unwrap();
        let mut known = catalogue("workspace").await;
        known.retain(|tool| tool != "list_roots");
        assert_eq!(*all, known, "{listed}");
        assert_eq!(listed["roots"][2]["read_only"], false);
    })
    .await;
}

#[tokio::test]
async fn workspace_e2e_062_no_host_paths() {
    Workspace::both_on(three_roots, async |workspace| {
        let outcome = workspace.call("list_roots", json!({})).await;
        let whole = outcome.whole.to_string();
        assert!(
            !whole.contains('/'),
            "something like a path: {}",
            outcome.story()
        );
        for number in 0..3 {
            let name = workspace.tree_of(number).name();
            assert!(!whole.contains(name), "{}", outcome.story());
        }
    })
    .await;
}

#[tokio::test]
async fn workspace_fr_003_always_there_and_read_only() {
    let roots = || vec![("only", Tree::new(), &["read_file"][..])];
    Workspace::both_on(roots, async |workspace| {
        workspace.ok("list_roots", json!({})).await;
        let tools = workspace.server.list_tools().await;
        assert_eq!(
            tool_names(&tools),
            ["list_roots", "read_file"],
            "what no root allows is not offered"
        );
        assert_eq!(tools[0]["annotations"]["readOnlyHint"], true);
        assert_eq!(tools[0]["annotations"]["destructiveHint"], false);
    })
    .await;
}

#[tokio::test]
async fn workspace_nfr_008_only_names_and_rights() {
    Workspace::both_on(three_roots, async |workspace| {
        let listed = workspace.ok("list_roots", json!({})).await;
        for root in listed["roots"].as_array().unwrap() {
            let mut keys: Vec<&String> = root.as_object().unwrap().keys().collect();
            keys.sort_unstable();
            assert_eq!(keys, ["allowed_tools", "name", "read_only"]);
        }
    })
    .await;
}

#[tokio::test]
async fn workspace_us_009_what_an_agent_can_find_out() {
    Workspace::both_on(three_roots, async |workspace| {
        let tools = workspace.server.list_tools().await;
        assert_eq!(tool_names(&tools), catalogue("workspace").await);
        for tool in tools.iter().filter(|tool| tool["name"] != "list_roots") {
            let required = tool["inputSchema"]["required"].to_string();
            assert!(required.contains("root"), "{tool:#}");
            let described = tool["inputSchema"]["properties"].to_string();
            assert!(
                described.contains("list_roots"),
                "where do roots come from? {tool:#}"
            );
        }
        let listed = workspace.ok("list_roots", json!({})).await;
        let name = listed["roots"][2]["name"].as_str().unwrap();
        workspace
            .ok("list_folder", json!({"root": name, "path": ""}))
            .await;
    })
    .await;
}

#[tokio::test]
async fn workspace_us_010_a_refused_write_changes_nothing() {
    let roots = || {
        let tree = Tree::new().file("app.yaml", "kept");
        vec![(
            "config",
            tree,
            &["list_folder", "read_file", "stat_file"][..],
        )]
    };
    Workspace::both_on(roots, async |workspace| {
        let write = json!({"root": "config", "path": "app.yaml", "content": "x"});
        let message = workspace
            .message("tool_not_allowed", "write_file", write)
            .await;
        assert_eq!(message, "tool write_file not allowed on root config");
        assert_eq!(workspace.tree().text("app.yaml"), "kept");
    })
    .await;
}

#[tokio::test]
async fn workspace_fr_002_the_root_then_the_tool_then_the_path() {
    let roots = || vec![("limited", Tree::new(), &["list_folder"][..])];
    Workspace::both_on(roots, async |workspace| {
        let outside = json!({"root": "limited", "path": "../../etc/passwd"});
        workspace
            .fails("tool_not_allowed", "read_file", outside)
            .await;
        let unknown = json!({"root": "unlimited", "path": "../../etc/passwd"});
        workspace.fails("unknown_root", "read_file", unknown).await;
    })
    .await;
}

#[tokio::test]
async fn workspace_fr_002_both_ends_of_a_move_must_allow_it() {
    let roots = || {
        vec![
            ("free", Tree::new().file("f", ""), &["*"][..]),
            ("bound", Tree::new().file("g", ""), &["copy"][..]),
        ]
    };
    Workspace::both_on(roots, async |workspace| {
        for (from, to) in [("free", "bound"), ("bound", "free")] {
            let arguments =
                json!({"source_root": from, "source_path": "f", "dest_root": to, "dest_path": "x"});
            let message = workspace.message("tool_not_allowed", "move", arguments).await;
            assert_eq!(message, "tool move not allowed on root bound");
        }
        let unknown =
            json!({"source_root": "bound", "source_path": "g", "dest_root": "no", "dest_path": "x"});
        workspace.fails("unknown_root", "move", unknown).await;
    })
    .await;
}

#[tokio::test]
async fn workspace_a_read_only_root_names_the_tools_that_only_read() {
    testkit::over_both(async |transport| {
        let tree = Tree::new();
        let server = program()
            .root_with(
                "kept",
                tree.path(),
                json!({"allowed_tools": ["*"], "read_only": true}),
            )
            .start(transport)
            .await;
        let listed = server.call("list_roots", json!({})).await;
        let root = &listed.ok()["roots"][0];
        // A copy is offered if another root takes what it writes.
        let offered = server.list_tools().await;
        let reading = tool_names(&offered);
        let mut expected = catalogue("workspace").await;
        expected.retain(|tool| tool == "copy" || reading.contains(&tool.as_str()));
        expected.retain(|tool| tool != "list_roots");
        assert_eq!(root["allowed_tools"], json!(expected));
        let said = server
            .client()
            .peer_info()
            .and_then(|own| own.instructions.clone());
        let said = said.expect("instructions");
        assert!(
            said.contains("glob") && !said.contains("write_file"),
            "{said}"
        );
    })
    .await;
}

#[tokio::test]
async fn workspace_an_unknown_root_that_is_like_one_is_told() {
    Workspace::both_on(three_roots, async |workspace| {
        for (root, message) in [
            (
                "WorkSpace",
                "unknown root: WorkSpace; did you mean workspace?",
            ),
            (
                "nonexistent",
                "unknown root: nonexistent; roots: workspace, config, logs",
            ),
        ] {
            let outcome = workspace
                .call("list_folder", json!({"root": root, "path": "."}))
                .await;
            assert_eq!(outcome.text, message);
        }
    })
    .await;
}
