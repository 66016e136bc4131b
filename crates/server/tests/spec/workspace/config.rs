//! The config file, the command line, and starting or refusing to start.

use testkit::{Ended, Transport, Tree, json};

use super::Workspace;
use crate::harness::{ToolSet, program};

/// Checks that the server said in one line what is wrong, naming these words, and ended.
#[track_caller]
fn refused(ended: &Ended, words: &[&str]) {
    assert!(matches!(ended.code, Some(1 | 2)), "{ended:?}");
    assert!(
        ended.stdout.is_empty(),
        "standard output belongs to the protocol: {ended:?}"
    );
    assert_eq!(ended.stderr.len(), 1, "one line: {ended:?}");
    assert!(!ended.stderr[0].contains("panicked"), "{ended:?}");
    for word in words {
        assert!(ended.stderr[0].contains(word), "no {word:?} in {ended:?}");
    }
}

/// The specification's own example, with roots that exist.
fn example(tree: &Tree) -> String {
    let root = |name: &str| tree.join(name).display().to_string();
    format!(
        "host: \"0.0.0.0\"                    # Listen address (default: 0.0.0.0)\n\
         port: 8091                          # Listen port (default: 8091)\n\
         max_full_read_size: 1048576         # Max bytes for full file read (default: 1MB)\n\
         \n\
         roots:\n\
         \x20 - name: \"workspace\"               # Unique root identifier\n\
         \x20   path: \"{}\"\n\
         \x20   allowed_tools:                   # Tool allowlist (* = all)\n\
         \x20     - \"*\"\n\
         \x20 - name: \"config\"\n\
         \x20   path: \"{}\"\n\
         \x20   allowed_tools:\n\
         \x20     - \"list_folder\"\n\
         \x20     - \"read_file\"\n\
         \x20     - \"stat_file\"\n\
         \x20     - \"grep\"\n\
         \x20     - \"glob\"\n",
        root("workspace"),
        root("config"),
    )
}

#[tokio::test]
async fn workspace_e2e_080_a_valid_config_starts() {
    testkit::over_both(async |transport| {
        let tree = Tree::new().file("workspace/f", "f").dir("config");
        let server = program().config_text(example(&tree)).start(transport).await;
        let read = server
            .call("read_file", json!({"root": "workspace", "path": "f"}))
            .await;
        assert_eq!(read.ok()["content"], "f");
        if transport == Transport::Http {
            assert_eq!(server.http().get("/health").await.status, 200);
        }
        assert_eq!(server.stop().await.code, Some(0));
    })
    .await;
}

#[tokio::test]
async fn workspace_e2e_081_duplicate_root_names() {
    testkit::over_both(async |transport| {
        let (one, two) = (Tree::new(), Tree::new());
        let setup = program().root("data", one.path()).root("data", two.path());
        refused(
            &setup.refuse(transport).await,
            &["duplicate", "data", "roots[1]"],
        );
    })
    .await;
}

#[tokio::test]
async fn workspace_e2e_082_a_root_that_does_not_exist() {
    testkit::over_both(async |transport| {
        let tree = Tree::new().file("file", "");
        let missing = tree.join("missing");
        let setup = program().root("data", &missing);
        refused(
            &setup.refuse(transport).await,
            &["roots[0]", missing.to_str().unwrap()],
        );
        let setup = program().root("data", &tree.join("file"));
        refused(&setup.refuse(transport).await, &["roots[0]", "file"]);
    })
    .await;
}

#[tokio::test]
async fn workspace_e2e_083_an_unknown_tool() {
    testkit::over_both(async |transport| {
        let tree = Tree::new();
        let setup =
            program().root_allowing("data", tree.path(), &["read_file", "nonexistent_tool"]);
        let ended = setup.refuse(transport).await;
        refused(&ended, &["nonexistent_tool", "allowed_tools", "roots[0]"]);
        let setup = program().root_allowing("data", tree.path(), &["raed_file"]);
        refused(&setup.refuse(transport).await, &["raed_file", "read_file"]);
    })
    .await;
}

#[tokio::test]
async fn workspace_e2e_084_health() {
    let tree = Tree::new();
    let server = Workspace::setup(&tree).start(Transport::Http).await;
    let reply = server.http().get("/health").await;
    assert_eq!(reply.status, 200);
    assert_eq!(reply.body.as_str(), "ok");
}

#[tokio::test]
async fn workspace_fr_018_no_roots_is_an_error() {
    let text = |text: &str| program().config_text(text).refuse(Transport::Http);
    refused(&text("roots: []\n").await, &["roots"]);
    refused(&text("port: 8091\n").await, &["roots"]);
}

