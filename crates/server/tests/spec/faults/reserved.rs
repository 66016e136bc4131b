//! The reserved name `.mcp-filesystem`: no tool of any set sees, reads, changes, copies or removes what has it.

use testkit::{Server, Transport, Tree, Value, json, over_both};

use super::hostile::{Tool, is_path, setup};
use crate::harness::machine;
use crate::harness::message::{initialize, initialized};

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

/// Names by which other file systems find the reserved one: short, with an end that is cut off, or folded.
const ALIASES: [&str; 6] = [
    "MCP-FI~1",
    ".mcp-filesystem.",
    ".mcp-filesystem ",
    ".mcp-filesystem::$DATA",
    ".mcp-file\u{17f}ystem",
    ".mcp-\u{fb01}lesystem",
];

/// An alias is here the same directory, mounted a second time: it has the device and the number of the reserved one.
#[tokio::test]
async fn no_tool_reaches_the_reserved_name_by_an_alias() {
    if !machine::may_mount() {
        return;
    }
    for set in ["workspace", "files", "memory"] {
        let tree = Tree::new();
        fill(&tree);
        let before = reserved(&tree);
        let mut mounts = String::new();
        for alias in ALIASES {
            std::fs::create_dir(tree.join(alias)).expect("its name is free");
            let ends = [".mcp-filesystem", alias].map(|name| tree.join(name).display().to_string());
            mounts += &format!("mount --bind '{}' '{}' && ", ends[0], ends[1]);
        }
        let script = format!("{mounts}exec \"$0\" \"$@\"");
        let setup = setup(set, &tree).wrapped_in(["unshare", "-m", "sh", "-c", &script]);
        let server = setup.start(Transport::Stdio).await;
        let tools: Vec<Tool> = server.list_tools().await.iter().map(Tool::new).collect();
        let mut cases = 0;
        for tool in &tools {
            let paths = tool.properties.iter().map(|(name, _)| name);
            for argument in paths.filter(|name| is_path(name) && *name != "paths") {
                for alias in ALIASES {
                    for path in [
                        alias.to_owned(),
                        format!("{alias}/secret"),
                        format!("{alias}/new"),
                    ] {
                        tree.write("file", "text\nmore\n");
                        tree.write("dir/deep/file", "needle\n");
                        let arguments = tool.with(argument, &json!(path));
                        let answer = answer(&server, &tool.name, arguments.clone()).await;
                        let shown = format!("{} {arguments} => {answer}", tool.name);
                        assert!(!answer.contains("CANARY"), "{shown}");
                        let now: Vec<_> = reserved(&tree)
                            .into_iter()
                            .filter(|(path, _)| !ALIASES.contains(&path.as_str()))
                            .collect();
                        assert_eq!(now, before, "{shown}");
                        cases += 1;
                    }
                }
            }
        }
        assert!(cases > 50, "{set}: {cases}");
    }
}

/// Sends cases one by one: nothing of the reserved name is told, and nothing in it changes.
async fn try_cases(server: &Server, tree: &Tree, cases: impl Iterator<Item = (String, Value)>) {
    let before = reserved(tree);
    let mut count = 0;
    for (tool, arguments) in cases {
        let answer = answer(server, &tool, arguments.clone()).await;
        let shown = format!("{tool} {arguments} => {answer}");
        assert!(!answer.contains("CANARY"), "{shown}");
        fill(tree);
        assert_eq!(reserved(tree), before, "{shown}");
        count += 1;
    }
    assert!(count > 20, "{count}");
}

/// Paths inside of lists and of patches are paths too.
#[tokio::test]
async fn no_nested_path_reaches_the_reserved_name() {
    let tree = Tree::new();
    fill(&tree);
    let server = setup("workspace", &tree).start(Transport::Stdio).await;
    let cases = SPELLINGS.iter().flat_map(|path| {
        let patch = format!("--- a/{path}\n+++ b/{path}\n@@ -1 +1 @@\n-CANARY\n+x\n");
        let new = format!("--- /dev/null\n+++ b/{path}\n@@ -0,0 +1 @@\n+x\n");
        let edit = json!([{"path": path, "old": "CANARY", "new": "x"}]);
        [
            (
                "write_file",
                json!({"files": [{"path": "new", "content": "x"}, {"path": path, "content": "x"}]}),
            ),
            ("edit_file", json!({"edits": edit})),
            ("read_file", json!({"paths": [path, "file"]})),
            ("patch_file", json!({"patch": patch})),
            ("patch_file", json!({"patch": new})),
        ]
    });
    let cases = cases.map(|(tool, mut arguments)| {
        arguments["root"] = json!("workspace");
        (tool.to_owned(), arguments)
    });
    try_cases(&server, &tree, cases).await;
}

