//! The `guide` set: every scenario of its two specifications, one file per tool or topic.

mod allowed_paths;
mod answers;
mod arguments;
mod audit;
mod cache;
mod cache_file;
mod clients;
mod handover;
mod list_directory;
mod questions;
mod read_file;
mod reference;
mod request_directory;
mod request_file;
mod results;
mod sealed_state;
mod set;
mod staleness;
mod startup;
