//! `/ready`: whether a proxy should send calls here. Not while the process drains, and not while a root does not answer.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hyper::body::Bytes;
use hyper::header::{HeaderValue, RETRY_AFTER};
use hyper::{Method, StatusCode};
use sandbox::LiveRoot;
use tokio_util::sync::CancellationToken;
use toolset::Admission;

use super::answers::{HttpReply, method_not_allowed, text};
use crate::in_force::InForce;

/// How long a root may take to answer.
const PATIENCE: Duration = Duration::from_secs(1);

/// The conditions under which the process is ready.
pub(super) struct Readiness {
    admission: Arc<InForce<Admission>>,
    /// The checks that have not returned, by the name of the root.
    asked: Mutex<HashMap<String, Arc<AtomicBool>>>,
    /// The root that was last logged as not answering; `None` once all answer again.
    logged: Mutex<Option<String>>,
    draining: CancellationToken,
}

struct Probe {
    name: String,
    root: Arc<LiveRoot>,
    /// A check that has not returned. There is never a second one, because each holds a thread.
    is_asked: Arc<AtomicBool>,
}

impl Readiness {
    pub(super) fn new(
        admission: Arc<InForce<Admission>>,
        draining: CancellationToken,
    ) -> Readiness {
        Readiness {
            admission,
            asked: Mutex::default(),
            logged: Mutex::default(),
            draining,
        }
    }

    /// The roots that are served now.
    fn probes(&self) -> Vec<Probe> {
        let admission = self.admission.now();
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        let roots = admission.deployment().roots.iter();
        let probes: Vec<Probe> = roots
            .map(|grant| Probe {
                name: grant.name.clone(),
                root: Arc::clone(&grant.root),
                is_asked: Arc::clone(asked.entry(grant.name.clone()).or_default()),
            })
            .collect();
        asked.retain(|name, _| probes.iter().any(|probe| probe.name == *name));
        probes
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
            return later("draining");
        }
        for probe in self.probes() {
            if !probe.answers().await {
                self.log(Some(probe.name));
                // Security: no token is needed here, so no root is named.
                return later("a root does not answer");
            }
        }
        self.log(None);
        text(StatusCode::OK, "ready")
    }

    /// Logs which root does not answer: once, no matter how many requests ask.
    fn log(&self, silent: Option<String>) {
        let mut logged = self.logged.lock().unwrap_or_else(PoisonError::into_inner);
        if *logged == silent {
            return;
        }
        match &silent {
            Some(root) => tracing::warn!(root, "a root does not answer: the server is not ready"),
            None => tracing::info!("all roots answer again: the server is ready"),
        }
        *logged = silent;
    }
}

/// Says that the process is not ready, and when to ask again.
fn later(message: impl Into<Bytes>) -> HttpReply {
    let mut reply = text(StatusCode::SERVICE_UNAVAILABLE, message);
    let soon = HeaderValue::from_static("1");
    reply.headers_mut().insert(RETRY_AFTER, soon);
    reply
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
