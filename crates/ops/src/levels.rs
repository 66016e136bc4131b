//! Directories on the way down a tree, opened again when they are needed.
//!
//! A tree may be deeper than there are descriptors, so only the most recently used levels stay open; a closed one
//! is reached again from the nearest open one above it, by names that are never followed.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use sandbox::{Change, Dir, Follow, Name, RelPath, Result, Root};

/// How many of the levels used last stay open beside the top.
const RECENT: usize = 48;
/// How many stay open on the way to them, so that coming back up a deep tree does not begin at its top.
const MILESTONES: usize = 48;
/// Whatever the source's mode is, its copy must take entries.
const OWNER_MAY: u32 = 0o700;

/// One directory of a tree.
#[derive(Debug)]
pub(crate) struct TreeLevel {
    way: LevelOrigin,
    depth: usize,
    dir: RefCell<Option<Dir>>,
}

#[derive(Debug)]
enum LevelOrigin {
    /// The top of a tree: always open.
    Top,
    /// An entry of another level.
    Below(Rc<TreeLevel>, Name),
    /// Somewhere else in the root, by its resolved path.
    At(String),
}

impl TreeLevel {
    /// The top of a tree.
    pub(crate) fn top(dir: Dir) -> Rc<TreeLevel> {
        Rc::new(TreeLevel {
            way: LevelOrigin::Top,
            depth: 0,
            dir: RefCell::new(Some(dir)),
        })
    }

    /// An entry of a level.
    pub(crate) fn below(parent: &Rc<TreeLevel>, name: &Name) -> Rc<TreeLevel> {
        let way = LevelOrigin::Below(Rc::clone(parent), name.clone());
        Rc::new(TreeLevel {
            way,
            depth: parent.depth + 1,
            dir: RefCell::new(None),
        })
    }

    /// A directory elsewhere in the root.
    pub(crate) fn at(path: String) -> Rc<TreeLevel> {
        Rc::new(TreeLevel {
            way: LevelOrigin::At(path),
            depth: 0,
            dir: RefCell::new(None),
        })
    }
}

impl TreeLevel {
    fn close(&self) {
        // What was opened from elsewhere may be opened again from there; a top may not.
        if !matches!(self.way, LevelOrigin::Top) {
            self.dir.replace(None);
        }
    }
}

impl Drop for TreeLevel {
    /// Lets go of a long way up one by one: the compiler's own way would recurse.
    fn drop(&mut self) {
        let mut way = std::mem::replace(&mut self.way, LevelOrigin::Top);
        while let LevelOrigin::Below(parent, _) = way {
            match Rc::try_unwrap(parent) {
                Ok(mut level) => way = std::mem::replace(&mut level.way, LevelOrigin::Top),
                Err(_) => break,
            }
        }
    }
}

/// Whether a directory was there before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DirNewness {
    /// It was made just now.
    Fresh,
    /// It was there.
    Old,
}

/// The levels of one side of a copy that are open.
#[derive(Debug)]
pub(crate) struct Levels<'root> {
    root: &'root Root,
    recent: VecDeque<Rc<TreeLevel>>,
    milestones: Vec<Rc<TreeLevel>>,
    /// How many levels lie between two milestones.
    spacing: usize,
}

impl<'root> Levels<'root> {
    /// No level is open yet.
    pub(crate) fn new(root: &'root Root) -> Levels<'root> {
        Levels {
            root,
            recent: VecDeque::new(),
            milestones: Vec::new(),
            spacing: RECENT / 2,
        }
    }

    /// Opens a level, and those above it where they are closed.
    pub(crate) fn open(&mut self, level: &Rc<TreeLevel>) -> Result<Dir> {
        let mut closed: Vec<Rc<TreeLevel>> = Vec::new();
        let mut current = Rc::clone(level);
        let mut dir = loop {
            if let Some(dir) = current.dir.borrow().clone() {
                break dir;
            }
            let above = match &current.way {
                LevelOrigin::Below(parent, _) => Rc::clone(parent),
                LevelOrigin::At(path) => break self.open_at(&current, path)?,
                // A top is never closed.
                LevelOrigin::Top => return Err(sandbox::Error::Stopped),
            };
            closed.push(std::mem::replace(&mut current, above));
        };
        for level in closed.into_iter().rev() {
            if let LevelOrigin::Below(_, name) = &level.way {
                dir = dir.open_dir(name)?;
                self.remember(&level, &dir);
            }
        }
        Ok(dir)
    }

    /// Makes a level's directory where it is missing, and opens it.
    pub(crate) fn make(
        &mut self,
        change: &Change,
        level: &Rc<TreeLevel>,
        mode: u32,
    ) -> Result<(Dir, DirNewness)> {
        let LevelOrigin::Below(parent, name) = &level.way else {
            return Ok((self.open(level)?, DirNewness::Old));
        };
        let (dir, newness) = make_in(change, &self.open(parent)?, name, mode)?;
        self.remember(level, &dir);
        Ok((dir, newness))
    }

    fn open_at(&mut self, level: &Rc<TreeLevel>, path: &str) -> Result<Dir> {
        let dir = self
            .root
            .locate(&RelPath::parse(path)?, Follow::Never)?
            .open_dir()?;
        self.remember(level, &dir);
        Ok(dir)
    }

    fn remember(&mut self, level: &Rc<TreeLevel>, dir: &Dir) {
        level.dir.replace(Some(dir.clone()));
        self.recent.push_back(Rc::clone(level));
        if self.recent.len() > RECENT
            && let Some(oldest) = self.recent.pop_front()
        {
            self.retire(oldest);
        }
    }

    /// Closes a level that was not used for long, unless it is a milestone.
    fn retire(&mut self, level: Rc<TreeLevel>) {
        if level.depth.is_multiple_of(self.spacing) {
            self.milestones.push(level);
        } else {
            level.close();
        }
        if self.milestones.len() > MILESTONES {
            // Those that nothing is left to be done below go first.
            self.keep_milestones(|level, _| Rc::strong_count(level) > 1);
        }
        while self.milestones.len() > MILESTONES {
            self.spacing *= 2;
            self.keep_milestones(|level, spacing| level.depth.is_multiple_of(spacing));
        }
    }

    fn keep_milestones(&mut self, keep: impl Fn(&Rc<TreeLevel>, usize) -> bool) {
        let spacing = self.spacing;
        self.milestones.retain(|level| {
            let kept = keep(level, spacing);
            if !kept {
                level.close();
            }
            kept
        });
    }
}

/// Makes a directory, or opens the one that is there.
pub(crate) fn make_in(
    change: &Change,
    parent: &Dir,
    name: &Name,
    mode: u32,
) -> Result<(Dir, DirNewness)> {
    match change.make_dir_in(parent, name, mode & 0o777 | OWNER_MAY) {
        Ok(dir) => Ok((dir, DirNewness::Fresh)),
        Err(sandbox::Error::AlreadyExists { path }) => match parent.open_dir(name) {
            Ok(dir) => Ok((dir, DirNewness::Old)),
            Err(_) => Err(sandbox::Error::AlreadyExists { path }),
        },
        Err(error) => Err(error),
    }
}
