//! The server's name, its tools, their hints and their parameters.

use testkit::{Tree, Value, json};

use super::set::Files;
use crate::harness::{ToolSet, catalogue, tool_names};

#[tokio::test]
async fn files_server_name_and_version() {
    Files::both(Tree::new, async |files| {
        let info = &files.server.info()["serverInfo"];
        assert_eq!(info["name"], "filesystem-server");
        assert_eq!(info["version"], "0.1.0");
    })
    .await;
}

#[tokio::test]
async fn files_tools_in_order_with_true_hints() {
    let hints = [
        ("list", true, false, true),
        ("read", true, false, true),
        ("write", false, true, false),
        ("mkdir", false, false, true),
        ("delete", false, true, true),
        ("copy", false, true, true),
        ("move", false, true, true),
        ("info", true, false, true),
        ("search", true, false, true),
        ("compare", true, false, true),
        ("hash", true, false, true),
        ("watch", true, false, true),
    ];
    Files::both(Tree::new, async |files| {
        let tools = files.server.list_tools().await;
        assert_eq!(tool_names(&tools), catalogue("files").await);
        for (name, reads, destroys, repeats) in hints {
            let tool = tools.iter().find(|tool| tool["name"] == name);
            let hints = &tool.expect("the tool is offered")["annotations"];
            assert_eq!(hints["openWorldHint"], false, "{name}");
            assert_eq!(hints["readOnlyHint"], reads, "{name}");
            assert_eq!(hints["destructiveHint"], destroys, "{name}");
            assert_eq!(hints["idempotentHint"], repeats, "{name}");
        }
    })
    .await;
}

/// The schemas of the specification: parameter, type, default; required ones have none.
#[tokio::test]
async fn files_parameters_and_defaults_are_those_of_the_specification() {
    let none = Value::Null;
    let table = [
        ("list", "path", "string", none.clone()),
        ("list", "pattern", "string", json!("*")),
        ("list", "recursive", "boolean", json!(false)),
        ("list", "include_hidden", "boolean", json!(false)),
        ("list", "metadata", "boolean", json!(true)),
        ("read", "path", "string", none.clone()),
        ("read", "encoding", "string", json!("utf8")),
        ("read", "start_line", "integer", none.clone()),
        ("read", "end_line", "integer", none.clone()),
        ("read", "max_size", "integer", json!(1_048_576)),
        // Beyond the specification, from its list of future enhancements.
        ("read", "decompress", "boolean", json!(false)),
        ("write", "path", "string", none.clone()),
        ("write", "content", "string", none.clone()),
        ("write", "encoding", "string", json!("utf8")),
        ("write", "mode", "string", json!("overwrite")),
        ("write", "make_dirs", "boolean", json!(false)),
        ("mkdir", "path", "string", none.clone()),
        ("mkdir", "recursive", "boolean", json!(true)),
        ("delete", "path", "string", none.clone()),
        ("delete", "recursive", "boolean", json!(false)),
        ("delete", "force", "boolean", json!(false)),
        ("copy", "source", "string", none.clone()),
        ("copy", "destination", "string", none.clone()),
        ("copy", "overwrite", "boolean", json!(false)),
        ("copy", "recursive", "boolean", json!(true)),
        ("move", "source", "string", none.clone()),
        ("move", "destination", "string", none.clone()),
        ("move", "overwrite", "boolean", json!(false)),
        ("info", "path", "string", none.clone()),
        ("search", "root_path", "string", none.clone()),
        ("search", "pattern", "string", none.clone()),
        ("search", "regex", "boolean", json!(false)),
        ("search", "file_pattern", "string", json!("*")),
        ("search", "recursive", "boolean", json!(true)),
        ("search", "case_sensitive", "boolean", json!(false)),
        ("search", "max_results", "integer", json!(100)),
        ("search", "max_file_size", "integer", json!(10_485_760)),
        ("search", "context_lines", "integer", json!(0)),
        // Beyond the specification, from its list of what may come.
        ("compare", "path", "string", none.clone()),
        ("compare", "other", "string", none.clone()),
        ("hash", "path", "string", none.clone()),
        ("hash", "algorithm", "string", json!("sha256")),
        ("watch", "path", "string", json!(".")),
        ("watch", "since", "string", none.clone()),
        ("watch", "timeout_seconds", "integer", json!(30)),
        ("undo", "change", "string", none.clone()),
        ("undo", "last", "boolean", none.clone()),
        ("undo", "path", "string", none.clone()),
        ("undo", "to", "string", none.clone()),
        ("undo", "dry_run", "boolean", none.clone()),
    ];
    Files::both(Tree::new, async |files| {
        let tools = files.server.list_tools().await;
        for tool in &tools {
            let properties = tool["inputSchema"]["properties"].as_object().expect("some");
            let rows: Vec<_> = table.iter().filter(|row| tool["name"] == row.0).collect();
            assert_eq!(
                properties.len(),
                rows.len(),
                "no other parameters: {}",
                tool["name"]
            );
            for (_, name, kind, default) in rows {
                let property = &properties[*name];
                assert_eq!(property["type"], *kind, "{} {name}", tool["name"]);
                assert_eq!(property["default"], *default, "{} {name}", tool["name"]);
            }
        }
        let choices = |tool: usize, name: &str| {
            tools[tool]["inputSchema"]["properties"][name]["enum"].clone()
        };
        assert_eq!(choices(1, "encoding"), json!(["utf8", "base64", "binary"]));
        assert_eq!(choices(2, "encoding"), json!(["utf8", "base64"]));
        assert_eq!(
            choices(2, "mode"),
            json!(["create", "overwrite", "append", "create_new"])
        );
    })
    .await;
}
