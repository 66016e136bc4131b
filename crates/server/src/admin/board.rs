//! The calls that the operator's page shows: running ones, the last ones that ended, and figures by second and client.
//!
//! Everything here is bounded and nothing waits, because every call passes through it.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde::Serialize;
use toolset::{CallObserver, ObservedCall, ObservedEnd, first_chars};

/// How many calls that ended are kept.
const ENDED_MAX: usize = 10_000;
/// How many of them one answer holds.
const ANSWER_MAX: usize = 2_000;
/// How many running calls one answer holds.
const RUNNING_SHOWN: usize = 100;
/// How many clients are told apart; further ones are counted together.
const CLIENTS_MAX: usize = 1_000;
/// The client that stands for all others.
const OTHERS: &str = "others";
/// How many seconds the charts go back.
const SECONDS: usize = 300;
/// How much of a client's text is kept.
const TEXT_MAX: usize = 300;
/// The outcome of a call that succeeded.
const OK: &str = "ok";

/// Records the calls for the operator's page.
#[derive(Debug, Default)]
pub(crate) struct CallBoard {
    state: Mutex<BoardState>,
}

#[derive(Debug, Default)]
struct BoardState {
    /// The number of the next call.
    next: u64,
    running: BTreeMap<u64, RunningCall>,
    ended: VecDeque<EndedCall>,
    /// How many calls have ended.
    count: u64,
    seconds: VecDeque<SecondFigures>,
    clients: HashMap<String, ClientFigures>,
    suspended: HashSet<String>,
}

#[derive(Debug)]
struct RunningCall {
    begun: Instant,
    told: ToldCall,
    allowance: String,
}

/// A call as the page shows it.
#[derive(Debug, Clone, Serialize)]
struct ToldCall {
    /// When it began, in milliseconds since the epoch.
    time: u64,
    client: String,
    toolset: &'static str,
    tool: &'static str,
    root: Option<String>,
    path: Option<String>,
}

/// A call that has ended.
#[derive(Debug, Clone, Serialize)]
struct EndedCall {
    /// Calls are numbered in the order in which they end.
    number: u64,
    #[serde(flatten)]
    told: ToldCall,
    outcome: String,
    reason: Option<String>,
    violation: bool,
    milliseconds: f64,
    bytes: usize,
}

/// What happened in one second.
#[derive(Debug, Clone, Default, Serialize)]
struct SecondFigures {
    /// Seconds since the epoch.
    time: u64,
    calls: u64,
    failures: u64,
    violations: u64,
    mean_ms: f64,
    max_ms: f64,
}

/// A client's activity since the start.
#[derive(Debug, Clone, Default, Serialize)]
pub(super) struct ClientFigures {
    /// What the log calls it, as of its last call.
    name: String,
    calls: u64,
    failures: u64,
    violations: u64,
    /// When it last called, in milliseconds since the epoch.
    last: u64,
}

/// A client as the page shows it.
#[derive(Debug, Serialize)]
pub(super) struct ToldClient {
    /// The account that can be suspended: its token, else its address.
    client: String,
    #[serde(flatten)]
    figures: ClientFigures,
    suspended: bool,
}

/// The news since a number.
#[derive(Debug, Serialize)]
pub(super) struct LiveCalls {
    /// The number for the next request.
    next: u64,
    /// How many ended calls are no longer kept.
    missed: u64,
    /// How many later ones remain to be requested.
    more: usize,
    ended: Vec<EndedCall>,
    running: Vec<ToldRunning>,
    running_total: usize,
    seconds: Vec<SecondFigures>,
}

#[derive(Debug, Serialize)]
struct ToldRunning {
    #[serde(flatten)]
    told: ToldCall,
    milliseconds: f64,
}

