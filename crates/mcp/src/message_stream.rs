//! A message as the bytes that its writer takes one after the other.

use std::collections::VecDeque;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use ops::Reserved;
use toolset::{MessagePiece, ReplyMessage, StreamedContent};

/// What reading a piece of streamed content returns.
type PieceRead = Result<Option<Vec<u8>>, Vec<u8>>;

/// The bytes of a message. Only a small part of content that is still in its file is in memory at a time: the next is read
/// when the one before it was taken.
pub struct MessageStream {
    pieces: VecDeque<MessagePiece>,
    /// The length, if all of it is in memory.
    length: Option<u64>,
    /// The room in the budget of bytes, until the last of them is written.
    held: Option<Reserved>,
    reading: Option<ReadingContent>,
    /// Whether content could not be read to its end.
    has_failed: bool,
    /// Content that is still in its file, if it has any, and the bytes of the whole message with it.
    streamed: Option<(Arc<StreamedContent>, usize)>,
    /// The bytes that were taken.
    taken: usize,
}

/// Content that is being read.
struct ReadingContent {
    content: Arc<StreamedContent>,
    next: usize,
    piece: Pin<Box<dyn Future<Output = PieceRead> + Send>>,
}

impl ReadingContent {
    fn begin(content: Arc<StreamedContent>, number: usize) -> ReadingContent {
        ReadingContent {
            piece: Box::pin(Arc::clone(&content).piece(number)),
            content,
            next: number + 1,
        }
    }
}

impl MessageStream {
    /// The bytes of a message that has this room.
    #[must_use]
    pub fn new(message: ReplyMessage, held: Option<Reserved>) -> MessageStream {
        let length = message.is_in_memory().then(|| message.len() as u64);
        let bytes = message.len();
        let pieces = message.into_pieces();
        let streamed = pieces.iter().find_map(|piece| match piece {
            MessagePiece::Content(content) => Some((Arc::clone(content), bytes)),
            MessagePiece::Bytes(_) | MessagePiece::End { .. } => None,
        });
        MessageStream {
            length,
            pieces,
            streamed,
            taken: 0,
            held,
            reading: None,
            has_failed: false,
        }
    }

    /// How many bytes are left, if that is certain: a file could change while it is read.
    #[must_use]
    pub fn length(&self) -> Option<u64> {
        self.length
    }

    /// Whether nothing is left.
    #[must_use]
    pub fn is_at_end(&self) -> bool {
        self.pieces.is_empty() && self.reading.is_none()
    }

    /// The next bytes; `None` at the end.
    pub async fn next(&mut self) -> Option<Bytes> {
        std::future::poll_fn(|context| self.poll_next(context)).await
    }

    /// The next bytes; `None` at the end.
    pub fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        let next = self.poll_piece(context);
        if let Poll::Ready(Some(bytes)) = &next {
            self.taken += bytes.len();
        }
        next
    }

    fn poll_piece(&mut self, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        loop {
            if let Some(reading) = &mut self.reading {
                let piece = match reading.piece.as_mut().poll(context) {
                    Poll::Ready(piece) => piece,
                    Poll::Pending => return Poll::Pending,
                };
                if let Some(bytes) = self.read(piece) {
                    return Poll::Ready(Some(bytes));
                }
            }
            match self.pieces.pop_front() {
                None => return Poll::Ready(None),
                Some(MessagePiece::Bytes(bytes)) => return Poll::Ready(Some(self.held(bytes))),
                Some(MessagePiece::Content(content)) => {
                    self.reading = Some(ReadingContent::begin(content, 0));
                }
                Some(MessagePiece::End { whole, failed }) => {
                    let end = if self.has_failed { failed } else { whole };
                    return Poll::Ready(Some(self.held(end.to_vec())));
                }
            }
        }
    }

    /// Takes what was read, and begins the next piece.
    fn read(&mut self, piece: PieceRead) -> Option<Bytes> {
        let reading = self.reading.take()?;
        match piece {
            Ok(None) => None,
            Ok(Some(bytes)) => {
                self.reading = Some(ReadingContent::begin(reading.content, reading.next));
                Some(bytes.into())
            }
            Err(words) => {
                self.has_failed = true;
                Some(words.into())
            }
        }
    }

    /// The last bytes in memory keep the room until they are written.
    fn held(&mut self, bytes: Vec<u8>) -> Bytes {
        let written = bytes.len() as u64;
        self.length = self.length.map(|left| left.saturating_sub(written));
        held_bytes(bytes, self.held.take_if(|_| self.pieces.is_empty()))
    }
}

impl Drop for MessageStream {
    /// The line of the call has the size that the reply should have had.
    fn drop(&mut self) {
        let is_cut = self.has_failed || !self.is_at_end();
        if let Some((content, bytes)) = self.streamed.take().filter(|_| is_cut) {
            content.was_cut(self.taken, bytes, self.has_failed);
        }
    }
}

impl fmt::Debug for MessageStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("MessageStream");
        shown.field("length", &self.length).finish_non_exhaustive()
    }
}

/// Bytes that keep their room in the budget until the last of them is written.
#[must_use]
pub fn held_bytes(bytes: Vec<u8>, held: Option<Reserved>) -> Bytes {
    match held {
        Some(held) => Bytes::from_owner(HeldBytes { bytes, _held: held }),
        None => bytes.into(),
    }
}

struct HeldBytes {
    bytes: Vec<u8>,
    _held: Reserved,
}

impl AsRef<[u8]> for HeldBytes {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}
