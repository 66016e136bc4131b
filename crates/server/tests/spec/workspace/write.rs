//! `write_file`.

use testkit::{Transport, Tree, json};

use super::Workspace;
use crate::harness::ToolSet;

#[tokio::test]
async fn workspace_e2e_014_overwrite() {
    Workspace::both(
        || Tree::new().file("existing.txt", "old content, longer"),
        async |workspace| {
            let write =
                json!({"path": "existing.txt", "content": "new content", "mode": "overwrite"});
            let written = workspace.ok("write_file", write).await;
            assert_eq!(written["size"], 11);
            assert_eq!(written["mode"], "overwrite");
            assert_eq!(written["path"], "existing.txt");
            assert_eq!(workspace.read("existing.txt").await, "new content");
        },
    )
    .await;
}

#[tokio::test]
async fn workspace_e2e_015_append() {
    Workspace::both(
        || Tree::new().file("log.txt", "line1\n"),
        async |workspace| {
            let write = json!({"path": "log.txt", "content": "line2\n", "mode": "append"});
            let written = workspace.ok("write_file", write).await;
            assert_eq!(written["size"], 6);
            assert_eq!(written["mode"], "append");
            assert_eq!(workspace.read("log.txt").await, "line1\nline2\n");
        },
    )
    .await;
}

#[tokio::test]
async fn workspace_e2e_016_create_only_what_is_absent() {
    Workspace::both(Tree::new, async |workspace| {
        let write = json!({"path": "new.txt", "content": "created", "mode": "create_only"});
        assert_eq!(workspace.ok("write_file", write).await["size"], 7);
        assert_eq!(workspace.read("new.txt").await, "created");
    })
    .await;
}

#[tokio::test]
async fn workspace_e2e_017_create_only_never_replaces() {
    Workspace::both(
        || Tree::new().file("existing.txt", "kept").dir("folder"),
        async |workspace| {
            let write = json!({"path": "existing.txt", "content": "nope", "mode": "create_only"});
            let message = workspace
                .message("already_exists", "write_file", write)
                .await;
            let worded = "file already exists: existing.txt; use overwrite mode to replace";
            assert!(message.starts_with(worded), "{message}");
            assert_eq!(workspace.read("existing.txt").await, "kept");
            assert_eq!(workspace.tree().listing().len(), 2);
        },
    )
    .await;
}

#[tokio::test]
async fn workspace_e2e_018_parents_are_made() {
    Workspace::both(Tree::new, async |workspace| {
        let path = "deep/nested/dir/file.txt";
        workspace
            .ok("write_file", json!({"path": path, "content": "deep"}))
            .await;
        assert_eq!(workspace.read(path).await, "deep");
    })
    .await;
}

#[tokio::test]
async fn workspace_fr_006_overwrite_is_the_default_and_creates() {
    Workspace::both(
        || Tree::new().file("there", "old"),
        async |workspace| {
            for path in ["there", "new"] {
                let written = workspace
                    .ok("write_file", json!({"path": path, "content": "x"}))
                    .await;
                assert_eq!(written["mode"], "overwrite");
                assert_eq!(workspace.tree().text(path), "x");
            }
        },
    )
    .await;
}

#[tokio::test]
async fn workspace_fr_006_append_creates_with_parents() {
    Workspace::both(Tree::new, async |workspace| {
        let write = json!({"path": "d/log", "content": "1\n", "mode": "append"});
        workspace.ok("write_file", write).await;
        assert_eq!(workspace.tree().text("d/log"), "1\n");
    })
    .await;
}

#[tokio::test]
async fn workspace_fr_006_bytes_are_written_as_given() {
    Workspace::both(Tree::new, async |workspace| {
        let content = "\u{feff}CRLF\r\nmixed\n\ttab é 😀\u{0}no end";
        workspace
            .ok("write_file", json!({"path": "f", "content": content}))
            .await;
        assert_eq!(workspace.tree().text("f"), content);
        workspace
            .ok("write_file", json!({"path": "f", "content": ""}))
            .await;
        assert_eq!(workspace.tree().text("f"), "");
    })
    .await;
}

#[tokio::test]
async fn workspace_fr_006_a_replaced_file_keeps_its_mode() {
    Workspace::both(
        || Tree::new().file("run.sh", "old").mode("run.sh", 0o750),
        async |workspace| {
            workspace
                .ok("write_file", json!({"path": "run.sh", "content": "new"}))
                .await;
            assert_eq!(workspace.tree().mode_of("run.sh"), 0o750);
        },
    )
    .await;
}

#[tokio::test]
async fn workspace_fr_006_writing_through_a_link_changes_its_target() {
    Workspace::both(
        || Tree::new().file("d/target", "old").link("link", "d/target"),
        async |workspace| {
            workspace
                .ok("write_file", json!({"path": "link", "content": "new"}))
                .await;
            assert_eq!(workspace.tree().text("d/target"), "new");
            assert_eq!(workspace.tree().listing()["link"], "link d/target");
        },
    )
    .await;
}

