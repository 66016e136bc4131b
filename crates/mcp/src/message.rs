//! Reads one message as a client wrote it, and words the refusal of anything that is not one.
//!
//! The words are here for both transports. A refusal carries the id of the message if one can be found, so that no
//! client waits for ever.

use std::borrow::Cow;

use rmcp::model::{ErrorCode, ErrorData, JsonObject, RequestId};
use serde::de::{Deserialize, MapAccess};
use serde_json::Value;
use toolset::shortened;

use crate::outline::{MAX_ID, Outline};
use crate::result;
use crate::revision;
use crate::shape::{FromKeys, ReadValue, RepeatedKey, Shape};

/// The byte order mark, which some editors put before a text.
const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// The most values one message may have: each takes hundreds of bytes while it is read, whatever its own size.
const MAX_VALUES: usize = 100_000;

/// The request that stays open and reports changes until it ends.
pub(crate) const LISTEN: &str = "subscriptions/listen";

/// How deep values may be nested: the limit of serde_json.
const MAX_LEVELS: usize = 127;

/// What the bytes of a line or body turned out to be.
#[derive(Debug)]
pub enum Incoming {
    /// A message to be served.
    Message(Message),
    /// Nothing that needs an answer: an empty line, or an unreadable notification.
    Nothing,
    /// Not a message; the client is told why.
    Refused(Refused),
}

/// A message.
#[derive(Debug)]
pub enum Message {
    /// It expects a reply.
    Request(Request),
    /// It expects no reply.
    Notification(Notification),
    /// It answers a question of ours.
    Answer(Answer),
}

/// A request.
#[derive(Debug)]
pub struct Request {
    /// Its id.
    pub id: RequestId,
    /// The method it calls.
    pub method: String,
    /// Its parameters.
    pub params: Params,
}

impl Request {
    /// Whether it is `initialize`.
    #[must_use]
    pub fn greets(&self) -> bool {
        revision::greets(Some(&self.method), &self.params)
    }
}

impl Request {
    /// Whether it only waits for changes, until its client hangs up.
    #[must_use]
    pub fn listens(&self) -> bool {
        self.method == LISTEN
    }

    /// Whether its client expects messages before the reply: progress or changes.
    #[must_use]
    pub fn wants_notifications(&self) -> bool {
        let meta = self.params.meta();
        self.listens() || meta.is_some_and(|meta| meta.contains_key("progressToken"))
    }
}

/// A notification.
#[derive(Debug)]
pub struct Notification {
    /// Its method.
    pub method: String,
    /// Its parameters.
    pub params: Params,
}

/// What a client answers to a question of ours.
#[derive(Debug)]
pub struct Answer {
    /// Our id of the question; an error may lack it if the client could not read the question.
    pub id: Option<RequestId>,
    /// A result, or an error.
    pub outcome: Result<Value, ErrorData>,
}

impl Answer {
    /// The refusal of an unsolicited answer.
    #[must_use]
    pub fn unasked(reason: &'static str) -> Vec<u8> {
        result::error(None, &ErrorData::invalid_request(reason, None))
    }
}

/// The params of a request or a notification: an object, or nothing.
#[derive(Debug, Default)]
pub struct Params {
    value: Option<Value>,
    /// The bytes of the whole message.
    size: usize,
}

impl Params {
    /// One of them; `None` if it is missing or the params are not an object.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Value> {
        toolset::field(self.value.as_ref()?.as_object()?, name)
    }

    /// Takes one of them out.
    pub fn take(&mut self, name: &str) -> Option<Value> {
        let mut fields = self.value.as_mut()?.as_object_mut()?.iter_mut();
        let own = fields.find(|(field, _)| *field == name);
        own.map(|(_, value)| value.take())
    }

    /// One of them that is a string.
    #[must_use]
    pub fn text(&self, name: &str) -> Option<&str> {
        self.get(name)?.as_str()
    }

    /// The message's `_meta`.
    #[must_use]
    pub fn meta(&self) -> Option<&JsonObject> {
        self.get("_meta")?.as_object()
    }

    /// The size in bytes of the message that they came with.
    #[must_use]
    pub fn message_size(&self) -> usize {
        self.size
    }

    /// All parameters.
    #[must_use]
    pub fn into_value(self) -> Value {
        self.value.unwrap_or_default()
    }
}

