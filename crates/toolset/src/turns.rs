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
pub(crate) struct Turns {
    most_running: usize,
    most_waiting: usize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    running: usize,
    waiting: usize,
    /// The clients that wait, the next to be served first.
    order: VecDeque<Arc<str>>,
    queues: HashMap<Arc<str>, VecDeque<oneshot::Sender<Turn>>>,
}

/// The right to run, until it is dropped.
#[derive(Debug)]
pub(crate) struct Turn {
    turns: Option<Arc<Turns>>,
}

/// Too many calls wait already.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Full;

impl Turns {
    pub(crate) fn new(most_running: usize) -> Arc<Turns> {
        let most_running = most_running.max(1);
        Arc::new(Turns {
            most_running,
            most_waiting: most_running.saturating_mul(WAITING_PER_RUNNING),
            state: Mutex::default(),
        })
    }

    /// Waits for a client's turn. Who gives up waiting just drops the future.
    pub(crate) async fn take(self: &Arc<Turns>, client: &str) -> Result<Turn, Full> {
        let waiting = {
            let mut state = self.state();
            if state.running < self.most_running {
                state.running += 1;
                return Ok(self.turn());
            }
            if state.waiting >= self.most_waiting {
                state.forget_the_gone();
            }
            if state.waiting >= self.most_waiting {
                return Err(Full);
            }
            state.enqueue(client)
        };
        // The sender is only dropped with the whole table.
        waiting.await.map_err(|_| Full)
    }

    /// How many calls run and how many wait.
    pub(crate) fn counts(&self) -> (usize, usize) {
        let state = self.state();
        (state.running, state.waiting)
    }

    fn turn(self: &Arc<Turns>) -> Turn {
        Turn {
            turns: Some(Arc::clone(self)),
        }
    }

    /// Hands a turn on to whoever waits next, or takes it back.
    fn pass_on(self: Arc<Turns>) {
        let mut state = self.state();
        while let Some(next) = state.next() {
            match next.send(self.turn()) {
                Ok(()) => return,
                // He gave up waiting. His turn must not be passed on again when it is dropped here.
                Err(mut unwanted) => unwanted.turns = None,
            }
        }
        state.running -= 1;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn enqueue(&mut self, client: &str) -> oneshot::Receiver<Turn> {
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

    /// Takes one call of the client whose turn it is, and sends that client to the end of the line.
    fn next(&mut self) -> Option<oneshot::Sender<Turn>> {
        let client = self.order.pop_front()?;
        let queue = self.queues.get_mut(&client)?;
        let next = queue.pop_front();
        if queue.is_empty() {
            self.queues.remove(&client);
        } else {
            self.order.push_back(client);
        }
        self.waiting -= usize::from(next.is_some());
        next
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        if let Some(turns) = self.turns.take() {
            turns.pass_on();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::task::Poll;

    type Waiting = std::pin::Pin<Box<dyn Future<Output = Result<Turn, Full>>>>;

    fn waiting(turns: &Arc<Turns>, client: &'static str) -> Waiting {
        let turns = Arc::clone(turns);
        let mut future: Waiting = Box::pin(async move { turns.take(client).await });
        assert!(now(&mut future).is_none());
        future
    }

    fn now(future: &mut Waiting) -> Option<Result<Turn, Full>> {
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        match future.as_mut().poll(&mut context) {
            Poll::Ready(outcome) => Some(outcome),
            Poll::Pending => None,
        }
    }

    fn taken(turns: &Arc<Turns>, client: &'static str) -> Turn {
        let turns = Arc::clone(turns);
        let mut future: Waiting = Box::pin(async move { turns.take(client).await });
        now(&mut future).expect("at once").expect("room")
    }

    #[test]
    fn clients_take_turns_however_much_one_of_them_wants() {
        let turns = Turns::new(1);
        let running = taken(&turns, "greedy");
        let mut greedy = [waiting(&turns, "greedy"), waiting(&turns, "greedy")];
        let mut modest = waiting(&turns, "modest");
        drop(running);
        let first = now(&mut greedy[0]).expect("it came first");
        drop(first);
        let second = now(&mut modest).expect("the other client is next");
        assert!(now(&mut greedy[1]).is_none());
        drop(second);
        drop(now(&mut greedy[1]).expect("then the rest"));
        assert_eq!(turns.counts(), (0, 0));
    }

    #[test]
    fn whoever_gives_up_loses_his_place_and_nobody_elses() {
        let turns = Turns::new(1);
        let running = taken(&turns, "a");
        let gone = waiting(&turns, "a");
        let mut stays = waiting(&turns, "b");
        drop(gone);
        drop(running);
        drop(now(&mut stays).expect("passed on past the one who left"));
        assert_eq!(turns.counts(), (0, 0));
        let late = taken(&turns, "a");
        let gone = waiting(&turns, "a");
        drop(late);
        drop(gone);
        assert_eq!(
            turns.counts(),
            (0, 0),
            "a turn that was not picked up comes back"
        );
    }

    #[test]
    fn the_line_has_an_end() {
        let turns = Turns::new(1);
        let _running = taken(&turns, "a");
        let line: Vec<Waiting> = (0..WAITING_PER_RUNNING)
            .map(|_| waiting(&turns, "a"))
            .collect();
        let full = Arc::clone(&turns);
        let mut more: Waiting = Box::pin(async move { full.take("b").await });
        assert!(matches!(now(&mut more), Some(Err(Full))));
        assert_eq!(turns.counts(), (1, line.len()));
        drop(line);
        let _waits = waiting(&turns, "b");
        assert_eq!(turns.counts(), (1, 1), "those who left made room");
    }
}
