//! Limits how many calls run and how many wait. Clients that wait take turns, and heavy calls leave room for small ones.
//!
//! Without turns, a client that sends a thousand calls at once would keep every other client waiting behind them. Without
//! the room, calls that take minutes would keep out those that take microseconds. And a root that does not answer, as a
//! network file system may not, holds up its own calls only: the client's calls in other roots find room too.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use crate::tool::Weight;

/// How many calls may wait for each that may run.
const WAITING_PER_RUNNING: usize = 16;
/// How many slots a client may hold for each free one, counted separately for small and heavy calls. A client that is
/// alone gets three quarters, so one that comes later still finds some.
const SHARE: usize = 3;
/// How many small calls of a client run at once for each core while other clients call too, and at least. They are as urgent as
/// everybody's, and what they wait for (a directory's lock, the journal) is shared: a hundred at once would be a hundred before
/// the next client's one.
const SMALL_BESIDE_OTHERS_PER_CORE: usize = 4;
const SMALL_BESIDE_OTHERS_MIN: usize = 8;
/// How long after another client's call a client counts as one of several. An agent thinks for some seconds between its calls,
/// and its next one must not find a hundred calls of another client before it.
const COMPANY: Duration = Duration::from_secs(60);

/// The client of a call and the roots it works in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Turn {
    client: Arc<str>,
    roots: RootPair,
}

/// The roots of a call, told apart by numbers; zeros if they do not matter.
type RootPair = [usize; 2];

impl Turn {
    /// A call of a client in some roots.
    pub(crate) fn new(client: &Arc<str>, roots: RootPair) -> Turn {
        Turn {
            client: Arc::clone(client),
            roots,
        }
    }

    fn has_roots(&self) -> bool {
        self.roots != RootPair::default()
    }
}

impl<Client: Into<Arc<str>>> From<Client> for Turn {
    fn from(client: Client) -> Turn {
        Turn {
            client: client.into(),
            roots: RootPair::default(),
        }
    }
}

/// Shares out the right to run.
#[derive(Debug)]
pub(crate) struct CallSlots {
    /// The operator may change it while calls run.
    most_running: AtomicUsize,
    /// How many small calls of a client run at once while others call.
    small_beside_others: usize,
    calls: Mutex<WaitingCalls>,
}

#[derive(Debug, Default)]
struct WaitingCalls {
    running: SlotCount,
    running_of: HashMap<Arc<str>, ClientCount>,
    small: ClientLine,
    heavy: ClientLine,
    company: Company,
}

/// Whether several clients call.
#[derive(Debug, Default)]
struct Company {
    last: Option<Arc<str>>,
    until: Option<Instant>,
}

impl Company {
    /// Notes who calls.
    fn note(&mut self, client: &Arc<str>, now: Instant) {
        let before = self.last.as_ref();
        if before == Some(client) {
            return;
        }
        if before.is_some() {
            self.until = Some(now + COMPANY);
        }
        self.last = Some(Arc::clone(client));
    }

    fn is_there(&self, now: Instant) -> bool {
        self.until.is_some_and(|until| now < until)
    }
}

/// How many slots a client holds.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct SlotCount {
    small: usize,
    heavy: usize,
}

/// How many slots a client has, in all and in each of its roots.
#[derive(Debug, Default)]
struct ClientCount {
    all: SlotCount,
    by_roots: Vec<(RootPair, SlotCount)>,
}

/// Calls that wait, by client.
#[derive(Debug, Default)]
struct ClientLine {
    waiting: usize,
    /// The clients that wait, the next to be served first.
    order: VecDeque<Arc<str>>,
    queues: HashMap<Arc<str>, WaitingOfClient>,
}

/// The calls of one client that wait, by their roots; the roots whose turn is next come first.
#[derive(Debug, Default)]
struct WaitingOfClient {
    by_roots: VecDeque<(RootPair, VecDeque<oneshot::Sender<CallSlot>>)>,
}

/// The right to run, until it is dropped.
#[derive(Debug)]
pub(crate) struct CallSlot {
    slots: Option<Arc<CallSlots>>,
    turn: Turn,
    weight: Weight,
}

