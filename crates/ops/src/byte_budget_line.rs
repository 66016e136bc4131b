//! Who waits for room in the budget of bytes, in the order they came.
//!
//! Room that is freed wakes those who can have it, one of each client. If it woke everybody, hundreds of threads would run to
//! find that one of them was served, and keep other clients' small calls from the processor meanwhile.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::Waker;
use std::thread::Thread;

/// A caller that waits for room.
#[derive(Debug)]
pub(crate) struct Waiter {
    /// Tells it from all others.
    pub(crate) number: u64,
    pub(crate) client: Arc<str>,
    /// What it holds, and what it wants in its place.
    pub(crate) old: u64,
    pub(crate) new: u64,
    pub(crate) wakes: Wakes,
}

/// How such a caller is woken.
#[derive(Debug)]
pub(crate) enum Wakes {
    Thread(Thread),
    Task(Waker),
}

impl Wakes {
    fn wake(&self) {
        match self {
            Wakes::Thread(thread) => thread.unpark(),
            Wakes::Task(task) => task.wake_by_ref(),
        }
    }
}

/// All who wait.
#[derive(Debug, Default)]
pub(crate) struct WaitingLine {
    line: VecDeque<Waiter>,
    next: u64,
}

impl WaitingLine {
    /// A number for one who may have to wait.
    pub(crate) fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// Puts somebody at the end, or keeps its place.
    pub(crate) fn wait(&mut self, waiting: Waiter) {
        let own = self
            .line
            .iter_mut()
            .find(|own| own.number == waiting.number);
        match own {
            Some(own) => own.wakes = waiting.wakes,
            None => self.line.push_back(waiting),
        }
    }

    /// Takes somebody out.
    pub(crate) fn leave(&mut self, number: u64) {
        self.line.retain(|waiting| waiting.number != number);
    }

    /// Wakes the first of each client that can go on.
    pub(crate) fn wake(&self, can_go_on: impl Fn(&Waiter) -> bool) {
        let mut woken: Vec<&str> = Vec::new();
        for waiting in &self.line {
            if !woken.contains(&&*waiting.client) && can_go_on(waiting) {
                woken.push(&waiting.client);
                waiting.wakes.wake();
            }
        }
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.line.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::task::Wake;

    #[derive(Default)]
    struct Woken(AtomicBool);

    impl Wake for Woken {
        fn wake(self: Arc<Woken>) {
            self.0.store(true, Ordering::Relaxed);
        }
    }

    #[test]
    fn the_first_of_each_client_that_can_go_on_is_woken() {
        let mut line = WaitingLine::default();
        let wants = [("a", 9), ("a", 2), ("b", 1), ("a", 1), ("b", 1)];
        let woken = wants.map(|(client, new)| {
            let woken = Arc::<Woken>::default();
            let (number, task) = (line.number(), Waker::from(Arc::clone(&woken)));
            line.wait(Waiter {
                number,
                client: client.into(),
                old: 0,
                new,
                wakes: Wakes::Task(task),
            });
            woken
        });
        line.wake(|waiting| waiting.new < 5);
        let woken = woken.map(|woken| woken.0.load(Ordering::Relaxed));
        assert_eq!(woken, [false, true, true, false, false]);
        line.leave(2);
        assert_eq!(line.len(), 4);
    }
}
