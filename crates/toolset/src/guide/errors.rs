//! Every failure of the `guide` set in words: what went wrong, its type, and what the agent should do next.

use std::borrow::Cow;

use guide::{
    ChunkFault, ENTRIES_MAX, Error, ErrorType, FormatFault, LEVELS_MAX, Lack, Mute, PolicyViolation,
};
use serde_json::{Value, json};

use super::prompts;
use super::request_directory::RequestDirectory;
use super::tool::GuideTool;
use crate::admission::LATER_MS;
use crate::confirm::not_confirmed_words;
use crate::contract::{
    CallSubject, Contract, Failure, FailureText, LEFT_RUNNING, SUSPENDED, UNRECORDABLE, Worded,
    root_gone,
};

pub(super) struct Guide;

/// The form that a path must have.
const RULES: &str = "a path is 1 to 4095 bytes long, its names at most 255, without control characters; it is relative to the \
    project root, with / between names";

/// How many directories a refusal names.
const NAMED_MAX: usize = 20;

impl Contract for Guide {
    fn name(&self) -> &'static str {
        "guide"
    }

    fn server_name(&self) -> &'static str {
        "mcp-guide"
    }

    fn server_title(&self) -> &'static str {
        "Project guide"
    }

    fn instructions(&self) -> &'static str {
        "The files here are yours: this server never opens them. Hand content over with guide_cache_file (one file, or several \
         at once) or guide_read_file (large files in chunks), and directories with guide_list_directory. guide_request_file and \
         guide_request_directory give back what was handed over, or ask you for it by sampling. Paths are relative to the \
         project root and have to lie in the allowed directories. Every failure has an instruction that says what to do next."
    }

    fn security(&self) -> &'static str {
        "The server never opens the agent's files. Every path of every call is normalised and must be in \
         one of the allowed directories (`guide.allowed_paths`); `..` above the project root, links that leave it, lead to a \
         directory that is not allowed, or loop, and NUL bytes are refused before anything else happens. A batch or a listing \
         with one such path is refused whole. Refusals are logged with the attempted path, its kind and how often this client \
         has tried such things. What a client hands over is its own: another client (another token, else another session, \
         else another address) neither gets it nor can replace it, unless the operator sets `guide.cache: shared`."
    }

    fn usual_calls(&self) -> Option<u64> {
        Some(100)
    }

    fn word(&self, failure: &Failure, subject: &CallSubject) -> Worded {
        let code = code(failure);
        let message = message(failure, subject.tool);
        let object = json!({
            "success": false,
            "error": message,
            "error_type": code,
            "instruction": instruction(failure, subject.tool),
        });
        Worded {
            code,
            message,
            object,
        }
    }

    fn failure_text(&self) -> FailureText {
        FailureText::Object
    }

    fn error_schema(&self) -> Value {
        json!({
            "properties": {
                "success": { "type": "boolean" },
                "error": { "type": "string", "description": "Only when the call failed: what went wrong." },
                "error_type": {
                    "type": "string",
                    "enum": ["security", "validation", "not_found", "permission", "timeout", "unsupported", "system"],
                    "description": "Only when the call failed: the kind of failure."
                },
                "instruction": { "type": "string", "description": "Only when the call failed: what to do next." }
            },
            "required": ["success", "error", "error_type", "instruction"]
        })
    }
}

fn code(failure: &Failure) -> &'static str {
    match failure {
        Failure::Guide(error) => kind(error.kind()),
        Failure::BadArguments(_) => "validation",
        Failure::Operation(error) | Failure::LeftRunning(error) => match error.kind() {
            ops::ErrorKind::InvalidPattern | ops::ErrorKind::InvalidArgument => "validation",
            ops::ErrorKind::Timeout => "timeout",
            _ => "system",
        },
        Failure::UnknownRoot { .. } | Failure::ToolNotAllowed { .. } | Failure::ReadOnly { .. } => {
            "permission"
        }
        Failure::NotConfirmed { .. } => "permission",
        Failure::RateLimited { .. }
        | Failure::Suspended
        | Failure::RootGone { .. }
        | Failure::Unrecordable
        | Failure::Internal { .. } => "system",
    }
}

