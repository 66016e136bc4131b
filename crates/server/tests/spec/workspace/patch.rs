//! `patch_file`.

use testkit::{Tree, json};

use super::Workspace;
use crate::harness::ToolSet;

const CODE: &str =
    "package main\n\nfunc one() int {\n\treturn 1\n}\n\nfunc two() int {\n\treturn 2\n}\n";

#[tokio::test]
async fn workspace_e2e_022_apply_a_diff() {
    Workspace::both(
        || Tree::new().file("code.go", CODE),
        async |workspace| {
            let patch = "--- a/code.go\n+++ b/code.go\n@@ -3,3 +3,4 @@\n func one() int {\n\
                     -\treturn 1\n+\tn := 1\n+\treturn n\n }\n";
            let patched = workspace
                .ok("patch_file", json!({"path": "code.go", "patch": patch}))
                .await;
            assert_eq!(patched["path"], "code.go");
            assert_eq!(patched["hunks_applied"], 1);
            assert_eq!(
                workspace.read("code.go").await,
                CODE.replace("\treturn 1\n", "\tn := 1\n\treturn n\n")
            );
        },
    )
    .await;
}

#[tokio::test]
async fn workspace_e2e_023_hunk_mismatch_is_atomic() {
    let content = "line A\nline B\nline C\n";
    Workspace::both(
        || Tree::new().file("code.go", content),
        async |workspace| {
            let patch = "@@ -1,3 +1,3 @@\n line A\n-line X\n+line Y\n line C\n";
            let arguments = json!({"path": "code.go", "patch": patch});
            let message = workspace
                .message("patch_failed", "patch_file", arguments)
                .await;
            assert!(
                message.starts_with("patch failed: hunk 1 does not match at line "),
                "{message}"
            );
            assert_eq!(workspace.read("code.go").await, content);
            assert_eq!(workspace.tree().listing().len(), 1);
        },
    )
    .await;
}

#[tokio::test]
async fn workspace_e2e_024_a_patch_makes_a_file() {
    Workspace::both(Tree::new, async |workspace| {
        let patch = "--- /dev/null\n+++ b/new_file.txt\n@@ -0,0 +1,2 @@\n+one\n+two\n";
        workspace
            .ok(
                "patch_file",
                json!({"path": "new_file.txt", "patch": patch}),
            )
            .await;
        assert_eq!(workspace.read("new_file.txt").await, "one\ntwo\n");
    })
    .await;
}

#[tokio::test]
async fn workspace_fr_008_parents_are_made() {
    Workspace::both(Tree::new, async |workspace| {
        let patch = "@@ -0,0 +1 @@\n+deep\n";
        workspace
            .ok("patch_file", json!({"path": "a/b/c.txt", "patch": patch}))
            .await;
        assert_eq!(workspace.tree().text("a/b/c.txt"), "deep\n");
    })
    .await;
}

#[tokio::test]
async fn workspace_fr_008_several_hunks_shifted_from_their_lines() {
    let old: String = (1..=40).map(|n| format!("line {n}\n")).collect();
    Workspace::both(
        || Tree::new().file("f", &old),
        async |workspace| {
            let patch = "@@ -5,3 +5,3 @@\n line 7\n-line 8\n+LINE 8\n line 9\n\
                     @@ -30,2 +30,3 @@\n line 30\n+between\n line 31\n";
            let patched = workspace
                .ok("patch_file", json!({"path": "f", "patch": patch}))
                .await;
            assert_eq!(patched["hunks_applied"], 2);
            assert_eq!(patched["hunks"][0]["offset"], 2);
            assert_eq!(patched["hunks"][1]["offset"], 0);
            let new = old
                .replace("line 8\n", "LINE 8\n")
                .replace("line 30\n", "line 30\nbetween\n");
            assert_eq!(workspace.tree().text("f"), new);
        },
    )
    .await;
}

#[tokio::test]
async fn workspace_fr_008_names_in_headers_do_not_count() {
    Workspace::both(
        || Tree::new().file("f", "a\n").file("other", "a\n"),
        async |workspace| {
            let patch = "--- a/other\n+++ ../../etc/passwd\n@@ -1 +1 @@\n-a\n+b\n";
            workspace
                .ok("patch_file", json!({"path": "f", "patch": patch}))
                .await;
            assert_eq!(workspace.tree().text("f"), "b\n");
            assert_eq!(workspace.tree().text("other"), "a\n");
        },
    )
    .await;
}

#[tokio::test]
async fn workspace_fr_008_what_it_does_not_do_is_refused_by_name() {
    Workspace::both(
        || Tree::new().file("f", "a\n"),
        async |workspace| {
            let hunk = "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n";
            for (header, word) in [
                ("diff --git a/f b/g\nrename from f\nrename to g\n", "rename"),
                ("diff --git a/f b/f\nnew file mode 120000\n", "120000"),
                ("diff --git a/f b/f\nGIT binary patch\n", "binary"),
            ] {
                let arguments = json!({"path": "f", "patch": format!("{header}{hunk}")});
                let message = workspace
                    .message("patch_failed", "patch_file", arguments)
                    .await;
                assert!(message.contains(word), "{message}");
            }
            assert_eq!(workspace.tree().text("f"), "a\n");
        },
    )
    .await;
}

