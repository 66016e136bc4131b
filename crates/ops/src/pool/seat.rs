//! The seat of the running thread, and when it has to give way.

use std::cell::Cell;
use std::time::{Duration, Instant};

use super::{Pool, SLICE};
use crate::context::Cancel;

/// How long a call that was taken for a small one may run before it needs a seat like heavy ones.
const SMALL: Duration = Duration::from_millis(20);

/// The running thread's role in the pool.
#[derive(Clone, Copy)]
enum ThreadRole {
    /// It works for no call.
    Outside,
    /// It runs a small call, which has to take a seat at this time.
    Small { until: Instant },
    /// It has a seat, and others have their turn at this time.
    Seated {
        pool: &'static Pool,
        number: u64,
        until: Instant,
    },
}

thread_local! {
    static ROLE: Cell<ThreadRole> = const { Cell::new(ThreadRole::Outside) };
}

fn sit_down(pool: &'static Pool, number: u64) {
    let until = Instant::now() + SLICE;
    ROLE.set(ThreadRole::Seated {
        pool,
        number,
        until,
    });
}

/// The seat of a worker while it works on one ticket.
pub(super) struct Seat;

impl Seat {
    pub(super) fn take(pool: &'static Pool, number: u64) -> Seat {
        sit_down(pool, number);
        Seat
    }

    /// Ends the work and returns the thread's current seat.
    pub(super) fn hand_back(self) -> u64 {
        match ROLE.replace(ThreadRole::Outside) {
            ThreadRole::Seated { number, .. } => number,
            // Work always ends in a seat: a thread that gave one up has taken another.
            ThreadRole::Outside | ThreadRole::Small { .. } => u64::MAX,
        }
    }
}

/// Lets others have their turn if this thread's slice of time is over. Never call it with a lock held: a thread that
/// has a seat and waits for that lock could keep this one from its next seat.
pub(crate) fn give_way(cancel: &Cancel) {
    let (pool, left, until) = match ROLE.get() {
        ThreadRole::Outside => return,
        ThreadRole::Small { until } => (Pool::get(), None, until),
        ThreadRole::Seated {
            pool,
            number,
            until,
        } => (pool, Some(number), until),
    };
    if Instant::now() < until || pool.workers() == 0 {
        return;
    }
    sit_down(pool, pool.take_turn(left, cancel));
}

/// Runs a small call on a thread that is not the pool's. One that turns out to be long takes a seat on the way.
pub fn run_light<T>(work: impl FnOnce() -> T) -> T {
    let until = Instant::now() + SMALL;
    ROLE.set(ThreadRole::Small { until });
    let _leaves = Leaves;
    work()
}

/// Gives back the seat that a small call may have taken.
struct Leaves;

impl Drop for Leaves {
    fn drop(&mut self) {
        if let ThreadRole::Seated { pool, number, .. } = ROLE.replace(ThreadRole::Outside) {
            pool.leave(number);
        }
    }
}

/// Gives up the seat, for a thread that has to wait for something other than its turn. It takes another one when the
/// guard is dropped, so drop it with no lock held.
pub(crate) fn step_aside(cancel: &Cancel) -> Aside<'_> {
    let seated = match ROLE.get() {
        ThreadRole::Seated { pool, number, .. } => {
            pool.leave(number);
            ROLE.set(ThreadRole::Outside);
            Some(pool)
        }
        ThreadRole::Outside | ThreadRole::Small { .. } => None,
    };
    Aside { seated, cancel }
}

/// A thread without the seat it had.
pub(crate) struct Aside<'a> {
    seated: Option<&'static Pool>,
    cancel: &'a Cancel,
}

impl Drop for Aside<'_> {
    fn drop(&mut self) {
        if let Some(pool) = self.seated {
            sit_down(pool, pool.take_turn(None, self.cancel));
        }
    }
}
