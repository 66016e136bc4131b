//! Runs work on a long sequence on several threads, with results as if one thread had done it.
//!
//! Batches are pulled from a source one after the other, worked on by the pool's threads in any order, and
//! committed in the order they were pulled. Few batches are under way at a time, so memory does not grow with
//! the sequence, and a commit that has enough stops everything behind it. This file does not know what a batch is.

use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::context::Cancel;
use crate::error::{Error, Result};
use crate::pool::{self, AfterUnit, Pool, PoolJob};

/// How often a waiting caller checks its deadline. Usually the workers notice it earlier.
const LOOK: Duration = Duration::from_millis(100);
/// How many batches may be uncommitted at a time: this many for each worker, and a few more.
const WINDOW_PER_WORKER: usize = 16;
const WINDOW_BESIDES: usize = 2;
/// How many units the caller does itself before it asks the pool: small calls need no other thread.
const OWN_UNITS: usize = 2;

/// The stages every batch goes through.
pub(crate) trait Stages: Send + Sync + 'static {
    /// Where batches come from; one thread at a time has it, and the others do not wait for it.
    type Source: Send + 'static;
    /// A piece of the sequence.
    type Batch: Send + 'static;
    /// The result of a batch.
    type Found: Send + 'static;
    /// The result of all batches.
    type Outcome: Send + 'static;

    /// Takes the next batch; `None` at the end.
    fn pull(&self, source: &mut Self::Source) -> Option<Self::Batch>;

    /// Cuts a batch into what one unit does now and what any thread may do next.
    fn split(&self, batch: Self::Batch) -> (Self::Batch, Option<Self::Batch>);

    /// Works on one batch, and hands back what it did not get to.
    fn work(&self, batch: Self::Batch, halt: &Halt) -> Worked<Self::Found, Self::Batch>;

    /// Adds the result of a batch; breaks when no more are needed.
    fn commit(&self, outcome: &mut Self::Outcome, found: Self::Found) -> ControlFlow<()>;
}

/// What a unit did.
pub(crate) struct Worked<Found, Batch> {
    /// What it found; `None` if that is yet to come from the rest.
    pub found: Option<Found>,
    /// What is left of its batch: too much for one unit, or interrupted.
    pub rest: Option<Batch>,
}

/// Why the work ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RunEnd {
    /// Everything was worked on.
    Complete,
    /// A commit had enough.
    Enough,
    /// The deadline passed; the outcome holds a gapless beginning.
    Expired,
}

/// Signals units to stop: the caller gave up, its deadline passed, or the answer is full.
pub(crate) struct Halt {
    cancel: Cancel,
    stopped: AtomicBool,
}

impl Halt {
    /// Stops when `cancel` does.
    pub(crate) fn new(cancel: &Cancel) -> Halt {
        Halt {
            cancel: cancel.clone(),
            stopped: AtomicBool::new(false),
        }
    }

    /// Tells whether to stop. Cheap enough to ask for every file and every 64 KiB.
    pub(crate) fn must_stop(&self) -> bool {
        self.stopped.load(Ordering::Relaxed) || self.cancel.must_stop()
    }

    /// Lets other calls have their turn, inside a unit that may be long. Never with a lock held.
    pub(crate) fn give_way(&self) {
        pool::give_way(&self.cancel);
    }

    fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }
}

/// How many batches are worked on or done and uncommitted at a time.
fn window() -> usize {
    WINDOW_PER_WORKER * Pool::get().workers() + WINDOW_BESIDES
}

/// Runs the stages over a source until it is exhausted, a commit has enough, or the caller stops waiting.
pub(crate) fn run<S: Stages>(
    stages: S,
    source: S::Source,
    outcome: S::Outcome,
    cancel: &Cancel,
) -> Result<(S::Outcome, RunEnd)> {
    let pool = Pool::get();
    let run = Arc::new(Run::new(stages, source, outcome, cancel, window()));
    if run.begin(pool.workers()) == AfterUnit::Again {
        let job: Arc<dyn PoolJob> = Arc::clone(&run) as Arc<dyn PoolJob>;
        // The workers need the seat more than this thread, which only waits.
        let _aside = pool::step_aside(cancel);
        pool.submit(&job, pool.workers());
        run.wait()
    } else {
        run.wait()
    }
}

enum Stage<S: Stages> {
    Pending(S::Batch),
    Running,
    Done(S::Found),
}

struct BatchSlot<S: Stages> {
    number: u64,
    stage: Stage<S>,
}