fn kind(kind: ErrorType) -> &'static str {
    match kind {
        ErrorType::Security => "security",
        ErrorType::Validation => "validation",
        ErrorType::NotFound => "not_found",
        ErrorType::Permission => "permission",
        ErrorType::Timeout => "timeout",
        ErrorType::Unsupported => "unsupported",
        ErrorType::System => "system",
    }
}

fn message(failure: &Failure, tool: &str) -> String {
    match failure {
        Failure::Guide(error) => error_message(error, tool),
        Failure::BadArguments(bad) => bad.to_string(),
        Failure::Operation(ops::Error::Timeout) => {
            "The call took longer than its time limit and was stopped".to_owned()
        }
        Failure::Operation(ops::Error::NoRoom { .. }) => {
            "Too many bytes of this client wait to be read or to be completed".to_owned()
        }
        Failure::Operation(ops::Error::Cancelled) => "The call was cancelled".to_owned(),
        Failure::Operation(ops::Error::InvalidPattern { reason, .. }) => {
            format!("invalid pattern in pattern: {reason}")
        }
        Failure::Operation(error) => error.to_string(),
        Failure::RateLimited { .. } => "Too many calls".to_owned(),
        Failure::RootGone { root } => root_gone(root),
        Failure::Unrecordable => UNRECORDABLE.to_owned(),
        Failure::LeftRunning(_) => LEFT_RUNNING.to_owned(),
        Failure::NotConfirmed {
            planned,
            limits,
            why,
        } => not_confirmed_words(*planned, *limits, why, tool),
        Failure::Suspended => SUSPENDED.to_owned(),
        Failure::ToolNotAllowed { .. } | Failure::UnknownRoot { .. } | Failure::ReadOnly { .. } => {
            format!("{tool} is not allowed here")
        }
        Failure::Internal { .. } => format!("Internal error in {tool}; it was logged"),
    }
}

fn error_message(error: &Error, tool: &str) -> String {
    match error {
        Error::Violation {
            path, violation, ..
        } => violation_message(path, *violation),
        Error::Format { path, fault } => {
            format!("Invalid path {path:?}: {}; {RULES}", format_fault(*fault))
        }
        Error::UnknownEncoding { name } => format!("Unsupported encoding: {name:?}"),
        Error::BadContent { path, reason } => format!("Invalid content of {path}: {reason}"),
        Error::HashDiffers {
            path,
            chunk,
            expected,
            found,
        } => hash_differs(&hashed(path, *chunk), expected, found),
        Error::BadChunk { path, fault } => {
            format!("Invalid chunk of {path}: {}", chunk_fault(*fault))
        }
        Error::TooLarge { path, size, limit } => {
            format!("Too large: with {path} it is {size} bytes, and the cache holds {limit}")
        }
        Error::BadListing { path, reason } => format!("Invalid listing of {path}: {reason}"),
        Error::NotFound { path, .. } => format!("{} not found: {path}", asked_for(tool)),
        Error::PermissionDenied { path, said } => {
            format!("Permission denied: the agent may not read {path} ({said})")
        }
        Error::AgentFailed { path, said } => format!("The agent could not provide {path}: {said}"),
        Error::Unmarked { path, marker, said } => format!(
            "The agent's answer is not the content of {path}: it does not begin with the line {marker}, but with {said:?}"
        ),
        Error::Cut { path } => {
            format!("The agent's answer about {path} was cut off at its token limit")
        }
        Error::Lacking { path, lack } => format!(
            "The agent handed {path} over, but not as it was asked for: {}",
            prompts::lacking(*lack)
        ),
        Error::Timeout { path, seconds } => sampling_timeout(path, *seconds),
        Error::Unsupported { path, why } => format!(
            "The agent has to be asked for {path}, and this client cannot be: {}",
            mute(*why)
        ),
        Error::Busy { limit } => format!("{limit} questions already wait for answers"),
        Error::Unverifiable { path, reason } => {
            format!("Permission denied: it is unknown where {path} leads ({reason})")
        }
    }
}