/// Too many calls wait already.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct QueueFull;

impl CallSlots {
    pub(crate) fn new(most_running: usize) -> Arc<CallSlots> {
        Arc::new(CallSlots {
            most_running: AtomicUsize::new(most_running.max(1)),
            small_beside_others: small_beside_others(),
            calls: Mutex::default(),
        })
    }

    /// Lets another number of calls run. Those beyond it that run already run to their end.
    pub(crate) fn resize(self: &Arc<CallSlots>, most_running: usize) {
        let mut calls = self.calls();
        self.most_running
            .store(most_running.max(1), Ordering::Relaxed);
        self.hand_out(&mut calls);
    }

    fn most_running(&self) -> usize {
        self.most_running.load(Ordering::Relaxed)
    }

    /// The most slots that heavy calls may have, all together.
    fn most_heavy(&self) -> usize {
        let most = self.most_running();
        let for_small_calls = (most / 4).max(1);
        (most - for_small_calls).max(1)
    }

    fn most_waiting(&self) -> usize {
        self.most_running().saturating_mul(WAITING_PER_RUNNING)
    }

    /// Takes a slot if the call need not wait for one.
    pub(crate) fn try_take(self: &Arc<CallSlots>, turn: &Turn, weight: Weight) -> Option<CallSlot> {
        self.take_free(&mut self.calls(), turn, weight)
    }

    /// Waits for a slot. Dropping the future gives up the place in line.
    pub(crate) async fn take(
        self: &Arc<CallSlots>,
        turn: &Turn,
        weight: Weight,
    ) -> Result<CallSlot, QueueFull> {
        let waiting = {
            // One lock for both steps: a slot freed between two locks would wake nobody.
            let mut calls = self.calls();
            if calls.small.waiting > 0 && !calls.company.is_there(Instant::now()) {
                // Those that waited beside others may be alone by now.
                self.hand_out(&mut calls);
            }
            if let Some(slot) = self.take_free(&mut calls, turn, weight) {
                return Ok(slot);
            }
            let line = calls.line_mut(weight);
            if self.is_full(line, turn) {
                line.forget_the_gone();
            }
            if self.is_full(line, turn) {
                return Err(QueueFull);
            }
            line.enqueue(turn)
        };
        // The sender is only dropped with the whole table.
        waiting.await.map_err(|_| QueueFull)
    }

    fn take_free(
        self: &Arc<CallSlots>,
        calls: &mut WaitingCalls,
        turn: &Turn,
        weight: Weight,
    ) -> Option<CallSlot> {
        calls.company.note(&turn.client, Instant::now());
        let may_run = self.may_run(calls, &turn.client, turn.roots, weight);
        may_run.then(|| self.slot(calls, turn.clone(), weight))
    }

    /// Tells whether a call has to be sent away. No client can fill the line for others: it gets half of it at most, and
    /// one that has no call in it always finds a place. One of its roots gets half of that.
    fn is_full(&self, line: &ClientLine, turn: &Turn) -> bool {
        let Some(queue) = line.queues.get(&turn.client) else {
            return false;
        };
        let (own, in_roots) = (queue.len(), queue.len_in(turn.roots));
        let most = self.most_waiting();
        let is_root_full = turn.has_roots() && in_roots >= most / 4;
        let is_client_full = line.waiting >= most || own >= most / 2;
        in_roots > 0 && (is_client_full || is_root_full)
    }

    /// Tells whether a client may have one more slot: there is one, and it has less than its share of that kind. Its
    /// heavy calls do not count against its small ones, which must not wait for them either. What it holds in the same
    /// roots has to be less than what is left of its share, so that its other roots still get some.
    fn may_run(&self, calls: &WaitingCalls, client: &str, roots: RootPair, weight: Weight) -> bool {
        let (own, in_roots) = calls.count_of(client, roots);
        let free = self.most_running().saturating_sub(calls.running.all());
        let free = match weight {
            Weight::Small => free,
            Weight::Heavy => free.min(self.most_heavy().saturating_sub(calls.running.heavy)),
        };
        let share = match weight {
            Weight::Small if calls.company.is_there(Instant::now()) => {
                free.saturating_mul(SHARE).min(self.small_beside_others)
            }
            Weight::Small | Weight::Heavy => free.saturating_mul(SHARE),
        };
        let left = share.saturating_sub(own.get(weight));
        left > 0 && (roots == RootPair::default() || in_roots.get(weight) < left)
    }

