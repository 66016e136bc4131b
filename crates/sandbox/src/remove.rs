//! Removing a tree: a walk that unlinks what it meets and removes each directory it leaves. Links are never followed.
//!
//! A [`TreeRemover`] goes step by step and can be cut in two, so that a caller with several threads can share the work.

use std::fmt;
use std::sync::Arc;

use crate::change::Change;
use crate::dir::Dir;
use crate::error::{Error, Result};
use crate::leftovers;
use crate::located::Located;
use crate::rights::Right;
use crate::syscall::{self, Errno};
use crate::walk::{
    AllLeaves, Choice, Cut, Seen, WalkEvent, WalkItem, WalkOptions, WalkOrder, Walker,
};

/// How many times a removal empties a directory again that others fill meanwhile.
const REFILLS_MAX: u32 = 64;
/// The mode in which a directory can be emptied.
const OWNER_MAY: u32 = 0o700;
/// The most faults that are kept with their text.
const MAX_FAULTS: usize = 100;
/// A part cut off a removal. The files of one directory stay together, because threads would wait for each other there.
const PART: Cut = Cut {
    entries: usize::MAX,
    directories: 8,
};

/// What to do if an entry cannot be removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnFault {
    /// Stop there; entries that were removed stay removed.
    Stop,
    /// Continue with the rest and report at the end what stayed.
    Collect,
}

/// Decides which entries may be removed: those that were verified. Directories are removed when they are empty.
#[derive(Clone)]
pub struct Approval(Arc<dyn Fn(&WalkItem) -> bool + Send + Sync>);

impl Approval {
    /// Allows the removal of entries for which `approves` returns true.
    pub fn by(approves: impl Fn(&WalkItem) -> bool + Send + Sync + 'static) -> Approval {
        Approval(Arc::new(approves))
    }

    /// Temporary entries are removed without approval.
    fn lets_go(&self, item: &WalkItem) -> bool {
        let is_temporary = || {
            let path = item.path_bytes();
            path.split(|&byte| byte == b'/')
                .any(leftovers::is_temporary)
        };
        (self.0)(item) || is_temporary()
    }
}

impl fmt::Debug for Approval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Approval")
    }
}

/// What was removed.
#[derive(Debug, Default)]
pub struct Removal {
    /// Files, links and special files.
    pub files: u64,
    /// Directories.
    pub directories: u64,
    /// What stayed, up to a hundred; only with [`OnFault::Collect`].
    pub faults: Vec<Error>,
}

impl Removal {
    /// Adds what another part of the removal did.
    pub fn add(&mut self, other: Removal) {
        self.files += other.files;
        self.directories += other.directories;
        self.faults.extend(other.faults);
        self.faults.truncate(MAX_FAULTS);
    }

    /// How many entries were removed.
    #[must_use]
    pub fn entries(&self) -> u64 {
        self.files + self.directories
    }

    fn fault(&mut self, on_fault: OnFault, error: Error) -> Result<()> {
        match on_fault {
            OnFault::Stop => return Err(error),
            OnFault::Collect if self.faults.len() < MAX_FAULTS => self.faults.push(error),
            OnFault::Collect => {}
        }
        Ok(())
    }
}

impl Change {
    /// Removes a directory and everything in it.
    ///
    /// `stop` is asked before each entry, `removed` is told how many are gone.
    pub fn remove_tree(
        &self,
        place: &Located<'_>,
        stop: &dyn Fn() -> bool,
        on_fault: OnFault,
        removed: &dyn Fn(u64),
    ) -> Result<Removal> {
        let mut removal = Removal::default();
        self.tree_remover(place, on_fault)?
            .run(stop, removed, &mut removal)?;
        self.remove_emptied(place, removal, on_fault)
    }

    /// Begins to remove everything in a directory; [`remove_emptied`](Self::remove_emptied) removes it itself.
    pub fn tree_remover(&self, place: &Located<'_>, on_fault: OnFault) -> Result<TreeRemover> {
        place.entry()?;
        place.check_whole(None, &|| false)?;
        place.judge(Right::Remove)?;
        Ok(TreeRemover::new(self.clone(), place.open_dir()?, on_fault))
    }

    /// Removes a directory after everything in it was removed, and tells what was removed in all.
    pub fn remove_emptied(
        &self,
        place: &Located<'_>,
        mut removal: Removal,
        on_fault: OnFault,
    ) -> Result<Removal> {
        if removal.faults.is_empty() {
            match self.remove_empty_dir(place) {
                Err(error) => removal.fault(on_fault, error)?,
                Ok(()) => removal.directories += 1,
            }
        }
        Ok(removal)
    }
}

