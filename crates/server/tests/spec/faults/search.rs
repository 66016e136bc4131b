//! Searches that remember, beside the same server that does not: the replies are equal byte for byte, whatever happens to the
//! files in between.

use std::fs::{File, FileTimes};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use lease::mapping::MappedFile;
use testkit::{Server, Setup, Transport, Tree, Value, json};

use crate::harness::ToolSet;
use crate::harness::machine::{Chance, call, left_out, may_mount, ok, said, share, succeeds};
use crate::workspace::Workspace;

/// How many searches are compared, and how many files they have to leave unopened together.
const SEARCHES: usize = 5_000;
const EXCLUSIONS: usize = 200_000;
const DIRECTORIES: u64 = 12;
const FILES: u64 = 40;
/// How many directories have a file that is searched and learned in pieces, and how many lines of few words it has.
const LARGE: u64 = 2;
const LARGE_LINES: usize = 60_000;
/// How long until files that were just made are remembered.
const SETTLED: Duration = Duration::from_millis(2_200);
/// How many searches learn every file.
const LESSONS: usize = 10;

const SYLLABLES: [&str; 16] = [
    "ba", "ki", "do", "sul", "re", "mik", "tor", "na", "Vel", "o", "pra", "ges", "lin", "u", "fam",
    "xi",
];

fn word(chance: &mut Chance) -> String {
    let mut part = || SYLLABLES[chance.below(16) as usize];
    [part(), part(), part(), part()].concat()
}

fn text(chance: &mut Chance) -> String {
    let lines = 3 + chance.below(12);
    (0..lines)
        .map(|_| format!("{} {} {}\n", word(chance), word(chance), word(chance)))
        .collect()
}

/// Lines of few words, so that most searches find nothing in them.
fn large_text(chance: &mut Chance) -> String {
    let words: Vec<String> = (0..12).map(|_| word(chance)).collect();
    let line = |number: usize| {
        let word = |step: usize| words[number * step % words.len()].as_str();
        format!("{} {} {}\n", word(1), word(5), word(7))
    };
    (0..LARGE_LINES).map(line).collect()
}

/// Somebody who changes files in every way there is, and keeps some open and some mapped.
struct Writer {
    root: PathBuf,
    beside: PathBuf,
    chance: Chance,
    mapped: Vec<MappedFile>,
    open: Vec<File>,
    made: u64,
}

impl Writer {
    fn new(root: &Path, beside: &Path, seed: u64) -> Writer {
        Writer {
            root: root.to_owned(),
            beside: beside.to_owned(),
            chance: Chance::new(seed),
            mapped: Vec::new(),
            open: Vec::new(),
            made: 0,
        }
    }

    fn fill(&mut self) {
        for number in 0..DIRECTORIES * FILES {
            let directory = self.root.join(format!("d{}", number % DIRECTORIES));
            std::fs::create_dir_all(&directory).unwrap();
            let content = text(&mut self.chance);
            std::fs::write(
                directory.join(format!("f{}", number / DIRECTORIES)),
                content,
            )
            .unwrap();
        }
        for number in 0..LARGE {
            let large = self.root.join(format!("d{number}/large"));
            std::fs::write(large, large_text(&mut self.chance)).unwrap();
        }
    }

    /// The same path, or now and then that of a large file.
    fn or_large(&mut self, path: &Path) -> PathBuf {
        if self.chance.below(8) > 0 {
            return path.to_owned();
        }
        let directory = self.chance.below(DIRECTORIES);
        self.root.join(format!("d{directory}/large"))
    }

    /// A path that may be a file, a directory, or nothing by now.
    fn some(&mut self) -> PathBuf {
        let directory = self.chance.below(DIRECTORIES);
        let file = self.chance.below(FILES);
        self.root.join(format!("d{directory}/f{file}"))
    }

    fn fresh(&mut self) -> PathBuf {
        self.made += 1;
        self.beside.join(format!("new{}", self.made))
    }

