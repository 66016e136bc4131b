//! Every message of the `memory_tool` set. The model of an application was taught these texts, so they are kept to the
//! letter, with the path as it was given.

use ops::{EditFault, Error, ErrorKind, PathFault};
use serde_json::{Value, json};

use crate::arguments::shortened;
use crate::confirm::not_confirmed_words;
use crate::contract::{
    CHANGED_WORDS, CallSubject, Contract, Failure, FailureText, LEFT_RUNNING, SUSPENDED,
    UNRECORDABLE, Worded, quota_words, root_gone, unfinished_words, unsynced_words,
};
use crate::plain_failures;

pub(super) struct MemoryTool;

impl Contract for MemoryTool {
    fn name(&self) -> &'static str {
        "memory_tool"
    }

    fn server_name(&self) -> &'static str {
        "memory-tool"
    }

    fn server_title(&self) -> &'static str {
        "Memory tool"
    }

    fn instructions(&self) -> &'static str {
        "Anthropic's memory tool: pass the input of a tool_use named memory on as the arguments of the tool memory, and return \
         content and isError as they come."
    }

    fn security(&self) -> &'static str {
        "Every path begins with /memories and is looked up inside the store by descriptor: neither `..` nor links lead out of \
         it. New files are for their owner alone. Refusals are logged with what was tried."
    }

    fn word(&self, failure: &Failure, subject: &CallSubject) -> Worded {
        let code = plain_failures::code(failure, "permission_denied", operation_code);
        plain_failures::worded(code, message(failure, subject))
    }

    fn failure_text(&self) -> FailureText {
        FailureText::Alone
    }

    fn error_schema(&self) -> Value {
        json!({})
    }
}

/// The code of a failed operation, for log and metrics: clients of this set get none.
fn operation_code(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::Outside | ErrorKind::InvalidPath | ErrorKind::Loop => "path_security",
        ErrorKind::NotFound | ErrorKind::NotADirectory | ErrorKind::IsADirectory => "not_found",
        ErrorKind::AlreadyExists => "already_exists",
        ErrorKind::PermissionDenied | ErrorKind::RootProtected => "permission_denied",
        ErrorKind::EditRefused | ErrorKind::StringNotFound | ErrorKind::StringNotUnique => {
            "edit_refused"
        }
        ErrorKind::DiskFull => "disk_full",
        ErrorKind::TooLarge => "too_large",
        ErrorKind::NotText => "binary_file",
        ErrorKind::NoRoom => "rate_limited",
        ErrorKind::Timeout => "timeout",
        ErrorKind::Gone => "gone",
        ErrorKind::Cancelled => "cancelled",
        ErrorKind::InvalidArgument
        | ErrorKind::InvalidPattern
        | ErrorKind::InvalidEncoding
        | ErrorKind::PatchFailed
        | ErrorKind::LineOutOfRange
        | ErrorKind::VersionConflict
        | ErrorKind::DirectoryNotEmpty
        | ErrorKind::IntoItself => "invalid_arguments",
        ErrorKind::NotAFile | ErrorKind::Io => "io_error",
    }
}

fn message(failure: &Failure, subject: &CallSubject) -> String {
    match failure {
        Failure::Operation(error) => operation_message(error, subject),
        Failure::LeftRunning(_) => LEFT_RUNNING.to_owned(),
        Failure::ToolNotAllowed { .. } => "Error: The operator does not allow memory".to_owned(),
        Failure::ReadOnly { .. } => READ_ONLY.to_owned(),
        Failure::NotConfirmed {
            planned,
            limits,
            why,
        } => format!(
            "Error: {}",
            not_confirmed_words(*planned, *limits, why, subject.tool)
        ),
        Failure::Suspended => SUSPENDED.to_owned(),
        Failure::RootGone { root } => root_gone(root),
        Failure::Unrecordable => UNRECORDABLE.to_owned(),
        Failure::RateLimited { retry_after_ms } => {
            format!("Error: Too many calls; try again in {retry_after_ms} ms")
        }
        Failure::BadArguments(bad) => format!("Error: {bad}"),
        Failure::UnknownRoot { .. } => "Error: There is no store".to_owned(),
        Failure::Guide(_) | Failure::Internal { .. } => {
            "Error: Internal error; it was logged".to_owned()
        }
    }
}

const READ_ONLY: &str = "Error: The memory is read-only";

fn operation_message(error: &Error, subject: &CallSubject) -> String {
    let path = path(subject);
    match error {
        Error::InvalidArgument { reason, .. } => reason.clone(),
        Error::NotFound { .. } | Error::Dangling { .. } | Error::NotADirectory { .. } => {
            missing(subject, &path)
        }
        Error::AlreadyExists { .. } => already_exists(subject, &path),
        Error::EditRefused { fault, .. } => {
            let sought = subject.sought.first().map(String::as_str);
            edit_message(fault, sought.unwrap_or_default(), &path)
        }
        Error::LineOutOfRange { line, max, .. } => format!(
            "Error: Invalid `insert_line` parameter: {}. It should be within the range of lines of the file: [0, {}]",
            line.saturating_sub(1),
            max.saturating_sub(1)
        ),
        Error::RootProtected => root_protected(subject).to_owned(),
        other => path_message(other, &path),
    }
}

