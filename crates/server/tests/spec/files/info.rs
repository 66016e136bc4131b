//! `info`.

use testkit::{Tree, json};

use super::set::Files;
use crate::harness::{ToolSet, is_iso_8601};

#[tokio::test]
async fn files_info_reply() {
    Files::both(
        || Tree::new().file("d/f.txt", "12345").mode("d/f.txt", 0o644),
        async |files| {
            let mut info = files.ok("info", json!({"path": "d/f.txt"})).await;
            for time in ["modified", "accessed"] {
                assert!(is_iso_8601(&info[time]), "{time}: {info}");
            }
            // Not every file system stores it.
            if let Some(created) = info.get("created") {
                assert!(is_iso_8601(created), "{info}");
            }
            let times = info.as_object_mut().expect("an object");
            times.retain(|key, _| !["created", "modified", "accessed"].contains(&key.as_str()));
            assert_eq!(
                info,
                json!({
                    "exists": true, "type": "file", "name": "f.txt", "path": "d/f.txt", "size": 5,
                    "permissions": {"readable": true, "writable": true, "executable": false},
                    "is_hidden": false, "mime_type": "text/plain",
                })
            );
        },
    )
    .await;
}

#[tokio::test]
async fn files_info_of_directories_hidden_files_and_programs() {
    let tree = || Tree::new().file("d/.tool", "").mode("d/.tool", 0o755);
    Files::both(tree, async |files| {
        let directory = files.ok("info", json!({"path": "d"})).await;
        assert_eq!(directory["type"], "directory");
        assert!(directory.get("mime_type").is_none());
        let tool = files.ok("info", json!({"path": "d/.tool"})).await;
        assert_eq!(tool["is_hidden"], true);
        assert_eq!(tool["permissions"]["executable"], true);
        let root = files.ok("info", json!({"path": "."})).await;
        assert_eq!(root["name"], "");
        assert_eq!(root["path"], ".");
    })
    .await;
}

#[tokio::test]
async fn files_info_mime_type_by_content_then_by_name() {
    let tree = || {
        Tree::new()
            .file("picture.txt", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR")
            .file("data.json", "{}")
            .file("page", "<!DOCTYPE html><html></html>")
            .file("Makefile", "all:\n")
            .file("bytes", b"\0\x01\x02")
    };
    Files::both(tree, async |files| {
        for (path, mime) in [
            ("picture.txt", "image/png"),
            ("data.json", "application/json"),
            ("page", "text/html"),
            ("Makefile", "text/plain"),
            ("bytes", "application/octet-stream"),
        ] {
            let info = files.ok("info", json!({"path": path})).await;
            assert_eq!(info["mime_type"], mime, "{path}");
        }
    })
    .await;
}

#[tokio::test]
async fn files_info_of_nothing_is_no_error() {
    Files::both(
        || Tree::new().dir("d"),
        async |files| {
            let info = files.ok("info", json!({"path": "d/no.txt"})).await;
            assert_eq!(
                info,
                json!({"exists": false, "name": "no.txt", "path": "d/no.txt"})
            );
            let outside = json!({"path": "../no"});
            files.fails("path_validation_error", "info", outside).await;
        },
    )
    .await;
}
