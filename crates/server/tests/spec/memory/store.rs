//! A server with one storage, ready to be asked; and what is true of every reply.

use testkit::{Outcome, Server, Setup, Tree, Value, json};

use crate::harness::program;

/// The program with this storage, found over HTTP at the set's own endpoint.
pub(super) fn setup(tree: &Tree) -> Setup {
    let path = tree.path().to_str().expect("text");
    program()
        .arguments(["--toolset", "memory", "--base-path", path])
        .endpoint("/mcp/memory")
}

/// Runs a body over stdio and over HTTP, each time on a storage of its own.
pub(super) async fn both(tree: impl Fn() -> Tree, body: impl AsyncFn(&Store)) {
    testkit::over_both(async |transport| {
        let tree = tree();
        let server = setup(&tree).start(transport).await;
        body(&Store { server, tree }).await;
    })
    .await;
}

/// A running server and its storage.
pub(super) struct Store {
    pub(super) server: Server,
    pub(super) tree: Tree,
}

impl Store {
    /// Calls a tool and checks what is true of every reply.
    pub(super) async fn call(&self, tool: &str, arguments: Value) -> Outcome {
        let outcome = self.server.call(tool, arguments).await;
        let host = self.tree.path().to_str().expect("text");
        let story = || outcome.story();
        assert!(!outcome.whole.to_string().contains(host), "{}", story());
        let text: Value = serde_json::from_str(&outcome.text).expect("the text is JSON");
        assert_eq!(text, outcome.structured, "{}", story());
        if outcome.is_error {
            assert!(text["code"].is_string(), "{}", story());
            assert!(text["message"].is_string(), "{}", story());
        }
        outcome
    }

    /// The reply of a call that has to succeed.
    pub(super) async fn ok(&self, tool: &str, arguments: Value) -> Value {
        self.call(tool, arguments).await.ok().clone()
    }

    /// The error object of a call that has to fail.
    pub(super) async fn fails(&self, tool: &str, arguments: Value) -> Value {
        self.call(tool, arguments).await.error().clone()
    }

    /// Creates a text file.
    pub(super) async fn create(&self, path: &str, content: &str) {
        let arguments = json!({"path": path, "content": content, "encoding": "utf-8"});
        let reply = self.ok("create", arguments).await;
        assert_eq!(reply, json!({"success": true, "path": path}));
    }

    /// Replaces a string.
    pub(super) async fn replace(&self, path: &str, old: &str, new: &str) {
        let arguments = json!({"path": path, "old_str": old, "new_str": new});
        let reply = self.ok("str_replace", arguments).await;
        assert_eq!(reply, json!({"success": true, "path": path}));
    }

    /// What `view` says.
    pub(super) async fn view(&self, path: &str) -> Value {
        self.ok("view", json!({"path": path})).await
    }
}

/// An error object with nothing but the three usual fields.
pub(super) fn error(code: &str, message: &str, path: &str) -> Value {
    json!({"code": code, "message": message, "path": path})
}

/// The refusal of a path that leaves the storage.
pub(super) fn escape(path: &str) -> Value {
    error("path_security", "Path escapes base directory", path)
}
