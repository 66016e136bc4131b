//! Removes a file, a link, a special file, an empty directory or a whole tree.
//!
//! A link is removed itself, never what it points to, and one that leads outside is refused when it is named;
//! inside a tree that goes, links just go with it.

use sandbox::{FileKind, Follow, LinkTarget, Located, Metadata, OnFault, Removal};

use crate::context::Context;
use crate::error::{Error, Result, Wanted};
use crate::operation::Operation;
use crate::place::Place;

/// What the caller means to remove.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RemoveTarget {
    /// Anything but a directory; a link to a directory is no directory.
    File,
    /// A directory, or a link to one.
    Directory,
    /// Whatever is there.
    Any,
}

/// What becomes of a directory's entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recurse {
    /// They are part of the work.
    Yes,
    /// They are not: only what is named.
    No,
}

/// What to say when nothing is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnMissing {
    /// It is an error.
    Fail,
    /// Fine, nothing to do.
    Succeed,
}

/// Removes what a path names.
#[derive(Debug)]
pub struct Remove {
    /// What to remove; a link at the end is not followed.
    pub place: Place,
    /// What the caller takes it for.
    pub target: RemoveTarget,
    /// Whether a directory goes with all it holds; otherwise only empty ones go.
    pub recurse: Recurse,
    /// What to say when nothing is there.
    pub on_missing: OnMissing,
    /// Whether a tree's removal ends at the first thing that cannot go.
    pub on_fault: OnFault,
}

/// What was removed.
#[derive(Debug)]
pub struct Removed {
    /// The resolved path.
    pub path: String,
    /// What it was; `None` where nothing was there.
    pub kind: Option<FileKind>,
    /// How many files, links and special files went.
    pub files: u64,
    /// How many directories went.
    pub directories: u64,
    /// What could not go, with [`OnFault::Collect`].
    pub faults: Vec<Error>,
}

impl Operation for Remove {
    type Outcome = Removed;

    fn run(self, context: &Context) -> Result<Removed> {
        context.cancel.check()?;
        let located = self.place.locate(Follow::Never)?;
        if located.is_root() {
            return Err(Error::RootProtected);
        }
        let Some(metadata) = located.metadata().copied() else {
            return self.missing(&located);
        };
        self.check_target(&located, &metadata)?;
        let removal = self.remove(&located, metadata.kind, context)?;
        Ok(Removed {
            path: located.path(),
            kind: Some(metadata.kind),
            files: removal.files,
            directories: removal.directories,
            faults: removal.faults.into_iter().map(Error::from).collect(),
        })
    }
}

impl Remove {
    fn missing(&self, located: &Located<'_>) -> Result<Removed> {
        let (path, faults) = (located.path(), Vec::new());
        match (self.on_missing, located.require()) {
            (OnMissing::Fail, Err(error)) => Err(self.place.explain(error, self.wanted())),
            _ => Ok(Removed { path, kind: None, files: 0, directories: 0, faults }),
        }
    }

    fn wanted(&self) -> Wanted {
        match self.target {
            RemoveTarget::File => Wanted::File,
            RemoveTarget::Directory => Wanted::Directory,
            RemoveTarget::Any => Wanted::Anything,
        }
    }

    fn check_target(&self, located: &Located<'_>, metadata: &Metadata) -> Result<()> {
        let path = || self.place.path.as_given().to_owned();
        let is_directory = match metadata.kind {
            FileKind::Symlink => inside_target(&self.place, located)?,
            kind => Some(kind),
        } == Some(FileKind::Directory);
        match self.target {
            RemoveTarget::File if metadata.kind == FileKind::Directory => {
                Err(Error::IsADirectory { path: path() })
            }
            RemoveTarget::Directory if !is_directory => Err(Error::NotADirectory { path: path() }),
            _ => Ok(()),
        }
    }

    fn remove(&self, located: &Located<'_>, kind: FileKind, context: &Context) -> Result<Removal> {
        match (kind, self.recurse) {
            (FileKind::Directory, Recurse::Yes) => remove_tree(located, self.on_fault, context),
            (FileKind::Directory, Recurse::No) => {
                located.remove_empty_dir()?;
                Ok(Removal { files: 0, directories: 1, faults: Vec::new() })
            }
            _ => {
                located.unlink()?;
                Ok(Removal { files: 1, directories: 0, faults: Vec::new() })
            }
        }
    }
}

/// What a named link leads to inside; `None` where that is missing or goes round in circles.
///
/// Security: a link that leads outside is refused, so that no call on it tells or changes anything.
pub(crate) fn inside_target(place: &Place, link: &Located<'_>) -> Result<Option<FileKind>> {
    match link.link_target()? {
        LinkTarget::Inside { metadata, .. } => Ok(Some(metadata.kind)),
        LinkTarget::Dangling | LinkTarget::Loop => Ok(None),
        LinkTarget::Outside => Err(leads_outside(place)),
    }
}

/// The refusal of a link that leads outside.
pub(crate) fn leads_outside(place: &Place) -> Error {
    Error::Outside { path: place.path.as_given().to_owned(), leads_to: String::new() }
}

/// Removes a directory and all it holds.
pub(crate) fn remove_tree(
    located: &Located<'_>,
    on_fault: OnFault,
    context: &Context,
) -> Result<Removal> {
    let stop = || context.cancel.must_stop();
    let removal = located.remove_tree(&stop, on_fault, &|count| context.cancel.advance(count));
    removal.map_err(|error| context.cancel.explain(error))
}
