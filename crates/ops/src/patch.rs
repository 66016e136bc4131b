//! Applies a unified diff to a text file, all of it or nothing.

use sandbox::Metadata;

use crate::content::read_up_to;
use crate::context::Context;
use crate::edit::{Edited, MAX_EDITED};
use crate::error::Result;
use crate::operation::Operation;
use crate::place::Place;
use crate::text::patch::{self, HunkPlace};
use crate::write::Effect;

/// Applies a patch to a file; a missing one is made, with the directories on the way.
#[derive(Debug)]
pub struct Patch {
    /// The file; links are followed. The names in the patch do not count.
    pub place: Place,
    /// A unified diff.
    pub patch: String,
}

/// The patch was applied.
#[derive(Debug)]
pub struct Patched {
    /// The resolved path.
    pub path: String,
    /// Where each hunk went.
    pub hunks: Vec<HunkPlace>,
    /// Whether the file is new.
    pub effect: Effect,
    /// The file as it is now.
    pub metadata: Metadata,
}

impl Operation for Patch {
    type Outcome = Patched;

    fn run(self, context: &Context) -> Result<Patched> {
        let edited = Edited::begin(&self.place, context)?;
        let (old, effect) = match edited.exists() {
            true => {
                let open = edited.open_text()?;
                (
                    read_up_to(&open, 0, MAX_EDITED, &context.cancel)?,
                    Effect::Replaced,
                )
            }
            false => (Vec::new(), Effect::Created),
        };
        let applied = patch::apply(&edited.path(), &old, &self.patch, &context.cancel)?;
        drop(old);
        let metadata = edited.replace(&applied.content)?;
        Ok(Patched {
            path: edited.path(),
            hunks: applied.hunks,
            effect,
            metadata,
        })
    }
}
