//! The worker threads that all searches of the process share.
//!
//! There are as many as the machine has cores, whatever the number of calls. A job waits in one queue,
//! once for each worker that may serve it; a worker takes the next ticket, runs one small unit of that job and
//! puts the ticket at the end, so that ten searches advance together. This file knows nothing of files.

use std::collections::VecDeque;
use std::num::NonZeroUsize;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;

/// How much workers give way to other threads, so that a small read never waits for a search.
const NICENESS: i32 = 5;

/// Work that is done in small units by any thread.
pub(crate) trait PoolJob: Send + Sync {
    /// Runs one unit. It must not panic: a unit's faults belong to its call.
    fn step(self: Arc<Self>) -> AfterUnit;
}

/// What becomes of a ticket after a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AfterUnit {
    /// There may be more: the ticket goes to the end of the queue.
    Again,
    /// Nothing can be done just now: the job hands the ticket in again when it can.
    Parked,
    /// Nothing is left to do.
    Finished,
}

/// The process's workers and their queue.
pub(crate) struct Pool {
    queue: Mutex<VecDeque<Arc<dyn PoolJob>>>,
    filled: Condvar,
    workers: OnceLock<usize>,
}

impl Pool {
    /// The pool of this process; the threads start with its first use.
    pub(crate) fn get() -> &'static Pool {
        static POOL: Pool = Pool {
            queue: Mutex::new(VecDeque::new()),
            filled: Condvar::new(),
            workers: OnceLock::new(),
        };
        POOL.workers.get_or_init(|| start(&POOL));
        &POOL
    }

    /// How many threads work; none where the system refuses threads.
    pub(crate) fn workers(&self) -> usize {
        self.workers.get().copied().unwrap_or(0)
    }

    /// Puts tickets for a job at the end of the queue.
    pub(crate) fn submit(&self, job: &Arc<dyn PoolJob>, tickets: usize) {
        self.lock()
            .extend(std::iter::repeat_n(job, tickets).map(Arc::clone));
        for _ in 0..tickets {
            self.filled.notify_one();
        }
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Arc<dyn PoolJob>>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn next(&self) -> Arc<dyn PoolJob> {
        let mut queue = self.lock();
        loop {
            match queue.pop_front() {
                Some(job) => return job,
                None => {
                    queue = self
                        .filled
                        .wait(queue)
                        .unwrap_or_else(PoisonError::into_inner)
                }
            }
        }
    }

    fn serve(&self) {
        // Where the system refuses, workers only give way less.
        let _ = rustix::process::setpriority_process(None, NICENESS);
        loop {
            let job = self.next();
            if Arc::clone(&job).step() == AfterUnit::Again {
                self.lock().push_back(job);
            }
        }
    }
}

/// Starts a worker for each core and tells how many there are.
fn start(pool: &'static Pool) -> usize {
    let cores = thread::available_parallelism().map_or(2, NonZeroUsize::get);
    (0..cores)
        .filter(|number| start_worker(pool, *number))
        .count()
}

fn start_worker(pool: &'static Pool, number: usize) -> bool {
    thread::Builder::new()
        .name(format!("search-{number}"))
        .spawn(move || pool.serve())
        .is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::{Sender, channel};

    /// Runs `units` units and tells each.
    struct Counted {
        name: &'static str,
        left: Mutex<usize>,
        told: Sender<&'static str>,
    }

    impl PoolJob for Counted {
        fn step(self: Arc<Self>) -> AfterUnit {
            let mut left = self.left.lock().unwrap();
            if *left == 0 {
                return AfterUnit::Finished;
            }
            *left -= 1;
            self.told.send(self.name).unwrap();
            AfterUnit::Again
        }
    }

    #[test]
    fn jobs_take_turns() {
        let (told, heard) = channel();
        for name in ["long", "short"] {
            let units = if name == "long" { 20_000 } else { 10 };
            let job: Arc<dyn PoolJob> = Arc::new(Counted {
                name,
                left: Mutex::new(units),
                told: told.clone(),
            });
            Pool::get().submit(&job, Pool::get().workers());
        }
        drop(told);
        let order: Vec<_> = heard.iter().take(20_010).collect();
        let last_short = order.iter().rposition(|name| *name == "short").unwrap();
        assert!(
            last_short < order.len() - 1,
            "the short job waited for the long one"
        );
        assert_eq!(order.iter().filter(|name| **name == "short").count(), 10);
    }
}
