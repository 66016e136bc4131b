//! What a tool is. A tool is one unit struct in one file that implements [`Tool`]; the registry holds it in its erased
//! form, [`AnyTool`]. Its name, schemas, hints, read-only check and allowlist entry all come from that one place.

mod change_fields;
mod erased;

use std::pin::Pin;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use ops::{Context, Limits, OpenedRead, Place, Root};
use rmcp::model::{InputRequiredResult, JsonObject, ToolAnnotations};
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::admission::Admission;
use crate::arguments::BadArgument;
use crate::audit::{self, CallRecord};
use crate::client::Caller;
use crate::client_stats::StatsTable;
use crate::contract::{CallSubject, Contract, Failure, FoundPaths, NamedPlace, ResourceTools};
use crate::deployment::{MemoryToolChoices, ReplyHalves, TextForm};
use crate::host_paths::HostRoots;
use crate::json_text::JsonText;
use crate::media::Media;
use crate::reply::{EncodedReply, ResourceLink};
use crate::resources::uri;
use crate::streamed_content::StreamedContent;

pub(crate) use erased::given_tool;
pub use erased::tool;

/// One tool: what it is called, takes and answers, and how it is done.
pub trait Tool: Send + Sync + 'static {
    /// What a client sends. Doc comments become descriptions; serde and schemars attributes give defaults and bounds.
    type Arguments: DeserializeOwned + JsonSchema + Send + 'static;
    /// What a client gets: `structuredContent` is this object.
    type Reply: Serialize + JsonSchema + 'static;

    /// The name clients call, also its name in allowlists.
    const NAME: &'static str;
    /// The name people see.
    const TITLE: &'static str;
    /// What a language model needs to know to use it.
    const DESCRIPTION: &'static str;
    /// The arguments that are the content of files, or a part of it, at any depth: no log line has them. It has no default,
    /// so that no tool forgets it.
    const CONTENT: &'static [&'static str];
    /// What it does to files; its hints are derived from this.
    const EFFECT: ToolEffect;
    /// Which roots a call uses, and for what; admission and the read-only check are derived from this.
    const ROOTS: &'static [RootUse];
    /// Whether [`Tool::try_inline`] may be worth trying.
    const TRY_INLINE: bool = false;
    /// Whether its replies can be larger than clients show by themselves.
    const LARGE_REPLIES: bool = false;
    /// Whether it gives a file new content. If so, its reply may say that the write was not atomic.
    const REPLACES_CONTENT: bool = false;
    /// Example calls with their replies, for the reference.
    const EXAMPLES: &'static [Example] = &[];

    /// How long a call may take; the server's request timeout unless the tool says otherwise.
    fn timeout(
        _arguments: &Self::Arguments,
        request_timeout: Duration,
        _limits: &Limits,
    ) -> Duration {
        request_timeout
    }

    /// How much a call may need of the machine, unless [`Tool::try_inline`] finds out more.
    fn weight(_arguments: &Self::Arguments) -> Weight {
        Weight::Small
    }

    /// Does the work, on the threads that [`Tool::weight`] chooses; must check `call.context.cancel` in every loop.
    fn run(arguments: Self::Arguments, call: &Call) -> ops::Result<Self::Reply>;

    /// Does the work without waiting if all that it needs is in memory; otherwise returns the rest of the work.
    /// Runs on a thread of the runtime, so it must never block.
    fn try_inline(arguments: Self::Arguments, _call: &Call) -> Inline<Self::Reply> {
        let weight = Self::weight(&arguments);
        Inline::Later(Box::new(|call| Self::run(arguments, call)), weight)
    }

    /// The text block as a model reads it; `None` if it is the reply's JSON. `replies` says whether it is sent alone.
    /// The words and the rules are in `text_form`.
    fn text(_reply: &Self::Reply, _replies: ReplyHalves) -> Option<String> {
        None
    }

    /// The text block in JSON-escaped form, for tools whose text is mostly a file's content and already escaped.
    fn json_text(reply: &Self::Reply, replies: ReplyHalves) -> Option<JsonText> {
        Self::text(reply, replies).map(JsonText::from)
    }

    /// An image or sound block. It is moved out of the reply, which is then sent without it.
    fn media(_reply: &mut Self::Reply) -> Option<Media> {
        None
    }

    /// Content of the reply that is still in its file. It is taken out of the reply, which has a mark in its place.
    fn streamed(_reply: &mut Self::Reply) -> Option<StreamedContent> {
        None
    }

    /// The path of a file that the reply names but does not show to its end, if clients should get a link to it.
    fn cut_short_at(_reply: &Self::Reply) -> Option<&str> {
        None
    }
}

