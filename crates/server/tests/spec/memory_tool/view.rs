//! `view`: files, directories, images, and paths that lead out.

use testkit::{Transport, Tree, json};

use super::MemoryTool;

#[tokio::test]
async fn memory_tool_is_one_tool_without_an_output_schema() {
    MemoryTool::both(Tree::new, async |memory| {
        let tools = memory.server.list_tools().await;
        assert_eq!(tools.len(), 1);
        assert_eq!(tools[0]["name"], "memory");
        assert!(tools[0].get("outputSchema").is_none());
        assert_eq!(tools[0]["inputSchema"]["required"], json!(["command"]));
    })
    .await;
}

#[tokio::test]
async fn memory_tool_view_a_directory() {
    let tree = || {
        Tree::new()
            .file("b.md", "x".repeat(1536))
            .file("a/deep/er/no.md", "")
            .file("a/one.md", "1")
            .file("a.md", "")
            .file(".hidden", "")
            .file("node_modules/x", "")
    };
    MemoryTool::both(tree, async |memory| {
        let text = memory.view("/memories").await;
        let mut lines = text.lines();
        assert_eq!(
            lines.next(),
            Some(
                "Here're the files and directories up to 2 levels deep in /memories, excluding hidden items and node_modules:"
            )
        );
        let paths: Vec<&str> = lines.map(|line| line.split('\t').nth(1).expect("a path")).collect();
        assert_eq!(
            paths,
            [
                "/memories",
                "/memories/a/",
                "/memories/a/deep/",
                "/memories/a/one.md",
                "/memories/a.md",
                "/memories/b.md",
            ]
        );
        assert!(text.contains("\n1.5K\t/memories/b.md"), "{text}");
        assert!(text.contains("\n0B\t/memories/a.md"), "{text}");
        assert!(text.contains("\n1B\t/memories/a/one.md"), "{text}");
        let below = memory.view("/memories/a").await;
        assert!(below.contains("\t/memories/a/deep/er/"), "{below}");
    })
    .await;
}

#[tokio::test]
async fn memory_tool_view_a_file() {
    let tree = || {
        Tree::new()
            .file("f", "one\ntwo\nthree\n")
            .file("bytes", b"\xff\xfe")
    };
    MemoryTool::both(tree, async |memory| {
        let head = "Here's the content of /memories/f with line numbers:";
        assert_eq!(
            memory.view("/memories/f").await,
            format!("{head}\n     1\tone\n     2\ttwo\n     3\tthree")
        );
        let range = json!({"command": "view", "path": "/memories/f", "view_range": [2, -1], "old_str": null});
        assert_eq!(
            memory.ok(range).await,
            format!("{head}\n     2\ttwo\n     3\tthree")
        );
        let view = |path: &str| json!({"command": "view", "path": path});
        assert_eq!(
            memory.fails(view("/memories/none")).await,
            "The path /memories/none does not exist. Please provide a valid path."
        );
        let bytes = memory.fails(view("/memories/bytes")).await;
        assert!(bytes.contains("is not UTF-8 text"), "{bytes}");
    })
    .await;
}

#[tokio::test]
async fn memory_tool_view_a_long_file_says_how_to_go_on() {
    let lines: String = (1..=5000)
        .map(|number| format!("line {number}\n"))
        .collect();
    let memory = MemoryTool::start(Tree::new().file("f", lines), Transport::Stdio).await;
    let text = memory.view("/memories/f").await;
    assert!(text.chars().count() <= 16_000);
    assert!(text.contains("view again with view_range ["), "{text}");
    let memory = MemoryTool::start(
        Tree::new().file("f", "\n".repeat(1_000_000)),
        Transport::Stdio,
    )
    .await;
    assert_eq!(
        memory
            .fails(json!({"command": "view", "path": "/memories/f"}))
            .await,
        "File /memories/f exceeds maximum line limit of 999,999 lines."
    );
}

#[tokio::test]
async fn memory_tool_view_an_image() {
    let tree = || Tree::new().file("pixel.png", b"\x89PNG\r\n\x1a\n");
    MemoryTool::both(tree, async |memory| {
        let image = memory
            .call(json!({"command": "view", "path": "/memories/pixel.png"}))
            .await;
        let block = json!({"type": "image", "mimeType": "image/png", "data": "iVBORw0KGgo="});
        assert_eq!(image.whole["content"], json!([block]), "{}", image.story());
    })
    .await;
}

#[tokio::test]
async fn memory_tool_paths_stay_in_the_store() {
    let tree = || Tree::new().file("f", "x").link("out", "/etc/hostname");
    MemoryTool::both(tree, async |memory| {
        for path in ["/etc/passwd", "memories/f", "/memoriesX", "f", ""] {
            let message = memory.fails(json!({"command": "view", "path": path})).await;
            assert_eq!(
                message,
                format!("Path must start with /memories, got: {path}")
            );
        }
        for path in [
            "/memories/../etc/passwd",
            "/memories/f/../../x",
            "/memories/out",
            "/memories/..",
        ] {
            let message = memory.fails(json!({"command": "view", "path": path})).await;
            assert_eq!(
                message,
                format!("Path {path} would escape /memories directory")
            );
        }
        for path in [
            format!("/memories/{}", "n".repeat(300)),
            format!("/memories{}", "/n".repeat(3000)),
        ] {
            let message = memory.fails(json!({"command": "view", "path": path})).await;
            let end = " is too long: a name has at most 255 bytes, a path 4095";
            assert!(message.ends_with(end) && message.len() < 600, "{message}");
        }
        memory
            .server
            .logged(|line| line["message"] == "violation")
            .await;
    })
    .await;
}

/// A listing that is too long says how much is left out, and stays within the bound of every view.
#[tokio::test]
async fn memory_tool_view_of_a_large_directory_is_cut() {
    let tree = || {
        let names = (0..2_000).map(|number| format!("d/note-{number:04}.md"));
        names.fold(Tree::new(), |tree, name| tree.file(name, ""))
    };
    MemoryTool::both(tree, async |memory| {
        let text = memory.view("/memories").await;
        assert!(text.chars().count() <= 16_000);
        let shown = text
            .lines()
            .filter(|line| line.contains("/memories/d/note-"))
            .count();
        let left_out = format!(
            "cut at 16000 characters, {} entries are left out",
            2_000 - shown
        );
        let last = text.lines().last().expect("a line");
        assert!(last.contains(&left_out), "{last}");
    })
    .await;
}

#[tokio::test]
async fn memory_tool_wrong_arguments_are_a_readable_failure() {
    MemoryTool::both(
        || Tree::new().file("g", "one\ntwo\n"),
        async |memory| {
            for input in [
                json!({}),
                json!({"command": "look"}),
                json!({"command": "view"}),
                json!({"command": "view", "path": 7}),
                json!({"command": "create", "path": "/memories/f"}),
                json!({"command": "insert", "path": "/memories/f"}),
                json!({"command": "rename", "old_path": "/memories/f"}),
                json!({"command": "view", "path": "/memories/g", "view_range": [1]}),
                json!({"command": "view", "path": "/memories/g", "view_range": [1, 2, 3]}),
                json!({"command": "view", "path": "/memories/g", "view_range": "all"}),
                json!({"command": "view", "path": "/memories/g", "view_range": ["1", 2.5]}),
            ] {
                let outcome = memory.call(input).await;
                assert!(
                    outcome.is_error && !outcome.text.is_empty(),
                    "{}",
                    outcome.story()
                );
            }
        },
    )
    .await;
}
