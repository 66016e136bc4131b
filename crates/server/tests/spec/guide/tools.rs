//! The scenarios of `guide-tools.md`.

use testkit::{Value, json};

use super::project::{Agent, asked, both, both_with, tree};
use crate::harness::program;

/// SHA-256 of "# Plan\n".
const PLAN_HASH: &str = "c3964bb3b70a957ec9b233c7dd3653f6ba17701ab00facf88ae1393dc6155577";

#[tokio::test]
async fn guide_tools_01_cache_single_file() {
    both(async |project| {
        let reply = project
            .ok(
                "guide_cache_file",
                json!({"path": "./docs//plan.md", "content": "# Plan\n"}),
            )
            .await;
        let data = &reply["data"];
        assert_eq!(data["cache_key"], "docs/plan.md");
        assert_eq!(
            (&data["status"], &data["content_hash"]),
            (&json!("cached"), &json!(PLAN_HASH))
        );
        let metadata = &data["metadata"];
        assert_eq!(
            (&metadata["size"], &metadata["encoding"]),
            (&json!(7), &json!("utf-8"))
        );
        assert!(
            metadata["cached_at"].as_str().unwrap().ends_with('Z'),
            "{metadata}"
        );
        assert_eq!(project.content("docs/plan.md").await, "# Plan\n");
        // The files are the agent's: nothing was written.
        assert!(!project.tree.has("docs/plan.md"));
    })
    .await;
}

#[tokio::test]
async fn guide_tools_02_cache_with_metadata() {
    both(async |project| {
        let metadata = json!({"mtime": 1000.5, "encoding": "latin-1", "size": 3});
        let arguments = json!({"path": "docs/a", "content": "abc", "metadata": metadata});
        let data = project.data("guide_cache_file", arguments).await;
        assert_eq!(data["metadata"]["mtime"], 1000.5);
        assert_eq!(data["metadata"]["encoding"], "windows-1252");
        let asked = json!({"path": "docs/a", "mtime": 1000.5});
        assert_eq!(
            project.data("guide_request_file", asked).await["content"],
            "abc"
        );
        let newer = json!({"path": "docs/a", "mtime": 1001});
        project
            .fails("unsupported", "guide_request_file", newer)
            .await;
        assert_eq!(project.cache_figures().await["invalidations"], 1);
    })
    .await;
}

#[tokio::test]
async fn guide_tools_03_security_policy_violation() {
    both(async |project| {
        let arguments = json!({"path": "secret/keys", "content": "x"});
        let error = project
            .fails("security", "guide_cache_file", arguments)
            .await;
        let message = error["error"].as_str().unwrap();
        assert!(
            message.contains("secret/keys") && message.contains("allowed"),
            "{message}"
        );
        let line = project
            .server
            .logged(|line| line["message"] == "violation")
            .await;
        assert_eq!(
            (&line["level"], &line["attempted_path"]),
            (&json!("WARN"), &json!("secret/keys"))
        );
        assert_eq!(project.cache_figures().await["entries"], 0);
    })
    .await;
}

#[tokio::test]
async fn guide_tools_04_overwrite_existing_cache_entry() {
    both(async |project| {
        let first = project.cache("docs/a", "one").await;
        let second = project.cache("docs/a", "two").await;
        assert_eq!(
            (&first["status"], &second["status"]),
            (&json!("cached"), &json!("updated"))
        );
        assert_eq!(second["cache"]["updates"], 1);
        let times = [&first, &second]
            .map(|data| data["metadata"]["cached_at"].as_str().unwrap().to_owned());
        assert!(times[0] <= times[1], "{times:?}");
        assert_eq!(project.content("docs/a").await, "two");
    })
    .await;
}

#[tokio::test]
async fn guide_tools_05_cache_size_limit_exceeded() {
    let small = |setup: testkit::Setup| setup.set("guide.cache_size", 25);
    both_with(tree, small, async |project| {
        for path in ["docs/a", "docs/b"] {
            project.cache(path, "0123456789").await;
        }
        // Using the first makes the second the least recently used.
        project.content("docs/a").await;
        let arguments = json!({"path": "docs/c", "content": "0123456789"});
        let reply = project.ok("guide_cache_file", arguments).await;
        assert_eq!(reply["data"]["evicted"], json!({"entries": 1, "bytes": 10}));
        assert_eq!(reply["data"]["cache"]["evictions"], 1);
        assert!(
            reply["warnings"][0].as_str().unwrap().contains("full"),
            "{reply}"
        );
        assert!(project.holds("docs/a").await && !project.holds("docs/b").await);
        let large = json!({"path": "docs/d", "content": "x".repeat(26)});
        project.fails("validation", "guide_cache_file", large).await;
        assert!(
            project.holds("docs/c").await,
            "nothing went for what cannot fit"
        );
    })
    .await;
}