/// A message that is not served, and why.
#[derive(Debug)]
pub struct Refused {
    outline: Outline,
    error: Box<ErrorData>,
}

impl Refused {
    fn new(code: ErrorCode, message: String, outline: Outline) -> Refused {
        Refused {
            outline,
            error: Box::new(ErrorData::new(code, message, None)),
        }
    }

    /// The id of the request that it was meant to be. The id of an answer is ours, and may be that of a request of the
    /// client's too, so it does not count.
    pub(crate) fn id(&self) -> Option<&RequestId> {
        let id = self.outline.id.as_ref();
        id.filter(|_| !self.outline.is_answer)
    }

    /// What the client is told.
    #[must_use]
    pub fn reply(&self) -> Vec<u8> {
        result::error(self.id(), &self.error)
    }

    /// The reply if a request with the same id is still running: the only reply with that id belongs to that request.
    pub(crate) fn reply_beside(&self, running: &RequestId) -> Vec<u8> {
        let (reason, id) = (self.reason(), shown(running));
        let message = format!(
            "{reason}; this reply has no id, because the id {id} is in use by a request that still runs"
        );
        result::error(None, &ErrorData::new(self.error.code, message, None))
    }

    /// Why it is refused.
    #[must_use]
    pub fn reason(&self) -> &str {
        &self.error.message
    }

    /// Turns a refused answer into an error for its question, so that the call stops waiting for it.
    #[must_use]
    pub fn into_answer(self) -> Option<Answer> {
        let id = self.outline.id.filter(|_| self.outline.is_answer)?;
        Some(Answer {
            id: Some(id),
            outcome: Err(*self.error),
        })
    }
}

/// Reads one message.
#[must_use]
pub fn read(bytes: &[u8]) -> Incoming {
    let bytes = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes);
    if bytes.trim_ascii().is_empty() {
        return Incoming::Nothing;
    }
    if has_too_many_values(bytes) {
        return Incoming::Refused(overfull(bytes));
    }
    match serde_json::from_slice::<Shape<Box<Envelope>>>(bytes) {
        Ok(Shape::Object(envelope)) => envelope.classify(bytes.len()),
        Ok(Shape::Array) => misshapen("batches are not taken; send one message at a time"),
        Ok(Shape::Other) => misshapen("a message is an object with jsonrpc, id, method and params"),
        Err(mistake) => Incoming::Refused(Refused::new(
            ErrorCode::PARSE_ERROR,
            unreadable(&mistake),
            Outline::of(bytes),
        )),
    }
}

/// Refuses a message that is larger than the limit.
#[must_use]
pub fn too_large(outline: Outline, most: usize) -> Refused {
    let message = format!("Invalid Request: {}", larger_than(most));
    Refused::new(ErrorCode::INVALID_REQUEST, message, outline)
}

/// The error for a message that is larger than the limit, on every transport.
#[must_use]
pub fn larger_than(most: usize) -> String {
    format!(
        "the message is larger than {most} bytes; send less at once, or raise server.max_body_size"
    )
}

/// Refuses a request whose id is still in use. The refusal has no id: the reply with that id belongs to the other request.
#[must_use]
pub fn id_in_use(id: &RequestId) -> Refused {
    let id = shown(id);
    let message = format!(
        "Invalid Request: the id {id} is in use by a request that still runs; give every request an id of its own"
    );
    Refused::new(ErrorCode::INVALID_REQUEST, message, Outline::default())
}

fn shown(id: &RequestId) -> String {
    match id {
        RequestId::Number(number) => number.to_string(),
        RequestId::String(text) => format!("{:?}", toolset::first_chars(text, MAX_ID)),
    }
}

