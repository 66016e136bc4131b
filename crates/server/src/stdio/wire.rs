//! Lines in, lines out: what rmcp's own line transport does not do.
//!
//! Every line gets an answer, also one that is no message or is too long; a request whose id is in use does not
//! disturb the one that has it; a last line without a line end counts; a client that stops reading ends the
//! connection. What is written goes through one task, so that no reply is ever cut by a cancelled future. Calls that
//! need nothing of rmcp and no waiting are answered here (see [`PlainCall`]).

use std::collections::HashSet;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rmcp::RoleServer;
use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, ClientRequest, GetExtensions, GetMeta,
    ProtocolVersion, RequestId, ServerJsonRpcMessage, ServerResult,
};
use rmcp::transport::Transport;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use toolset::{Delivery, Held};

use crate::frame::{self, Frame, Outline, OutlineSearch};
use crate::plain_call::PlainCall;

/// How much is read at once.
const READ_BUFFER: usize = 64 * 1024;
/// A line's memory is kept for the next one up to this size.
const KEPT_LINE: usize = 1024 * 1024;
/// The longest line that may be answered without rmcp: longer ones are looked through before they are read.
const PLAIN_LINE: usize = 64 * 1024;
/// The most replies that wait to be written; then calls wait with theirs.
const WAITING_REPLIES: usize = 64;
/// How long the end waits for a client to read the last replies.
const LAST_REPLIES: Duration = Duration::from_secs(2);

/// The ids in use. One is free again when its answer is sent, or when its call has ended without one.
type Running = Arc<Mutex<HashSet<RequestId>>>;

/// An id that is in use until its call ends: a cancelled one is not answered, but what it still says must not pass for
/// the answer to another request of that id.
struct InUse {
    id: RequestId,
    running: Running,
}

impl Drop for InUse {
    fn drop(&mut self) {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        running.remove(&self.id);
    }
}

/// Answers a call that needs no waiting, of a client of this name.
pub(crate) type AtOnce = Box<dyn Fn(&PlainCall, &str) -> Option<Vec<u8>> + Send + Sync>;

/// One client on two streams.
pub(crate) struct Wire<R> {
    read: BufReader<R>,
    line: Vec<u8>,
    max_line: usize,
    /// A line that is too long goes by, and is only looked through for its id.
    skipped: Option<OutlineSearch>,
    /// A reply of our own that has not found its way into the queue yet.
    own: Option<Vec<u8>>,
    running: Running,
    /// The client has made a request, so it is one.
    is_met: bool,
    /// How calls are made, once that is known.
    manner: Manner,
    at_once: Option<AtOnce>,
    replies: Option<Sender<Vec<u8>>>,
    writer: Option<JoinHandle<()>>,
    shutdown: CancellationToken,
    ended: CancellationToken,
    unheard: CancellationToken,
}

/// How a client makes its calls.
#[derive(Debug, PartialEq, Eq)]
enum Manner {
    /// It made none yet.
    Unknown,
    /// It said at the beginning what it is called, and has yet to say that it is ready.
    Greeting(String),
    /// It said so, and its calls need nothing but themselves.
    Greeted(String),
    /// It introduces itself with every call.
    Introduced,
}

impl Manner {
    /// What the client of a call is called; `None` where its call is not in this manner.
    fn client_of<'a>(&'a self, call: &'a PlainCall) -> Option<&'a str> {
        match (self, &call.introduction) {
            (Manner::Greeted(name), None) => Some(name),
            (Manner::Introduced, Some(introduction)) => Some(introduction.name()),
            _ => None,
        }
    }

    /// Learns from a request that rmcp gets to see. The first one that is no mere question about the server decides.
    fn learn(&mut self, request: &ClientRequest) {
        if *self != Manner::Unknown {
            return;
        }
        match request {
            ClientRequest::InitializeRequest(own) => {
                *self = Manner::Greeting(toolset::named_as(&own.params.client_info));
            }
            ClientRequest::PingRequest(_) | ClientRequest::DiscoverRequest(_) => {}
            request => {
                let revision = request.get_meta().protocol_version();
                if revision == Some(ProtocolVersion::V_2026_07_28) {
                    *self = Manner::Introduced;
                }
            }
        }
    }

    fn get_ready(&mut self) {
        if let Manner::Greeting(name) = self {
            *self = Manner::Greeted(std::mem::take(name));
        }
    }
}

/// What reading came to.
enum Step {
    Line,
    TooLong(Outline),
    End,
}

