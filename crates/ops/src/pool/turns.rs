//! Who is next: clients take turns, and so do the calls of one client. Pure; knows neither threads nor files.

use std::collections::VecDeque;

/// The owner of a turn.
pub(super) trait TurnOwner {
    /// The client.
    fn client(&self) -> &str;
    /// The call, among all that are under way.
    fn call(&self) -> usize;
}

/// What waits, by client and by call.
#[derive(Debug)]
pub(super) struct Turns<Ticket> {
    /// The clients that wait; the first is the next to be served.
    clients: VecDeque<ClientQueue<Ticket>>,
}

/// The calls of one client that wait; the first is the next to be served.
type ClientQueue<Ticket> = VecDeque<CallQueue<Ticket>>;
/// What waits for one call, in the order it came. It is never empty.
type CallQueue<Ticket> = VecDeque<Ticket>;

impl<Ticket: TurnOwner> Turns<Ticket> {
    pub(super) const fn new() -> Turns<Ticket> {
        Turns {
            clients: VecDeque::new(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.clients.is_empty()
    }

    /// Queues a ticket after those of its call.
    pub(super) fn add(&mut self, ticket: Ticket) {
        let is_own = |queue: &&mut ClientQueue<Ticket>| {
            let first = queue.front().and_then(VecDeque::front);
            first.is_some_and(|first| first.client() == ticket.client())
        };
        let Some(own) = self.clients.iter_mut().find(is_own) else {
            let call = CallQueue::from([ticket]);
            return self.clients.push_back(ClientQueue::from([call]));
        };
        let is_same = |queue: &&mut CallQueue<Ticket>| {
            let first = queue.front();
            first.is_some_and(|first| first.call() == ticket.call())
        };
        match own.iter_mut().find(is_same) {
            Some(queue) => queue.push_back(ticket),
            None => own.push_back(CallQueue::from([ticket])),
        }
    }

    /// Takes the first ticket that may be served now. Its client then waits for all other clients, and its call for all
    /// other calls of that client; those passed over keep their places.
    pub(super) fn take(&mut self, may_serve: impl Fn(&Ticket) -> bool) -> Option<Ticket> {
        let is_next = |queue: &CallQueue<Ticket>| queue.front().is_some_and(&may_serve);
        let (client, call) = self
            .clients
            .iter()
            .enumerate()
            .find_map(|(client, calls)| Some((client, calls.iter().position(is_next)?)))?;
        let mut calls = self.clients.remove(client)?;
        let mut tickets = calls.remove(call)?;
        let taken = tickets.pop_front();
        if !tickets.is_empty() {
            calls.push_back(tickets);
        }
        if !calls.is_empty() {
            self.clients.push_back(calls);
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    struct Unit {
        client: usize,
        call: usize,
        number: usize,
    }

    const CLIENTS: [&str; 4] = ["a", "b", "c", "d"];

    impl TurnOwner for Unit {
        fn client(&self) -> &str {
            CLIENTS[self.client]
        }

        fn call(&self) -> usize {
            // Calls of different clients never have the same number.
            self.client * 100 + self.call
        }
    }

    /// What the outside does.
    #[derive(Debug, Clone, Copy)]
    enum Act {
        Add { client: usize, call: usize },
        Take,
    }

    fn acts() -> impl Strategy<Value = Vec<Act>> {
        let add =
            (0..CLIENTS.len(), 0..5_usize).prop_map(|(client, call)| Act::Add { client, call });
        proptest::collection::vec(prop_oneof![add, Just(Act::Take)], 1..300)
    }

    /// The turns, and what waits as a plain list in the order it came.
    struct Model {
        turns: Turns<Unit>,
        waiting: Vec<Unit>,
        added: usize,
    }

    impl Model {
        fn new() -> Model {
            Model {
                turns: Turns::new(),
                waiting: Vec::new(),
                added: 0,
            }
        }

        fn add(&mut self, client: usize, call: usize) {
            let unit = Unit {
                client,
                call,
                number: self.added,
            };
            self.added += 1;
            self.turns.add(unit);
            self.waiting.push(unit);
        }

        fn take(&mut self, may_serve: impl Fn(&Unit) -> bool) -> Option<Unit> {
            let taken = self.turns.take(may_serve)?;
            self.waiting.retain(|unit| *unit != taken);
            Some(taken)
        }

        fn run(&mut self, acts: Vec<Act>) -> Vec<Unit> {
            let mut order = Vec::new();
            for act in acts {
                match act {
                    Act::Add { client, call } => self.add(client, call),
                    Act::Take => order.extend(self.take(|_| true)),
                }
            }
            order
        }
    }

    proptest! {
        #[test]
        fn nothing_is_lost_and_nothing_is_made_up(acts in acts()) {
            let mut model = Model::new();
            let mut served = model.run(acts);
            while let Some(unit) = model.take(|_| true) {
                served.push(unit);
            }
            prop_assert!(model.waiting.is_empty() && model.turns.is_empty());
            let mut numbers: Vec<usize> = served.iter().map(|unit| unit.number).collect();
            numbers.sort_unstable();
            prop_assert_eq!(numbers, (0..model.added).collect::<Vec<_>>());
        }

        #[test]
        fn the_units_of_a_call_keep_their_order(acts in acts()) {
            let mut model = Model::new();
            let mut served = model.run(acts);
            while let Some(unit) = model.take(|_| true) {
                served.push(unit);
            }
            for (place, unit) in served.iter().enumerate() {
                let later = served[place..].iter().filter(|other| other.call() == unit.call());
                prop_assert!(later.clone().all(|other| other.number >= unit.number));
            }
        }

        /// Whoever waits is served after at most one unit of each other client, and, among a client's calls, after at
        /// most one unit of each other call, whatever comes meanwhile.
        #[test]
        fn nobody_waits_for_two_units_of_another(acts in acts(), more in acts()) {
            let mut model = Model::new();
            model.run(acts);
            let Some(first) = model.waiting.first().copied() else {
                return Ok(());
            };
            let mut of_clients = [0; CLIENTS.len()];
            let mut of_calls = [0; 5];
            let mut more = more.into_iter();
            loop {
                if let Some(Act::Add { client, call }) = more.next() {
                    model.add(client, call);
                }
                let served = model.take(|_| true).expect("something waits");
                if served.client() != first.client() {
                    of_clients[served.client] += 1;
                    prop_assert_eq!(of_clients[served.client], 1);
                    continue;
                }
                of_clients = [0; CLIENTS.len()];
                if served.call() == first.call() {
                    break;
                }
                of_calls[served.call] += 1;
                prop_assert_eq!(of_calls[served.call], 1);
            }
        }

        #[test]
        fn who_is_passed_over_keeps_its_place(acts in acts(), passed in 0..CLIENTS.len()) {
            let mut model = Model::new();
            model.run(acts);
            let waits = model.waiting.iter().any(|unit| unit.client == passed);
            let before: Vec<usize> = place_of(&model.turns, passed).into_iter().collect();
            while let Some(unit) = model.take(|unit| unit.client != passed) {
                prop_assert!(unit.client != passed);
            }
            prop_assert_eq!(!model.turns.is_empty(), waits);
            let after: Vec<usize> = place_of(&model.turns, passed).into_iter().collect();
            prop_assert!(after <= before, "{after:?} {before:?}");
        }
    }

    fn place_of(turns: &Turns<Unit>, client: usize) -> Option<usize> {
        let first = |queue: &ClientQueue<Unit>| queue[0][0].client;
        turns
            .clients
            .iter()
            .position(|queue| first(queue) == client)
    }
}
