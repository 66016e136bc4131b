//! A process killed while it replaces files leaves each of them whole, and nothing behind after a sweep.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use sandbox::{Resolver, Root};
use tempfile::TempDir;

use crate::child;
use crate::support::{fresh_dir, locate, stage, write};

const ROUNDS: u32 = 12;
/// How long a kill that hits a write is waited for.
const MAX_ROUNDS: u32 = 400;
const FILES: u64 = 4;
const SIZE: usize = 256 * 1024;
const READY: &str = "replacing";
/// What no name of a temporary file lacks.
const TEMPORARY: &str = ".mcp-filesystem-";

/// What the child does until it is killed: replaces files, each time with one byte all over.
fn replace_for_ever(dir: &Path, resolver: Resolver) {
    let root = Root::open_with(dir, resolver).unwrap();
    let mut stdout = std::io::stdout();
    for turn in 0_u64.. {
        let byte = b'a' + (turn / FILES % 26) as u8;
        write(&root, &format!("file{}", turn % FILES), &vec![byte; SIZE]).unwrap();
        if turn == FILES {
            writeln!(stdout, "\n{READY}").unwrap();
            stdout.flush().unwrap();
        }
    }
}

/// Starts the child, waits until every file is there, and kills it after a moment nobody chose.
fn kill_one(test: &str, dir: &Path) {
    let mut child = child::command(test, dir)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let output = BufReader::new(child.stdout.take().unwrap());
    let ready = output
        .lines()
        .map_while(Result::ok)
        .any(|line| line == READY);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    std::thread::sleep(Duration::from_micros(u64::from(
        now.subsec_nanos() % 20_000,
    )));
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(ready, "the child did not get to work");
}

fn all_files_are_whole(dir: &Path) {
    for number in 0..FILES {
        let content = fs::read(dir.join(format!("file{number}"))).unwrap();
        assert_eq!(content.len(), SIZE, "file{number}");
        let first = content.first().copied();
        assert!(
            content.iter().all(|&byte| Some(byte) == first),
            "file{number} is mixed"
        );
    }
}

fn temporary_files(dir: &Path) -> u64 {
    let names = fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().file_name());
    names
        .filter(|name| name.to_string_lossy().starts_with(TEMPORARY))
        .count() as u64
}

/// Kills children one after the other until enough rounds are over, and returns how many temporary files
/// they left behind.
fn leftovers_of_the_killed(
    test: &str,
    resolver: Resolver,
    temp: &TempDir,
    enough: impl Fn(u32, u64) -> bool,
) -> u64 {
    if let Some(dir) = child::directory() {
        replace_for_ever(&dir, resolver);
    }
    let (mut rounds, mut left) = (0, 0);
    while !enough(rounds, left) {
        kill_one(test, temp.path());
        all_files_are_whole(temp.path());
        let found = temporary_files(temp.path());
        let root = Root::open(temp.path()).unwrap();
        assert_eq!(root.sweep_leftovers(&|| false), found);
        assert_eq!(temporary_files(temp.path()), 0);
        left += found;
        rounds += 1;
    }
    left
}

#[test]
fn files_of_a_killed_process_are_whole() {
    let test = "crash::files_of_a_killed_process_are_whole";
    let temp = tempfile::tempdir().unwrap();
    leftovers_of_the_killed(test, Resolver::Auto, &temp, |rounds, _| rounds >= ROUNDS);
}

#[test]
fn files_of_a_killed_process_are_whole_with_named_temporary_files() {
    let test = "crash::files_of_a_killed_process_are_whole_with_named_temporary_files";
    // In memory most of the time goes into the write itself, where the kill is to hit.
    let temp = fresh_dir();
    let enough = |rounds, left| rounds >= ROUNDS && (left > 0 || rounds >= MAX_ROUNDS);
    let left = leftovers_of_the_killed(test, Resolver::WalkWithoutProc, &temp, enough);
    assert!(left > 0, "no kill ever hit a write: the test shows nothing");
}

#[test]
fn a_sweep_leaves_what_a_living_process_is_writing() {
    let temp = tempfile::tempdir().unwrap();
    let root = Root::open_with(temp.path(), Resolver::WalkWithoutProc).unwrap();
    let mut staged = stage(&locate(&root, "file").unwrap()).unwrap();
    assert_eq!(temporary_files(temp.path()), 1);
    assert_eq!(root.sweep_leftovers(&|| false), 0);
    staged.write_all(b"text").unwrap();
    staged.commit().unwrap();
    assert_eq!(temporary_files(temp.path()), 0);
    assert_eq!(fs::read(temp.path().join("file")).unwrap(), b"text");
}
