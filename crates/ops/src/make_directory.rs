//! Makes a directory and, if wanted, its missing parents.

use sandbox::{FileKind, Follow, Located, Parents};

use crate::consent::Planned;
use crate::context::Context;
use crate::edit_lock::EditLock;
use crate::error::{Error, Result, Wanted};
use crate::operation::{Operation, again_if_full};
use crate::place::Place;

/// What happens to an existing directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnExistingDirectory {
    /// Fine, nothing to do.
    Succeed,
    /// It is an error.
    Fail,
}

/// Makes a directory.
#[derive(Debug)]
pub struct MakeDirectory {
    /// The directory.
    pub place: Place,
    /// Whether missing directories on the way are made.
    pub parents: Parents,
    /// What happens to an existing directory.
    pub on_existing: OnExistingDirectory,
}

/// The directory that is there now.
#[derive(Debug)]
pub struct MadeDirectory {
    /// The resolved path.
    pub path: String,
    /// How many directories were made; 0 if it was there before.
    pub created: u64,
}

impl Operation for MakeDirectory {
    type Outcome = MadeDirectory;

    fn run(self, context: &Context) -> Result<MadeDirectory> {
        again_if_full([&self.place], || self.try_run(context))
    }
}

impl MakeDirectory {
    fn try_run(&self, context: &Context) -> Result<MadeDirectory> {
        context.cancel.check()?;
        // Its parent directory must not be moved away meanwhile.
        let look_up = || self.place.locate(Follow::Last);
        let (lock, located) = EditLock::take_entry(&look_up, &context.cancel)?;
        lock.confirm()?;
        let path = located.path();
        let created = match located.require().ok().map(|metadata| metadata.kind) {
            Some(FileKind::Directory) if self.on_existing == OnExistingDirectory::Succeed => 0,
            Some(kind) => return Err(Error::AlreadyExists { path, kind }),
            None => self.make(&located, context)?,
        };
        Ok(MadeDirectory { path, created })
    }

    /// Makes it and returns how many directories are new.
    fn make(&self, located: &Located<'_>, context: &Context) -> Result<u64> {
        let change = context.change(Planned::NOTHING)?;
        if self.parents == Parents::Create {
            return Ok(change.make_dirs(located)?);
        }
        let made = change.make_dir(located);
        made.map_err(|error| self.place.explain(error, Wanted::Directory))?;
        Ok(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;
    use crate::testing::{Tree, context};

    fn make(
        tree: &Tree,
        path: &str,
        parents: Parents,
        on_existing: OnExistingDirectory,
    ) -> Result<u64> {
        let make = MakeDirectory {
            place: tree.place(path),
            parents,
            on_existing,
        };
        make.run(&context()).map(|made| made.created)
    }

    #[test]
    fn directories_are_made_with_those_on_the_way() {
        let tree = Tree::new();
        let make = |path| make(&tree, path, Parents::Create, OnExistingDirectory::Succeed).unwrap();
        assert_eq!(make("a/b/c"), 3);
        assert_eq!(make("a/b/c/"), 0);
        assert_eq!(make("a/b/d"), 1);
        assert_eq!(make(""), 0);
        assert_eq!(tree.names("a/b"), ["c", "d"]);
    }

    #[test]
    fn what_is_there_is_an_error_where_that_is_wanted() {
        let tree = Tree::new();
        tree.directory("dir")
            .file("file", "")
            .link("out", "../outside/x");
        let fail = OnExistingDirectory::Fail;
        for (path, parents, on_existing, kind) in [
            ("dir", Parents::Require, fail, ErrorKind::AlreadyExists),
            (
                "file",
                Parents::Create,
                OnExistingDirectory::Succeed,
                ErrorKind::AlreadyExists,
            ),
            (
                "file/x",
                Parents::Create,
                OnExistingDirectory::Succeed,
                ErrorKind::NotADirectory,
            ),
            ("x/y", Parents::Require, fail, ErrorKind::NotFound),
            ("out", Parents::Create, fail, ErrorKind::Outside),
            ("out/deeper", Parents::Create, fail, ErrorKind::Outside),
        ] {
            let failure = make(&tree, path, parents, on_existing).unwrap_err();
            assert_eq!(failure.kind(), kind, "{path}: {failure:?}");
        }
        assert_eq!(make(&tree, "dir/x", Parents::Require, fail).unwrap(), 1);
        assert!(tree.outside_is_untouched());
    }
}
