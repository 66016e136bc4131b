//! Every code and every message of the `files` set. The specification's messages are used as they are; anything more
//! goes into the details.

use ops::{Error, ErrorKind, FileKind, PatternRole, TreeWork};
use serde_json::{Map, Value, json};

use crate::admission::LATER_MS;
use crate::arguments::{BadArgument, advice, each, shortened};
use crate::confirm::not_confirmed_words;
use crate::contract::{
    CHANGED_WORDS, CallSubject, Contract, Failure, FailureText, LEFT_RUNNING, NamedPlace,
    ResourceTools, STALE_WORDS, SUSPENDED, UNRECORDABLE, Worded, error_object_schema, path_fault,
    quota_facts, quota_words, root_gone, unfinished_words, unsynced_words,
};
use crate::history::{refusal_code, refusal_words};

pub(super) struct Files;

impl Contract for Files {
    fn name(&self) -> &'static str {
        "files"
    }

    fn server_name(&self) -> &'static str {
        "filesystem-server"
    }

    fn server_title(&self) -> &'static str {
        "Filesystem server"
    }

    fn server_description(&self) -> Option<&'static str> {
        Some("A secure MCP server for filesystem operations")
    }

    fn instructions(&self) -> &'static str {
        "Tools to work on the files of one directory, the root. Every path is relative to it, and nothing outside it can \
         be reached. To look around use list, to find text use search, to see what a path is use info. read returns at most \
         max_size bytes: read long files in pieces with start_line and end_line, which count from 0."
    }

    fn changing(&self) -> Option<&'static str> {
        Some("write replaces a whole file unless its mode says otherwise.")
    }

    fn security(&self) -> &'static str {
        "Every path is relative to the server's root and looked up inside it by descriptor: neither `..` nor links nor races \
         lead out of it, and nothing outside is touched or revealed. Refusals are logged with what was tried."
    }

    fn resources(&self) -> Option<ResourceTools> {
        Some(ResourceTools {
            read: "read",
            list: "list",
            watch: "watch",
            one_root: true,
        })
    }

    fn word(&self, failure: &Failure, subject: &CallSubject) -> Worded {
        let place = subject.place_of(failure);
        let code = code(failure);
        let message = message(failure, subject);
        let details = details(failure, subject, &place);
        Worded::with_details(code, message, details)
    }

    fn failure_text(&self) -> FailureText {
        FailureText::Object
    }

    fn error_schema(&self) -> Value {
        error_object_schema()
    }
}

fn code(failure: &Failure) -> &'static str {
    match failure {
        Failure::Operation(Error::UndoRefused(refusal)) => refusal_code(refusal),
        Failure::Operation(error) | Failure::LeftRunning(error) => operation_code(error.kind()),
        Failure::ToolNotAllowed { .. } | Failure::ReadOnly { .. } => "permission_denied",
        Failure::NotConfirmed { .. } => "permission_denied",
        Failure::RateLimited { .. } | Failure::Suspended => "rate_limited",
        Failure::BadArguments(_) => "invalid_parameters",
        Failure::UnknownRoot { .. }
        | Failure::RootGone { .. }
        | Failure::Unrecordable
        | Failure::Guide(_)
        | Failure::Internal { .. } => "io_error",
    }
}

/// The code of a failed operation, also for faults inside a reply.
pub(super) fn operation_code(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::InvalidPath | ErrorKind::Outside | ErrorKind::Loop => "path_validation_error",
        ErrorKind::NotFound => "not_found",
        ErrorKind::AlreadyExists => "already_exists",
        ErrorKind::NotADirectory => "not_a_directory",
        ErrorKind::IsADirectory => "is_a_directory",
        ErrorKind::DirectoryNotEmpty => "directory_not_empty",
        ErrorKind::InvalidPattern
        | ErrorKind::InvalidArgument
        | ErrorKind::InvalidEncoding
        | ErrorKind::IntoItself
        | ErrorKind::RootProtected
        | ErrorKind::TooLarge
        // Only tools of other sets can fail in these ways.
        | ErrorKind::PatchFailed
        | ErrorKind::NotText
        | ErrorKind::EditRefused
        | ErrorKind::StringNotFound
        | ErrorKind::StringNotUnique
        | ErrorKind::LineOutOfRange => "invalid_parameters",
        ErrorKind::PermissionDenied => "permission_denied",
        ErrorKind::DiskFull => "disk_full",
        ErrorKind::VersionConflict => "version_conflict",
        ErrorKind::Gone => "gone",
        ErrorKind::NoRoom => "rate_limited",
        ErrorKind::Timeout => "timeout",
        ErrorKind::NotAFile | ErrorKind::Cancelled | ErrorKind::Io => "io_error",
    }
}

