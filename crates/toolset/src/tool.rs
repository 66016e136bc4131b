//! What a tool is. A tool is one unit struct in one file that implements [`Tool`]; the registry holds it in its
//! erased form, [`AnyTool`]. Name, schemas, hints, read-only check and allowlist entry all come from that one place.

use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use ops::{Context, Limits, OpenedRead, Place, Root};
use rmcp::model::{InputRequiredResult, JsonObject, ToolAnnotations};
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::admission::Admission;
use crate::arguments::{self, BadArgument, Slips};
use crate::audit::{self, CallRecord};
use crate::client::Caller;
use crate::client_stats::StatsTable;
use crate::contract::{CallSubject, Contract, Failure, NamedPlace};
use crate::deployment::{MemoryToolChoices, ReplyHalves, TextForm};
use crate::host_paths::HostRoots;
use crate::json_text::JsonText;
use crate::media::Media;
use crate::reply::{self, EncodedReply};
use crate::schema;

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
    /// What it does to files. The hints come from this.
    const EFFECT: ToolEffect;
    /// Which roots a call uses, and for what. Admission and the read-only check come from this.
    const ROOTS: &'static [RootUse];
    /// Whether [`Tool::try_inline`] may be worth trying.
    const TRY_INLINE: bool = false;
    /// Whether its replies can be larger than clients show by themselves.
    const LARGE_REPLIES: bool = false;
    /// Whether it gives a file new content: its reply may say that this was not atomic.
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

    /// The paths that a call names inside an argument, such as a patch, for the log. Nobody has judged the arguments yet.
    fn inner_paths(_arguments: &JsonObject) -> Vec<String> {
        Vec::new()
    }

    /// Does the work, on the threads that [`Tool::weight`] chooses; must check `call.context.cancel` in every loop.
    fn run(arguments: Self::Arguments, call: &Call) -> ops::Result<Self::Reply>;

    /// Does the work without waiting if all that it needs is in memory; otherwise returns the rest of the work.
    /// Runs on a thread of the runtime, so it must never block.
    fn try_inline(arguments: Self::Arguments, _call: &Call) -> Inline<Self::Reply> {
        let weight = Self::weight(&arguments);
        Inline::Later(Box::new(|call| Self::run(arguments, call)), weight)
    }

    /// The text block as a model reads it; `None` where it is the reply's JSON. `replies` says whether it is sent alone.
    /// The words and the rules are in `text_form`.
    fn text(_reply: &Self::Reply, _replies: ReplyHalves) -> Option<String> {
        None
    }

    /// The same as JSON. Tools whose text is mostly the content of a file have it as JSON already.
    fn json_text(reply: &Self::Reply, replies: ReplyHalves) -> Option<JsonText> {
        Self::text(reply, replies).map(JsonText::from)
    }

    /// A block of the reply that is seen or heard. It is taken out of the reply, which is not sent with it.
    fn media(_reply: &mut Self::Reply) -> Option<Media> {
        None
    }
}

/// The outcome of work that must not wait.
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
    /// Anything that grows with a tree or a large file: clients and calls take turns, on about as many threads as there
    /// are cores.
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
}

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
    /// The MCP annotations; nothing here ever reaches an open world.
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
}

impl RootUse {
    /// The usual `root` and `path` of a tool that only reads.
    pub const READ: RootUse = RootUse::named("root", "path", PlaceAccess::Read);
    /// The usual `root` and `path` of a tool that changes something.
    pub const WRITE: RootUse = RootUse::named("root", "path", PlaceAccess::Write);

    /// A root named by an argument.
    #[must_use]
    pub const fn named(root: &'static str, path: &'static str, access: PlaceAccess) -> RootUse {
        RootUse {
            root: RootSource::Argument(root),
            path,
            access,
        }
    }

    /// The root that a path on the host leads into.
    #[must_use]
    pub const fn host(path: &'static str, access: PlaceAccess) -> RootUse {
        RootUse {
            root: RootSource::HostPath(path),
            path,
            access,
        }
    }

    /// The one root of a single-root tool set.
    #[must_use]
    pub const fn home(path: &'static str, access: PlaceAccess) -> RootUse {
        RootUse {
            root: RootSource::Home,
            path,
            access,
        }
    }
}

/// Where a root's name comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RootSource {
    /// The argument of this name.
    Argument(&'static str),
    /// The argument of the first name, or of the second where that is left out.
    ArgumentOr(&'static str, &'static str),
    /// The set has one root, chosen by the operator.
    Home,
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
}

/// What a running call is given: its admitted roots, its limits, its deadline and its cancellation.
#[derive(Debug)]
pub struct Call {
    /// Limits, deadline, cancellation and progress, for operations.
    pub context: Context,
    pub(crate) roots: Vec<Arc<Root>>,
    pub(crate) root_infos: Arc<[RootInfo]>,
    pub(crate) replies: ReplyHalves,
    pub(crate) text_form: TextForm,
    pub(crate) form: ReplyForm,
    /// Where paths on the host lead, for sets whose clients give such paths.
    pub(crate) host_roots: Option<HostRoots>,
    /// How long a call takes at most that says nothing else.
    pub(crate) request_timeout: Duration,
    /// Whether every root of the call may be changed.
    pub(crate) may_change: bool,
    pub(crate) memory_tool: MemoryToolChoices,
    pub(crate) caller: Caller,
    pub(crate) client_stats: Arc<StatsTable>,
}

