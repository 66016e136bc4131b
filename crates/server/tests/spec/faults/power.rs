//! The power fails: what was confirmed is on disk, and every file is the old or the new one, whole.
//!
//! A file system on a loop device is told to stop at once and to write nothing more, not even its journal, as a machine
//! without power does.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use testkit::{Transport, Tree, json};

use crate::harness::machine::{
    Chance, Client, confirmed, left_out, said, share, succeeds, temporary_names,
};
use crate::harness::program;

const CUTS: usize = 100;
/// The earliest and the latest cut after the work began.
const EARLIEST_MILLISECONDS: u64 = 20;
const LATEST_MILLISECONDS: u64 = 700;
/// `EXT4_IOC_SHUTDOWN` without a flush of the journal.
const CUT: &str = "import fcntl,os,struct,sys
fcntl.ioctl(os.open(sys.argv[1],os.O_RDONLY),0x8004587d,struct.pack('I',2))";

/// A file system of its own in a file, mounted while it is needed.
struct Disk {
    files: Tree,
}

impl Disk {
    /// Makes and mounts one; `None` if that is not allowed.
    fn new() -> Option<Disk> {
        let disk = Disk {
            files: Tree::in_memory().sparse("image", 96 << 20).dir("mount"),
        };
        let format = Command::new("mkfs.ext4")
            .args(["-q", "-F"])
            .arg(disk.image())
            .output();
        let is_made = format.is_ok_and(|output| output.status.success());
        (is_made && disk.mount()).then_some(disk)
    }

    fn image(&self) -> PathBuf {
        self.files.join("image")
    }

    fn top(&self) -> PathBuf {
        self.files.join("mount")
    }

    fn mount(&self) -> bool {
        succeeds(
            Command::new("mount")
                .args(["-o", "loop"])
                .arg(self.image())
                .arg(self.top()),
        )
    }

    fn cut_power(&self) -> bool {
        succeeds(Command::new("python3").args(["-c", CUT]).arg(self.top()))
    }

    fn unmount(&self) -> bool {
        succeeds(Command::new("umount").arg(self.top()))
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").args(["-l"]).arg(self.top()).output();
    }
}

/// The content of a version, of a length that nobody mistakes for another's.
fn content(name: &str, version: usize) -> String {
    format!("{name} {version}\n").repeat(200 + 37 * (version % 40))
}

/// The last version that was confirmed, and the last that was tried.
#[derive(Default, Clone, Copy)]
struct Versions {
    confirmed: Option<usize>,
    tried: usize,
}

/// Writes a file again and again.
async fn rewrite(client: Client, name: &'static str) -> Versions {
    let mut versions = Versions::default();
    for version in 0.. {
        versions.tried = version;
        let write = json!({"path": name, "content": content(name, version)});
        if !confirmed(&client, "write_file", write).await {
            break;
        }
        versions.confirmed = Some(version);
    }
    versions
}

/// Makes files and removes every second one; tells which have to be there and which not.
async fn make_and_remove(client: Client) -> (Vec<usize>, Vec<usize>) {
    let (mut there, mut gone) = (Vec::new(), Vec::new());
    for number in 0.. {
        let path = format!("many/{number}");
        let write = json!({"path": path, "content": content("many", number)});
        if !confirmed(&client, "write_file", write).await {
            break;
        }
        if number % 2 == 0 {
            there.push(number);
            continue;
        }
        if !confirmed(&client, "remove_file", json!({"path": path})).await {
            break;
        }
        gone.push(number);
    }
    (there, gone)
}

const MERGED: usize = 12;

/// Copies one tree and then the other over the same directory, again and again.
async fn merge(client: Client) -> Versions {
    let mut versions = Versions::default();
    for round in 0.. {
        versions.tried = round;
        let source = format!("side{}/merged", round % 2);
        let copy = json!({"source_root": "memory", "source_path": source, "dest_path": "both"});
        if !confirmed(&client, "copy", copy).await {
            break;
        }
        versions.confirmed = Some(round);
    }
    versions
}

