//! Faults that were found and fixed, each with what a client sees now.

use testkit::{Transport, Tree, json};

use crate::harness::{ToolSet, each};
use crate::workspace::Workspace;

#[tokio::test]
async fn a_slash_behind_a_link_does_not_hide_where_it_leads() {
    let outside = Tree::new().file("f", "secret");
    let tree = || {
        Tree::new()
            .file("dir/f", "x")
            .file("file", "x")
            .link("in", "dir")
            .link("in2", "dir")
            .link("to-file", "file")
            .link("out", outside.path())
    };
    Workspace::both(tree, async |workspace| {
        let own = workspace.tree().listing();
        for (tool, arguments) in [
            ("remove_file", json!({"path": "out/"})),
            ("remove_folder", json!({"path": "out/"})),
            ("stat_file", json!({"path": "out/"})),
            ("permissions_file", json!({"path": "out/"})),
            ("move", json!({"source_path": "out/", "dest_path": "new"})),
            ("move", json!({"source_path": "file", "dest_path": "out/"})),
            ("copy", json!({"source_path": "out/", "dest_path": "new"})),
        ] {
            workspace.fails("path_outside_root", tool, arguments).await;
        }
        assert_eq!(workspace.tree().listing(), own);
        // A link to a directory is what is named, with a slash or without.
        workspace.ok("remove_folder", json!({"path": "in/"})).await;
        workspace
            .ok("move", json!({"source_path": "in2/", "dest_path": "moved"}))
            .await;
        assert!(
            workspace.tree().has("moved")
                && workspace.tree().has("dir/f")
                && !workspace.tree().has("in")
        );
        let message = workspace
            .message("not_a_directory", "remove_folder", json!({"path": "file/"}))
            .await;
        assert!(
            message.contains("use remove_file without the slash"),
            "{message}"
        );
        let message = workspace
            .message(
                "not_a_directory",
                "remove_file",
                json!({"path": "to-file/"}),
            )
            .await;
        assert!(message.contains("leave out the slash"), "{message}");
        workspace
            .ok("remove_file", json!({"path": "to-file"}))
            .await;
    })
    .await;
    assert_eq!(outside.listing().len(), 1);
}

#[tokio::test]
async fn a_slash_behind_a_link_in_the_other_sets() {
    let outside = Tree::new().file("f", "secret");
    for (set, calls, code) in [
        (
            "files",
            [
                ("delete", json!({"path": "out/"})),
                ("info", json!({"path": "out/"})),
                ("move", json!({"source": "out/", "destination": "x"})),
            ],
            "path_validation_error",
        ),
        (
            "memory",
            [
                ("delete", json!({"path": "out/"})),
                ("view", json!({"path": "out/"})),
                ("rename", json!({"old_path": "out/", "new_path": "x"})),
            ],
            "path_security",
        ),
    ] {
        let tree = Tree::new().link("out", outside.path());
        let setup = Workspace::setup(&tree).set("toolsets", json!([set]));
        let server = setup.start(Transport::Stdio).await;
        for (tool, arguments) in calls {
            let outcome = server.call(tool, arguments).await;
            assert!(
                outcome.error().to_string().contains(code),
                "{}",
                outcome.story()
            );
        }
        assert!(tree.has("out"));
    }
}

#[tokio::test]
async fn patterns_are_about_characters_and_say_what_cannot_match() {
    let tree = || {
        let tree = Tree::new()
            .file("ä.txt", "")
            .file("a.txt", "")
            .file("日本.txt", "");
        tree.file("sub/é.txt", "needle")
    };
    Workspace::both(tree, async |workspace| {
        for (pattern, expected) in [
            ("?.txt", vec!["a.txt", "ä.txt"]),
            ("??.txt", vec!["日本.txt"]),
            ("[ä-ü].txt", vec!["ä.txt"]),
            ("[!a].txt", vec!["ä.txt"]),
            ("/sub/?.txt", vec!["sub/é.txt"]),
            ("./a.txt", vec!["a.txt"]),
        ] {
            let found = workspace.ok("glob", json!({"pattern": pattern})).await;
            assert_eq!(each(&found["matches"], "path"), expected, "{pattern}");
        }
        let filtered = json!({"pattern": "needle", "glob_filter": "?.txt"});
        assert_eq!(workspace.ok("grep", filtered).await["total_matches"], 1);
        for (pattern, words) in [
            ("/", "use * for the entries"),
            ("../*", "name the directory to search as path"),
            ("sub/../a.txt", "name the directory to search as path"),
            ("a\0b", "NUL"),
            ("sub//x", "leave that out"),
        ] {
            let arguments = json!({"pattern": pattern});
            let message = workspace
                .message("invalid_pattern", "glob", arguments)
                .await;
            assert!(message.contains(words), "{message}");
        }
    })
    .await;
}

#[tokio::test]
async fn an_expression_that_would_take_minutes_is_refused_or_stopped() {
    let tree = || {
        Tree::new()
            .file("long", "abc".repeat(100_000))
            .file("f", "abc\n".repeat(50_000))
    };
    Workspace::both(tree, async |workspace| {
        let bomb = json!({"pattern": "(?:[a-c]{0,200}){0,200}[0-9]"});
        let message = workspace.message("invalid_pattern", "grep", bomb).await;
        assert!(message.contains("unfold to 40001 places"), "{message}");
        let slow = json!({"pattern": "(?:[a-c]{0,40}){0,45}[0-9]", "timeout_seconds": 1});
        let found = workspace.ok("grep", slow).await;
        assert_eq!(found["timed_out"], true, "{found}");
    })
    .await;
}

#[tokio::test]
async fn messages_name_what_was_given() {
    Workspace::both(
        || Tree::new().file("f", "old\n"),
        async |workspace| {
            let create = "--- /dev/null\n+++ b/f\n@@ -0,0 +1 @@\n+new\n";
            let arguments = json!({"path": "f", "patch": create});
            let message = workspace
                .message("patch_failed", "patch_file", arguments)
                .await;
            assert!(message.contains("file already exists: f"), "{message}");
            let both_limits = json!({"path": "f", "limit_lines": 1, "limit_bytes": 1});
            let message = workspace
                .message("invalid_arguments", "read_file", both_limits)
                .await;
            assert!(message.starts_with("invalid limit_bytes"), "{message}");
            let arguments = json!({"path": "", "content": "x"});
            let message = workspace
                .message("is_a_directory", "write_file", arguments)
                .await;
            assert!(message.contains("the root itself"), "{message}");
            let far = json!({"path": "f", "offset_lines": 9_223_372_036_854_775_808_u64});
            let read = workspace.ok("read_file", far).await;
            assert_eq!(read["content"], "", "{read}");
        },
    )
    .await;
}
