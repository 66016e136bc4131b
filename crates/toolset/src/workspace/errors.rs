//! Every code and every message of the `workspace` set. The specification's own words come first in a message;
//! root and path follow if it leaves them out.

use ops::text::near_names::other_form;
use ops::{Error, ErrorKind, FileKind, PatternRole, RequestPart, Wanted};
use serde_json::Value;

use super::edit_words;
use super::facts::details;
use crate::arguments::{BadArgument, each, roots_there_are, shortened};
use crate::confirm::not_confirmed_words;
use crate::contract::{
    CHANGED_WORDS, CallSubject, Contract, Failure, FailureText, LEFT_RUNNING, NamedPlace,
    ResourceTools, STALE_WORDS, SUSPENDED, UNRECORDABLE, Worded, error_object_schema, path_fault,
    quota_words, root_gone, unfinished_words, unsynced_words,
};
use crate::history::{refusal_code, refusal_words};
use crate::text_form::human_size;

pub(super) struct Workspace;

impl Contract for Workspace {
    fn name(&self) -> &'static str {
        "workspace"
    }

    fn server_name(&self) -> &'static str {
        "mcp-filesystem"
    }

    fn server_title(&self) -> &'static str {
        "Filesystem workspace"
    }

    fn instructions(&self) -> &'static str {
        "Tools to work on files in named roots. A root is a directory you may use; every path is relative to its \
         root, and nothing outside it can be reached. list_roots tells the roots and what is allowed in each; if there is \
         only one, root may be left out. To find files use glob, to find text use grep, to see one directory use \
         list_folder. Read large files in pieces with offset_lines and limit_lines."
    }

    fn changing(&self) -> Option<&'static str> {
        Some(
            "Change part of a file with edit_file (patch_file takes a diff), all of it with write_file.",
        )
    }

    fn security(&self) -> &'static str {
        "Every path is looked up inside its root by descriptor: neither `..` nor links nor races lead out of it, and nothing \
         outside is touched or revealed. The operator's allowlist and read-only mark are checked before any path. Refusals are \
         logged with what was tried."
    }

    fn resources(&self) -> Option<ResourceTools> {
        Some(ResourceTools {
            read: "read_file",
            list: "list_folder",
            watch: "watch",
            one_root: false,
        })
    }

    fn word(&self, failure: &Failure, subject: &CallSubject) -> Worded {
        let place = subject.place_of(failure);
        let code = code(failure, subject.tool);
        let message = located(message(failure, subject), failure, &place);
        let details = details(failure, subject, &place);
        Worded::with_details(code, message, details)
    }

    fn failure_text(&self) -> FailureText {
        FailureText::Message
    }

    fn error_schema(&self) -> Value {
        error_object_schema()
    }
}

fn code(failure: &Failure, tool: &str) -> &'static str {
    match failure {
        Failure::Operation(Error::UndoRefused(refusal)) => refusal_code(refusal),
        Failure::Operation(error) | Failure::LeftRunning(error) => {
            operation_code(error.kind(), tool)
        }
        Failure::UnknownRoot { .. } => "unknown_root",
        Failure::ToolNotAllowed { .. } | Failure::ReadOnly { .. } => "tool_not_allowed",
        Failure::NotConfirmed { .. } => "permission_denied",
        Failure::RateLimited { .. } | Failure::Suspended => "rate_limited",
        Failure::BadArguments(_) => "invalid_arguments",
        Failure::RootGone { .. }
        | Failure::Unrecordable
        | Failure::Guide(_)
        | Failure::Internal { .. } => "io_error",
    }
}

