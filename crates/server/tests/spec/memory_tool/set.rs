//! How tests start `memory_tool`, and what is true of each of its replies.

use testkit::{Outcome, Server, Setup, Transport, Tree, Value, json};

use crate::harness::program;

/// The `memory_tool` set on a tree.
pub(crate) struct MemoryTool {
    pub(crate) server: Server,
    pub(crate) tree: Tree,
}

impl MemoryTool {
    /// The program with the set.
    pub(crate) fn setup(tree: &Tree) -> Setup {
        let path = tree.path().to_str().expect("text");
        program()
            .arguments(["--toolset", "memory_tool", "--base-path", path])
            .endpoint("/mcp/memory_tool")
    }

    /// Starts the program on a tree.
    pub(crate) async fn start(tree: Tree, transport: Transport) -> MemoryTool {
        let server = MemoryTool::setup(&tree).start(transport).await;
        MemoryTool { server, tree }
    }

    /// Runs a body over stdio and over HTTP, each time on a tree of its own.
    pub(crate) async fn both(tree: impl Fn() -> Tree, body: impl AsyncFn(&MemoryTool)) {
        testkit::over_both(async |transport| {
            body(&MemoryTool::start(tree(), transport).await).await;
        })
        .await;
    }

    /// Runs a command; the reply is one block and nothing besides.
    pub(crate) async fn call(&self, input: Value) -> Outcome {
        let outcome = self.server.call("memory", input).await;
        let blocks = outcome.whole["content"].as_array().map(Vec::len);
        assert_eq!(blocks, Some(1), "{}", outcome.story());
        assert!(outcome.structured.is_null(), "{}", outcome.story());
        outcome
    }

    /// The text of a command that has to succeed.
    pub(crate) async fn ok(&self, input: Value) -> String {
        let outcome = self.call(input).await;
        assert!(!outcome.is_error, "{}", outcome.story());
        outcome.text
    }

    /// The text of a command that has to fail.
    pub(crate) async fn fails(&self, input: Value) -> String {
        let outcome = self.call(input).await;
        assert!(outcome.is_error, "{}", outcome.story());
        outcome.text
    }

    /// The text of `view`.
    pub(crate) async fn view(&self, path: &str) -> String {
        self.ok(json!({"command": "view", "path": path})).await
    }
}