#[tokio::test]
async fn workspace_us_003_a_new_configuration_file() {
    Workspace::both(Tree::new, async |workspace| {
        let write = json!({"path": "config/app.yaml", "content": "a: 1\n", "mode": "create_only"});
        workspace.ok("write_file", write.clone()).await;
        assert_eq!(workspace.tree().text("config/app.yaml"), "a: 1\n");
        let message = workspace
            .message("already_exists", "write_file", write)
            .await;
        let worded = "file already exists: config/app.yaml; use overwrite mode to replace";
        assert!(message.starts_with(worded), "{message}");
    })
    .await;
}

#[tokio::test]
async fn workspace_nfr_014_a_failed_write_leaves_nothing_behind() {
    Workspace::both(
        || Tree::new().file("file", "kept").dir("dir/sub").pipe("pipe"),
        async |workspace| {
            let before = workspace.tree().listing();
            for mode in ["overwrite", "append", "create_only"] {
                for path in ["file/below", "dir", "pipe", ""] {
                    let write = json!({"path": path, "content": "x", "mode": mode});
                    let outcome = workspace.call("write_file", write).await;
                    outcome.error();
                    assert_eq!(workspace.tree().listing(), before, "{}", outcome.story());
                }
            }
        },
    )
    .await;
}

#[tokio::test]
async fn workspace_nfr_014_a_killed_write_is_whole_or_not_there() {
    let old = "o".repeat(1 << 20);
    let new = "n".repeat(8 << 20);
    for round in 0..4_u64 {
        let tree = Tree::new().file("file", &old);
        let server = Workspace::setup(&tree).start(Transport::Stdio).await;
        let write = json!({"root": "workspace", "path": "file", "content": new});
        let call = server.spawn_call("write_file", write);
        tokio::time::sleep(std::time::Duration::from_millis(round * 15)).await;
        drop(server);
        call.abort();
        let found = tree.text("file");
        assert!(
            found == old || found == new,
            "round {round}: {} bytes",
            found.len()
        );
    }
}

#[tokio::test]
async fn workspace_several_files_are_written_or_none() {
    let tree = || Tree::new().file("log", "1\n").file("kept", "kept");
    Workspace::both(tree, async |workspace| {
        let before = workspace.tree().listing();
        let new = json!({"path": "d/new.yaml", "content": "a: [1\n", "mode": "create_only"});
        let log = json!({"path": "log", "content": "2\n", "mode": "append"});
        let bytes = json!({"path": "bytes", "content": "/wA=", "encoding": "base64"});
        for (third, code) in [
            (json!({"path": "kept", "content": "x", "mode": "create_only"}), "already_exists"),
            (json!({"path": "../x", "content": "x"}), "path_outside_root"),
            (json!({"path": "x", "content": "x!", "encoding": "base64"}), "invalid_arguments"),
            (json!({"path": "./log", "content": "x"}), "invalid_arguments"),
        ] {
            let files = json!({"files": [new, log, third]});
            workspace.fails(code, "write_file", files).await;
            assert_eq!(workspace.tree().listing(), before, "{code}");
        }
        let files = json!({"files": [new, log, bytes]});
        let outcome = workspace.call("write_file", files).await;
        assert_eq!(workspace.tree().text("log"), "1\n2\n");
        assert_eq!(workspace.tree().bytes("bytes"), b"\xff\0");
        assert_eq!(workspace.tree().text("d/new.yaml"), "a: [1\n");
        assert!(
            outcome.text.starts_with(
                "d/new.yaml: created, 6 bytes\nlog: appended, 2 bytes\nbytes: created, 2 bytes\n[d/new.yaml is no valid YAML now: line "
            ),
            "{}",
            outcome.text
        );
    })
    .await;
}

#[tokio::test]
async fn workspace_a_write_is_one_file_or_several() {
    Workspace::both(
        || Tree::new().file("a.json", "{}"),
        async |workspace| {
            for arguments in [
                json!({"path": "a.json"}),
                json!({"content": "x"}),
                json!({"files": []}),
                json!({"path": "a.json", "files": [{"path": "b", "content": "x"}]}),
            ] {
                workspace
                    .fails("invalid_arguments", "write_file", arguments)
                    .await;
            }
            let arguments = json!({"path": "a.json", "content": "{", "mode": "append"});
            let written = workspace.ok("write_file", arguments).await;
            let warning = written["warnings"][0].as_str().unwrap_or_default();
            assert!(
                warning.starts_with("a.json is no valid JSON now: line 1: "),
                "{warning}"
            );
            assert_eq!(workspace.tree().text("a.json"), "{}{");
        },
    )
    .await;
}
