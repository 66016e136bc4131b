//! A root: an open directory that no path can leave.

use std::ffi::OsStr;
use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::change::{NewEntries, Observers};
use crate::dir::RootShare;
use crate::error::{Error, Result, again_if_stale};
use crate::history::{History, HistorySettings};
use crate::located::Located;
use crate::metadata::{FileKind, Metadata};
use crate::name::{Name, shown};
use crate::name_path::NamePath;
use crate::open_file::OpenFile;
use crate::quota::{Ledger, Quota, QuotaUse};
use crate::rel_path::{self, PathStep, RelPath};
use crate::replace::UnnamedFiles;
use crate::reserved::may_name_reserved;
use crate::resolve::{self, Follow, Resolver};
use crate::rights::Rights;
use crate::syscall;
use crate::together::{Cluster, RootLocks, SharedAccount};
use crate::top_path;
use crate::view::{RootView, View};

/// An open directory; every path is looked up inside it, by descriptor.
pub struct Root {
    fd: Arc<OwnedFd>,
    real_path: PathBuf,
    /// The path by which its places are compared with those of other roots.
    compared_as: Arc<Path>,
    /// The absolute spellings under which links may name this root: the real one, then the configured.
    spellings: Vec<Vec<Name>>,
    openat2: Arc<AtomicBool>,
    proc: bool,
    /// Its files are this machine's own.
    local: bool,
    /// An absolute path on the host that leads into it is taken as the path inside it.
    host_paths: bool,
    observers: Observers,
    /// How changes in it are ordered with those of other processes.
    locks: Arc<RootLocks>,
    /// Its view; without one, everything is visible.
    view: Option<Arc<RootView>>,
}

/// What the operator can change about a root that is open.
#[derive(Debug, Clone)]
pub struct RootTerms {
    /// Absolute paths on the host that lead into it are taken as paths inside it.
    pub host_paths: bool,
    /// New files and directories are for their owner alone.
    pub private_entries: bool,
    /// What it may hold at most.
    pub quota: Option<Quota>,
    /// Its view; without one, everything is visible.
    pub view: Option<Arc<View>>,
}

impl Root {
    /// Opens a directory as a root. Its path is used this once; later only the descriptor counts.
    pub fn open(path: &Path) -> io::Result<Root> {
        Root::open_with(path, Resolver::Auto)
    }

    /// Opens a root with a chosen means of look-up.
    pub fn open_with(path: &Path, resolver: Resolver) -> io::Result<Root> {
        let configured = std::path::absolute(path)?;
        let real_path = std::fs::canonicalize(path)?;
        let fd = syscall::open_root_unchecked(&real_path)?;
        let top = syscall::stat_unchecked(fd.as_fd())?;
        let mut spellings = vec![spelled(&real_path)];
        // Security: a spelling with `..` in it would not be the plain list of names it is compared as.
        if !has_parent_steps(&configured) && spelled(&configured) != spellings[0] {
            spellings.push(spelled(&configured));
        }
        let proc = resolver != Resolver::WalkWithoutProc && syscall::proc_fds().is_some();
        Ok(Root {
            locks: Arc::new(RootLocks::new(fd.try_clone()?, proc)),
            local: syscall::is_local_unchecked(fd.as_fd()),
            fd: Arc::new(fd),
            compared_as: top_path::of(&top, &real_path),
            real_path,
            spellings,
            openat2: Arc::new(AtomicBool::new(resolver == Resolver::Auto)),
            proc,
            host_paths: false,
            observers: Observers::default(),
            view: None,
        })
    }

    /// Whether some of its entries are hidden.
    #[must_use]
    pub fn has_view(&self) -> bool {
        self.view.is_some()
    }

    /// The same root, seen through a view. It shares everything else with this one.
    #[must_use]
    pub fn seen_through(&self, view: Arc<View>) -> Root {
        let view = RootView::new(view, Arc::clone(&self.fd), &self.real_path, self.proc);
        let mut root = self.again();
        root.view = Some(Arc::new(view));
        root
    }

