//! Notices a client that hangs up. hyper alone would not: once a client has sent more than one request, hyper stops
//! reading until the first is answered.

use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec};
use tokio::net::TcpStream;

/// How often to check while a request is answered.
const LOOK_EVERY: Duration = Duration::from_millis(50);
const NO_WAITING: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 0,
};

/// A second handle on a connection, which is polled for a hang-up.
#[derive(Debug)]
pub(super) struct HangUp(Option<OwnedFd>);

impl HangUp {
    /// Watches a connection. If the descriptor cannot be duplicated, only hyper notices hang-ups.
    pub(super) fn of(stream: &TcpStream) -> HangUp {
        HangUp(stream.as_fd().try_clone_to_owned().ok())
    }

    /// Waits until the client has hung up.
    pub(super) async fn gone(&self) {
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            if self.is_gone() {
                return;
            }
        }
    }

    fn is_gone(&self) -> bool {
        let Some(stream) = &self.0 else {
            return false;
        };
        let mut looked = [PollFd::new(stream, PollFlags::RDHUP)];
        let gone = PollFlags::RDHUP | PollFlags::HUP | PollFlags::ERR;
        rustix::event::poll(&mut looked, Some(&NO_WAITING)).is_ok()
            && looked[0].revents().intersects(gone)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::AsyncWriteExt;
    use tokio::net::TcpListener;
    use tokio::time::timeout;

    #[tokio::test]
    async fn a_client_that_hangs_up_is_noticed_whatever_it_sent_before() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut client = TcpStream::connect(address).await.unwrap();
        let (stream, _) = listener.accept().await.unwrap();
        let hang_up = HangUp::of(&stream);
        client.write_all(b"unread").await.unwrap();
        let early = timeout(Duration::from_millis(200), hang_up.gone()).await;
        assert!(early.is_err(), "it is there");
        drop(client);
        let late = timeout(Duration::from_secs(10), hang_up.gone()).await;
        assert!(late.is_ok(), "it is gone");
    }
}
