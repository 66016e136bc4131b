//! Looks at roots outside of calls, one at a time in each root: a file server that does not answer holds one thread, however
//! many ask for it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Mutex as AsyncMutex;

/// Whose turn it is to look at a root, by the root's name.
#[derive(Debug, Default)]
pub struct RootTurns(Mutex<HashMap<String, Arc<AsyncMutex<()>>>>);

impl RootTurns {
    /// Looks at a root on a thread that may block, once the look before has come back; `None` if it panicked.
    ///
    /// Dropping the future gives up waiting. A look that has begun keeps its turn until it comes back.
    pub fn look<T, L>(
        &self,
        root: &str,
        look: L,
    ) -> impl Future<Output = Option<T>> + Send + use<T, L>
    where
        T: Send + 'static,
        L: FnOnce() -> T + Send + 'static,
    {
        let turn = self.turn(root);
        async move {
            let turn = turn.lock_owned().await;
            let looking = tokio::task::spawn_blocking(move || {
                let seen = look();
                drop(turn);
                seen
            });
            looking.await.ok()
        }
    }

    fn turn(&self, root: &str) -> Arc<AsyncMutex<()>> {
        let mut turns = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(turn) = turns.get(root) {
            return Arc::clone(turn);
        }
        // One for each name that the operator ever gave to a root.
        Arc::clone(turns.entry(root.to_owned()).or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::mpsc::channel;
    use std::time::Duration;

    #[tokio::test]
    async fn a_look_that_does_not_come_back_holds_one_thread_and_no_other_root() {
        let turns = RootTurns::default();
        let looks = Arc::new(AtomicUsize::new(0));
        let (go_on, waits) = channel::<()>();
        let (begun, has_begun) = tokio::sync::oneshot::channel();
        let stuck = tokio::spawn(turns.look("dead", move || {
            let _ = begun.send(());
            let _ = waits.recv();
        }));
        has_begun.await.unwrap();
        for _ in 0..20 {
            let counted = Arc::clone(&looks);
            let look = turns.look("dead", move || counted.fetch_add(1, Ordering::SeqCst));
            let waited = tokio::time::timeout(Duration::from_millis(1), look);
            assert!(waited.await.is_err(), "its turn does not come");
        }
        assert_eq!(turns.look("alive", || 7).await, Some(7));
        drop(go_on);
        stuck.await.unwrap();
        assert_eq!(turns.look("dead", || 8).await, Some(8));
        assert_eq!(
            looks.load(Ordering::SeqCst),
            0,
            "those who gave up never looked"
        );
    }
}
