//! The requests that were refused before they became calls: counted by status for the metrics, and by sender for the operator's page.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::Serialize;
use toolset::first_chars;

use super::refusal::Refusal;

/// How many senders are kept for each status and in all; the one that was refused longest ago makes room.
const SENDERS_MAX: usize = 200;
/// How much of a path or a reason is kept.
pub(super) const REASON_MAX: usize = 300;

/// Who sent a request.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Sender {
    /// Its address, or the one that a trusted proxy told.
    pub(super) address: IpAddr,
    /// The log's name for the client, if its token was right.
    pub(super) client: Option<Arc<str>>,
}

/// Counts refused requests. Anybody can cause them, so what is kept has a bound.
#[derive(Default)]
pub(crate) struct RefusalLog {
    state: Mutex<RefusalState>,
}

#[derive(Default)]
struct RefusalState {
    by_status: BTreeMap<u16, u64>,
    by_sender: HashMap<(Sender, u16), RefusedSender>,
}

/// A sender's requests that were refused with one status; text and path are those of the last one.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct RefusedSender {
    sender: IpAddr,
    client: Option<String>,
    status: u16,
    /// Whether the last one tried to reach something that exists, but not for its sender.
    violation: bool,
    reason: String,
    path: String,
    count: u64,
    /// In milliseconds since the epoch.
    last: u64,
}

impl RefusalLog {
    /// Counts one refused request.
    pub(super) fn count(&self, sender: &Sender, path: &str, refusal: &Refusal) {
        let status = refusal.status.as_u16();
        let cut = |text: &str| first_chars(text, REASON_MAX).to_owned();
        let mut state = self.state();
        *state.by_status.entry(status).or_default() += 1;
        let key = (sender.clone(), status);
        let count = state.by_sender.get(&key).map_or(0, |known| known.count) + 1;
        if count == 1 && state.by_sender.len() >= SENDERS_MAX {
            state.forget_the_oldest();
        }
        let refused = RefusedSender {
            sender: sender.address,
            client: sender.client.as_deref().map(str::to_owned),
            status,
            violation: refusal.is_violation,
            reason: cut(&refusal.reason),
            path: cut(path),
            count,
            last: milliseconds_now(),
        };
        state.by_sender.insert(key, refused);
    }

    /// How many requests were refused with each status.
    pub(super) fn by_status(&self) -> BTreeMap<u16, u64> {
        self.state().by_status.clone()
    }

    /// Who was refused, the latest first.
    pub(crate) fn senders(&self) -> Vec<RefusedSender> {
        let mut senders: Vec<RefusedSender> = self.state().by_sender.values().cloned().collect();
        senders.sort_by_key(|refused| std::cmp::Reverse(refused.last));
        senders
    }

    fn state(&self) -> MutexGuard<'_, RefusalState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RefusalState {
    fn forget_the_oldest(&mut self) {
        let oldest = self
            .by_sender
            .iter()
            .min_by_key(|(_, refused)| refused.last);
        if let Some(key) = oldest.map(|(key, _)| key.clone()) {
            self.by_sender.remove(&key);
        }
    }
}

fn milliseconds_now() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    u64::try_from(now.unwrap_or_default().as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use hyper::StatusCode;

    use super::*;

    fn refuse(log: &RefusalLog, last: u16, status: StatusCode) {
        let [high, low] = last.to_be_bytes();
        let sender = Sender {
            address: [127, 0, high, low].into(),
            client: None,
        };
        let refusal = Refusal::new(status, "why".to_owned());
        log.count(&sender, "/mcp", &refusal);
    }

    #[test]
    fn a_sender_has_one_row_for_each_status() {
        let log = RefusalLog::default();
        for status in [401, 401, 403] {
            refuse(&log, 1, StatusCode::from_u16(status).unwrap());
        }
        refuse(&log, 2, StatusCode::UNAUTHORIZED);
        assert_eq!(log.by_status(), BTreeMap::from([(401, 3), (403, 1)]));
        let mut counts: Vec<(u16, u64)> = log
            .senders()
            .iter()
            .map(|refused| (refused.status, refused.count))
            .collect();
        counts.sort_unstable();
        assert_eq!(counts, [(401, 1), (401, 2), (403, 1)]);
    }

    #[test]
    fn there_is_an_end_to_what_is_kept() {
        let log = RefusalLog::default();
        for sender in 0..500 {
            refuse(&log, sender, StatusCode::UNAUTHORIZED);
        }
        assert_eq!(log.senders().len(), SENDERS_MAX);
        assert_eq!(log.by_status(), BTreeMap::from([(401, 500)]));
    }
}
