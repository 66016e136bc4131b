//! The words: what a tool is called, takes, answers, and how it fails; and the one road of a call.
//!
//! A tool set is a [`Face`] (its errors and its name) and a list of tools, each a [`Tool`] in one file. Every call
//! of every set goes the same way: admit → decode → run on the blocking pool → word → audit ([`Service::call`]).
//! This crate knows MCP and JSON; it does not touch files (that is `ops`) and opens no port (that is `server`).

mod admit;
mod arguments;
mod audit;
mod client;
mod defaults;
mod deployment;
mod dispatch;
mod face;
mod figures;
pub mod files;
pub mod guide;
mod left_out;
pub mod memory;
mod moment;
mod rate;
mod reference;
mod reply;
mod schema;
mod search;
mod service;
mod tally;
mod tool;
mod turns;
pub mod workspace;

pub use admit::Gate;
pub use arguments::{BadArgument, shortened};
pub use client::{Answers, AskBy, Caller, Client, OpenQuestion, Question, Silent};
pub use deployment::{Allowlist, Deployment, Recorded, Recorder, Replies, RootGrant};
pub use face::{About, Face, Failure, FailureText, PlaceNamed, Worded};
pub use figures::{DURATION_CLASSES, Figures};
pub use rate::Rate;
pub use reply::{Answer, Reply, ToolResult};
pub use service::{Service, SetupError};
pub use tool::{
    Access, AnyTool, Asking, Blocking, Call, Definition, Effect, Ended, Example, Job, Prepared,
    RootCard, RootSource, RootUse, Schema, Talk, Tool, ToolSet, Work, tool,
};
