//! The protocol in memory: what a client gets for what it sends, without a pipe or a port.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "tests"
)]

mod connections;
mod headers;
mod service;
mod sessions;