/// The removal of everything in a directory.
#[derive(Debug)]
pub struct TreeRemover {
    change: Change,
    walker: Walker,
    on_fault: OnFault,
    /// Only entries that this allows are removed.
    approval: Option<Approval>,
    /// Mounts inside it are left alone.
    stays_on_mount: bool,
    /// The tree is one of our own making: a directory that forbids its owner to change it is opened up.
    is_own: bool,
    /// Something stayed, so its parent directories cannot be removed.
    is_incomplete: bool,
    refills_left: u32,
}

/// The result of one step of a removal.
#[derive(Debug)]
pub enum RemovalStep {
    /// It removed or opened an entry.
    Progressed,
    /// It emptied its part of a directory. The directory is removed when all earlier parts are done.
    Emptied(EmptiedDir),
    /// Nothing is left to do.
    Finished,
}

/// A directory that several parts of a removal empty.
#[derive(Debug)]
pub struct EmptiedDir {
    change: Change,
    approval: Option<Approval>,
    item: WalkItem,
}

impl TreeRemover {
    fn new(change: Change, top: Dir, on_fault: OnFault) -> TreeRemover {
        let options = WalkOptions {
            max_depth: None,
            order: WalkOrder::Listed,
        };
        TreeRemover {
            change,
            walker: Walker::with_all(top, options),
            on_fault,
            approval: None,
            stays_on_mount: false,
            is_own: false,
            is_incomplete: false,
            refills_left: REFILLS_MAX,
        }
    }

    /// Removes only approved entries.
    pub(crate) fn approved(
        change: Change,
        top: Dir,
        on_fault: OnFault,
        approval: Approval,
    ) -> TreeRemover {
        let approval = Some(approval);
        let remover = TreeRemover::new(change, top, on_fault);
        TreeRemover {
            approval,
            ..remover
        }
    }

    /// Removes a tree of our own making.
    pub(crate) fn of_own(change: Change, top: Dir) -> TreeRemover {
        let is_own = true;
        let remover = TreeRemover::new(change, top, OnFault::Stop);
        TreeRemover { is_own, ..remover }
    }

    /// Leaves mounts inside the tree alone.
    pub(crate) fn staying_on_mount(mut self) -> TreeRemover {
        self.stays_on_mount = true;
        self
    }

    /// Removes one entry or opens one directory.
    pub fn step(&mut self, removal: &mut Removal) -> Result<RemovalStep> {
        let event = if self.stays_on_mount {
            self.walker.step(&mut UnmountedLeaves)
        } else {
            self.walker.step(&mut AllLeaves)
        };
        match event {
            None => Ok(RemovalStep::Finished),
            Some(WalkEvent::Left(left)) if left.is_shared => Ok(RemovalStep::Emptied(EmptiedDir {
                change: self.change.clone(),
                approval: self.approval.clone(),
                item: left.item,
            })),
            Some(event) => {
                self.meet(event, removal)?;
                Ok(RemovalStep::Progressed)
            }
        }
    }

    fn meet(&mut self, event: WalkEvent, removal: &mut Removal) -> Result<()> {
        match event {
            WalkEvent::Item(item) => self.unlink(&item, removal)?,
            // Swapped for something else meanwhile: unlinked, not followed.
            WalkEvent::Unreadable(item, Error::NotADirectory { .. } | Error::Loop { .. }) => {
                self.unlink(&item, removal)?;
            }
            WalkEvent::Unreadable(_, Error::NotFound { .. }) => {}
            WalkEvent::Unreadable(_, error) => self.fault(error, removal)?,
            WalkEvent::Fault(fault) => self.fault(fault.error, removal)?,
            WalkEvent::Left(left) => self.remove_dir(left.item, removal)?,
            WalkEvent::Entered(_, dir) if self.is_own => {
                // If this fails, the removal itself reports the reason.
                let _ = syscall::set_mode_unchecked(dir.fd(), OWNER_MAY);
            }
            // Something is mounted there, so its parent directories stay.
            WalkEvent::Passed => self.is_incomplete = true,
            WalkEvent::Entered(..) => {}
        }
        Ok(())
    }

    /// Keeps the beginning of the remaining work and returns the rest for other threads.
    pub fn split(&mut self) -> Option<TreeRemover> {
        let walker = self.walker.split(PART)?;
        Some(TreeRemover {
            change: self.change.clone(),
            walker,
            approval: self.approval.clone(),
            ..*self
        })
    }

