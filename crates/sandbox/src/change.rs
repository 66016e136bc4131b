//! Every change to files: a [`Change`] stands for what one call does, and no other crate can change a file without one.
//!
//! A change acts on an open directory and a name in it, and follows no link. It decides whether a part is on disk before
//! the part is confirmed, and tells the [`Observers`] of the root about every entry that comes, goes or grows.

mod append;
mod observers;
mod rename;

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::attributes;
use crate::dir::Dir;
use crate::error::{Error, Result};
use crate::history::{Author, CallChanges, Incoming, Part, PartKind, Stamp};
use crate::leftovers;
use crate::located::Located;
use crate::metadata::FileKind;
use crate::name::Name;
use crate::new_dirs::NewDirs;
use crate::planted_fault::{PlantedFault, planted};
use crate::quota::{self, Amount};
use crate::resolve::Tail;
use crate::syscall::{self, Errno, Purpose, SysResult};

pub(crate) use observers::{NewEntries, Observers};
pub(crate) use rename::rename_entry;

/// A name in an open directory.
pub(crate) type EntryRef<'a> = (BorrowedFd<'a>, &'a Name);

/// Whether a change is on disk before it is confirmed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// File and directory are synced first.
    #[default]
    Fsync,
    /// The system decides when to write; a crash of the machine may lose the newest changes.
    Fast,
}

/// What to do if something is there already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnExisting {
    /// Leave it and fail, even if it appears at the last moment.
    Fail,
    /// Replace it.
    Replace,
}

/// What to do if parent directories are missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Parents {
    /// Make them.
    Create,
    /// Fail.
    Require,
}

/// What one call changes, in one root or in several.
///
/// A call begins one and makes every part of its work through it.
#[derive(Debug, Clone)]
pub struct Change {
    durability: Durability,
    notes: ChangeNotes,
    /// Further parts follow, so that this one alone is not the whole change.
    has_more_parts: bool,
}

/// What a call learns about its change only while it is made. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct ChangeNotes {
    rewritten_in_place: Arc<AtomicBool>,
    changes: Arc<CallChanges>,
}

impl ChangeNotes {
    /// Notes for a call of this author.
    #[must_use]
    pub fn of(author: Author) -> ChangeNotes {
        ChangeNotes {
            changes: Arc::new(CallChanges::by(author)),
            ..ChangeNotes::default()
        }
    }

    /// Who makes the call.
    #[must_use]
    pub fn author(&self) -> &Author {
        self.changes.author()
    }

    /// The names of the changes that the call made, one for each root whose history is kept.
    #[must_use]
    pub fn change_ids(&self) -> Vec<String> {
        self.changes.ids()
    }

    /// Tells whether something was changed that cannot be taken back.
    #[must_use]
    pub fn cannot_be_undone(&self) -> bool {
        self.changes.has_lost()
    }

    /// Tells whether a file was rewritten in place, because it is a mount point: that is not atomic.
    #[must_use]
    pub fn rewritten_in_place(&self) -> bool {
        self.rewritten_in_place.load(Ordering::Relaxed)
    }
}

impl Change {
    /// Begins the change of a call.
    #[must_use]
    pub fn begin(durability: Durability) -> Change {
        Change::begin_noting(durability, &ChangeNotes::default())
    }

    /// Begins the change of a call that has to tell what becomes known of it on the way.
    #[must_use]
    pub fn begin_noting(durability: Durability, notes: &ChangeNotes) -> Change {
        Change {
            durability,
            notes: notes.clone(),
            has_more_parts: false,
        }
    }

    /// The same change for a part that others follow: after a crash it is taken back unless they were made too.
    #[must_use]
    pub fn with_more_parts(&self) -> Change {
        Change {
            has_more_parts: true,
            ..self.clone()
        }
    }

    pub(crate) fn is_last_part(&self) -> bool {
        !self.has_more_parts
    }

    pub(crate) fn durability(&self) -> Durability {
        self.durability
    }