impl<R: AsyncRead + Unpin + Send> Wire<R> {
    /// Reads lines of up to `max_line` bytes until their end, or until the process is asked to stop.
    pub(crate) fn new<W>(read: R, write: W, max_line: usize, shutdown: CancellationToken) -> Wire<R>
    where
        W: AsyncWrite + Unpin + Send + 'static,
    {
        let (replies, waiting) = channel(WAITING_REPLIES);
        let unheard = CancellationToken::new();
        let writer = tokio::spawn(write_all(write, waiting, unheard.clone()));
        Wire {
            read: BufReader::with_capacity(READ_BUFFER, read),
            line: Vec::new(),
            max_line,
            skipped: None,
            own: None,
            running: Running::default(),
            is_met: false,
            manner: Manner::Unknown,
            at_once: None,
            replies: Some(replies),
            writer: Some(writer),
            shutdown,
            ended: CancellationToken::new(),
            unheard,
        }
    }

    /// Lets plain calls be answered without rmcp where that needs no waiting.
    pub(crate) fn answering(self, at_once: AtOnce) -> Wire<R> {
        Wire {
            at_once: Some(at_once),
            ..self
        }
    }

    /// Cancelled when nothing comes from the client any more.
    pub(crate) fn ended(&self) -> CancellationToken {
        self.ended.clone()
    }

    /// Cancelled when nobody reads the replies any more.
    pub(crate) fn unheard(&self) -> CancellationToken {
        self.unheard.clone()
    }

    async fn next(&mut self) -> Option<ClientJsonRpcMessage> {
        loop {
            self.send_own().await?;
            let frame = match self.step().await? {
                Step::Line => self.take_line(),
                Step::TooLong(outline) => frame::too_large(outline, self.max_line),
                Step::End if self.line.is_empty() => return None,
                Step::End => self.take_line(),
            };
            match frame {
                Frame::Message(message) => {
                    if let Some(message) = self.admitted(*message) {
                        return Some(message);
                    }
                }
                Frame::Mistake(reply) => self.refuse(&reply),
                Frame::Spoiled(answer) => {
                    self.refuse(&answer.reply());
                    if let Some(message) = self.admitted(answer.instead()) {
                        return Some(message);
                    }
                }
                Frame::Nothing => {}
            }
        }
    }

    fn refuse(&mut self, reply: &ServerJsonRpcMessage) {
        tracing::warn!(reason = reason(reply), "message refused");
        self.own = encoded(reply).ok();
    }

    /// Reads a plain call, and answers it if that needs no waiting, also not for a client to read.
    fn take_plain_call(&self) -> Option<Frame> {
        if self.manner == Manner::Unknown || self.line.len() > PLAIN_LINE {
            return None;
        }
        let call = PlainCall::read(&self.line)?;
        match self.manner.client_of(&call) {
            Some(client) if self.answer_at_once(&call, client).is_some() => Some(Frame::Nothing),
            _ => Some(Frame::Message(Box::new(call.into_rmcp()?))),
        }
    }

    fn answer_at_once(&self, call: &PlainCall, client: &str) -> Option<()> {
        let at_once = self.at_once.as_ref()?;
        let room = self.replies.as_ref()?.try_reserve().ok()?;
        // An id in use is refused on the usual way.
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        if running.contains(&call.id) {
            return None;
        }
        drop(running);
        let mut line = at_once(call, client)?;
        line.push(b'\n');
        room.send(line);
        Some(())
    }

    /// Queues a reply of our own. It stays where it is while there is no room, because the caller may give up
    /// waiting at any time and come back.
    async fn send_own(&mut self) -> Option<()> {
        if self.own.is_none() {
            return Some(());
        }
        let room = tokio::select! {
            room = self.replies.as_ref()?.reserve() => room.ok()?,
            () = self.shutdown.cancelled() => return None,
        };
        if let Some(reply) = self.own.take() {
            room.send(reply);
        }
        Some(())
    }

    /// Reads up to the end of a line. Everything read so far is kept when it is not polled to its end.
    async fn step(&mut self) -> Option<Step> {
        loop {
            let piece = tokio::select! {
                piece = self.read.fill_buf() => piece.ok()?,
                () = self.shutdown.cancelled() => return None,
                () = self.unheard.cancelled() => return None,
            };
            if piece.is_empty() {
                return Some(Step::End);
            }
            let end = memchr::memchr(b'\n', piece);
            let taken = end.map_or(piece.len(), |end| end + 1);
            let piece = piece.get(..end.unwrap_or(taken)).unwrap_or_default();
            let too_long = self.line.len() + piece.len() > self.max_line;
            if too_long && self.skipped.is_none() {
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
                let skipped = self.skipped.take().map(OutlineSearch::finish);
                return Some(skipped.map_or(Step::Line, Step::TooLong));
            }
        }
    }

