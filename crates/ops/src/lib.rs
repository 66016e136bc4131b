//! The work: one file an operation, each a request, an outcome and `run`.
//!
//! Operations are synchronous, know nothing of JSON or MCP, take places (a root and a path inside it) and
//! a [`Context`], and answer with an outcome or an [`Error`] that holds the facts. Differences between
//! tool sets are knobs of a request; words are not chosen here.

mod context;
mod error;
mod glob;
mod grep;
mod ignore_rules;
mod ordered;
mod pattern;
mod place;
mod pool;
#[cfg(test)]
mod test_tree;
mod walked;

pub use context::{Cancel, Context, Limits};
pub use error::{Error, ErrorKind, Result, Wanted};
pub use glob::{ENTRIES_MAX, Glob, GlobEntry, Globbed, Kinds, PathPattern};
pub use grep::{CONTEXT_LINES_MAX, FileMatches, Grep, Grepped, LineMatch, Output};
pub use ignore_rules::IgnoreRules;
pub use pattern::{Case, Pattern, Syntax};
pub use place::Place;
