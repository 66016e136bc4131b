//! The `reference` set: what the reference server's clients rely on, without that server.

mod changes;
mod paths;
mod race;
mod reads;
mod roots;
mod set;
mod startup;

pub(crate) use set::{Reference, setup};
