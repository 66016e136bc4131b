//! The facts of every failure of the `workspace` set, for programs.

use ops::Error;
use serde_json::{Map, Value, json};

use super::edit_words;
use super::errors::{argument_of, pattern_argument};
use crate::admission::LATER_MS;
use crate::arguments::{BadArgument, shortened};
use crate::contract::{CallSubject, Failure, NamedPlace, quota_facts};

/// What a failure's error object holds besides code and message.
pub(super) fn details(failure: &Failure, subject: &CallSubject, place: &NamedPlace) -> Value {
    let mut details = Map::new();
    details.insert("tool".to_owned(), subject.tool.into());
    if let Some(root) = &place.root {
        details.insert("root".to_owned(), shortened(root).into());
    }
    if let Some(path) = &place.path {
        details.insert("path".to_owned(), path.as_str().into());
    }
    if let Value::Object(facts) = facts(failure) {
        details.extend(facts);
    }
    Value::Object(details)
}

/// The facts of a failure, for programs.
fn facts(failure: &Failure) -> Value {
    match failure {
        Failure::Operation(error) => operation_facts(error),
        Failure::BadArguments(bad) => bad_facts(bad),
        Failure::RateLimited { retry_after_ms } => json!({ "retry_after_ms": retry_after_ms }),
        _ => Value::Null,
    }
}

fn operation_facts(error: &Error) -> Value {
    match error {
        Error::TooLarge { size, limit, .. } => json!({ "size": size, "limit": limit }),
        Error::PatchMismatch { .. }
        | Error::PatchMalformed { .. }
        | Error::PatchNotUnique { .. } => patch_facts(error),
        Error::EditRefused { edit, fault, .. } => edit_words::facts(*edit, fault),
        Error::QuotaExceeded { .. } => quota_facts(error),
        Error::NoRoom { .. } => json!({ "retry_after_ms": LATER_MS }),
        Error::NotFound { near, .. } if !near.is_empty() => json!({ "near": near }),
        Error::InvalidPattern { role, .. } => json!({ "argument": pattern_argument(*role) }),
        Error::InvalidArgument { argument, .. } => json!({ "argument": argument }),
        Error::InvalidPart { part, .. } => json!({ "argument": argument_of(*part) }),
        Error::VersionConflict { present, .. } => json!({ "version": present }),
        _ => Value::Null,
    }
}

/// Where a patch does not fit.
fn patch_facts(error: &Error) -> Value {
    match error {
        Error::PatchMismatch {
            hunk,
            line,
            expected,
            found,
            ..
        } => json!({ "hunk": hunk, "line": line, "expected": expected, "found": found }),
        Error::PatchMalformed { line, .. } => json!({ "patch_line": line }),
        Error::PatchNotUnique { hunk, lines, .. } => json!({ "hunk": hunk, "lines": lines }),
        _ => Value::Null,
    }
}

fn bad_facts(bad: &BadArgument) -> Value {
    match bad {
        BadArgument::NotOneOf {
            argument, valid, ..
        } => json!({ "argument": argument, "valid": valid }),
        other => other
            .argument()
            .map_or(Value::Null, |argument| json!({ "argument": argument })),
    }
}
