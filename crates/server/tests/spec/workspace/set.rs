//! How tests start `workspace`, and what is true of each of its replies.

use testkit::{Outcome, Setup, Tree, Value, json};

use crate::harness::{Harness, ToolSet, program, text_is_compact};

/// The `workspace` set.
pub(crate) struct Workspace;

impl ToolSet for Workspace {
    /// One root, called `workspace`, that allows every tool.
    fn setup(tree: &Tree) -> Setup {
        program().root("workspace", tree.path())
    }

    /// Names the root `workspace` if the arguments name none.
    fn complete(tool: &str, mut arguments: Value) -> Value {
        let names: &[&str] = match tool {
            "list_roots" => &[],
            "copy" | "move" => &["source_root", "dest_root"],
            _ => &["root"],
        };
        let object = arguments.as_object_mut().expect("arguments are an object");
        for name in names {
            object.entry(*name).or_insert_with(|| "workspace".into());
        }
        arguments
    }

    fn check(tool: &str, outcome: &Outcome) {
        let story = || outcome.story();
        assert!(keys_are_snake_case(&outcome.structured), "{}", story());
        if outcome.is_error {
            let error = Self::error(outcome.error());
            assert_eq!(error["message"], outcome.text.as_str(), "{}", story());
            assert_eq!(error["details"]["tool"], tool, "{}", story());
        } else {
            text_is_compact(outcome);
        }
    }

    /// Versions are random to a test; `versions.rs` looks at them.
    fn tidy(outcome: &mut Outcome) {
        if outcome.is_error {
            return;
        }
        remove_versions(&mut outcome.structured);
        outcome.text = without_versions(&outcome.text, &outcome.structured);
    }

    fn error(reply: &Value) -> &Value {
        &reply["error"]
    }
}

fn remove_versions(value: &mut Value) {
    match value {
        Value::Object(object) => {
            let version = object.get("version").and_then(Value::as_str);
            if version.is_some_and(is_version) {
                object.remove("version");
            }
            object.values_mut().for_each(remove_versions);
        }
        Value::Array(items) => items.iter_mut().for_each(remove_versions),
        _ => {}
    }
}

/// Tells whether a text has the form of a version.
pub(crate) fn is_version(text: &str) -> bool {
    text.len() == 9 && text.starts_with(['h', 's'])
}

fn without_versions(text: &str, structured: &Value) -> String {
    let line = |line: &str| -> Option<String> {
        let Some((before, version)) = line.trim_end_matches(']').rsplit_once("version ") else {
            return Some(line.to_owned());
        };
        match before {
            _ if !is_version(version) => Some(line.to_owned()),
            "[" => None,
            before => match before.strip_suffix("; ") {
                Some(note) => Some(format!("{note}]")),
                None => Some(before.trim_end_matches([',', ' ']).to_owned()),
            },
        }
    };
    let lines: Vec<String> = text.split('\n').filter_map(line).collect();
    let content = structured["content"].as_str().unwrap_or_default();
    let end = if text.ends_with(']') && content.ends_with('\n') && !text.ends_with(content) {
        "\n"
    } else {
        ""
    };
    let joined = lines.join("\n");
    if joined.len() < text.len() {
        joined + end
    } else {
        text.to_owned()
    }
}

impl Workspace {
    /// Runs a body over stdio and over HTTP on several roots: name, tree, allowed tools.
    pub(crate) async fn both_on(
        roots: impl Fn() -> Vec<(&'static str, Tree, &'static [&'static str])>,
        body: impl AsyncFn(&Harness<Workspace>),
    ) {
        testkit::over_both(async |transport| {
            let roots = roots();
            let setup = roots.iter().fold(program(), |setup, (name, tree, tools)| {
                setup.root_allowing(name, tree.path(), tools)
            });
            let trees = roots.into_iter().map(|(_, tree, _)| tree).collect();
            body(&Harness::new(setup.start(transport).await, trees)).await;
        })
        .await;
    }
}

impl Harness<Workspace> {
    /// The message of a call that has to fail with this code.
    pub(crate) async fn message(&self, code: &str, tool: &str, arguments: Value) -> String {
        let error = self.fails(code, tool, arguments).await;
        error["message"].as_str().expect("a message").to_owned()
    }

    /// A file's content, read by the server.
    pub(crate) async fn read(&self, path: &str) -> String {
        let reply = self.ok("read_file", json!({"path": path})).await;
        reply["content"].as_str().expect("content").to_owned()
    }
}

fn keys_are_snake_case(value: &Value) -> bool {
    let plain = |key: &String| {
        key.chars()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
    };
    match value {
        Value::Object(object) => object
            .iter()
            .all(|(key, value)| plain(key) && keys_are_snake_case(value)),
        Value::Array(items) => items.iter().all(keys_are_snake_case),
        _ => true,
    }
}