/// The outcome of a try to work without waiting.
pub enum Inline<Reply> {
    /// It is done.
    Done(ops::Result<Reply>),
    /// The rest has to run on a thread that may wait.
    Later(InlineRest<Reply>, Weight),
}

/// How much a call may need of the machine, as far as that is known before it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Weight {
    /// A small read, a look or a write: never waits behind heavy calls.
    Small,
    /// Work that grows with a tree or a large file: clients and calls take turns, on about as many threads as there are
    /// cores.
    Heavy,
}

impl Weight {
    /// The weight of a read whose file is open.
    pub(crate) fn of_read(read: &OpenedRead) -> Weight {
        if read.is_large() {
            Weight::Heavy
        } else {
            Weight::Small
        }
    }

    /// The weight of a change to parts of these files.
    pub(crate) fn of_edit<'place>(places: impl IntoIterator<Item = &'place Place>) -> Weight {
        let mut places = places.into_iter();
        let is_large = places
            .by_ref()
            .take(LOOKED_AT_MAX)
            .any(Place::is_large_inline);
        if is_large || places.next().is_some() {
            Weight::Heavy
        } else {
            Weight::Small
        }
    }
}

/// How many files are checked to estimate how much a change needs; more files than this count as heavy.
const LOOKED_AT_MAX: usize = 16;

/// What is left of work that was tried inline.
pub type InlineRest<Reply> = Box<dyn FnOnce(&Call) -> ops::Result<Reply> + Send>;

/// A call and its reply, as the reference shows them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Example {
    /// What it shows.
    pub title: &'static str,
    /// The arguments, as JSON.
    pub arguments: &'static str,
    /// The reply, or the error object, as JSON.
    pub reply: &'static str,
}

/// What a tool does to files, as the hints tell it to clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolEffect {
    /// Changes nothing.
    Read,
    /// Changes something.
    Write {
        /// May lose what was there (`destructiveHint`).
        destructive: bool,
        /// Doing it twice is doing it once (`idempotentHint`).
        idempotent: bool,
    },
}

impl ToolEffect {
    /// The MCP annotations. `openWorldHint` is always false.
    pub(crate) fn annotations(self) -> ToolAnnotations {
        let (read_only, destructive, idempotent) = match self {
            ToolEffect::Read => (true, false, true),
            ToolEffect::Write {
                destructive,
                idempotent,
            } => (false, destructive, idempotent),
        };
        ToolAnnotations::new()
            .read_only(read_only)
            .destructive(destructive)
            .idempotent(idempotent)
            .open_world(false)
    }
}

/// One root that a call uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RootUse {
    /// Where the root's name comes from.
    pub root: RootSource,
    /// The argument that holds the path inside the root, for logs and error details.
    pub path: &'static str,
    /// What is done there.
    pub access: PlaceAccess,
    /// The work may also reach other roots in which the client may use the tool.
    pub and_others: bool,
}

impl RootUse {
    /// The usual `root` and `path` of a tool that only reads.
    pub const READ: RootUse = RootUse::named("root", "path", PlaceAccess::Read);
    /// The usual `root` and `path` of a tool that changes something.
    pub const WRITE: RootUse = RootUse::named("root", "path", PlaceAccess::Write);
    /// The usual `root` and `path` of a tool that removes something.
    pub const REMOVE: RootUse = RootUse::named("root", "path", PlaceAccess::Remove);

    /// A use in which the work may also reach other roots.
    #[must_use]
    pub const fn and_others(self) -> RootUse {
        RootUse {
            and_others: true,
            ..self
        }
    }

    /// A root named by an argument.
    #[must_use]
    pub const fn named(root: &'static str, path: &'static str, access: PlaceAccess) -> RootUse {
        RootUse {
            root: RootSource::Argument(root),
            path,
            access,
            and_others: false,
        }
    }

    /// The root that a path on the host leads into.
    #[must_use]
    pub const fn host(path: &'static str, access: PlaceAccess) -> RootUse {
        RootUse {
            root: RootSource::HostPath(path),
            path,
            access,
            and_others: false,
        }
    }

    /// The one root of a single-root tool set.
    #[must_use]
    pub const fn home(path: &'static str, access: PlaceAccess) -> RootUse {
        RootUse {
            root: RootSource::Home,
            path,
            access,
            and_others: false,
        }
    }
}