fn operation_code(kind: ErrorKind, tool: &str) -> &'static str {
    match kind {
        ErrorKind::InvalidPath | ErrorKind::Loop => "invalid_path",
        ErrorKind::Outside => "path_outside_root",
        ErrorKind::NotFound => "not_found",
        ErrorKind::AlreadyExists | ErrorKind::DirectoryNotEmpty => "already_exists",
        ErrorKind::NotADirectory => "not_a_directory",
        ErrorKind::IsADirectory => "is_a_directory",
        ErrorKind::NotAFile => "not_a_file",
        ErrorKind::TooLarge => "too_large",
        ErrorKind::NotText if tool == "edit_file" => "edit_failed",
        ErrorKind::PatchFailed | ErrorKind::NotText => "patch_failed",
        ErrorKind::EditRefused => "edit_failed",
        ErrorKind::InvalidPattern => "invalid_pattern",
        ErrorKind::InvalidArgument
        | ErrorKind::InvalidEncoding
        | ErrorKind::StringNotFound
        | ErrorKind::StringNotUnique
        | ErrorKind::LineOutOfRange
        | ErrorKind::IntoItself => "invalid_arguments",
        ErrorKind::PermissionDenied => "permission_denied",
        ErrorKind::DiskFull => "disk_full",
        ErrorKind::RootProtected => "root_protected",
        ErrorKind::VersionConflict => "version_conflict",
        ErrorKind::Gone => "gone",
        ErrorKind::NoRoom => "rate_limited",
        ErrorKind::Timeout => "timeout",
        ErrorKind::Cancelled => "cancelled",
        ErrorKind::Io => "io_error",
    }
}

fn message(failure: &Failure, subject: &CallSubject) -> String {
    let tool = subject.tool;
    match failure {
        Failure::Operation(error) => operation_message(error, tool),
        Failure::UnknownRoot {
            root,
            nearest,
            known,
            ..
        } => unknown_root(root, nearest.as_deref(), known),
        Failure::ToolNotAllowed { root } => format!("tool {tool} not allowed on root {root}"),
        Failure::ReadOnly { root } => {
            format!("tool {tool} not allowed on root {root}: the root is read-only")
        }
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
            format!("too many calls; try again in {retry_after_ms} ms")
        }
        Failure::BadArguments(bad) => argument_message(bad),
        Failure::Guide(_) | Failure::Internal { .. } => {
            format!("internal error in {tool}; it was logged")
        }
    }
}

fn unknown_root(root: &str, nearest: Option<&str>, known: &[String]) -> String {
    let root = shortened(root);
    match nearest {
        Some(nearest) => format!("unknown root: {root}; did you mean {nearest}?"),
        None => format!("unknown root: {root}; {}", roots_there_are(known)),
    }
}

fn argument_message(bad: &BadArgument) -> String {
    match (bad, bad.argument()) {
        (BadArgument::NotOneOf { got, valid, .. }, Some("algorithm")) => {
            let valid = valid.join(", ");
            format!("unsupported hash algorithm: {got}; supported: {valid}")
        }
        (BadArgument::NotOneOf { got, valid, .. }, Some("mode")) => {
            format!("invalid mode: {got}; valid modes: {}", valid.join(", "))
        }
        (BadArgument::Several { first, more }, _) => each(first, *more, argument_message),
        (other, _) => other.to_string(),
    }
}

/// The message of an operation's error. Every error belongs to one of the groups, so that a new one does not compile
/// without a message. If the group has no words for an error, its own text is used.
pub(super) fn operation_message(error: &Error, tool: &str) -> String {
    match error {
        Error::InvalidPath { .. }
        | Error::Outside { .. }
        | Error::Loop { .. }
        | Error::NotFound { .. }
        | Error::Dangling { .. }
        | Error::AlreadyExists { .. }
        | Error::Irreplaceable { .. }
        | Error::NotADirectory { .. }
        | Error::IsADirectory { .. }
        | Error::NotAFile { .. }
        | Error::DirectoryNotEmpty { .. }
        | Error::RootProtected
        | Error::IntoItself { .. } => place_message(error, tool),
        Error::PatchMalformed { .. }
        | Error::PatchMismatch { .. }
        | Error::PatchNotUnique { .. }
        | Error::PatchFiles { .. }
        | Error::PatchTooManyFiles { .. }
        | Error::PatchCreates { .. } => patch_message(error),
        Error::TooLarge { .. }
        | Error::Unfolds { .. }
        | Error::NotText { .. }
        | Error::InvalidEncoding { .. }
        | Error::InvalidPattern { .. }
        | Error::InvalidArgument { .. }
        | Error::InvalidPart { .. }
        | Error::EmptySearchString
        | Error::EditRefused { .. }
        | Error::StringNotFound { .. }
        | Error::StringNotUnique { .. }
        | Error::LineOutOfRange { .. } => content_message(error, tool),
        Error::PermissionDenied { .. }
        | Error::NotGranted { .. }
        | Error::DiskFull { .. }
        | Error::QuotaExceeded { .. }
        | Error::Unsynced { .. }
        | Error::VersionConflict { .. }
        | Error::UndoRefused(_)
        | Error::Changed { .. }
        | Error::Stale { .. }
        | Error::Unfinished { .. }
        | Error::Unconfirmed { .. }
        | Error::NoRoom { .. }
        | Error::Timeout
        | Error::Cancelled
        | Error::Io { .. } => circumstance_message(error, tool),
    }
}

