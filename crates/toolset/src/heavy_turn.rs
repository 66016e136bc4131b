//! The server's own work that grows with a message runs here: on the threads for heavy work, in its client's turn. On
//! the runtime's threads it would delay everybody's small calls.

use std::sync::Arc;

use ops::Cancel;
use tokio::sync::oneshot;

/// The largest message that is read or made on the runtime's threads, in bytes.
pub const SMALL_MESSAGE: usize = 64 * 1024;

/// Does a client's work in its turn; `None` if the work panicked.
pub async fn in_heavy_turn<T: Send + 'static>(
    client: &Arc<str>,
    work: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    let cancel = Cancel::never().of_client(Arc::clone(client));
    in_heavy_turn_of(&cancel, work).await
}

/// Does work in the turn of this call; `None` if the work panicked.
pub(crate) async fn in_heavy_turn_of<T: Send + 'static>(
    cancel: &Cancel,
    work: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    let (told, done) = oneshot::channel();
    let work = Box::new(move || {
        // The receiver is gone if the call was given up.
        let _ = told.send(work());
    });
    if let Err(work) = ops::run_heavy(cancel, work) {
        // No thread could be started: fall back to the runtime's blocking pool.
        tokio::task::spawn_blocking(work);
    }
    done.await.ok()
}