fn entries() -> Value {
    json!([
        {"name": "b.md", "type": "file", "size": 3, "mtime": 20},
        {"name": "a", "type": "directory", "children": [
            {"name": "deep.rs", "type": "file", "size": 1},
            {"name": "inner", "type": "directory", "children": [{"name": "x.md", "type": "file"}]}
        ]}
    ])
}

#[tokio::test]
async fn guide_tools_06_list_directory_contents() {
    both(async |project| {
        let arguments = json!({"path": "docs/", "entries": entries()});
        let data = project.data("guide_list_directory", arguments).await;
        assert_eq!(data["cache_key"], "docs");
        assert_eq!(
            (&data["file_count"], &data["directory_count"]),
            (&json!(3), &json!(2))
        );
        let read = project
            .data("guide_request_directory", json!({"path": "docs"}))
            .await;
        assert_eq!(read["source"], "cache");
        let names = read["entries"]
            .as_array()
            .unwrap()
            .iter()
            .map(|entry| &entry["name"]);
        assert_eq!(names.collect::<Vec<_>>(), ["a", "b.md"]);
        let outside = json!({"path": "secret", "entries": []});
        project
            .fails("security", "guide_list_directory", outside)
            .await;
        let inside = json!({"path": "docs", "entries": [{"name": "../../x", "type": "file"}]});
        project
            .fails("security", "guide_list_directory", inside)
            .await;
    })
    .await;
}

#[tokio::test]
async fn guide_tools_07_include_file_metadata() {
    both(async |project| {
        let cached = json!({"path": "docs/b.md", "content": "old", "metadata": {"mtime": 10}});
        project.data("guide_cache_file", cached).await;
        let arguments = json!({"path": "docs", "entries": entries()});
        let data = project.data("guide_list_directory", arguments).await;
        assert_eq!(data["invalidated"], json!(["docs/b.md"]));
        assert!(!project.holds("docs/b.md").await);
        let read = project
            .data("guide_request_directory", json!({"path": "docs"}))
            .await;
        let expected = json!({"name": "b.md", "type": "file", "size": 3, "mtime": 20.0});
        assert_eq!(read["entries"][1], expected);
    })
    .await;
}

#[tokio::test]
async fn guide_tools_08_recursive_listing() {
    both(async |project| {
        let arguments = json!({"path": "docs", "entries": entries()});
        project.data("guide_list_directory", arguments).await;
        let whole = json!({"path": "docs", "recursive": true});
        let whole = project.data("guide_request_directory", whole).await;
        assert_eq!(whole["entries"][0]["children"][1]["children"][0]["name"], "x.md");
        // A directory below is found in the listing above it.
        let below = project.data("guide_request_directory", json!({"path": "docs/a/inner"})).await;
        assert_eq!((&below["source"], &below["entries"][0]["name"]), (&json!("cache"), &json!("x.md")));
        let deep = json!({"path": "docs", "entries": [{"name": "a", "type": "directory", "children": [
            {"name": "..", "type": "directory", "children": []}
        ]}]});
        project.fails("security", "guide_list_directory", deep).await;
    })
    .await;
}

#[tokio::test]
async fn guide_tools_09_filter_by_pattern() {
    both(async |project| {
        let arguments = json!({"path": "docs", "entries": entries(), "pattern": "*.md"});
        let reply = project.ok("guide_list_directory", arguments).await;
        assert_eq!(reply["data"]["file_count"], 2);
        let warning = reply["warnings"][0].as_str().unwrap();
        assert!(
            warning.contains("1 files") && warning.contains("*.md"),
            "{warning}"
        );
        let open = "{".repeat(5000);
        for pattern in ["[", "a{b", open.as_str()] {
            let arguments = json!({"path": "docs", "entries": [], "pattern": pattern});
            let error = project
                .fails("validation", "guide_list_directory", arguments)
                .await;
            assert!(
                error["error"].as_str().unwrap().contains("pattern"),
                "{error}"
            );
        }
    })
    .await;
}

