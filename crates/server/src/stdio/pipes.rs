//! Standard input and output as streams that wait without a thread, where they are pipes.

use std::os::fd::{AsFd, BorrowedFd};

use rustix::fs::{FileType, Mode, OFlags};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::unix::pipe::{Receiver, Sender};

/// What a pipe may hold for everybody unless the system says otherwise.
const PIPE: usize = 1024 * 1024;

type StdinReader = Box<dyn AsyncRead + Unpin + Send>;
type StdoutWriter = Box<dyn AsyncWrite + Unpin + Send>;

/// Opens standard input and output. What is no pipe (a terminal, a file) is read and written by threads of its own.
pub(super) fn open() -> (StdinReader, StdoutWriter) {
    widen(std::io::stdin().as_fd());
    widen(std::io::stdout().as_fd());
    match (input(), output()) {
        (Some(input), Some(output)) => (Box::new(input), Box::new(output)),
        _ => (Box::new(tokio::io::stdin()), Box::new(tokio::io::stdout())),
    }
}

/// Lets a pipe hold more at once, so that a large reply does not change threads for every 64 KiB. What is no pipe, or may
/// not be larger, stays as it is.
fn widen(pipe: BorrowedFd<'_>) {
    let _ = rustix::pipe::fcntl_setpipe_size(pipe, PIPE);
}

fn input() -> Option<Receiver> {
    let pipe = reopen(std::io::stdin().as_fd(), 0, OFlags::RDONLY)?;
    Receiver::from_owned_fd(pipe).ok()
}

fn output() -> Option<Sender> {
    let pipe = reopen(std::io::stdout().as_fd(), 1, OFlags::WRONLY)?;
    Sender::from_owned_fd(pipe).ok()
}

/// Opens a pipe once more, because not to wait is a property of the open pipe, which other processes share.
fn reopen(pipe: BorrowedFd<'_>, number: u32, access: OFlags) -> Option<std::os::fd::OwnedFd> {
    let stat = rustix::fs::fstat(pipe).ok()?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::Fifo {
        return None;
    }
    let path = format!("/proc/self/fd/{number}");
    let flags = access | OFlags::NONBLOCK | OFlags::CLOEXEC;
    rustix::fs::open(path, flags, Mode::empty()).ok()
}
