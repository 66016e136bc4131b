//! Hostile input, made from what the server offers in `tools/list`.
//!
//! Every argument of every tool of every set gets values of every wrong kind, and every argument that is a path gets every
//! known way out. For each: there is an answer, the server keeps running, nothing outside changes, and no reply
//! shows a path of the host.

use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt;

use testkit::{Server, Setup, Transport, Tree, Value, json, over_both};

use crate::harness::{ToolSet, machine};
use crate::workspace::Workspace;

/// The canary: files outside the root, with their times.
struct Outside {
    tree: Tree,
    before: Vec<(String, String, i64, i64)>,
}

impl Outside {
    fn new() -> Outside {
        let tree = Tree::new()
            .file("secret", "CANARY")
            .file("dir/deep", "CANARY")
            .dir("empty");
        let before = Outside::state(&tree);
        Outside { tree, before }
    }

    fn state(tree: &Tree) -> Vec<(String, String, i64, i64)> {
        let times = |path: &str| {
            let found = std::fs::symlink_metadata(tree.join(path)).expect("it is there");
            (
                found.mtime() * 1_000_000_000 + found.mtime_nsec(),
                i64::from(found.mode()),
            )
        };
        let mut state: Vec<_> = tree
            .listing()
            .into_iter()
            .map(|(path, what)| {
                let (mtime, mode) = times(&path);
                (path, what, mtime, mode)
            })
            .collect();
        let (mtime, mode) = times("");
        state.push((String::new(), "itself".to_owned(), mtime, mode));
        state
    }

    #[track_caller]
    fn is_untouched(&self, after: &str) {
        assert_eq!(Outside::state(&self.tree), self.before, "{after}");
    }
}

/// Fills a root with every kind of entry and every kind of link out of it. Removes what was there before.
fn fill(tree: &Tree, outside: &Outside) {
    for entry in std::fs::read_dir(tree.path()).expect("a root").flatten() {
        let kind = entry.file_type().expect("a kind");
        let removed = if kind.is_dir() {
            std::fs::remove_dir_all(entry.path())
        } else {
            std::fs::remove_file(entry.path())
        };
        removed.expect("it goes");
    }
    tree.write("file", "text\nmore\n");
    tree.write("dir/deep/file", "needle\n");
    tree.write("binary", b"\0\xff\xfe");
    let made = std::process::Command::new("mkfifo")
        .arg(tree.join("pipe"))
        .status();
    assert!(made.expect("mkfifo").success());
    let out = outside.tree.path();
    for (name, target) in [
        ("inside", "dir".into()),
        ("loop", "loop".into()),
        ("dangling", "nowhere".into()),
        ("out", out.to_owned()),
        ("out-file", out.join("secret")),
        ("out-new", out.join("new")),
        ("up", "..".into()),
        ("slash", "/".into()),
        ("proc", "/proc/self/root".into()),
        ("dir/chain", "../out".into()),
    ] {
        std::os::unix::fs::symlink(target, tree.join(name)).expect("a link");
    }
}

fn hostile_tree(outside: &Outside) -> Tree {
    let tree = Tree::in_memory();
    fill(&tree, outside);
    tree
}

