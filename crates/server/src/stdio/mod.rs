//! The stdio transport: one client, JSON-RPC lines on standard input and output.

mod lines;
mod output;
mod pipes;

use std::sync::Arc;
use std::time::Duration;

use mcp::{
    Connection, Following, Incoming, LiveChange, LiveServer, Message, Origin, Outbox, Refused,
    Request, Server, message,
};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use self::lines::{InputLine, InputLines};
use self::output::Output;
use crate::signals::FINISHING;

/// The most replies that wait to be written; further calls wait to hand over theirs.
const WAITING_REPLIES: usize = 64;
/// How long the process waits at its end for the client to read the last replies.
const LAST_REPLIES: Duration = Duration::from_secs(2);

/// Serves the client until it hangs up or the process is asked to stop. Running calls may then finish; after a few
/// seconds they are cut.
pub(crate) async fn serve(
    server: LiveServer,
    max_message_size: usize,
    shutdown: CancellationToken,
) {
    let (read, write) = pipes::open();
    converse(server, read, write, max_message_size, shutdown).await;
}

async fn converse(
    server: LiveServer,
    read: impl AsyncRead + Unpin,
    write: impl AsyncWrite + Unpin + Send + 'static,
    max_message_size: usize,
    shutdown: CancellationToken,
) {
    let (replies, waiting) = Output::new(WAITING_REPLIES);
    let unheard = CancellationToken::new();
    let writer = tokio::spawn(lines::write_all(write, waiting, unheard.clone()));
    let client = StdioClient::new(&server, replies, max_message_size);
    tokio::select! {
        // The client can no longer answer our questions; everything else keeps running until its reply.
        () = client.hear_all(read) => client.connection.end_questions(),
        () = shutdown.cancelled() => {}
        // Nobody can read the results any more.
        () = unheard.cancelled() => client.connection.hang_up(),
        () = client.tell_changes(server.follow()) => {}
    }
    client.end(&server.now(), writer).await;
}

/// The client on standard input and output.
struct StdioClient {
    connection: Arc<Connection>,
    replies: Output,
    outbox: Arc<dyn Outbox>,
    max_message_size: usize,
}

impl StdioClient {
    fn new(server: &LiveServer, replies: Output, max_message_size: usize) -> StdioClient {
        StdioClient {
            connection: Connection::lasting(server.clone(), Arc::new(replies.clone())),
            outbox: Arc::new(replies.clone()),
            replies,
            max_message_size,
        }
    }

    /// Handles lines until there are no more.
    async fn hear_all(&self, read: impl AsyncRead + Unpin) {
        let mut lines = InputLines::new(read, self.max_message_size);
        loop {
            self.replies.has_room().await;
            if self.hear(lines.next().await).await.is_none() {
                return;
            }
        }
    }

    /// Tells the client whenever the list of tools changes.
    async fn tell_changes(&self, mut following: Following) {
        loop {
            if following.next().await == LiveChange::Tools {
                self.connection.tell_tools_changed();
            }
        }
    }

    /// Waits for the last replies. Calls that take too long are cut, which gives each a reply and a line in the log.
    async fn end(self, server: &Server, mut writer: JoinHandle<()>) {
        self.connection.end_subscriptions();
        server.end_subscriptions();
        // The writer ends once nobody can send it anything.
        drop(self);
        if tokio::time::timeout(FINISHING, &mut writer).await.is_err() {
            server.service().cut_calls();
            // The process does not wait for a client that does not read its last replies.
            let _ = tokio::time::timeout(LAST_REPLIES, writer).await;
        }
        let _ = tokio::time::timeout(LAST_REPLIES, server.service().settle()).await;
    }

    /// Handles one line; `None` at the end.
    async fn hear(&self, line: Option<InputLine<'_>>) -> Option<()> {
        match line? {
            InputLine::TooLong(outline) => {
                let refused = message::too_large(outline, self.max_message_size);
                self.refuse(refused).await;
            }
            InputLine::Whole(bytes) => match message::read(bytes) {
                Incoming::Message(Message::Request(request)) => self.serve(request).await,
                Incoming::Message(Message::Notification(note)) => {
                    self.connection.notice(&note);
                    self.connection.follow_roots(&note, &self.outbox);
                }
                Incoming::Message(Message::Answer(answer)) => self.connection.answered(answer),
                Incoming::Refused(refused) => self.refuse(refused).await,
                Incoming::Nothing => {}
            },
        }
        Some(())
    }

    async fn serve(&self, request: Request) {
        let serving = match self
            .connection
            .serve(request, Origin::Stdio, Arc::clone(&self.outbox))
        {
            Ok(serving) => serving,
            Err(refused) => return self.refuse(refused).await,
        };
        let replies = self.replies.clone();
        mcp::start(async move {
            if let Some(reply) = serving.await {
                // The writer notices a client that has stopped reading.
                let _ = replies.send(reply.message, reply.held).await;
            }
        });
    }

    async fn refuse(&self, refused: Refused) {
        tracing::warn!(reason = refused.reason(), "message refused");
        let refusal = self.connection.refusal(&refused);
        let _ = self.replies.send(refusal, None).await;
        if let Some(answer) = refused.into_answer() {
            self.connection.answered(answer);
        }
    }
}
