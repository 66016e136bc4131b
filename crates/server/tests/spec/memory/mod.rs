//! The `memory` set.

mod criteria;
mod edits;
mod errors;
mod scenarios;
mod startup;
mod store;
mod together;