fn message(failure: &Failure, subject: &CallSubject) -> String {
    let tool = subject.tool;
    match failure {
        Failure::Operation(error) => operation_message(error, tool),
        Failure::ToolNotAllowed { .. } => {
            format!("{DENIED}: the server does not allow {tool}")
        }
        Failure::ReadOnly { .. } => format!("{DENIED}: the server's root is read-only"),
        Failure::RootGone { root } => root_gone(root),
        Failure::Unrecordable => UNRECORDABLE.to_owned(),
        Failure::LeftRunning(_) => LEFT_RUNNING.to_owned(),
        Failure::NotConfirmed {
            planned,
            limits,
            why,
        } => not_confirmed_words(*planned, *limits, why, subject.tool),
        Failure::Suspended => SUSPENDED.to_owned(),
        Failure::RateLimited { retry_after_ms } => {
            format!("Too many calls; try again in {retry_after_ms} ms")
        }
        Failure::BadArguments(bad) => argument_message(bad),
        Failure::UnknownRoot { .. } => "The server has no root directory".to_owned(),
        Failure::Guide(_) | Failure::Internal { .. } => {
            format!("Internal error in {tool}; it was logged")
        }
    }
}

const DENIED: &str = "Permission denied to access the specified path";

fn argument_message(bad: &BadArgument) -> String {
    let argument = bad.argument().unwrap_or_default();
    match bad {
        BadArgument::Missing { expected, .. } => {
            format!("Missing required parameter {argument} ({expected})")
        }
        BadArgument::Mistyped { expected, got, .. } => wrong_value(argument, expected, got),
        BadArgument::OutOfBounds { bound, got, .. } => wrong_value(argument, bound, got),
        BadArgument::NotOneOf { got, valid, .. } => {
            let one_of = format!("one of {}", valid.join(", "));
            wrong_value(argument, &one_of, got)
        }
        BadArgument::Unknown { nearest, valid, .. } => {
            let advice = advice(nearest.as_deref(), valid);
            format!("Unknown parameter {argument}; {advice}")
        }
        BadArgument::Undecodable { reason } => format!("Invalid parameters: {reason}"),
        BadArgument::Several { first, more } => each(first, *more, argument_message),
    }
}

fn wrong_value(parameter: &str, wanted: &str, got: &str) -> String {
    invalid(parameter, &format!("it must be {wanted}, got {got}"))
}

fn invalid(parameter: &str, reason: &str) -> String {
    format!("Invalid parameter {parameter}: {reason}")
}

/// The message of a failed operation, also for faults inside a reply.
pub(super) fn operation_message(error: &Error, tool: &str) -> String {
    match error {
        Error::Outside { .. } => "Path is outside of the allowed root directory".to_owned(),
        Error::InvalidPath { path, fault } => {
            let fault = path_fault(*fault);
            format!("Path is invalid: \"{}\": {fault}", shortened(path))
        }
        Error::Loop { .. } => "Path is invalid: too many symbolic links on the way".to_owned(),
        Error::PermissionDenied { .. } => DENIED.to_owned(),
        Error::NotFound { .. } | Error::Dangling { .. } => {
            "The specified path does not exist".to_owned()
        }
        other => entry_message(other, tool),
    }
}

