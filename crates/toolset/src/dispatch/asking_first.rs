//! Runs a call that a person may have to confirm.

use ops::{Consent, Planned};
use rmcp::model::JsonObject;

use super::{BegunCall, Dispatch};
use crate::call_watch::CallWatch;
use crate::client::AskBy;
use crate::confirm::{self, AskedCall, ELICITATION, NotConfirmed, judge};
use crate::contract::{CallSubject, Failure};
use crate::tool::Ended;

/// How often a person is asked about one call whose count grows each time.
const QUESTIONS_OF_CALL: usize = 3;

impl<'call> Dispatch<'call> {
    /// Whether a call of this tool may need confirmation.
    pub(super) fn may_ask_first(self) -> bool {
        let roots = &self.admission.deployment().roots;
        self.changes() && roots.iter().any(|grant| grant.confirm.is_some())
    }

    /// Begins a call with whatever the answer that the client brings allows.
    pub(super) async fn begin_confirmed(
        self,
        arguments: JsonObject,
        subject: &CallSubject,
    ) -> Result<BegunCall<'call>, Failure> {
        self.admission.check_client(&self.caller.allowance)?;
        let allowed = if self.may_ask_first() {
            self.brought(&arguments)?
        } else {
            None
        };
        self.begin(arguments, subject, allowed).await
    }

    /// Runs a call. If it has to be confirmed, asks and runs it again, or ends it with the question.
    pub(super) async fn run_asking(
        self,
        begun: BegunCall<'_>,
        arguments: &JsonObject,
        subject: &CallSubject,
    ) -> Result<Ended, Failure> {
        let mut ended = self.run(begun, subject).await;
        for _ in 0..QUESTIONS_OF_CALL {
            let Err(Failure::Operation(ops::Error::Unconfirmed { planned })) = ended else {
                return ended;
            };
            if let Some(question) = self.ask(planned, arguments, subject).await? {
                return Ok(question);
            }
            let begun = self
                .begin(arguments.clone(), subject, Some(planned))
                .await?;
            ended = self.run(begun, subject).await;
        }
        ended
    }

    fn asked_call(self, arguments: &'call JsonObject) -> AskedCall<'call> {
        AskedCall {
            set: self.entry.contract.name(),
            tool: self.entry.tool.definition().name,
            arguments,
            caller: self.caller,
        }
    }

    /// What the client's answer to an earlier question allows.
    fn brought(self, arguments: &JsonObject) -> Result<Option<Planned>, Failure> {
        let Some(answers) = &self.caller.answers else {
            return Ok(None);
        };
        let call = Dispatch { ..self }.asked_call(arguments);
        let brought = self.admission.confirmations().brought(&call, answers);
        brought.map_err(|why| {
            if why == NotConfirmed::Foreign {
                let client = &*self.caller.name;
                tracing::warn!(
                    client,
                    tool = call.tool,
                    "an answer to another question was refused"
                );
            }
            Failure::not_confirmed(Planned::NOTHING, Consent::default(), why)
        })
    }

    /// Asks the person. The call ends with the question, or goes on after a plain yes.
    async fn ask(
        self,
        planned: Planned,
        arguments: &JsonObject,
        subject: &CallSubject,
    ) -> Result<Option<Ended>, Failure> {
        let limits = self.limits(arguments);
        let refused = |why| Failure::not_confirmed(planned, limits, why);
        let call = self.asked_call(arguments);
        let question = call.question(planned, &places(subject));
        let confirmations = self.admission.confirmations();
        match self.caller.client.asking_person() {
            AskBy::Never => Err(refused(NotConfirmed::CannotAsk)),
            AskBy::Result => {
                let result = confirmations.input_required(&call, planned, question);
                let result = result.ok_or_else(|| refused(NotConfirmed::CannotAsk))?;
                Ok(Some(Ended::Question(Box::new(result))))
            }
            AskBy::Request => {
                let slot = confirmations.waiting.try_acquire();
                let _waiting = slot.map_err(|_| refused(NotConfirmed::Busy))?;
                let patience = confirmations.patience();
                let cancel = ops::Cancel::after(patience);
                let mut watch = CallWatch::new(cancel, patience, self.caller, self.admission);
                let answer = watch.wait(self.answer(question)).await;
                let answer = answer.map_err(|failure| match failure {
                    Failure::Operation(ops::Error::Timeout) => refused(NotConfirmed::Late),
                    other => other,
                })?;
                answer.map(|()| None).map_err(refused)
            }
        }
    }

    /// Asks by a request of ours, and waits.
    async fn answer(self, question: serde_json::Value) -> Result<(), NotConfirmed> {
        let asked = self.caller.client.ask(ELICITATION, question).await;
        let mut asked = asked.ok_or(NotConfirmed::Unanswered)?;
        match asked.answer().await {
            Some(Ok(answer)) => judge(&answer),
            Some(Err(_)) | None => Err(NotConfirmed::Unanswered),
        }
    }

    /// What would have passed unasked, for the message of a refusal.
    fn limits(self, arguments: &JsonObject) -> Consent {
        let definition = self.entry.tool.definition();
        let set = self.entry.contract.name();
        let hosts = self.host_directories();
        let grants = self.admission.admit(set, definition, arguments, &hosts);
        grants.map_or(Consent::default(), |grants| {
            confirm::consent(&grants, definition, set)
        })
    }
}

/// The places of a call in the user's terms.
fn places(subject: &CallSubject) -> Vec<String> {
    let shown = subject.places.iter().map(|place| {
        let root = place.root.as_deref().unwrap_or_default();
        let path = place.path.as_deref().unwrap_or_default();
        match (root, path) {
            ("", path) => path.to_owned(),
            (root, "") => root.to_owned(),
            (root, path) => format!("{root}:{path}"),
        }
    });
    shown.filter(|place| !place.is_empty()).collect()
}
