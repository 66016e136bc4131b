//! Every message of the `reference` set: those of the reference server and of its runtime, if they have one.

use ops::{EditFault, Error, ErrorKind, PathFault};
use rmcp::model::ToolAnnotations;
use serde_json::{Value, json};

use crate::confirm::not_confirmed_words;
use crate::contract::{
    CHANGED_WORDS, CallSubject, Contract, Failure, FailureText, LEFT_RUNNING, SUSPENDED,
    UNRECORDABLE, Worded, quota_words, root_gone, unfinished_words, unsynced_words,
};
use crate::plain_failures;
use crate::tool::ToolEffect;

pub(super) struct Reference;

impl Contract for Reference {
    fn name(&self) -> &'static str {
        "reference"
    }

    fn server_name(&self) -> &'static str {
        "secure-filesystem-server"
    }

    fn server_title(&self) -> &'static str {
        "Secure filesystem server"
    }

    fn instructions(&self) -> &'static str {
        "Tools to work on files. Paths are absolute, or relative to the first directory of list_allowed_directories."
    }

    fn security(&self) -> &'static str {
        "Paths are those of the host, and replies tell them. Every path is looked up by descriptor inside a served directory: \
         neither `..` nor links nor races lead out of it. Roots of a client on standard input and output may narrow what is \
         served, and never widen it. Refusals are logged with what was tried."
    }

    fn tells_host_paths(&self) -> bool {
        true
    }

    /// The reference server's: a tool that only reads has no other hints.
    fn annotations(&self, effect: ToolEffect) -> ToolAnnotations {
        match effect {
            ToolEffect::Read => ToolAnnotations::new().read_only(true).open_world(false),
            ToolEffect::Write { .. } => effect.annotations(),
        }
    }

    fn word(&self, failure: &Failure, subject: &CallSubject) -> Worded {
        let code = plain_failures::code(failure, "access_denied", operation_code);
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
        ErrorKind::Outside | ErrorKind::InvalidPath | ErrorKind::RootProtected => "access_denied",
        ErrorKind::NotFound => "ENOENT",
        ErrorKind::AlreadyExists => "EEXIST",
        ErrorKind::NotADirectory => "ENOTDIR",
        ErrorKind::IsADirectory => "EISDIR",
        ErrorKind::DirectoryNotEmpty => "ENOTEMPTY",
        ErrorKind::PermissionDenied => "EACCES",
        ErrorKind::DiskFull => "ENOSPC",
        ErrorKind::Loop => "ELOOP",
        ErrorKind::TooLarge => "too_large",
        ErrorKind::EditRefused | ErrorKind::StringNotFound | ErrorKind::StringNotUnique => {
            "edit_refused"
        }
        ErrorKind::NoRoom => "rate_limited",
        ErrorKind::Timeout => "timeout",
        ErrorKind::Gone => "gone",
        ErrorKind::Cancelled => "cancelled",
        ErrorKind::InvalidArgument
        | ErrorKind::InvalidPattern
        | ErrorKind::InvalidEncoding
        | ErrorKind::PatchFailed
        | ErrorKind::NotText
        | ErrorKind::LineOutOfRange
        | ErrorKind::VersionConflict
        | ErrorKind::IntoItself => "invalid_arguments",
        ErrorKind::NotAFile | ErrorKind::Io => "io_error",
    }
}

