//! Restores one file as it was just before a change, whatever else the change did.

use super::moment::Moment;
use crate::Operation;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::place::Place;
use crate::read_at::read_up_to;
use crate::write::{SyntaxCheck, Write, WriteMode};
use sandbox::{FileKind, Parents};

/// Brings a file back. Nothing may be at its path now; missing directories on the way are made. Its permissions are those
/// of a new file.
#[derive(Debug)]
pub struct Restore {
    /// Its path, before and after.
    pub place: Place,
    /// The change whose earlier state is restored.
    pub before: u64,
    /// Only says what would be done.
    pub is_rehearsal: bool,
}

/// A file that was brought back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Restored {
    /// Its path.
    pub path: String,
    /// How many bytes it has.
    pub size: u64,
}

impl Operation for Restore {
    type Outcome = Restored;

    fn run(self, context: &Context) -> Result<Restored> {
        let path = self.place.path.as_given().to_owned();
        let open = self.place.open_past(&Moment::Change(self.before))?;
        if self.place.is_there() {
            let kind = FileKind::File;
            return Err(Error::AlreadyExists { path, kind });
        }
        let (size, limit) = (open.metadata.size, context.limits.max_file_size);
        if size > limit {
            return Err(Error::TooLarge { path, size, limit });
        }
        if !self.is_rehearsal {
            let write = Write {
                bytes: read_up_to(&open, 0, size, &context.cancel)?,
                place: self.place,
                mode: WriteMode::CreateOnly,
                parents: Parents::Create,
                syntax: SyntaxCheck::Skip,
            };
            write.run(context)?;
        }
        Ok(Restored { path, size })
    }
}