/// Moves trees from another file system to the disk; tells how many arrived.
async fn move_in(client: Client) -> Versions {
    let mut versions = Versions::default();
    for number in 0..TREES {
        versions.tried = number;
        let name = format!("tree{number}");
        let to = json!({"source_root": "memory", "source_path": name, "dest_path": name});
        if !confirmed(&client, "move", to).await {
            break;
        }
        versions.confirmed = Some(number);
    }
    versions
}

const TREES: usize = 60;
const TREE_FILES: usize = 6;

/// The trees that are copied and moved to the disk.
fn sources() -> Tree {
    let tree = (0..MERGED).fold(Tree::in_memory(), |tree, file| {
        tree.file(format!("side0/merged/{file}"), content("side0", file))
            .file(format!("side1/merged/{file}"), content("side1", file + 3))
    });
    (0..TREES * TREE_FILES).fold(tree, |tree, number| {
        let path = format!("tree{}/d/{}", number / TREE_FILES, number % TREE_FILES);
        tree.file(path, content("tree", number % TREE_FILES))
    })
}

/// What went wrong, in words.
#[derive(Default)]
struct Damage {
    lost: Vec<String>,
    broken: Vec<String>,
    confirmed: usize,
}

impl Damage {
    /// Checks a file that was rewritten: its version is one from the last confirmed to the last tried.
    fn check_versions(&mut self, top: &Path, name: &str, versions: Versions) {
        self.confirmed += versions.confirmed.map_or(0, |last| last + 1);
        let first = versions.confirmed.unwrap_or(0);
        match std::fs::read_to_string(top.join(name)) {
            Ok(text) if (first..=versions.tried).any(|version| text == content(name, version)) => {}
            Ok(text) if text.starts_with(&format!("{name} ")) && is_whole(&text) => {
                self.lost
                    .push(format!("{name}: {:?} after {first}", text.lines().next()));
            }
            Ok(text) => self.broken.push(format!("{name}: {} bytes", text.len())),
            Err(error) if versions.confirmed.is_some() => {
                self.lost.push(format!("{name}: {error}"))
            }
            Err(_) => {}
        }
    }

    fn check_many(&mut self, top: &Path, there: &[usize], gone: &[usize]) {
        self.confirmed += there.len() + 2 * gone.len();
        for number in there {
            let found = std::fs::read_to_string(top.join(format!("many/{number}")));
            if found.ok() != Some(content("many", *number)) {
                self.lost.push(format!("many/{number}"));
            }
        }
        for number in gone {
            if top.join(format!("many/{number}")).exists() {
                self.lost.push(format!("many/{number} is back"));
            }
        }
    }

    fn check_merged(&mut self, top: &Path, versions: Versions) {
        self.confirmed += versions.confirmed.map_or(0, |last| last + 1);
        let side = |round: usize, file: usize| match round % 2 {
            0 => content("side0", file),
            _ => content("side1", file + 3),
        };
        for file in 0..MERGED {
            let path = format!("both/merged/{file}");
            let found = std::fs::read_to_string(top.join(&path)).ok();
            let is = |round: usize| found.as_ref() == Some(&side(round, file));
            let is_known = is(0) || is(1);
            match versions.confirmed {
                _ if found.is_some() && !is_known => self.broken.push(path),
                Some(last) if !is(last) && (versions.tried == last || !is(versions.tried)) => {
                    self.lost.push(path);
                }
                _ => {}
            }
        }
    }

    fn check_moved(&mut self, top: &Path, memory: &Tree, versions: Versions) {
        self.confirmed += versions.confirmed.map_or(0, |last| last + 1);
        let whole = |top: &Path, number: usize| {
            (0..TREE_FILES).all(|file| {
                let path = top.join(format!("tree{number}/d/{file}"));
                std::fs::read_to_string(path).ok() == Some(content("tree", file))
            })
        };
        for number in 0..=versions.tried {
            let arrived = whole(top, number);
            if versions.confirmed.is_some_and(|last| number <= last) {
                if !arrived {
                    self.lost.push(format!("tree{number}"));
                }
            } else if !arrived && !whole(memory.path(), number) {
                self.broken.push(format!("tree{number} is nowhere whole"));
            }
        }
    }
}

