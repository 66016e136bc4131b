//! The wire.
fn main() {}
