//! Calls that a person has to confirm: in both eras, over stdio and HTTP.

use std::sync::{Arc, Mutex};

use testkit::rmcp::model::{CallToolRequestParams, CallToolResponse};
use testkit::{ProtocolVersion, Server, Setup, Transport, Tree, Value, json};

use crate::harness::message::{cancelled, initialize, initialized, tool_call};

const BINARY: &str = env!("CARGO_BIN_EXE_mcp-filesystem");
const ERAS: [ProtocolVersion; 2] = [ProtocolVersion::V_2025_11_25, ProtocolVersion::V_2026_07_28];

fn yes() -> Value {
    json!({"action": "accept", "content": {"confirm": true}})
}

/// Three files in `a`, and three with the same names in `b/a`.
fn tree() -> Tree {
    let names = ["1", "2", "3"];
    let tree = names.iter().fold(Tree::new(), |tree, name| {
        tree.file(format!("a/{name}"), "old\n")
    });
    names.iter().fold(tree, |tree, name| {
        tree.file(format!("b/a/{name}"), "there\n")
    })
}

fn setup(tree: &Tree, set: &str, confirm: Value) -> Setup {
    let root = json!({"allowed_tools": ["*"], "confirm": confirm, "history": {"place": "root"}});
    let setup = Setup::new(BINARY).root_with("w", tree.path(), root);
    // An older client can be asked over HTTP only if answers find their call.
    setup
        .set("toolsets", json!([set]))
        .set("server.sessions", "on")
        .set("server.root_header", false)
}

/// Everything that is in the tree, with its content.
fn content(tree: &Tree) -> Vec<(String, String)> {
    ["a", "b/a"]
        .iter()
        .flat_map(|dir| ["1", "2", "3"].map(|name| format!("{dir}/{name}")))
        .filter(|path| tree.has(path))
        .map(|path| (path.clone(), tree.text(&path)))
        .collect()
}

struct Case {
    set: &'static str,
    tool: &'static str,
    arguments: Value,
    would: &'static str,
}

fn case(set: &'static str, tool: &'static str, would: &'static str, arguments: Value) -> Case {
    Case {
        set,
        tool,
        arguments,
        would,
    }
}

/// Every tool that can do much with one call.
fn heavy() -> Vec<Case> {
    let each = |make: &dyn Fn(&str) -> Value| Value::Array(["1", "2", "3"].map(make).to_vec());
    let files = each(&|name| json!({"path": format!("a/{name}"), "content": "new\n"}));
    let edits = each(&|name| json!({"path": format!("a/{name}"), "old": "old", "new": "new"}));
    let patch: String = ["1", "2", "3"]
        .map(|name| format!("--- a/a/{name}\n+++ b/a/{name}\n@@ -1 +1 @@\n-old\n+new\n"))
        .concat();
    let ends = json!({"source_root": "w", "source_path": "a", "dest_root": "w", "dest_path": "b"});
    vec![
        case(
            "workspace",
            "remove_folder",
            "remove 3 files",
            json!({"root": "w", "path": "a"}),
        ),
        case(
            "workspace",
            "write_file",
            "overwrite 3 files",
            json!({"root": "w", "files": files}),
        ),
        case(
            "workspace",
            "edit_file",
            "overwrite 3 files",
            json!({"root": "w", "edits": edits}),
        ),
        case(
            "workspace",
            "patch_file",
            "overwrite 3 files",
            json!({"root": "w", "patch": patch}),
        ),
        case("workspace", "copy", "overwrite 3 files", ends),
        case(
            "files",
            "delete",
            "remove 3 files",
            json!({"path": "a", "recursive": true}),
        ),
        case(
            "files",
            "copy",
            "overwrite 3 files",
            json!({"source": "a", "destination": "b/a", "overwrite": true, "recursive": true}),
        ),
        case(
            "memory_tool",
            "memory",
            "remove 3 files",
            json!({"command": "delete", "path": "/memories/a"}),
        ),
    ]
}

async fn start(
    case: &Case,
    tree: &Tree,
    era: &ProtocolVersion,
    transport: Transport,
    answer: impl Fn(Value) -> Result<Value, String> + Send + Sync + 'static,
) -> Server {
    let confirm = json!({"remove": 2, "overwrite": 2});
    let setup = setup(tree, case.set, confirm).revision(era.clone());
    setup.person(answer).start(transport).await
}

