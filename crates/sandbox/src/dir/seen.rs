//! The entries of a directory that a caller may see, and whether the directory is still where it was found.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{MutexGuard, OnceLock, PoisonError};

use super::anchor::{Above, Anchor};
use super::{Dir, RawEntry, TakeName, Unlisted};
use crate::error::{Error, Result};
use crate::leftovers;
use crate::metadata::FileKind;
use crate::name::Name;
use crate::open_file::OpenFile;
use crate::resolve::{denied, joined};
use crate::syscall;
use crate::view::{EntryJudge, RootView, Standing};
use crate::watch::file_clock;

/// Feeds a list of names.
type List<'l> = &'l mut dyn FnMut(TakeName<'_>) -> Result<()>;

/// Names that a caller may see, held until the directory is known to be in its place.
struct SeenNames {
    names: Vec<u8>,
    /// Where each name ends, and what the kernel listed with it.
    entries: Vec<(usize, RawEntry)>,
}

impl SeenNames {
    fn of(list: List<'_>, judge: &mut EntryJudge<'_>) -> Result<SeenNames> {
        // Room for most directories at once.
        let mut listed = SeenNames {
            names: Vec::with_capacity(1024),
            entries: Vec::with_capacity(64),
        };
        list(&mut |name, entry| {
            if judge.shows(name, entry.kind) {
                listed.names.extend_from_slice(name);
                listed.entries.push((listed.names.len(), entry));
            }
        })?;
        Ok(listed)
    }

    /// Tells those of which `may_be_told` is true.
    fn tell(&self, may_be_told: impl Fn(&[u8]) -> bool, take: TakeName<'_>) {
        let mut start = 0;
        for &(end, entry) in &self.entries {
            let name = self.names.get(start..end).unwrap_or_default();
            start = end;
            if may_be_told(name) {
                take(name, entry);
            }
        }
    }
}

impl Dir {
    /// A directory that was opened by a name in this one.
    pub(super) fn below(&self, fd: OwnedFd, name: &Name) -> Dir {
        let open = &self.0;
        let view = open.share.view.as_ref().filter(|_| !open.is_elsewhere);
        let standing = view.map(|view| view.step(self.standing(view), name));
        let mut below = super::Open::new(fd, joined(&open.path, name), open.share.clone());
        below.is_elsewhere = open.is_elsewhere;
        below.standing = standing.map_or_else(OnceLock::new, OnceLock::from);
        below.above = open.stamping.get().map(|&(device, stamping)| Above {
            device,
            stamping,
            anchor: view.and_then(|view| self.fresh_anchor(view)),
        });
        below.into()
    }

    /// Passes the visible names of a list to `take`.
    ///
    /// Security: the directory may be moved away and back while it is listed. Either its own times show that this did not
    /// happen since the one above it was in its place; or it is confirmed before it is listed, and a name that may be
    /// newer is reported only if it is found here.
    pub(crate) fn for_each_seen(
        &self,
        unlisted: Unlisted,
        list: List<'_>,
        take: TakeName<'_>,
    ) -> Result<()> {
        let Some(mut judge) = self.judge(unlisted) else {
            return list(take);
        };
        if self.may_be_anchored() {
            let listed = SeenNames::of(list, &mut judge)?;
            if self.is_anchored() {
                listed.tell(|_| true, take);
                return Ok(());
            }
        }
        let begun = file_clock();
        let anchor = Anchor::now();
        self.confirm()?;
        self.set_anchor(Some(anchor).filter(|_| !self.0.is_elsewhere));
        let listed = SeenNames::of(list, &mut judge)?;
        let now = syscall::stat_content_unchecked(self.fd());
        if let Ok(now) = &now {
            // The directories in it need not ask again.
            self.stamping_of(now);
        }
        let settled = now.is_ok_and(|now| now.changed.max(now.modified) < begun);
        listed.tell(|name| settled || self.is_here(name), take);
        Ok(())
    }

    fn may_be_anchored(&self) -> bool {
        let above = self.0.above.as_ref();
        above.is_some_and(|above| above.anchor.is_some() && above.stamping.shows_moves())
    }

    /// Tells whether it was at its path with its present entries when the directory above was last asked for.
    fn is_anchored(&self) -> bool {
        let Ok(now) = syscall::stat_content_unchecked(self.fd()) else {
            return false;
        };
        self.stamping_of(&now);
        let above = self.0.above.as_ref();
        let anchor = above.and_then(|above| above.anchor_for(&now));
        self.set_anchor(anchor);
        anchor.is_some()
    }

    fn set_anchor(&self, anchor: Option<Anchor>) {
        *self.anchor() = anchor;
        if let Some(anchor) = anchor {
            self.0.listed_since.get_or_init(|| anchor);
        }
    }

    /// A moment not long ago at which it was at its path; asks the kernel if none is known.
    fn fresh_anchor(&self, view: &RootView) -> Option<Anchor> {
        let mut known = self.anchor();
        if !known.is_some_and(|anchor| anchor.is_fresh()) {
            let now = Anchor::now();
            let is_there = view.confirm(self.fd(), self.path_bytes()).is_ok();
            *known = is_there.then_some(now);
        }
        *known
    }

    fn anchor(&self) -> MutexGuard<'_, Option<Anchor>> {
        // It holds a moment or nothing, whatever happened.
        self.0.anchor.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells whether [`Dir::confirm_file`] asks the kernel.
    #[must_use]
    pub fn is_asked_for(&self) -> bool {
        self.asking_view().is_some()
    }

    /// Tells whether all files that were opened by their names in this directory, since it was listed, are here now, with one
    /// question for all of them. If not, some of them may be all the same: see [`Dir::confirm_file`].
    #[must_use]
    pub fn has_all_opened(&self) -> bool {
        let Some(view) = self.asking_view() else {
            return true;
        };
        let Some(anchor) = self.0.listed_since.get() else {
            return false;
        };
        // Security: first the place, then the times: nothing in it changed since before the files were opened.
        let is_there = view.confirm(self.fd(), self.path_bytes()).is_ok();
        let now = syscall::stat_content_unchecked(self.fd());
        let is_same =
            |now| self.stamping_of(&now).1.shows_lists() && anchor.is_before_no_change(&now);
        is_there && now.is_ok_and(is_same)
    }

    /// Tells whether an entry of this name is in the directory at its path now.
    fn is_here(&self, name: &[u8]) -> bool {
        let found = Name::new(name).and_then(|name| {
            let fd = syscall::look_unchecked(self.fd(), &name).ok()?;
            self.confirm_entry(fd.as_fd(), &name).ok()
        });
        found.is_some()
    }

    /// Judges which of its entries are visible, if some may be hidden and the listing is for clients.
    fn judge(&self, unlisted: Unlisted) -> Option<EntryJudge<'_>> {
        let view = self.0.share.view.as_ref();
        let view = view.filter(|_| unlisted == Unlisted::LeftOut)?;
        Some(view.view().entries_of(self.standing(view)))
    }

    fn standing(&self, view: &RootView) -> &Standing {
        let judge = || view.view().standing(self.path_bytes());
        self.0.standing.get_or_init(judge)
    }

    /// Tells whether an entry of this name is visible, or may be created.
    pub(crate) fn shows(&self, name: &Name, kind: FileKind) -> bool {
        let view = self.0.share.view.as_ref();
        view.is_none_or(|view| {
            let at = view.step(self.standing(view), name);
            view.view().judges(&at, kind)
        })
    }

    /// Fails if an entry that is about to be created would be hidden.
    pub(crate) fn check_new(&self, name: &Name, kind: FileKind) -> Result<()> {
        if leftovers::is_temporary(name.as_bytes()) || self.shows(name, kind) {
            return Ok(());
        }
        Err(denied(&self.join(name), self.path_bytes(), name))
    }

    /// Fails if the directory has moved since the look-up, because then its entries must not be reported.
    ///
    /// Only checked if the root has a view: the directory may have been moved to a hidden place.
    pub fn confirm(&self) -> Result<()> {
        let Some(view) = self.asking_view() else {
            return Ok(());
        };
        let confirmed = view.confirm(self.fd(), self.path_bytes());
        confirmed.map_err(|errno| Error::from_errno("open", self.path(), errno))
    }

    /// Fails if a file that was opened by a name in this directory is not there any more; see [`Dir::confirm`].
    pub fn confirm_file(&self, file: &OpenFile, name: &Name) -> Result<()> {
        self.confirm_entry(file.file.as_fd(), name)
    }

    /// Fails unless a descriptor that was opened by a name in it is there.
    pub(super) fn confirm_entry(&self, fd: BorrowedFd<'_>, name: &Name) -> Result<()> {
        let Some(view) = self.asking_view() else {
            return Ok(());
        };
        let confirmed = view.confirm(fd, &joined(self.path_bytes(), name));
        confirmed.map_err(|errno| self.failed("open", name, errno))
    }

    /// The view that says where the directory has to be.
    fn asking_view(&self) -> Option<&RootView> {
        let view = self.0.share.view.as_deref();
        view.filter(|_| !self.0.is_elsewhere)
    }
}
