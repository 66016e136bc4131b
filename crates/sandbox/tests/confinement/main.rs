//! What a root promises, shown from outside: by its public calls, with every means of look-up.
#![expect(
    clippy::disallowed_methods,
    reason = "tests look at the file system from outside"
)]

#[path = "../support/mod.rs"]
mod support;

mod basics;
mod child;
mod crash;
mod lock;
mod paths;
mod quota;
mod race;
mod special;

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use sandbox::{Error, Resolver, Root};

use support::{Ground, RESOLVERS, locate, under_filter};

/// Runs a test body with each means of look-up, and with `openat2` answered by a seccomp filter as an old
/// kernel and as a strict container answer it, each on a fresh tree with an outside beside it.
pub(crate) fn everywhere(body: impl Fn(&Root, &Path, &Path) + Sync) {
    for resolver in RESOLVERS {
        check(&body, resolver);
    }
    for errno in [Errno::NOSYS, Errno::PERM] {
        under_filter(errno, || check(&body, Resolver::Auto));
    }
}

fn check(body: &impl Fn(&Root, &Path, &Path), resolver: Resolver) {
    let ground = Ground::new(tempfile::tempdir().unwrap());
    let before = snapshot(&ground.outside());
    let root = Root::open_with(&ground.inside(), resolver).unwrap();
    body(&root, &ground.inside(), &ground.outside());
    assert_eq!(snapshot(&ground.outside()), before, "{resolver:?}");
}

/// Reads a whole file.
pub(crate) fn read(root: &Root, path: &str) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    locate(root, path)?
        .open_file()?
        .read_to_end(&mut bytes)
        .unwrap();
    Ok(bytes)
}

/// What is known of one file: its inode, when it last changed, and its content or link text.
type Trace = (u64, (i64, i64), Vec<u8>);

/// Everything below a directory, and the directory itself.
pub(crate) fn snapshot(dir: &Path) -> BTreeMap<PathBuf, Trace> {
    let top = dir.symlink_metadata().unwrap();
    let trace = (top.ino(), (top.ctime(), top.ctime_nsec()), Vec::new());
    let mut found = BTreeMap::from([(dir.to_owned(), trace)]);
    let mut pending = vec![dir.to_owned()];
    while let Some(dir) = pending.pop() {
        for entry in fs::read_dir(&dir).unwrap() {
            let path = entry.unwrap().path();
            let metadata = path.symlink_metadata().unwrap();
            let content = match metadata.file_type() {
                kind if kind.is_dir() => {
                    pending.push(path.clone());
                    Vec::new()
                }
                kind if kind.is_symlink() => fs::read_link(&path)
                    .unwrap()
                    .into_os_string()
                    .into_encoded_bytes(),
                _ => fs::read(&path).unwrap(),
            };
            let changed = (metadata.ctime(), metadata.ctime_nsec());
            found.insert(path, (metadata.ino(), changed, content));
        }
    }
    found
}
