//! `guide_list_directory`.

use testkit::{Value, json};

use super::set::{Agent, Guide, PLAIN, asked, text_in, tree};
use crate::harness::ToolSet;

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
    Guide::both(tree, async |guide| {
        let arguments = json!({"path": "docs/", "entries": entries()});
        let data = guide.data("guide_list_directory", arguments).await;
        assert_eq!(data["cache_key"], "docs");
        assert_eq!(data["file_count"], 3);
        assert_eq!(data["directory_count"], 2);
        let read = guide
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
        guide
            .fails("security", "guide_list_directory", outside)
            .await;
        let inside = json!({"path": "docs", "entries": [{"name": "../../x", "type": "file"}]});
        guide
            .fails("security", "guide_list_directory", inside)
            .await;
    })
    .await;
}

#[tokio::test]
async fn guide_tools_07_include_file_metadata() {
    Guide::both(tree, async |guide| {
        let cached = json!({"path": "docs/b.md", "content": "old", "metadata": {"mtime": 10}});
        guide.data("guide_cache_file", cached).await;
        let arguments = json!({"path": "docs", "entries": entries()});
        let data = guide.data("guide_list_directory", arguments).await;
        assert_eq!(data["invalidated"], json!(["docs/b.md"]));
        assert!(!guide.holds("docs/b.md").await);
        let read = guide
            .data("guide_request_directory", json!({"path": "docs"}))
            .await;
        let expected = json!({"name": "b.md", "type": "file", "size": 3, "mtime": 20.0});
        assert_eq!(read["entries"][1], expected);
    })
    .await;
}

#[tokio::test]
async fn guide_tools_08_recursive_listing() {
    Guide::both(tree, async |guide| {
        let arguments = json!({"path": "docs", "entries": entries()});
        guide.data("guide_list_directory", arguments).await;
        let whole = json!({"path": "docs", "recursive": true});
        let whole = guide.data("guide_request_directory", whole).await;
        assert_eq!(whole["entries"][0]["children"][1]["children"][0]["name"], "x.md");
        // A directory below is found in the listing above it.
        let below = guide.data("guide_request_directory", json!({"path": "docs/a/inner"})).await;
        assert_eq!(below["source"], "cache");
        assert_eq!(below["entries"][0]["name"], "x.md");
        let deep = json!({"path": "docs", "entries": [{"name": "a", "type": "directory", "children": [
            {"name": "..", "type": "directory", "children": []}
        ]}]});
        guide.fails("security", "guide_list_directory", deep).await;
    })
    .await;
}

#[tokio::test]
async fn guide_tools_09_filter_by_pattern() {
    Guide::both(tree, async |guide| {
        let arguments = json!({"path": "docs", "entries": entries(), "pattern": "*.md"});
        let reply = guide.ok("guide_list_directory", arguments).await;
        assert_eq!(reply["data"]["file_count"], 2);
        let warning = reply["warnings"][0].as_str().unwrap();
        assert!(
            warning.contains("1 files") && warning.contains("*.md"),
            "{warning}"
        );
        let open = "{".repeat(5000);
        for pattern in ["[", "a{b", open.as_str()] {
            let arguments = json!({"path": "docs", "entries": [], "pattern": pattern});
            let error = guide
                .fails("validation", "guide_list_directory", arguments)
                .await;
            assert!(text_in(&error, "error").contains("pattern"), "{error}");
        }
    })
    .await;
}

/// Nested directories, as an agent lists them.
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
    Guide::both(tree, async |guide| {
        for entries in [nested(32), names(30_000)] {
            let listing = json!({"path": "docs", "entries": entries});
            guide.data("guide_list_directory", listing).await;
        }
        for (entries, bound) in [(nested(33), "32 levels"), (names(30_001), "30000")] {
            let listing = json!({"path": "docs", "entries": entries});
            let error = guide
                .fails("validation", "guide_list_directory", listing)
                .await;
            assert!(text_in(&error, "error").contains(bound), "{error}");
        }
    })
    .await;
    let request = json!({"path": "docs", "recursive": true});
    for entries in [nested(32), names(30_000)] {
        let agent = || Agent::saying(&entries.to_string());
        asked(PLAIN, agent, async |guide, _| {
            guide.data("guide_request_directory", request.clone()).await;
        })
        .await;
    }
    for (entries, bound) in [
        (nested(33), "32 levels"),
        (nested(100), "32 levels"),
        (names(30_001), "30000"),
    ] {
        let agent = || Agent::saying(&entries.to_string());
        asked(PLAIN, agent, async |guide, _| {
            let error = guide
                .fails("validation", "guide_request_directory", request.clone())
                .await;
            assert!(text_in(&error, "error").contains(bound), "{error}");
        })
        .await;
    }
}
