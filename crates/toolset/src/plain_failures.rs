//! Failures of sets that imitate another server: clients get only a text; the code is for log and metrics.

use ops::ErrorKind;
use serde_json::json;

use crate::admission::LATER_MS;
use crate::contract::{Failure, Worded};

/// Words of calls that were stopped, for sets that have no others.
pub(crate) fn no_room() -> String {
    format!(
        "Replies that were not read yet take too much memory; read them and try again in {LATER_MS} ms"
    )
}

/// See [`no_room`].
pub(crate) const TIMED_OUT: &str = "The call took longer than its time limit and was stopped";
/// See [`no_room`].
pub(crate) const CANCELLED: &str = "The call was cancelled";

/// A failure as one text.
pub(crate) fn worded(code: &'static str, message: String) -> Worded {
    Worded {
        object: json!({ "error": message }),
        code,
        message,
    }
}

/// The code of a failure; `refused` is that of what the operator does not allow.
pub(crate) fn code(
    failure: &Failure,
    refused: &'static str,
    operation_code: fn(ErrorKind) -> &'static str,
) -> &'static str {
    match failure {
        Failure::Operation(error) | Failure::LeftRunning(error) => operation_code(error.kind()),
        Failure::ToolNotAllowed { .. }
        | Failure::ReadOnly { .. }
        | Failure::Suspended
        | Failure::NotConfirmed { .. } => refused,
        Failure::RateLimited { .. } => "rate_limited",
        Failure::BadArguments(_) => "invalid_arguments",
        Failure::UnknownRoot { .. }
        | Failure::RootGone { .. }
        | Failure::Unrecordable
        | Failure::Guide(_)
        | Failure::Internal { .. } => "io_error",
    }
}