    /// How many calls run and how many wait.
    pub(crate) fn counts(&self) -> (usize, usize) {
        let calls = self.calls();
        (
            calls.running.all(),
            calls.small.waiting + calls.heavy.waiting,
        )
    }

    fn slot(
        self: &Arc<CallSlots>,
        calls: &mut WaitingCalls,
        turn: Turn,
        weight: Weight,
    ) -> CallSlot {
        calls.begin(&turn, weight);
        CallSlot {
            slots: Some(Arc::clone(self)),
            turn,
            weight,
        }
    }

    /// Takes back a slot, and hands free slots to the calls that are next in line.
    fn pass_on(self: Arc<CallSlots>, turn: &Turn, weight: Weight) {
        let mut calls = self.calls();
        calls.end(turn, weight);
        self.hand_out(&mut calls);
    }

    /// Hands free slots to the calls that are next in line.
    fn hand_out(self: &Arc<CallSlots>, calls: &mut WaitingCalls) {
        for weight in [Weight::Small, Weight::Heavy] {
            while let Some((turn, next)) = self.next(calls, weight) {
                let slot = self.slot(calls, turn, weight);
                if let Err(mut unwanted) = next.send(slot) {
                    // The caller gave up waiting. Dropping its slot here must not pass it on a second time.
                    unwanted.slots = None;
                    calls.end(&unwanted.turn, weight);
                }
            }
        }
    }

    /// Takes one call of the first client in line that may run it, and moves that client to the end of the line.
    fn next(
        &self,
        calls: &mut WaitingCalls,
        weight: Weight,
    ) -> Option<(Turn, oneshot::Sender<CallSlot>)> {
        let line = calls.line(weight);
        let mut clients = line.order.iter().enumerate();
        let (place, roots) = clients.find_map(|(place, client)| {
            let mut waiting = line.queues.get(client)?.roots();
            let roots = waiting.find(|roots| self.may_run(calls, client, *roots, weight))?;
            Some((place, roots))
        })?;
        calls.line_mut(weight).take(place, roots)
    }

    fn calls(&self) -> MutexGuard<'_, WaitingCalls> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn small_beside_others() -> usize {
    let cores = std::thread::available_parallelism().map_or(2, NonZeroUsize::get);
    (cores * SMALL_BESIDE_OTHERS_PER_CORE).max(SMALL_BESIDE_OTHERS_MIN)
}

impl WaitingCalls {
    fn line(&self, weight: Weight) -> &ClientLine {
        match weight {
            Weight::Small => &self.small,
            Weight::Heavy => &self.heavy,
        }
    }

    fn line_mut(&mut self, weight: Weight) -> &mut ClientLine {
        match weight {
            Weight::Small => &mut self.small,
            Weight::Heavy => &mut self.heavy,
        }
    }

    /// The slots that a client holds in total, and in these roots.
    fn count_of(&self, client: &str, roots: RootPair) -> (SlotCount, SlotCount) {
        let Some(own) = self.running_of.get(client) else {
            return Default::default();
        };
        let mut by_roots = own.by_roots.iter();
        let in_roots = by_roots.find(|(of, _)| *of == roots);
        (
            own.all,
            in_roots.map_or_else(SlotCount::default, |(_, count)| *count),
        )
    }

    fn begin(&mut self, turn: &Turn, weight: Weight) {
        *self.running.of(weight) += 1;
        let own = self.running_of.entry(Arc::clone(&turn.client)).or_default();
        *own.all.of(weight) += 1;
        match own.by_roots.iter_mut().find(|(of, _)| *of == turn.roots) {
            Some((_, count)) => *count.of(weight) += 1,
            None => {
                let mut count = SlotCount::default();
                *count.of(weight) += 1;
                own.by_roots.push((turn.roots, count));
            }
        }
    }

