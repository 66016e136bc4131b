//! Whether anybody still waits for what a thread is doing, so that waits deep in a change can end.

use std::cell::RefCell;

type Stop = Box<dyn Fn() -> bool>;

thread_local! {
    static STOP: RefCell<Option<Stop>> = const { RefCell::new(None) };
}

/// Does some work on this thread, whose waits for other processes end once `stop` says so.
pub fn while_wanted<T>(stop: impl Fn() -> bool + 'static, work: impl FnOnce() -> T) -> T {
    let before = STOP.replace(Some(Box::new(stop)));
    let _restored = RestoredStop(Some(before));
    work()
}

/// Tells whether nobody waits any more for what this thread is doing.
pub(crate) fn is_unwanted() -> bool {
    STOP.with_borrow(|stop| stop.as_ref().is_some_and(|stop| stop()))
}

/// Puts back what held before, after a panic too: the thread works for others next.
struct RestoredStop(Option<Option<Stop>>);

impl Drop for RestoredStop {
    fn drop(&mut self) {
        if let Some(before) = self.0.take() {
            STOP.set(before);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_unwanted_only_while_it_is_done() {
        assert!(!is_unwanted());
        while_wanted(
            || true,
            || {
                assert!(is_unwanted());
                while_wanted(|| false, || assert!(!is_unwanted()));
                assert!(is_unwanted());
            },
        );
        assert!(!is_unwanted());
        let panics = || while_wanted(|| true, || panic!("on purpose"));
        assert!(std::panic::catch_unwind(panics).is_err());
        assert!(!is_unwanted());
    }
}
