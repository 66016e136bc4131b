//! A tree of files for tests of searches.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sandbox::Root;

use crate::context::{Cancel, Context, Limits};
use crate::place::Place;

/// A temporary directory and a root in it.
pub(crate) struct Tree {
    root: Arc<Root>,
    directory: tempfile::TempDir,
}

impl Tree {
    /// An empty tree.
    pub(crate) fn new() -> Tree {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir(directory.path().join("root")).unwrap();
        let root = Arc::new(Root::open(&directory.path().join("root")).unwrap());
        Tree { root, directory }
    }

    /// A tree with these files.
    pub(crate) fn with(files: &[(&str, &str)]) -> Tree {
        let tree = Tree::new();
        for (path, content) in files {
            tree.file(path, content);
        }
        tree
    }

    /// Where the tree is, for what only tests may do.
    pub(crate) fn path(&self, path: impl AsRef<Path>) -> PathBuf {
        self.directory.path().join("root").join(path)
    }

    /// Writes a file and the directories above it.
    pub(crate) fn file(&self, path: impl AsRef<Path>, content: impl AsRef<[u8]>) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    /// Makes a symbolic link.
    pub(crate) fn link(&self, path: &str, target: impl AsRef<Path>) {
        symlink(target, self.path(path)).unwrap();
    }

    /// A place in it.
    pub(crate) fn place(&self, path: &str) -> Place {
        Place::new(Arc::clone(&self.root), path).unwrap()
    }
}

/// A context with a caller's patience.
pub(crate) fn context(cancel: Cancel) -> Context {
    Context {
        limits: Arc::new(Limits::default()),
        users: Arc::new(sandbox::Users::load()),
        cancel,
    }
}