#[tokio::test]
async fn guide_tools_10_read_text_file() {
    both(async |project| {
        let arguments =
            json!({"path": "docs/plan.md", "content": "# Plan\n", "content_hash": PLAN_HASH});
        let data = project.data("guide_read_file", arguments).await;
        assert_eq!(
            (&data["content_hash"], &data["hash_verified"]),
            (&json!(PLAN_HASH), &json!(true))
        );
        assert_eq!(
            (&data["complete"], &data["status"]),
            (&json!(true), &json!("cached"))
        );
        assert_eq!(project.content("docs/plan.md").await, "# Plan\n");
        let outside = json!({"path": "../plan.md", "content": "x"});
        project.fails("security", "guide_read_file", outside).await;
    })
    .await;
}

#[tokio::test]
async fn guide_tools_11_read_binary_file() {
    both(async |project| {
        // The bytes 00 ff 01 fe and their hash.
        let hash = "d4b6a8d8f1e2c3a4";
        let arguments = json!({"path": "docs/x.bin", "content": "AP8B/g==", "binary": true});
        let data = project.data("guide_read_file", arguments.clone()).await;
        assert_eq!(
            (&data["metadata"]["size"], &data["metadata"]["binary"]),
            (&json!(4), &json!(true))
        );
        let found = data["content_hash"].as_str().unwrap();
        let read = json!({"path": "docs/x.bin", "binary": true});
        let read = project.data("guide_request_file", read).await;
        assert_eq!(
            (&read["content"], &read["binary"]),
            (&json!("AP8B/g=="), &json!(true))
        );
        assert_eq!(read["content_hash"], found);
        let mut hashed = arguments.clone();
        hashed["content_hash"] = json!(found);
        assert_eq!(
            project.data("guide_read_file", hashed.clone()).await["hash_verified"],
            true
        );
        hashed["content_hash"] = json!(hash);
        let error = project.fails("validation", "guide_read_file", hashed).await;
        assert!(
            error["error"].as_str().unwrap().contains("Integrity"),
            "{error}"
        );
        for wrong in ["AP8B/g", "AP8B*g==", "AP8B\n/g=="] {
            let arguments = json!({"path": "docs/y.bin", "content": wrong, "binary": true});
            project
                .fails("validation", "guide_read_file", arguments)
                .await;
        }
        assert!(!project.holds("docs/y.bin").await);
    })
    .await;
}

#[tokio::test]
async fn guide_tools_12_file_encoding_specification() {
    both(async |project| {
        // "テ" in Shift JIS is 83 65.
        let arguments =
            json!({"path": "docs/a", "content": "g2U=", "binary": true, "encoding": "Shift_JIS"});
        let data = project.data("guide_read_file", arguments).await;
        assert_eq!(data["metadata"]["encoding"], "shift_jis");
        let read = project
            .data("guide_request_file", json!({"path": "docs/a"}))
            .await;
        assert_eq!(
            (&read["content"], &read["encoding"]),
            (&json!("テ"), &json!("shift_jis"))
        );
        let arguments = json!({"path": "docs/b", "content": "x", "encoding": "klingon"});
        let error = project
            .fails("validation", "guide_read_file", arguments)
            .await;
        assert!(
            error["error"].as_str().unwrap().contains("klingon"),
            "{error}"
        );
        assert!(
            error["instruction"].as_str().unwrap().contains("utf-8"),
            "{error}"
        );
    })
    .await;
}