    /// What the call has written down so far.
    pub(crate) fn recorder(&self) -> &CallChanges {
        &self.notes.changes
    }

    /// The same change for parts that must be on disk whatever the call's durability is.
    #[must_use]
    pub fn synced(&self) -> Change {
        Change {
            durability: Durability::Fsync,
            ..self.clone()
        }
    }

    /// The same change for the parts of a tree: [`Change::sync_tree`] of the whole change syncs them all at once.
    #[must_use]
    pub fn unsynced(&self) -> Change {
        Change {
            durability: Durability::Fast,
            ..self.clone()
        }
    }

    /// Writes a finished tree to disk, with everything else on its file system.
    pub fn sync_tree(&self, top: &Dir) -> Result<()> {
        self.sync_filesystem(top)
            .map_err(|errno| Error::from_errno("sync", top.path(), errno))
    }

    /// Writes a tree to disk that others can see already; on a failure the change is made all the same.
    pub fn sync_made_tree(&self, top: &Dir) -> Result<()> {
        self.sync_filesystem(top)
            .map_err(|errno| Error::unsynced(top.path(), errno))
    }

    fn sync_filesystem(&self, top: &Dir) -> SysResult<()> {
        self.sync_with(|| syscall::sync_filesystem_unchecked(top.fd()))
    }

    /// Writes a file's content to disk, if this change is durable.
    pub(crate) fn sync_file(&self, file: BorrowedFd<'_>) -> SysResult<()> {
        self.sync_with(|| syscall::sync_unchecked(file))
    }

    /// Opens a directory to write its entries to disk after a change, if this change is durable.
    ///
    /// Before the change, so that a process without descriptors fails before it has changed anything.
    pub(crate) fn prepare_sync(&self, dir: BorrowedFd<'_>) -> SysResult<DirSync> {
        if self.durability == Durability::Fast {
            return Ok(DirSync(None));
        }
        match syscall::reopen_dir_unchecked(dir) {
            Ok(readable) => Ok(DirSync(Some(readable))),
            // A directory that may be written but not read cannot be synced by us.
            Err(Errno::ACCESS) => Ok(DirSync(None)),
            Err(errno) => Err(errno),
        }
    }

    /// Writes a directory's entries to disk, if this change is durable.
    pub(crate) fn sync_dir(&self, dir: BorrowedFd<'_>) -> SysResult<()> {
        self.prepare_sync(dir)?.finish()
    }

    pub(crate) fn note_rewritten_in_place(&self) {
        let noted = &self.notes.rewritten_in_place;
        noted.store(true, Ordering::Relaxed);
    }

    fn sync_with(&self, sync: impl FnOnce() -> SysResult<()>) -> SysResult<()> {
        match self.durability {
            Durability::Fsync => sync(),
            Durability::Fast => Ok(()),
        }
    }
}

/// A directory that is synced once its change is made.
pub(crate) struct DirSync(Option<OwnedFd>);

impl DirSync {
    /// Writes the directory's entries to disk.
    pub(crate) fn finish(self) -> SysResult<()> {
        match self.0 {
            Some(_) if planted(PlantedFault::UnsyncedDirectories) => Err(Errno::IO),
            Some(dir) => syscall::sync_unchecked(dir.as_fd()),
            None => Ok(()),
        }
    }

    /// Writes the directory's entries to disk; on a failure the change of `path` is made all the same.
    pub(crate) fn finish_change(self, path: impl FnOnce() -> String) -> Result<()> {
        self.finish()
            .map_err(|errno| Error::unsynced(&path(), errno))
    }
}

/// Directories and links.
impl Change {
    /// Makes a directory and its missing parents; returns how many are new.
    pub fn make_dirs(&self, place: &Located<'_>) -> Result<u64> {
        let Some(made) = self.make_dirs_for_now(place)? else {
            return Ok(0);
        };
        let created = made.created();
        made.keep();
        Ok(created)
    }