/// What is wrong with the path itself.
fn path_message(error: &Error, path: &str) -> String {
    match error {
        Error::Outside { path: told, .. } => {
            let given = if told.starts_with('/') { told } else { path };
            format!("Path {given} would escape /memories directory")
        }
        Error::InvalidPath {
            fault: PathFault::TooLong | PathFault::NameTooLong,
            ..
        } => format!(
            "Error: The path {} is too long: a name has at most 255 bytes, a path 4095",
            shortened(path)
        ),
        Error::InvalidPath { .. } | Error::Loop { .. } => {
            format!("Path {path} would escape /memories directory")
        }
        other => own_message(other, path),
    }
}

fn already_exists(subject: &CallSubject, path: &str) -> String {
    match command(subject) {
        "rename" => format!("Error: The destination {} already exists", last(subject)),
        _ => format!("Error: File {path} already exists"),
    }
}

fn root_protected(subject: &CallSubject) -> &'static str {
    match command(subject) {
        "rename" => "Error: Cannot rename the /memories directory itself",
        _ => "Error: Cannot delete the /memories directory itself",
    }
}

fn own_message(error: &Error, path: &str) -> String {
    match error {
        Error::PermissionDenied { .. } => format!("Error: Permission denied: {path}"),
        Error::EmptySearchString => "Error: old_str must not be empty".to_owned(),
        Error::NotText { seems, .. } => {
            format!("Error: {path} is not UTF-8 text but seems to be {seems}")
        }
        Error::IsADirectory { .. } => format!("Error: The path {path} is a directory"),
        Error::NotAFile { kind, .. } => format!("Error: The path {path} is a {kind}"),
        Error::TooLarge { size, limit, .. } => {
            format!("Error: {path} has {size} bytes, over {limit}")
        }
        Error::IntoItself { .. } => format!("Error: {path} cannot be put inside itself"),
        Error::DiskFull { .. } => "Error: No space left on the disk".to_owned(),
        Error::QuotaExceeded { .. } => format!("Error: {}", quota_words(error)),
        Error::Unsynced { reason, .. } => format!("Error: {}", unsynced_words(reason)),
        Error::Changed { .. } => format!("Error: {path}: {CHANGED_WORDS}"),
        Error::Unfinished { done, cause } => {
            format!("Error: {}", unfinished_words(done, &cause.to_string()))
        }
        Error::NoRoom { .. } => format!("Error: {}", plain_failures::no_room()),
        Error::Timeout => "Error: The call took longer than its time limit".to_owned(),
        Error::Cancelled => "Error: The call was cancelled".to_owned(),
        other => format!("Error: {other}"),
    }
}

fn missing(subject: &CallSubject, path: &str) -> String {
    match command(subject) {
        "view" => format!("The path {path} does not exist. Please provide a valid path."),
        "str_replace" => {
            format!("Error: The path {path} does not exist. Please provide a valid path.")
        }
        "rename" => format!("Error: The path {} does not exist", old(subject)),
        _ => format!("Error: The path {path} does not exist"),
    }
}

fn command(subject: &CallSubject) -> &str {
    subject.command.as_deref().unwrap_or_default()
}

fn edit_message(fault: &EditFault, old: &str, path: &str) -> String {
    match fault {
        EditFault::Repeated { lines, .. } => {
            let lines: Vec<String> = lines.iter().map(u64::to_string).collect();
            format!(
                "No replacement was performed. Multiple occurrences of old_str `{old}` in lines: {}. Please ensure it is unique",
                lines.join(", ")
            )
        }
        EditFault::TooLong { most } => format!("Error: The file would have more than {most} bytes"),
        _ => format!(
            "No replacement was performed, old_str `{old}` did not appear verbatim in {path}."
        ),
    }
}

/// The path as it was given.
fn path(subject: &CallSubject) -> String {
    let given = subject.places.first().and_then(|place| place.path.clone());
    given.unwrap_or_else(|| old(subject))
}

fn last(subject: &CallSubject) -> String {
    subject.found.paths().pop().unwrap_or_default()
}

fn old(subject: &CallSubject) -> String {
    subject.found.paths().into_iter().next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_without_room_is_told_when_to_try_again() {
        let full = Failure::Operation(Error::NoRoom { bytes: 1 });
        let told = MemoryTool.word(&full, &CallSubject::default()).message;
        assert!(told.ends_with("try again in 1000 ms"), "{told}");
    }
}
