//! Sessions of clients up to 2025-11-25: how many there are, and whose each of them is.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use hyper::HeaderMap;
use rmcp::model::{ClientJsonRpcMessage, ClientRequest};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;

use crate::tokens::TokenDigest;

/// The header that names a session.
const SESSION: &str = "mcp-session-id";
/// How many names of ended sessions are kept before they are looked for.
const ENDED_KEPT: usize = 256;

/// The sessions of one endpoint.
pub(super) struct Sessions {
    manager: Arc<LocalSessionManager>,
    most: usize,
    /// Whose token began each session.
    holders: Mutex<HashMap<Arc<str>, TokenDigest>>,
}

impl Sessions {
    pub(super) fn new(most: usize) -> Sessions {
        Sessions {
            manager: Arc::default(),
            most,
            holders: Mutex::default(),
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
        self.count().await >= self.most && begins_session(body)
    }

    /// Remembers who began a session.
    pub(super) async fn begun(&self, reply: &HeaderMap, holder: TokenDigest) {
        let Some(session) = named(reply) else { return };
        let alive = self.manager.sessions.read().await;
        let mut holders = self.holders.lock().unwrap_or_else(PoisonError::into_inner);
        holders.insert(session, holder);
        if holders.len() > alive.len() + ENDED_KEPT {
            holders.retain(|session, _| alive.contains_key(session));
        }
    }

    /// Tells whether a session is another's.
    pub(super) fn is_anothers(&self, session: &str, holder: &TokenDigest) -> bool {
        let holders = self.holders.lock().unwrap_or_else(PoisonError::into_inner);
        holders.get(session).is_some_and(|own| own != holder)
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
