//! Bounds the bytes of replies that wait for slow clients.
//!
//! Without a bound, every connection could hold a large reply in memory until its client timed out.

use std::convert::Infallible;
use std::sync::Arc;

use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::{Body, Bytes};
use hyper::{Response, StatusCode};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::host_check::Refusal;

/// The most units that may wait: 256 MiB.
const MOST_WAITING: u32 = 256 * 1024 * 1024 / UNIT;
/// The bytes of one unit.
const UNIT: u32 = 1024;
/// Replies up to this size are not counted: the number of connections bounds them.
const SMALL: u64 = 64 * 1024;

/// Counts the bytes of replies until they are written.
#[derive(Debug, Clone)]
pub(super) struct ReplyBudget {
    room: Arc<Semaphore>,
    most: u32,
}

impl ReplyBudget {
    pub(super) fn new() -> ReplyBudget {
        ReplyBudget::of(MOST_WAITING)
    }

    fn of(most: u32) -> ReplyBudget {
        ReplyBudget {
            room: Arc::new(Semaphore::new(most as usize)),
            most,
        }
    }

    /// Counts a reply until its last byte is written, or refuses it if too much waits already. Streams are not
    /// counted here: a session bounds what it keeps, and the number of connections what is on its way.
    pub(super) async fn hold(
        &self,
        reply: Response<UnsyncBoxBody<Bytes, Infallible>>,
    ) -> Result<Response<UnsyncBoxBody<Bytes, Infallible>>, Refusal> {
        let size = reply.body().size_hint().exact().unwrap_or_default();
        if size <= SMALL {
            return Ok(reply);
        }
        // A single reply always fits, however large it is.
        let units = u32::try_from(size / u64::from(UNIT)).unwrap_or(u32::MAX);
        let room = Arc::clone(&self.room).try_acquire_many_owned(units.min(self.most));
        let room = room.map_err(|_| full())?;
        let (parts, body) = reply.into_parts();
        let Ok(body) = body.collect().await;
        let counted = Bytes::from_owner(Counted {
            bytes: body.to_bytes(),
            _room: room,
        });
        Ok(Response::from_parts(
            parts,
            Full::new(counted).boxed_unsync(),
        ))
    }
}

/// The bytes of a reply; dropping them gives their room back.
struct Counted {
    bytes: Bytes,
    _room: OwnedSemaphorePermit,
}

impl AsRef<[u8]> for Counted {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

fn full() -> Refusal {
    Refusal {
        status: StatusCode::SERVICE_UNAVAILABLE,
        message: "Service Unavailable: too many large replies wait for clients that do not read them; try again later"
            .to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(size: usize) -> Response<UnsyncBoxBody<Bytes, Infallible>> {
        Response::new(Full::new(Bytes::from(vec![b'x'; size])).boxed_unsync())
    }

    #[tokio::test]
    async fn large_replies_have_a_bound_until_they_are_written() {
        let reply_budget = ReplyBudget::of(200);
        let first = reply_budget.hold(reply(150 * 1024)).await.unwrap();
        assert_eq!(reply_budget.room.available_permits(), 50);
        let refused = reply_budget.hold(reply(100 * 1024)).await.unwrap_err();
        assert_eq!(refused.status, 503);
        assert!(
            reply_budget.hold(reply(1000)).await.is_ok(),
            "small ones pass"
        );
        let Ok(body) = first.into_body().collect().await;
        let bytes = body.to_bytes();
        assert_eq!(bytes.len(), 150 * 1024);
        assert_eq!(reply_budget.room.available_permits(), 50);
        drop(bytes);
        assert_eq!(reply_budget.room.available_permits(), 200);
    }

    #[tokio::test]
    async fn one_reply_always_fits() {
        let reply_budget = ReplyBudget::of(100);
        let held = reply_budget.hold(reply(1024 * 1024)).await.unwrap();
        assert_eq!(reply_budget.room.available_permits(), 0);
        drop(held);
        assert_eq!(reply_budget.room.available_permits(), 100);
    }
}
