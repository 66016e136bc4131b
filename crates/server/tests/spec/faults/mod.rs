//! What the machine does to the server: full and broken disks, kills, files that change under it, and too little of
//! everything. Also limits that the operator sets, and hostile input.
//!
//! Tests that need a mount or another user run in a namespace of their own. Where that is not allowed they print why and
//! pass.

#![expect(
    clippy::disallowed_methods,
    reason = "tests change host directories from outside the sandbox"
)]

mod audit;
mod batches;
mod changes;
mod crash;
mod disk;
mod exhaustion;
mod fairness;
mod full_disk;
mod gone_root;
mod history;
mod history_kills;
mod history_limits;
mod history_places;
mod history_series;
mod history_tools;
mod hostile;
mod in_place;
mod power;
mod quota;
mod regressions;
mod replica_history;
mod replicas;
mod reserved;
mod scarce;
mod search;
mod shared_directory;
mod trees;
