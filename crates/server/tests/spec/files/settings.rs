//! Where settings come from, and which source wins.

use testkit::{Server, Setup, Transport, Tree, Value, json};

use super::set::{Files, of_files};
use crate::harness::{Harness, ToolSet, program};

/// The content of `which`, which tells the root in use.
async fn content(server: &Server) -> Value {
    let read = server.call("read", json!({"path": "which"})).await;
    read.ok()["content"].clone()
}

#[tokio::test]
async fn files_root_flag_then_environment_then_file_then_current_directory() {
    testkit::over_both(async |transport| {
        let trees =
            ["flag", "environment", "file", "current"].map(|name| Tree::new().file("which", name));
        let [flag, environment, file, current] = &trees;
        let path = |tree: &Tree| tree.path().display().to_string();
        let here = of_files().directory(current.path());
        let server = here.clone().start(transport).await;
        assert_eq!(content(&server).await, "current");
        let with_file = here.root("home", file.path());
        let server = with_file.clone().start(transport).await;
        assert_eq!(content(&server).await, "file");
        let with_both = with_file.variable("FS_SERVER_ROOT", &path(environment));
        let server = with_both.clone().start(transport).await;
        assert_eq!(content(&server).await, "environment");
        let with_all = with_both.arguments(["--root-dir".to_owned(), path(flag)]);
        let server = with_all.start(transport).await;
        assert_eq!(content(&server).await, "flag");
    })
    .await;
}

#[tokio::test]
async fn files_max_file_size_flag_then_environment_then_file() {
    testkit::over_both(async |transport| {
        let tree = Tree::new().file("f", "0123456789");
        let size = async |setup: Setup| {
            let server = setup.start(transport).await;
            let read = server.call("read", json!({"path": "f"})).await;
            read.ok()["size"].clone()
        };
        let setup = Files::setup(&tree);
        assert_eq!(size(setup.clone()).await, 10);
        let setup = setup.set("limits.max_file_size", 3);
        assert_eq!(size(setup.clone()).await, 3);
        let setup = setup.variable("FS_MAX_FILE_SIZE", "2");
        assert_eq!(size(setup.clone()).await, 2);
        assert_eq!(size(setup.arguments(["--max-file-size", "1"])).await, 1);
    })
    .await;
}

/// Expects the timeout of a read that takes minutes, and that it leaves nothing behind.
async fn times_out(setup: Setup, transport: Transport) {
    let tree = Tree::new().sparse("endless", 1 << 40);
    let setup = setup.root("home", tree.path());
    let server = setup.start(transport).await;
    let files = Harness::<Files>::new(server, vec![tree]);
    let endless = json!({"path": "endless", "start_line": 5});
    let error = files.fails("timeout", "read", endless).await;
    assert_eq!(error["details"]["path"], "endless");
    let listed = files
        .server
        .call("list", json!({"path": "", "include_hidden": true}))
        .await;
    assert_eq!(
        listed.ok()["entries"].as_array().map(Vec::len),
        Some(1),
        "{listed:?}"
    );
}

#[tokio::test]
async fn files_request_timeout_flag_wins() {
    testkit::over_both(async |transport| {
        let setup = of_files()
            .set("limits.request_timeout", 600)
            .variable("FS_REQUEST_TIMEOUT", "600")
            .arguments(["--request-timeout", "1"]);
        times_out(setup, transport).await;
    })
    .await;
}

#[tokio::test]
async fn files_request_timeout_environment_wins_over_the_file() {
    testkit::over_both(async |transport| {
        let setup = of_files()
            .set("limits.request_timeout", 600)
            .variable("FS_REQUEST_TIMEOUT", "1");
        times_out(setup, transport).await;
    })
    .await;
}

#[tokio::test]
async fn files_log_level_flag_then_environment() {
    testkit::over_both(async |transport| {
        let tree = Tree::new();
        let setup = Files::setup(&tree).variable("FS_LOG_LEVEL", "error");
        // Over HTTP the client needs the start-up line, which is at info.
        if transport == Transport::Stdio {
            let server = setup.clone().start(transport).await;
            server.call("list", json!({"path": ""})).await.ok();
            let ended = server.stop().await;
            assert!(ended.stderr.is_empty(), "{ended:?}");
        }
        let setup = setup.arguments(["--log-level", "info"]);
        let server = setup.start(transport).await;
        server.call("list", json!({"path": ""})).await.ok();
        let line = server.logged(|line| line["message"] == "call").await;
        assert_eq!(line["toolset"], "files");
        assert_eq!(line["tool"], "list");
        assert_eq!(line["outcome"], "ok");
        assert!(line["timestamp"].is_string());
    })
    .await;
}

#[tokio::test]
async fn files_bad_settings_do_not_start() {
    let tree = Tree::new();
    for (name, value) in [
        ("FS_MAX_FILE_SIZE", "big"),
        ("FS_REQUEST_TIMEOUT", "0"),
        ("FS_LOG_LEVEL", "loud"),
        ("FS_SERVER_ROOT", "/does/not/exist"),
    ] {
        let setup = Files::setup(&tree).variable(name, value);
        let ended = setup.refuse(Transport::Stdio).await;
        assert!(matches!(ended.code, Some(1 | 2)), "{name}: {ended:?}");
    }
}

#[tokio::test]
async fn files_has_its_endpoint_beside_workspace() {
    let tree = Tree::new().file("f", "x");
    for (endpoint, name) in [
        ("/mcp", "mcp-filesystem"),
        ("/mcp/workspace", "mcp-filesystem"),
        ("/mcp/files", "filesystem-server"),
    ] {
        let setup = program()
            .root("home", tree.path())
            .arguments(["--toolset", "workspace,files"])
            .endpoint(endpoint);
        let server = setup.start(Transport::Http).await;
        assert_eq!(server.info()["serverInfo"]["name"], name, "{endpoint}");
    }
}
