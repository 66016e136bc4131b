//! The context of every operation: the limits of the process, and the caller's deadline and cancellation.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::byte_budget::{ReplyRoom, Reserved, SMALL_BYTES};
use crate::consent::{Consent, Planned};
use crate::error::{Error, Result};
use crate::line_index_cache::LineIndexCache;
use crate::pool;
use crate::search_memory::SearchMemory;

/// Limits that no call may exceed, whatever its arguments say.
#[derive(Debug, Clone)]
pub struct Limits {
    /// The largest file that is read whole without an explicit range.
    pub max_full_read_size: u64,
    /// The most bytes of content one reply holds.
    pub max_file_size: u64,
    /// The largest file that tools without ranges return whole: the limit for edited files, unless the operator chose
    /// less.
    pub max_viewed_size: u64,
    /// The longest a search may take.
    pub search_timeout: Duration,
    /// How many bytes searches may remember; 0 for none.
    pub search_memory: u64,
    /// Whether a write is on disk before it is confirmed.
    pub durability: sandbox::Durability,
}

impl Limits {
    /// Creates limits for tests and benches. The program takes its limits from its settings.
    #[must_use]
    pub fn for_tests() -> Limits {
        Limits {
            max_full_read_size: 1024 * 1024,
            max_file_size: 10 * 1024 * 1024,
            max_viewed_size: crate::WHOLE_FILE_MAX,
            search_timeout: Duration::from_secs(300),
            search_memory: 64 * 1024 * 1024,
            durability: sandbox::Durability::Fsync,
        }
    }
}

/// Given to every operation.
#[derive(Debug, Clone)]
pub struct Context {
    /// The process's limits.
    pub limits: Arc<Limits>,
    /// The names of owners and groups.
    pub users: Arc<sandbox::Users>,
    /// The line indexes of large files that were read before.
    pub line_index_cache: Arc<LineIndexCache>,
    /// What searches remember about files.
    pub search_memory: Arc<SearchMemory>,
    /// The caller's deadline, cancellation and progress.
    pub cancel: Cancel,
    /// What it may remove and overwrite.
    pub consent: Consent,
    /// What the reply has to say about the change.
    pub change_notes: sandbox::ChangeNotes,
    /// The room for the reply, if bytes are counted.
    pub room: Option<Arc<ReplyRoom>>,
}

impl Context {
    /// Begins the change of a call, if it may make the change without asking first.
    pub(crate) fn change(&self, planned: Planned) -> Result<sandbox::Change> {
        self.consent.check(planned)?;
        Ok(self.unseen_change())
    }

    /// Begins a change that is not visible yet, or that reverts another. The caller must ask for consent before making it visible.
    pub(crate) fn unseen_change(&self) -> sandbox::Change {
        sandbox::Change::begin_noting(self.limits.durability, &self.change_notes)
    }

    /// Takes room for content that is about to be read for the reply.
    pub(crate) fn take_room(&self, bytes: u64) -> Result<()> {
        match &self.room {
            Some(room) => room.take_for_content(bytes, &self.cancel),
            None => Ok(()),
        }
    }

    /// Takes room for optional work, if there is room now. It is released when the work is done.
    pub(crate) fn spare_room(&self, bytes: u64) -> Option<SpareRoom> {
        match &self.room {
            Some(room) if bytes > SMALL_BYTES => room.keep(bytes).ok().map(SpareRoom),
            _ => Some(SpareRoom(None)),
        }
    }
}

/// Room that is released on drop.
#[derive(Debug)]
pub(crate) struct SpareRoom(
    #[expect(dead_code, reason = "it only has to be held")] Option<Reserved>,
);

/// When to stop: a deadline and a way to give up; and a counter that the caller can watch.
#[derive(Debug, Clone)]
pub struct Cancel {
    /// Whose call it is: clients that work at the same time take turns.
    client: Arc<str>,
    /// The roots it works in, told apart by where they are in memory; 0 is none.
    roots: [usize; 2],
    deadline: Option<Instant>,
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    cancelled: AtomicBool,
    done: AtomicU64,
}

impl Cancel {
    /// Never gives up by itself.
    #[must_use]
    pub fn never() -> Cancel {
        Cancel {
            client: Arc::default(),
            roots: [0; 2],
            deadline: None,
            shared: Arc::default(),
        }
    }

