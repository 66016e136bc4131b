//! Removes one tree with several threads.
//!
//! The thread that empties a directory puts its subdirectories on a stack, and the thread that removes the last of them
//! removes the directory too, so that no thread waits for another. A directory stays open while it has entries, so below
//! a certain depth one thread removes everything.

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;

use super::{REFILL_TRIES, Removal, RemovalOptions, Remover};
use crate::dir::Dir;
use crate::error::{Error, Result};
use crate::name::Name;
use crate::syscall::Errno;

/// The most threads that work on one tree.
const MOST_THREADS: usize = 4;
/// How deep directories are shared between threads.
const SHARED_DEPTH: usize = 16;

/// Removes everything in a directory.
pub(super) fn empty(top: Dir, name: &Name, options: RemovalOptions<'_>) -> Result<Removal> {
    let removal = ParallelRemoval {
        options,
        work: Mutex::default(),
        found: Condvar::new(),
        outcome: Mutex::new(Ok(Removal::default())),
    };
    let node = SharedDir::new(name.clone(), None);
    let _ = node.dir.set(top);
    removal.hand_out(vec![node]);
    let helpers = thread::available_parallelism().map_or(1, NonZeroUsize::get);
    thread::scope(|scope| {
        for _ in 1..helpers.min(MOST_THREADS) {
            let helper = thread::Builder::new().name("remove".to_owned());
            // If the system refuses a thread the others do its work.
            let _ = helper.spawn_scoped(scope, || removal.work());
        }
        removal.work();
    });
    let outcome = removal.outcome.into_inner();
    outcome.unwrap_or_else(PoisonError::into_inner)
}

/// A directory that is being removed.
struct SharedDir {
    name: Name,
    /// The directory it is in; `None` for the one that the caller removes.
    above: Option<Arc<SharedDir>>,
    depth: usize,
    /// Open since somebody began to empty it.
    dir: OnceLock<Dir>,
    /// How many directories in it are left.
    left: AtomicUsize,
}

impl SharedDir {
    fn new(name: Name, above: Option<Arc<SharedDir>>) -> Arc<SharedDir> {
        Arc::new(SharedDir {
            name,
            depth: above.as_ref().map_or(0, |above| above.depth + 1),
            above,
            dir: OnceLock::new(),
            left: AtomicUsize::new(0),
        })
    }

    /// The directory it is in, which is open as long as this one is there.
    fn parent(&self) -> Option<&Dir> {
        self.above.as_ref()?.dir.get()
    }

    /// Marks this one as done; returns the directory above if this was its last one.
    fn was_last(&self) -> Option<Arc<SharedDir>> {
        let above = self.above.as_ref()?;
        let left = above.left.fetch_sub(1, Ordering::AcqRel);
        (left == 1).then(|| Arc::clone(above))
    }
}

/// Opens a directory to empty it; `None` if it is no directory any more or cannot be opened.
fn open(node: &SharedDir, remover: &mut Remover<'_>) -> Result<Option<Dir>> {
    match node.parent() {
        Some(parent) => remover.open(parent, &node.name),
        None => Ok(node.dir.get().cloned()),
    }
}

/// What the threads share.
struct ParallelRemoval<'a> {
    options: RemovalOptions<'a>,
    work: Mutex<RemovalQueue>,
    found: Condvar,
    outcome: Mutex<Result<Removal>>,
}

#[derive(Default)]
struct RemovalQueue {
    /// Directories that nobody has begun to empty; the last is the next.
    nodes: Vec<Arc<SharedDir>>,
    /// How many threads are at work, and may find more of it.
    busy: usize,
    /// Nothing more is to be begun.
    is_over: bool,
}

