//! The look-up that follows links: one component at a time, by descriptors.
//!
//! Security: nothing outside the root is ever opened or examined. A link that leaves the root as text
//! turns the position into a list of names; it counts as inside again when that list equals a spelling of
//! the root, and as outside as soon as it cannot become one.

use std::collections::VecDeque;
use std::os::fd::{BorrowedFd, OwnedFd};

use crate::error::{Error, Result};
use crate::metadata::{FileKind, Metadata};
use crate::name::{Name, shown};
use crate::rel_path::{self, PathStep, RelPath};
use crate::reserved::{is_ours, is_reserved_entry};
use crate::root::Root;
use crate::syscall::{self, Errno};
use crate::view::{RootView, Standing};

use super::{Follow, Resolved, Tail, confirm, denied, joined, not_found, reopen_resolved};

/// The most links followed on one path, as the kernel has it.
const MAX_LINKS: usize = 40;
/// The most steps taken for one path, links' texts included.
const MAX_STEPS: usize = 4096;
/// The most directories opened again for all the `..` of one path: a path that goes down and up a deep
/// tree would cost the square of its length otherwise.
const MAX_REOPENED: usize = 65_536;

/// Where a walk begins.
#[derive(Debug, Default)]
pub(crate) struct Start {
    /// An open directory inside the root; `None` for the root.
    pub(crate) dir: Option<OwnedFd>,
    /// Its resolved path.
    pub(crate) path: Vec<u8>,
}

/// Looks a client's path up from the root.
pub(super) fn resolve(root: &Root, path: &RelPath, follow: Follow) -> Result<Resolved> {
    let steps = path.steps();
    ComponentWalk {
        own: steps.len(),
        ..ComponentWalk::new(root, Start::default(), &steps, path.as_given(), follow)
    }
    .run()
}

/// Looks the steps of a link's text up from a directory inside the root.
pub(crate) fn walk_from(
    root: &Root,
    start: Start,
    steps: &[PathStep],
    given: &str,
    follow: Follow,
) -> Result<Resolved> {
    let found = ComponentWalk::new(root, start, steps, given, follow).run()?;
    confirm(root, &found, given)?;
    Ok(found)
}

/// Judges one name of a directory by the view of its root, before and after it is looked up.
struct NameJudge<'a> {
    view: Option<(&'a RootView, Standing)>,
    is_doubtful: bool,
    may_exist: bool,
}

impl<'a> NameJudge<'a> {
    fn new(root: &'a Root, dir: &[u8], name: &Name) -> NameJudge<'a> {
        let Some(view) = root.view() else {
            return NameJudge {
                view: None,
                is_doubtful: false,
                may_exist: true,
            };
        };
        let at = view.view().standing(dir);
        NameJudge {
            is_doubtful: view.view().is_doubtful(&at, name.as_bytes()),
            may_exist: view.view().judges(&view.step(&at, name), FileKind::Unknown),
            view: Some((view, at)),
        }
    }

    /// Nothing that this name could find is visible.
    fn denies_at_once(&self) -> bool {
        !self.may_exist && !self.is_doubtful
    }

    /// Nothing may be created under this name.
    fn denies_missing(&self) -> bool {
        !self.may_exist
    }

    /// The name under which an entry is stored that was found; `None` if that does not exist.
    fn stored(&self, dir: BorrowedFd<'_>, name: Name, found: &Metadata) -> Option<Name> {
        let Some((view, at)) = &self.view else {
            return Some(name);
        };
        let stored = if self.is_doubtful {
            view.stored_name(dir, &name, found)?
        } else {
            name
        };
        let exists = view.view().judges(&view.step(at, &stored), found.kind);
        exists.then_some(stored)
    }
}

struct ComponentWalk<'a> {
    root: &'a Root,
    given: &'a str,
    follow: Follow,
    pending: VecDeque<PathStep>,
    /// How many of them, at the end, the client wrote; those before came from links.
    own: usize,
    /// The link by whose text the walk goes, or went out of the root.
    link: Option<Vec<u8>>,
    /// The directory the walk is in; `None` for the root.
    current: Option<OwnedFd>,
    /// Its path inside the root.
    path: Vec<u8>,
    /// The absolute position while the walk is not inside the root.
    outside: Option<Vec<Name>>,
    links: usize,
    reopened: usize,
    /// A link's text ended in a slash, so that only a directory will do.
    directory_wanted: bool,
}

