//! Limits how many calls run and how many wait. Clients that wait take turns.
//!
//! Without turns, a client that sends a thousand calls at once would keep every other client waiting behind them.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

/// How many calls may wait for each that may run.
const WAITING_PER_RUNNING: usize = 16;

/// Shares out the right to run.
#[derive(Debug)]
pub(crate) struct CallSlots {
    most_running: usize,
    /// The most slots that one client may have: a quarter is kept for the others.
    most_of_one: usize,
    most_waiting: usize,
    calls: Mutex<WaitingCalls>,
}

#[derive(Debug, Default)]
struct WaitingCalls {
    running: usize,
    running_of: HashMap<Arc<str>, usize>,
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
}

/// Too many calls wait already.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct QueueFull;

impl CallSlots {
    pub(crate) fn new(most_running: usize) -> Arc<CallSlots> {
        let most_running = most_running.max(1);
        Arc::new(CallSlots {
            most_running,
            most_of_one: most_running - most_running / 4,
            most_waiting: most_running.saturating_mul(WAITING_PER_RUNNING),
            calls: Mutex::default(),
        })
    }

    /// Takes a slot if the client need not wait for one.
    pub(crate) fn try_take(self: &Arc<CallSlots>, client: &str) -> Option<CallSlot> {
        self.take_free(&mut self.calls(), client)
    }

    /// Waits for a slot. Dropping the future gives the place in line up.
    pub(crate) async fn take(self: &Arc<CallSlots>, client: &str) -> Result<CallSlot, QueueFull> {
        let waiting = {
            // One lock for both: a slot that became free in between would wake nobody.
            let mut calls = self.calls();
            if let Some(slot) = self.take_free(&mut calls, client) {
                return Ok(slot);
            }
            if calls.waiting >= self.most_waiting {
                calls.forget_the_gone();
            }
            if calls.waiting >= self.most_waiting {
                return Err(QueueFull);
            }
            calls.enqueue(client)
        };
        // The sender is only dropped with the whole table.
        waiting.await.map_err(|_| QueueFull)
    }

    fn take_free(
        self: &Arc<CallSlots>,
        calls: &mut WaitingCalls,
        client: &str,
    ) -> Option<CallSlot> {
        let is_free =
            calls.running < self.most_running && calls.count_of(client) < self.most_of_one;
        is_free.then(|| self.slot(calls.begin(client.into())))
    }

    /// How many calls run and how many wait.
    pub(crate) fn counts(&self) -> (usize, usize) {
        let calls = self.calls();
        (calls.running, calls.waiting)
    }

    fn slot(self: &Arc<CallSlots>, client: Arc<str>) -> CallSlot {
        CallSlot {
            slots: Some(Arc::clone(self)),
            client,
        }
    }

    /// Takes back a client's slot, and hands free slots to the calls that are next in line.
    fn pass_on(self: Arc<CallSlots>, client: &Arc<str>) {
        let mut calls = self.calls();
        calls.end(client);
        while calls.running < self.most_running
            && let Some((client, next)) = calls.next(self.most_of_one)
        {
            let client = calls.begin(client);
            if let Err(mut unwanted) = next.send(self.slot(client)) {
                // The caller gave up waiting. Dropping its slot here must not pass it on a second time.
                unwanted.slots = None;
                calls.end(&unwanted.client);
            }
        }
    }

    fn calls(&self) -> MutexGuard<'_, WaitingCalls> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl WaitingCalls {
    fn enqueue(&mut self, client: &str) -> oneshot::Receiver<CallSlot> {
        let (sender, receiver) = oneshot::channel();
        self.waiting += 1;
        match self.queues.get_mut(client) {
            Some(queue) => queue.push_back(sender),
            None => {
                let client: Arc<str> = client.into();
                self.order.push_back(Arc::clone(&client));
                self.queues.insert(client, VecDeque::from([sender]));
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

    fn count_of(&self, client: &str) -> usize {
        self.running_of.get(client).copied().unwrap_or_default()
    }

    fn begin(&mut self, client: Arc<str>) -> Arc<str> {
        self.running += 1;
        *self.running_of.entry(Arc::clone(&client)).or_default() += 1;
        client
    }

    fn end(&mut self, client: &Arc<str>) {
        self.running -= 1;
        if let Some(count) = self.running_of.get_mut(client) {
            *count -= 1;
            if *count == 0 {
                self.running_of.remove(client);
            }
        }
    }

    /// Takes one call of the first client in line that is below its share, and moves that client to the end of the line.
    fn next(&mut self, most_of_one: usize) -> Option<(Arc<str>, oneshot::Sender<CallSlot>)> {
        let first = self.order.iter();
        let place = first
            .map(|client| self.count_of(client))
            .position(|count| count < most_of_one)?;
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
            slots.pass_on(&self.client);
        }
    }
}

#[cfg(test)]
mod tests;
