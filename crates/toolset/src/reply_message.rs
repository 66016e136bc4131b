//! The message of a reply, on its way to the wire.
//!
//! A small message is one buffer. The parts of a large one are moved into it and not copied. What is too large to be held at
//! all stays in its file and is read again while its reader takes the message, see [`crate::streamed_content`].

use std::collections::VecDeque;
use std::sync::Arc;

use crate::streamed_content::StreamedContent;

/// The largest message whose parts are copied together, in bytes: a session may keep so much for clients that come back.
const COPIED_MAX: usize = 1024 * 1024;

/// A message that is made.
#[derive(Debug)]
pub struct ReplyMessage(Parts);

#[derive(Debug)]
enum Parts {
    Whole(Vec<u8>),
    Pieces(VecDeque<MessagePiece>),
}

/// A piece of a large message.
#[derive(Debug)]
pub enum MessagePiece {
    /// What is in memory.
    Bytes(Vec<u8>),
    /// The inside of a JSON string that is still in its file.
    Content(Arc<StreamedContent>),
    /// The end of a message that can say that such content could not be read to its end.
    End {
        /// If everything before it was written.
        whole: &'static [u8],
        /// If not.
        failed: &'static [u8],
    },
}

impl MessagePiece {
    /// How many bytes it has on the wire.
    fn len(&self) -> usize {
        match self {
            MessagePiece::Bytes(bytes) => bytes.len(),
            MessagePiece::Content(content) => content.json_bytes(),
            MessagePiece::End { whole, .. } => whole.len(),
        }
    }

    /// How many bytes it takes in memory until it is written.
    fn held(&self) -> usize {
        match self {
            MessagePiece::Bytes(bytes) => bytes.len(),
            MessagePiece::Content(_) => StreamedContent::ROOM,
            MessagePiece::End { .. } => 0,
        }
    }
}

impl ReplyMessage {
    /// How many bytes it has on the wire.
    #[must_use]
    pub fn len(&self) -> usize {
        match &self.0 {
            Parts::Whole(bytes) => bytes.len(),
            Parts::Pieces(pieces) => pieces.iter().map(MessagePiece::len).sum(),
        }
    }

    /// Whether it is no message at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many bytes it takes in memory until it is written.
    #[must_use]
    pub fn held(&self) -> usize {
        match &self.0 {
            Parts::Whole(bytes) => bytes.len(),
            Parts::Pieces(pieces) => pieces.iter().map(MessagePiece::held).sum(),
        }
    }

    /// Whether all of it is in memory, so that its length is certain.
    #[must_use]
    pub fn is_in_memory(&self) -> bool {
        match &self.0 {
            Parts::Whole(_) => true,
            Parts::Pieces(pieces) => pieces
                .iter()
                .all(|piece| matches!(piece, MessagePiece::Bytes(_))),
        }
    }

    /// The one buffer of a small message, or the large message.
    pub fn into_whole(self) -> Result<Vec<u8>, ReplyMessage> {
        match self.0 {
            Parts::Whole(bytes) => Ok(bytes),
            pieces => Err(ReplyMessage(pieces)),
        }
    }

    /// Its pieces, in order.
    #[must_use]
    pub fn into_pieces(self) -> VecDeque<MessagePiece> {
        match self.0 {
            Parts::Whole(bytes) => VecDeque::from([MessagePiece::Bytes(bytes)]),
            Parts::Pieces(pieces) => pieces,
        }
    }

    /// The message between two texts. What is in one buffer is moved inside of its memory, not copied to more of it.
    #[must_use]
    pub fn between(self, before: &[u8], after: &[u8]) -> ReplyMessage {
        match self.0 {
            Parts::Whole(mut bytes) => {
                bytes.reserve_exact(before.len() + after.len());
                bytes.splice(..0, before.iter().copied());
                bytes.extend_from_slice(after);
                ReplyMessage(Parts::Whole(bytes))
            }
            Parts::Pieces(mut pieces) => {
                pieces.push_front(MessagePiece::Bytes(before.to_vec()));
                pieces.push_back(MessagePiece::Bytes(after.to_vec()));
                ReplyMessage(Parts::Pieces(pieces))
            }
        }
    }
}

