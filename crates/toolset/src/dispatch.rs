//! The one road of a call: admit → decode → run on the blocking pool → word → audit.

use std::sync::Arc;
use std::time::{Duration, Instant};

use ops::{Cancel, Context};
use rmcp::model::{
    CallToolResult, ContentBlock, JsonObject, ProgressNotificationParam, ProgressToken,
};
use rmcp::{Peer, RoleServer};
use serde_json::Value;
use tokio::task::{JoinError, JoinHandle};
use tokio::time::{Interval, MissedTickBehavior, Sleep};
use tokio_util::sync::CancellationToken;

use crate::admit::Gate;
use crate::audit;
use crate::face::{About, Face, Failure, FailureText, Worded};
use crate::tool::{AnyTool, Call, Reply, RootCard};

/// How long after its deadline an operation may take to notice before the reply goes out without it.
const OVERDUE: Duration = Duration::from_secs(1);
/// The same after a cancellation.
const STOPPING: Duration = Duration::from_millis(100);
/// How often a caller that wants to hear of progress does.
const PROGRESS_EVERY: Duration = Duration::from_millis(250);

/// Who calls, and how he can be told things or give up.
#[derive(Debug, Clone, Default)]
pub struct Caller {
    /// Who it is, for the log.
    pub client: String,
    /// Cancelled when he does not want the reply any more.
    pub cancelled: CancellationToken,
    /// Where progress goes, if he wants it.
    pub progress: Option<Progress>,
}

/// Where progress of a call is told.
#[derive(Debug, Clone)]
pub struct Progress {
    /// The client.
    pub peer: Peer<RoleServer>,
    /// What the client called this work.
    pub token: ProgressToken,
}

/// A tool in its set.
pub(crate) struct Entry {
    pub(crate) tool: Box<dyn AnyTool>,
    pub(crate) face: &'static dyn Face,
    pub(crate) directory: Arc<[RootCard]>,
}

impl Entry {
    /// Takes a call all the way.
    pub(crate) async fn call(
        &self,
        gate: &Gate,
        arguments: JsonObject,
        caller: &Caller,
    ) -> CallToolResult {
        let start = Instant::now();
        let set = self.face.name();
        let home = gate.home(set).map(|grant| grant.name.as_str());
        let about = About::new(self.tool.definition(), &arguments, home);
        let outcome = self.admit_and_run(gate, arguments, caller).await;
        let line = |response_size| audit::Line {
            toolset: set,
            about: &about,
            client: &caller.client,
            duration: start.elapsed(),
            response_size,
        };
        match outcome {
            Ok(reply) => {
                let result = success(reply);
                line(size(&result)).success();
                result
            }
            Err(failure) => {
                let worded = self.face.word(&failure, &about);
                let structured = gate.deployment().replies.structured();
                let result = failed(&worded, self.face.failure_text(), structured);
                line(size(&result)).failure(&failure, &worded);
                result
            }
        }
    }

    async fn admit_and_run(
        &self,
        gate: &Gate,
        arguments: JsonObject,
        caller: &Caller,
    ) -> Result<Reply, Failure> {
        let deployment = gate.deployment();
        let grants = gate.admit(self.face.name(), self.tool.definition(), &arguments)?;
        let prepared = self.tool.prepare(arguments, deployment.request_timeout)?;
        let cancel = Cancel::after(prepared.timeout);
        let call = Call {
            context: Context {
                limits: Arc::clone(&deployment.limits),
                cancel: cancel.clone(),
            },
            roots: grants.iter().map(|grant| Arc::clone(&grant.root)).collect(),
            directory: Arc::clone(&self.directory),
            replies: deployment.replies,
        };
        let mut patience = Patience::new(cancel, prepared.timeout, caller);
        let permit = patience.wait(gate.enter()).await??;
        let work = prepared.work;
        let task = tokio::task::spawn_blocking(move || {
            // Held by the work, not by the caller: work that is slow to stop still counts as running.
            let _permit = permit;
            work(&call)
        });
        patience.wait(joined(task)).await?
    }
}

async fn joined(task: JoinHandle<Result<Reply, Failure>>) -> Result<Reply, Failure> {
    task.await.unwrap_or_else(|error| {
        Err(Failure::Internal {
            reason: crash(error),
        })
    })
}

