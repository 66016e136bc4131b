//! Removes a tree by descriptors: links are unlinked, never followed, and nothing recurses.
//!
//! One thread begins; if the tree turns out to be large, `parallel` continues with several.

mod parallel;

use crate::change::Change;
use crate::descent::Descent;
use crate::dir::Dir;
use crate::error::{Error, Result};
use crate::located::Located;
use crate::metadata::FileKind;
use crate::name::Name;
use crate::syscall::Errno;

/// How often a directory is read again that others fill while it is being emptied.
const REFILL_TRIES: u32 = 8;
/// The most faults that are kept with their text.
const MAX_FAULTS: usize = 100;
/// How many entries one thread removes before others help.
const ALONE: u64 = 256;

/// What to do where an entry cannot be removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnFault {
    /// Stop there; what was removed stays removed.
    Stop,
    /// Continue with the rest and report at the end what stayed.
    Collect,
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
    fn add(&mut self, other: Removal) {
        self.files += other.files;
        self.directories += other.directories;
        self.faults.extend(other.faults);
        self.faults.truncate(MAX_FAULTS);
    }
}

impl Change {
    /// Removes a directory and everything in it.
    ///
    /// `stop` is asked before each entry, `removed` is told how many are gone.
    pub fn remove_tree(
        &self,
        place: &Located<'_>,
        stop: &(dyn Fn() -> bool + Sync),
        on_fault: OnFault,
        removed: &(dyn Fn(u64) + Sync),
    ) -> Result<Removal> {
        let (name, ..) = place.entry()?;
        let options = RemovalOptions {
            change: self,
            stop,
            on_fault,
            removed,
        };
        let mut alone = Remover::new(options);
        alone.most = ALONE;
        alone.enter(place.open_dir()?, name.clone())?;
        let progress = alone.run()?;
        let mut removal = alone.removal;
        if progress == RemovalProgress::Large {
            // The next pass meets again what stayed.
            removal.faults.clear();
            removal.add(parallel::empty(place.open_dir()?, name, options)?);
        }
        if removal.faults.is_empty() {
            match self.remove_empty_dir(place) {
                Err(error) if on_fault == OnFault::Collect => removal.faults.push(error),
                result => result?,
            }
            removal.directories += 1;
        }
        Ok(removal)
    }
}

/// What the caller wants of a removal.
#[derive(Clone, Copy)]
struct RemovalOptions<'a> {
    change: &'a Change,
    stop: &'a (dyn Fn() -> bool + Sync),
    on_fault: OnFault,
    removed: &'a (dyn Fn(u64) + Sync),
}

/// How far one thread got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RemovalProgress {
    /// Nothing is left to do.
    Complete,
    /// There is more than one thread should do.
    Large,
}

struct Remover<'a> {
    options: RemovalOptions<'a>,
    /// How many entries it removes at most, or a few more.
    most: u64,
    removal: Removal,
    descent: Descent<Emptying>,
}

/// A directory being emptied.
struct Emptying {
    /// Its name in the directory above.
    name: Name,
    /// The directories in it that are still to be emptied.
    below: Vec<Name>,
    tries: u32,
}