    fn take_line(&mut self) -> Frame {
        let frame = self.take_plain_call();
        let frame = frame.unwrap_or_else(|| frame::read(&self.line));
        self.line.clear();
        self.line.shrink_to(KEPT_LINE);
        frame
    }

    /// Lets a message through that rmcp can serve; the others are answered or ignored here.
    fn admitted(&mut self, mut message: ClientJsonRpcMessage) -> Option<ClientJsonRpcMessage> {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        match &mut message {
            ClientJsonRpcMessage::Request(request) => {
                self.is_met = true;
                if !running.insert(request.id.clone()) {
                    self.own = encoded(&frame::id_in_use(&request.id)).ok();
                    return None;
                }
                self.manner.learn(&request.request);
                let extensions = request.request.extensions_mut();
                extensions.insert(Delivery::Carried);
                extensions.insert(Held::new(InUse {
                    id: request.id.clone(),
                    running: Arc::clone(&self.running),
                }));
            }
            ClientJsonRpcMessage::Notification(note) => {
                if let ClientNotification::InitializedNotification(_) = &note.notification {
                    self.manner.get_ready();
                }
            }
            ClientJsonRpcMessage::Response(_) | ClientJsonRpcMessage::Error(_) => {}
        }
        // Before the first request rmcp takes anything else for the wrong protocol and hangs up.
        self.is_met.then_some(message)
    }
}

impl<R: AsyncRead + Unpin + Send> Transport<RoleServer> for Wire<R> {
    type Error = io::Error;

    fn send(
        &mut self,
        mut message: ServerJsonRpcMessage,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let replies = self.replies.clone();
        let running = Arc::clone(&self.running);
        async move {
            if let Some(id) = answered(&message) {
                let mut running = running.lock().unwrap_or_else(PoisonError::into_inner);
                running.remove(id);
            }
            let line = completed(&mut message)?;
            let replies = replies.ok_or(io::ErrorKind::NotConnected)?;
            let sent = replies.send(line).await;
            sent.map_err(|_| io::ErrorKind::BrokenPipe.into())
        }
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        let message = self.next().await;
        if message.is_none() {
            self.ended.cancel();
        }
        message
    }

    async fn close(&mut self) -> io::Result<()> {
        self.replies = None;
        if let Some(writer) = self.writer.take() {
            // A client that does not read its last replies does not keep the process.
            let _ = tokio::time::timeout(LAST_REPLIES, writer).await;
        }
        Ok(())
    }
}

/// The request that a message answers.
fn answered(message: &ServerJsonRpcMessage) -> Option<&RequestId> {
    match message {
        ServerJsonRpcMessage::Response(response) => Some(&response.id),
        ServerJsonRpcMessage::Error(error) => error.id.as_ref(),
        ServerJsonRpcMessage::Request(_) | ServerJsonRpcMessage::Notification(_) => None,
    }
}

fn reason(message: &ServerJsonRpcMessage) -> Option<&str> {
    match message {
        ServerJsonRpcMessage::Error(error) => Some(&error.error.message),
        _ => None,
    }
}

/// A message as it is written: what a result carries is JSON already.
fn completed(message: &mut ServerJsonRpcMessage) -> io::Result<Vec<u8>> {
    let carried = match message {
        ServerJsonRpcMessage::Response(response) => match &mut response.result {
            ServerResult::CallToolResult(result) => toolset::unload(result),
            _ => None,
        },
        _ => None,
    };
    let line = encoded(message)?;
    let spliced = carried.and_then(|fragment| toolset::splice(&line, &fragment));
    Ok(spliced.unwrap_or(line))
}

fn encoded(message: &ServerJsonRpcMessage) -> io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    Ok(line)
}

