//! `guide_read_file`.

use std::time::Duration;

use testkit::{Setup, json};

use super::cache_file::PLAN_HASH;
use super::set::{Guide, text_in, tree};
use crate::harness::ToolSet;

#[tokio::test]
async fn guide_tools_10_read_text_file() {
    Guide::both(tree, async |guide| {
        let arguments =
            json!({"path": "docs/plan.md", "content": "# Plan\n", "content_hash": PLAN_HASH});
        let data = guide.data("guide_read_file", arguments).await;
        assert_eq!(data["content_hash"], json!(PLAN_HASH));
        assert_eq!(data["hash_verified"], true);
        assert_eq!(data["complete"], true);
        assert_eq!(data["status"], "cached");
        assert_eq!(guide.content("docs/plan.md").await, "# Plan\n");
        let outside = json!({"path": "../plan.md", "content": "x"});
        guide.fails("security", "guide_read_file", outside).await;
    })
    .await;
}

#[tokio::test]
async fn guide_tools_11_read_binary_file() {
    Guide::both(tree, async |guide| {
        // The bytes 00 ff 01 fe and their hash.
        let hash = "d4b6a8d8f1e2c3a4";
        let arguments = json!({"path": "docs/x.bin", "content": "AP8B/g==", "binary": true});
        let data = guide.data("guide_read_file", arguments.clone()).await;
        assert_eq!(data["metadata"]["size"], 4);
        assert_eq!(data["metadata"]["binary"], true);
        let found = data["content_hash"].as_str().unwrap();
        let read = json!({"path": "docs/x.bin", "binary": true});
        let read = guide.data("guide_request_file", read).await;
        assert_eq!(read["content"], "AP8B/g==");
        assert_eq!(read["binary"], true);
        assert_eq!(read["content_hash"], found);
        let mut hashed = arguments.clone();
        hashed["content_hash"] = json!(found);
        assert_eq!(
            guide.data("guide_read_file", hashed.clone()).await["hash_verified"],
            true
        );
        hashed["content_hash"] = json!(hash);
        let error = guide.fails("validation", "guide_read_file", hashed).await;
        assert!(text_in(&error, "error").contains("Integrity"), "{error}");
        for wrong in ["AP8B/g", "AP8B*g==", "AP8B\n/g=="] {
            let arguments = json!({"path": "docs/y.bin", "content": wrong, "binary": true});
            guide
                .fails("validation", "guide_read_file", arguments)
                .await;
        }
        assert!(!guide.holds("docs/y.bin").await);
    })
    .await;
}

#[tokio::test]
async fn guide_tools_12_file_encoding_specification() {
    Guide::both(tree, async |guide| {
        // "テ" in Shift JIS is 83 65.
        let arguments =
            json!({"path": "docs/a", "content": "g2U=", "binary": true, "encoding": "Shift_JIS"});
        let data = guide.data("guide_read_file", arguments).await;
        assert_eq!(data["metadata"]["encoding"], "shift_jis");
        let read = guide
            .data("guide_request_file", json!({"path": "docs/a"}))
            .await;
        assert_eq!(read["content"], "テ");
        assert_eq!(read["encoding"], "shift_jis");
        let arguments = json!({"path": "docs/b", "content": "x", "encoding": "klingon"});
        let error = guide
            .fails("validation", "guide_read_file", arguments)
            .await;
        assert!(text_in(&error, "error").contains("klingon"), "{error}");
        assert!(text_in(&error, "instruction").contains("utf-8"), "{error}");
    })
    .await;
}

#[tokio::test]
async fn guide_tools_13_large_file_handling() {
    Guide::both(tree, async |guide| {
        let chunk = |index: u32, content: &str| {
            json!({"path": "docs/big", "content": content, "chunk_index": index, "chunk_count": 3})
        };
        // SHA-256 of "abc" and of "one".
        let whole = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        let first = guide.ok("guide_read_file", chunk(2, "c")).await;
        assert_eq!(first["data"]["complete"], false);
        assert_eq!(first["data"]["chunks_received"], 1);
        assert!(first["warnings"][0].as_str().unwrap().contains("chunk 2"), "{first}");
        assert!(!guide.holds("docs/big").await, "nothing incomplete is cached");
        guide.data("guide_read_file", chunk(0, "a")).await;
        let mut bad = chunk(1, "b");
        bad["chunk_hash"] = json!(whole);
        let error = guide.fails("validation", "guide_read_file", bad).await;
        assert!(text_in(&error, "error").contains("chunk 1"), "{error}");
        let mut last = chunk(1, "b");
        last["content_hash"] = json!(whole);
        let data = guide.data("guide_read_file", last).await;
        assert_eq!(data["complete"], true);
        assert_eq!(data["content_hash"], json!(whole));
        assert_eq!(guide.content("docs/big").await, "abc");
        for wrong in [json!({"chunk_index": 3, "chunk_count": 3}), json!({"chunk_index": 0})] {
            let mut arguments = json!({"path": "docs/big", "content": "x"});
            arguments.as_object_mut().unwrap().extend(wrong.as_object().unwrap().clone());
            guide.fails("validation", "guide_read_file", arguments).await;
        }
    })
    .await;
}

#[tokio::test]
async fn guide_tools_13_an_incomplete_upload_expires() {
    let short = |setup: Setup| setup.set("guide.cache_ttl", 1);
    Guide::both_with(tree, short, async |guide| {
        let chunk = |index: u32| {
            json!({"path": "docs/big", "content": "x", "chunk_index": index, "chunk_count": 2})
        };
        guide.data("guide_read_file", chunk(0)).await;
        tokio::time::sleep(Duration::from_millis(1100)).await;
        let late = guide.data("guide_read_file", chunk(1)).await;
        assert_eq!(late["complete"], false);
        assert_eq!(late["chunks_received"], 1);
    })
    .await;
}

#[tokio::test]
async fn a_chunk_after_the_end_of_its_upload_is_told_so() {
    // Uploads live as long as cache entries if that is shorter.
    Guide::both_with(tree, |setup| setup.set("guide.cache_ttl", 1), async |guide| {
        let chunk = |index: u32| json!({"path": "docs/a", "content": "x", "chunk_index": index, "chunk_count": 2});
        guide.ok("guide_read_file", chunk(0)).await;
        tokio::time::sleep(Duration::from_millis(1100)).await;
        let reply = guide.ok("guide_read_file", chunk(1)).await;
        assert!(reply["warnings"].to_string().contains("expired"), "{reply}");
        assert_eq!(reply["data"]["chunks_received"], 1);
    })
    .await;
}
