//! The reserved name `.mcp-filesystem`: no tool of any set sees, reads, changes, copies or removes what has it.

use testkit::{Server, Transport, Tree, Value, json, over_both};

use super::hostile::{Tool, is_path, setup};
use crate::harness::machine;

/// The spellings of the reserved name and of what is in it, links included.
const SPELLINGS: [&str; 25] = [
    ".mcp-filesystem",
    ".mcp-filesystem/",
    ".mcp-filesystem/.",
    ".mcp-filesystem/secret",
    "./.mcp-filesystem//secret",
    "/.mcp-filesystem/secret",
    ".mcp-filesystem/../.mcp-filesystem/secret",
    "dir/../.mcp-filesystem/secret",
    ".mcp-filesystem/new",
    ".mcp-filesystem/new/deep",
    "dir/.mcp-filesystem",
    "dir/.mcp-filesystem/secret",
    "inside/.mcp-filesystem/secret",
    "none/.mcp-filesystem/secret",
    "to-it",
    "to-it/",
    "to-it/secret",
    "to-hidden",
    "to-new",
    "dir/round/.mcp-filesystem/secret",
    "absolute/secret",
    ".MCP-FILESYSTEM/secret",
    ".mcp-FileSystem",
    "other/.mcp-filesystem",
    "other/.mcp-filesystem/secret",
];

fn fill(tree: &Tree) {
    for entry in std::fs::read_dir(tree.path()).expect("a root").flatten() {
        if entry.file_name() == ".mcp-filesystem" || entry.file_name() == "dir" {
            continue;
        }
        let _ = std::fs::remove_file(entry.path());
        let _ = std::fs::remove_dir_all(entry.path());
    }
    let _ = std::fs::remove_dir_all(tree.join("dir/deep"));
    tree.write("file", "text\nmore\n");
    tree.write("dir/deep/file", "needle\n");
    tree.write(".mcp-filesystem/secret", "CANARY\n");
    tree.write("dir/.mcp-filesystem/secret", "CANARY\n");
    let absolute = tree.join(".mcp-filesystem");
    for (name, target) in [
        ("inside", "dir".into()),
        ("to-it", ".mcp-filesystem".into()),
        ("to-hidden", "dir/.mcp-filesystem/secret".into()),
        ("to-new", ".mcp-filesystem/new".into()),
        ("dir/round", "..".into()),
        ("absolute", absolute),
    ] {
        let _ = std::fs::remove_file(tree.join(name));
        std::os::unix::fs::symlink(target, tree.join(name)).expect("a link");
    }
}

/// What has the reserved name, with all below it.
fn reserved(tree: &Tree) -> Vec<(String, String)> {
    let all = tree.listing().into_iter();
    all.filter(|(path, _)| path.to_lowercase().contains(".mcp-filesystem"))
        .collect()
}

async fn answer(server: &Server, tool: &str, arguments: Value) -> String {
    match server.try_call(tool, arguments.clone()).await {
        Ok(outcome) => outcome.whole.to_string(),
        Err(testkit::rmcp::ServiceError::McpError(error)) => format!("{error:?}"),
        Err(error) => panic!("no answer to {tool} {arguments}: {error}"),
    }
}

/// Every path argument of every tool gets every spelling, and every tool is called on the directories around it.
async fn try_everything(set: &str) {
    over_both(async |transport| {
        let tree = Tree::new();
        fill(&tree);
        let before = reserved(&tree);
        let server = setup(set, &tree).start(transport).await;
        let tools: Vec<Tool> = server.list_tools().await.iter().map(Tool::new).collect();
        let mut cases = 0;
        for tool in &tools {
            for argument in tool.properties.iter().map(|(name, _)| name) {
                if !is_path(argument) {
                    continue;
                }
                for spelling in SPELLINGS {
                    let arguments = if argument == "paths" {
                        tool.with(argument, &json!([spelling]))
                    } else {
                        tool.with(argument, &json!(spelling))
                    };
                    let answer = answer(&server, &tool.name, arguments.clone()).await;
                    let shown = format!("{} {arguments} => {answer}", tool.name);
                    assert!(!answer.contains("CANARY"), "{shown}");
                    fill(&tree);
                    assert_eq!(reserved(&tree), before, "{shown}");
                    cases += 1;
                }
            }
        }
        machine::said(&format!("{set}: {cases} attempts over {transport:?}"));
        assert!(cases > 20, "{cases}");
    })
    .await;
}

#[tokio::test]
async fn no_tool_of_workspace_reaches_the_reserved_name() {
    try_everything("workspace").await;
}

#[tokio::test]
async fn no_tool_of_files_reaches_the_reserved_name() {
    try_everything("files").await;
}

#[tokio::test]
async fn no_tool_of_memory_reaches_the_reserved_name() {
    try_everything("memory").await;
}

#[tokio::test]
async fn no_tool_of_guide_reaches_the_reserved_name() {
    try_everything("guide").await;
}

/// Listings, searches, copies and comparisons of what is around it do not show it.
#[tokio::test]
async fn nothing_that_walks_meets_the_reserved_name() {
    let tree = Tree::new();
    fill(&tree);
    let server = setup("workspace", &tree).start(Transport::Stdio).await;
    tree.write("other/file", "needle\n");
    for (tool, arguments) in [
        ("list_folder", json!({"path": ".", "depth": 4})),
        ("list_folder", json!({"path": "dir"})),
        ("glob", json!({"pattern": "**"})),
        ("glob", json!({"pattern": "**/.mcp-*/**"})),
        ("grep", json!({"pattern": "CANARY|needle"})),
        ("compare", json!({"path": "dir", "other": "other"})),
        (
            "copy",
            json!({
                "source_root": "workspace", "source_path": "dir",
                "dest_root": "workspace", "dest_path": "copied",
            }),
        ),
    ] {
        let mut with_root = arguments.clone();
        if tool != "copy" {
            with_root["root"] = json!("workspace");
        }
        let answer = answer(&server, tool, with_root).await;
        assert!(!answer.contains("secret"), "{tool} {arguments} => {answer}");
        let asked = arguments.to_string().contains(".mcp-");
        let shows = answer.replace(r"**/.mcp-*", "").contains(".mcp-filesystem");
        assert!(asked || !shows, "{tool} {arguments} => {answer}");
    }
    assert!(tree.join("copied/deep/file").exists());
    assert!(!tree.join("copied/.mcp-filesystem").exists());
    tree.write("big/.mcp-filesystem/objects/1", "x".repeat(10_000));
    let gone = answer(
        &server,
        "remove_folder",
        json!({"root": "workspace", "path": "big"}),
    )
    .await;
    assert!(
        !tree.join("big").exists(),
        "a directory goes with all it holds: {gone}"
    );
}