/// Writes lines until there are no more or nobody reads them; what waits together is written together.
async fn write_all(
    mut write: impl AsyncWrite + Unpin,
    mut waiting: Receiver<Vec<u8>>,
    unheard: CancellationToken,
) {
    while let Some(first) = waiting.recv().await {
        let mut lines = first;
        while lines.len() < READ_BUFFER
            && let Ok(next) = waiting.try_recv()
        {
            lines.extend_from_slice(&next);
        }
        let written = async {
            write.write_all(&lines).await?;
            write.flush().await
        };
        if let Err(error) = written.await {
            tracing::debug!(%error, "the client does not read any more");
            unheard.cancel();
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};
    use tokio::io::{DuplexStream, ReadHalf, WriteHalf, duplex, split};

    struct Ends {
        wire: Wire<ReadHalf<DuplexStream>>,
        input: WriteHalf<DuplexStream>,
        output: tokio::io::Lines<BufReader<ReadHalf<DuplexStream>>>,
        /// The requests that run: what came is kept, because their end frees their ids.
        running: Vec<ClientJsonRpcMessage>,
    }

    fn ends(max_line: usize) -> Ends {
        let (client, server) = duplex(1 << 20);
        let (read, write) = split(server);
        let (output, input) = split(client);
        Ends {
            wire: Wire::new(read, write, max_line, CancellationToken::new()),
            input,
            output: BufReader::new(output).lines(),
            running: Vec::new(),
        }
    }

    impl Ends {
        async fn says(&mut self, text: &str) {
            self.input.write_all(text.as_bytes()).await.unwrap();
        }

        async fn hears(&mut self) -> Value {
            let line = self.output.next_line().await.unwrap().unwrap();
            serde_json::from_str(&line).unwrap()
        }

        async fn request(&mut self) -> Option<RequestId> {
            let message = self.wire.receive().await?;
            let ClientJsonRpcMessage::Request(request) = &message else {
                panic!("{message:?}");
            };
            let id = request.id.clone();
            self.running.push(message);
            Some(id)
        }
    }

    fn ping(id: i64) -> String {
        json!({"jsonrpc": "2.0", "id": id, "method": "ping"}).to_string() + "\n"
    }

    #[tokio::test]
    async fn a_long_line_is_answered_with_its_id_and_the_next_one_served() {
        let mut ends = ends(100);
        let long =
            json!({"jsonrpc": "2.0", "method": "x", "params": {"a": "y".repeat(300_000)}, "id": 1});
        ends.says(&format!("{long}\n{}", ping(2))).await;
        assert_eq!(ends.request().await, Some(RequestId::Number(2)));
        let reply = ends.hears().await;
        assert_eq!(
            (&reply["id"], &reply["error"]["code"]),
            (&json!(1), &json!(-32600))
        );
    }

    #[tokio::test]
    async fn garbage_is_answered_and_the_next_line_served() {
        let mut ends = ends(1000);
        ends.says(&format!("nonsense\r\n[]\n\n{}", ping(1))).await;
        assert_eq!(ends.request().await, Some(RequestId::Number(1)));
        assert_eq!(ends.hears().await["error"]["code"], -32700);
        assert_eq!(ends.hears().await["error"]["code"], -32600);
    }

    #[tokio::test]
    async fn an_id_in_use_does_not_disturb_the_request_that_has_it() {
        let mut ends = ends(1000);
        ends.says(&(ping(1) + &ping(1) + &ping(2))).await;
        assert_eq!(ends.request().await, Some(RequestId::Number(1)));
        assert_eq!(ends.request().await, Some(RequestId::Number(2)));
        let reply = ends.hears().await;
        assert!(reply.get("id").is_none_or(Value::is_null), "{reply}");
        let answer = ServerJsonRpcMessage::error(
            rmcp::ErrorData::internal_error("x", None),
            Some(RequestId::Number(1)),
        );
        ends.wire.send(answer).await.unwrap();
        ends.says(&ping(1)).await;
        assert_eq!(
            ends.request().await,
            Some(RequestId::Number(1)),
            "it is free again"
        );
    }

    fn call(id: i64) -> String {
        let params = json!({"name": "a", "arguments": {}});
        json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}).to_string()
            + "\n"
    }

    #[tokio::test]
    async fn a_plain_call_is_answered_at_once_when_the_client_is_known() {
        let mut ends = ends(100_000);
        ends.wire = ends.wire.answering(Box::new(|call, client| {
            let reply = json!({"name": call.name, "client": client});
            (call.id != RequestId::Number(4)).then(|| reply.to_string().into_bytes())
        }));
        ends.says(&call(1)).await;
        assert_eq!(ends.request().await, Some(RequestId::Number(1)), "unknown");
        let start = json!({"jsonrpc": "2.0", "id": 2, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "n", "version": "1"}
        }});
        let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        ends.says(&format!(
            "{start}\n{ready}\n{}{}{}",
            call(3),
            call(4),
            call(4)
        ))
        .await;
        assert_eq!(ends.request().await, Some(RequestId::Number(2)));
        assert!(matches!(
            ends.wire.receive().await,
            Some(ClientJsonRpcMessage::Notification(_))
        ));
        assert_eq!(ends.request().await, Some(RequestId::Number(4)), "it waits");
        assert_eq!(ends.hears().await, json!({"name": "a", "client": "n/1"}));
        let long = call(5).replace("\"a\"", &format!("{:?}", "a".repeat(PLAIN_LINE)));
        ends.says(&long).await;
        assert_eq!(ends.request().await, Some(RequestId::Number(5)), "long");
        assert!(ends.hears().await["error"].is_object(), "its id is in use");
    }

    #[tokio::test]
    async fn calls_that_introduce_their_client_are_answered_at_once_after_the_first() {
        let mut ends = ends(100_000);
        ends.wire = ends.wire.answering(Box::new(|call, client| {
            let reply = json!({"name": call.name, "client": client});
            Some(reply.to_string().into_bytes())
        }));
        let introduced = |method: &str, id: i64| {
            let meta = json!({
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientInfo": {"name": "n", "version": id.to_string()},
                "io.modelcontextprotocol/clientCapabilities": {}
            });
            let mut params = json!({"_meta": meta});
            if method == "tools/call" {
                params["name"] = json!("a");
            }
            json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string()
                + "\n"
        };
        ends.says(&introduced("server/discover", 1)).await;
        ends.says(&introduced("tools/call", 2)).await;
        assert_eq!(ends.request().await, Some(RequestId::Number(1)));
        assert_eq!(ends.request().await, Some(RequestId::Number(2)), "a first");
        ends.says(&(introduced("tools/call", 3) + &call(4))).await;
        assert_eq!(ends.request().await, Some(RequestId::Number(4)), "unlike");
        assert_eq!(ends.hears().await, json!({"name": "a", "client": "n/3"}));
    }

    #[tokio::test]
    async fn a_client_that_does_not_read_is_not_waited_for() {
        let mut ends = ends(1000);
        ends.wire.manner = Manner::Greeted("n".to_owned());
        let large = Box::new(|_: &PlainCall, _: &str| Some(vec![b'x'; 100_000]));
        ends.wire = ends.wire.answering(large);
        for number in 0..500 {
            ends.says(&call(number)).await;
        }
        let left = tokio::time::timeout(Duration::from_secs(20), ends.request()).await;
        assert!(left.expect("no waiting").is_some(), "the rest is rmcp's");
    }

    #[tokio::test]
    async fn a_last_line_without_its_end_counts() {
        let mut ends = ends(1000);
        ends.says(ping(1).trim_end()).await;
        ends.input.shutdown().await.unwrap();
        assert_eq!(ends.request().await, Some(RequestId::Number(1)));
        assert_eq!(ends.request().await, None);
    }

    #[tokio::test]
    async fn notifications_of_strangers_are_ignored() {
        let mut ends = ends(1000);
        let note = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        ends.says(&format!("{note}\n{}", ping(1))).await;
        assert_eq!(ends.request().await, Some(RequestId::Number(1)));
    }

    #[tokio::test]
    async fn a_client_that_reads_no_more_ends_the_connection() {
        let mut ends = ends(1000);
        ends.says(&ping(1)).await;
        ends.request().await;
        let (wire, input) = (&mut ends.wire, ends.input);
        drop((ends.output, input));
        let answer = ServerJsonRpcMessage::error(
            rmcp::ErrorData::internal_error("x", None),
            Some(RequestId::Number(1)),
        );
        wire.send(answer).await.unwrap();
        wire.unheard().cancelled().await;
        assert!(wire.receive().await.is_none());
    }

    #[tokio::test]
    async fn a_read_that_is_given_up_loses_nothing() {
        let mut ends = ends(1000);
        let text = ping(1);
        let (start, rest) = text.split_at(10);
        ends.says(start).await;
        let early = tokio::time::timeout(Duration::from_millis(20), ends.wire.receive()).await;
        assert!(early.is_err());
        ends.says(rest).await;
        assert_eq!(ends.request().await, Some(RequestId::Number(1)));
    }
}
