//! An attacker swaps directories and files for links to outside as fast as possible while others work.

use std::fs;
use std::io::Read;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use rustix::fs::{CWD, RenameFlags, renameat_with};
use sandbox::{Dir, Error, OnExisting, OnFault, Parents, RelPath, Root, WalkOptions, Walker};
use tempfile::TempDir;

use crate::support::{RESOLVERS, change, fresh_dir, locate, locate_itself, rename_as, write};
use crate::{read, snapshot};

/// Operations in all, over every means of look-up.
const OPERATIONS: u64 = 102_000;
const WORKERS: u64 = 2;
/// How long the naive way may take to be caught.
const PATIENCE: Duration = Duration::from_secs(60);
const SECRET: &[u8] = b"SECRET";
const SECRET_NAME: &str = "secret-name";
/// Ways to the same file, each through something the attacker swaps.
const SPELLINGS: [&str; 6] = [
    "dir/sub/file",
    "dir/../dir/sub/file",
    "via/sub/file",
    "dir/sub/../sub/file",
    "absolute/sub/file",
    "files/file",
];

/// A root under attack, and what happened in it.
struct Arena {
    temp: TempDir,
    stop: AtomicBool,
    turns: AtomicU64,
    escapes: AtomicU64,
    done: AtomicU64,
    refused: AtomicU64,
}