#[tokio::test]
async fn guide_tools_13_large_file_handling() {
    both(async |project| {
        let chunk = |index: u32, content: &str| {
            json!({"path": "docs/big", "content": content, "chunk_index": index, "chunk_count": 3})
        };
        // SHA-256 of "abc" and of "one".
        let whole = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        let first = project.ok("guide_read_file", chunk(2, "c")).await;
        assert_eq!((&first["data"]["complete"], &first["data"]["chunks_received"]), (&json!(false), &json!(1)));
        assert!(first["warnings"][0].as_str().unwrap().contains("chunk 2"), "{first}");
        assert!(!project.holds("docs/big").await, "nothing incomplete is cached");
        project.data("guide_read_file", chunk(0, "a")).await;
        let mut bad = chunk(1, "b");
        bad["chunk_hash"] = json!(whole);
        let error = project.fails("validation", "guide_read_file", bad).await;
        assert!(error["error"].as_str().unwrap().contains("chunk 1"), "{error}");
        let mut last = chunk(1, "b");
        last["content_hash"] = json!(whole);
        let data = project.data("guide_read_file", last).await;
        assert_eq!((&data["complete"], &data["content_hash"]), (&json!(true), &json!(whole)));
        assert_eq!(project.content("docs/big").await, "abc");
        for wrong in [json!({"chunk_index": 3, "chunk_count": 3}), json!({"chunk_index": 0})] {
            let mut arguments = json!({"path": "docs/big", "content": "x"});
            arguments.as_object_mut().unwrap().extend(wrong.as_object().unwrap().clone());
            project.fails("validation", "guide_read_file", arguments).await;
        }
    })
    .await;
}

#[tokio::test]
async fn guide_tools_13_an_incomplete_upload_expires() {
    let short = |setup: testkit::Setup| setup.set("guide.cache_ttl", 1);
    both_with(tree, short, async |project| {
        let chunk = |index: u32| {
            json!({"path": "docs/big", "content": "x", "chunk_index": index, "chunk_count": 2})
        };
        project.data("guide_read_file", chunk(0)).await;
        tokio::time::sleep(std::time::Duration::from_millis(1100)).await;
        let late = project.data("guide_read_file", chunk(1)).await;
        assert_eq!((&late["complete"], &late["chunks_received"]), (&json!(false), &json!(1)));
    })
    .await;
}

#[tokio::test]
async fn guide_tools_14_required_arguments_validation() {
    both(async |project| {
        for (tool, arguments, missing) in [
            ("guide_cache_file", json!({}), "path"),
            ("guide_cache_file", json!({"path": "docs/a"}), "content"),
            ("guide_cache_file", json!({"files": [{"path": "docs/a"}]}), "files[0].content"),
            ("guide_list_directory", json!({"path": "docs"}), "entries"),
            ("guide_list_directory", json!({"path": "docs", "entries": [{"name": "a"}]}), "entries[0].type"),
            ("guide_read_file", json!({"content": "x"}), "path"),
            ("guide_request_file", json!({}), "path"),
            ("guide_request_directory", json!({}), "path"),
        ] {
            let error = project.fails("validation", tool, arguments).await;
            let message = error["error"].as_str().unwrap();
            let expected = format!("missing required argument: {missing}");
            assert!(message.starts_with(&expected), "{message}");
        }
        let both = json!({"path": "docs/a", "content": "x", "files": [{"path": "docs/b", "content": "y"}]});
        project.fails("validation", "guide_cache_file", both).await;
        assert_eq!(project.cache_figures().await["entries"], 0);
    })
    .await;
}

#[tokio::test]
async fn guide_tools_15_type_validation() {
    both(async |project| {
        for (tool, arguments, expected) in [
            (
                "guide_cache_file",
                json!({"path": 5, "content": "x"}),
                "argument path must be a string, got number 5",
            ),
            (
                "guide_cache_file",
                json!({"path": "docs/a", "content": ["x"]}),
                "argument content must be a string, got an array of 1",
            ),
            (
                "guide_cache_file",
                json!({"path": "docs/a", "content": "x", "metadata": {"mtime": "now"}}),
                "argument metadata.mtime must be a number, got string \"now\"",
            ),
            (
                "guide_list_directory",
                json!({"path": "docs", "entries": {}}),
                "argument entries must be an array, got an object",
            ),
            (
                "guide_read_file",
                json!({"path": "docs/a", "content": "x", "binary": "yes"}),
                "argument binary must be a boolean, got string \"yes\"",
            ),
        ] {
            let error = project.fails("validation", tool, arguments).await;
            assert_eq!(error["error"], expected);
        }
        assert_eq!(project.cache_figures().await["entries"], 0);
    })
    .await;
}