    /// Makes one change; one that is not possible just now is none.
    fn act(&mut self) {
        let path = self.some();
        let content = text(&mut self.chance);
        let _ = match self.chance.below(16) {
            0 => std::fs::write(&path, content),
            1 | 2 => self.replace(&path, &content),
            3 => self.swap(&path),
            4 => self.through_a_link(&path),
            5 | 6 => self.map(&path),
            7..=9 => self.store(),
            10 => self.set_back(&path),
            11 => self.rename_directory(),
            12 => self.append(&path, &content),
            13 => std::fs::remove_file(&path).and_then(|()| std::fs::write(&path, content)),
            14 => self.turn(&path, &content),
            _ => {
                self.mapped.truncate(4);
                self.open.truncate(2);
                Ok(())
            }
        };
    }

    fn replace(&mut self, path: &Path, content: &str) -> std::io::Result<()> {
        let fresh = self.fresh();
        std::fs::write(&fresh, content)?;
        std::fs::rename(&fresh, path)
    }

    fn swap(&mut self, path: &Path) -> std::io::Result<()> {
        let (other, aside) = (self.some(), self.fresh());
        std::fs::rename(path, &aside)?;
        std::fs::rename(&other, path)?;
        std::fs::rename(&aside, &other)
    }

    fn through_a_link(&mut self, path: &Path) -> std::io::Result<()> {
        let path = &self.or_large(path);
        let second = self.fresh();
        std::fs::hard_link(path, &second)?;
        self.write_into(&second)
    }

    /// Puts a word into a file that keeps its size.
    fn write_into(&mut self, path: &Path) -> std::io::Result<()> {
        use std::os::unix::fs::FileExt as _;
        let file = File::options().write(true).open(path)?;
        let place = self
            .chance
            .below(file.metadata()?.len().saturating_sub(16).max(1));
        file.write_all_at(word(&mut self.chance).as_bytes(), place)
    }

    fn map(&mut self, path: &Path) -> std::io::Result<()> {
        let path = &self.or_large(path);
        let mapped = MappedFile::open(path)?;
        let _ = mapped.load(0);
        self.mapped.insert(0, mapped);
        self.mapped.truncate(12);
        Ok(())
    }

    fn store(&mut self) -> std::io::Result<()> {
        let word = word(&mut self.chance);
        let at = self.chance.below(12) as usize;
        if let Some(mapped) = self.mapped.get_mut(at) {
            let room = mapped.length().saturating_sub(word.len());
            let place = self.chance.below(room.max(1) as u64) as usize;
            let bytes = word.bytes().take(mapped.length() - place).enumerate();
            bytes.for_each(|(number, byte)| mapped.store(place + number, byte));
        }
        Ok(())
    }

    fn set_back(&mut self, path: &Path) -> std::io::Result<()> {
        let path = &self.or_large(path);
        let modified = std::fs::metadata(path)?.modified()?;
        self.write_into(path)?;
        let file = File::options().write(true).open(path)?;
        file.set_times(FileTimes::new().set_modified(modified))
    }

    fn rename_directory(&mut self) -> std::io::Result<()> {
        let [one, other] = [0, 0].map(|_| {
            let number = self.chance.below(DIRECTORIES);
            self.root.join(format!("d{number}"))
        });
        let aside = self.fresh();
        std::fs::rename(&one, &aside)?;
        std::fs::rename(&other, &one)
            .and_then(|()| std::fs::rename(&aside, &other))
            .or_else(|_| std::fs::rename(&aside, &one))
    }

    fn append(&mut self, path: &Path, content: &str) -> std::io::Result<()> {
        if let Some(open) = self.open.last_mut() {
            open.write_all(word(&mut self.chance).as_bytes())?;
        }
        let mut file = File::options().append(true).open(path)?;
        if file.metadata()?.len() < 2_000 {
            file.write_all(content.as_bytes())?;
        }
        self.open.insert(0, file);
        self.open.truncate(6);
        Ok(())
    }

    /// Makes a directory of a file, or a file of a directory.
    fn turn(&mut self, path: &Path, content: &str) -> std::io::Result<()> {
        if path.is_dir() {
            std::fs::remove_dir_all(path)?;
            std::fs::write(path, content)
        } else {
            std::fs::remove_file(path)?;
            std::fs::create_dir(path)?;
            std::fs::write(path.join("inside"), content)
        }
    }
}