impl CallBoard {
    /// The calls that ended after a number, those that run, and the figures of the last minutes.
    pub(super) fn live(&self, after: u64) -> LiveCalls {
        let state = self.state();
        let first_kept = state
            .count
            .saturating_sub(u64::try_from(state.ended.len()).unwrap_or(u64::MAX));
        // A number that was not reached yet comes from an earlier process: start over.
        let after = if after > state.count { 0 } else { after };
        let from = after.max(first_kept);
        let skipped = usize::try_from(from - first_kept).unwrap_or(usize::MAX);
        let waiting = state.ended.len().saturating_sub(skipped);
        let ended = state.ended.iter().skip(skipped).take(ANSWER_MAX);
        let ended: Vec<EndedCall> = ended.cloned().collect();
        let running = state.running.values().take(RUNNING_SHOWN);
        LiveCalls {
            next: from + ended.len() as u64,
            missed: from - after,
            more: waiting - ended.len(),
            ended,
            running: running.map(RunningCall::told).collect(),
            running_total: state.running.len(),
            seconds: state.seconds.iter().cloned().collect(),
        }
    }

    /// Every client, the latest first; then those that are configured and have not called yet.
    pub(super) fn clients(&self, configured: &[String]) -> Vec<ToldClient> {
        let state = self.state();
        let is_unseen = |name: &&String| !state.clients.contains_key(*name);
        let unseen = configured.iter().filter(is_unseen);
        let unseen = unseen.map(|name| ToldClient {
            client: name.clone(),
            figures: ClientFigures {
                name: name.clone(),
                ..ClientFigures::default()
            },
            suspended: state.suspended.contains(name),
        });
        let told = |(client, figures): (&String, &ClientFigures)| ToldClient {
            client: client.clone(),
            figures: figures.clone(),
            suspended: state.suspended.contains(client),
        };
        let mut clients: Vec<ToldClient> = state.clients.iter().map(told).collect();
        clients.sort_by_key(|client| std::cmp::Reverse(client.figures.last));
        clients.extend(unseen);
        clients
    }

    /// Keeps a client out or lets it in again; returns whether the client is known, because it called or is configured.
    pub(super) fn suspend(&self, client: &str, is_suspended: bool, configured: &[String]) -> bool {
        let mut state = self.state();
        if !is_suspended {
            return state.suspended.remove(client);
        }
        let has_called = client != OTHERS && state.clients.contains_key(client);
        let is_known = has_called || configured.iter().any(|name| name == client);
        if is_known {
            state.suspended.insert(client.to_owned());
        }
        is_known
    }

    fn state(&self) -> MutexGuard<'_, BoardState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CallObserver for CallBoard {
    fn is_suspended(&self, client: &str) -> bool {
        let state = self.state();
        // Holders of access tokens are known by their client and their subject.
        let of_client = || client.split_once(':').map(|(name, _)| name);
        !state.suspended.is_empty()
            && (state.suspended.contains(client)
                || of_client().is_some_and(|name| state.suspended.contains(name)))
    }

    fn began(&self, call: &ObservedCall<'_>) -> u64 {
        let cut = |text: &str| first_chars(text, TEXT_MAX).to_owned();
        let running = RunningCall {
            begun: Instant::now(),
            told: ToldCall {
                time: milliseconds(now()),
                client: cut(call.client),
                toolset: call.toolset,
                tool: call.tool,
                root: call.root.map(cut),
                path: call.path.map(cut),
            },
            allowance: cut(call.allowance),
        };
        let mut state = self.state();
        state.next += 1;
        let number = state.next;
        state.running.insert(number, running);
        number
    }

    fn ended(&self, call: u64, end: &ObservedEnd<'_>) {
        let mut state = self.state();
        let Some(running) = state.running.remove(&call) else {
            return;
        };
        state.count_client(&running, end);
        state.count_second(end);
        state.count += 1;
        let number = state.count;
        if state.ended.len() >= ENDED_MAX {
            state.ended.pop_front();
        }
        state.ended.push_back(EndedCall {
            number,
            told: running.told,
            outcome: end.outcome.to_owned(),
            reason: end
                .reason
                .map(|reason| first_chars(reason, TEXT_MAX).to_owned()),
            violation: end.is_violation,
            milliseconds: end.duration.as_secs_f64() * 1000.0,
            bytes: end.bytes,
        });
    }
}

impl BoardState {
    fn count_client(&mut self, call: &RunningCall, end: &ObservedEnd<'_>) {
        let is_known =
            self.clients.len() < CLIENTS_MAX || self.clients.contains_key(&call.allowance);
        let (client, name) = if is_known {
            (call.allowance.as_str(), call.told.client.as_str())
        } else {
            (OTHERS, OTHERS)
        };
        let figures = self.clients.entry(client.to_owned()).or_default();
        name.clone_into(&mut figures.name);
        figures.calls += 1;
        figures.failures += u64::from(end.outcome != OK);
        figures.violations += u64::from(end.is_violation);
        figures.last = call.told.time;
    }