fn misshapen(what: &str) -> Incoming {
    Incoming::Refused(Refused::new(
        ErrorCode::INVALID_REQUEST,
        format!("Invalid Request: {what}"),
        Outline::default(),
    ))
}

fn unreadable(mistake: &serde_json::Error) -> String {
    let mistake = mistake.to_string();
    // It may be valid JSON, but serde_json stopped before its end.
    if mistake.starts_with("recursion limit exceeded") {
        return format!(
            "Parse error: the message is nested more than {MAX_LEVELS} levels deep; send less at once"
        );
    }
    format!("Parse error: the message is not JSON ({mistake})")
}

/// The values of a message are counted before it is read: reading many small ones would take far more memory than the
/// message is long.
fn has_too_many_values(bytes: &[u8]) -> bool {
    // A value takes two bytes at least, with the comma behind it.
    bytes.len() / 2 > MAX_VALUES && has_more_values_than(MAX_VALUES, bytes)
}

fn overfull(bytes: &[u8]) -> Refused {
    let message = format!(
        "Invalid Request: the message has more than {MAX_VALUES} values; send less at once"
    );
    Refused::new(ErrorCode::INVALID_REQUEST, message, Outline::of(bytes))
}

/// Counts the brackets and commas outside of strings.
fn has_more_values_than(most: usize, bytes: &[u8]) -> bool {
    let (mut values, mut rest) = (0, bytes);
    while let Some((byte, behind)) = rest.split_first() {
        rest = match byte {
            b'"' => behind_string(behind),
            _ => behind,
        };
        values += usize::from(matches!(byte, b',' | b'{' | b'['));
        if values > most {
            return true;
        }
    }
    false
}

fn behind_string(mut bytes: &[u8]) -> &[u8] {
    while let Some(at) = memchr::memchr2(b'"', b'\\', bytes) {
        let step = match bytes.get(at) {
            Some(b'"') => return bytes.get(at + 1..).unwrap_or_default(),
            _ => at + 2,
        };
        bytes = bytes.get(step..).unwrap_or_default();
    }
    &[]
}

/// The fields of a message, whatever their types.
#[derive(Default)]
struct Envelope {
    jsonrpc: Option<Value>,
    id: Option<Value>,
    method: Option<Value>,
    params: Option<Value>,
    result: Option<Value>,
    error: Option<Value>,
    repeated: RepeatedKey,
}

impl Envelope {
    fn classify(self: Box<Envelope>, size: usize) -> Incoming {
        // A notification never gets a reply, not even a refusal.
        let is_notification = self.id.is_none() && matches!(self.method, Some(Value::String(_)));
        match self.fault() {
            None => Incoming::Message(self.message(size)),
            Some(_) if is_notification => Incoming::Nothing,
            Some(fault) => Incoming::Refused(Refused::new(
                ErrorCode::INVALID_REQUEST,
                format!("Invalid Request: {fault}"),
                self.outline(),
            )),
        }
    }

