//! Every code and every message of the `memory` set. For codes of the specification, the message is the specification's
//! to the letter; further help is in other fields of the error object.

use ops::{Error, ErrorKind, PathFault, truncated};
use serde_json::{Map, Value, json};

use crate::arguments::shortened;
use crate::confirm::not_confirmed_words;
use crate::contract::{
    CHANGED_WORDS, CallSubject, Contract, Failure, FailureText, LEFT_RUNNING, NamedPlace,
    ResourceTools, STALE_WORDS, SUSPENDED, UNRECORDABLE, Worded, quota_words, root_gone,
    unfinished_words, unsynced_words,
};
use crate::history::{refusal_code, refusal_words};
use crate::plain_failures;

/// The longest path the system takes; a longer one is only repeated in part.
const PATH_MAX: usize = 4096;

/// How much of an overlong path an error repeats.
const BAD_PATH_SHOWN: usize = 256;

/// Every code of the set.
const CODES: [&str; 24] = [
    "file_not_found",
    "file_exists",
    "path_security",
    "invalid_path",
    "permission_denied",
    "disk_full",
    "invalid_encoding",
    "string_not_found",
    "string_not_unique",
    "invalid_line_number",
    "binary_file",
    "directory_not_empty",
    "is_a_directory",
    "not_a_directory",
    "not_a_file",
    "too_large",
    "version_conflict",
    "not_found",
    "gone",
    "invalid_arguments",
    "rate_limited",
    "timeout",
    "cancelled",
    "io_error",
];

pub(super) struct Memory;

impl Contract for Memory {
    fn name(&self) -> &'static str {
        "memory"
    }

    fn server_name(&self) -> &'static str {
        "file-storage-backend"
    }

    fn server_title(&self) -> &'static str {
        "File storage"
    }

    fn instructions(&self) -> &'static str {
        "A storage of files that lasts between sessions. Every path is relative to the base directory, and nothing outside it \
         can be reached. View \".\" to see what is stored."
    }

    fn changing(&self) -> Option<&'static str> {
        Some(
            "Make files with create; it never overwrites. Change a file with str_replace (the old text must occur exactly \
             once) or insert. rename never overwrites either; delete takes files and empty directories.",
        )
    }

    fn security(&self) -> &'static str {
        "Every path is relative to the base directory; absolute paths, paths that climb out and links that lead out fail with \
         path_security before anything is touched. Refusals are logged with what was tried."
    }

    fn resources(&self) -> Option<ResourceTools> {
        Some(ResourceTools {
            read: "view",
            list: "view",
            watch: "view",
            one_root: true,
        })
    }

    fn word(&self, failure: &Failure, subject: &CallSubject) -> Worded {
        let path = path(failure, subject);
        let code = code(failure, subject.tool, &path);
        let message = message(failure, subject.tool, code, &path);
        let mut object = Map::new();
        object.insert("code".to_owned(), code.into());
        object.insert("message".to_owned(), message.as_str().into());
        if matches!(failure, Failure::Operation(_)) && !path.is_empty() {
            object.insert("path".to_owned(), path.as_str().into());
        }
        if let Value::Object(help) = help(failure, &path) {
            object.extend(help);
        }
        Worded {
            code,
            message,
            object: Value::Object(object),
        }
    }

    fn failure_text(&self) -> FailureText {
        FailureText::Object
    }

    fn error_schema(&self) -> Value {
        json!({
            "properties": {
                "code": { "type": "string", "enum": CODES, "description": "Only when the call failed: what went wrong, for programs." },
                "message": { "type": "string", "description": "Only when the call failed: what went wrong." },
                "path": { "type": "string", "description": "Only when the call failed: the path it is about." },
                "hint": hint_schema(),
                "lines": list_schema("integer", "With string_not_unique: the lines where old_str begins, the first 20 of them."),
                "holds": list_schema("string", "With directory_not_empty: what the directory holds, hidden names too; the first ten names."),
                "near": list_schema("string", "With file_not_found: names in the same directory that look like the missing one."),
                "reason": { "type": "string", "description": "Only when the call failed: more about why." }
            },
            "required": ["code", "message"]
        })
    }
}

