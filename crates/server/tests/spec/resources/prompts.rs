//! Prompts about the changes of roots that keep a history.

use testkit::{Setup, Transport, Tree, Value, json};

use super::{Era, Peer, over_all};
use crate::harness::program;

fn with_history(tree: &Tree) -> Setup {
    let keys = json!({"allowed_tools": ["*"], "history": {"place": "root"}});
    program().root_with("kept", tree.path(), keys)
}

fn without_history(tree: &Tree) -> Setup {
    let keys = json!({"allowed_tools": ["*"], "history": "off"});
    program().root_with("plain", tree.path(), keys)
}

async fn write(peer: &mut Peer, path: &str, content: &str) {
    // Without root: what is said twice over HTTP has to stand in a header too.
    let call = json!({"name": "write_file", "arguments": {"path": path, "content": content}});
    let reply = peer.ok("tools/call", call).await;
    assert_eq!(reply["isError"], false, "{reply}");
}

/// The names of what is listed.
fn names<'list>(list: &'list Value, key: &str) -> Vec<&'list str> {
    let items = list[key].as_array().expect("a list").iter();
    items.filter_map(|item| item["name"].as_str()).collect()
}

fn text(prompt: &Value) -> &str {
    assert_eq!(prompt["messages"][0]["role"], "user", "{prompt}");
    prompt["messages"][0]["content"]["text"]
        .as_str()
        .expect("a text")
}

#[tokio::test]
async fn prompts_tell_the_changes_of_a_root_with_a_history() {
    let tree = Tree::new().file("notes.md", "old\n");
    over_all(
        || with_history(&tree),
        async |peer| {
            let listed = peer.ok("prompts/list", json!({})).await;
            let tools = peer.ok("tools/list", json!({})).await;
            let can_undo = names(&tools, "tools").contains(&"undo");
            let prompts = names(&listed, "prompts");
            assert!(prompts.ends_with(&["changes", "review"]), "{listed}");
            assert_eq!(prompts.contains(&"undo"), can_undo, "{listed}");
            assert_eq!(listed["prompts"][0]["arguments"][0]["required"], false);
            if peer.era == Era::Newest {
                assert!(listed["ttlMs"].as_u64() > Some(0), "{listed}");
                let found = peer.ok("server/discover", json!({})).await;
                assert_eq!(found["capabilities"]["prompts"], json!({}));
            }
            tree.write("notes.md", "old\n");
            write(peer, "notes.md", "new\n").await;
            write(peer, "other.md", "else\n").await;

            let changes = peer.ok("prompts/get", json!({"name": "changes"})).await;
            let told = text(&changes);
            assert!(told.contains("write_file notes.md"), "{told}");
            assert!(
                told.contains("write_file other.md") && told.contains("root kept"),
                "{told}"
            );

            let arguments = json!({"root": "kept", "path": "notes.md"});
            let review = json!({"name": "review", "arguments": arguments});
            let review = peer.ok("prompts/get", review).await;
            let told = text(&review);
            assert!(
                told.contains("notes.md") && !told.contains("other.md"),
                "{told}"
            );
            assert!(told.contains("\n-old\n+new"), "{told}");
            let link = &review["messages"][1]["content"];
            assert_eq!(link["type"], "resource_link", "{review}");
            let read = peer.ok("resources/read", json!({"uri": link["uri"]})).await;
            assert_eq!(read["contents"][0]["text"], "new\n");

            if can_undo {
                let undo = peer.ok("prompts/get", json!({"name": "undo"})).await;
                let told = text(&undo);
                assert!(
                    told.contains("call the tool undo with root kept and change "),
                    "{undo}"
                );
            }
            let remove = json!({"name": "remove_file", "arguments": {"path": "other.md"}});
            peer.ok("tools/call", remove).await;
            let review = peer.ok("prompts/get", json!({"name": "review"})).await;
            let messages = review["messages"].to_string();
            assert!(messages.contains("fs://kept/notes.md"), "{messages}");
            assert!(
                !messages.contains("fs://kept/other.md"),
                "it is gone: {messages}"
            );
        },
    )
    .await;
}

