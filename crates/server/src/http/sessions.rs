//! Sessions of clients up to 2025-11-25: how many there are, and whose each of them is.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use hyper::HeaderMap;
use rmcp::model::{ClientJsonRpcMessage, ClientRequest};
use rmcp::transport::streamable_http_server::session::SessionManager;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;

use crate::tokens::{Holder, TokenDigest};

/// The header that names a session.
const SESSION: &str = "mcp-session-id";
/// How many names of ended sessions are kept before they are looked for.
const ENDED_KEPT: usize = 256;
/// How long a session may go unused after it was begun; whoever wants one goes on at once.
const USED_WITHIN: Duration = Duration::from_secs(20);

/// The sessions of one endpoint.
pub(super) struct Sessions {
    manager: Arc<LocalSessionManager>,
    most: usize,
    begun: Mutex<HashMap<Arc<str>, Begun>>,
}

/// What is known of a session besides what rmcp knows.
struct Begun {
    /// Whose token began it.
    holder: Option<TokenDigest>,
    /// Since when it waits for its first request; none once that came.
    unused_since: Option<Instant>,
}

impl Sessions {
    pub(super) fn new(most: usize) -> Sessions {
        Sessions {
            manager: Arc::default(),
            most,
            begun: Mutex::default(),
        }
    }

    pub(super) fn manager(&self) -> Arc<LocalSessionManager> {
        Arc::clone(&self.manager)
    }

    pub(super) async fn count(&self) -> usize {
        self.manager.sessions.read().await.len()
    }

    /// Tells whether a message would begin a session for which there is no room.
    pub(super) async fn is_full_for(&self, body: &[u8]) -> bool {
        if self.count().await < self.most || !begins_session(body) {
            return false;
        }
        self.end_unused().await;
        self.count().await >= self.most
    }

    /// Remembers who began a session, and ends those that were begun and never used.
    pub(super) async fn begun(&self, reply: &HeaderMap, holder: Option<TokenDigest>) {
        let Some(session) = named(reply) else { return };
        self.note(session, holder, Instant::now()).await;
        self.end_unused().await;
    }

    async fn end_unused(&self) {
        for unused in self.overdue(Instant::now()) {
            // It may have ended by itself.
            let _ = self.manager.close_session(&unused).await;
        }
    }

    /// Adds a session.
    async fn note(&self, session: Arc<str>, holder: Option<TokenDigest>, now: Instant) {
        let alive = self.manager.sessions.read().await;
        let mut begun = self.begun.lock().unwrap_or_else(PoisonError::into_inner);
        let unused_since = Some(now);
        begun.insert(
            session,
            Begun {
                holder,
                unused_since,
            },
        );
        if begun.len() > alive.len() + ENDED_KEPT {
            begun.retain(|session, _| alive.contains_key(session));
        }
    }

    /// Those whose time to be used is over, once.
    fn overdue(&self, now: Instant) -> Vec<Arc<str>> {
        let mut begun = self.begun.lock().unwrap_or_else(PoisonError::into_inner);
        let is_over = |own: &mut Begun| {
            let since = own.unused_since.take_if(|since| now - *since > USED_WITHIN);
            since.is_some()
        };
        let over = begun
            .iter_mut()
            .filter_map(|(name, own)| is_over(own).then(|| Arc::clone(name)));
        over.collect()
    }

    /// Takes note that a session is used; tells whether it is its user's own, as far as that is known.
    pub(super) fn is_used_by_its_own(&self, session: &str, holder: Option<&Holder>) -> bool {
        let mut begun = self.begun.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(own) = begun.get_mut(session) else {
            return true;
        };
        let is_own = own.holder == holder.map(|holder| holder.digest);
        if is_own {
            own.unused_since = None;
        }
        is_own
    }
}

/// The session that headers name.
pub(super) fn named(headers: &HeaderMap) -> Option<Arc<str>> {
    let name = headers.get(SESSION)?.to_str().ok()?;
    Some(name.into())
}

fn begins_session(body: &[u8]) -> bool {
    match serde_json::from_slice(body) {
        Ok(ClientJsonRpcMessage::Request(request)) => {
            matches!(request.request, ClientRequest::InitializeRequest(_))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_session_that_is_not_used_is_over_and_a_used_one_is_not() {
        let sessions = Sessions::new(10);
        let now = Instant::now();
        sessions.note("used".into(), None, now).await;
        sessions.note("idle".into(), None, now).await;
        assert!(sessions.is_used_by_its_own("used", None));
        assert!(sessions.overdue(now).is_empty());
        let later = now + USED_WITHIN + Duration::from_secs(1);
        assert_eq!(sessions.overdue(later), ["idle".into()]);
        assert!(sessions.overdue(later).is_empty());
    }

    #[tokio::test]
    async fn a_session_is_its_holders_alone() {
        let sessions = Sessions::new(10);
        let holder = |digest| Holder { number: 1, digest };
        sessions
            .note("one".into(), Some([1; 32]), Instant::now())
            .await;
        assert!(sessions.is_used_by_its_own("one", Some(&holder([1; 32]))));
        assert!(!sessions.is_used_by_its_own("one", Some(&holder([2; 32]))));
        assert!(!sessions.is_used_by_its_own("one", None));
    }
}
