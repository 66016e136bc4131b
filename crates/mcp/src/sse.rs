//! Server-sent events: how messages are written in a stream, and the streams of a session, which keep what they sent.

use std::collections::VecDeque;
use std::fmt;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use bytes::Bytes;

use ops::{ByteBudget, Reserved};
use toolset::ReplyMessage;

use crate::connection::Outbox;
use crate::message_stream::{MessageStream, held_bytes};

/// A comment, which keeps a silent stream open.
pub const KEEP_ALIVE: Bytes = Bytes::from_static(b":\n\n");
/// How long a client should wait before it comes back to a stream that broke, in milliseconds.
const RETRY_MS: u32 = 3000;

/// The bytes before a message.
const DATA: &[u8] = b"data: ";

/// What ends an event.
const END: &[u8] = b"\n\n";

/// A message as an event of a stream that cannot be resumed. It is JSON in one line, so it is one line of data.
#[must_use]
pub fn as_event(message: ReplyMessage) -> ReplyMessage {
    message.between(DATA, END)
}

/// A message as such an event, with the bytes that it is written in.
#[must_use]
pub fn event(message: impl Into<ReplyMessage>, held: Option<Reserved>) -> MessageStream {
    MessageStream::new(as_event(message.into()), held)
}

/// The place of an event: its number, and the stream it is in if that belongs to one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct EventId {
    pub(crate) number: u64,
    pub(crate) stream: Option<u64>,
}

impl EventId {
    /// Reads what a client sends back.
    pub(crate) fn parse(text: &str) -> Option<EventId> {
        let (number, stream) = match text.split_once('/') {
            Some((number, stream)) => (number, Some(stream.parse().ok()?)),
            None => (text, None),
        };
        Some(EventId {
            number: number.parse().ok()?,
            stream,
        })
    }
}

impl fmt::Display for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.number)?;
        self.stream.map_or(Ok(()), |stream| write!(f, "/{stream}"))
    }
}

/// The most bytes of events that the streams of a session keep for clients that come back.
const KEPT_BYTES: usize = 1024 * 1024;

/// How many bytes several streams keep together. Cloning is cheap.
#[derive(Debug, Clone, Default)]
pub(crate) struct KeptBytes(Arc<KeptCount>);

#[derive(Debug, Default)]
struct KeptCount {
    bytes: AtomicUsize,
    /// The process's budget in which they also count, and their owner.
    budget: Option<(Arc<ByteBudget>, Arc<str>)>,
    /// The room of the small events; a large one brings its own.
    room: Mutex<Option<Reserved>>,
}

impl KeptBytes {
    /// Counts the bytes of a client in the budget of the process too.
    pub(crate) fn within(budget: &Arc<ByteBudget>, client: &Arc<str>) -> KeptBytes {
        KeptBytes(Arc::new(KeptCount {
            budget: Some((Arc::clone(budget), Arc::clone(client))),
            ..KeptCount::default()
        }))
    }

    /// Whether they are more than a session may keep.
    pub(crate) fn is_over(&self) -> bool {
        let budget = self.0.budget.as_ref();
        self.0.bytes.load(Ordering::Relaxed) > KEPT_BYTES
            || budget.is_some_and(|(budget, client)| budget.is_over(client))
    }

    fn add(&self, event: &Event) {
        self.0.bytes.fetch_add(event.size, Ordering::Relaxed);
        self.recount(|small| small + event.small_bytes());
    }

    fn subtract(&self, event: &Event) {
        self.0.bytes.fetch_sub(event.size, Ordering::Relaxed);
        self.recount(|small| small.saturating_sub(event.small_bytes()));
    }

    fn recount(&self, change: impl FnOnce(u64) -> u64) {
        let Some((budget, client)) = &self.0.budget else {
            return;
        };
        let mut room = self.0.room.lock().unwrap_or_else(PoisonError::into_inner);
        let room = room.get_or_insert_with(|| budget.hold(client, 0));
        room.resize(change(room.bytes()));
    }
}

