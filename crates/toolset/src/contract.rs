//! How a tool set words its failures. Each set has one [`Contract`]; no code and no message is chosen anywhere else.

mod call_subject;

use ops::{Error, LEFT_COUNTED, PathFault, QuotaLimit, TreeWork, truncated};
use rmcp::model::ToolAnnotations;
use serde_json::{Value, json};

use crate::arguments::BadArgument;
use crate::confirm::NotConfirmed;
use crate::text_form::{is_unshowable, shown};
use crate::tool::ToolEffect;

pub(crate) use call_subject::FoundPaths;
pub use call_subject::{CallSubject, NamedPlace};

/// Every way a call can fail, as facts.
#[derive(Debug)]
#[expect(
    missing_docs,
    reason = "the field names and the variants' sentences say it all"
)]
pub enum Failure {
    /// The operation failed.
    Operation(ops::Error),
    /// The call ended by its deadline or because it was cancelled, and its change did not stop in time.
    LeftRunning(ops::Error),
    /// No root has this name.
    UnknownRoot {
        root: String,
        /// A root with a similar name.
        nearest: Option<String>,
        /// The roots that exist.
        known: Vec<String>,
        /// The root exists, but not for this client.
        is_hidden: bool,
    },
    /// The root's allowlist does not have the tool.
    ToolNotAllowed { root: String },
    /// The root refuses every change.
    ReadOnly { root: String },
    /// The directory of the root was removed or replaced while the server runs.
    RootGone { root: String },
    /// The change could not be recorded in the audit file, so it was not made.
    Unrecordable,
    /// A person had to confirm the call and did not, so nothing was changed.
    NotConfirmed {
        planned: ops::Planned,
        /// What would have passed unasked.
        limits: ops::Consent,
        why: NotConfirmed,
    },
    /// The client calls too often.
    RateLimited { retry_after_ms: u64 },
    /// The operator keeps the client out for now.
    Suspended,
    /// An argument is missing, mistyped, unknown or out of bounds.
    BadArguments(BadArgument),
    /// The agent's files could not be obtained.
    Guide(guide::Error),
    /// A bug of ours; `reason` is for the log only.
    Internal { reason: String },
}

impl From<ops::Error> for Failure {
    fn from(error: ops::Error) -> Failure {
        Failure::Operation(error)
    }
}

impl From<guide::Error> for Failure {
    fn from(error: guide::Error) -> Failure {
        Failure::Guide(error)
    }
}

impl From<BadArgument> for Failure {
    fn from(bad: BadArgument) -> Failure {
        Failure::BadArguments(bad)
    }
}

impl Failure {
    /// The root that it names.
    fn root(&self) -> Option<&String> {
        match self {
            Failure::UnknownRoot { root, .. }
            | Failure::ToolNotAllowed { root }
            | Failure::ReadOnly { root }
            | Failure::RootGone { root } => Some(root),
            _ => None,
        }
    }

    /// The path that it names.
    fn path(&self) -> Option<&str> {
        match self {
            Failure::Operation(error) => error.path(),
            Failure::Guide(error) => error.path().filter(|path| !path.is_empty()),
            _ => None,
        }
    }
}

/// A failure in a set's words.
#[derive(Debug, Clone, PartialEq)]
pub struct Worded {
    /// The set's code, also for the log.
    pub code: &'static str,
    /// The sentence for the agent: what went wrong, with which path, and what to do next.
    pub message: String,
    /// The set's error object: `structuredContent` of the failure.
    pub object: Value,
}

/// The most characters of a message to a client, without the one that shows where it was cut.
const MESSAGE_MAX: usize = 1_999;

impl Worded {
    /// The failure with messages as a model should read them: not too long, and with no name that ends a line or steers a
    /// terminal. The details have names as they are.
    pub(crate) fn readable(mut self, failure: &Failure, subject: &CallSubject) -> Worded {
        let found = subject.found.paths();
        let names = names_in(failure, subject, &found);
        let readable = |message: &str| truncated(&names_shown(message, &names), MESSAGE_MAX);
        self.message = readable(&self.message);
        let messages = ["/message", "/error/message", "/error", "/instruction"];
        for pointer in messages {
            if let Some(Value::String(message)) = self.object.pointer_mut(pointer) {
                *message = readable(message);
            }
        }
        self
    }

    /// The error object that most sets have: code, message and details under `error`.
    pub(crate) fn with_details(code: &'static str, message: String, details: Value) -> Worded {
        let object = json!({ "error": { "code": code, "message": message, "details": details } });
        Worded {
            code,
            message,
            object,
        }
    }
}