#[tokio::test]
async fn workspace_fr_008_line_ends_stay_as_they_are() {
    let tree = || {
        Tree::new()
            .file("crlf", "one\r\ntwo\r\nthree\r\n")
            .file("open", "one\ntwo")
            .file("bom", "\u{feff}one\n")
    };
    Workspace::both(tree, async |workspace| {
        let patch = "@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n";
        workspace
            .ok("patch_file", json!({"path": "crlf", "patch": patch}))
            .await;
        assert_eq!(workspace.tree().text("crlf"), "one\r\n2\r\nthree\r\n");
        let open = "\\ No newline at end of file\n";
        let patch = format!("@@ -1,2 +1,2 @@\n one\n-two\n{open}+2\n{open}");
        workspace
            .ok("patch_file", json!({"path": "open", "patch": patch}))
            .await;
        assert_eq!(workspace.tree().text("open"), "one\n2");
        let patch = "@@ -1,1 +1,2 @@\n \u{feff}one\n+two\n";
        workspace
            .ok("patch_file", json!({"path": "bom", "patch": patch}))
            .await;
        assert_eq!(workspace.tree().text("bom"), "\u{feff}one\ntwo\n");
    })
    .await;
}

#[tokio::test]
async fn workspace_fr_008_nonsense_is_no_patch() {
    Workspace::both(
        || Tree::new().file("f", "a\n").file("binary", b"a\xff\n"),
        async |workspace| {
            for patch in [
                "",
                "not a patch",
                "@@ -1 +1 @@\n a\n",
                "@@ -1,9 +1 @@\n-x\n+b\n",
                "@@ -1,0 +2 @@\n+b\n",
                "@@ -1 +1 @@\\n-a\\n+b\\n",
                "*** Begin Patch\n*** Delete File: f\n*** End Patch\n",
                "*** Begin Patch\n*** Update File: f\n*** Move to: g\n@@\n-a\n+b\n*** End Patch\n",
            ] {
                let arguments = json!({"path": "f", "patch": patch});
                let message = workspace
                    .message("patch_failed", "patch_file", arguments)
                    .await;
                assert!(message.starts_with("patch failed"), "{message}");
            }
            let arguments = json!({"path": "binary", "patch": "@@ -1 +1 @@\n-a\n+b\n"});
            workspace
                .fails("patch_failed", "patch_file", arguments)
                .await;
            assert_eq!(workspace.tree().text("f"), "a\n");
            assert_eq!(workspace.tree().bytes("binary"), b"a\xff\n");
        },
    )
    .await;
}

#[tokio::test]
async fn workspace_us_004_patch_a_handler() {
    Workspace::both(
        || Tree::new().file("src/handler.go", CODE),
        async |workspace| {
            let patch = "@@ -8 +8 @@\n-\treturn 2\n+\treturn 3\n";
            workspace
                .ok(
                    "patch_file",
                    json!({"path": "src/handler.go", "patch": patch}),
                )
                .await;
            assert_eq!(
                workspace.tree().text("src/handler.go"),
                CODE.replace("return 2", "return 3")
            );
            let arguments = json!({"path": "src/handler.go", "patch": patch});
            let message = workspace
                .message("patch_failed", "patch_file", arguments)
                .await;
            assert!(
                message.starts_with("patch failed: hunk 1 does not match at line 8"),
                "{message}"
            );
        },
    )
    .await;
}

#[tokio::test]
async fn workspace_nfr_015_one_bad_hunk_undoes_all() {
    let old: String = (1..=40).map(|n| format!("line {n}\n")).collect();
    Workspace::both(
        || Tree::new().file("f", &old),
        async |workspace| {
            let patch = "@@ -1 +1 @@\n-line 1\n+LINE 1\n@@ -20 +20 @@\n-line 20\n+LINE 20\n\
                     @@ -30 +30 @@\n-nothing like it\n+x\n";
            let outcome = workspace
                .call("patch_file", json!({"path": "f", "patch": patch}))
                .await;
            let error = &outcome.error()["error"];
            assert_eq!(error["details"]["hunk"], 3);
            assert_eq!(error["details"]["line"], 30);
            assert_eq!(workspace.tree().text("f"), old);
            assert_eq!(workspace.tree().listing().len(), 1);
        },
    )
    .await;
}

#[tokio::test]
async fn workspace_a_patch_of_a_mistyped_path_says_so() {
    Workspace::both(
        || Tree::new().file("src/hello.txt", "a\n"),
        async |workspace| {
            let patch = "--- a\n+++ b\n@@ -1 +1 @@\n-a\n+b\n";
            let arguments = json!({"path": "src/helo.txt", "patch": patch});
            let message = workspace
                .message("not_found", "patch_file", arguments)
                .await;
            assert!(message.contains("did you mean src/hello.txt?"), "{message}");
            let arguments = json!({"path": "src/hello.txt", "patch": patch.replace("-a", "-x")});
            let message = workspace
                .message("patch_failed", "patch_file", arguments)
                .await;
            assert!(message.contains("expected \"x\", found \"a\""), "{message}");
        },
    )
    .await;
}