struct RunState<S: Stages> {
    /// Uncommitted batches in the order of the sequence.
    slots: VecDeque<BatchSlot<S>>,
    next_number: u64,
    /// Where batches come from, unless a thread pulls one just now.
    source: Option<S::Source>,
    /// Threads that pull or work.
    running: usize,
    /// Tickets that wait for something to do.
    parked: usize,
    exhausted: bool,
    enough: bool,
    panicked: bool,
    outcome: Option<S::Outcome>,
}

struct Run<S: Stages> {
    stages: S,
    state: Mutex<RunState<S>>,
    ended: Condvar,
    halt: Halt,
    window: usize,
}

/// What a worker gets when it asks for something to do.
enum NextUnit<S: Stages> {
    Batch(u64, S::Batch),
    Pull(S::Source),
    Nothing(AfterUnit),
}

impl<S: Stages> Run<S> {
    fn new(
        stages: S,
        source: S::Source,
        outcome: S::Outcome,
        cancel: &Cancel,
        window: usize,
    ) -> Run<S> {
        let state = RunState {
            slots: VecDeque::new(),
            next_number: 0,
            source: Some(source),
            running: 0,
            parked: 0,
            exhausted: false,
            enough: false,
            panicked: false,
            outcome: Some(outcome),
        };
        Run {
            stages,
            state: Mutex::new(state),
            ended: Condvar::new(),
            halt: Halt::new(cancel),
            window,
        }
    }

    /// Does the first units on the calling thread, or all of them if there are no workers.
    fn begin(self: &Arc<Self>, workers: usize) -> AfterUnit {
        let mut own_units = if workers == 0 { usize::MAX } else { OWN_UNITS };
        loop {
            let step = Arc::clone(self).step();
            own_units -= 1;
            if step != AfterUnit::Again || own_units == 0 {
                return step;
            }
            self.halt.give_way();
        }
    }

