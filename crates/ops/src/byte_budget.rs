//! One budget for the bytes that clients make the process hold: request bodies, replies, session streams, uploads.
//!
//! Each client has a share of it, so that no client can take all of it. Small things are not counted: the number of
//! connections and of calls bounds them.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::thread;
use std::time::{Duration, Instant};

use crate::byte_budget_line::{Waiter, WaitingLine, Wakes};
use crate::context::Cancel;
use crate::error::{Error, Result};
use crate::pool;

/// Contents up to this size are not counted.
pub const SMALL_BYTES: u64 = 64 * 1024;
/// How many copies of a content are in memory until its reply is written: as read, as JSON, and in the message's
/// halves.
pub(crate) const COPIES: u64 = 4;
/// How many times longer than a read a search waits: it has already begun, and its caller expects it to take longer.
const GATHER_PATIENCE: u32 = 20;
/// How often work that waits for room checks whether its caller gave up.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// How many bytes may be held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ByteLimits {
    /// By all clients together.
    pub all: u64,
    /// By one client.
    pub of_one: u64,
}

/// Why there is no room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OverBudget {
    /// The client has used up its share.
    Own,
    /// All clients together have used up the budget.
    All,
}

/// The budget of a process.
#[derive(Debug)]
pub struct ByteBudget {
    limits: ByteLimits,
    held: Mutex<BudgetState>,
    freed: Condvar,
}

#[derive(Debug, Default)]
struct BudgetState {
    all: u64,
    of: HashMap<Arc<str>, u64>,
    /// How many contents larger than a share are held. One at a time is let in beyond the budget; a reply that already
    /// exists is counted here too.
    oversize: usize,
    /// The number of the room whose call may gather more than there is room for. At most one call may exceed the
    /// budget.
    growing: Option<u64>,
    line: WaitingLine,
}

impl ByteBudget {
    /// A budget of which nothing is used.
    #[must_use]
    pub fn new(limits: ByteLimits) -> Arc<ByteBudget> {
        Arc::new(ByteBudget {
            limits,
            held: Mutex::default(),
            freed: Condvar::new(),
        })
    }

    /// Reserves bytes for a client if there is room now.
    pub fn try_reserve(
        self: &Arc<ByteBudget>,
        client: &Arc<str>,
        bytes: u64,
    ) -> Result<Reserved, OverBudget> {
        let mut reserved = self.nothing(client);
        reserved.try_resize(bytes).map(|()| reserved)
    }

    /// Waits until there is room for so many bytes of a client.
    #[must_use]
    pub fn reserve(self: &Arc<ByteBudget>, client: &Arc<str>, bytes: u64) -> Reserving {
        Reserving {
            place: None,
            reserved: Some(self.nothing(client)),
            bytes,
            reason: OverBudget::Own,
        }
    }

    /// Counts bytes that are held already, whether or not there is room.
    #[must_use]
    pub fn hold(self: &Arc<ByteBudget>, client: &Arc<str>, bytes: u64) -> Reserved {
        let mut reserved = self.nothing(client);
        reserved.resize(bytes);
        reserved
    }

    /// Whether a client has more than its share, or all clients have too much.
    #[must_use]
    pub fn is_over(&self, client: &str) -> bool {
        let held = self.held();
        held.all > self.limits.all || held.of(client) > self.limits.of_one
    }

    /// How many bytes are held.
    #[must_use]
    pub fn bytes_held(&self) -> u64 {
        self.held().of.values().sum()
    }

    fn nothing(self: &Arc<ByteBudget>, client: &Arc<str>) -> Reserved {
        Reserved {
            budget: Arc::clone(self),
            client: Arc::clone(client),
            bytes: 0,
        }
    }

    fn is_oversize(&self, bytes: u64) -> bool {
        bytes > self.limits.of_one.min(self.limits.all)
    }