fn hint_schema() -> Value {
    json!({
        "type": "object",
        "description": "With string_not_found: the most similar line, if one is close.",
        "properties": {
            "line": { "type": "integer", "description": "The number of the line, from 1." },
            "text": { "type": "string", "description": "What stands in it." }
        },
        "required": ["line", "text"]
    })
}

fn list_schema(of: &str, description: &str) -> Value {
    json!({ "type": "array", "description": description, "items": { "type": of } })
}

/// The path a failure is about, as the client gave it; empty if the client gave none.
fn path(failure: &Failure, subject: &CallSubject) -> String {
    let given = |named: Option<&NamedPlace>| named.and_then(|place| place.path.clone());
    let place = match failure {
        Failure::Operation(error) if is_about_last(error, subject) => subject.places.last(),
        _ => subject.places.first(),
    };
    let path = given(place).unwrap_or_default();
    if path.len() < PATH_MAX {
        path
    } else {
        shortened(&path)
    }
}

/// Tells whether an error of a tool with two places is about the second.
fn is_about_last(error: &Error, subject: &CallSubject) -> bool {
    let is = |number: usize| {
        let given = subject
            .places
            .get(number)
            .and_then(|place| place.path.as_deref());
        let same = |given: &str, told: &str| {
            given.trim_end_matches('/') == told.trim_end_matches('/')
                || truncated(given, BAD_PATH_SHOWN) == told
        };
        given
            .zip(error.path())
            .is_some_and(|(given, told)| same(given, told))
    };
    // Only the source of a rename can be missing, and only at its destination can something be in the way.
    match error.kind() {
        ErrorKind::NotFound => false,
        ErrorKind::AlreadyExists => true,
        _ => !is(0) && is(1),
    }
}

fn code(failure: &Failure, tool: &str, path: &str) -> &'static str {
    match failure {
        Failure::Operation(Error::UndoRefused(refusal)) => refusal_code(refusal),
        Failure::Operation(error) | Failure::LeftRunning(error) => {
            kind_code(error.kind(), is_nul(error), tool, path)
        }
        Failure::ToolNotAllowed { .. } | Failure::ReadOnly { .. } => "permission_denied",
        Failure::NotConfirmed { .. } => "permission_denied",
        Failure::RateLimited { .. } | Failure::Suspended => "rate_limited",
        Failure::BadArguments(_) => "invalid_arguments",
        Failure::UnknownRoot { .. }
        | Failure::RootGone { .. }
        | Failure::Unrecordable
        | Failure::Guide(_)
        | Failure::Internal { .. } => "io_error",
    }
}

fn kind_code(kind: ErrorKind, is_nul: bool, tool: &str, path: &str) -> &'static str {
    match kind {
        ErrorKind::Outside => "path_security",
        ErrorKind::InvalidPath if is_nul => "path_security",
        ErrorKind::InvalidPath | ErrorKind::Loop => "invalid_path",
        ErrorKind::NotFound => "file_not_found",
        // A path below a file does not exist, and nothing can be created there either.
        ErrorKind::NotADirectory if matches!(tool, "create" | "rename") => "not_a_directory",
        ErrorKind::NotADirectory => "file_not_found",
        ErrorKind::AlreadyExists => "file_exists",
        // A directory is in the way of a new file, unless a directory was asked for.
        ErrorKind::IsADirectory if tool == "create" && !path.ends_with('/') => "file_exists",
        ErrorKind::IsADirectory => "is_a_directory",
        ErrorKind::NotAFile => "not_a_file",
        ErrorKind::DirectoryNotEmpty => "directory_not_empty",
        ErrorKind::TooLarge => "too_large",
        ErrorKind::NotText => "binary_file",
        ErrorKind::InvalidEncoding => "invalid_encoding",
        ErrorKind::StringNotFound => "string_not_found",
        ErrorKind::StringNotUnique => "string_not_unique",
        ErrorKind::LineOutOfRange => "invalid_line_number",
        ErrorKind::PermissionDenied | ErrorKind::RootProtected => "permission_denied",
        ErrorKind::DiskFull => "disk_full",
        ErrorKind::VersionConflict => "version_conflict",
        ErrorKind::Gone => "gone",
        ErrorKind::InvalidArgument
        | ErrorKind::InvalidPattern
        | ErrorKind::PatchFailed
        | ErrorKind::EditRefused
        | ErrorKind::IntoItself => "invalid_arguments",
        ErrorKind::NoRoom => "rate_limited",
        ErrorKind::Timeout => "timeout",
        ErrorKind::Cancelled => "cancelled",
        ErrorKind::Io => "io_error",
    }
}

