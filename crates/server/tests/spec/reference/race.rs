//! Somebody swaps directories and files for links to outside as fast as possible while a client works.

use std::io::Write as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use rustix::fs::{CWD, RenameFlags, renameat_with};
use testkit::{Transport, Tree, Value, json};

use super::Reference;
use crate::harness::machine::share;

const SECRET: &str = "SECRET";
/// How many calls are under way at once.
const AT_ONCE: usize = 32;
/// How many calls there are with everything tried.
const OPERATIONS: usize = 200_000;

/// Swaps until it is told to stop.
struct Attacker {
    stop: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Attacker {
    fn start(pairs: Vec<(PathBuf, PathBuf)>) -> Attacker {
        let stop = Arc::new(AtomicBool::new(false));
        let until = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            while !until.load(Relaxed) {
                for (real, link) in &pairs {
                    // A write may replace one of them at this moment.
                    let _ = renameat_with(CWD, real, CWD, link, RenameFlags::EXCHANGE);
                }
            }
        });
        Attacker {
            stop,
            thread: Some(thread),
        }
    }
}

impl Drop for Attacker {
    fn drop(&mut self) {
        self.stop.store(true, Relaxed);
        let _ = self.thread.take().map(std::thread::JoinHandle::join);
    }
}

/// One call, another each turn.
fn operation(turn: usize) -> (&'static str, Value) {
    let own = turn % 7;
    match turn % 10 {
        0 | 1 => ("read_text_file", json!({"path": "dir/sub/file"})),
        2 => ("read_text_file", json!({"path": "files/file", "tail": 1})),
        3 => (
            "read_multiple_files",
            json!({"paths": ["dir/sub/file", "files/file"]}),
        ),
        4 => (
            "write_file",
            json!({"path": format!("dir/sub/new{own}"), "content": "inside"}),
        ),
        5 => ("list_directory", json!({"path": "dir/sub"})),
        6 => ("search_files", json!({"path": "dir", "pattern": "**"})),
        7 => (
            "edit_file",
            json!({"path": "files/edited", "edits": [{"oldText": "inside", "newText": "inside"}]}),
        ),
        8 => (
            "create_directory",
            json!({"path": format!("dir/sub/made{own}")}),
        ),
        _ => (
            "move_file",
            json!({"source": format!("dir/sub/new{own}"), "destination": format!("dir/sub/moved{turn}")}),
        ),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn reference_no_race_leads_out() {
    let outside = Tree::new()
        .file("sub/file", SECRET)
        .file("sub/secret-name", SECRET)
        .file("sub/edited", SECRET);
    let inside = Tree::new()
        .file("dir/sub/file", "inside")
        .file("files/file", "inside")
        .file("files/edited", "inside")
        .link("swap", outside.path())
        .link("files/swap", outside.join("sub/file"))
        .link("files/other", outside.join("sub/edited"));
    let pairs = [
        ("dir", "swap"),
        ("files/file", "files/swap"),
        ("files/edited", "files/other"),
    ];
    let pairs = pairs.map(|(real, link)| (inside.join(real), inside.join(link)));
    let before = outside.listing();
    let reference = Reference::start(vec![inside], Transport::Stdio).await;
    let attacker = Attacker::start(pairs.to_vec());
    let (mut done, mut refused) = (0_usize, 0_usize);
    let operations = share(OPERATIONS);
    for batch in 0..operations / AT_ONCE {
        let turns = (0..AT_ONCE).map(|number| operation(batch * AT_ONCE + number));
        let calls: Vec<_> = turns
            .map(|(tool, arguments)| reference.server.spawn_call(tool, arguments))
            .collect();
        for call in calls {
            let outcome = call.await.expect("the call's task ends");
            let said = outcome.whole.to_string();
            assert!(
                !said.contains(SECRET) && !said.contains("secret-name"),
                "{said}"
            );
            if outcome.is_error {
                refused += 1;
            } else {
                done += 1;
            }
        }
    }
    drop(attacker);
    assert_eq!(outside.listing(), before, "something was written outside");
    let _ = writeln!(
        std::io::stdout(),
        "{done} calls done and {refused} refused while links were swapped: 0 led out"
    );
    assert!(done > 0 && refused > 0, "{done} done, {refused} refused");
}
