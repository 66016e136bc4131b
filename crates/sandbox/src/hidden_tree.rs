//! A tree below a temporary name: an incomplete copy, or a source that is being removed.
//!
//! No listing and no walk shows it to a client, and one rename makes it appear or vanish. `leftovers.rs` removes what a
//! killed process leaves behind.

use crate::background::BackgroundLine;
use crate::change::{Change, OnExisting, rename_entry};
use crate::dir::Dir;
use crate::error::{Error, Result};
use crate::history::{Part, PartKind, Stamp};
use crate::leftovers;
use crate::located::Located;
use crate::metadata::FileKind;
use crate::name::Name;
use crate::quota::Amount;
use crate::remove::TreeRemover;
use crate::resolve::joined;
use crate::rights::Right;
use crate::syscall::{self, Errno};
use crate::{OnFault, Removal};

/// The mode of a hidden directory: what is in it may be private.
const PRIVATE: u32 = 0o700;
/// How many trees may wait for the thread that removes them: each keeps two descriptors open.
const WAITING_MAX: usize = 64;

/// The trees that are removed without anybody waiting for it.
static TAKE_BACK: BackgroundLine<HiddenTree> =
    BackgroundLine::new("take-back", WAITING_MAX, |tree| {
        // What stays is removed by the sweep at the next start.
        drop(tree.discard(&|| false));
    });

/// A directory that has a temporary name.
///
/// Its path, and those of everything below it, are the ones it will have or had, so that no message shows a temporary
/// name.
#[derive(Debug)]
pub struct HiddenTree {
    change: Change,
    parent: Dir,
    hidden: Name,
    top: Dir,
    /// The mode it gets when it appears.
    mode: u32,
}

impl Change {
    /// Begins a tree that will be called `name` in an open directory.
    pub fn stage_tree(&self, parent: &Dir, name: &Name, mode: u32) -> Result<HiddenTree> {
        self.make_hidden(parent, joined(parent.path_bytes(), name), mode)
    }

    /// Begins a tree whose entries will go into an open directory one by one.
    pub fn stage_entries(&self, dir: &Dir) -> Result<HiddenTree> {
        self.make_hidden(dir, dir.path_bytes().to_vec(), PRIVATE)
    }

    fn make_hidden(&self, parent: &Dir, path: Vec<u8>, mode: u32) -> Result<HiddenTree> {
        let failed = |errno| Error::from_errno("mkdir", parent.path(), errno);
        let hidden = leftovers::temporary_name().map_err(failed)?;
        // Nothing of it is recorded before it appears.
        let unrecorded = parent.unrecorded().map_err(failed)?;
        let made = self
            .unsynced()
            .make_dir_in(&unrecorded, &hidden, mode & 0o777 | PRIVATE)?;
        // The umask and the lists of its directory decided about the mode.
        let mode = made.metadata()?.mode & 0o777;
        let top = made.named(path).map_err(failed)?;
        // Ignored if refused: the directory is still empty, so nothing can leak.
        let _ = syscall::set_mode_unchecked(top.fd(), PRIVATE);
        Ok(HiddenTree {
            change: self.clone(),
            parent: parent.clone(),
            hidden,
            top,
            mode,
        })
    }

    /// Renames a directory to a hidden name, so that no client can reach it. One that cannot be renamed, such as a directory
    /// of overlayfs' lower layer, keeps its name: then its entries are removed where clients can see them.
    pub fn hide_tree(&self, place: &Located<'_>) -> Result<HiddenTree> {
        let (name, ..) = place.entry()?;
        place.judge(Right::Remove)?;
        let failed = |errno| place.failed("rename", errno);
        place.check_whole(None, &|| false)?;
        let top = place.open_dir()?.named(place.path_bytes());
        let top = top.map_err(failed)?;
        let hidden = leftovers::temporary_name().map_err(failed)?;
        let parent = place.parent().try_clone_to_owned();
        let parent = parent.map_err(|_| failed(Errno::MFILE))?;
        let parent = Dir::new(parent, place.parent_path().to_vec(), place.root().share());
        let parent = parent.unrecorded().map_err(failed)?;
        let mode = top.metadata()?.mode & 0o7777;
        let (from, to) = ((parent.fd(), name), (parent.fd(), &hidden));
        let renamed = rename_entry(from, to, OnExisting::Fail, FileKind::Directory);
        let hidden = match renamed {
            Err(Errno::XDEV) => name.clone(),
            renamed => renamed.map(|()| hidden).map_err(failed)?,
        };
        Ok(HiddenTree {
            change: self.clone(),
            parent,
            hidden,
            top,
            mode,
        })
    }

    /// Removes an entry of an open directory with all below it, but nothing that is mounted there.
    pub(crate) fn clear_unmounted(&self, dir: &Dir, name: &Name) -> Result<()> {
        let failed = |errno| dir.failed("unlink", name, errno);
        if dir.stat(name)?.kind != FileKind::Directory {
            return self.unlink_in(dir, name).map_err(failed);
        }
        let mut remover = TreeRemover::of_own(self.clone(), dir.open_dir(name)?).staying_on_mount();
        remover.run(&|| false, &|_| {}, &mut Removal::default())?;
        self.remove_dir_in(dir, name).map_err(failed)
    }