#[tokio::test]
async fn workspace_patches_as_models_write_them() {
    let text = "one\n  two  \nthree\n\nfour\n";
    Workspace::both(
        || Tree::new().file("f", text),
        async |workspace| {
            for patch in [
                "@@\n-three\n+3\n",
                "@@ -1,7 +1,9 @@\n   two\n-three\n+3\n",
                "Here:\n```diff\n--- a/other\n+++ b/other\n@@ -3 +3 @@\n-three\n+3\n```\nDone.\n",
                "*** Begin Patch\n*** Update File: other\n@@ one\n-three\n+3\n*** End Patch\n",
                "<<<<<<< SEARCH\nthree\n=======\n3\n>>>>>>> REPLACE\n",
                "-three\n+3\n",
            ] {
                let write = json!({"path": "f", "content": text});
                workspace.ok("write_file", write).await;
                let arguments = json!({"path": "f", "patch": patch});
                let patched = workspace.ok("patch_file", arguments).await;
                assert_eq!(
                    workspace.tree().text("f"),
                    text.replace("three", "3"),
                    "{patch}"
                );
                assert_eq!(
                    patched["changes"],
                    json!([{"path": "f", "line": 2, "lines": ["  two", "3", ""]}])
                );
            }
        },
    )
    .await;
}

#[tokio::test]
async fn workspace_a_patch_that_fits_several_places_is_refused() {
    let text = "a\nx\nb\nx\n";
    Workspace::both(
        || Tree::new().file("f", text),
        async |workspace| {
            for (patch, message) in [
                (
                    "@@ -3 +3 @@\n-x\n+y\n",
                    "patch failed: hunk 1 fits 2 places, at lines 2, 4; add context lines",
                ),
                (
                    "@@\n-x\n+y\n",
                    "patch failed: hunk 1 fits 2 places, at lines 2, 4; add context lines",
                ),
                (
                    "@@ -2,0 +3 @@\n+y\n",
                    "patch failed: malformed at line 1 of the patch: the hunk only adds lines",
                ),
            ] {
                let arguments = json!({"path": "f", "patch": patch});
                let found = workspace
                    .message("patch_failed", "patch_file", arguments)
                    .await;
                assert!(found.starts_with(message), "{found}");
                assert_eq!(workspace.tree().text("f"), text);
            }
            let arguments = json!({"path": "f", "patch": "@@ -4 +4 @@\n-x\n+y\n"});
            workspace.ok("patch_file", arguments).await;
            assert_eq!(workspace.tree().text("f"), "a\nx\nb\ny\n");
        },
    )
    .await;
}

#[tokio::test]
async fn workspace_a_patch_of_several_files_is_applied_whole() {
    let tree = || Tree::new().file("a", "1\n").file("d/b.json", "{}\n");
    Workspace::both(tree, async |workspace| {
        let two = "--- a/a\n+++ b/a\n@@ -1 +1 @@\n-1\n+2\n--- a/d/b.json\n+++ b/d/b.json\n@@ -1 +1 @@\n-{}\n+{\n";
        let before = workspace.tree().listing();
        let wrong = format!("{two}--- a/a2\n+++ b/a2\n@@ -1 +1 @@\n-1\n+2\n");
        workspace.fails("not_found", "patch_file", json!({"patch": wrong})).await;
        let out = format!("{two}--- a/../x\n+++ b/../x\n@@ -0,0 +1 @@\n+2\n");
        workspace.fails("path_outside_root", "patch_file", json!({"patch": out})).await;
        let named = json!({"path": "a", "patch": two});
        let message = workspace.message("patch_failed", "patch_file", named).await;
        assert!(message.starts_with("patch failed: it is for 2 files; leave out path"), "{message}");
        let nameless = json!({"patch": "@@ -1 +1 @@\n-1\n+2\n"});
        let message = workspace.message("patch_failed", "patch_file", nameless).await;
        assert!(message.starts_with("patch failed: it names no file; give path"), "{message}");
        assert_eq!(workspace.tree().listing(), before);
        assert_eq!(workspace.tree().text("a"), "1\n");
        let outcome = workspace.call("patch_file", json!({"patch": two})).await;
        let expected = "a: 1 hunk applied, 2 bytes\nd/b.json: 1 hunk applied, 2 bytes\n==> a <==\n1\t2\n\
            ==> d/b.json <==\n1\t{\n[d/b.json is no valid JSON now: line 2: EOF while parsing an object]";
        assert_eq!(outcome.text, expected);
        assert_eq!(workspace.tree().text("d/b.json"), "{\n");
    })
    .await;
}
