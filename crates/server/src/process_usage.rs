//! The process's own memory and processor time, as the kernel counts them.

use std::fs::File;
use std::sync::{Mutex, PoisonError};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use crate::operator_files;

/// How much of a file in `/proc` is read.
const READ_MAX: u64 = 4096;
/// The clock ticks of a second in `/proc`, which are the same on every machine.
const TICKS: f64 = 100.0;
/// The fields of `/proc/self/stat` behind the program's name that hold the ticks in user and in system mode.
const USER_TICKS: usize = 11;

/// The open files in `/proc`: Landlock closes it later.
#[derive(Debug)]
pub(crate) struct ProcessFigures {
    started: Instant,
    started_at: f64,
    memory: Option<Mutex<File>>,
    time: Option<Mutex<File>>,
}

impl ProcessFigures {
    /// Opens what will be read.
    pub(crate) fn open() -> ProcessFigures {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        ProcessFigures {
            started: Instant::now(),
            started_at: now.unwrap_or_default().as_secs_f64(),
            memory: operator_files::open_own_proc("statm").map(Mutex::new),
            time: operator_files::open_own_proc("stat").map(Mutex::new),
        }
    }

    /// The bytes of memory that the process has, if the kernel tells.
    pub(crate) fn resident_bytes(&self) -> Option<u64> {
        let text = read(self.memory.as_ref()?)?;
        let pages: u64 = text.split(' ').nth(1)?.parse().ok()?;
        Some(pages * rustix::param::page_size() as u64)
    }

    /// The seconds of processor time that it used, if the kernel tells.
    pub(crate) fn cpu_seconds(&self) -> Option<f64> {
        let text = read(self.time.as_ref()?)?;
        // The program's name is in parentheses and may hold anything.
        let (_, rest) = text.rsplit_once(") ")?;
        let ticks = rest.split(' ').skip(USER_TICKS).take(2);
        let ticks: Option<f64> = ticks.map(|field| field.parse::<f64>().ok()).sum();
        Some(ticks? / TICKS)
    }

    /// For how many seconds it has been running.
    pub(crate) fn uptime_seconds(&self) -> u64 {
        self.started.elapsed().as_secs()
    }

    /// When it started, in seconds since the epoch.
    pub(crate) fn started_at(&self) -> f64 {
        self.started_at
    }
}

fn read(file: &Mutex<File>) -> Option<String> {
    let file = file.lock().unwrap_or_else(PoisonError::into_inner);
    let bytes = operator_files::read_from(&file, 0, READ_MAX).ok()?;
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_tells_what_this_process_takes() {
        let figures = ProcessFigures::open();
        assert!(
            figures
                .resident_bytes()
                .is_some_and(|bytes| bytes > 100_000)
        );
        assert!(figures.cpu_seconds().is_some_and(|seconds| seconds >= 0.0));
    }
}