impl ParallelRemoval<'_> {
    fn work(&self) {
        while let Some(node) = self.next() {
            let emptied = self.empty(node);
            let mut work = lock(&self.work);
            work.busy -= 1;
            work.is_over |= emptied.is_err() || (work.busy == 0 && work.nodes.is_empty());
            if work.is_over {
                self.found.notify_all();
            }
            drop(work);
            if let Err(error) = emptied {
                self.fail(error);
            }
        }
    }

    /// The next directory to empty; `None` when there is none any more.
    fn next(&self) -> Option<Arc<SharedDir>> {
        let mut work = lock(&self.work);
        while !work.is_over {
            if let Some(node) = work.nodes.pop() {
                work.busy += 1;
                return Some(node);
            }
            work = self
                .found
                .wait(work)
                .unwrap_or_else(PoisonError::into_inner);
        }
        None
    }

    fn hand_out(&self, nodes: Vec<Arc<SharedDir>>) {
        lock(&self.work).nodes.extend(nodes);
        self.found.notify_all();
    }

    /// Empties a directory, or puts the directories in it on the stack.
    fn empty(&self, node: Arc<SharedDir>) -> Result<()> {
        let mut remover = Remover::new(self.options);
        let Some(dir) = open(&node, &mut remover)? else {
            self.add(remover.removal);
            return self.done(&node);
        };
        let below = if node.depth < SHARED_DEPTH {
            remover.empty_of_files(&dir)?
        } else {
            remover.remove_all(dir.clone(), node.name.clone())?;
            Vec::new()
        };
        self.add(remover.removal);
        let _ = node.dir.set(dir);
        if below.is_empty() {
            return self.leave(node);
        }
        node.left.store(below.len(), Ordering::Relaxed);
        let node = |name| SharedDir::new(name, Some(Arc::clone(&node)));
        self.hand_out(below.into_iter().map(node).collect());
        Ok(())
    }

    /// Removes a directory in which nothing is left, and then those above for which it was the last.
    fn leave(&self, mut node: Arc<SharedDir>) -> Result<()> {
        while let Some(parent) = node.parent() {
            self.remove(parent, &node.name)?;
            match node.was_last() {
                Some(above) => node = above,
                None => break,
            }
        }
        Ok(())
    }

    /// Ends with a directory that is gone or cannot be emptied.
    fn done(&self, node: &SharedDir) -> Result<()> {
        node.was_last().map_or(Ok(()), |above| self.leave(above))
    }

    fn remove(&self, parent: &Dir, name: &Name) -> Result<()> {
        let mut remover = Remover::new(self.options);
        for tries in 0.. {
            remover.check()?;
            match self.options.change.remove_dir_in(parent, name) {
                Ok(()) => {
                    remover.removal.directories += 1;
                    (self.options.removed)(1);
                }
                Err(Errno::NOENT) => {}
                Err(Errno::NOTEMPTY | Errno::EXIST)
                    if tries < REFILL_TRIES && self.all_removed() =>
                {
                    match parent.open_dir(name) {
                        Ok(refilled) => remover.remove_all(refilled, name.clone())?,
                        Err(error) => remover.fault(error)?,
                    }
                    continue;
                }
                // What could not be removed inside is reported already.
                Err(Errno::NOTEMPTY | Errno::EXIST) if !self.all_removed() => {}
                Err(errno) => remover.fault(parent.failed("rmdir", name, errno))?,
            }
            break;
        }
        self.add(remover.removal);
        Ok(())
    }

    fn all_removed(&self) -> bool {
        let outcome = lock(&self.outcome);
        outcome
            .as_ref()
            .is_ok_and(|removal| removal.faults.is_empty())
    }

    fn add(&self, more: Removal) {
        if let Ok(removal) = &mut *lock(&self.outcome) {
            removal.add(more);
        }
    }

    /// Ends the removal; the first failure is the one that is told.
    fn fail(&self, error: Error) {
        let mut outcome = lock(&self.outcome);
        if outcome.is_ok() {
            *outcome = Err(error);
        }
    }
}

impl Remover<'_> {
    /// Removes everything in a directory.
    fn remove_all(&mut self, dir: Dir, name: Name) -> Result<()> {
        self.enter(dir, name)?;
        self.run().map(drop)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
