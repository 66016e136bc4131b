//! Shares out descriptors among calls that change many files at once.
//!
//! Such a call holds every file open until all of them are written. Without a share, many of them together, or one alone
//! under a low limit, would use up the descriptors of the process in the middle of their changes.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::context::Cancel;
use crate::error::{Error, RequestPart, Result};
use crate::pool;

/// The descriptors that a file takes while it is changed: two for its directory, two for the old file (or for
/// directories made for the new one), and one for its new content.
const PER_FILE: u64 = 5;
/// Calls with fewer files are not counted: the number of calls bounds them.
const FEW_FILES: usize = 4;
/// How often a waiting call checks whether its caller gave up.
const LOOK_EVERY: Duration = Duration::from_millis(50);

static TAKEN: DescriptorTable = DescriptorTable {
    taken: Mutex::new(0),
    freed: Condvar::new(),
};

/// How many descriptors such calls hold.
struct DescriptorTable {
    taken: Mutex<u64>,
    freed: Condvar,
}

/// The descriptors of one call, until this is dropped.
#[derive(Debug)]
pub(crate) struct DescriptorShare(u64);

impl DescriptorShare {
    /// Waits until there are descriptors for this many files. `part` of the request names them.
    pub(crate) fn take(files: usize, part: RequestPart, cancel: &Cancel) -> Result<Self> {
        if files < FEW_FILES {
            return Ok(DescriptorShare(0));
        }
        // The rest is for connections and for all other calls.
        let limit = sandbox::descriptor_limit() / 4 * 3;
        let wanted = (files as u64).saturating_mul(PER_FILE);
        if wanted > limit {
            let most = limit / PER_FILE;
            return Err(Error::InvalidPart {
                part,
                reason: format!(
                    "it is for {files} files; this server can change at most {most} in one call, because it may \
                     not open more files at once; split it into several calls"
                ),
            });
        }
        // Declared before the lock, so that the thread waits for its next seat without it.
        let _aside;
        let mut taken = lock();
        if taken.saturating_add(wanted) > limit {
            _aside = pool::step_aside(cancel);
            while taken.saturating_add(wanted) > limit {
                cancel.check()?;
                let woken = TAKEN.freed.wait_timeout(taken, LOOK_EVERY);
                (taken, _) = woken.unwrap_or_else(PoisonError::into_inner);
            }
        }
        *taken += wanted;
        Ok(DescriptorShare(wanted))
    }
}

impl Drop for DescriptorShare {
    fn drop(&mut self) {
        if self.0 > 0 {
            *lock() -= self.0;
            TAKEN.freed.notify_all();
        }
    }
}

fn lock() -> MutexGuard<'static, u64> {
    TAKEN.taken.lock().unwrap_or_else(PoisonError::into_inner)
}
