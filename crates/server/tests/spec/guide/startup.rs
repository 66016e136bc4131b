//! How the set starts, and which mistakes stop it.

use testkit::{Transport, Tree, json};

use super::set::{Guide, tree};
use crate::harness::{ToolSet, catalogue, program, tool_names};

#[tokio::test]
async fn the_project_is_the_current_directory_by_default() {
    let tree = tree();
    let ended = program()
        .arguments(["--toolset", "guide", "call", "guide_cache_file"])
        .arguments([r#"{"path": "docs/a", "content": "x"}"#])
        .directory(tree.path())
        .run()
        .await;
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.stdout.contains(r#""status":"cached""#), "{ended:?}");
}

#[tokio::test]
async fn mistakes_stop_the_start_with_one_line() {
    let tree = tree().file("short", "0123456789");
    let missing = tree.join("gone");
    let cases = [
        (
            program().arguments([
                "--toolset",
                "guide",
                "--project-root",
                missing.to_str().unwrap(),
            ]),
            "the project root (--project-root or guide.project_root): cannot use the directory",
        ),
        (
            Guide::setup(&tree).set("guide.allowed_paths", json!(["docs", "../outside"])),
            "guide.allowed_paths[1]: expected a path inside the project, got \"../outside\"",
        ),
        (
            Guide::setup(&tree).set("guide.state_key_file", tree.join("short").to_str().unwrap()),
            "guide.state_key_file: cannot use the file",
        ),
        (
            Guide::setup(&tree).set("guide.state_key_file", missing.to_str().unwrap()),
            "no such file or directory",
        ),
    ];
    for (setup, expected) in cases {
        let ended = setup.refuse(Transport::Stdio).await;
        assert_eq!(ended.code, Some(1), "{ended:?}");
        assert_eq!(ended.stderr.len(), 1, "{ended:?}");
        assert!(ended.stderr[0].contains(expected), "{expected}: {ended:?}");
    }
}

#[tokio::test]
async fn check_tells_of_the_project() {
    let tree = Tree::new().dir("docs");
    let ended = Guide::setup(&tree).arguments(["check"]).run().await;
    assert_eq!(ended.code, Some(0), "{ended:?}");
    for expected in [
        "the project of guide",
        "allowed paths: docs, src",
        "not there: src",
    ] {
        assert!(
            ended.stdout.contains(expected),
            "{expected}: {}",
            ended.stdout
        );
    }
}

#[tokio::test]
async fn it_shares_stdio_with_workspace() {
    let tree = tree().file("docs/a", "on disk");
    let path = tree.path().to_str().unwrap();
    let server = program()
        .arguments(["--toolset", "workspace,guide", "--project-root", path, path])
        .start(Transport::Stdio)
        .await;
    let mut expected = catalogue("workspace").await;
    expected.extend(catalogue("guide").await);
    assert_eq!(tool_names(&server.list_tools().await), expected);
    let root = tree.name();
    let read = server
        .call("read_file", json!({"root": root, "path": "docs/a"}))
        .await;
    assert_eq!(read.ok()["content"], "on disk");
    let asked = server
        .call("guide_request_file", json!({"path": "docs/a"}))
        .await;
    assert_eq!(
        asked.error()["error_type"],
        "unsupported",
        "the files on disk are not the agent's"
    );
}