/// An event as it is sent.
#[derive(Debug)]
struct Event {
    content: EventContent,
    /// How many bytes it takes in memory.
    size: usize,
    /// Whether it brings its own room in the budget.
    is_held: bool,
}

#[derive(Debug)]
enum EventContent {
    /// For every reader.
    Kept(Bytes),
    /// A large reply, for the first reader only.
    Once(MessageStream),
}

/// What a reader takes of a stream.
#[derive(Debug)]
enum TakenEvent {
    Event(Bytes),
    Large(MessageStream),
}

impl Event {
    fn new(message: ReplyMessage, tail: &str, held: Option<Reserved>) -> Event {
        let message = message.between(DATA, tail.as_bytes());
        let (size, is_held) = (message.held(), held.is_some());
        let content = match message.into_whole() {
            Ok(bytes) => EventContent::Kept(held_bytes(bytes, held)),
            Err(large) => EventContent::Once(MessageStream::new(large, held)),
        };
        Event {
            content,
            size,
            is_held,
        }
    }

    fn small_bytes(&self) -> u64 {
        if self.is_held { 0 } else { self.size as u64 }
    }
}

/// A stream of a session. Cloning is cheap.
#[derive(Debug, Clone)]
pub(crate) struct Stream {
    name: Option<u64>,
    state: Arc<Mutex<StreamState>>,
}

#[derive(Debug, Default)]
struct StreamState {
    events: VecDeque<Event>,
    /// The number of the first event that is still kept.
    first: u64,
    /// The bytes of the streams that it is counted with.
    kept: KeptBytes,
    ended_at: Option<Instant>,
    /// The number of the next event that nobody has had.
    unread: u64,
    /// Its current reader.
    reader: Option<u64>,
    /// How many readers there were.
    readers: u64,
    /// The bytes of the event that told the client how to come back.
    invitation: usize,
    waker: Option<Waker>,
}

impl Stream {
    /// A stream of a request, by its number, or the one that belongs to no request.
    pub(crate) fn new(name: Option<u64>, kept: &KeptBytes) -> Stream {
        let mut state = StreamState::default();
        state.kept = kept.clone();
        Stream {
            name,
            state: Arc::new(Mutex::new(state)),
        }
    }

    /// Sends an empty event that tells the client how to come back.
    pub(crate) fn invite_back(&self) {
        let invitation = DATA.len() + self.lock().tail(self.name, Some(RETRY_MS)).len();
        self.add(Vec::new().into(), Some(RETRY_MS), None);
        self.lock().invitation = invitation;
    }

    /// Sends a message, with its room in the budget if it is large. Returns whether the stream is still open.
    pub(crate) fn push(&self, message: impl Into<ReplyMessage>, held: Option<Reserved>) -> bool {
        self.add(message.into(), None, held)
    }

    fn add(&self, message: ReplyMessage, retry: Option<u32>, held: Option<Reserved>) -> bool {
        let mut state = self.lock();
        if state.ended_at.is_some() {
            return false;
        }
        let tail = state.tail(self.name, retry);
        let event = Event::new(message, &tail, held);
        state.kept.add(&event);
        state.events.push_back(event);
        state.wake();
        true
    }

    /// Ends the stream, for its reader too.
    pub(crate) fn end(&self) {
        let mut state = self.lock();
        state.ended_at.get_or_insert_with(Instant::now);
        state.wake();
    }

    /// Returns when it ended.
    pub(crate) fn ended_at(&self) -> Option<Instant> {
        self.lock().ended_at
    }

    /// Whether it has ended, nobody reads it, and nothing of it is left to come back for.
    pub(crate) fn is_spent(&self) -> bool {
        let state = self.lock();
        state.ended_at.is_some() && state.reader.is_none() && state.events.is_empty()
    }

    /// How many events nobody has had.
    pub(crate) fn unread(&self) -> u64 {
        let state = self.lock();
        let next = state.first + state.events.len() as u64;
        next.saturating_sub(state.unread.max(state.first))
    }

