//! Writes a whole file, adds to one, or makes one that must not be there yet.

use std::io::Write as _;

use sandbox::{Located, Metadata, OnExisting, Parents, StageOptions};

use crate::context::Context;
use crate::edit_lock::EditLock;
use crate::error::{Error, Result, Wanted};
use crate::operation::Operation;
use crate::place::Place;

/// How much is written between two looks at the caller's patience.
const PIECE: usize = 1024 * 1024;

/// What becomes of a file that is there already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteMode {
    /// Its content is replaced; a missing file is made.
    Overwrite,
    /// The bytes go to its end; a missing file is made.
    Append,
    /// It is an error, also in a race.
    CreateOnly,
}

/// Writes bytes to a file, whole or not at all.
#[derive(Debug)]
pub struct Write {
    /// The file; links are followed.
    pub place: Place,
    /// What to write.
    pub bytes: Vec<u8>,
    /// What becomes of a file that is there already.
    pub mode: WriteMode,
    /// Whether missing directories on the way are made.
    pub parents: Parents,
}

/// What a write did to the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// It was not there before.
    Created,
    /// Its content is new.
    Replaced,
    /// It is longer than before.
    Appended,
}

/// What was written.
#[derive(Debug)]
pub struct Written {
    /// The resolved path.
    pub path: String,
    /// How many bytes this call wrote.
    pub bytes_written: u64,
    /// What that did to the file.
    pub effect: Effect,
    /// The file as it is now.
    pub metadata: Metadata,
}

impl Operation for Write {
    type Outcome = Written;

    fn run(self, context: &Context) -> Result<Written> {
        let (_lock, located) = EditLock::take(&self.place, &context.cancel)?;
        if let (WriteMode::CreateOnly, Some(metadata)) = (self.mode, located.metadata()) {
            return Err(Error::AlreadyExists { path: located.path(), kind: metadata.kind });
        }
        located.check_writable()?;
        context.cancel.check()?;
        let metadata = match self.mode {
            WriteMode::Append => self.append(&located, context)?,
            WriteMode::Overwrite => self.replace(&located, OnExisting::Replace, context)?,
            WriteMode::CreateOnly => self.replace(&located, OnExisting::Fail, context)?,
        };
        Ok(Written {
            path: located.path(),
            bytes_written: self.bytes.len() as u64,
            effect: self.effect(&located),
            metadata,
        })
    }
}

impl Write {
    fn append(&self, located: &Located<'_>, context: &Context) -> Result<Metadata> {
        let appended = located.append(&self.bytes, self.parents, context.limits.durability);
        appended.map_err(|error| self.place.explain(error, Wanted::Directory))
    }

    fn replace(
        &self,
        located: &Located<'_>,
        on_existing: OnExisting,
        context: &Context,
    ) -> Result<Metadata> {
        let (parents, durability) = (self.parents, context.limits.durability);
        let staged = located.stage(StageOptions { on_existing, parents, durability });
        let mut staged = staged.map_err(|error| self.place.explain(error, Wanted::Directory))?;
        for piece in self.bytes.chunks(PIECE) {
            context.cancel.check()?;
            staged.write_all(piece).map_err(|error| write_failed(located, &error))?;
        }
        context.cancel.check()?;
        Ok(staged.commit()?)
    }

    fn effect(&self, located: &Located<'_>) -> Effect {
        match (located.metadata(), self.mode) {
            (None, _) => Effect::Created,
            (Some(_), WriteMode::Append) => Effect::Appended,
            (Some(_), _) => Effect::Replaced,
        }
    }
}

/// Tells a full disk from other trouble while content is written.
pub(crate) fn write_failed(located: &Located<'_>, error: &std::io::Error) -> Error {
    use std::io::ErrorKind::{QuotaExceeded, StorageFull};
    let path = located.path();
    match error.kind() {
        StorageFull | QuotaExceeded => Error::DiskFull { path },
        _ => Error::Io { operation: "write", path, reason: error.to_string() },
    }
}