/// A NUL byte is an attempt to deceive, not a slip.
fn is_nul(error: &Error) -> bool {
    matches!(
        error,
        Error::InvalidPath {
            fault: PathFault::Nul,
            ..
        }
    )
}

fn message(failure: &Failure, tool: &str, code: &str, path: &str) -> String {
    match failure {
        Failure::Operation(Error::Unfinished { done, cause }) => {
            let told = cause.path().unwrap_or(path);
            let why = specified(code, tool, told);
            let why = why.unwrap_or_else(|| operation_message(cause, tool, told));
            unfinished_words(done, &why)
        }
        Failure::Operation(Error::UndoRefused(refusal)) => refusal_words(refusal),
        Failure::NotConfirmed {
            planned,
            limits,
            why,
        } => not_confirmed_words(*planned, *limits, why, tool),
        _ => specified(code, tool, path).unwrap_or_else(|| unspecified(failure, tool, path)),
    }
}

/// The messages for which the specification has no words.
fn unspecified(failure: &Failure, tool: &str, path: &str) -> String {
    match failure {
        Failure::Operation(error) => operation_message(error, tool, path),
        Failure::RootGone { root } => root_gone(root),
        Failure::Unrecordable => UNRECORDABLE.to_owned(),
        Failure::LeftRunning(_) => LEFT_RUNNING.to_owned(),
        Failure::Suspended => SUSPENDED.to_owned(),
        Failure::RateLimited { retry_after_ms } => {
            format!("Too many calls; try again in {retry_after_ms} ms")
        }
        Failure::BadArguments(bad) => bad.to_string(),
        _ => format!("Internal error in {tool}; it was logged"),
    }
}

/// The messages of the specification that need no more than a path.
fn specified(code: &str, tool: &str, path: &str) -> Option<String> {
    Some(match code {
        "file_not_found" => format!("File not found: {path}"),
        "file_exists" => format!("File already exists: {path}"),
        "path_security" => "Path escapes base directory".to_owned(),
        "permission_denied" if tool == "rename" => "Permission denied".to_owned(),
        "permission_denied" => format!("Permission denied: {path}"),
        "disk_full" => "Insufficient disk space".to_owned(),
        "invalid_encoding" => "Content does not match specified encoding".to_owned(),
        "string_not_found" => "String not found in file".to_owned(),
        "binary_file" => "Cannot perform text operation on binary file".to_owned(),
        "directory_not_empty" => format!("Directory not empty: {path}"),
        _ => return None,
    })
}

fn operation_message(error: &Error, tool: &str, path: &str) -> String {
    match error {
        Error::StringNotUnique { count, .. } => {
            format!("String appears {count} times, must be unique")
        }
        Error::LineOutOfRange { line, max, .. } => {
            format!("Line number {line} out of range (1-{max})")
        }
        Error::EmptySearchString => "invalid old_str: must not be empty".to_owned(),
        Error::InvalidArgument { argument, reason } => format!("invalid {argument}: {reason}"),
        Error::TooLarge { size, limit, .. } => {
            let part = match tool {
                "view" => "; view a part of it with view_range",
                _ => "",
            };
            format!("File too large: {path} has {size} bytes, the limit is {limit}{part}")
        }
        other => place_message(other, path),
    }
}

/// What is wrong with the place that a path names.
fn place_message(error: &Error, path: &str) -> String {
    match error {
        Error::InvalidPath { .. } => {
            format!("Invalid path: {path}: a path has at most 4095 bytes, a name 255")
        }
        Error::Loop { .. } => format!("Too many symbolic links: {path}"),
        Error::NotADirectory { .. } => format!("Not a directory: {path}"),
        Error::IsADirectory { .. } => format!("Is a directory: {path}"),
        Error::NotAFile { kind, .. } => format!("Not a regular file: {path} is a {kind}"),
        Error::Unfolds { most, .. } => {
            format!("File too large: {path} decompresses to more than {most} bytes")
        }
        Error::IntoItself { .. } => format!("Cannot move a directory into itself: {path}"),
        other => circumstance_message(other, path),
    }
}

