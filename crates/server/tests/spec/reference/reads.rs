//! Reading, listing and searching.

use testkit::{Transport, Tree, Value, json};

use super::Reference;
use super::set::{setup, text};
use crate::harness::{catalogue, tool_names};

fn tree() -> Tree {
    Tree::new()
        .file("a.txt", "one\ntwo\nthree\n")
        .file("crlf.txt", "one\r\ntwo\r\n")
        .file("sub/b.rs", "b\n")
        .file("sub/deep/c.rs", "c\n")
        .file("bytes", b"\xff\xfe")
        .file("pixel.png", b"\x89PNG\r\n\x1a\n")
        .link("link.txt", "a.txt")
        .link("out", "/etc/hostname")
        .pipe("pipe")
}

#[tokio::test]
async fn reference_tools_are_those_of_the_reference_server() {
    Reference::both(tree, async |reference| {
        let tools = reference.server.list_tools().await;
        assert_eq!(tool_names(&tools), catalogue("reference").await);
        assert_eq!(tools.len(), 14);
        for tool in &tools {
            let input = &tool["inputSchema"];
            assert!(input.get("additionalProperties").is_none(), "{tool}");
            let hints = tool["annotations"].as_object().expect("hints");
            let reads = tool["annotations"]["readOnlyHint"] == true;
            assert_eq!(hints.len(), if reads { 2 } else { 4 }, "{tool}");
        }
        let name = &reference.server.info()["serverInfo"]["name"];
        assert_eq!(name, "secure-filesystem-server");
    })
    .await;
}

#[tokio::test]
async fn reference_first_and_last_lines() {
    Reference::both(tree, async |reference| {
        for (arguments, text) in [
            (json!({"path": "a.txt"}), "one\ntwo\nthree\n"),
            (json!({"path": "a.txt", "head": 2}), "one\ntwo"),
            (json!({"path": "a.txt", "tail": 2}), "three\n"),
            (json!({"path": "a.txt", "head": 0}), "one\ntwo\nthree\n"),
            (json!({"path": "crlf.txt", "head": 1}), "one\r"),
            (json!({"path": "crlf.txt", "tail": 2}), "two\n"),
            (json!({"path": "bytes"}), "\u{fffd}\u{fffd}"),
            (
                json!({"path": "link.txt", "more": true}),
                "one\ntwo\nthree\n",
            ),
        ] {
            for tool in ["read_file", "read_text_file"] {
                assert_eq!(
                    reference.ok(tool, arguments.clone()).await,
                    text,
                    "{arguments}"
                );
            }
        }
        let both = json!({"path": "a.txt", "head": 1, "tail": 1});
        assert_eq!(
            reference.fails("read_text_file", both).await,
            "Cannot specify both head and tail parameters simultaneously"
        );
    })
    .await;
}

#[tokio::test]
async fn reference_a_large_file_is_read_in_parts() {
    let tree = || {
        let tree = Tree::new().file("huge", "first\nsecond\n");
        let tree = tree.stretched("huge", 10 << 30);
        tree.append("huge", "\nnext to last\nlast\n");
        tree
    };
    Reference::both(tree, async |reference| {
        let read = |part: Value| {
            let mut arguments = json!({"path": "huge"});
            arguments
                .as_object_mut()
                .expect("an object")
                .extend(part.as_object().expect("an object").clone());
            arguments
        };
        let message = reference.fails("read_file", read(json!({}))).await;
        assert!(message.contains("head or tail"), "{message}");
        for (part, text) in [
            (json!({"head": 1}), "first"),
            (json!({"head": 2}), "first\nsecond"),
            (json!({"tail": 2}), "last\n"),
            (json!({"tail": 3}), "next to last\nlast\n"),
        ] {
            let told = reference.ok("read_text_file", read(part.clone())).await;
            assert_eq!(told, text, "{part}");
        }
        // The third line is longer than a reply.
        let message = reference.fails("read_text_file", read(json!({"head": 3})));
        assert!(message.await.contains("too large"));
    })
    .await;
}

