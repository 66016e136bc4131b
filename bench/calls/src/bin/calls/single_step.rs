//! Counts the instructions of a running process by single steps.
//!
//! Callgrind knows no `openat2` (up to 3.19 at least), so under it every file is opened by the component walk and on the
//! blocking pool. Single steps run on the real kernel: what is counted is what happens in production, on all threads.
//!
//! The processor stops after every round of an instruction that repeats itself (`rep movsb`, how the C library copies a few
//! kilobytes). Such an instruction counts once, as a performance counter counts it.

use std::collections::HashMap;
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context, Result};
use nix::sys::ptrace::{self, Options};
use nix::sys::signal::Signal;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

/// How often, and how many times in a row, nothing must run before steps are counted.
const LOOK_EVERY: Duration = Duration::from_millis(10);
const IDLE_LOOKS: usize = 50;

/// The instructions that a process has taken since it was attached to.
#[derive(Clone, Default)]
pub(crate) struct Steps(Arc<AtomicU64>);

impl Steps {
    /// Attaches to a process and counts until it ends. Only the thread that attaches may step, so it gets its own.
    pub(crate) fn of(process: u32) -> Result<Steps> {
        let steps = Steps::default();
        let counter = steps.clone();
        let main = Pid::from_raw(i32::try_from(process)?);
        let (ready, attached) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let is_attached = attach(main);
            let goes_on = is_attached.is_ok();
            if ready.send(is_attached).is_ok() && goes_on {
                counter.step_until_the_end(main);
            }
        });
        attached.recv().context("nobody attached")??;
        Ok(steps)
    }

    /// How many there were so far.
    pub(crate) fn taken(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    fn step_until_the_end(&self, main: Pid) {
        let mut places = HashMap::new();
        // Not for those of another thread, which counts another process: they would never be stepped again.
        let own = WaitPidFlag::__WALL | WaitPidFlag::__WNOTHREAD;
        while let Ok(status) = waitpid(None, Some(own)) {
            let (thread, signal) = match status {
                WaitStatus::Stopped(thread, Signal::SIGTRAP) => {
                    let place = place(thread);
                    let is_repeated =
                        place.is_some() && place == places.insert(thread, place).flatten();
                    self.0.fetch_add(u64::from(!is_repeated), Ordering::Relaxed);
                    (thread, None)
                }
                WaitStatus::Stopped(thread, signal) => (thread, Some(signal)),
                WaitStatus::PtraceEvent(thread, ..) => (thread, None),
                WaitStatus::Exited(thread, _) | WaitStatus::Signaled(thread, ..)
                    if thread == main =>
                {
                    return;
                }
                _ => continue,
            };
            // A thread that was killed meanwhile cannot be stepped; its end is reported next.
            let _ = ptrace::step(thread, signal);
        }
    }
}

/// Waits until no thread of a process has anything to do, at many looks in a row.
pub(crate) fn wait_until_idle(process: u32) -> Result<()> {
    let mut idle_looks = 0;
    while idle_looks < IDLE_LOOKS {
        std::thread::sleep(LOOK_EVERY);
        idle_looks = if is_idle(process)? { idle_looks + 1 } else { 0 };
    }
    Ok(())
}

fn is_idle(process: u32) -> Result<bool> {
    for entry in fs::read_dir(format!("/proc/{process}/task"))? {
        // A thread that has just ended is idle, too.
        let status = fs::read_to_string(entry?.path().join("status")).unwrap_or_default();
        if status
            .lines()
            .any(|line| line.starts_with("State:") && !line.contains("(sleeping)"))
        {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The address of a thread's next instruction, where instructions can repeat themselves.
fn place(thread: Pid) -> Option<u64> {
    #[cfg(target_arch = "x86_64")]
    {
        ptrace::getregs(thread).ok().map(|registers| registers.rip)
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        let _ = thread;
        None
    }
}

fn attach(process: Pid) -> Result<()> {
    for entry in fs::read_dir(format!("/proc/{process}/task"))? {
        let name = entry?.file_name();
        let thread = Pid::from_raw(name.to_str().context("no number")?.parse()?);
        ptrace::seize(thread, Options::PTRACE_O_TRACECLONE)?;
        ptrace::interrupt(thread)?;
    }
    Ok(())
}
