//! Unified diffs: strict parsing, strict application, one pass.
//!
//! A patch changes the one text it is given, whatever names its headers have, and either fits or fails:
//! nothing is repaired, guessed or fuzzed. What a patch can ask for besides changing lines (renames, modes,
//! links, binary content, deletion) is refused by name.
//!
//! Two things are not held against a patch, because programs that write patches by hand cannot see them:
//! its lines may end in `\n` where the text has `\r\n`, and it may not know that the text's last line has
//! no newline. Both stay in the text as they are.

mod apply;
mod parse;
mod search;
#[cfg(test)]
mod tests;

use crate::context::Cancel;
use crate::error::Result;

/// A text after a patch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Applied {
    /// The new text.
    pub content: Vec<u8>,
    /// Where each hunk went.
    pub hunks: Vec<HunkPlace>,
}

/// Where a hunk went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HunkPlace {
    /// The line of the new text, from 1, at which it starts.
    pub line: usize,
    /// How many lines below (or, negative, above) the place in its header it was found.
    pub offset: i64,
}

/// Applies a patch to a text, which is empty for a file that does not exist yet.
///
/// `path` is only repeated in errors: [`PatchMalformed`](crate::Error::PatchMalformed) names the line of the patch,
/// [`PatchMismatch`](crate::Error::PatchMismatch) the hunk and the line of the text.
pub fn apply(path: &str, content: &[u8], patch: &str, cancel: &Cancel) -> Result<Applied> {
    let patch = parse::parse(patch, cancel)?;
    apply::run(path, content, &patch, cancel)
}
