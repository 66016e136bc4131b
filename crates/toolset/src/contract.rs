//! How a tool set speaks of failures. Each set has one [`Contract`]; no code and no message is chosen anywhere else.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ops::{Error, LEFT_COUNTED, PathFault, QuotaLimit, TreeWork, truncated};
use rmcp::model::{JsonObject, ToolAnnotations};
use serde_json::{Value, json};

use crate::arguments::{BadArgument, field};
use crate::confirm::NotConfirmed;
use crate::host_paths::{HostDirectories, HostNames};
use crate::text_form::{is_unshowable, shown};
use crate::told_arguments::told;
use crate::tool::{Definition, RootSource, ToolEffect};

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
        /// Those that there are.
        known: Vec<String>,
        /// There is one, but not for this client.
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
    /// A person has to confirm the call and did not, so nothing was changed.
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

/// The arguments in which a call can name many places.
const LISTS: [&str; 4] = ["paths", "files", "edits", "moves"];
/// The most places of a list that are kept: as many as a call may have.
const LISTED_MAX: usize = 500;

/// What a call was about, as the client gave it: for error details and the log.
#[derive(Debug, Clone, Default)]
pub struct CallSubject {
    /// The tool.
    pub tool: &'static str,
    /// The places it names, in the tool's order.
    pub places: Vec<NamedPlace>,
    /// The places that it names in a list.
    pub listed: Vec<NamedPlace>,
    /// The paths that its work found inside an argument.
    pub found: FoundPaths,
    /// What its places are called on the host, for sets that tell that.
    pub hosts: Option<HostNames>,
    /// What it does, for a tool that does several things.
    pub command: Option<String>,
    /// Its arguments that are not content, as JSON, for the log; none if no line is written.
    pub arguments: Option<String>,
    /// The texts that its edits look for, in order: some sets repeat them in messages. They are never logged.
    pub sought: Vec<String>,
}

/// Paths inside an argument, such as a patch, which only the work of a call reads. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct FoundPaths(Arc<Mutex<Vec<String>>>);

impl FoundPaths {
    /// Adds paths, as many as a record keeps.
    pub(crate) fn add(&self, mut paths: Vec<String>) {
        let mut found = self.lock();
        paths.truncate(LISTED_MAX.saturating_sub(found.len()));
        found.append(&mut paths);
    }