/// A search as clients make them.
fn query(chance: &mut Chance) -> (&'static str, Value) {
    let (one, other) = (word(chance), word(chance));
    let part = one.get(..5).unwrap_or(&one).to_owned();
    let pattern = match chance.below(8) {
        0..=2 => one,
        3 => part,
        4 => format!("{one}|{other}"),
        5 => format!("(?i){}", part.to_uppercase()),
        6 => format!("{part}.*[a-c]o"),
        _ => r"\b[aeiou]\w+".to_owned(),
    };
    let output = ["matches", "files", "count"][chance.below(3) as usize];
    let mut arguments = json!({"pattern": pattern, "output": output});
    match chance.below(12) {
        0 => return ("glob", json!({"pattern": "**/f1*"})),
        1 => arguments["from_end"] = json!(true),
        2 => {
            arguments = json!({"patterns": [pattern, other], "output": output});
        }
        3 => arguments["glob_filter"] = json!("f1*"),
        4 => arguments["glob_filter"] = json!("d1*/**"),
        _ => {}
    }
    ("grep", arguments)
}

async fn hits(server: &Server) -> usize {
    figure(server, "hits_total").await
}

async fn figure(server: &Server, name: &str) -> usize {
    let page = server.http().get("/metrics").await.body;
    let name = format!("mcp_filesystem_search_memory_{name} ");
    let line = page.lines().find_map(|line| line.strip_prefix(&name));
    line.expect("a metric").parse().expect("a number")
}

/// Two servers on one tree: one that remembers and one that does not.
async fn pair(tree: &Tree) -> (Server, Server) {
    let setup = |memory: u64| {
        Workspace::setup(tree)
            .set("limits.search_memory", memory)
            .start(Transport::Http)
    };
    (setup(1 << 26).await, setup(0).await)
}

/// Whether files in this directory are remembered: the machine's temporary directory may be in memory.
async fn is_remembering(server: &Server) -> bool {
    for _ in 0..LESSONS {
        ok(server, "grep", json!({"pattern": "surely nowhere in here"})).await;
    }
    let files = figure(server, "files").await;
    if files == 0 {
        left_out("nothing is remembered on this file system");
    }
    files > 0
}

/// How many files named `large` searches leave unopened, once they had time to learn each piece of them.
async fn large_files_spared(server: &Server) -> usize {
    let arguments = json!({"pattern": "surely nowhere in here", "glob_filter": "large"});
    let mut spared = 0;
    for _ in 0..3 * LESSONS {
        let before = hits(server).await;
        ok(server, "grep", arguments.clone()).await;
        spared = hits(server).await - before;
        if spared as u64 == LARGE {
            break;
        }
    }
    spared
}

/// Where the numbers of a run begin: `SEARCH_SEED`, or always the same. It is said, so that a run can be repeated.
fn seed() -> u64 {
    let given = std::env::var("SEARCH_SEED").ok();
    let seed = given.map_or(7, |seed| seed.parse().expect("SEARCH_SEED is a number"));
    said(&format!("SEARCH_SEED={seed}"));
    seed
}

