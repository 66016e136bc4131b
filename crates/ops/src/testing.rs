//! What tests of operations share: a root in a temporary directory and plain access to what is in it.
#![expect(
    clippy::disallowed_methods,
    reason = "tests look at the file system from outside"
)]

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use sandbox::{Durability, Root, Users};
use tempfile::TempDir;

use crate::{Cancel, Context, Limits, Place};

/// A root to work in, and a directory beside it that nothing may touch.
pub(crate) struct Tree {
    pub(crate) root: Arc<Root>,
    base: TempDir,
}

impl Tree {
    pub(crate) fn new() -> Tree {
        let base = tempfile::tempdir().unwrap();
        std::fs::create_dir(base.path().join("root")).unwrap();
        std::fs::create_dir(base.path().join("outside")).unwrap();
        std::fs::write(base.path().join("outside/secret"), "secret").unwrap();
        let root = Arc::new(Root::open(&base.path().join("root")).unwrap());
        Tree { root, base }
    }

    /// A tree with these files.
    pub(crate) fn with(files: &[(&str, &str)]) -> Tree {
        let tree = Tree::new();
        for (path, content) in files {
            tree.file(path, content);
        }
        tree
    }

    pub(crate) fn host(&self, path: impl AsRef<OsStr>) -> PathBuf {
        self.base.path().join("root").join(Path::new(path.as_ref()))
    }

    pub(crate) fn place(&self, path: &str) -> Place {
        Place::new(Arc::clone(&self.root), path).unwrap()
    }

    /// Writes a file and the directories on the way.
    pub(crate) fn file(&self, path: &str, content: impl AsRef<[u8]>) -> &Tree {
        let host = self.host(path);
        std::fs::create_dir_all(host.parent().unwrap()).unwrap();
        std::fs::write(host, content).unwrap();
        self
    }

    pub(crate) fn file_named(&self, path: &[u8], content: &str) -> &Tree {
        let host = self.host(OsStr::from_bytes(path));
        std::fs::create_dir_all(host.parent().unwrap()).unwrap();
        std::fs::write(host, content).unwrap();
        self
    }

    pub(crate) fn rename(&self, from: &str, to: &str) -> &Tree {
        std::fs::rename(self.host(from), self.host(to)).unwrap();
        self
    }

    pub(crate) fn directory(&self, path: &str) -> &Tree {
        std::fs::create_dir_all(self.host(path)).unwrap();
        self
    }

    pub(crate) fn link(&self, path: &str, text: &str) -> &Tree {
        symlink(text, self.host(path)).unwrap();
        self
    }

    /// Gives a file a second name.
    pub(crate) fn second_name(&self, file: &str, name: &str) -> &Tree {
        std::fs::hard_link(self.host(file), self.host(name)).unwrap();
        self
    }

    pub(crate) fn fifo(&self, path: &str) -> &Tree {
        assert!(
            Command::new("mkfifo")
                .arg(self.host(path))
                .status()
                .unwrap()
                .success()
        );
        self
    }

    /// Writes into a file that is there.
    pub(crate) fn write_at(&self, path: &str, offset: u64, content: &str) {
        use std::os::unix::fs::FileExt as _;
        let file = std::fs::File::options().write(true).open(self.host(path));
        file.unwrap()
            .write_all_at(content.as_bytes(), offset)
            .unwrap();
    }

    /// A file of this size without content.
    pub(crate) fn sparse_file(&self, path: &str, size: u64) -> &Tree {
        std::fs::File::create(self.host(path))
            .unwrap()
            .set_len(size)
            .unwrap();
        self
    }

    /// Extends an existing file to this size, without content after its own.
    pub(crate) fn stretch(&self, path: &str, size: u64) -> &Tree {
        let file = std::fs::File::options().write(true).open(self.host(path));
        file.unwrap().set_len(size).unwrap();
        self
    }

    /// Gives a file to another owner, which only the superuser may do; tells whether it worked.
    pub(crate) fn give_away(&self, path: &str, uid: u32, gid: u32) -> bool {
        std::os::unix::fs::chown(self.host(path), Some(uid), Some(gid)).is_ok()
    }

    pub(crate) fn set_mode(&self, path: &str, mode: u32) -> &Tree {
        let permissions = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(self.host(path), permissions).unwrap();
        self
    }

    pub(crate) fn mode(&self, path: &str) -> u32 {
        std::fs::symlink_metadata(self.host(path)).unwrap().mode() & 0o7777
    }

    pub(crate) fn read(&self, path: &str) -> String {
        String::from_utf8(std::fs::read(self.host(path)).unwrap()).unwrap()
    }

    pub(crate) fn read_link(&self, path: &str) -> String {
        std::fs::read_link(self.host(path))
            .unwrap()
            .to_str()
            .unwrap()
            .to_owned()
    }

    /// Tells whether anything is there, a link itself included.
    pub(crate) fn has(&self, path: &str) -> bool {
        std::fs::symlink_metadata(self.host(path)).is_ok()
    }

    /// The names in a directory, sorted.
    pub(crate) fn names(&self, path: &str) -> Vec<String> {
        let entries = std::fs::read_dir(self.host(path)).unwrap();
        let name = |entry: std::io::Result<std::fs::DirEntry>| entry.unwrap().file_name();
        let mut names: Vec<String> = entries
            .map(|entry| name(entry).to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    /// Tells whether everything beside the root is as it was.
    pub(crate) fn outside_is_untouched(&self) -> bool {
        let outside = self.base.path().join("outside");
        std::fs::read_dir(&outside).unwrap().count() == 1
            && std::fs::read_to_string(outside.join("secret")).unwrap() == "secret"
    }
}

/// A context without deadline and without syncing, so that tests are quick.
pub(crate) fn context() -> Context {
    with_limits(Limits {
        durability: Durability::Fast,
        ..Limits::for_tests()
    })
}

pub(crate) fn with_limits(limits: Limits) -> Context {
    Context {
        limits: Arc::new(limits),
        users: Arc::new(Users::load()),
        line_index_cache: Arc::default(),
        search_memory: Arc::default(),
        consent: crate::Consent::default(),
        change_notes: sandbox::ChangeNotes::default(),
        cancel: Cancel::never(),
        room: None,
    }
}

/// A context whose caller has already given up.
pub(crate) fn cancelled() -> Context {
    let context = context();
    context.cancel.cancel();
    context
}
