//! Reads and writes lines. A line that is too long is skipped and only searched for its id; a last line without a line
//! end counts. One task writes everything, so that no cancelled future can cut a reply.

use std::io;

use mcp::{MessageStream, Outline, OutlineSearch};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::mpsc::Receiver;
use tokio_util::sync::CancellationToken;

use super::output::Outgoing;

/// How many bytes are read at once, and written at once.
const BUFFER: usize = 64 * 1024;
/// Memory up to this size is kept for the next line.
const KEPT_LINE: usize = 1024 * 1024;

/// One line from the client.
#[derive(Debug)]
pub(super) enum InputLine<'line> {
    /// The whole line, without its end.
    Whole(&'line [u8]),
    /// What was found in an overlong line.
    TooLong(Outline),
}

/// Reads the client's lines.
pub(super) struct InputLines<R> {
    read: BufReader<R>,
    line: Vec<u8>,
    longest: usize,
    /// Searches a line that is too long while it is skipped.
    skipped: Option<OutlineSearch>,
}

impl<R: AsyncRead + Unpin> InputLines<R> {
    /// Reads lines of up to `longest` bytes.
    pub(super) fn new(read: R, longest: usize) -> InputLines<R> {
        InputLines {
            read: BufReader::with_capacity(BUFFER, read),
            line: Vec::new(),
            longest,
            skipped: None,
        }
    }

    /// The next line; `None` at the end.
    pub(super) async fn next(&mut self) -> Option<InputLine<'_>> {
        self.line.clear();
        self.line.shrink_to(KEPT_LINE);
        loop {
            let piece = self.read.fill_buf().await.ok()?;
            if piece.is_empty() {
                return self.last();
            }
            let end = memchr::memchr(b'\n', piece);
            let taken = end.map_or(piece.len(), |end| end + 1);
            let piece = piece.get(..end.unwrap_or(taken)).unwrap_or_default();
            let is_too_long = self.line.len() + piece.len() > self.longest;
            if is_too_long && self.skipped.is_none() {
                let mut search = OutlineSearch::default();
                search.feed(&self.line);
                self.line = Vec::new();
                self.skipped = Some(search);
            }
            match &mut self.skipped {
                Some(search) => search.feed(piece),
                None => self.line.extend_from_slice(piece),
            }
            self.read.consume(taken);
            if end.is_some() {
                return Some(self.whole());
            }
        }
    }

    /// The rest of the input, if it is a line. An unfinished line that is too long is none.
    fn last(&mut self) -> Option<InputLine<'_>> {
        (!self.line.is_empty()).then(|| self.whole())
    }

    fn whole(&mut self) -> InputLine<'_> {
        match self.skipped.take() {
            Some(search) => InputLine::TooLong(search.finish()),
            None => InputLine::Whole(&self.line),
        }
    }
}

/// Writes messages, one a line, until there are no more or the client stops reading. Waiting messages are written
/// together.
pub(super) async fn write_all(
    mut write: impl AsyncWrite + Unpin,
    mut waiting: Receiver<Outgoing>,
    unheard: CancellationToken,
) {
    while let Some(first) = waiting.recv().await {
        if let Err(error) = write_waiting(&mut write, first, &mut waiting).await {
            tracing::debug!(%error, "the client closed its end of standard output");
            unheard.cancel();
            return;
        }
    }
}

/// Writes a message and those that wait behind it.
async fn write_waiting(
    write: &mut (impl AsyncWrite + Unpin),
    first: Outgoing,
    waiting: &mut Receiver<Outgoing>,
) -> io::Result<()> {
    let mut lines = Vec::new();
    // Messages keep their room until they are written.
    let mut held = Vec::new();
    let mut next = Some(first);
    while let Some(outgoing) = next.take() {
        let (message, room) = outgoing.into_parts();
        held.push(room);
        match message.into_whole() {
            Ok(line) if lines.is_empty() => lines = line,
            Ok(line) => lines.extend_from_slice(&line),
            Err(large) => {
                write.write_all(&lines).await?;
                lines.clear();
                write_large(write, MessageStream::new(large, None)).await?;
            }
        }
        lines.push(b'\n');
        if lines.len() < BUFFER {
            next = waiting.try_recv().ok();
        }
    }
    write.write_all(&lines).await?;
    write.flush().await
}

async fn write_large(
    write: &mut (impl AsyncWrite + Unpin),
    mut message: MessageStream,
) -> io::Result<()> {
    while let Some(bytes) = message.next().await {
        write.write_all(&bytes).await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn lines(input: &[u8], longest: usize) -> Vec<String> {
        let mut lines = InputLines::new(input, longest);
        let mut read = Vec::new();
        while let Some(line) = lines.next().await {
            read.push(match line {
                InputLine::Whole(line) => String::from_utf8_lossy(line).into_owned(),
                InputLine::TooLong(outline) => format!("{outline:?}"),
            });
        }
        read
    }

    #[tokio::test]
    async fn a_last_line_without_its_end_counts() {
        assert_eq!(lines(b"a\n\nb", 10).await, ["a", "", "b"]);
        assert!(lines(b"", 10).await.is_empty());
    }

    #[tokio::test]
    async fn every_message_is_a_line() {
        let (output, waiting) = super::super::output::Output::new(2);
        for message in ["{}", "[]"] {
            output.send(message.as_bytes().to_vec(), None).await;
        }
        drop(output);
        let mut written = Vec::new();
        write_all(&mut written, waiting, CancellationToken::new()).await;
        assert_eq!(written, b"{}\n[]\n");
    }

    #[tokio::test]
    async fn a_line_that_is_too_long_goes_by_and_the_next_one_is_read() {
        let long = format!("{{\"x\":\"{}\",\"id\":7}}\nshort\n", "y".repeat(300_000));
        let read = lines(long.as_bytes(), 100).await;
        assert!(read[0].contains("Number(7)"), "{}", read[0]);
        assert_eq!(read[1..], ["short"]);
    }
}
