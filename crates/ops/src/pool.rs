//! The threads that do the heavy work of the process: searches, hashes, listings, line counts, copies, removals.
//!
//! There are as many seats as the machine has cores, whatever the number of calls, and only a thread that has a seat
//! works. What waits for a seat is a ticket: a call that has not begun, a small unit of a job that several threads
//! share, or a thread whose slice of time was over. Clients take turns, and so do the calls of one client (`turns.rs`).
//! A thread that is stuck, in a system call on a dead mount for example, loses its seat after a second, so that the
//! others go on; the number that may be stuck on one root is so small that no root can use up the threads.

mod seat;
mod turns;

#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::context::Cancel;
use seat::Seat;
pub use seat::run_light;
pub(crate) use seat::{give_way, step_aside};
use turns::{TurnOwner, Turns};

/// The niceness that workers add to that of the process, so that a small read never waits for a search.
const NICENESS: i32 = 5;
/// The greatest niceness there is.
const NICENESS_MAX: i32 = 19;
/// How long a thread may work before others have their turn.
const SLICE: Duration = Duration::from_millis(4);
/// How long a thread may keep its seat without a sign of life.
const STUCK: Duration = Duration::from_secs(1);
/// How often to check whether a call gave up while it waits for a root on which all allowed threads are stuck.
const LOOK: Duration = Duration::from_millis(100);
/// How long an idle thread stays.
const IDLE: Duration = Duration::from_secs(10);

/// Work that is done in small units by any thread.
pub(crate) trait PoolJob: Send + Sync {
    /// Runs one unit. It must not panic: a unit's faults belong to its call.
    fn step(self: Arc<Self>) -> AfterUnit;

    /// The call it belongs to.
    fn cancel(&self) -> &Cancel;
}

/// What happens to a ticket after a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AfterUnit {
    /// There may be more: the ticket waits for the next turn of its call.
    Again,
    /// Nothing can be done just now: the job hands the ticket in again when it can.
    Parked,
    /// Nothing is left to do.
    Finished,
}

/// A call's work from its beginning to its end.
type HeavyCall = Box<dyn FnOnce() + Send>;

/// What waits for a seat, and on whose behalf.
struct Ticket {
    cancel: Cancel,
    waits: Waits,
}

enum Waits {
    /// A call that has not begun.
    Call(HeavyCall),
    /// A unit of a job.
    Unit(Arc<dyn PoolJob>),
    /// A thread that waits for its turn.
    Thread(Arc<Waiter>),
}

impl Waits {
    /// Does the work that waited; returns what is left of it.
    fn done(self) -> Option<Waits> {
        match self {
            Waits::Unit(job) => {
                let again = Arc::clone(&job).step() == AfterUnit::Again;
                again.then_some(Waits::Unit(job))
            }
            Waits::Call(work) => {
                // The call reports its own panic.
                let _ = catch_unwind(AssertUnwindSafe(work));
                None
            }
            Waits::Thread(_) => None,
        }
    }
}

impl TurnOwner for Ticket {
    fn client(&self) -> &str {
        self.cancel.client()
    }

    fn call(&self) -> usize {
        self.cancel.call()
    }
}

/// A thread that waits, and the seat it was given.
struct Waiter {
    thread: thread::Thread,
    given: OnceLock<u64>,
}

impl Waiter {
    fn give(&self, number: u64) {
        let _ = self.given.set(number);
        self.thread.unpark();
    }

    fn wait(&self) -> u64 {
        loop {
            if let Some(number) = self.given.get() {
                return *number;
            }
            thread::park();
        }
    }
}

/// A seat that is taken.
#[derive(Debug, Clone, Copy)]
struct TakenSeat {
    number: u64,
    roots: [usize; 2],
    /// When its thread last gave a sign of life.
    since: Instant,
}

impl TakenSeat {
    fn uses(&self, root: usize) -> bool {
        self.roots.contains(&root)
    }
}

/// The process's workers, their seats and what waits for them.
pub(crate) struct Pool {
    desk: Mutex<Desk>,
    /// Signals idle threads.
    filled: Condvar,
    /// Signals the thread that looks after stuck ones.
    contended: Condvar,
    seats: OnceLock<usize>,
    stuck_after: Duration,
}

/// The state of the pool, under one lock.
struct Desk {
    turns: Turns<Ticket>,
    /// Tickets that have their seat and wait for a thread to pick them up.
    ready: VecDeque<(u64, Ticket)>,
    taken: Vec<TakenSeat>,
    /// Seats that were taken away from threads that are stuck.
    stuck: Vec<TakenSeat>,
    next_number: u64,
    threads: usize,
    idle: usize,
    is_watched: bool,
}