    fn count_second(&mut self, end: &ObservedEnd<'_>) {
        let time = now().as_secs();
        if self.seconds.back().is_none_or(|last| last.time != time) {
            if self.seconds.len() >= SECONDS {
                self.seconds.pop_front();
            }
            self.seconds.push_back(SecondFigures {
                time,
                ..SecondFigures::default()
            });
        }
        let Some(second) = self.seconds.back_mut() else {
            return;
        };
        let took = end.duration.as_secs_f64() * 1000.0;
        second.calls += 1;
        second.failures += u64::from(end.outcome != OK);
        second.violations += u64::from(end.is_violation);
        second.mean_ms += (took - second.mean_ms) / second.calls as f64;
        second.max_ms = second.max_ms.max(took);
    }
}

impl RunningCall {
    fn told(&self) -> ToldRunning {
        ToldRunning {
            told: self.told.clone(),
            milliseconds: self.begun.elapsed().as_secs_f64() * 1000.0,
        }
    }
}

fn now() -> Duration {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.unwrap_or_default()
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(board: &CallBoard, client: &str, outcome: &str) {
        let number = board.began(&ObservedCall {
            toolset: "workspace",
            tool: "read_file",
            root: Some("data"),
            path: Some("a"),
            client,
            allowance: client,
        });
        board.ended(
            number,
            &ObservedEnd {
                outcome,
                reason: (outcome != OK).then_some("why"),
                is_violation: outcome == "path_outside_root",
                duration: Duration::from_millis(2),
                bytes: 10,
            },
        );
    }

    #[test]
    fn what_ended_is_told_once_and_in_order() {
        let board = CallBoard::default();
        call(&board, "a", OK);
        call(&board, "b", "not_found");
        let live = board.live(0);
        let told: Vec<(u64, &str)> = live
            .ended
            .iter()
            .map(|call| (call.number, call.outcome.as_str()))
            .collect();
        assert_eq!(told, [(1, OK), (2, "not_found")]);
        assert_eq!(live.missed, 0);
        assert!(board.live(live.next).ended.is_empty());
        // A number from an earlier process starts over.
        assert_eq!(board.live(99).ended.len(), 2);
    }

    #[test]
    fn there_is_an_end_to_what_is_kept_and_it_is_told() {
        let board = CallBoard::default();
        for number in 0..ENDED_MAX + 5 {
            call(&board, &format!("client {number}"), OK);
        }
        let live = board.live(0);
        assert_eq!(live.missed, 5);
        let (mut live, mut told) = (live, Vec::new());
        loop {
            assert_eq!(live.ended.len(), ANSWER_MAX);
            told.extend(live.ended.iter().map(|call| call.number));
            if live.more == 0 {
                break;
            }
            live = board.live(live.next);
            assert_eq!(live.missed, 0);
        }
        let kept = 6..=(ENDED_MAX + 5) as u64;
        assert!(told.into_iter().eq(kept), "all that are kept, in order");
        assert_eq!(live.next, (ENDED_MAX + 5) as u64);
        assert_eq!(board.clients(&[]).len(), CLIENTS_MAX + 1);
        let recent = board.live(live.next - 3);
        assert_eq!(recent.ended.len(), 3);
        assert_eq!(recent.missed, 0);
    }

    #[test]
    fn a_client_that_was_seen_can_be_kept_out() {
        let board = CallBoard::default();
        call(&board, "a", "path_outside_root");
        assert!(!board.suspend("unknown", true, &[]));
        assert!(board.suspend("a", true, &[]));
        assert!(board.is_suspended("a"));
        assert!(!board.is_suspended("b"));
        let clients = board.clients(&[]);
        assert!(clients[0].suspended);
        assert_eq!(clients[0].figures.violations, 1);
        assert!(board.suspend("a", false, &[]));
        assert!(!board.is_suspended("a"));
        let configured = ["later".to_owned()];
        assert!(board.suspend("later", true, &configured));
        assert!(board.is_suspended("later") && board.is_suspended("later:alice"));
        assert_eq!(board.clients(&configured).len(), 2);
    }
}