/// Every way out that is known, and what only looks like one.
fn escapes(outside: &Tree) -> Vec<String> {
    let host = outside.path().display().to_string();
    let up = "../".repeat(40);
    let fixed = [
        "..",
        "../",
        "../..",
        "../x",
        "dir/../../x",
        "nope/../../x",
        "./.././x",
        "/../x",
        "//../x",
        "dir/..//../x",
        "...",
        ".../x",
        "dir/.",
        "dir/./..",
        "file/..",
        "file/../..",
        "file/",
        "file/.",
        "/etc/passwd",
        "/",
        "//",
        "",
        ".",
        "./",
        "~",
        "~/x",
        "~root",
        "$HOME/x",
        "${HOME}",
        "%2e%2e/x",
        "%2e%2e%2fx",
        "..%2fx",
        "%252e%252e%252fx",
        "..%c0%af..",
        "\u{ff0e}\u{ff0e}/x",
        "..\u{ff0f}x",
        "..\u{2215}x",
        "..\\x",
        "..\\..\\x",
        "C:",
        "C:\\x",
        "\\\\host\\x",
        "file:///etc/passwd",
        "\0",
        "file\0",
        "file\0.txt",
        "../\0",
        "a\nb",
        "\r\n",
        "\u{1b}[31m",
        "\u{202e}txt.x",
        "\u{feff}file",
        "\u{F7FF}",
        "\u{F780}/x",
        "out",
        "out/",
        "out/.",
        "out/secret",
        "out/new",
        "out/new/deep",
        "out/..",
        "out/../x",
        "out-file",
        "out-file/",
        "out-new",
        "out-new/",
        "out-new/x",
        "up",
        "up/",
        "up/x",
        "slash",
        "slash/etc/passwd",
        "proc",
        "proc/etc/passwd",
        "dir/chain",
        "dir/chain/",
        "dir/chain/secret",
        "inside/../out/secret",
        "inside/chain/secret",
        "loop",
        "loop/",
        "loop/x",
        "dangling",
        "dangling/",
        "pipe",
        "pipe/",
        "CON",
        "NUL",
        "-rf",
        "--help",
        "*",
        "file;rm -rf .",
        "$(touch x)",
        "`touch x`",
        "{a,b}",
        "[a]",
    ];
    let mut all: Vec<String> = fixed.iter().map(|path| (*path).to_owned()).collect();
    all.extend([
        host.clone(),
        format!("{host}/secret"),
        format!("/{host}/secret"),
        format!("..{host}/secret"),
        format!("{up}{host}/secret"),
        format!("{up}etc/passwd"),
        format!("dir/{up}x"),
        "a/../".repeat(800) + "../x",
        "dir/../".repeat(500) + "file",
        "x/".repeat(200),
        "x/".repeat(3000),
        "n".repeat(255),
        "n".repeat(256),
        "ä".repeat(128),
        "p".repeat(4095),
        "p".repeat(4097),
        "/".repeat(4000),
        "./".repeat(2000),
        "\u{10FFFF}".repeat(64),
    ]);
    all
}

/// Values of every kind, wrong almost everywhere.
fn values() -> Vec<Value> {
    let mut deep = json!("x");
    for _ in 0..90 {
        deep = json!([deep]);
    }
    let mut nested = json!({});
    for _ in 0..90 {
        nested = json!({"a": nested});
    }
    vec![
        Value::Null,
        json!(true),
        json!(false),
        json!(0),
        json!(-1),
        json!(1),
        json!(i64::MIN),
        json!(i64::MAX),
        json!(u64::MAX),
        json!(1e300),
        json!(-1e300),
        json!(0.5),
        json!(1e-300),
        json!(5.0),
        json!(""),
        json!(" "),
        json!("NaN"),
        json!("Infinity"),
        json!("0"),
        json!("null"),
        json!("\0"),
        json!("x".repeat(20_000)),
        json!("(".repeat(5_000)),
        json!("{".repeat(200)),
        json!("[".repeat(4_000)),
        json!("(?:[a-c]{0,200}){0,200}[0-9]"),
        json!("(?:a{1000}){1000}"),
        json!("*".repeat(4_000)),
        json!("**/".repeat(300)),
        json!("{a,b}".repeat(400)),
        json!("--- a\n+++ b\n@@ -1,99999999 +1,1 @@\n"),
        json!("@@ -18446744073709551615,1 +1,1 @@\n-x\n+y\n"),
        json!("diff --git a/../x b/../x\nrename from ../x\nrename to ../y\n"),
        json!("--- /dev/null\n+++ ../../x\nnew file mode 120000\n@@ -0,0 +1 @@\n+/etc/passwd\n"),
        json!("GIT binary patch\nliteral 5\nMcmZQz\n"),
        json!([]),
        json!([1, "two", null]),
        json!({}),
        json!({"$ref": "#"}),
        json!({"__proto__": {"x": 1}}),
        deep,
        nested,
    ]
}

/// The tools of a set, each with arguments that would work.
pub(super) struct Tool {
    pub(super) name: String,
    pub(super) properties: Vec<(String, Value)>,
    pub(super) plain: Value,
}

impl Tool {
    pub(super) fn new(offered: &Value) -> Tool {
        let name = offered["name"].as_str().expect("a name").to_owned();
        let schema = &offered["inputSchema"];
        let properties = schema["properties"]
            .as_object()
            .cloned()
            .unwrap_or_default();
        let required = schema["required"].as_array().cloned().unwrap_or_default();
        let mut plain = json!({});
        for argument in required.iter().filter_map(Value::as_str) {
            plain[argument] = likely(argument, &properties[argument]);
        }
        let properties = properties.into_iter().collect();
        Tool {
            name,
            properties,
            plain,
        }
    }

