//! The scenarios of `guide-bridge.md`.

use std::time::Duration;

use testkit::{Setup, Tree, json};

use super::project::{Agent, asked, both, both_with, setup, tree};

const PLAIN: fn(Setup) -> Setup = |setup| setup;

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
        async |project, agent| {
            let data = project
                .data("guide_request_directory", json!({"path": "docs"}))
                .await;
            let expected = json!([
                {"name": "plan.md", "type": "file", "size": 7, "mtime": 20.0},
                {"name": "sub", "type": "directory"}
            ]);
            assert_eq!(
                (&data["entries"], &data["source"]),
                (&expected, &json!("client"))
            );
            let prompts = agent.prompts();
            assert!(
                prompts[0].contains(r#"List the directory "docs" of the project"#),
                "{prompts:?}"
            );
            let again = project
                .data("guide_request_directory", json!({"path": "docs"}))
                .await;
            assert_eq!(
                (&again["source"], agent.prompts().len()),
                (&json!("cache"), 1)
            );
        },
    )
    .await;
    let escape = r#"[{"name": "../../etc", "type": "directory"}]"#;
    asked(
        PLAIN,
        || Agent::saying(escape),
        async |project, _| {
            project
                .fails(
                    "security",
                    "guide_request_directory",
                    json!({"path": "docs"}),
                )
                .await;
            assert_eq!(project.cache_figures().await["entries"], 0);
        },
    )
    .await;
    asked(
        PLAIN,
        || Agent::saying("docs: plan.md"),
        async |project, _| {
            project
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
        async |project, agent| {
            let arguments = json!({"path": "docs", "recursive": true});
            let data = project.data("guide_request_directory", arguments).await;
            assert_eq!(
                data["entries"][1]["children"],
                json!([{"name": "x.rs", "type": "file"}])
            );
            assert_eq!(
                (&data["file_count"], &data["directory_count"]),
                (&json!(2), &json!(1))
            );
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
        async |project, _| {
            let arguments = json!({"path": "docs", "recursive": true});
            project
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
        async |project, agent| {
            let arguments = json!({"path": "docs", "recursive": true, "pattern": "*.md"});
            let reply = project.ok("guide_request_directory", arguments).await;
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
            project
                .fails("validation", "guide_request_directory", invalid)
                .await;
            assert_eq!(agent.prompts().len(), 1);
        },
    )
    .await;
}

#[tokio::test]
async fn guide_bridge_04_read_file_content() {
    asked(
        PLAIN,
        || Agent::saying("# Plan\n"),
        async |project, agent| {
            let arguments = json!({"path": "docs/plan.md"});
            let data = project.data("guide_request_file", arguments.clone()).await;
            assert_eq!(
                (&data["content"], &data["source"]),
                (&json!("# Plan\n"), &json!("client"))
            );
            let prompts = agent.prompts();
            assert!(
                prompts[0].contains(r#"Read the file "docs/plan.md" of the project"#),
                "{prompts:?}"
            );
            assert!(
                prompts[0].contains("guide_cache_file"),
                "it may be handed over by tool"
            );
            let again = project.data("guide_request_file", arguments).await;
            assert_eq!(
                (&again["source"], agent.prompts().len()),
                (&json!("cache"), 1)
            );
            project
                .fails("security", "guide_request_file", json!({"path": "secret"}))
                .await;
            assert_eq!(
                agent.prompts().len(),
                1,
                "nobody is asked for what is not allowed"
            );
        },
    )
    .await;
}

#[tokio::test]
async fn guide_bridge_05_read_file_with_encoding() {
    let agent = || {
        Agent::new(|prompt| {
            Ok(match prompt {
                prompt if prompt.contains("docs/text") => "テ".to_owned(),
                // 0xff is no Shift JIS.
                prompt if prompt.contains("base64") => "/0E=".to_owned(),
                _ => "Encoding error: docs/odd".to_owned(),
            })
        })
    };
    asked(PLAIN, agent, async |project, agent| {
        let arguments = json!({"path": "docs/text", "encoding": "shift_jis"});
        let data = project.data("guide_request_file", arguments).await;
        assert_eq!(
            (&data["content"], &data["encoding"]),
            (&json!("テ"), &json!("shift_jis"))
        );
        let prompt = &agent.prompts()[0];
        assert!(
            prompt.contains("shift_jis, then utf-8, then windows-1252"),
            "{prompt}"
        );
        // What cannot be read over there is asked for in bytes and read here, with fallbacks.
        let arguments = json!({"path": "docs/odd", "encoding": "shift_jis"});
        let reply = project.ok("guide_request_file", arguments).await;
        assert_eq!(reply["data"]["content"], "ÿA");
        assert_eq!(reply["data"]["encoding"], "windows-1252");
        let warning = reply["warnings"][0].as_str().unwrap();
        assert!(
            warning.contains("shift_jis") && warning.contains("windows-1252"),
            "{warning}"
        );
        assert_eq!(agent.prompts().len(), 3);
        let unknown = json!({"path": "docs/text", "encoding": "klingon"});
        project
            .fails("validation", "guide_request_file", unknown)
            .await;
    })
    .await;
}

#[tokio::test]
async fn guide_bridge_06_read_binary_file() {
    asked(
        PLAIN,
        || Agent::saying("AP8B/g=="),
        async |project, agent| {
            let arguments = json!({"path": "docs/x.bin", "binary": true});
            let data = project.data("guide_request_file", arguments).await;
            assert_eq!(
                (&data["content"], &data["binary"]),
                (&json!("AP8B/g=="), &json!(true))
            );
            assert_eq!(data["metadata"]["size"], 4);
            assert!(
                agent.prompts()[0].contains("base64"),
                "{:?}",
                agent.prompts()
            );
        },
    )
    .await;
    asked(
        PLAIN,
        || Agent::saying("not base64"),
        async |project, _| {
            let arguments = json!({"path": "docs/x.bin", "binary": true});
            project
                .fails("validation", "guide_request_file", arguments)
                .await;
            assert_eq!(project.cache_figures().await["entries"], 0);
        },
    )
    .await;
}

#[tokio::test]
async fn guide_bridge_07_allowed_path_access() {
    asked(
        PLAIN,
        || Agent::saying("x"),
        async |project, _| {
            for (path, normal) in [
                ("docs/a", "docs/a"),
                ("./src//b/../c", "src/c"),
                ("/tests/d/", "tests/d"),
            ] {
                let data = project
                    .data("guide_request_file", json!({"path": path}))
                    .await;
                assert_eq!(data["cache_key"], normal);
            }
        },
    )
    .await;
}

#[tokio::test]
async fn guide_bridge_08_disallowed_path_access() {
    asked(
        PLAIN,
        || Agent::saying("x"),
        async |project, agent| {
            for path in [
                "secret",
                "docs-private/a",
                "/etc/passwd",
                ".",
                ".git/config",
            ] {
                project
                    .fails("security", "guide_request_file", json!({"path": path}))
                    .await;
                let line = project
                    .server
                    .logged(|line| line["attempted_path"] == path)
                    .await;
                assert_eq!(
                    (&line["level"], &line["violation"]),
                    (&json!("WARN"), &json!("not_allowed"))
                );
            }
            assert!(agent.prompts().is_empty());
        },
    )
    .await;
}

#[tokio::test]
async fn guide_bridge_09_path_traversal_prevention() {
    both(async |project| {
        let spelled = format!("{}/docs/spelled", project.tree.path().display());
        project.cache("docs/../src/a", "x").await;
        assert_eq!(project.content("src/a").await, "x");
        for path in [
            "..",
            "docs/../../docs/a",
            "docs/../../../etc/passwd",
            "/../docs/a",
            "src/../..",
        ] {
            let arguments = json!({"path": path, "content": "x"});
            project
                .fails("security", "guide_cache_file", arguments)
                .await;
        }
        let nul = json!({"path": "docs/a\u{0}", "content": "x"});
        project.fails("security", "guide_cache_file", nul).await;
        // Absolute paths are those under the project root: spelled out, or from it.
        assert_eq!(project.cache("/docs/b", "x").await["cache_key"], "docs/b");
        assert_eq!(
            project.cache(&spelled, "x").await["cache_key"],
            "docs/spelled"
        );
    })
    .await;
}

#[tokio::test]
async fn guide_bridge_10_symbolic_link_validation() {
    let outside = Tree::new().file("keys", "secret");
    let links = || {
        tree()
            .dir("secret")
            .dir("docs/real")
            .link("docs/inside", "real")
            .link("docs/code", "../src")
            .link("docs/closed", "../secret")
            .link("docs/out", outside.path())
            .link("docs/one", "two")
            .link("docs/two", "one")
    };
    both_with(links, PLAIN, async |project| {
        project.cache("docs/inside/a", "x").await;
        project.cache("docs/code/b", "x").await;
        for (path, violation) in [
            ("docs/closed", "link_not_allowed"),
            ("docs/closed/new", "link_not_allowed"),
            ("docs/out/keys", "link_leaves"),
            ("docs/one", "link_loop"),
        ] {
            let arguments = json!({"path": path, "content": "x"});
            let error = project
                .fails("security", "guide_cache_file", arguments)
                .await;
            assert!(error["error"].as_str().unwrap().contains("link"), "{error}");
            let line = project
                .server
                .logged(|line| line["attempted_path"] == path)
                .await;
            assert_eq!(line["violation"], violation, "{line}");
        }
        let listed = json!({"path": "docs", "entries": [{"name": "out", "type": "symlink"}]});
        project
            .fails("security", "guide_list_directory", listed)
            .await;
    })
    .await;
}

#[tokio::test]
async fn guide_bridge_11_default_allowed_paths() {
    both(async |project| {
        let data = project.data("guide_cache_stats", json!({})).await;
        assert_eq!(
            data["allowed_paths"],
            json!(["docs", "src", "tests", ".guide", ".todo"])
        );
        for directory in ["docs", "src", "tests", ".guide", ".todo"] {
            project.cache(&format!("{directory}/a"), "x").await;
        }
        for path in ["a", "lib/a", ".env", "README.md"] {
            let arguments = json!({"path": path, "content": "x"});
            project
                .fails("security", "guide_cache_file", arguments)
                .await;
        }
    })
    .await;
}

#[tokio::test]
async fn guide_bridge_12_project_specific_allowed_paths() {
    let settings =
        |setup: Setup| setup.set("guide.allowed_paths", json!(["docs", "notes", "gone/too"]));
    both_with(tree, settings, async |project| {
        project.cache("notes/a", "x").await;
        project
            .fails(
                "security",
                "guide_cache_file",
                json!({"path": "src/a", "content": "x"}),
            )
            .await;
        for path in ["notes", "gone/too"] {
            let line = project
                .server
                .logged(|line| line["path"] == path && line["level"] == "WARN")
                .await;
            assert!(
                line["message"].as_str().unwrap().contains("does not exist"),
                "{line}"
            );
        }
        let known = |line: &String| line.contains("does not exist") && line.contains("\"docs\"");
        assert!(!project.server.stderr().iter().any(known));
    })
    .await;
}

#[tokio::test]
async fn guide_bridge_13_path_normalization() {
    testkit::over_both(async |transport| {
        let tree = tree().dir("a/b");
        let absolute = format!("{}/a/b/", tree.path().display());
        let allowed = json!(["./docs/", "src//x/..", absolute]);
        let server = setup(&tree)
            .set("guide.allowed_paths", allowed)
            .start(transport)
            .await;
        let project = super::project::Project { server, tree };
        let data = project.data("guide_cache_stats", json!({})).await;
        assert_eq!(data["allowed_paths"], json!(["docs", "src", "a/b"]));
        project.cache("a/b/c", "x").await;
        project
            .fails(
                "security",
                "guide_cache_file",
                json!({"path": "a/c", "content": "x"}),
            )
            .await;
    })
    .await;
}

#[tokio::test]
async fn guide_bridge_14_cache_file_content() {
    both(async |project| {
        let metadata = json!({"mtime": 5, "encoding": "utf-8", "size": 3});
        let arguments = json!({"path": "docs/a", "content": "abc", "metadata": metadata});
        let data = project.data("guide_cache_file", arguments).await;
        assert_eq!(data["cache_key"], "docs/a");
        let read = project
            .data("guide_request_file", json!({"path": "docs/a"}))
            .await;
        let metadata = &read["metadata"];
        assert_eq!(
            (&metadata["mtime"], &metadata["encoding"], &metadata["size"]),
            (&json!(5.0), &json!("utf-8"), &json!(3))
        );
        let cache = &read["cache"];
        assert_eq!((&cache["entries"], &cache["bytes"]), (&json!(1), &json!(3)));
    })
    .await;
}

#[tokio::test]
async fn guide_bridge_15_cache_hit() {
    let short = |setup: Setup| setup.set("guide.cache_ttl", 1);
    asked(
        short,
        || Agent::saying("asked"),
        async |project, agent| {
            project.cache("docs/a", "handed").await;
            assert_eq!(project.content("docs/a").await, "handed");
            assert_eq!(project.cache_figures().await["hits"], 1);
            assert!(agent.prompts().is_empty());
            tokio::time::sleep(Duration::from_millis(1100)).await;
            assert_eq!(
                project.content("docs/a").await,
                "asked",
                "the entry has expired"
            );
            assert_eq!(project.cache_figures().await["expirations"], 1);
        },
    )
    .await;
}

#[tokio::test]
async fn guide_bridge_16_cache_miss() {
    asked(
        PLAIN,
        || Agent::saying("asked"),
        async |project, agent| {
            for _ in 0..3 {
                assert_eq!(project.content("docs/a").await, "asked");
            }
            let figures = project.cache_figures().await;
            assert_eq!(
                (&figures["misses"], &figures["hits"]),
                (&json!(1), &json!(2))
            );
            assert_eq!(agent.prompts().len(), 1);
        },
    )
    .await;
}

#[tokio::test]
async fn guide_bridge_17_cache_invalidation_by_modification_time() {
    asked(
        PLAIN,
        || Agent::saying("fresh"),
        async |project, agent| {
            let old = json!({"path": "docs/a", "content": "old", "metadata": {"mtime": 10}});
            project.data("guide_cache_file", old).await;
            let same = json!({"path": "docs/a", "mtime": 10});
            assert_eq!(
                project.data("guide_request_file", same).await["content"],
                "old"
            );
            let newer = json!({"path": "docs/a", "mtime": 11});
            let data = project.data("guide_request_file", newer.clone()).await;
            assert_eq!(
                (&data["content"], &data["metadata"]["mtime"]),
                (&json!("fresh"), &json!(11.0))
            );
            assert_eq!(data["cache"]["invalidations"], 1);
            let again = project.data("guide_request_file", newer).await;
            assert_eq!(
                (&again["source"], agent.prompts().len()),
                (&json!("cache"), 1)
            );
            let refresh = json!({"path": "docs/a", "refresh": true});
            let refreshed = project.data("guide_request_file", refresh).await;
            assert_eq!(
                (&refreshed["source"], agent.prompts().len()),
                (&json!("client"), 2)
            );
        },
    )
    .await;
}

#[tokio::test]
async fn guide_bridge_18_cache_size_management() {
    let small = |setup: Setup| setup.set("guide.cache_size", 100);
    both_with(tree, small, async |project| {
        for number in 0..20 {
            let data = project
                .cache(&format!("docs/{number}"), &"x".repeat(10))
                .await;
            assert!(data["cache"]["bytes"].as_u64().unwrap() <= 100, "{data}");
        }
        let figures = project.cache_figures().await;
        assert_eq!(
            (&figures["entries"], &figures["evictions"]),
            (&json!(10), &json!(10))
        );
        assert!(project.holds("docs/19").await && !project.holds("docs/9").await);
    })
    .await;
}

#[tokio::test]
async fn guide_bridge_19_file_not_found() {
    asked(
        PLAIN,
        || Agent::saying("File not found: docs/a"),
        async |project, agent| {
            let error = project
                .fails("not_found", "guide_request_file", json!({"path": "docs/a"}))
                .await;
            assert_eq!(error["error"], "File not found: docs/a");
            project
                .fails(
                    "not_found",
                    "guide_request_directory",
                    json!({"path": "docs/a"}),
                )
                .await;
            assert_eq!(project.cache_figures().await["entries"], 0);
            project
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
        || Agent::saying("Permission denied: docs/a"),
        async |project, _| {
            let error = project
                .fails(
                    "permission",
                    "guide_request_file",
                    json!({"path": "docs/a"}),
                )
                .await;
            assert!(
                error["error"].as_str().unwrap().contains("docs/a"),
                "{error}"
            );
            let line = project
                .server
                .logged(|line| line["result"] == "permission")
                .await;
            assert_eq!(
                (&line["level"], &line["path"]),
                (&json!("WARN"), &json!("docs/a"))
            );
            assert!(
                line["client"].is_string() && line["allowed"].is_string(),
                "{line}"
            );
            assert_eq!(project.cache_figures().await["entries"], 0);
        },
    )
    .await;
}

#[tokio::test]
async fn guide_bridge_21_sampling_request_timeout() {
    // With 2026-07-28 the answer comes in a call of its own, and comes too late.
    for revision in [
        testkit::ProtocolVersion::V_2025_11_25,
        testkit::ProtocolVersion::V_2026_07_28,
    ] {
        testkit::over_both(async |transport| {
            let tree = tree();
            let late = setup(&tree)
                .set("guide.sampling_timeout", 1)
                .revision(revision.clone())
                .sampling_later(async |_| {
                    tokio::time::sleep(Duration::from_millis(2500)).await;
                    Ok(super::project::sampled("too late"))
                });
            let server = late.start(transport).await;
            let project = super::project::Project { server, tree };
            let error = project
                .fails("timeout", "guide_request_file", json!({"path": "docs/a"}))
                .await;
            assert!(
                error["error"].as_str().unwrap().contains("1 seconds"),
                "{error}"
            );
            assert!(
                error["instruction"]
                    .as_str()
                    .unwrap()
                    .contains("guide_cache_file"),
                "{error}"
            );
            assert_eq!(project.cache_figures().await["entries"], 0);
        })
        .await;
    }
}

#[tokio::test]
async fn guide_bridge_22_unsupported_client_fallback() {
    for revision in [
        testkit::ProtocolVersion::V_2025_11_25,
        testkit::ProtocolVersion::V_2026_07_28,
    ] {
        let settings = |setup: Setup| setup.revision(revision.clone());
        both_with(tree, settings, async |project| {
            let arguments = json!({"path": "docs/a"});
            let error = project
                .fails("unsupported", "guide_request_file", arguments)
                .await;
            assert!(
                error["error"]
                    .as_str()
                    .unwrap()
                    .contains("does not support sampling"),
                "{error}"
            );
            let instruction = error["instruction"].as_str().unwrap();
            assert!(
                instruction.contains("guide_cache_file") && instruction.contains("resource"),
                "{instruction}"
            );
            let arguments = json!({"path": "docs"});
            project
                .fails("unsupported", "guide_request_directory", arguments)
                .await;
            project.cache("docs/a", "as it was told").await;
            assert_eq!(project.content("docs/a").await, "as it was told");
        })
        .await;
    }
}

#[tokio::test]
async fn guide_bridge_23_operation_audit_log() {
    let trace = |setup: Setup| setup.arguments(["--log-level", "trace"]);
    both_with(tree, trace, async |project| {
        let files = json!([{"path": "docs/a", "content": "x"}, {"path": "docs/b", "content": "y"}]);
        project
            .data("guide_cache_file", json!({"files": files}))
            .await;
        project.content("docs/a").await;
        for (operation, path) in [
            ("guide_cache_file", "docs/a"),
            ("guide_cache_file", "docs/b"),
            ("guide_request_file", "docs/a"),
        ] {
            let is_it = |line: &testkit::Value| {
                line["operation"] == operation && line["path"] == path && line["result"] == "ok"
            };
            let line = project.server.logged(is_it).await;
            assert_eq!(line["level"], "TRACE");
            assert!(
                line["timestamp"].is_string() && line["client"].is_string(),
                "{line}"
            );
        }
        project
            .fails(
                "security",
                "guide_cache_file",
                json!({"path": "x", "content": ""}),
            )
            .await;
        let line = project
            .server
            .logged(|line| line["message"] == "violation")
            .await;
        assert_eq!(line["level"], "WARN");
    })
    .await;
}

#[tokio::test]
async fn guide_bridge_24_security_violation_logging() {
    both(async |project| {
        for number in 1..=3 {
            let path = format!("../{number}");
            project
                .fails("security", "guide_request_file", json!({"path": path}))
                .await;
            let line = project
                .server
                .logged(|line| line["attempted_path"] == *path)
                .await;
            assert_eq!(
                (&line["violation"], &line["client_violations"]),
                (&json!("traversal"), &json!(number))
            );
            assert_eq!(
                (&line["tool"], &line["level"]),
                (&json!("guide_request_file"), &json!("WARN"))
            );
            assert!(
                line["client"].as_str().unwrap().contains("testkit")
                    || project.transport() == testkit::Transport::Http,
                "{line}"
            );
        }
    })
    .await;
}

#[tokio::test]
async fn guide_bridge_25_guide_cache_file_tool() {
    both(async |project| {
        let data = project.cache("docs/a", "x").await;
        assert_eq!(
            (&data["cache"]["entries"], &data["cache"]["bytes"]),
            (&json!(1), &json!(1))
        );
        let invalid = json!({"path": "/home/user/.ssh/id_rsa", "content": "x"});
        project.fails("security", "guide_cache_file", invalid).await;
    })
    .await;
}

#[tokio::test]
async fn guide_bridge_26_batch_file_caching() {
    both(async |project| {
        let files = |paths: &[&str]| {
            let files = paths
                .iter()
                .map(|path| json!({"path": path, "content": "new"}));
            json!({"files": files.collect::<Vec<_>>()})
        };
        project.cache("docs/a", "old").await;
        for last in ["../b", "docs/\n", "secret"] {
            let call = project
                .call("guide_cache_file", files(&["docs/a", "docs/c", last]))
                .await;
            assert!(call.is_error, "{}", call.story());
        }
        assert_eq!(
            project.content("docs/a").await,
            "old",
            "nothing of a refused batch is stored"
        );
        assert!(!project.holds("docs/c").await);
        let data = project
            .data("guide_cache_file", files(&["docs/a", "docs/b", "src/c"]))
            .await;
        assert_eq!(
            (&data["file_count"], &data["total_size"]),
            (&json!(3), &json!(9))
        );
        let statuses = data["files"]
            .as_array()
            .unwrap()
            .iter()
            .map(|file| &file["status"]);
        assert_eq!(
            statuses.collect::<Vec<_>>(),
            ["updated", "cached", "cached"]
        );
    })
    .await;
}