    /// Makes a directory and its missing parents, which are removed again unless they are kept; `None` if it exists.
    pub fn make_dirs_for_now(&self, place: &Located<'_>) -> Result<Option<NewDirs>> {
        match place.tail() {
            Tail::Root => Ok(None),
            Tail::Existing { metadata, .. } if metadata.is_directory() => Ok(None),
            Tail::Existing { .. } => Err(place.failed("mkdir", Errno::EXIST)),
            Tail::Missing { names, .. } => NewDirs::make(self, place, names).map(Some),
        }
    }

    /// Makes a directory whose parent exists.
    pub fn make_dir(&self, place: &Located<'_>) -> Result<()> {
        match place.tail() {
            Tail::Root | Tail::Existing { .. } => Err(place.failed("mkdir", Errno::EXIST)),
            Tail::Missing { names, .. } if names.len() > 1 => Err(place.not_found(names)),
            Tail::Missing { .. } => match self.make_dirs(place)? {
                0 => Err(place.failed("mkdir", Errno::EXIST)),
                _ => Ok(()),
            },
        }
    }

    /// Makes a directory in an open one, and opens it.
    pub fn make_dir_in(&self, dir: &Dir, name: &Name, mode: u32) -> Result<Dir> {
        let part = || Part::new(PartKind::MakeDir, dir.join(name));
        self.add_entry("mkdir", dir, name, part, || {
            syscall::make_dir_unchecked(dir.fd(), name, mode & 0o777)
        })?;
        dir.open_dir(name)
    }

    /// Makes a link with the given text in an open directory.
    pub fn make_link_in(&self, dir: &Dir, name: &Name, target: &[u8]) -> Result<()> {
        let part = || Part {
            new: Some(Stamp::of_new_link()),
            ..Part::new(PartKind::Create, dir.join(name))
        };
        self.add_entry("symlink", dir, name, part, || {
            syscall::make_link_unchecked(dir.fd(), name, target)
        })
    }

    fn add_entry(
        &self,
        operation: &'static str,
        dir: &Dir,
        name: &Name,
        part: impl FnOnce() -> Part,
        make: impl FnOnce() -> SysResult<()>,
    ) -> Result<()> {
        let entry = (dir.fd(), name);
        let observers = dir.observers();
        let make = || self.noted(observers, part, make);
        let failed = |errno| dir.failed(operation, name, errno);
        let sync = self.prepare_sync(dir.fd()).map_err(failed)?;
        let made = observers.put(entry, &|| dir.join(name), || Ok(Amount::ENTRY), None, make)?;
        made.map_err(failed)?;
        sync.finish_change(|| dir.join(name))
    }

    /// Puts a link in an open directory in the place of a file or link that is there, in one step.
    pub fn replace_by_link(&self, dir: &Dir, name: &Name, target: &[u8]) -> Result<()> {
        let failed = |errno| dir.failed("symlink", name, errno);
        let temporary = leftovers::temporary_name().map_err(failed)?;
        let sync = self.prepare_sync(dir.fd()).map_err(failed)?;
        syscall::make_link_unchecked(dir.fd(), &temporary, target).map_err(failed)?;
        let replaced = self.put_entry(dir, &temporary, dir, name, Amount::ENTRY);
        if replaced.is_err() {
            let _ = syscall::unlink_unchecked(dir.fd(), &temporary);
        }
        replaced?;
        sync.finish_change(|| dir.join(name))
    }

    /// Renames an entry over what is there; `new` is what the account of the root does not hold yet.
    fn put_entry(
        &self,
        from: &Dir,
        name: &Name,
        to: &Dir,
        to_name: &Name,
        new: Amount,
    ) -> Result<()> {
        let (source, target) = ((from.fd(), name), (to.fd(), to_name));
        let on_existing = OnExisting::Replace;
        let path = || to.join(to_name);
        let observers = to.observers();
        let rename = || {
            let mut plain =
                |_: &mut Incoming<'_>| rename_entry(source, target, on_existing, FileKind::File);
            let incoming = Incoming::Entry(source);
            self.put_kept(
                observers,
                incoming,
                (target, &path),
                on_existing,
                &mut plain,
            )
        };
        let renamed = observers.put(target, &path, || Ok(new), None, rename)?;
        renamed.map_err(|errno| to.failed("rename", to_name, errno))
    }

