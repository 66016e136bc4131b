//! The one way to test a tool set: start the server on trees, call tools over both transports, check every reply.
//!
//! What differs between sets is in their [`ToolSet`]: how the server is started, and what is true of each reply.

pub(crate) mod machine;
pub(crate) mod message;
mod wait;

use std::marker::PhantomData;

use testkit::{Outcome, Server, Setup, Transport, Tree, Value};

pub(crate) use self::wait::{becomes, becomes_in_ten_seconds, metrics_show};

/// The program under test.
pub(crate) fn program() -> Setup {
    let built = env!("CARGO_BIN_EXE_mcp-filesystem");
    // Another build of the same program may be tested, such as the release build.
    Setup::new(std::env::var_os("TESTED_PROGRAM").unwrap_or_else(|| built.into()))
}

/// The tools of a set in their order, as the program's own reference names them.
pub(crate) async fn catalogue(set: &str) -> Vec<String> {
    let ended = program().arguments(["tools", "--toolset", set]).run().await;
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let headings = ended.stdout.lines().map(|line| line.strip_prefix("## `"));
    let names = headings.flatten().map(|rest| rest.trim_end_matches('`'));
    let names: Vec<String> = names.map(str::to_owned).collect();
    assert!(!names.is_empty(), "{}", ended.stdout);
    names
}

/// A tool set as tests see it.
pub(crate) trait ToolSet: Sized {
    /// The field of an error object that holds its code.
    const CODE: &str = "code";

    /// The program serving this tree with the set.
    fn setup(tree: &Tree) -> Setup;

    /// Adds arguments that nearly every call has.
    fn complete(_tool: &str, arguments: Value) -> Value {
        arguments
    }

    /// Checks what is true of every reply of the set.
    fn check(tool: &str, outcome: &Outcome);

    /// Takes away what is different in each reply and what only a few tests look at.
    fn tidy(_outcome: &mut Outcome) {}

    /// The error object in a reply that failed.
    fn error(reply: &Value) -> &Value;

    /// Starts a server on a tree.
    async fn start(
        tree: Tree,
        settings: impl FnOnce(Setup) -> Setup,
        transport: Transport,
    ) -> Harness<Self> {
        let server = settings(Self::setup(&tree)).start(transport).await;
        Harness::new(server, vec![tree])
    }

    /// Runs a body over stdio and over HTTP, each time on a tree of its own.
    async fn both(tree: impl Fn() -> Tree, body: impl AsyncFn(&Harness<Self>)) {
        Self::both_with(tree, |setup| setup, body).await;
    }

    /// Runs a body over stdio and over HTTP with more settings.
    async fn both_with(
        tree: impl Fn() -> Tree,
        settings: impl Fn(Setup) -> Setup,
        body: impl AsyncFn(&Harness<Self>),
    ) {
        testkit::over_both(async |transport| {
            let harness = Self::start(tree(), &settings, transport).await;
            body(&harness).await;
        })
        .await;
    }
}

/// A running server and the trees it serves.
pub(crate) struct Harness<S> {
    pub(crate) server: Server,
    trees: Vec<Tree>,
    set: PhantomData<S>,
}

impl<S: ToolSet> Harness<S> {
    /// Takes over a server that serves these trees.
    pub(crate) fn new(server: Server, trees: Vec<Tree>) -> Harness<S> {
        Harness {
            server,
            trees,
            set: PhantomData,
        }
    }

    /// The first root's tree.
    pub(crate) fn tree(&self) -> &Tree {
        &self.trees[0]
    }

    /// Another root's tree.
    pub(crate) fn tree_of(&self, number: usize) -> &Tree {
        &self.trees[number]
    }

    /// Calls a tool and checks what is true of every reply.
    pub(crate) async fn call(&self, tool: &str, arguments: Value) -> Outcome {
        let mut outcome = self.server.call(tool, S::complete(tool, arguments)).await;
        without_change(&mut outcome);
        S::tidy(&mut outcome);
        for tree in &self.trees {
            let path = tree.path().to_str().expect("text");
            let shown = outcome.whole.to_string().contains(path);
            assert!(!shown, "a host path: {}", outcome.story());
        }
        S::check(tool, &outcome);
        outcome
    }

    /// The reply of a call that has to succeed.
    pub(crate) async fn ok(&self, tool: &str, arguments: Value) -> Value {
        self.call(tool, arguments).await.ok().clone()
    }

    /// The error object of a call that has to fail.
    pub(crate) async fn failure(&self, tool: &str, arguments: Value) -> Value {
        S::error(self.call(tool, arguments).await.error()).clone()
    }

    /// The error object of a call that has to fail with this code.
    pub(crate) async fn fails(&self, code: &str, tool: &str, arguments: Value) -> Value {
        let outcome = self.call(tool, arguments).await;
        let error = S::error(outcome.error()).clone();
        assert_eq!(error[S::CODE], code, "{}", outcome.story());
        error
    }
}

/// Takes out of a reply what names its change; `faults/history*.rs` looks at that.
fn without_change(outcome: &mut Outcome) {
    let change = outcome.structured.get("change").and_then(Value::as_str);
    let Some(change) = change.filter(|_| !outcome.is_error).map(str::to_owned) else {
        return;
    };
    let notes = [format!("undo: {change}"), "cannot be undone".to_owned()];
    let reply = outcome.structured.as_object_mut().expect("an object");
    reply.remove("change");
    reply.remove("not_kept");
    for note in notes {
        for (with, without) in [
            (format!("\n[{note}]"), ""),
            (format!("; {note}]"), "]"),
            (format!("[{note}]"), ""),
        ] {
            if let Some(text) = outcome.text.strip_suffix(&with) {
                outcome.text = format!("{text}{without}");
            }
        }
    }
}

/// Checks that the text of a reply is its structured half as JSON.
#[track_caller]
pub(crate) fn text_is_structured(outcome: &Outcome) {
    let text: Value = serde_json::from_str(&outcome.text).expect("the text is JSON");
    assert_eq!(text, outcome.structured, "{}", outcome.story());
}

/// Checks that the text of a reply is not its structured half as JSON.
#[track_caller]
pub(crate) fn text_is_compact(outcome: &Outcome) {
    let json = serde_json::from_str::<Value>(&outcome.text).ok();
    assert_ne!(
        json.as_ref(),
        Some(&outcome.structured),
        "{}",
        outcome.story()
    );
}

/// The values of one key in a list of objects.
#[track_caller]
pub(crate) fn each<'a>(list: &'a Value, key: &str) -> Vec<&'a str> {
    let items = list.as_array().unwrap_or_else(|| panic!("no list: {list}"));
    names(items, key)
}

/// The names of tools as `tools/list` offers them.
#[track_caller]
pub(crate) fn tool_names(tools: &[Value]) -> Vec<&str> {
    names(tools, "name")
}

#[track_caller]
fn names<'a>(items: &'a [Value], key: &str) -> Vec<&'a str> {
    let text = |item: &'a Value| {
        let text = item[key].as_str();
        text.unwrap_or_else(|| panic!("no {key}: {item}"))
    };
    items.iter().map(text).collect()
}

/// Tells whether a text is a time as ISO 8601 has it, in UTC.
pub(crate) fn is_iso_8601(value: &Value) -> bool {
    let text = value.as_str().unwrap_or_default();
    let shape = "0000-00-00T00:00:00";
    let fits = text
        .chars()
        .zip(shape.chars())
        .all(|(own, wanted)| match wanted {
            '0' => own.is_ascii_digit(),
            other => own == other,
        });
    fits && text.len() > shape.len() && text.ends_with('Z')
}