fn hash_differs(what: &str, expected: &str, found: &str) -> String {
    format!("Integrity check failed: {what} has the SHA-256 {found}, not {expected}")
}

/// What a tool asks the agent for.
fn asked_for(tool: &str) -> &'static str {
    if is_about_directory(tool) {
        "Directory"
    } else {
        "File"
    }
}

/// Why a client cannot be asked.
fn mute(why: Mute) -> &'static str {
    match why {
        Mute::Client => "it does not support sampling",
        Mute::Setting => {
            "this server's setting forbids it (server.sessions: off leaves no way back for the answer)"
        }
    }
}

/// What a hash is of.
fn hashed(path: &str, chunk: Option<u32>) -> String {
    match chunk {
        Some(chunk) => format!("chunk {chunk} of {path}"),
        None => format!("the content of {path}"),
    }
}

fn sampling_timeout(path: &str, seconds: u64) -> String {
    if path.is_empty() {
        format!("Sampling timed out: the answer came after more than {seconds} seconds")
    } else {
        format!("Sampling timed out: no answer about {path} within {seconds} seconds")
    }
}

fn violation_message(path: &str, violation: PolicyViolation) -> String {
    let why = match violation {
        PolicyViolation::NulByte => "it contains a NUL byte",
        PolicyViolation::Traversal => "it leads above the project root",
        PolicyViolation::NotAllowed => "it is outside the allowed directories",
        PolicyViolation::LinkLeaves => "a symbolic link on its way leaves the project",
        PolicyViolation::LinkNotAllowed => {
            "a symbolic link on its way leads outside the allowed directories"
        }
        PolicyViolation::LinkLoop => "symbolic links on its way form a loop",
        PolicyViolation::NotAName => "a listed name has to be one name, without / and not . or ..",
        PolicyViolation::ForgedState => {
            return "Security violation: the request state is not valid".to_owned();
        }
    };
    format!("Security violation: {path:?} is refused: {why}")
}

fn format_fault(fault: FormatFault) -> &'static str {
    match fault {
        FormatFault::Empty => "it is empty",
        FormatFault::ControlCharacter => "it contains a control character",
        FormatFault::TooLong => "it is too long",
        FormatFault::NameTooLong => "a name in it is too long",
        FormatFault::Directory => "it names a directory, and content needs the path of a file",
    }
}

fn chunk_fault(fault: ChunkFault) -> String {
    match fault {
        ChunkFault::BeyondCount { index, count } => {
            format!("chunk_index {index} is not below chunk_count {count}")
        }
        ChunkFault::BadCount { count } => {
            format!(
                "chunk_count {count} is not between 1 and {}",
                guide::CHUNKS_MAX
            )
        }
        ChunkFault::Incomplete => "chunk_index and chunk_count belong together".to_owned(),
        ChunkFault::TooManyUploads => "too many uploads are in progress".to_owned(),
    }
}

/// What the agent should do next.
fn instruction(failure: &Failure, tool: &str) -> String {
    match failure {
        Failure::Guide(error) => next_step(error, tool).into_owned(),
        Failure::BadArguments(_) | Failure::Operation(ops::Error::InvalidPattern { .. }) => {
            format!("Correct the arguments of {tool} and call it again.")
        }
        Failure::RateLimited { retry_after_ms } => {
            format!("Wait {retry_after_ms} ms and call again.")
        }
        Failure::Operation(ops::Error::NoRoom { .. }) => {
            format!(
                "Read the replies and complete the uploads in progress, wait {LATER_MS} ms, and call again."
            )
        }
        Failure::Operation(ops::Error::Timeout) => "Call again with less at once.".to_owned(),
        _ => "Call again later; if it happens again, tell the operator of this server.".to_owned(),
    }
}

