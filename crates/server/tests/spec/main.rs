//! Every requirement, tested on the program that users start, by a client that speaks the protocol.
//!
//! A test's name carries the requirement's number. Each body runs over stdio and over HTTP.

mod confirm;
mod coverage;
mod faults;
mod files;
mod frames;
mod guide;
mod harness;
mod http_access;
mod large_replies;
mod memory;
mod memory_tool;
mod project;
mod reference;
mod replies;
mod resources;
mod rights;
mod shell;
mod texts;
mod workspace;