/// What is wrong with the place that a path names.
fn place_message(error: &Error, tool: &str) -> String {
    match error {
        Error::InvalidPath { path, fault } => {
            let fault = path_fault(*fault);
            format!("invalid path: \"{}\": {fault}", shortened(path))
        }
        Error::Outside { link, .. } => outside(link.as_deref()),
        Error::Loop { path } => format!("too many symbolic links on the way to {path}"),
        Error::NotFound {
            path, wanted, near, ..
        } => not_found(path, *wanted, near),
        Error::Dangling {
            path,
            wanted,
            link,
            target,
        } => format!(
            "{}; {} is a symlink to {target}, where nothing is",
            not_found(path, *wanted, &[]),
            if link == path { "it" } else { link }
        ),
        Error::AlreadyExists { path, kind } | Error::Irreplaceable { path, kind, .. } => {
            already_exists(path, *kind, tool)
        }
        Error::NotADirectory { path } => not_a_directory(path, tool),
        Error::IsADirectory { path } => is_a_directory(path, tool),
        Error::NotAFile { path, kind } => format!("not a regular file: {path} is a {kind}"),
        Error::DirectoryNotEmpty { path, .. } => format!("directory is not empty: {path}"),
        Error::RootProtected => root_protected(tool),
        Error::IntoItself { path } => format!("cannot {tool} onto or into itself: {path}"),
        other => other.to_string(),
    }
}

/// Why a patch does not fit.
fn patch_message(error: &Error) -> String {
    let why = match error {
        Error::PatchMalformed { line, reason } => {
            format!("malformed at line {line} of the patch: {reason}")
        }
        Error::PatchMismatch {
            hunk,
            line,
            expected,
            found,
            ..
        } => mismatch(*hunk, *line, expected, found.as_deref()),
        Error::PatchNotUnique {
            hunk, count, lines, ..
        } => not_unique(*hunk, *count, lines),
        other => patched_files(other),
    };
    format!("patch failed: {why}")
}

fn mismatch(hunk: usize, line: usize, expected: &str, found: Option<&str>) -> String {
    let expected = quoted(expected);
    let found = found.map_or("the end of the file".to_owned(), quoted);
    format!("hunk {hunk} does not match at line {line}: expected {expected}, found {found}")
}

fn not_unique(hunk: usize, count: u64, lines: &[u64]) -> String {
    let places = edit_words::some_lines(lines, count);
    format!(
        "hunk {hunk} fits {count} places, at {places}; add context lines around it until it fits one; nothing was changed"
    )
}

/// What is wrong with the files that a patch is for.
fn patched_files(error: &Error) -> String {
    match error {
        Error::PatchFiles { files: 0 } => {
            "it names no file; give path, or headers `--- a/name` and `+++ b/name`".to_owned()
        }
        Error::PatchFiles { files } => format!(
            "it is for {files} files; leave out path to patch all of them, or send the part of one file"
        ),
        Error::PatchTooManyFiles { files, most } => format!(
            "it is for {files} files, and one call may patch {most}; split it into several calls; nothing was \
             changed"
        ),
        Error::PatchCreates { path } => format!(
            "file already exists: {path}; the patch creates it (--- /dev/null): write the header of an existing file and \
             hunks with its lines"
        ),
        other => other.to_string(),
    }
}