fn is_whole(text: &str) -> bool {
    let mut lines = text.lines();
    let first = lines.next();
    text.ends_with('\n') && lines.all(|line| Some(line) == first)
}

/// One cut: work until the power fails, then look what is on disk.
async fn cut_once(disk: &Disk, moment: Duration) -> Damage {
    let memory = sources();
    let setup = program()
        .root("workspace", &disk.top())
        .root("memory", memory.path())
        .set("log.level", "error");
    let server = setup.clone().start(Transport::Stdio).await;
    std::fs::create_dir_all(disk.top().join("both")).expect("a directory");
    let client = || server.client().clone();
    let first = tokio::spawn(rewrite(client(), "first"));
    let second = tokio::spawn(rewrite(client(), "second"));
    let many = tokio::spawn(make_and_remove(client()));
    let merged = tokio::spawn(merge(client()));
    let moved = tokio::spawn(move_in(client()));
    tokio::time::sleep(moment).await;
    assert!(disk.cut_power(), "the file system cannot be stopped");
    let (first, second) = (
        first.await.expect("it ends"),
        second.await.expect("it ends"),
    );
    let (there, gone) = many.await.expect("it ends");
    let (merged, moved) = (
        merged.await.expect("it ends"),
        moved.await.expect("it ends"),
    );
    server.kill().await;
    assert!(
        disk.unmount() && disk.mount(),
        "the file system does not come back"
    );
    let mut damage = Damage::default();
    let top = disk.top();
    damage.check_versions(&top, "first", first);
    damage.check_versions(&top, "second", second);
    damage.check_many(&top, &there, &gone);
    damage.check_merged(&top, merged);
    damage.check_moved(&top, &memory, moved);
    let server = setup.start(Transport::Stdio).await;
    let clean = crate::harness::becomes(async || temporary_names(&top).is_empty()).await;
    server.kill().await;
    assert!(clean, "leftovers stay: {:?}", temporary_names(&top));
    damage
}

/// Removes what a round left, so that the next cut does not bring it back.
fn empty(top: &Path) {
    for entry in std::fs::read_dir(top).expect("a directory").flatten() {
        let path = entry.path();
        if path.is_dir() {
            std::fs::remove_dir_all(path).expect("a directory");
        } else {
            std::fs::remove_file(path).expect("a file");
        }
    }
    assert!(succeeds(Command::new("sync").arg("-f").arg(top)));
}

#[tokio::test]
async fn faults_a_power_cut_loses_nothing_that_was_confirmed() {
    let Some(disk) = Disk::new() else {
        return left_out("a file system on a loop device is not allowed here");
    };
    let mut chance = Chance::new(9);
    let mut all = Damage::default();
    for _ in 0..share(CUTS) {
        let spread = LATEST_MILLISECONDS - EARLIEST_MILLISECONDS;
        let moment = EARLIEST_MILLISECONDS + chance.below(spread);
        let damage = cut_once(&disk, Duration::from_millis(moment)).await;
        all.confirmed += damage.confirmed;
        all.lost.extend(damage.lost);
        all.broken.extend(damage.broken);
        empty(&disk.top());
    }
    said(&format!(
        "{} power cuts, {} changes confirmed: {} lost, {} files neither old nor new",
        share(CUTS),
        all.confirmed,
        all.lost.len(),
        all.broken.len()
    ));
    assert!(all.lost.is_empty(), "{:?}", all.lost);
    assert!(all.broken.is_empty(), "{:?}", all.broken);
    assert!(
        all.confirmed > 0,
        "nothing was ever confirmed: the test shows nothing"
    );
}
