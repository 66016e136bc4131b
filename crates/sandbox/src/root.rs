//! The root.

/// An open directory that nothing escapes from.
#[derive(Debug)]
pub struct Root;