/// What is wrong at the place that a path names.
fn entry_message(error: &Error, tool: &str) -> String {
    match error {
        Error::AlreadyExists { kind, .. } => already_exists(*kind, tool).to_owned(),
        Error::Irreplaceable { kind, by, .. } => {
            format!("A {kind} already exists there and cannot be replaced by a {by}")
        }
        Error::NotADirectory { .. } => "The specified path is not a directory".to_owned(),
        Error::IsADirectory { .. } => is_a_directory(tool).to_owned(),
        Error::NotAFile { kind, .. } => {
            format!("The specified path is a {kind}, not a regular file")
        }
        Error::DirectoryNotEmpty { .. } => not_empty(tool).to_owned(),
        Error::Unfolds { most, .. } => {
            format!("The file decompresses to more than {most} bytes, which is too large to read")
        }
        other => circumstance_message(other, tool),
    }
}

/// Failures caused by the system, another change or a limit.
fn circumstance_message(error: &Error, tool: &str) -> String {
    match error {
        Error::DiskFull { .. } => "No space left on the device".to_owned(),
        Error::QuotaExceeded { .. } => format!("No space left in the root: {}", quota_words(error)),
        Error::Unsynced { reason, .. } => format!("Not synced: {}", unsynced_words(reason)),
        Error::Changed { path } => format!("{path} changed meanwhile: {CHANGED_WORDS}"),
        Error::Stale { path } => format!("{path} changed meanwhile: {STALE_WORDS}"),
        Error::Unfinished { done, cause } => unfinished(done, cause, tool),
        Error::NoRoom { .. } => NO_ROOM.to_owned(),
        Error::Timeout => "The operation took longer than the request timeout".to_owned(),
        Error::Cancelled => "The operation was cancelled".to_owned(),
        Error::UndoRefused(refusal) => refusal_words(refusal),
        Error::Io {
            operation, reason, ..
        } => format!("{operation} failed: {reason}"),
        other => match parameter(other, tool) {
            Some(parameter) => invalid(parameter, &fault(other)),
            None => format!("Invalid parameters: {other}"),
        },
    }
}

const NO_ROOM: &str = "Replies that were not read yet take too much memory; read them, or ask for less at once, and try again";

fn already_exists(kind: FileKind, tool: &str) -> &'static str {
    match (tool, kind) {
        ("mkdir", FileKind::Directory) => "The directory already exists",
        ("mkdir", _) => "The path already exists and is not a directory",
        _ => "The file already exists and overwrite is not enabled",
    }
}

fn not_empty(tool: &str) -> &'static str {
    match tool {
        "delete" => "The directory is not empty; set recursive to delete it with all it holds",
        _ => "The directory is not empty",
    }
}

fn unfinished(done: &TreeWork, cause: &Error, tool: &str) -> String {
    let place = cause
        .path()
        .map_or(String::new(), |path| format!(": {path}"));
    let cause = operation_message(cause, tool);
    unfinished_words(done, &format!("{cause}{place}"))
}

fn is_a_directory(tool: &str) -> &'static str {
    match tool {
        "read" => "The specified path is a directory; use list to see what is in it",
        "copy" => "The specified path is a directory; set recursive to copy it",
        _ => "The specified path is a directory",
    }
}

/// What is wrong with a parameter's value.
fn fault(error: &Error) -> String {
    match error {
        Error::InvalidPattern { reason, .. }
        | Error::InvalidArgument { reason, .. }
        | Error::InvalidPart { reason, .. }
        | Error::InvalidEncoding { reason } => reason.clone(),
        Error::RootProtected => {
            "the root directory itself cannot be removed or replaced".to_owned()
        }
        Error::IntoItself { .. } => "it is the source itself or inside it".to_owned(),
        other => other.to_string(),
    }
}

/// The parameter through which this set takes a pattern.
fn pattern_parameter(role: PatternRole) -> &'static str {
    match role {
        PatternRole::SearchedFiles => "file_pattern",
        PatternRole::PathRegex => "regex",
        PatternRole::Lines | PatternRole::PathGlob | PatternRole::ListedEntries => "pattern",
    }
}

/// The refused parameter, by its name in this set.
fn parameter(error: &Error, tool: &str) -> Option<&'static str> {
    match error {
        Error::InvalidPattern { role, .. } => Some(pattern_parameter(*role)),
        Error::InvalidArgument { argument, .. } => Some(argument),
        Error::InvalidEncoding { .. } => Some("content"),
        Error::IntoItself { .. } => Some("destination"),
        Error::RootProtected => Some(match tool {
            "move" => "source",
            "copy" => "destination",
            _ => "path",
        }),
        _ => None,
    }
}

