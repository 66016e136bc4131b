//! A server with one project, ready to be asked; agents that answer; and what is true of every reply.

use std::sync::{Arc, Mutex};

use testkit::{Outcome, ProtocolVersion, Server, Setup, Transport, Tree, Value, json};

use crate::harness::program;

/// The program with this project, found over HTTP at the set's own endpoint.
pub(super) fn setup(tree: &Tree) -> Setup {
    let path = tree.path().to_str().expect("text");
    program()
        .arguments(["--toolset", "guide", "--project-root", path])
        .endpoint("/mcp/guide")
}

/// The usual project.
pub(super) fn tree() -> Tree {
    Tree::new().dir("docs").dir("src").dir("tests")
}

/// Runs a body over stdio and over HTTP, each time with a project of its own and a client that cannot be asked.
pub(super) async fn both(body: impl AsyncFn(&Project)) {
    both_with(tree, |setup| setup, body).await;
}

/// The same with another project and more settings.
pub(super) async fn both_with(
    tree: impl Fn() -> Tree,
    settings: impl Fn(Setup) -> Setup,
    body: impl AsyncFn(&Project),
) {
    testkit::over_both(async |transport| {
        let tree = tree();
        let server = settings(setup(&tree)).start(transport).await;
        body(&Project { server, tree }).await;
    })
    .await;
}

/// Runs a body with a client that can be asked: both ways of asking, over stdio and over HTTP.
pub(super) async fn asked(
    settings: impl Fn(Setup) -> Setup,
    agent: impl Fn() -> Agent,
    body: impl AsyncFn(&Project, &Agent),
) {
    for revision in [ProtocolVersion::V_2025_11_25, ProtocolVersion::V_2026_07_28] {
        testkit::over_both(async |transport| {
            let (tree, agent) = (tree(), agent());
            let setup = agent.answering(settings(setup(&tree)).revision(revision.clone()));
            let server = setup.start(transport).await;
            body(&Project { server, tree }, &agent).await;
        })
        .await;
    }
}

/// A text for a prompt, or the message of an error.
type Answer = dyn Fn(&str) -> Result<String, String> + Send + Sync;

/// An agent with its own files, and what it was asked.
#[derive(Clone)]
pub(super) struct Agent {
    answer: Arc<Answer>,
    prompts: Arc<Mutex<Vec<String>>>,
}

impl Agent {
    /// An agent that answers prompts with text, or with the message of an error.
    pub(super) fn new(
        answer: impl Fn(&str) -> Result<String, String> + Send + Sync + 'static,
    ) -> Agent {
        Agent {
            answer: Arc::new(answer),
            prompts: Arc::default(),
        }
    }

    /// An agent that always says the same.
    pub(super) fn saying(answer: &str) -> Agent {
        let answer = answer.to_owned();
        Agent::new(move |_| Ok(answer.clone()))
    }

    /// What it was asked so far.
    pub(super) fn prompts(&self) -> Vec<String> {
        self.prompts.lock().expect("no panic while held").clone()
    }

    fn answering(&self, setup: Setup) -> Setup {
        let agent = self.clone();
        setup.sampling(move |params| {
            let prompt = prompt(&params);
            agent
                .prompts
                .lock()
                .expect("no panic while held")
                .push(prompt.clone());
            (agent.answer)(&prompt).map(|answer| sampled(&answer))
        })
    }
}

/// The text of a sampling request.
pub(super) fn prompt(params: &Value) -> String {
    let text = &params["messages"][0]["content"]["text"];
    text.as_str().expect("a prompt").to_owned()
}

/// A sampling result with this text.
pub(super) fn sampled(text: &str) -> Value {
    json!({"role": "assistant", "model": "test", "content": {"type": "text", "text": text}})
}

/// A running server and its project.
pub(super) struct Project {
    pub(super) server: Server,
    pub(super) tree: Tree,
}

impl Project {
    /// Calls a tool and checks what is true of every reply.
    pub(super) async fn call(&self, tool: &str, arguments: Value) -> Outcome {
        let outcome = self.server.call(tool, arguments).await;
        self.check(&outcome);
        outcome
    }

    fn check(&self, outcome: &Outcome) {
        let host = self.tree.path().to_str().expect("text");
        let story = || outcome.story();
        assert!(!outcome.whole.to_string().contains(host), "{}", story());
        let text: Value = serde_json::from_str(&outcome.text).expect("the text is JSON");
        assert_eq!(text, outcome.structured, "{}", story());
        assert_eq!(text["success"], json!(!outcome.is_error), "{}", story());
        match outcome.is_error {
            true => {
                for field in ["error", "error_type", "instruction"] {
                    assert!(text[field].is_string(), "{field}: {}", story());
                }
            }
            false => assert!(text["data"].is_object(), "{}", story()),
        }
    }

    /// The reply of a call that has to succeed.
    pub(super) async fn ok(&self, tool: &str, arguments: Value) -> Value {
        self.call(tool, arguments).await.ok().clone()
    }

    /// The data of a call that has to succeed.
    pub(super) async fn data(&self, tool: &str, arguments: Value) -> Value {
        self.ok(tool, arguments).await["data"].clone()
    }

    /// The error object of a call that has to fail in this way.
    pub(super) async fn fails(&self, error_type: &str, tool: &str, arguments: Value) -> Value {
        let outcome = self.call(tool, arguments).await;
        let error = outcome.error().clone();
        assert_eq!(error["error_type"], error_type, "{}", outcome.story());
        error
    }

    /// Caches a text file.
    pub(super) async fn cache(&self, path: &str, content: &str) -> Value {
        let arguments = json!({"path": path, "content": content});
        self.data("guide_cache_file", arguments).await
    }

    /// Asks for a text file that has to be there.
    pub(super) async fn content(&self, path: &str) -> Value {
        let data = self.data("guide_request_file", json!({"path": path})).await;
        data["content"].clone()
    }

    /// The figures of the cache.
    pub(super) async fn cache_figures(&self) -> Value {
        self.data("guide_cache_stats", json!({})).await["cache"].clone()
    }

    /// Tells whether a file is in the cache, with a client that cannot be asked.
    pub(super) async fn holds(&self, path: &str) -> bool {
        let outcome = self.call("guide_request_file", json!({"path": path})).await;
        !outcome.is_error
    }

    /// How the client talks to it.
    pub(super) fn transport(&self) -> Transport {
        self.server.transport()
    }
}
