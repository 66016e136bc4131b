//! Calls at the same time.

use testkit::{Outcome, Tree, Value, json};

use super::set::Memory;
use crate::harness::{Harness, ToolSet};

/// Makes all calls at once and waits for their outcomes.
async fn at_once(memory: &Harness<Memory>, calls: Vec<(&str, Value)>) -> Vec<Outcome> {
    let calls = calls
        .into_iter()
        .map(|(tool, arguments)| memory.server.spawn_call(tool, arguments));
    let calls: Vec<_> = calls.collect();
    let mut outcomes = Vec::with_capacity(calls.len());
    for call in calls {
        outcomes.push(call.await.expect("the call's task ends"));
    }
    outcomes
}

fn succeeded(outcomes: &[Outcome]) -> usize {
    outcomes.iter().filter(|outcome| !outcome.is_error).count()
}

#[tokio::test]
async fn memory_one_of_64_creates_succeeds() {
    Memory::both(Tree::new, async |memory| {
        let create = |number: usize| {
            json!({"path": "deep/f", "content": number.to_string(), "encoding": "utf-8"})
        };
        let calls = (0..64).map(|number| ("create", create(number))).collect();
        let outcomes = at_once(memory, calls).await;
        assert_eq!(succeeded(&outcomes), 1);
        for outcome in outcomes.iter().filter(|outcome| outcome.is_error) {
            assert_eq!(outcome.error()["code"], "file_exists");
        }
        let winner = outcomes.iter().position(|outcome| !outcome.is_error);
        let winner = winner.expect("one").to_string();
        assert_eq!(memory.tree().text("deep/f"), winner);
        assert_eq!(memory.tree().listing().len(), 2, "no temporary files");
    })
    .await;
}

#[tokio::test]
async fn memory_one_of_32_renames_to_one_path_succeeds() {
    let tree = || {
        (0..32).fold(Tree::new(), |tree, n| {
            tree.file(format!("f{n}"), n.to_string())
        })
    };
    Memory::both(tree, async |memory| {
        let rename = |n: usize| json!({"old_path": format!("f{n}"), "new_path": "new/f"});
        let calls = (0..32).map(|n| ("rename", rename(n))).collect();
        let outcomes = at_once(memory, calls).await;
        assert_eq!(succeeded(&outcomes), 1);
        // 31 files stay, besides the directory and the file in it.
        assert_eq!(memory.tree().listing().len(), 33);
    })
    .await;
}

#[tokio::test]
async fn memory_no_replacement_is_lost() {
    let content: String = (0..48).map(|n| format!("<{n}>\n")).collect();
    let tree = || Tree::new().file("f", &content).link("link", "f");
    Memory::both(tree, async |memory| {
        let replace = |n: usize| {
            let path = if n.is_multiple_of(2) { "f" } else { "link" };
            json!({"path": path, "old_str": format!("<{n}>"), "new_str": "done"})
        };
        let calls = (0..48).map(|n| ("str_replace", replace(n))).collect();
        let outcomes = at_once(memory, calls).await;
        assert_eq!(succeeded(&outcomes), 48);
        assert_eq!(memory.tree().text("f"), "done\n".repeat(48));
    })
    .await;
}

#[tokio::test]
async fn memory_no_insertion_is_lost() {
    Memory::both(
        || Tree::new().file("f", "end\n"),
        async |memory| {
            let insert =
                |n: usize| json!({"path": "f", "insert_line": 1, "new_str": format!("{n:02}\n")});
            let calls = (0..32).map(|n| ("insert", insert(n))).collect();
            assert_eq!(succeeded(&at_once(memory, calls).await), 32);
            let text = memory.tree().text("f");
            let mut lines: Vec<&str> = text.lines().collect();
            assert_eq!(lines.pop(), Some("end"));
            lines.sort_unstable();
            let expected: Vec<String> = (0..32).map(|n| format!("{n:02}")).collect();
            assert_eq!(lines, expected);
        },
    )
    .await;
}

#[tokio::test]
async fn memory_a_viewer_never_sees_part_of_a_write() {
    let (short, long) = ("a".repeat(100_000), "b".repeat(300_000));
    Memory::both(
        || Tree::new().file("f", &short),
        async |memory| {
            for round in 0..8 {
                let (old, new) = if round % 2 == 0 {
                    (&short, &long)
                } else {
                    (&long, &short)
                };
                let mut calls = vec![("view", json!({"path": "f"})); 4];
                let replace = json!({"path": "f", "old_str": old, "new_str": new});
                calls.insert(2, ("str_replace", replace));
                for outcome in at_once(memory, calls).await {
                    let content = &outcome.ok()["content"];
                    let whole = content.is_null() || content == old || content == new;
                    assert!(whole, "a part was seen");
                }
            }
        },
    )
    .await;
}

#[tokio::test]
async fn memory_a_viewer_never_sees_part_of_a_new_file() {
    let content = "x".repeat(1_000_000);
    Memory::both(Tree::new, async |memory| {
        let create = json!({"path": "d/f", "content": content, "encoding": "utf-8"});
        let mut calls = vec![("view", json!({"path": "d/f"})); 12];
        calls.insert(3, ("create", create));
        let outcomes = at_once(memory, calls).await;
        for (number, outcome) in outcomes.iter().enumerate() {
            match (number, outcome.is_error) {
                (3, _) => assert_eq!(outcome.ok()["success"], true),
                (_, true) => assert_eq!(outcome.error()["code"], "file_not_found"),
                (_, false) => assert!(outcome.ok()["content"] == content.as_str(), "a part"),
            }
        }
    })
    .await;
}

#[tokio::test]
async fn memory_what_was_deleted_does_not_come_back() {
    Memory::both(Tree::new, async |memory| {
        for _ in 0..10 {
            memory.tree().write("f", "a".repeat(200_000) + "end");
            let edit = json!({"path": "f", "old_str": "end", "new_str": "END"});
            let calls = vec![
                ("str_replace", edit),
                ("delete", json!({"path": "f"})),
                ("view", json!({"path": "f"})),
            ];
            let outcomes = at_once(memory, calls).await;
            assert!(!outcomes[1].is_error, "{}", outcomes[1].story());
            assert!(!memory.tree().has("f"), "an edit brought it back");
        }
    })
    .await;
}
