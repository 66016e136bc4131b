//! A request's body, whole or not at all: of bounded size, in bounded time.

use std::time::Duration;

use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::StatusCode;
use hyper::body::{Body, Bytes};

use super::host_check::Refusal;

/// How long a client may take to send a body.
const BODY_WITHIN: Duration = Duration::from_secs(30);

/// Reads a body of at most `most` bytes. One that says it is larger is not even begun.
pub(super) async fn read<B>(body: B, most: usize) -> Result<Bytes, Refusal>
where
    B: Body<Data = Bytes>,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    if body.size_hint().lower() > most as u64 {
        return Err(too_large(most));
    }
    let read = Limited::new(body, most).collect();
    match tokio::time::timeout(BODY_WITHIN, read).await {
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
                BODY_WITHIN.as_secs()
            ),
        )),
    }
}

fn too_large(most: usize) -> Refusal {
    refusal(
        StatusCode::PAYLOAD_TOO_LARGE,
        format!(
            "Payload Too Large: a body may have {most} bytes; send less at once, or raise server.max_body_size"
        ),
    )
}

fn refusal(status: StatusCode, message: String) -> Refusal {
    Refusal { status, message }
}
