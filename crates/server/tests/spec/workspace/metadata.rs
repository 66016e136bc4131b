//! `stat_file`, `hash_file`, `permissions_file`.

use testkit::{Tree, json};

use super::Workspace;
use crate::harness::{ToolSet, is_iso_8601};

const SHA256: &str = "a1fff0ffefb9eace7230c24e50731f0a91c62f9cefdfe77121c2f607125dffae";
const SHA1: &str = "4fe2b8dd12cd9cd6a413ea960cd8c09c25f19527";
const MD5: &str = "d6eb32081c822ed572b70567826d9d9d";

#[tokio::test]
async fn workspace_e2e_032_stat_a_file() {
    Workspace::both(
        || Tree::new().file("d/data.json", "{}"),
        async |workspace| {
            let stat = workspace
                .ok("stat_file", json!({"path": "d/data.json"}))
                .await;
            assert_eq!(stat["name"], "data.json");
            assert_eq!(stat["path"], "d/data.json");
            assert_eq!(stat["size"], 2);
            assert_eq!(stat["is_directory"], false);
            assert_eq!(stat["is_symlink"], false);
            assert!(is_iso_8601(&stat["modified_at"]), "{stat}");
        },
    )
    .await;
}

#[tokio::test]
async fn workspace_e2e_033_stat_a_directory() {
    Workspace::both(
        || Tree::new().sparse("subdir/large", 1 << 30),
        async |workspace| {
            let stat = workspace.ok("stat_file", json!({"path": "subdir"})).await;
            assert_eq!(stat["is_directory"], true);
            assert_eq!(stat["is_symlink"], false);
            assert!(
                stat["size"].as_u64().unwrap() < 1 << 20,
                "not the total: {stat}"
            );
        },
    )
    .await;
}

#[tokio::test]
async fn workspace_e2e_034_stat_a_link() {
    Workspace::both(
        || {
            Tree::new()
                .file("target.txt", "12345")
                .link("link", "target.txt")
        },
        async |workspace| {
            let stat = workspace.ok("stat_file", json!({"path": "link"})).await;
            assert_eq!(stat["is_symlink"], true);
            assert_eq!(stat["is_directory"], false);
            assert_eq!(stat["size"], 5);
            assert_eq!(stat["link"]["size"], "target.txt".len());
        },
    )
    .await;
}

#[tokio::test]
async fn workspace_fr_011_times_are_iso_8601() {
    Workspace::both(
        || Tree::new().file("f", "").link("l", "f"),
        async |workspace| {
            let stat = workspace.ok("stat_file", json!({"path": "l"})).await;
            for time in [&stat["modified_at"], &stat["link"]["modified_at"]] {
                assert!(is_iso_8601(time), "{stat}");
            }
            if let Some(time) = stat.get("created_at") {
                assert!(is_iso_8601(time), "{stat}");
            }
        },
    )
    .await;
}

#[tokio::test]
async fn workspace_fr_011_a_dangling_link_is_described_itself() {
    Workspace::both(
        || {
            Tree::new()
                .link("link", "gone")
                .link("dir_link", "dir")
                .dir("dir")
        },
        async |workspace| {
            let stat = workspace.ok("stat_file", json!({"path": "link"})).await;
            assert_eq!(stat["is_symlink"], true);
            assert_eq!(stat["size"], 4);
            let stat = workspace.ok("stat_file", json!({"path": "dir_link"})).await;
            assert_eq!(stat["is_symlink"], true);
            assert_eq!(stat["is_directory"], true);
        },
    )
    .await;
}

#[tokio::test]
async fn workspace_fr_011_the_root_itself_has_facts() {
    Workspace::both(Tree::new, async |workspace| {
        for path in ["", ".", "/"] {
            let stat = workspace.ok("stat_file", json!({"path": path})).await;
            assert_eq!(stat["is_directory"], true);
        }
    })
    .await;
}

#[tokio::test]
async fn workspace_e2e_035_sha256() {
    Workspace::both(
        || Tree::new().file("known.txt", "test content\n"),
        async |workspace| {
            let hash = json!({"path": "known.txt", "algorithm": "sha256"});
            let hashed = workspace.ok("hash_file", hash).await;
            assert_eq!(hashed["hash"], json!(SHA256));
            assert_eq!(hashed["algorithm"], "sha256");
            assert_eq!(hashed["path"], "known.txt");
            assert_eq!(hashed["size"], 13);
        },
    )
    .await;
}

