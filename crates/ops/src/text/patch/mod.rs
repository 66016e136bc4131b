//! Unified diffs and their relatives, as programs and as models write them.
//!
//! The way a patch is written is treated leniently, the place it applies to strictly: its old lines must be in the
//! text, either in exactly one place or at the line that its header names. Nothing is guessed or fuzzed, and what does
//! not fit changes nothing. What a patch can ask for besides changing lines (renames, modes, links, binary content,
//! deletion) is refused by name.
//!
//! Line ends of the text stay as they are, and so does a missing newline at its end, unless the patch shows that it
//! means to change them.

mod apply;
mod block;
#[cfg(test)]
pub(crate) mod faulty;
mod forbidden;
mod hunk;
mod names;
mod parse;
mod search;
#[cfg(test)]
mod tests;

use std::ops::Range;

use crate::context::Cancel;
use crate::error::Result;

pub use parse::{FilePatch, ParsedPatch};

/// A text after a patch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Applied {
    /// The new text.
    pub content: Vec<u8>,
    /// Where each hunk went.
    pub hunks: Vec<HunkPlace>,
    /// Where in the new text the changes are, in order.
    pub changes: Vec<Range<u64>>,
}

/// Where a hunk went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HunkPlace {
    /// The line of the new text, from 1, at which it starts.
    pub line: usize,
    /// How many lines below (or, negative, above) the place in its header it was found.
    pub offset: i64,
}

/// Reads a patch, which has parts for one file or for several.
///
/// [`PatchMalformed`](crate::Error::PatchMalformed) names the line of the patch.
pub fn files<'p>(patch: &'p str, cancel: &Cancel) -> Result<Vec<FilePatch<'p>>> {
    read(patch, cancel).files
}

/// Reads a patch like [`files`], and tells the names also if it is malformed.
#[must_use]
pub fn read<'p>(patch: &'p str, cancel: &Cancel) -> ParsedPatch<'p> {
    parse::parse(patch, cancel)
}

/// Applies the part of a patch that is for one text, which is empty for a file that does not exist yet.
///
/// `path` is only repeated in errors: [`PatchMismatch`](crate::Error::PatchMismatch) names the hunk and the line of the
/// text, [`PatchNotUnique`](crate::Error::PatchNotUnique) the lines where it fits.
pub fn apply(
    path: &str,
    content: &[u8],
    patch: &FilePatch<'_>,
    cancel: &Cancel,
) -> Result<Applied> {
    apply::run(path, content, patch, cancel)
}
