//! Reads the body of a request, within limits of size and time.

use std::time::Duration;

use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::StatusCode;
use hyper::body::{Body, Bytes};
use mcp::message;

use super::host_check::Refusal;

/// How much a client may send as a body, and how long it may take.
#[derive(Debug, Clone, Copy)]
pub(super) struct BodyLimits {
    pub(super) bytes: usize,
    pub(super) time: Duration,
}

/// Reads a body within its limits. A body whose declared length is too large is refused unread.
pub(super) async fn read<B>(body: B, limits: BodyLimits) -> Result<Bytes, Refusal>
where
    B: Body<Data = Bytes>,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let most = limits.bytes;
    if body.size_hint().lower() > most as u64 {
        return Err(too_large(most));
    }
    let read = Limited::new(body, most).collect();
    match tokio::time::timeout(limits.time, read).await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(too_large(most)),
        Ok(Err(error)) => Err(refusal(
            StatusCode::BAD_REQUEST,
            format!("Bad Request: the body could not be read: {error}"),
        )),
        Err(_) => Err(refusal(
            StatusCode::REQUEST_TIMEOUT,
            format!(
                "Request Timeout: the body did not arrive within {} seconds",
                limits.time.as_secs()
            ),
        )),
    }
}

fn too_large(most: usize) -> Refusal {
    refusal(
        StatusCode::PAYLOAD_TOO_LARGE,
        format!("Payload Too Large: {}", message::larger_than(most)),
    )
}

fn refusal(status: StatusCode, message: String) -> Refusal {
    Refusal { status, message }
}
