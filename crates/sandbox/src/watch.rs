//! Watches a tree: notes every change in it, whoever makes it.
//!
//! Directories are watched by descriptor. One that appears later is watched too, and its earlier content is found by
//! listing it. Our own temporary names are never reported.

use std::collections::{BTreeMap, HashMap};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::fs::inotify::ReadFlags;

use crate::dir::Dir;
use crate::error::{Error, Result};
use crate::leftovers::is_temporary;
use crate::located::Located;
use crate::metadata::{FileKind, Time};
use crate::name::{Name, shown};
use crate::rel_path::RelPath;
use crate::reserved::is_reserved;
use crate::resolve::{Follow, joined};
use crate::root::Root;
use crate::syscall::{self, Errno, Notice};
use crate::walk::{WalkOptions, WalkOrder, Walker};

/// How far the clock that stamps files may be behind: it moves by ticks.
const FILE_CLOCK_BEHIND: Duration = Duration::from_millis(20);
/// How many changed paths are kept.
const PATHS_KEPT: usize = 1000;

/// What happened to a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SeenChange {
    /// It was made.
    Created,
    /// Its content is new, or something was moved there.
    Changed,
    /// It is gone.
    Removed,
}

/// A watched directory with everything below it, or a watched file.
#[derive(Debug)]
pub struct TreeWatch {
    listener: OwnedFd,
    root: Arc<Root>,
    /// The path that is watched, in bytes.
    top: Vec<u8>,
    /// The relevant entry if a file is watched: its directory reports it even after it was replaced.
    only: Option<Vec<u8>>,
    directories: HashMap<i32, Vec<u8>>,
    /// How many directories may be watched.
    most: usize,
    begun: Time,
    changes: BTreeMap<Vec<u8>, SeenChange>,
    truncated: bool,
    overflowed: bool,
    incomplete: bool,
    partly_blind: bool,
}

/// The changes seen in a tree so far.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TreeChanges {
    /// The paths inside the root and what happened to them, in byte order.
    pub changes: Vec<(String, SeenChange)>,
    /// More paths changed than are kept.
    pub truncated: bool,
    /// The kernel dropped notices: anything may have changed.
    pub overflowed: bool,
    /// There are more directories than may be watched; changes in some are not seen.
    pub incomplete: bool,
    /// The file system does not report changes made on other machines.
    pub partly_blind: bool,
}

impl TreeWatch {
    /// Begins to watch what is at a place: at most `most` directories. `give_up` is asked in between.
    pub fn begin(
        root: &Arc<Root>,
        place: &Located<'_>,
        most: usize,
        give_up: &dyn Fn() -> bool,
    ) -> Result<TreeWatch> {
        let failed = |errno| Error::from_errno("watch", &place.path(), errno);
        let metadata = place.require()?;
        let (dir, only) = match metadata.kind {
            FileKind::Directory => (place.open_dir()?, None),
            _ => (place.open_parent_dir()?, place.name()),
        };
        let only = only.map(|name| name.as_bytes().to_owned());
        let mut watch = TreeWatch {
            listener: syscall::listen_unchecked().map_err(failed)?,
            root: Arc::clone(root),
            top: dir.path_bytes().to_owned(),
            directories: HashMap::new(),
            most: if only.is_some() { 1 } else { most },
            begun: file_clock(),
            changes: BTreeMap::new(),
            truncated: false,
            overflowed: false,
            incomplete: false,
            partly_blind: syscall::changes_unseen_unchecked(dir.fd()),
            only,
        };
        watch.add(&dir).map_err(failed)?;
        if watch.only.is_none() {
            watch.add_below(dir, EntryAge::AsItWas, give_up);
        }
        Ok(watch)
    }

    /// Tells whether [`TreeWatch::look`] would find anything. Never waits.
    #[must_use]
    pub fn has_news(&self) -> bool {
        syscall::has_notices_unchecked(self.listener.as_fd())
    }

    /// Tells whether anything is to be reported.
    #[must_use]
    pub fn has_changes(&self) -> bool {
        self.overflowed || !self.changes.is_empty()
    }

    /// Reads pending events without blocking.
    pub fn look(&mut self, give_up: &dyn Fn() -> bool) -> Result<()> {
        let notices = syscall::notices_unchecked(self.listener.as_fd())
            .map_err(|errno| Error::from_errno("watch", &shown(&self.top), errno))?;
        for (index, notice) in notices.iter().enumerate() {
            let later = notices.get(index + 1..).unwrap_or_default();
            match self.moved_to(notice, later) {
                Some((from, to)) => self.rename(&from, &to),
                None => self.take(notice, give_up),
            }
        }
        Ok(())
    }

    /// What was seen so far.
    #[must_use]
    pub fn report(&self) -> TreeChanges {
        let changes = self.changes.iter();
        let changes = changes.map(|(path, change)| (told(path), *change));
        TreeChanges {
            changes: changes.collect(),
            truncated: self.truncated,
            overflowed: self.overflowed,
            incomplete: self.incomplete,
            partly_blind: self.partly_blind,
        }
    }

