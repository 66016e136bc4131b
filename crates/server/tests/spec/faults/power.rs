//! The power fails: what was confirmed is on disk, and every file is the old or the new one, whole.
//!
//! A file system on a loop device is told to stop at once and to write nothing more, not even its journal, as a machine
//! without power does.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use testkit::{Transport, Tree, Value, json};

use crate::harness::machine::{
    Chance, Client, answered, confirmed, left_out, said, share, succeeds, temporary_names,
};
use crate::harness::{becomes, program};

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
#[derive(Debug, Default, Clone, Copy)]
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

/// Makes directories; tells how many have to be there.
async fn make_directories(client: Client) -> usize {
    let mut made = 0;
    loop {
        let path = json!({"path": directory(made)});
        if !confirmed(&client, "create_folder", path).await {
            return made;
        }
        made += 1;
    }
}

fn directory(number: usize) -> String {
    format!("made/{number}/deep")
}

const TURNED: usize = 4;

/// Writes files and undoes that, again and again: then they are of version 0 again.
async fn write_and_undo(client: Client) -> Versions {
    let mut versions = Versions::default();
    for version in 0.. {
        versions.tried = version;
        let files: Vec<Value> = (0..TURNED)
            .map(|file| json!({"path": turned(file), "content": content("turned", version)}))
            .collect();
        let written = answered(&client, "write_file", json!({"files": files})).await;
        let Some(written) = written else { break };
        versions.confirmed = Some(version);
        if version == 0 {
            continue;
        }
        versions.tried = 0;
        let undo = json!({"change": written["change"]});
        if !confirmed(&client, "undo", undo).await {
            break;
        }
        versions.confirmed = Some(0);
    }
    versions
}

fn turned(file: usize) -> String {
    format!("turned/{file}")
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

    fn check_directories(&mut self, top: &Path, made: usize) {
        self.confirmed += made;
        let paths = (0..made).map(directory);
        self.lost
            .extend(paths.filter(|path| !top.join(path).is_dir()));
    }

    /// Checks files that are written and taken back together.
    fn check_turned(&mut self, top: &Path, versions: Versions) {
        let Some(last) = versions.confirmed else {
            return;
        };
        self.confirmed += 1;
        let known = [last, versions.tried].map(|version| content("turned", version));
        for path in (0..TURNED).map(turned) {
            match std::fs::read_to_string(top.join(&path)) {
                Ok(text) if known.contains(&text) => {}
                Ok(text) if is_whole(&text) => {
                    let found = text.lines().next();
                    self.lost
                        .push(format!("{path}: {found:?}, and not {versions:?}"));
                }
                Ok(text) => self.broken.push(format!("{path}: {} bytes", text.len())),
                Err(error) => self.lost.push(format!("{path}: {error}")),
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

/// What all of them did.
struct Work {
    first: Versions,
    second: Versions,
    many: (Vec<usize>, Vec<usize>),
    merged: Versions,
    moved: Versions,
    directories: usize,
    turned: Versions,
}

impl Work {
    /// Works until the power fails.
    async fn until(client: impl Fn() -> Client, cut: impl Future<Output = ()>) -> Work {
        let first = tokio::spawn(rewrite(client(), "first"));
        let second = tokio::spawn(rewrite(client(), "second"));
        let many = tokio::spawn(make_and_remove(client()));
        let merged = tokio::spawn(merge(client()));
        let moved = tokio::spawn(move_in(client()));
        let directories = tokio::spawn(make_directories(client()));
        let turned = tokio::spawn(write_and_undo(client()));
        cut.await;
        Work {
            first: first.await.expect("it ends"),
            second: second.await.expect("it ends"),
            many: many.await.expect("it ends"),
            merged: merged.await.expect("it ends"),
            moved: moved.await.expect("it ends"),
            directories: directories.await.expect("it ends"),
            turned: turned.await.expect("it ends"),
        }
    }

    fn damage(&self, top: &Path, memory: &Tree) -> Damage {
        let mut damage = Damage::default();
        damage.check_versions(top, "first", self.first);
        damage.check_versions(top, "second", self.second);
        damage.check_many(top, &self.many.0, &self.many.1);
        damage.check_merged(top, self.merged);
        damage.check_moved(top, memory, self.moved);
        damage.check_directories(top, self.directories);
        damage.check_turned(top, self.turned);
        damage
    }
}

/// One cut: work until the power fails, then look what is on disk, and what a server makes of it that starts then.
async fn cut_once(disk: &Disk, moment: Duration) -> Damage {
    let memory = sources();
    let setup = program()
        .root("workspace", &disk.top())
        .root("memory", memory.path())
        .set("log.level", "error");
    let server = setup.clone().start(Transport::Stdio).await;
    std::fs::create_dir_all(disk.top().join("both")).expect("a directory");
    let cut = async {
        tokio::time::sleep(moment).await;
        assert!(disk.cut_power(), "the file system cannot be stopped");
    };
    let work = Work::until(|| server.client().clone(), cut).await;
    server.kill().await;
    assert!(
        disk.unmount() && disk.mount(),
        "the file system does not come back"
    );
    let top = disk.top();
    let mut damage = work.damage(&top, &memory);
    let server = setup.start(Transport::Stdio).await;
    let clean = becomes(async || temporary_names(&top).is_empty()).await;
    assert!(clean, "leftovers stay: {:?}", temporary_names(&top));
    let settled = work.damage(&top, &memory);
    server.kill().await;
    let after = |what: Vec<String>| what.into_iter().map(|what| format!("settled: {what}"));
    damage.lost.extend(after(settled.lost));
    damage.broken.extend(after(settled.broken));
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
