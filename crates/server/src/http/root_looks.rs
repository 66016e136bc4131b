//! Looks at roots on threads that may wait, so that a file server that does not answer holds up nobody.

use std::time::Duration;

use sandbox::Root;
use tokio::time::Instant;
use toolset::{Admission, RootTurns};

/// How long a root may take to answer.
const PATIENCE: Duration = Duration::from_secs(1);

/// What looks at roots. There is never a second look at one that has not come back: each would hold a thread.
#[derive(Default)]
pub(super) struct RootLooks(RootTurns);

/// What a look at a root came to.
#[derive(Debug)]
pub(super) struct RootLook<T> {
    pub(super) name: String,
    /// Whether its directory is there, as far as is known without a look.
    pub(super) is_up: bool,
    /// What was seen; `None` if its directory is gone or did not answer in time.
    pub(super) seen: Option<T>,
}

impl RootLooks {
    /// Looks at all roots that are served now.
    pub(super) async fn at_all<T: Send + 'static>(
        &self,
        admission: &Admission,
        look: fn(&Root) -> T,
    ) -> Vec<RootLook<T>> {
        let until = Instant::now() + PATIENCE;
        let roots = admission.deployment().roots.iter();
        let begun: Vec<_> = roots
            .map(|grant| {
                let begun = grant.root.current().map(|root| {
                    let look = self.0.look(&grant.name, move || look(&root));
                    tokio::spawn(tokio::time::timeout_at(until, look))
                });
                (grant.name.clone(), begun)
            })
            .collect();
        let mut looks = Vec::with_capacity(begun.len());
        for (name, begun) in begun {
            let is_up = begun.is_some();
            let seen = match begun {
                Some(begun) => begun.await.ok().and_then(Result::ok).flatten(),
                None => None,
            };
            looks.push(RootLook { name, is_up, seen });
        }
        looks
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
    use toolset::{Deployment, RootGrant};

    static LOOKS: AtomicUsize = AtomicUsize::new(0);
    static IS_STUCK: AtomicBool = AtomicBool::new(true);
    /// How often a stuck look asks whether it may go on, every five milliseconds.
    const ASKED_MAX: usize = 10_000;

    #[tokio::test]
    async fn a_look_that_does_not_come_back_is_the_only_one() {
        let root = Arc::new(Root::open(&std::env::temp_dir()).expect("a directory"));
        let admission = Admission::new(Deployment {
            roots: vec![RootGrant::new("temp", root)],
            ..Deployment::for_tests()
        });
        let looks = RootLooks::default();
        let seen = looks.at_all(&admission, |_| 7).await;
        assert_eq!(seen[0].seen, Some(7));
        for _ in 0..2 {
            let seen = looks.at_all(&admission, |_| {
                LOOKS.fetch_add(1, Ordering::SeqCst);
                let asked = (0..ASKED_MAX).take_while(|_| IS_STUCK.load(Ordering::SeqCst));
                asked.for_each(|_| std::thread::sleep(Duration::from_millis(5)));
            });
            let seen = seen.await;
            assert!(seen[0].is_up && seen[0].seen.is_none());
        }
        assert_eq!(LOOKS.load(Ordering::SeqCst), 1);
        IS_STUCK.store(false, Ordering::SeqCst);
        let back = looks.at_all(&admission, |_| 8).await;
        assert_eq!(back[0].seen, Some(8));
    }
}
