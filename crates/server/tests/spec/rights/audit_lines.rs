//! What the line of a call tells: who, what was wanted, what became of it; and nothing of what is in files.

use std::collections::BTreeSet;

use testkit::{Transport, Tree, Value, json};

use super::ground::{CLIENTS, SETS, WHOLE};
use super::scene::Scene;
use crate::harness::ToolSet;
use crate::workspace::Workspace;

/// The arguments of all tools that are content. They are in no line.
const CONTENT: [&str; 10] = [
    "content",
    "file_text",
    "insert_text",
    "new",
    "newText",
    "new_str",
    "old",
    "oldText",
    "old_str",
    "patch",
];

/// All others that are texts. They are in every line. A new argument is put into one of the two lists.
const TOLD: &[&str] = &[
    "algorithm",
    "at",
    "change",
    "chunk_hash",
    "client",
    "command",
    "content_hash",
    "dest_path",
    "dest_root",
    "destination",
    "encoding",
    "excludePatterns",
    "file_pattern",
    "glob_filter",
    "if_version",
    "mode",
    "name",
    "new_path",
    "old_path",
    "other",
    "other_root",
    "output",
    "path",
    "paths",
    "pattern",
    "patterns",
    "regex",
    "root",
    "root_path",
    "since",
    "sort",
    "sortBy",
    "source",
    "source_path",
    "source_root",
    "to",
    "type",
    "type_filter",
];

/// Arguments that fit a schema. Every text is a mark with the argument's name; the marks are collected.
fn arguments(name: &str, schema: &Value, marks: &mut BTreeSet<String>) -> Value {
    let of = |name: &str, marks: &mut BTreeSet<String>| {
        marks.insert(name.to_owned());
        json!(mark(name))
    };
    match schema["type"].as_str() {
        Some("string") => match schema["enum"].get(0) {
            Some(first) => first.clone(),
            None => of(name, marks),
        },
        Some("integer" | "number") => json!(1),
        Some("boolean") => json!(true),
        Some("array") => json!([arguments(name, &schema["items"], marks)]),
        Some("object") => {
            let properties = schema["properties"].as_object().cloned();
            let own = properties.unwrap_or_default().into_iter();
            let own = own.map(|(name, schema)| {
                let value = arguments(&name, &schema, marks);
                (name, value)
            });
            Value::Object(own.collect())
        }
        _ => json!([]),
    }
}

fn mark(name: &str) -> String {
    format!("mark-of-{name}-x")
}

#[tokio::test]
async fn every_argument_that_is_not_content_is_in_the_line_and_no_content_is() {
    let mut scene = Scene::start(0).await;
    let mut seen = BTreeSet::new();
    for set in SETS {
        let list = scene.ask(WHOLE, set, "tools/list", &json!({})).await;
        for tool in list["result"]["tools"].as_array().expect("tools") {
            let name = tool["name"].as_str().expect("a name");
            let mut marks = BTreeSet::new();
            let wanted = arguments(name, &tool["inputSchema"], &mut marks);
            let number = scene.count();
            scene.call(WHOLE, set, name, &wanted).await;
            let line = scene.line_of(number).await;
            let text = line.to_string();
            for argument in &marks {
                let is_told = text.contains(&mark(argument));
                let is_content = CONTENT.contains(&argument.as_str());
                assert_ne!(is_told, is_content, "{set} {name}: {argument} in {line}");
            }
            assert_eq!(line["client_name"], CLIENTS[WHOLE].name, "{line}");
            assert!(line["request_size"].as_u64() > Some(100), "{line}");
            assert!(line["arguments"].is_object(), "{line}");
            seen.extend(marks);
        }
    }
    let known = CONTENT.iter().chain(TOLD);
    let known: BTreeSet<String> = known.map(|name| (*name).to_owned()).collect();
    let new: Vec<&String> = seen.difference(&known).collect();
    assert!(new.is_empty(), "are these content or not? {new:?}");
}

#[tokio::test]
async fn a_line_has_the_change_and_the_sizes() {
    testkit::over_both(async |transport| {
        let tree = Tree::new();
        let workspace = Workspace::start(tree, |setup| setup, transport).await;
        let write = json!({"root": "workspace", "path": "new.txt", "content": "CONTENT-MARK"});
        let written = workspace.server.call("write_file", write).await;
        let change = written.ok()["change"].clone();
        let line = workspace
            .server
            .logged(|line| line["tool"] == "write_file")
            .await;
        assert_eq!(line["change"], change, "{line}");
        assert!(change.is_string(), "{line}");
        assert_eq!(
            line["arguments"],
            json!({"root": "workspace", "path": "new.txt"})
        );
        assert!(line["request_size"].as_u64() > Some(100), "{line}");
        assert!(line["response_size"].as_u64() > Some(100), "{line}");
        let name = match transport {
            Transport::Stdio => "stdio",
            Transport::Http => "127.0.0.1",
        };
        assert_eq!(line["client_name"], name, "{line}");
        let read = json!({"root": "workspace", "path": "missing.txt", "contents": "CONTENT-MARK"});
        workspace.server.call("read_file", read).await;
        let line = workspace
            .server
            .logged(|line| line["tool"] == "read_file")
            .await;
        assert!(line.get("change").is_none(), "{line}");
        assert_eq!(line["arguments"]["path"], "missing.txt", "{line}");
        let log = workspace.server.stderr().join("\n");
        assert!(!log.contains("CONTENT-MARK"), "{log}");
    })
    .await;
}
