//! The work: one file an operation, each a request, an outcome and `run`.
//!
//! Operations are synchronous, know nothing of JSON or MCP, take places (a root and a path inside it) and
//! a [`Context`], and answer with an outcome or an [`Error`] that holds the facts. Differences between
//! tool sets are knobs of a request; words are not chosen here.

mod context;
mod error;
mod place;

pub use context::{Cancel, Context, Limits};
pub use error::{Error, ErrorKind, Result, Wanted};
pub use place::Place;
// What the layer above needs of the one below.
pub use sandbox::{FileKind, PathFault, Root};
