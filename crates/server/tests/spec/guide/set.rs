//! How tests start `guide`, agents that answer its questions, and what is true of each of its replies.

use std::sync::{Arc, Mutex};

use testkit::{Outcome, ProtocolVersion, Setup, Transport, Tree, Value, json};

use crate::harness::{Harness, ToolSet, program, text_is_structured};

/// The two ways of asking a client: a request of the server's own, and a result that needs input.
pub(super) const REVISIONS: [ProtocolVersion; 2] =
    [ProtocolVersion::V_2025_11_25, ProtocolVersion::V_2026_07_28];

/// No settings beyond the usual ones.
pub(super) const PLAIN: fn(Setup) -> Setup = |setup| setup;

/// The `guide` set.
pub(crate) struct Guide;

impl ToolSet for Guide {
    const CODE: &str = "error_type";

    /// The project over HTTP is at the set's own endpoint.
    fn setup(tree: &Tree) -> Setup {
        let path = tree.path().to_str().expect("text");
        program()
            .arguments(["--toolset", "guide", "--project-root", path])
            .endpoint("/mcp/guide")
    }

    fn check(_tool: &str, outcome: &Outcome) {
        let (reply, story) = (&outcome.structured, || outcome.story());
        text_is_structured(outcome);
        assert_eq!(reply["success"], json!(!outcome.is_error), "{}", story());
        if outcome.is_error {
            for field in ["error", "error_type", "instruction"] {
                assert!(reply[field].is_string(), "{field}: {}", story());
            }
        } else {
            assert!(reply["data"].is_object(), "{}", story());
        }
    }

    fn error(reply: &Value) -> &Value {
        reply
    }
}

/// The usual project.
pub(super) fn tree() -> Tree {
    Tree::new().dir("docs").dir("src").dir("tests")
}

/// Runs a body with a client that can be asked: both ways of asking, over stdio and over HTTP.
pub(super) async fn asked(
    settings: impl Fn(Setup) -> Setup,
    agent: impl Fn() -> Agent,
    body: impl AsyncFn(&Harness<Guide>, &Agent),
) {
    for revision in REVISIONS {
        testkit::over_both(async |transport| {
            let agent = agent();
            let settings = |setup| agent.answering(settings(setup).revision(revision.clone()));
            let guide = Guide::start(tree(), settings, transport).await;
            body(&guide, &agent).await;
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
    marks: bool,
    asked: Arc<Mutex<Vec<Value>>>,
}

impl Agent {
    /// An agent that answers prompts with text behind its marker, or with the message of an error.
    pub(super) fn new(
        answer: impl Fn(&str) -> Result<String, String> + Send + Sync + 'static,
    ) -> Agent {
        Agent {
            answer: Arc::new(answer),
            marks: true,
            asked: Arc::default(),
        }
    }

    /// An agent that always says this, word for word.
    pub(super) fn literally(answer: &str) -> Agent {
        Agent {
            marks: false,
            ..Agent::saying(answer)
        }
    }

    /// An agent that always says the same, behind its marker unless it is a failure.
    pub(super) fn saying(answer: &str) -> Agent {
        let answer = answer.to_owned();
        Agent::new(move |_| Ok(answer.clone()))
    }

    /// What it was asked so far, in words.
    pub(super) fn prompts(&self) -> Vec<String> {
        self.asked().iter().map(prompt).collect()
    }

    /// The parameters of every question so far.
    pub(super) fn asked(&self) -> Vec<Value> {
        self.asked.lock().expect("no panic while held").clone()
    }

    /// A setup whose client is this agent.
    pub(super) fn answering(&self, setup: Setup) -> Setup {
        let agent = self.clone();
        setup.sampling(move |params| agent.answer(&params))
    }

    fn answer(&self, params: &Value) -> Result<Value, String> {
        let mut asked = self.asked.lock().expect("no panic while held");
        asked.push(params.clone());
        drop(asked);
        let answer = (self.answer)(&prompt(params))?;
        let is_failure = [
            "File not found: ",
            "Directory not found: ",
            "Permission denied: ",
            "Encoding error: ",
        ]
        .iter()
        .any(|words| answer.starts_with(words));
        Ok(sampled(&if self.marks && !is_failure {
            marked(params, &answer)
        } else {
            answer
        }))
    }
}

/// The text of a sampling request.
fn prompt(params: &Value) -> String {
    let text = &params["messages"][0]["content"]["text"];
    text.as_str().expect("a prompt").to_owned()
}

/// What a question says to programs.
pub(super) fn told_to_programs(params: &Value) -> &Value {
    &params["_meta"]["io.github.mcp-filesystem/question"]
}

/// Content behind the marker of a question.
pub(super) fn marked(params: &Value, content: &str) -> String {
    let marker = told_to_programs(params)["marker"].as_str();
    format!("{}\n{content}", marker.expect("a marker"))
}

/// A sampling result with this text.
pub(super) fn sampled(text: &str) -> Value {
    json!({"role": "assistant", "model": "test", "content": {"type": "text", "text": text}})
}

impl Harness<Guide> {
    /// The data of a call that has to succeed.
    pub(super) async fn data(&self, tool: &str, arguments: Value) -> Value {
        self.ok(tool, arguments).await["data"].clone()
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

/// The text of a field.
pub(super) fn text_in<'a>(reply: &'a Value, field: &str) -> &'a str {
    let text = reply[field].as_str();
    text.unwrap_or_else(|| panic!("no {field}: {reply}"))
}