    /// What was found so far.
    #[must_use]
    pub fn paths(&self) -> Vec<String> {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A place as the client named it, before anything was checked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NamedPlace {
    /// The root's name, if one was given.
    pub root: Option<String>,
    /// The path, if one was given.
    pub path: Option<String>,
}

impl CallSubject {
    /// Reads the places from arguments that nobody has judged yet.
    pub(crate) fn new(
        definition: &Definition,
        arguments: &JsonObject,
        home: Option<&str>,
    ) -> CallSubject {
        let text = |name: &str| {
            field(arguments, name)
                .and_then(Value::as_str)
                .map(str::to_owned)
        };
        let root = |source| match source {
            RootSource::Argument(name) | RootSource::NamedHome(name) => text(name),
            RootSource::ArgumentOr(name, other) => text(name).or_else(|| text(other)),
            RootSource::Home => home.map(str::to_owned),
            // The path itself tells.
            RootSource::HostPath(_) => None,
        };
        let places = definition
            .roots
            .iter()
            .map(|use_| NamedPlace {
                root: root(use_.root),
                path: text(use_.path),
            })
            .collect::<Vec<_>>();
        let listed = LISTS.iter().filter_map(|list| field(arguments, list));
        let listed = listed.filter_map(Value::as_array).flatten();
        let listed = listed.filter_map(|entry| listed_place(entry, places.first()));
        let mut listed: Vec<NamedPlace> = listed.take(LISTED_MAX).collect();
        // Several edits of one file stand behind each other.
        listed.dedup();
        // The agent's files are in no root, but messages and the log name their paths too.
        let lone = definition.roots.is_empty().then(|| NamedPlace {
            root: None,
            path: text("path"),
        });
        let places = places.into_iter().chain(lone).collect();
        CallSubject {
            tool: definition.name,
            places,
            listed,
            found: FoundPaths::default(),
            hosts: None,
            command: text("command"),
            arguments: None,
            sought: sought(arguments),
        }
    }

    /// The subject with the arguments that the log tells. Paths on the host are not told: the log has them as root and path.
    pub(crate) fn with_arguments(
        mut self,
        definition: &Definition,
        arguments: &JsonObject,
        tells_host_paths: bool,
    ) -> CallSubject {
        let places = definition.roots.iter().map(|place| place.path);
        let left_out: Vec<&str> = if tells_host_paths {
            places.chain(LISTS).collect()
        } else {
            Vec::new()
        };
        self.arguments = Some(told(definition, arguments, &left_out));
        self
    }

    /// The subject of a call whose paths are those of the host: its places become root and path, and keep their names there.
    pub(crate) fn on_host(mut self, hosts: &HostDirectories, roots: &[String]) -> CallSubject {
        let mut paths = Vec::new();
        for place in self.places.iter_mut().chain(&mut self.listed) {
            let looked_up = place.path.as_deref().map(|given| hosts.look_up(given));
            let Some(found) = looked_up else {
                paths.push(String::new());
                continue;
            };
            if let Some((root, inside)) = &found.inside {
                place.root = roots.get(*root).cloned();
                place.path = Some(inside.clone());
            }
            paths.push(found.absolute);
        }
        self.hosts = Some(HostNames {
            paths,
            served: hosts.spellings(),
        });
        self
    }

    /// The root and path that a failure is about: the place whose path the error names, else the first.
    #[must_use]
    pub fn place_of(&self, failure: &Failure) -> NamedPlace {
        let path = match failure {
            Failure::Operation(error) => error.path(),
            Failure::Guide(error) => error.path().filter(|path| !path.is_empty()),
            _ => None,
        };
        let root = match failure {
            Failure::UnknownRoot { root, .. }
            | Failure::ToolNotAllowed { root }
            | Failure::ReadOnly { root }
            | Failure::RootGone { root } => Some(root),
            _ => None,
        };
        let named = |place: &&NamedPlace| match (root, path) {
            (Some(_), _) => place.root.as_ref() == root,
            (None, Some(path)) => place.path.as_deref() == Some(path),
            (None, None) => true,
        };
        let first = self.places.iter().find(named).or(self.places.first());
        let mut place = first.cloned().unwrap_or_default();
        if let Some(path) = path {
            place.path = Some(path.to_owned());
        }
        place
    }
}

/// The texts that edits look for.
fn sought(arguments: &JsonObject) -> Vec<String> {
    let edits = arguments.get("edits").and_then(Value::as_array);
    let listed = edits.into_iter().flatten().map(|edit| edit.get("oldText"));
    let texts = std::iter::once(arguments.get("old_str")).chain(listed);
    let texts = texts.flatten().filter_map(Value::as_str);
    texts.map(str::to_owned).collect()
}

/// A place in a list: a path, or an object with one, in the root of the call unless it names its own.
fn listed_place(entry: &Value, first: Option<&NamedPlace>) -> Option<NamedPlace> {
    let text = |name: &str| entry.get(name).and_then(Value::as_str).map(str::to_owned);
    let path = entry.as_str().map(str::to_owned).or_else(|| text("path"))?;
    let root = text("root").or_else(|| first?.root.clone());
    Some(NamedPlace {
        root,
        path: Some(path),
    })
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

/// The tools of a set whose places in an allowlist admit to its files as resources.
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

    /// How to change files, if that needs saying.
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

/// The names that a message about a failure may have, the longest first: a shorter one may be a part of it.
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

/// The names that a message about an error may have.
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
        TreeWork::Removed { gone, left } => {
            let all = gone + left;
            // What is left is counted up to a bound only.
            let at_least = if *left > LEFT_COUNTED {
                "at least "
            } else {
                ""
            };
            format!(
                "removed {gone} of {at_least}{all} entries, then: {cause}; the rest is still there"
            )
        }
        TreeWork::Merged {
            replaced,
            taken_back,
        } => format!(
            "replaced {replaced} files, then: {cause}; these stay replaced, and {taken_back} new entries were taken back"
        ),
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

/// A change that was made but may be lost if the machine fails.
pub(crate) fn unsynced_words(reason: &str) -> String {
    format!(
        "the change was made and can be seen, but writing it to disk failed ({reason}), so it may be lost if the \
         machine fails now; do not repeat it before you have looked"
    )
}

/// Something that somebody changed while it was moved by copying.
pub(crate) const CHANGED_WORDS: &str = "it changed while it was being moved, so the source was kept; try again once it is no longer being written";

/// What to do about a file that others replace again and again.
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

/// The same facts for programs.
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
