//! Keeps a copy of what is replaced or removed, where it cannot be kept itself.

use std::fs::File;
use std::os::fd::AsFd;

use super::keep::Keeping;
use super::record::Stamp;
use super::stamp::stamp_at;
use crate::attributes;
use crate::change::EntryRef;
use crate::metadata::{FileKind, Metadata};
use crate::syscall::{self, Errno, Purpose, SysResult};

/// The largest file that is copied to be kept.
const COPIED_MAX: u64 = 64 * 1024 * 1024;

impl Keeping<'_> {
    /// What the object is, if it is a copy and not the file itself.
    pub(super) fn copy_of(&self, old: &Metadata, is_kept: bool) -> SysResult<Option<Stamp>> {
        if !is_kept {
            return Ok(None);
        }
        let kept = syscall::stat_at_unchecked(self.object().0, self.object().1)?;
        Ok((!kept.same_file(old)).then(|| stamp_at(self.object(), &kept)))
    }

    /// Keeps a copy of an entry; tells whether it could be kept.
    pub(super) fn copy(&self, entry: EntryRef<'_>, old: &Metadata) -> SysResult<bool> {
        match old.kind {
            FileKind::File if old.size <= COPIED_MAX => self.copy_file(entry),
            FileKind::Symlink => {
                let text = syscall::read_link_at_unchecked(entry.0, entry.1)?;
                let (objects, object) = self.object();
                syscall::make_link_unchecked(objects, object, &text).map(|()| true)
            }
            _ => Ok(false),
        }
    }

    fn copy_file(&self, entry: EntryRef<'_>) -> SysResult<bool> {
        let old = match syscall::open_content_unchecked(entry.0, entry.1, Purpose::Read) {
            // A file that may not be read cannot be copied.
            Err(Errno::ACCESS | Errno::PERM) => return Ok(false),
            opened => File::from(opened?),
        };
        let metadata = syscall::stat_unchecked(old.as_fd())?;
        let (objects, object) = self.object();
        let new = File::from(syscall::create_unchecked(objects, object, 0o600)?);
        let copied = copy_content(&old, &new).and_then(|()| {
            let mode = attributes::inherit(&old, &new, &metadata);
            syscall::set_mode_unchecked(new.as_fd(), mode)?;
            syscall::set_times_unchecked(new.as_fd(), metadata.accessed, metadata.modified)?;
            self.change.sync_file(new.as_fd())
        });
        if copied.is_err() {
            let _ = syscall::unlink_unchecked(objects, object);
        }
        copied.map(|()| true)
    }
}

fn copy_content(from: &File, to: &File) -> SysResult<()> {
    if syscall::clone_unchecked(from.as_fd(), to.as_fd()).is_ok() {
        return Ok(());
    }
    let copied = std::io::copy(&mut &*from, &mut &*to);
    copied
        .map(drop)
        .map_err(|error| super::store::errno_of(&error))
}
