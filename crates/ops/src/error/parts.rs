//! The parts of a request that failures name. Each tool set has its own words for them.

use std::fmt;

/// Which pattern of a request is meant. Each tool set has its own name for the argument it came in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PatternRole {
    /// What lines are searched for.
    Lines,
    /// The glob that paths must match.
    PathGlob,
    /// The regular expression that paths must match.
    PathRegex,
    /// The glob for the files that are searched.
    SearchedFiles,
    /// The glob for the entries that are listed.
    ListedEntries,
}

impl fmt::Display for PatternRole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            PatternRole::Lines => "pattern for lines",
            PatternRole::PathGlob => "glob for paths",
            PatternRole::PathRegex => "regular expression for paths",
            PatternRole::SearchedFiles => "filter for files",
            PatternRole::ListedEntries => "filter for entries",
        })
    }
}

/// Which part of a request an operation refuses. Each tool set has its own name for the argument it came in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestPart {
    /// The version that a file has to have.
    Version,
    /// The files that are written.
    Files,
    /// The edits.
    Edits,
    /// The patch.
    Patch,
}

impl fmt::Display for RequestPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            RequestPart::Version => "version",
            RequestPart::Files => "list of files",
            RequestPart::Edits => "list of edits",
            RequestPart::Patch => "patch",
        })
    }
}