    fn wait(&self) -> Result<(S::Outcome, RunEnd)> {
        let mut state = self.lock();
        while !self.is_over(&state) {
            let waited = self.ended.wait_timeout(state, LOOK);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        self.halt.stop();
        let outcome = state.outcome.take();
        let ending = self.ending(&state);
        // A batch's resources are freed with the call, not with the last ticket.
        let left = std::mem::take(&mut state.slots);
        drop(state);
        drop(left);
        let ending = ending?;
        Ok((outcome.ok_or_else(internal)?, ending))
    }

    fn is_over(&self, state: &RunState<S>) -> bool {
        let complete = state.exhausted && state.slots.is_empty();
        state.running == 0 && (complete || self.halt.must_stop())
    }

    fn ending(&self, state: &RunState<S>) -> Result<RunEnd> {
        if state.panicked {
            Err(internal())
        } else if state.enough {
            Ok(RunEnd::Enough)
        } else if state.exhausted && state.slots.is_empty() {
            Ok(RunEnd::Complete)
        } else if self.halt.cancel.is_cancelled() {
            Err(Error::Cancelled)
        } else {
            Ok(RunEnd::Expired)
        }
    }

    fn lock(&self) -> MutexGuard<'_, RunState<S>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Finds the earliest thing to do. Only the first batch may go beyond the window, so that all can end; batches
    /// that wait hold no results and do not count.
    fn take(&self) -> NextUnit<S> {
        let mut state = self.lock();
        if self.halt.must_stop() {
            return NextUnit::Nothing(AfterUnit::Finished);
        }
        let is_pending = |slot: &BatchSlot<S>| matches!(slot.stage, Stage::Pending(_));
        let pending = state.slots.iter().position(is_pending);
        let held = state.slots.iter().filter(|slot| !is_pending(slot)).count();
        let full = held >= self.window;
        match pending {
            Some(index) if index == 0 || !full => self.start(&mut state, index),
            None if state.exhausted && state.running == 0 => NextUnit::Nothing(AfterUnit::Finished),
            None if !state.exhausted && !full => pull(&mut state),
            _ => park(&mut state),
        }
    }

    /// Marks a pending slot as running and puts what its batch leaves for others behind it.
    fn start(&self, state: &mut RunState<S>, index: usize) -> NextUnit<S> {
        let Some(slot) = state.slots.get_mut(index) else {
            return NextUnit::Nothing(AfterUnit::Finished);
        };
        let number = slot.number;
        let Stage::Pending(batch) = std::mem::replace(&mut slot.stage, Stage::Running) else {
            return NextUnit::Nothing(AfterUnit::Finished);
        };
        let (now, later) = self.stages.split(batch);
        if let Some(later) = later {
            insert(state, index + 1, later);
        }
        state.running += 1;
        NextUnit::Batch(number, now)
    }

    /// Pulls the next batch into the last slot. The source goes back together with that, so that slots are in the
    /// source's order.
    fn pull(&self, mut source: S::Source) -> NextUnit<S> {
        let pulled = catch_unwind(AssertUnwindSafe(|| self.stages.pull(&mut source)));
        let mut state = self.lock();
        state.running -= 1;
        state.source = Some(source);
        match pulled {
            Ok(Some(batch)) => {
                let last = state.slots.len();
                insert(&mut state, last, batch);
                self.start(&mut state, last)
            }
            Ok(None) => {
                state.exhausted |= !self.halt.must_stop();
                NextUnit::Nothing(self.after_the_last(&state))
            }
            Err(_) => {
                self.fail(&mut state);
                NextUnit::Nothing(AfterUnit::Finished)
            }
        }
    }

    /// The end of a short sequence needs no other thread to see it.
    fn after_the_last(&self, state: &RunState<S>) -> AfterUnit {
        if self.is_over(state) {
            AfterUnit::Finished
        } else {
            AfterUnit::Again
        }
    }

    fn unit(self: &Arc<Self>) -> AfterUnit {
        let taken = match self.take() {
            NextUnit::Pull(source) => self.pull(source),
            taken => taken,
        };
        match taken {
            NextUnit::Batch(number, batch) => {
                self.wake();
                let worked = catch_unwind(AssertUnwindSafe(|| self.stages.work(batch, &self.halt)));
                self.finish(number, worked.ok());
                AfterUnit::Again
            }
            NextUnit::Pull(_) => AfterUnit::Again,
            NextUnit::Nothing(step) => step,
        }
    }

    /// Wakes parked workers when a batch left something for others, or the source has more.
    fn wake(self: &Arc<Self>) {
        let mut state = self.lock();
        let waits = |slot: &BatchSlot<S>| matches!(slot.stage, Stage::Pending(_));
        let has_more = !state.exhausted && state.source.is_some();
        let tickets = if has_more || state.slots.iter().any(waits) {
            std::mem::take(&mut state.parked)
        } else {
            0
        };
        drop(state);
        self.hand_in(tickets);
    }

    fn hand_in(self: &Arc<Self>, tickets: usize) {
        if tickets > 0 {
            let job: Arc<dyn PoolJob> = Arc::clone(self) as Arc<dyn PoolJob>;
            Pool::get().submit(&job, tickets);
        }
    }

    /// Records what a unit did, commits what is next in order, and wakes workers that can continue.
    fn finish(self: &Arc<Self>, number: u64, worked: Option<Worked<S::Found, S::Batch>>) {
        let mut state = self.lock();
        state.running -= 1;
        match worked {
            Some(worked) => record(&mut state, number, worked),
            None => self.fail(&mut state),
        }
        self.commit(&mut state);
        let tickets = std::mem::take(&mut state.parked);
        let over = self.is_over(&state);
        drop(state);
        if over {
            self.ended.notify_all();
        } else {
            self.hand_in(tickets);
        }
    }

    fn commit(&self, state: &mut RunState<S>) {
        while let Some(found) = pop_done(&mut state.slots) {
            let Some(outcome) = &mut state.outcome else {
                return;
            };
            if self.stages.commit(outcome, found).is_break() {
                state.enough = true;
                state.slots.clear();
                self.halt.stop();
            }
        }
    }

    fn fail(&self, state: &mut RunState<S>) {
        state.panicked = true;
        state.slots.clear();
        self.halt.stop();
    }
}

impl<S: Stages> PoolJob for Run<S> {
    fn step(self: Arc<Self>) -> AfterUnit {
        let step = catch_unwind(AssertUnwindSafe(|| self.unit())).unwrap_or_else(|_| {
            self.fail(&mut self.lock());
            AfterUnit::Finished
        });
        if step == AfterUnit::Finished {
            self.ended.notify_all();
        }
        step
    }

