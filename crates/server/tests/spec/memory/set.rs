//! How tests start `memory`, and what is true of each of its replies.

use testkit::{Outcome, Setup, Tree, Value, json};

use crate::harness::{Harness, ToolSet, program, text_is_compact, text_is_structured};

/// The `memory` set.
pub(crate) struct Memory;

impl ToolSet for Memory {
    /// The storage over HTTP is at the set's own endpoint.
    fn setup(tree: &Tree) -> Setup {
        let path = tree.path().to_str().expect("text");
        program()
            .arguments(["--toolset", "memory", "--base-path", path])
            .endpoint("/mcp/memory")
    }

    fn check(_tool: &str, outcome: &Outcome) {
        if outcome.is_error {
            text_is_structured(outcome);
            let error = Self::error(outcome.error());
            assert!(error["code"].is_string(), "{}", outcome.story());
            assert!(error["message"].is_string(), "{}", outcome.story());
        } else {
            text_is_compact(outcome);
        }
    }

    fn error(reply: &Value) -> &Value {
        reply
    }
}

impl Harness<Memory> {
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

    /// What `view` replies.
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
