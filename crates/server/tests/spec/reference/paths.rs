//! Paths of the host: what is inside, and what is not.

use testkit::{Transport, Tree, json};

use super::Reference;
use super::set::{setup, text};
use crate::harness::program;

#[tokio::test]
async fn reference_paths_are_absolute_relative_or_from_home() {
    let tree = Tree::new().file("f", "x");
    let server = setup()
        .variable("HOME", text(tree.path()))
        .arguments([text(tree.path())])
        .start(Transport::Stdio)
        .await;
    let host = text(&tree.join("f")).to_owned();
    for path in ["f", "./f", "x/../f", "~/f", &host, &format!("{host}/")] {
        let read = server.call("read_text_file", json!({"path": path})).await;
        assert_eq!(read.text, "x", "{}", read.story());
    }
}

#[tokio::test]
async fn reference_nothing_outside_is_reached_or_told() {
    let tree = || {
        Tree::new()
            .link("out", "/etc/hostname")
            .link("etc", "/etc")
            .file("f", "")
    };
    Reference::both(tree, async |reference| {
        let base = reference.host("");
        let base = base.trim_end_matches('/');
        for path in ["/etc/passwd", "../../../../../../../../etc/passwd", "f/../../../../../../../etc/passwd"] {
            let message = reference.fails("read_text_file", json!({"path": path})).await;
            let begins = "Access denied - path outside allowed directories: /";
            assert!(message.starts_with(begins), "{message}");
            assert!(message.ends_with(&format!(" not in {base}")), "{message}");
        }
        for path in ["out", "etc/passwd"] {
            let message = reference.fails("read_text_file", json!({"path": path})).await;
            let own = reference.host(path);
            assert_eq!(
                message,
                format!("Access denied - symlink target outside allowed directories: {own} not in {base}")
            );
        }
        reference.server.logged(|line| line["message"] == "violation").await;
    })
    .await;
}

#[tokio::test]
async fn reference_rights_of_the_innermost_directory_hold() {
    let tree = Tree::new().file("f", "x").file("locked/g", "y");
    let server = program()
        .set("toolsets", json!(["reference"]))
        .root("outer", tree.path())
        .root_with(
            "inner",
            &tree.join("locked"),
            json!({"allowed_tools": ["read_text_file", "write_file"], "read_only": true}),
        )
        .endpoint("/mcp/reference")
        .start(Transport::Http)
        .await;
    let host = |path: &str| text(&tree.join(path)).to_owned();
    let write = |path: &str| json!({"path": host(path), "content": "new"});
    assert!(!server.call("write_file", write("f")).await.is_error);
    let refused = server.call("write_file", write("locked/g")).await;
    assert!(refused.text.contains("read-only"), "{}", refused.story());
    let refused = server
        .call("list_directory", json!({"path": host("locked")}))
        .await;
    assert!(
        refused.text.contains("does not allow"),
        "{}",
        refused.story()
    );
    let many = json!({"paths": [host("f"), host("locked/g")]});
    let read = server.call("read_multiple_files", many).await;
    assert!(read.text.contains("EACCES"), "{}", read.story());
    assert_eq!(tree.text("locked/g"), "y");
}

#[tokio::test]
async fn reference_moves_between_directories() {
    let trees = || vec![Tree::new().file("f", "x"), Tree::new()];
    testkit::over_both(async |transport| {
        let reference = Reference::start(trees(), transport).await;
        let target = text(&reference.trees[1].join("g")).to_owned();
        reference
            .ok("move_file", json!({"source": "f", "destination": target}))
            .await;
        assert_eq!(reference.trees[1].text("g"), "x");
        let listed = reference.ok("list_allowed_directories", json!({})).await;
        let [one, other] =
            [0, 1].map(|number: usize| text(reference.trees[number].path()).to_owned());
        assert_eq!(listed, format!("Allowed directories:\n{one}\n{other}"));
    })
    .await;
}
