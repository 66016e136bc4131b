//! A stream that ends the connections of clients that do not read, gives others their turn between the parts of a large
//! reply, and keeps the first bytes for inspection.
//!
//! hyper accepts a request with both Content-Length and Transfer-Encoding and hides the first, so the bytes themselves
//! are checked. Later requests of a connection need no check: after a chunked body the connection is closed
//! (see [`super::router`]), so nothing can hide behind one.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Sleep;

/// How many bytes of a reply are written before others have their turn.
const WRITTEN_AT_ONCE: usize = 64 * 1024;

/// A guarded stream.
pub(super) struct GuardedStream<S> {
    stream: S,
    head: Arc<Head>,
    /// How long the client may go without reading a byte of a reply.
    patience: Duration,
    stalled: Option<Pin<Box<Sleep>>>,
    /// How many bytes were written since others had their turn.
    written: usize,
}

/// The first bytes of a connection, kept until its first request is parsed.
#[derive(Debug, Default)]
pub(super) struct Head(Mutex<Option<Vec<u8>>>);

impl<S> GuardedStream<S> {
    pub(super) fn new(stream: S, patience: Duration) -> (GuardedStream<S>, Arc<Head>) {
        let head = Arc::new(Head(Mutex::new(Some(Vec::new()))));
        let stream = GuardedStream {
            stream,
            head: Arc::clone(&head),
            patience,
            stalled: None,
            written: 0,
        };
        (stream, head)
    }

    /// Fails a write that has made no progress for too long.
    fn within<T>(
        &mut self,
        context: &mut Context<'_>,
        outcome: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if outcome.is_ready() {
            self.stalled = None;
            return outcome;
        }
        let patience = self.patience;
        let stalled = self
            .stalled
            .get_or_insert_with(|| Box::pin(tokio::time::sleep(patience)));
        ready!(stalled.as_mut().poll(context));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncWrite + Unpin> GuardedStream<S> {
    /// Writes as much as may be written before others have their turn.
    fn write(
        &mut self,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let room = WRITTEN_AT_ONCE.saturating_sub(self.written);
        if room == 0 {
            self.written = 0;
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        let stream = Pin::new(&mut self.stream);
        let outcome = match pieces {
            [first, ..] if first.len() >= room => {
                stream.poll_write(context, first.get(..room).unwrap_or(first))
            }
            [first] => stream.poll_write(context, first),
            [first, second, ..] if first.len() + second.len() > room => {
                let part = second.get(..room - first.len()).unwrap_or(second);
                let parts = [io::IoSlice::new(first), io::IoSlice::new(part)];
                stream.poll_write_vectored(context, &parts)
            }
            _ => stream.poll_write_vectored(context, pieces),
        };
        match &outcome {
            Poll::Ready(Ok(written)) => self.written += written,
            _ => self.written = 0,
        }
        self.within(context, outcome)
    }
}

impl Head {
    /// Tells whether the first request has both lengths; later calls return false.
    pub(super) fn has_two_lengths(&self) -> bool {
        let head = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        head.is_some_and(|head| two_lengths(&head))
    }

    fn add(&self, bytes: &[u8]) {
        let mut head = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(head) = head
            .as_mut()
            .filter(|head| head.len() < super::connection::MAX_HEADERS)
        {
            head.extend_from_slice(bytes);
        }
    }
}

fn two_lengths(bytes: &[u8]) -> bool {
    let lines = bytes.split(|byte| *byte == b'\n');
    let lines = lines.map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    let names = lines
        // Empty lines before a request are allowed.
        .skip_while(|line| line.is_empty())
        .skip(1)
        .take_while(|line| !line.is_empty())
        .filter_map(|line| line.split(|byte| *byte == b':').next());
    let (mut length, mut encoding) = (false, false);
    for name in names {
        length |= name.eq_ignore_ascii_case(b"content-length");
        encoding |= name.eq_ignore_ascii_case(b"transfer-encoding");
    }
    length && encoding
}

impl<S: AsyncRead + Unpin> AsyncRead for GuardedStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.written = 0;
        let before = buffer.filled().len();
        let outcome = Pin::new(&mut self.stream).poll_read(context, buffer);
        self.head
            .add(buffer.filled().get(before..).unwrap_or_default());
        outcome
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for GuardedStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.write(context, &[io::IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.write(context, pieces)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let outcome = Pin::new(&mut self.stream).poll_flush(context);
        self.within(context, outcome)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let outcome = Pin::new(&mut self.stream).poll_shutdown(context);
        self.within(context, outcome)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    #[test]
    fn two_lengths_are_seen_in_the_headers_and_nowhere_else() {
        let both = "POST / HTTP/1.1\r\ncontent-LENGTH: 1\r\nTransfer-Encoding: chunked\r\n\r\n";
        assert!(two_lengths(both.as_bytes()));
        assert!(two_lengths(format!("\r\n\r\n\n{both}").as_bytes()));
        let body = "POST / HTTP/1.1\r\nContent-Length: 9\r\n\r\nTransfer-Encoding: chunked\r\n";
        assert!(!two_lengths(body.as_bytes()));
        assert!(!two_lengths(b""));
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_takes_nothing_is_not_waited_for() {
        let (mut client, server) = tokio::io::duplex(8);
        let (mut watched, _) = GuardedStream::new(server, Duration::from_secs(30));
        let error = watched.write_all(&[0; 100]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        let mut slow = vec![0; 4];
        client.read_exact(&mut slow).await.unwrap();
        watched.write_all(&[0; 4]).await.unwrap();
    }

    #[tokio::test]
    async fn others_have_their_turn_between_the_parts_of_a_large_reply() {
        let reply: Vec<u8> = (0..=255).cycle().take(5 * WRITTEN_AT_ONCE + 100).collect();
        let (mut client, server) = tokio::io::duplex(2 * reply.len());
        let (mut guarded, _) = GuardedStream::new(server, Duration::from_secs(30));
        let pieces = reply.split_at(100);
        let mut turns = 0;
        {
            let write = async {
                let (mut first, mut second) = pieces;
                while !second.is_empty() {
                    let parts = [io::IoSlice::new(first), io::IoSlice::new(second)];
                    let written = guarded.write_vectored(&parts).await.unwrap();
                    second = second.get(written.saturating_sub(first.len())..).unwrap();
                    first = first.get(written..).unwrap_or_default();
                }
            };
            let others = async {
                loop {
                    turns += 1;
                    tokio::task::yield_now().await;
                }
            };
            tokio::select! {
                () = write => {}
                () = others => {}
            }
        }
        assert!(turns >= 5, "{turns} turns");
        drop(guarded);
        let mut received = Vec::new();
        client.read_to_end(&mut received).await.unwrap();
        assert_eq!(received, reply);
    }

    #[tokio::test]
    async fn the_first_bytes_are_kept_until_they_were_looked_at() {
        let (mut client, server) = tokio::io::duplex(200);
        let (mut watched, head) = GuardedStream::new(server, Duration::from_secs(30));
        let both = b"POST / HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n";
        client.write_all(both).await.unwrap();
        watched.read_exact(&mut vec![0; both.len()]).await.unwrap();
        assert!(head.has_two_lengths());
        assert!(!head.has_two_lengths(), "only the first request");
    }
}
