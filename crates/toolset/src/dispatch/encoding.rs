//! Makes the message of an outcome: a small one at once, a large one on the threads for heavy work, in its client's
//! turn. A large message made on a runtime thread would delay everybody's small calls.

use std::sync::Arc;

use crate::admission::crashed;
use crate::contract::Failure;
use crate::heavy_turn::{SMALL_MESSAGE, in_heavy_turn};
use crate::reply::{CallOutcome, EncodedReply};
use crate::reply_message::ReplyMessage;

/// Makes messages of outcomes.
pub trait Encoder: Send + Sync {
    /// The message of an outcome. What is large is moved into it.
    fn encode(&self, outcome: &mut CallOutcome) -> ReplyMessage;

    /// How many bytes go over the wire beside the message: the event or the line that it is sent as.
    fn frame(&self) -> usize {
        0
    }

    /// The same encoder for another thread. It need not know about the frame.
    fn apart(&self) -> Box<dyn Encoder>;
}

/// Makes no message, for callers that want the outcome itself.
pub struct NoMessage;

impl Encoder for NoMessage {
    fn encode(&self, _: &mut CallOutcome) -> ReplyMessage {
        Vec::new().into()
    }

    fn apart(&self) -> Box<dyn Encoder> {
        Box::new(NoMessage)
    }
}

/// An outcome with its message.
#[derive(Debug)]
pub struct Encoded {
    /// The outcome; empty if its large content is already in the message.
    pub outcome: CallOutcome,
    /// The message; empty if none was wanted.
    pub message: ReplyMessage,
    /// How many bytes are sent around the message.
    frame: usize,
}

impl Encoded {
    /// Makes the message on this thread.
    pub(super) fn here(mut outcome: CallOutcome, encoder: &dyn Encoder) -> Encoded {
        let message = encoder.encode(&mut outcome);
        Encoded {
            outcome,
            message,
            frame: encoder.frame(),
        }
    }

    /// Makes the message on the thread that its size calls for.
    pub(super) async fn new(
        outcome: CallOutcome,
        encoder: &dyn Encoder,
        client: &Arc<str>,
    ) -> Result<Encoded, Failure> {
        let is_large = match &outcome {
            CallOutcome::Result(result) => result.reply.bytes() > SMALL_MESSAGE,
            CallOutcome::Question(_) | CallOutcome::Refused(_) => false,
        };
        if !is_large {
            return Ok(Encoded::here(outcome, encoder));
        }
        let apart = encoder.apart();
        let work = move || Encoded::here(outcome, &*apart).without_reply();
        let encoded = in_heavy_turn(client, work).await;
        let encoded = encoded.ok_or_else(|| crashed(None))?;
        Ok(Encoded {
            frame: encoder.frame(),
            ..encoded
        })
    }

    /// How many bytes go over the wire, or about how many would.
    pub(super) fn size(&self) -> usize {
        match self.message.len() {
            0 => self.outcome.size(),
            length => length + self.frame,
        }
    }

    /// Frees what the message already holds.
    fn without_reply(mut self) -> Encoded {
        if let CallOutcome::Result(result) = &mut self.outcome
            && !self.message.is_empty()
        {
            result.reply = EncodedReply::default();
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reply::ToolResult;

    /// Says on which thread a message was made.
    struct NamesThread;

    impl Encoder for NamesThread {
        fn encode(&self, _: &mut CallOutcome) -> ReplyMessage {
            let thread = std::thread::current();
            let name = thread.name().unwrap_or("none");
            name.as_bytes().to_vec().into()
        }

        fn apart(&self) -> Box<dyn Encoder> {
            Box::new(NamesThread)
        }
    }

    fn outcome(bytes: usize) -> CallOutcome {
        CallOutcome::Result(ToolResult {
            reply: EncodedReply::new(None, "x".repeat(bytes)),
            is_error: false,
        })
    }

    #[tokio::test]
    async fn large_messages_are_made_on_the_threads_for_heavy_work() {
        let client = Arc::from("client");
        let small = Encoded::new(outcome(SMALL_MESSAGE), &NamesThread, &client);
        let small = small.await.unwrap();
        assert_eq!(small.outcome.size(), SMALL_MESSAGE);
        assert_ne!(small.message.into_whole().unwrap(), b"worker");
        let large = Encoded::new(outcome(SMALL_MESSAGE + 1), &NamesThread, &client);
        let large = large.await.unwrap();
        assert_eq!(large.outcome.size(), 0, "the message has it");
        assert_eq!(large.message.into_whole().unwrap(), b"worker");
    }

    #[tokio::test]
    async fn without_a_message_the_outcome_stays_whole() {
        let client = Arc::from("client");
        let large = Encoded::new(outcome(2 * SMALL_MESSAGE), &NoMessage, &client);
        assert_eq!(large.await.unwrap().size(), 2 * SMALL_MESSAGE);
    }
}
