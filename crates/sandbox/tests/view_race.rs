//! An attacker swaps directories for links to hidden ones, and moves directories to hidden places and fills them there, as
//! fast as possible, while somebody who sees a part of the root reads, lists, searches and copies.

#![expect(clippy::disallowed_methods, reason = "tests make their own files")]

use std::fs;
use std::io::Read;
use std::io::Write as _;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use rustix::fs::{CWD, RenameFlags, renameat_with};
use sandbox::{Dir, Error, Follow, RelPath, Resolver, Root, View, WalkOptions, Walker};

/// Operations of the whole run, and of the short one.
const ALL: u64 = 200_000;
const FEW: u64 = 4_000;
const WORKERS: u64 = 2;
const SECRET: &[u8] = b"SECRET";
const SECRET_NAME: &str = "secret-name";
const WAYS: [&str; 5] = [
    "pub/dir/sub/file",
    "pub/via/sub/file",
    "pub/dir/../dir/sub/file",
    "pub/moved/sub/file",
    "pub/moved/sub/../sub/file",
];

struct Arena {
    top: PathBuf,
    stop: AtomicBool,
    turns: AtomicU64,
    leaks: AtomicU64,
    done: AtomicU64,
    swaps: AtomicU64,
}

impl Arena {
    fn new(top: &Path) -> Arena {
        for dir in ["pub/dir/sub", "pub/moved/sub", "priv/dir/sub", "priv/stash"] {
            fs::create_dir_all(top.join(dir)).unwrap();
        }
        for file in ["pub/dir/sub/file", "pub/moved/sub/file"] {
            fs::write(top.join(file), "open").unwrap();
        }
        for file in [
            "priv/dir/sub/file",
            "priv/dir/sub/secret-name",
            "priv/stash/file",
            "priv/stash/secret-name",
        ] {
            fs::write(top.join(file), SECRET).unwrap();
        }
        symlink("../priv/dir", top.join("pub/swap")).unwrap();
        symlink("dir", top.join("pub/via")).unwrap();
        Arena {
            top: top.to_owned(),
            stop: AtomicBool::new(false),
            turns: AtomicU64::new(0),
            leaks: AtomicU64::new(0),
            done: AtomicU64::new(0),
            swaps: AtomicU64::new(0),
        }
    }

    /// What is secret is never at a path that exists.
    fn attack(&self) {
        let path = |name: &str| self.top.join(name);
        let exchange = |a: &str, b: &str| {
            renameat_with(CWD, path(a), CWD, path(b), RenameFlags::EXCHANGE).unwrap();
        };
        while !self.stop.load(Relaxed) {
            exchange("pub/dir", "pub/swap");
            fs::rename(path("pub/moved"), path("priv/moved")).unwrap();
            exchange("priv/stash/file", "priv/moved/sub/file");
            fs::rename(
                path("priv/stash/secret-name"),
                path("priv/moved/sub/secret-name"),
            )
            .unwrap();
            exchange("pub/dir", "pub/swap");
            fs::rename(
                path("priv/moved/sub/secret-name"),
                path("priv/stash/secret-name"),
            )
            .unwrap();
            exchange("priv/stash/file", "priv/moved/sub/file");
            fs::rename(path("priv/moved"), path("pub/moved")).unwrap();
            self.swaps.fetch_add(1, Relaxed);
        }
    }

    fn saw(&self, bytes: &[u8]) {
        if bytes.windows(SECRET.len()).any(|window| window == SECRET) {
            self.leaks.fetch_add(1, Relaxed);
        }
    }

    fn saw_name(&self, name: &str) {
        if name == SECRET_NAME {
            self.leaks.fetch_add(1, Relaxed);
        }
    }

    fn list(&self, dir: &Dir) -> Result<(), Error> {
        dir.entries()?
            .iter()
            .for_each(|entry| self.saw_name(&entry.name.shown()));
        Ok(())
    }

