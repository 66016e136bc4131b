//! The one way down a tree: by directory descriptors, never following a link, in full-path byte order.
//!
//! The order is that of sorting all full paths as bytes: a directory `a` is at `a`, its entries are at `a/…`, and
//! `a.txt` is between the two. Each directory is listed once and sorted once; results need no other sort however many
//! threads work on them. A walk can be split in two, so that several threads walk and their results keep one order.

use std::cmp::Ordering;
use std::collections::VecDeque;
use std::sync::Arc;

use crate::descent::Descent;
use crate::dir::{Dir, RawEntry, TakeName, Unlisted};
use crate::error::Error;
use crate::listings::ListingVisit;
use crate::metadata::FileKind;
use crate::name::{Name, shown};
use crate::resolve::joined;

/// How deep a walk may be to be split: each part keeps its own directories open.
const SPLIT_DEPTH: usize = 16;

/// Options of a walk.
#[derive(Debug, Clone, Copy, Default)]
pub struct WalkOptions {
    /// How deep: 1 is the directory's own entries; `None` for all.
    pub max_depth: Option<usize>,
    /// In which order.
    pub order: WalkOrder,
}

/// The order of the entries of each directory.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum WalkOrder {
    /// The order of full paths, compared as bytes.
    #[default]
    Paths,
    /// Sorted, last entry first.
    PathsReversed,
    /// In the file system's order: cheaper, if the order does not matter.
    Listed,
}

/// One entry met on a walk.
#[derive(Debug, Clone)]
pub struct WalkItem {
    /// The directory it is in.
    pub dir: Dir,
    /// Its name.
    pub name: Name,
    /// What it is.
    pub kind: FileKind,
    /// How deep: 1 for the entries of the directory where the walk began.
    pub depth: usize,
    /// The inode that its directory lists, 0 if none is known. A hint only: what is mounted over the entry has another.
    pub inode: u64,
}

impl WalkItem {
    /// Its path inside the root as clients see it.
    #[must_use]
    pub fn path(&self) -> String {
        shown(&self.path_bytes()).into_owned()
    }

    /// Its path inside the root in bytes.
    #[must_use]
    pub fn path_bytes(&self) -> Vec<u8> {
        joined(self.dir.path_bytes(), &self.name)
    }
}

/// A directory that could not be read; the walk continues after it.
#[derive(Debug)]
pub struct WalkFault {
    /// The directory.
    pub path: String,
    /// What happened.
    pub error: Error,
}

impl WalkFault {
    /// The fault of a directory that could not be read.
    #[must_use]
    pub fn new(directory: &WalkItem, error: Error) -> WalkFault {
        let path = directory.path();
        WalkFault { path, error }
    }
}

/// An entry as its directory lists it.
#[derive(Debug, Clone, Copy)]
pub struct Seen<'a> {
    /// Its path relative to the directory where the walk began.
    pub path: &'a [u8],
    /// Its name, the end of the path.
    pub name: &'a [u8],
    /// What it is.
    pub kind: FileKind,
    /// How deep: 1 for the entries of the directory where the walk began.
    pub depth: usize,
}

