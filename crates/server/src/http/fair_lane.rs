//! Shares the runtime's threads among the addresses that requests come from.
//!
//! The runtime runs tasks in the order they became ready. If an address has hundreds of busy connections, a request
//! from another address would wait behind all of them. So the connections of one address share a lane: only a few of
//! its ready connections run, then everything else that is ready gets its turn. An address with few connections cannot
//! delay anyone, and pays nothing for this.

use std::collections::{HashMap, VecDeque};
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, Waker};

/// How many connections an address may have without taking turns.
const FEW: usize = 16;
/// How many of an address's connections run before others have their turn.
const PASS: usize = 8;
/// The same while no other address is connected: only work in the background could wait then, and each turn costs a wake-up.
/// An address that is alone and has no more connections than that takes no turns.
const PASS_ALONE: usize = 64;

/// The lanes of all addresses that are connected.
#[derive(Debug, Default)]
pub(super) struct Lanes {
    by_host: Mutex<HashMap<Arc<str>, Weak<Lane>>>,
    addresses: Arc<AtomicUsize>,
}

/// The state that the connections of one address share.
#[derive(Debug)]
pub(super) struct Lane {
    /// How many addresses are connected, this one among them.
    addresses: Arc<AtomicUsize>,
    connections: AtomicUsize,
    line: Mutex<LaneTurns>,
}

#[derive(Debug)]
struct LaneTurns {
    /// How many may run before others have their turn.
    left: usize,
    /// The connections that wait for the next pass, in the order they became ready.
    waiting: VecDeque<Arc<LanePlace>>,
    /// Whether a task opens the next pass.
    is_opening: bool,
}

/// A connection's place in its lane.
#[derive(Debug, Default)]
struct LanePlace(Mutex<PlaceState>);

#[derive(Debug, Default)]
enum PlaceState {
    #[default]
    Outside,
    Waiting(Waker),
    Called,
}

impl Lanes {
    /// The lane of an address.
    pub(super) fn lane_of(&self, host: &str) -> Arc<Lane> {
        let mut lanes = locked(&self.by_host);
        if let Some(lane) = lanes.get(host).and_then(Weak::upgrade) {
            return lane;
        }
        lanes.retain(|_, lane| lane.strong_count() > 0);
        let lane = Arc::new(Lane::new(&self.addresses));
        lanes.insert(host.into(), Arc::downgrade(&lane));
        lane
    }
}

impl Lane {
    fn new(addresses: &Arc<AtomicUsize>) -> Lane {
        addresses.fetch_add(1, Ordering::Relaxed);
        Lane {
            addresses: Arc::clone(addresses),
            connections: AtomicUsize::new(0),
            line: Mutex::new(LaneTurns {
                left: PASS,
                waiting: VecDeque::new(),
                is_opening: false,
            }),
        }
    }

    /// Runs a connection in this lane.
    pub(super) fn run<F: Future>(self: Arc<Lane>, connection: F) -> InLane<F> {
        self.connections.fetch_add(1, Ordering::Relaxed);
        InLane {
            lane: self,
            place: Arc::default(),
            connection: Box::pin(connection),
        }
    }

    fn is_alone(&self) -> bool {
        self.addresses.load(Ordering::Relaxed) <= 1
    }

    /// How many run before others have their turn.
    fn pass(&self) -> usize {
        if self.is_alone() { PASS_ALONE } else { PASS }
    }

    /// Whether the address has so few connections that they take no turns.
    fn has_few(&self) -> bool {
        let most = if self.is_alone() { PASS_ALONE } else { FEW };
        self.connections.load(Ordering::Relaxed) <= most
    }

    /// Whether a ready connection may run now; otherwise it is woken later.
    fn may_run(self: &Arc<Lane>, place: &Arc<LanePlace>, context: &Context<'_>) -> bool {
        if self.has_few() && !place.is_waiting() {
            return true;
        }
        let mut line = locked(&self.line);
        let mut state = locked(&place.0);
        match *state {
            PlaceState::Called => *state = PlaceState::Outside,
            PlaceState::Waiting(_) => {
                *state = PlaceState::Waiting(context.waker().clone());
                return false;
            }
            PlaceState::Outside if line.left > 0 => line.left -= 1,
            PlaceState::Outside => {
                *state = PlaceState::Waiting(context.waker().clone());
                line.waiting.push_back(Arc::clone(place));
                self.open_next(&mut line);
                return false;
            }
        }
        if line.left == 0 {
            self.open_next(&mut line);
        }
        true
    }

    /// Runs passes one after the other until nothing waits.
    fn open_next(self: &Arc<Lane>, line: &mut LaneTurns) {
        if line.is_opening {
            return;
        }
        line.is_opening = true;
        let lane = Arc::clone(self);
        tokio::spawn(async move {
            loop {
                // Everything else that is ready runs before this goes on.
                tokio::task::yield_now().await;
                if lane.open() == Opened::ForLater {
                    return;
                }
            }
        });
    }

