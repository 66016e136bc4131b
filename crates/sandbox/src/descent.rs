//! Goes down and up a tree by descriptors, without recursion and with only a few of them open.
//!
//! Only the innermost directories stay open. On the way up a closed one is opened again through `..` of the
//! directory being left, and used only if it is the same directory that was left on the way down.

use crate::dir::Dir;
use crate::error::{Error, Result};
use crate::planted_fault::{self, PlantedFault};
use crate::syscall::{self, Errno};

/// How many of the innermost directories stay open.
const OPEN_LEVELS: usize = 16;

/// A path of directories from a top one down, each with a note of its visitor.
#[derive(Debug)]
pub struct Descent<T> {
    levels: Vec<DescentLevel<T>>,
}

#[derive(Debug)]
struct DescentLevel<T> {
    dir: LevelDir,
    note: T,
}

#[derive(Debug)]
enum LevelDir {
    Open(Dir),
    /// Closed, with the device and inode it had.
    Closed(u64, u64),
}

impl<T> Descent<T> {
    /// A descent that has not begun.
    #[must_use]
    pub fn new() -> Descent<T> {
        Descent { levels: Vec::new() }
    }

    /// The number of directories on the path.
    #[must_use]
    pub fn depth(&self) -> usize {
        self.levels.len()
    }

    /// Goes into a directory, which becomes the innermost.
    pub fn enter(&mut self, dir: Dir, note: T) -> Result<()> {
        self.levels.push(DescentLevel {
            dir: LevelDir::Open(dir),
            note,
        });
        let outermost_open = self.levels.len().saturating_sub(OPEN_LEVELS + 1);
        match self.levels.get_mut(outermost_open) {
            // The top one stays open: everything can start from it again.
            Some(level) if outermost_open > 0 => level.close(),
            _ => Ok(()),
        }
    }

    /// The innermost directory and its note.
    pub fn innermost(&mut self) -> Option<(&Dir, &mut T)> {
        let level = self.levels.last_mut()?;
        match &level.dir {
            LevelDir::Open(dir) => Some((dir, &mut level.note)),
            LevelDir::Closed(..) => None,
        }
    }

    /// What the visitor remembers of each directory, the outermost first.
    pub(crate) fn notes_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.levels.iter_mut().map(|level| &mut level.note)
    }

    /// Leaves the innermost directory and reopens its parent; if the parent cannot be found any
    /// more, the nearest one above that is still open.
    pub fn leave(&mut self) -> Option<(T, Result<()>)> {
        let left = self.levels.pop()?;
        let reopened = match (self.levels.last_mut(), &left.dir) {
            (Some(above), LevelDir::Open(dir)) => above.reopen(dir),
            _ => Ok(()),
        };
        while matches!(
            self.levels.last(),
            Some(DescentLevel {
                dir: LevelDir::Closed(..),
                ..
            })
        ) {
            self.levels.pop();
        }
        Some((left.note, reopened))
    }
}

impl<T> Default for Descent<T> {
    fn default() -> Descent<T> {
        Descent::new()
    }
}

impl<T> DescentLevel<T> {
    fn close(&mut self) -> Result<()> {
        if let LevelDir::Open(dir) = &self.dir {
            let metadata = dir.metadata()?;
            self.dir = LevelDir::Closed(metadata.device, metadata.inode);
        }
        Ok(())
    }

    fn reopen(&mut self, below: &Dir) -> Result<()> {
        if let LevelDir::Closed(device, inode) = self.dir {
            self.dir = LevelDir::Open(above_of(below, (device, inode))?);
        }
        Ok(())
    }
}

/// The directory above one, if it still is the one it was.
fn above_of(dir: &Dir, identity: (u64, u64)) -> Result<Dir> {
    let failed = |errno| Error::from_errno("open", dir.path(), errno);
    let fd = syscall::open_parent_unchecked(dir.fd()).map_err(failed)?;
    let path = dir.path_bytes();
    let cut = path.iter().rposition(|&b| b == b'/').unwrap_or(0);
    let above = dir.kin(fd, path.get(..cut).unwrap_or_default().to_vec());
    let metadata = above.metadata()?;
    // Security: a directory moved meanwhile has another one above it, perhaps outside the root.
    let known = (metadata.device, metadata.inode) == identity;
    if known || planted_fault::planted(PlantedFault::UncheckedAbove) {
        Ok(above)
    } else {
        Err(failed(Errno::NOENT))
    }
}
