//! Descriptions, schemas and examples of the tools.

use testkit::Value;

use super::set::{Guide, tree};
use crate::harness::{ToolSet, catalogue, program, tool_names};

#[tokio::test]
async fn guide_tools_20_tool_description_generation() {
    Guide::both(tree, async |guide| {
        let tools = guide.server.list_tools().await;
        assert_eq!(tool_names(&tools), catalogue("guide").await);
        for tool in &tools {
            let description = tool["description"].as_str().unwrap();
            assert!(description.contains("Security: "), "{description}");
            let (_, example) = description.rsplit_once("Example: ").expect("an example");
            assert!(serde_json::from_str::<Value>(example).unwrap().is_object());
            let properties = tool["inputSchema"]["properties"].as_object().unwrap();
            assert!(
                properties
                    .values()
                    .all(|one| one["description"].is_string()),
                "{tool}"
            );
        }
        assert_eq!(guide.server.info()["serverInfo"]["name"], "mcp-guide");
    })
    .await;
}

async fn reference() -> String {
    let ended = program()
        .arguments(["tools", "--toolset", "guide"])
        .run()
        .await;
    assert_eq!(ended.code, Some(0), "{ended:?}");
    ended.stdout
}

#[tokio::test]
async fn guide_tools_21_argument_schema_documentation() {
    let page = reference().await;
    for row in [
        "| `path` | string | yes |  |  |",
        "| `binary` | boolean | no | `false` |  |",
        "| `metadata.mtime` | number | no |  | at least 0 |",
        "| `files[].path` | string | yes |  |  |",
        "| `files` | array of object | no |  | at least 1 items, at most 1000 items |",
        "| `chunk_count` | integer | no |  | at least 1, at most 10000 |",
    ] {
        assert!(page.contains(row), "{row} is not in\n{page}");
    }
}

/// Cuts a page of the reference into its examples: arguments and reply, tool by tool.
fn examples(page: &str) -> Vec<(String, Value, Value)> {
    let mut found = Vec::new();
    for section in page.split("\n## `").skip(1) {
        let (tool, rest) = section.split_once('`').unwrap();
        let blocks = rest.split("```json\n").skip(1);
        let blocks: Vec<Value> = blocks
            .map(|block| serde_json::from_str(block.split("```").next().unwrap()).unwrap())
            .collect();
        for pair in blocks.chunks(2) {
            found.push((tool.to_owned(), pair[0].clone(), pair[1].clone()));
        }
    }
    found
}

/// Replaces what differs from run to run.
fn steady(mut reply: Value) -> Value {
    let data = &mut reply["data"];
    if data.is_object() {
        data.as_object_mut().unwrap().remove("cache");
        for key in ["metadata", "listed_at", "age_seconds"] {
            match &mut data[key] {
                Value::Object(metadata) => drop(metadata.remove("cached_at")),
                other => *other = Value::Null,
            }
        }
    }
    reply
}

#[tokio::test]
async fn guide_tools_22_usage_examples() {
    let examples = examples(&reference().await);
    let tools = catalogue("guide").await;
    assert_eq!(examples.len(), 2 * tools.len(), "two for each tool");
    // In the order of the page, so that what is cached first is there for the requests.
    Guide::both(tree, async |guide| {
        for (tool, arguments, reply) in &examples {
            let outcome = guide.call(tool, arguments.clone()).await;
            if tool == "guide_cache_stats" && !outcome.is_error {
                let keys = |reply: &Value| {
                    let data = reply["data"].as_object().unwrap();
                    data.keys().cloned().collect::<Vec<_>>()
                };
                assert_eq!(
                    keys(&outcome.structured),
                    keys(reply),
                    "{}",
                    outcome.story()
                );
                continue;
            }
            let wanted = steady(reply.clone());
            assert_eq!(
                steady(outcome.structured.clone()),
                wanted,
                "{}",
                outcome.story()
            );
        }
    })
    .await;
}