impl Pool {
    const fn new(stuck_after: Duration) -> Pool {
        Pool {
            desk: Mutex::new(Desk {
                turns: Turns::new(),
                ready: VecDeque::new(),
                taken: Vec::new(),
                stuck: Vec::new(),
                next_number: 0,
                threads: 0,
                idle: 0,
                is_watched: false,
            }),
            filled: Condvar::new(),
            contended: Condvar::new(),
            seats: OnceLock::new(),
            stuck_after,
        }
    }

    /// The pool of this process; the threads start with its first use.
    pub(crate) fn get() -> &'static Pool {
        static POOL: Pool = Pool::new(STUCK);
        POOL.started(cores)
    }

    fn started(&'static self, seats: fn() -> usize) -> &'static Pool {
        self.seats.get_or_init(|| {
            let watch = move || self.watch();
            // Without it, stuck threads keep their seats; everything else works.
            let _ = thread::Builder::new()
                .name("pool-watch".to_owned())
                .spawn(watch);
            let mut desk = self.lock();
            if self.start_worker(&mut desk) {
                seats()
            } else {
                0
            }
        });
        self
    }

    /// How many threads work at a time; none if the system refuses threads.
    pub(crate) fn workers(&self) -> usize {
        self.seats.get().copied().unwrap_or(0)
    }

    /// Puts tickets for units of a job into the queue of its call.
    pub(crate) fn submit(&'static self, job: &Arc<dyn PoolJob>, tickets: usize) {
        let mut desk = self.lock();
        for _ in 0..tickets {
            desk.turns.add(Ticket {
                cancel: job.cancel().clone(),
                waits: Waits::Unit(Arc::clone(job)),
            });
        }
        self.seat(&mut desk, 0);
    }

    /// Begins a call's work when it is its turn; gives the work back if the system refuses threads.
    fn begin(&'static self, cancel: &Cancel, work: HeavyCall) -> Result<(), HeavyCall> {
        if self.workers() == 0 {
            return Err(work);
        }
        let mut desk = self.lock();
        desk.turns.add(Ticket {
            cancel: cancel.clone(),
            waits: Waits::Call(work),
        });
        self.seat(&mut desk, 0);
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, Desk> {
        self.desk.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives free seats to those who are next. `at_hand` is 1 for a worker that is about to look for work itself.
    fn seat(&'static self, desk: &mut Desk, at_hand: usize) {
        let mut may_begin = true;
        while desk.taken.len() < self.workers() {
            let Some(ticket) = desk.next(self.most_in_a_root(), may_begin) else {
                break;
            };
            let has_thread = matches!(ticket.waits, Waits::Thread(_))
                || desk.ready.len() < desk.idle + at_hand
                || self.start_worker(desk);
            if has_thread {
                self.grant(desk, ticket);
            } else {
                may_begin = false;
                desk.turns.add(ticket);
            }
        }
        if !desk.turns.is_empty() && !desk.is_watched {
            desk.is_watched = true;
            self.contended.notify_one();
        }
    }

    fn grant(&self, desk: &mut Desk, ticket: Ticket) {
        let number = desk.next_number;
        desk.next_number += 1;
        desk.taken.push(TakenSeat {
            number,
            roots: ticket.cancel.roots(),
            since: Instant::now(),
        });
        match ticket.waits {
            Waits::Thread(waiter) => waiter.give(number),
            Waits::Call(_) | Waits::Unit(_) => {
                desk.ready.push_back((number, ticket));
                self.filled.notify_one();
            }
        }
    }

    /// How many threads may work or be stuck on one root. More than one, so that a slow file does not stop its root.
    fn most_in_a_root(&self) -> usize {
        self.workers().max(2)
    }

    /// Gives a seat back, and gives the next one its turn.
    fn leave(&'static self, number: u64) {
        let mut desk = self.lock();
        desk.leave(number);
        self.seat(&mut desk, 0);
    }

    /// Yields this thread's seat and waits for another; keeps it if no other thread waits.
    fn take_turn(&'static self, left: Option<u64>, cancel: &Cancel) -> u64 {
        let waiter = Arc::new(Waiter {
            thread: thread::current(),
            given: OnceLock::new(),
        });
        let mut desk = self.lock();
        if let Some(number) = left {
            desk.leave(number);
        }
        desk.turns.add(Ticket {
            cancel: cancel.clone(),
            waits: Waits::Thread(Arc::clone(&waiter)),
        });
        self.seat(&mut desk, 0);
        drop(desk);
        waiter.wait()
    }

    fn start_worker(&'static self, desk: &mut Desk) -> bool {
        let started = thread::Builder::new()
            .name("worker".to_owned())
            .spawn(move || self.serve());
        desk.threads += usize::from(started.is_ok());
        started.is_ok()
    }

    /// Works until the thread has not been needed for a while.
    fn serve(&'static self) {
        lower_priority();
        let mut desk = self.lock();
        loop {
            if let Some((number, ticket)) = desk.ready.pop_front() {
                drop(desk);
                desk = self.work(number, ticket);
                continue;
            }
            desk.idle += 1;
            let waited = self.filled.wait_timeout(desk, IDLE);
            let (woken, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
            desk = woken;
            desk.idle -= 1;
            if timeout.timed_out() && desk.ready.is_empty() && desk.threads > self.workers() {
                desk.threads -= 1;
                return;
            }
        }
    }

    /// Works in a seat, and gives it back.
    fn work(&'static self, number: u64, ticket: Ticket) -> MutexGuard<'static, Desk> {
        let Ticket { cancel, waits } = ticket;
        let seat = Seat::take(self, number);
        let rest = waits.done();
        let number = seat.hand_back();
        let mut desk = self.lock();
        desk.leave(number);
        if let Some(waits) = rest {
            desk.turns.add(Ticket { cancel, waits });
        }
        self.seat(&mut desk, 1);
        desk
    }

    /// Takes seats away from threads that are stuck while others wait.
    fn watch(&'static self) {
        let mut desk = self.lock();
        loop {
            desk.is_watched = !desk.turns.is_empty();
            desk = if desk.is_watched {
                let waited = self.contended.wait_timeout(desk, self.until_next_look());
                waited.unwrap_or_else(PoisonError::into_inner).0
            } else {
                let waited = self.contended.wait(desk);
                waited.unwrap_or_else(PoisonError::into_inner)
            };
            desk.dismiss_stuck(self.stuck_after);
            self.seat(&mut desk, 0);
        }
    }

    fn until_next_look(&self) -> Duration {
        LOOK.min(self.stuck_after)
    }
}

impl Desk {
    /// Takes the next ticket that may have a seat.
    fn next(&mut self, most_in_a_root: usize, may_begin: bool) -> Option<Ticket> {
        let (taken, stuck) = (&self.taken, &self.stuck);
        let is_open = |root: &usize| {
            let uses = |seat: &&TakenSeat| seat.uses(*root);
            taken.iter().chain(stuck).filter(uses).count() < most_in_a_root
        };
        self.turns.take(|ticket| {
            let has_thread = may_begin || matches!(ticket.waits, Waits::Thread(_));
            let roots = ticket.cancel.roots();
            let mut roots = roots.iter().filter(|root| **root != 0);
            // A call that has to stop only cleans up.
            has_thread && (roots.all(is_open) || ticket.cancel.must_stop())
        })
    }

    fn leave(&mut self, number: u64) {
        self.taken.retain(|seat| seat.number != number);
        self.stuck.retain(|seat| seat.number != number);
    }

    fn dismiss_stuck(&mut self, stuck_after: Duration) {
        let (stuck, working) = self
            .taken
            .iter()
            .partition(|seat| seat.since.elapsed() >= stuck_after);
        self.taken = working;
        let stuck: Vec<TakenSeat> = stuck;
        self.stuck.extend(stuck);
    }
}

/// Runs a call's heavy work on the pool's threads, in its client's turn and its own; gives the work back if the
/// system refuses threads.
///
/// # Errors
///
/// The work itself, which has not begun.
pub fn run_heavy(
    cancel: &Cancel,
    work: Box<dyn FnOnce() + Send>,
) -> Result<(), Box<dyn FnOnce() + Send>> {
    Pool::get().begin(cancel, work)
}

fn cores() -> usize {
    thread::available_parallelism().map_or(2, NonZeroUsize::get)
}

/// Lowers this thread's priority below the process's. The base is the niceness of the first thread, because this one
/// may have been started by a worker. If the system refuses, workers just give way less.
fn lower_priority() {
    let process = rustix::process::getpid();
    let base = rustix::process::getpriority_process(Some(process)).unwrap_or(0);
    let lowered = base.saturating_add(NICENESS).min(NICENESS_MAX);
    let _ = rustix::process::setpriority_process(None, lowered);
}