    /// Whether somebody reads it.
    pub(crate) fn has_reader(&self) -> bool {
        self.lock().reader.is_some()
    }

    /// Drops the events that its reader has read, or all of them if it has no reader.
    pub(crate) fn forget_read(&self) {
        self.lock().forget_read();
    }

    /// Continues after an event, or from the beginning. An earlier reader gets no more events.
    pub(crate) fn read_after(&self, last: Option<u64>) -> EventStream {
        let mut state = self.lock();
        let next = last.map_or(0, |last| last.saturating_add(1));
        state.unread = next.max(state.first);
        state.readers += 1;
        state.reader = Some(state.readers);
        // Wakes the earlier reader, whose stream ends here.
        state.wake();
        EventStream {
            reader: state.readers,
            stream: self.clone(),
            large: None,
        }
    }

    fn lock(&self) -> MutexGuard<'_, StreamState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl StreamState {
    /// What follows the message of the next event.
    fn tail(&self, stream: Option<u64>, retry: Option<u32>) -> String {
        let id = EventId {
            number: self.first + self.events.len() as u64,
            stream,
        };
        let retry = retry.map_or_else(String::new, |retry| format!("retry: {retry}\n"));
        format!("\nid: {id}\n{retry}\n")
    }

    /// Takes the next event. A large reply is taken out, with all that was read before it.
    fn next_event(&mut self) -> Option<TakenEvent> {
        let index = usize::try_from(self.unread.checked_sub(self.first)?).ok()?;
        let kept = match &self.events.get(index)?.content {
            EventContent::Kept(bytes) => Some(bytes.clone()),
            EventContent::Once(_) => None,
        };
        if kept.is_none() {
            self.forget_read();
        }
        self.unread += 1;
        match kept {
            Some(bytes) => Some(TakenEvent::Event(bytes)),
            None => self.take_first(),
        }
    }

    fn take_first(&mut self) -> Option<TakenEvent> {
        let event = self.events.pop_front()?;
        self.first += 1;
        self.kept.subtract(&event);
        Some(match event.content {
            EventContent::Kept(bytes) => TakenEvent::Event(bytes),
            EventContent::Once(stream) => TakenEvent::Large(stream),
        })
    }

    fn forget_read(&mut self) {
        while self.first < self.unread || self.reader.is_none() {
            let Some(event) = self.events.pop_front() else {
                return;
            };
            self.first += 1;
            self.kept.subtract(&event);
        }
    }

    /// Frees memory as soon as a large reply was read or its reader left, because the session may stay idle from now
    /// on.
    fn keep_within_budget(&mut self) {
        if self.kept.is_over() {
            self.forget_read();
        }
    }

    fn wake(&mut self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}

impl Drop for StreamState {
    fn drop(&mut self) {
        self.events
            .iter()
            .for_each(|event| self.kept.subtract(event));
    }
}

impl Outbox for Stream {
    fn try_send(&self, message: Vec<u8>) -> bool {
        self.push(message, None)
    }

    fn send(&self, message: Vec<u8>) -> Pin<Box<dyn Future<Output = bool> + Send + '_>> {
        let is_open = self.push(message, None);
        Box::pin(std::future::ready(is_open))
    }

    /// The event of the reply, and the one before it that told the client how to come back.
    fn frame(&self) -> usize {
        let state = self.lock();
        state.invitation + DATA.len() + state.tail(self.name, None).len()
    }
}

/// How many events wait for a reader before senders have to wait too.
const MOST_UNREAD: u64 = 64;
/// How often senders check whether they were read.
const UNREAD_STEP: Duration = Duration::from_millis(100);

/// A stream whose senders wait while nobody reads: a client may never open it.
#[derive(Debug)]
pub(crate) struct UnhurriedStream(pub(crate) Stream);

impl Outbox for UnhurriedStream {
    fn try_send(&self, message: Vec<u8>) -> bool {
        self.0.unread() < MOST_UNREAD && self.0.push(message, None)
    }

