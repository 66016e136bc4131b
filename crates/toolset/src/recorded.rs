//! A call that comes to its end also when nobody waits for it any more.

use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

/// A call whose end is seen by somebody, because that is when it is logged and counted. Dropped (its client hung up), the
/// call is told to stop and runs to its end by itself.
pub(crate) struct Recorded<T: Send + 'static> {
    call: Option<Pin<Box<dyn Future<Output = T> + Send>>>,
    hung_up: CancellationToken,
}

impl<T: Send + 'static> Recorded<T> {
    /// Waits for a call that stops where `hung_up` is cancelled.
    pub(crate) fn new(
        call: impl Future<Output = T> + Send + 'static,
        hung_up: CancellationToken,
    ) -> Recorded<T> {
        Recorded {
            call: Some(Box::pin(call)),
            hung_up,
        }
    }
}

impl<T: Send + 'static> Future for Recorded<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        let Some(call) = &mut self.call else {
            return Poll::Pending;
        };
        let outcome = call.as_mut().poll(context);
        if outcome.is_ready() {
            self.call = None;
        }
        outcome
    }
}

impl<T: Send + 'static> Drop for Recorded<T> {
    fn drop(&mut self) {
        let Some(call) = self.call.take() else {
            return;
        };
        self.hung_up.cancel();
        // Without a runtime the process is at its end.
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(async move {
                call.await;
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::sync::oneshot;

    #[tokio::test]
    async fn a_call_that_nobody_waits_for_is_told_and_ends() {
        let hung_up = CancellationToken::new();
        let (told, tells) = oneshot::channel();
        let stop = hung_up.clone();
        let call = async move {
            stop.cancelled().await;
            told.send("ended").expect("somebody listens");
        };
        let mut recorded = Box::pin(Recorded::new(call, hung_up));
        let waited = tokio::time::timeout(std::time::Duration::from_millis(5), &mut recorded);
        assert!(waited.await.is_err());
        drop(recorded);
        assert_eq!(tells.await, Ok("ended"));
    }

    #[tokio::test]
    async fn a_call_that_is_waited_for_is_not_told() {
        let hung_up = CancellationToken::new();
        assert_eq!(Recorded::new(async { 1 }, hung_up.clone()).await, 1);
        assert!(!hung_up.is_cancelled());
    }
}
