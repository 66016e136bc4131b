//! The place: a root is an open directory, and every path is looked up inside it, by file descriptor.
//!
//! This crate is the only one that talks to the file system. It knows nothing of operations, tools,
//! JSON or protocols. Everything above it names files by a [`Root`] and a [`RelPath`] and gets back
//! open descriptors and the resolved path inside the root, so that nothing is ever looked up twice.
//!
//! What it promises, also against an attacker who renames and links inside the root while we work:
//! nothing outside the root is opened, listed, created, changed or removed, and nothing about what
//! exists there is told.

mod error;
mod metadata;
mod name;
mod rel_path;
mod replace;
mod root;

pub use error::{Error, PathFault, Result};
pub use metadata::{FileKind, Metadata, Time};
pub use name::{Name, shown};
pub use rel_path::RelPath;
pub use replace::Durability;
pub use root::Root;
