//! What all calls of the set share: the bridge, the questions that wait, and the seal of those that clients carry.

use std::time::Duration;

use guide::{AgentQuestion, FilesystemBridge, Now};
use rmcp::model::RequestStateCodec;
use tokio::sync::{Notify, Semaphore};

/// The most questions that wait for answers at once.
pub(super) const QUESTIONS_MAX: usize = 1024;

/// What the operator decided about the set.
pub struct GuideOptions {
    /// The way to the agent's files.
    pub bridge: FilesystemBridge,
    /// How long the agent may take for an answer.
    pub sampling_timeout: Duration,
    /// What seals the state that clients carry; the same for all replicas, at least 32 bytes.
    pub state_key: Vec<u8>,
}

/// A key that is too short to seal with.
#[derive(Debug, thiserror::Error)]
#[error(
    "the state key needs at least {} bytes",
    RequestStateCodec::MIN_KEY_LENGTH
)]
pub struct BadKey;

/// What all calls of the set share.
#[derive(Debug)]
pub struct GuideState {
    pub(super) bridge: FilesystemBridge,
    pub(super) sampling_timeout: Duration,
    pub(super) seal: RequestStateCodec,
    pub(super) questions: Semaphore,
    arrivals: Notify,
}

impl GuideState {
    /// Checks the key; no question waits yet.
    pub fn new(options: GuideOptions) -> Result<GuideState, BadKey> {
        Ok(GuideState {
            bridge: options.bridge,
            sampling_timeout: options.sampling_timeout,
            seal: RequestStateCodec::try_new(options.state_key).map_err(|_| BadKey)?,
            questions: Semaphore::new(QUESTIONS_MAX),
            arrivals: Notify::new(),
        })
    }

    /// The figures of the cache.
    #[must_use]
    pub fn cache_figures(&self) -> guide::CacheUsage {
        self.bridge.cache().usage(std::time::Instant::now())
    }

    /// Wakes the calls that wait for a hand-over: it may have arrived.
    pub(super) fn announce(&self) {
        self.arrivals.notify_waiters();
    }

    /// Waits until the agent has handed over what a question asks for.
    pub(super) async fn arrival(&self, question: &AgentQuestion, asked_at: f64) {
        loop {
            let mut announced = std::pin::pin!(self.arrivals.notified());
            // Listen first, then look, so that no hand-over is missed in between.
            announced.as_mut().enable();
            if self.bridge.has_arrived(question, asked_at, Now::read()) {
                return;
            }
            announced.await;
        }
    }
}