#[tokio::test]
async fn guide_tools_16_path_format_validation() {
    both(async |project| {
        let long = format!("docs/{}", "n".repeat(300));
        for path in ["", "docs/a\nb", "docs/\u{7f}", long.as_str()] {
            let arguments = json!({"path": path, "content": "x"});
            let error = project
                .fails("validation", "guide_cache_file", arguments)
                .await;
            let message = error["error"].as_str().unwrap();
            assert!(
                message.contains("without control characters"),
                "the rules: {message}"
            );
        }
        assert_eq!(project.cache_figures().await["entries"], 0);
    })
    .await;
}

#[tokio::test]
async fn guide_tools_17_success_result_with_data() {
    both(async |project| {
        let arguments = json!({"path": "docs/a", "content": "x"});
        let reply = project.ok("guide_cache_file", arguments).await;
        assert_eq!(reply["success"], true);
        assert_eq!(reply["message"], "docs/a is cached");
        assert!(reply.get("warnings").is_none(), "{reply}");
        project.content("docs/a").await;
        let figures = project.cache_figures().await;
        assert_eq!(
            (&figures["hits"], &figures["entries"]),
            (&json!(1), &json!(1))
        );
    })
    .await;
}

#[tokio::test]
async fn guide_tools_18_failure_result_with_error() {
    both(async |project| {
        let cases = [
            (
                "security",
                "guide_cache_file",
                json!({"path": "/etc/passwd", "content": "x"}),
            ),
            ("validation", "guide_cache_file", json!({"path": "docs/a"})),
            (
                "unsupported",
                "guide_request_file",
                json!({"path": "docs/a"}),
            ),
        ];
        for (kind, tool, arguments) in cases {
            let error = project.fails(kind, tool, arguments).await;
            assert_eq!(error["success"], false);
            assert!(error["instruction"].as_str().unwrap().len() > 20, "{error}");
        }
    })
    .await;
}

#[tokio::test]
async fn guide_tools_19_partial_success_with_warnings() {
    both(async |project| {
        let arguments = json!({"path": "docs/a", "content": "abc", "metadata": {"size": 10}});
        let reply = project.ok("guide_cache_file", arguments).await;
        assert!(
            reply["message"]
                .as_str()
                .unwrap()
                .starts_with("Partial success"),
            "{reply}"
        );
        let warning = reply["warnings"][0].as_str().unwrap();
        assert!(
            warning.contains("10 bytes") && warning.contains("has 3"),
            "{warning}"
        );
        assert_eq!(
            project.content("docs/a").await,
            "abc",
            "the agent may accept it"
        );
    })
    .await;
}