    /// Moves a file or link from a tree of ours to a directory of the same root, over what is there.
    ///
    /// A file that is there has to be writable, and the new one inherits its owner, mode and attributes.
    pub fn put_over(&self, from: &Dir, name: &Name, there: &Located<'_>, to: &Dir) -> Result<()> {
        let failed = |errno| from.failed("open", name, errno);
        let moved = from.stat(name)?;
        match there.metadata().map(|there| there.kind) {
            None | Some(FileKind::Symlink) => {}
            Some(FileKind::File) if moved.kind == FileKind::File => {
                let old = there.open_to_replace()?;
                let old = old.open();
                let new = syscall::open_content_unchecked(from.fd(), name, Purpose::Read);
                let new = new.map_err(failed)?;
                let mode = attributes::inherit(&old.file, &new, &old.metadata);
                syscall::set_mode_unchecked(new.as_fd(), mode).map_err(failed)?;
            }
            Some(FileKind::File) => drop(there.open_to_replace()?),
            Some(kind) => return Err(there.special(kind)),
        }
        self.put_entry(from, name, to, name, Amount::default())
    }

    /// Makes the missing parents of a new entry if they are wanted; returns them and the entry's name.
    pub(crate) fn ready_parent<'place>(
        &self,
        place: &'place Located<'_>,
        parents: Parents,
    ) -> Result<(Option<NewDirs>, &'place Name)> {
        match place.tail() {
            Tail::Root => Err(Error::RootProtected),
            Tail::Existing { name, .. } => Ok((None, name)),
            Tail::Missing { names, .. } => match names.split_last() {
                Some((last, [])) => Ok((None, last)),
                Some((last, before)) if parents == Parents::Create => {
                    Ok((Some(NewDirs::make(self, place, before)?), last))
                }
                _ => Err(place.not_found(names)),
            },
        }
    }
}

/// Removal.
impl Change {
    /// Removes a file, a link or a special file; a link is removed itself.
    pub fn unlink(&self, place: &Located<'_>) -> Result<()> {
        let (name, _, metadata) = place.entry()?;
        if metadata.is_directory() {
            return Err(place.special(FileKind::Directory));
        }
        let failed = |errno| place.failed("unlink", errno);
        // What was confirmed to be gone does not come back after a crash.
        let sync = self.prepare_sync(place.parent()).map_err(failed)?;
        let (observers, entry) = (place.root().observers(), (place.parent(), name));
        let path = || place.path();
        let plain = || syscall::unlink_unchecked(entry.0, entry.1);
        let unlink = || self.remove_kept(observers, (entry, &path), &plain);
        observers.take_away(entry, unlink).map_err(failed)?;
        sync.finish_change(|| place.given().to_owned())
    }

    /// Removes an empty directory.
    pub fn remove_empty_dir(&self, place: &Located<'_>) -> Result<()> {
        let (name, _, metadata) = place.entry()?;
        if !metadata.is_directory() {
            return Err(Error::NotADirectory {
                path: place.given().to_owned(),
            });
        }
        let failed = |errno| place.failed("rmdir", errno);
        let sync = self.prepare_sync(place.parent()).map_err(failed)?;
        let (observers, entry) = (place.root().observers(), (place.parent(), name));
        let path = || place.path();
        let plain = || syscall::remove_dir_unchecked(entry.0, entry.1);
        let remove = || self.remove_empty_kept(observers, (entry, &path), &plain);
        observers.take_away(entry, remove).map_err(failed)?;
        sync.finish_change(|| place.given().to_owned())
    }

