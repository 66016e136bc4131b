//! Somebody swaps open and hidden directories as fast as possible while a client that sees a part of the root works.

use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use rustix::fs::{CWD, RenameFlags, renameat_with};
use testkit::{Setup, Transport, Tree, Value, json};

use crate::harness::machine::share;
use crate::harness::program;

/// What is in hidden files, and how hidden files are called.
const SECRET: &str = "SECRET-OF-RACE";
const SECRET_NAME: &str = "secret-name";
/// How many calls are under way at once.
const AT_ONCE: usize = 32;
/// How many calls there are with everything tried, in each of the two ways to hide.
const OPERATIONS: usize = 200_000;

/// Swaps until it is told to stop.
struct Attacker {
    stop: Arc<AtomicBool>,
    rounds: Arc<AtomicU64>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Attacker {
    fn start(top: PathBuf) -> Attacker {
        let (stop, rounds) = (
            Arc::new(AtomicBool::new(false)),
            Arc::new(AtomicU64::new(0)),
        );
        let (until, counted) = (Arc::clone(&stop), Arc::clone(&rounds));
        let thread = std::thread::spawn(move || {
            while !until.load(Relaxed) {
                attack(&top);
                counted.fetch_add(1, Relaxed);
            }
        });
        Attacker {
            stop,
            rounds,
            thread: Some(thread),
        }
    }

    /// Ends it; tells how many rounds there were.
    fn end(mut self) -> u64 {
        self.stop.store(true, Relaxed);
        let ended = self.thread.take().map(std::thread::JoinHandle::join);
        assert!(
            ended.is_some_and(|ended| ended.is_ok()),
            "the attacker failed"
        );
        self.rounds.load(Relaxed)
    }
}

impl Drop for Attacker {
    fn drop(&mut self) {
        self.stop.store(true, Relaxed);
    }
}

/// One round. What is secret is at no moment at a path that exists for the client.
fn attack(top: &std::path::Path) {
    let path = |name: &str| top.join(name);
    let exchange = |a: &str, b: &str| {
        renameat_with(CWD, path(a), CWD, path(b), RenameFlags::EXCHANGE).expect("they are swapped");
    };
    let rename = |from: &str, to: &str| fs::rename(path(from), path(to)).expect("it is moved");
    // A directory and a link to a hidden one change places.
    exchange("pub/dir", "pub/swap");
    // An open directory goes to a hidden place, is filled there, emptied again and comes back.
    rename("pub/moved", "priv/moved");
    exchange("priv/stash/file", "priv/moved/sub/file");
    rename("priv/stash/secret-name", "priv/moved/sub/secret-name");
    exchange("pub/dir", "pub/swap");
    rename("priv/moved/sub/secret-name", "priv/stash/secret-name");
    exchange("priv/stash/file", "priv/moved/sub/file");
    rename("priv/moved", "pub/moved");
}

/// Fills a root that is fought about.
fn filled(root: Tree) -> Tree {
    root.file("pub/dir/sub/file", "open")
        .file("pub/moved/sub/file", "open")
        .file("pub/still/file", "open")
        .file("priv/dir/sub/file", SECRET)
        .file("priv/dir/sub/secret-name", SECRET)
        .file("priv/stash/file", SECRET)
        .file("priv/stash/secret-name", SECRET)
        .link("pub/swap", "../priv/dir")
        .link("pub/via", "dir")
}

/// The places that are fought about.
const PLACES: [&str; 4] = [
    "pub/dir/sub",
    "pub/via/sub",
    "pub/moved/sub",
    "pub/dir/../moved/sub",
];

/// One call, another each turn.
fn operation(turn: usize) -> (&'static str, Value) {
    let place = PLACES[turn / 10 % PLACES.len()];
    let file = format!("{place}/file");
    let here = |path: &str, more: Value| {
        let mut arguments = json!({"root": "workspace", "path": path});
        let own = arguments.as_object_mut().expect("an object");
        own.extend(more.as_object().cloned().unwrap_or_default());
        arguments
    };
    match turn % 10 {
        0 => ("read_file", here(&file, json!({}))),
        1 => (
            "read_file",
            json!({"root": "workspace", "paths": [file, format!("{place}/secret-name")]}),
        ),
        2 => ("list_folder", here(place, json!({}))),
        3 => ("list_folder", here("pub", json!({"depth": 4}))),
        4 => ("grep", here("pub", json!({"pattern": "SECRET|open"}))),
        5 => ("glob", here("pub", json!({"pattern": "**/*"}))),
        6 => (
            "copy",
            json!({"source_root": "workspace", "dest_root": "workspace",
            "source_path": if turn.is_multiple_of(20) { "pub/moved" } else { place },
            "dest_path": format!("pub/copies/{turn}")}),
        ),
        7 => ("compare", here(place, json!({"other": "pub/still"}))),
        8 => ("hash_file", here(&file, json!({"algorithm": "md5"}))),
        _ => (
            "stat_file",
            here(&format!("{place}/secret-name"), json!({})),
        ),
    }
}

/// Whether a reply tells anything that is hidden. The client says the name of a hidden file itself in some calls, whose
/// replies have to be refusals.
fn leaks(tool: &str, arguments: &Value, is_error: bool, said: &str) -> bool {
    let says_name = arguments.to_string().contains(SECRET_NAME);
    let found = tool == "stat_file" && !is_error;
    // MD5 of the secret.
    let hash = "ff0d5ab642c71f69e2c4f26d4c3e3f9f";
    found
        || said.contains(SECRET)
        || said.contains(hash)
        || (!says_name && said.contains(SECRET_NAME))
}

/// Copies that were made while directories were swapped hold nothing hidden; they are removed.
fn look_at_copies(tree: &Tree) -> usize {
    let copies = tree.join("pub/copies");
    if !copies.exists() {
        return 0;
    }
    let mut found = 0;
    for (path, content) in crate::harness::machine::contents(&copies) {
        let content = String::from_utf8_lossy(&content).into_owned();
        assert!(
            !path.contains(SECRET_NAME) && !content.contains(SECRET),
            "copied: {path}: {content}"
        );
        found += 1;
    }
    fs::remove_dir_all(&copies).expect("copies are removed");
    found
}

/// Lets a client work in a root that somebody else changes.
async fn fight(way: &str, root: Tree, setup: impl FnOnce(&Tree) -> Setup) {
    let tree = filled(root);
    let server = setup(&tree).start(Transport::Stdio).await;
    let attacker = Attacker::start(tree.path().to_owned());
    let (mut done, mut refused, mut copied) = (0_usize, 0_usize, 0_usize);
    let operations = share(OPERATIONS);
    for batch in 0..operations / AT_ONCE {
        let turns = (0..AT_ONCE).map(|number| operation(batch * AT_ONCE + number));
        let calls: Vec<_> = turns
            .map(|(tool, arguments)| (tool, arguments.clone(), server.spawn_call(tool, arguments)))
            .collect();
        for (tool, arguments, call) in calls {
            let outcome = call.await.expect("the call's task ends");
            let said = outcome.whole.to_string();
            assert!(
                !leaks(tool, &arguments, outcome.is_error, &said),
                "{tool} {arguments}: {said}"
            );
            if outcome.is_error {
                refused += 1;
            } else {
                done += 1;
            }
        }
        copied += look_at_copies(&tree);
    }
    let rounds = attacker.end();
    let _ = writeln!(
        std::io::stdout(),
        "{way}: {} calls, {done} done, {refused} refused, {copied} entries copied, {rounds} rounds of the attacker: 0 leaks",
        done + refused
    );
    assert!(done > 0 && refused > 0 && copied > 0 && rounds > 0);
}

/// A server whose one client has only some paths.
fn with_paths(tree: &Tree) -> Setup {
    let mine = json!({"paths": ["pub/**"]});
    let keys = json!({"allowed_tools": ["*"], "history": "off"});
    program()
        .root_with("workspace", tree.path(), keys)
        .set("durability", "fast")
        .set("log.level", "error")
        .set(
            "clients",
            json!([{"name": "stdio", "roots": {"workspace": mine}}]),
        )
}

#[tokio::test(flavor = "multi_thread")]
async fn no_race_tells_what_paths_hide() {
    fight("paths", Tree::in_memory(), with_paths).await;
}

/// On a disk, searches remember what they saw; in memory the kernel's times are too coarse for that.
#[tokio::test(flavor = "multi_thread")]
async fn no_race_on_a_disk_tells_what_paths_hide() {
    fight("paths, on a disk", Tree::new(), with_paths).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_race_tells_what_is_denied() {
    fight("deny", Tree::in_memory(), |tree| {
        let keys = json!({"allowed_tools": ["*"], "history": "off", "deny": ["priv"]});
        program()
            .root_with("workspace", tree.path(), keys)
            .set("durability", "fast")
            .set("log.level", "error")
    })
    .await;
}