    /// Says why it is not a message.
    fn fault(&self) -> Option<Cow<'static, str>> {
        if self.jsonrpc.as_ref().and_then(Value::as_str) != Some("2.0") {
            return Some("jsonrpc has to be \"2.0\"".into());
        }
        // A proxy may use one value, and the server the other.
        if let Some(key) = self.repeated.key() {
            let key = shortened(key);
            return Some(
                format!("the key {key:?} stands twice in one object; send it once").into(),
            );
        }
        self.wrong_field().map(Cow::Borrowed)
    }

    fn wrong_field(&self) -> Option<&'static str> {
        let has_method = matches!(self.method, Some(Value::String(_)));
        let is_answer = self.is_answer();
        let id_may_be_missing = match &self.id {
            None => has_method || self.is_lone_error(),
            Some(Value::Null) => self.is_lone_error(),
            Some(_) => false,
        };
        if self.id().is_none() && !id_may_be_missing {
            Some("id has to be a string or a whole number")
        } else if has_method && self.has_result_or_error() {
            Some("a message has a method, or a result or an error, but not both")
        } else if is_answer && !self.has_outcome() {
            Some("an answer has a result, or an error with code and message")
        } else if !is_answer && !has_method {
            Some("method has to be a string")
        } else if !matches!(self.params, None | Some(Value::Null | Value::Object(_))) {
            Some("params do not fit the method")
        } else {
            None
        }
    }

    fn message(self, size: usize) -> Message {
        let id = self.id();
        let params = Params {
            value: self.params.filter(Value::is_object),
            size,
        };
        match (self.method, id) {
            (Some(Value::String(method)), Some(id)) => {
                Message::Request(Request { id, method, params })
            }
            (Some(Value::String(method)), None) => {
                Message::Notification(Notification { method, params })
            }
            (_, id) => Message::Answer(Answer {
                id,
                outcome: outcome(self.result, self.error),
            }),
        }
    }

    fn id(&self) -> Option<RequestId> {
        RequestId::deserialize(self.id.as_ref()?).ok()
    }

    fn is_answer(&self) -> bool {
        self.method.is_none() && (self.result.is_some() || self.error.is_some())
    }

    fn has_result_or_error(&self) -> bool {
        is_said(self.result.as_ref()) || is_said(self.error.as_ref())
    }

    /// Whether it has either a result or an error, as far as they are not null.
    fn has_outcome(&self) -> bool {
        if is_said(self.error.as_ref()) {
            self.has_error() && !is_said(self.result.as_ref())
        } else {
            self.result.is_some()
        }
    }

    fn has_error(&self) -> bool {
        let error = self.error.as_ref();
        error.is_some_and(|error| ErrorData::deserialize(error).is_ok())
    }

    /// Whether it is an error about something that its sender could not read.
    fn is_lone_error(&self) -> bool {
        self.method.is_none() && self.result.is_none() && self.has_error()
    }

    fn outline(&self) -> Outline {
        Outline {
            id: self.id(),
            is_answer: self.is_answer(),
        }
    }
}

fn is_said(value: Option<&Value>) -> bool {
    value.is_some_and(|value| !value.is_null())
}

fn outcome(result: Option<Value>, error: Option<Value>) -> Result<Value, ErrorData> {
    match error.map(ErrorData::deserialize) {
        Some(Ok(error)) => Err(error),
        _ => Ok(result.unwrap_or_default()),
    }
}

impl FromKeys for Box<Envelope> {
    fn from_keys<'de, A: MapAccess<'de>>(mut keys: A) -> Result<Box<Envelope>, A::Error> {
        let mut envelope = Box::<Envelope>::default();
        while let Some(key) = keys.next_key::<EnvelopeKey>()? {
            // Unknown fields are read too: a message has to be JSON throughout.
            let value = keys.next_value_seed(ReadValue(&mut envelope.repeated))?;
            let (field, name) = match key {
                EnvelopeKey::Jsonrpc => (&mut envelope.jsonrpc, "jsonrpc"),
                EnvelopeKey::Id => (&mut envelope.id, "id"),
                EnvelopeKey::Method => (&mut envelope.method, "method"),
                EnvelopeKey::Params => (&mut envelope.params, "params"),
                EnvelopeKey::Result => (&mut envelope.result, "result"),
                EnvelopeKey::Error => (&mut envelope.error, "error"),
                EnvelopeKey::Other => continue,
            };
            if field.replace(value).is_some() {
                envelope.repeated.note(name);
            }
        }
        Ok(envelope)
    }
}

/// The keys of a message.
#[derive(serde::Deserialize)]
#[serde(rename_all = "snake_case")]
enum EnvelopeKey {
    Jsonrpc,
    Id,
    Method,
    Params,
    Result,
    Error,
    #[serde(other)]
    Other,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn refusal(bytes: &[u8]) -> Refused {
        match read(bytes) {
            Incoming::Refused(refused) => refused,
            other => panic!("{other:?}"),
        }
    }