/// Files that do not fit one reply together: each that does not is said so in its place, and the others are there.
#[tokio::test]
async fn reference_many_files_that_do_not_fit_one_reply() {
    let tree = Tree::new()
        .file("a", "a".repeat(600))
        .file("b", "b".repeat(600))
        .file("c", "c")
        .file("d", "d".repeat(1200));
    let server = setup()
        .arguments(["--max-file-size", "1000", text(tree.path())])
        .start(Transport::Stdio)
        .await;
    let paths = json!({"paths": ["a", "b", "c", "d"]});
    let read = server.call("read_multiple_files", paths).await;
    assert!(!read.is_error, "{}", read.story());
    let told: Vec<&str> = read.text.split("\n---\n").collect();
    assert_eq!(told[0], format!("a:\n{}\n", "a".repeat(600)));
    assert!(
        told[1].starts_with("b: Error - not enough room is left"),
        "{}",
        told[1]
    );
    assert_eq!(told[2], "c:\nc\n");
    assert!(told[3].starts_with("d: Error - "), "{}", told[3]);
    assert!(
        told[3].contains("1200") && told[3].contains("1000"),
        "{}",
        told[3]
    );
}

#[tokio::test]
async fn reference_a_pipe_does_not_hang_it() {
    Reference::both(tree, async |reference| {
        for tool in ["read_text_file", "read_media_file"] {
            let message = reference.fails(tool, json!({"path": "pipe"})).await;
            assert!(message.contains("only files are read"), "{message}");
        }
        let info = reference.ok("get_file_info", json!({"path": "pipe"})).await;
        assert!(info.contains("isFile: false"), "{info}");
    })
    .await;
}

#[tokio::test]
async fn reference_media_come_as_blocks() {
    Reference::both(tree, async |reference| {
        let image = reference
            .call("read_media_file", json!({"path": "pixel.png"}))
            .await;
        let block = json!({"type": "image", "mimeType": "image/png", "data": "iVBORw0KGgo="});
        assert_eq!(image.whole["content"], json!([block]));
        assert_eq!(image.structured["content"], json!([block]));
        let other = reference
            .call("read_media_file", json!({"path": "bytes"}))
            .await;
        let resource = &other.whole["content"][0]["resource"];
        let uri = format!("file://{}", reference.host("bytes"));
        assert_eq!(resource["uri"], uri.as_str(), "{}", other.story());
        assert_eq!(resource["blob"], "//4=");
    })
    .await;
}

#[tokio::test]
async fn reference_several_files_fail_one_by_one() {
    Reference::both(tree, async |reference| {
        let paths = json!({"paths": ["a.txt", "none", "/etc/passwd"]});
        let text = reference.ok("read_multiple_files", paths).await;
        let (base, none) = (reference.host(""), reference.host("none"));
        let base = base.trim_end_matches('/');
        let expected = format!(
            "a.txt:\none\ntwo\nthree\n\n\n---\nnone: Error - ENOENT: no such file or directory, open '{none}'\n---\n\
             /etc/passwd: Error - Access denied - path outside allowed directories: /etc/passwd not in {base}"
        );
        assert_eq!(text, expected);
    })
    .await;
}

#[tokio::test]
async fn reference_listings_trees_and_searches() {
    Reference::both(tree, async |reference| {
        let listed = reference.ok("list_directory", json!({"path": "sub"})).await;
        assert_eq!(listed, "[FILE] b.rs\n[DIR] deep");
        let sizes = reference.ok("list_directory_with_sizes", json!({"path": "sub"}));
        let line = format!("[FILE] {:<30} {:>10}", "b.rs", "2 B");
        let expected = format!(
            "{line}\n[DIR] {:<30} \n\nTotal: 1 files, 1 directories\nCombined size: 2 B",
            "deep"
        );
        assert_eq!(sizes.await, expected);
        let tree = reference.ok("directory_tree", json!({"path": "sub"})).await;
        assert_eq!(
            serde_json::from_str::<testkit::Value>(&tree).expect("JSON"),
            json!([
                {"name": "b.rs", "type": "file"},
                {"name": "deep", "type": "directory", "children": [{"name": "c.rs", "type": "file"}]},
            ])
        );
        let exclude = json!({"path": "sub", "excludePatterns": ["deep"]});
        let tree = reference.ok("directory_tree", exclude).await;
        assert!(!tree.contains("c.rs"), "{tree}");
        let search = |pattern: &str, exclude: &[&str]| {
            json!({"path": ".", "pattern": pattern, "excludePatterns": exclude})
        };
        let found = reference.ok("search_files", search("**/*.rs", &["**/deep"])).await;
        assert_eq!(found, reference.host("sub/b.rs"));
        // A link that leads out is not found, not even by its name.
        let found = reference.ok("search_files", search("out", &[])).await;
        assert_eq!(found, "No matches found");
    })
    .await;
}
