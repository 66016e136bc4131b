//! `/ready`: whether a proxy should send calls here. Not while the process drains, and not while a root does not answer.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hyper::{Method, StatusCode};
use sandbox::LiveRoot;
use tokio_util::sync::CancellationToken;
use toolset::Deployment;

use super::answers::{HttpReply, method_not_allowed, text};

/// How long a root may take to answer.
const PATIENCE: Duration = Duration::from_secs(1);

/// What has to be true of a process that is ready.
pub(super) struct Readiness {
    roots: Vec<Probe>,
    draining: CancellationToken,
}

struct Probe {
    name: String,
    root: Arc<LiveRoot>,
    /// A look that has not come back. There is never a second one: each would hold a thread.
    is_asked: Arc<AtomicBool>,
}

impl Readiness {
    pub(super) fn new(deployment: &Deployment, draining: CancellationToken) -> Readiness {
        let roots = deployment.roots.iter().map(|grant| Probe {
            name: grant.name.clone(),
            root: Arc::clone(&grant.root),
            is_asked: Arc::default(),
        });
        Readiness {
            roots: roots.collect(),
            draining,
        }
    }

    /// Whether the process has been asked to stop.
    pub(super) fn is_draining(&self) -> bool {
        self.draining.is_cancelled()
    }

    /// Answers `/ready`.
    pub(super) async fn answer(&self, method: &Method) -> HttpReply {
        if method != Method::GET && method != Method::HEAD {
            return method_not_allowed("GET, HEAD");
        }
        if self.is_draining() {
            return text(StatusCode::SERVICE_UNAVAILABLE, "draining");
        }
        for probe in &self.roots {
            if !probe.answers().await {
                let message = format!("root {} does not answer", probe.name);
                return text(StatusCode::SERVICE_UNAVAILABLE, message);
            }
        }
        text(StatusCode::OK, "ready")
    }
}

impl Probe {
    async fn answers(&self) -> bool {
        let Some(root) = self.root.current() else {
            return false;
        };
        if self.is_asked.swap(true, Ordering::AcqRel) {
            return false;
        }
        let is_asked = Arc::clone(&self.is_asked);
        let look = tokio::task::spawn_blocking(move || {
            let found = root.metadata().is_ok();
            is_asked.store(false, Ordering::Release);
            found
        });
        let found = tokio::time::timeout(PATIENCE, look).await;
        matches!(found, Ok(Ok(true)))
    }
}