/// What is wrong with a file's content, or with what the call assumed about it.
fn content_message(error: &Error, tool: &str) -> String {
    match error {
        Error::TooLarge { size, limit, .. } => too_large(*size, *limit),
        Error::Unfolds { path, most } => format!(
            "too large to decompress: {path} has more than {} of content; search it with grep and search_compressed: true",
            human_size(*most, "")
        ),
        Error::NotText { path, seems } => not_text(path, seems, tool),
        Error::InvalidEncoding { reason } => format!("invalid content: {reason}"),
        Error::InvalidPattern { role, reason } => match pattern_argument(*role) {
            "pattern" => format!("invalid pattern: {reason}"),
            argument => format!("invalid pattern in {argument}: {reason}"),
        },
        Error::InvalidArgument { argument, reason } => format!("invalid {argument}: {reason}"),
        Error::InvalidPart { part, reason } => format!("invalid {}: {reason}", argument_of(*part)),
        other => edit_message(other),
    }
}

/// What is wrong with an edit.
fn edit_message(error: &Error) -> String {
    match error {
        Error::EmptySearchString => "the string to look for is empty".to_owned(),
        Error::EditRefused {
            path,
            edit,
            edits,
            fault,
        } => edit_words::refusal(path, (*edit, *edits), fault),
        Error::StringNotFound { path, .. } => format!("string not found in {path}"),
        Error::StringNotUnique { path, count, .. } => {
            format!("string found {count} times in {path}")
        }
        Error::LineOutOfRange { line, max, .. } => {
            format!("line {line} is out of range 1 to {max}")
        }
        other => other.to_string(),
    }
}

/// Failures caused by the system, a limit or the client itself.
fn circumstance_message(error: &Error, tool: &str) -> String {
    match error {
        Error::PermissionDenied { path } => format!("permission denied: {path}"),
        Error::NotGranted { path, right } => not_granted(path, right.name()),
        Error::DiskFull { path } => format!("no space left on the device while writing {path}"),
        Error::QuotaExceeded { path, .. } => {
            let quota = quota_words(error);
            format!("quota exceeded while writing {path}: {quota}")
        }
        Error::NoRoom { .. } => NO_ROOM.to_owned(),
        Error::Timeout => "the call took longer than its time limit and was stopped".to_owned(),
        Error::Cancelled => "the call was cancelled".to_owned(),
        Error::Io {
            operation,
            path,
            reason,
        } => format!("{operation} failed on {path}: {reason}"),
        other => change_message(other, tool),
    }
}

const NO_ROOM: &str = "replies that were not read yet take too much memory; read them, or ask for less at once, and try again";

/// Why a change was refused, or how it ended.
fn change_message(error: &Error, tool: &str) -> String {
    match error {
        Error::Unsynced { path, reason } => {
            format!("not synced: {path}: {}", unsynced_words(reason))
        }
        Error::VersionConflict {
            path,
            expected,
            present,
            by,
        } => version_conflict(path, expected, present.as_deref(), by.as_ref()),
        Error::UndoRefused(refusal) => refusal_words(refusal),
        Error::Changed { path } => format!("changed meanwhile: {path}: {CHANGED_WORDS}"),
        Error::Stale { path } => format!("changed meanwhile: {path}: {STALE_WORDS}"),
        Error::Unfinished { done, cause } => {
            unfinished_words(done, &operation_message(cause, tool))
        }
        other => other.to_string(),
    }
}

fn not_granted(path: &str, right: &str) -> String {
    format!("permission denied: this client may not {right} in this root: {path}")
}