impl<'a> ComponentWalk<'a> {
    fn new(
        root: &'a Root,
        start: Start,
        steps: &[PathStep],
        given: &'a str,
        follow: Follow,
    ) -> ComponentWalk<'a> {
        ComponentWalk {
            root,
            given,
            follow,
            pending: steps.iter().cloned().collect(),
            own: 0,
            link: None,
            current: start.dir,
            path: start.path,
            outside: None,
            links: 0,
            reopened: 0,
            directory_wanted: false,
        }
    }

    fn run(mut self) -> Result<Resolved> {
        for _ in 0..MAX_STEPS {
            let Some(step) = self.pending.pop_front() else {
                return self.arrived();
            };
            let is_own = self.pending.len() < self.own;
            self.own = self.own.min(self.pending.len());
            if is_own && self.outside.is_none() {
                self.link = None;
            }
            match (self.outside.take(), step) {
                (Some(position), step) => self.step_outside(position, step)?,
                (None, PathStep::Up) => self.step_up()?,
                (None, PathStep::Into(name)) => {
                    if let Some(tail) = self.step_into(name, is_own)? {
                        return Ok(self.found(tail));
                    }
                }
            }
        }
        Err(Error::Loop {
            path: self.given.to_owned(),
        })
    }

    /// The steps ran out in a directory rather than at a name.
    fn arrived(mut self) -> Result<Resolved> {
        if let Some(position) = &self.outside {
            return Err(self.left(position));
        }
        if self.path.is_empty() {
            return Ok(self.found(Tail::Root));
        }
        // The last name is looked up once more, from its own directory, so that both belong together.
        let name = self.leave_directory()?;
        let (fd, metadata) = self.look(&name)?;
        if !metadata.is_directory() {
            return Err(Error::NotADirectory {
                path: self.given.to_owned(),
            });
        }
        Ok(self.found(Tail::Existing { name, fd, metadata }))
    }

    fn found(self, tail: Tail) -> Resolved {
        Resolved {
            parent: self.current,
            parent_path: self.path,
            tail,
        }
    }

    fn step_into(&mut self, name: Name, is_own: bool) -> Result<Option<Tail>> {
        if is_ours(name.as_bytes()) {
            return Err(not_found(self.given, &self.path, &name));
        }
        let judge = NameJudge::new(self.root, &self.path, &name);
        if judge.denies_at_once() {
            return self.deny(name, is_own);
        }
        let fd = match syscall::look_unchecked(self.root.fd_or(self.current.as_ref()), &name) {
            Ok(fd) => fd,
            Err(Errno::NOENT) if judge.denies_missing() => return self.deny(name, is_own),
            Err(Errno::NOENT) if is_own => return self.missing_own(name),
            Err(Errno::NOENT) => return self.missing(name).map(Some),
            Err(errno) => return Err(Error::from_errno("open", self.given, errno)),
        };
        let metadata = self.stat(&fd)?;
        let dir = self.root.fd_or(self.current.as_ref());
        if is_reserved_entry(dir, &name, &metadata) {
            return Err(not_found(self.given, &self.path, &name));
        }
        match judge.stored(dir, name.clone(), &metadata) {
            Some(stored) => self.enter((stored, fd, metadata), is_own),
            None => self.deny(name, is_own),
        }
    }

    /// Continues through an existing entry, or ends at it.
    fn enter(
        &mut self,
        (name, fd, metadata): (Name, OwnedFd, Metadata),
        is_own: bool,
    ) -> Result<Option<Tail>> {
        let last = self.pending.is_empty();
        match metadata.kind {
            FileKind::Symlink if !last || self.follow == Follow::Last => {
                self.link = Some(joined(&self.path, &name));
                self.follow_link(&fd)?;
                Ok(None)
            }
            FileKind::Directory if last => Ok(Some(Tail::Existing { name, fd, metadata })),
            _ if last && !self.directory_wanted => Ok(Some(Tail::Existing { name, fd, metadata })),
            FileKind::Directory => {
                self.path = joined(&self.path, &name);
                self.current = Some(fd);
                Ok(None)
            }
            _ if is_own && self.names_from(name).0.is_empty() => Ok(None),
            _ => Err(Error::NotADirectory {
                path: self.given.to_owned(),
            }),
        }
    }

    /// The view hides a name: it counts as missing, and nothing can be created there.
    fn deny(&mut self, name: Name, is_own: bool) -> Result<Option<Tail>> {
        let error = denied(self.given, &self.path, &name);
        if !is_own && self.would_leave() {
            return Err(self.left(self.root.real_names()));
        }
        if is_own && self.names_from(name).0.is_empty() {
            return Ok(None);
        }
        Err(error)
    }

    /// Fails if one of several names that are missing could not exist once it is made.
    fn check_missing(&self, names: &[Name]) -> Result<()> {
        let Some(view) = self.root.view() else {
            return Ok(());
        };
        let (mut at, mut path) = (view.view().standing(&self.path), self.path.clone());
        for name in names {
            at = view.step(&at, name);
            if !view.view().judges(&at, FileKind::Unknown) {
                return Err(denied(self.given, &path, name));
            }
            path = joined(&path, name);
        }
        Ok(())
    }

    /// A name that the client wrote is missing. The remaining names may be created, or lead back up to the current
    /// directory.
    fn missing_own(&mut self, name: Name) -> Result<Option<Tail>> {
        let error = not_found(self.given, &self.path, &name);
        let (names, directory) = self.names_from(name);
        // Security: our own names cannot be created either.
        if names.iter().any(|name| is_ours(name.as_bytes())) {
            return Err(error);
        }
        self.check_missing(&names)?;
        Ok((!names.is_empty()).then_some(Tail::Missing { names, directory }))
    }

    /// Takes steps from a plain name on, without looking anything up, until they are back where the name is: `..` after a
    /// plain name means the directory that the name is in, whether there is such a name or not. Returns the names that are
    /// left if they never come back, and whether they have to be a directory.
    fn names_from(&mut self, name: Name) -> (Vec<Name>, bool) {
        let mut names = vec![name];
        let mut directory = false;
        while !names.is_empty()
            && let Some(step) = self.pending.pop_front()
        {
            directory = step == PathStep::Up;
            match step {
                PathStep::Into(name) => names.push(name),
                PathStep::Up => drop(names.pop()),
            }
        }
        (names, directory)
    }

    /// A name in a link's text is missing. The remaining names may be created, unless they go up from a missing
    /// directory.
    fn missing(&mut self, name: Name) -> Result<Tail> {
        if self.would_leave() {
            return Err(self.left(self.root.real_names()));
        }
        let error = not_found(self.given, &self.path, &name);
        let mut names = vec![name];
        for step in self.pending.drain(..) {
            match step {
                // Security: our own names cannot be created either.
                PathStep::Into(name) if !is_ours(name.as_bytes()) => names.push(name),
                PathStep::Into(_) | PathStep::Up => return Err(error),
            }
        }
        self.check_missing(&names)?;
        Ok(Tail::Missing {
            names,
            directory: self.directory_wanted,
        })
    }

    /// Tells whether what is left would climb out of the root if the missing name were a directory: then that is what
    /// the client hears, as for names that exist.
    fn would_leave(&self) -> bool {
        let above = self
            .path
            .split(|&b| b == b'/')
            .filter(|piece| !piece.is_empty())
            .count();
        let mut depth = above + 1;
        for step in &self.pending {
            depth = match step {
                PathStep::Into(_) => depth + 1,
                PathStep::Up if depth == 0 => return true,
                PathStep::Up => depth - 1,
            };
        }
        false
    }

    fn follow_link(&mut self, link: &OwnedFd) -> Result<()> {
        self.links += 1;
        if self.links > MAX_LINKS {
            return Err(Error::Loop {
                path: self.given.to_owned(),
            });
        }
        let text = syscall::read_link_unchecked(self.root.fd_or(Some(link)))
            .map_err(|errno| Error::from_errno("readlink", self.given, errno))?;
        if text.starts_with(b"/") {
            self.move_to(Vec::new());
        }
        if self.pending.is_empty() && rel_path::ends_as_directory(&text) {
            self.directory_wanted = true;
        }
        for step in rel_path::steps(&text).into_iter().rev() {
            self.pending.push_front(step);
        }
        Ok(())
    }

    fn step_up(&mut self) -> Result<()> {
        if self.path.is_empty() {
            let mut position = self.root.real_names().to_vec();
            position.pop();
            self.move_to(position);
            return Ok(());
        }
        self.leave_directory().map(drop)
    }

    /// Goes to the directory above by opening it anew from the root: `..` of a descriptor may be
    /// anywhere once somebody moves the directory. Returns the name that was left.
    fn leave_directory(&mut self) -> Result<Name> {
        let cut = self.path.iter().rposition(|&b| b == b'/');
        let bytes = self.path.split_off(cut.map_or(0, |at| at + 1));
        if cut.is_some() {
            self.path.pop();
        }
        self.current = self.reopen()?;
        Name::new(&bytes).ok_or(Error::Loop {
            path: self.given.to_owned(),
        })
    }

    fn reopen(&mut self) -> Result<Option<OwnedFd>> {
        let failed = |errno| Error::from_errno("open", self.given, errno);
        #[cfg(test)]
        if let Some(planted) = self.planted_reopen() {
            return planted.map_err(failed);
        }
        self.reopened += self.path.split(|&b| b == b'/').count();
        if self.reopened > MAX_REOPENED {
            return Err(Error::Loop {
                path: self.given.to_owned(),
            });
        }
        reopen_resolved(self.root, &self.path).map_err(failed)
    }

    /// The two wrong ways to go up, for the tests that show that they would be found.
    #[cfg(test)]
    fn planted_reopen(&self) -> Option<syscall::SysResult<Option<OwnedFd>>> {
        use crate::planted_fault::{PlantedFault, planted};
        use std::os::unix::ffi::OsStrExt;
        if planted(PlantedFault::KernelParent) {
            let current = self.root.fd_or(self.current.as_ref());
            return Some(syscall::open_parent_unchecked(current).map(Some));
        }
        let path = std::ffi::OsStr::from_bytes(&self.path);
        planted(PlantedFault::RewalkByString)
            .then(|| syscall::open_by_string_unchecked(&self.root.real_path().join(path)).map(Some))
    }

    fn step_outside(&mut self, mut position: Vec<Name>, step: PathStep) -> Result<()> {
        match step {
            PathStep::Up => {
                position.pop();
            }
            PathStep::Into(name) => position.push(name),
        }
        // Security: a path through any other directory outside is refused without examining it.
        if !self
            .root
            .spellings()
            .any(|root| root.starts_with(&position))
        {
            return Err(self.left(&position));
        }
        self.move_to(position);
        Ok(())
    }

    /// Moves to an absolute position, which is inside again if it equals a spelling of the root.
    fn move_to(&mut self, position: Vec<Name>) {
        self.current = None;
        self.path.clear();
        let back = self.root.spellings().any(|root| *root == position[..]);
        self.outside = (!back).then_some(position);
    }

    fn left(&self, position: &[Name]) -> Error {
        Error::Outside {
            path: self.given.to_owned(),
            leads_to: self.leads_to(position),
            link: self.link.as_deref().map(|link| shown(link).into_owned()),
        }
    }

    /// Where the rest of the path leads from a position outside.
    fn leads_to(&self, position: &[Name]) -> String {
        let mut leads_to = Vec::new();
        let names = position.iter().map(Name::as_bytes);
        let rest = self.pending.iter().map(|step| match step {
            PathStep::Into(name) => name.as_bytes(),
            PathStep::Up => b"..",
        });
        for piece in names.chain(rest) {
            leads_to.push(b'/');
            leads_to.extend_from_slice(piece);
        }
        if leads_to.is_empty() {
            return "/".to_owned();
        }
        shown(&leads_to).into_owned()
    }

    fn look(&self, name: &Name) -> Result<(OwnedFd, Metadata)> {
        let fd = syscall::look_unchecked(self.root.fd_or(self.current.as_ref()), name)
            .map_err(|errno| Error::from_errno("open", self.given, errno))?;
        let metadata = self.stat(&fd)?;
        Ok((fd, metadata))
    }

    fn stat(&self, fd: &OwnedFd) -> Result<Metadata> {
        syscall::stat_unchecked(self.root.fd_or(Some(fd)))
            .map_err(|errno| Error::from_errno("stat", self.given, errno))
    }
}
