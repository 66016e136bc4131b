//! Replaces the one place of a string in a text file.

use sandbox::Metadata;

use crate::content::reader;
use crate::context::Context;
use crate::edit::Edited;
use crate::error::Result;
use crate::operation::Operation;
use crate::place::Place;
use crate::text::edit::replace_unique;

/// Replaces a string that must occur exactly once.
#[derive(Debug)]
pub struct ReplaceString {
    /// The file; links are followed.
    pub place: Place,
    /// What goes.
    pub old: String,
    /// What comes, literally.
    pub new: String,
}

/// The string was replaced.
#[derive(Debug)]
pub struct ReplacedString {
    /// The resolved path.
    pub path: String,
    /// The file as it is now.
    pub metadata: Metadata,
}

impl Operation for ReplaceString {
    type Outcome = ReplacedString;

    fn run(self, context: &Context) -> Result<ReplacedString> {
        let edited = Edited::begin(&self.place, context)?;
        let open = edited.open_text()?;
        let mut read = reader(&open, &context.cancel);
        let splice = replace_unique(&edited.path(), &mut read, &self.old, &self.new)?;
        let metadata = edited.splice(&open, &splice)?;
        Ok(ReplacedString {
            path: edited.path(),
            metadata,
        })
    }
}
