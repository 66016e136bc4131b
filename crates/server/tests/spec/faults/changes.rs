//! Files and directories that others change while the server works on them, and roots that go away.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use testkit::{Transport, Tree, Value, json, over_both};

use crate::harness::machine::{Small, call, fails, may_mount, ok};
use crate::harness::{ToolSet, each, machine, program};
use crate::workspace::Workspace;

/// Runs `disturb` on a thread of its own, again and again, while the body runs.
async fn while_disturbed(disturb: impl Fn(u64) + Send, body: impl Future<Output = ()>) {
    let stop = AtomicBool::new(false);
    let stop = &stop;
    std::thread::scope(|scope| {
        let thread = scope.spawn(move || {
            let mut round = 0;
            while !stop.load(Ordering::Relaxed) {
                disturb(round);
                round += 1;
            }
            round
        });
        tokio::task::block_in_place(|| tokio::runtime::Handle::current().block_on(body));
        stop.store(true, Ordering::Relaxed);
        assert!(
            thread.join().expect("no panic") > 0,
            "nothing was disturbed"
        );
    });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn faults_a_file_that_shrinks_and_grows_is_read_and_searched_to_its_end() {
    let line = "a line with a needle in it\n";
    let tree = Tree::new().file("big", line.repeat(100_000));
    let path = tree.join("big");
    let server = Workspace::setup(&tree).start(Transport::Stdio).await;
    let change = |round: u64| {
        let file = std::fs::OpenOptions::new()
            .write(true)
            .open(&path)
            .expect("it is there");
        file.set_len((round * 7919 % 2_700_000) + 1)
            .expect("a new size");
    };
    while_disturbed(change, async {
        for round in 0..8_u64 {
            let offset =
                json!({"path": "big", "offset_lines": round * 3000 + 1, "limit_lines": 50});
            for (tool, arguments) in [
                ("read_file", offset),
                ("read_file", json!({"path": "big", "offset_lines": -20})),
                (
                    "read_file",
                    json!({"path": "big", "offset_bytes": 1_000_000, "limit_bytes": 1000}),
                ),
                (
                    "grep",
                    json!({"path": "big", "pattern": "needle", "max_results": 10}),
                ),
                ("grep", json!({"pattern": "nothing"})),
                ("hash_file", json!({"path": "big", "algorithm": "md5"})),
                (
                    "copy",
                    json!({"source_path": "big", "dest_path": format!("copy{}", round % 2)}),
                ),
            ] {
                let outcome = call(&server, tool, arguments).await;
                let code = &outcome.structured["error"]["code"];
                assert!(
                    !outcome.is_error || code == "already_exists",
                    "{}",
                    outcome.story()
                );
            }
            let _ = std::fs::remove_file(tree.join(format!("copy{}", round % 2)));
        }
    })
    .await;
    ok(&server, "stat_file", json!({"path": "big"})).await;
}

/// Codes that a call may fail with while its target appears and disappears.
const PASSING: [&str; 5] = [
    "not_found",
    "already_exists",
    "not_a_directory",
    "is_a_directory",
    "permission_denied",
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn faults_directories_that_come_and_go_are_listed_copied_and_removed() {
    let tree = Tree::new().file("stays/f", "needle\n");
    let base = tree.path().to_owned();
    let server = Workspace::setup(&tree).start(Transport::Stdio).await;
    let change = |round: u64| {
        let dir = base.join(format!("dir/sub{}", round % 3));
        let _ = std::fs::create_dir_all(dir.join("deep/deeper"));
        for number in 0..20 {
            let _ = std::fs::write(dir.join(format!("deep/f{number}")), "needle\n");
        }
        let _ = std::fs::remove_dir_all(base.join("dir"));
    };
    while_disturbed(change, async {
        for round in 0..12 {
            for (tool, arguments) in [
                ("list_folder", json!({"path": "dir"})),
                ("glob", json!({"pattern": "**/*"})),
                ("grep", json!({"pattern": "needle"})),
                (
                    "copy",
                    json!({"source_path": "dir", "dest_path": format!("copy{round}")}),
                ),
                (
                    "move",
                    json!({"source_path": "dir/sub1", "dest_path": format!("moved{round}")}),
                ),
                ("remove_folder", json!({"path": "dir"})),
                (
                    "write_file",
                    json!({"path": "dir/sub2/new", "content": "x"}),
                ),
            ] {
                let outcome = call(&server, tool, arguments).await;
                let code = outcome.structured["error"]["code"]
                    .as_str()
                    .unwrap_or_default();
                let passing = PASSING.contains(&code);
                assert!(!outcome.is_error || passing, "{}", outcome.story());
            }
        }
    })
    .await;
    let found = ok(
        &server,
        "grep",
        json!({"path": "stays", "pattern": "needle"}),
    )
    .await;
    assert_eq!(found["total_matches"], 1);
    let names = machine::contents(tree.path());
    assert!(
        !names.keys().any(|name| name.contains(".tmp")),
        "{:?}",
        names.keys()
    );
}

#[tokio::test]
async fn faults_a_root_that_is_replaced_stays_what_it_was() {
    over_both(async |transport| {
        let host = Tree::new().file("root/f", "own").file("other/f", "foreign");
        let server = program()
            .root("workspace", &host.join("root"))
            .start(transport)
            .await;
        rename(&host.join("root"), &host.join("moved"));
        rename(&host.join("other"), &host.join("root"));
        assert_eq!(
            ok(&server, "read_file", json!({"path": "f"})).await["content"],
            "own"
        );
        ok(
            &server,
            "write_file",
            json!({"path": "new", "content": "n"}),
        )
        .await;
        assert!(host.has("moved/new") && !host.has("root/new"));
        // Nor does a link in its place lead out.
        rename(&host.join("root"), &host.join("other"));
        std::os::unix::fs::symlink("other", host.join("root")).expect("a link");
        assert_eq!(
            ok(&server, "read_file", json!({"path": "f"})).await["content"],
            "own"
        );
        assert_eq!(host.text("other/f"), "foreign");
    })
    .await;
}

#[tokio::test]
async fn faults_a_root_that_is_removed_gives_errors_and_no_crash() {
    over_both(async |transport| {
        let host = Tree::new().file("root/f", "own");
        let mut server = program()
            .root("workspace", &host.join("root"))
            .start(transport)
            .await;
        std::fs::remove_dir_all(host.join("root")).expect("it is there");
        for (tool, arguments) in [
            ("read_file", json!({"path": "f"})),
            ("write_file", json!({"path": "a/b", "content": "x"})),
            ("create_folder", json!({"path": "a"})),
            ("stat_file", json!({"path": "f"})),
            ("list_folder", json!({"path": "."})),
        ] {
            let error = fails(&server, "io_error", tool, arguments).await;
            let message = error["message"].as_str().unwrap_or_default();
            assert!(
                message.starts_with("the directory of root workspace is gone"),
                "{message}"
            );
        }
        for (tool, arguments) in [
            ("glob", json!({"pattern": "**/*"})),
            ("grep", json!({"pattern": "x"})),
        ] {
            call(&server, tool, arguments).await;
        }
        assert!(server.is_alive());
    })
    .await;
}

#[tokio::test]
async fn faults_a_root_that_is_unmounted_shows_nothing_of_what_is_below() {
    if !may_mount() {
        return;
    }
    over_both(async |transport| {
        let small = Small::start("1m", transport, |setup| setup).await;
        let server = &small.server;
        ok(
            server,
            "write_file",
            json!({"path": "f", "content": "mounted"}),
        )
        .await;
        assert!(small.run(&["umount", "-l"]));
        std::fs::write(small.join("below"), "below").expect("the directory below");
        let listed = ok(server, "list_folder", json!({"path": "."})).await;
        assert_eq!(names(&listed), ["f"]);
        fails(server, "not_found", "read_file", json!({"path": "below"})).await;
        ok(
            server,
            "write_file",
            json!({"path": "g", "content": "still there"}),
        )
        .await;
        assert!(!small.join("g").exists());
    })
    .await;
}

fn names(listed: &Value) -> Vec<&str> {
    each(&listed["entries"], "name")
}

fn rename(from: &Path, to: &Path) {
    std::fs::rename(from, to).expect("a rename");
}