/// What a panic said.
fn crash(error: JoinError) -> String {
    let Ok(payload) = error.try_into_panic() else {
        return "the task was stopped".to_owned();
    };
    let text = payload
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned());
    text.or_else(|| payload.downcast_ref::<String>().cloned())
        .unwrap_or_default()
}

/// Waits as long as the caller does, and tells the work when he gives up. Dropped (the connection is gone), it
/// tells the work too.
struct Patience<'caller> {
    cancel: Cancel,
    caller: &'caller Caller,
    deadline: std::pin::Pin<Box<Sleep>>,
    ticks: Option<Interval>,
    told: u64,
}

impl<'caller> Patience<'caller> {
    fn new(cancel: Cancel, timeout: Duration, caller: &'caller Caller) -> Patience<'caller> {
        let deadline = Box::pin(tokio::time::sleep(timeout.saturating_add(OVERDUE)));
        let ticks = caller.progress.is_some().then(|| {
            let first = tokio::time::Instant::now() + PROGRESS_EVERY;
            let mut ticks = tokio::time::interval_at(first, PROGRESS_EVERY);
            ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            ticks
        });
        Patience {
            cancel,
            caller,
            deadline,
            ticks,
            told: 0,
        }
    }

    async fn wait<T>(&mut self, work: impl Future<Output = T>) -> Result<T, Failure> {
        let mut work = std::pin::pin!(work);
        loop {
            tokio::select! {
                biased;
                output = &mut work => return Ok(output),
                () = self.caller.cancelled.cancelled(), if !self.cancel.is_cancelled() => {
                    self.cancel.cancel();
                    self.deadline.as_mut().reset(tokio::time::Instant::now() + STOPPING);
                }
                () = &mut self.deadline => return Err(self.given_up()),
                () = tick(self.ticks.as_mut()) => self.tell().await,
            }
        }
    }

    fn given_up(&self) -> Failure {
        let cancelled = self.cancel.is_cancelled();
        Failure::Operation(if cancelled {
            ops::Error::Cancelled
        } else {
            ops::Error::Timeout
        })
    }

    /// Tells the caller how far the work is, if it got further.
    async fn tell(&mut self) {
        let done = self.cancel.done();
        let Some(progress) = self.caller.progress.as_ref().filter(|_| done > self.told) else {
            return;
        };
        self.told = done;
        let param = ProgressNotificationParam::new(progress.token.clone(), done as f64);
        if let Err(error) = progress.peer.notify_progress(param).await {
            tracing::debug!(%error, "progress was not delivered");
        }
    }
}

impl Drop for Patience<'_> {
    fn drop(&mut self) {
        // Without effect on work that has ended.
        self.cancel.cancel();
    }
}

async fn tick(ticks: Option<&mut Interval>) {
    match ticks {
        Some(ticks) => {
            ticks.tick().await;
        }
        None => std::future::pending().await,
    }
}

fn success(reply: Reply) -> CallToolResult {
    let mut result =
        CallToolResult::success(reply.text.map(ContentBlock::text).into_iter().collect());
    result.structured_content = reply.structured;
    result
}

/// A failure keeps its text in every mode: it is short, and some clients show the model nothing else.
fn failed(worded: &Worded, text: FailureText, structured: bool) -> CallToolResult {
    let text = match text {
        FailureText::Message => worded.message.clone(),
        FailureText::Object => worded.object.to_string(),
    };
    let mut result = CallToolResult::error(vec![ContentBlock::text(text)]);
    result.structured_content = structured.then(|| worded.object.clone());
    result
}

/// The bytes of the half a client is most likely to read: the text, or the structured half where there is none.
fn size(result: &CallToolResult) -> usize {
    let text = result.content.first().and_then(|block| block.as_text());
    match text {
        Some(text) => text.text.len(),
        None => result.structured_content.as_ref().map_or(0, json_size),
    }
}

fn json_size(value: &Value) -> usize {
    struct Count(usize);
    impl std::io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    // Counting cannot fail; a size of 0 in the log would be the whole harm.
    let _ = serde_json::to_writer(&mut count, value);
    count.0
}