    /// Clears the reported changes.
    pub fn reset(&mut self) {
        self.changes.clear();
        self.truncated = false;
        self.overflowed = false;
        self.begun = file_clock();
    }

    /// The old and the new path of a directory that was moved inside the tree.
    fn moved_to(&self, notice: &Notice, later: &[Notice]) -> Option<(Vec<u8>, Vec<u8>)> {
        let is_end = |notice: &Notice, end| notice.what.contains(end | ReadFlags::ISDIR);
        let is_other = self.only.is_some() || is_hidden(&notice.name);
        if is_other || !is_end(notice, ReadFlags::MOVED_FROM) {
            return None;
        }
        let other = later
            .iter()
            .find(|later| later.cookie == notice.cookie && is_end(later, ReadFlags::MOVED_TO))?;
        let path = |notice: &Notice| {
            let dir = self.directories.get(&notice.watch)?;
            Some(joined(dir, &Name::new(&notice.name)?))
        };
        (!is_hidden(&other.name)).then_some((path(notice)?, path(other)?))
    }

    /// Continues to watch a directory under its new path: its existing watches report what happened in it meanwhile.
    fn rename(&mut self, from: &[u8], to: &[u8]) {
        self.drop_changes_below(from);
        for directory in self.directories.values_mut() {
            if is_below(directory, from) {
                let rest = directory.get(from.len()..).unwrap_or_default();
                *directory = [to, rest].concat();
            }
        }
        self.note(from.to_owned(), FileKind::Directory, SeenChange::Removed);
    }

    fn take(&mut self, notice: &Notice, give_up: &dyn Fn() -> bool) {
        let what = notice.what;
        if what.contains(ReadFlags::QUEUE_OVERFLOW) {
            self.overflowed = true;
            return;
        }
        let Some(dir) = self.directories.get(&notice.watch).cloned() else {
            return;
        };
        if notice.name.is_empty() {
            return self.take_own(notice, &dir);
        }
        let is_other = self.only.as_ref().is_some_and(|only| *only != notice.name);
        if is_other || is_hidden(&notice.name) {
            return;
        }
        if let Some(name) = Name::new(&notice.name) {
            self.take_entry(joined(&dir, &name), what, give_up);
        }
    }

    /// A notice of an entry of a watched directory.
    fn take_entry(&mut self, path: Vec<u8>, what: ReadFlags, give_up: &dyn Fn() -> bool) {
        let is_dir = what.contains(ReadFlags::ISDIR);
        let kind = match is_dir {
            true => FileKind::Directory,
            false => FileKind::File,
        };
        // If two names are exchanged, report removals after creations.
        if what.contains(ReadFlags::MOVED_FROM) && !is_dir && self.is_there(&path) {
            self.note(path, kind, SeenChange::Changed);
        } else if what.intersects(ReadFlags::DELETE | ReadFlags::MOVED_FROM) {
            self.forget(&path, is_dir);
            self.note(path, kind, SeenChange::Removed);
        } else if what.intersects(ReadFlags::CREATE | ReadFlags::MOVED_TO) {
            let age = match what.contains(ReadFlags::CREATE) {
                true => EntryAge::New,
                false => EntryAge::AsItWas,
            };
            self.appear(path, kind, age, give_up);
        } else if what.contains(ReadFlags::MODIFY) || self.was_written(&path) {
            self.note(path, kind, SeenChange::Changed);
        }
    }

    /// Something has a name that it did not have; a directory is watched from now on.
    fn appear(&mut self, path: Vec<u8>, kind: FileKind, age: EntryAge, give_up: &dyn Fn() -> bool) {
        let is_dir = kind == FileKind::Directory;
        let change = if age == EntryAge::New || is_dir {
            SeenChange::Created
        } else {
            SeenChange::Changed
        };
        self.note(path.clone(), kind, change);
        if is_dir && self.only.is_none() {
            self.enter(&path, age, give_up);
        }
    }

    /// A notice of a watched directory itself.
    fn take_own(&mut self, notice: &Notice, dir: &[u8]) {
        let gone = ReadFlags::DELETE_SELF | ReadFlags::MOVE_SELF | ReadFlags::UNMOUNT;
        if notice.what.intersects(gone) && dir == self.top && self.only.is_none() {
            self.note(dir.to_owned(), FileKind::Directory, SeenChange::Removed);
        }
        if notice.what.contains(ReadFlags::IGNORED) {
            self.directories.remove(&notice.watch);
        }
    }

    fn is_there(&self, path: &[u8]) -> bool {
        let found = RelPath::parse(&shown(path));
        let found = found.and_then(|path| self.root.locate(&path, Follow::Never));
        found.is_ok_and(|found| found.metadata().is_some())
    }

    /// Whether a closed file was really modified: opening for writing alone changes nothing.
    fn was_written(&self, path: &[u8]) -> bool {
        let found = RelPath::parse(&shown(path));
        let found = found.and_then(|path| self.root.locate(&path, Follow::Never));
        found.is_ok_and(|found| {
            let metadata = found.metadata();
            metadata.is_some_and(|metadata| metadata.modified >= self.begun)
        })
    }

