//! The messages that wait to be written to standard output, and the limit of how many bytes may wait.
//!
//! A client that sends requests and reads no replies would otherwise fill the memory with replies. While too much waits,
//! no further request is read, so that the client has to wait too.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use mcp::Outbox;
use ops::Reserved;
use tokio::sync::Notify;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use toolset::ReplyMessage;

/// The most bytes that may wait before the next request is read.
const MOST_WAITING: usize = 4 * 1024 * 1024;

/// The way to standard output. Cloning is cheap.
#[derive(Debug, Clone)]
pub(super) struct Output {
    sender: Sender<Outgoing>,
    waiting: Arc<Waiting>,
}

#[derive(Debug, Default)]
struct Waiting {
    bytes: AtomicUsize,
    fewer: Notify,
}

/// A message on its way, and its room.
#[derive(Debug)]
pub(super) struct Outgoing {
    message: ReplyMessage,
    room: Room,
}

/// The room that a message takes until it is written.
#[derive(Debug)]
pub(super) struct Room {
    bytes: usize,
    waiting: Arc<Waiting>,
    _held: Option<Reserved>,
}

impl Output {
    /// An output whose channel holds this many messages.
    pub(super) fn new(messages: usize) -> (Output, Receiver<Outgoing>) {
        let (sender, receiver) = channel(messages);
        let waiting = Arc::default();
        (Output { sender, waiting }, receiver)
    }

    /// Sends a message; returns whether there is still a reader.
    pub(super) async fn send(
        &self,
        message: impl Into<ReplyMessage>,
        held: Option<Reserved>,
    ) -> bool {
        let outgoing = self.outgoing(message.into(), held);
        self.sender.send(outgoing).await.is_ok()
    }

    /// Waits until few enough bytes wait to be written.
    pub(super) async fn has_room(&self) {
        loop {
            let fewer = self.waiting.fewer.notified();
            if self.waiting.bytes.load(Ordering::Relaxed) <= MOST_WAITING {
                return;
            }
            fewer.await;
        }
    }

    fn outgoing(&self, message: ReplyMessage, held: Option<Reserved>) -> Outgoing {
        let bytes = message.held();
        self.waiting.bytes.fetch_add(bytes, Ordering::Relaxed);
        Outgoing {
            message,
            room: Room {
                bytes,
                waiting: Arc::clone(&self.waiting),
                _held: held,
            },
        }
    }
}

impl Outgoing {
    pub(super) fn into_parts(self) -> (ReplyMessage, Room) {
        (self.message, self.room)
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        self.waiting.bytes.fetch_sub(self.bytes, Ordering::Relaxed);
        self.waiting.fewer.notify_waiters();
    }
}

impl Outbox for Output {
    fn try_send(&self, message: Vec<u8>) -> bool {
        let outgoing = self.outgoing(message.into(), None);
        self.sender.try_send(outgoing).is_ok()
    }

    fn send(&self, message: Vec<u8>) -> Pin<Box<dyn Future<Output = bool> + Send + '_>> {
        Box::pin(Output::send(self, message, None))
    }

    /// The end of the line.
    fn frame(&self) -> usize {
        1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[tokio::test]
    async fn input_waits_while_too_much_output_does() {
        let (output, mut receiver) = Output::new(4);
        output.has_room().await;
        assert!(output.send(vec![b'x'; MOST_WAITING + 1], None).await);
        let early = tokio::time::timeout(Duration::from_millis(20), output.has_room());
        assert!(early.await.is_err());
        let (_, room) = receiver.recv().await.unwrap().into_parts();
        let waiting = tokio::spawn({
            let output = output.clone();
            async move { output.has_room().await }
        });
        drop(room);
        waiting.await.unwrap();
    }
}