    fn send(&self, message: Vec<u8>) -> Pin<Box<dyn Future<Output = bool> + Send + '_>> {
        Box::pin(async move {
            while self.0.unread() >= MOST_UNREAD && self.0.ended_at().is_none() {
                tokio::time::sleep(UNREAD_STEP).await;
            }
            self.0.push(message, None)
        })
    }
}

/// One reader of a stream, event by event.
#[derive(Debug)]
pub struct EventStream {
    stream: Stream,
    reader: u64,
    /// A large reply that is being read.
    large: Option<MessageStream>,
}

impl EventStream {
    /// A stream that has ended without an event.
    pub(crate) fn empty() -> EventStream {
        let stream = Stream::new(None, &KeptBytes::default());
        stream.end();
        stream.read_after(None)
    }

    /// The next event, or a piece of a large one; `None` at the end, or if another reader took over.
    pub fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        loop {
            let Some(large) = &mut self.large else {
                match self.poll_event(context) {
                    Poll::Ready(Some(TakenEvent::Large(large))) => self.large = Some(large),
                    Poll::Ready(Some(TakenEvent::Event(event))) => return Poll::Ready(Some(event)),
                    Poll::Ready(None) => return Poll::Ready(None),
                    Poll::Pending => return Poll::Pending,
                }
                continue;
            };
            match large.poll_next(context) {
                Poll::Ready(None) => self.large = None,
                more => return more,
            }
        }
    }

    fn poll_event(&mut self, context: &mut Context<'_>) -> Poll<Option<TakenEvent>> {
        let mut state = self.stream.lock();
        if state.reader != Some(self.reader) {
            return Poll::Ready(None);
        }
        if let Some(event) = state.next_event() {
            state.keep_within_budget();
            return Poll::Ready(Some(event));
        }
        if state.ended_at.is_some() {
            return Poll::Ready(None);
        }
        state.waker = Some(context.waker().clone());
        Poll::Pending
    }

    /// Everything that is left, if the stream has already ended and is small.
    #[must_use]
    pub fn take_ended(&mut self) -> Option<Bytes> {
        let mut state = self.stream.lock();
        // A large reply is not copied, and keeps its room until it is written.
        let is_once = |event: &Event| matches!(event.content, EventContent::Once(_));
        let is_large = |event: &Event| event.is_held || is_once(event);
        let is_large = state.events.iter().any(is_large);
        if state.ended_at.is_none() || state.reader != Some(self.reader) || is_large {
            return None;
        }
        let mut rest = Vec::new();
        while let Some(TakenEvent::Event(event)) = state.next_event() {
            rest.extend_from_slice(&event);
        }
        state.keep_within_budget();
        Some(rest.into())
    }
}