/// Failures that are not the call's fault.
fn circumstance_message(error: &Error, path: &str) -> String {
    match error {
        Error::Unsynced { reason, .. } => {
            format!("Not synced: {path}: {}", unsynced_words(reason))
        }
        Error::Changed { .. } => format!("Changed meanwhile: {path}: {CHANGED_WORDS}"),
        Error::Stale { .. } => format!("Changed meanwhile: {path}: {STALE_WORDS}"),
        Error::NoRoom { .. } => plain_failures::no_room(),
        Error::Timeout => plain_failures::TIMED_OUT.to_owned(),
        Error::Cancelled => plain_failures::CANCELLED.to_owned(),
        Error::Io {
            operation, reason, ..
        } => format!("{operation} failed on {path}: {reason}"),
        // The others have the specification's message, or cannot occur in this set.
        other => other.to_string(),
    }
}

/// Help for the agent on how to continue.
fn help(failure: &Failure, path: &str) -> Value {
    match failure {
        Failure::Operation(error) => operation_help(error, path),
        Failure::ToolNotAllowed { .. } => {
            json!({ "reason": "the operator does not allow this tool" })
        }
        Failure::ReadOnly { .. } => json!({ "reason": "the storage is read-only" }),
        _ => Value::Null,
    }
}

fn operation_help(error: &Error, path: &str) -> Value {
    match error {
        Error::StringNotFound {
            nearest: Some((line, text)),
            ..
        } => json!({ "hint": { "line": line, "text": text } }),
        Error::StringNotUnique { lines, .. } => json!({ "lines": lines }),
        Error::NotFound { near, .. } if !near.is_empty() => json!({ "near": near }),
        Error::DirectoryNotEmpty { names, .. } if !names.is_empty() => {
            json!({ "holds": names })
        }
        other => reason(other, path).map_or(Value::Null, |reason| json!({ "reason": reason })),
    }
}

