//! Content that is too large to be held: its reply has a mark where it belongs, and while the message is sent the content is
//! read again from its file, a piece at a time, in its client's turn.
//!
//! The file was read once before, so what a piece has to be is known. A file that changed meanwhile cannot break the JSON:
//! the string ends with words that say so, and so does the end of the message.

use std::sync::Arc;
use std::time::Duration;

use ops::LargeText;

use crate::heavy_turn::in_heavy_turn_of;
use crate::json::escape;

/// How long a piece may take: a file system that does not answer must not hold the connection for ever.
const PATIENCE: Duration = Duration::from_secs(30);

/// Content of a reply that is still in its file.
#[derive(Debug)]
pub struct StreamedContent {
    text: LargeText,
    /// How many bytes it has as the inside of a JSON string.
    json_bytes: usize,
    /// What is said where the file has changed.
    changed: &'static str,
}

impl StreamedContent {
    /// Stands in a reply's JSON where the content belongs: no JSON has this byte.
    pub(crate) const MARK: u8 = 0;
    /// The memory that a piece takes with its escapes until it is written, and the next one beside it.
    pub(crate) const ROOM: usize = 8 * LargeText::PIECE;

    /// Content of this many bytes as JSON.
    pub(crate) fn new(
        text: LargeText,
        json_bytes: usize,
        changed: &'static str,
    ) -> StreamedContent {
        StreamedContent {
            text,
            json_bytes,
            changed,
        }
    }

    /// How many bytes it has as the inside of a JSON string.
    pub(crate) fn json_bytes(&self) -> usize {
        self.json_bytes
    }

    /// Tells the operator that a reply with it was not sent as it was logged: `sent` bytes of `whole`.
    pub fn was_cut(&self, sent: usize, whole: usize, has_changed: bool) {
        let reason = match has_changed {
            true => "the file changed or did not answer while it was sent, and its reply says so",
            false => "the client hung up",
        };
        tracing::warn!(
            path = self.text.path(),
            client = self.text.client(),
            response_size = sent,
            logged_size = whole,
            reason,
            "a reply was cut"
        );
    }

    /// A piece of it as the inside of a JSON string; `None` behind the last one.
    ///
    /// # Errors
    ///
    /// What is said instead if the file is not what it was.
    pub async fn piece(
        self: Arc<StreamedContent>,
        number: usize,
    ) -> Result<Option<Vec<u8>>, Vec<u8>> {
        let content = Arc::clone(&self);
        let read = in_heavy_turn_of(self.text.turn(), move || {
            let piece = content.text.piece(number);
            piece.map(|piece| piece.map(|text| escaped(&text)))
        });
        let Ok(Some(Ok(piece))) = tokio::time::timeout(PATIENCE, read).await else {
            return Err(escaped(self.changed));
        };
        Ok(piece)
    }
}

impl PartialEq for StreamedContent {
    fn eq(&self, other: &StreamedContent) -> bool {
        std::ptr::eq(self, other)
    }
}

impl Eq for StreamedContent {}

fn escaped(text: &str) -> Vec<u8> {
    let mut json = Vec::with_capacity(text.len() + text.len() / 16);
    escape(text, &mut json);
    json
}
