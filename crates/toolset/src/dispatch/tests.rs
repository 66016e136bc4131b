use super::*;
use crate::deployment::{Allowlist, Deployment, Recorder, ReplyHalves, ReplyPolicy, RootGrant};
use crate::rate::CallRate;
use crate::reply::ToolResult;
use crate::tool::{AnyTool, Inline, PlaceAccess, RootUse, Tool, ToolEffect, ToolSet, Weight, tool};
use crate::workspace;
use ops::Root;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::collections::BTreeSet;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{LazyLock, Mutex};
use std::time::Duration;

/// The toy calls whose work has ended.
static ENDED: LazyLock<Mutex<BTreeSet<String>>> = LazyLock::new(Mutex::default);

struct Toy;

#[derive(Deserialize, JsonSchema)]
struct Arguments {
    #[expect(dead_code, reason = "admission reads it")]
    root: String,
    path: String,
    #[expect(dead_code, reason = "admission reads it")]
    other_root: String,
    act: Act,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Act {
    Answer,
    Panic,
    Escape,
    /// Until the deadline or a cancellation.
    Work,
    /// Whatever the caller wants.
    Sleep,
}

#[derive(Serialize, JsonSchema)]
struct ToyReply {
    path: String,
}

impl Tool for Toy {
    type Arguments = Arguments;
    type Reply = ToyReply;

    const NAME: &'static str = "toy";
    const TITLE: &'static str = "Toy";
    const DESCRIPTION: &'static str = "A toy.";
    const CONTENT: &'static [&'static str] = &[];
    const EFFECT: ToolEffect = ToolEffect::Write {
        destructive: false,
        idempotent: true,
    };
    const ROOTS: &'static [RootUse] = &[
        RootUse::READ,
        RootUse::named("other_root", "path", PlaceAccess::Write),
    ];

    fn run(arguments: Arguments, call: &Call) -> ops::Result<ToyReply> {
        let path = arguments.path;
        match arguments.act {
            Act::Answer => Ok(ToyReply { path }),
            Act::Panic => panic!("toy broken"),
            Act::Escape => Err(ops::Error::Outside {
                path,
                leads_to: "/etc".to_owned(),
                link: None,
            }),
            Act::Sleep => {
                std::thread::sleep(Duration::from_millis(1500));
                Ok(ToyReply { path })
            }
            Act::Work => {
                let error = loop {
                    if let Err(error) = call.context.cancel.check() {
                        break error;
                    }
                    std::thread::sleep(Duration::from_millis(1));
                };
                ENDED.lock().expect("a lock").insert(path);
                Err(error)
            }
        }
    }

    fn text(reply: &ToyReply, _replies: ReplyHalves) -> Option<String> {
        Some(format!("text of {}", reply.path))
    }
}

/// The staged calls that ran, in their order.
static STAGED: Mutex<Vec<String>> = Mutex::new(Vec::new());
/// Lets the staged call that waits inline go on.
static RELEASED: Mutex<bool> = Mutex::new(false);

/// Begins inline, where the call `first` waits until it is released, and ends on the blocking pool.
struct Staged;

#[derive(Deserialize, JsonSchema)]
struct StagedArguments {
    #[expect(dead_code, reason = "admission reads it")]
    root: String,
    path: String,
}

impl Tool for Staged {
    type Arguments = StagedArguments;
    type Reply = ToyReply;

    const NAME: &'static str = "staged";
    const TITLE: &'static str = "Staged";
    const DESCRIPTION: &'static str = "Works in two stages.";
    const CONTENT: &'static [&'static str] = &[];
    const EFFECT: ToolEffect = ToolEffect::Read;
    const ROOTS: &'static [RootUse] = &[RootUse::READ];
    const TRY_INLINE: bool = true;

    fn run(arguments: StagedArguments, _call: &Call) -> ops::Result<ToyReply> {
        let path = arguments.path;
        STAGED.lock().expect("a lock").push(path.clone());
        Ok(ToyReply { path })
    }

    fn try_inline(arguments: StagedArguments, _call: &Call) -> Inline<ToyReply> {
        while arguments.path == "first" && !*RELEASED.lock().expect("a lock") {
            std::thread::sleep(Duration::from_millis(1));
        }
        Inline::Later(Box::new(|call| Self::run(arguments, call)), Weight::Small)
    }
}