    /// Says whether a client may have `new` bytes in the place of `old` ones.
    fn check(
        &self,
        held: &BudgetState,
        client: &str,
        old: u64,
        new: u64,
    ) -> Result<(), OverBudget> {
        let others_of_client = held.of(client).saturating_sub(old);
        if self.is_oversize(new) {
            // A single content is served whatever its size. Otherwise a file that other limits allow could never be
            // read.
            let is_taken = held.oversize > 0 && !self.is_oversize(old);
            let has_much = others_of_client > self.limits.of_one / 2;
            return match (has_much, is_taken) {
                (true, _) => Err(OverBudget::Own),
                (false, true) => Err(OverBudget::All),
                (false, false) => Ok(()),
            };
        }
        if others_of_client.saturating_add(new) > self.limits.of_one {
            return Err(OverBudget::Own);
        }
        let counted = if self.is_oversize(old) { 0 } else { old };
        let others = held.all.saturating_sub(counted);
        if others.saturating_add(new) > self.limits.all {
            return Err(OverBudget::All);
        }
        Ok(())
    }

    fn count(&self, held: &mut BudgetState, client: &Arc<str>, old: u64, new: u64) {
        let own = held.of.entry(Arc::clone(client)).or_default();
        *own = own.saturating_sub(old).saturating_add(new);
        if *own == 0 {
            held.of.remove(client);
        }
        if self.is_oversize(old) {
            held.oversize = held.oversize.saturating_sub(1);
        } else {
            held.all = held.all.saturating_sub(old);
        }
        if self.is_oversize(new) {
            held.oversize += 1;
        } else {
            held.all = held.all.saturating_add(new);
        }
        if new < old {
            self.wake(held);
            self.freed.notify_all();
        }
    }

    /// Wakes those who can have what is free.
    fn wake(&self, held: &BudgetState) {
        held.line.wake(|waiting| {
            let Waiter {
                client, old, new, ..
            } = waiting;
            self.check(held, client, *old, *new).is_ok()
        });
    }

    fn held(&self) -> MutexGuard<'_, BudgetState> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl BudgetState {
    fn of(&self, client: &str) -> u64 {
        self.of.get(client).copied().unwrap_or_default()
    }
}

/// Bytes of a client in the budget, until this is dropped.
#[derive(Debug)]
pub struct Reserved {
    budget: Arc<ByteBudget>,
    client: Arc<str>,
    bytes: u64,
}

impl Reserved {
    /// How many they are.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Changes the number of bytes, whether or not there is room.
    pub fn resize(&mut self, bytes: u64) {
        if bytes != self.bytes {
            let mut held = self.budget.held();
            self.budget
                .count(&mut held, &self.client, self.bytes, bytes);
            self.bytes = bytes;
        }
    }

    /// Changes the number of bytes if there is room.
    pub fn try_resize(&mut self, bytes: u64) -> Result<(), OverBudget> {
        let budget = Arc::clone(&self.budget);
        self.resize_held(&mut budget.held(), bytes)
    }

    /// Adds bytes; waits on this thread if there is no room.
    fn resize_within(&mut self, bytes: u64, patience: Duration, cancel: &Cancel) -> Result<()> {
        let end = Instant::now() + patience;
        let place = PlaceInLine::new(&self.budget);
        loop {
            let mut held = place.budget.held();
            if self.resize_held(&mut held, bytes).is_ok() {
                return Ok(());
            }
            held.line.wait(Waiter {
                number: place.number,
                client: Arc::clone(&self.client),
                old: self.bytes,
                new: bytes,
                wakes: Wakes::Thread(thread::current()),
            });
            drop(held);
            cancel.check()?;
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(Error::NoRoom { bytes });
            }
            thread::park_timeout(left.min(LOOK_EVERY));
        }
    }

    fn resize_held(&mut self, held: &mut BudgetState, bytes: u64) -> Result<(), OverBudget> {
        let budget = &self.budget;
        budget.check(held, &self.client, self.bytes, bytes)?;
        budget.count(held, &self.client, self.bytes, bytes);
        self.bytes = bytes;
        Ok(())
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        self.resize(0);
    }
}

