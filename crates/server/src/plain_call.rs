//! The message that clients send most: a call of a tool with nothing beside it.
//!
//! rmcp reads each message as one of dozens of kinds and gives each request tasks and channels of its own; for a small
//! file that costs more than all the rest. So transports answer calls that need nothing of it themselves, with the very
//! bytes that rmcp would have sent. Whatever is unusual (metadata, progress, unknown tools, anything that has to be
//! refused) is left to rmcp.

use rmcp::model::{JsonObject, RequestId};
use serde::Deserialize;

/// A call of a tool, with nothing beside it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PlainCall {
    #[expect(dead_code, reason = "it is only there to be right")]
    jsonrpc: Version,
    pub(crate) id: RequestId,
    #[expect(dead_code, reason = "it is only there to be right")]
    method: Called,
    pub(crate) params: Params,
}

#[derive(Debug, Deserialize)]
enum Version {
    #[serde(rename = "2.0")]
    Two,
}

#[derive(Debug, Deserialize)]
enum Called {
    #[serde(rename = "tools/call")]
    Tool,
}

/// What is called, and with what.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Params {
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) arguments: JsonObject,
}

impl PlainCall {
    /// Reads a message; `None` where it is anything else.
    pub(crate) fn read(message: &[u8]) -> Option<PlainCall> {
        serde_json::from_slice(message).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_call_with_nothing_beside_it_is_plain() {
        let plain = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":{"b":1}}}"#;
        let call = PlainCall::read(plain.as_bytes()).expect("a plain call");
        assert_eq!((call.id, &*call.params.name), (RequestId::Number(1), "a"));
        for (part, other) in [
            ("2.0", "1.0"),
            ("tools/call", "tools/list"),
            (r#""id":1,"#, ""),
            (r#""id":1,"#, r#""id":1,"id":2,"#),
            (r#""id":1,"#, r#""id":1,"more":2,"#),
            (r#""id":1,"#, r#""id":null,"#),
            (r#""name":"a","#, r#""name":"a","_meta":{},"#),
            (r#"{"b":1}"#, "[]"),
            (r#"{"b":1}"#, "null"),
        ] {
            let other = plain.replace(part, other);
            assert!(PlainCall::read(other.as_bytes()).is_none(), "{other}");
        }
    }
}