    fn operate(&self, root: &Root, turn: u64) -> Result<(), Error> {
        let way = WAYS[(turn / 6) as usize % WAYS.len()];
        let path = RelPath::parse(way)?;
        let mut bytes = Vec::new();
        match turn % 6 {
            0 => drop(root.open_file(&path)?.read_to_end(&mut bytes).unwrap()),
            1 => drop(
                root.locate(&path, Follow::Last)?
                    .open_file()?
                    .read_to_end(&mut bytes)
                    .unwrap(),
            ),
            2 => {
                if let Some(mut file) = root.try_open_inline(&path) {
                    file.read_to_end(&mut bytes).unwrap();
                }
            }
            3 => self.list(
                &root
                    .locate(&RelPath::parse("pub/moved/sub")?, Follow::Last)?
                    .open_dir()?,
            )?,
            4 => self.list(
                &root
                    .locate(&RelPath::parse("pub/dir/sub")?, Follow::Last)?
                    .open_dir()?,
            )?,
            _ => self.walk(root, turn)?,
        }
        self.saw(&bytes);
        Ok(())
    }

    /// As a search does it, or a copy.
    fn walk(&self, root: &Root, turn: u64) -> Result<(), Error> {
        let top = root.locate(&RelPath::root(), Follow::Last)?.open_dir()?;
        let mut walker = Walker::new(top, WalkOptions::default());
        while let Some(item) = walker.next(&mut |_| true) {
            let Ok(item) = item else { continue };
            self.saw_name(&item.name.shown());
            let mut bytes = Vec::new();
            let opened = if turn.is_multiple_of(2) {
                item.dir.open_file(&item.name)
            } else {
                item.dir.open_file_unnamed(&item.name)
            };
            let Ok(mut opened) = opened else { continue };
            opened.read_to_end(&mut bytes).unwrap();
            if turn.is_multiple_of(2) || item.dir.confirm_file(&opened, &item.name).is_ok() {
                self.saw(&bytes);
            }
        }
        Ok(())
    }

    fn fight(&self, root: &Root, operations: u64) {
        std::thread::scope(|scope| {
            let work = || {
                loop {
                    let turn = self.turns.fetch_add(1, Relaxed);
                    if turn >= operations {
                        return;
                    }
                    if self.operate(root, turn).is_ok() {
                        self.done.fetch_add(1, Relaxed);
                    }
                }
            };
            let workers: Vec<_> = (0..WORKERS).map(|_| scope.spawn(work)).collect();
            let attacker = scope.spawn(|| self.attack());
            workers
                .into_iter()
                .for_each(|worker| worker.join().unwrap());
            self.stop.store(true, Relaxed);
            attacker.join().unwrap();
        });
    }
}

#[test]
fn nothing_hidden_is_seen_while_directories_are_swapped() {
    let is_whole = std::env::var_os("SANDBOX_EXHAUSTIVE").is_some();
    let operations = if is_whole { ALL } else { FEW };
    let views = [View::new(&["pub/**"], &[]), View::new(&[], &["priv"])];
    for (view, resolver) in views.into_iter().zip([Resolver::Auto, Resolver::WalkOnly]) {
        let temp = tempfile::tempdir().unwrap();
        let arena = Arena::new(temp.path());
        let root = Root::open_with(temp.path(), resolver).unwrap();
        let root = root.seen_through(Arc::new(view.unwrap().unwrap()));
        arena.fight(&root, operations);
        let (leaks, done, swaps) = (
            arena.leaks.into_inner(),
            arena.done.into_inner(),
            arena.swaps.into_inner(),
        );
        let _ = writeln!(
            std::io::stdout(),
            "{resolver:?}: {operations} operations, {done} succeeded, {swaps} rounds of the attacker, {leaks} leaks"
        );
        assert_eq!(leaks, 0);
        assert!(done > 0 && swaps > 0);
    }
}
