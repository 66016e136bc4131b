//! Runs work that no call waits for, on a thread of its own at the lowest priority.

use std::thread;

/// The lowest priority.
const NICENESS: i32 = 19;

/// Runs some work on a new thread. If no thread can be started, the work is not done.
pub fn run(name: &str, work: impl FnOnce() + Send + 'static) {
    let work = move || {
        // Per thread on Linux. If it is refused the work runs at normal priority.
        let _ = rustix::process::setpriority_process(None, NICENESS);
        work();
    };
    let _ = thread::Builder::new().name(name.to_owned()).spawn(work);
}
