//! Waits for a call's work: until it ends, its deadline passes, its client gives up, or the process has to end.

use std::time::Duration;

use ops::Cancel;
use tokio::time::{Instant, Interval, MissedTickBehavior, sleep_until};

use crate::admission::Admission;
use crate::client::Caller;
use crate::contract::Failure;

/// How long after its deadline an operation may take to notice before the reply is sent without it.
pub(crate) const OVERDUE: Duration = Duration::from_secs(1);
/// How long an operation may take to notice that it was cancelled.
const STOPPING: Duration = Duration::from_millis(100);
/// The longest that a call can take: for ever, as far as anybody waits.
const LONGEST: Duration = Duration::from_secs(366 * 24 * 3600);
/// How often a client that asked for progress is told of it.
const PROGRESS_EVERY: Duration = Duration::from_millis(250);

/// Waits for the work of one call. Dropping it cancels work that has not ended.
pub(crate) struct CallWatch<'call> {
    cancel: Cancel,
    caller: &'call Caller,
    admission: &'call Admission,
    /// When the reply must not wait any longer.
    deadline: Instant,
    ticks: Option<Interval>,
    told: u64,
}

impl<'call> CallWatch<'call> {
    /// Starts the clock of a call that may take `timeout`.
    pub(crate) fn new(
        cancel: Cancel,
        timeout: Duration,
        caller: &'call Caller,
        admission: &'call Admission,
    ) -> CallWatch<'call> {
        CallWatch {
            cancel,
            caller,
            admission,
            deadline: Instant::now() + timeout.saturating_add(OVERDUE).min(LONGEST),
            ticks: caller.client.wants_progress().then(progress_ticks),
            told: 0,
        }
    }

    /// Waits for one step of the work. Fails if the reply must be sent without waiting for the step to end.
    pub(crate) async fn wait<T>(&mut self, work: impl Future<Output = T>) -> Result<T, Failure> {
        let mut work = std::pin::pin!(work);
        // Made here and not before: most calls never wait, and need no timer.
        let mut deadline = std::pin::pin!(sleep_until(self.deadline));
        loop {
            tokio::select! {
                biased;
                output = &mut work => return Ok(output),
                () = given_up(self.caller, self.admission), if !self.cancel.is_cancelled() => {
                    self.cancel.cancel();
                    self.deadline = Instant::now() + STOPPING;
                    deadline.as_mut().reset(self.deadline);
                }
                () = &mut deadline => return Err(self.exhausted()),
                () = tick(self.ticks.as_mut()) => self.tell_progress(),
            }
        }
    }

    fn exhausted(&self) -> Failure {
        let cancelled = self.cancel.is_cancelled();
        Failure::Operation(if cancelled {
            ops::Error::Cancelled
        } else {
            ops::Error::Timeout
        })
    }

    /// Sends progress to the client if there is any.
    fn tell_progress(&mut self) {
        let done = self.cancel.done();
        if done > self.told && !self.cancel.is_cancelled() {
            self.told = done;
            self.caller.client.tell_progress(done);
        }
    }
}

impl Drop for CallWatch<'_> {
    fn drop(&mut self) {
        // This has no effect on work that has ended.
        self.cancel.cancel();
    }
}

/// Waits until the client gives up or the process has to end.
async fn given_up(caller: &Caller, admission: &Admission) {
    tokio::select! {
        () = caller.client.gone().cancelled() => {}
        () = admission.cut() => {}
    }
}

fn progress_ticks() -> Interval {
    let mut ticks = tokio::time::interval_at(Instant::now() + PROGRESS_EVERY, PROGRESS_EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}

async fn tick(ticks: Option<&mut Interval>) {
    match ticks {
        Some(ticks) => {
            ticks.tick().await;
        }
        None => std::future::pending().await,
    }
}
