//! The threads that do the heavy work of the process: searches, copies, removals, descriptions of large directories.
//!
//! There are as many as the machine has cores, whatever the number of calls. A job waits once for each worker that may
//! serve it: as a ticket in the queue of the client whose call it is. A worker takes the next client's next ticket,
//! runs one small unit of that job and puts the ticket back, so that clients take turns and so do the jobs of one
//! client. This file knows nothing of files.

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

    /// The client whose call it is.
    fn client(&self) -> &str;
}

/// What becomes of a ticket after a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AfterUnit {
    /// There may be more: the ticket goes to the end of its client's queue.
    Again,
    /// Nothing can be done just now: the job hands the ticket in again when it can.
    Parked,
    /// Nothing is left to do.
    Finished,
}

/// The process's workers and their queue.
pub(crate) struct Pool {
    tickets: Mutex<Tickets>,
    filled: Condvar,
    workers: OnceLock<usize>,
}

impl Pool {
    /// The pool of this process; the threads start with its first use.
    pub(crate) fn get() -> &'static Pool {
        static POOL: Pool = Pool {
            tickets: Mutex::new(Tickets::new()),
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

    /// Puts tickets for a job at the end of its client's queue.
    pub(crate) fn submit(&self, job: &Arc<dyn PoolJob>, tickets: usize) {
        let mut queue = self.lock();
        for _ in 0..tickets {
            queue.add(Arc::clone(job));
        }
        drop(queue);
        for _ in 0..tickets {
            self.filled.notify_one();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Tickets> {
        self.tickets.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn next(&self) -> Arc<dyn PoolJob> {
        let mut tickets = self.lock();
        loop {
            match tickets.take() {
                Some(job) => return job,
                None => {
                    tickets = self
                        .filled
                        .wait(tickets)
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
                self.lock().add(job);
            }
        }
    }
}

/// The tickets that wait, by client.
struct Tickets {
    /// The clients that have any; the first is the next to be served.
    clients: VecDeque<VecDeque<Arc<dyn PoolJob>>>,
}

impl Tickets {
    const fn new() -> Tickets {
        Tickets {
            clients: VecDeque::new(),
        }
    }

    fn add(&mut self, job: Arc<dyn PoolJob>) {
        let is_own = |queue: &&mut VecDeque<Arc<dyn PoolJob>>| {
            let first = queue.front();
            first.is_some_and(|first| first.client() == job.client())
        };
        match self.clients.iter_mut().find(is_own) {
            Some(queue) => queue.push_back(job),
            None => self.clients.push_back(VecDeque::from([job])),
        }
    }

    /// Takes the next client's next ticket; that client's others wait for all other clients.
    fn take(&mut self) -> Option<Arc<dyn PoolJob>> {
        let mut queue = self.clients.pop_front()?;
        let job = queue.pop_front();
        if !queue.is_empty() {
            self.clients.push_back(queue);
        }
        job
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
        .name(format!("worker-{number}"))
        .spawn(move || pool.serve())
        .is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::{Sender, channel};

    /// Runs `left` units and tells each.
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

        fn client(&self) -> &str {
            self.name.split('-').next().unwrap()
        }
    }

    fn job(name: &'static str, units: usize, told: &Sender<&'static str>) -> Arc<dyn PoolJob> {
        Arc::new(Counted {
            name,
            left: Mutex::new(units),
            told: told.clone(),
        })
    }

    #[test]
    fn jobs_take_turns() {
        let (told, heard) = channel();
        for (name, units) in [("one-long", 20_000), ("one-short", 10)] {
            Pool::get().submit(&job(name, units, &told), Pool::get().workers());
        }
        drop(told);
        let order: Vec<_> = heard.iter().take(20_010).collect();
        let last_short = order.iter().rposition(|name| *name == "one-short").unwrap();
        assert!(
            last_short < order.len() - 1,
            "the short job waited for the long one"
        );
        assert_eq!(
            order.iter().filter(|name| **name == "one-short").count(),
            10
        );
    }

    #[test]
    fn clients_take_turns_whatever_the_number_of_their_jobs() {
        let (told, heard) = channel();
        let mut tickets = Tickets::new();
        for name in ["many-a", "many-b", "many-c", "few-a"] {
            tickets.add(job(name, 4, &told));
        }
        for _ in 0..8 {
            let next = tickets.take().unwrap();
            if Arc::clone(&next).step() == AfterUnit::Again {
                tickets.add(next);
            }
        }
        let order: Vec<_> = heard.try_iter().collect();
        let expected = [
            "many-a", "few-a", "many-b", "few-a", "many-c", "few-a", "many-a", "few-a",
        ];
        assert_eq!(order, expected);
    }
}