/// Where a root's name comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RootSource {
    /// The argument of this name.
    Argument(&'static str),
    /// The argument of the first name, or of the second if that is left out.
    ArgumentOr(&'static str, &'static str),
    /// The set has one root, chosen by the operator.
    Home,
    /// The set has one root, and the argument of this name has to be its name.
    NamedHome(&'static str),
    /// The root that the argument of this name leads into: a path on the host.
    HostPath(&'static str),
}

/// What is done in a root.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlaceAccess {
    /// Reading only: allowed on a read-only root.
    Read,
    /// Changing something.
    Write,
    /// Taking something away.
    Remove,
}

/// What a running call is given: its admitted roots, its limits, its deadline and its cancellation.
#[derive(Debug)]
pub struct Call {
    /// Limits, deadline, cancellation and progress, for operations.
    pub context: Context,
    pub(crate) roots: Vec<Arc<Root>>,
    /// The other roots that the work may reach.
    pub(crate) other_roots: Vec<ops::OtherRoot>,
    /// The index of the first of them among all roots.
    pub(crate) root_index: Option<usize>,
    pub(crate) root_infos: Arc<[RootInfo]>,
    pub(crate) replies: ReplyHalves,
    pub(crate) text_form: TextForm,
    pub(crate) form: ReplyForm,
    /// The tools that must be allowed in a root for its files to be resources; `None` if the set has no resources.
    pub(crate) resource_tools: Option<ResourceTools>,
    /// Where paths on the host lead, for sets whose clients give such paths.
    pub(crate) host_roots: Option<HostRoots>,
    /// The longest a call may take if its tool does not say otherwise.
    pub(crate) request_timeout: Duration,
    /// Whether every root of the call may be changed.
    pub(crate) may_change: bool,
    pub(crate) memory_tool: MemoryToolChoices,
    pub(crate) caller: Caller,
    pub(crate) client_stats: Arc<StatsTable>,
    /// Paths that the work finds inside an argument, for the record of the call.
    pub(crate) found_paths: FoundPaths,
}

impl Call {
    /// A path in the first root the tool names.
    pub fn place(&self, path: &str) -> ops::Result<Place> {
        place(self.roots.first(), path)
    }

    /// Whether content of the reply may stay in its file until the message is sent. It may not if nobody makes a message, or
    /// if the text block is the JSON of the reply, where content would have its escapes twice.
    pub(crate) fn may_stream(&self) -> bool {
        let is_text_json = self.replies.text() && self.text_form == TextForm::Json;
        self.caller.room.is_some() && !is_text_json
    }

    /// The first root the tool names.
    pub(crate) fn root(&self) -> ops::Result<Arc<Root>> {
        self.place("").map(|place| place.root)
    }

    /// The set's tools that may be used on the first root the tool names.
    pub(crate) fn allowed_tools(&self) -> &[&'static str] {
        let info = self.root_index.and_then(|index| self.root_infos.get(index));
        info.map_or(&[], |info| &info.allowed_tools)
    }

    /// A link to a file of the first root, if the client may read files there as resources.
    pub(crate) fn resource_link(&self, path: &str) -> Option<ResourceLink> {
        let reader = self.resource_tools?.read;
        let info = self.root_infos.get(self.root_index?)?;
        info.allowed_tools.contains(&reader).then(|| ResourceLink {
            uri: uri::of(&info.name, path),
            name: path.to_owned(),
        })
    }

    /// A path in the last root the tool names: the destination of a copy or move.
    pub fn destination(&self, path: &str) -> ops::Result<Place> {
        place(self.roots.last(), path)
    }

    /// Logs the refusal of one of several places if it is a violation: the call itself may succeed.
    pub(crate) fn record_violation(
        &self,
        contract: &dyn Contract,
        tool: &'static str,
        place: NamedPlace,
        failure: Failure,
    ) {
        if audit::violation(&failure).is_none() {
            return;
        }
        let subject = CallSubject {
            tool,
            places: vec![place],
            ..CallSubject::default()
        };
        let now = std::time::Instant::now();
        let record = CallRecord {
            toolset: contract.name(),
            subject: &subject,
            caller: &self.caller,
            change: None,
            stats: self.client_stats.violated(&self.caller.account, now),
            duration: Duration::ZERO,
            response_size: 0,
            observation: None,
        };
        record.failure(&failure, &contract.word(&failure, &subject));
    }

    /// What clients may know about every root.
    #[must_use]
    pub fn root_infos(&self) -> &[RootInfo] {
        &self.root_infos
    }
}

fn place(root: Option<&Arc<Root>>, path: &str) -> ops::Result<Place> {
    // A tool that uses a place without declaring its root in ROOTS is a bug; it gets nothing.
    let root = root.ok_or_else(|| ops::Error::Io {
        operation: "find the root",
        path: path.to_owned(),
        reason: "the tool declares no root".to_owned(),
    })?;
    Place::new(Arc::clone(root), path)
}

/// What clients may know about a root: never its host path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RootInfo {
    /// Its name.
    pub name: String,
    /// The set's tools that may be used on it, in the set's order.
    pub allowed_tools: Vec<&'static str>,
    /// Whether it refuses every change.
    pub read_only: bool,
}

