//! How a call ends: its outcome in the set's words, its message, and the record of it.

use std::time::Instant;

use super::Dispatch;
use super::encoding::{Encoded, Encoder};
use crate::audit::{self, CallRecord};
use crate::client_stats::ClientStats;
use crate::contract::{CallSubject, Failure, FailureText, Worded};
use crate::deployment::{Recorded, ReplyHalves};
use crate::metrics::OK;
use crate::observer::{Observation, ObservedCall};
use crate::reply::{CallOutcome, EncodedReply, MethodFailure, RefusalKind, ToolResult};
use crate::tool::{Ended, ReplyForm};

/// What is reported about a call when it has ended.
pub(super) struct EndingCall<'call> {
    pub(super) subject: &'call CallSubject,
    pub(super) start: Instant,
    pub(super) observation: Option<Observation>,
    /// What the call learns about its change, if it makes one.
    pub(super) notes: Option<ops::ChangeNotes>,
}

impl Dispatch<'_> {
    /// Tells the operator's observer that a call begins.
    pub(super) fn observe(self, subject: &CallSubject) -> Option<Observation> {
        let observer = self.admission.deployment().observer.as_ref()?;
        let place = subject.places.first();
        let call = ObservedCall {
            toolset: self.entry.contract.name(),
            tool: subject.tool,
            root: place.and_then(|place| place.root.as_deref()),
            path: place.and_then(|place| place.path.as_deref()),
            client: &self.caller.name,
            allowance: &self.caller.allowance,
        };
        Some(Observation::new(observer, &call))
    }

    /// Ends a call that has run.
    pub(super) async fn ended(
        self,
        told: EndingCall<'_>,
        ended: Result<Ended, Failure>,
        encoder: &dyn Encoder,
    ) -> Encoded {
        match ended {
            Ok(Ended::Question(question)) => {
                let encoded = Encoded::here(CallOutcome::Question(question), encoder);
                self.record(told, encoded.size()).success();
                encoded
            }
            Ok(Ended::Reply(reply)) if self.fits(&reply) => {
                let is_error = false;
                let outcome = CallOutcome::Result(ToolResult { reply, is_error });
                match Encoded::new(outcome, encoder, &self.caller.allowance).await {
                    Ok(encoded) => self.succeeded(told, encoded),
                    Err(failure) => self.fail(told, &failure, true, encoder),
                }
            }
            Ok(Ended::Reply(reply)) => {
                let bytes = reply.bytes() as u64;
                // Nothing was changed, so the client may call again.
                let failure = ops::Error::NoRoom { bytes }.into();
                self.fail(told, &failure, true, encoder)
            }
            Err(failure) => {
                let failure = self.admission.if_root_is_gone(failure, told.subject).await;
                self.fail(told, &failure, true, encoder)
            }
        }
    }

    /// Whether there is room for a reply. A change that was made is always answered.
    fn fits(self, reply: &EncodedReply) -> bool {
        let room = self.caller.room.as_ref();
        self.changes() || room.is_none_or(|room| room.try_fit(reply.bytes() as u64).is_ok())
    }

    fn succeeded(self, told: EndingCall<'_>, encoded: Encoded) -> Encoded {
        let size = encoded.size();
        let record = self.record(told, size);
        self.entry.counters.add(OK, record.duration, size);
        record.success();
        encoded
    }

    /// Ends a call that has not begun. If the audit queue has no room, it is only counted: a client that is refused
    /// again and again must not use up memory.
    pub(super) fn refused(
        self,
        told: EndingCall<'_>,
        failure: &Failure,
        encoder: &dyn Encoder,
    ) -> Encoded {
        let recorder = self.admission.deployment().recorder.as_ref();
        let full = recorder.filter(|recorder| !recorder.has_room(Recorded::Read));
        if let Some(recorder) = full {
            recorder.count_unrecorded();
        }
        self.fail(told, failure, full.is_none(), encoder)
    }

    fn fail(
        self,
        told: EndingCall<'_>,
        failure: &Failure,
        is_recorded: bool,
        encoder: &dyn Encoder,
    ) -> Encoded {
        let contract = self.entry.contract;
        let subject = told.subject;
        let worded = contract.word(failure, subject).readable(failure, subject);
        let encoded = Encoded::here(self.failed_outcome(failure, &worded), encoder);
        let size = encoded.size();
        let mut record = self.record(told, size);
        if audit::violation(failure).is_some() {
            record.stats = self.admission.violated(&self.caller.account);
        }
        self.entry.counters.add(worded.code, record.duration, size);
        if is_recorded {
            record.failure(failure, &worded);
        } else {
            record.unrecorded(failure, &worded);
        }
        encoded
    }

    /// A tool's failure is a result; that of another method is an error of the protocol.
    fn failed_outcome(self, failure: &Failure, worded: &Worded) -> CallOutcome {
        if self.entry.tool.definition().method_of.is_some() {
            return CallOutcome::Refused(MethodFailure {
                kind: RefusalKind::of(failure),
                code: worded.code,
                message: worded.message.clone(),
            });
        }
        let text = self.entry.contract.failure_text();
        let structured = self.halves().structured() && text != FailureText::Alone;
        CallOutcome::Result(ToolResult {
            reply: EncodedReply::of_failure(worded, text, structured),
            is_error: true,
        })
    }

    /// The halves of a reply that this client gets.
    pub(super) fn halves(self) -> ReplyHalves {
        if self.entry.tool.definition().method_of.is_some() {
            return ReplyHalves::Structured;
        }
        if let ReplyForm::Given(halves) = self.entry.tool.definition().form {
            return halves;
        }
        let policy = self.admission.deployment().replies;
        policy.halves(self.caller.program.as_deref())
    }

    fn record<'record>(
        &'record self,
        told: EndingCall<'record>,
        response_size: usize,
    ) -> CallRecord<'record> {
        CallRecord {
            stats: ClientStats::default(),
            toolset: self.entry.contract.name(),
            subject: told.subject,
            caller: self.caller,
            change: told.notes.as_ref().and_then(audit::change_of),
            duration: told.start.elapsed(),
            response_size,
            observation: told.observation,
        }
    }
}