/// A place in the line of those who wait. Who leaves it, served or not, lets the next one look.
#[derive(Debug)]
struct PlaceInLine {
    budget: Arc<ByteBudget>,
    number: u64,
}

impl PlaceInLine {
    fn new(budget: &Arc<ByteBudget>) -> PlaceInLine {
        PlaceInLine {
            number: budget.held().line.number(),
            budget: Arc::clone(budget),
        }
    }
}

impl Drop for PlaceInLine {
    fn drop(&mut self) {
        let mut held = self.budget.held();
        held.line.leave(self.number);
        self.budget.wake(&held);
    }
}

/// Waits for room.
#[derive(Debug)]
pub struct Reserving {
    /// Once it had to wait.
    place: Option<PlaceInLine>,
    reserved: Option<Reserved>,
    bytes: u64,
    reason: OverBudget,
}

impl Reserving {
    /// Why it waits.
    #[must_use]
    pub fn reason(&self) -> OverBudget {
        self.reason
    }
}

impl Future for Reserving {
    type Output = Reserved;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Reserved> {
        let Some(mut reserved) = self.reserved.take() else {
            return Poll::Pending;
        };
        let (budget, bytes) = (Arc::clone(&reserved.budget), self.bytes);
        let mut held = budget.held();
        let Err(reason) = reserved.resize_held(&mut held, bytes) else {
            drop(held);
            self.place = None;
            return Poll::Ready(reserved);
        };
        let number = match &self.place {
            Some(place) => place.number,
            None => held.line.number(),
        };
        held.line.wait(Waiter {
            number,
            client: Arc::clone(&reserved.client),
            old: 0,
            new: bytes,
            wakes: Wakes::Task(context.waker().clone()),
        });
        drop(held);
        self.place
            .get_or_insert_with(|| PlaceInLine { budget, number });
        self.reason = reason;
        self.reserved = Some(reserved);
        Poll::Pending
    }
}

/// The room for the reply of one call. It is taken before content is read, and kept until the reply is written.
#[derive(Debug)]
pub struct ReplyRoom {
    budget: Arc<ByteBudget>,
    client: Arc<str>,
    /// How long work waits for room.
    patience: Duration,
    reserved: Mutex<Option<Reserved>>,
    /// Identifies this room among all others.
    number: u64,
    /// Whether it may have the turn to grow beyond the budget. Most calls never do, and need not look.
    may_have_turn: AtomicBool,
}

/// How many rooms there were.
static ROOMS: AtomicU64 = AtomicU64::new(0);

impl Drop for ReplyRoom {
    fn drop(&mut self) {
        self.stop_growing();
    }
}

impl ReplyRoom {
    /// No room yet, for a call of a client.
    #[must_use]
    pub fn new(budget: Arc<ByteBudget>, client: Arc<str>, patience: Duration) -> ReplyRoom {
        ReplyRoom {
            budget,
            client,
            patience,
            reserved: Mutex::default(),
            number: ROOMS.fetch_add(1, Ordering::Relaxed),
            may_have_turn: AtomicBool::new(false),
        }
    }

    /// Takes room for content that is about to be read, with the copies that its reply needs. Waits on this thread, but
    /// never while holding room: two calls that did so could wait for each other.
    pub(crate) fn take_for_content(&self, bytes: u64, cancel: &Cancel) -> Result<()> {
        if bytes <= SMALL_BYTES {
            return Ok(());
        }
        // Declared before the lock, so that the thread waits for its next seat without it.
        let _aside;
        let mut reserved = self.reserved();
        let own = reserved.get_or_insert_with(|| self.budget.nothing(&self.client));
        let wanted = own.bytes().saturating_add(bytes.saturating_mul(COPIES));
        if own.try_resize(wanted).is_ok() {
            return Ok(());
        }
        if own.bytes() > 0 {
            return Err(Error::NoRoom { bytes: wanted });
        }
        _aside = pool::step_aside(cancel);
        own.resize_within(wanted, self.patience, cancel)
    }

