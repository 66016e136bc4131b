//! Asks the kernel whether anybody has a file open for writing.
//!
//! A read lease is granted only while nobody has: no descriptor and no mapping that could still store. It is given back at
//! once. Neither rustix nor nix has `F_SETLEASE`, so this crate calls `fcntl` itself; nothing else in the workspace is unsafe.

#![expect(
    unsafe_code,
    reason = "the one reviewed exception: two calls of libc without pointers"
)]

#[cfg(feature = "mapping")]
pub mod mapping;

use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

/// How many leases this process holds just now.
static HELD: AtomicUsize = AtomicUsize::new(0);

/// Tells whether nobody has a file open for writing, in this process or any other.
///
/// `file` has to be open for reading only. The answer is no also if the kernel refuses to say: the file is another user's,
/// or its file system has no leases.
#[must_use]
pub fn is_unwritten(file: BorrowedFd<'_>) -> bool {
    if !ignores_signals() {
        return false;
    }
    HELD.fetch_add(1, Ordering::SeqCst);
    let was_granted = set(file, libc::F_RDLCK);
    // Also after a refusal: nothing may be left behind, whatever the reason was.
    let was_returned = set(file, libc::F_UNLCK);
    HELD.fetch_sub(1, Ordering::SeqCst);
    was_granted && was_returned
}

/// Whether this process holds a lease right now; callers that were refused may then retry.
#[must_use]
pub fn is_any_held() -> bool {
    HELD.load(Ordering::SeqCst) > 0
}

fn set(file: BorrowedFd<'_>, kind: libc::c_int) -> bool {
    // SAFETY: the descriptor is open as long as it is borrowed, and F_SETLEASE takes a number, no pointer.
    unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETLEASE, kind) == 0 }
}

/// Ignores SIGIO, once: whoever opens a file for writing while we hold a lease makes the kernel send it, and it would end the
/// process.
fn ignores_signals() -> bool {
    static IGNORED: OnceLock<bool> = OnceLock::new();
    *IGNORED.get_or_init(|| {
        // SAFETY: SIG_IGN is no function of ours that could run in a handler's context.
        unsafe { libc::signal(libc::SIGIO, libc::SIG_IGN) != libc::SIG_ERR }
    })
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests act on files from outside")]
mod tests {
    use super::*;
    use std::fs::File;
    use std::os::fd::AsFd;
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;

    fn file() -> (tempfile::TempDir, std::path::PathBuf) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        std::fs::write(&path, "content").unwrap();
        (directory, path)
    }

    #[test]
    fn an_open_for_writing_is_seen() {
        let (_directory, path) = file();
        let reader = File::open(&path).unwrap();
        assert!(is_unwritten(reader.as_fd()));
        let another_reader = File::open(&path).unwrap();
        assert!(is_unwritten(reader.as_fd()));
        let writer = File::options().write(true).open(&path).unwrap();
        assert!(!is_unwritten(reader.as_fd()));
        assert!(!is_unwritten(another_reader.as_fd()));
        drop(writer);
        assert!(is_unwritten(reader.as_fd()));
        assert!(!is_any_held());
    }

    #[test]
    fn writers_that_come_while_it_is_held_get_their_file_and_no_signal_ends_us() {
        let (_directory, path) = file();
        let asked = Arc::new(AtomicUsize::new(0));
        let stop = Arc::new(AtomicBool::new(false));
        let asking = std::thread::spawn({
            let (path, asked, stop) = (path.clone(), Arc::clone(&asked), Arc::clone(&stop));
            move || {
                let reader = File::open(&path).unwrap();
                while !stop.load(Ordering::SeqCst) {
                    let _ = is_unwritten(reader.as_fd());
                    asked.fetch_add(1, Ordering::SeqCst);
                }
            }
        });
        while asked.load(Ordering::SeqCst) < 1000 {
            drop(File::options().write(true).open(&path).unwrap());
        }
        stop.store(true, Ordering::SeqCst);
        asking.join().unwrap();
    }

    #[cfg(feature = "mapping")]
    #[test]
    fn a_mapping_counts_as_open_for_writing_after_its_descriptor_is_closed() {
        let (_directory, path) = file();
        let reader = File::open(&path).unwrap();
        let mut mapped = mapping::MappedFile::open(&path).unwrap();
        assert!(!is_unwritten(reader.as_fd()));
        mapped.store(0, b'C');
        assert_eq!(std::fs::read(&path).unwrap(), b"Content");
        drop(mapped);
        assert!(is_unwritten(reader.as_fd()));
    }
}