#[tokio::test]
async fn workspace_e2e_036_md5_and_sha1() {
    Workspace::both(
        || Tree::new().file("known.txt", "test content\n"),
        async |workspace| {
            for (algorithm, expected) in [("md5", MD5), ("sha1", SHA1)] {
                let hash = json!({"path": "known.txt", "algorithm": algorithm});
                assert_eq!(workspace.ok("hash_file", hash).await["hash"], expected);
            }
        },
    )
    .await;
}

#[tokio::test]
async fn workspace_e2e_037_an_unsupported_algorithm() {
    Workspace::both(
        || Tree::new().file("f", ""),
        async |workspace| {
            let hash = json!({"path": "f", "algorithm": "md4"});
            let message = workspace
                .message("invalid_arguments", "hash_file", hash)
                .await;
            let worded = "unsupported hash algorithm: md4; supported: md5, sha1, sha256";
            assert!(message.starts_with(worded), "{message}");
        },
    )
    .await;
}

#[tokio::test]
async fn workspace_e2e_038_hash_a_directory() {
    Workspace::both(
        || Tree::new().dir("subdir"),
        async |workspace| {
            let hash = json!({"path": "subdir", "algorithm": "sha256"});
            let message = workspace.message("is_a_directory", "hash_file", hash).await;
            assert!(message.contains("cannot hash a directory"), "{message}");
        },
    )
    .await;
}

#[tokio::test]
async fn workspace_fr_012_the_algorithm_is_required() {
    Workspace::both(
        || Tree::new().file("f", ""),
        async |workspace| {
            let message = workspace
                .message("invalid_arguments", "hash_file", json!({"path": "f"}))
                .await;
            assert!(message.contains("algorithm"), "{message}");
        },
    )
    .await;
}

#[tokio::test]
async fn workspace_us_008_metadata_then_hash() {
    Workspace::both(
        || Tree::new().file("data/input.json", "test content\n"),
        async |workspace| {
            let stat = workspace
                .ok("stat_file", json!({"path": "data/input.json"}))
                .await;
            let hash = json!({"path": "data/input.json", "algorithm": "sha256"});
            let hashed = workspace.ok("hash_file", hash).await;
            assert_eq!(hashed["size"], stat["size"]);
            assert_eq!(hashed["hash"], json!(SHA256));
            for (tool, more) in [
                ("stat_file", json!({})),
                ("hash_file", json!({"algorithm": "md5"})),
            ] {
                let mut arguments = more;
                arguments["path"] = json!("data/gone.json");
                let message = workspace.message("not_found", tool, arguments).await;
                assert!(message.contains("not found: data/gone.json"), "{message}");
            }
        },
    )
    .await;
}

#[tokio::test]
async fn workspace_e2e_039_permissions_of_a_file() {
    Workspace::both(
        || Tree::new().file("script.sh", "").mode("script.sh", 0o755),
        async |workspace| {
            let reply = workspace
                .ok("permissions_file", json!({"path": "script.sh"}))
                .await;
            assert_eq!(reply["mode"], "0755");
            assert_eq!(reply["mode_string"], "-rwxr-xr-x");
            for who in ["owner", "group"] {
                assert!(!reply[who].as_str().unwrap().is_empty(), "{reply}");
            }
        },
    )
    .await;
}

#[tokio::test]
async fn workspace_e2e_040_permissions_of_a_directory() {
    Workspace::both(
        || Tree::new().dir("subdir").mode("subdir", 0o755),
        async |workspace| {
            let reply = workspace
                .ok("permissions_file", json!({"path": "subdir"}))
                .await;
            assert_eq!(reply["mode"], "0755");
            assert_eq!(reply["mode_string"], "drwxr-xr-x");
        },
    )
    .await;
}

#[tokio::test]
async fn workspace_fr_013_a_link_is_described_itself() {
    let tree = || {
        Tree::new()
            .file("f", "")
            .mode("f", 0o640)
            .link("l", "f")
            .file("odd", "")
            .mode("odd", 0o4711)
    };
    Workspace::both(tree, async |workspace| {
        let reply = workspace.ok("permissions_file", json!({"path": "l"})).await;
        assert_eq!(reply["mode_string"], "lrwxrwxrwx");
        let reply = workspace.ok("permissions_file", json!({"path": "f"})).await;
        assert_eq!(reply["mode"], "0640");
        assert_eq!(reply["mode_string"], "-rw-r-----");
        let reply = workspace
            .ok("permissions_file", json!({"path": "odd"}))
            .await;
        assert_eq!(reply["mode_string"], "-rws--x--x");
    })
    .await;
}
