//! Reads the body of a request, within limits of size and time, and within the budget of bytes.
//!
//! A body with a declared length gets room for all of it before it is read. So every body that was begun can be
//! finished, and no client can fill the memory with bodies that it never finishes. Everything is read into one buffer,
//! because memory in many small pieces is not returned to the system.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use http_body_util::BodyExt;
use hyper::StatusCode;
use hyper::body::{Body, Bytes};
use ops::{ByteBudget, OverBudget, Reserved, SMALL_BYTES};

use super::refusal::Refusal;

/// How long a body waits for room.
const BRIEFLY: Duration = Duration::from_secs(2);

/// The limits of size and time for a body.
#[derive(Debug, Clone, Copy)]
pub(super) struct BodyLimits {
    pub(super) bytes: usize,
    pub(super) time: Duration,
}

/// Where the bytes of a body are counted.
pub(super) struct BodyRoom<'a, F> {
    pub(super) budget: &'a Arc<ByteBudget>,
    /// The account of the bytes; not needed for small bodies.
    pub(super) client: F,
}

/// A body, and its room in the budget if it is large.
pub(super) type HeldBody = (Bytes, Option<Reserved>);

/// Reads a body within its limits. A body whose declared length is too large is refused unread.
pub(super) async fn read<B>(
    body: B,
    limits: BodyLimits,
    room: BodyRoom<'_, impl Fn() -> Arc<str>>,
) -> Result<HeldBody, Refusal>
where
    B: Body<Data = Bytes>,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let declared = body.size_hint().lower();
    if declared > limits.bytes as u64 {
        return Err(too_large(limits.bytes));
    }
    let held = match declared {
        0..=SMALL_BYTES => None,
        _ => Some(reserve(&room, declared).await?),
    };
    let body = pin!(body);
    let mut read = pin!(collect(body, limits.bytes, held, &room));
    // A small body is there already, and needs no timer.
    let at_once = poll_fn(|context| Poll::Ready(read.as_mut().poll(context)));
    if let Poll::Ready(read) = at_once.await {
        return read;
    }
    match tokio::time::timeout(limits.time, read).await {
        Ok(read) => read,
        Err(_) => Err(Refusal::new(
            StatusCode::REQUEST_TIMEOUT,
            format!(
                "Request Timeout: the body did not arrive within {} seconds",
                limits.time.as_secs()
            ),
        )),
    }
}

async fn collect<B>(
    mut body: Pin<&mut B>,
    most: usize,
    mut held: Option<Reserved>,
    room: &BodyRoom<'_, impl Fn() -> Arc<str>>,
) -> Result<HeldBody, Refusal>
where
    B: Body<Data = Bytes>,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let first = next_piece(&mut body).await?.unwrap_or_default();
    if body.is_end_stream() && first.len() <= most {
        return Ok((first, held));
    }
    let declared = usize::try_from(body.size_hint().lower()).unwrap_or_default();
    let mut bytes = Vec::with_capacity(first.len().saturating_add(declared).min(most));
    let mut next = Some(first);
    while let Some(piece) = next {
        if bytes.len() + piece.len() > most {
            return Err(too_large(most));
        }
        bytes.extend_from_slice(&piece);
        grow(&mut held, bytes.len() as u64, room).await?;
        next = next_piece(&mut body).await?;
    }
    Ok((bytes.into(), held))
}

async fn next_piece<B>(body: &mut Pin<&mut B>) -> Result<Option<Bytes>, Refusal>
where
    B: Body<Data = Bytes>,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    loop {
        let Some(frame) = body.frame().await else {
            return Ok(None);
        };
        let frame = frame.map_err(|error| {
            let error: Box<dyn std::error::Error + Send + Sync> = error.into();
            let message = format!("Bad Request: the body could not be read: {error}");
            Refusal::new(StatusCode::BAD_REQUEST, message)
        })?;
        // Trailers are ignored.
        if let Ok(piece) = frame.into_data() {
            return Ok(Some(piece));
        }
    }
}

/// Doubles the room of a body without a declared length.
async fn grow(
    held: &mut Option<Reserved>,
    bytes: u64,
    room: &BodyRoom<'_, impl Fn() -> Arc<str>>,
) -> Result<(), Refusal> {
    let has = held.as_ref().map_or(SMALL_BYTES, Reserved::bytes);
    if bytes <= has {
        return Ok(());
    }
    match held {
        Some(held) => held.try_resize(bytes.saturating_mul(2)).map_err(no_room),
        None => {
            *held = Some(reserve(room, bytes.saturating_mul(2)).await?);
            Ok(())
        }
    }
}

/// Waits briefly for room.
async fn reserve(
    room: &BodyRoom<'_, impl Fn() -> Arc<str>>,
    bytes: u64,
) -> Result<Reserved, Refusal> {
    let mut waiting = room.budget.reserve(&(room.client)(), bytes);
    let reserved = tokio::time::timeout(BRIEFLY, &mut waiting).await;
    reserved.map_err(|_| no_room(waiting.reason()))
}

fn no_room(reason: OverBudget) -> Refusal {
    match reason {
        OverBudget::Own => Refusal::new(
            StatusCode::TOO_MANY_REQUESTS,
            "Too Many Requests: this client's requests and unread replies take as much memory as one client may have; \
             wait until they have ended, read the replies, and try again, or raise limits.max_held_bytes_per_client"
                .to_owned(),
        ),
        OverBudget::All => Refusal::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "Service Unavailable: the requests and unread replies of all clients take as much memory as they may; try \
             again later, or raise limits.max_held_bytes"
                .to_owned(),
        ),
    }
}

fn too_large(most: usize) -> Refusal {
    Refusal::new(
        StatusCode::PAYLOAD_TOO_LARGE,
        format!("Payload Too Large: {}", mcp::message::larger_than(most)),
    )
}
