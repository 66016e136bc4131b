//! Tells systemd that the server is ready, and that it stops (`Type=notify`).
//!
//! The protocol is one datagram to the socket that `NOTIFY_SOCKET` names; without that variable nothing happens.

use std::env;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// Says that requests are answered from now on.
pub(crate) fn tell_ready() {
    tell("READY=1");
}

/// Says that the server stops.
pub(crate) fn tell_stopping() {
    tell("STOPPING=1");
}

fn tell(state: &str) {
    let Some(name) = env::var_os("NOTIFY_SOCKET") else {
        return;
    };
    if let Err(error) = send(name.as_bytes(), state) {
        tracing::warn!(%error, state, "cannot notify the service manager");
    }
}

/// A name that begins with `@` is in the abstract namespace.
fn send(name: &[u8], state: &str) -> io::Result<()> {
    let address = match name.strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name)?,
        None => SocketAddr::from_pathname(std::ffi::OsStr::from_bytes(name))?,
    };
    let socket = UnixDatagram::unbound()?;
    socket.set_nonblocking(true)?;
    socket.send_to_addr(state.as_bytes(), &address).map(drop)
}
