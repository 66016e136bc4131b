//! A client's part of an endpoint that the operator may change. Connections keep this, and each request uses the
//! version in force when it begins.

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use tokio::sync::watch;

use crate::server::Server;

/// A server that can be replaced. Clones are the same one.
#[derive(Clone)]
pub struct LiveServer {
    inner: Arc<LiveServerParts>,
}

struct LiveServerParts {
    current: RwLock<Server>,
    changes: watch::Sender<ChangeCounts>,
}

/// How often each thing changed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct ChangeCounts {
    tools: u64,
    access: u64,
    cuts: u64,
}

/// Whether what a client may reach was changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AccessChange {
    /// The same roots, paths and rights.
    Same,
    /// Something else: the client has to subscribe again to what it watched.
    Changed,
}

impl LiveServer {
    /// Serves `server` until it is replaced.
    #[must_use]
    pub fn new(server: Server) -> LiveServer {
        LiveServer {
            inner: Arc::new(LiveServerParts {
                current: RwLock::new(server),
                changes: watch::Sender::default(),
            }),
        }
    }

    /// The server in force now. A request keeps it to its end.
    #[must_use]
    pub fn now(&self) -> Server {
        let current = self.inner.current.read();
        current.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Puts another server in force; returns whether its list of tools differs. Listeners are told.
    pub fn replace(&self, server: Server, access: AccessChange) -> bool {
        let before = self.now();
        let tools = |server: &Server| server.service().catalogue().listed().to_vec();
        let has_other_tools = tools(&before) != tools(&server);
        *self
            .inner
            .current
            .write()
            .unwrap_or_else(PoisonError::into_inner) = server;
        self.inner.changes.send_modify(|changes| {
            changes.tools += u64::from(has_other_tools);
            changes.access += u64::from(access == AccessChange::Changed);
        });
        has_other_tools
    }

    /// Ends all subscriptions, because a listener may have lost the right to them.
    pub fn cut(&self) {
        self.inner.changes.send_modify(|changes| changes.cuts += 1);
    }

    /// Tells whether both are the same server.
    #[must_use]
    pub fn is_same(&self, other: &LiveServer) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }

    /// Follows changes from now on.
    #[must_use]
    pub fn follow(&self) -> Following {
        let receiver = self.inner.changes.subscribe();
        let seen = *receiver.borrow();
        Following { receiver, seen }
    }
}

impl From<Server> for LiveServer {
    fn from(server: Server) -> LiveServer {
        LiveServer::new(server)
    }
}

impl fmt::Debug for LiveServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LiveServer")
    }
}

/// A receiver of changes.
#[derive(Debug, Clone)]
pub struct Following {
    receiver: watch::Receiver<ChangeCounts>,
    seen: ChangeCounts,
}

/// What changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LiveChange {
    /// The list of tools.
    Tools,
    /// What clients may reach.
    Access,
    /// Listeners have to subscribe again.
    Cut,
}

impl Following {
    /// Waits for the next change; for ever, if nothing can change any more.
    pub async fn next(&mut self) -> LiveChange {
        loop {
            let now = *self.receiver.borrow_and_update();
            if let Some(change) = self.first_unseen(now) {
                return change;
            }
            if self.receiver.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    /// Waits until subscriptions have to be made again.
    pub(crate) async fn access_changed(&mut self) {
        while self.next().await == LiveChange::Tools {}
    }

    /// The list of tools comes first: a client hears of it even if its stream ends.
    fn first_unseen(&mut self, now: ChangeCounts) -> Option<LiveChange> {
        let seen = &mut self.seen;
        if seen.tools != now.tools {
            seen.tools = now.tools;
            return Some(LiveChange::Tools);
        }
        if seen.access != now.access {
            seen.access = now.access;
            return Some(LiveChange::Access);
        }
        (seen.cuts != now.cuts).then(|| {
            seen.cuts = now.cuts;
            LiveChange::Cut
        })
    }
}
