//! The words: what a tool is called, takes, answers, and how it fails; and the one road of a call.
//!
//! A tool set is a [`Contract`] (its errors and its name) and a list of tools, each a [`Tool`] in one file. Every call
//! of every set goes the same way: admit → decode → run on the blocking pool → word → audit ([`Service::call`]).
//! This crate knows MCP and JSON; it does not touch files (that is `ops`) and opens no port (that is `server`).

mod admission;
mod arguments;
mod audit;
mod call_watch;
mod catalogue;
mod client;
mod client_stats;
mod contract;
mod defaults;
mod deployment;
mod dispatch;
mod fair_queue;
pub mod files;
pub mod guide;
mod iso_time;
pub mod memory;
mod metrics;
mod rate;
mod reply;
mod schema;
mod search_bounds;
mod skipped;
mod tool;
mod tool_reference;
pub mod workspace;

pub use admission::Admission;
pub use arguments::{BadArgument, shortened};
pub use catalogue::{Catalogue, SetCollision, SetNames, SetupError, every_set, first_collision};
pub use client::{Answers, AskBy, Caller, Client, OpenQuestion, PendingQuestion, Silent};
pub use contract::{CallSubject, Contract, Failure, FailureText, NamedPlace, Worded};
pub use deployment::{Allowlist, Deployment, Recorded, Recorder, ReplyHalves, RootGrant};
pub use dispatch::Service;
pub use metrics::{DURATION_BUCKETS, ToolMetrics};
pub use rate::CallRate;
pub use reply::{CallOutcome, EncodedReply, ToolResult};
pub use tool::{
    AnyTool, Asking, Blocking, BlockingWork, Call, CallWork, Definition, Ended, Example, Inline,
    InlineRest, PlaceAccess, Prepared, RootInfo, RootSource, RootUse, Schema, Talk, Tool,
    ToolEffect, ToolSet, tool,
};
