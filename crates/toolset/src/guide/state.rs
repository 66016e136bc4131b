//! State shared by all calls of the set: the bridge, the pending questions, and the seal of those that clients carry.

use std::time::Duration;

use guide::{AgentQuestion, ClientBridge, FilesystemBridge, Now};
use rmcp::model::RequestStateCodec;
use tokio::sync::Notify;

use super::owner::{CacheSharing, owner, sealed_name};
use super::questions::PendingQuestions;
use crate::client::Caller;

/// What the operator decided about the set.
pub struct GuideOptions {
    /// The way to the agents' files.
    pub bridge: FilesystemBridge,
    /// Who sees what an agent handed over.
    pub sharing: CacheSharing,
    /// How long the agent may take for an answer.
    pub sampling_timeout: Duration,
    /// What seals the state that clients carry; the same for all replicas, at least 32 bytes.
    pub state_key: Vec<u8>,
}

/// The key is too short to seal with.
#[derive(Debug, thiserror::Error)]
#[error(
    "the state key needs at least {} bytes",
    RequestStateCodec::MIN_KEY_LENGTH
)]
pub struct BadKey;

/// What all calls of the set share.
#[derive(Debug)]
pub struct GuideState {
    bridge: FilesystemBridge,
    sharing: CacheSharing,
    pub(super) sampling_timeout: Duration,
    pub(super) seal: RequestStateCodec,
    pub(super) questions: PendingQuestions,
    arrivals: Notify,
}

impl GuideState {
    /// Checks the key; no question waits yet.
    pub fn new(options: GuideOptions) -> Result<GuideState, BadKey> {
        Ok(GuideState {
            bridge: options.bridge,
            sharing: options.sharing,
            sampling_timeout: options.sampling_timeout,
            seal: RequestStateCodec::try_new(options.state_key).map_err(|_| BadKey)?,
            questions: PendingQuestions::default(),
            arrivals: Notify::new(),
        })
    }

    /// Returns the way to the files that a call may see.
    pub(super) fn bridge_of(&self, caller: &Caller) -> ClientBridge {
        self.bridge.of(owner(caller, self.sharing))
    }

    /// Returns the name that a sealed state of a call is bound to.
    pub(super) fn sealed_name(&self, caller: &Caller) -> String {
        sealed_name(caller, self.sharing)
    }

    /// Tells whether all clients see the same files.
    pub(super) fn is_shared(&self) -> bool {
        self.sharing == CacheSharing::Shared
    }

    /// Returns the figures of the cache for all clients together.
    #[must_use]
    pub fn cache_figures(&self) -> guide::CacheUsage {
        self.bridge.cache_usage(std::time::Instant::now())
    }

    /// Wakes the calls that wait for a hand-over: it may have arrived.
    pub(super) fn announce(&self) {
        self.arrivals.notify_waiters();
    }

    /// Waits until the agent has handed over what a question asks for.
    pub(super) async fn arrival(
        &self,
        bridge: &ClientBridge,
        question: &AgentQuestion,
        asked_at: f64,
    ) {
        loop {
            let mut announced = std::pin::pin!(self.arrivals.notified());
            // Subscribe first, then check, so that no hand-over in between is missed.
            announced.as_mut().enable();
            if bridge.has_arrived(question, asked_at, Now::read()) {
                return;
            }
            announced.await;
        }
    }
}
