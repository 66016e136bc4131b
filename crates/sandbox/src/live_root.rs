//! A root that is watched while the server runs, because its directory may be removed or replaced on the host.
//!
//! A call asks for the root once and works in that directory to its end. Asking makes no system call: a background task
//! compares the directory with what is at its path, every few seconds.

use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};

use crate::error::Result;
use crate::rights::Rights;
use crate::root::Root;
use crate::syscall::{self, Errno};
use crate::view::View;

/// Opens a root again if its path leads to another directory now, with all the checks of the start.
pub type Reopen = Box<dyn Fn() -> Option<Root> + Send + Sync>;

/// Restricts a root to one holder's part of it.
type Derive = Box<dyn Fn(&Root) -> Root + Send + Sync>;

/// A root by the path it was opened at.
pub struct LiveRoot {
    state: RwLock<LiveState>,
    reopen: Option<Reopen>,
    /// It is the restricted form of another root.
    derived: Option<(Arc<LiveRoot>, Derive)>,
}

#[derive(Debug, Clone)]
struct LiveState {
    root: Arc<Root>,
    is_gone: bool,
}

/// The difference between a check and the one before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RootChange {
    /// The directory was removed, moved away or replaced, and could not be opened again.
    Gone,
    /// Another directory took its place, and was opened.
    Reopened,
    /// The original directory is back at its path.
    Back,
}

/// What is at the path of a root.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AtPath {
    Same,
    Other,
    Nothing,
    /// The check failed, which says nothing about the directory.
    Unknown,
}

impl LiveRoot {
    /// Watches an open root. Without `reopen` a directory in its place is never opened, as Landlock would not let us
    /// use it.
    #[must_use]
    pub fn new(root: Arc<Root>, reopen: Option<Reopen>) -> LiveRoot {
        LiveRoot {
            state: RwLock::new(LiveState {
                root,
                is_gone: false,
            }),
            reopen,
            derived: None,
        }
    }

    /// Returns this root restricted to what a view shows.
    #[must_use]
    pub fn seen_through(self: &Arc<LiveRoot>, view: Arc<View>) -> LiveRoot {
        self.derived(Box::new(move |root| root.seen_through(Arc::clone(&view))))
    }

    /// Returns this root restricted to the given rights.
    #[must_use]
    pub fn with_rights(self: &Arc<LiveRoot>, rights: Rights) -> LiveRoot {
        self.derived(Box::new(move |root| root.with_rights(rights)))
    }

    /// One holder's part of this root. It follows this one, which is watched.
    fn derived(self: &Arc<LiveRoot>, derive: Derive) -> LiveRoot {
        let root = Arc::new(derive(&self.state().root));
        LiveRoot {
            derived: Some((Arc::clone(self), derive)),
            ..LiveRoot::new(root, None)
        }
    }

    /// The restricted form of the current base: made once for each directory that the base had.
    fn derived_now(&self, base: &Root, derive: &Derive) -> Arc<Root> {
        let known = self.state().root;
        if known.is_same(base) {
            return known;
        }
        let root = Arc::new(derive(base));
        let state = LiveState {
            root: Arc::clone(&root),
            is_gone: false,
        };
        *self.state.write().unwrap_or_else(PoisonError::into_inner) = state;
        root
    }

    /// The root; `None` while its directory is gone.
    #[must_use]
    pub fn current(&self) -> Option<Arc<Root>> {
        if let Some((base, derive)) = &self.derived {
            let base = base.current()?;
            return Some(self.derived_now(&base, derive));
        }
        let state = self.state();
        (!state.is_gone).then_some(state.root)
    }

    /// Compares the directory with what is at its path, and returns what changed.
    pub fn check(&self) -> Option<RootChange> {
        if let Some((base, _)) = &self.derived {
            return base.check();
        }
        let before = self.state();
        let at_path = at_path(&before.root);
        let (root, is_gone, change) = match (at_path, before.is_gone) {
            (AtPath::Same, true) => (before.root, false, RootChange::Back),
            (AtPath::Other, _) => match self.reopened(&before.root) {
                Some(root) => (Arc::new(root), false, RootChange::Reopened),
                None => (before.root, true, RootChange::Gone),
            },
            (AtPath::Nothing, false) => (before.root, true, RootChange::Gone),
            (AtPath::Same | AtPath::Unknown, _) | (AtPath::Nothing, true) => return None,
        };
        let was_told = before.is_gone && is_gone;
        let state = LiveState { root, is_gone };
        *self.state.write().unwrap_or_else(PoisonError::into_inner) = state;
        (!was_told).then_some(change)
    }

