//! The `workspace` set.

mod compare;
mod config;
mod copy_move;
mod deny;
mod edit;
mod errors;
mod faulty_edits;
mod folders;
mod glob;
mod grep;
mod journeys;
mod logs;
mod metadata;
mod patch;
mod performance;
mod protocol;
mod read;
mod roots;
mod security;
mod set;
mod slips;
mod snapshots;
mod versions;
mod watch;
mod write;

pub(crate) use self::set::Workspace;