/// What the text block of a failure holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureText {
    /// The message alone.
    Message,
    /// The error object as JSON.
    Object,
    /// The message alone, and no error object besides.
    Alone,
}

/// The tools of a set that, if allowed, also give access to its files as resources.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResourceTools {
    /// Reads a file.
    pub read: &'static str,
    /// Lists a directory.
    pub list: &'static str,
    /// Waits for changes.
    pub watch: &'static str,
    /// Whether the set has one root, chosen by the operator.
    pub one_root: bool,
}

/// How a tool set introduces itself and words its failures.
pub trait Contract: Send + Sync + 'static {
    /// The set's name: in `--toolset`, in the endpoint and in the log.
    fn name(&self) -> &'static str;

    /// The server name this set reports to clients.
    fn server_name(&self) -> &'static str;

    /// The server's title for people.
    fn server_title(&self) -> &'static str;

    /// What the server is, in a sentence.
    fn server_description(&self) -> Option<&'static str> {
        None
    }

    /// What a model should know before its first call.
    fn instructions(&self) -> &'static str;

    /// How to change files, if there is something to say.
    fn changing(&self) -> Option<&'static str> {
        None
    }

    /// What keeps clients in bounds, for the reference.
    fn security(&self) -> &'static str;

    /// How many calls in ten seconds are normal for one client.
    fn usual_calls(&self) -> Option<u64> {
        None
    }

    /// The tools that read, list and watch its files, if those are resources too.
    fn resources(&self) -> Option<ResourceTools> {
        None
    }

    /// Whether its clients give and get paths on the host. Such a set has an endpoint of its own.
    fn tells_host_paths(&self) -> bool {
        false
    }

    /// The hints of a tool with this effect.
    fn annotations(&self, effect: ToolEffect) -> ToolAnnotations {
        effect.annotations()
    }

    /// Words a failure.
    fn word(&self, failure: &Failure, subject: &CallSubject) -> Worded;

    /// What the text block of a failure holds.
    fn failure_text(&self) -> FailureText;

    /// The schema of the error object, an object schema with `properties` and `required`. It becomes the other
    /// alternative of every output schema, because some clients check failures against it too.
    fn error_schema(&self) -> Value;
}

/// The schema of the error object that most sets have: code, message and details under `error`.
pub(crate) fn error_object_schema() -> Value {
    json!({
        "properties": {
            "error": {
                "type": "object",
                "description": "Only when the call failed.",
                "properties": {
                    "code": { "type": "string" },
                    "message": { "type": "string" },
                    "details": { "type": "object" }
                },
                "required": ["code", "message", "details"]
            }
        },
        "required": ["error"]
    })
}

/// The names that may occur in a message about a failure, longest first, because a shorter one may be part of a longer
/// one.
fn names_in<'f>(
    failure: &'f Failure,
    subject: &'f CallSubject,
    found: &'f [String],
) -> Vec<&'f str> {
    let places = subject.places.iter().chain(&subject.listed);
    let mut names: Vec<&str> = places.filter_map(|place| place.path.as_deref()).collect();
    names.extend(found.iter().map(String::as_str));
    if let Failure::Operation(error) = failure {
        names.extend(names_of(error));
    }
    names.sort_unstable_by_key(|name| std::cmp::Reverse(name.len()));
    names
}

/// The names that may occur in a message about an error.
pub(crate) fn names_of(error: &Error) -> Vec<&str> {
    let mut names: Vec<&str> = error.path().into_iter().collect();
    match error {
        Error::NotFound { near, .. } => names.extend(near.iter().map(String::as_str)),
        Error::Unfinished { done, cause } => {
            names.extend(names_of(cause));
            if let TreeWork::Moved {
                destination,
                source,
                ..
            } = done
            {
                names.extend([destination.as_str(), source]);
            }
        }
        _ => {}
    }
    names
}

/// A message whose names cannot be taken for anything else.
pub(crate) fn names_shown(message: &str, names: &[&str]) -> String {
    names.iter().fold(message.to_owned(), |message, name| {
        if name.chars().any(is_unshowable) {
            message.replace(name, &shown(name))
        } else {
            message
        }
    })
}

/// What is wrong with a root whose directory is gone.
pub(crate) fn root_gone(root: &str) -> String {
    format!(
        "the directory of root {root} is gone: it was removed or replaced while the server runs; use another root, or ask \
         the operator to put it back or to restart the server"
    )
}

/// What became of a change that did not stop in time.
pub(crate) const LEFT_RUNNING: &str = "the call has ended, because its time was up or it was cancelled, but its change could \
     not be stopped and may still be made; look before you repeat it";

