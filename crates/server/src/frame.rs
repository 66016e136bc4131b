//! One message as a client wrote it, and what to tell him where it is none.
//!
//! rmcp drops what it cannot read, and a client then waits for ever. So what is wrong is said here, with the id that
//! the message carries as far as it can be made out, for both transports in the same words.

use rmcp::model::{ClientJsonRpcMessage, ErrorCode, ErrorData, RequestId, ServerJsonRpcMessage};
use serde_json::{Map, Value};

/// What some editors put before the text.
const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";
/// The longest id that is made out in a message that cannot be read.
const MAX_ID: usize = 256;

/// The most values one message may have: each takes hundreds of bytes while it is read, whatever its own size.
const MAX_VALUES: usize = 100_000;

/// How deep values may be nested: as far as serde_json goes down.
const MAX_LEVELS: usize = 127;

/// What the bytes of a message came to.
#[derive(Debug)]
pub(crate) enum Frame {
    /// A message, for rmcp to serve.
    Message(Box<ClientJsonRpcMessage>),
    /// Nothing that wants an answer: an empty line, or a notification that nobody here knows.
    Nothing,
    /// A mistake, and the reply to it.
    Mistake(Box<ServerJsonRpcMessage>),
    /// An answer to a request of ours that cannot be read.
    Spoiled(Box<Spoiled>),
}

/// An answer that cannot be read, of which only the id is known. Who waits for it is told, so that nobody waits for more.
#[derive(Debug)]
pub(crate) struct Spoiled {
    id: RequestId,
    error: ErrorData,
}

impl Spoiled {
    /// What the request of ours gets instead of its answer.
    pub(crate) fn instead(&self) -> ClientJsonRpcMessage {
        ClientJsonRpcMessage::error(self.error.clone(), Some(self.id.clone()))
    }

    /// What the client is told; without the id, which is ours and may be that of a request of the client's too.
    pub(crate) fn reply(&self) -> ServerJsonRpcMessage {
        ServerJsonRpcMessage::error(self.error.clone(), None)
    }
}

/// What can be made out of a message that cannot be read.
#[derive(Debug, Default, Clone, PartialEq)]
pub(crate) struct Outline {
    id: Option<RequestId>,
    /// It has a result or an error, so it answers a request of ours.
    is_answer: bool,
}

/// Reads one message.
pub(crate) fn read(bytes: &[u8]) -> Frame {
    let bytes = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes);
    if bytes.trim_ascii().is_empty() {
        return Frame::Nothing;
    }
    if let Some(frame) = overfull(bytes) {
        return frame;
    }
    match serde_json::from_slice(bytes) {
        Ok(message) => Frame::Message(Box::new(message)),
        Err(_) => explained(bytes),
    }
}

/// What becomes of a message of so many values that reading it would take far more memory than it is long.
pub(crate) fn overfull(bytes: &[u8]) -> Option<Frame> {
    // A value takes two bytes at least, with the comma behind it.
    if bytes.len() / 2 <= MAX_VALUES || !has_more_values_than(MAX_VALUES, bytes) {
        return None;
    }
    let message = format!(
        "Invalid Request: the message has more than {MAX_VALUES} values; send less at once"
    );
    Some(refused(
        ErrorCode::INVALID_REQUEST,
        message,
        outline_of(bytes),
    ))
}

/// Counts what begins or parts values outside of strings.
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

/// What becomes of a message that is longer than what is taken.
pub(crate) fn too_large(outline: Outline, most: usize) -> Frame {
    let message = format!(
        "Invalid Request: the message is larger than {most} bytes; send less at once, or raise server.max_body_size"
    );
    refused(ErrorCode::INVALID_REQUEST, message, outline)
}

/// The reply to a request whose id another one still has.
pub(crate) fn id_in_use(id: &RequestId) -> ServerJsonRpcMessage {
    let id = match id {
        RequestId::Number(number) => number.to_string(),
        RequestId::String(text) => format!("{:?}", shortened(text)),
    };
    let message = format!(
        "Invalid Request: the id {id} is in use by a request that still runs; give every request an id of its own"
    );
    // Without the id: the request that has it gets its own answer.
    error(ErrorCode::INVALID_REQUEST, message, None)
}

fn explained(bytes: &[u8]) -> Frame {
    match serde_json::from_slice::<Value>(bytes) {
        Err(mistake) => {
            let message = unreadable(&mistake);
            refused(ErrorCode::PARSE_ERROR, message, outline_of(bytes))
        }
        Ok(Value::Object(object)) if is_notification(&object) => Frame::Nothing,
        Ok(value) => {
            let (message, outline) = misshapen(&value);
            refused(ErrorCode::INVALID_REQUEST, message, outline)
        }
    }
}