/// What a caller wants from a walk.
pub trait Choice {
    /// Tells whether an entry is wanted; asked in no order, once for each.
    fn wants(&self, seen: &Seen<'_>) -> bool;

    /// Tells whether anything below a directory may be wanted; asked in no order, once for each.
    fn enters(&self, seen: &Seen<'_>) -> bool;

    /// Tells whether a wanted entry is handed out; asked in the order of the walk.
    fn emits(&mut self, item: &WalkItem) -> bool;

    /// Tells whether a directory is entered that may hold something; asked in the order of the walk.
    fn descends(&mut self, item: &WalkItem) -> bool;
}

/// Chooses everything but directories, and enters all of them.
#[derive(Debug, Clone, Copy)]
pub struct AllLeaves;

impl Choice for AllLeaves {
    fn wants(&self, seen: &Seen<'_>) -> bool {
        seen.kind != FileKind::Directory
    }

    fn enters(&self, _: &Seen<'_>) -> bool {
        true
    }

    fn emits(&mut self, _: &WalkItem) -> bool {
        true
    }

    fn descends(&mut self, _: &WalkItem) -> bool {
        true
    }
}

/// The result of one step of a walk.
#[derive(Debug)]
pub enum WalkEvent {
    /// An entry.
    Item(WalkItem),
    /// A directory was entered: what follows is below it until it is left.
    Entered(WalkItem, Dir),
    /// A directory was not entered, because nothing below it is wanted.
    Passed,
    /// A directory could not be opened or listed.
    Unreadable(WalkItem, Error),
    /// Everything below a directory was visited.
    Left(LeftDir),
    /// The walk lost its way; it continues with what it can still reach.
    Fault(WalkFault),
}

/// A directory that a walk has left.
#[derive(Debug)]
pub struct LeftDir {
    /// The directory as an entry of the one above.
    pub item: WalkItem,
    /// Other parts of the walk visit some of what is below it, so it is complete only when those before this one are.
    pub is_shared: bool,
}

/// How much of a walk is cut off its beginning.
#[derive(Debug, Clone, Copy)]
pub struct Cut {
    /// At most this many entries of the current directory.
    pub entries: usize,
    /// At most this many directories in it, with everything in them.
    pub directories: usize,
}

/// A walk in progress.
#[derive(Debug)]
pub struct Walker {
    options: WalkOptions,
    unlisted: Unlisted,
    /// What is remembered of directories, for walks that may use it.
    remembered: Option<ListingVisit>,
    top: Option<Dir>,
    /// How many bytes of a directory's path lead to where the walk began.
    prefix: usize,
    /// How deep the outermost directory of the descent is.
    base: usize,
    descent: Descent<WalkLevel>,
    /// Steps that were already taken; the next calls report them.
    pending: VecDeque<WalkEvent>,
}

/// A directory the walk is in.
#[derive(Debug)]
struct WalkLevel {
    /// Its name in the directory above; the outermost one has none.
    name: Option<Name>,
    /// The remaining steps in it, in reverse order.
    steps: Vec<WalkStep>,
    /// The names in it. In one piece: a large directory has many, and small pieces of memory stay with the process.
    names: Arc<Vec<u8>>,
    /// A part of the walk was cut off inside it.
    is_shared: bool,
}

/// A remaining step in a directory.
#[derive(Debug)]
struct WalkStep {
    inode: u64,
    /// Where its name is in the names of the directory.
    start: usize,
    length: u16,
    kind: FileKind,
    action: Action,
}

impl WalkStep {
    fn name<'level>(&self, names: &'level [u8]) -> &'level [u8] {
        let end = self.start + usize::from(self.length);
        names.get(self.start..end).unwrap_or_default()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Action {
    /// Hand the entry out.
    Emit,
    /// Go into it.
    Enter,
}

impl Walker {
    /// A walk over everything below a directory, except unfinished entries.
    #[must_use]
    pub fn new(dir: Dir, options: WalkOptions) -> Walker {
        Walker::meeting(dir, options, Unlisted::LeftOut)
    }

    /// Lets the walk use remembered directory lists.
    #[must_use]
    pub fn remembering(self, remembered: Option<ListingVisit>) -> Walker {
        Walker { remembered, ..self }
    }

    /// A walk that meets temporary entries too, for those who count or sweep.
    pub(crate) fn with_temporary(dir: Dir, options: WalkOptions) -> Walker {
        Walker::meeting(dir, options, Unlisted::Temporary)
    }

    /// A walk that meets everything, for those who remove a directory.
    pub(crate) fn with_all(dir: Dir, options: WalkOptions) -> Walker {
        Walker::meeting(dir, options, Unlisted::All)
    }

    fn meeting(dir: Dir, options: WalkOptions, unlisted: Unlisted) -> Walker {
        Walker {
            options,
            unlisted,
            remembered: None,
            prefix: dir.path_bytes().len(),
            top: Some(dir),
            base: 0,
            descent: Descent::new(),
            pending: VecDeque::new(),
        }
    }

    /// The next entry in order. `descend` is asked before each directory is read.
    pub fn next(
        &mut self,
        descend: &mut dyn FnMut(&WalkItem) -> bool,
    ) -> Option<Result<WalkItem, WalkFault>> {
        let mut choice = Everything { descend };
        loop {
            match self.step(&mut choice)? {
                WalkEvent::Item(item) => return Some(Ok(item)),
                WalkEvent::Fault(fault) => return Some(Err(fault)),
                WalkEvent::Unreadable(item, error) => {
                    return Some(Err(WalkFault::new(&item, error)));
                }
                WalkEvent::Entered(..) | WalkEvent::Passed | WalkEvent::Left(_) => {}
            }
        }
    }

    /// Advances by one entry or one directory; `None` at the end.
    pub fn step(&mut self, choice: &mut dyn Choice) -> Option<WalkEvent> {
        if let Some(top) = self.top.take() {
            self.enter_top(top, choice);
        }
        loop {
            if let Some(event) = self.pending.pop_front() {
                return Some(event);
            }
            let depth = self.base + self.descent.depth();
            let (dir, level) = self.descent.innermost()?;
            let Some(step) = level.steps.pop() else {
                self.leave();
                continue;
            };
            let Some(name) = Name::new(step.name(&level.names)) else {
                continue;
            };
            let item = WalkItem {
                dir: dir.clone(),
                name,
                kind: step.kind,
                depth,
                inode: step.inode,
            };
            return Some(match step.action {
                Action::Emit if choice.emits(&item) => WalkEvent::Item(item),
                Action::Emit => continue,
                Action::Enter if choice.descends(&item) => self.enter_item(item, choice),
                Action::Enter => WalkEvent::Passed,
            });
        }
    }

    /// Keeps the beginning of the remaining work and returns the rest; `None` if there is no rest, or if the walk is so
    /// deep that each part would keep too many directories open.
    pub fn split(&mut self, cut: Cut) -> Option<Walker> {
        self.leave_finished();
        let depth = self.base + self.descent.depth();
        let alone = self.descent.depth() <= 1;
        let (dir, level) = self.descent.innermost()?;
        let at = beginning(&level.steps, cut);
        if depth > SPLIT_DEPTH || (at == 0 && alone) {
            return None;
        }
        let mut descent = Descent::new();
        let own = WalkLevel {
            name: None,
            steps: level.steps.split_off(at),
            names: Arc::clone(&level.names),
            is_shared: true,
        };
        descent.enter(dir.clone(), own).ok()?;
        self.descent
            .notes_mut()
            .for_each(|level| level.is_shared = true);
        let first = Walker {
            options: self.options,
            unlisted: self.unlisted,
            remembered: self.remembered.clone(),
            top: None,
            prefix: self.prefix,
            base: depth.saturating_sub(1),
            descent,
            pending: std::mem::take(&mut self.pending),
        };
        Some(std::mem::replace(self, first))
    }

    /// Leaves directories in which nothing remains to be done.
    fn leave_finished(&mut self) {
        while self.descent.depth() > 1
            && matches!(self.descent.innermost(), Some((_, level)) if level.steps.is_empty())
        {
            self.leave();
        }
    }

    /// Enters an entry of the innermost directory.
    pub(crate) fn enter_item(&mut self, item: WalkItem, choice: &dyn Choice) -> WalkEvent {
        let entered = item.dir.open_dir(&item.name).and_then(|dir| {
            self.enter(dir.clone(), Some(item.name.clone()), choice)?;
            Ok(dir)
        });
        match entered {
            Ok(dir) => WalkEvent::Entered(item, dir),
            Err(error) => WalkEvent::Unreadable(item, error),
        }
    }

    fn enter_top(&mut self, dir: Dir, choice: &dyn Choice) {
        if self.options.max_depth == Some(0) {
            return;
        }
        if let Err(error) = self.enter(dir.clone(), None, choice) {
            self.lose(&dir, error);
        }
    }

    fn enter(&mut self, dir: Dir, name: Option<Name>, choice: &dyn Choice) -> crate::Result<()> {
        let (steps, names) = self.steps(&dir, choice)?;
        let level = WalkLevel {
            name,
            steps,
            names: Arc::new(names),
            is_shared: false,
        };
        self.descent.enter(dir, level)
    }

    /// Leaves the innermost directory. The directory in which the walk began is not reported: it is the caller's.
    fn leave(&mut self) {
        let depth = self.base + self.descent.depth() - 1;
        let left = self.descent.innermost().map(|(dir, _)| dir.clone());
        let (Some(left), Some((level, reopened))) = (left, self.descent.leave()) else {
            return;
        };
        if let Err(error) = reopened {
            return self.lose(&left, error);
        }
        // Close the directory before the caller removes it.
        drop(left);
        if let (Some(name), Some((above, _))) = (level.name, self.descent.innermost()) {
            let item = WalkItem {
                dir: above.clone(),
                name,
                kind: FileKind::Directory,
                depth,
                inode: 0,
            };
            let is_shared = level.is_shared;
            self.pending
                .push_back(WalkEvent::Left(LeftDir { item, is_shared }));
        }
    }

    fn lose(&mut self, dir: &Dir, error: Error) {
        let path = dir.path().to_owned();
        self.pending
            .push_back(WalkEvent::Fault(WalkFault { path, error }));
    }

    fn for_each_name(&self, dir: &Dir, take: TakeName<'_>) -> crate::Result<()> {
        match &self.remembered {
            Some(visit) => visit.for_each_name(dir, self.unlisted, take),
            None => dir.for_each_name(self.unlisted, take),
        }
    }

    /// Lists a directory: the steps in it, in reverse order, and their names.
    fn steps(&self, dir: &Dir, choice: &dyn Choice) -> crate::Result<(Vec<WalkStep>, Vec<u8>)> {
        let depth = self.base + self.descent.depth() + 1;
        let deeper = self.options.max_depth.is_none_or(|max| depth < max);
        let mut path = relative(dir.path_bytes(), self.prefix);
        let before = path.len();
        let (mut steps, mut names) = (Vec::new(), Vec::new());
        self.for_each_name(dir, &mut |name, RawEntry { kind, inode }| {
            path.truncate(before);
            path.extend_from_slice(name);
            let seen = Seen {
                path: &path,
                name,
                kind,
                depth,
            };
            let enter = deeper && kind == FileKind::Directory && choice.enters(&seen);
            let emit = choice.wants(&seen);
            // No file system has names of so many bytes.
            let Some(length) = u16::try_from(name.len()).ok().filter(|_| emit || enter) else {
                return;
            };
            let start = names.len();
            names.extend_from_slice(name);
            let actions = [(emit, Action::Emit), (enter, Action::Enter)];
            let actions = actions.into_iter().filter(|(wanted, _)| *wanted);
            steps.extend(actions.map(|(_, action)| WalkStep {
                inode,
                start,
                length,
                kind,
                action,
            }));
        })?;
        match self.options.order {
            WalkOrder::Paths => steps.sort_unstable_by(|a, b| in_order(&names, b, a)),
            WalkOrder::PathsReversed => steps.sort_unstable_by(|a, b| in_order(&names, a, b)),
            WalkOrder::Listed => steps.reverse(),
        }
        Ok((steps, names))
    }
}

/// Wants everything, and asks before each directory.
struct Everything<'a> {
    descend: &'a mut dyn FnMut(&WalkItem) -> bool,
}

impl Choice for Everything<'_> {
    fn wants(&self, _: &Seen<'_>) -> bool {
        true
    }