impl Call {
    /// A path in the first root the tool names.
    pub fn place(&self, path: &str) -> ops::Result<Place> {
        place(self.roots.first(), path)
    }

    /// A path in the last root the tool names: the destination of a copy or move.
    pub fn destination(&self, path: &str) -> ops::Result<Place> {
        place(self.roots.last(), path)
    }

    /// Records the refusal of one of several places, if it is one that operators look for: the call itself may succeed.
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
            client: &self.caller.name,
            stats: self.client_stats.violated(&self.caller.account, now),
            duration: Duration::ZERO,
            response_size: 0,
            observation: None,
        };
        record.failure(&failure, &contract.word(&failure, &subject));
    }

    /// What clients may know of every root.
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

/// What clients may know of a root: never where it is.
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
    /// See [`Tool::EFFECT`].
    pub effect: ToolEffect,
    /// See [`Tool::ROOTS`].
    pub roots: &'static [RootUse],
    /// See [`Tool::inner_paths`].
    pub inner_paths: fn(&JsonObject) -> Vec<String>,
    /// The schema of the arguments, flat.
    pub input: Schema,
    /// The schema of the reply.
    pub output: Schema,
    /// See [`Tool::LARGE_REPLIES`].
    pub large_replies: bool,
    /// See [`Tool::EXAMPLES`].
    pub examples: &'static [Example],
    /// Who decides what its replies look like.
    pub form: ReplyForm,
}

/// Who decides what the replies of a tool look like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplyForm {
    /// The operator, by `server.replies` and `server.text`; a change may add what is kept of it.
    Chosen,
    /// Somebody else's contract, to the letter: these halves, and nothing besides.
    Given(ReplyHalves),
}

/// A tool as the registry holds it.
pub trait AnyTool: Send + Sync {
    /// What is known before a call.
    fn definition(&self) -> &Definition;

    /// Whether a call may need no waiting.
    fn tries_inline(&self) -> bool {
        false
    }

    /// Judges and decodes the arguments; nothing has happened yet.
    fn prepare(
        &self,
        arguments: JsonObject,
        request_timeout: Duration,
        limits: &Limits,
    ) -> Result<Prepared, BadArgument>;
}

/// Work that never asks the client.
pub trait BlockingWork: Send {
    /// How much it may need of the machine.
    fn weight(&self) -> Weight {
        Weight::Small
    }

    /// Does it without waiting, or gives back what is left to do.
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

/// How a call ended that did not fail.
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

/// Puts a tool into its erased form.
#[must_use]
pub fn tool<T: Tool>() -> Box<dyn AnyTool> {
    erased::<T>(definition_of::<T>())
}

fn erased<T: Tool>(definition: Definition) -> Box<dyn AnyTool> {
    Box::new(Erased::<T> {
        definition,
        tool: PhantomData,
    })
}

fn definition_of<T: Tool>() -> Definition {
    Definition {
        name: T::NAME,
        title: T::TITLE,
        description: T::DESCRIPTION,
        effect: T::EFFECT,
        roots: T::ROOTS,
        inner_paths: T::inner_paths,
        input: LazyLock::new(|| Arc::new(schema::input::<T::Arguments>())),
        output: LazyLock::new(|| Arc::new(output_schema::<T>())),
        large_replies: T::LARGE_REPLIES,
        examples: T::EXAMPLES,
        form: ReplyForm::Chosen,
    }
}

/// Puts a tool whose contract is somebody else's into its erased form: arguments that it does not know are passed over,
/// and its replies have these halves and nothing besides.
pub(crate) fn given_tool<T: Tool>(halves: ReplyHalves) -> Box<dyn AnyTool> {
    erased::<T>(Definition {
        input: LazyLock::new(|| Arc::new(schema::open_input::<T::Arguments>())),
        output: LazyLock::new(|| Arc::new(schema::output::<T::Reply>())),
        large_replies: false,
        form: ReplyForm::Given(halves),
        ..definition_of::<T>()
    })
}

struct Erased<T> {
    definition: Definition,
    tool: PhantomData<fn() -> T>,
}

impl<T: Tool> AnyTool for Erased<T> {
    fn definition(&self) -> &Definition {
        &self.definition
    }

    fn tries_inline(&self) -> bool {
        T::TRY_INLINE
    }

    fn prepare(
        &self,
        arguments: JsonObject,
        request_timeout: Duration,
        limits: &Limits,
    ) -> Result<Prepared, BadArgument> {
        let arguments: T::Arguments =
            arguments::decode(&self.definition.input, arguments, Slips::of(T::EFFECT))?;
        let timeout = T::timeout(&arguments, request_timeout, limits);
        Ok(Prepared {
            timeout,
            work: CallWork::Blocking(Box::new(Decoded::<T>(arguments))),
        })
    }
}

/// A tool's decoded arguments.
struct Decoded<T: Tool>(T::Arguments);

impl<T: Tool> BlockingWork for Decoded<T> {
    fn weight(&self) -> Weight {
        T::weight(&self.0)
    }

