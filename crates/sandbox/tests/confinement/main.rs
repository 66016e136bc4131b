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
mod race;
mod special;

use std::io::Read;
use std::path::Path;

use rustix::io::Errno;
use sandbox::{Error, Resolver, Root};

use support::{Ground, RESOLVERS, locate, snapshot, under_filter};

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
        .file
        .read_to_end(&mut bytes)
        .unwrap();
    Ok(bytes)
}