#[tokio::test(flavor = "multi_thread")]
async fn replies_are_the_same_with_and_without_memory_whatever_happens_to_the_files() {
    let (tree, beside) = (Tree::new(), tempfile::tempdir().unwrap());
    let seed = seed();
    let mut writer = Writer::new(tree.path(), beside.path(), seed);
    writer.fill();
    let (remembering, plain) = pair(&tree).await;
    tokio::time::sleep(SETTLED).await;
    if !is_remembering(&remembering).await {
        return;
    }
    assert_eq!(large_files_spared(&remembering).await as u64, LARGE);
    let mut chance = Chance::new(seed + 4);
    let searches = share(SEARCHES);
    let mut compared = 0;
    while compared < searches || hits(&remembering).await < share(EXCLUSIONS) {
        assert!(compared < 2 * searches, "too few files are excluded");
        if compared.is_multiple_of(10) {
            // Files change while they are learned; what such searches find is anybody's guess.
            let working = tokio::task::spawn_blocking(move || {
                (0..60).for_each(|_| writer.act());
                writer
            });
            for _ in 0..3 {
                let (tool, arguments) = query(&mut chance);
                call(&remembering, tool, arguments).await;
            }
            writer = working.await.unwrap();
        }
        (0..chance.below(3)).for_each(|_| writer.act());
        let (tool, arguments) = query(&mut chance);
        let with = call(&remembering, tool, arguments.clone()).await;
        let without = call(&plain, tool, arguments).await;
        assert!(!with.is_error, "{}", with.story());
        assert_eq!(with.text, without.text, "{}", with.story());
        assert_eq!(with.whole, without.whole, "{}", with.story());
        compared += 1;
    }
    let (spared, files) = (
        hits(&remembering).await,
        figure(&remembering, "files").await,
    );
    said(&format!(
        "{compared} searches equal, {spared} files not opened, {files} known"
    ));
    assert_eq!(figure(&plain, "bytes").await, 0);
}

/// Text of many different triples, so that what is remembered of it takes about as much memory as is possible.
fn dense_text(chance: &mut Chance, length: usize) -> Vec<u8> {
    let letter = |chance: &mut Chance| match chance.below(40) {
        0 => b'\n',
        number => b"abcdefghijklmnopqrstuvwxyz0123456789_ .;"[number as usize],
    };
    (0..length).map(|_| letter(chance)).collect()
}