    fn cancel(&self) -> &Cancel {
        &self.halt.cancel
    }
}

/// Holds a ticket until there is something to do.
fn park<S: Stages>(state: &mut RunState<S>) -> NextUnit<S> {
    state.parked += 1;
    NextUnit::Nothing(AfterUnit::Parked)
}

fn insert<S: Stages>(state: &mut RunState<S>, index: usize, batch: S::Batch) {
    let number = state.next_number;
    state.next_number += 1;
    state.slots.insert(
        index,
        BatchSlot {
            number,
            stage: Stage::Pending(batch),
        },
    );
}

/// Lets the running thread take more batches from the source, unless another does so.
fn pull<S: Stages>(state: &mut RunState<S>) -> NextUnit<S> {
    match state.source.take() {
        Some(source) => {
            state.running += 1;
            NextUnit::Pull(source)
        }
        None => park(state),
    }
}

fn record<S: Stages>(state: &mut RunState<S>, number: u64, worked: Worked<S::Found, S::Batch>) {
    // The slot is gone when a commit before it had enough.
    let Some(index) = state.slots.iter().position(|slot| slot.number == number) else {
        return;
    };
    let stage = match (worked.found, worked.rest) {
        (None, None) => {
            state.slots.remove(index);
            return;
        }
        (None, Some(rest)) => Stage::Pending(rest),
        (Some(found), rest) => {
            if let Some(rest) = rest {
                insert(state, index + 1, rest);
            }
            Stage::Done(found)
        }
    };
    if let Some(slot) = state.slots.get_mut(index) {
        slot.stage = stage;
    }
}

/// Takes the first slot out if it is done.
fn pop_done<S: Stages>(slots: &mut VecDeque<BatchSlot<S>>) -> Option<S::Found> {
    match slots.pop_front()? {
        BatchSlot {
            stage: Stage::Done(found),
            ..
        } => Some(found),
        slot => {
            slots.push_front(slot);
            None
        }
    }
}

/// The failure of a call whose work panicked; the process continues.
fn internal() -> Error {
    Error::Io {
        operation: "work",
        path: String::new(),
        reason: "internal error".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ops::Range;
    use std::sync::mpsc::{Receiver, Sender, channel};

    /// Collects numbers below `end`, cut and left over in ways that depend on the numbers.
    struct Numbers {
        enough: usize,
        panics_at: Option<u64>,
        hangs_from: Option<u64>,
    }

    impl Stages for Numbers {
        type Source = Range<u64>;
        type Batch = Range<u64>;
        type Found = Vec<u64>;
        type Outcome = Vec<u64>;

        fn pull(&self, source: &mut Range<u64>) -> Option<Range<u64>> {
            let start = source.next()?;
            source.nth(8);
            Some(start..(start + 10).min(source.end))
        }

        fn split(&self, batch: Range<u64>) -> (Range<u64>, Option<Range<u64>>) {
            if batch.start.is_multiple_of(7) && batch.end - batch.start > 3 {
                (
                    batch.start..batch.start + 2,
                    Some(batch.start + 2..batch.end),
                )
            } else {
                (batch, None)
            }
        }

        fn work(&self, batch: Range<u64>, halt: &Halt) -> Worked<Vec<u64>, Range<u64>> {
            assert!(!self.panics_at.is_some_and(|at| batch.contains(&at)));
            while self.hangs_from.is_some_and(|from| batch.start >= from) && !halt.must_stop() {
                std::thread::yield_now();
            }
            if halt.must_stop() {
                return Worked {
                    found: Some(Vec::new()),
                    rest: Some(batch),
                };
            }
            let cut = if batch.start.is_multiple_of(3) {
                batch.start + 1
            } else {
                batch.end
            };
            let rest = (cut < batch.end).then_some(cut..batch.end);
            Worked {
                found: Some((batch.start..cut).collect()),
                rest,
            }
        }

        fn commit(&self, outcome: &mut Vec<u64>, found: Vec<u64>) -> ControlFlow<()> {
            outcome.extend(found);
            outcome.truncate(self.enough);
            if outcome.len() == self.enough {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        }
    }

    fn numbers() -> Numbers {
        Numbers {
            enough: usize::MAX,
            panics_at: None,
            hangs_from: None,
        }
    }

    #[test]
    fn everything_comes_in_order() {
        let (all, ending) = run(numbers(), 0..5003, Vec::new(), &Cancel::never()).unwrap();
        assert_eq!(all, (0..5003).collect::<Vec<_>>());
        assert_eq!(ending, RunEnd::Complete);
    }

    #[test]
    fn an_empty_source_is_complete() {
        let (all, ending) = run(numbers(), 0..0, Vec::new(), &Cancel::never()).unwrap();
        assert_eq!(all, Vec::<u64>::new());
        assert_eq!(ending, RunEnd::Complete);
    }

    #[test]
    fn enough_is_the_first_ones() {
        let stages = Numbers {
            enough: 777,
            ..numbers()
        };
        let (all, ending) = run(stages, 0..u64::MAX / 2, Vec::new(), &Cancel::never()).unwrap();
        assert_eq!(all, (0..777).collect::<Vec<_>>());
        assert_eq!(ending, RunEnd::Enough);
    }

    #[test]
    fn a_deadline_leaves_an_unbroken_beginning() {
        // A busy machine may need longer to begin at all.
        let patience = (0..12).map(|doubled| Duration::from_millis(50 << doubled));
        let found = patience.map(|patience| {
            let stages = Numbers {
                hangs_from: Some(500),
                ..numbers()
            };
            let cancel = Cancel::after(patience);
            let (all, ending) = run(stages, 0..u64::MAX / 2, Vec::new(), &cancel).unwrap();
            assert_eq!(all, (0..all.len() as u64).collect::<Vec<_>>());
            assert!(all.len() <= 500, "{}", all.len());
            assert_eq!(ending, RunEnd::Expired);
            all.len()
        });
        assert!(found.into_iter().any(|found| found > 0));
    }

    #[test]
    fn cancelling_is_an_error() {
        let cancel = Cancel::never();
        let stages = Numbers {
            hangs_from: Some(500),
            ..numbers()
        };
        let outcome = std::thread::scope(|scope| {
            let running = scope.spawn(|| run(stages, 0..u64::MAX / 2, Vec::new(), &cancel));
            cancel.cancel();
            running.join().unwrap()
        });
        assert!(matches!(outcome, Err(Error::Cancelled)));
    }

    #[test]
    fn a_panic_fails_its_call_only() {
        let stages = Numbers {
            panics_at: Some(1234),
            ..numbers()
        };
        let outcome = run(stages, 0..u64::MAX / 2, Vec::new(), &Cancel::never());
        assert!(matches!(outcome, Err(Error::Io { .. })));
        everything_comes_in_order();
    }

    /// A source that waits at its third batch until it is told to go on.
    struct SlowSource {
        waits: Sender<()>,
        goes_on: Mutex<Receiver<()>>,
    }

    impl Stages for SlowSource {
        type Source = Range<u64>;
        type Batch = u64;
        type Found = bool;
        type Outcome = bool;

        fn pull(&self, source: &mut Range<u64>) -> Option<u64> {
            let number = source.next()?;
            if number == 3 {
                self.waits.send(()).unwrap();
                let goes_on = self.goes_on.lock().unwrap();
                goes_on.recv_timeout(Duration::from_secs(10)).ok()?;
            }
            Some(number)
        }

        fn split(&self, batch: u64) -> (u64, Option<u64>) {
            (batch, None)
        }

        fn work(&self, batch: u64, _: &Halt) -> Worked<bool, u64> {
            Worked {
                found: Some(batch > 3),
                rest: None,
            }
        }

        fn commit(&self, outcome: &mut bool, found: bool) -> ControlFlow<()> {
            *outcome |= found;
            ControlFlow::Continue(())
        }
    }

    #[test]
    fn a_slow_source_holds_one_worker_only() {
        if Pool::get().workers() < 2 {
            return;
        }
        let ((waits, waiting), (go_on, goes_on)) = (channel(), channel());
        let slow = SlowSource {
            waits,
            goes_on: Mutex::new(goes_on),
        };
        std::thread::scope(|scope| {
            let slow_run = scope.spawn(|| run(slow, 0..100, false, &Cancel::never()));
            waiting.recv().unwrap();
            for _ in 0..20 {
                everything_comes_in_order();
            }
            go_on.send(()).unwrap();
            let outcome = slow_run.join().unwrap().unwrap();
            assert_eq!(outcome, (true, RunEnd::Complete), "the others waited");
        });
    }

    #[test]
    fn a_panic_of_the_source_fails_its_call_only() {
        let (waits, waiting) = channel();
        drop(waiting);
        let broken = SlowSource {
            waits,
            goes_on: Mutex::new(channel().1),
        };
        let outcome = run(broken, 0..100, false, &Cancel::never());
        assert!(matches!(outcome, Err(Error::Io { .. })));
        everything_comes_in_order();
    }

    #[test]
    fn many_runs_at_once_all_end() {
        std::thread::scope(|scope| {
            for _ in 0..16 {
                scope.spawn(everything_comes_in_order);
            }
        });
    }
}
