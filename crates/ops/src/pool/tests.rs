use super::*;
use crate::testing::Tree;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};

/// How long a test waits for what must happen.
const PATIENCE: Duration = Duration::from_secs(60);

/// A pool of its own with two seats.
fn pool(stuck_after: Duration) -> &'static Pool {
    let pool: &'static Pool = Box::leak(Box::new(Pool::new(stuck_after)));
    pool.started(|| 2)
}

/// A pool whose threads are never taken for stuck.
fn patient_pool() -> &'static Pool {
    pool(Duration::from_secs(600))
}

fn begin(pool: &'static Pool, cancel: &Cancel, work: impl FnOnce() + Send + 'static) {
    assert!(pool.begin(cancel, Box::new(work)).is_ok());
}

fn client(name: &str) -> Cancel {
    Cancel::never().of_client(name)
}

fn heard<T>(receiver: &Receiver<T>) -> T {
    receiver.recv_timeout(PATIENCE).expect("it was to happen")
}

/// Uses up a thread's slice of time and lets others have their turn, `times` times.
fn work_long(cancel: &Cancel, times: usize) {
    for _ in 0..times {
        let start = Instant::now();
        while start.elapsed() < SLICE {
            std::hint::spin_loop();
        }
        give_way(cancel);
    }
}

/// Runs `left` units and tells each.
struct Counted {
    cancel: Cancel,
    name: &'static str,
    left: Mutex<usize>,
    told: Sender<&'static str>,
}

impl PoolJob for Counted {
    fn step(self: Arc<Self>) -> AfterUnit {
        let mut left = self.left.lock().unwrap();
        if *left == 0 {
            return AfterUnit::Finished;
        }
        *left -= 1;
        self.told.send(self.name).unwrap();
        AfterUnit::Again
    }

    fn cancel(&self) -> &Cancel {
        &self.cancel
    }
}

fn job(name: &'static str, units: usize, told: &Sender<&'static str>) -> Arc<dyn PoolJob> {
    Arc::new(Counted {
        cancel: client("one"),
        name,
        left: Mutex::new(units),
        told: told.clone(),
    })
}

#[test]
fn jobs_take_turns() {
    let (told, units) = channel();
    for (name, count) in [("long", 20_000), ("short", 10)] {
        Pool::get().submit(&job(name, count, &told), Pool::get().workers());
    }
    drop(told);
    let order: Vec<_> = units.iter().take(20_010).collect();
    let last_short = order.iter().rposition(|name| *name == "short").unwrap();
    assert!(last_short < order.len() - 1, "it waited for the long one");
    assert_eq!(order.iter().filter(|name| **name == "short").count(), 10);
}

#[test]
fn only_as_many_threads_work_as_there_are_seats() {
    let pool = patient_pool();
    let working = Arc::new(AtomicUsize::new(0));
    let (told, ended) = channel();
    for number in 0..16 {
        let (working, told) = (Arc::clone(&working), told.clone());
        let cancel = client(["one", "other"][number % 2]);
        begin(pool, &cancel.clone(), move || {
            let mut most = 0;
            for _ in 0..3 {
                most = most.max(working.fetch_add(1, Ordering::SeqCst) + 1);
                let start = Instant::now();
                while start.elapsed() < SLICE {
                    std::hint::spin_loop();
                }
                working.fetch_sub(1, Ordering::SeqCst);
                give_way(&cancel);
            }
            told.send(most).unwrap();
        });
    }
    let most = (0..16).map(|_| heard(&ended)).max();
    assert!(most <= Some(2), "{most:?}");
}

#[test]
fn a_short_call_ends_before_the_long_ones_that_came_first() {
    let pool = patient_pool();
    let (told, ended) = channel();
    let mut running = Vec::new();
    for _ in 0..20 {
        let (cancel, told) = (client("greedy"), told.clone());
        running.push(cancel.clone());
        begin(pool, &cancel.clone(), move || {
            while cancel.check_and_give_way().is_ok() {}
            told.send("long").unwrap();
        });
    }
    for name in ["modest", "greedy"] {
        let (cancel, told) = (client(name), told.clone());
        begin(pool, &cancel.clone(), move || {
            work_long(&cancel, 3);
            told.send("short").unwrap();
        });
    }
    assert_eq!([heard(&ended), heard(&ended)], ["short", "short"]);
    running.iter().for_each(Cancel::cancel);
    (0..running.len()).for_each(|_| assert_eq!(heard(&ended), "long"));
}

/// A root that does not answer: every call that works in it waits until it is released.
struct DeadRoot {
    tree: Tree,
    release: Option<Sender<()>>,
    released: Arc<Mutex<Receiver<()>>>,
    begun: Arc<AtomicUsize>,
}

