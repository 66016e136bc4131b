//! How the set is started, and what it is not served with.

use testkit::{Transport, Tree, json};

use super::set::{setup, text};
use crate::harness::program;

#[tokio::test]
async fn reference_needs_a_directory() {
    let ended = setup().refuse(Transport::Stdio).await;
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let line = ended.stderr.join("\n");
    assert!(line.contains("no directory to serve"), "{line}");
}

#[tokio::test]
async fn reference_a_missing_directory_is_skipped_while_another_is_left() {
    let tree = Tree::new().file("f", "x");
    let missing = tree.join("missing");
    let server = setup()
        .arguments([text(&missing), text(tree.path())])
        .start(Transport::Stdio)
        .await;
    let read = server.call("read_text_file", json!({"path": "f"})).await;
    assert_eq!(read.text, "x", "{}", read.story());
    server
        .logged(|line| line["level"] == "WARN" && line["root"] == "missing")
        .await;
    let ended = setup()
        .arguments([text(&missing)])
        .refuse(Transport::Stdio)
        .await;
    assert_eq!(ended.code, Some(1), "{ended:?}");
}

#[tokio::test]
async fn reference_is_served_alone() {
    let tree = Tree::new();
    let ended = program()
        .arguments(["--toolset", "reference,guide", text(tree.path())])
        .refuse(Transport::Stdio)
        .await;
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let line = ended.stderr.join("\n");
    assert!(line.contains("nothing is served beside it"), "{line}");
    let server = program()
        .arguments(["--toolset", "workspace,reference", text(tree.path())])
        .endpoint("/mcp/reference")
        .start(Transport::Http)
        .await;
    let mut sets = toolset::every_set().iter();
    let reference = sets.find(|names| names.set == "reference").unwrap();
    assert_eq!(server.list_tools().await.len(), reference.tools.len());
}

#[tokio::test]
async fn reference_check_says_that_it_tells_host_paths() {
    let tree = Tree::new();
    let ended = setup().arguments(["check", text(tree.path())]).run().await;
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(
        ended
            .stdout
            .contains("reference: all 13 tools on files, and list_allowed_directories; replies show paths of this machine"),
        "{}",
        ended.stdout
    );
}

#[tokio::test]
async fn reference_replies_are_not_the_operator_s_to_choose() {
    let tree = Tree::new().file("f", "x");
    let server = program()
        .set("toolsets", json!(["reference"]))
        .set("server.replies", "text")
        .set("server.text", "json")
        .root("tree", tree.path())
        .endpoint("/mcp/reference")
        .start(Transport::Http)
        .await;
    let read = server.call("read_text_file", json!({"path": "f"})).await;
    assert_eq!(read.text.as_str(), "x");
    assert_eq!(read.structured, json!({"content": "x"}));
    let tools = server.list_tools().await;
    assert!(tools.iter().all(|tool| tool["outputSchema"].is_object()));
}
