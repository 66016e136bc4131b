//! One attempt at a request: the part that reading a file and listing a directory share.

use std::time::Duration;

use super::{ClientBridge, Freshness, Warning};
use crate::agent::{AgentQuestion, ContentSource, Lack, Resume, StepOutcome};
use crate::cache::{CacheKind, CachedValue, Verdict};
use crate::error::{Error, Result};
use crate::file::ToldBy;
use crate::project_path::ProjectPath;
use crate::time::Now;

/// One attempt at a request for a path: the first, or one after the agent was asked.
#[derive(Clone, Copy)]
pub(super) struct Attempt<'call> {
    pub(super) bridge: &'call ClientBridge,
    pub(super) path: &'call ProjectPath,
    pub(super) resume: Option<Resume>,
    pub(super) now: Now,
}

impl Attempt<'_> {
    /// Looks up an entry that is good enough. The entry may belong to a directory above the path.
    pub(super) fn find(
        &self,
        kind: CacheKind,
        path: &str,
        judge: impl FnOnce(&CachedValue) -> Verdict,
    ) -> Option<CachedValue> {
        let (bridge, now) = (self.bridge, self.now.steady);
        bridge
            .parts
            .cache
            .find(&bridge.owner, kind, path, now, judge)
    }

    /// Counts a miss, once for all attempts at a request.
    pub(super) fn count_miss(&self) {
        if self.resume.is_none() {
            let bridge = self.bridge;
            bridge
                .parts
                .cache
                .count_miss(&bridge.owner, self.now.steady);
        }
    }

    /// Returns what the agent handed over to answer the last question, whether or not it is good enough.
    pub(super) fn handed_over(&self, kind: CacheKind) -> Option<CachedValue> {
        self.handed_over_since(kind, self.resume?.looked_at)
    }

    /// Returns what the agent handed over to answer the first question, if it was asked a second one.
    pub(super) fn handed_over_first(&self, kind: CacheKind) -> Option<CachedValue> {
        let second = self.resume.filter(|resume| resume.lack.is_some())?;
        self.handed_over_since(kind, second.asked_at)
    }

    fn handed_over_since(&self, kind: CacheKind, moment: f64) -> Option<CachedValue> {
        let bridge = self.bridge;
        bridge.handed_over_since(kind, self.path, moment, self.now)
    }

    /// Tells whether something was stored after the first question.
    pub(super) fn is_new(&self, stored_at: f64) -> bool {
        self.resume
            .is_some_and(|resume| stored_at >= resume.asked_at)
    }

    /// Returns where something in the cache came from.
    pub(super) fn source(&self, stored_at: f64, told_by: ToldBy) -> ContentSource {
        match told_by {
            _ if !self.is_new(stored_at) => ContentSource::Cache,
            ToldBy::Answer => ContentSource::Answer,
            ToldBy::Tool => ContentSource::Handover,
        }
    }

    /// Tells whether an entry is new enough for a request.
    pub(super) fn is_fresh(
        &self,
        freshness: Freshness,
        mtime: Option<f64>,
        stored_at: f64,
    ) -> bool {
        let is_due = || self.bridge.is_due(mtime, stored_at, self.now);
        self.is_new(stored_at) || (freshness == Freshness::Cached && !is_due())
    }

    /// Returns the warning for a cached copy that should have been asked for again, if a failure means that there is
    /// nobody to ask. Such a client would otherwise lose what it handed over itself.
    pub(super) fn not_rechecked(&self, error: &Error, stored_at: f64) -> Option<Warning> {
        let is_mute = matches!(error, Error::Unsupported { .. });
        let age = Duration::try_from_secs_f64(self.now.wall - stored_at);
        is_mute.then_some(Warning::NotRechecked {
            age: age.unwrap_or_default(),
        })
    }

    /// Asks a second time, for what a hand-over lacks. There is no third time: an agent that fell short twice will
    /// hardly do better.
    pub(super) fn ask_again<T>(
        &self,
        question: AgentQuestion,
        lack: Lack,
    ) -> Result<StepOutcome<T>> {
        if self.lack().is_some() {
            let path = question.path.to_string();
            return Err(Error::Lacking { path, lack });
        }
        Ok(StepOutcome::Waiting(AgentQuestion {
            lack: Some(lack),
            ..question
        }))
    }

    /// Names what was missing instead of reporting the time-out of the second question, because the first had an
    /// answer.
    pub(super) fn explained(&self, error: Error) -> Error {
        match (error, self.lack()) {
            (Error::Timeout { path, .. }, Some(lack)) => Error::Lacking { path, lack },
            (error, _) => error,
        }
    }

    fn lack(&self) -> Option<Lack> {
        self.resume.and_then(|resume| resume.lack)
    }
}
