//! How tests start `files`, and what is true of each of its replies.

use testkit::{Outcome, Setup, Tree, Value};

use crate::harness::{Harness, ToolSet, program, text_is_compact, text_is_structured};

/// The `files` set.
pub(crate) struct Files;

impl ToolSet for Files {
    fn setup(tree: &Tree) -> Setup {
        of_files().root("home", tree.path())
    }

    fn check(tool: &str, outcome: &Outcome) {
        if outcome.is_error {
            text_is_structured(outcome);
            let details = &Self::error(outcome.error())["details"];
            assert_eq!(details["operation"], tool, "{}", outcome.story());
            assert!(details["path"].is_string(), "{}", outcome.story());
        } else {
            text_is_compact(outcome);
        }
    }

    fn error(reply: &Value) -> &Value {
        &reply["error"]
    }
}

impl Harness<Files> {
    /// The message of a call that fails because of this parameter.
    pub(super) async fn refuses(&self, parameter: &str, tool: &str, arguments: Value) -> String {
        let error = self.fails("invalid_parameters", tool, arguments).await;
        assert_eq!(error["details"]["parameter"], parameter, "{error}");
        let message = error["message"].as_str().expect("a message").to_owned();
        assert!(message.contains(parameter), "{message}");
        message
    }
}

/// The program with the set and without a root.
pub(super) fn of_files() -> Setup {
    program()
        .arguments(["--toolset", "files"])
        .endpoint("/mcp/files")
}

/// The keys of an object in alphabetical order.
pub(super) fn keys(value: &Value) -> Vec<&str> {
    let object = value.as_object().expect("an object");
    let mut keys: Vec<&str> = object.keys().map(String::as_str).collect();
    keys.sort_unstable();
    keys
}
