//! A walk over a tree in full-path byte order, by directory descriptors, never following a link.
//!
//! The order is exactly that of sorting all full paths as bytes: a directory `a` stands at `a`, its entries
//! stand at `a/…`, and `a.txt` comes between the two. So each directory is listed once, sorted once, and
//! nothing has to be sorted again whatever number of threads works on what the walk hands out.

use std::cmp::Ordering;

use crate::descent::Descent;
use crate::dir::Dir;
use crate::error::Error;
use crate::metadata::FileKind;
use crate::name::{Name, shown};
use crate::resolve::joined;

/// How a walk goes.
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

/// A directory that could not be read; the walk goes on after it.
#[derive(Debug)]
pub struct WalkFault {
    /// The directory.
    pub path: String,
    /// What happened.
    pub error: Error,
}

/// A walk under way.
#[derive(Debug)]
pub struct Walker {
    options: WalkOptions,
    top: Option<Dir>,
    descent: Descent<Vec<Step>>,
    faults: Vec<WalkFault>,
}

/// What is still to be done in a directory.
#[derive(Debug)]
struct Step {
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
            top: Some(dir),
            descent: Descent::new(),
            faults: Vec::new(),
        }
    }

    /// The next entry in order. `descend` is asked before each directory is read.
    pub fn next(
        &mut self,
        descend: &mut dyn FnMut(&WalkItem) -> bool,
    ) -> Option<Result<WalkItem, WalkFault>> {
        if let Some(top) = self.top.take() {
            self.enter(top);
        }
        loop {
            if let Some(fault) = self.faults.pop() {
                return Some(Err(fault));
            }
            let depth = self.descent.depth();
            let (dir, steps) = self.descent.innermost()?;
            match steps.pop() {
                None => self.leave(),
                Some(step) => {
                    let item = WalkItem {
                        dir: dir.clone(),
                        name: step.name,
                        kind: step.kind,
                        depth,
                    };
                    match step.action {
                        Action::Emit => return Some(Ok(item)),
                        Action::Enter if descend(&item) => self.enter_item(&item),
                        Action::Enter => {}
                    }
                }
            }
        }
    }

    fn enter_item(&mut self, item: &WalkItem) {
        match item.dir.open_dir(&item.name) {
            Ok(dir) => self.enter(dir),
            Err(error) => self.faults.push(WalkFault {
                path: item.path(),
                error,
            }),
        }
    }

    fn enter(&mut self, dir: Dir) {
        let deeper = self
            .options
            .max_depth
            .is_none_or(|max| self.descent.depth() + 1 < max);
        let steps = match self.options.max_depth {
            Some(0) => Ok(Vec::new()),
            _ => steps(&dir, deeper),
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
}

/// Lists a directory: what to do in it, the first last.
fn steps(dir: &Dir, deeper: bool) -> crate::Result<Vec<Step>> {
    let mut steps = Vec::new();
    dir.for_each_entry(&mut |entry| {
        if deeper && entry.kind == FileKind::Directory {
            let name = entry.name.clone();
            steps.push(Step {
                name,
                kind: entry.kind,
                action: Action::Enter,
            });
        }
        steps.push(Step {
            name: entry.name,
            kind: entry.kind,
            action: Action::Emit,
        });
    })?;
    steps.sort_unstable_by(|a, b| in_order(b, a));
    Ok(steps)
}

/// Compares as bytes, where going into a directory counts as its name with a slash.
fn in_order(a: &Step, b: &Step) -> Ordering {
    let (a_name, b_name) = (a.name.as_bytes(), b.name.as_bytes());
    let shared = a_name.len().min(b_name.len());
    let next = |step: &Step, name: &[u8]| match (name.get(shared), step.action) {
        (Some(&byte), _) => Some(byte),
        (None, Action::Enter) => Some(b'/'),
        (None, Action::Emit) => None,
    };
    let heads = a_name.iter().take(shared).cmp(b_name.iter().take(shared));
    heads.then_with(|| next(a, a_name).cmp(&next(b, b_name)))
}
