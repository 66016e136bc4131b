//! The message that clients send most: a call of a tool with nothing beside it.
//!
//! rmcp reads each message as one of dozens of kinds and gives each request tasks and channels of its own; for a small
//! file that costs more than all the rest. So transports answer calls that need nothing of it themselves, with the very
//! bytes that rmcp would have sent. Whatever is unusual (metadata, progress, unknown tools, anything that has to be
//! refused) is left to rmcp.

use std::fmt;
use std::marker::PhantomData;

use rmcp::model::{
    CallToolRequestParams, ClientJsonRpcMessage, ClientRequest, JsonObject, Request, RequestId,
};
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};

/// A call of a tool, with nothing beside it.
#[derive(Debug)]
pub(crate) struct PlainCall {
    pub(crate) id: RequestId,
    pub(crate) params: Params,
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Message<'a> {
    jsonrpc: &'a str,
    id: RequestId,
    method: &'a str,
    params: Object<Params>,
}

/// What is called, and with what.
#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Params {
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) arguments: JsonObject,
}

impl PlainCall {
    /// Reads a message; `None` where it is anything else.
    pub(crate) fn read(message: &[u8]) -> Option<PlainCall> {
        let Object(message) = serde_json::from_slice::<Object<Message<'_>>>(message).ok()?;
        let is_call = message.jsonrpc == "2.0" && message.method == "tools/call";
        is_call.then_some(PlainCall {
            id: message.id,
            params: message.params.0,
        })
    }
}

impl From<PlainCall> for ClientJsonRpcMessage {
    /// The same message as rmcp would have read it.
    fn from(call: PlainCall) -> ClientJsonRpcMessage {
        let Params { name, arguments } = call.params;
        let params = CallToolRequestParams::new(name).with_arguments(arguments);
        let request = ClientRequest::CallToolRequest(Request::new(params));
        ClientJsonRpcMessage::request(request, call.id)
    }
}

/// Something written as an object: what is derived would take an array of its fields too.
struct Object<T>(T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Object<T>, D::Error> {
        deserializer.deserialize_map(ObjectVisitor(PhantomData))
    }
}

struct ObjectVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for ObjectVisitor<T> {
    type Value = Object<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Object<T>, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map)).map(Object)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_call_with_nothing_beside_it_is_plain() {
        let plain = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":{"b":1}}}"#;
        let call = PlainCall::read(plain.as_bytes()).expect("a plain call");
        assert_eq!((&call.id, &*call.params.name), (&RequestId::Number(1), "a"));
        let own = serde_json::to_string(&ClientJsonRpcMessage::from(call)).unwrap();
        let theirs: ClientJsonRpcMessage = serde_json::from_str(plain).unwrap();
        assert_eq!(own, serde_json::to_string(&theirs).unwrap());
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
            (r#""2.0""#, r#"{"2.0":null}"#),
            (r#""tools/call""#, r#"{"tools/call":null}"#),
            (r#"{"name":"a","arguments":{"b":1}}"#, r#"["a",{"b":1}]"#),
            (
                plain,
                r#"["2.0",1,"tools/call",{"name":"a","arguments":{}}]"#,
            ),
        ] {
            let other = plain.replace(part, other);
            assert!(PlainCall::read(other.as_bytes()).is_none(), "{other}");
        }
    }
}