/// What a message that is not served comes to: a reply, or word to the request that it answers.
fn refused(code: ErrorCode, message: String, outline: Outline) -> Frame {
    match outline {
        Outline {
            id: Some(id),
            is_answer: true,
        } => Frame::Spoiled(Box::new(Spoiled {
            id,
            error: ErrorData::new(code, message, None),
        })),
        Outline { id, .. } => Frame::Mistake(Box::new(error(code, message, id))),
    }
}

fn unreadable(mistake: &serde_json::Error) -> String {
    let mistake = mistake.to_string();
    // It may well be JSON, but it was not read to its end.
    if mistake.starts_with("recursion limit exceeded") {
        return format!(
            "Parse error: the message is nested more than {MAX_LEVELS} levels deep; send less at once"
        );
    }
    format!("Parse error: the message is not JSON ({mistake})")
}

/// A notification never gets a reply, not even a refusal.
fn is_notification(object: &Map<String, Value>) -> bool {
    !object.contains_key("id") && object.get("method").is_some_and(Value::is_string)
}

fn misshapen(value: &Value) -> (String, Outline) {
    let Value::Object(object) = value else {
        let what = match value {
            Value::Array(_) => "batches are not taken; send one message at a time",
            _ => "a message is an object with jsonrpc, id, method and params",
        };
        return (format!("Invalid Request: {what}"), Outline::default());
    };
    let id = object.get("id").cloned();
    let has = |key: &str| object.contains_key(key);
    let outline = Outline {
        id: id.and_then(|id| serde_json::from_value(id).ok()),
        is_answer: !has("method") && (has("result") || has("error")),
    };
    let fault = fault(object, &outline);
    (format!("Invalid Request: {fault}"), outline)
}

fn fault(object: &Map<String, Value>, outline: &Outline) -> &'static str {
    if object.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        "jsonrpc has to be \"2.0\""
    } else if outline.id.is_none() {
        "id has to be a string or a whole number"
    } else if outline.is_answer {
        "an answer has a result, or an error with code and message"
    } else if !object.get("method").is_some_and(Value::is_string) {
        "method has to be a string"
    } else {
        "params do not fit the method"
    }
}

fn error(code: ErrorCode, message: String, id: Option<RequestId>) -> ServerJsonRpcMessage {
    ServerJsonRpcMessage::error(ErrorData::new(code, message, None), id)
}

fn shortened(text: &str) -> &str {
    let end = text.char_indices().nth(MAX_ID).map(|(end, _)| end);
    end.and_then(|end| text.get(..end)).unwrap_or(text)
}

fn outline_of(bytes: &[u8]) -> Outline {
    let mut search = OutlineSearch::default();
    search.feed(bytes);
    search.finish()
}

/// Looks for the id and the kind of a message that is not kept or is not JSON, byte by byte and in constant memory. Keys
/// and plain values of the outermost object pass through `token`.
#[derive(Debug, Default)]
pub(crate) struct OutlineSearch {
    found: Option<RequestId>,
    has_method: bool,
    has_outcome: bool,
    depth: usize,
    in_string: bool,
    escaped: bool,
    is_id: bool,
    token: Vec<u8>,
}

impl OutlineSearch {
    /// Looks through the next bytes of the message.
    pub(crate) fn feed(&mut self, bytes: &[u8]) {
        for byte in bytes {
            if self.in_string {
                self.inside_string(*byte);
            } else {
                self.between_strings(*byte);
            }
        }
    }

    /// What was found, when the whole message went by.
    pub(crate) fn finish(self) -> Outline {
        Outline {
            id: self.found,
            is_answer: self.has_outcome && !self.has_method,
        }
    }

    fn inside_string(&mut self, byte: u8) {
        self.keep(byte);
        let quoted = std::mem::take(&mut self.escaped);
        match byte {
            b'\\' => self.escaped = !quoted,
            b'"' => self.in_string = quoted,
            _ => {}
        }
    }

    fn between_strings(&mut self, byte: u8) {
        match byte {
            b'"' => {
                self.in_string = true;
                self.keep(byte);
            }
            b'{' | b'[' => self.depth += 1,
            b'}' | b']' => {
                self.end_value();
                self.depth = self.depth.saturating_sub(1);
            }
            b',' => self.end_value(),
            b':' if self.depth == 1 => {
                self.end_key();
            }
            byte if byte.is_ascii_whitespace() => {}
            byte => self.keep(byte),
        }
    }

