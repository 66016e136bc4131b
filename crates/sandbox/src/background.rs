//! Runs work that no call waits for, on a thread of its own at the lowest priority.

use std::sync::OnceLock;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread;

/// The lowest priority.
const NICENESS: i32 = 19;

/// Runs some work on a new thread. If no thread can be started, the work is not done; returns whether one was.
pub fn run(name: &str, work: impl FnOnce() + Send + 'static) -> bool {
    let work = move || {
        // Per thread on Linux. If it is refused the work runs at normal priority.
        let _ = rustix::process::setpriority_process(None, NICENESS);
        work();
    };
    thread::Builder::new()
        .name(name.to_owned())
        .spawn(work)
        .is_ok()
}

/// Work of one kind that a single thread does in the order it came; the thread starts with the first.
pub(crate) struct BackgroundLine<T> {
    name: &'static str,
    /// How many may wait.
    most: usize,
    work: fn(T),
    sender: OnceLock<SyncSender<T>>,
}

impl<T: Send + 'static> BackgroundLine<T> {
    pub(crate) const fn new(name: &'static str, most: usize, work: fn(T)) -> BackgroundLine<T> {
        BackgroundLine {
            name,
            most,
            work,
            sender: OnceLock::new(),
        }
    }

    /// Puts something in line. Gives it back if too many wait already, or there is no thread.
    pub(crate) fn add(&self, item: T) -> Result<(), T> {
        let sender = self.sender.get_or_init(|| self.start());
        sender.try_send(item).map_err(|refused| match refused {
            TrySendError::Full(item) | TrySendError::Disconnected(item) => item,
        })
    }

    fn start(&self) -> SyncSender<T> {
        let (sender, line): (_, Receiver<T>) = sync_channel(self.most);
        let work = self.work;
        run(self.name, move || line.into_iter().for_each(work));
        sender
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::mpsc::Sender;

    /// What tells that it was begun, and goes on when it is told to.
    type Step = (Sender<usize>, Arc<std::sync::Barrier>, usize);

    #[test]
    fn one_thread_does_all_in_turn_and_what_is_too_much_comes_back() {
        static LINE: BackgroundLine<Step> =
            BackgroundLine::new("in-turn", 2, |(begun, go_on, number)| {
                begun.send(number).unwrap();
                go_on.wait();
            });
        let (sender, begun) = std::sync::mpsc::channel();
        let go_on = Arc::new(std::sync::Barrier::new(2));
        let step = |number| (sender.clone(), Arc::clone(&go_on), number);
        assert!(LINE.add(step(0)).is_ok());
        assert_eq!(begun.recv(), Ok(0));
        assert!(LINE.add(step(1)).is_ok() && LINE.add(step(2)).is_ok());
        let refused = LINE.add(step(3)).unwrap_err();
        assert_eq!(refused.2, 3);
        assert!(begun.try_recv().is_err(), "the first one is not done");
        go_on.wait();
        assert_eq!(begun.recv(), Ok(1));
        go_on.wait();
        assert_eq!(begun.recv(), Ok(2));
        go_on.wait();
    }
}