    /// The tool once for each of its commands, if it has several in one.
    fn by_command(self) -> Vec<Tool> {
        let schema = self.properties.iter().find(|(name, _)| name == "command");
        let commands = schema.and_then(|(_, schema)| schema["enum"].as_array());
        let Some(commands) = commands.cloned() else {
            return vec![self];
        };
        let each = commands.iter().map(|command| Tool {
            name: self.name.clone(),
            properties: self.properties.clone(),
            plain: with_paths(self.with("command", command), &self.properties),
        });
        each.collect()
    }

    pub(super) fn with(&self, argument: &str, value: &Value) -> Value {
        let mut arguments = self.plain.clone();
        arguments[argument] = value.clone();
        arguments
    }
}

/// Arguments with every path and text that some command needs, in the words of `memory_tool`.
fn with_paths(mut arguments: Value, properties: &[(String, Value)]) -> Value {
    for (name, schema) in properties {
        if is_path(name) {
            arguments[name] = json!("/memories/dir/deep/file");
        } else if arguments.get(name).is_none() && schema["type"] == "string" {
            arguments[name] = likely(name, schema);
        }
    }
    arguments
}

/// A value that a tool would take for an argument.
fn likely(argument: &str, schema: &Value) -> Value {
    if let Some(first) = schema["enum"].as_array().and_then(|all| all.first()) {
        return first.clone();
    }
    match (argument, schema["type"].as_str().unwrap_or_default()) {
        (name, "string") if name.contains("root") && !name.contains("path") => json!("workspace"),
        ("patch", _) => json!("@@ -1 +1 @@\n-text\n+TEXT\n"),
        ("pattern" | "regex", _) => json!("needle"),
        ("algorithm", _) => json!("md5"),
        ("encoding", _) => json!("utf-8"),
        ("old_str", _) => json!("more"),
        (name, "string") if is_path(name) => json!("dir/deep/file"),
        (_, "string") => json!("x"),
        (_, "integer" | "number") => json!(1),
        (_, "boolean") => json!(false),
        (_, "array") => json!([]),
        _ => json!({}),
    }
}

pub(super) fn is_path(argument: &str) -> bool {
    argument.contains("path") || matches!(argument, "source" | "destination" | "directory" | "file")
}

/// What was tried with one server.
struct Trial<'a> {
    server: &'a Server,
    tree: &'a Tree,
    outside: &'a Outside,
    set: &'a str,
    cases: u64,
}

impl Trial<'_> {
    /// Paths of the served directory that replies may show: only `reference` shows any.
    fn may_show(&self, tree: &Tree) -> bool {
        self.set == "reference" && tree.path() == self.tree.path()
    }

    /// The ways out as arguments of the set: those of `memory_tool` begin with its directory.
    fn escapes(&self) -> Vec<String> {
        let ways = escapes(&self.outside.tree);
        match self.set {
            "memory_tool" => {
                let below = ways.iter().map(|way| format!("/memories/{way}")).collect();
                [ways, below].concat()
            }
            _ => ways,
        }
    }

    /// Sends one case, which has to get an answer of any kind.
    async fn case(&mut self, tool: &str, arguments: Value) {
        self.cases += 1;
        let shown = || format!("{tool} {:.300}", arguments.to_string());
        let answer = match self.server.try_call(tool, arguments.clone()).await {
            Ok(outcome) => outcome.whole.to_string(),
            // An answer too: a JSON-RPC error.
            Err(testkit::rmcp::ServiceError::McpError(error)) => format!("{error:?}"),
            Err(error) => panic!("no answer to {}: {error}", shown()),
        };
        for tree in [self.tree, &self.outside.tree] {
            let host = tree.path().display().to_string();
            let given = arguments.to_string().contains(&host);
            assert!(
                given || self.may_show(tree) || !answer.contains(&host),
                "a host path: {} => {answer:.2000}",
                shown()
            );
        }
        assert!(!answer.contains("CANARY"), "{} => {answer:.2000}", shown());
    }

    /// Returns all cases over stdio, and a third over HTTP, a different third for each argument: behind the transport the
    /// code is the same.
    fn part<T>(&self, number: usize, all: Vec<T>) -> Vec<T> {
        match self.server.transport() {
            Transport::Stdio => all,
            Transport::Http => all.into_iter().skip(number % 3).step_by(3).collect(),
        }
    }

    async fn tool(&mut self, tool: &Tool) {
        for (number, (argument, _)) in tool.properties.iter().enumerate() {
            for value in self.part(number, values()) {
                self.case(&tool.name, tool.with(argument, &value)).await;
            }
            if is_path(argument) {
                for path in self.part(number, self.escapes()) {
                    self.case(&tool.name, tool.with(argument, &json!(path)))
                        .await;
                }
                self.outside
                    .is_untouched(&format!("{} {argument}", tool.name));
                fill(self.tree, self.outside);
            }
        }
        for (argument, value) in [
            ("unknown", json!(1)),
            ("", json!("")),
            ("__proto__", json!({})),
        ] {
            self.case(&tool.name, tool.with(argument, &value)).await;
        }
        self.case(&tool.name, json!({})).await;
        self.outside.is_untouched(&tool.name);
    }
}