fn next_step(error: &Error, tool: &str) -> Cow<'static, str> {
    match error {
        Error::Violation {
            violation, allowed, ..
        } => after_violation(*violation, allowed),
        Error::Format { .. } => "Correct the path and call again.".into(),
        Error::UnknownEncoding { .. } => {
            "Name an encoding such as utf-8, utf-16le, latin-1, windows-1252 or shift_jis, or send the bytes with binary: true."
                .into()
        }
        Error::BadContent { .. } => {
            "With binary: true, content has to be standard base64 with padding and without line breaks; a file that is not text \
             has to be asked for with binary: true."
                .into()
        }
        Error::HashDiffers { .. } => {
            "Read the file again and send it again; hashes are SHA-256 of the decoded bytes, in hexadecimal.".into()
        }
        Error::BadChunk { fault, .. } => after_bad_chunk(*fault).into(),
        Error::TooLarge { .. } => {
            "Send fewer or smaller files; chunks do not help, because the whole file has to fit into the cache.".into()
        }
        Error::BadListing { .. } => after_bad_listing(tool),
        Error::NotFound { above, .. } => after_not_found(above.as_deref()),
        Error::PermissionDenied { .. } | Error::Unverifiable { .. } => {
            "Ask the user to allow reading it, or go on without it.".into()
        }
        Error::AgentFailed { .. } => format!("{}, then go on.", hand_over(tool)).into(),
        Error::Unmarked { .. } => {
            format!("{}, then call again; nothing was cached.", hand_over(tool)).into()
        }
        Error::Cut { .. } if is_about_directory(tool) => {
            format!("{}, then call again; nothing was cached.", hand_over(tool)).into()
        }
        Error::Cut { .. } => {
            "Hand the file over with guide_read_file in chunks, then call again; nothing was cached.".into()
        }
        Error::Lacking { lack, .. } => supply(*lack).into(),
        Error::Timeout { .. } => {
            format!("{}, or call again; nothing was cached.", hand_over(tool)).into()
        }
        Error::Unsupported { .. } => format!(
            "{}, then call again without refresh; or give its content as a resource or in the conversation.",
            hand_over(tool)
        )
        .into(),
        Error::Busy { .. } => "Answer the open questions first, then call again.".into(),
    }
}

fn after_violation(violation: PolicyViolation, allowed: &[String]) -> Cow<'static, str> {
    if violation == PolicyViolation::ForgedState {
        return "Call the tool again from the beginning, without requestState.".into();
    }
    format!(
        "Do not try this path again. Use a path inside the allowed directories of the project ({}), and leave what lies \
         outside out of batches and listings; only the operator can allow more.",
        named(allowed)
    )
    .into()
}

fn after_bad_listing(tool: &str) -> Cow<'static, str> {
    if is_about_directory(tool) {
        return format!("{}, then call again; nothing was cached.", hand_over(tool)).into();
    }
    format!(
        "Send a JSON array of entries {{name, type, size, mtime, children}}, each name once, {LEVELS_MAX} levels and \
         {ENTRIES_MAX} entries at most; hand larger trees over directory by directory."
    )
    .into()
}

fn after_not_found(above: Option<&str>) -> Cow<'static, str> {
    match above {
        Some(above) => {
            format!("Check the path, for example with guide_request_directory on {above}.").into()
        }
        None => "Check the path; guide_cache_stats names the allowed directories.".into(),
    }
}

fn after_bad_chunk(fault: ChunkFault) -> &'static str {
    match fault {
        ChunkFault::TooManyUploads => "Finish the uploads in progress, or wait until they expire.",
        ChunkFault::BeyondCount { .. } | ChunkFault::BadCount { .. } | ChunkFault::Incomplete => {
            "Number the chunks from 0 to chunk_count - 1 and send both numbers with every chunk."
        }
    }
}

fn is_about_directory(tool: &str) -> bool {
    tool == RequestDirectory::NAME
}

/// How the agent can hand over, without being asked, what a tool would ask for.
fn hand_over(tool: &str) -> &'static str {
    if is_about_directory(tool) {
        "List the directory yourself and hand it over with guide_list_directory"
    } else {
        "Read the file yourself and hand it over with guide_cache_file"
    }
}

/// Names the directories, up to the number that a reader takes in at a glance.
fn named(directories: &[String]) -> String {
    let shown: Vec<&str> = directories
        .iter()
        .take(NAMED_MAX)
        .map(String::as_str)
        .collect();
    let more = if directories.len() > NAMED_MAX {
        ", …"
    } else {
        ""
    };
    format!("{}{more}", shown.join(", "))
}

