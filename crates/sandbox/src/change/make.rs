//! Creates directories and links, and replaces entries.

use std::os::fd::AsFd;

use super::{Change, OnExisting, Parents, rename_entry};
use crate::attributes;
use crate::dir::Dir;
use crate::error::{Error, Result};
use crate::history::{NewEntry, Part, PartKind, Stamp};
use crate::leftovers;
use crate::located::Located;
use crate::metadata::FileKind;
use crate::name::Name;
use crate::new_dirs::NewDirs;
use crate::quota::Amount;
use crate::resolve::Tail;
use crate::rights::Right;
use crate::syscall::{self, Errno, Purpose, SysResult};

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
        dir.check_new(name, FileKind::Directory)?;
        let part = || Part::new(PartKind::MakeDir, dir.join(name));
        self.add_entry("mkdir", dir, name, part, || {
            syscall::make_dir_unchecked(dir.fd(), name, mode & 0o777)
        })?;
        dir.open_dir(name)
    }

    /// Makes a link with the given text in an open directory.
    pub fn make_link_in(&self, dir: &Dir, name: &Name, target: &[u8]) -> Result<()> {
        dir.check_new(name, FileKind::Symlink)?;
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

    /// Replaces a file or link in an open directory with a link, in one step.
    pub fn replace_by_link(&self, dir: &Dir, name: &Name, target: &[u8]) -> Result<()> {
        let failed = |errno| dir.failed("symlink", name, errno);
        dir.check_new(name, FileKind::Symlink)?;
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

    /// Renames an entry over an existing one; `new` is what the root's account does not include yet.
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
                |_: &mut NewEntry<'_>| rename_entry(source, target, on_existing, FileKind::File);
            let incoming = NewEntry::Entry(source);
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
        to.check_new(name, moved.kind)?;
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

    /// Creates the missing parents of a new entry if requested; returns them and the entry's name.
    pub(crate) fn ready_parent<'place>(
        &self,
        place: &'place Located<'_>,
        parents: Parents,
    ) -> Result<(Option<NewDirs>, &'place Name)> {
        place.check_makeable()?;
        // Checked before anything is written, and again when it is put there.
        place.judge(match place.tail() {
            Tail::Missing { .. } => Right::Create,
            Tail::Root | Tail::Existing { .. } => Right::Change,
        })?;
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
