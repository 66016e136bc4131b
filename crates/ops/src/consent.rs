//! How much a call may remove and overwrite before a person has to be asked.
//!
//! An operation says what it is about to do before it changes anything
//! ([`crate::Context::change`]). If that exceeds what the call may do, it fails without a change.
//! The caller can then ask a person and run the call again with what was
//! allowed. So everything is counted anew each time.

use std::ops::AddAssign;

use sandbox::{Dir, FileKind, Name, WalkEvent, WalkOptions, Walker};
use serde::{Deserialize, Serialize};

use crate::context::Cancel;
use crate::error::{Error, Result};

/// What a call would do to existing files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Planned {
    /// How many files, links and special files would go.
    pub removes: u64,
    /// How many files would get new content.
    pub overwrites: u64,
}

impl Planned {
    /// Nothing existing is removed or changed.
    pub const NOTHING: Planned = Planned {
        removes: 0,
        overwrites: 0,
    };

    /// Files are removed.
    #[must_use]
    pub fn removing(files: u64) -> Planned {
        Planned {
            removes: files,
            ..Planned::NOTHING
        }
    }

    /// Files get new content.
    #[must_use]
    pub fn overwriting(files: u64) -> Planned {
        Planned {
            overwrites: files,
            ..Planned::NOTHING
        }
    }
}

impl AddAssign for Planned {
    fn add_assign(&mut self, other: Planned) {
        self.removes += other.removes;
        self.overwrites += other.overwrites;
    }
}

/// What a call may do without asking. The default is everything.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Consent {
    /// How many files it may remove.
    pub removes: Option<u64>,
    /// How many files it may overwrite.
    pub overwrites: Option<u64>,
    /// Whether a person has to be asked whatever it does.
    pub asks_always: bool,
}

impl Consent {
    /// The limits after a person has confirmed this plan.
    #[must_use]
    pub fn widened(self, allowed: Planned) -> Consent {
        let wider = |limit: Option<u64>, allowed: u64| limit.map(|limit| limit.max(allowed));
        Consent {
            removes: wider(self.removes, allowed.removes),
            overwrites: wider(self.overwrites, allowed.overwrites),
            asks_always: false,
        }
    }

    /// Whether anything requires asking: only then is counting worth the time.
    #[must_use]
    pub fn is_limited(self) -> bool {
        self != Consent::default()
    }

    /// Fails if a person has to be asked first.
    pub(crate) fn check(self, planned: Planned) -> Result<()> {
        let too_many = |limit: Option<u64>, count: u64| limit.is_some_and(|limit| count > limit);
        if self.asks_always
            || too_many(self.removes, planned.removes)
            || too_many(self.overwrites, planned.overwrites)
        {
            return Err(Error::Unconfirmed { planned });
        }
        Ok(())
    }
}

/// Counts the entries below a directory that are not directories.
pub(crate) fn files_below(dir: Dir, cancel: &Cancel) -> Result<u64> {
    let mut walker = Walker::new(dir, WalkOptions::default());
    let mut files = 0;
    while let Some(item) = walker.next(&mut |_| true) {
        cancel.check()?;
        // An entry that cannot be examined counts: it may be a file.
        let is_directory = item.is_ok_and(|item| item.kind == FileKind::Directory);
        files += u64::from(!is_directory);
    }
    Ok(files)
}

/// Counts the files of a tree that another one would replace, name by name.
pub(crate) fn files_replaced(source: Dir, destination: Dir, cancel: &Cancel) -> Result<u64> {
    let mut walker = Walker::new(source, WalkOptions::default());
    let mut places: Vec<Option<Dir>> = vec![Some(destination)];
    let mut files = 0;
    while let Some(event) = walker.step(&mut sandbox::AllLeaves) {
        cancel.check()?;
        let inside = |name: &Name| {
            places
                .last()
                .and_then(Option::as_ref)
                .map(|dir| (dir, name.clone()))
        };
        match event {
            WalkEvent::Item(item) => {
                let there = inside(&item.name).is_some_and(|(dir, name)| dir.stat(&name).is_ok());
                files += u64::from(there);
            }
            WalkEvent::Entered(item, _) => {
                let entered = inside(&item.name).and_then(|(dir, name)| dir.open_dir(&name).ok());
                places.push(entered);
            }
            WalkEvent::Left(_) => drop(places.pop()),
            // The copy itself will report this.
            WalkEvent::Unreadable(..) | WalkEvent::Fault(_) | WalkEvent::Passed => {}
        }
    }
    Ok(files)
}