/// Answers with the name of the thread it runs on; the path says how.
struct Heavy;

impl Tool for Heavy {
    type Arguments = StagedArguments;
    type Reply = ToyReply;

    const NAME: &'static str = "heavy";
    const TITLE: &'static str = "Heavy";
    const DESCRIPTION: &'static str = "Works on the threads for heavy work.";
    const CONTENT: &'static [&'static str] = &[];
    const EFFECT: ToolEffect = ToolEffect::Read;
    const ROOTS: &'static [RootUse] = &[RootUse::READ];
    const TRY_INLINE: bool = true;

    fn weight(arguments: &StagedArguments) -> Weight {
        if arguments.path == "small" {
            Weight::Small
        } else {
            Weight::Heavy
        }
    }

    fn run(arguments: StagedArguments, _call: &Call) -> ops::Result<ToyReply> {
        assert!(arguments.path != "panic", "heavy toy broken");
        let thread = std::thread::current();
        Ok(ToyReply {
            path: thread.name().unwrap_or_default().to_owned(),
        })
    }
}

#[tokio::test]
async fn heavy_calls_run_on_threads_of_their_own() {
    let service = service_of(tool::<Heavy>(), |deployment| {
        patient(deployment);
        deployment.max_concurrent_calls = 1;
    });
    let call = async |path: &str| {
        let arguments = json!({ "root": "open", "path": path });
        match service.call("heavy", arguments, &Caller::default()).await {
            Some(CallOutcome::Result(result)) => result,
            other => panic!("{other:?}"),
        }
    };
    for _ in 0..3 {
        assert_eq!(code(&call("panic").await), "io_error");
        let thread = |result: &ToolResult| structured(result).expect("an object")["path"].clone();
        assert_eq!(thread(&call("large").await), "worker");
        assert_ne!(thread(&call("small").await), "worker");
    }
    assert_eq!(service.inner.admission.busy(), (0, 0));
}

fn service(change: impl FnOnce(&mut Deployment)) -> Service {
    service_of(tool::<Toy>(), change)
}

fn service_of(tool: Box<dyn AnyTool>, change: impl FnOnce(&mut Deployment)) -> Service {
    let set = ToolSet {
        contract: workspace::toolset().contract,
        tools: vec![tool],
    };
    Service::new(vec![set], Admission::new(deployment(change))).expect("a service")
}

fn deployment(change: impl FnOnce(&mut Deployment)) -> Deployment {
    let root = || Arc::new(Root::open(&std::env::temp_dir()).expect("a directory"));
    let only = |tool: &str| Allowlist::Only([tool.to_owned()].into());
    let roots = vec![
        RootGrant::new("open", root()),
        RootGrant {
            tools: only("list_roots"),
            ..RootGrant::new("closed", root())
        },
        RootGrant {
            read_only: true,
            ..RootGrant::new("fixed", root())
        },
    ];
    let request_timeout = Duration::from_millis(300);
    let mut deployment = Deployment {
        roots,
        request_timeout,
        ..Deployment::for_tests()
    };
    change(&mut deployment);
    deployment
}

/// Gives calls more time than a busy machine needs, even to print a backtrace.
fn patient(deployment: &mut Deployment) {
    deployment.request_timeout = Duration::from_secs(60);
}

async fn call(service: &Service, arguments: Value, caller: &Caller) -> ToolResult {
    match service.call("toy", arguments, caller).await {
        Some(CallOutcome::Result(result)) => result,
        other => panic!("{other:?}"),
    }
}

fn arguments(act: &str, path: &str) -> Value {
    json!({ "root": "open", "other_root": "open", "path": path, "act": act })
}

async fn message(arguments: Value) -> String {
    let result = call(&service(|_| {}), arguments, &Caller::default()).await;
    assert!(result.is_error);
    text(&result)
}

fn text(result: &ToolResult) -> String {
    result.reply.text().unwrap_or_default()
}

fn structured(result: &ToolResult) -> Option<Value> {
    let json = result.reply.structured()?;
    Some(serde_json::from_slice(json).expect("JSON"))
}

fn code(result: &ToolResult) -> Value {
    structured(result).expect("an object")["error"]["code"].clone()
}

