//! A server with one tree, ready to be asked; and what is true of every reply.

pub(crate) mod machine;

use testkit::{Outcome, Server, Setup, Transport, Tree, Value, json};

/// The program under test.
pub(crate) fn program() -> Setup {
    Setup::new(env!("CARGO_BIN_EXE_mcp-filesystem"))
}

/// Runs a body over stdio and over HTTP, each time on a tree of its own with one root `workspace`.
pub(crate) async fn both(tree: impl Fn() -> Tree, body: impl AsyncFn(&Harness)) {
    both_with(tree, |setup| setup, body).await;
}

/// The same with more settings.
pub(crate) async fn both_with(
    tree: impl Fn() -> Tree,
    settings: impl Fn(Setup) -> Setup,
    body: impl AsyncFn(&Harness),
) {
    testkit::over_both(async |transport| {
        let tree = tree();
        let setup = settings(program().root("workspace", tree.path()));
        let workspace = Harness {
            server: setup.start(transport).await,
            trees: vec![tree],
        };
        body(&workspace).await;
    })
    .await;
}

/// Runs a body over stdio and over HTTP on several roots: name, tree, allowed tools.
pub(crate) async fn both_on(
    roots: impl Fn() -> Vec<(&'static str, Tree, &'static [&'static str])>,
    body: impl AsyncFn(&Harness),
) {
    testkit::over_both(async |transport| {
        let workspace = Harness::on(roots(), transport).await;
        body(&workspace).await;
    })
    .await;
}

/// A running server and the trees it serves.
pub(crate) struct Harness {
    pub(crate) server: Server,
    trees: Vec<Tree>,
}

impl Harness {
    async fn on(
        roots: Vec<(&'static str, Tree, &'static [&'static str])>,
        transport: Transport,
    ) -> Harness {
        let setup = roots.iter().fold(program(), |setup, (name, tree, tools)| {
            setup.root_allowing(name, tree.path(), tools)
        });
        let trees = roots.into_iter().map(|(_, tree, _)| tree).collect();
        Harness {
            server: setup.start(transport).await,
            trees,
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

    /// Calls a tool, on root `workspace` where the arguments name none, and checks what is true of
    /// every reply.
    pub(crate) async fn call(&self, tool: &str, arguments: Value) -> Outcome {
        let outcome = self.server.call(tool, with_roots(tool, arguments)).await;
        self.check(tool, &outcome);
        outcome
    }

    /// The reply of a call that has to succeed.
    pub(crate) async fn ok(&self, tool: &str, arguments: Value) -> Value {
        self.call(tool, arguments).await.ok().clone()
    }

    /// The message of a call that has to fail with this code.
    pub(crate) async fn fails(&self, code: &str, tool: &str, arguments: Value) -> String {
        let outcome = self.call(tool, arguments).await;
        let error = &outcome.error()["error"];
        assert_eq!(error["code"], code, "{}", outcome.story());
        error["message"].as_str().expect("a message").to_owned()
    }

    /// A file's content, read by the server.
    pub(crate) async fn read(&self, path: &str) -> String {
        let reply = self.ok("read_file", json!({"path": path})).await;
        reply["content"].as_str().expect("content").to_owned()
    }

    fn check(&self, tool: &str, outcome: &Outcome) {
        let story = || outcome.story();
        for tree in &self.trees {
            let path = tree.path().to_str().expect("text");
            assert!(
                !outcome.whole.to_string().contains(path),
                "a host path: {}",
                story()
            );
        }
        assert!(keys_are_snake_case(&outcome.structured), "{}", story());
        if outcome.is_error {
            let error = &outcome.error()["error"];
            assert_eq!(error["message"], outcome.text.as_str(), "{}", story());
            assert_eq!(error["details"]["tool"], tool, "{}", story());
        } else if tool != "read_file" {
            let text: Value = serde_json::from_str(&outcome.text).expect("the text is JSON");
            assert_eq!(&text, outcome.ok(), "{}", story());
        }
    }
}

fn with_roots(tool: &str, mut arguments: Value) -> Value {
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

/// The values of one key in a list of objects.
#[track_caller]
pub(crate) fn each<'a>(list: &'a Value, key: &str) -> Vec<&'a str> {
    let items = list.as_array().unwrap_or_else(|| panic!("no list: {list}"));
    items
        .iter()
        .map(|item| {
            item[key]
                .as_str()
                .unwrap_or_else(|| panic!("no {key}: {item}"))
        })
        .collect()
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