fn message(failure: &Failure, subject: &CallSubject) -> String {
    let tool = subject.tool;
    match failure {
        Failure::Operation(error) => operation_message(error, subject),
        Failure::LeftRunning(_) => LEFT_RUNNING.to_owned(),
        Failure::ToolNotAllowed { .. } => {
            let path = first_path(subject);
            format!("Access denied - the operator does not allow {tool} here: {path}")
        }
        Failure::ReadOnly { .. } => {
            let path = first_path(subject);
            format!("Access denied - the operator made this directory read-only: {path}")
        }
        Failure::NotConfirmed {
            planned,
            limits,
            why,
        } => not_confirmed_words(*planned, *limits, why, subject.tool),
        Failure::Suspended => SUSPENDED.to_owned(),
        Failure::RootGone { root } => root_gone(root),
        Failure::Unrecordable => UNRECORDABLE.to_owned(),
        Failure::RateLimited { retry_after_ms } => {
            format!("Too many calls; try again in {retry_after_ms} ms")
        }
        Failure::BadArguments(bad) => format!(
            "MCP error -32602: Input validation error: Invalid arguments for tool {tool}: {bad}"
        ),
        Failure::UnknownRoot { .. } => "The server has no directory".to_owned(),
        Failure::Guide(_) | Failure::Internal { .. } => {
            format!("Internal error in {tool}; it was logged")
        }
    }
}

fn operation_message(error: &Error, subject: &CallSubject) -> String {
    let path = host_path(error, subject);
    match error {
        Error::Outside { .. }
        | Error::InvalidPath {
            fault: PathFault::Nul,
            ..
        } => outside(error, &path, subject),
        Error::InvalidArgument {
            argument: "path",
            reason,
        } if reason.starts_with("Windows") => format!("Access denied - {reason}"),
        Error::InvalidArgument { reason, .. } => reason.clone(),
        Error::InvalidPath { .. } => format!("ENAMETOOLONG: name too long, realpath '{path}'"),
        Error::EditRefused { edit, fault, .. } => {
            let sought = edit.checked_sub(1).and_then(|nth| subject.sought.get(nth));
            edit_message(fault, sought.map_or("", String::as_str))
        }
        other => system_message(other, subject, &path),
    }
}

/// Refusals of the system, in the words of the reference server's runtime.
fn system_message(error: &Error, subject: &CallSubject, path: &str) -> String {
    match error {
        Error::NotFound { .. } | Error::Dangling { .. } => {
            system("ENOENT: no such file or directory", subject, path)
        }
        Error::NotADirectory { .. } if lists(subject.tool) => {
            format!("ENOTDIR: not a directory, scandir '{path}'")
        }
        Error::NotADirectory { .. } => format!("ENOTDIR: not a directory, realpath '{path}'"),
        Error::AlreadyExists { .. } => already_exists(subject, path),
        Error::IsADirectory { .. } => is_a_directory(subject.tool, path),
        Error::PermissionDenied { .. } => system("EACCES: permission denied", subject, path),
        Error::Loop { .. } => {
            format!("ELOOP: too many symbolic links encountered, realpath '{path}'")
        }
        Error::IntoItself { .. } => system("EINVAL: invalid argument", subject, path),
        other => own_message(other, path),
    }
}

fn is_a_directory(tool: &str, path: &str) -> String {
    match tool {
        "write_file" => format!("EISDIR: illegal operation on a directory, open '{path}'"),
        _ => "EISDIR: illegal operation on a directory, read".to_owned(),
    }
}

fn already_exists(subject: &CallSubject, path: &str) -> String {
    match subject.tool {
        "move_file" => format!("Destination already exists: {}", last_path(subject)),
        _ => format!("EEXIST: file already exists, mkdir '{path}'"),
    }
}

