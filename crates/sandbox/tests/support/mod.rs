//! What the tests of this crate share: fresh trees with an outside beside them, and every means of look-up.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use sandbox::{
    Change, Durability, Error, Follow, Located, OnExisting, Parents, RelPath, Resolver, Root,
    Staged,
};
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter};
use tempfile::TempDir;

/// The number of `openat2`, the same on every architecture.
const OPENAT2: i64 = 437;

/// Each means of look-up.
pub(crate) const RESOLVERS: [Resolver; 3] = [
    Resolver::Auto,
    Resolver::WalkOnly,
    Resolver::WalkWithoutProc,
];

/// Begins a change that does not wait for the disk.
pub(crate) fn change() -> Change {
    Change::begin(Durability::Fast)
}

/// Begins to replace or create a file, its parents too.
pub(crate) fn stage(place: &Located<'_>) -> Result<Staged, Error> {
    change().stage(place, OnExisting::Replace, Parents::Create)
}

/// A fresh directory, in memory if the machine has such a place: making many files is slow on a disk.
pub(crate) fn fresh_dir() -> TempDir {
    let memory = Path::new("/dev/shm");
    match memory.is_dir() {
        true => tempfile::tempdir_in(memory).unwrap(),
        false => tempfile::tempdir().unwrap(),
    }
}

/// A root's directory and one beside it that nothing may touch.
pub(crate) struct Ground {
    temp: TempDir,
}

impl Ground {
    /// An empty root, and an outside with a secret.
    pub(crate) fn new(temp: TempDir) -> Ground {
        let ground = Ground { temp };
        fs::create_dir(ground.inside()).unwrap();
        fs::create_dir(ground.outside()).unwrap();
        fs::write(ground.outside().join("secret"), "secret").unwrap();
        ground
    }

    pub(crate) fn inside(&self) -> PathBuf {
        self.temp.path().join("inside")
    }

    pub(crate) fn outside(&self) -> PathBuf {
        self.temp.path().join("outside")
    }
}

/// Runs a body in a thread of its own whose `openat2` fails with `errno`.
pub(crate) fn under_filter(errno: Errno, body: impl FnOnce() + Send) {
    std::thread::scope(|scope| {
        let filtered = scope.spawn(|| {
            seccompiler::apply_filter(&filter(errno)).unwrap();
            body();
        });
        if let Err(panic) = filtered.join() {
            std::panic::resume_unwind(panic);
        }
    });
}

fn filter(errno: Errno) -> BpfProgram {
    let answer = SeccompAction::Errno(errno.raw_os_error().unsigned_abs());
    let rules = BTreeMap::from([(OPENAT2, Vec::new())]);
    let arch = std::env::consts::ARCH.try_into().unwrap();
    SeccompFilter::new(rules, SeccompAction::Allow, answer, arch)
        .unwrap()
        .try_into()
        .unwrap()
}

/// Looks a path up, a link at its end followed.
pub(crate) fn locate<'a>(root: &'a Root, path: &str) -> Result<Located<'a>, Error> {
    root.locate(&RelPath::parse(path)?, Follow::Last)
}

/// Looks a path up, a link at its end taken as itself.
pub(crate) fn locate_itself<'a>(root: &'a Root, path: &str) -> Result<Located<'a>, Error> {
    root.locate(&RelPath::parse(path)?, Follow::Never)
}

/// Creates or replaces a file.
pub(crate) fn write(root: &Root, path: &str, bytes: &[u8]) -> Result<(), Error> {
    let mut staged = stage(&locate(root, path)?)?;
    staged.write_all(bytes).unwrap();
    staged.commit().map(drop)
}

/// Renames, and does not wait for the disk.
pub(crate) fn rename_as(
    from: &Located<'_>,
    to: &Located<'_>,
    on_existing: OnExisting,
) -> Result<(), Error> {
    change().rename(from, to, on_existing, &|| false)
}