/// A schema, made on first use, so that the first reply of a process does not wait for the schemas of all tools.
pub type Schema = LazyLock<Arc<JsonObject>>;

/// Everything about a tool that is known before a call.
#[derive(Debug)]
pub struct Definition {
    /// See [`Tool::NAME`].
    pub name: &'static str,
    /// See [`Tool::TITLE`].
    pub title: &'static str,
    /// See [`Tool::DESCRIPTION`].
    pub description: &'static str,
    /// See [`Tool::CONTENT`].
    pub content: &'static [&'static str],
    /// See [`Tool::EFFECT`].
    pub effect: ToolEffect,
    /// See [`Tool::ROOTS`].
    pub roots: &'static [RootUse],
    /// The schema of the arguments, flat.
    pub input: Schema,
    /// The schema of the reply.
    pub output: Schema,
    /// See [`Tool::LARGE_REPLIES`].
    pub large_replies: bool,
    /// See [`Tool::EXAMPLES`].
    pub examples: &'static [Example],
    /// The tool that must be allowed for it, if it is a method of the protocol rather than a tool.
    pub method_of: Option<&'static str>,
    /// Who decides what its replies look like.
    pub form: ReplyForm,
}

impl Definition {
    /// The name that allowlists are asked for.
    #[must_use]
    pub fn allowed_as(&self) -> &'static str {
        self.method_of.unwrap_or(self.name)
    }
}

/// Who decides what the replies of a tool look like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplyForm {
    /// The operator, by `server.replies` and `server.text`. The reply to a change may also say how to undo it.
    Chosen,
    /// The server that the set imitates, to the letter: these halves and nothing else.
    Given(ReplyHalves),
}

/// A tool as the registry holds it.
pub trait AnyTool: Send + Sync {
    /// What is known before a call.
    fn definition(&self) -> &Definition;

    /// Whether a call may finish without waiting.
    fn tries_inline(&self) -> bool {
        false
    }

    /// Checks and decodes the arguments; has no effect yet.
    fn prepare(
        &self,
        arguments: JsonObject,
        request_timeout: Duration,
        limits: &Limits,
    ) -> Result<Prepared, BadArgument>;
}

/// Work that never asks the client.
pub trait BlockingWork: Send {
    /// How heavy it may be.
    fn weight(&self) -> Weight {
        Weight::Small
    }

    /// Does it without waiting, or returns what is left to do.
    fn try_inline(
        self: Box<Self>,
        call: &Call,
    ) -> Result<Result<EncodedReply, Failure>, (Blocking, Weight)>;

    /// Does it, on a thread that may wait.
    fn run(self: Box<Self>, call: &Call) -> Result<EncodedReply, Failure>;
}

impl<Step: FnOnce(&Call) -> Result<EncodedReply, Failure> + Send + 'static> BlockingWork for Step {
    fn try_inline(
        self: Box<Self>,
        _call: &Call,
    ) -> Result<Result<EncodedReply, Failure>, (Blocking, Weight)> {
        Err((self, Weight::Small))
    }

    fn run(self: Box<Self>, call: &Call) -> Result<EncodedReply, Failure> {
        self(call)
    }
}

/// Work that runs on the blocking pool from beginning to end.
pub type Blocking = Box<dyn BlockingWork>;
/// Work that waits for the client in between; only its steps run on the blocking pool.
pub type Asking =
    Box<dyn for<'admission> FnOnce(Call, &'admission Admission) -> Talk<'admission> + Send>;
/// A conversation with the client, which ends in a reply or a question.
pub type Talk<'admission> =
    Pin<Box<dyn Future<Output = Result<Ended, Failure>> + Send + 'admission>>;

/// The work of one call.
pub enum CallWork {
    /// It never asks the client.
    Blocking(Blocking),
    /// It may ask the client.
    Asking(Asking),
}

/// The end of a call that did not fail.
#[derive(Debug)]
pub enum Ended {
    /// With a reply.
    Reply(EncodedReply),
    /// With a question; the client calls again with the answer.
    Question(Box<InputRequiredResult>),
}

/// A decoded call, ready to run.
pub struct Prepared {
    /// How long it may take.
    pub timeout: Duration,
    /// The work itself.
    pub work: CallWork,
}

/// A set of tools with one contract.
pub struct ToolSet {
    /// Its name and its messages.
    pub contract: &'static dyn Contract,
    /// Its tools, in the order clients see them.
    pub tools: Vec<Box<dyn AnyTool>>,
}