impl<'a> Remover<'a> {
    fn new(options: RemovalOptions<'a>) -> Remover<'a> {
        Remover {
            options,
            most: u64::MAX,
            removal: Removal::default(),
            descent: Descent::new(),
        }
    }

    fn run(&mut self) -> Result<RemovalProgress> {
        while let Some((dir, level)) = self.descent.innermost() {
            if self.removal.files + self.removal.directories >= self.most {
                return Ok(RemovalProgress::Large);
            }
            let Some(name) = level.below.pop() else {
                self.finish_directory()?;
                continue;
            };
            let dir = dir.clone();
            if let Some(below) = self.open(&dir, &name)? {
                self.enter(below, name)?;
            }
        }
        Ok(RemovalProgress::Complete)
    }

    /// Opens a directory to empty it; `None` if it is no directory any more or cannot be opened.
    fn open(&mut self, dir: &Dir, name: &Name) -> Result<Option<Dir>> {
        match dir.open_dir(name) {
            Ok(below) => return Ok(Some(below)),
            // It was swapped for something else meanwhile, which is unlinked, not followed.
            Err(Error::NotADirectory { .. } | Error::Loop { .. }) => {
                self.remove_file(dir, name)?;
            }
            Err(Error::NotFound { .. }) => {}
            Err(error) => self.fault(error)?,
        }
        Ok(None)
    }

    fn enter(&mut self, dir: Dir, name: Name) -> Result<()> {
        let below = self.empty_of_files(&dir)?;
        self.descent.enter(
            dir,
            Emptying {
                name,
                below,
                tries: 0,
            },
        )
    }

    /// Removes what is not a directory and returns the directories.
    fn empty_of_files(&mut self, dir: &Dir) -> Result<Vec<Name>> {
        let mut entries = Vec::new();
        if let Err(error) = dir.for_each_entry(&mut |entry| entries.push(entry)) {
            self.fault(error)?;
        }
        let mut below = Vec::new();
        for entry in entries {
            self.check()?;
            match entry.kind {
                FileKind::Directory => below.push(entry.name),
                _ => self.remove_file(dir, &entry.name)?,
            }
        }
        Ok(below)
    }

    fn remove_file(&mut self, dir: &Dir, name: &Name) -> Result<()> {
        match self.options.change.unlink_in(dir, name) {
            Ok(()) => {
                self.removal.files += 1;
                (self.options.removed)(1);
                Ok(())
            }
            Err(Errno::NOENT) => Ok(()),
            Err(errno) => self.fault(dir.failed("unlink", name, errno)),
        }
    }

    /// Removes the innermost directory, which has no directory left in it, from the one above.
    fn finish_directory(&mut self) -> Result<()> {
        self.check()?;
        let Some((Emptying { name, tries, .. }, reopened)) = self.descent.leave() else {
            return Ok(());
        };
        if let Err(error) = reopened {
            // It was moved meanwhile: the innermost directory now is not the one it was in.
            return self.fault(error);
        }
        // The top one is removed by the caller, from its own parent.
        let Some((dir, _)) = self.descent.innermost() else {
            return Ok(());
        };
        let dir = dir.clone();
        match self.options.change.remove_dir_in(&dir, &name) {
            Ok(()) => {
                self.removal.directories += 1;
                (self.options.removed)(1);
                Ok(())
            }
            Err(Errno::NOENT) => Ok(()),
            Err(Errno::NOTEMPTY | Errno::EXIST) if tries < REFILL_TRIES && self.all_removed() => {
                self.empty_again(&dir, name, tries + 1)
            }
            // What could not be removed inside is reported already.
            Err(Errno::NOTEMPTY | Errno::EXIST) if !self.all_removed() => Ok(()),
            Err(errno) => self.fault(dir.failed("rmdir", &name, errno)),
        }
    }

    fn empty_again(&mut self, dir: &Dir, name: Name, tries: u32) -> Result<()> {
        match dir.open_dir(&name) {
            Ok(refilled) => {
                let below = self.empty_of_files(&refilled)?;
                self.descent
                    .enter(refilled, Emptying { name, below, tries })
            }
            Err(error) => self.fault(error),
        }
    }

    fn all_removed(&self) -> bool {
        self.removal.faults.is_empty()
    }

    fn check(&self) -> Result<()> {
        if (self.options.stop)() {
            Err(Error::Stopped)
        } else {
            Ok(())
        }
    }

    fn fault(&mut self, error: Error) -> Result<()> {
        match self.options.on_fault {
            OnFault::Stop => Err(error),
            OnFault::Collect => {
                if self.removal.faults.len() < MAX_FAULTS {
                    self.removal.faults.push(error);
                }
                Ok(())
            }
        }
    }
}
