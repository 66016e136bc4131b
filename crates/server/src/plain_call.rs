//! The message that clients send most: a call of a tool with nothing beside it but what its revision asks for.
//!
//! rmcp reads each message as one of dozens of kinds and gives each request tasks and channels of its own; for a small
//! file that costs more than all the rest. So transports answer calls that need nothing of it themselves, with the very
//! bytes that rmcp would have sent. Whatever is unusual (other metadata, progress, unknown tools, anything that has to
//! be refused) is left to rmcp.

use std::fmt;
use std::marker::PhantomData;

use rmcp::model::{
    CallToolRequestParams, ClientCapabilities, ClientJsonRpcMessage, ClientRequest, Implementation,
    JsonObject, Request, RequestId,
};
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use toolset::{Introduction, Revision};

/// The revision in which every request introduces its client.
pub(crate) const NEWEST: &str = "2026-07-28";

/// A call of a tool, with nothing unusual beside it.
#[derive(Debug)]
pub(crate) struct PlainCall {
    pub(crate) id: RequestId,
    pub(crate) name: String,
    pub(crate) arguments: JsonObject,
    /// What it says of its client, as the newest revision has it.
    pub(crate) introduction: Option<Introduction>,
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Message<'a> {
    jsonrpc: &'a str,
    id: RequestId,
    method: &'a str,
    #[serde(borrow)]
    params: Object<Params<'a>>,
}

/// What is called, and with what.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Params<'a> {
    name: String,
    #[serde(default)]
    arguments: JsonObject,
    #[serde(borrow, default, rename = "_meta", deserialize_with = "given")]
    meta: Option<Object<Meta<'a>>>,
}

/// What the newest revision has in every request.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Meta<'a> {
    #[serde(rename = "io.modelcontextprotocol/protocolVersion")]
    revision: &'a str,
    #[serde(rename = "io.modelcontextprotocol/clientInfo")]
    client: Implementation,
    #[serde(rename = "io.modelcontextprotocol/clientCapabilities")]
    capabilities: ClientCapabilities,
}

impl PlainCall {
    /// Reads a message; `None` where it is anything else.
    pub(crate) fn read(message: &[u8]) -> Option<PlainCall> {
        let Object(message) = serde_json::from_slice::<Object<Message<'_>>>(message).ok()?;
        let Object(params) = message.params;
        let meta = params.meta.map(|Object(meta)| meta);
        let is_call = message.jsonrpc == "2.0" && message.method == "tools/call";
        let is_known = meta.as_ref().is_none_or(|meta| meta.revision == NEWEST);
        (is_call && is_known).then(|| PlainCall {
            id: message.id,
            name: params.name,
            arguments: params.arguments,
            introduction: meta.map(|meta| Introduction::new(&meta.client, &meta.capabilities)),
        })
    }

    /// The same message as rmcp would have read it; `None` where it would have read more than is kept here.
    pub(crate) fn into_rmcp(self) -> Option<ClientJsonRpcMessage> {
        if self.introduction.is_some() {
            return None;
        }
        let params = CallToolRequestParams::new(self.name).with_arguments(self.arguments);
        let request = ClientRequest::CallToolRequest(Request::new(params));
        Some(ClientJsonRpcMessage::request(request, self.id))
    }

    /// How its answer is worded.
    pub(crate) fn revision(&self) -> Revision {
        match self.introduction {
            Some(_) => Revision::Newest,
            None => Revision::Older,
        }
    }
}

/// What is given may not be null.
fn given<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
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

    const PLAIN: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":{"b":1}}}"#;
    const NEW: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","_meta":{
        "io.modelcontextprotocol/protocolVersion":"2026-07-28",
        "io.modelcontextprotocol/clientInfo":{"name":"c","version":"2"},
        "io.modelcontextprotocol/clientCapabilities":{"roots":{}}}}}"#;

    fn is_refused(message: &str, changes: &[(&str, &str)]) {
        for (part, other) in changes {
            assert!(message.contains(part), "{part}");
            let other = message.replace(part, other);
            assert!(PlainCall::read(other.as_bytes()).is_none(), "{other}");
        }
    }

    #[test]
    fn only_a_call_with_nothing_beside_it_is_plain() {
        let call = PlainCall::read(PLAIN.as_bytes()).expect("a plain call");
        assert_eq!((&call.id, &*call.name), (&RequestId::Number(1), "a"));
        assert_eq!(call.arguments["b"], 1);
        assert_eq!(call.revision(), Revision::Older);
        let own = serde_json::to_string(&call.into_rmcp()).unwrap();
        let theirs: ClientJsonRpcMessage = serde_json::from_str(PLAIN).unwrap();
        assert_eq!(own, serde_json::to_string(&theirs).unwrap());
        is_refused(
            PLAIN,
            &[
                ("2.0", "1.0"),
                ("tools/call", "tools/list"),
                (r#""id":1,"#, ""),
                (r#""id":1,"#, r#""id":1,"id":2,"#),
                (r#""id":1,"#, r#""id":1,"more":2,"#),
                (r#""id":1,"#, r#""id":null,"#),
                (r#""name":"a","#, r#""name":"a","_meta":{},"#),
                (r#""name":"a","#, r#""name":"a","_meta":null,"#),
                (r#"{"b":1}"#, "[]"),
                (r#"{"b":1}"#, "null"),
                (r#""2.0""#, r#"{"2.0":null}"#),
                (r#""tools/call""#, r#"{"tools/call":null}"#),
                (r#"{"name":"a","arguments":{"b":1}}"#, r#"["a",{"b":1}]"#),
                (
                    PLAIN,
                    r#"["2.0",1,"tools/call",{"name":"a","arguments":{}}]"#,
                ),
            ],
        );
    }

    #[test]
    fn a_call_of_the_newest_revision_introduces_its_client_and_says_nothing_else() {
        let call = PlainCall::read(NEW.as_bytes()).expect("a plain call");
        assert_eq!(call.revision(), Revision::Newest);
        is_refused(
            NEW,
            &[
                ("2026-07-28", "2025-11-25"),
                (r#""2026-07-28""#, r#"{"2026-07-28":null}"#),
                (r#""_meta":{"#, r#""_meta":{"progressToken":1,"#),
                (r#""_meta":{"#, r#""requestState":"x","_meta":{"#),
                (r#"{"name":"c","version":"2"}"#, r#""c""#),
                (r#"{"roots":{}}"#, "null"),
                (
                    r#""io.modelcontextprotocol/protocolVersion":"2026-07-28","#,
                    "",
                ),
            ],
        );
    }
}
