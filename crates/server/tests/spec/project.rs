//! What the repository itself has to hold: build targets, the container, the example config.

use std::path::PathBuf;

use testkit::{Transport, Tree, json};

use crate::harness::program;

fn repository() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

fn text(path: &str) -> String {
    testkit::text_of(&repository().join(path))
}

/// Tells whether a Makefile has a target.
fn has_target(makefile: &str, target: &str) -> bool {
    makefile.lines().any(|line| {
        line.split(':').next().is_some_and(|names| {
            line.contains(':')
                && !line.starts_with('\t')
                && names.split_whitespace().any(|name| name == target)
        })
    })
}

#[test]
fn workspace_nfr_020_make_build() {
    assert!(has_target(&text("Makefile"), "build"));
}

#[test]
fn workspace_nfr_021_make_run() {
    let makefile = text("Makefile");
    assert!(has_target(&makefile, "run"));
    assert!(
        makefile.contains("$(CMD)") || makefile.contains("${CMD}"),
        "make run CMD=mcp-filesystem"
    );
}

#[test]
fn workspace_nfr_022_make_docker_build() {
    assert!(has_target(&text("Makefile"), "docker-build"));
    assert!(text("Dockerfile").contains("mcp-filesystem"));
}

#[tokio::test]
async fn workspace_nfr_023_the_example_config_is_valid() {
    // `make run` makes the directory that the config serves.
    let file = "config/mcp-filesystem.yaml";
    let checkout = Tree::new().file(file, text(file)).dir("workspace");
    let setup = program()
        .directory(checkout.path())
        .arguments(["--config", file]);
    let ended = setup.clone().arguments(["check"]).run().await;
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.stdout.contains("127.0.0.1:8091"), "{ended:?}");
    let server = setup.start(Transport::Http).await;
    let listed = server
        .call("list_folder", json!({"root": "workspace", "path": ""}))
        .await;
    assert_eq!(listed.ok()["count"], 0);
}

#[test]
fn workspace_nfr_025_a_tool_is_a_file() {
    let names = testkit::names_in(&repository().join("crates/toolset/src/workspace"));
    let listed = text(
        "crates/server/tests/spec/workspace/snapshots/spec__workspace__snapshots__workspace_tools.snap",
    );
    for tool in listed
        .lines()
        .filter_map(|line| line.strip_prefix("      \"name\": \""))
    {
        let tool = tool.trim_end_matches(['"', ',']);
        // A keyword cannot name a module.
        let file = if tool == "move" {
            "move_to.rs".to_owned()
        } else {
            format!("{tool}.rs")
        };
        assert!(names.contains(&file), "{tool} has no file of its own");
    }
}