    fn enters(&self, _: &Seen<'_>) -> bool {
        true
    }

    fn emits(&mut self, _: &WalkItem) -> bool {
        true
    }

    fn descends(&mut self, item: &WalkItem) -> bool {
        (self.descend)(item)
    }
}

/// A directory's path without its first `prefix` bytes, as a beginning for its entries' paths.
fn relative(path: &[u8], prefix: usize) -> Vec<u8> {
    let below = path.get(prefix..).unwrap_or_default();
    let below = below.strip_prefix(b"/").unwrap_or(below);
    let mut relative = below.to_vec();
    if !below.is_empty() {
        relative.push(b'/');
    }
    relative
}

/// The index in a directory's steps, which are in reverse order, at which those begin that a cut takes.
fn beginning(steps: &[WalkStep], cut: Cut) -> usize {
    let (mut entries, mut directories) = (0, 0);
    let kept = steps.iter().rev().take_while(|step| {
        match step.action {
            Action::Emit => entries += 1,
            Action::Enter => directories += 1,
        }
        entries <= cut.entries && directories <= cut.directories
    });
    steps.len() - kept.count()
}

/// Compares as bytes, where going into a directory counts as its name with a slash.
fn in_order(names: &[u8], a: &WalkStep, b: &WalkStep) -> Ordering {
    let (a_name, b_name) = (a.name(names), b.name(names));
    let shared = a_name.len().min(b_name.len());
    let next = |step: &WalkStep, name: &[u8]| match (name.get(shared), step.action) {
        (Some(&byte), _) => Some(byte),
        (None, Action::Enter) => Some(b'/'),
        (None, Action::Emit) => None,
    };
    let heads = a_name.get(..shared).cmp(&b_name.get(..shared));
    heads.then_with(|| next(a, a_name).cmp(&next(b, b_name)))
}