#[tokio::test]
async fn a_heavy_call_asks_and_goes_on_with_a_plain_yes_only() {
    for (index, case) in heavy().iter().enumerate() {
        // Every tool in both eras and over both transports, not each with each.
        let era = &ERAS[index % 2];
        let transports = [Transport::Stdio, Transport::Http];
        for (turn, transport) in transports.into_iter().enumerate() {
            let tree = tree();
            let before = content(&tree);
            let asked: Arc<Mutex<Vec<Value>>> = Arc::default();
            let (told, answers) = (Arc::clone(&asked), Mutex::new(0));
            let era = if turn == 0 {
                era
            } else {
                &ERAS[(index + 1) % 2]
            };
            let server = start(case, &tree, era, transport, move |question| {
                told.lock().unwrap().push(question);
                let mut count = answers.lock().unwrap();
                *count += 1;
                Ok(match *count {
                    1 => json!({"action": "decline"}),
                    2 => json!({"action": "cancel"}),
                    3 => json!({"action": "accept", "content": {"confirm": false}}),
                    _ => yes(),
                })
            })
            .await;
            let place = format!("{} {} {era:?} {transport:?}", case.set, case.tool);
            for words in ["did not agree", "closed without an answer", "did not agree"] {
                let refused = server.call(case.tool, case.arguments.clone()).await;
                assert!(
                    refused.is_error && refused.text.contains(words),
                    "{place}: {}",
                    refused.story()
                );
                assert_eq!(content(&tree), before, "{place}");
            }
            let done = server.call(case.tool, case.arguments.clone()).await;
            assert!(!done.is_error, "{place}: {}", done.story());
            assert_ne!(content(&tree), before, "{place}");
            let asked = asked.lock().unwrap();
            assert_eq!(asked.len(), 4, "{place}");
            let message = asked[0]["message"].as_str().unwrap();
            assert!(message.contains(case.would), "{place}: {message}");
            assert!(
                message.starts_with(&format!("May {} go ahead", case.tool)),
                "{message}"
            );
        }
    }
}

/// What a move takes away from a root is that root's matter, wherever it goes.
#[tokio::test]
async fn a_move_to_another_root_asks_for_the_one_it_leaves() {
    let to_v = |from: &str| json!({"source_root": "w", "source_path": from, "dest_root": "v", "dest_path": from});
    for (rule, path, would) in [
        (json!({"remove": 2}), "a", "remove 3 files"),
        (json!({"remove": 0}), "a/1", "remove 1 file"),
        (json!({"tools": ["move"]}), "a/1", "remove 1 file"),
    ] {
        let (tree, other) = (tree(), Tree::new());
        let asked: Arc<Mutex<Vec<Value>>> = Arc::default();
        let told = Arc::clone(&asked);
        let server = setup(&tree, "workspace", rule)
            .root("v", other.path())
            .revision(ERAS[1].clone())
            .person(move |question| {
                told.lock().unwrap().push(question);
                Ok(json!({"action": "decline"}))
            })
            .start(Transport::Stdio)
            .await;
        let refused = server.call("move", to_v(path)).await;
        assert!(
            refused.text.contains("did not agree"),
            "{}",
            refused.story()
        );
        assert!(tree.has(path) && !other.has(path));
        let question = asked.lock().unwrap()[0]["message"].to_string();
        assert!(question.contains(would), "{question}");
    }
    // What it removes is no matter of the root that it goes to, and what stays in a root is not removed.
    let (tree, other) = (tree(), Tree::new());
    let server = Setup::new(BINARY)
        .root("w", tree.path())
        .root_with(
            "v",
            other.path(),
            json!({"allowed_tools": ["*"], "confirm": {"remove": 0}}),
        )
        .revision(ERAS[1].clone())
        .person(|_| Ok(json!({"action": "decline"})))
        .start(Transport::Stdio)
        .await;
    server.call("move", to_v("a")).await.ok();
    let within =
        json!({"source_root": "v", "source_path": "a", "dest_root": "v", "dest_path": "c"});
    server.call("move", within).await.ok();
    assert!(other.has("c/3") && !tree.has("a"));
}

