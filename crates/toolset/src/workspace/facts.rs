//! The facts of every failure of the `workspace` set, for programs.

use ops::Error;
use serde_json::{Map, Value, json};

use super::edit_words;
use super::errors::pattern_argument;
use crate::admission::LATER_MS;
use crate::arguments::{BadArgument, shortened};
use crate::contract::{CallSubject, Failure, NamedPlace, quota_facts};

/// What a failure's error object says beside code and message.
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
        Failure::Operation(Error::TooLarge { size, limit, .. }) => {
            json!({ "size": size, "limit": limit })
        }
        Failure::Operation(Error::PatchMismatch {
            hunk,
            line,
            expected,
            found,
            ..
        }) => {
            json!({ "hunk": hunk, "line": line, "expected": expected, "found": found })
        }
        Failure::Operation(Error::PatchMalformed { line, .. }) => json!({ "patch_line": line }),
        Failure::Operation(Error::PatchNotUnique { hunk, lines, .. }) => {
            json!({ "hunk": hunk, "lines": lines })
        }
        Failure::Operation(Error::EditRefused { edit, fault, .. }) => {
            edit_words::facts(*edit, fault)
        }
        Failure::Operation(error @ Error::QuotaExceeded { .. }) => quota_facts(error),
        Failure::Operation(Error::NoRoom { .. }) => json!({ "retry_after_ms": LATER_MS }),
        Failure::Operation(Error::NotFound { near, .. }) if !near.is_empty() => {
            json!({ "near": near })
        }
        Failure::Operation(Error::InvalidPattern { role, .. }) => {
            json!({ "argument": pattern_argument(*role) })
        }
        Failure::Operation(Error::InvalidArgument { argument, .. }) => {
            json!({ "argument": argument })
        }
        Failure::Operation(Error::InvalidPart { part, .. }) => {
            json!({ "argument": super::errors::argument_of(*part) })
        }
        Failure::Operation(Error::VersionConflict { present, .. }) => {
            json!({ "version": present })
        }
        Failure::BadArguments(bad) => bad_facts(bad),
        Failure::RateLimited { retry_after_ms } => json!({ "retry_after_ms": retry_after_ms }),
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
