//! The timer of one connection, which every request on it uses again.
//!
//! hyper wants a new deadline for the headers of each request. A timer of the runtime for each would be put into the
//! runtime's table and taken out again, though none ever expires on a busy connection. So the connection has one, and it
//! is only moved when it goes off before the deadline of the request that is waited for.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use hyper::rt::Timer;
use tokio::time::Sleep;

/// Makes the deadlines of one connection. Only the connection's task may wait for them.
#[derive(Debug, Clone, Default)]
pub(super) struct ConnectionTimer(Arc<Mutex<Option<Pin<Box<Sleep>>>>>);

/// A moment that is waited for.
struct Deadline {
    timer: ConnectionTimer,
    at: tokio::time::Instant,
}

impl Timer for ConnectionTimer {
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn hyper::rt::Sleep>> {
        self.sleep_until(self.now() + duration)
    }

    fn sleep_until(&self, deadline: Instant) -> Pin<Box<dyn hyper::rt::Sleep>> {
        Box::pin(Deadline {
            timer: self.clone(),
            at: deadline.into(),
        })
    }

    fn now(&self) -> Instant {
        tokio::time::Instant::now().into()
    }
}

impl hyper::rt::Sleep for Deadline {}

impl Future for Deadline {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let mut alarm = self.timer.0.lock().unwrap_or_else(PoisonError::into_inner);
        let alarm = alarm.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(self.at)));
        if alarm.deadline() > self.at {
            alarm.as_mut().reset(self.at);
        }
        loop {
            ready!(alarm.as_mut().poll(context));
            if alarm.deadline() >= self.at {
                return Poll::Ready(());
            }
            alarm.as_mut().reset(self.at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Duration = Duration::from_secs(30);

    #[tokio::test(start_paused = true)]
    async fn each_deadline_is_kept_although_they_share_a_timer() {
        let timer = ConnectionTimer::default();
        let begun = timer.now();
        for waited in 1..4 {
            // Half of the patience passes before the request comes, and its deadline is not needed any more.
            let abandoned = timer.sleep(PATIENCE);
            assert!(tokio::time::timeout(PATIENCE / 2, abandoned).await.is_err());
            timer.sleep(PATIENCE).await;
            assert_eq!(timer.now() - begun, PATIENCE * 3 / 2 * waited);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_earlier_deadline_is_kept_too() {
        let timer = ConnectionTimer::default();
        let begun = timer.now();
        let abandoned = timer.sleep(2 * PATIENCE);
        assert!(tokio::time::timeout(PATIENCE / 2, abandoned).await.is_err());
        timer.sleep(PATIENCE).await;
        assert_eq!(timer.now() - begun, PATIENCE * 3 / 2);
        timer.sleep_until(begun).await;
        assert_eq!(timer.now() - begun, PATIENCE * 3 / 2, "it was over before");
    }
}