    /// Grows a search's reservation if there is room, or if this call is the one allowed to exceed
    /// the budget. Never blocks; without room it releases what it holds.
    pub(crate) fn try_grow(&self, bytes: u64) -> Result<(), OverBudget> {
        let mut reserved = self.reserved();
        let own = reserved.get_or_insert_with(|| self.budget.nothing(&self.client));
        if own.try_resize(bytes).is_ok() {
            return Ok(());
        }
        let mut held = self.budget.held();
        if own.bytes > 0 && self.may_begin_growing(&held, own) {
            self.begin_growing(&mut held);
        }
        let may_grow = held.growing == Some(self.number);
        let bytes = if may_grow { bytes } else { 0 };
        let budget = &self.budget;
        budget.count(&mut held, &self.client, own.bytes, bytes);
        own.bytes = bytes;
        may_grow.then_some(()).ok_or(OverBudget::Own)
    }

    /// Waits for this much room while holding none. Only for the thread of a call: calls that have room need the pool's
    /// threads.
    pub(crate) fn wait_to_grow(&self, bytes: u64, cancel: &Cancel) -> Result<()> {
        // Declared before the lock, so that the thread waits for its next seat without it.
        let _aside = pool::step_aside(cancel);
        let mut reserved = self.reserved();
        let own = reserved.get_or_insert_with(|| self.budget.nothing(&self.client));
        self.grow_within(own, bytes, cancel)
    }

