//! Looks after the directories of the roots while the server runs: one may be removed or replaced on the host.

use std::io;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use sandbox::{LiveRoot, RootChange};
use toolset::Deployment;

/// How long the watcher pauses between two looks.
const PAUSE: Duration = Duration::from_secs(2);

/// Starts a thread that compares each root with what is at its path: calls themselves make no system call for it. A look
/// can wait long for a dead network mount, so it has a thread of its own.
pub(crate) fn start(deployment: &Deployment) -> io::Result<()> {
    let roots = deployment.roots.iter();
    let roots: Vec<(String, Arc<LiveRoot>)> = roots
        .map(|grant| (grant.name.clone(), Arc::clone(&grant.root)))
        .collect();
    if roots.is_empty() {
        return Ok(());
    }
    let watch = move || {
        loop {
            thread::sleep(PAUSE);
            for (name, root) in &roots {
                root.check().iter().for_each(|change| tell(name, *change));
            }
        }
    };
    thread::Builder::new()
        .name("roots".to_owned())
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
