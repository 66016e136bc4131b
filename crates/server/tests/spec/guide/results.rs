//! What successes, failures and partial successes look like.

use std::time::Duration;

use testkit::{Setup, json};

use super::set::{Agent, Guide, PLAIN, REVISIONS, asked, sampled, text_in, tree};
use crate::harness::{Harness, ToolSet};

#[tokio::test]
async fn guide_tools_17_success_result_with_data() {
    Guide::both(tree, async |guide| {
        let arguments = json!({"path": "docs/a", "content": "x"});
        let reply = guide.ok("guide_cache_file", arguments).await;
        assert_eq!(reply["success"], true);
        assert_eq!(reply["message"], "docs/a is cached");
        assert!(reply.get("warnings").is_none(), "{reply}");
        guide.content("docs/a").await;
        let figures = guide.cache_figures().await;
        assert_eq!(figures["hits"], 1);
        assert_eq!(figures["entries"], 1);
    })
    .await;
}

#[tokio::test]
async fn guide_tools_18_failure_result_with_error() {
    Guide::both(tree, async |guide| {
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
            let error = guide.fails(kind, tool, arguments).await;
            assert_eq!(error["success"], false);
            assert!(text_in(&error, "instruction").len() > 20, "{error}");
        }
    })
    .await;
}

#[tokio::test]
async fn guide_tools_19_partial_success_with_warnings() {
    Guide::both(tree, async |guide| {
        let arguments = json!({"path": "docs/a", "content": "abc", "metadata": {"size": 10}});
        let reply = guide.ok("guide_cache_file", arguments).await;
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
            guide.content("docs/a").await,
            "abc",
            "the agent may accept it"
        );
    })
    .await;
}

#[tokio::test]
async fn guide_tools_28_error_handling_consistency() {
    Guide::both(tree, async |guide| {
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
            objects.push(guide.fails("security", tool, arguments).await);
        }
        assert!(
            objects.iter().all(|object| *object == objects[0]),
            "{objects:?}"
        );
    })
    .await;
}

#[tokio::test]
async fn guide_bridge_19_file_not_found() {
    asked(
        PLAIN,
        || {
            Agent::new(|prompt| {
                let is_file = prompt.contains("Read the file");
                let what = if is_file { "File" } else { "Directory" };
                Ok(format!("{what} not found: \"docs/a\""))
            })
        },
        async |guide, agent| {
            let error = guide
                .fails("not_found", "guide_request_file", json!({"path": "docs/a"}))
                .await;
            assert_eq!(error["error"], "File not found: docs/a");
            guide
                .fails(
                    "not_found",
                    "guide_request_directory",
                    json!({"path": "docs/a"}),
                )
                .await;
            assert_eq!(guide.cache_figures().await["entries"], 0);
            guide
                .fails("not_found", "guide_request_file", json!({"path": "docs/a"}))
                .await;
            assert_eq!(agent.prompts().len(), 3, "failures are not cached");
        },
    )
    .await;
}

#[tokio::test]
async fn guide_bridge_20_permission_denied() {
    asked(
        PLAIN,
        || Agent::saying("Permission denied: \"docs/a\""),
        async |guide, _| {
            let error = guide
                .fails(
                    "permission",
                    "guide_request_file",
                    json!({"path": "docs/a"}),
                )
                .await;
            assert!(text_in(&error, "error").contains("docs/a"), "{error}");
            let line = guide
                .server
                .logged(|line| line["result"] == "permission")
                .await;
            assert_eq!(line["level"], "WARN");
            assert_eq!(line["path"], "docs/a");
            assert!(
                line["client"].is_string() && line["allowed"].is_string(),
                "{line}"
            );
            assert_eq!(guide.cache_figures().await["entries"], 0);
        },
    )
    .await;
}

