//! `/ready`: whether a proxy should send calls here. Not while the process drains, and not while a root does not answer.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use hyper::body::Bytes;
use hyper::header::{HeaderValue, RETRY_AFTER};
use hyper::{Method, StatusCode};
use toolset::Admission;

use super::answers::{HttpReply, text};
use super::refusal::Refusal;
use super::root_looks::RootLooks;
use crate::in_force::InForce;

/// The conditions under which the process is ready.
pub(super) struct Readiness {
    admission: Arc<InForce<Admission>>,
    looks: RootLooks,
    /// The root that was last logged as not answering; `None` once all answer again.
    logged: Mutex<Option<String>>,
    draining: AtomicBool,
}

impl Readiness {
    pub(super) fn new(admission: Arc<InForce<Admission>>) -> Readiness {
        Readiness {
            admission,
            looks: RootLooks::default(),
            logged: Mutex::default(),
            draining: AtomicBool::new(false),
        }
    }

    /// Whether the process has been asked to stop.
    pub(super) fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Relaxed)
    }

    /// Notes that the process has been asked to stop.
    pub(super) fn drain(&self) {
        self.draining.store(true, Ordering::Relaxed);
    }

    /// Answers `/ready`.
    pub(super) async fn answer(&self, method: &Method) -> Result<HttpReply, Refusal> {
        if method != Method::GET && method != Method::HEAD {
            return Err(Refusal::method("GET, HEAD"));
        }
        if self.is_draining() {
            return Ok(later("draining"));
        }
        let admission = self.admission.now();
        let looks = self
            .looks
            .at_all(&admission, |root| root.metadata().is_ok());
        let mut looks = looks.await.into_iter();
        if let Some(silent) = looks.find(|look| look.seen != Some(true)) {
            self.log(Some(silent.name));
            // Security: no token is needed here, so no root is named.
            return Ok(later("a root does not answer"));
        }
        self.log(None);
        Ok(text(StatusCode::OK, "ready"))
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
