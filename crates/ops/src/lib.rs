//! The work.