#[tokio::test]
async fn less_than_that_asks_nobody() {
    for (index, case) in heavy().iter().enumerate() {
        let tree = tree();
        let before = content(&tree);
        let confirm = json!({"remove": 3, "overwrite": 3});
        let setup = setup(&tree, case.set, confirm).revision(ERAS[index % 2].clone());
        let setup = setup.person(|_| Ok(json!({"action": "decline"})));
        let server = setup.start(Transport::Stdio).await;
        let done = server.call(case.tool, case.arguments.clone()).await;
        assert!(!done.is_error, "{}", done.story());
        assert_ne!(content(&tree), before, "{} {}", case.set, case.tool);
    }
}

#[tokio::test]
async fn taking_back_much_asks_too() {
    for era in ERAS {
        let tree = tree();
        let asked: Arc<Mutex<Vec<String>>> = Arc::default();
        let told = Arc::clone(&asked);
        let setup = setup(&tree, "workspace", json!({"overwrite": 2})).revision(era);
        let setup = setup.person(move |question| {
            told.lock()
                .unwrap()
                .push(question["message"].as_str().unwrap().to_owned());
            Ok(yes())
        });
        let server = setup.start(Transport::Stdio).await;
        let cases = heavy();
        let write = cases.iter().find(|case| case.tool == "write_file").unwrap();
        assert!(
            !server
                .call("write_file", write.arguments.clone())
                .await
                .is_error
        );
        let rehearsed = server
            .call("undo", json!({"root": "w", "dry_run": true}))
            .await;
        assert!(!rehearsed.is_error, "{}", rehearsed.story());
        assert_eq!(asked.lock().unwrap().len(), 1);
        let undone = server.call("undo", json!({"root": "w"})).await;
        assert!(!undone.is_error, "{}", undone.story());
        assert_eq!(tree.text("a/1"), "old\n");
        let asked = asked.lock().unwrap();
        assert!(asked[1].contains("overwrite 3 files"), "{asked:?}");
    }
}

#[tokio::test]
async fn a_client_that_cannot_ask_is_told_how_to_do_with_less() {
    for case in heavy() {
        for (era, transport) in ERAS.into_iter().zip([Transport::Http, Transport::Stdio]) {
            let tree = tree();
            let before = content(&tree);
            let confirm = json!({"remove": 2, "overwrite": 2});
            let setup = setup(&tree, case.set, confirm).revision(era);
            let server = setup.start(transport).await;
            let refused = server.call(case.tool, case.arguments.clone()).await;
            assert!(refused.is_error, "{}", refused.story());
            for words in [
                "this client cannot ask",
                case.would,
                "at most 2 files with one call",
                "roots[].confirm",
            ] {
                assert!(refused.text.contains(words), "{words}: {}", refused.story());
            }
            assert_eq!(content(&tree), before, "{}", case.tool);
        }
    }
}

