//! An attacker acts before every system call of a walk through directories that did not change for long.

use std::cell::Cell;
use std::fs;
use std::io::Read as _;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use rustix::fs::{CWD, RenameFlags, renameat_with};

use crate::syscall::hook;
use crate::{Follow, RelPath, Root, View, WalkOptions, Walker};

const SECRET: &str = "SECRET";
/// More system calls than such a walk makes.
const MOST_CALLS: usize = 100;
/// Of so many calls one is tried, if not all are.
const TRIED_OF: usize = 3;
/// How many calls later the attacker puts everything back.
const LATER: [usize; 3] = [1, 3, MOST_CALLS];

/// Two steps that are taken back in the other order.
type Attack = [(&'static str, &'static str); 3];

/// Each moves something visible away, and puts secrets into it there.
const ATTACKS: [Attack; 3] = [
    [
        ("pub/outer", "priv/outer"),
        ("priv/stash/secret", "priv/outer/inner/secret"),
        ("priv/stash/file", "priv/outer/inner/file"),
    ],
    [
        ("pub/outer/inner", "priv/inner"),
        ("priv/stash/secret", "priv/inner/secret"),
        ("priv/stash/file", "priv/inner/file"),
    ],
    [
        ("pub/outer", "priv/outer"),
        ("priv/twin", "priv/outer/inner"),
        ("priv/stash/secret", "priv/outer/secret"),
    ],
];

fn make(top: &Path) {
    for dir in [
        "pub/outer/inner",
        "pub/outer/other",
        "priv/stash",
        "priv/twin",
    ] {
        fs::create_dir_all(top.join(dir)).unwrap();
    }
    for file in ["pub/outer/inner/file", "pub/outer/other/file", "pub/last"] {
        fs::write(top.join(file), "open").unwrap();
    }
    for file in ["priv/stash/file", "priv/stash/secret", "priv/twin/secret"] {
        fs::write(top.join(file), SECRET).unwrap();
    }
    symlink("outer", top.join("pub/link")).unwrap();
}

/// Moves, or lets two things change places if both are there.
fn swap(top: &Path, from: &str, to: &str) {
    let (from, to) = (top.join(from), top.join(to));
    let flags = if to.exists() {
        RenameFlags::EXCHANGE
    } else {
        RenameFlags::empty()
    };
    let _ = renameat_with(CWD, &from, CWD, &to, flags);
}

fn strike(top: &Path, attack: &Attack) {
    attack.iter().for_each(|(from, to)| swap(top, from, to));
}

fn take_back(top: &Path, attack: &Attack) {
    let moved = |place: &str| top.join(place).exists();
    for (from, to) in attack.iter().rev() {
        if moved(from) {
            swap(top, from, to);
        } else {
            swap(top, to, from);
        }
    }
}

fn root(top: &Path) -> Root {
    let view = View::new(&["pub/**"], &[]).unwrap().unwrap();
    Root::open(top).unwrap().seen_through(Arc::new(view))
}

/// Everything that a walk tells: the paths, and what the files hold that are where they were found.
fn told(root: &Root) -> String {
    let Ok(top) = root.locate(&RelPath::root(), Follow::Last) else {
        return String::new();
    };
    let Ok(top) = top.open_dir() else {
        return String::new();
    };
    let mut told = String::new();
    let mut walker = Walker::new(top, WalkOptions::default());
    while let Some(item) = walker.next(&mut |_| true) {
        let Ok(item) = item else { continue };
        told += &format!("{}\n", item.path());
        let Ok(mut file) = item.dir.open_file_unnamed(&item.name) else {
            continue;
        };
        let mut text = String::new();
        file.read_to_string(&mut text).unwrap();
        if item.dir.has_all_opened() || item.dir.confirm_file(&file, &item.name).is_ok() {
            told += &text;
        }
    }
    told
}

#[test]
fn what_is_hidden_is_never_told_whenever_directories_are_moved() {
    let temp = tempfile::tempdir().unwrap();
    let is_whole = std::env::var_os("SANDBOX_EXHAUSTIVE").is_some();
    let step = if is_whole { 1 } else { TRIED_OF };
    let mut trials = Vec::new();
    for attack in &ATTACKS {
        for later in LATER {
            for at in (trials.len() % step..MOST_CALLS).step_by(step) {
                let top = temp.path().join(trials.len().to_string());
                make(&top);
                trials.push((top, attack, at, later));
            }
        }
    }
    std::thread::sleep(Duration::from_millis(2_200));
    for (top, attack, at, later) in trials {
        let root = root(&top);
        let calls = Rc::new(Cell::new(0));
        let (counted, place) = (Rc::clone(&calls), top.clone());
        let act = move |_| {
            let now = counted.replace(counted.get() + 1);
            if now == at {
                strike(&place, attack);
            } else if now == at + later {
                take_back(&place, attack);
            }
        };
        let told = hook::with(act, || told(&root));
        assert!(calls.get() < MOST_CALLS, "{} calls", calls.get());
        // By name or by content.
        let is_hidden = !told.to_uppercase().contains(SECRET);
        assert!(is_hidden, "{attack:?} {at} {later}: {told}");
    }
}

#[test]
fn directories_that_did_not_change_are_not_asked_for_one_by_one() {
    let temp = tempfile::tempdir().unwrap();
    make(temp.path());
    for number in 0..40 {
        let dir = temp.path().join(format!("pub/d{number}/e"));
        fs::create_dir_all(&dir).unwrap();
        fs::write(dir.join("file"), "open").unwrap();
    }
    let questions = || {
        let asked = Rc::new(Cell::new(0));
        let counted = Rc::clone(&asked);
        let count = move |call| {
            if call == "readlinkat" {
                counted.set(counted.get() + 1);
            }
        };
        let root = root(temp.path());
        hook::with(count, || {
            let top = root.locate(&RelPath::root(), Follow::Last).unwrap();
            let mut walker = Walker::new(top.open_dir().unwrap(), WalkOptions::default());
            while let Some(item) = walker.next(&mut |_| true) {
                item.unwrap();
            }
        });
        asked.get()
    };
    let at_once = questions();
    assert!(at_once >= 80, "new directories are asked for: {at_once}");
    std::thread::sleep(Duration::from_millis(2_200));
    let top = root(temp.path());
    let top = top
        .locate(&RelPath::root(), Follow::Last)
        .unwrap()
        .open_dir()
        .unwrap();
    if top.list_stamp().is_some() {
        // More only if the machine is so slow that a question is old before the walk is over.
        let settled = questions();
        assert!(settled < 80, "{settled} of {at_once}");
    }
}