    /// Removes everything on this thread.
    pub(crate) fn run(
        &mut self,
        stop: &dyn Fn() -> bool,
        removed: &dyn Fn(u64),
        removal: &mut Removal,
    ) -> Result<()> {
        loop {
            if stop() {
                return Err(Error::Stopped);
            }
            let before = removal.entries();
            if let RemovalStep::Finished = self.step(removal)? {
                return Ok(());
            }
            if removal.entries() > before {
                removed(removal.entries() - before);
            }
        }
    }

    fn unlink(&mut self, item: &WalkItem, removal: &mut Removal) -> Result<()> {
        let (dir, name) = (&item.dir, &item.name);
        if !self.may_go(item) {
            return self.fault(changed(item), removal);
        }
        match self.change.unlink_in(dir, name) {
            Ok(()) => removal.files += 1,
            Err(Errno::NOENT) => {}
            Err(errno) => self.fault(dir.failed("unlink", name, errno), removal)?,
        }
        Ok(())
    }

    fn may_go(&self, item: &WalkItem) -> bool {
        let approval = self.approval.as_ref();
        approval.is_none_or(|approval| approval.lets_go(item))
    }

    fn remove_dir(&mut self, item: WalkItem, removal: &mut Removal) -> Result<()> {
        if !self.may_go(&item) {
            return self.fault(changed(&item), removal);
        }
        match self.change.remove_dir_in(&item.dir, &item.name) {
            Ok(()) => removal.directories += 1,
            Err(Errno::NOENT) => {}
            // What stayed inside was already reported.
            Err(Errno::NOTEMPTY | Errno::EXIST) if self.is_incomplete => {}
            Err(Errno::NOTEMPTY | Errno::EXIST) if self.refills_left > 0 => {
                self.refills_left -= 1;
                if let WalkEvent::Unreadable(_, error) = self.walker.enter_item(item, &AllLeaves) {
                    self.fault(error, removal)?;
                }
            }
            Err(errno) => self.fault(item.dir.failed("rmdir", &item.name, errno), removal)?,
        }
        Ok(())
    }

    fn fault(&mut self, error: Error, removal: &mut Removal) -> Result<()> {
        self.is_incomplete = true;
        removal.fault(self.on_fault, error)
    }
}

/// Chooses everything but directories, and enters those that are no mount points.
struct UnmountedLeaves;

impl Choice for UnmountedLeaves {
    fn wants(&self, seen: &Seen<'_>) -> bool {
        AllLeaves.wants(seen)
    }

    fn enters(&self, _: &Seen<'_>) -> bool {
        true
    }

    fn emits(&mut self, _: &WalkItem) -> bool {
        true
    }

    fn descends(&mut self, item: &WalkItem) -> bool {
        syscall::is_mount_point_unchecked(item.dir.fd(), &item.name) == Ok(false)
    }
}

fn changed(item: &WalkItem) -> Error {
    Error::Changed { path: item.path() }
}

impl EmptiedDir {
    /// The removal of what others put into the directory meanwhile.
    fn empty(&self, refilled: Dir, on_fault: OnFault) -> TreeRemover {
        TreeRemover {
            approval: self.approval.clone(),
            ..TreeRemover::new(self.change.clone(), refilled, on_fault)
        }
    }

    /// Removes the directory. Give it what all parts before this one removed.
    pub fn remove(
        self,
        stop: &dyn Fn() -> bool,
        on_fault: OnFault,
        removal: &mut Removal,
    ) -> Result<()> {
        let WalkItem { dir, name, .. } = &self.item;
        let approval = self.approval.as_ref();
        if approval.is_some_and(|approval| !approval.lets_go(&self.item)) {
            return removal.fault(on_fault, changed(&self.item));
        }
        let mut refills_left = REFILLS_MAX;
        loop {
            match self.change.remove_dir_in(dir, name) {
                Ok(()) => removal.directories += 1,
                Err(Errno::NOENT) => {}
                // What stayed inside was already reported.
                Err(Errno::NOTEMPTY | Errno::EXIST) if !removal.faults.is_empty() => {}
                Err(Errno::NOTEMPTY | Errno::EXIST) if refills_left > 0 => {
                    refills_left -= 1;
                    match dir.open_dir(name) {
                        Ok(refilled) => {
                            self.empty(refilled, on_fault).run(stop, &|_| {}, removal)?
                        }
                        Err(error) => return removal.fault(on_fault, error),
                    }
                    continue;
                }
                Err(errno) => return removal.fault(on_fault, dir.failed("rmdir", name, errno)),
            }
            return Ok(());
        }
    }
}