/// More about why an operation failed.
fn reason(error: &Error, path: &str) -> Option<String> {
    match error {
        Error::InvalidEncoding { reason } => Some(reason.clone()),
        Error::QuotaExceeded { .. } => Some(quota_words(error)),
        Error::RootProtected => {
            Some("the base directory itself cannot be removed or moved".to_owned())
        }
        Error::InvalidPath { .. } if is_nul(error) => {
            Some("the path contains a NUL byte".to_owned())
        }
        Error::Outside { .. } if path.starts_with('/') => {
            Some("the path is absolute; give it relative to the base directory".to_owned())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ops::Wanted;

    fn worded(tool: &'static str, paths: &[&str], failure: Failure) -> Value {
        let place = |path: &&str| NamedPlace {
            root: Some("notes".to_owned()),
            path: Some((*path).to_owned()),
        };
        let subject = CallSubject {
            tool,
            places: paths.iter().map(place).collect(),
            ..CallSubject::default()
        };
        let worded = Memory.word(&failure, &subject);
        assert_eq!(worded.object["code"], worded.code);
        assert!(CODES.contains(&worded.code), "{}", worded.code);
        assert_eq!(worded.object["message"], worded.message.as_str());
        worded.object
    }

    #[test]
    fn what_needs_a_failing_host_has_the_words_of_the_specification() {
        let path = || "a.md".to_owned();
        let full = Failure::Operation(Error::DiskFull { path: path() });
        assert_eq!(
            worded("create", &["./a.md"], full),
            json!({ "code": "disk_full", "message": "Insufficient disk space", "path": "./a.md" })
        );
        let denied = || Failure::Operation(Error::PermissionDenied { path: path() });
        assert_eq!(
            worded("view", &["a.md"], denied()),
            json!({ "code": "permission_denied", "message": "Permission denied: a.md", "path": "a.md" })
        );
        assert_eq!(
            worded("rename", &["b.md", "a.md"], denied()),
            json!({ "code": "permission_denied", "message": "Permission denied", "path": "a.md" })
        );
        for (error, code) in [(Error::Timeout, "timeout"), (Error::Cancelled, "cancelled")] {
            let object = worded("view", &["a.md"], Failure::Operation(error));
            assert_eq!(object["code"], code);
        }
        let full = Failure::Operation(Error::NoRoom { bytes: 1 });
        let full = worded("view", &["a.md"], full);
        let message = full["message"].as_str().unwrap();
        assert!(message.ends_with("try again in 1000 ms"), "{full}");
        let often = Failure::RateLimited { retry_after_ms: 2 };
        assert_eq!(
            worded("view", &["a.md"], often),
            json!({ "code": "rate_limited", "message": "Too many calls; try again in 2 ms" })
        );
    }

    #[test]
    fn a_rename_tells_which_of_its_paths_it_is_about() {
        let missing = Error::NotFound {
            path: "a".to_owned(),
            wanted: Wanted::Source,
            near: vec!["an".to_owned()],
            denied: false,
        };
        assert_eq!(
            worded("rename", &["./a", "b"], Failure::Operation(missing)),
            json!({ "code": "file_not_found", "message": "File not found: ./a", "path": "./a", "near": ["an"] })
        );
        let taken = Error::AlreadyExists {
            path: "b".to_owned(),
            kind: ops::FileKind::File,
        };
        assert_eq!(
            worded("rename", &["a", "./b"], Failure::Operation(taken)),
            json!({ "code": "file_exists", "message": "File already exists: ./b", "path": "./b" })
        );
    }

    #[test]
    fn outside_never_tells_where_it_leads() {
        let outside = Error::Outside {
            path: "link".to_owned(),
            leads_to: "/etc/passwd".to_owned(),
            link: None,
        };
        assert_eq!(
            worded("view", &["link"], Failure::Operation(outside)),
            json!({ "code": "path_security", "message": "Path escapes base directory", "path": "link" })
        );
    }

    /// The kind that follows this one; the compiler checks that none is missing.
    fn after(kind: ErrorKind) -> Option<ErrorKind> {
        use ErrorKind as K;
        Some(match kind {
            K::InvalidPath => K::Outside,
            K::Outside => K::Loop,
            K::Loop => K::NotFound,
            K::NotFound => K::AlreadyExists,
            K::AlreadyExists => K::NotADirectory,
            K::NotADirectory => K::IsADirectory,
            K::IsADirectory => K::NotAFile,
            K::NotAFile => K::DirectoryNotEmpty,
            K::DirectoryNotEmpty => K::TooLarge,
            K::TooLarge => K::PatchFailed,
            K::PatchFailed => K::InvalidPattern,
            K::InvalidPattern => K::InvalidArgument,
            K::InvalidArgument => K::NotText,
            K::NotText => K::EditRefused,
            K::EditRefused => K::InvalidEncoding,
            K::InvalidEncoding => K::StringNotFound,
            K::StringNotFound => K::StringNotUnique,
            K::StringNotUnique => K::LineOutOfRange,
            K::LineOutOfRange => K::PermissionDenied,
            K::PermissionDenied => K::DiskFull,
            K::DiskFull => K::RootProtected,
            K::RootProtected => K::IntoItself,
            K::IntoItself => K::VersionConflict,
            K::VersionConflict => K::Gone,
            K::Gone => K::NoRoom,
            K::NoRoom => K::Timeout,
            K::Timeout => K::Cancelled,
            K::Cancelled => K::Io,
            K::Io => return None,
        })
    }

    #[test]
    fn every_code_that_a_failure_can_have_is_listed() {
        for kind in std::iter::successors(Some(ErrorKind::InvalidPath), |kind| after(*kind)) {
            for tool in ["view", "create", "rename", "undo"] {
                for (is_nul, path) in [(false, "a"), (true, "a"), (false, "a/")] {
                    let code = kind_code(kind, is_nul, tool, path);
                    assert!(CODES.contains(&code), "{kind:?}: {code}");
                }
            }
        }
        for code in crate::history::REFUSAL_CODES {
            assert!(CODES.contains(&code), "{code}");
        }
    }

    #[test]
    fn an_absurd_path_is_repeated_in_part() {
        let long = "x".repeat(1 << 20);
        let object = worded("view", &[&long], Failure::Operation(Error::Timeout));
        assert!(object.to_string().len() < 500);
    }
}