#[tokio::test]
async fn no_command_of_memory_tool_reaches_the_reserved_name() {
    let tree = Tree::new();
    fill(&tree);
    let server = crate::memory_tool::MemoryTool::setup(&tree);
    let server = server.start(Transport::Stdio).await;
    let cases = SPELLINGS.iter().flat_map(|spelling| {
        let path = format!("/memories/{spelling}");
        [
            json!({"command": "view", "path": path}),
            json!({"command": "create", "path": path, "file_text": "x"}),
            json!({"command": "str_replace", "path": path, "old_str": "CANARY", "new_str": "x"}),
            json!({"command": "insert", "path": path, "insert_line": 0, "insert_text": "x"}),
            json!({"command": "delete", "path": path}),
            json!({"command": "rename", "old_path": path, "new_path": "/memories/here"}),
            json!({"command": "rename", "old_path": "/memories/file", "new_path": path}),
        ]
    });
    let cases = cases.map(|arguments| ("memory".to_owned(), arguments));
    try_cases(&server, &tree, cases).await;
}

#[tokio::test]
async fn no_tool_of_reference_reaches_the_reserved_name() {
    let tree = Tree::new();
    fill(&tree);
    let host = tree.path().display().to_string();
    let server = crate::reference::setup().arguments([host.clone()]);
    let server = server.start(Transport::Stdio).await;
    let tools: Vec<Tool> = server.list_tools().await.iter().map(Tool::new).collect();
    let paths: Vec<String> = SPELLINGS
        .iter()
        .map(|spelling| format!("{host}/{spelling}"))
        .collect();
    let (host, paths) = (&host, &paths);
    let cases = tools.iter().flat_map(|tool| {
        let arguments = tool.properties.iter().map(|(name, _)| name);
        let arguments = arguments.filter(|name| is_path(name));
        arguments.flat_map(move |name| {
            paths.iter().map(move |path| {
                let value = if name == "paths" {
                    json!([path])
                } else {
                    json!(path)
                };
                let mut arguments = tool.with(name, &value);
                // The other end of a copy or move is in the root.
                for (other, value) in arguments.as_object_mut().into_iter().flatten() {
                    if is_path(other) && other != name && value.is_string() {
                        *value = json!(format!("{host}/file"));
                    }
                }
                (tool.name.clone(), arguments)
            })
        })
    });
    try_cases(&server, &tree, cases).await;
}

/// Resources and completion take the same road.
#[tokio::test]
async fn no_resource_reaches_the_reserved_name() {
    let tree = Tree::new();
    fill(&tree);
    let mut wire = setup("workspace", &tree).wire(Transport::Stdio).await;
    wire.request(&initialize(&json!({}))).await;
    wire.notify(&initialized()).await;
    let before = reserved(&tree);
    for (id, spelling) in (2..).step_by(3).zip(SPELLINGS) {
        let uri = format!("fs://workspace/{spelling}");
        let reference = json!({"type": "ref/resource", "uri": "fs://workspace/{+path}"});
        for (more, method, params) in [
            (0, "resources/read", json!({"uri": uri})),
            (1, "resources/subscribe", json!({"uri": uri})),
            (
                2,
                "completion/complete",
                json!({"ref": reference, "argument": {"name": "path", "value": spelling}}),
            ),
        ] {
            let request =
                json!({"jsonrpc": "2.0", "id": id + more, "method": method, "params": params});
            let answer = wire.request(&request).await;
            let shown = format!("{method} {spelling} => {answer}");
            assert!(!shown.contains("CANARY"), "{shown}");
            let values = answer["result"]["completion"]["values"].to_string();
            assert!(!values.contains("secret"), "{shown}");
            if method == "resources/read" {
                assert!(answer["error"].is_object(), "{shown}");
            }
        }
    }
    assert_eq!(reserved(&tree), before);
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