#[tokio::test]
async fn prompts_say_what_is_wrong() {
    let tree = Tree::new().file("notes.md", "x");
    let table = [
        (json!({}), "name (string)"),
        (json!({"name": "x"}), "Unknown prompt: x; prompts: "),
        (
            json!({"name": "changes", "arguments": []}),
            "object of strings",
        ),
        (
            json!({"name": "changes", "arguments": {"path": 1}}),
            "path has to be a string",
        ),
        (
            json!({"name": "changes", "arguments": {"since": "x"}}),
            "prompts take root, path",
        ),
        (
            json!({"name": "changes", "arguments": {"path": "../x"}}),
            "without ..",
        ),
    ];
    over_all(
        || with_history(&tree),
        async |peer| {
            for (params, expected) in &table {
                let error = peer.fails("prompts/get", params.clone()).await;
                assert_eq!(error["code"], -32602, "{error}");
                let message = error["message"].as_str().unwrap();
                assert!(
                    message.contains(expected) && !message.contains('\n'),
                    "{message}"
                );
            }
            let unknown = json!({"name": "changes", "arguments": {"root": "other"}});
            let unknown = peer.fails("prompts/get", unknown).await;
            let message = unknown["message"].as_str().unwrap();
            assert!(message.contains("unknown root: other"), "{message}");
            let cursor = peer.fails("prompts/list", json!({"cursor": "x"})).await;
            assert_eq!(cursor["code"], -32602, "{cursor}");
            let completion = json!({
                "ref": {"type": "ref/prompt", "name": "changes"},
                "argument": {"name": "path", "value": "no"},
            });
            let completed = peer.ok("completion/complete", completion).await;
            assert_eq!(completed["completion"]["values"], json!(["notes.md"]));
            for (typed, values) in [
                ("", json!(["kept"])),
                ("ke", json!(["kept"])),
                ("x", json!([])),
            ] {
                let completion = json!({
                    "ref": {"type": "ref/prompt", "name": "changes"},
                    "argument": {"name": "root", "value": typed},
                });
                let completed = peer.ok("completion/complete", completion).await;
                assert_eq!(completed["completion"]["values"], values, "{completed}");
            }
        },
    )
    .await;
}

#[tokio::test]
async fn prompts_are_not_there_without_a_history() {
    let tree = Tree::new();
    over_all(
        || without_history(&tree),
        async |peer| {
            for method in ["prompts/list", "prompts/get"] {
                let error = peer.fails(method, json!({"name": "changes"})).await;
                assert_eq!(error["code"], -32601, "{error}");
            }
        },
    )
    .await;
}

/// A set with one root has no `root` in its tools: what a prompt asks for can be done as it is said.
#[tokio::test]
async fn prompts_of_files_and_memory_ask_for_what_their_tools_take() {
    let (files, memory) = (
        Tree::new().file("a.md", "old\n"),
        Tree::new().file("a.md", "old\n"),
    );
    let of = |tree: &Tree, set: &str| {
        let setup = program().root("data", tree.path());
        setup.set("toolsets", json!([set]))
    };
    let write = json!({"name": "write", "arguments": {"path": "a.md", "content": "new\n"}});
    let replace = json!({"path": "a.md", "old_str": "old", "new_str": "new"});
    let replace = json!({"name": "str_replace", "arguments": replace});
    let undoing = json!({"root": "data", "undo": true});
    for (setup, change) in [
        (of(&files, "files"), write),
        (of(&memory, "memory").set("memory", undoing), replace),
    ] {
        let mut peer = Peer::new(setup, Transport::Stdio, Era::Older).await;
        let reply = peer.ok("tools/call", change).await;
        assert_eq!(reply["isError"], false, "{reply}");
        let review = peer.ok("prompts/get", json!({"name": "review"})).await;
        let told = text(&review);
        assert!(told.contains("-old\n+new"), "{told}");
        assert!(!told.contains("tool changes"), "{told}");
        let link = &review["messages"][1]["content"];
        let read = peer.ok("resources/read", json!({"uri": link["uri"]})).await;
        assert_eq!(read["contents"][0]["text"], "new\n", "{review}");
        let undo = peer.ok("prompts/get", json!({"name": "undo"})).await;
        let told = text(&undo);
        let (_, change) = told
            .split_once("call the tool undo with change ")
            .unwrap_or_else(|| panic!("{told}"));
        let change = change.split(',').next().expect("a change");
        let undo = json!({"name": "undo", "arguments": {"change": change, "dry_run": true}});
        let undone = peer.ok("tools/call", undo).await;
        assert_eq!(undone["isError"], false, "{undone}");
    }
}

/// Who may see the changes but not the files is told no line of them, and given no link.
#[tokio::test]
async fn prompts_show_no_lines_to_whom_may_not_read() {
    let tree = Tree::new().file("notes.md", "old\n");
    let keys = json!({"allowed_tools": ["changes", "write_file", "list_folder"], "history": {"place": "root"}});
    let setup = program().root_with("kept", tree.path(), keys);
    let mut peer = Peer::new(setup, Transport::Stdio, Era::Older).await;
    write(&mut peer, "notes.md", "new\n").await;
    let review = peer.ok("prompts/get", json!({"name": "review"})).await;
    let messages = review["messages"].as_array().expect("messages");
    assert_eq!(messages.len(), 1, "{review}");
    assert!(text(&review).contains("write_file notes.md"), "{review}");
    assert!(!text(&review).contains("+new"), "{review}");
}