fn details(failure: &Failure, subject: &CallSubject, place: &NamedPlace) -> Value {
    let mut details = Map::new();
    let path = place.path.as_deref().unwrap_or_default();
    details.insert("path".to_owned(), path.into());
    details.insert("operation".to_owned(), subject.tool.into());
    if let Value::Object(facts) = facts(failure, subject.tool) {
        details.extend(facts);
    }
    Value::Object(details)
}

/// The facts of a failure, for programs.
fn facts(failure: &Failure, tool: &str) -> Value {
    match failure {
        Failure::Operation(Error::NotFound { near, .. }) => not_found_facts(near, tool),
        Failure::Operation(Error::Dangling { link, target, .. }) => {
            json!({ "hint": format!("{link} is a symlink to {target}, where nothing is") })
        }
        Failure::Operation(Error::Outside {
            link: Some(link), ..
        }) => json!({ "hint": format!("the symlink {link} leads out of the root") }),
        Failure::Operation(error @ Error::QuotaExceeded { .. }) => quota_facts(error),
        Failure::Operation(Error::NoRoom { .. }) => json!({ "retry_after_ms": LATER_MS }),
        Failure::Operation(error) => named(parameter(error, tool)),
        Failure::BadArguments(BadArgument::NotOneOf {
            argument, valid, ..
        }) => json!({ "parameter": argument, "valid": valid }),
        Failure::BadArguments(bad) => named(bad.argument()),
        Failure::RateLimited { retry_after_ms } => json!({ "retry_after_ms": retry_after_ms }),
        _ => Value::Null,
    }
}

/// Names that look like the missing path, and how to create it.
fn not_found_facts(near: &[String], tool: &str) -> Value {
    let mut facts = Map::new();
    if !near.is_empty() {
        facts.insert("near".to_owned(), json!(near));
    }
    // These tools miss only directories on the way, never the path itself.
    let hint = match tool {
        "write" => Some("a directory on the way does not exist; make_dirs: true makes it"),
        "mkdir" => Some("a directory on the way does not exist; recursive: true makes it"),
        _ => None,
    };
    facts.extend(hint.map(|hint| ("hint".to_owned(), hint.into())));
    Value::Object(facts)
}

fn named(parameter: Option<&str>) -> Value {
    parameter.map_or(Value::Null, |parameter| json!({ "parameter": parameter }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ops::Wanted;

    fn worded(failure: Failure, tool: &'static str, path: &str) -> Worded {
        let place = NamedPlace {
            root: Some("home".to_owned()),
            path: Some(path.to_owned()),
        };
        let subject = CallSubject {
            tool,
            places: vec![place],
            ..CallSubject::default()
        };
        Files.word(&failure, &subject)
    }

    #[test]
    fn an_error_object_has_the_shape_of_the_specification() {
        let error = Error::NotFound {
            path: "a/b.txt".into(),
            wanted: Wanted::File,
            near: vec!["c.txt".into()],
            denied: false,
        };
        assert_eq!(
            worded(error.into(), "read", "a/b.txt").object,
            json!({ "error": {
                "code": "not_found",
                "message": "The specified path does not exist",
                "details": { "path": "a/b.txt", "operation": "read", "near": ["c.txt"] }
            } })
        );
    }

    #[test]
    fn the_filter_goes_by_the_name_clients_know() {
        let error = Error::InvalidPattern {
            role: PatternRole::SearchedFiles,
            reason: "unclosed".into(),
        };
        let worded = worded(error.into(), "search", ".");
        assert_eq!(worded.message, "Invalid parameter file_pattern: unclosed");
        assert_eq!(
            worded.object["error"]["details"]["parameter"],
            "file_pattern"
        );
    }

    #[test]
    fn outside_never_tells_where_it_leads() {
        let error = Error::Outside {
            path: "escape".into(),
            leads_to: "/etc/passwd".into(),
            link: None,
        };
        let worded = worded(error.into(), "read", "escape");
        assert!(!worded.object.to_string().contains("/etc"));
    }
}
