//! Endless files, directories and calls: every call ends, and small calls beside them are served.

use testkit::{Transport, Tree, json};

use crate::harness::machine::{call, fails, ok};
use crate::harness::{ToolSet, each};
use crate::workspace::Workspace;

#[tokio::test]
async fn exhaustion_a_sparse_file_of_a_tebibyte_costs_nothing() {
    let tree = Tree::new()
        .sparse("huge", 1 << 40)
        .file("small", "needle\n");
    let setup = Workspace::setup(&tree).set("limits.request_timeout", 1);
    let server = setup.start(Transport::Stdio).await;
    fails(&server, "too_large", "read_file", json!({"path": "huge"})).await;
    let far = json!({"path": "huge", "offset_bytes": 1_u64 << 39, "limit_bytes": 10});
    assert_eq!(ok(&server, "read_file", far).await["binary"], true);
    let found = ok(&server, "grep", json!({"pattern": "needle"})).await;
    assert_eq!(found["total_matches"], 1);
    assert_eq!(found["files_skipped"], 1);
    let patch = json!({"path": "huge", "patch": "@@ -1 +1 @@\n-a\n+b\n"});
    fails(&server, "too_large", "patch_file", patch).await;
    for (tool, arguments) in [
        ("read_file", json!({"path": "huge", "offset_lines": -5})),
        (
            "read_file",
            json!({"path": "huge", "offset_lines": 1_000_000_000_u64}),
        ),
        ("hash_file", json!({"path": "huge", "algorithm": "sha256"})),
    ] {
        let outcome = call(&server, tool, arguments).await;
        let code = &outcome.structured["error"]["code"];
        assert!(
            !outcome.is_error || code == "timeout" || code == "too_large",
            "{}",
            outcome.story()
        );
    }
    assert!(server.memory().peak < 128 << 20);
}

#[tokio::test]
async fn exhaustion_a_tree_deeper_than_paths_reach() {
    let tree = Tree::in_memory().deep("deep", 600, "needle\n");
    // With a history trees are only renamed; here they have to be walked.
    let setup = Workspace::setup(&tree).arguments(["--no-history"]);
    let server = setup.start(Transport::Stdio).await;
    let found = ok(&server, "grep", json!({"pattern": "needle"})).await;
    assert_eq!(found["total_matches"], 1);
    let found = ok(&server, "glob", json!({"pattern": "**/file"})).await;
    assert_eq!(found["matches"][0]["size"], 7);
    let copied = ok(
        &server,
        "copy",
        json!({"source_path": "deep", "dest_path": "copy"}),
    )
    .await;
    assert_eq!(copied["files_copied"], 1);
    for path in ["deep", "copy"] {
        ok(&server, "remove_folder", json!({"path": path})).await;
    }
    assert!(tree.listing().is_empty());
}

#[tokio::test]
async fn exhaustion_a_directory_of_many_entries() {
    let tree = Tree::in_memory();
    for number in 0..5_000 {
        tree.write(format!("dir/file-{number:05}"), "");
    }
    let server = Workspace::setup(&tree).start(Transport::Stdio).await;
    let first = json!({"pattern": "dir/*", "max_results": 3});
    let found = ok(&server, "glob", first).await;
    let expected = ["dir/file-00000", "dir/file-00001", "dir/file-00002"];
    assert_eq!(each(&found["matches"], "path"), expected);
    assert_eq!(found["truncated"], true);
    let listed = ok(&server, "list_folder", json!({"path": "dir"})).await;
    assert_eq!(listed["count"], 5_000);
    ok(&server, "remove_folder", json!({"path": "dir"})).await;
}

#[tokio::test]
async fn exhaustion_100_heavy_calls_and_a_small_one() {
    let tree = Tree::in_memory().file("small", "text");
    for number in 0..300 {
        tree.write(
            format!("d{}/f{number}", number % 30),
            format!("line {number}\n").repeat(300),
        );
    }
    let server = Workspace::setup(&tree).start(Transport::Http).await;
    let heavy = |number: usize| match number % 3 {
        0 => ("grep", json!({"pattern": r"(\w+ )*7", "max_results": 100})),
        1 => ("glob", json!({"pattern": "**/*7*"})),
        _ => ("grep", json!({"pattern": "x{3,9}y"})),
    };
    let calls = (0..100).map(heavy);
    let calls: Vec<_> = calls
        .map(|(tool, arguments)| server.spawn_call(tool, Workspace::complete(tool, arguments)))
        .collect();
    for _ in 0..10 {
        let read = ok(&server, "read_file", json!({"path": "small"})).await;
        assert_eq!(read["content"], "text");
    }
    for call in calls {
        call.await.expect("an outcome").ok();
    }
}

#[tokio::test]
async fn exhaustion_patches_that_ask_for_too_much() {
    let tree = Tree::new().file("f", "old\n").file("other", "other\n");
    let server = Workspace::setup(&tree).start(Transport::Stdio).await;
    let before = tree.listing();
    let many = format!("@@ -1,400000 +1,400000 @@\n{}", " a\n".repeat(400_000));
    for patch in [
        "--- a/../../other\n+++ b/../../other\n@@ -1 +1 @@\n-other\n+x\n",
        "rename from f\nrename to ../f\n",
        "diff --git a/f b/f\nold mode 100644\nnew mode 104755\n",
        "new file mode 120000\n--- /dev/null\n+++ b/f\n@@ -0,0 +1 @@\n+/etc/passwd\n",
        "GIT binary patch\nliteral 1\nIcmZP\n",
        "@@ -1,9 +1,1 @@\n-older\n+new\n",
        "@@ -99999999999999999999 +1 @@\n-older\n+new\n",
        many.as_str(),
        "",
    ] {
        fails(
            &server,
            "patch_failed",
            "patch_file",
            json!({"path": "f", "patch": patch}),
        )
        .await;
    }
    assert_eq!(tree.listing(), before);
    // What looks like a reference in a replacement is text.
    let patch = "@@ -1 +1 @@\n-old\n+$& \\1 ${x}\n";
    ok(&server, "patch_file", json!({"path": "f", "patch": patch})).await;
    assert_eq!(tree.text("f"), "$& \\1 ${x}\n");
}