#[tokio::test]
async fn workspace_fr_018_mistakes_are_named_by_key() {
    let tree = Tree::new();
    for (key, value, words) in [
        ("prot", json!(1), &["prot", "port"][..]),
        (
            "max_full_read_size",
            json!("large"),
            &["max_full_read_size", "large"],
        ),
        (
            "limits.request_timeout",
            json!(-1),
            &["limits.request_timeout"],
        ),
        (
            "server.replies",
            json!("neither"),
            &["server.replies", "both"],
        ),
    ] {
        let setup = Workspace::setup(&tree).set(key, value);
        refused(&setup.refuse(Transport::Http).await, words);
    }
    let ended = program()
        .config_text("roots: [unclosed\n")
        .refuse(Transport::Http)
        .await;
    assert!(matches!(ended.code, Some(1 | 2)), "{ended:?}");
}

#[tokio::test]
async fn workspace_fr_018_a_missing_config_file_is_an_error() {
    let setup = program().arguments(["--config", "does-not-exist.yaml"]);
    refused(
        &setup.refuse(Transport::Http).await,
        &["does-not-exist.yaml"],
    );
}

#[tokio::test]
async fn workspace_fr_018_flags_win_over_the_file() {
    // The flag wins over the file's port: 0 takes any free one.
    let tree = Tree::new().dir("workspace").dir("config");
    let server = program()
        .config_text(example(&tree))
        .start(Transport::Http)
        .await;
    let address = server.http().address();
    assert!(
        address.ip().is_loopback() && address.port() != 8091,
        "{address}"
    );
}

#[tokio::test]
async fn workspace_fr_018_defaults() {
    testkit::over_both(async |transport| {
        let tree = Tree::new()
            .sparse("fits", 1 << 20)
            .sparse("over", (1 << 20) + 1);
        let server = Workspace::setup(&tree).start(transport).await;
        server
            .call("read_file", json!({"root": "workspace", "path": "fits"}))
            .await
            .ok();
        let refused = server
            .call("read_file", json!({"root": "workspace", "path": "over"}))
            .await;
        assert_eq!(refused.error()["error"]["details"]["limit"], 1 << 20);
    })
    .await;
    let tree = Tree::new();
    let ended = Workspace::setup(&tree).arguments(["check"]).run().await;
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.stdout.contains("0.0.0.0:8091"), "{ended:?}");
}

#[tokio::test]
async fn workspace_fr_018_directories_on_the_command_line() {
    testkit::over_both(async |transport| {
        let tree = Tree::new().file("one/data/f", "1").file("two/data/f", "2");
        let directories =
            ["one/data", "two/data"].map(|path| tree.join(path).display().to_string());
        let server = program().arguments(directories).start(transport).await;
        for (root, content) in [("data", "1"), ("data-2", "2")] {
            let read = server
                .call("read_file", json!({"root": root, "path": "f"}))
                .await;
            assert_eq!(read.ok()["content"], content);
        }
    })
    .await;
}

#[tokio::test]
async fn workspace_fr_019_health_does_not_look_at_files() {
    let tree = Tree::new();
    let server = Workspace::setup(&tree).start(Transport::Http).await;
    tree.close().unwrap();
    let reply = server.http().get("/health").await;
    assert_eq!(reply.status, 200);
    assert_eq!(reply.body.as_str(), "ok");
}

#[tokio::test]
async fn workspace_nfr_016_empty_roots_are_fine() {
    testkit::over_both(async |transport| {
        let (one, two) = (Tree::new(), Tree::new());
        let server = program()
            .root("one", one.path())
            .root("two", two.path())
            .start(transport)
            .await;
        let listed = server
            .call("list_folder", json!({"root": "two", "path": ""}))
            .await;
        assert_eq!(listed.ok()["count"], 0);
    })
    .await;
}

#[tokio::test]
async fn workspace_nfr_024_one_instance_needs_nothing_beside_it() {
    // No database, no lock file, no state: after the server is gone only the roots' own files remain.
    testkit::over_both(async |transport| {
        let tree = Tree::new();
        let server = Workspace::setup(&tree).start(transport).await;
        let write = json!({"root": "workspace", "path": "f", "content": "x"});
        server.call("write_file", write).await.ok();
        assert_eq!(server.stop().await.code, Some(0));
        assert_eq!(
            tree.listing().into_iter().collect::<Vec<_>>(),
            [("f".to_owned(), "file x".to_owned())]
        );
        let again = Workspace::setup(&tree).start(transport).await;
        again
            .call("read_file", json!({"root": "workspace", "path": "f"}))
            .await
            .ok();
    })
    .await;
}