/// How to hand over what was missing.
fn supply(lack: Lack) -> &'static str {
    match lack {
        Lack::Children => {
            "Hand the directory over with guide_list_directory, with the children of every directory in it, then call again."
        }
        Lack::Files => {
            "Hand the directory over with guide_list_directory without pattern, then call again."
        }
        Lack::Changes => {
            "Read the file again and hand it over with guide_cache_file and its present mtime, then call again; or call \
             without mtime."
        }
        Lack::Bytes => {
            "Hand the file over with guide_cache_file and binary: true, its bytes as base64, then call again."
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arguments::BadArgument;

    fn every_error() -> Vec<Error> {
        let path = || "docs/a".to_owned();
        let said = || "because".to_owned();
        let violations = [
            PolicyViolation::NulByte,
            PolicyViolation::Traversal,
            PolicyViolation::NotAllowed,
            PolicyViolation::LinkLeaves,
            PolicyViolation::LinkNotAllowed,
            PolicyViolation::LinkLoop,
            PolicyViolation::NotAName,
            PolicyViolation::ForgedState,
        ];
        let violations = violations.map(|violation| Error::Violation {
            path: path(),
            violation,
            leads_to: Some("/somewhere/else".to_owned()),
            allowed: vec!["docs".to_owned(), "src".to_owned()],
        });
        let others = [
            Error::Format {
                path: path(),
                fault: FormatFault::Empty,
            },
            Error::UnknownEncoding { name: said() },
            Error::BadContent {
                path: path(),
                reason: said(),
            },
            Error::HashDiffers {
                path: path(),
                chunk: Some(1),
                expected: said(),
                found: said(),
            },
            Error::BadChunk {
                path: path(),
                fault: ChunkFault::Incomplete,
            },
            Error::TooLarge {
                path: path(),
                size: 2,
                limit: 1,
            },
            Error::BadListing {
                path: path(),
                reason: said(),
            },
            Error::NotFound {
                path: path(),
                above: Some("docs".to_owned()),
            },
            Error::NotFound {
                path: "docs".to_owned(),
                above: None,
            },
            Error::PermissionDenied {
                path: path(),
                said: said(),
            },
            Error::AgentFailed {
                path: path(),
                said: said(),
            },
            Error::Cut { path: path() },
            Error::Lacking {
                path: path(),
                lack: Lack::Changes,
            },
            Error::Timeout {
                path: path(),
                seconds: 50,
            },
            Error::Unsupported {
                path: path(),
                why: Mute::Client,
            },
            Error::Unsupported {
                path: path(),
                why: Mute::Setting,
            },
            Error::Unmarked {
                path: path(),
                marker: r#"FILE 0000007f "docs/a""#.to_owned(),
                said: "I have no \"files\"".to_owned(),
            },
            Error::Busy { limit: 1 },
            Error::Unverifiable {
                path: path(),
                reason: said(),
            },
        ];
        violations.into_iter().chain(others).collect()
    }

    #[test]
    fn every_failure_says_what_to_do_next_and_nothing_of_this_host() {
        let subject = CallSubject {
            tool: "guide_cache_file",
            places: Vec::new(),
            ..CallSubject::default()
        };
        let failures = every_error().into_iter().map(Failure::from).chain([
            Failure::BadArguments(BadArgument::Undecodable {
                reason: "x".to_owned(),
            }),
            Failure::Operation(ops::Error::Timeout),
            Failure::Operation(ops::Error::NoRoom { bytes: 1 }),
            Failure::RateLimited { retry_after_ms: 5 },
            Failure::Internal {
                reason: "secret".to_owned(),
            },
        ]);
        let objects: Vec<Value> = failures
            .map(|failure| Guide.word(&failure, &subject).object)
            .collect();
        for object in &objects {
            let text = object.to_string();
            assert!(
                !text.contains("/somewhere") && !text.contains("secret"),
                "{text}"
            );
            assert!(
                object["instruction"].as_str().unwrap().ends_with('.'),
                "{text}"
            );
        }
        insta::assert_json_snapshot!("guide_failures", objects);
    }
}
