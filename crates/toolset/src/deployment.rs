//! The operator's decisions in plain fields. The server's configuration is converted into this once.

use std::collections::BTreeSet;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use ops::{ByteLimits, Limits, LiveRoot, Rights, Root, Users};

use crate::confirm::ConfirmRule;
use crate::known_clients::drops_text;
use crate::observer::CallObserver;
use crate::rate::CallRate;

/// Everything the tool sets need to know of this deployment.
#[derive(Debug, Clone)]
pub struct Deployment {
    /// The roots, in the operator's order. Names are unique.
    pub roots: Vec<RootGrant>,
    /// Limits that no call may exceed.
    pub limits: Arc<Limits>,
    /// The names of owners and groups, read before the process locked itself in.
    pub users: Arc<Users>,
    /// How long a call may take unless its tool says otherwise.
    pub request_timeout: Duration,
    /// How many calls run at once; further ones wait.
    pub max_concurrent_calls: usize,
    /// How many bytes of bodies, replies, session streams and uploads are held at once.
    pub held_bytes: ByteLimits,
    /// How often a client may call; `None` is without limit.
    pub rate: Option<CallRate>,
    /// Which halves of a reply are sent.
    pub replies: ReplyPolicy,
    /// How the text half is written.
    pub text: TextForm,
    /// Whether the `root` argument is marked with `x-mcp-header: Root`.
    pub root_header: bool,
    /// The directory that `~` stands for, in sets whose clients give host paths.
    pub home: Option<String>,
    /// How long a person may take to confirm a call.
    pub confirm_timeout: Duration,
    /// Whether some clients have only a part of this. If so, replies to one client must not be cached for others.
    pub has_clients: bool,
    /// The choices of `memory_tool`.
    pub memory_tool: MemoryToolChoices,
    /// Where calls are recorded; `None` without an audit file.
    pub recorder: Option<Arc<dyn Recorder>>,
    /// The operator's observer of calls, if there is one.
    pub observer: Option<Arc<dyn CallObserver>>,
}

/// Where calls are recorded. A call that cannot be recorded yet waits before it begins, so that nothing happens without a
/// record, and no thread waits for a slow disk.
pub trait Recorder: fmt::Debug + Send + Sync {
    /// Whether one more call can be recorded now.
    fn has_room(&self, call: Recorded) -> bool;

    /// Waits until one more call can be recorded.
    fn room(&self, call: Recorded) -> Pin<Box<dyn Future<Output = ()> + Send + '_>>;

    /// Whether changes are refused, because the record cannot be written.
    fn refuses_changes(&self) -> bool {
        false
    }

    /// Counts a call that did nothing and was not recorded for lack of room. A later record shows the count.
    fn count_unrecorded(&self);
}

/// Whether a call changes anything: that decides when its record is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recorded {
    /// It changes nothing, so its record may come later.
    Read,
    /// It changes something.
    Change,
}

impl Deployment {
    /// The deployment as one client sees it: only its roots exist.
    pub(crate) fn for_client(&self, client: &ClientGrant) -> Deployment {
        let part = |grant: &RootGrant| {
            let mut roots = client.roots.iter();
            let part = roots.find(|part| part.name == grant.name)?;
            Some(grant.for_client(part))
        };
        Deployment {
            roots: self.roots.iter().filter_map(part).collect(),
            rate: client.rate.or(self.rate),
            ..self.clone()
        }
    }

    /// Creates a deployment without roots for tests. The program takes every field from its settings.
    #[must_use]
    pub fn for_tests() -> Deployment {
        Deployment {
            roots: Vec::new(),
            limits: Arc::new(Limits::for_tests()),
            users: Arc::default(),
            request_timeout: Duration::from_secs(30),
            max_concurrent_calls: 256,
            held_bytes: ByteLimits {
                all: 256 * 1024 * 1024,
                of_one: 32 * 1024 * 1024,
            },
            rate: None,
            replies: ReplyPolicy::Auto,
            text: TextForm::Compact,
            root_header: true,
            home: None,
            confirm_timeout: Duration::from_secs(300),
            has_clients: false,
            memory_tool: MemoryToolChoices::default(),
            recorder: None,
            observer: None,
        }
    }
}

/// A root and what may be done in it.
#[derive(Debug, Clone)]
pub struct RootGrant {
    /// The name clients use.
    pub name: String,
    /// The open directory, as long as it is there.
    pub root: Arc<LiveRoot>,
    /// Refuses every tool that changes anything, whatever the allowlist says.
    pub read_only: bool,
    /// The tools allowed.
    pub tools: Allowlist,
    /// The tools that the client may use there, inside those; all for a caller that is no named client.
    pub client_tools: Allowlist,
    /// What the client may do to its files. The root itself knows this too, and judges every change by it.
    pub rights: Rights,
    /// The tool sets whose one root this is (`files`, `memory`).
    pub home_of: BTreeSet<String>,
    /// What a person has to confirm.
    pub confirm: Option<ConfirmRule>,
}

