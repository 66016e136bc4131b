//! A file whose content is stored into through memory, for tests.
#![expect(clippy::disallowed_methods, reason = "tests act on files from outside")]

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::ptr::{self, NonNull};

/// A shared mapping of a whole file. The descriptor it was made with is closed.
#[derive(Debug)]
pub struct MappedFile {
    start: NonNull<u8>,
    length: usize,
}

// SAFETY: the mapping belongs to this value alone, and bytes have no thread.
unsafe impl Send for MappedFile {}

impl MappedFile {
    /// Maps a file that is not empty.
    pub fn open(path: &Path) -> io::Result<MappedFile> {
        let file = File::options().read(true).write(true).open(path)?;
        let length = usize::try_from(file.metadata()?.len()).map_err(io::Error::other)?;
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let fd = file.as_raw_fd();
        // SAFETY: the kernel chooses the address, so nothing that is mapped is replaced.
        let start =
            unsafe { libc::mmap(ptr::null_mut(), length, protection, libc::MAP_SHARED, fd, 0) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::InvalidData)?;
        Ok(MappedFile { start, length })
    }

    /// Reads a byte, as a program does before it changes it.
    #[must_use]
    pub fn load(&self, at: usize) -> u8 {
        assert!(at < self.length, "{at} is outside");
        // SAFETY: checked to be inside the mapping.
        let place = unsafe { self.start.add(at) };
        // SAFETY: the same; a byte is always aligned.
        unsafe { place.read_volatile() }
    }

    /// Stores a byte.
    pub fn store(&mut self, at: usize, byte: u8) {
        assert!(at < self.length, "{at} is outside");
        // SAFETY: checked to be inside the mapping.
        let place = unsafe { self.start.add(at) };
        // SAFETY: the same; a byte is always aligned.
        unsafe { place.write_volatile(byte) }
    }

    /// How long it is.
    #[must_use]
    pub fn length(&self) -> usize {
        self.length
    }
}

impl Drop for MappedFile {
    fn drop(&mut self) {
        // SAFETY: the mapping is this value's own, and nothing uses it any more.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.length) };
    }
}
