//! Adds bytes to the end of a file.

use std::fs::File;
use std::io::Write;
use std::os::fd::{AsFd, BorrowedFd};

use super::{Change, Observers, OnExisting, Parents};
use crate::error::{Error, Result};
use crate::history::{Part, PartKind, Stamp, tail_of};
use crate::located::Located;
use crate::metadata::Metadata;
use crate::open_file;
use crate::quota::Amount;
use crate::resolve::Tail;
use crate::rights::Right;
use crate::syscall::{self, Errno, Purpose, SysResult};

/// The set-uid and set-gid bits.
const SET_ID: u32 = 0o6000;

impl Change {
    /// Appends bytes to a file in one write. A missing file is created; if another process creates it meanwhile, the
    /// result is [`Error::Stale`].
    pub fn append(&self, place: &Located<'_>, bytes: &[u8], parents: Parents) -> Result<Metadata> {
        if matches!(place.tail(), Tail::Existing { .. } | Tail::Root) {
            return self.append_existing(place, bytes);
        }
        let mut staged = self.stage(place, OnExisting::Fail, parents)?;
        staged
            .write_all(bytes)
            .map_err(|error| write_failed(place, error))?;
        match staged.commit() {
            // The file was created meanwhile: the caller locks it, and appends to it.
            Err(Error::AlreadyExists { .. }) => Err(Error::Stale { path: place.path() }),
            result => result,
        }
    }

    fn append_existing(&self, place: &Located<'_>, bytes: &[u8]) -> Result<Metadata> {
        place.judge(Right::Change)?;
        let opened = open_file::open(place, Purpose::Append)?;
        let file = opened.file.as_fd();
        let failed = |errno| place.failed("append", errno);
        let before = syscall::stat_unchecked(file).map_err(failed)?;
        let more = Amount {
            bytes: bytes.len() as u64,
            files: 0,
        };
        let room = place.root().observers().reserve(more, place.given())?;
        // Security: new content must not run with the rights of the old. For the superuser the system keeps these bits.
        if before.mode & SET_ID != 0 {
            syscall::set_mode_unchecked(file, before.mode & !SET_ID).map_err(failed)?;
        }
        let observers = place.root().observers();
        reserve_space(observers, file, before.size, more.bytes).map_err(failed)?;
        let part = || Part {
            old: Some(Stamp::of(&before)),
            tail: Some(tail_of(before.size, bytes)),
            ..Part::new(PartKind::Append, place.path())
        };
        let noted = self.note(observers, part).map_err(failed)?;
        let written = (&opened.file).write(bytes).map_err(|error| {
            self.disown(noted.as_ref());
            write_failed(place, error)
        })?;
        if written < bytes.len() {
            // Recorded as not done only once it is gone: after a kill in between, the record still lists it.
            take_back(place, &opened.file, before.size, written as u64)?;
            self.disown(noted.as_ref());
            return Err(failed(Errno::NOSPC));
        }
        if let Some(room) = room {
            room.settle(more);
        }
        self.sync_file(file)
            .map_err(|errno| Error::unsynced(place.given(), errno))?;
        syscall::stat_unchecked(file).map_err(failed)
    }
}

/// Takes space first, so that a full disk is found before a byte is changed.
fn reserve_space(
    observers: &Observers,
    file: BorrowedFd<'_>,
    size: u64,
    more: u64,
) -> SysResult<()> {
    match syscall::reserve_unchecked(file, size, more) {
        Err(Errno::NOSPC | Errno::DQUOT) if observers.make_room() => {
            syscall::reserve_unchecked(file, size, more)
        }
        reserved => reserved,
    }
}

/// Removes a partial append, unless another process has appended to the file since.
fn take_back(place: &Located<'_>, file: &File, size: u64, written: u64) -> Result<()> {
    let now = syscall::stat_unchecked(file.as_fd()).map_err(|e| place.failed("append", e))?;
    if now.size == size + written {
        file.set_len(size)
            .map_err(|error| write_failed(place, error))?;
    }
    Ok(())
}

fn write_failed(place: &Located<'_>, error: std::io::Error) -> Error {
    match Errno::from_io_error(&error) {
        Some(errno) => place.failed("write", errno),
        None => Error::Io {
            operation: "write",
            path: place.given().to_owned(),
            source: error,
        },
    }
}