/// Why nothing is done for a client.
pub(crate) const SUSPENDED: &str = "the operator of this server has suspended this client, and nothing was done; ask the \
    operator to let it in again";

/// Why a change is refused that cannot be recorded.
pub(crate) const UNRECORDABLE: &str = "changes are refused because the audit file cannot be written, and nothing was changed; \
     reading works; ask the operator to make room for the audit file";

/// What is wrong with a path.
pub(crate) fn path_fault(fault: PathFault) -> &'static str {
    match fault {
        PathFault::Nul => "it contains a NUL byte",
        PathFault::TooLong => "it is longer than 4095 bytes",
        PathFault::NameTooLong => "a name in it is longer than 255 bytes",
        PathFault::Unstorable => {
            "the file system there cannot hold a name in it; use letters, digits, - and _"
        }
    }
}

/// What a tree operation had done when it failed, why it failed, and what is there now.
pub(crate) fn unfinished_words(done: &TreeWork, cause: &str) -> String {
    match done {
        TreeWork::Removed { gone, left } => removed_words(*gone, *left, cause),
        TreeWork::Merged {
            replaced,
            taken_back,
            left,
        } => merged_words(*replaced, [*taken_back, *left], cause),
        TreeWork::Moved {
            destination,
            source,
            left,
        } => format!(
            "copied everything to {destination}, then: {cause}; {left} entries of the source are still there, at {source}: \
             compare the two, and remove what you do not need"
        ),
    }
}

fn merged_words(replaced: u64, [taken_back, left]: [u64; 2], cause: &str) -> String {
    let begun = match replaced {
        0 => format!("{cause}; "),
        _ => format!("replaced {replaced} files, then: {cause}; these stay replaced, and "),
    };
    let rest = match left {
        0 => String::new(),
        _ => format!(", but {left} that others use by now are still there"),
    };
    format!("{begun}{taken_back} new entries were taken back{rest}")
}

fn removed_words(gone: u64, left: u64, cause: &str) -> String {
    let all = gone + left;
    // What is left is only counted up to a bound.
    let at_least = if left > LEFT_COUNTED { "at least " } else { "" };
    format!("removed {gone} of {at_least}{all} entries, then: {cause}; the rest is still there")
}

/// A change that was made but may be lost if the machine fails.
pub(crate) fn unsynced_words(reason: &str) -> String {
    format!(
        "the change was made and can be seen, but writing it to disk failed ({reason}), so it may be lost if the \
         machine fails now; do not repeat it before you have looked"
    )
}

/// Something that was changed by others while it was moved by copying.
pub(crate) const CHANGED_WORDS: &str = "it changed while it was being moved, so the source was kept; try again once it is no longer being written";

/// What to do about a file that others keep replacing.
pub(crate) const STALE_WORDS: &str =
    "another process keeps replacing it; nothing was changed; try again";

/// A quota that a change would exceed: its figures, and what to do.
pub(crate) fn quota_words(error: &Error) -> String {
    let Error::QuotaExceeded {
        limit,
        most,
        used,
        needed,
        ..
    } = error
    else {
        return String::new();
    };
    let (unit, key) = match limit {
        QuotaLimit::Bytes => ("bytes", "max_bytes"),
        QuotaLimit::Files => ("files and directories", "max_files"),
    };
    format!(
        "this needs {needed} more, and {used} of the {most} {unit} that the root may hold ({key}) are in use, \
         with what this call began to make; remove something first, or ask the operator for more"
    )
}

/// The numbers of an exceeded quota, for programs.
pub(crate) fn quota_facts(error: &Error) -> Value {
    match error {
        Error::QuotaExceeded {
            limit,
            most,
            used,
            needed,
            ..
        } => {
            let quota = match limit {
                QuotaLimit::Bytes => "max_bytes",
                QuotaLimit::Files => "max_files",
            };
            json!({ "quota": quota, "limit": most, "used": used, "needed": needed })
        }
        _ => Value::Null,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_merge_tells_what_it_left_behind() {
        let merged = |replaced, taken_back, left| TreeWork::Merged {
            replaced,
            taken_back,
            left,
        };
        let words = |done| unfinished_words(&done, "the disk is full");
        assert_eq!(
            words(merged(3, 2, 0)),
            "replaced 3 files, then: the disk is full; these stay replaced, and 2 new entries were taken back"
        );
        assert_eq!(
            words(merged(0, 2, 1)),
            "the disk is full; 2 new entries were taken back, but 1 that others use by now are still there"
        );
    }
}