impl RootGrant {
    /// A root on which everything is allowed.
    #[must_use]
    pub fn new(name: impl Into<String>, root: Arc<Root>) -> RootGrant {
        RootGrant {
            name: name.into(),
            root: Arc::new(LiveRoot::new(root, None)),
            read_only: false,
            tools: Allowlist::All,
            client_tools: Allowlist::All,
            rights: Rights::ALL,
            home_of: BTreeSet::new(),
            confirm: None,
        }
    }

    /// The root as one client sees it.
    fn for_client(&self, part: &ClientRootGrant) -> RootGrant {
        RootGrant {
            root: Arc::clone(&part.root),
            read_only: self.read_only || !part.rights.may_change(),
            client_tools: part.tools.clone(),
            rights: part.rights,
            ..self.clone()
        }
    }
}

/// What the operator lets a named client do.
#[derive(Debug, Clone)]
pub struct ClientGrant {
    /// Its name.
    pub name: Arc<str>,
    /// The roots that exist for it.
    pub roots: Vec<ClientRootGrant>,
    /// The tool sets it may use; `None` for all.
    pub toolsets: Option<BTreeSet<String>>,
    /// How often it may call, if that is its own.
    pub rate: Option<CallRate>,
    /// How many of its calls run at once.
    pub max_calls: Option<usize>,
}

impl ClientGrant {
    /// Tells whether it may use a set.
    #[must_use]
    pub fn may_use(&self, set: &str) -> bool {
        let sets = self.toolsets.as_ref();
        sets.is_none_or(|sets| sets.contains(set))
    }
}

/// A root as one client has it.
#[derive(Debug, Clone)]
pub struct ClientRootGrant {
    /// The name of the root.
    pub name: String,
    /// The directory, as the client sees it.
    pub root: Arc<LiveRoot>,
    /// The tools it may use there, inside the root's own.
    pub tools: Allowlist,
    /// What it may do to files.
    pub rights: Rights,
}

/// The tools that a root allows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Allowlist {
    /// Every tool of every set.
    All,
    /// These names; `files.delete` means the tool of that set only.
    Only(BTreeSet<String>),
}

impl Allowlist {
    /// Tells whether a tool of a set is allowed.
    #[must_use]
    pub fn allows(&self, set: &str, tool: &str) -> bool {
        match self {
            Allowlist::All => true,
            Allowlist::Only(names) => {
                names.contains(tool) || names.contains(&format!("{set}.{tool}"))
            }
        }
    }
}

/// What the operator chose for `memory_tool`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MemoryToolChoices {
    /// Whose files are whose.
    pub store: MemoryStore,
    /// What `create` does with a file that is there.
    pub create: MemoryCreate,
}

/// Whose files are whose.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MemoryStore {
    /// All clients share one store.
    #[default]
    Shared,
    /// Each client has a directory of its own.
    PerClient,
}

/// What `create` does with a file that is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MemoryCreate {
    /// It fails.
    #[default]
    Fail,
    /// It replaces the file.
    Overwrite,
}

/// Which halves of a reply are sent. Each client hands the model only one half, and clients differ in which.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ReplyPolicy {
    /// Both; but only the text to a client that would otherwise drop it.
    #[default]
    Auto,
    /// The same halves to every client.
    Always(ReplyHalves),
}

impl ReplyPolicy {
    /// The halves for a client that calls itself by this name, if it does.
    #[must_use]
    pub fn halves(self, client: Option<&str>) -> ReplyHalves {
        match self {
            ReplyPolicy::Always(halves) => halves,
            ReplyPolicy::Auto if client.is_some_and(drops_text) => ReplyHalves::Text,
            ReplyPolicy::Auto => ReplyHalves::Both,
        }
    }

    /// Whether every client gets the same halves.
    #[must_use]
    pub fn is_uniform(self) -> bool {
        self != ReplyPolicy::Auto
    }
}

/// How the text half of a reply is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TextForm {
    /// As each tool words it for a model.
    #[default]
    Compact,
    /// As the JSON of the reply object, for programs that read only text.
    Json,
}

/// Which halves of one reply are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ReplyHalves {
    /// Text and structured content.
    #[default]
    Both,
    /// The text block only; no output schema is declared then.
    Text,
    /// The structured content only; failures keep their short text.
    Structured,
}

impl ReplyHalves {
    /// Tells whether a success has structured content.
    #[must_use]
    pub fn structured(self) -> bool {
        self != ReplyHalves::Text
    }

    /// Tells whether a success has a text block.
    #[must_use]
    pub fn text(self) -> bool {
        self != ReplyHalves::Structured
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_allowlist_entry_with_a_set_is_for_that_set_only() {
        let list = Allowlist::Only(["copy".to_owned(), "files.delete".to_owned()].into());
        assert!(list.allows("workspace", "copy") && list.allows("files", "copy"));
        assert!(list.allows("files", "delete"));
        assert!(!list.allows("memory", "delete"));
    }
}