    /// Whether the watching client may see a path. An existing entry must still be at the reported path.
    ///
    /// Security: only the notice knows the kind of an entry that is gone. A possible directory would count as visible
    /// because of what could be below it.
    fn may_tell(&self, path: &[u8], kind: FileKind, change: SeenChange) -> bool {
        let Some(view) = self.root.view() else {
            return true;
        };
        let may_exist = view.view().shows(path, kind);
        may_exist && (change == SeenChange::Removed || self.is_there(path))
    }

    /// Notes the sum of what happened to a path.
    fn note(&mut self, path: Vec<u8>, kind: FileKind, change: SeenChange) {
        use SeenChange::{Changed, Created, Removed};
        if !self.may_tell(&path, kind, change) {
            return;
        }
        let sum = match (self.changes.get(&path), change) {
            // Made and removed again: nothing to report.
            (Some(Created), Removed) => {
                self.changes.remove(&path);
                return;
            }
            (Some(Created), _) => Created,
            (Some(Removed), Created | Changed) => Changed,
            (_, change) => change,
        };
        if self.changes.len() >= PATHS_KEPT && !self.changes.contains_key(&path) {
            self.truncated = true;
            return;
        }
        self.changes.insert(path, sum);
    }

    /// Stops watching a directory that went away, with everything below it.
    fn forget(&mut self, path: &[u8], is_dir: bool) {
        if !is_dir {
            return;
        }
        let listener = self.listener.as_fd();
        self.directories.retain(|watch, directory| {
            let is_below = is_below(directory, path);
            if is_below {
                syscall::unwatch_unchecked(listener, *watch);
            }
            !is_below
        });
        self.drop_changes_below(path);
    }

    /// Entries made below a path that went away are not reported.
    fn drop_changes_below(&mut self, path: &[u8]) {
        self.changes.retain(|changed, change| {
            *change == SeenChange::Removed || changed == path || !is_below(changed, path)
        });
    }

    /// Watches a directory that appeared.
    fn enter(&mut self, path: &[u8], age: EntryAge, give_up: &dyn Fn() -> bool) {
        let dir = RelPath::parse(&shown(path))
            .and_then(|path| self.root.locate(&path, Follow::Never))
            .and_then(|located| located.open_dir());
        // The directory may already be gone; a separate event reports that.
        let Ok(dir) = dir else { return };
        match self.add(&dir) {
            Ok(()) => self.add_below(dir, age, give_up),
            Err(_) => self.incomplete = true,
        }
    }

    /// Watches the directories below one that is watched.
    fn add_below(&mut self, dir: Dir, age: EntryAge, give_up: &dyn Fn() -> bool) {
        let options = WalkOptions {
            order: WalkOrder::Listed,
            ..WalkOptions::default()
        };
        let mut walker = Walker::new(dir, options);
        while let Some(item) = walker.next(&mut |item| !is_hidden(item.name.as_bytes())) {
            if give_up() || (self.directories.len() >= self.most && age == EntryAge::AsItWas) {
                self.incomplete = true;
                return;
            }
            let Ok(item) = item else {
                self.incomplete = true;
                continue;
            };
            if is_hidden(item.name.as_bytes()) {
                continue;
            }
            if age == EntryAge::New {
                self.note(item.path_bytes(), item.kind, SeenChange::Created);
            }
            if item.kind == FileKind::Directory {
                let added = item.dir.open_dir(&item.name).map(|dir| self.add(&dir));
                self.incomplete |= !matches!(added, Ok(Ok(())));
            }
        }
    }

    fn add(&mut self, dir: &Dir) -> Result<(), Errno> {
        if self.directories.len() >= self.most {
            return Err(Errno::NOSPC);
        }
        let watch = syscall::watch_dir_unchecked(self.listener.as_fd(), dir.fd())?;
        self.directories.insert(watch, dir.path_bytes().to_owned());
        Ok(())
    }
}

/// Whether entries found in a directory are reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EntryAge {
    /// It came together with the directory, or was there before.
    AsItWas,
    /// It was made after the directory, before that was watched.
    New,
}

fn is_hidden(name: &[u8]) -> bool {
    is_reserved(name) || is_temporary(name)
}

/// Tells whether a path is this directory or below it.
fn is_below(path: &[u8], directory: &[u8]) -> bool {
    path.strip_prefix(directory)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
}

fn told(path: &[u8]) -> String {
    if path.is_empty() {
        return ".".to_owned();
    }
    shown(path).into_owned()
}

/// The current time on the clock of file timestamps, which is a little behind.
pub(crate) fn file_clock() -> Time {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let now = now.unwrap_or_default().saturating_sub(FILE_CLOCK_BEHIND);
    Time {
        seconds: i64::try_from(now.as_secs()).unwrap_or(i64::MAX),
        nanoseconds: now.subsec_nanos(),
    }
}
