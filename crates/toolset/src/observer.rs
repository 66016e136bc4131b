//! Lets the operator watch running calls, and do one thing about them: keep a client out.
//!
//! Without an observer, calls do not pay for any of this.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Watches the calls of every endpoint. Its methods are called on the road of a call, so they must not block.
pub trait CallObserver: fmt::Debug + Send + Sync {
    /// Tells whether the operator keeps a client out for now.
    fn is_suspended(&self, client: &str) -> bool;

    /// Called when a call begins; returns a number for it.
    fn began(&self, call: &ObservedCall<'_>) -> u64;

    /// Called when a call has ended.
    fn ended(&self, call: u64, end: &ObservedEnd<'_>);
}

/// A call as it begins, with what its client said before anything was checked.
#[derive(Debug, Clone, Copy)]
pub struct ObservedCall<'call> {
    /// The tool set.
    pub toolset: &'static str,
    /// The tool.
    pub tool: &'static str,
    /// The root, if it names one.
    pub root: Option<&'call str>,
    /// The path, if it names one.
    pub path: Option<&'call str>,
    /// What the log calls the client.
    pub client: &'call str,
    /// The account whose turns and call rate it uses; this is what can be suspended.
    pub allowance: &'call str,
}

/// How a call ended.
#[derive(Debug, Clone, Copy)]
pub struct ObservedEnd<'call> {
    /// `ok`, or the code of the failure.
    pub outcome: &'call str,
    /// Why it failed, as the log has it.
    pub reason: Option<&'call str>,
    /// Whether it tried something forbidden.
    pub is_violation: bool,
    /// How long it took.
    pub duration: Duration,
    /// The bytes of its reply.
    pub bytes: usize,
}

/// A call that is being watched. Dropped without an outcome, it counts as cancelled.
pub(crate) struct Observation {
    observer: Arc<dyn CallObserver>,
    call: u64,
    is_told: bool,
}

impl Observation {
    pub(crate) fn new(observer: &Arc<dyn CallObserver>, call: &ObservedCall<'_>) -> Observation {
        Observation {
            call: observer.began(call),
            observer: Arc::clone(observer),
            is_told: false,
        }
    }

    pub(crate) fn end(mut self, end: &ObservedEnd<'_>) {
        self.is_told = true;
        self.observer.ended(self.call, end);
    }
}

impl Drop for Observation {
    fn drop(&mut self) {
        if !self.is_told {
            let end = ObservedEnd {
                outcome: "cancelled",
                reason: None,
                is_violation: false,
                duration: Duration::ZERO,
                bytes: 0,
            };
            self.observer.ended(self.call, &end);
        }
    }
}
