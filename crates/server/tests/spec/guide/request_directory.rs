//! `guide_request_directory`.

use testkit::json;

use super::set::{Agent, PLAIN, asked, text_in};

/// A listing as the agent writes it.
const LISTING: &str = r#"[
    {"name": "plan.md", "type": "file", "size": 7, "mtime": 20},
    {"name": "sub", "type": "directory", "children": [{"name": "x.rs", "type": "file"}]}
]"#;

#[tokio::test]
async fn guide_bridge_01_list_directory_contents() {
    asked(
        PLAIN,
        || Agent::saying(LISTING),
        async |guide, agent| {
            let data = guide
                .data("guide_request_directory", json!({"path": "docs"}))
                .await;
            let expected = json!([
                {"name": "plan.md", "type": "file", "size": 7, "mtime": 20.0},
                {"name": "sub", "type": "directory"}
            ]);
            assert_eq!(data["entries"], expected);
            assert_eq!(data["source"], "client");
            let prompts = agent.prompts();
            assert!(
                prompts[0].contains(r#"List the directory "docs" of the project"#),
                "{prompts:?}"
            );
            let again = guide
                .data("guide_request_directory", json!({"path": "docs"}))
                .await;
            assert_eq!(again["source"], "cache");
            assert_eq!(agent.prompts().len(), 1);
        },
    )
    .await;
    let escape = r#"[{"name": "../../etc", "type": "directory"}]"#;
    asked(
        PLAIN,
        || Agent::saying(escape),
        async |guide, _| {
            guide
                .fails(
                    "security",
                    "guide_request_directory",
                    json!({"path": "docs"}),
                )
                .await;
            assert_eq!(guide.cache_figures().await["entries"], 0);
        },
    )
    .await;
    asked(
        PLAIN,
        || Agent::saying("docs: plan.md"),
        async |guide, _| {
            guide
                .fails(
                    "validation",
                    "guide_request_directory",
                    json!({"path": "docs"}),
                )
                .await;
        },
    )
    .await;
}

#[tokio::test]
async fn guide_bridge_02_recursive_directory_listing() {
    asked(
        PLAIN,
        || Agent::saying(LISTING),
        async |guide, agent| {
            let arguments = json!({"path": "docs", "recursive": true});
            let data = guide.data("guide_request_directory", arguments).await;
            assert_eq!(
                data["entries"][1]["children"],
                json!([{"name": "x.rs", "type": "file"}])
            );
            assert_eq!(data["file_count"], 2);
            assert_eq!(data["directory_count"], 1);
            assert!(
                agent.prompts()[0].contains("everything below"),
                "{:?}",
                agent.prompts()
            );
        },
    )
    .await;
    let deep = r#"[{"name": "sub", "type": "directory", "children": [{"name": "a/../../b", "type": "file"}]}]"#;
    asked(
        PLAIN,
        || Agent::saying(deep),
        async |guide, _| {
            let arguments = json!({"path": "docs", "recursive": true});
            guide
                .fails("security", "guide_request_directory", arguments)
                .await;
        },
    )
    .await;
}

#[tokio::test]
async fn guide_bridge_03_directory_listing_with_filters() {
    asked(
        PLAIN,
        || Agent::saying(LISTING),
        async |guide, agent| {
            let arguments = json!({"path": "docs", "recursive": true, "pattern": "*.md"});
            let reply = guide.ok("guide_request_directory", arguments).await;
            assert!(
                agent.prompts()[0].contains(r#"match the glob "*.md""#),
                "the agent is to filter"
            );
            // An agent that does not filter is corrected.
            let expected = json!([
                {"name": "plan.md", "type": "file", "size": 7, "mtime": 20.0},
                {"name": "sub", "type": "directory", "children": []}
            ]);
            assert_eq!(reply["data"]["entries"], expected);
            assert!(
                reply["warnings"][0].as_str().unwrap().contains("*.md"),
                "{reply}"
            );
            let invalid = json!({"path": "docs", "pattern": "["});
            guide
                .fails("validation", "guide_request_directory", invalid)
                .await;
            assert_eq!(agent.prompts().len(), 1);
        },
    )
    .await;
}

#[tokio::test]
async fn a_bad_listing_is_told_to_who_asked_for_it() {
    for (answer, words) in [
        ("docs: plan.md", "the agent's answer is no JSON array"),
        (
            r#"[{"name": "a", "type": "file", "mtime": -1}]"#,
            "mtime must be at least 0",
        ),
    ] {
        asked(
            PLAIN,
            || Agent::saying(answer),
            async |guide, _| {
                let request = json!({"path": "docs"});
                let error = guide
                    .fails("validation", "guide_request_directory", request)
                    .await;
                let message = text_in(&error, "error");
                assert!(message.contains(words), "{message}");
                assert!(!message.contains("line 1 column"), "{message}");
                let instruction = text_in(&error, "instruction");
                assert!(
                    instruction.contains("guide_list_directory"),
                    "{instruction}"
                );
            },
        )
        .await;
    }
}