    /// Gives up after `timeout`.
    #[must_use]
    pub fn after(timeout: Duration) -> Cancel {
        Cancel {
            client: Arc::default(),
            roots: [0; 2],
            deadline: Instant::now().checked_add(timeout),
            shared: Arc::default(),
        }
    }

    /// Counts the work for this client.
    #[must_use]
    pub fn of_client(mut self, client: impl Into<Arc<str>>) -> Cancel {
        self.client = client.into();
        self
    }

    /// The same for a call that works in these roots, of which the first two count: a root that does not answer delays
    /// its own calls only.
    #[must_use]
    pub fn in_roots<'root>(
        mut self,
        roots: impl IntoIterator<Item = &'root Arc<sandbox::Root>>,
    ) -> Cancel {
        for (own, root) in self.roots.iter_mut().zip(roots) {
            *own = Arc::as_ptr(root).addr();
        }
        self
    }

    pub(crate) fn client(&self) -> &str {
        &self.client
    }

    /// Identifies this call among all running ones.
    pub(crate) fn call(&self) -> usize {
        Arc::as_ptr(&self.shared).addr()
    }

    /// The roots it works in, told apart by numbers.
    #[must_use]
    pub fn roots(&self) -> [usize; 2] {
        self.roots
    }

    /// The same caller with a deadline no later than `timeout` from now.
    #[must_use]
    pub fn within(&self, timeout: Duration) -> Cancel {
        let own = Instant::now().checked_add(timeout);
        let deadline = [self.deadline, own].into_iter().flatten().min();
        Cancel {
            client: Arc::clone(&self.client),
            roots: self.roots,
            deadline,
            shared: Arc::clone(&self.shared),
        }
    }

    /// The same caller for work that has to finish: without a deadline, and regardless of whether the caller gives up.
    #[must_use]
    pub(crate) fn untiring(&self) -> Cancel {
        Cancel {
            client: Arc::clone(&self.client),
            roots: self.roots,
            ..Cancel::never()
        }
    }

    /// The same caller with a quarter of the remaining time, for optional work.
    #[must_use]
    pub(crate) fn share(&self) -> Cancel {
        match self.deadline {
            Some(deadline) => self.within(deadline.saturating_duration_since(Instant::now()) / 4),
            None => self.clone(),
        }
    }

    /// Gives up now; work stops at its next check.
    pub fn cancel(&self) {
        self.shared.cancelled.store(true, Ordering::Relaxed);
    }

    /// Tells whether the caller gave up.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.shared.cancelled.load(Ordering::Relaxed)
    }

    /// Tells whether the deadline has passed.
    #[must_use]
    pub fn is_expired(&self) -> bool {
        self.deadline
            .is_some_and(|deadline| Instant::now() >= deadline)
    }

    /// Fails if the work has to stop. Call it inside every loop.
    pub fn check(&self) -> Result<()> {
        if self.is_cancelled() {
            Err(Error::Cancelled)
        } else if self.is_expired() {
            Err(Error::Timeout)
        } else {
            Ok(())
        }
    }

    /// Like [`Cancel::check`], and lets other calls have their turn. For loops of long work; never with a lock held.
    pub fn check_and_give_way(&self) -> Result<()> {
        pool::give_way(self);
        self.check()
    }

    /// Replaces the error of stopped work by the reason; other errors are unchanged.
    #[must_use]
    pub fn explain(&self, error: sandbox::Error) -> Error {
        match (error, self.check()) {
            (sandbox::Error::Stopped, Err(reason)) => reason,
            (error, _) => error.into(),
        }
    }

    /// Tells whether the work has to stop, for callers that return what they have so far.
    #[must_use]
    pub fn must_stop(&self) -> bool {
        self.is_cancelled() || self.is_expired()
    }

    /// Does some work on this thread, whose waits for other processes end when the caller gives up.
    pub fn heeded_by<T>(&self, work: impl FnOnce() -> T) -> T {
        let own = self.clone();
        sandbox::while_wanted(move || own.must_stop(), work)
    }

    /// Adds finished units of work (files, or the bytes of a single file) to what the caller sees.
    pub fn advance(&self, units: u64) {
        self.shared.done.fetch_add(units, Ordering::Relaxed);
    }

    /// The units finished so far.
    #[must_use]
    pub fn done(&self) -> u64 {
        self.shared.done.load(Ordering::Relaxed)
    }
}
