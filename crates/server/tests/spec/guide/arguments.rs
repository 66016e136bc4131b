//! Arguments that are missing, of the wrong type or in the wrong form.

use testkit::json;

use super::set::{Guide, text_in, tree};
use crate::harness::ToolSet;

#[tokio::test]
async fn guide_tools_14_required_arguments_validation() {
    Guide::both(tree, async |guide| {
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
            let error = guide.fails("validation", tool, arguments).await;
            let message = text_in(&error, "error");
            let expected = format!("missing required argument: {missing}");
            assert!(message.starts_with(&expected), "{message}");
        }
        let both = json!({"path": "docs/a", "content": "x", "files": [{"path": "docs/b", "content": "y"}]});
        guide.fails("validation", "guide_cache_file", both).await;
        assert_eq!(guide.cache_figures().await["entries"], 0);
    })
    .await;
}

#[tokio::test]
async fn guide_tools_15_type_validation() {
    Guide::both(tree, async |guide| {
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
            let error = guide.fails("validation", tool, arguments).await;
            assert_eq!(error["error"], expected);
        }
        assert_eq!(guide.cache_figures().await["entries"], 0);
    })
    .await;
}

#[tokio::test]
async fn guide_tools_16_path_format_validation() {
    Guide::both(tree, async |guide| {
        let long = format!("docs/{}", "n".repeat(300));
        for path in ["", "docs/a\nb", "docs/\u{7f}", long.as_str()] {
            let arguments = json!({"path": path, "content": "x"});
            let error = guide
                .fails("validation", "guide_cache_file", arguments)
                .await;
            let message = text_in(&error, "error");
            assert!(
                message.contains("without control characters"),
                "the rules: {message}"
            );
        }
        assert_eq!(guide.cache_figures().await["entries"], 0);
    })
    .await;
}
