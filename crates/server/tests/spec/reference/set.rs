//! How tests start `reference`, and what is true of each of its replies.

use testkit::{Outcome, Server, Setup, Transport, Tree, Value, json};

use crate::harness::program;

/// The `reference` set on one or more trees.
pub(crate) struct Reference {
    pub(crate) server: Server,
    pub(crate) trees: Vec<Tree>,
}

/// The program with the set.
pub(crate) fn setup() -> Setup {
    program()
        .arguments(["--toolset", "reference"])
        .endpoint("/mcp/reference")
}

/// A path as text.
pub(crate) fn text(path: &std::path::Path) -> &str {
    path.to_str().expect("text")
}

impl Reference {
    /// Serves these trees.
    pub(crate) async fn start(trees: Vec<Tree>, transport: Transport) -> Reference {
        let paths = trees.iter().map(|tree| text(tree.path()).to_owned());
        let server = setup().arguments(paths.collect::<Vec<_>>());
        let server = server.start(transport).await;
        Reference { server, trees }
    }

    /// Runs a body over stdio and over HTTP, each time on a tree of its own.
    pub(crate) async fn both(tree: impl Fn() -> Tree, body: impl AsyncFn(&Reference)) {
        testkit::over_both(async |transport| {
            body(&Reference::start(vec![tree()], transport).await).await;
        })
        .await;
    }

    /// The first tree.
    pub(crate) fn tree(&self) -> &Tree {
        &self.trees[0]
    }

    /// A path in the first tree, as the host has it.
    pub(crate) fn host(&self, path: &str) -> String {
        text(&self.tree().join(path)).to_owned()
    }

    /// Calls a tool and checks what is true of every reply.
    pub(crate) async fn call(&self, tool: &str, arguments: Value) -> Outcome {
        let outcome = self.server.call(tool, arguments).await;
        if outcome.is_error {
            assert!(outcome.structured.is_null(), "{}", outcome.story());
        } else if tool != "read_media_file" {
            let own = json!({"content": outcome.text});
            assert_eq!(outcome.structured, own, "{}", outcome.story());
        }
        outcome
    }

    /// The text of a call that has to succeed.
    pub(crate) async fn ok(&self, tool: &str, arguments: Value) -> String {
        let outcome = self.call(tool, arguments).await;
        assert!(!outcome.is_error, "{}", outcome.story());
        outcome.text
    }

    /// The message of a call that has to fail.
    pub(crate) async fn fails(&self, tool: &str, arguments: Value) -> String {
        let outcome = self.call(tool, arguments).await;
        assert!(outcome.is_error, "{}", outcome.story());
        outcome.text
    }
}