    fn end(&mut self, turn: &Turn, weight: Weight) {
        *self.running.of(weight) -= 1;
        if let Entry::Occupied(mut entry) = self.running_of.entry(Arc::clone(&turn.client)) {
            let own = entry.get_mut();
            *own.all.of(weight) -= 1;
            if let Some((_, count)) = own.by_roots.iter_mut().find(|(of, _)| *of == turn.roots) {
                *count.of(weight) -= 1;
            }
            own.by_roots.retain(|(_, count)| count.all() > 0);
            if own.all.all() == 0 {
                entry.remove();
            }
        }
    }
}

impl SlotCount {
    fn all(self) -> usize {
        self.small + self.heavy
    }

    fn get(mut self, weight: Weight) -> usize {
        *self.of(weight)
    }

    fn of(&mut self, weight: Weight) -> &mut usize {
        match weight {
            Weight::Small => &mut self.small,
            Weight::Heavy => &mut self.heavy,
        }
    }
}

impl ClientLine {
    fn enqueue(&mut self, turn: &Turn) -> oneshot::Receiver<CallSlot> {
        let (sender, receiver) = oneshot::channel();
        self.waiting += 1;
        if !self.queues.contains_key(&turn.client) {
            self.order.push_back(Arc::clone(&turn.client));
        }
        let queue = self.queues.entry(Arc::clone(&turn.client)).or_default();
        queue.push(turn.roots, sender);
        receiver
    }

    /// Makes room: an abandoned call otherwise stays in line until its turn.
    fn forget_the_gone(&mut self) {
        self.queues.retain(|_, queue| {
            queue.forget_the_gone();
            queue.len() > 0
        });
        self.order.retain(|client| self.queues.contains_key(client));
        self.waiting = self.queues.values().map(WaitingOfClient::len).sum();
    }

    /// Takes the first call in these roots of the client at a place in line, and moves that client to the end of the line.
    fn take(&mut self, place: usize, roots: RootPair) -> Option<(Turn, oneshot::Sender<CallSlot>)> {
        let client = self.order.remove(place)?;
        let queue = self.queues.get_mut(&client)?;
        let next = queue.take(roots)?;
        if queue.len() == 0 {
            self.queues.remove(&client);
        } else {
            self.order.push_back(Arc::clone(&client));
        }
        self.waiting -= 1;
        Some((Turn { client, roots }, next))
    }
}

impl WaitingOfClient {
    fn len(&self) -> usize {
        self.by_roots.iter().map(|(_, waiting)| waiting.len()).sum()
    }

    fn len_in(&self, roots: RootPair) -> usize {
        let mut groups = self.by_roots.iter();
        let group = groups.find(|(of, _)| *of == roots);
        group.map_or(0, |(_, waiting)| waiting.len())
    }

    fn roots(&self) -> impl Iterator<Item = RootPair> {
        self.by_roots.iter().map(|(roots, _)| *roots)
    }

    fn push(&mut self, roots: RootPair, sender: oneshot::Sender<CallSlot>) {
        match self.by_roots.iter_mut().find(|(of, _)| *of == roots) {
            Some((_, waiting)) => waiting.push_back(sender),
            None => self.by_roots.push_back((roots, VecDeque::from([sender]))),
        }
    }

    /// Takes the first call in these roots, and moves the roots behind the client's others.
    fn take(&mut self, roots: RootPair) -> Option<oneshot::Sender<CallSlot>> {
        let place = self.by_roots.iter().position(|(of, _)| *of == roots)?;
        let (roots, mut waiting) = self.by_roots.remove(place)?;
        let next = waiting.pop_front();
        if !waiting.is_empty() {
            self.by_roots.push_back((roots, waiting));
        }
        next
    }

    fn forget_the_gone(&mut self) {
        for (_, waiting) in &mut self.by_roots {
            waiting.retain(|one| !one.is_closed());
        }
        self.by_roots.retain(|(_, waiting)| !waiting.is_empty());
    }
}

impl Drop for CallSlot {
    fn drop(&mut self) {
        if let Some(slots) = self.slots.take() {
            slots.pass_on(&self.turn, self.weight);
        }
    }
}

#[cfg(test)]
mod tests;