#[tokio::test]
async fn names_come_before_allowlists_and_these_before_arguments() {
    let unknown = json!({ "root": "closed", "other_root": "nonexistent", "act": 3 });
    let roots = "unknown root: nonexistent; roots: open, closed, fixed";
    assert_eq!(message(unknown).await, roots);
    let denied = json!({ "root": "fixed", "other_root": "closed", "act": 3 });
    assert_eq!(message(denied).await, "tool toy not allowed on root closed");
    let fixed = json!({ "root": "open", "other_root": "fixed", "act": 3 });
    assert_eq!(
        message(fixed).await,
        "tool toy not allowed on root fixed: the root is read-only"
    );
    let bad = json!({ "root": "fixed", "other_root": "open", "act": "jump" });
    assert_eq!(
        message(bad).await,
        "missing required argument: path (string); invalid act: jump; valid values: answer, panic, escape, work, sleep"
    );
    let none = json!({ "root": "open", "path": "a" });
    assert_eq!(
        message(none).await,
        "missing required argument: other_root (string; roots: open, closed, fixed)"
    );
    let number = json!({ "root": 5, "path": "a" });
    assert_eq!(
        message(number).await,
        "argument root must be a string, got number 5"
    );
}

#[tokio::test]
async fn a_reply_has_the_halves_the_operator_wants() {
    let halves = |result: ToolResult| (text(&result), structured(&result));
    let structured = || Some(json!({ "path": "a" }));
    for (replies, expected) in [
        (ReplyHalves::Both, ("text of a".to_owned(), structured())),
        (ReplyHalves::Text, ("text of a".to_owned(), None)),
        (ReplyHalves::Structured, (String::new(), structured())),
    ] {
        let service = service(|deployment| deployment.replies = ReplyPolicy::Always(replies));
        let result = call(&service, arguments("answer", "a"), &Caller::default()).await;
        assert_eq!(halves(result), expected, "{replies:?}");
        let schema = service
            .catalogue()
            .listed()
            .first()
            .expect("the toy")
            .output_schema
            .is_some();
        assert_eq!(schema, replies != ReplyHalves::Text);
    }
}

#[tokio::test]
async fn a_panic_is_an_error_reply() {
    let service = service(patient);
    let result = call(&service, arguments("panic", "a"), &Caller::default()).await;
    assert_eq!(code(&result), json!("io_error"));
    assert_eq!(
        text(&result),
        "internal error in toy; it was logged".to_owned()
    );
}

/// Remembers the fields of some log lines.
#[derive(Clone)]
struct LogLines {
    wanted: fn(&tracing::Metadata<'_>) -> bool,
    lines: Arc<Mutex<Vec<String>>>,
}

impl LogLines {
    fn of(wanted: fn(&tracing::Metadata<'_>) -> bool) -> LogLines {
        LogLines {
            wanted,
            lines: Arc::default(),
        }
    }

    fn all(&self) -> Vec<String> {
        self.lines.lock().expect("a lock").clone()
    }
}

impl tracing::Subscriber for LogLines {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        (self.wanted)(metadata)
    }

    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }

    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}

    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        let mut text = String::new();
        event.record(
            &mut |field: &tracing::field::Field, value: &dyn std::fmt::Debug| {
                text += &format!("{field}={value:?} ");
            },
        );
        self.lines.lock().expect("a lock").push(text);
    }

    fn enter(&self, _: &tracing::span::Id) {}

    fn exit(&self, _: &tracing::span::Id) {}
}

#[tokio::test]
async fn a_panic_is_logged_as_a_bug_and_the_next_call_is_served() {
    let errors = LogLines::of(|metadata| *metadata.level() == tracing::Level::ERROR);
    let _guard = tracing::subscriber::set_default(errors.clone());
    let service = service(|deployment| {
        patient(deployment);
        deployment.max_concurrent_calls = 1;
    });
    for _ in 0..3 {
        let result = call(&service, arguments("panic", "a"), &Caller::default()).await;
        assert_eq!(code(&result), "io_error");
    }
    let result = call(&service, arguments("answer", "a"), &Caller::default()).await;
    assert_eq!(text(&result), "text of a");
    let logged = errors.all();
    assert_eq!(logged.len(), 3, "{logged:?}");
    assert!(
        logged
            .iter()
            .all(|line| line.contains("bug in a tool") && line.contains("toy"))
    );
}

