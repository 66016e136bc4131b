//! Watches the directories of the roots while the server runs, because one may be removed or replaced on the host.

use std::io;
use std::sync::{Arc, Weak};
use std::thread;
use std::time::Duration;

use sandbox::{LiveRoot, RootChange};
use toolset::RootGrant;

/// How long the watcher pauses between two checks.
const PAUSE: Duration = Duration::from_secs(2);

/// Starts a thread for each root that compares it with what is at its path: calls themselves make no system call for
/// it. A check can hang on a dead network mount, which must not keep the other roots from being checked.
pub(crate) fn start<'grants>(
    mut roots: impl Iterator<Item = &'grants RootGrant>,
) -> io::Result<()> {
    roots.try_for_each(|grant| watch(grant.name.clone(), Arc::downgrade(&grant.root)))
}

/// Watches a root until it is no longer used.
fn watch(name: String, root: Weak<LiveRoot>) -> io::Result<()> {
    let watch = move || {
        loop {
            thread::sleep(PAUSE);
            let Some(root) = root.upgrade() else { return };
            if let Some(change) = root.check() {
                tell(&name, change);
            }
        }
    };
    thread::Builder::new()
        .name("root".to_owned())
        .spawn(watch)
        .map(drop)
}

fn tell(root: &str, change: RootChange) {
    match change {
        RootChange::Gone => tracing::warn!(
            root,
            "the directory of root {root} is gone: calls on it fail until it is back or the server is restarted"
        ),
        RootChange::Reopened => tracing::warn!(
            root,
            "the directory of root {root} was replaced; the new one was opened"
        ),
        RootChange::Back => tracing::warn!(root, "the directory of root {root} is back"),
    }
}