impl Arena {
    fn new() -> Arena {
        let temp = fresh_dir();
        let path = |name: &str| temp.path().join(name);
        for dir in ["inside/dir/sub", "inside/files", "outside/sub"] {
            fs::create_dir_all(path(dir)).unwrap();
        }
        for file in ["inside/dir/sub/file", "inside/files/file"] {
            fs::write(path(file), "inside").unwrap();
        }
        for file in [
            "outside/sub/file",
            "outside/secret-name",
            "outside/sub/secret-name",
        ] {
            fs::write(path(file), SECRET).unwrap();
        }
        symlink(path("outside"), path("inside/swap")).unwrap();
        symlink(path("outside/sub/file"), path("inside/files/swap")).unwrap();
        symlink("dir", path("inside/via")).unwrap();
        symlink(path("inside/dir"), path("inside/absolute")).unwrap();
        Arena {
            temp,
            stop: AtomicBool::new(false),
            turns: AtomicU64::new(0),
            escapes: AtomicU64::new(0),
            done: AtomicU64::new(0),
            refused: AtomicU64::new(0),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.temp.path().join(name)
    }

    /// Lets the attacker and the workers loose until enough turns are taken.
    fn fight(&self, enough: impl Fn(u64) -> bool + Sync, work: impl Fn(u64) + Sync) {
        std::thread::scope(|scope| {
            let workers: Vec<_> = (0..WORKERS)
                .map(|_| scope.spawn(|| self.work(&enough, &work)))
                .collect();
            let attacker = scope.spawn(|| self.attack());
            let ends: Vec<_> = workers.into_iter().map(|worker| worker.join()).collect();
            self.stop.store(true, Relaxed);
            attacker.join().unwrap();
            ends.into_iter().for_each(Result::unwrap);
        });
    }

    fn work(&self, enough: &impl Fn(u64) -> bool, work: &impl Fn(u64)) {
        loop {
            let turn = self.turns.fetch_add(1, Relaxed);
            if enough(turn) {
                return;
            }
            work(turn);
        }
    }

    fn attack(&self) {
        let pairs = [
            (self.path("inside/dir"), self.path("inside/swap")),
            (
                self.path("inside/files/file"),
                self.path("inside/files/swap"),
            ),
        ];
        while !self.stop.load(Relaxed) {
            for (real, link) in &pairs {
                renameat_with(CWD, real, CWD, link, RenameFlags::EXCHANGE).unwrap();
            }
        }
    }

    fn saw(&self, bytes: &[u8]) {
        if bytes.windows(SECRET.len()).any(|window| window == SECRET) {
            self.escapes.fetch_add(1, Relaxed);
        }
    }

    fn listed(&self, dir: &Dir) -> Result<(), Error> {
        for entry in dir.entries()? {
            self.saw_name(&entry.name.shown());
        }
        Ok(())
    }

    fn saw_name(&self, name: &str) {
        if name == SECRET_NAME {
            self.escapes.fetch_add(1, Relaxed);
        }
    }

    fn count(&self, result: Result<(), Error>) {
        match result {
            Ok(()) => self.done.fetch_add(1, Relaxed),
            Err(_) => self.refused.fetch_add(1, Relaxed),
        };
    }

    /// One operation, another each turn.
    fn operate(&self, root: &Root, turn: u64) -> Result<(), Error> {
        let own = |dir: &str| format!("{dir}{}", turn / 13 % 7);
        match turn % 13 {
            0 | 1 => {
                let path = SPELLINGS[(turn / 13) as usize % SPELLINGS.len()];
                self.saw(&read(root, path)?);
            }
            2 => self.listed(&locate(root, "dir")?.open_dir()?)?,
            3 => self.listed(&locate(root, "via/sub")?.open_dir()?)?,
            4 => write(root, &own("dir/new"), b"new")?,
            5 => write(root, "dir/sub/file", b"replaced")?,
            6 => {
                let to = locate_itself(root, &own("dir/sub/moved"))?;
                rename_as(
                    &locate_itself(root, &own("dir/new"))?,
                    &to,
                    OnExisting::Replace,
                )?;
            }
            7 => change().unlink(&locate_itself(root, &own("dir/sub/moved"))?)?,
            8 => write(root, &own("dir/tree/a/b/c"), b"deep")?,
            9 => {
                let tree = locate_itself(root, "dir/tree")?;
                change().remove_tree(&tree, &|| false, OnFault::Collect, &|_| {})?;
            }
            10 => self.walk(root)?,
            11 => {
                let log = locate(root, "dir/sub/log")?;
                change().append(&log, b"line\n", Parents::Require)?;
                change().unlink(&locate_itself(root, "dir/sub/log")?)?;
            }
            _ => {
                let path = RelPath::parse("dir/sub/file")?;
                let mut bytes = Vec::new();
                root.open_file(&path)?.read_to_end(&mut bytes).unwrap();
                self.saw(&bytes);
            }
        }
        Ok(())
    }

    fn walk(&self, root: &Root) -> Result<(), Error> {
        let top = locate(root, "")?.open_dir()?;
        let mut walker = Walker::new(top, WalkOptions::default());
        while let Some(item) = walker.next(&mut |_| true) {
            let Ok(item) = item else { continue };
            self.saw_name(&item.name.shown());
            if let Ok(mut opened) = item.dir.open_file(&item.name) {
                let mut bytes = Vec::new();
                opened.read_to_end(&mut bytes).unwrap();
                self.saw(&bytes);
            }
        }
        Ok(())
    }
}

#[test]
fn nothing_escapes_while_directories_are_swapped() {
    for resolver in RESOLVERS {
        let arena = Arena::new();
        let before = snapshot(&arena.path("outside"));
        let root = Root::open_with(&arena.path("inside"), resolver).unwrap();
        let share = OPERATIONS / RESOLVERS.len() as u64;
        arena.fight(
            |turn| turn >= share,
            |turn| arena.count(arena.operate(&root, turn)),
        );
        assert_eq!(arena.escapes.load(Relaxed), 0, "{resolver:?}");
        assert_eq!(snapshot(&arena.path("outside")), before, "{resolver:?}");
        let (done, refused) = (arena.done.load(Relaxed), arena.refused.load(Relaxed));
        assert_eq!(done + refused, share);
        assert!(
            done > 0 && refused > 0,
            "no race: {done} done, {refused} refused"
        );
    }
}

/// What confinement by path strings does: makes the path canonical, compares, opens.
fn read_naively(inside: &Path, path: &str) -> Option<Vec<u8>> {
    let real = fs::canonicalize(inside.join(path)).ok()?;
    real.starts_with(inside).then(|| fs::read(real).ok())?
}

#[test]
fn the_same_race_catches_paths_checked_and_then_opened() {
    let arena = Arena::new();
    let inside = fs::canonicalize(arena.path("inside")).unwrap();
    let began = Instant::now();
    let caught = |_| arena.escapes.load(Relaxed) > 0 || began.elapsed() > PATIENCE;
    arena.fight(caught, |turn| {
        let path = SPELLINGS[turn as usize % SPELLINGS.len()];
        arena.saw(&read_naively(&inside, path).unwrap_or_default());
    });
    assert!(
        arena.escapes.load(Relaxed) > 0,
        "the race would not catch an escape"
    );
}
