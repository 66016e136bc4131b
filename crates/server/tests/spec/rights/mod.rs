//! Clients with rights of their own: what does not exist for one is in nothing that it is told.
#![expect(
    clippy::disallowed_methods,
    reason = "tests change the roots from outside the sandbox"
)]

mod audit_lines;
mod batches;
mod ground;
mod history;
mod matrix;
mod race;
mod scene;
mod templates;