    /// The same root for a holder with limited rights. It shares everything else with this one.
    #[must_use]
    pub fn with_rights(&self, rights: Rights) -> Root {
        let mut root = self.again();
        root.observers.rights = root.observers.rights.and(rights);
        root
    }

    /// The same open directory under other settings. Its history, its locks and, if the quota stays, its account are
    /// shared with this one.
    pub fn on_terms(&self, terms: &RootTerms) -> io::Result<Root> {
        let mut root = self.again();
        root.host_paths = terms.host_paths;
        root.observers.audience = if terms.private_entries {
            NewEntries::Private
        } else {
            NewEntries::AsUsual
        };
        root.view = None;
        let quota = self.observers.quota.as_ref().map(|ledger| ledger.quota());
        if quota != terms.quota {
            root.observers.quota = None;
            root = match terms.quota {
                Some(quota) => root.with_quota(quota)?,
                None => root,
            };
        }
        Ok(match &terms.view {
            Some(view) => root.seen_through(Arc::clone(view)),
            None => root,
        })
    }

    /// Duplicates the open directory.
    fn again(&self) -> Root {
        Root {
            fd: Arc::clone(&self.fd),
            real_path: self.real_path.clone(),
            compared_as: Arc::clone(&self.compared_as),
            spellings: self.spellings.clone(),
            openat2: Arc::clone(&self.openat2),
            proc: self.proc,
            local: self.local,
            host_paths: self.host_paths,
            observers: self.observers.clone(),
            locks: Arc::clone(&self.locks),
            view: self.view.clone(),
        }
    }

    /// Tells whether this is the same open directory as another root, regardless of views.
    #[must_use]
    pub fn is_same(&self, other: &Root) -> bool {
        Arc::ptr_eq(&self.fd, &other.fd)
    }

    /// Tells whether what is at a resolved path inside is visible in this root.
    #[must_use]
    pub fn shows(&self, path: &str, kind: FileKind) -> bool {
        let Some(view) = &self.view else { return true };
        let path = match path {
            "." => "",
            path => path,
        };
        let path = RelPath::parse(path);
        path.is_ok_and(|path| view.view().shows(path.as_bytes(), kind))
    }

    /// Tells whether all of it is visible.
    #[must_use]
    pub fn shows_everything(&self) -> bool {
        self.view.is_none()
    }

    /// Its view; `None` if everything is visible.
    pub(crate) fn view(&self) -> Option<&Arc<RootView>> {
        self.view.as_ref()
    }

    /// Takes absolute paths on the host that lead into the root as paths inside it.
    #[must_use]
    pub fn taking_host_paths(mut self) -> Root {
        self.host_paths = true;
        self
    }

    /// The path inside the root that an absolute path on the host means; `None` if it means none, or if the root takes no
    /// such paths. If the first name is an entry of the root, a leading slash is the root as always.
    ///
    /// Security: this only cuts names off a text. The rest is looked up like any path of a client.
    #[must_use]
    pub fn inside_of_host_path(&self, path: &RelPath) -> Option<RelPath> {
        if !self.host_paths || !path.is_absolute() {
            return None;
        }
        let spellings = self.spellings().filter(|spelling| !spelling.is_empty());
        let inside = spellings
            .filter_map(|spelling| path.below(spelling))
            .next()?;
        let first = path.first_name()?;
        let taken = self.locate(&RelPath::root().join(&first), Follow::Never);
        let is_taken = taken.is_ok_and(|first| first.metadata().is_some());
        (!is_taken).then_some(inside)
    }

    /// Makes new files and directories for their owner alone.
    #[must_use]
    pub fn with_private_entries(mut self) -> Root {
        self.observers.audience = NewEntries::Private;
        self
    }

    /// Sets the quota for changes made through this root.
    pub fn with_quota(mut self, quota: Quota) -> io::Result<Root> {
        let top = self.fd.try_clone()?;
        self.observers.quota = Some(Arc::new(Ledger::new(quota, top)));
        Ok(self)
    }

    /// The root's quota and usage, if it has a quota.
    #[must_use]
    pub fn quota_use(&self) -> Option<QuotaUse> {
        self.observers.quota.as_ref().map(|ledger| ledger.usage())
    }