fn too_large(size: u64, limit: u64) -> String {
    let (mut shown, mut most) = (human_size(size, ""), human_size(limit, ""));
    if shown == most {
        (shown, most) = (format!("{size}B"), format!("{limit}B"));
    }
    format!(
        "file too large for full read (size: {shown}, limit: {most}); use offset/limit parameters"
    )
}

fn not_text(path: &str, seems: &str, tool: &str) -> String {
    let failed = if tool == "edit_file" {
        "edit failed"
    } else {
        "patch failed"
    };
    format!(
        "{failed}: {path} is not UTF-8 text but seems to be {seems}; {tool} changes UTF-8 files only"
    )
}

fn version_conflict(
    path: &str,
    expected: &str,
    present: Option<&str>,
    by: Option<&(String, String)>,
) -> String {
    let by = by.map_or_else(String::new, |(client, change)| {
        format!(" (last changed here by {client}: {change})")
    });
    let now = present.map_or_else(
        || "is gone".to_owned(),
        |present| format!("is at version {present} now"),
    );
    format!(
        "version conflict: {path}: it was {expected} and {now}{by}; nothing was changed: look at it again before you change it"
    )
}

/// A line as a message shows it.
fn quoted(line: &str) -> String {
    format!("\"{}\"", shortened(line))
}

fn not_found(path: &str, wanted: Wanted, near: &[String]) -> String {
    let what = match wanted {
        Wanted::File => "file not found",
        Wanted::Directory => "directory not found",
        Wanted::Anything => "not found",
        Wanted::Source => "source file not found",
    };
    let told = near.iter().map(|near| match other_form(path, near) {
        Some(difference) => format!("{near} ({difference})"),
        None => near.clone(),
    });
    match near {
        [] => format!("{what}: {path}"),
        _ => {
            let near = told.collect::<Vec<_>>().join(" or ");
            format!("{what}: {path}; did you mean {near}?")
        }
    }
}

fn outside(link: Option<&str>) -> String {
    let refused = "path resolves outside root boundary";
    match link {
        Some(link) => format!("{refused}: the symlink {link} leads out of the root"),
        None => refused.to_owned(),
    }
}

/// The argument through which this set takes a part of a request.
pub(super) fn argument_of(part: RequestPart) -> &'static str {
    match part {
        RequestPart::Version => "if_version",
        RequestPart::Files => "files",
        RequestPart::Edits => "edits",
        RequestPart::Patch => "patch",
    }
}

/// The argument through which this set takes a pattern.
pub(super) fn pattern_argument(role: PatternRole) -> &'static str {
    match role {
        PatternRole::Lines | PatternRole::PathGlob | PatternRole::ListedEntries => "pattern",
        PatternRole::PathRegex => "regex",
        PatternRole::SearchedFiles => "glob_filter",
    }
}

fn already_exists(path: &str, kind: FileKind, tool: &str) -> String {
    match (tool, kind) {
        ("write_file", _) => format!("file already exists: {path}; use overwrite mode to replace"),
        ("create_folder", kind) => format!("path exists as a {kind}: {path}"),
        (_, FileKind::Directory) => format!("directory already exists: {path}"),
        _ => format!("file already exists: {path}"),
    }
}

/// Recommends `remove_file` only with a path that it accepts: without a slash at the end.
fn not_a_directory(path: &str, tool: &str) -> String {
    let slashed = path.ends_with('/') || path.ends_with("/.");
    match tool {
        "remove_folder" if slashed => format!(
            "path is a file, not a directory: {path}; use remove_file without the slash at the end instead"
        ),
        "remove_folder" => {
            format!("path is a file, not a directory: {path}; use remove_file instead")
        }
        _ if slashed => {
            format!(
                "path is not a directory: {path}; leave out the slash at the end if it is a file"
            )
        }
        _ => format!("path is not a directory: {path}"),
    }
}

fn is_a_directory(path: &str, tool: &str) -> String {
    let path = if path.is_empty() {
        "(the root itself)"
    } else {
        path
    };
    match tool {
        "write_file" | "patch_file" | "edit_file" if path.ends_with('/') => {
            format!("path names a directory: {path}; leave out the slash at the end to name a file")
        }
        "hash_file" => format!("cannot hash a directory: {path}"),
        "remove_file" => format!("path is a directory: {path}; use remove_folder instead"),
        "read_file" => format!("path is a directory: {path}; use list_folder instead"),
        _ => format!("path is a directory: {path}"),
    }
}

