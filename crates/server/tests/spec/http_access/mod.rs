//! Who is let in over HTTP, what requests may look like, and what operators see of it.
#![expect(
    clippy::disallowed_methods,
    reason = "tests change and look at the operator's files from outside"
)]

mod audit;
mod health;
mod limits;
mod names;
mod sessions;
mod tls;
mod tokens;

use testkit::{Value, json};

/// A call that works on every root named `workspace`.
pub(crate) fn list_roots() -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "list_roots", "arguments": {}}})
}

/// The status of a raw HTTP answer.
pub(crate) fn status(answer: &str) -> Option<u16> {
    answer.strip_prefix("HTTP/1.1 ")?.get(..3)?.parse().ok()
}
