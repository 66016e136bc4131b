//! The requests that were refused before they became calls: counted by status for the metrics, and by sender for the operator's page.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::Serialize;
use toolset::first_chars;

use super::host_check::Refusal;

/// How many senders are kept for each status and in all; the one that was refused longest ago makes room.
const SENDERS_MAX: usize = 200;
/// How much of a sender's text is kept.
const TEXT_MAX: usize = 300;

/// Counts refused requests. Anybody can cause them, so what is kept has a bound.
#[derive(Default)]
pub(crate) struct RefusalLog {
    state: Mutex<RefusalState>,
}

#[derive(Default)]
struct RefusalState {
    by_status: BTreeMap<u16, u64>,
    by_sender: HashMap<(IpAddr, u16), RefusedSender>,
}

/// A sender's requests that were refused with one status; text and path are those of the last one.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct RefusedSender {
    sender: IpAddr,
    status: u16,
    reason: String,
    path: String,
    count: u64,
    /// In milliseconds since the epoch.
    last: u64,
}

impl RefusalLog {
    /// Counts one refused request.
    pub(super) fn count(&self, sender: IpAddr, path: &str, refusal: &Refusal) {
        let status = refusal.status.as_u16();
        let cut = |text: &str| first_chars(text, TEXT_MAX).to_owned();
        let mut state = self.state();
        *state.by_status.entry(status).or_default() += 1;
        let key = (sender, status);
        let count = state.by_sender.get(&key).map_or(0, |known| known.count) + 1;
        if count == 1 && state.by_sender.len() >= SENDERS_MAX {
            state.forget_the_oldest();
        }
        let refused = RefusedSender {
            sender,
            status,
            reason: cut(&refusal.message),
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
        if let Some(key) = oldest.map(|(key, _)| *key) {
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
        let refusal = Refusal {
            status,
            message: "why".to_owned(),
        };
        log.count([127, 0, high, low].into(), "/mcp", &refusal);
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
