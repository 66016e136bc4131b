//! Counts system calls: nothing is looked up, opened or read twice.

use std::cell::RefCell;
use std::fs;
use std::rc::Rc;

use super::support::{change, fresh_dir, locate};
use crate::syscall::hook;
use crate::{RelPath, Root};

/// Runs `body` and returns its result with the names of the system calls that it made.
fn calls_of<T>(body: impl FnOnce() -> T) -> (T, Vec<&'static str>) {
    let calls = Rc::new(RefCell::new(Vec::new()));
    let seen = Rc::clone(&calls);
    let result = hook::with(move |call| seen.borrow_mut().push(call), body);
    (result, calls.take())
}

fn count(calls: &[&str], name: &str) -> usize {
    calls.iter().filter(|call| **call == name).count()
}

#[test]
fn an_inline_read_is_one_look_up_and_one_read() {
    let temp = fresh_dir();
    fs::create_dir(temp.path().join("dir")).unwrap();
    fs::write(temp.path().join("dir/file"), "text").unwrap();
    let root = Root::open(temp.path()).unwrap();
    let path = RelPath::parse("dir/file").unwrap();
    let (loaded, calls) = calls_of(|| {
        let mut opened = root.try_open_inline(&path)?;
        let loaded = opened.try_load_inline(1024);
        let mut buffer = [0; 8];
        let length = opened.read_at(&mut buffer, 1).unwrap();
        assert_eq!(buffer[..length], *b"ext");
        Some(loaded)
    });
    assert_eq!(count(&calls, "openat2"), 1, "{calls:?}");
    match loaded {
        Some(true) => assert_eq!(calls, ["openat2", "fstat", "reopen", "preadv2"]),
        Some(false) => assert_eq!(calls, ["openat2", "fstat", "reopen", "preadv2", "pread"]),
        // The file system or the kernel cannot tell what is in memory.
        None => assert_eq!(calls, ["openat2"]),
    }
}

#[test]
fn a_read_is_one_look_up_and_one_read() {
    let temp = fresh_dir();
    fs::write(temp.path().join("file"), "text").unwrap();
    let root = Root::open(temp.path()).unwrap();
    let path = RelPath::parse("file").unwrap();
    let (length, calls) = calls_of(|| {
        let opened = root.open_file(&path).unwrap();
        opened.read_at(&mut [0; 8], 0).unwrap()
    });
    assert_eq!(length, 4);
    assert_eq!(calls, ["openat2", "fstat", "reopen", "pread"]);
}

#[test]
fn an_edit_opens_the_old_file_once() {
    let temp = fresh_dir();
    fs::write(temp.path().join("file"), "text").unwrap();
    let root = Root::open(temp.path()).unwrap();
    let (_, calls) = calls_of(|| {
        let place = locate(&root, "file").unwrap();
        let old = place.open_to_edit().unwrap();
        old.open().read_at(&mut [0; 8], 0).unwrap();
        change()
            .stage_over(&place, &old)
            .unwrap()
            .publish()
            .unwrap();
    });
    assert_eq!(count(&calls, "reopen"), 1, "{calls:?}");
}