    /// Security: only a directory at exactly the same path; a link that leads elsewhere by now is not followed.
    fn reopened(&self, old: &Root) -> Option<Root> {
        let root = self.reopen.as_ref()?()?;
        (root.real_path() == old.real_path()).then_some(root)
    }

    fn state(&self) -> LiveState {
        self.state
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

impl std::fmt::Debug for LiveRoot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LiveRoot").finish_non_exhaustive()
    }
}

fn at_path(root: &Root) -> AtPath {
    match (root.metadata(), metadata_at(root.real_path())) {
        (Ok(own), Ok(found)) if own.same_file(&found) => AtPath::Same,
        (_, Ok(found)) if found.is_directory() => AtPath::Other,
        (_, Ok(_) | Err(Errno::NOENT | Errno::NOTDIR)) => AtPath::Nothing,
        (_, Err(_)) => AtPath::Unknown,
    }
}

fn metadata_at(path: &Path) -> std::result::Result<crate::Metadata, Errno> {
    syscall::stat_host_path_unchecked(path)
}

impl Root {
    /// Tells whether the directory itself was removed: then nothing can be found or created in it.
    #[must_use]
    pub fn is_removed(&self) -> bool {
        let links: Result<u32> = self.metadata().map(|metadata| metadata.links);
        links.is_ok_and(|links| links == 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn live(path: &Path, may_reopen: bool) -> LiveRoot {
        let own = path.to_owned();
        let reopen: Reopen = Box::new(move || Root::open(&own).ok());
        LiveRoot::new(
            Arc::new(Root::open(path).unwrap()),
            may_reopen.then_some(reopen),
        )
    }

    #[test]
    fn a_directory_that_is_replaced_is_opened_where_that_is_allowed() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("root");
        for may_reopen in [true, false] {
            fs::create_dir(&path).unwrap();
            let live = live(&path, may_reopen);
            assert_eq!(live.check(), None);
            let first = live.current().unwrap();
            // Another name keeps the first directory's number from being used again.
            fs::rename(&path, temp.path().join(format!("old-{may_reopen}"))).unwrap();
            assert_eq!(live.check(), Some(RootChange::Gone));
            assert_eq!(live.check(), None);
            assert!(live.current().is_none());
            fs::create_dir(&path).unwrap();
            let change = live.check();
            assert_eq!(live.check(), None);
            if may_reopen {
                assert_eq!(change, Some(RootChange::Reopened));
                let second = live.current().unwrap();
                assert!(
                    !second
                        .metadata()
                        .unwrap()
                        .same_file(&first.metadata().unwrap())
                );
            } else {
                assert_eq!(change, None);
                assert!(live.current().is_none());
            }
            fs::remove_dir(&path).unwrap();
        }
    }

    #[test]
    fn a_directory_that_comes_back_is_used_again() {
        let temp = tempfile::tempdir().unwrap();
        let (path, away) = (temp.path().join("root"), temp.path().join("away"));
        fs::create_dir(&path).unwrap();
        let live = live(&path, false);
        fs::rename(&path, &away).unwrap();
        assert_eq!(live.check(), Some(RootChange::Gone));
        fs::write(&path, "a file").unwrap();
        assert_eq!(live.check(), None);
        fs::remove_file(&path).unwrap();
        fs::rename(&away, &path).unwrap();
        assert_eq!(live.check(), Some(RootChange::Back));
        let root = live.current().unwrap();
        assert!(!root.is_removed());
        fs::remove_dir(&path).unwrap();
        assert!(root.is_removed());
    }

    #[test]
    fn a_link_in_the_place_of_the_directory_is_not_followed_elsewhere() {
        let temp = tempfile::tempdir().unwrap();
        let (path, other) = (temp.path().join("root"), temp.path().join("other"));
        fs::create_dir(&path).unwrap();
        fs::create_dir(&other).unwrap();
        let live = live(&path, true);
        fs::remove_dir(&path).unwrap();
        std::os::unix::fs::symlink(&other, &path).unwrap();
        assert_eq!(live.check(), Some(RootChange::Gone));
        assert!(live.current().is_none());
    }
}