    /// Wakes the connections that are next.
    fn open(&self) -> Opened {
        let mut line = locked(&self.line);
        let pass = self.pass();
        let next = pass.min(line.waiting.len());
        let called: Vec<Arc<LanePlace>> = line.waiting.drain(..next).collect();
        line.left = pass - next;
        line.is_opening = next > 0;
        drop(line);
        for place in &called {
            place.call();
        }
        if called.is_empty() {
            Opened::ForLater
        } else {
            Opened::ForSome
        }
    }
}

impl Drop for Lane {
    fn drop(&mut self) {
        self.addresses.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The connections that a pass was opened for.
#[derive(Debug, PartialEq, Eq)]
enum Opened {
    /// Connections that waited.
    ForSome,
    /// None waited.
    ForLater,
}

impl LanePlace {
    fn is_waiting(&self) -> bool {
        !matches!(*locked(&self.0), PlaceState::Outside)
    }

    fn call(&self) {
        let before = std::mem::replace(&mut *locked(&self.0), PlaceState::Called);
        if let PlaceState::Waiting(waker) = before {
            waker.wake();
        }
    }
}

/// A connection that takes turns with the others of its address.
pub(super) struct InLane<F> {
    lane: Arc<Lane>,
    place: Arc<LanePlace>,
    connection: Pin<Box<F>>,
}

impl<F: Future> Future for InLane<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let this = &mut *self;
        if this.lane.may_run(&this.place, context) {
            this.connection.as_mut().poll(context)
        } else {
            Poll::Pending
        }
    }
}

impl<F> Drop for InLane<F> {
    fn drop(&mut self) {
        self.lane.connections.fetch_sub(1, Ordering::Relaxed);
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::task::{JoinSet, yield_now};

    /// Connections that note who they are each time they run, and are ready again at once.
    async fn run_beside(lanes: &Lanes, connections: usize) -> Vec<&'static str> {
        let ran = Arc::new(Mutex::new(Vec::new()));
        let mut all = JoinSet::new();
        let hosts = std::iter::repeat_n("many", connections).chain(["one"]);
        for host in hosts {
            let ran = Arc::clone(&ran);
            all.spawn(lanes.lane_of(host).run(async move {
                for _ in 0..20 {
                    locked(&ran).push(host);
                    yield_now().await;
                }
            }));
        }
        while all.join_next().await.is_some() {}
        Arc::into_inner(ran).unwrap().into_inner().unwrap()
    }

    /// The most runs of the many between two of the one.
    fn longest_wait(ran: &[&str]) -> usize {
        let waits = ran.split(|host| *host == "one");
        let inner: Vec<usize> = waits.map(<[&str]>::len).collect();
        inner[1..inner.len() - 1].iter().copied().max().unwrap()
    }

    #[tokio::test]
    async fn an_address_with_many_connections_lets_others_through() {
        let ran = run_beside(&Lanes::default(), 300).await;
        assert_eq!(ran.len(), 301 * 20, "every connection ran to its end");
        let longest = longest_wait(&ran);
        assert!(
            longest <= 2 * PASS,
            "{longest} runs of the others between two of one"
        );
    }

    #[tokio::test]
    async fn an_address_with_few_connections_takes_no_turns() {
        let lanes = Lanes::default();
        let ran = run_beside(&lanes, FEW).await;
        assert_eq!(ran.len(), (FEW + 1) * 20);
        let lane = lanes.lane_of("many");
        assert_eq!(locked(&lane.line).left, PASS, "no turn was taken");
    }

    #[tokio::test]
    async fn an_address_that_is_alone_takes_fewer_turns() {
        let lanes = Lanes::default();
        let many = lanes.lane_of("many");
        assert_eq!(many.pass(), PASS_ALONE);
        let connections: Vec<_> = (0..PASS_ALONE)
            .map(|_| Arc::clone(&many).run(std::future::ready(())))
            .collect();
        assert!(many.has_few());
        let one = lanes.lane_of("one");
        assert_eq!((many.pass(), one.pass()), (PASS, PASS));
        assert!(!many.has_few(), "another address may have to wait");
        drop(one);
        assert_eq!(many.pass(), PASS_ALONE);
        let more = Arc::clone(&many).run(std::future::ready(()));
        assert!(!many.has_few(), "work in the background may have to wait");
        drop((connections, more));
        assert!(many.has_few());
    }

    #[tokio::test]
    async fn lanes_end_with_their_connections() {
        let lanes = Lanes::default();
        run_beside(&lanes, 50).await;
        yield_now().await;
        drop(lanes.lane_of("another"));
        assert!(locked(&lanes.by_host).len() <= 2, "{lanes:?}");
        assert!(lanes.lane_of("many").connections.load(Ordering::Relaxed) == 0);
    }
}
