//! What the process does with the histories of its roots beside the calls: after a kill, and when they grow.

use std::sync::Arc;
use std::time::Duration;

use sandbox::{History, Roots};

/// How often old changes are looked for.
const PRUNED_EVERY: Duration = Duration::from_secs(60);

/// How many of these turns an hour has.
const HOUR: u64 = 60;

/// Settles what a killed process left unfinished, before any call.
pub(crate) fn recover(roots: &Roots) {
    for root in roots.iter() {
        let Some(history) = root.root.history() else {
            continue;
        };
        let recovered = history.recover(&root.root);
        if recovered.done + recovered.taken_back > 0 {
            tracing::info!(
                root = root.name,
                done = recovered.done,
                taken_back = recovered.taken_back,
                "unfinished changes were settled"
            );
        }
        if !recovered.left.is_empty() {
            tracing::warn!(
                root = root.name,
                paths = recovered.left.len(),
                "unfinished changes were left as they are: somebody changed the files since"
            );
        }
        warn(&root.name, history);
    }
}

fn warn(root: &str, history: &History) {
    if let Some(reason) = history.fault() {
        tracing::warn!(root, reason, "no history is kept");
    }
    if history.forged() > 0 {
        tracing::warn!(root, "a history that is not this root's was left alone");
    }
}

/// Removes changes that are old or too many, for as long as the process runs.
pub(crate) fn prune_in_background(roots: &Roots) {
    let mut histories: Vec<(Arc<History>, u64)> = roots
        .iter()
        .filter_map(|root| Some((Arc::clone(root.root.history()?), 0)))
        .collect();
    if histories.is_empty() {
        return;
    }
    let prune = move || {
        for minute in 0_u64.. {
            std::thread::sleep(PRUNED_EVERY);
            for (history, seen) in &mut histories {
                let last = history.last_number();
                // Without a new change only age counts, and that can wait.
                if last != *seen || minute % HOUR == 0 {
                    history.prune();
                    *seen = last;
                }
            }
        }
    };
    sandbox::run_in_background("history", prune);
}
