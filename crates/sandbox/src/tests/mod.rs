//! Tests that need to see inside: descriptors, and a hook before every system call.

#[path = "../../tests/support/mod.rs"]
pub(crate) mod support;

mod agreement;
mod calls;
mod interleaving;
mod private;
mod scenes;
