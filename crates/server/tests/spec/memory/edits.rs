//! What an edit leaves alone, and what it costs.

use testkit::{Transport, Tree, json};

use super::set::Memory;
use crate::harness::ToolSet;

#[tokio::test]
async fn memory_bytes_outside_an_edit_stay() {
    let cases: [(&str, &str, &str, &str); 7] = [
        // CRLF, also if the string was written with LF.
        ("a\r\nb\r\nc\r\n", "a\nb", "x\ny", "x\r\ny\r\nc\r\n"),
        ("a\r\nb\r\n", "b", "x", "a\r\nx\r\n"),
        // A byte order mark.
        ("\u{feff}a\nb\n", "a", "x", "\u{feff}x\nb\n"),
        // No final newline.
        ("a\nb", "a", "x", "x\nb"),
        ("a\nb", "b", "x", "a\nx"),
        // Mixed line ends, lone CR and NUL.
        ("a\r\nb\nc\rd\0\r\n", "b", "x", "a\r\nx\nc\rd\0\r\n"),
        ("a\n\r\n\n", "a", "", "\n\r\n\n"),
    ];
    Memory::both(Tree::new, async |memory| {
        for (number, (content, old, new, expected)) in cases.iter().enumerate() {
            let path = format!("f{number}");
            memory.tree().write(&path, content);
            memory.replace(&path, old, new).await;
            assert_eq!(memory.tree().text(&path), *expected);
        }
    })
    .await;
}

#[tokio::test]
async fn memory_bytes_around_an_insertion_stay() {
    let cases: [(&str, i64, &str, &str); 5] = [
        ("a\r\nb\r\n", 2, "x\n", "a\r\nx\r\nb\r\n"),
        ("\u{feff}a\n", 1, "x\n", "\u{feff}x\na\n"),
        ("a\r\nb", 3, "x", "a\r\nb\r\nx"),
        ("a\nb\r\nc", 1, "x\n", "x\na\nb\r\nc"),
        ("a\r\nb\r\n", 2, "x\r\n", "a\r\nx\r\nb\r\n"),
    ];
    Memory::both(Tree::new, async |memory| {
        for (number, (content, line, text, expected)) in cases.iter().enumerate() {
            let path = format!("f{number}");
            memory.tree().write(&path, content);
            let insert = json!({"path": path, "insert_line": line, "new_str": text});
            memory.ok("insert", insert).await;
            assert_eq!(memory.tree().text(&path), *expected);
        }
    })
    .await;
}

#[tokio::test]
async fn memory_an_edit_keeps_the_mode() {
    Memory::both(
        || Tree::new().file("run.sh", "a").mode("run.sh", 0o750),
        async |memory| {
            memory.replace("run.sh", "a", "b").await;
            assert_eq!(memory.tree().mode_of("run.sh") & 0o777, 0o750);
        },
    )
    .await;
}

#[tokio::test]
async fn memory_a_file_larger_than_other_replies_is_viewed_whole() {
    // Larger than the limit on replies of 10 MiB, which applies to tools that can read a part.
    let content = "0123456789abcde\n".repeat(700_000);
    let tree = Tree::new().file("large", &content);
    // One half only: the SDK's client takes messages of at most 16 MiB.
    let setup = Memory::setup(&tree).set("server.replies", "structured");
    let server = setup.start(Transport::Stdio).await;
    let viewed = server.call("view", json!({"path": "large"})).await;
    assert!(viewed.ok()["content"] == content.as_str());
    assert_eq!(viewed.ok()["size"], content.len());
}

#[tokio::test]
async fn memory_a_file_of_100_mb_is_edited_in_little_memory() {
    let size = (100 << 20) - 100;
    let tree = Tree::new().sparse("large", size);
    let server = Memory::setup(&tree).start(Transport::Stdio).await;
    let before = server.memory().peak;
    let insert = json!({"path": "large", "insert_line": 2, "new_str": "needle\n"});
    server.call("insert", insert).await.ok();
    let replace = json!({"path": "large", "old_str": "\nneedle\n", "new_str": "\nthread\n"});
    server.call("str_replace", replace).await.ok();
    let grown = server.memory().peak - before;
    assert!(grown < 32 << 20, "memory grew by {grown} bytes");
    let bytes = tree.bytes("large");
    assert!(bytes.ends_with(b"\0\nthread\n"));
    assert_eq!(bytes.len() as u64, size + 8);
}