    /// Waits for room, or for the turn to continue without it. One of the waiting calls can always end, so calls that
    /// hold room while they wait do not wait for each other.
    fn grow_within(&self, own: &mut Reserved, bytes: u64, cancel: &Cancel) -> Result<()> {
        let end = Instant::now() + self.patience * GATHER_PATIENCE;
        let budget = &self.budget;
        let mut held = budget.held();
        loop {
            let check = budget.check(&held, &self.client, own.bytes, bytes);
            if check.is_err() && self.may_begin_growing(&held, own) {
                self.begin_growing(&mut held);
            }
            if check.is_ok() || held.growing == Some(self.number) {
                budget.count(&mut held, &self.client, own.bytes, bytes);
                own.bytes = bytes;
                return Ok(());
            }
            cancel.check()?;
            if Instant::now() >= end {
                return Err(Error::NoRoom { bytes });
            }
            let woken = budget.freed.wait_timeout(held, LOOK_EVERY);
            (held, _) = woken.unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Whether this call may grow beyond the budget. Not while its client has many unread bytes: otherwise each
    /// finished reply would let in another, however many are unread.
    fn may_begin_growing(&self, held: &BudgetState, own: &Reserved) -> bool {
        let others_of_client = held.of(&self.client).saturating_sub(own.bytes);
        held.growing.is_none() && others_of_client <= self.budget.limits.of_one / 2
    }

    /// Takes the turn to grow beyond the budget.
    fn begin_growing(&self, held: &mut BudgetState) {
        held.growing = Some(self.number);
        self.may_have_turn.store(true, Ordering::Relaxed);
    }

    /// Gives the turn to grow beyond the budget to another call.
    fn stop_growing(&self) {
        if !self.may_have_turn.load(Ordering::Relaxed) {
            return;
        }
        let mut held = self.budget.held();
        if held.growing == Some(self.number) {
            held.growing = None;
            self.budget.freed.notify_all();
        }
    }

    /// Makes the room as large as the reply, if there is room for it.
    pub fn try_fit(&self, bytes: u64) -> Result<(), OverBudget> {
        let mut reserved = self.reserved();
        match reserved.as_mut() {
            Some(own) if own.bytes() >= bytes => Ok(()),
            None if bytes <= SMALL_BYTES => Ok(()),
            Some(own) => own.try_resize(bytes),
            None => {
                *reserved = Some(self.budget.try_reserve(&self.client, bytes)?);
                Ok(())
            }
        }
    }

    /// Hands the room over to the writer of the reply, which has this many bytes. Never refuses, because the call has
    /// already had its effect.
    #[must_use]
    pub fn hand_over(&self, bytes: u64) -> Option<Reserved> {
        let reserved = self.reserved().take();
        self.stop_growing();
        if bytes <= SMALL_BYTES {
            return None;
        }
        let mut reserved = reserved.unwrap_or_else(|| self.budget.nothing(&self.client));
        reserved.resize(bytes);
        Some(reserved)
    }

    /// Reserves bytes that outlive the call; `None` for zero bytes.
    pub fn keep(&self, bytes: u64) -> Result<Option<Reserved>, OverBudget> {
        if bytes == 0 {
            return Ok(None);
        }
        self.budget.try_reserve(&self.client, bytes).map(Some)
    }

    fn reserved(&self) -> MutexGuard<'_, Option<Reserved>> {
        self.reserved.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::task::Waker;

    const MIB: u64 = 1024 * 1024;

    fn budget() -> Arc<ByteBudget> {
        ByteBudget::new(ByteLimits {
            all: 10 * MIB,
            of_one: 4 * MIB,
        })
    }

    fn client(name: &str) -> Arc<str> {
        name.into()
    }

    #[test]
    fn one_client_has_a_share_and_all_have_a_bound() {
        let (budget, a, b, c) = (budget(), client("a"), client("b"), client("c"));
        let first = budget.try_reserve(&a, 4 * MIB).unwrap();
        assert_eq!(budget.try_reserve(&a, 1).unwrap_err(), OverBudget::Own);
        let second = budget.try_reserve(&b, 4 * MIB).unwrap();
        assert_eq!(
            budget.try_reserve(&c, 3 * MIB).unwrap_err(),
            OverBudget::All
        );
        let third = budget.try_reserve(&c, 2 * MIB).unwrap();
        drop(first);
        assert!(budget.try_reserve(&a, 3 * MIB).is_ok());
        drop((second, third));
        assert_eq!(budget.bytes_held(), 0);
        assert!(budget.held().of.is_empty());
    }

    #[test]
    fn what_is_larger_than_a_share_is_served_alone() {
        let (budget, a, b) = (budget(), client("a"), client("b"));
        let large = budget.try_reserve(&a, 100 * MIB).unwrap();
        assert_eq!(
            budget.try_reserve(&b, 100 * MIB).unwrap_err(),
            OverBudget::All
        );
        assert_eq!(budget.try_reserve(&a, 1).unwrap_err(), OverBudget::Own);
        assert!(
            budget.try_reserve(&b, 4 * MIB).is_ok(),
            "others have their share"
        );
        drop(large);
        let mut large = budget.try_reserve(&b, 100 * MIB).unwrap();
        large.resize(3 * MIB);
        assert!(
            budget.try_reserve(&a, 100 * MIB).is_ok(),
            "it is small by now"
        );
        assert_eq!(budget.held().all, 3 * MIB);
    }

    #[test]
    fn what_is_held_already_is_counted_beyond_the_share() {
        let (budget, a) = (budget(), client("a"));
        let first = budget.hold(&a, 3 * MIB);
        let second = budget.hold(&a, 3 * MIB);
        assert!(budget.is_over("a") && !budget.is_over("b"));
        drop((first, second));
        assert!(!budget.is_over("a"));
    }

    #[test]
    fn work_waits_for_room_and_gives_up_in_time() {
        let (budget, a) = (budget(), client("a"));
        let held = budget.try_reserve(&a, 3 * MIB).unwrap();
        let room = ReplyRoom::new(Arc::clone(&budget), Arc::clone(&a), Duration::ZERO);
        let refused = room.take_for_content(MIB / 2, &Cancel::never());
        assert!(matches!(refused, Err(Error::NoRoom { bytes }) if bytes == 2 * MIB));
        let patient = ReplyRoom::new(Arc::clone(&budget), a, Duration::from_secs(60));
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| patient.take_for_content(MIB / 2, &Cancel::never()));
            drop(held);
            waiting.join().unwrap().unwrap();
        });
        let reply = patient.hand_over(MIB);
        assert_eq!(budget.bytes_held(), MIB);
        drop(reply);
        assert_eq!(budget.bytes_held(), 0);
    }

    #[test]
    fn of_those_that_gather_one_can_always_go_on() {
        let (budget, a) = (budget(), client("a"));
        let room = |patience| ReplyRoom::new(Arc::clone(&budget), Arc::clone(&a), patience);
        let (first, second) = (room(Duration::ZERO), room(Duration::from_secs(60)));
        let hasty = room(Duration::ZERO);
        let never = Cancel::never();
        for room in [&first, &second, &hasty] {
            room.try_grow(MIB).unwrap();
        }
        // This is the one that may exceed the share.
        first.try_grow(3 * MIB).unwrap();
        first.try_grow(30 * MIB).unwrap();
        assert_eq!(budget.bytes_held(), 32 * MIB);
        assert!(second.try_grow(4 * MIB).is_err());
        assert!(hasty.try_grow(4 * MIB).is_err());
        assert_eq!(
            budget.bytes_held(),
            30 * MIB,
            "they gave back what they had"
        );
        let refused = hasty.wait_to_grow(MIB, &never);
        assert!(matches!(refused, Err(Error::NoRoom { .. })));
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| second.wait_to_grow(20 * MIB, &never));
            drop(first.hand_over(0));
            waiting.join().unwrap().unwrap();
        });
        assert_eq!(budget.bytes_held(), 20 * MIB);
        drop((first, second, hasty));
        assert_eq!(budget.bytes_held(), 0);
        assert!(budget.held().growing.is_none());
    }

    #[test]
    fn who_has_much_to_read_may_not_grow_beyond_the_budget() {
        let (budget, a) = (budget(), client("a"));
        let room = ReplyRoom::new(Arc::clone(&budget), Arc::clone(&a), Duration::ZERO);
        let never = Cancel::never();
        let unread = budget.hold(&a, 3 * MIB);
        room.try_grow(MIB).unwrap();
        assert!(room.try_grow(2 * MIB).is_err());
        assert!(room.wait_to_grow(20 * MIB, &never).is_err());
        let other = ReplyRoom::new(Arc::clone(&budget), client("b"), Duration::ZERO);
        other.wait_to_grow(20 * MIB, &never).unwrap();
        drop((unread, other));
        room.wait_to_grow(20 * MIB, &never).unwrap();
    }

    #[test]
    fn a_reply_that_is_made_is_handed_over_whatever_is_held() {
        let (budget, a) = (budget(), client("a"));
        let held = budget.hold(&a, 4 * MIB);
        let room = ReplyRoom::new(Arc::clone(&budget), a, Duration::ZERO);
        assert!(room.try_fit(SMALL_BYTES).is_ok() && room.hand_over(SMALL_BYTES).is_none());
        assert_eq!(room.try_fit(MIB).unwrap_err(), OverBudget::Own);
        let reply = room.hand_over(MIB).unwrap();
        assert_eq!(reply.bytes(), MIB);
        assert_eq!(budget.bytes_held(), 5 * MIB);
        drop(held);
    }

    #[test]
    fn a_future_is_woken_when_there_is_room() {
        let (budget, a) = (budget(), client("a"));
        let held = budget.try_reserve(&a, 4 * MIB).unwrap();
        let mut waiting = Box::pin(budget.reserve(&a, MIB));
        let mut context = Context::from_waker(Waker::noop());
        assert!(waiting.as_mut().poll(&mut context).is_pending());
        assert_eq!(waiting.reason(), OverBudget::Own);
        assert!(waiting.as_mut().poll(&mut context).is_pending());
        assert_eq!(budget.held().line.len(), 1);
        drop(held);
        assert!(waiting.as_mut().poll(&mut context).is_ready());
        assert_eq!(budget.held().line.len(), 0);
    }
}
