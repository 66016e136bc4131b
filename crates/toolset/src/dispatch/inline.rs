//! Tries work on a runtime thread, and finds out how heavy the rest of it is.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::Dispatch;
use crate::admission::crashed;
use crate::call_watch::CallWatch;
use crate::contract::Failure;
use crate::fair_queue::{CallSlot, Turn};
use crate::reply::EncodedReply;
use crate::tool::{Blocking, Call, Weight};

/// What is left of work that could not end inline.
pub(super) struct RestOfWork {
    pub(super) work: Blocking,
    pub(super) weight: Weight,
    /// The slot that it already has.
    pub(super) slot: Option<CallSlot>,
}

impl Dispatch<'_> {
    /// Runs work in a slot for small calls if it need not wait for anything, even if the slot came late: only here does
    /// it turn out whether the work is large.
    pub(super) async fn try_inline(
        self,
        work: Blocking,
        call: &Call,
        turn: &Turn,
        watch: &mut CallWatch<'_>,
    ) -> Result<Result<Result<EncodedReply, Failure>, RestOfWork>, Failure> {
        let weight = work.weight();
        if !self.entry.tool.tries_inline() {
            let slot = None;
            return Ok(Err(RestOfWork { work, weight, slot }));
        }
        let slot = match self.admission.try_enter(turn) {
            Some(slot) => slot,
            None => watch.wait(self.admission.enter(turn, weight)).await??,
        };
        Ok(in_slot(work, call, slot))
    }
}

/// Runs work on this thread if it need not wait for anything: waking two threads would cost more than a small read.
fn in_slot(
    work: Blocking,
    call: &Call,
    slot: CallSlot,
) -> Result<Result<EncodedReply, Failure>, RestOfWork> {
    catch_unwind(AssertUnwindSafe(|| work.try_inline(call)))
        .unwrap_or_else(|panic| Ok(Err(crashed(Some(&*panic)))))
        .map_err(|(work, weight)| RestOfWork {
            work,
            weight,
            // A heavy call cannot keep its slot for small calls.
            slot: (weight == Weight::Small).then_some(slot),
        })
}