    /// Removes an entry of an open directory, with all below it if it is a directory.
    pub fn clear_in(&self, dir: &Dir, name: &Name, stop: &dyn Fn() -> bool) -> Result<()> {
        let failed = |errno| dir.failed("unlink", name, errno);
        match dir.stat(name)?.kind {
            FileKind::Directory => {
                let top = dir.open_dir(name)?;
                TreeRemover::of_own(self.clone(), top).run(
                    stop,
                    &|_| {},
                    &mut Removal::default(),
                )?;
                self.remove_dir_in(dir, name).map_err(failed)
            }
            _ => self.unlink_in(dir, name).map_err(failed),
        }
    }
}

impl HiddenTree {
    /// The directory itself.
    #[must_use]
    pub fn top(&self) -> &Dir {
        &self.top
    }

    /// The path that it has under a name in its directory.
    #[must_use]
    pub fn path_as(&self, name: &Name) -> Vec<u8> {
        joined(self.parent.path_bytes(), name)
    }

    /// Tells whether it is in the directory that a place is in.
    pub fn is_beside(&self, place: &Located<'_>) -> Result<bool> {
        let failed = |errno| place.failed("stat", errno);
        let parent = syscall::stat_unchecked(place.parent()).map_err(failed)?;
        let is_direct = place.metadata().is_some() || place.is_only_last_missing();
        Ok(is_direct && self.parent.metadata()?.same_file(&parent))
    }

    /// Takes over all attributes that a directory moved by copying keeps, once its content is complete.
    pub fn dress(&mut self, from: &Dir) -> Result<()> {
        self.mode = self.change.dress(from, &self.top)?;
        Ok(())
    }

    /// Gives it a name in its directory, so that it appears whole in one step. It may replace an empty directory.
    ///
    /// After [`Error::Unsynced`] it has its name, after any other error it has not.
    pub fn appear_as(&self, name: &Name, on_existing: OnExisting) -> Result<()> {
        if *name == self.hidden {
            return Ok(());
        }
        let sync = self.change.prepare_sync(self.parent.fd());
        let sync = sync.map_err(|errno| self.parent.failed("open", name, errno))?;
        self.give_name(name, on_existing)?;
        sync.finish_change(|| self.parent.join(name))
    }

    fn give_name(&self, name: &Name, on_existing: OnExisting) -> Result<()> {
        let failed = |errno| match errno {
            Errno::NOTEMPTY | Errno::NOTDIR => self.parent.failed("rename", name, Errno::EXIST),
            errno => self.parent.failed("rename", name, errno),
        };
        syscall::set_mode_unchecked(self.top.fd(), self.mode).map_err(failed)?;
        let (from, to) = ((self.parent.fd(), &self.hidden), (self.parent.fd(), name));
        let path = || self.parent.join(name);
        let observers = self.parent.observers();
        let metadata = self.top.metadata()?;
        let part = || Part {
            new: Some(Stamp::of(&metadata)),
            ..Part::new(PartKind::Create, path())
        };
        let plain = || rename_entry(from, to, on_existing, FileKind::Directory);
        let rename = || self.change.noted(observers, part, plain);
        let nothing_new = || Ok(Amount::default());
        let renamed = observers.put(to, &path, nothing_new, None, rename)?;
        renamed.map_err(failed)
    }

    /// Begins to remove every entry in it that `approves` accepts.
    #[must_use]
    pub fn remover(&self, approves: crate::remove::Approval) -> TreeRemover {
        let top = self.top.clone();
        TreeRemover::approved(self.change.clone(), top, OnFault::Collect, approves)
    }

    /// Removes the directory itself, which has to be empty.
    pub fn remove_emptied(&self) -> Result<()> {
        let failed = |errno| Error::from_errno("rmdir", self.top.path(), errno);
        let sync = self.change.prepare_sync(self.parent.fd());
        let sync = sync.map_err(failed)?;
        self.change
            .remove_dir_in(&self.parent, &self.hidden)
            .map_err(failed)?;
        sync.finish_change(|| self.top.path().to_owned())
    }

    /// Leaves its removal to the low-priority thread that does so for one tree after the other. Gives it back if too many
    /// wait for that already.
    pub fn discard_later(self) -> std::result::Result<(), Box<HiddenTree>> {
        TAKE_BACK.add(self).map_err(Box::new)
    }

    /// Removes it with all it holds, if it still has its temporary name.
    pub fn discard(&self, stop: &dyn Fn() -> bool) -> Result<()> {
        let top = self.top.metadata()?;
        let there = self.parent.stat(&self.hidden);
        if !there.is_ok_and(|there| there.same_file(&top)) {
            return Ok(());
        }
        let _ = syscall::set_mode_unchecked(self.top.fd(), PRIVATE);
        self.change.clear_in(&self.parent, &self.hidden, stop)
    }
}