    fn reply(bytes: &[u8]) -> Value {
        serde_json::from_slice(&refusal(bytes).reply()).expect("JSON")
    }

    fn refused(bytes: &[u8]) -> (Value, Value, String) {
        let reply = reply(bytes);
        let message = reply["error"]["message"].as_str().expect("a message");
        let message = message.to_owned();
        (reply["id"].clone(), reply["error"]["code"].clone(), message)
    }

    #[test]
    fn answers_that_cannot_be_read_are_told_to_who_waits_for_them() {
        let deep = format!(r#"{{"id":4,"result":{}"#, "[".repeat(1000));
        let full = format!(
            r#"{{"jsonrpc":"2.0","result":[{}0],"id":5}}"#,
            "0,".repeat(MAX_VALUES)
        );
        let cases = [
            (
                r#"{"jsonrpc":"2.0","id":0,"error":"no"}"#,
                json!(0),
                "code and message",
            ),
            (
                r#"{"jsonrpc":"2.0","id":1,"error":{"code":"x"}}"#,
                json!(1),
                "code",
            ),
            (r#"{"result":{},"id":"two"}"#, json!("two"), "jsonrpc"),
            (r#"{"id":3,"result":"\ud800"}"#, json!(3), "not JSON"),
            (deep.as_str(), json!(4), "levels"),
            (full.as_str(), json!(5), "100000 values"),
        ];
        for (text, id, words) in cases {
            let refused = refusal(text.as_bytes());
            let told: Value = serde_json::from_slice(&refused.reply()).expect("JSON");
            assert!(told["id"].is_null(), "{told}");
            let answer = refused.into_answer().expect("an answer");
            let message = answer.outcome.expect_err("an error").message;
            assert_eq!(serde_json::to_value(answer.id).unwrap(), id, "{message}");
            assert!(message.contains(words), "{message}");
        }
    }

    #[test]
    fn messages_are_read_also_behind_a_byte_order_mark() {
        for start in ["", "\u{feff}", "  "] {
            let text = format!(r#"{start}{{"jsonrpc":"2.0","id":1,"method":"ping"}}"#);
            let read = read(text.as_bytes());
            assert!(
                matches!(read, Incoming::Message(Message::Request(_))),
                "{start:?}"
            );
        }
    }

    #[test]
    fn the_kinds_of_messages_are_told_apart() {
        let kind = |text: &str| match read(text.as_bytes()) {
            Incoming::Message(Message::Request(request)) => format!("request {}", request.method),
            Incoming::Message(Message::Notification(note)) => format!("note {}", note.method),
            Incoming::Message(Message::Answer(answer)) => {
                format!("answer {:?}", answer.id.map(|id| id.to_string()))
            }
            other => panic!("{other:?}"),
        };
        let cases = [
            (
                r#"{"params":{},"method":"tools\/call","id":"a","jsonrpc":"2.0"}"#,
                "request tools/call",
            ),
            (
                r#"{"jsonrpc":"2.0","method":"x","more":[1,{"id":2}]}"#,
                "note x",
            ),
            (
                r#"{"jsonrpc":"2.0","id":1.0,"result":null}"#,
                "answer Some(\"1\")",
            ),
            (
                r#"{"jsonrpc":"2.0","id":7,"error":{"code":1,"message":"m"}}"#,
                "answer Some(\"7\")",
            ),
        ];
        for (text, expected) in cases {
            assert_eq!(kind(text), expected);
        }
    }

    #[test]
    fn text_that_is_not_json_is_answered_with_its_id() {
        let cases: [(&[u8], Value); 6] = [
            (br#"{"jsonrpc":"2.0","id":7,"x":"\ud800"}"#, json!(7)),
            (b"{\"x\":\"\xff\",\"id\":\"a\"}", json!("a")),
            (br#"{"params":{"id":1},"id":2,"#, json!(2)),
            (br#"{"a":"\",\"id\":3,","id":4]"#, json!(4)),
            (b"hello", Value::Null),
            (br#"{"id":{"id":1}"#, Value::Null),
        ];
        for (bytes, expected) in cases {
            let (id, code, message) = refused(bytes);
            assert_eq!(id, expected, "{message}");
            assert_eq!(code, json!(-32700), "{message}");
            assert!(
                message.starts_with("Parse error: the message is not JSON ("),
                "{message}"
            );
        }
    }

    #[test]
    fn deep_nesting_is_no_message() {
        let deep = format!(r#"{{"id":5,"params":{}"#, "[".repeat(100_000));
        let (_, code, _) = refused(deep.as_bytes());
        assert_eq!(code, json!(-32700));
        let nested = |levels: usize| {
            let (open, close) = ("[".repeat(levels - 1), "]".repeat(levels - 1));
            format!(r#"{{"id":5,"params":{open}{close}}}"#)
        };
        let (id, _, message) = refused(nested(MAX_LEVELS + 1).as_bytes());
        assert_eq!(id, json!(5));
        assert!(message.contains("more than 127 levels"), "{message}");
        let (_, _, message) = refused(nested(MAX_LEVELS).as_bytes());
        assert!(!message.contains("levels"), "{message}");
    }

    #[test]
    fn json_that_is_no_message_is_told_what_it_lacks() {
        let message = |text: &str| refused(text.as_bytes()).2;
        assert!(message("[]").contains("one message at a time"));
        assert!(message("3").contains("an object"));
        assert!(message("null").contains("an object"));
        assert!(message(r#"{"id":1,"method":"ping"}"#).contains("jsonrpc has to be \"2.0\""));
        for id in ["1.5", "null", "true", "[]", "{}"] {
            let odd = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#);
            assert!(message(&odd).contains("id has to be"), "{}", message(&odd));
        }
        assert!(message(r#"{"jsonrpc":"2.0"}"#).contains("id has to be"));
        assert!(
            message(r#"{"jsonrpc":"2.0","id":1,"method":3}"#).contains("method has to be a string")
        );
        let list = r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":[1]}"#;
        assert!(message(list).contains("params do not fit the method"));
        let twice = r#"{"jsonrpc":"2.0","id":1,"method":"ping","id":2}"#;
        assert!(message(twice).contains("twice"));
        let twice = r#"{"jsonrpc":"2.0","id":1,"method":"x","params":{"name":"a","name":"b"}}"#;
        assert!(message(twice).contains("twice"));
        for outcome in [r#""result":{}"#, r#""error":{"code":1,"message":"m"}"#] {
            let both = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"ping",{outcome}}}"#);
            assert!(message(&both).contains("but not both"));
        }
        let both = r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":"m"}}"#;
        assert!(message(both).contains("a result, or an error"));
    }

    #[test]
    fn a_message_has_a_bounded_number_of_values() {
        let message = |values: usize, text: &str| {
            let values = format!("{text},").repeat(values);
            format!(r#"{{"jsonrpc":"2.0","id":6,"method":"ping","params":{{"x":[{values}0]}}}}"#)
        };
        let (id, code, words) = refused(message(MAX_VALUES, r#"{"":0}"#).as_bytes());
        assert_eq!(id, json!(6));
        assert_eq!(code, json!(-32600));
        assert!(words.contains("100000 values"), "{words}");
        let fits = message(1000, "0");
        assert!(matches!(read(fits.as_bytes()), Incoming::Message(_)));
        let text = message(1, &json!("[,{\\\"".repeat(100_000)).to_string());
        assert!(
            matches!(read(text.as_bytes()), Incoming::Message(_)),
            "text is one value"
        );
    }

    #[test]
    fn notifications_and_empty_lines_get_no_reply() {
        let notification = r#"{"method":"notifications/strange","params":[]}"#;
        for text in ["", "  \r", notification] {
            assert!(matches!(read(text.as_bytes()), Incoming::Nothing), "{text}");
        }
    }
}
