//! The parts of the contract that change only on purpose: the tool list and the error table.

use std::collections::BTreeMap;

use testkit::{Server, Transport, Tree, Value, json};

use super::Workspace;
use crate::harness::message::{initialize, initialized};
use crate::harness::{ToolSet, program};

/// Asks without a client, whose types could lose fields.
async fn listed(transport: Transport) -> Value {
    let tree = Tree::new();
    let mut wire = Workspace::setup(&tree).wire(transport).await;
    let hello = initialize(&json!({}));
    let welcome = wire.request(&hello).await;
    assert_eq!(
        welcome["result"]["serverInfo"]["name"], "mcp-filesystem",
        "{welcome:#}"
    );
    wire.notify(&initialized()).await;
    let list = wire
        .request(&json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"}))
        .await;
    list["result"].clone()
}

#[tokio::test]
async fn workspace_snapshot_of_the_tool_list() {
    let stdio = listed(Transport::Stdio).await;
    assert_eq!(
        stdio,
        listed(Transport::Http).await,
        "both transports offer the same"
    );
    insta::assert_json_snapshot!("workspace_tools", stdio);
}

/// A call for each code, and how the tree and the settings must be for it.
fn calls() -> Vec<(&'static str, Value)> {
    vec![
        ("read_file", json!({"root": "nowhere", "path": "f"})),
        (
            "write_file",
            json!({"root": "limited", "path": "f", "content": ""}),
        ),
        (
            "write_file",
            json!({"root": "readonly", "path": "f", "content": ""}),
        ),
        ("read_file", json!({"root": "workspace", "path": "../f"})),
        ("read_file", json!({"root": "workspace", "path": "f\0"})),
        ("read_file", json!({"root": "workspace", "path": "loop"})),
        ("read_file", json!({"root": "workspace"})),
        (
            "read_file",
            json!({"root": "workspace", "path": "f", "offset_bytes": 1, "limit_lines": 1}),
        ),
        (
            "write_file",
            json!({"root": "workspace", "path": "f", "content": "", "mode": "trunc"}),
        ),
        (
            "hash_file",
            json!({"root": "workspace", "path": "f", "algorithm": "crc"}),
        ),
        ("read_file", json!({"root": "workspace", "path": "fil"})),
        ("list_folder", json!({"root": "workspace", "path": "gone"})),
        (
            "copy",
            json!({"source_root": "workspace", "source_path": "gone",
            "dest_root": "workspace", "dest_path": "x"}),
        ),
        (
            "write_file",
            json!({"root": "workspace", "path": "file", "content": "", "mode": "create_only"}),
        ),
        (
            "create_folder",
            json!({"root": "workspace", "path": "file"}),
        ),
        ("list_folder", json!({"root": "workspace", "path": "file"})),
        (
            "remove_folder",
            json!({"root": "workspace", "path": "file"}),
        ),
        ("remove_file", json!({"root": "workspace", "path": "dir"})),
        ("read_file", json!({"root": "workspace", "path": "dir"})),
        (
            "hash_file",
            json!({"root": "workspace", "path": "dir", "algorithm": "md5"}),
        ),
        ("read_file", json!({"root": "workspace", "path": "pipe"})),
        ("read_file", json!({"root": "workspace", "path": "large"})),
        (
            "patch_file",
            json!({"root": "workspace", "path": "file", "patch": "@@ -1 +1 @@\n-a\n+b\n"}),
        ),
        (
            "patch_file",
            json!({"root": "workspace", "path": "file", "patch": "none"}),
        ),
        ("grep", json!({"root": "workspace", "pattern": "("})),
        ("glob", json!({"root": "workspace", "pattern": "{a"})),
        ("glob", json!({"root": "workspace"})),
        ("remove_folder", json!({"root": "workspace", "path": ""})),
        (
            "move",
            json!({"source_root": "workspace", "source_path": ".",
            "dest_root": "workspace", "dest_path": "x"}),
        ),
        (
            "copy",
            json!({"source_root": "workspace", "source_path": "dir",
            "dest_root": "workspace", "dest_path": "dir/x"}),
        ),
        (
            "hash_file",
            json!({"root": "workspace", "path": "endless", "algorithm": "sha256"}),
        ),
    ]
}

fn tree() -> Tree {
    Tree::new()
        .file("f", "")
        .file("file", "content\n")
        .dir("dir")
        .pipe("pipe")
        .link("loop", "loop")
        .sparse("large", 5_452_595)
        .sparse("endless", 1 << 40)
}

async fn table(transport: Transport) -> BTreeMap<String, Vec<String>> {
    let (workspace, other) = (tree(), Tree::new());
    let setup = program()
        .root("workspace", workspace.path())
        .root_allowing("limited", other.path(), &["list_folder"])
        .root_with(
            "readonly",
            other.path(),
            json!({"allowed_tools": ["*"], "read_only": true}),
        )
        .set("limits.request_timeout", 1);
    let server = setup.start(transport).await;
    let mut table = BTreeMap::new();
    for (tool, arguments) in calls() {
        add(&mut table, &server, tool, arguments).await;
    }
    table
}

async fn add(
    table: &mut BTreeMap<String, Vec<String>>,
    server: &Server,
    tool: &str,
    arguments: Value,
) {
    let outcome = server.call(tool, arguments).await;
    put(table, tool, outcome.error());
}

fn put(table: &mut BTreeMap<String, Vec<String>>, tool: &str, error: &Value) {
    let text = |key: &str| error["error"][key].as_str().expect("text").to_owned();
    table
        .entry(text("code"))
        .or_default()
        .push(format!("{tool}: {}", text("message")));
}

#[tokio::test]
async fn workspace_snapshot_of_the_error_table() {
    let stdio = table(Transport::Stdio).await;
    // Not here: permission_denied, disk_full and io_error need a host that fails, and a client that cancelled reads no
    // reply.
    let codes = [
        "already_exists",
        "invalid_arguments",
        "invalid_path",
        "invalid_pattern",
        "is_a_directory",
        "not_a_directory",
        "not_a_file",
        "not_found",
        "patch_failed",
        "path_outside_root",
        "root_protected",
        "timeout",
        "too_large",
        "tool_not_allowed",
        "unknown_root",
    ];
    assert!(stdio.keys().eq(codes), "{stdio:#?}");
    assert_eq!(
        stdio,
        table(Transport::Http).await,
        "both transports fail in the same words"
    );
    insta::assert_json_snapshot!("workspace_errors", stdio);
}
