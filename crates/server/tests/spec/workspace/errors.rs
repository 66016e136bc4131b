//! Wrong arguments, and what errors say.

use testkit::{Tree, json};

use super::Workspace;
use crate::harness::ToolSet;

#[tokio::test]
async fn workspace_e2e_072_an_unknown_root() {
    let roots = || {
        vec![
            ("workspace", Tree::new(), &["*"][..]),
            ("logs", Tree::new(), &["*"][..]),
        ]
    };
    Workspace::both_on(roots, async |workspace| {
        for (tool, mut arguments) in [
            ("read_file", json!({"path": "f"})),
            ("write_file", json!({"path": "f", "content": ""})),
            ("grep", json!({"pattern": "x"})),
        ] {
            arguments["root"] = json!("nonexistent");
            let message = workspace.message("unknown_root", tool, arguments).await;
            assert!(
                message.starts_with("unknown root: nonexistent"),
                "{message}"
            );
            assert!(message.ends_with("; roots: workspace, logs"), "{message}");
        }
    })
    .await;
}

#[tokio::test]
async fn workspace_e2e_073_missing_arguments() {
    let roots = || {
        vec![
            ("workspace", Tree::new(), &["*"][..]),
            ("logs", Tree::new(), &["*"][..]),
        ]
    };
    Workspace::both_on(roots, async |workspace| {
        let outcome = workspace
            .server
            .call("read_file", json!({"path": "f"}))
            .await;
        assert_eq!(outcome.error()["error"]["code"], "invalid_arguments");
        assert_eq!(
            outcome.text,
            "missing required argument: root (string; roots: workspace, logs)"
        );
        let message = workspace
            .message("invalid_arguments", "read_file", json!({}))
            .await;
        assert!(
            message.contains("required") && message.contains("path"),
            "{message}"
        );
        let message = workspace
            .message("invalid_arguments", "write_file", json!({"path": "f"}))
            .await;
        assert!(message.contains("content"), "{message}");
    })
    .await;
}

#[tokio::test]
async fn workspace_e2e_074_an_invalid_mode() {
    Workspace::both(Tree::new, async |workspace| {
        let write = json!({"path": "f", "content": "x", "mode": "truncate"});
        let message = workspace
            .message("invalid_arguments", "write_file", write)
            .await;
        assert!(
            message.contains("overwrite, append, create_only"),
            "{message}"
        );
        assert!(workspace.tree().listing().is_empty());
    })
    .await;
}

#[tokio::test]
async fn workspace_e2e_075_an_invalid_algorithm() {
    Workspace::both(
        || Tree::new().file("f", ""),
        async |workspace| {
            let hash = json!({"path": "f", "algorithm": "sha512"});
            let message = workspace
                .message("invalid_arguments", "hash_file", hash)
                .await;
            let worded = "unsupported hash algorithm: sha512; supported: md5, sha1, sha256";
            assert!(message.starts_with(worded), "{message}");
        },
    )
    .await;
}

#[tokio::test]
async fn workspace_nfr_011_mistyped_and_unknown_arguments_are_named() {
    Workspace::both(
        || Tree::new().file("f", ""),
        async |workspace| {
            let mistyped = json!({"path": 7});
            let message = workspace
                .message("invalid_arguments", "read_file", mistyped)
                .await;
            assert!(
                message.contains("path") && message.contains("string") && message.contains('7'),
                "{message}"
            );
            let negative = json!({"path": "f", "offset_bytes": -1});
            let message = workspace
                .message("invalid_arguments", "read_file", negative)
                .await;
            assert!(
                message.contains("offset_bytes") && message.contains("-1"),
                "{message}"
            );
            let unknown = json!({"path": "f", "limt_lines": 1});
            let message = workspace
                .message("invalid_arguments", "read_file", unknown)
                .await;
            assert!(
                message.contains("limt_lines") && message.contains("limit_lines"),
                "{message}"
            );
        },
    )
    .await;
}

#[tokio::test]
async fn workspace_nfr_011_errors_say_what_where_and_why() {
    Workspace::both(
        || Tree::new().file("file", "").dir("dir"),
        async |workspace| {
            for (tool, arguments) in [
                ("read_file", json!({"path": "gone/deep"})),
                ("list_folder", json!({"path": "file"})),
                ("remove_file", json!({"path": "dir"})),
                (
                    "write_file",
                    json!({"path": "file", "content": "", "mode": "create_only"}),
                ),
                (
                    "copy",
                    json!({"source_path": "gone/deep", "dest_path": "x"}),
                ),
            ] {
                let outcome = workspace.call(tool, arguments.clone()).await;
                let error = &outcome.error()["error"];
                let path = arguments
                    .get("path")
                    .unwrap_or(&arguments["source_path"])
                    .as_str()
                    .unwrap();
                assert_eq!(error["details"]["root"], "workspace", "{}", outcome.story());
                assert_eq!(error["details"]["path"], path, "{}", outcome.story());
                assert!(
                    outcome.text.contains(path) && outcome.text.contains("workspace"),
                    "{}",
                    outcome.text
                );
            }
        },
    )
    .await;
}

#[tokio::test]
async fn workspace_nfr_013_replies_have_sizes_counts_and_times() {
    // The harness checks in every reply that keys are snake_case.
    Workspace::both(
        || Tree::new().file("f", "x\n"),
        async |workspace| {
            for (tool, arguments, keys) in [
                (
                    "list_folder",
                    json!({"path": ""}),
                    &["root", "path", "entries", "count"][..],
                ),
                (
                    "read_file",
                    json!({"path": "f"}),
                    &[
                        "root",
                        "path",
                        "content",
                        "size",
                        "lines_total",
                        "truncated",
                    ],
                ),
                (
                    "write_file",
                    json!({"path": "g", "content": ""}),
                    &["path", "size", "mode"],
                ),
                (
                    "stat_file",
                    json!({"path": "f"}),
                    &[
                        "name",
                        "path",
                        "size",
                        "is_directory",
                        "is_symlink",
                        "modified_at",
                    ],
                ),
                (
                    "hash_file",
                    json!({"path": "f", "algorithm": "md5"}),
                    &["path", "algorithm", "hash", "size"],
                ),
                (
                    "permissions_file",
                    json!({"path": "f"}),
                    &["path", "owner", "group", "mode", "mode_string"],
                ),
                (
                    "grep",
                    json!({"pattern": "x"}),
                    &[
                        "matches",
                        "total_matches",
                        "truncated",
                        "timed_out",
                        "files_searched",
                    ],
                ),
                (
                    "glob",
                    json!({"pattern": "*"}),
                    &["matches", "total_matches", "truncated", "timed_out"],
                ),
                (
                    "copy",
                    json!({"source_path": "f", "dest_path": "c"}),
                    &["source", "destination", "is_directory", "size"],
                ),
                (
                    "move",
                    json!({"source_path": "c", "dest_path": "m"}),
                    &["source", "destination"],
                ),
                ("remove_file", json!({"path": "m"}), &["path", "removed"]),
            ] {
                let reply = workspace.ok(tool, arguments).await;
                for key in keys {
                    assert!(reply.get(key).is_some(), "{tool} lacks {key}: {reply}");
                }
            }
        },
    )
    .await;
}
