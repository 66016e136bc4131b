//! Our requests to the client, and the calls that wait for their answers.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rmcp::model::{CancelledNotificationParam, ErrorData, RequestId};
use serde_json::Value;
use tokio::sync::oneshot;
use toolset::OpenQuestion;

use crate::connection::Outbox;
use crate::message::Answer;
use crate::result;

/// The questions of one connection that wait for their answers.
#[derive(Debug, Default)]
pub(crate) struct Questions(Mutex<PendingAnswers>);

#[derive(Debug, Default)]
struct PendingAnswers {
    is_closed: bool,
    next: i64,
    answers: HashMap<RequestId, oneshot::Sender<Result<Value, ErrorData>>>,
}

impl Questions {
    /// Asks the client something; `None` if the connection has no reader.
    pub(crate) async fn ask(
        self: &Arc<Questions>,
        method: &'static str,
        params: Value,
        outbox: &Arc<dyn Outbox>,
    ) -> Option<OpenQuestion> {
        let (id, answer) = self.register();
        let questions = Arc::clone(self);
        let (withdrawn, way) = (id.clone(), Arc::clone(outbox));
        let open = OpenQuestion::new(answer, move |reason| {
            questions.forget(&withdrawn);
            tell_withdrawn(withdrawn, reason, way);
        });
        let message = result::question(&id, method, &params);
        outbox.send(message).await.then_some(open)
    }

    /// Passes an answer on to the call that waits for it.
    pub(crate) fn answered(&self, answer: Answer) {
        let id = answer.id.map(as_given);
        let waits = id.and_then(|id| self.lock().answers.remove(&id));
        if let Some(waits) = waits {
            // The call may have ended in the meantime.
            let _ = waits.send(answer.outcome);
        }
    }

    /// Ends all questions: the client is gone.
    pub(crate) fn close(&self) {
        let mut waiting = self.lock();
        waiting.is_closed = true;
        waiting.answers.clear();
    }

    fn register(&self) -> (RequestId, oneshot::Receiver<Result<Value, ErrorData>>) {
        let (waits, answer) = oneshot::channel();
        let mut waiting = self.lock();
        let id = RequestId::Number(waiting.next);
        waiting.next += 1;
        // Dropped on a closed connection, so that the call does not wait for an answer.
        if !waiting.is_closed {
            waiting.answers.insert(id.clone(), waits);
        }
        (id, answer)
    }

    fn forget(&self, id: &RequestId) {
        self.lock().answers.remove(id);
    }

    fn lock(&self) -> MutexGuard<'_, PendingAnswers> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The id of a question as it was given: some clients send the number back as a text.
fn as_given(id: RequestId) -> RequestId {
    match id {
        RequestId::String(text) => match text.parse() {
            Ok(number) => RequestId::Number(number),
            Err(_) => RequestId::String(text),
        },
        number => number,
    }
}

/// Tells the client that its answer is no longer wanted, without waiting for the message to be sent.
fn tell_withdrawn(id: RequestId, reason: &str, outbox: Arc<dyn Outbox>) {
    let params = CancelledNotificationParam::new(Some(id), Some(reason.to_owned()));
    let message = result::notification("notifications/cancelled", &params);
    // No runtime: the process is ending.
    if let Ok(runtime) = tokio::runtime::Handle::try_current() {
        runtime.spawn(async move { outbox.send(message).await });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_may_spell_our_number_as_a_text() {
        assert_eq!(
            as_given(RequestId::String("7".into())),
            RequestId::Number(7)
        );
        let other = RequestId::String("seven".into());
        assert_eq!(as_given(other.clone()), other);
    }
}
