//! Limits how many calls run and how many wait. Clients that wait take turns, and heavy calls leave room for small ones.
//!
//! Without turns, a client that sends a thousand calls at once would keep every other client waiting behind them. Without
//! the room, calls that take minutes would keep out those that take microseconds.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

use crate::tool::Weight;

/// How many calls may wait for each that may run.
const WAITING_PER_RUNNING: usize = 16;
/// How many slots a client may have for small calls, and for heavy ones, for each that is free: alone it gets three
/// quarters, and a client that comes later still finds some.
const SHARE: usize = 3;

/// Shares out the right to run.
#[derive(Debug)]
pub(crate) struct CallSlots {
    most_running: usize,
    /// The most slots that heavy calls may have, all together.
    most_heavy: usize,
    most_waiting: usize,
    calls: Mutex<WaitingCalls>,
}

#[derive(Debug, Default)]
struct WaitingCalls {
    running: SlotCount,
    running_of: HashMap<Arc<str>, SlotCount>,
    small: ClientLine,
    heavy: ClientLine,
}

/// How many slots somebody has.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct SlotCount {
    small: usize,
    heavy: usize,
}

/// Calls that wait, by client.
#[derive(Debug, Default)]
struct ClientLine {
    waiting: usize,
    /// The clients that wait, the next to be served first.
    order: VecDeque<Arc<str>>,
    queues: HashMap<Arc<str>, VecDeque<oneshot::Sender<CallSlot>>>,
}

/// The right to run, until it is dropped.
#[derive(Debug)]
pub(crate) struct CallSlot {
    slots: Option<Arc<CallSlots>>,
    client: Arc<str>,
    weight: Weight,
}

/// Too many calls wait already.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct QueueFull;

impl CallSlots {
    pub(crate) fn new(most_running: usize) -> Arc<CallSlots> {
        let most_running = most_running.max(1);
        let for_small_calls = (most_running / 4).max(1);
        Arc::new(CallSlots {
            most_running,
            most_heavy: (most_running - for_small_calls).max(1),
            most_waiting: most_running.saturating_mul(WAITING_PER_RUNNING),
            calls: Mutex::default(),
        })
    }

    /// Takes a slot if the client need not wait for one.
    pub(crate) fn try_take(
        self: &Arc<CallSlots>,
        client: &Arc<str>,
        weight: Weight,
    ) -> Option<CallSlot> {
        self.take_free(&mut self.calls(), client, weight)
    }

    /// Waits for a slot. Dropping the future gives the place in line up.
    pub(crate) async fn take(
        self: &Arc<CallSlots>,
        client: &Arc<str>,
        weight: Weight,
    ) -> Result<CallSlot, QueueFull> {
        let waiting = {
            // One lock for both: a slot that became free in between would wake nobody.
            let mut calls = self.calls();
            if let Some(slot) = self.take_free(&mut calls, client, weight) {
                return Ok(slot);
            }
            let line = calls.line_mut(weight);
            if self.is_full(line, client) {
                line.forget_the_gone();
            }
            if self.is_full(line, client) {
                return Err(QueueFull);
            }
            line.enqueue(client)
        };
        // The sender is only dropped with the whole table.
        waiting.await.map_err(|_| QueueFull)
    }

    fn take_free(
        self: &Arc<CallSlots>,
        calls: &mut WaitingCalls,
        client: &Arc<str>,
        weight: Weight,
    ) -> Option<CallSlot> {
        let may_run = self.may_run(calls, client, weight);
        may_run.then(|| self.slot(calls, Arc::clone(client), weight))
    }

    /// Tells whether a client has to be sent away. No client can fill the line for others: it gets half of it at most, and
    /// one that has no call in it always finds a place.
    fn is_full(&self, line: &ClientLine, client: &str) -> bool {
        let own = line.queues.get(client).map_or(0, VecDeque::len);
        own > 0 && (line.waiting >= self.most_waiting || own >= self.most_waiting / 2)
    }