#[tokio::test]
async fn where_an_escape_leads_stays_here() {
    let message = message(arguments("escape", "a")).await;
    assert_eq!(
        message,
        "path resolves outside root boundary (root: open, path: a)"
    );
}

#[tokio::test]
async fn work_ends_at_its_deadline() {
    let result = call(
        &service(|_| {}),
        arguments("work", "late"),
        &Caller::default(),
    )
    .await;
    assert_eq!(code(&result), "timeout");
}

#[tokio::test]
async fn a_reply_does_not_wait_for_work_that_does_not_stop() {
    let service = service(|deployment| deployment.request_timeout = Duration::ZERO);
    let result = call(&service, arguments("sleep", "a"), &Caller::default()).await;
    assert_eq!(code(&result), "timeout");
    let said = result.reply.text().expect("a text");
    assert!(said.contains("may still be made"), "{said}");
}

#[test]
fn a_change_that_was_left_is_one_that_had_begun() {
    let subject = CallSubject {
        tool: "toy",
        places: Vec::new(),
        ..CallSubject::default()
    };
    let contract = workspace::toolset().contract;
    let notes = ops::ChangeNotes::default();
    let end = || LateEnd::new(contract, &subject, &Caller::default(), &notes);
    let waits = end();
    assert!(!waits.leave(), "nothing can have happened");
    let runs = end();
    runs.begin();
    assert!(runs.leave());
}

#[tokio::test]
async fn a_cancelled_call_stops_its_work() {
    let caller = Caller::default();
    let token = caller.client.gone().clone();
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(20)).await;
        token.cancel();
    });
    let service = service(patient);
    let result = call(&service, arguments("work", "cancelled"), &caller).await;
    assert_eq!(code(&result), "cancelled");
    assert!(ended("cancelled").await);
}

#[tokio::test]
async fn a_dropped_call_stops_its_work() {
    let service = service(patient);
    let caller = Caller::default();
    let work = call(&service, arguments("work", "dropped"), &caller);
    let cut = tokio::time::timeout(Duration::from_millis(20), work).await;
    assert!(cut.is_err());
    assert!(ended("dropped").await);
}

#[tokio::test]
async fn running_calls_can_be_cut() {
    let service = service(patient);
    let caller = Caller::default();
    let work = call(&service, arguments("work", "cut"), &caller);
    let cut = async {
        tokio::time::sleep(Duration::from_millis(20)).await;
        service.cut_calls();
    };
    assert_eq!(code(&tokio::join!(work, cut).0), "cancelled");
    assert!(ended("cut").await);
}

