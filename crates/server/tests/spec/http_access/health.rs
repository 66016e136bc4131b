//! `mcp-filesystem health` against a running server: for images without another client.

use std::process::Stdio;

use testkit::{Transport, Tree};
use tokio::process::Command;

use super::tls::{certified, with_tls};
use crate::harness::ToolSet;
use crate::workspace::Workspace;

/// Asks as a container's health check does; returns the exit code and standard error.
async fn health(url: &str) -> (Option<i32>, String) {
    let asked = Command::new(env!("CARGO_BIN_EXE_mcp-filesystem"))
        .args(["health", url])
        .env_remove("MCP_FILESYSTEM_CONFIG")
        .stdin(Stdio::null())
        .output();
    let output = asked.await.unwrap();
    assert!(output.stdout.is_empty(), "{output:?}");
    let said = String::from_utf8(output.stderr).unwrap();
    (output.status.code(), said)
}

#[tokio::test]
async fn health_tells_a_server_that_is_well_from_everything_else() {
    let tree = Tree::new().file("tokens", "secret-of-sixteen\n");
    let setup = Workspace::setup(&tree);
    let setup = setup.set(
        "server.bearer_tokens_file",
        tree.join("tokens").display().to_string(),
    );
    let wire = setup.wire(Transport::Http).await;
    let url = format!("http://{}", wire.http().address());
    assert_eq!(health(&url).await, (Some(0), String::new()));
    let (code, said) = health(&format!("{url}/mcp")).await;
    assert_eq!(code, Some(1));
    assert!(said.contains("401"), "{said}");
    drop(wire);
    let (code, said) = health("http://127.0.0.1:1").await;
    assert_eq!(code, Some(1));
    let expected = "mcp-filesystem: http://127.0.0.1:1/health does not answer: ";
    assert!(said.starts_with(expected), "{said}");
}

#[tokio::test]
async fn health_speaks_tls() {
    let (_, files) = certified();
    let tree = Tree::new();
    let wire = with_tls(&tree, &files).wire(Transport::Http).await;
    let address = wire.http().address();
    let well = health(&format!("https://{address}")).await;
    assert_eq!(well, (Some(0), String::new()));
    assert_eq!(health(&format!("http://{address}")).await.0, Some(1));
}
