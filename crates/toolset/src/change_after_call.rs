//! Handles a change that outlives its call: the call's reply says so, and the log tells how the change ended.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Instant;

use crate::audit::{self, CallRecord};
use crate::client::Caller;
use crate::client_stats::ClientStats;
use crate::contract::{CallSubject, Contract, Failure};
use crate::reply::EncodedReply;
use crate::tool::{Blocking, Call};

/// The work of a change, as seen from its call and from the thread that makes it.
pub(crate) struct LateEnd {
    progress: AtomicU8,
    contract: &'static dyn Contract,
    subject: CallSubject,
    caller: Caller,
    notes: ops::ChangeNotes,
    start: Instant,
}

const WAITS: u8 = 0;
const RUNS: u8 = 1;
const HAS_ENDED: u8 = 2;
const WAS_LEFT: u8 = 3;

impl LateEnd {
    pub(crate) fn new(
        contract: &'static dyn Contract,
        subject: &CallSubject,
        caller: &Caller,
        notes: &ops::ChangeNotes,
    ) -> Arc<LateEnd> {
        Arc::new(LateEnd {
            progress: AtomicU8::new(WAITS),
            contract,
            subject: subject.clone(),
            // Only what the log needs: the call's memory is released when the call ends.
            caller: Caller {
                name: Arc::clone(&caller.name),
                allowance: Arc::clone(&caller.allowance),
                request_size: caller.request_size,
                trace: caller.trace.clone(),
                ..Caller::default()
            },
            notes: notes.clone(),
            start: Instant::now(),
        })
    }

    /// Records that the work begins.
    pub(crate) fn begin(&self) {
        self.progress.store(RUNS, Ordering::Relaxed);
    }

    /// Records that the work has ended, and logs its outcome if the call did not wait for it.
    pub(crate) fn end(&self, reply: &Result<EncodedReply, Failure>) {
        if self.progress.swap(HAS_ENDED, Ordering::Relaxed) != WAS_LEFT {
            return;
        }
        let record = CallRecord {
            toolset: self.contract.name(),
            subject: &self.subject,
            caller: &self.caller,
            change: audit::change_of(&self.notes),
            stats: ClientStats::default(),
            duration: self.start.elapsed(),
            response_size: 0,
            observation: None,
        };
        match reply {
            Ok(_) => record.ended_late("ok", None),
            Err(failure) => {
                let worded = self.contract.word(failure, &self.subject);
                record.ended_late("error", Some(worded.code));
            }
        }
    }

    /// Records that the call no longer waits. Returns whether the work may still have an effect.
    pub(crate) fn leave(&self) -> bool {
        self.progress.swap(WAS_LEFT, Ordering::Relaxed) != WAITS
    }
}

/// Wraps the work of a call so that the beginning and end of a change are recorded.
pub(crate) fn observed(
    work: Blocking,
    late_end: Option<Arc<LateEnd>>,
) -> impl FnOnce(&Call) -> Result<EncodedReply, Failure> + Send + 'static {
    move |call| {
        if let Some(late_end) = &late_end {
            late_end.begin();
        }
        let cancel = &call.context.cancel;
        let reply = cancel.heeded_by(|| work.run(call));
        let reply = reply.map_err(|failure| match failure {
            // What waits deep in a change knows only that it has to stop.
            Failure::Operation(ops::Error::Cancelled) => {
                let reason = cancel.check().err();
                Failure::Operation(reason.unwrap_or(ops::Error::Cancelled))
            }
            failure => failure,
        });
        if let Some(late_end) = late_end {
            late_end.end(&reply);
        }
        reply
    }
}
