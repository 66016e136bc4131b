//! Clears up after killed replicas, for as long as this one runs.
//!
//! At each turn the roots are those that are in force. Each is looked after on a thread of its own, so that one that does not
//! answer holds up no other. A dead replica is forgotten once its leftovers are gone from all of them.

use std::collections::{HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sandbox::{Cluster, DeadReplica, Root};
use toolset::Admission;

use crate::histories;
use crate::in_force::InForce;

/// How often a replica looks for unfinished changes of a killed one.
const EVERY: Duration = Duration::from_secs(3);
/// Most roots take less than this, so that what is done with them by then is forgotten at once and not at the next turn.
const SOON: Duration = Duration::from_millis(200);
/// How many roots are looked after at once; those that do not answer count too.
const MOST_THREADS: usize = 16;

/// Clears up in the background, if there are other replicas.
pub(crate) fn start(cluster: Option<&Arc<Cluster>>, admission: &Arc<InForce<Admission>>) {
    let Some(cluster) = cluster.cloned() else {
        return;
    };
    let admission = Arc::clone(admission);
    let recovery = Arc::new(Recovery::new(look_after));
    let turns = move || {
        loop {
            std::thread::sleep(EVERY);
            if cluster.keep_alive() {
                tracing::warn!(
                    "other replicas took this one for dead: its locks were lost for a while"
                );
            }
            let roots = writable_roots(&admission.now());
            let names = roots.iter().map(|(name, _)| name.clone()).collect();
            let mut cleared = recovery.turn(roots, cluster.dead());
            std::thread::sleep(SOON);
            cleared.extend(recovery.state().cleared(&names));
            tell(&cleared);
            let dead = cleared.into_iter().flat_map(|round| round.dead);
            dead.for_each(|replica| cluster.forget(replica));
        }
    };
    sandbox::run_in_background("replicas", turns);
}

/// The roots in force whose directories are there.
fn writable_roots(admission: &Admission) -> Vec<(String, Arc<Root>)> {
    let roots = admission.deployment().roots.iter();
    let writable = roots.filter(|root| !root.read_only);
    writable
        .filter_map(|grant| Some((grant.name.clone(), grant.root.current()?)))
        .collect()
}

/// Settles unfinished changes in a root, and removes what these replicas left there. Returns how much that was; `None` if the
/// root does not answer.
fn look_after(name: &str, root: &Root, dead: &[DeadReplica]) -> Option<u64> {
    if let Some(history) = root.history() {
        histories::settle(name, root, history);
    }
    if dead.is_empty() {
        return Some(0);
    }
    root.sweep_leftovers_of(dead, &|| false).ok()
}

fn tell(cleared: &[Cleared<DeadReplica>]) {
    let replicas: usize = cleared.iter().map(|round| round.dead.len()).sum();
    let leftovers: u64 = cleared.iter().map(|round| round.leftovers).sum();
    if replicas > 0 {
        tracing::info!(
            replicas,
            leftovers,
            "what replicas left that are gone was cleared away"
        );
    }
}

type Work<R, D> = fn(&str, &R, &[D]) -> Option<u64>;

/// Spreads the work over threads.
struct Recovery<R, D> {
    work: Work<R, D>,
    state: Mutex<State<R, D>>,
}

struct State<R, D> {
    /// The roots that no thread has taken yet.
    waiting: VecDeque<(String, Arc<R>)>,
    /// The names of the roots that wait or are being looked after.
    taken: HashSet<String>,
    threads: usize,
    rounds: Vec<Round<D>>,
}

/// Replicas that were found dead together.
struct Round<D> {
    dead: Arc<Vec<D>>,
    /// The roots that may still hold something of theirs.
    left: HashSet<String>,
    leftovers: u64,
}

/// Replicas of which nothing is left in any root.
struct Cleared<D> {
    dead: Vec<D>,
    leftovers: u64,
}

impl<R, D> Recovery<R, D>
where
    R: Send + Sync + 'static,
    D: Send + Sync + 'static,
{
    fn new(work: Work<R, D>) -> Recovery<R, D> {
        Recovery {
            work,
            state: Mutex::new(State {
                waiting: VecDeque::new(),
                taken: HashSet::new(),
                threads: 0,
                rounds: Vec::new(),
            }),
        }
    }

    /// Looks after the roots that nobody is looking after, and returns the replicas that can be forgotten.
    fn turn(self: &Arc<Self>, roots: Vec<(String, Arc<R>)>, dead: Vec<D>) -> Vec<Cleared<D>> {
        let mut state = self.state();
        let names: HashSet<String> = roots.iter().map(|(name, _)| name.clone()).collect();
        if !dead.is_empty() {
            state.rounds.push(Round {
                dead: Arc::new(dead),
                left: names.clone(),
                leftovers: 0,
            });
        }
        for (name, root) in roots {
            if state.taken.insert(name.clone()) {
                state.waiting.push_back((name, root));
            }
        }
        let wanted = state.waiting.len().min(MOST_THREADS - state.threads);
        state.threads += wanted;
        let cleared = state.cleared(&names);
        drop(state);
        for _ in 0..wanted {
            let recovery = Arc::clone(self);
            if !sandbox::run_in_background("recovery", move || recovery.work_on()) {
                self.state().threads -= 1;
            }
        }
        cleared
    }

    /// Looks after one root after the other while there are any.
    fn work_on(&self) {
        while let Some((name, root)) = self.next() {
            self.look_after_one(&name, &root);
            self.state().taken.remove(&name);
        }
    }

    fn next(&self) -> Option<(String, Arc<R>)> {
        let mut state = self.state();
        let next = state.waiting.pop_front();
        if next.is_none() {
            state.threads -= 1;
        }
        next
    }

    fn look_after_one(&self, name: &str, root: &R) {
        let rounds = self.state().rounds_left_in(name);
        if rounds.is_empty() {
            (self.work)(name, root, &[]);
        }
        for dead in rounds {
            let Some(leftovers) = (self.work)(name, root, &dead) else {
                continue;
            };
            let mut state = self.state();
            let mut known = state.rounds.iter_mut();
            if let Some(round) = known.find(|round| Arc::ptr_eq(&round.dead, &dead)) {
                round.left.remove(name);
                round.leftovers += leftovers;
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State<R, D>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<R, D> State<R, D> {
    fn rounds_left_in(&self, name: &str) -> Vec<Arc<Vec<D>>> {
        let rounds = self.rounds.iter();
        let left = rounds.filter(|round| round.left.contains(name));
        left.map(|round| Arc::clone(&round.dead)).collect()
    }

    /// Takes out what no root that is in force has anything left of.
    fn cleared(&mut self, names: &HashSet<String>) -> Vec<Cleared<D>> {
        let mut cleared = Vec::new();
        for mut round in std::mem::take(&mut self.rounds) {
            round.left.retain(|name| names.contains(name));
            let is_cleared = round.left.is_empty();
            match Arc::try_unwrap(round.dead) {
                Ok(dead) if is_cleared => cleared.push(Cleared {
                    dead,
                    leftovers: round.leftovers,
                }),
                Ok(dead) => self.rounds.push(Round {
                    dead: Arc::new(dead),
                    ..round
                }),
                // A thread still uses it.
                Err(dead) => self.rounds.push(Round { dead, ..round }),
            }
        }
        cleared
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
    use std::time::Instant;

    /// A root that may be stuck, and what was cleared there.
    #[derive(Default)]
    struct Place {
        is_stuck: AtomicBool,
        visits: AtomicU64,
        swept: AtomicU64,
    }

    fn visit(_: &str, place: &Place, dead: &[u64]) -> Option<u64> {
        while place.is_stuck.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(1));
        }
        place.visits.fetch_add(1, Ordering::Relaxed);
        let swept: u64 = dead.iter().sum();
        place.swept.fetch_add(swept, Ordering::Relaxed);
        Some(swept)
    }

    fn named(places: &[Arc<Place>]) -> Vec<(String, Arc<Place>)> {
        let places = places.iter().enumerate();
        places
            .map(|(index, place)| (index.to_string(), Arc::clone(place)))
            .collect()
    }

    fn until(mut is_so: impl FnMut() -> bool) {
        let start = Instant::now();
        while !is_so() {
            assert!(start.elapsed() < Duration::from_secs(20));
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn a_root_that_does_not_answer_holds_up_no_other_and_nobody_is_forgotten() {
        let places: Vec<Arc<Place>> = (0..40).map(|_| Arc::default()).collect();
        let stuck = &places[3];
        stuck.is_stuck.store(true, Ordering::Relaxed);
        let recovery = Arc::new(Recovery::new(visit));
        assert!(recovery.turn(named(&places), vec![5]).is_empty());
        let others = || places.iter().filter(|place| !Arc::ptr_eq(place, stuck));
        until(|| others().all(|place| place.swept.load(Ordering::Relaxed) == 5));
        assert!(recovery.turn(named(&places), vec![7]).is_empty());
        until(|| others().all(|place| place.swept.load(Ordering::Relaxed) == 12));
        assert!(recovery.turn(named(&places), Vec::new()).is_empty());

        stuck.is_stuck.store(false, Ordering::Relaxed);
        let mut cleared = Vec::new();
        until(|| {
            cleared.extend(recovery.turn(named(&places), Vec::new()));
            cleared.iter().map(|round| round.dead.len()).sum::<usize>() == 2
        });
        assert_eq!(stuck.swept.load(Ordering::Relaxed), 12);
        let leftovers: u64 = cleared.iter().map(|round| round.leftovers).sum();
        assert_eq!(leftovers, 40 * 12);
    }

    #[test]
    fn the_roots_of_each_turn_are_looked_after() {
        let (first, added): (Arc<Place>, Arc<Place>) = Default::default();
        let recovery = Arc::new(Recovery::new(visit));
        recovery.turn(named(&[Arc::clone(&first)]), Vec::new());
        let both = || named(&[Arc::clone(&first), Arc::clone(&added)]);
        until(|| {
            recovery.turn(both(), Vec::new());
            added.visits.load(Ordering::Relaxed) > 0
        });
        // Of a root that is no longer served nothing is waited for.
        added.is_stuck.store(true, Ordering::Relaxed);
        assert!(recovery.turn(both(), vec![1]).is_empty());
        until(|| first.swept.load(Ordering::Relaxed) == 1);
        let one = || named(&[Arc::clone(&first)]);
        let mut cleared = recovery.turn(one(), Vec::new());
        added.is_stuck.store(false, Ordering::Relaxed);
        until(|| {
            cleared.extend(recovery.turn(one(), Vec::new()));
            !cleared.is_empty()
        });
    }
}
