//! The protocol: what clients send and get, from revision 2024-11-05 to 2026-07-28, on any transport.
//!
//! Bytes come in and are read once ([`message`]); one match over methods serves them ([`Server`]); one encoder writes what
//! goes out. A [`Connection`] is one client with its ids, running requests and our questions; [`Sessions`] keeps
//! connections of clients that come by HTTP requests. This crate knows no sockets and no files, so that all of it is tested
//! in memory. Of rmcp, the official SDK, it uses the types and nothing else.

mod client_roots;
mod connection;
mod finish_on_drop;
pub mod headers;
mod live_server;
pub mod message;
mod message_stream;
mod methods;
mod origin;
mod outline;
mod prompts;
mod questions;
mod resources;
mod result;
mod revision;
mod server;
mod session;
mod shape;
mod sse;
mod subscriptions;

pub use connection::{Connection, Nowhere, Outbox, Response, Serving, start};
pub use live_server::{AccessChange, Following, LiveChange, LiveServer};
pub use message::{Answer, Incoming, Message, Notification, Params, Refused, Request};
pub use message_stream::{MessageStream, held_bytes};
pub use methods::HeldMessage;
pub use origin::{HttpClient, Origin, host_of};
pub use outline::{Outline, OutlineSearch};
pub use revision::known_revisions;
pub use server::Server;
pub use session::{NoRoom, Owner, Session, SessionLimits, Sessions};
pub use sse::{EventStream, KEEP_ALIVE, as_event, event};
