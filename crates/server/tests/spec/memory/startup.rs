//! The base path, and how the set is reached.

use testkit::{Ended, ProtocolVersion, Transport, Tree, json};

use super::set::Memory;
use crate::harness::{ToolSet, program};

/// How a server with this base path ends.
async fn refused(path: &str) -> Ended {
    let ended = program()
        .arguments(["--toolset", "memory", "--base-path", path])
        .refuse(Transport::Stdio)
        .await;
    assert_eq!(ended.code, Some(1), "{ended:?}");
    ended
}

#[tokio::test]
async fn memory_the_base_path_is_created() {
    testkit::over_both(async |transport| {
        let tree = Tree::new();
        let path = tree.join("not/yet/there");
        let setup = program()
            .arguments(["--toolset", "memory"])
            .variable("BASE_PATH", path.to_str().expect("text"))
            .endpoint("/mcp/memory");
        let server = setup.start(transport).await;
        let create = json!({"path": "f", "content": "x", "encoding": "utf-8"});
        server.call("create", create).await.ok();
        assert_eq!(tree.text("not/yet/there/f"), "x");
    })
    .await;
}

#[tokio::test]
async fn memory_the_base_path_must_be_absolute() {
    for path in ["storage", "./storage", "../storage"] {
        let ended = refused(path).await;
        let line = ended.stderr.join("\n");
        assert!(
            line.contains("--base-path") && line.contains("absolute"),
            "{line}"
        );
        assert!(line.contains(path), "{line}");
    }
}

#[tokio::test]
async fn memory_a_base_path_that_cannot_be_made_or_used() {
    let tree = Tree::new().file("file", "");
    let below_file = tree.join("file/below");
    let file = tree.join("file");
    let paths = [below_file.to_str(), file.to_str(), Some("/proc/no/such")];
    for path in paths.into_iter().flatten() {
        let ended = refused(path).await;
        let line = ended.stderr.join("\n");
        assert!(line.contains("--base-path"), "{line}");
    }
}

#[tokio::test]
async fn memory_a_base_path_that_cannot_be_written() {
    // Not even the superuser can add files there.
    let ended = refused("/proc/self/fdinfo").await;
    let line = ended.stderr.join("\n");
    assert!(line.contains("no file can be made in it"), "{line}");
}

#[tokio::test]
async fn memory_beside_workspace_each_has_its_endpoint() {
    let (files, notes) = (Tree::new().file("w", ""), Tree::new().file("m", ""));
    let [files_path, notes_path] = [&files, &notes].map(|tree| tree.path().to_str().expect("text"));
    let setup = program()
        .arguments([
            "--toolset",
            "workspace,memory",
            "--base-path",
            notes_path,
            files_path,
        ])
        .endpoint("/mcp/memory");
    let server = setup.start(Transport::Http).await;
    assert_eq!(server.info()["serverInfo"]["name"], "file-storage-backend");
    let viewed = server.call("view", json!({"path": "."})).await;
    assert_eq!(viewed.ok()["entries"], json!(["m"]));
}

#[tokio::test]
async fn memory_every_revision_is_served() {
    for revision in [ProtocolVersion::V_2024_11_05, ProtocolVersion::V_2025_11_25] {
        let tree = Tree::new().file("f", "x");
        let server = Memory::setup(&tree)
            .revision(revision)
            .start(Transport::Http)
            .await;
        let viewed = server.call("view", json!({"path": "f"})).await;
        assert_eq!(viewed.ok()["content"], "x");
    }
}
