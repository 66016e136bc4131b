//! Maintains the histories of the roots in the background: settles changes after a kill, and prunes.

use std::sync::{Arc, Weak};
use std::time::Duration;

use sandbox::{History, NamedRoot, Root, Roots};

use crate::open_roots;

/// How often old changes are looked for.
const PRUNED_EVERY: Duration = Duration::from_secs(60);

/// How many of these turns an hour has.
const HOUR: u64 = 60;

/// How many paths a line of the log names.
const PATHS_TOLD: usize = 20;

/// Settles the unfinished changes of a killed process, before any call.
pub(crate) fn recover(roots: &Roots) {
    for root in roots.iter() {
        let Some(history) = root.root.history() else {
            continue;
        };
        let place = if history.is_in_root() {
            "in the root"
        } else {
            "outside the root"
        };
        tracing::info!(root = root.name, place, "a history is kept");
        settle(&root.name, &root.root, history);
        warn(root, history);
    }
}

/// Completes or takes back the unfinished changes of killed processes.
pub(crate) fn settle(root: &str, opened: &Root, history: &History) {
    let recovered = history.recover(opened);
    if recovered.done + recovered.taken_back > 0 {
        tracing::info!(
            root,
            done = recovered.done,
            taken_back = recovered.taken_back,
            "unfinished changes were settled"
        );
    }
    if !recovered.left.is_empty() {
        let told: Vec<&str> = recovered.left.iter().map(String::as_str).collect();
        let told = told.get(..PATHS_TOLD).unwrap_or(&told);
        tracing::warn!(
            root,
            count = recovered.left.len(),
            paths = ?told,
            "unfinished changes were left as they are: the files were changed since"
        );
    }
}

fn warn(root: &NamedRoot, history: &History) {
    let is_writable = open_roots::access(&root.root).is_some_and(|access| access.writable);
    let cannot_be_made = || {
        let is_missing = history.is_in_root() && !history.is_made();
        (is_missing && !is_writable).then(|| "the directory is not writable".to_owned())
    };
    let root = &root.name;
    if let Some(reason) = history.fault().or_else(cannot_be_made) {
        tracing::warn!(root, reason, "no history is kept: changes cannot be undone");
    }
    if history.forged() > 0 {
        tracing::warn!(root, "a history that is not this root's was left alone");
    }
}

/// A history that is checked from time to time.
struct WatchedHistory {
    root: String,
    opened: Weak<Root>,
    history: Weak<History>,
    /// The last change at the last check.
    seen: u64,
    /// The log already says that there is none.
    is_told: bool,
    /// How many kept entries could not be removed, as last logged.
    stuck: u64,
}

impl WatchedHistory {
    fn tell_stuck(&mut self, stuck: u64) {
        if stuck > 0 && stuck != self.stuck {
            let root = &self.root;
            tracing::warn!(root, stuck, "old content of a history could not be removed");
        }
        self.stuck = stuck;
    }

    /// Without a new change only age matters, and that can wait. Returns whether the history is still in use.
    fn look(&mut self, is_hour: bool) -> bool {
        let Some(history) = self.history.upgrade() else {
            return false;
        };
        // Changes that another process was making when this one started, or whose process was killed since.
        if let Some(opened) = self.opened.upgrade() {
            settle(&self.root, &opened, &history);
        }
        let last = history.last_number();
        if last != self.seen || is_hour {
            let pruned = history.prune();
            self.seen = last;
            self.tell_stuck(pruned.stuck);
        }
        if is_hour {
            history.remove_stale();
        }
        if let Some(reason) = history.fault().filter(|_| !self.is_told) {
            self.is_told = true;
            let root = &self.root;
            tracing::warn!(root, reason, "no history is kept: changes cannot be undone");
        }
        true
    }
}

/// Removes changes that are old or too many, for as long as the process runs.
pub(crate) fn prune_in_background(roots: &Roots) {
    let of_root = |root: &NamedRoot| {
        let history = root.root.history()?;
        Some(WatchedHistory {
            is_told: history.fault().is_some(),
            root: root.name.clone(),
            opened: Arc::downgrade(&root.root),
            history: Arc::downgrade(history),
            seen: 0,
            stuck: 0,
        })
    };
    let mut histories: Vec<WatchedHistory> = roots.iter().filter_map(of_root).collect();
    if histories.is_empty() {
        return;
    }
    let prune = move || {
        for minute in 0_u64.. {
            std::thread::sleep(PRUNED_EVERY);
            histories.retain_mut(|watched| watched.look(minute % HOUR == 0));
            if histories.is_empty() {
                return;
            }
        }
    };
    sandbox::run_in_background("history", prune);
}
