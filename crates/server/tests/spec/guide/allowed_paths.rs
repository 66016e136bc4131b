//! Which paths are allowed, and how they are written.

use testkit::{Setup, Tree, json};

use super::set::{Agent, Guide, PLAIN, asked, text_in, tree};
use crate::harness::{Harness, ToolSet};

#[tokio::test]
async fn guide_bridge_07_allowed_path_access() {
    asked(
        PLAIN,
        || Agent::saying("x"),
        async |guide, _| {
            for (path, normal) in [
                ("docs/a", "docs/a"),
                ("./src//b/../c", "src/c"),
                ("/tests/d/", "tests/d"),
            ] {
                let data = guide
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
        async |guide, agent| {
            for path in [
                "secret",
                "docs-private/a",
                "/etc/passwd",
                ".",
                ".git/config",
            ] {
                guide
                    .fails("security", "guide_request_file", json!({"path": path}))
                    .await;
                let line = guide
                    .server
                    .logged(|line| line["attempted_path"] == path)
                    .await;
                assert_eq!(line["level"], "WARN");
                assert_eq!(line["violation"], "not_allowed");
            }
            assert!(agent.prompts().is_empty());
        },
    )
    .await;
}

#[tokio::test]
async fn guide_bridge_09_path_traversal_prevention() {
    Guide::both(tree, async |guide| {
        let spelled = format!("{}/docs/spelled", guide.tree().path().display());
        guide.cache("docs/../src/a", "x").await;
        assert_eq!(guide.content("src/a").await, "x");
        for path in [
            "..",
            "docs/../../docs/a",
            "docs/../../../etc/passwd",
            "/../docs/a",
            "src/../..",
        ] {
            let arguments = json!({"path": path, "content": "x"});
            guide.fails("security", "guide_cache_file", arguments).await;
        }
        let nul = json!({"path": "docs/a\u{0}", "content": "x"});
        guide.fails("security", "guide_cache_file", nul).await;
        // Absolute paths are those under the project root: spelled out, or from it.
        assert_eq!(guide.cache("/docs/b", "x").await["cache_key"], "docs/b");
        assert_eq!(
            guide.cache(&spelled, "x").await["cache_key"],
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
    Guide::both_with(links, PLAIN, async |guide| {
        guide.cache("docs/inside/a", "x").await;
        guide.cache("docs/code/b", "x").await;
        for (path, violation) in [
            ("docs/closed", "link_not_allowed"),
            ("docs/closed/new", "link_not_allowed"),
            ("docs/out/keys", "link_leaves"),
            ("docs/one", "link_loop"),
        ] {
            let arguments = json!({"path": path, "content": "x"});
            let error = guide.fails("security", "guide_cache_file", arguments).await;
            assert!(text_in(&error, "error").contains("link"), "{error}");
            let line = guide
                .server
                .logged(|line| line["attempted_path"] == path)
                .await;
            assert_eq!(line["violation"], violation, "{line}");
        }
        let listed = json!({"path": "docs", "entries": [{"name": "out", "type": "symlink"}]});
        guide
            .fails("security", "guide_list_directory", listed)
            .await;
    })
    .await;
}

#[tokio::test]
async fn guide_bridge_11_default_allowed_paths() {
    Guide::both(tree, async |guide| {
        let data = guide.data("guide_cache_stats", json!({})).await;
        assert_eq!(
            data["allowed_paths"],
            json!(["docs", "src", "tests", ".guide", ".todo"])
        );
        for directory in ["docs", "src", "tests", ".guide", ".todo"] {
            guide.cache(&format!("{directory}/a"), "x").await;
        }
        for path in ["a", "lib/a", ".env", "README.md"] {
            let arguments = json!({"path": path, "content": "x"});
            guide.fails("security", "guide_cache_file", arguments).await;
        }
    })
    .await;
}

#[tokio::test]
async fn guide_bridge_12_project_specific_allowed_paths() {
    let settings =
        |setup: Setup| setup.set("guide.allowed_paths", json!(["docs", "notes", "gone/too"]));
    Guide::both_with(tree, settings, async |guide| {
        guide.cache("notes/a", "x").await;
        guide
            .fails(
                "security",
                "guide_cache_file",
                json!({"path": "src/a", "content": "x"}),
            )
            .await;
        for path in ["notes", "gone/too"] {
            let line = guide
                .server
                .logged(|line| line["path"] == path && line["level"] == "WARN")
                .await;
            assert!(
                line["message"].as_str().unwrap().contains("does not exist"),
                "{line}"
            );
        }
        let known = |line: &String| line.contains("does not exist") && line.contains("\"docs\"");
        assert!(!guide.server.stderr().iter().any(known));
    })
    .await;
}

#[tokio::test]
async fn guide_bridge_13_path_normalization() {
    testkit::over_both(async |transport| {
        let tree = tree().dir("a/b");
        let absolute = format!("{}/a/b/", tree.path().display());
        let allowed = json!(["./docs/", "src//x/..", absolute]);
        let server = Guide::setup(&tree)
            .set("guide.allowed_paths", allowed)
            .start(transport)
            .await;
        let guide = Harness::<Guide>::new(server, vec![tree]);
        let data = guide.data("guide_cache_stats", json!({})).await;
        assert_eq!(data["allowed_paths"], json!(["docs", "src", "a/b"]));
        guide.cache("a/b/c", "x").await;
        guide
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
async fn guide_tools_23_path_validation_on_every_call() {
    Guide::both(tree, async |guide| {
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
            guide.fails("security", tool, arguments).await;
            let nth = json!(number + 1);
            let line = guide
                .server
                .logged(|line| line["client_violations"] == nth)
                .await;
            assert_eq!(line["tool"], json!(tool));
            assert_eq!(line["violation"], "traversal");
        }
    })
    .await;
}

#[tokio::test]
async fn guide_tools_27_security_policy_consistency() {
    let settings = |setup: Setup| setup.set("guide.allowed_paths", json!(["notes"]));
    let tree = || tree().dir("notes");
    Guide::both_with(tree, settings, async |guide| {
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
            guide.ok(tool, with("notes/a")).await;
            guide.fails("security", tool, with("docs/a")).await;
        }
        for tool in ["guide_request_file", "guide_request_directory"] {
            guide.ok(tool, json!({"path": "notes/a"})).await;
            guide
                .fails("security", tool, json!({"path": "docs/a"}))
                .await;
        }
    })
    .await;
}