fn root_protected(tool: &str) -> String {
    match tool {
        "move" => "cannot move root directory".to_owned(),
        "copy" => "cannot replace root directory".to_owned(),
        _ => "cannot remove root directory".to_owned(),
    }
}

/// Adds root and path if the message of a failed operation does not have them.
fn located(message: String, failure: &Failure, place: &NamedPlace) -> String {
    match failure {
        // A refused edit or undo names its place itself.
        Failure::Operation(Error::EditRefused { .. } | Error::UndoRefused(_)) => return message,
        Failure::Operation(_) => {}
        _ => return message,
    }
    let path = place.path.as_deref();
    let path = path.filter(|path| !path.is_empty() && !names(&message, path));
    let root = place.root.as_deref().map(|root| ("root", root));
    let parts = root.into_iter().chain(path.map(|path| ("path", path)));
    let parts = parts.map(|(what, name)| format!("{what}: {}", shortened(name)));
    let parts: Vec<String> = parts.collect();
    match parts.as_slice() {
        [] => message,
        parts => format!("{message} ({})", parts.join(", ")),
    }
}

/// Tells whether a message names this path, after a colon and as a word of its own.
fn names(message: &str, path: &str) -> bool {
    let named = format!(": {path}");
    message.match_indices(&named).any(|(start, found)| {
        let after = message
            .get(start + found.len()..)
            .and_then(|text| text.chars().next());
        after.is_none_or(|c| !c.is_alphanumeric())
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn subject(tool: &'static str, places: &[(&str, &str)]) -> CallSubject {
        let place = |(root, path): &(&str, &str)| NamedPlace {
            root: Some((*root).to_owned()),
            path: Some((*path).to_owned()),
        };
        CallSubject {
            tool,
            places: places.iter().map(place).collect(),
            ..CallSubject::default()
        }
    }

    #[test]
    fn an_error_object_has_code_message_and_details() {
        let error = Error::NotFound {
            path: "src/main.go".into(),
            wanted: Wanted::File,
            near: vec!["src/main.rs".into()],
            denied: false,
        };
        let worded = Workspace.word(
            &Failure::Operation(error),
            &subject("read_file", &[("ws", "src/main.go")]),
        );
        assert_eq!(
            worded.object,
            json!({ "error": {
                "code": "not_found",
                "message": "file not found: src/main.go; did you mean src/main.rs? (root: ws)",
                "details": {
                    "tool": "read_file", "root": "ws", "path": "src/main.go", "near": ["src/main.rs"]
                }
            } })
        );
    }

    #[test]
    fn a_failure_of_the_second_root_names_the_second_root() {
        let copy = subject("copy", &[("a", "one"), ("b", "two")]);
        let denied = Workspace.word(&Failure::ToolNotAllowed { root: "b".into() }, &copy);
        assert_eq!(denied.message, "tool copy not allowed on root b");
        assert_eq!(denied.object["error"]["details"]["path"], "two");
        let full = Failure::Operation(Error::DiskFull { path: "two".into() });
        assert_eq!(
            Workspace.word(&full, &copy).object["error"]["details"]["root"],
            "b"
        );
    }

    #[test]
    fn outside_never_tells_where_it_leads() {
        let error = Error::Outside {
            path: "escape/passwd".into(),
            leads_to: "/etc/passwd".into(),
            link: Some("escape".into()),
        };
        let worded = Workspace.word(
            &Failure::Operation(error),
            &subject("read_file", &[("ws", "escape/passwd")]),
        );
        assert_eq!(
            worded.message,
            "path resolves outside root boundary: the symlink escape leads out of the root (root: ws, path: escape/passwd)"
        );
        assert!(!worded.object.to_string().contains("/etc"));
    }
}
