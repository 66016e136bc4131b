use super::*;
use proptest::prelude::*;
use std::task::Poll;

type Waiting = std::pin::Pin<Box<dyn Future<Output = Result<CallSlot, QueueFull>>>>;

fn waiting(slots: &Arc<CallSlots>, client: &'static str) -> Waiting {
    waiting_for(slots, client, Weight::Small)
}

fn waiting_for(slots: &Arc<CallSlots>, client: &'static str, weight: Weight) -> Waiting {
    let mut future = arriving(slots, client, weight);
    assert!(now(&mut future).is_none());
    future
}

fn arriving(slots: &Arc<CallSlots>, client: &'static str, weight: Weight) -> Waiting {
    let slots = Arc::clone(slots);
    Box::pin(async move { slots.take(&client.into(), weight).await })
}

fn now(future: &mut Waiting) -> Option<Result<CallSlot, QueueFull>> {
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    match future.as_mut().poll(&mut context) {
        Poll::Ready(outcome) => Some(outcome),
        Poll::Pending => None,
    }
}

fn taken(slots: &Arc<CallSlots>, client: &'static str) -> CallSlot {
    taken_for(slots, client, Weight::Small)
}

fn taken_for(slots: &Arc<CallSlots>, client: &'static str, weight: Weight) -> CallSlot {
    let mut future = arriving(slots, client, weight);
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
fn a_call_that_is_given_up_loses_its_place_and_no_other() {
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
fn heavy_calls_leave_room_for_small_ones() {
    let slots = CallSlots::new(8);
    let heavy = |client| taken_for(&slots, client, Weight::Heavy);
    let greedy: Vec<CallSlot> = (0..5).map(|_| heavy("greedy")).collect();
    let mut more = waiting_for(&slots, "greedy", Weight::Heavy);
    let other = heavy("other");
    let mut waits = waiting_for(&slots, "third", Weight::Heavy);
    for client in ["greedy", "other", "third"] {
        drop(taken(&slots, client));
    }
    assert!(now(&mut more).is_none() && now(&mut waits).is_none());
    drop(other);
    drop(now(&mut waits).expect("the client without any comes before the one with five"));
    assert!(now(&mut more).is_none());
    drop(greedy);
    drop(now(&mut more).expect("then the rest"));
    assert_eq!(slots.counts(), (0, 0));
}

#[test]
fn a_full_line_of_heavy_calls_keeps_no_small_one_out() {
    let slots = CallSlots::new(4);
    let heavy = |client| arriving(&slots, client, Weight::Heavy);
    let mut calls: Vec<Waiting> = (0..100).map(|_| heavy("greedy")).collect();
    let outcomes: Vec<_> = calls.iter_mut().map(now).collect();
    assert!(matches!(outcomes.last(), Some(Some(Err(QueueFull)))));
    drop(taken(&slots, "other"));
    drop(taken(&slots, "greedy"));
}

#[test]
fn no_client_fills_the_line_for_others() {
    let slots = CallSlots::new(1);
    let running = taken(&slots, "greedy");
    let arrive = |client| arriving(&slots, client, Weight::Small);
    let mut greedy: Vec<Waiting> = (0..100).map(|_| arrive("greedy")).collect();
    let refused = greedy.iter_mut().filter_map(now).count();
    assert_eq!(refused, 100 - WAITING_PER_RUNNING / 2);
    let mut others: Vec<Waiting> = (0..2).map(|_| arrive("other")).collect();
    assert!(
        others.iter_mut().all(|call| now(call).is_none()),
        "they wait"
    );
    let mut third = arrive("third");
    assert!(now(&mut third).is_none(), "it waits");
    drop(running);
    assert!(
        greedy
            .iter_mut()
            .any(|call| matches!(now(call), Some(Ok(_))))
    );
}

#[test]
fn whoever_comes_later_finds_a_slot_too() {
    let slots = CallSlots::new(256);
    let mut held = Vec::new();
    for client in CLIENTS {
        let before = held.len();
        while let Some(slot) = slots.try_take(&client.into(), Weight::Heavy) {
            held.push(slot);
        }
        assert!(held.len() > before, "{client} found none");
    }
}

#[test]
fn the_line_has_an_end() {
    let slots = CallSlots::new(1);
    let _running = taken(&slots, "a");
    let line: Vec<Waiting> = (0..WAITING_PER_RUNNING)
        .map(|number| waiting(&slots, ["a", "b"][number % 2]))
        .collect();
    let mut more = arriving(&slots, "b", Weight::Small);
    assert!(matches!(now(&mut more), Some(Err(QueueFull))));
    assert_eq!(slots.counts(), (1, line.len()));
    drop(line);
    let _waits = waiting(&slots, "b");
    assert_eq!(slots.counts(), (1, 1), "those who left made room");
}

const CLIENTS: [&str; 4] = ["a", "b", "c", "d"];

/// What the outside does with the queue.
#[derive(Debug, Clone, Copy)]
enum Act {
    /// A client makes a call.
    Arrive(usize, Weight),
    /// One of the running calls ends.
    End(usize),
    /// One of the waiting calls is given up.
    GiveUp(usize),
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let weight = prop_oneof![Just(Weight::Small), Just(Weight::Heavy)];
    let act = prop_oneof![
        4 => (0..CLIENTS.len(), weight).prop_map(|(client, weight)| Act::Arrive(client, weight)),
        3 => any::<usize>().prop_map(Act::End),
        1 => any::<usize>().prop_map(Act::GiveUp),
    ];
    proptest::collection::vec(act, 1..200)
}

/// A queue with the calls that the test holds: those that run, and those that wait in the order they came.
struct Bench {
    slots: Arc<CallSlots>,
    running: Vec<(usize, CallSlot)>,
    waiting: Vec<((usize, Weight), Waiting)>,
}

impl Bench {
    fn new(most_running: usize) -> Bench {
        Bench {
            slots: CallSlots::new(most_running),
            running: Vec::new(),
            waiting: Vec::new(),
        }
    }

    fn act(&mut self, act: Act) {
        match act {
            Act::Arrive(client, weight) => {
                let mut future = arriving(&self.slots, CLIENTS[client], weight);
                match now(&mut future) {
                    Some(Ok(slot)) => self.running.push((client, slot)),
                    Some(Err(QueueFull)) => {}
                    None => self.waiting.push(((client, weight), future)),
                }
            }
            Act::End(index) if !self.running.is_empty() => {
                let index = index % self.running.len();
                drop(self.running.swap_remove(index));
            }
            Act::GiveUp(index) if !self.waiting.is_empty() => {
                let index = index % self.waiting.len();
                drop(self.waiting.remove(index));
            }
            Act::End(_) | Act::GiveUp(_) => {}
        }
    }

    /// Lets the calls that were given a slot run, and returns their clients.
    fn settle(&mut self) -> Vec<usize> {
        let mut served = Vec::new();
        for (of, mut future) in std::mem::take(&mut self.waiting) {
            match now(&mut future) {
                Some(slot) => {
                    served.push(of.0);
                    self.running.push((of.0, slot.expect("a slot")));
                }
                None => self.waiting.push((of, future)),
            }
        }
        served
    }

    fn held(&self, weight: Weight, of: impl Fn(usize) -> bool) -> usize {
        let held = self.running.iter();
        held.filter(|(client, slot)| of(*client) && slot.weight == weight)
            .count()
    }

    /// Whether the rules would let a call run.
    fn could_run(&self, client: usize, weight: Weight) -> bool {
        let mut free = self.slots.most_running() - self.running.len();
        if weight == Weight::Heavy {
            free = free.min(self.slots.most_heavy() - self.held(Weight::Heavy, |_| true));
        }
        self.held(weight, |of| of == client) < SHARE * free
    }
}

proptest! {
    #[test]
    fn capacity_and_shares_are_never_exceeded_and_no_slot_idles(
        most_running in 1..9_usize,
        acts in acts(),
    ) {
        let mut bench = Bench::new(most_running);
        for act in acts {
            bench.act(act);
            bench.settle();
            prop_assert!(bench.running.len() <= most_running);
            prop_assert_eq!(bench.slots.counts().0, bench.running.len());
            prop_assert!(bench.held(Weight::Heavy, |_| true) <= bench.slots.most_heavy());
            let could_run = |(client, weight)| bench.could_run(client, weight);
            prop_assert!(!bench.waiting.iter().any(|(of, _)| could_run(*of)));
        }
    }

    #[test]
    fn calls_that_are_given_up_leave_no_slot_behind(
        most_running in 1..9_usize,
        acts in acts(),
    ) {
        let mut bench = Bench::new(most_running);
        for act in acts {
            bench.act(act);
        }
        bench.waiting.clear();
        bench.running.clear();
        prop_assert_eq!(bench.slots.counts(), (0, 0));
        let all = CLIENTS.iter().cycle().take(most_running.min(CLIENTS.len()));
        let taken: Vec<_> = all.map(|client| bench.slots.try_take(&(*client).into(), Weight::Small)).collect();
        prop_assert!(taken.iter().all(Option::is_some));
    }

    #[test]
    fn a_client_is_served_in_the_order_of_its_calls(
        most_running in 1..9_usize,
        acts in acts(),
    ) {
        let mut bench = Bench::new(most_running);
        for act in acts {
            bench.act(act);
            let mut left: Vec<_> = bench.waiting.iter().map(|(of, _)| Some(*of)).collect();
            let mut served = Vec::new();
            for (place, (of, mut future)) in
                std::mem::take(&mut bench.waiting).into_iter().enumerate()
            {
                match now(&mut future) {
                    Some(slot) => {
                        served.push((place, of));
                        bench.running.push((of.0, slot.expect("a slot")));
                        left[place] = None;
                    }
                    None => bench.waiting.push((of, future)),
                }
            }
            for (place, of) in served {
                prop_assert!(!left[..place].contains(&Some(of)), "a later call overtook an earlier one");
            }
        }
    }

    #[test]
    fn turns_alternate_and_no_client_starves(
        greedy in 2..15_usize,
        modest in 1..4_usize,
    ) {
        let mut bench = Bench::new(1);
        let arrive = |client| Act::Arrive(client, Weight::Heavy);
        bench.act(arrive(0));
        (0..greedy - 1).for_each(|_| bench.act(arrive(0)));
        (0..modest).for_each(|_| bench.act(arrive(1)));
        prop_assume!(bench.waiting.len() == greedy - 1 + modest);
        let mut order = Vec::new();
        while !bench.waiting.is_empty() {
            bench.act(Act::End(0));
            order.extend(bench.settle());
        }
        let expected = 2 * modest.min(greedy - 1);
        let alternates = order.windows(2).take(expected - 1).all(|pair| pair[0] != pair[1]);
        prop_assert!(alternates, "{order:?}");
        let last = order.iter().rposition(|client| *client == 1);
        prop_assert!(last <= Some(2 * modest - 1), "{order:?}");
    }
}

#[test]
fn a_root_that_does_not_answer_leaves_room_for_the_clients_other_roots() {
    let slots = CallSlots::new(256);
    let client: Arc<str> = "only".into();
    let (dead, alive) = (Turn::new(&client, [1, 0]), Turn::new(&client, [2, 0]));
    let mut stuck = Vec::new();
    let mut in_line: Vec<Waiting> = Vec::new();
    for _ in 0..300 {
        let (own, turn) = (Arc::clone(&slots), dead.clone());
        let mut future: Waiting = Box::pin(async move { own.take(&turn, Weight::Small).await });
        match now(&mut future) {
            Some(slot) => stuck.push(slot.expect("room")),
            None => in_line.push(future),
        }
    }
    assert!(stuck.len() > 100 && !in_line.is_empty(), "{}", stuck.len());
    let others: Vec<CallSlot> =
        std::iter::from_fn(|| slots.try_take(&alive, Weight::Small)).collect();
    assert!(others.len() >= 16, "{}", others.len());
    // And one that has to wait does not wait behind those that are stuck.
    let (own, turn) = (Arc::clone(&slots), alive.clone());
    let mut late: Waiting = Box::pin(async move { own.take(&turn, Weight::Small).await });
    assert!(now(&mut late).is_none());
    drop(others);
    assert!(now(&mut late).is_some());
    drop((late, stuck, in_line));
    assert_eq!(slots.counts(), (0, 0));
}

#[test]
fn beside_others_a_client_has_few_small_calls_at_once_and_alone_most_slots() {
    let slots = CallSlots::new(256);
    let all_of = |client: &str| -> Vec<CallSlot> {
        std::iter::from_fn(|| slots.try_take(&client.into(), Weight::Small)).collect()
    };
    let alone = all_of("one");
    assert_eq!(alone.len(), 192);
    drop(alone);
    let other = slots.try_take(&"other".into(), Weight::Small);
    assert!(other.is_some());
    let beside = all_of("one");
    assert_eq!(beside.len(), slots.small_beside_others);
    let heavy = slots.try_take(&"one".into(), Weight::Heavy);
    assert!(heavy.is_some(), "those take turns in the pool");
    drop((beside, heavy, other));
    assert_eq!(slots.counts(), (0, 0));
}

#[test]
fn a_client_that_calls_now_and_then_is_company_all_the_time() {
    let (greedy, rare): (Arc<str>, Arc<str>) = ("greedy".into(), "rare".into());
    let begun = Instant::now();
    let at = |seconds| begun + Duration::from_secs(seconds);
    let mut company = Company::default();
    (0..20).for_each(|second| company.note(&greedy, at(second)));
    assert!(!company.is_there(at(20)), "it is alone");
    for second in 20..200 {
        let caller = if second % 20 == 0 { &rare } else { &greedy };
        company.note(caller, at(second));
        assert!(company.is_there(at(second)), "second {second}");
    }
    assert!(company.is_there(at(240)), "the last rare call was at 180");
    assert!(!company.is_there(at(242)), "it is alone again");
}