    fn try_inline(
        self: Box<Self>,
        call: &Call,
    ) -> Result<Result<EncodedReply, Failure>, (Blocking, Weight)> {
        match T::try_inline(self.0, call) {
            Inline::Done(reply) => Ok(finished::<T>(reply, call)),
            Inline::Later(rest, weight) => {
                let rest = Box::new(|call: &Call| finished::<T>(rest(call), call));
                Err((rest, weight))
            }
        }
    }

    fn run(self: Box<Self>, call: &Call) -> Result<EncodedReply, Failure> {
        finished::<T>(T::run(self.0, call), call)
    }
}

fn finished<T: Tool>(reply: ops::Result<T::Reply>, call: &Call) -> Result<EncodedReply, Failure> {
    let mut reply = reply?;
    let media = T::media(&mut reply);
    let own_text = |reply: &T::Reply| match call.text_form {
        TextForm::Compact => T::json_text(reply, call.replies),
        TextForm::Json => None,
    };
    if let ReplyForm::Given(halves) = call.form {
        let given_text = |reply: &T::Reply| T::json_text(reply, halves);
        let encoded = reply::halves(&reply, given_text, halves)?;
        return Ok(encoded.with_media_alone(media));
    }
    let notes = &call.context.change_notes;
    let in_place = T::REPLACES_CONTENT && notes.rewritten_in_place();
    let change = match T::EFFECT {
        ToolEffect::Read => None,
        ToolEffect::Write { .. } => notes.change_ids().pop(),
    };
    if in_place || change.is_some() {
        let changed = Changed::new(&reply, in_place, change, notes.cannot_be_undone());
        let own_text = |changed: &Changed<'_, T::Reply>| {
            let mut text = own_text(changed.reply)?;
            changed.notes.add_to(&mut text);
            Some(text)
        };
        return reply::halves(&changed, own_text, call.replies);
    }
    let encoded = reply::halves(&reply, own_text, call.replies)?;
    Ok(encoded.with_media(media))
}

fn output_schema<T: Tool>() -> JsonObject {
    let mut output = schema::output::<T::Reply>();
    if T::EFFECT != ToolEffect::Read {
        schema::add_optional::<ChangeFields>(&mut output);
    }
    if T::REPLACES_CONTENT {
        schema::add_optional::<NotAtomic>(&mut output);
    }
    output
}

/// What the text of a reply says of a file that was rewritten in place.
const IN_PLACE: &str = "Not atomic: the file is a mount point and was rewritten in place.";

/// A reply with what became known of its change on the way.
#[derive(Serialize)]
struct Changed<'reply, Reply> {
    #[serde(flatten)]
    reply: &'reply Reply,
    #[serde(flatten)]
    notes: NotedChange,
}

/// What such a reply has besides its own fields.
#[derive(Serialize)]
struct NotedChange {
    #[serde(flatten)]
    not_atomic: Option<NotAtomic>,
    #[serde(flatten)]
    change: ChangeFields,
}

/// What a reply says of a file that was rewritten in place.
#[derive(Serialize, JsonSchema)]
struct NotAtomic {
    /// True where the file is a mount point: it was rewritten in place, so a reader or a crash may have seen a part of it.
    not_atomic: bool,
}

/// What a reply says of a change that is kept.
#[derive(Serialize, JsonSchema)]
struct ChangeFields {
    /// Names the change, if the root keeps a history.
    #[serde(skip_serializing_if = "Option::is_none")]
    change: Option<String>,
    /// True where it cannot be undone.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    not_kept: bool,
}

impl<'reply, Reply> Changed<'reply, Reply> {
    fn new(
        reply: &'reply Reply,
        in_place: bool,
        change: Option<String>,
        not_kept: bool,
    ) -> Changed<'reply, Reply> {
        let not_atomic = in_place.then_some(NotAtomic { not_atomic: true });
        let change = ChangeFields { change, not_kept };
        let notes = NotedChange { not_atomic, change };
        Changed { reply, notes }
    }
}

impl NotedChange {
    /// Adds to the text of a reply what is to be said of the change.
    fn add_to(&self, text: &mut JsonText) {
        if self.not_atomic.is_some() {
            text.push("\n");
            text.push(IN_PLACE);
        }
        match &self.change {
            ChangeFields { change: None, .. } => {}
            ChangeFields { not_kept: true, .. } => text.push("\n[cannot be undone]"),
            ChangeFields {
                change: Some(change),
                ..
            } => text.push(&format!("\n[undo: {change}]")),
        }
    }
}

/// A set of tools with one contract.
pub struct ToolSet {
    /// Its name and its messages.
    pub contract: &'static dyn Contract,
    /// Its tools, in the order clients see them.
    pub tools: Vec<Box<dyn AnyTool>>,
}
