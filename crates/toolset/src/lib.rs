//! The contracts: what each tool is called, takes and answers, how it fails; and the one dispatch of calls.
//!
//! A tool set is a [`Contract`] (its name and its errors) and a list of tools, each a [`Tool`] in one file. Every call
//! of every set takes the same road: admit → decode → run → word → record ([`Service::call`]). This crate knows MCP's
//! types and JSON, but neither JSON-RPC nor HTTP; it does not touch files (that is `ops`).

mod admission;
mod arguments;
mod audit;
mod call_watch;
mod catalogue;
mod change_after_call;
mod client;
mod client_stats;
mod comparison;
mod confirm;
mod contract;
mod defaults;
mod deployment;
mod dispatch;
mod fair_queue;
pub mod files;
pub mod guide;
mod hash_algorithm;
mod heavy_turn;
mod history;
mod host_paths;
mod iso_time;
mod json;
mod json_text;
mod known_clients;
mod made_items;
mod match_text;
mod media;
pub mod memory;
pub mod memory_tool;
mod metrics;
mod observer;
mod plain_failures;
pub mod prompts;
mod rate;
pub mod reference;
mod reply;
mod reply_message;
pub mod resources;
mod root_turns;
mod schema;
mod search_bounds;
mod skipped;
mod streamed_content;
mod text_form;
mod told_arguments;
mod tool;
mod tool_names;
mod tool_reference;
mod trace;
mod unread_note;
mod watch;
pub mod workspace;

pub use admission::Admission;
pub use arguments::{BadArgument, field, shortened};
pub use catalogue::{Catalogue, SetCollision, SetNames, SetupError, every_set, first_collision};
pub use client::{
    AccountKind, Answers, AskBy, Caller, Client, OpenQuestion, PendingQuestion, Silent,
};
pub use confirm::{ConfirmRule, NotConfirmed};
pub use contract::{
    CallSubject, Contract, Failure, FailureText, NamedPlace, ResourceTools, Worded,
};
pub use deployment::{
    Allowlist, ClientGrant, ClientRootGrant, Deployment, MemoryCreate, MemoryStore,
    MemoryToolChoices, Recorded, Recorder, ReplyHalves, ReplyPolicy, RootGrant, TextForm,
};
pub use dispatch::{Encoded, Encoder, NoMessage, Service};
pub use heavy_turn::{SMALL_MESSAGE, in_heavy_turn};
pub use history::refusal_words;
pub use host_paths::HostDirectories;
pub use json::escape;
pub use json_text::JsonText;
pub use media::{Media, MediaKind};
pub use metrics::{DURATION_BUCKETS, ToolMetrics};
pub use observer::{CallObserver, ObservedCall, ObservedEnd};
/// For callers that know only this crate.
pub use ops::{Right, Rights, first_chars};
pub use rate::CallRate;
pub use reply::{CallOutcome, EncodedReply, MethodFailure, RefusalKind, ResourceLink, ToolResult};
pub use reply_message::{MessageBuilder, MessagePiece, ReplyMessage};
pub use root_turns::RootTurns;
pub use streamed_content::StreamedContent;
pub use tool::{
    AnyTool, Asking, Blocking, BlockingWork, Call, CallWork, Definition, Ended, Example, Inline,
    InlineRest, PlaceAccess, Prepared, ReplyForm, RootInfo, RootSource, RootUse, Schema, Talk,
    Tool, ToolEffect, ToolSet, tool,
};
pub use trace::TraceContext;
