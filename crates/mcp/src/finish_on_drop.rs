//! Work that runs to its end even if nobody waits for it any more.

use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

/// Work that always reaches its end, because it is logged and counted there. If this is dropped (the client hung up),
/// the work is asked to stop and finishes in its own task.
pub struct FinishOnDrop<T: Send + 'static> {
    work: Option<Pin<Box<dyn Future<Output = T> + Send>>>,
    hung_up: CancellationToken,
}

impl<T: Send + 'static> FinishOnDrop<T> {
    /// Waits for work that stops when `hung_up` is cancelled.
    pub(crate) fn new(
        work: impl Future<Output = T> + Send + 'static,
        hung_up: CancellationToken,
    ) -> FinishOnDrop<T> {
        FinishOnDrop {
            work: Some(Box::pin(work)),
            hung_up,
        }
    }
}

impl<T: Send + 'static> Future for FinishOnDrop<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        let Some(work) = &mut self.work else {
            return Poll::Pending;
        };
        let outcome = work.as_mut().poll(context);
        if outcome.is_ready() {
            self.work = None;
        }
        outcome
    }
}

impl<T: Send + 'static> Drop for FinishOnDrop<T> {
    fn drop(&mut self) {
        let Some(work) = self.work.take() else {
            return;
        };
        self.hung_up.cancel();
        // No runtime: the process is ending.
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(async move {
                work.await;
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::sync::oneshot;

    #[tokio::test]
    async fn a_work_that_nobody_waits_for_is_told_and_ends() {
        let hung_up = CancellationToken::new();
        let (told, tells) = oneshot::channel();
        let stop = hung_up.clone();
        let work = async move {
            stop.cancelled().await;
            told.send("ended").expect("somebody listens");
        };
        let mut finishing = Box::pin(FinishOnDrop::new(work, hung_up));
        let waited = tokio::time::timeout(std::time::Duration::from_millis(5), &mut finishing);
        assert!(waited.await.is_err());
        drop(finishing);
        assert_eq!(tells.await, Ok("ended"));
    }

    #[tokio::test]
    async fn a_work_that_is_waited_for_is_not_told() {
        let hung_up = CancellationToken::new();
        assert_eq!(FinishOnDrop::new(async { 1 }, hung_up.clone()).await, 1);
        assert!(!hung_up.is_cancelled());
    }
}