/// A tool that always asks does so whatever it changes, and in every set.
#[tokio::test]
async fn named_tools_always_ask() {
    let host = |tree: &Tree, path: &str| tree.join(path).to_str().unwrap().to_owned();
    let ends =
        json!({"source_root": "w", "source_path": "a/1", "dest_root": "w", "dest_path": "new"});
    let edit = json!([{"old": "old", "new": "new"}]);
    let patch = "--- a/1\n+++ b/1\n@@ -1 +1 @@\n-old\n+new\n";
    let cases: Vec<(&str, &str, Value)> = vec![
        (
            "workspace",
            "write_file",
            json!({"root": "w", "path": "new", "content": "x"}),
        ),
        (
            "workspace",
            "write_file",
            json!({"root": "w", "path": "a/1", "content": "x", "mode": "append"}),
        ),
        (
            "workspace",
            "write_file",
            json!({"root": "w", "files": [{"path": "new", "content": "x"}]}),
        ),
        (
            "workspace",
            "create_folder",
            json!({"root": "w", "path": "new"}),
        ),
        (
            "workspace",
            "remove_file",
            json!({"root": "w", "path": "a/1"}),
        ),
        (
            "workspace",
            "edit_file",
            json!({"root": "w", "path": "a/1", "edits": edit}),
        ),
        (
            "workspace",
            "patch_file",
            json!({"root": "w", "path": "a/1", "patch": patch}),
        ),
        ("workspace", "copy", ends.clone()),
        ("workspace", "move", ends),
        ("files", "write", json!({"path": "new", "content": "x"})),
        ("files", "mkdir", json!({"path": "new"})),
        ("files", "delete", json!({"path": "a/1"})),
        (
            "files",
            "copy",
            json!({"source": "a/1", "destination": "new"}),
        ),
        (
            "files",
            "move",
            json!({"source": "a/1", "destination": "new"}),
        ),
        (
            "memory",
            "create",
            json!({"path": "new", "content": "x", "encoding": "utf-8"}),
        ),
        (
            "memory",
            "str_replace",
            json!({"path": "a/1", "old_str": "old", "new_str": "new"}),
        ),
        (
            "memory",
            "insert",
            json!({"path": "a/1", "insert_line": 1, "new_str": "x"}),
        ),
        ("memory", "delete", json!({"path": "a/1"})),
        (
            "memory",
            "rename",
            json!({"old_path": "a/1", "new_path": "new"}),
        ),
        ("reference", "write_file", json!({"path": "new"})),
        ("reference", "edit_file", json!({"path": "a/1"})),
        ("reference", "create_directory", json!({"path": "new"})),
        (
            "reference",
            "move_file",
            json!({"source": "a/1", "destination": "new"}),
        ),
        (
            "memory_tool",
            "memory",
            json!({"command": "create", "path": "/memories/new", "file_text": "x"}),
        ),
        (
            "memory_tool",
            "memory",
            json!({"command": "delete", "path": "/memories/a/1"}),
        ),
    ];
    for (set, tool, mut arguments) in cases {
        let tree = tree();
        let before = content(&tree);
        if set == "reference" {
            for key in ["path", "source", "destination"] {
                if let Some(path) = arguments[key].as_str() {
                    arguments[key] = host(&tree, path).into();
                }
            }
            let edits = json!([{"oldText": "old", "newText": "new"}]);
            match tool {
                "write_file" => arguments["content"] = json!("x"),
                "edit_file" => arguments["edits"] = edits,
                _ => {}
            }
        }
        for era in ERAS {
            let confirm = json!({"tools": [format!("{set}.{tool}")]});
            let setup = setup(&tree, set, confirm).revision(era);
            let server = setup
                .person(|_| Ok(json!({"action": "decline"})))
                .start(Transport::Stdio)
                .await;
            let refused = server.call(tool, arguments.clone()).await;
            let is_asked = refused.is_error && refused.text.contains("did not agree");
            assert!(is_asked, "{set} {tool}: {}", refused.story());
            assert_eq!(content(&tree), before, "{set} {tool}");
            assert!(!tree.has("new"), "{set} {tool}");
        }
    }
}

#[tokio::test]
async fn what_is_more_by_then_is_asked_about_again() {
    for era in ERAS {
        let tree = Arc::new(tree());
        let (own, asked) = (Arc::clone(&tree), Arc::new(Mutex::new(Vec::new())));
        let told = Arc::clone(&asked);
        let setup = setup(&tree, "workspace", json!({"remove": 2})).revision(era);
        let setup = setup.person(move |question| {
            let mut told = told.lock().unwrap();
            told.push(question["message"].as_str().unwrap().to_owned());
            if told.len() == 1 {
                // Somebody else works here too while the person thinks.
                own.write("a/4", "x");
                return Ok(yes());
            }
            Ok(json!({"action": "decline"}))
        });
        let server = setup.start(Transport::Stdio).await;
        let refused = server
            .call("remove_folder", json!({"root": "w", "path": "a"}))
            .await;
        assert!(refused.is_error && tree.has("a/4"), "{}", refused.story());
        let asked = asked.lock().unwrap();
        assert!(
            asked[0].contains("remove 3 files") && asked[1].contains("remove 4 files"),
            "{asked:?}"
        );
    }
}

fn params(path: &str) -> CallToolRequestParams {
    let arguments = json!({"root": "w", "path": path});
    let arguments = arguments.as_object().unwrap().clone();
    CallToolRequestParams::new("remove_folder").with_arguments(arguments)
}

async fn once(server: &Server, params: CallToolRequestParams) -> Value {
    let response = server
        .client()
        .call_tool_once(params)
        .await
        .expect("a response");
    match response {
        CallToolResponse::Complete(result) => serde_json::to_value(result),
        CallToolResponse::InputRequired(question) => serde_json::to_value(question),
        other => panic!("{other:?}"),
    }
    .unwrap()
}

async fn answered(server: &Server, path: &str, state: &str, answer: Value) -> String {
    let mut params = params(path);
    params.input_responses = Some([("confirm".to_owned(), answer)].into());
    params.request_state = Some(state.to_owned());
    let reply = once(server, params).await;
    reply["content"][0]["text"]
        .as_str()
        .unwrap_or("a question")
        .to_owned()
}