/// Searches until everything could be remembered; returns what is resident then.
async fn resident_after_searches(server: &Server) -> u64 {
    for _ in 0..LESSONS + 6 {
        ok(server, "grep", json!({"pattern": "surely nowhere in here"})).await;
    }
    server.memory().resident
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_remembered_takes_no_more_memory_than_it_may() {
    // A quarter of both unless all is tried.
    let part = match std::env::var_os("SANDBOX_EXHAUSTIVE") {
        Some(_) => 1,
        None => 4,
    };
    let (files, budget) = (6000 / part, (16 << 20) / part as u64);
    let tree = Tree::new();
    let mut chance = Chance::new(3);
    for number in 0..files {
        tree.write(
            format!("d{}/f{number}", number / 100),
            dense_text(&mut chance, 34_000),
        );
    }
    let server = |memory: u64| {
        let setup = Workspace::setup(&tree).set("limits.search_memory", memory);
        setup.start(Transport::Http)
    };
    let (remembering, plain) = (server(budget).await, server(0).await);
    tokio::time::sleep(SETTLED).await;
    if !is_remembering(&remembering).await {
        return;
    }
    let with = resident_after_searches(&remembering).await;
    let without = resident_after_searches(&plain).await;
    let bytes = figure(&remembering, "bytes").await as u64;
    said(&format!(
        "search memory of {budget} bytes: {bytes} used, resident {with} with it and {without} without"
    ));
    assert!(bytes <= budget && bytes > budget / 2, "{bytes} of {budget}");
    // What the allocator adds to each piece, and keeps of those that were given back.
    let slack = budget / 2 + (2 << 20);
    assert!(with <= without + budget + slack, "{without} -> {with}");
}

#[tokio::test]
async fn what_is_mounted_over_a_remembered_file_is_searched() {
    if !may_mount() {
        return;
    }
    let tree = Tree::new()
        .file("d/f", "some hay\n")
        .file("d/g", "more hay\n");
    let beside = tempfile::tempdir().unwrap();
    let other = beside.path().join("other");
    std::fs::write(&other, "a needle\n").unwrap();
    let setup = Workspace::setup(&tree).wrapped_in(["unshare", "-m"]);
    let server = setup.start(Transport::Http).await;
    tokio::time::sleep(SETTLED).await;
    if !is_remembering(&server).await {
        return;
    }
    let found = ok(&server, "grep", json!({"pattern": "needle"})).await;
    assert_eq!(found["total_matches"], 0);
    let pid = server.pid().to_string();
    let mut mount = Command::new("nsenter");
    mount.args(["-t", &pid, "-m", "mount", "--bind"]);
    assert!(succeeds(mount.arg(&other).arg(tree.join("d/f"))));
    let found = ok(&server, "grep", json!({"pattern": "needle"})).await;
    assert_eq!(found["total_matches"], 1);
}

#[tokio::test]
async fn nothing_is_remembered_of_an_overlay() {
    let tree = Tree::new();
    let layers = tempfile::tempdir().unwrap();
    for name in ["lower/d", "upper", "work"] {
        std::fs::create_dir_all(layers.path().join(name)).unwrap();
    }
    for name in ["lower/d/f", "lower/d/g"] {
        std::fs::write(layers.path().join(name), "some hay\n").unwrap();
    }
    let layer = |name: &str| layers.path().join(name).display().to_string();
    let mount = format!(
        "mount -t overlay overlay -o lowerdir={},upperdir={},workdir={} '{}'",
        layer("lower"),
        layer("upper"),
        layer("work"),
        tree.path().display()
    );
    if !succeeds(Command::new("unshare").args(["-m", "sh", "-c", &mount])) {
        return left_out("no overlay can be mounted here");
    }
    let script = format!("{mount} && exec \"$0\" \"$@\"");
    let setup = Workspace::setup(&tree).wrapped_in(["unshare", "-m", "sh", "-c", &script]);
    let server = setup.start(Transport::Http).await;
    tokio::time::sleep(SETTLED).await;
    assert!(!is_remembering(&server).await);
    let found = ok(&server, "grep", json!({"pattern": "needle"})).await;
    assert_eq!(
        (&found["total_matches"], &found["files_searched"]),
        (&json!(0), &json!(2))
    );
    let pid = server.pid().to_string();
    // The file is copied up: it gets another inode below, and keeps the one that is shown.
    let store = format!("printf 'needles\\n' > '{}'", tree.join("d/f").display());
    let mut change = Command::new("nsenter");
    assert!(succeeds(
        change.args(["-t", &pid, "-m", "sh", "-c", &store])
    ));
    let found = ok(&server, "grep", json!({"pattern": "needle"})).await;
    assert_eq!(found["total_matches"], 1);
    assert_eq!(hits(&server).await, 0);
}

#[tokio::test]
async fn files_on_which_no_lease_is_granted_are_not_remembered() {
    let tree = Tree::new()
        .file("own", "some hay\n")
        .file("other", "more hay\n");
    if std::os::unix::fs::chown(tree.join("other"), Some(65_534), Some(65_534)).is_err() {
        return left_out("only the superuser gives files away");
    }
    let without_lease = ["setpriv", "--bounding-set=-lease", "--inh-caps=-lease"];
    if !succeeds(
        Command::new(without_lease[0])
            .args(&without_lease[1..])
            .arg("true"),
    ) {
        return left_out("setpriv is missing");
    }
    let setup: Setup = Workspace::setup(&tree).wrapped_in(without_lease);
    let server = setup.start(Transport::Http).await;
    tokio::time::sleep(SETTLED).await;
    if is_remembering(&server).await {
        assert_eq!(figure(&server, "files").await, 1);
        let found = ok(
            &server,
            "grep",
            json!({"pattern": "surely nowhere in here"}),
        )
        .await;
        assert_eq!(found["files_searched"], 2);
    }
}

#[tokio::test]
async fn writes_of_the_server_succeed_while_searches_ask_for_leases() {
    let tree = Tree::new().file("log", "begin\n").file("d/f", "some hay\n");
    let server = Workspace::setup(&tree).start(Transport::Http).await;
    tokio::time::sleep(SETTLED).await;
    for number in 0..40 {
        let search = server.spawn_call(
            "grep",
            Workspace::complete("grep", json!({"pattern": "surely nowhere in here"})),
        );
        let line = format!("line {number}\n");
        let arguments = json!({"path": "log", "content": line, "mode": "append"});
        ok(&server, "write_file", arguments).await;
        search.await.unwrap();
    }
    let found = ok(&server, "grep", json!({"pattern": "^line"})).await;
    assert_eq!(found["total_matches"], 40);
}
