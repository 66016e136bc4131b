//! Whose turn it is: so many calls run at once, so many may wait, and clients that wait take turns.
//!
//! Without turns a client that sends a thousand calls at once would keep everybody else waiting behind them.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

/// How many calls may wait for each that may run.
const WAITING_PER_RUNNING: usize = 16;

/// Shares out the right to run.
#[derive(Debug)]
pub(crate) struct CallSlots {
    most_running: usize,
    /// The most of them that one client may have: a quarter stays for the others, however much he wants.
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

    /// A client's turn where it has one right away.
    pub(crate) fn try_take(self: &Arc<CallSlots>, client: &str) -> Option<CallSlot> {
        let mut calls = self.calls();
        let is_free =
            calls.running < self.most_running && calls.count_of(client) < self.most_of_one;
        is_free.then(|| self.slot(calls.begin(client.into())))
    }

    /// Waits for a client's turn. Who gives up waiting just drops the future.
    pub(crate) async fn take(self: &Arc<CallSlots>, client: &str) -> Result<CallSlot, QueueFull> {
        if let Some(slot) = self.try_take(client) {
            return Ok(slot);
        }
        let waiting = {
            let mut calls = self.calls();
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

    /// Ends a client's turn, and begins those of whoever waits and may run now.
    fn pass_on(self: Arc<CallSlots>, client: &Arc<str>) {
        let mut calls = self.calls();
        calls.end(client);
        while calls.running < self.most_running
            && let Some((client, next)) = calls.next(self.most_of_one)
        {
            let client = calls.begin(client);
            if let Err(mut unwanted) = next.send(self.slot(client)) {
                // He gave up waiting. His turn must not be passed on again when it is dropped here.
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

    /// Makes room: whoever gave up waiting is still in line until his turn comes.
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

    /// Takes one call of the first client in line that has not its whole share, and sends it to the end of the line.
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
mod tests {
    use super::*;
    use std::task::Poll;

    type Waiting = std::pin::Pin<Box<dyn Future<Output = Result<CallSlot, QueueFull>>>>;

    fn waiting(slots: &Arc<CallSlots>, client: &'static str) -> Waiting {
        let slots = Arc::clone(slots);
        let mut future: Waiting = Box::pin(async move { slots.take(client).await });
        assert!(now(&mut future).is_none());
        future
    }

    fn now(future: &mut Waiting) -> Option<Result<CallSlot, QueueFull>> {
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        match future.as_mut().poll(&mut context) {
            Poll::Ready(outcome) => Some(outcome),
            Poll::Pending => None,
        }
    }

    fn taken(slots: &Arc<CallSlots>, client: &'static str) -> CallSlot {
        let slots = Arc::clone(slots);
        let mut future: Waiting = Box::pin(async move { slots.take(client).await });
        now(&mut future).expect("at once").expect("room")
    }

    #[test]
    fn clients_take_turns_however_much_one_of_them_wants() {
        let slots = CallSlots::new(1);
        let running = taken(&slots, "greedy");
        let mut greedy = [waiting(&slots, "greedy"), waiting(&slots, "greedy")];
        let mut modest = waiting(&slots, "modest");
        drop(running);
        let first = now(&mut greedy[0]).expect("it came first");
        drop(first);
        let second = now(&mut modest).expect("the other client is next");
        assert!(now(&mut greedy[1]).is_none());
        drop(second);
        drop(now(&mut greedy[1]).expect("then the rest"));
        assert_eq!(slots.counts(), (0, 0));
    }

    #[test]
    fn whoever_gives_up_loses_his_place_and_nobody_elses() {
        let slots = CallSlots::new(1);
        let running = taken(&slots, "a");
        let gone = waiting(&slots, "a");
        let mut stays = waiting(&slots, "b");
        drop(gone);
        drop(running);
        drop(now(&mut stays).expect("passed on past the one who left"));
        assert_eq!(slots.counts(), (0, 0));
        let late = taken(&slots, "a");
        let gone = waiting(&slots, "a");
        drop(late);
        drop(gone);
        assert_eq!(
            slots.counts(),
            (0, 0),
            "a slot that was not picked up comes back"
        );
    }

    #[test]
    fn nobody_gets_everything() {
        let slots = CallSlots::new(4);
        let greedy: Vec<CallSlot> = (0..3).map(|_| taken(&slots, "greedy")).collect();
        let mut more = waiting(&slots, "greedy");
        let modest = taken(&slots, "modest");
        drop(modest);
        assert!(now(&mut more).is_none(), "the last place stays for others");
        drop(greedy);
        drop(now(&mut more).expect("there is room in its share again"));
        assert_eq!(slots.counts(), (0, 0));
    }

    #[test]
    fn the_line_has_an_end() {
        let slots = CallSlots::new(1);
        let _running = taken(&slots, "a");
        let line: Vec<Waiting> = (0..WAITING_PER_RUNNING)
            .map(|_| waiting(&slots, "a"))
            .collect();
        let full = Arc::clone(&slots);
        let mut more: Waiting = Box::pin(async move { full.take("b").await });
        assert!(matches!(now(&mut more), Some(Err(QueueFull))));
        assert_eq!(slots.counts(), (1, line.len()));
        drop(line);
        let _waits = waiting(&slots, "b");
        assert_eq!(slots.counts(), (1, 1), "those who left made room");
    }
}