/// A client of 2026-07-28 that drives the rounds itself.
#[tokio::test]
async fn an_answer_is_good_once_in_time_and_for_its_own_call() {
    for transport in [Transport::Stdio, Transport::Http] {
        let tree = tree();
        let setup = setup(&tree, "workspace", json!({"remove": 2}))
            .set("limits.confirm_timeout", 1)
            .revision(ProtocolVersion::V_2026_07_28);
        let server = setup
            .person(|_| Err("not used".to_owned()))
            .start(transport)
            .await;
        let ask = async || {
            let question = once(&server, params("a")).await;
            assert_eq!(
                question["inputRequests"]["confirm"]["method"],
                "elicitation/create"
            );
            question["requestState"].as_str().unwrap().to_owned()
        };
        let state = ask().await;
        let other = answered(&server, "b", &state, yes()).await;
        assert!(other.contains("does not belong to this call"), "{other}");
        let mut forged = state.clone();
        let flipped = if forged.pop() == Some('A') { 'B' } else { 'A' };
        forged.push(flipped);
        for forged in [&*forged, "", "yes", &"x".repeat(100_000)] {
            let told = answered(&server, "a", forged, yes()).await;
            assert!(told.contains("does not belong to this call"), "{told}");
        }
        assert!(tree.has("a/1") && tree.has("b/a/1"));
        let late = ask().await;
        tokio::time::sleep(std::time::Duration::from_millis(2200)).await;
        let told = answered(&server, "a", &late, yes()).await;
        assert!(told.contains("too late"), "{told}");
        let state = ask().await;
        let declined = answered(&server, "a", &state, json!({"action": "decline"})).await;
        assert!(declined.contains("did not agree"), "{declined}");
        let changed_mind = answered(&server, "a", &state, yes()).await;
        assert!(changed_mind.contains("used already"), "{changed_mind}");
        assert!(tree.has("a/1"));
        let state = ask().await;
        let removed = answered(&server, "a", &state, yes()).await;
        assert!(!tree.has("a"), "{removed}");
        tree.write("a/1", "x");
        tree.write("a/2", "x");
        tree.write("a/3", "x");
        let replayed = answered(&server, "a", &state, yes()).await;
        assert!(
            replayed.contains("used already") && tree.has("a/1"),
            "{replayed}"
        );
    }
}

/// An older client by hand: it hangs, withdraws its call, and answers too late.
#[tokio::test]
async fn an_older_client_can_take_too_long_and_can_withdraw() {
    let tree = tree();
    let setup = setup(&tree, "workspace", json!({"remove": 2})).set("limits.confirm_timeout", 1);
    let mut wire = setup.wire(Transport::Stdio).await;
    wire.request(&initialize(&json!({"elicitation": {}}))).await;
    wire.notify(&initialized()).await;
    let arguments = json!({"root": "w", "path": "a"});
    let next = async |wire: &mut testkit::Wire| -> Value {
        let line = wire.next().await.expect("a line");
        serde_json::from_str(&line).expect("JSON")
    };
    wire.send(&tool_call(1, "remove_folder", &arguments).to_string())
        .await;
    let question = next(&mut wire).await;
    assert_eq!(question["method"], "elicitation/create");
    let mut late = next(&mut wire).await;
    if late["method"] == "notifications/cancelled" {
        late = next(&mut wire).await;
    }
    let text = late["result"]["content"][0]["text"]
        .as_str()
        .unwrap_or_default();
    assert!(text.contains("too late"), "{late}");
    let answer = json!({"jsonrpc": "2.0", "id": question["id"], "result": yes()});
    wire.send(&answer.to_string()).await;
    wire.send(&tool_call(2, "remove_folder", &arguments).to_string())
        .await;
    let question = loop {
        let message = next(&mut wire).await;
        if message["method"] == "elicitation/create" {
            break message;
        }
    };
    wire.notify(&cancelled(2)).await;
    let answer = json!({"jsonrpc": "2.0", "id": question["id"], "result": yes()});
    wire.send(&answer.to_string()).await;
    let ping = json!({"jsonrpc": "2.0", "id": 3, "method": "ping"});
    wire.send(&ping.to_string()).await;
    while next(&mut wire).await["id"] != 3 {}
    assert!(tree.has("a/1") && tree.has("a/3"));
}
