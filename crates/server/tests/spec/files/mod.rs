//! The `files` set: every parameter, default, reply field and error of its specification.

mod beyond;
mod contract;
mod copy_move;
mod delete;
mod info;
mod list;
mod mkdir;
mod parameters;
mod partial;
mod permissions;
mod rate_limits;
mod read;
mod search;
mod set;
mod settings;
mod write;

pub(crate) use self::set::Files;