/// Failures where the reference server would do something else, or would never finish.
fn own_message(error: &Error, path: &str) -> String {
    match error {
        Error::NotAFile { kind, .. } => format!("{path} is a {kind}, and only files are read"),
        Error::TooLarge { size, limit, .. } => format!(
            "{path} is too large: {size} bytes, and a reply holds {limit}; read parts of it with head or tail"
        ),
        Error::NotText { seems, .. } => {
            format!("{path} cannot be edited: it is not UTF-8 text but seems to be {seems}")
        }
        Error::EmptySearchString => {
            "oldText must not be empty: it would be found everywhere".to_owned()
        }
        Error::InvalidPattern { reason, .. } => format!("Invalid pattern: {reason}"),
        Error::RootProtected => format!("Access denied - the directory itself stays: {path}"),
        Error::DiskFull { .. } => "ENOSPC: no space left on device, write".to_owned(),
        Error::QuotaExceeded { .. } => format!("{path}: {}", quota_words(error)),
        Error::Unsynced { reason, .. } => format!("{path}: {}", unsynced_words(reason)),
        Error::Changed { .. } => format!("{path}: {CHANGED_WORDS}"),
        Error::Unfinished { done, cause } => unfinished_words(done, &cause.to_string()),
        Error::NoRoom { .. } => plain_failures::no_room(),
        Error::Timeout => plain_failures::TIMED_OUT.to_owned(),
        Error::Cancelled => plain_failures::CANCELLED.to_owned(),
        Error::Io {
            operation, reason, ..
        } => format!("{reason}, {operation} '{path}'"),
        // The others cannot occur in this set.
        other => other.to_string(),
    }
}

fn edit_message(fault: &EditFault, old: &str) -> String {
    match fault {
        EditFault::Repeated { count, lines } => {
            let lines: Vec<String> = lines.iter().map(u64::to_string).collect();
            let lines = lines.join(", ");
            format!(
                "Found {count} matches for edit, in lines {lines}; add lines around it to oldText so that it is unique:\n{old}"
            )
        }
        EditFault::TooLong { most } => format!("The file would have more than {most} bytes"),
        _ => format!("Could not find exact match for edit:\n{old}"),
    }
}

/// A path that leads out; the message does not name its target.
fn outside(error: &Error, path: &str, subject: &CallSubject) -> String {
    let served = subject.hosts.as_ref().map(|hosts| hosts.served.join(", "));
    let served = served.unwrap_or_default();
    let what = match error {
        Error::Outside { link: Some(_), .. } => "symlink target",
        _ => "path",
    };
    format!("Access denied - {what} outside allowed directories: {path} not in {served}")
}

/// A failure in the words of the runtime: what failed, in which call of the system, with which path.
fn system(what: &str, subject: &CallSubject, path: &str) -> String {
    match subject.tool {
        "move_file" => {
            let (source, destination) = (first_path(subject), last_path(subject));
            format!("{what}, rename '{source}' -> '{destination}'")
        }
        "get_file_info" => format!("{what}, stat '{path}'"),
        "create_directory" => format!("{what}, mkdir '{path}'"),
        tool if lists(tool) => format!("{what}, scandir '{path}'"),
        _ => format!("{what}, open '{path}'"),
    }
}

fn lists(tool: &str) -> bool {
    matches!(
        tool,
        "list_directory" | "list_directory_with_sizes" | "directory_tree" | "search_files"
    )
}

/// The path on the host that an error is about: that of the place it names, else that of the first place.
fn host_path(error: &Error, subject: &CallSubject) -> String {
    let hosts = subject.hosts.as_ref().map(|hosts| hosts.paths.as_slice());
    let hosts = hosts.unwrap_or_default();
    let named = subject.places.iter().zip(hosts);
    let mut named = named.filter(|(place, _)| place.path.as_deref() == error.path());
    let own = named.next().map(|(_, host)| host.clone());
    own.unwrap_or_else(|| first_path(subject))
}

fn first_path(subject: &CallSubject) -> String {
    let hosts = subject.hosts.as_ref().and_then(|hosts| hosts.paths.first());
    hosts.cloned().unwrap_or_default()
}

fn last_path(subject: &CallSubject) -> String {
    let hosts = subject.hosts.as_ref();
    let hosts = hosts.and_then(|hosts| hosts.paths.get(1));
    hosts.cloned().unwrap_or_else(|| first_path(subject))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_without_room_is_told_when_to_try_again() {
        let full = Failure::Operation(Error::NoRoom { bytes: 1 });
        let told = Reference.word(&full, &CallSubject::default()).message;
        assert!(told.ends_with("try again in 1000 ms"), "{told}");
    }
}
