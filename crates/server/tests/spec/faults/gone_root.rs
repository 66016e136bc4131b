//! Roots whose directory is removed or replaced while the server runs.

use testkit::{Server, Transport, Tree, Value, json, over_both};

use crate::harness::machine::left_out;
use crate::harness::{becomes, metrics_show, program};

async fn text(server: &Server, path: &str) -> Option<String> {
    let outcome = server
        .call("read_file", json!({"root": "data", "path": path}))
        .await;
    let content = (!outcome.is_error).then(|| outcome.ok()["content"].clone());
    content.and_then(|content| content.as_str().map(str::to_owned))
}

/// The message of a call on a root that is gone.
async fn refusal(server: &Server, tool: &str, arguments: Value) -> String {
    let outcome = server.call(tool, arguments).await;
    let error = &outcome.error()["error"];
    assert_eq!(error["code"], "io_error", "{}", outcome.story());
    error["message"].as_str().unwrap().to_owned()
}

fn warnings(server: &Server, words: &str) -> usize {
    let lines = server.stderr();
    let warned = |line: &&String| line.contains("\"WARN\"") && line.contains(words);
    lines.iter().filter(warned).count()
}

#[tokio::test]
async fn faults_a_root_whose_directory_was_replaced_is_opened_again_where_landlock_is_off() {
    over_both(async |transport| {
        let tree = Tree::new().file("data/f", "old").file("other/f", "other");
        let setup = program()
            .root("data", &tree.join("data"))
            .root("other", &tree.join("other"))
            .set("sandbox.landlock", "off");
        let server = setup.start(transport).await;
        assert_eq!(text(&server, "f").await.as_deref(), Some("old"));
        std::fs::remove_dir_all(tree.join("data")).unwrap();
        // Said at once, although nobody has looked at the path yet.
        let said = refusal(&server, "read_file", json!({"root": "data", "path": "f"})).await;
        assert!(
            said.contains("the directory of root data is gone"),
            "{said}"
        );
        let gone = "the directory of root data is gone";
        assert!(becomes(async || warnings(&server, gone) == 1).await);
        let write = json!({"root": "data", "path": "n", "content": ""});
        let said = refusal(&server, "write_file", write).await;
        assert!(said.contains(gone), "{said}");
        assert!(said.contains(gone), "{said}");
        let other = json!({"root": "other", "path": "f"});
        assert_eq!(
            server.call("read_file", other).await.ok()["content"],
            "other"
        );
        if transport == Transport::Http {
            metrics_show(&server, "mcp_filesystem_root_up{root=\"data\"} 0").await;
            metrics_show(&server, "mcp_filesystem_root_up{root=\"other\"} 1").await;
        }
        std::fs::create_dir(tree.join("data")).unwrap();
        std::fs::write(tree.join("data/f"), "new").unwrap();
        let is_new = async || text(&server, "f").await.as_deref() == Some("new");
        assert!(becomes(is_new).await, "{:?}", server.stderr());
        if transport == Transport::Http {
            metrics_show(&server, "mcp_filesystem_root_up{root=\"data\"} 1").await;
        }
        let ended = server.stop().await;
        let replaced = ended
            .log()
            .iter()
            .filter(|line| {
                line["message"]
                    .as_str()
                    .is_some_and(|text| text.contains("was replaced"))
            })
            .count();
        assert_eq!(replaced, 1, "{ended:?}");
    })
    .await;
}

#[tokio::test]
async fn faults_a_root_whose_directory_was_replaced_stays_gone_behind_landlock() {
    let tree = Tree::new().file("data/f", "old");
    let setup = program().root("data", &tree.join("data"));
    let server = setup.start(Transport::Http).await;
    let started = server
        .logged(|line| line.get("protections").is_some())
        .await;
    if !started["protections"].to_string().contains("landlock abi") {
        left_out("this kernel has no Landlock");
        return;
    }
    std::fs::rename(tree.join("data"), tree.join("away")).unwrap();
    std::fs::create_dir(tree.join("data")).unwrap();
    std::fs::write(tree.join("data/f"), "new").unwrap();
    metrics_show(&server, "mcp_filesystem_root_up{root=\"data\"} 0").await;
    let said = refusal(&server, "read_file", json!({"root": "data", "path": "f"})).await;
    assert!(
        said.contains("the directory of root data is gone"),
        "{said}"
    );
    // The directory that it was opened on can be used again.
    std::fs::remove_dir_all(tree.join("data")).unwrap();
    std::fs::rename(tree.join("away"), tree.join("data")).unwrap();
    metrics_show(&server, "mcp_filesystem_root_up{root=\"data\"} 1").await;
    assert_eq!(text(&server, "f").await.as_deref(), Some("old"));
    assert_eq!(warnings(&server, "the directory of root data is gone"), 1);
}

#[tokio::test]
async fn faults_a_search_of_a_root_that_is_gone_does_not_say_that_nothing_is_there() {
    over_both(async |transport| {
        let tree = Tree::new().file("data/f", "word");
        let setup = program()
            .root("data", &tree.join("data"))
            .set("sandbox.landlock", "off");
        let server = setup.start(transport).await;
        assert_eq!(text(&server, "f").await.as_deref(), Some("word"));
        for (tool, arguments) in [
            ("glob", json!({"root": "data", "pattern": "**/*"})),
            ("grep", json!({"root": "data", "pattern": "word"})),
        ] {
            server.call(tool, arguments).await.ok();
        }
        std::fs::remove_dir_all(tree.join("data")).unwrap();
        for (tool, arguments) in [
            ("glob", json!({"root": "data", "pattern": "**/*"})),
            ("grep", json!({"root": "data", "pattern": "word"})),
        ] {
            let said = refusal(&server, tool, arguments).await;
            let gone = "the directory of root data is gone";
            assert!(said.contains(gone), "{tool}: {said}");
        }
    })
    .await;
}