    /// Orders changes with those of replicas that have this root under the same name, also on other machines; a quota that
    /// was set before is shared with them.
    pub fn with_cluster(mut self, cluster: Arc<Cluster>, name: &str) -> io::Result<Root> {
        let top = || self.fd.try_clone();
        let locks = RootLocks::shared(top()?, self.proc, Arc::clone(&cluster), name);
        if let Some(ledger) = &self.observers.quota {
            let account = SharedAccount::new(cluster, name);
            let ledger = Ledger::shared(ledger.quota(), top()?, account);
            self.observers.quota = Some(Arc::new(ledger));
        }
        self.locks = Arc::new(locks);
        Ok(self)
    }

    /// Keeps the content that changes through this root replace or remove. Replicas that were set before share it.
    pub fn with_history(mut self, settings: HistorySettings) -> io::Result<Root> {
        let history = History::find(self.fd(), settings, self.locks.shared_as())?;
        self.observers.history = Some(Arc::new(history));
        Ok(self)
    }

    /// The host path, for start-up and the log only.
    #[must_use]
    pub fn real_path(&self) -> &Path {
        &self.real_path
    }

    /// The names of the directory on the host, for sets that tell them: as it was given, and without links if that differs.
    #[must_use]
    pub fn host_spellings(&self) -> Vec<String> {
        let spelled = |names: &Vec<Name>| {
            let names: Vec<_> = names.iter().map(Name::shown).collect();
            format!("/{}", names.join("/"))
        };
        self.spellings.iter().rev().map(spelled).collect()
    }

    /// The path on the host of what is at a resolved path inside: to compare places, and for sets that tell it. Never opened.
    #[must_use]
    pub fn host_path(&self, inside: &str) -> String {
        let real = shown(self.compared_as.as_os_str().as_bytes());
        match inside {
            "." | "" => real.into_owned(),
            _ => format!("{}/{inside}", real.trim_end_matches('/')),
        }
    }