    /// Tells whether a client may have one more slot: there is one, and it has less than its share of that kind. Its
    /// heavy calls do not count against its small ones, which must not wait for them either.
    fn may_run(&self, calls: &WaitingCalls, client: &str, weight: Weight) -> bool {
        let own = calls.count_of(client);
        let free = self.most_running - calls.running.all();
        match weight {
            Weight::Small => own.small < free.saturating_mul(SHARE),
            Weight::Heavy => {
                let free_heavy = free.min(self.most_heavy - calls.running.heavy);
                own.heavy < free_heavy.saturating_mul(SHARE)
            }
        }
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
        client: Arc<str>,
        weight: Weight,
    ) -> CallSlot {
        calls.begin(&client, weight);
        CallSlot {
            slots: Some(Arc::clone(self)),
            client,
            weight,
        }
    }

    /// Takes back a client's slot, and hands free slots to the calls that are next in line.
    fn pass_on(self: Arc<CallSlots>, client: &Arc<str>, weight: Weight) {
        let mut calls = self.calls();
        calls.end(client, weight);
        for weight in [Weight::Small, Weight::Heavy] {
            while let Some((client, next)) = self.next(&mut calls, weight) {
                let slot = self.slot(&mut calls, client, weight);
                if let Err(mut unwanted) = next.send(slot) {
                    // The caller gave up waiting. Dropping its slot here must not pass it on a second time.
                    unwanted.slots = None;
                    calls.end(&unwanted.client, weight);
                }
            }
        }
    }

    /// Takes one call of the first client in line that may run it, and moves that client to the end of the line.
    fn next(
        &self,
        calls: &mut WaitingCalls,
        weight: Weight,
    ) -> Option<(Arc<str>, oneshot::Sender<CallSlot>)> {
        let order = &calls.line(weight).order;
        let place = order
            .iter()
            .position(|client| self.may_run(calls, client, weight))?;
        calls.line_mut(weight).take(place)
    }

    fn calls(&self) -> MutexGuard<'_, WaitingCalls> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
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

    fn count_of(&self, client: &str) -> SlotCount {
        self.running_of.get(client).copied().unwrap_or_default()
    }

    fn begin(&mut self, client: &Arc<str>, weight: Weight) {
        *self.running.of(weight) += 1;
        let own = self.running_of.entry(Arc::clone(client)).or_default();
        *own.of(weight) += 1;
    }

    fn end(&mut self, client: &Arc<str>, weight: Weight) {
        *self.running.of(weight) -= 1;
        if let Some(own) = self.running_of.get_mut(client) {
            *own.of(weight) -= 1;
            if own.all() == 0 {
                self.running_of.remove(client);
            }
        }
    }
}

impl SlotCount {
    fn all(self) -> usize {
        self.small + self.heavy
    }

    fn of(&mut self, weight: Weight) -> &mut usize {
        match weight {
            Weight::Small => &mut self.small,
            Weight::Heavy => &mut self.heavy,
        }
    }
}

impl ClientLine {
    fn enqueue(&mut self, client: &Arc<str>) -> oneshot::Receiver<CallSlot> {
        let (sender, receiver) = oneshot::channel();
        self.waiting += 1;
        match self.queues.get_mut(client) {
            Some(queue) => queue.push_back(sender),
            None => {
                self.order.push_back(Arc::clone(client));
                let queue = VecDeque::from([sender]);
                self.queues.insert(Arc::clone(client), queue);
            }
        }
        receiver
    }

    /// Makes room: a call that was given up stays in line until it would be served.
    fn forget_the_gone(&mut self) {
        self.queues.retain(|_, queue| {
            queue.retain(|waiting| !waiting.is_closed());
            !queue.is_empty()
        });
        self.order.retain(|client| self.queues.contains_key(client));
        self.waiting = self.queues.values().map(VecDeque::len).sum();
    }

    /// Takes the first call of the client at a place in line, and moves that client to the end of the line.
    fn take(&mut self, place: usize) -> Option<(Arc<str>, oneshot::Sender<CallSlot>)> {
        let client = self.order.remove(place)?;
        let queue = self.queues.get_mut(&client)?;
        let next = queue.pop_front()?;
        if queue.is_empty() {
            self.queues.remove(&client);
        } else {
            self.order.push_back(Arc::clone(&client));
        }
        self.waiting -= 1;
        Some((client, next))
    }
}

impl Drop for CallSlot {
    fn drop(&mut self) {
        if let Some(slots) = self.slots.take() {
            slots.pass_on(&self.client, self.weight);
        }
    }
}

#[cfg(test)]
mod tests;