#[tokio::test]
async fn guide_tools_20_tool_description_generation() {
    both(async |project| {
        let tools = project.server.list_tools().await;
        let names: Vec<&str> = tools
            .iter()
            .map(|tool| tool["name"].as_str().unwrap())
            .collect();
        assert_eq!(
            names,
            [
                "guide_cache_file",
                "guide_list_directory",
                "guide_read_file",
                "guide_request_file",
                "guide_request_directory",
                "guide_cache_stats"
            ]
        );
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
        assert_eq!(project.server.info()["serverInfo"]["name"], "mcp-guide");
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
        for key in ["metadata", "listed_at"] {
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
    assert_eq!(examples.len(), 12, "two a tool");
    // In the order of the page, what is cached first is there for the requests.
    both(async |project| {
        for (tool, arguments, reply) in &examples {
            let outcome = project.call(tool, arguments.clone()).await;
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

#[tokio::test]
async fn guide_tools_23_path_validation_on_every_call() {
    both(async |project| {
        let calls = [
            ("guide_cache_file", json!({"path": "../x", "content": "x"})),
            (
                "guide_cache_file",
                json!({"files": [{"path": "../x", "content": "x"}]}),
            ),
            (
                "guide_list_directory",
                json!({"path": "../x", "entries": []}),
            ),
            ("guide_read_file", json!({"path": "../x", "content": "x"})),
            ("guide_request_file", json!({"path": "../x"})),
            ("guide_request_directory", json!({"path": "../x"})),
        ];
        for (number, (tool, arguments)) in calls.into_iter().enumerate() {
            project.fails("security", tool, arguments).await;
            let nth = json!(number + 1);
            let line = project
                .server
                .logged(|line| line["client_violations"] == nth)
                .await;
            assert_eq!(
                (&line["tool"], &line["violation"]),
                (&json!(tool), &json!("traversal"))
            );
        }
    })
    .await;
}

#[tokio::test]
async fn guide_tools_24_audit_logging_for_all_operations() {
    let trace = |setup: testkit::Setup| setup.arguments(["--log-level", "trace"]);
    both_with(tree, trace, async |project| {
        let secret = "the content itself";
        project.cache("docs/a", secret).await;
        project
            .fails("validation", "guide_cache_file", json!({"path": "docs/a"}))
            .await;
        let call = project
            .server
            .logged(|line| line["tool"] == "guide_cache_file" && line["outcome"] == "ok")
            .await;
        assert!(
            call["timestamp"].is_string() && call["client"].is_string(),
            "{call}"
        );
        assert_eq!(call["path"], "docs/a");
        let failed = project
            .server
            .logged(|line| line["outcome"] == "error")
            .await;
        assert_eq!(failed["error_code"], "validation");
        let ours = project.server.stderr();
        let ours = ours
            .iter()
            .filter(|line| line.contains("\"operation\"") || line.contains("\"tool\""));
        assert!(ours.clone().count() >= 3);
        assert!(
            ours.into_iter().all(|line| !line.contains(secret)),
            "contents are not logged"
        );
    })
    .await;
}

#[tokio::test]
async fn guide_tools_25_rate_limiting_consideration() {
    both(async |project| {
        let calls =
            (0..120).map(|number| json!({"path": format!("docs/{number}"), "content": "x"}));
        project
            .server
            .call_all("guide_cache_file", calls.collect())
            .await;
        let line = project
            .server
            .logged(|line| {
                line["message"]
                    .as_str()
                    .is_some_and(|text| text.starts_with("unusual"))
            })
            .await;
        assert_eq!(
            (&line["level"], &line["calls"]),
            (&json!("WARN"), &json!(101))
        );
        project
            .fails(
                "security",
                "guide_cache_file",
                json!({"path": "x", "content": ""}),
            )
            .await;
        let data = project.data("guide_cache_stats", json!({})).await;
        let client = &data["clients"][0];
        assert_eq!(
            (&client["is_you"], &client["calls"]),
            (&json!(true), &json!(122))
        );
        assert_eq!(
            (&client["violations"], &data["violations"]),
            (&json!(1), &json!(1))
        );
        assert!(client["recent_calls"].as_u64().unwrap() > 0, "{client}");
    })
    .await;
}

#[tokio::test]
async fn guide_tools_26_cache_synchronization() {
    asked(
        |setup| setup.set("guide.cache_size", 10),
        || Agent::saying("asked"),
        async |project, agent| {
            project.cache("docs/a", "handed").await;
            assert_eq!(project.content("docs/a").await, "handed");
            assert!(
                agent.prompts().is_empty(),
                "the bridge has what the tool stored"
            );
            project.cache("docs/b", "0123456789").await;
            assert_eq!(
                project.content("docs/a").await,
                "asked",
                "the tool's file pushed it out"
            );
            let figures = project.cache_figures().await;
            assert_eq!(
                (&figures["hits"], &figures["misses"], &figures["evictions"]),
                (&json!(1), &json!(1), &json!(2))
            );
        },
    )
    .await;
}

#[tokio::test]
async fn guide_tools_27_security_policy_consistency() {
    let settings = |setup: testkit::Setup| setup.set("guide.allowed_paths", json!(["notes"]));
    let tree = || tree().dir("notes");
    both_with(tree, settings, async |project| {
        for (tool, more) in [
            ("guide_cache_file", json!({"content": "x"})),
            ("guide_read_file", json!({"content": "x"})),
            ("guide_list_directory", json!({"entries": []})),
        ] {
            let with = |path: &str| {
                let mut arguments = more.clone();
                arguments["path"] = json!(path);
                arguments
            };
            project.ok(tool, with("notes/a")).await;
            project.fails("security", tool, with("docs/a")).await;
        }
        for tool in ["guide_request_file", "guide_request_directory"] {
            project.ok(tool, json!({"path": "notes/a"})).await;
            project
                .fails("security", tool, json!({"path": "docs/a"}))
                .await;
        }
    })
    .await;
}

#[tokio::test]
async fn guide_tools_28_error_handling_consistency() {
    both(async |project| {
        let path = "src/../../x";
        let errors = [
            ("guide_cache_file", json!({"path": path, "content": "x"})),
            ("guide_read_file", json!({"path": path, "content": "x"})),
            ("guide_list_directory", json!({"path": path, "entries": []})),
            ("guide_request_file", json!({"path": path})),
            ("guide_request_directory", json!({"path": path})),
        ];
        let mut objects = Vec::new();
        for (tool, arguments) in errors {
            objects.push(project.fails("security", tool, arguments).await);
        }
        assert!(
            objects.iter().all(|object| *object == objects[0]),
            "{objects:?}"
        );
    })
    .await;
}

/// Directories in each other, as an agent lists them.
fn nested(levels: usize) -> Value {
    let leaf = json!([{"name": "leaf", "type": "file"}]);
    (1..levels).fold(
        leaf,
        |below, _| json!([{"name": "d", "type": "directory", "children": below}]),
    )
}

#[tokio::test]
async fn a_listing_has_the_same_bounds_in_both_ways() {
    let names = |count: usize| -> Value {
        let entry = |number| json!({"name": format!("{number}"), "type": "file"});
        (0..count).map(entry).collect()
    };
    both(async |project| {
        for entries in [nested(32), names(30_000)] {
            let listing = json!({"path": "docs", "entries": entries});
            project.data("guide_list_directory", listing).await;
        }
        for (entries, bound) in [(nested(33), "32 levels"), (names(30_001), "30000")] {
            let listing = json!({"path": "docs", "entries": entries});
            let error = project
                .fails("validation", "guide_list_directory", listing)
                .await;
            assert!(error["error"].as_str().unwrap().contains(bound), "{error}");
        }
    })
    .await;
    let request = json!({"path": "docs", "recursive": true});
    for entries in [nested(32), names(30_000)] {
        let agent = || Agent::saying(&entries.to_string());
        asked(
            |setup| setup,
            agent,
            async |project, _| {
                project
                    .data("guide_request_directory", request.clone())
                    .await;
            },
        )
        .await;
    }
    for (entries, bound) in [
        (nested(33), "32 levels"),
        (nested(100), "32 levels"),
        (names(30_001), "30000"),
    ] {
        let agent = || Agent::saying(&entries.to_string());
        asked(
            |setup| setup,
            agent,
            async |project, _| {
                let error = project
                    .fails("validation", "guide_request_directory", request.clone())
                    .await;
                assert!(error["error"].as_str().unwrap().contains(bound), "{error}");
            },
        )
        .await;
    }
}

#[tokio::test]
async fn the_byte_order_mark_of_utf_16_decides_and_is_no_text() {
    both(async |project| {
        // "a" behind the marks of both orders.
        for (base64, encoding) in [("//5hAA==", "utf-16le"), ("/v8AYQ==", "utf-16be")] {
            for named in ["utf-16", "utf-16le", "utf-16be"] {
                let metadata = json!({"encoding": named});
                let file = json!({"path": "docs/a", "content": base64, "binary": true, "metadata": metadata});
                project.data("guide_cache_file", file).await;
                let reply = project
                    .ok("guide_request_file", json!({"path": "docs/a"}))
                    .await;
                let data = &reply["data"];
                assert_eq!(
                    (&data["content"], &data["encoding"]),
                    (&json!("a"), &json!(encoding))
                );
                assert!(reply.get("warnings").is_none(), "{reply}");
            }
        }
    })
    .await;
}

#[tokio::test]
async fn content_needs_the_path_of_a_file() {
    both(async |project| {
        for path in ["docs/", "docs/a/", "docs/a/."] {
            for tool in ["guide_cache_file", "guide_read_file"] {
                let file = json!({"path": path, "content": "x"});
                let error = project.fails("validation", tool, file).await;
                let message = error["error"].as_str().unwrap();
                assert!(message.contains("the path of a file"), "{message}");
            }
        }
        let files =
            json!([{"path": "docs/a", "content": "x"}, {"path": "docs/b/", "content": "x"}]);
        let batch = json!({"files": files});
        project.fails("validation", "guide_cache_file", batch).await;
        assert_eq!(project.cache_figures().await["entries"], 0);
        let listing = json!({"path": "docs/", "entries": []});
        project.data("guide_list_directory", listing).await;
    })
    .await;
}