impl DeadRoot {
    fn new() -> DeadRoot {
        let (release, released) = channel();
        DeadRoot {
            tree: Tree::new(),
            release: Some(release),
            released: Arc::new(Mutex::new(released)),
            begun: Arc::default(),
        }
    }

    /// Begins a call that gets stuck.
    fn call(&self, pool: &'static Pool, name: &str, told: &Sender<usize>) -> Cancel {
        let cancel = client(name).in_roots([&self.tree.root]);
        let (released, begun) = (Arc::clone(&self.released), Arc::clone(&self.begun));
        let (told, inner) = (told.clone(), cancel.clone());
        begin(pool, &cancel, move || {
            if inner.check().is_ok() {
                begun.fetch_add(1, Ordering::SeqCst);
                // Nothing is ever sent: it ends when the sender is dropped.
                let _ = released.lock().unwrap().recv_timeout(PATIENCE);
            }
            told.send(inner.call()).unwrap();
        });
        cancel
    }
}

#[test]
fn dead_roots_do_not_take_the_pool() {
    let pool = pool(Duration::from_millis(50));
    let (told, ended) = channel();
    let mut dead = [DeadRoot::new(), DeadRoot::new()];
    for root in &dead {
        (0..6).for_each(|_| drop(root.call(pool, "greedy", &told)));
    }
    let healthy = Tree::new();
    for name in ["greedy", "modest"] {
        let (told, answered) = channel();
        let cancel = client(name).in_roots([&healthy.root]);
        begin(pool, &cancel, move || told.send(()).unwrap());
        heard(&answered);
    }
    for root in &mut dead {
        let begun = root.begun.load(Ordering::SeqCst);
        assert!(begun <= pool.most_in_a_root(), "{begun} threads are stuck");
        root.release = None;
    }
    for _ in 0..12 {
        heard(&ended);
    }
    assert!(
        dead.iter()
            .all(|root| root.begun.load(Ordering::SeqCst) == 6)
    );
    // A worker gives its seat back a moment after its call has told that it ended.
    let start = Instant::now();
    while !pool.lock().stuck.is_empty() {
        assert!(start.elapsed() < PATIENCE, "a seat did not come back");
        thread::yield_now();
    }
}

#[test]
fn a_call_that_gives_up_need_not_wait_for_a_dead_root() {
    let pool = pool(Duration::from_millis(50));
    let (told, ended) = channel();
    let mut dead = DeadRoot::new();
    let stuck: Vec<Cancel> = (0..2).map(|_| dead.call(pool, "one", &told)).collect();
    let waits = dead.call(pool, "one", &told);
    waits.cancel();
    let first = heard(&ended);
    assert_eq!(first, waits.call());
    dead.release = None;
    let mut rest = [heard(&ended), heard(&ended)];
    let mut expected = [stuck[0].call(), stuck[1].call()];
    rest.sort_unstable();
    expected.sort_unstable();
    assert_eq!(rest, expected);
}

#[test]
fn who_waits_for_something_else_leaves_its_seat() {
    let pool = patient_pool();
    let held = Arc::new(Mutex::new(()));
    let (told, ended) = channel();
    let holder = held.lock().unwrap();
    for _ in 0..6 {
        let (held, told, cancel) = (Arc::clone(&held), told.clone(), client("one"));
        begin(pool, &cancel.clone(), move || {
            let aside = step_aside(&cancel);
            drop(held.lock().unwrap());
            drop(aside);
            told.send("waited").unwrap();
        });
    }
    let cancel = client("one");
    begin(pool, &cancel, move || told.send("passed").unwrap());
    assert_eq!(heard(&ended), "passed");
    drop(holder);
    (0..6).for_each(|_| assert_eq!(heard(&ended), "waited"));
}

#[test]
fn a_small_call_that_turns_out_long_takes_a_seat() {
    let cancel = client("one");
    let seats = || Pool::get().lock().next_number;
    let before = seats();
    run_light(|| {
        let start = Instant::now();
        while seats() == before && start.elapsed() < PATIENCE {
            give_way(&cancel);
        }
    });
    assert!(seats() > before);
}

#[test]
fn workers_are_nicer_than_the_process() {
    let pool = patient_pool();
    let (told, heard_of) = channel();
    begin(pool, &client("one"), move || {
        let own = rustix::process::getpriority_process(None).unwrap();
        told.send(own).unwrap();
    });
    let process = rustix::process::getpriority_process(Some(rustix::process::getpid())).unwrap();
    assert_eq!(heard(&heard_of), (process + NICENESS).min(NICENESS_MAX));
}

#[test]
fn a_panic_ends_its_call_only() {
    let pool = patient_pool();
    let (told, ended) = channel::<()>();
    for _ in 0..8 {
        begin(pool, &client("one"), || panic!("broken"));
    }
    begin(pool, &client("one"), move || told.send(()).unwrap());
    heard(&ended);
}