#[tokio::test]
async fn guide_bridge_21_sampling_request_timeout() {
    // With 2026-07-28 the answer arrives in a call of its own, too late.
    for revision in REVISIONS {
        testkit::over_both(async |transport| {
            let tree = tree();
            let late = Guide::setup(&tree)
                .set("guide.sampling_timeout", 1)
                .revision(revision.clone())
                .sampling_later(async |_| {
                    tokio::time::sleep(Duration::from_millis(2500)).await;
                    Ok(sampled("too late"))
                });
            let server = late.start(transport).await;
            let guide = Harness::<Guide>::new(server, vec![tree]);
            let error = guide
                .fails("timeout", "guide_request_file", json!({"path": "docs/a"}))
                .await;
            assert!(text_in(&error, "error").contains("1 seconds"), "{error}");
            assert!(
                text_in(&error, "instruction").contains("guide_cache_file"),
                "{error}"
            );
            assert_eq!(guide.cache_figures().await["entries"], 0);
        })
        .await;
    }
}

#[tokio::test]
async fn guide_bridge_22_unsupported_client_fallback() {
    for revision in REVISIONS {
        let settings = |setup: Setup| setup.revision(revision.clone());
        Guide::both_with(tree, settings, async |guide| {
            let arguments = json!({"path": "docs/a"});
            let error = guide
                .fails("unsupported", "guide_request_file", arguments)
                .await;
            assert!(
                text_in(&error, "error").contains("does not support sampling"),
                "{error}"
            );
            let instruction = text_in(&error, "instruction");
            assert!(
                instruction.contains("guide_cache_file") && instruction.contains("resource"),
                "{instruction}"
            );
            let arguments = json!({"path": "docs"});
            guide
                .fails("unsupported", "guide_request_directory", arguments)
                .await;
            guide.cache("docs/a", "as it was told").await;
            assert_eq!(guide.content("docs/a").await, "as it was told");
        })
        .await;
    }
}

#[tokio::test]
async fn a_failure_about_a_directory_names_the_tool_for_directories() {
    Guide::both_with(
        tree,
        |setup| {
            setup
                .set("guide.sampling_timeout", 1)
                .sampling_later(|_| std::future::pending())
        },
        async |guide| {
            let request = json!({"path": "docs"});
            let error = guide
                .fails("timeout", "guide_request_directory", request)
                .await;
            let instruction = text_in(&error, "instruction");
            assert!(
                instruction.contains("guide_list_directory")
                    && !instruction.contains("guide_cache_file"),
                "{instruction}"
            );
        },
    )
    .await;
}

#[tokio::test]
async fn what_is_not_found_points_to_a_directory_that_is_allowed() {
    asked(
        |setup| setup.set("guide.allowed_paths", json!(["docs", "a/b"])),
        || {
            Agent::new(|prompt| {
                let sentence = |line: &&str| line.starts_with("Directory not found");
                let sentence = prompt.lines().find(sentence);
                Ok(sentence.expect("it is dictated").to_owned())
            })
        },
        async |guide, _| {
            for (path, pointer) in [
                ("docs/x/y", "guide_request_directory on docs/x."),
                ("docs", "guide_cache_stats"),
                ("a/b", "guide_cache_stats"),
            ] {
                let request = json!({"path": path});
                let error = guide
                    .fails("not_found", "guide_request_directory", request)
                    .await;
                let instruction = text_in(&error, "instruction");
                assert!(instruction.contains(pointer), "{instruction}");
            }
        },
    )
    .await;
}

#[tokio::test]
async fn a_refresh_without_sampling_does_not_deny_what_is_cached() {
    Guide::both_with(tree, PLAIN, async |guide| {
        guide.cache("docs/a", "x").await;
        let refresh = json!({"path": "docs/a", "refresh": true});
        let error = guide
            .fails("unsupported", "guide_request_file", refresh)
            .await;
        assert!(
            !text_in(&error, "error").contains("not in the cache"),
            "{error}"
        );
        assert!(
            text_in(&error, "instruction").contains("without refresh"),
            "{error}"
        );
    })
    .await;
}

#[tokio::test]
async fn refusals_name_the_allowed_directories() {
    Guide::both_with(tree, PLAIN, async |guide| {
        let allowed = "(docs, src, tests, .guide, .todo)";
        let listing = json!({"path": "docs", "entries": [{"name": "..", "type": "directory"}]});
        for (tool, arguments) in [
            ("guide_request_file", json!({"path": "secret"})),
            ("guide_cache_file", json!({"path": "../x", "content": ""})),
            ("guide_list_directory", listing),
        ] {
            let error = guide.fails("security", tool, arguments).await;
            assert!(text_in(&error, "instruction").contains(allowed), "{error}");
        }
    })
    .await;
}
