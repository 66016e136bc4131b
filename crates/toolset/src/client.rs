//! The client that made a call, as far as tools need to know it.
//!
//! What a client is on the wire (a pipe, a session, one request over HTTP) is the protocol layer's business. A running
//! call sees [`Client`]: it can be told how far the work is, asked a question, and be gone.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use ops::ReplyRoom;
use rmcp::model::{ErrorData, InputResponses};
use serde_json::Value;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::host_paths::HostDirectories;
use crate::resources::Subscription;
use crate::trace::TraceContext;

/// A client while one of its calls runs.
pub trait Client: fmt::Debug + Send + Sync {
    /// Cancelled once the client does not want the reply any more.
    fn gone(&self) -> &CancellationToken;

    /// Whether the client asked for progress.
    fn wants_progress(&self) -> bool {
        false
    }

    /// Sends progress. Never waits: progress that cannot be sent at once is dropped.
    fn tell_progress(&self, _done: u64) {}

    /// How the client can be asked something.
    fn asking(&self) -> AskBy {
        AskBy::Never
    }

    /// Whether only the operator's settings leave no way to ask the client.
    fn is_asking_off(&self) -> bool {
        false
    }

    /// How the client can be asked to put a question to its user.
    fn asking_person(&self) -> AskBy {
        AskBy::Never
    }

    /// Asks the client by a request of ours, such as `sampling/createMessage`; `None` if it cannot be reached that way.
    fn ask(&self, _method: &'static str, _params: Value) -> PendingQuestion<'_> {
        Box::pin(std::future::ready(None))
    }

    /// Takes over a resource that is now watched for the client.
    fn subscribed(&self, _subscription: Subscription) {}
}

/// How a client can be asked something while its call runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AskBy {
    /// Not at all.
    Never,
    /// By a request of ours: revisions up to 2025-11-25.
    Request,
    /// By a result that names what is missing; the client then calls again with the answers and our state.
    Result,
}

/// A question on its way to the client.
pub type PendingQuestion<'client> =
    Pin<Box<dyn Future<Output = Option<OpenQuestion>> + Send + 'client>>;

/// A question that the client has and has not answered. Dropping it, as a cancelled call does, withdraws the question.
pub struct OpenQuestion {
    answer: oneshot::Receiver<Result<Value, ErrorData>>,
    withdraw: Option<Withdraw>,
}

/// Tells a client, with a reason, that its answer is not wanted any more.
type Withdraw = Box<dyn FnOnce(&str) + Send + Sync>;

impl OpenQuestion {
    /// A question whose answer comes through a channel.
    pub fn new(
        answer: oneshot::Receiver<Result<Value, ErrorData>>,
        withdraw: impl FnOnce(&str) + Send + Sync + 'static,
    ) -> OpenQuestion {
        OpenQuestion {
            answer,
            withdraw: Some(Box::new(withdraw)),
        }
    }

    /// Waits for the client's result or error; `None` if the connection is closed.
    pub async fn answer(&mut self) -> Option<Result<Value, ErrorData>> {
        let answer = (&mut self.answer).await;
        self.withdraw = None;
        answer.ok()
    }

    /// Tells the client why its answer is not wanted any more.
    pub fn withdraw(&mut self, reason: &str) {
        if let Some(withdraw) = self.withdraw.take() {
            withdraw(reason);
        }
    }
}

impl fmt::Debug for OpenQuestion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OpenQuestion")
    }
}

impl Drop for OpenQuestion {
    fn drop(&mut self) {
        self.withdraw("the call was cancelled");
    }
}

/// Who makes a call, and how to reach it.
#[derive(Debug, Clone)]
pub struct Caller {
    /// What the log calls the client.
    pub name: Arc<str>,
    /// What the client's program calls itself, without its version.
    pub program: Option<String>,
    /// The account for statistics and uploads: token, session, address or user. A client cannot choose it.
    pub account: Arc<str>,
    /// What kind of account that is.
    pub account_kind: AccountKind,
    /// The account whose turns, call rate and bytes it uses: token or address, because anyone can open many sessions.
    pub allowance: Arc<str>,
    /// Identifies the subject of an access token, regardless of the operator's name for it.
    pub subject: Option<Arc<str>>,
    /// The room for the reply, if bytes are counted.
    pub room: Option<Arc<ReplyRoom>>,
    /// The size of the request on the wire in bytes; 0 if it came over none.
    pub request_size: usize,
    /// The trace that the call belongs to.
    pub trace: Option<TraceContext>,
    /// The client's answers to an earlier question, if it calls again.
    pub answers: Option<Answers>,
    /// The directories on the host that the client works in, if it named some of those that are served.
    pub narrowed: Option<Arc<HostDirectories>>,
    /// The way to the client.
    pub client: Arc<dyn Client>,
}

/// The kind of an account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AccountKind {
    /// The one connection of the process.
    Connection,
    /// The operator's name for a token.
    Token,
    /// A user of this machine at a shell. Every call is a process of its own.
    Shell,
    /// A session.
    Session,
    /// Only the host that a request came from, which may have many clients.
    Host,
}

/// What a client brings back when it calls again with answers.
#[derive(Debug, Clone)]
pub struct Answers {
    /// The state we gave it.
    pub state: String,
    /// Its answers, by the names of our questions.
    pub responses: InputResponses,
}

impl Caller {
    /// The name of the client in the log and the audit file: the operator's name for its token, else the host that it
    /// calls from, else `stdio`.
    #[must_use]
    pub fn client_name(&self) -> &str {
        match self.allowance.as_ref() {
            "" => STDIO,
            name => name,
        }
    }

    /// Identifies the client as the owner of what it leaves behind: the subject of its access token, else its account.
    ///
    /// Security: a person and a program whose tokens have the same name have one account, but are two subjects. The kind of
    /// an account is part of the name, because a token may have the same name as a host.
    pub(crate) fn owner_name(&self) -> String {
        match &self.subject {
            Some(subject) => format!("Subject {subject}"),
            None => format!("{:?} {}", self.account_kind, self.account),
        }
    }
}

/// What the one client on standard input and output is called.
const STDIO: &str = "stdio";

impl Default for Caller {
    fn default() -> Caller {
        Caller {
            name: Arc::default(),
            program: None,
            account: Arc::default(),
            account_kind: AccountKind::Connection,
            allowance: Arc::default(),
            subject: None,
            room: None,
            request_size: 0,
            trace: None,
            answers: None,
            narrowed: None,
            client: Arc::new(Silent::default()),
        }
    }
}

/// A client that gets no progress and no questions.
#[derive(Debug, Clone, Default)]
pub struct Silent(pub CancellationToken);

impl Client for Silent {
    fn gone(&self) -> &CancellationToken {
        &self.0
    }
}
