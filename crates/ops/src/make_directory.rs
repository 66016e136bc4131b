//! Makes a directory, with those on the way where that is wanted.

use sandbox::{FileKind, Follow, Parents};

use crate::context::Context;
use crate::error::{Error, Result, Wanted};
use crate::operation::Operation;
use crate::place::Place;

/// What becomes of a directory that is there already.
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
    /// What becomes of a directory that is there already.
    pub on_existing: OnExistingDirectory,
}

/// The directory that is there now.
#[derive(Debug)]
pub struct MadeDirectory {
    /// The resolved path.
    pub path: String,
    /// How many directories were made; 0 where it was there.
    pub created: u64,
}

impl Operation for MakeDirectory {
    type Outcome = MadeDirectory;

    fn run(self, context: &Context) -> Result<MadeDirectory> {
        context.cancel.check()?;
        let located = self.place.locate(Follow::Last)?;
        let path = located.path();
        let created = match (located.require().ok().map(|metadata| metadata.kind), self.parents) {
            (Some(FileKind::Directory), _) if self.on_existing == OnExistingDirectory::Succeed => 0,
            (Some(kind), _) => return Err(Error::AlreadyExists { path, kind }),
            (None, Parents::Create) => located.make_dirs(context.limits.durability)?.created,
            (None, Parents::Require) => {
                let made = located.make_dir();
                made.map_err(|error| self.place.explain(error, Wanted::Directory))?;
                1
            }
        };
        Ok(MadeDirectory { path, created })
    }
}
