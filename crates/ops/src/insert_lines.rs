//! Inserts text before a line of a text file.

use sandbox::Metadata;

use crate::content::reader;
use crate::context::Context;
use crate::edit::Edited;
use crate::error::Result;
use crate::operation::Operation;
use crate::place::Place;
use crate::text::edit::insert_before;

/// Inserts text before a line.
#[derive(Debug)]
pub struct InsertLines {
    /// The file; links are followed.
    pub place: Place,
    /// The line, from 1; one after the last is allowed.
    pub line: i64,
    /// What comes.
    pub text: String,
}

/// The text was inserted.
#[derive(Debug)]
pub struct InsertedLines {
    /// The resolved path.
    pub path: String,
    /// The file as it is now.
    pub metadata: Metadata,
}

impl Operation for InsertLines {
    type Outcome = InsertedLines;

    fn run(self, context: &Context) -> Result<InsertedLines> {
        let edited = Edited::begin(&self.place, context)?;
        let open = edited.open_text()?;
        let mut read = reader(&open, &context.cancel);
        let splice = insert_before(&edited.path(), &mut read, self.line, &self.text)?;
        let metadata = edited.splice(&open, &splice)?;
        Ok(InsertedLines {
            path: edited.path(),
            metadata,
        })
    }
}