impl Drop for EventStream {
    fn drop(&mut self) {
        let mut state = self.stream.lock();
        state.reader.take_if(|reader| *reader == self.reader);
        state.keep_within_budget();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(stream: &mut EventStream) -> Option<String> {
        let mut context = Context::from_waker(Waker::noop());
        match stream.poll_next(&mut context) {
            Poll::Ready(event) => event.map(|event| String::from_utf8(event.to_vec()).unwrap()),
            Poll::Pending => Some("pending".to_owned()),
        }
    }

    fn bytes(kept: &KeptBytes) -> usize {
        kept.0.bytes.load(Ordering::Relaxed)
    }

    #[test]
    fn a_large_reply_is_kept_until_it_was_read_and_no_longer() {
        let kept = KeptBytes::default();
        let stream = Stream::new(Some(0), &kept);
        let mut reader = stream.read_after(None);
        stream.push(vec![b'x'; 3 * KEPT_BYTES], None);
        stream.end();
        assert!(kept.is_over(), "nobody has read it yet");
        assert!(text(&mut reader).is_some());
        assert_eq!(bytes(&kept), 0);
        let unread = Stream::new(Some(1), &kept);
        let reader = unread.read_after(None);
        unread.push(vec![b'x'; 3 * KEPT_BYTES], None);
        drop(reader);
        assert_eq!(bytes(&kept), 0, "its reader hung up");
    }

    #[test]
    fn a_stream_that_has_ended_takes_nothing_more() {
        let stream = Stream::new(None, &KeptBytes::default());
        assert!(Outbox::try_send(&stream, b"{}".to_vec()));
        stream.end();
        assert!(!Outbox::try_send(&stream, b"{}".to_vec()));
    }

    #[test]
    fn a_message_with_room_to_spare_is_its_event_without_a_copy() {
        let mut message = Vec::with_capacity(100);
        message.extend_from_slice(b"{}");
        let place = message.as_ptr();
        let mut event = event(message, None);
        let mut context = Context::from_waker(Waker::noop());
        let Poll::Ready(Some(bytes)) = event.poll_next(&mut context) else {
            panic!("not there: {event:?}");
        };
        assert_eq!(bytes, "data: {}\n\n");
        assert_eq!(bytes.as_ptr(), place);
        assert!(event.is_at_end());
    }

    #[test]
    fn events_have_numbers_and_say_how_to_come_back() {
        let stream = Stream::new(Some(4), &KeptBytes::default());
        let mut reader = stream.read_after(None);
        stream.invite_back();
        stream.push(b"{}".to_vec(), None);
        assert_eq!(
            text(&mut reader).unwrap(),
            "data: \nid: 0/4\nretry: 3000\n\n"
        );
        assert_eq!(text(&mut reader).unwrap(), "data: {}\nid: 1/4\n\n");
        assert_eq!(text(&mut reader).unwrap(), "pending");
        stream.end();
        assert_eq!(text(&mut reader), None);
        stream.push(b"late".to_vec(), None);
        assert_eq!(text(&mut reader), None);
    }

    #[test]
    fn a_stream_that_broke_is_read_on_behind_the_last_event() {
        let stream = Stream::new(None, &KeptBytes::default());
        let broken = stream.read_after(None);
        for message in ["a", "b", "c"] {
            stream.push(message.as_bytes().to_vec(), None);
        }
        drop(broken);
        assert!(!stream.has_reader());
        let mut reader = stream.read_after(Some(0));
        assert_eq!(text(&mut reader).unwrap(), "data: b\nid: 1\n\n");
        let mut other = stream.read_after(Some(1));
        assert_eq!(text(&mut reader), None, "another took over");
        assert_eq!(text(&mut other).unwrap(), "data: c\nid: 2\n\n");
        drop(reader);
        assert!(stream.has_reader());
        let mut beyond = stream.read_after(Some(u64::MAX));
        assert_eq!(text(&mut beyond).unwrap(), "pending");
    }

    #[test]
    fn what_was_read_can_be_forgotten_and_what_nobody_reads_too() {
        let kept = KeptBytes::default();
        let stream = Stream::new(None, &kept);
        let mut reader = stream.read_after(None);
        stream.push(b"a".to_vec(), None);
        stream.push(b"b".to_vec(), None);
        text(&mut reader);
        stream.forget_read();
        assert_eq!(bytes(&kept), "data: b\nid: 1\n\n".len());
        drop(reader);
        stream.forget_read();
        assert_eq!(bytes(&kept), 0);
        stream.push(b"c".to_vec(), None);
        let mut reader = stream.read_after(None);
        assert_eq!(text(&mut reader).unwrap(), "data: c\nid: 2\n\n");
        drop((stream, reader));
        assert_eq!(bytes(&kept), 0, "a stream that is gone keeps nothing");
    }

    #[test]
    fn event_ids_come_back_as_they_were_written() {
        for id in ["0", "7/3", "18446744073709551615/0"] {
            assert_eq!(EventId::parse(id).unwrap().to_string(), id);
        }
        for other in ["", "/", "1/", "-1", "a", "1/2/3", "18446744073709551616"] {
            assert_eq!(EventId::parse(other), None, "{other}");
        }
    }
}
