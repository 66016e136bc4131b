//! Walks a tree in full-path byte order, by directory descriptors, never following a link.
//!
//! The order is that of sorting all full paths as bytes: a directory `a` is at `a`, its entries are at `a/…`, and
//! `a.txt` is between the two. Each directory is listed once and sorted once; results need no other sort however many
//! threads work on them. A walk can be split in two, so that several threads walk and their results keep one order.

use std::cmp::Ordering;

use crate::descent::Descent;
use crate::dir::Dir;
use crate::error::Error;
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

/// What of a walk is wanted.
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

/// The result of one step of a walk.
#[derive(Debug)]
pub enum WalkEvent {
    /// An entry.
    Item(WalkItem),
    /// A directory was entered or left out: no entry, but work was done.
    Passed,
    /// A directory could not be read.
    Fault(WalkFault),
}

/// How much of a walk is cut off its beginning.
#[derive(Debug, Clone, Copy)]
pub struct Cut {
    /// At most so many entries of the directory at hand.
    pub entries: usize,
    /// At most so many directories in it, with all they hold.
    pub directories: usize,
}

/// A walk under way.
#[derive(Debug)]
pub struct Walker {
    options: WalkOptions,
    top: Option<Dir>,
    /// How many bytes of a directory's path lead to where the walk began.
    prefix: usize,
    /// How deep the outermost directory of the descent is.
    base: usize,
    descent: Descent<Vec<WalkStep>>,
    faults: Vec<WalkFault>,
}

/// What is still to be done in a directory.
#[derive(Debug)]
struct WalkStep {
    name: Name,
    kind: FileKind,
    action: Action,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Action {
    /// Hand the entry out.
    Emit,
    /// Go into it.
    Enter,
}

impl Walker {
    /// A walk over everything below a directory.
    #[must_use]
    pub fn new(dir: Dir, options: WalkOptions) -> Walker {
        Walker {
            options,
            prefix: dir.path_bytes().len(),
            top: Some(dir),
            base: 0,
            descent: Descent::new(),
            faults: Vec::new(),
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
                WalkEvent::Passed => {}
            }
        }
    }

    /// Goes on by one entry or one directory; `None` at the end.
    pub fn step(&mut self, choice: &mut dyn Choice) -> Option<WalkEvent> {
        if let Some(top) = self.top.take() {
            self.enter(top, choice);
        }
        loop {
            if let Some(fault) = self.faults.pop() {
                return Some(WalkEvent::Fault(fault));
            }
            let depth = self.base + self.descent.depth();
            let (dir, steps) = self.descent.innermost()?;
            let Some(step) = steps.pop() else {
                self.leave();
                continue;
            };
            let item = WalkItem {
                dir: dir.clone(),
                name: step.name,
                kind: step.kind,
                depth,
            };
            match step.action {
                Action::Emit if choice.emits(&item) => return Some(WalkEvent::Item(item)),
                Action::Emit => continue,
                Action::Enter if choice.descends(&item) => self.enter_item(&item, choice),
                Action::Enter => {}
            }
            return Some(WalkEvent::Passed);
        }
    }

    /// Keeps the beginning of what is left and returns the rest; `None` if there is no rest, or if the walk is so deep that
    /// each part would keep too many directories open.
    pub fn split(&mut self, cut: Cut) -> Option<Walker> {
        self.leave_finished();
        let depth = self.base + self.descent.depth();
        let alone = self.descent.depth() <= 1;
        let (dir, steps) = self.descent.innermost()?;
        let at = beginning(steps, cut);
        if depth > SPLIT_DEPTH || (at == 0 && alone) {
            return None;
        }
        let mut descent = Descent::new();
        let (dir, own) = (dir.clone(), steps.split_off(at));
        descent.enter(dir, own).ok()?;
        let first = Walker {
            options: self.options,
            top: None,
            prefix: self.prefix,
            base: depth.saturating_sub(1),
            descent,
            faults: std::mem::take(&mut self.faults),
        };
        Some(std::mem::replace(self, first))
    }

    /// Leaves directories in which nothing is to be done any more.
    fn leave_finished(&mut self) {
        while self.descent.depth() > 1
            && matches!(self.descent.innermost(), Some((_, steps)) if steps.is_empty())
        {
            self.leave();
        }
    }

    fn enter_item(&mut self, item: &WalkItem, choice: &dyn Choice) {
        match item.dir.open_dir(&item.name) {
            Ok(dir) => self.enter(dir, choice),
            Err(error) => self.faults.push(WalkFault {
                path: item.path(),
                error,
            }),
        }
    }

    fn enter(&mut self, dir: Dir, choice: &dyn Choice) {
        let steps = match self.options.max_depth {
            Some(0) => Ok(Vec::new()),
            _ => self.steps(&dir, choice),
        };
        if let Err(error) = steps.and_then(|steps| self.descent.enter(dir.clone(), steps)) {
            self.faults.push(WalkFault {
                path: dir.path().to_owned(),
                error,
            });
        }
    }

    fn leave(&mut self) {
        let left = self.descent.innermost().map(|(dir, _)| dir.clone());
        if let (Some(dir), Some((_, Err(error)))) = (left, self.descent.leave()) {
            self.faults.push(WalkFault {
                path: dir.path().to_owned(),
                error,
            });
        }
    }

    /// Lists a directory: what to do in it, the first last.
    fn steps(&self, dir: &Dir, choice: &dyn Choice) -> crate::Result<Vec<WalkStep>> {
        let depth = self.base + self.descent.depth() + 1;
        let deeper = self.options.max_depth.is_none_or(|max| depth < max);
        let mut path = relative(dir.path_bytes(), self.prefix);
        let before = path.len();
        let mut steps = Vec::new();
        dir.for_each_name(&mut |name, kind| {
            path.truncate(before);
            path.extend_from_slice(name);
            let seen = Seen {
                path: &path,
                name,
                kind,
                depth,
            };
            let enter = deeper && kind == FileKind::Directory && choice.enters(&seen);
            let actions = [(choice.wants(&seen), Action::Emit), (enter, Action::Enter)];
            for (_, action) in actions.into_iter().filter(|(wanted, _)| *wanted) {
                steps.extend(Name::new(name).map(|name| WalkStep { name, kind, action }));
            }
        })?;
        steps.sort_unstable_by(|a, b| in_order(b, a));
        Ok(steps)
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
fn in_order(a: &WalkStep, b: &WalkStep) -> Ordering {
    let (a_name, b_name) = (a.name.as_bytes(), b.name.as_bytes());
    let shared = a_name.len().min(b_name.len());
    let next = |step: &WalkStep, name: &[u8]| match (name.get(shared), step.action) {
        (Some(&byte), _) => Some(byte),
        (None, Action::Enter) => Some(b'/'),
        (None, Action::Emit) => None,
    };
    let heads = a_name.get(..shared).cmp(&b_name.get(..shared));
    heads.then_with(|| next(a, a_name).cmp(&next(b, b_name)))
}
