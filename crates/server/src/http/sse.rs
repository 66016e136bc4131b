//! Streams of server-sent events as reply bodies.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::body::{Body, Bytes, Frame};
use mcp::{EventStream, HeldMessage, KEEP_ALIVE, MessageStream, Serving};
use tokio::sync::mpsc::Receiver;
use tokio::time::{Instant, Sleep};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

/// How long a stream may be silent before a comment keeps it open.
const SILENT_FOR: Duration = Duration::from_secs(15);

/// A source of events.
pub(super) trait Events: Unpin {
    /// The next event; `None` at the end.
    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Bytes>>;
}

impl Events for EventStream {
    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        EventStream::poll_next(self, context)
    }
}

/// A request that sends notifications before its reply.
pub(super) struct Notified {
    first: Option<Vec<u8>>,
    notifications: Receiver<Vec<u8>>,
    serving: Option<Serving>,
    /// The event that is being written.
    event: Option<MessageStream>,
}

impl Notified {
    pub(super) fn new(
        first: Vec<u8>,
        notifications: Receiver<Vec<u8>>,
        serving: Serving,
    ) -> Notified {
        Notified {
            first: Some(first),
            notifications,
            serving: Some(serving),
            event: None,
        }
    }

    fn poll_message(&mut self, context: &mut Context<'_>) -> Poll<Option<HeldMessage>> {
        if let Some(first) = self.first.take() {
            return Poll::Ready(Some((first.into(), None)));
        }
        // The reply is the last message: a notification that was sent with it is left out.
        let Some(serving) = &mut self.serving else {
            return Poll::Ready(None);
        };
        if let Poll::Ready(Some(next)) = self.notifications.poll_recv(context) {
            return Poll::Ready(Some((next.into(), None)));
        }
        let reply = Pin::new(serving).poll(context);
        reply.map(|reply| {
            self.serving = None;
            reply.map(|reply| (reply.message, reply.held))
        })
    }
}

impl Events for Notified {
    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        loop {
            let Some(event) = &mut self.event else {
                match self.poll_message(context) {
                    Poll::Ready(Some((message, held))) => {
                        self.event = Some(mcp::event(message, held));
                    }
                    Poll::Ready(None) => return Poll::Ready(None),
                    Poll::Pending => return Poll::Pending,
                }
                continue;
            };
            match event.poll_next(context) {
                Poll::Ready(None) => self.event = None,
                more => return more,
            }
        }
    }
}

/// Events as a body, with comments that keep a silent stream open.
pub(super) struct EventBody<E> {
    events: E,
    silence: Pin<Box<Sleep>>,
    /// When the right to receive events ends.
    end: Option<Pin<Box<Sleep>>>,
    /// Is done once others need its connection.
    leaving: Option<Pin<Box<WaitForCancellationFutureOwned>>>,
}

impl<E: Events> EventBody<E> {
    pub(super) fn new(events: E) -> EventBody<E> {
        EventBody {
            events,
            silence: Box::pin(tokio::time::sleep(SILENT_FOR)),
            end: None,
            leaving: None,
        }
    }

    /// Ends the stream at this time, even if events are pending.
    pub(super) fn until(mut self, end: Option<Instant>) -> EventBody<E> {
        self.end = end.map(|end| Box::pin(tokio::time::sleep_until(end)));
        self
    }

    /// Ends the stream once its connection has to make room for another.
    pub(super) fn unless(mut self, leaving: CancellationToken) -> EventBody<E> {
        self.leaving = Some(Box::pin(leaving.cancelled_owned()));
        self
    }

    fn is_over(&mut self, context: &mut Context<'_>) -> bool {
        let (end, leaving) = (self.end.as_mut(), self.leaving.as_mut());
        end.is_some_and(|end| end.as_mut().poll(context).is_ready())
            || leaving.is_some_and(|leaving| leaving.as_mut().poll(context).is_ready())
    }

    fn begin_silence(&mut self) {
        self.silence.as_mut().reset(Instant::now() + SILENT_FOR);
    }
}

impl<E: Events> Body for EventBody<E> {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if self.is_over(context) {
            return Poll::Ready(None);
        }
        let event = match self.events.poll_next(context) {
            Poll::Ready(Some(event)) => event,
            Poll::Ready(None) => return Poll::Ready(None),
            Poll::Pending => match self.silence.as_mut().poll(context) {
                Poll::Ready(()) => KEEP_ALIVE,
                Poll::Pending => return Poll::Pending,
            },
        };
        self.begin_silence();
        Poll::Ready(Some(Ok(Frame::data(event))))
    }
}
