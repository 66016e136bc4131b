//! Standard input and output as asynchronous streams; pipes need no thread for that.

use std::os::fd::{AsFd, BorrowedFd};

use rustix::fs::{FileType, Mode, OFlags};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::unix::pipe::{Receiver, Sender};

/// The largest size of a pipe that Linux allows an unprivileged process by default.
const PIPE: usize = 1024 * 1024;

type StdinReader = Box<dyn AsyncRead + Unpin + Send>;
type StdoutWriter = Box<dyn AsyncWrite + Unpin + Send>;

/// Opens standard input and output. If either is not a pipe (a terminal, a file), threads read and write them.
pub(super) fn open() -> (StdinReader, StdoutWriter) {
    widen(std::io::stdin().as_fd());
    widen(std::io::stdout().as_fd());
    match (input(), output()) {
        (Some(input), Some(output)) => (Box::new(input), Box::new(output)),
        _ => (Box::new(tokio::io::stdin()), Box::new(tokio::io::stdout())),
    }
}

/// Enlarges a pipe, so that a large reply does not switch between processes for every 64 KiB. On an error the pipe
/// stays as it is.
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

/// Opens a pipe again. `O_NONBLOCK` belongs to the open file description, which other processes share, so it must not
/// be set on the inherited one.
fn reopen(pipe: BorrowedFd<'_>, number: u32, access: OFlags) -> Option<std::os::fd::OwnedFd> {
    let stat = rustix::fs::fstat(pipe).ok()?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::Fifo {
        return None;
    }
    let path = format!("/proc/self/fd/{number}");
    let flags = access | OFlags::NONBLOCK | OFlags::CLOEXEC;
    rustix::fs::open(path, flags, Mode::empty()).ok()
}