impl From<Vec<u8>> for ReplyMessage {
    fn from(bytes: Vec<u8>) -> ReplyMessage {
        ReplyMessage(Parts::Whole(bytes))
    }
}

/// Puts a message together.
#[derive(Debug)]
pub struct MessageBuilder {
    pieces: VecDeque<MessagePiece>,
    /// What was added last.
    open: Vec<u8>,
    /// Whether parts are moved and not copied.
    is_large: bool,
    /// What stands where a mark is.
    streamed: Option<Arc<StreamedContent>>,
}

impl MessageBuilder {
    /// Begins a message of about so many bytes.
    pub(crate) fn new(bytes: usize, streamed: Option<Arc<StreamedContent>>) -> MessageBuilder {
        let is_large = bytes > COPIED_MAX;
        let expected = if is_large { 0 } else { bytes };
        MessageBuilder {
            pieces: VecDeque::new(),
            open: Vec::with_capacity(expected),
            is_large,
            streamed,
        }
    }

    /// Adds bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        self.open.extend_from_slice(bytes);
    }

    /// The end of what was added so far, to write more there.
    pub fn open(&mut self) -> &mut Vec<u8> {
        &mut self.open
    }

    /// Adds JSON of a reply. That of a large one is taken away.
    pub(crate) fn push_json(&mut self, json: &mut Vec<u8>) {
        if let Some(content) = self.streamed.clone() {
            self.push_marked(json, &content);
        } else if self.is_large {
            self.close();
            self.pieces
                .push_back(MessagePiece::Bytes(std::mem::take(json)));
        } else {
            self.push(json);
        }
    }

    /// Ends the message: it can say that content could not be read to its end if it has such content.
    #[must_use]
    pub fn finish(mut self, whole: &'static [u8], failed: &'static [u8]) -> ReplyMessage {
        if self.streamed.is_some() {
            self.close();
            self.pieces.push_back(MessagePiece::End { whole, failed });
        } else {
            self.push(whole);
        }
        if self.pieces.is_empty() {
            return ReplyMessage(Parts::Whole(self.open));
        }
        self.close();
        ReplyMessage(Parts::Pieces(self.pieces))
    }

    fn push_marked(&mut self, json: &[u8], content: &Arc<StreamedContent>) {
        let mut parts = json.split(|byte| *byte == StreamedContent::MARK);
        self.push(parts.next().unwrap_or_default());
        for part in parts {
            self.close();
            self.pieces
                .push_back(MessagePiece::Content(Arc::clone(content)));
            self.push(part);
        }
    }

    fn close(&mut self) {
        if !self.open.is_empty() {
            let bytes = std::mem::take(&mut self.open);
            self.pieces.push_back(MessagePiece::Bytes(bytes));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn joined(message: ReplyMessage) -> Vec<u8> {
        let pieces = message.into_pieces().into_iter();
        let bytes = pieces.map(|piece| match piece {
            MessagePiece::Bytes(bytes) => bytes,
            other => panic!("{other:?}"),
        });
        bytes.flatten().collect()
    }

    #[test]
    fn a_small_message_is_one_buffer_and_a_large_one_has_moved_parts() {
        for bytes in [10, COPIED_MAX + 1] {
            let mut json = vec![b'x'; bytes];
            let place = json.as_ptr();
            let mut builder = MessageBuilder::new(bytes, None);
            builder.push(b"{");
            builder.push_json(&mut json);
            let message = builder.finish(b"}", b"!");
            assert_eq!(message.len(), bytes + 2);
            assert_eq!(message.held(), bytes + 2);
            assert!(message.is_in_memory());
            let whole = message.into_whole();
            assert_eq!(whole.is_ok(), bytes == 10);
            let message = whole.map_or_else(|large| large, ReplyMessage::from);
            let message = message.between(b"data: ", b"\n\n");
            let pieces = message.into_pieces();
            let is_moved = |piece: &MessagePiece| match piece {
                MessagePiece::Bytes(bytes) => bytes.as_ptr() == place,
                _ => false,
            };
            assert_eq!(pieces.iter().any(is_moved), bytes != 10);
            let text = joined(ReplyMessage(Parts::Pieces(pieces)));
            assert!(text.starts_with(b"data: {xx") && text.ends_with(b"x}\n\n"));
            assert_eq!(text.len(), bytes + 10);
        }
    }
}