/// Looks for the end of some work, for at most ten seconds.
async fn ended(path: &str) -> bool {
    for _ in 0..1000 {
        if ENDED.lock().expect("a lock").contains(path) {
            return true;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    false
}

#[tokio::test]
async fn calls_beyond_the_cap_wait_their_turn() {
    let service = service(|deployment| deployment.max_concurrent_calls = 1);
    let caller = Caller::default();
    let first = call(&service, arguments("work", "first"), &caller);
    let second = call(&service, arguments("answer", "second"), &caller);
    let (first, second) = tokio::join!(first, second);
    assert_eq!(code(&first), "timeout");
    assert!(!second.is_error);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_began_inline_keeps_its_slot_for_the_rest() {
    let service = service_of(tool::<Staged>(), |deployment| {
        patient(deployment);
        deployment.max_concurrent_calls = 1;
    });
    let start = |path: &'static str| {
        let service = service.clone();
        tokio::spawn(async move {
            let arguments = json!({ "root": "open", "path": path });
            let caller = Caller::default();
            service.call("staged", arguments, &caller).await
        })
    };
    let busy = async |wanted| {
        while service.inner.admission.busy() != wanted {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    let first = start("first");
    busy((1, 0)).await;
    let second = start("second");
    busy((1, 1)).await;
    *RELEASED.lock().expect("a lock") = true;
    for call in [first, second] {
        call.await.expect("a call").expect("a tool");
    }
    assert_eq!(*STAGED.lock().expect("a lock"), ["first", "second"]);
}

/// A record that has room for so many calls.
#[derive(Debug, Default)]
struct SmallRecord {
    room: AtomicUsize,
    unrecorded: AtomicUsize,
}

impl Recorder for SmallRecord {
    fn has_room(&self, _: Recorded) -> bool {
        let take = |room: usize| room.checked_sub(1);
        let taken = self
            .room
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, take);
        taken.is_ok()
    }

    fn room(&self, _: Recorded) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(std::future::pending())
    }

    fn count_unrecorded(&self) {
        self.unrecorded.fetch_add(1, Ordering::Relaxed);
    }
}

#[tokio::test]
async fn refused_calls_that_find_no_room_are_counted_and_not_kept() {
    let recorded = LogLines::of(|metadata| metadata.target() == "toolset::audit");
    let _guard = tracing::subscriber::set_default(recorded.clone());
    let record = Arc::new(SmallRecord::default());
    let service = service(|deployment| {
        deployment.request_timeout = Duration::ZERO;
        deployment.recorder = Some(record.clone());
        deployment.rate = Some(CallRate {
            per_second: 1,
            burst: 10,
        });
    });
    let mut closed = arguments("answer", "a");
    closed["root"] = json!("closed");
    let calls = [
        (json!("not an object"), "invalid_arguments"),
        (closed.clone(), "tool_not_allowed"),
        (json!({ "root": "open" }), "invalid_arguments"),
        (arguments("answer", "a"), "timeout"),
    ];
    for (arguments, expected) in calls {
        let result = call(&service, arguments, &Caller::default()).await;
        assert_eq!(code(&result), expected);
    }
    let hammer = async || code(&call(&service, closed.clone(), &Caller::default()).await);
    while hammer().await != "rate_limited" {}
    let unrecorded = record.unrecorded.load(Ordering::Relaxed);
    assert!(unrecorded >= 5, "{unrecorded}");
    assert_eq!(recorded.all(), Vec::<String>::new());

    record.room.store(1, Ordering::Relaxed);
    hammer().await;
    assert_eq!(recorded.all().len(), 1);
    assert_eq!(record.unrecorded.load(Ordering::Relaxed), unrecorded);
}

#[tokio::test]
async fn tools_that_no_root_allows_are_not_listed_and_still_refused() {
    let deployment = deployment(|deployment| {
        deployment.roots.retain(|grant| grant.name == "closed");
        for grant in &mut deployment.roots {
            grant.tools = Allowlist::Only(["read_file".to_owned()].into());
        }
    });
    let service = Service::new(vec![workspace::toolset()], Admission::new(deployment));
    let service = service.unwrap_or_else(|error| panic!("{error}"));
    let listed = service.catalogue().listed().iter();
    let listed: Vec<&str> = listed.map(|tool| &*tool.name).collect();
    assert_eq!(listed, ["list_roots", "read_file"]);
    let caller = Caller::default();
    let asked = json!({ "root": "closed", "path": "f", "content": "" });
    let called = service.call("write_file", asked, &caller).await;
    let Some(CallOutcome::Result(result)) = called else {
        panic!("a result")
    };
    assert_eq!(code(&result), "tool_not_allowed");
    assert!(service.call("absent", json!({}), &caller).await.is_none());
}

#[test]
fn a_set_without_a_usable_tool_is_a_start_up_error() {
    let set = ToolSet {
        contract: workspace::toolset().contract,
        tools: vec![tool::<Toy>()],
    };
    let deployment = deployment(|deployment| {
        deployment.roots.retain(|grant| grant.name != "open");
    });
    let error = Service::new(vec![set], Admission::new(deployment)).err();
    assert!(
        matches!(
            error,
            Some(SetupError::NoTool {
                set: "workspace",
                root: None
            })
        ),
        "{error:?}"
    );
}

#[test]
fn two_tools_of_one_name_are_a_start_up_error() {
    let set = || ToolSet {
        contract: workspace::toolset().contract,
        tools: vec![tool::<Toy>()],
    };
    let error = Service::new(vec![set(), set()], Admission::new(Deployment::for_tests())).err();
    let expected = "the tool sets workspace and workspace cannot share one endpoint: both have toy";
    assert_eq!(
        error.map(|error| error.to_string()).as_deref(),
        Some(expected)
    );
}
