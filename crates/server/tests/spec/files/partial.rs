//! Replies that lack something, and say so: the time was over, or there was no right to read.

use std::process::Command;

use testkit::{Transport, Tree, json};

use super::Files;
use crate::harness::machine::{left_out, succeeds};
use crate::harness::{Harness, ToolSet};

/// A user whom modes bind, even if it is root.
const BOUND_BY_MODES: [&str; 3] = [
    "setpriv",
    "--bounding-set=-dac_override,-dac_read_search",
    "--inh-caps=-dac_override,-dac_read_search",
];

#[tokio::test]
async fn files_a_search_that_runs_out_of_time_returns_what_it_found() {
    // Longer than any machine searches in a second.
    let tree = || {
        Tree::new()
            .file("a", "needle\n")
            .file("b", "text\n".repeat(2_000))
            .stretched("b", 1 << 42)
    };
    Files::both_with(
        tree,
        |setup| setup.set("limits.request_timeout", 1),
        async |files| {
            let search =
                json!({"root_path": ".", "pattern": "needle", "max_file_size": 1_u64 << 43});
            let found = files.ok("search", search).await;
            assert_eq!(found["total_matches"], 1, "{found}");
            assert_eq!(found["timed_out"], true, "{found}");
        },
    )
    .await;
}

#[tokio::test]
async fn files_a_listing_that_runs_out_of_time_returns_what_it_found() {
    let names = (0..30_000).map(|number| format!("{}/{number}", number % 30));
    let tree = names.fold(Tree::new(), |tree, name| tree.file(&name, ""));
    let slow = |setup: testkit::Setup| setup.set("limits.request_timeout", 1);
    let files: Harness<Files> = Files::start(tree, slow, Transport::Stdio).await;
    let list = json!({"path": ".", "recursive": true});
    let listing = files.server.spawn_call("list", list.clone());
    files.server.slowed(15).await;
    let outcome = listing.await.expect("a reply");
    let listed = outcome.ok();
    assert_eq!(listed["timed_out"], true, "{}", outcome.text.len());
    let entries = listed["entries"].as_array().expect("entries").len();
    assert!(entries < 30_030, "{entries}");
    assert!(
        outcome.text.ends_with(
            "[the time was over, entries are missing: give a pattern or list a directory below]"
        ),
        "{}",
        &outcome.text[outcome.text.len().saturating_sub(200)..]
    );
    let listed = files.ok("list", json!({"path": "7"})).await;
    assert_eq!(listed["entries"].as_array().expect("entries").len(), 1_000);
}

#[tokio::test]
async fn files_what_cannot_be_read_is_counted_and_named() {
    if !succeeds(
        Command::new(BOUND_BY_MODES[0])
            .args(&BOUND_BY_MODES[1..])
            .arg("true"),
    ) {
        return left_out("rights cannot be given up here");
    }
    let tree = || {
        Tree::new()
            .file("a", "needle\n")
            .file("closed/f", "needle\n")
            .file("locked", "needle\n")
            .mode("closed", 0)
            .mode("locked", 0)
    };
    Files::both_with(
        tree,
        |setup| setup.wrapped_in(BOUND_BY_MODES),
        async |files| {
            let search = json!({"root_path": ".", "pattern": "needle"});
            let outcome = files.call("search", search).await;
            assert_eq!(outcome.ok()["unread"]["count"], 2, "{}", outcome.story());
            assert_eq!(
                outcome.text,
                "a\n1:needle\n[2 could not be read: closed (permission denied), locked (permission denied)]"
            );
            let list = json!({"path": ".", "recursive": true});
            let outcome = files.call("list", list).await;
            assert_eq!(outcome.ok()["unreadable_count"], 1, "{}", outcome.story());
            assert_eq!(outcome.ok()["unreadable"], json!(["closed"]));
            assert!(
                outcome.text.ends_with("[1 directory could not be read: closed]"),
                "{}",
                outcome.text
            );
        },
    )
    .await;
}
