//! Who is let in over HTTP, what requests may look like, and what operators see of it.
#![expect(
    clippy::disallowed_methods,
    reason = "tests change and look at the operator's files from outside"
)]

mod admin;
mod audit;
mod audit_chain;
mod bytes;
mod clients;
mod connections;
mod flood;
mod health;
mod issuer;
mod limits;
mod named_clients;
mod names;
mod oauth;
mod ready;
mod refusals;
mod reload;
mod sessions;
mod subjects;
mod tls;
mod tokens;

use testkit::{Value, json};

use crate::harness::message::tool_call;

/// A call that works on every root named `workspace`.
pub(crate) fn list_roots() -> Value {
    tool_call(1, "list_roots", &json!({}))
}

/// A small count for `make test`, or all of it for `make test-limits`.
fn few_or_all(few: usize, all: usize) -> usize {
    match std::env::var_os("LIMITS_EXHAUSTIVE") {
        Some(_) => all,
        None => few,
    }
}

/// The status of a raw HTTP answer.
pub(crate) fn status(answer: &str) -> Option<u16> {
    answer.strip_prefix("HTTP/1.1 ")?.get(..3)?.parse().ok()
}