pub(super) fn setup(set: &str, tree: &Tree) -> Setup {
    Workspace::setup(tree)
        .set("durability", "fast")
        // A watch that is let begin waits no longer.
        .set("limits.search_timeout", 1)
        .set("toolsets", json!([set]))
        .set("guide.project_root", tree.path().display().to_string())
        .endpoint(&format!("/mcp/{set}"))
}

async fn hostile(set: &str) {
    let mut cases = 0;
    let mut tools_seen = BTreeSet::new();
    let counts = std::cell::RefCell::new((&mut cases, &mut tools_seen));
    over_both(async |transport| {
        let outside = Outside::new();
        let tree = hostile_tree(&outside);
        let mut server = setup(set, &tree).start(transport).await;
        let offered = server.list_tools().await;
        let mut trial = Trial {
            server: &server,
            tree: &tree,
            outside: &outside,
            set,
            cases: 0,
        };
        let tools = offered.iter().map(Tool::new);
        for tool in tools.flat_map(Tool::by_command) {
            trial.tool(&tool).await;
            counts.borrow_mut().1.insert(tool.name);
        }
        *counts.borrow_mut().0 += trial.cases;
        assert!(server.is_alive());
    })
    .await;
    machine::said(&format!(
        "{set}: {cases} hostile cases over {} tools",
        tools_seen.len()
    ));
    assert!(cases > 1_000, "{cases}");
}

#[tokio::test]
async fn hostile_input_to_every_argument_of_workspace() {
    hostile("workspace").await;
}

#[tokio::test]
async fn hostile_input_to_every_argument_of_files() {
    hostile("files").await;
}

#[tokio::test]
async fn hostile_input_to_every_argument_of_memory() {
    hostile("memory").await;
}

#[tokio::test]
async fn hostile_input_to_every_argument_of_guide() {
    hostile("guide").await;
}

#[tokio::test]
async fn hostile_input_to_every_argument_of_reference() {
    hostile("reference").await;
}

#[tokio::test]
async fn hostile_input_to_every_argument_of_memory_tool() {
    hostile("memory_tool").await;
}

/// Ways out that are text alone, for tools that take a path: refused in every set.
#[tokio::test]
async fn hostile_ways_out_are_refused_as_such_in_every_set() {
    let (outside, ways) = (
        Outside::new(),
        ["../x", "dir/../../x", "nope/../../x", "out/secret", "up/x"],
    );
    for (set, tool, arguments, code) in [
        (
            "workspace",
            "read_file",
            json!({"root": "workspace"}),
            "path_outside_root",
        ),
        ("files", "read", json!({}), "path_validation_error"),
        ("memory", "view", json!({}), "path_security"),
    ] {
        let tree = hostile_tree(&outside);
        let server = setup(set, &tree).start(Transport::Stdio).await;
        for way in ways {
            let mut arguments = arguments.clone();
            arguments["path"] = json!(way);
            let outcome = server.call(tool, arguments).await;
            assert!(
                outcome.error().to_string().contains(code),
                "{}",
                outcome.story()
            );
        }
    }
    outside.is_untouched("reads");
}