    fn end_key(&mut self) {
        self.is_id = self.token == b"\"id\"";
        match self.token.as_slice() {
            b"\"method\"" => self.has_method = true,
            b"\"result\"" | b"\"error\"" => self.has_outcome = true,
            _ => {}
        }
        self.token.clear();
    }

    fn keep(&mut self, byte: u8) {
        if self.depth == 1 && self.token.len() <= MAX_ID {
            self.token.push(byte);
        }
    }

    fn end_value(&mut self) {
        if self.depth != 1 {
            return;
        }
        if std::mem::take(&mut self.is_id) {
            self.found = serde_json::from_slice(&self.token).ok();
        }
        self.token.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn reply(bytes: &[u8]) -> Option<Value> {
        match read(bytes) {
            Frame::Mistake(reply) => serde_json::to_value(reply).ok(),
            Frame::Nothing => None,
            frame => panic!("{frame:?}"),
        }
    }

    fn spoiled(bytes: &[u8]) -> (Value, String) {
        let Frame::Spoiled(spoiled) = read(bytes) else {
            panic!("an answer")
        };
        let reply = serde_json::to_value(spoiled.reply()).expect("JSON");
        assert!(reply["id"].is_null(), "{reply}");
        let instead = serde_json::to_value(spoiled.instead()).expect("JSON");
        let message = instead["error"]["message"].as_str().expect("a message");
        (instead["id"].clone(), message.to_owned())
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
            let (found, message) = spoiled(text.as_bytes());
            assert_eq!(found, id, "{message}");
            assert!(message.contains(words), "{message}");
        }
    }

    fn refused(bytes: &[u8]) -> (Value, Value, String) {
        let reply = reply(bytes).expect("a reply");
        let message = reply["error"]["message"].as_str().expect("a message");
        let message = message.to_owned();
        (reply["id"].clone(), reply["error"]["code"].clone(), message)
    }

    #[test]
    fn messages_are_read_also_behind_a_byte_order_mark() {
        for start in ["", "\u{feff}", "  "] {
            let text = format!(r#"{start}{{"jsonrpc":"2.0","id":1,"method":"ping"}}"#);
            assert!(
                matches!(read(text.as_bytes()), Frame::Message(_)),
                "{start:?}"
            );
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
            assert_eq!((id, code), (expected, json!(-32700)), "{message}");
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
        assert!(message(r#"{"id":1,"method":"ping"}"#).contains("jsonrpc has to be \"2.0\""));
        let odd = r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#;
        assert!(message(odd).contains("id has to be"), "{}", message(odd));
        assert!(
            message(r#"{"jsonrpc":"2.0","id":1,"method":3}"#).contains("method has to be a string")
        );
    }

    #[test]
    fn a_message_has_a_bounded_number_of_values() {
        let message = |values: usize, text: &str| {
            let values = format!("{text},").repeat(values);
            format!(r#"{{"jsonrpc":"2.0","id":6,"method":"ping","params":{{"x":[{values}0]}}}}"#)
        };
        let (id, code, words) = refused(message(MAX_VALUES, r#"{"":0}"#).as_bytes());
        assert_eq!((id, code), (json!(6), json!(-32600)));
        assert!(words.contains("100000 values"), "{words}");
        let fits = message(1000, "0");
        assert!(matches!(read(fits.as_bytes()), Frame::Message(_)));
        let text = message(1, &json!("[,{\\\"".repeat(100_000)).to_string());
        assert!(
            matches!(read(text.as_bytes()), Frame::Message(_)),
            "text is one value"
        );
    }

    #[test]
    fn notifications_and_empty_lines_get_no_reply() {
        let notification = r#"{"method":"notifications/strange","params":[]}"#;
        for text in ["", "  \r", notification] {
            assert!(reply(text.as_bytes()).is_none(), "{text}");
        }
    }

    #[test]
    fn ids_are_found_in_pieces_of_any_size() {
        let text =
            br#"{"method":"x","params":{"a":["id",{"id":9}]},"jsonrpc":"2.0","id": "q\"r" }"#;
        for size in 1..text.len() {
            let mut search = OutlineSearch::default();
            text.chunks(size).for_each(|piece| search.feed(piece));
            let expected = Outline {
                id: Some(RequestId::String("q\"r".into())),
                is_answer: false,
            };
            assert_eq!(search.finish(), expected);
        }
    }
}
