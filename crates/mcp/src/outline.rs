//! Finds the id of a message that cannot be read, and whether it answers a question of ours.
//!
//! A message that is too long is not kept, and one that is not JSON has no fields. So the bytes are scanned one by one,
//! in constant memory.

use rmcp::model::RequestId;

/// The longest id that is kept.
pub(crate) const MAX_ID: usize = 256;

/// What was found in a message.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct Outline {
    /// Its id.
    pub(crate) id: Option<RequestId>,
    /// Whether it has a result or an error, so that it answers a question of ours.
    pub(crate) is_answer: bool,
}

impl Outline {
    /// Scans a whole message.
    pub(crate) fn of(bytes: &[u8]) -> Outline {
        let mut search = OutlineSearch::default();
        search.feed(bytes);
        search.finish()
    }
}

/// Scans a message for its id and kind, piece by piece. Keys and plain values of the outermost object pass
/// through `token`.
#[derive(Debug, Default)]
pub struct OutlineSearch {
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
    /// Scans the next bytes of the message.
    pub fn feed(&mut self, bytes: &[u8]) {
        for byte in bytes {
            if self.in_string {
                self.inside_string(*byte);
            } else {
                self.between_strings(*byte);
            }
        }
    }

    /// Returns what was found once the whole message was scanned.
    #[must_use]
    pub fn finish(self) -> Outline {
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