    /// Looks a path up; a missing entry is a place too.
    pub fn locate(&self, path: &RelPath, follow: Follow) -> Result<Located<'_>> {
        let found = again_if_stale(|| resolve::resolve(self, path, follow))?;
        let located = Located::new(self, path.as_given().to_owned(), found);
        if path.must_be_directory() {
            located.being_directory()
        } else {
            Ok(located)
        }
    }

    /// Opens a file's content for reading: regular files only, and the kind is checked before it is opened.
    ///
    /// Does the same as [`Root::locate`] and [`Located::open_file`], faster if no link is on the way, because it does not
    /// open the parent directory.
    pub fn open_file(&self, path: &RelPath) -> Result<OpenFile> {
        match self.open_entry(path) {
            Some(opened) => Ok(opened),
            None => again_if_stale(|| self.locate(path, Follow::Last)?.open_file()),
        }
    }

    /// Opens a file if that cannot block: all directories on the way are in memory, no link is on it, and the files
    /// are this machine's own. `None` otherwise, and if anything about it is unusual.
    #[must_use]
    pub fn try_open_inline(&self, path: &RelPath) -> Option<OpenFile> {
        let direct = self
            .direct_path(path)
            .filter(|_| self.local && self.uses_proc())?;
        let entry = syscall::openat2_look_in_memory_unchecked(self.fd(), &direct).ok()?;
        self.confirm(entry.as_fd(), direct.as_bytes()).ok()?;
        open_looked_at(&entry, &direct)
    }

    /// Fast path. On any error the caller falls back to `locate`, which reports the reason.
    fn open_entry(&self, path: &RelPath) -> Option<OpenFile> {
        let direct = self.direct_path(path).filter(|_| self.uses_proc())?;
        let entry = syscall::openat2_look_unchecked(self.fd(), &direct).ok()?;
        self.confirm(entry.as_fd(), direct.as_bytes()).ok()?;
        open_looked_at(&entry, &direct)
    }

    /// The path, if one `openat2` may look all of it up.
    fn direct_path<'a>(&self, path: &'a RelPath) -> Option<NamePath<'a>> {
        if !self.uses_openat2() || path.must_be_directory() {
            return None;
        }
        path.downward()
            .filter(|names| !may_name_reserved(names.as_bytes()))
            .filter(|names| self.shows_plainly(names.as_bytes(), FileKind::File))
    }

    /// Tells whether a path without links may exist as this kind, and can be judged as it is written.
    pub(crate) fn shows_plainly(&self, path: &[u8], kind: FileKind) -> bool {
        let view = self.view.as_ref();
        view.is_none_or(|view| view.shows_plainly(path, kind))
    }

    /// Fails unless a descriptor is still where it was found. Checked only if the root has a view.
    pub(crate) fn confirm(&self, fd: BorrowedFd<'_>, path: &[u8]) -> syscall::SysResult<()> {
        let view = self.view.as_ref();
        view.map_or(Ok(()), |view| view.confirm(fd, path))
    }

    /// The metadata of the root directory itself.
    pub fn metadata(&self) -> Result<Metadata> {
        syscall::stat_unchecked(self.fd()).map_err(|errno| Error::from_errno("stat", ".", errno))
    }

    /// Tells whether look-ups use `openat2`.
    #[must_use]
    pub fn uses_openat2(&self) -> bool {
        self.openat2.load(Ordering::Relaxed)
    }

    pub(crate) fn forget_openat2(&self) {
        self.openat2.store(false, Ordering::Relaxed);
    }

    pub(crate) fn uses_proc(&self) -> bool {
        self.proc
    }

    /// How files are created: an unnamed file gets its name through `/proc`.
    pub(crate) fn unnamed_files(&self) -> UnnamedFiles {
        if self.proc {
            UnnamedFiles::Used
        } else {
            UnnamedFiles::Avoided
        }
    }

    /// The observers of its changes.
    pub(crate) fn observers(&self) -> &Observers {
        &self.observers
    }

    /// How changes in it are ordered with those of other processes.
    pub(crate) fn locks(&self) -> &Arc<RootLocks> {
        &self.locks
    }

    /// The state that its directories share.
    pub(crate) fn share(&self) -> RootShare {
        RootShare {
            unnamed: self.unnamed_files(),
            observers: self.observers.clone(),
            view: self.view.clone(),
        }
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// The given descriptor, or the root's own.
    pub(crate) fn fd_or<'a>(&'a self, fd: Option<&'a OwnedFd>) -> BorrowedFd<'a> {
        fd.map_or(self.fd(), AsFd::as_fd)
    }

    pub(crate) fn real_names(&self) -> &[Name] {
        self.spellings.first().map_or(&[], Vec::as_slice)
    }

    pub(crate) fn spellings(&self) -> impl Iterator<Item = &[Name]> {
        self.spellings.iter().map(Vec::as_slice)
    }
}

impl fmt::Debug for Root {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Security: no host path, because debug output may end up in a log.
        f.debug_struct("Root").finish_non_exhaustive()
    }
}

/// Opens a regular file that was looked at.
fn open_looked_at(entry: &OwnedFd, path: &NamePath<'_>) -> Option<OpenFile> {
    let metadata = syscall::stat_content_unchecked(entry.as_fd()).ok()?;
    // Security: opening a device can act, so the kind is known before anything is opened.
    if metadata.kind != FileKind::File {
        return None;
    }
    let opened = syscall::reopen_content_unchecked(entry.as_fd(), syscall::Purpose::Read)?;
    let path = shown(path.as_bytes()).into_owned();
    Some(OpenFile::new(opened.ok()?.into(), metadata, path))
}

fn spelled(path: &Path) -> Vec<Name> {
    rel_path::steps(path.as_os_str().as_bytes())
        .into_iter()
        .filter_map(|step| match step {
            PathStep::Into(name) => Some(name),
            PathStep::Up => None,
        })
        .collect()
}

fn has_parent_steps(path: &Path) -> bool {
    path.components()
        .any(|piece| piece.as_os_str() == OsStr::new(".."))
}
