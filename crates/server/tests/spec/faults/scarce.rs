//! Too few descriptors and too little memory: errors are clear, and the server recovers.

use testkit::{Setup, Transport, Tree, Value, json};

use crate::harness::ToolSet;
use crate::harness::machine::{call, left_out, ok, succeeds};
use crate::workspace::Workspace;

/// Starts the server with a limit of the system; `None` if the limit cannot be set.
fn limited(limit: &str, tree: &Tree) -> Option<Setup> {
    if !succeeds(std::process::Command::new("prlimit").args([limit, "true"])) {
        left_out("limits cannot be set here");
        return None;
    }
    Some(Workspace::setup(tree).wrapped_in(["prlimit", limit]))
}

/// A tree of many directories, each with a few files.
fn wide(directories: usize) -> Tree {
    let tree = Tree::new();
    for directory in 0..directories {
        for file in 0..3 {
            let path = format!("d{}/e{directory}/f{file}", directory % 20);
            tree.write(path, format!("needle {directory}\n"));
        }
    }
    tree
}

#[tokio::test]
async fn faults_64_descriptors_are_enough_or_the_error_says_so() {
    let tree = wide(200);
    let Some(setup) = limited("--nofile=64:64", &tree) else {
        return;
    };
    let server = setup.start(Transport::Stdio).await;
    let mut calls = Vec::new();
    for number in 0..25 {
        let copy = json!({"source_path": "d1", "dest_path": format!("c{number}")});
        let deep = (0..40)
            .map(|level| format!("l{level}/"))
            .collect::<String>();
        for (tool, arguments) in [
            ("grep", json!({"pattern": "needle"})),
            ("glob", json!({"pattern": "**/f1"})),
            ("copy", copy),
            (
                "write_file",
                json!({"path": format!("{deep}{number}"), "content": "x"}),
            ),
            (
                "remove_folder",
                json!({"path": format!("d{}", number % 3 + 10)}),
            ),
        ] {
            calls.push(server.spawn_call(tool, Workspace::complete(tool, arguments)));
        }
    }
    let mut refused = 0;
    for call in calls {
        let outcome = call.await.expect("an outcome");
        let error = &outcome.structured["error"];
        if error["code"] == "io_error" {
            refused += 1;
            assert!(
                outcome.text.contains("too many open files; try again"),
                "{}",
                outcome.story()
            );
        }
    }
    // Nothing leaks: each of these needs a few descriptors of its own.
    for number in 0..70 {
        ok(
            &server,
            "write_file",
            json!({"path": format!("after/{number}"), "content": "x"}),
        )
        .await;
    }
    let found = ok(&server, "grep", json!({"path": "d1", "pattern": "needle"})).await;
    assert_eq!(found["total_matches"], 30, "{refused} calls were refused");
}

#[tokio::test]
async fn faults_64_descriptors_and_100_connections() {
    let tree = Tree::new().file("f", "text");
    let Some(setup) = limited("--nofile=64:64", &tree) else {
        return;
    };
    let server = setup.start(Transport::Http).await;
    let address = server.http().address();
    let mut idle = Vec::new();
    for _ in 0..100 {
        if let Ok(connection) = std::net::TcpStream::connect(address) {
            idle.push(connection);
        }
    }
    assert!(
        idle.len() > 60,
        "the kernel takes connections for the server"
    );
    drop(idle);
    let read = json!({"path": "f"});
    assert_eq!(ok(&server, "read_file", read).await["content"], "text");
}

#[tokio::test]
async fn faults_a_quarter_gibibyte_is_enough_to_search_a_large_tree() {
    let tree = wide(300)
        .big("large/one", 40_000_000)
        .sparse("large/sparse", 3_000_000_000)
        .file("long", "x".repeat(30_000_000));
    let Some(setup) = limited("--as=268435456", &tree) else {
        return;
    };
    // The C library reserves 64 MiB of addresses for each of many arenas, of memory it never uses.
    let setup = setup.variable("MALLOC_ARENA_MAX", "2");
    let server = setup.start(Transport::Stdio).await;
    let mut calls = Vec::new();
    for _ in 0..8 {
        for (tool, arguments) in [
            ("grep", json!({"pattern": "needle", "max_results": 2000})),
            ("grep", json!({"pattern": "x{20}y"})),
            ("glob", json!({"pattern": "**/*"})),
            (
                "hash_file",
                json!({"path": "large/one", "algorithm": "md5"}),
            ),
        ] {
            calls.push(server.spawn_call(tool, Workspace::complete(tool, arguments)));
        }
    }
    for call in calls {
        let outcome = call.await.expect("an outcome");
        outcome.ok();
    }
    assert!(server.memory().peak < 256 << 20);
    let found: Value = call(&server, "grep", json!({"pattern": "needle 7$"}))
        .await
        .structured;
    assert_eq!(found["total_matches"], 3, "{found}");
}

/// A patch that makes files in directories of their own.
fn patch_of(files: usize, name: &str) -> Value {
    let patch: String = (0..files)
        .map(|n| format!("--- /dev/null\n+++ b/{name}{n}/f\n@@ -0,0 +1 @@\n+x\n"))
        .collect();
    json!({"patch": patch})
}

#[tokio::test]
async fn faults_1024_descriptors_and_batches_of_many_files() {
    let tree = Tree::new().file(
        "all",
        (0..500).map(|n| format!("<{n}>")).collect::<String>(),
    );
    let Some(setup) = limited("--nofile=1024:1024", &tree) else {
        return;
    };
    let server = setup.start(Transport::Stdio).await;
    let before = tree.listing();
    let refused = call(&server, "patch_file", patch_of(500, "d")).await;
    let expected = "it is for 500 files; this server can change at most 153 in one call";
    assert!(refused.text.contains(expected), "{}", refused.story());
    let files = (0..200).map(|n| json!({"path": format!("e{n}/f"), "content": "x"}));
    let files = json!({"files": files.collect::<Value>()});
    let refused = call(&server, "write_file", files).await;
    assert!(refused.text.contains("at most 153"), "{}", refused.story());
    assert_eq!(tree.listing(), before);
    // Batches of the most files have their turn one after the other.
    let batches: Vec<_> = (0..6)
        .map(|n| {
            let arguments = patch_of(153, &format!("g{n}-"));
            server.spawn_call("patch_file", Workspace::complete("patch_file", arguments))
        })
        .collect();
    for batch in batches {
        batch.await.expect("an outcome").ok();
    }
    // Many edits of one file need no more than one edit.
    let edits = (0..500).map(|n| json!({"path": "all", "old": format!("<{n}>"), "new": "y"}));
    ok(
        &server,
        "edit_file",
        json!({"edits": edits.collect::<Value>()}),
    )
    .await;
    assert_eq!(tree.text("all"), "y".repeat(500));
}