    /// Removes a directory with all it holds in one step, because its root keeps what is removed; `false` if that cannot
    /// be done here, and nothing has happened.
    pub fn remove_whole(&self, place: &Located<'_>, stop: &dyn Fn() -> bool) -> Result<bool> {
        let (name, ..) = place.entry()?;
        let observers = place.root().observers();
        if observers.history.is_none() {
            return Ok(false);
        }
        let weight = match &observers.quota {
            Some(_) => quota::measure(place.open_dir()?, true, stop)?.plus(Amount::ENTRY),
            None => Amount::default(),
        };
        let failed = |errno| place.failed("rename", errno);
        let sync = self.prepare_sync(place.parent()).map_err(failed)?;
        let (entry, path) = ((place.parent(), name), || place.path());
        let removed = self.remove_tree_kept(observers, (entry, &path));
        if !removed.map_err(failed)? {
            return Ok(false);
        }
        observers.moved_away(weight);
        sync.finish_change(|| place.given().to_owned())?;
        Ok(true)
    }

    /// Writes down that something goes entry by entry, and so cannot be taken back.
    pub fn note_lost(&self, place: &Located<'_>) -> Result<()> {
        let part = || Part {
            lost: true,
            ..Part::new(PartKind::Remove, place.path())
        };
        let noted = self.with_more_parts().note(place.root().observers(), part);
        noted
            .map(drop)
            .map_err(|errno| place.failed("unlink", errno))
    }

    pub(crate) fn unlink_in(&self, dir: &Dir, name: &Name) -> SysResult<()> {
        unlink_entry(dir.observers(), (dir.fd(), name))
    }

    pub(crate) fn remove_dir_in(&self, dir: &Dir, name: &Name) -> SysResult<()> {
        remove_dir_entry(dir.observers(), (dir.fd(), name))
    }
}

fn unlink_entry(observers: &Observers, entry: EntryRef<'_>) -> SysResult<()> {
    observers.take_away(entry, || syscall::unlink_unchecked(entry.0, entry.1))
}

