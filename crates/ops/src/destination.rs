//! The destination of a copy or move: what an existing one means, and the directory it is in.

use std::sync::Arc;

use sandbox::{Change, Dir, FileKind, Follow, Located, Name, NewDirs, OnExisting, RelPath, Root};

use crate::copy_tree::CopySide;
use crate::error::{Error, Result};
use crate::place::Place;

/// What an existing directory as destination means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnDirectory {
    /// The source goes into it under its own name.
    Into,
    /// It is the target itself: a copy merges with it, and an empty one is replaced.
    Onto,
}

/// Something that is copied or moved.
#[derive(Debug, Clone)]
pub(crate) struct TransferSource<'a, 'root> {
    pub(crate) root: &'a Arc<Root>,
    pub(crate) located: &'a Located<'root>,
    pub(crate) kind: FileKind,
    /// The name it keeps inside another directory; the root itself has none.
    pub(crate) name: Option<Name>,
}

impl<'a, 'root> TransferSource<'a, 'root> {
    /// A source with the name its caller gave it, or else the name it has.
    pub(crate) fn new(
        place: &'a Place,
        located: &'a Located<'root>,
        kind: FileKind,
    ) -> TransferSource<'a, 'root> {
        TransferSource {
            root: &place.root,
            located,
            kind,
            name: place.path.file_name().or_else(|| located.name().cloned()),
        }
    }

    /// The same name in the same directory, as it is now.
    pub(crate) fn again(&self) -> Result<Located<'root>> {
        let path = RelPath::parse(&self.located.path())?;
        Ok(self.located.root().locate(&path, Follow::Never)?)
    }

    /// The source as one side of a copy of its tree.
    pub(crate) fn side(&self) -> Result<CopySide> {
        Ok(CopySide {
            root: Arc::clone(self.root),
            top: self.located.open_dir()?,
        })
    }

    fn is_directory(&self) -> bool {
        self.kind == FileKind::Directory
    }
}

/// Says which path the source will have.
pub(crate) fn target(
    destination: &Place,
    source: &TransferSource<'_, '_>,
    on_directory: OnDirectory,
) -> Result<Place> {
    let there = destination
        .locate(Follow::Last)?
        .require()
        .ok()
        .map(|metadata| metadata.kind);
    let slashed_file = destination.path.must_be_directory() && !source.is_directory();
    let given = || destination.path.as_given().to_owned();
    let into = match (there, on_directory) {
        (Some(FileKind::Directory), OnDirectory::Into) => true,
        // This includes a link to one: the link itself would be replaced.
        (Some(kind @ FileKind::Directory), OnDirectory::Onto) if slashed_file => {
            return Err(Error::Irreplaceable {
                path: given(),
                kind,
                by: source.kind,
            });
        }
        (None, OnDirectory::Onto) if slashed_file => {
            return Err(Error::NotADirectory { path: given() });
        }
        // `file` to `missing/` can only mean a file in a new directory.
        (None, OnDirectory::Into) => slashed_file,
        _ => false,
    };
    let path = match &source.name {
        Some(name) if into => destination.path.join(name),
        _ => destination.path.clone(),
    };
    Ok(Place {
        path,
        ..destination.clone()
    })
}

/// Fails if the source cannot go to `target`: into itself, or onto something that must stay.
pub(crate) fn check(
    source: &TransferSource<'_, '_>,
    target: &Located<'_>,
    on_existing: OnExisting,
) -> Result<()> {
    if source.located.contains(target) {
        return Err(Error::IntoItself {
            path: source.located.path(),
        });
    }
    let Ok(metadata) = target.require() else {
        return Ok(());
    };
    let (path, kind) = (target.path(), metadata.kind);
    let same_sort = source.is_directory() == (kind == FileKind::Directory);
    match on_existing {
        OnExisting::Fail => Err(Error::AlreadyExists { path, kind }),
        // A process may be using a FIFO, socket or device.
        OnExisting::Replace if kind.is_special() => Err(Error::NotAFile { path, kind }),
        OnExisting::Replace if !same_sort => Err(Error::Irreplaceable {
            path,
            kind,
            by: source.kind,
        }),
        OnExisting::Replace => Ok(()),
    }
}

/// Opens the directory of the target. Missing directories are made, and removed on drop unless they are kept.
pub(crate) fn parent_dir(target: &Located<'_>, change: &Change) -> Result<(Dir, Option<NewDirs>)> {
    let path = target.path();
    let parent = path.rsplit_once('/').map_or("", |(parent, _)| parent);
    let parent = RelPath::parse(parent)?;
    let root = target.root();
    let made = change.make_dirs_for_now(&root.locate(&parent, Follow::Never)?)?;
    Ok((root.locate(&parent, Follow::Never)?.open_dir()?, made))
}
