//! Whole journeys of an agent through several tools.

use testkit::{Tree, json};

use super::Workspace;
use crate::harness::{ToolSet, each};

const HELLO_AGENT: &str = "777a72d772bbf2989a81bb2ace58cf36faf9d7e626f9626d9b807b42a6262602";

#[tokio::test]
async fn workspace_e2e_001_read_patch_verify() {
    Workspace::both(
        || Tree::new().file("hello.txt", "Hello World\n"),
        async |workspace| {
            let read = workspace
                .ok("read_file", json!({"path": "hello.txt"}))
                .await;
            assert_eq!(read["content"], "Hello World\n");
            assert_eq!(read["size"], 12);
            let patch =
                "--- a/hello.txt\n+++ b/hello.txt\n@@ -1 +1 @@\n-Hello World\n+Hello Agent\n";
            let patched = workspace
                .ok("patch_file", json!({"path": "hello.txt", "patch": patch}))
                .await;
            assert_eq!(patched["hunks_applied"], 1);
            assert_eq!(workspace.read("hello.txt").await, "Hello Agent\n");
            let hash = json!({"path": "hello.txt", "algorithm": "sha256"});
            assert_eq!(workspace.ok("hash_file", hash).await["hash"], HELLO_AGENT);
        },
    )
    .await;
}

#[tokio::test]
async fn workspace_e2e_002_two_roots_and_a_copy() {
    let roots = || {
        vec![
            ("source", Tree::new(), &["*"][..]),
            ("dest", Tree::new(), &["*"][..]),
        ]
    };
    Workspace::both_on(roots, async |workspace| {
        let listed = workspace.ok("list_roots", json!({})).await;
        assert_eq!(each(&listed["roots"], "name"), ["source", "dest"]);
        let written = json!({"root": "source", "path": "data.txt", "content": "important data"});
        workspace.ok("write_file", written).await;
        let copy = json!({"source_root": "source", "source_path": "data.txt",
            "dest_root": "dest", "dest_path": "data.txt"});
        workspace.ok("copy", copy).await;
        let read = workspace
            .ok("read_file", json!({"root": "dest", "path": "data.txt"}))
            .await;
        assert_eq!(read["content"], "important data");
    })
    .await;
}

#[tokio::test]
async fn workspace_e2e_003_search_and_patch() {
    let tree = || {
        Tree::new()
            .file(
                "main.go",
                "package main\n\n// TODO: greet\nfunc main() {}\n",
            )
            .file("pkg/util.go", "package pkg\n// TODO: test\n")
            .file("notes.txt", "TODO elsewhere\n")
    };
    Workspace::both(tree, async |workspace| {
        let search = json!({"pattern": "TODO", "glob_filter": "*.go", "context_lines": 1});
        let found = workspace.ok("grep", search.clone()).await;
        assert_eq!(each(&found["matches"], "file"), ["main.go", "pkg/util.go"]);
        assert_eq!(found["matches"][0]["line_number"], 3);
        assert_eq!(found["matches"][0]["context_before"], json!([""]));
        assert_eq!(
            found["matches"][0]["context_after"],
            json!(["func main() {}"])
        );
        let files = workspace.ok("glob", json!({"pattern": "**/*.go"})).await;
        assert_eq!(each(&files["matches"], "path"), ["main.go", "pkg/util.go"]);
        let patch =
            "@@ -2,3 +2,3 @@\n \n-// TODO: greet\n+// Greets nobody yet.\n func main() {}\n";
        workspace
            .ok("patch_file", json!({"path": "main.go", "patch": patch}))
            .await;
        let found = workspace.ok("grep", search).await;
        assert_eq!(found["total_matches"], 1);
        assert_eq!(each(&found["matches"], "file"), ["pkg/util.go"]);
    })
    .await;
}