pub(crate) fn remove_dir_entry(observers: &Observers, entry: EntryRef<'_>) -> SysResult<()> {
    observers.take_away(entry, || syscall::remove_dir_unchecked(entry.0, entry.1))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::planted_fault;
    use crate::tests::support::{locate, locate_itself};
    use crate::{OpenFile, Root};

    fn name(text: &str) -> Name {
        Name::new(text.as_bytes()).unwrap()
    }

    /// A change that is made is not told as if nothing had happened.
    #[test]
    fn a_change_that_cannot_be_synced_is_told_as_made() {
        let temp = tempfile::tempdir().unwrap();
        let path = |name: &str| temp.path().join(name);
        for file in ["replaced", "moved", "removed"] {
            fs::write(path(file), "old").unwrap();
        }
        fs::create_dir(path("empty")).unwrap();
        let root = Root::open(temp.path()).unwrap();
        let change = Change::begin(Durability::Fsync);
        let at = |name: &str| locate_itself(&root, name).unwrap();
        let top = locate(&root, "").unwrap().open_dir().unwrap();
        let commit = |name: &str| {
            let staged = change.stage(&at(name), OnExisting::Replace, Parents::Require)?;
            staged.commit().map(drop)
        };
        let rename = || change.rename(&at("moved"), &at("there"), OnExisting::Fail, &|| false);
        let attempts: [(&str, &dyn Fn() -> Result<()>); 7] = [
            ("new", &|| commit("new")),
            ("replaced", &|| commit("replaced")),
            ("there", &rename),
            ("removed", &|| change.unlink(&at("removed"))),
            ("empty", &|| change.remove_empty_dir(&at("empty"))),
            ("dir", &|| {
                change.make_dir_in(&top, &name("dir"), 0o755).map(drop)
            }),
            ("link", &|| change.make_link_in(&top, &name("link"), b"new")),
        ];
        for (path, attempt) in attempts {
            let fault = Some(PlantedFault::UnsyncedDirectories);
            let told = planted_fault::with(fault, attempt);
            assert!(
                matches!(&told, Err(Error::Unsynced { path: told, .. }) if told == path),
                "{path}: {told:?}"
            );
        }
        assert_eq!(fs::read(path("replaced")).unwrap(), b"");
        assert!(path("new").exists() && path("there").exists() && path("dir").exists());
        assert!(!path("removed").exists() && !path("empty").exists() && !path("moved").exists());
    }

    #[test]
    fn a_link_takes_the_place_of_a_file_in_one_step() {
        let temp = tempfile::tempdir().unwrap();
        fs::write(temp.path().join("file"), "old").unwrap();
        fs::create_dir(temp.path().join("dir")).unwrap();
        let root = Root::open(temp.path()).unwrap();
        let top = locate(&root, "").unwrap().open_dir().unwrap();
        let watched = temp.path().join("file");
        let change = Change::begin(Durability::Fast);
        let is_there = move |_: &str| assert!(watched.symlink_metadata().is_ok());
        syscall::hook::with(is_there, || {
            change.replace_by_link(&top, &name("file"), b"dir").unwrap();
        });
        let text = fs::read_link(temp.path().join("file")).unwrap();
        assert_eq!(text.to_str(), Some("dir"));
        assert!(change.replace_by_link(&top, &name("dir"), b"file").is_err());
        assert_eq!(
            fs::read_dir(temp.path()).unwrap().count(),
            2,
            "a temporary name stays"
        );
    }

    #[test]
    fn a_tree_appears_and_vanishes_whole_and_is_hidden_in_between() {
        let temp = tempfile::tempdir().unwrap();
        let path = |name: &str| temp.path().join(name);
        fs::create_dir_all(path("full/sub")).unwrap();
        let root = Root::open(temp.path()).unwrap();
        let top = locate(&root, "").unwrap().open_dir().unwrap();
        let change = Change::begin(Durability::Fast);
        let staging = change.stage_tree(&top, &name("tree"), 0o751).unwrap();
        assert_eq!(
            staging.top().path(),
            "tree",
            "no message shows the temporary name"
        );
        let file = change.stage_in(staging.top(), &name("file"), OnExisting::Fail);
        file.unwrap().commit().unwrap();
        assert_eq!(
            top.entries().unwrap().len(),
            1,
            "only the other directory is listed"
        );
        assert_eq!(root.sweep_leftovers(&|| false), 0, "its process is alive");
        let refused = staging
            .appear_as(&name("full"), OnExisting::Replace)
            .unwrap_err();
        assert!(
            matches!(refused, Error::AlreadyExists { .. }),
            "{refused:?}"
        );
        staging.appear_as(&name("tree"), OnExisting::Fail).unwrap();
        assert!(path("tree/file").exists());
        let hidden = change
            .hide_tree(&locate_itself(&root, "tree").unwrap())
            .unwrap();
        assert!(!path("tree").exists());
        let open: OpenFile = hidden.top().open_file(&name("file")).unwrap();
        assert_eq!(open.path, "tree/file");
        hidden.discard(&|| false).unwrap();
        assert_eq!(fs::read_dir(temp.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_tree_of_a_process_that_is_gone_is_swept() {
        let temp = tempfile::tempdir().unwrap();
        let root = Root::open(temp.path()).unwrap();
        let own = leftovers::temporary_name().unwrap();
        let own = String::from_utf8(own.as_bytes().to_vec()).unwrap();
        let mut pieces: Vec<&str> = own.split('-').collect();
        // The same process in another run.
        pieces[4] = "1";
        let left = temp.path().join("dir").join(pieces.join("-"));
        fs::create_dir_all(left.join("a/b")).unwrap();
        fs::write(left.join("a/b/file"), "").unwrap();
        fs::set_permissions(
            left.join("a/b"),
            std::os::unix::fs::PermissionsExt::from_mode(0o500),
        )
        .unwrap();
        fs::create_dir(temp.path().join("dir").join(&own)).unwrap();
        assert_eq!(root.sweep_leftovers(&|| false), 1);
        assert!(!left.exists() && temp.path().join("dir").join(own).exists());
    }
}
