//! The `memory` set.

mod criteria;
mod edits;
mod errors;
mod scenarios;
mod set;
mod startup;
mod together;

pub(crate) use self::set::Memory;
