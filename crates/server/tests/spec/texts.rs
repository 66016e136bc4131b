//! The text half of replies, as models read it: one exact text for each tool.

use testkit::{Setup, Transport, Tree, Value, json};

use crate::files::Files;
use crate::harness::ToolSet;
use crate::memory::Memory;
use crate::workspace::Workspace;

/// Calls tools one after the other and compares their texts. Times are replaced by `TIME`, versions by `V`.
async fn texts(setup: impl Fn() -> (Tree, Setup), table: &[(&str, Value, &str)]) {
    testkit::over_both(async |transport| {
        let (_tree, setup) = setup();
        let server = setup.start(transport).await;
        for (tool, arguments, expected) in table {
            let outcome = server.call(tool, arguments.clone()).await;
            assert_eq!(
                without_times(&without_undo(&outcome.text)),
                *expected,
                "{}",
                outcome.story()
            );
        }
    })
    .await;
}

/// A text without how to take the change back: `faults/history_tools.rs` looks at that.
fn without_undo(text: &str) -> String {
    let Some((before, change)) = text.rsplit_once("undo: ") else {
        return text.to_owned();
    };
    assert!(change.ends_with(']'), "{text}");
    match before.strip_suffix("; ") {
        Some(notes) => format!("{notes}]"),
        None => before.trim_end_matches(['[', '\n']).to_owned(),
    }
}

/// A text with `TIME` for everything that looks like a time to the second, and `V` for every version.
fn without_times(text: &str) -> String {
    let text = &without_versions(text);
    let is_time = |word: &str| {
        word.len() == "2026-01-01T00:00:00Z".len() && word.ends_with('Z') && word.contains("T")
    };
    let words = text.split_inclusive([' ', '\n', '\t']);
    let shown = words.map(|word| {
        let bare = word.trim_end();
        if is_time(bare) {
            word.replace(bare, "TIME")
        } else {
            word.to_owned()
        }
    });
    shown.collect()
}

fn without_versions(text: &str) -> String {
    let mut pieces = text.split("version ");
    let mut shown = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let is_version = piece.get(..9).is_some_and(|v| v.starts_with(['h', 's']));
        shown.push_str("version ");
        shown.push_str(if is_version { "V" } else { "" });
        shown.push_str(if is_version { &piece[9..] } else { piece });
    }
    shown
}

fn forest() -> Tree {
    Tree::new()
        .file("a.txt", "one\ntwo\nthree\n")
        .file(
            "src/main.rs",
            "fn main() {\n    hit();\n}\n// x\n// y\n// hit\n",
        )
        .file("src/odd\nname", "hit\n")
        .dir("empty")
        .link("inside", "a.txt")
        .link("away", "../elsewhere")
}

#[tokio::test]
async fn workspace_each_reply_has_a_short_text() {
    let setup = || {
        let tree = forest();
        let setup = Workspace::setup(&tree);
        (tree, setup)
    };
    texts(
        setup,
        &[
            (
                "list_folder",
                json!({"path": "."}),
                "a.txt\t14\naway -> external\nempty/\ninside -> inside\nsrc/",
            ),
            ("list_folder", json!({"path": "src"}), "main.rs\t42\n\"odd\\nname\"\t4"),
            ("list_folder", json!({"path": "empty"}), "[the directory is empty]"),
            ("read_file", json!({"path": "a.txt"}), "1\tone\n2\ttwo\n3\tthree\n[version V]"),
            (
                "read_file",
                json!({"path": "a.txt", "limit_lines": 1}),
                "1\tone\n[lines 1-1 of 3; go on with offset_lines: 2; version V]",
            ),
            (
                "read_file",
                json!({"path": "a.txt", "limit_bytes": 5}),
                "one\nt\n[bytes 0-4 of 14; go on with offset_bytes: 5; version V]",
            ),
            (
                "list_folder",
                json!({"depth": 2}),
                "a.txt\t14\naway -> external\nempty/\ninside -> inside\nsrc/\n  main.rs\t42\n  \"odd\\nname\"\t4",
            ),
            (
                "read_file",
                json!({"paths": ["a.txt", "gone", "src/odd\nname"], "limit_lines": 1}),
                "==> a.txt <==\n1\tone\n[lines 1-1 of 3; go on with offset_lines: 2; version V]\n\
                 ==> gone <== error: file not found: gone\n==> \"src/odd\\nname\" <==\n1\thit\n[version V]",
            ),
            (
                "glob",
                json!({"pattern": "**", "type_filter": "file", "sort": "size", "max_results": 2}),
                "42\tsrc/main.rs\n14\ta.txt\n[2 entries; more follow: raise max_results or narrow path or pattern]",
            ),
            (
                "glob",
                json!({"pattern": "a.txt", "sort": "modified"}),
                "TIME\t14\ta.txt",
            ),
            (
                "grep",
                json!({"pattern": "hit"}),
                "src/main.rs\n2:    hit();\n6:// hit\n\n\"src/odd\\nname\"\n1:hit",
            ),
            (
                "grep",
                json!({"pattern": "hit", "path": "src/main.rs", "context_lines": 1}),
                "src/main.rs\n1-fn main() {\n2:    hit();\n3-}\n--\n5-// y\n6:// hit",
            ),
            (
                "grep",
                json!({"pattern": "hit", "max_results": 1}),
                "src/main.rs\n2:    hit();\n[1 match; more follow: raise max_results or narrow path, pattern or glob_filter]",
            ),
            ("grep", json!({"pattern": "nowhere"}), "[no match in 3 files]"),
            (
                "grep",
                json!({"pattern": "hit", "output": "count"}),
                "2\tsrc/main.rs\n1\t\"src/odd\\nname\"",
            ),
            ("glob", json!({"pattern": "*"}), "14\ta.txt\nsymlink\taway\n-\tempty/\nsymlink\tinside\n-\tsrc/"),
            ("glob", json!({"pattern": "*.zip"}), "[no match]"),
            (
                "glob",
                json!({"pattern": "*", "max_results": 1}),
                "14\ta.txt\n[1 entry; more follow: raise max_results or narrow path or pattern]",
            ),
            ("hash_file", json!({"path": "a.txt", "algorithm": "md5"}), "path: a.txt\nmd5: deed54b823522e0525693b090363f9df\nsize: 14"),
            ("write_file", json!({"path": "n", "content": "x"}), "n: created, 1 bytes\n[version V]"),
            ("write_file", json!({"path": "n", "content": "xy"}), "n: replaced, 2 bytes\n[version V]"),
            ("write_file", json!({"path": "n", "content": "z", "mode": "append"}), "n: appended, 1 bytes\n[version V]"),
            ("create_folder", json!({"path": "d/e"}), "created d/e/"),
            ("create_folder", json!({"path": "d/e"}), "d/e/ was there already"),
            ("copy", json!({"source_path": "n", "dest_path": "d/m"}), "copied n to d/m, 3 bytes\n[version V]"),
            ("copy", json!({"source_path": "d", "dest_path": "f"}), "copied d/ to f/: 1 file, 3 bytes"),
            ("move", json!({"source_path": "n", "dest_path": "o"}), "moved n to o\n[version V]"),
            ("remove_file", json!({"path": "o"}), "removed o"),
            ("remove_folder", json!({"path": "d"}), "removed d/"),
        ],
    )
    .await;
}

#[tokio::test]
async fn workspace_facts_are_lines_with_times_to_the_second() {
    let tree = forest();
    let server = Workspace::setup(&tree).start(Transport::Stdio).await;
    let stat = server.call("stat_file", json!({"path": "a.txt"})).await;
    let text = without_times(&stat.text);
    let plain = "path: a.txt\ntype: file\nsize: 14\nmodified_at: TIME";
    assert!(text.starts_with(plain), "{text}");
    let stat = server.call("stat_file", json!({"path": "inside"})).await;
    assert!(
        without_versions(&stat.text).ends_with("\nsymlink: leads to a.txt\n[version V]"),
        "{}",
        stat.text
    );
    let permissions = server
        .call("permissions_file", json!({"path": "a.txt"}))
        .await;
    let lines: Vec<&str> = permissions.text.lines().collect();
    assert_eq!(lines.len(), 4, "{}", permissions.text);
    assert!(
        lines[3].starts_with("mode: 06") && lines[3].contains(" -rw"),
        "{}",
        lines[3]
    );
    let roots = server.call("list_roots", json!({})).await;
    assert!(
        roots.text.starts_with("workspace: list_folder, read_file"),
        "{}",
        roots.text
    );
}

#[tokio::test]
async fn files_each_reply_has_a_short_text() {
    let setup = || {
        let tree = forest();
        let setup = Files::setup(&tree);
        (tree, setup)
    };
    texts(
        setup,
        &[
            (
                "list",
                json!({"path": "src"}),
                "src/main.rs\t42\n\"src/odd\\nname\"\t4",
            ),
            (
                "list",
                json!({"path": "."}),
                "a.txt\t14\naway\tsymlink\nempty/\ninside\tsymlink\nsrc/",
            ),
            ("list", json!({"path": "empty"}), "[no entries]"),
            (
                "read",
                json!({"path": "a.txt", "start_line": 1, "end_line": 1}),
                "two\n",
            ),
            (
                "search",
                json!({"root_path": ".", "pattern": "HIT", "file_pattern": "*.rs"}),
                "src/main.rs\n2:    hit();\n6:// hit",
            ),
            (
                "search",
                json!({"root_path": ".", "pattern": "two", "context_lines": 1}),
                "a.txt\n1-one\n2:two\n3-three",
            ),
            (
                "write",
                json!({"path": "n", "content": "xy"}),
                "wrote 2 bytes to n, which has 2 now",
            ),
            ("mkdir", json!({"path": "d"}), "d/ is there"),
            (
                "copy",
                json!({"source": "n", "destination": "m"}),
                "copied n to m, 2 bytes",
            ),
            (
                "move",
                json!({"source": "m", "destination": "o"}),
                "moved m to o",
            ),
            ("delete", json!({"path": "o"}), "deleted file o"),
            (
                "delete",
                json!({"path": "o", "force": true}),
                "nothing was at o",
            ),
            ("info", json!({"path": "o"}), "path: o\nexists: false"),
        ],
    )
    .await;
}

#[tokio::test]
async fn memory_each_reply_has_a_short_text() {
    let setup = || {
        let tree = Tree::new()
            .file("notes/a.md", "one\ntwo\n")
            .file("raw", b"\xff\0");
        let setup = Memory::setup(&tree);
        (tree, setup)
    };
    texts(
        setup,
        &[
            ("view", json!({"path": "."}), "notes\nraw"),
            ("view", json!({"path": "notes/a.md"}), "one\ntwo\n"),
            (
                "view",
                json!({"path": "raw"}),
                "the file: binary, 2 bytes; structuredContent has it as base64",
            ),
            (
                "create",
                json!({"path": "b", "content": "x", "encoding": "utf-8"}),
                "created b",
            ),
            (
                "str_replace",
                json!({"path": "b", "old_str": "x", "new_str": "y"}),
                "replaced 1 place in b",
            ),
            (
                "insert",
                json!({"path": "b", "insert_line": 1, "new_str": "z\n"}),
                "inserted into b",
            ),
            (
                "rename",
                json!({"old_path": "b", "new_path": "c"}),
                "renamed b to c",
            ),
            ("delete", json!({"path": "c"}), "deleted c"),
        ],
    )
    .await;
}

#[tokio::test]
async fn workspace_the_only_root_may_be_left_out() {
    let tree = forest();
    let server = Workspace::setup(&tree).start(Transport::Stdio).await;
    let reply = server.call("read_file", json!({"path": "a.txt"})).await;
    assert_eq!(reply.ok()["root"], "workspace");
    for tool in server.list_tools().await {
        let required = tool["inputSchema"]["required"].to_string();
        assert!(!required.contains("root"), "{tool:#}");
    }
}

#[tokio::test]
async fn workspace_wrong_arguments_are_named_at_once() {
    let tree = forest();
    let server = Workspace::setup(&tree).start(Transport::Stdio).await;
    let wrong = json!({"path": 1, "content": "x", "mode": "replace", "moed": "append"});
    let reply = server.call("write_file", wrong).await;
    assert_eq!(
        reply.text,
        "unknown argument: moed; valid arguments: root, path, content, mode, encoding, if_version, files; argument path must be a string, got number 1; \
         invalid mode: replace; valid modes: overwrite, append, create_only"
    );
    assert!(reply.is_error && !tree.has("1"));
}

#[tokio::test]
async fn workspace_slips_are_forgiven_only_where_nothing_changes() {
    let tree = forest();
    let server = Workspace::setup(&tree).start(Transport::Stdio).await;
    let slip = json!({"path": "a.txt", "offset_lines": "2", "limit_lines": "1", "line_numbers": "false", "limit_bytes": ""});
    assert_eq!(
        server.call("read_file", slip).await.ok()["content"],
        "two\n"
    );
    let slip = json!({"path": "n", "content": "x", "mode": ""});
    let refused = server.call("write_file", slip).await;
    assert!(refused.is_error && !tree.has("n"), "{}", refused.story());
}

#[tokio::test]
async fn workspace_tools_of_other_servers_lead_to_ours() {
    let tree = forest();
    let mut wire = Workspace::setup(&tree).wire(Transport::Http).await;
    for (called, meant) in [
        ("read", "did you mean read_file?"),
        ("search", "did you mean grep?"),
        ("delete_file", "did you mean remove_file?"),
        ("list_directory", "did you mean list_folder?"),
        ("xyzzy", "tools: list_roots, list_folder, read_file"),
    ] {
        let call =
            json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": called}});
        let reply = wire.request(&call).await;
        let message = reply["error"]["message"].as_str().expect("an error");
        assert!(message.contains(meant), "{message}");
    }
}

/// A picture of one red dot.
const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==";

/// The bytes of standard base64.
fn bytes_of(base64: &str) -> Vec<u8> {
    let digits = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let value = |byte: u8| digits.iter().position(|digit| *digit == byte);
    let (mut bytes, mut held, mut bits) = (Vec::new(), 0usize, 0);
    for value in base64.bytes().filter_map(value) {
        held = (held << 6) | value;
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            bytes.push((held >> bits) as u8);
            held &= (1 << bits) - 1;
        }
    }
    bytes
}

#[tokio::test]
async fn workspace_images_and_sound_are_blocks() {
    testkit::over_both(async |transport| {
        let tree = Tree::new()
            .file("art/dot.png", bytes_of(PNG))
            .file("beep.wav", b"RIFF\x04\0\0\0WAVE");
        let setup = Workspace::setup(&tree);
        let server = setup.clone().start(transport).await;
        let image = server
            .call("read_file", json!({"path": "art/dot.png"}))
            .await;
        let content = &image.whole["content"];
        assert_eq!(
            content[0]["text"],
            "dot.png: PNG, 1x1, 70 B",
            "{}",
            image.story()
        );
        let block = json!({"type": "image", "mimeType": "image/png", "data": PNG});
        assert_eq!(content[1], block);
        assert_eq!(image.ok()["mime_type"], "image/png");
        assert!(image.ok().get("content").is_none(), "{}", image.story());
        let sound = server.call("read_file", json!({"path": "beep.wav"})).await;
        assert_eq!(
            sound.whole["content"][1]["type"],
            "audio",
            "{}",
            sound.story()
        );
        let part = json!({"path": "art/dot.png", "limit_bytes": 4});
        let part = server.call("read_file", part).await;
        assert_eq!(part.ok()["content"], "iVBORw==");
        let server = setup
            .set("server.replies", "structured")
            .start(transport)
            .await;
        let image = server
            .call("read_file", json!({"path": "art/dot.png"}))
            .await;
        assert_eq!(image.ok()["content"], PNG);
        assert_eq!(image.whole["content"], json!([]));
    })
    .await;
}

#[tokio::test]
async fn workspace_tools_with_large_replies_say_so() {
    let tree = Tree::new();
    let server = Workspace::setup(&tree).start(Transport::Stdio).await;
    let tools = server.list_tools().await;
    let large = tools
        .iter()
        .filter(|tool| tool["_meta"]["anthropic/maxResultSizeChars"] == 500_000);
    let large: Vec<&str> = large.filter_map(|tool| tool["name"].as_str()).collect();
    for name in ["list_folder", "read_file", "grep", "glob"] {
        assert!(large.contains(&name), "{name}: {large:?}");
    }
    assert!(!large.contains(&"write_file"));
}

#[tokio::test]
async fn workspace_fr_005_latin_1_and_utf_16_are_text() {
    let utf16: Vec<u8> = "\u{feff}z\u{f6}lf\nzw\u{f6}lf\n"
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    let tree = Tree::new().file("latin", b"caf\xe9\n").file("utf16", utf16);
    let server = Workspace::setup(&tree).start(Transport::Stdio).await;
    let latin = server.call("read_file", json!({"path": "latin"})).await;
    assert_eq!(latin.ok()["content"], "caf\u{e9}\n");
    assert_eq!(latin.ok()["binary"], false);
    assert_eq!(
        without_versions(&latin.text),
        "1\tcaf\u{e9}\n[Not UTF-8: read as windows-1252; give encoding if that is wrong; version V]"
    );
    let part = json!({"path": "utf16", "offset_lines": 2});
    let part = server.call("read_file", part).await;
    assert_eq!(part.ok()["content"], "zw\u{f6}lf\n");
    assert_eq!(part.ok()["decoded_from"], "UTF-16LE");
    let greek = json!({"path": "latin", "encoding": "iso-8859-7"});
    assert_eq!(
        server.call("read_file", greek).await.ok()["content"],
        "caf\u{3b9}\n"
    );
    let wrong = json!({"path": "latin", "encoding": "utf-9"});
    let wrong = server.call("read_file", wrong).await;
    assert!(
        wrong.is_error && wrong.text.contains("utf-9") && wrong.text.contains("windows-1252"),
        "{}",
        wrong.text
    );
}

#[tokio::test]
async fn workspace_several_files_share_one_budget() {
    let tree = Tree::new()
        .file("a", "x".repeat(60))
        .file("b", "y".repeat(60))
        .file("c", "z");
    let setup = Workspace::setup(&tree).set("max_full_read_size", 100);
    let server = setup.start(Transport::Stdio).await;
    let reply = server
        .call("read_file", json!({"paths": ["a", "b", "c"]}))
        .await;
    let files = &reply.ok()["files"];
    assert_eq!(files[0]["content"], "x".repeat(60));
    let error = files[1]["error"].as_str().expect("an error");
    assert!(error.contains("read it in another call"), "{error}");
    assert_eq!(files[2]["content"], "z");
    let both = json!({"path": "a", "paths": ["b"]});
    assert!(server.call("read_file", both).await.is_error);
    let many: Vec<String> = (0..51).map(|number| number.to_string()).collect();
    let many = server.call("read_file", json!({"paths": many})).await;
    assert!(many.text.contains("at most 50"), "{}", many.text);
}

#[tokio::test]
async fn workspace_paths_that_are_nearly_right_are_answered() {
    let decomposed = "u\u{308}ber.txt";
    let tree = Tree::new().file("src/x", "x").file(decomposed, "\u{fc}");
    let server = Workspace::setup(&tree).start(Transport::Stdio).await;
    let reply = server
        .call("read_file", json!({"path": "workspace/src/x"}))
        .await;
    let hint = "file not found: workspace/src/x; did you mean src/x?";
    assert!(reply.text.starts_with(hint), "{}", reply.text);
    let composed = server
        .call("read_file", json!({"path": "\u{fc}ber.txt"}))
        .await;
    assert_eq!(composed.ok()["content"], "\u{fc}");
    assert_eq!(composed.ok()["path"], decomposed);
    tree.write("\u{fc}ber.txt", "composed");
    let own = server
        .call("read_file", json!({"path": "\u{fc}ber.txt"}))
        .await;
    assert_eq!(own.ok()["content"], "composed");
}

#[tokio::test]
async fn files_a_backslash_separates_unless_a_name_has_it() {
    let tree = Tree::new()
        .file("docs/a.md", "deep")
        .file("x\\y", "odd")
        .dir("x");
    let server = Files::setup(&tree).start(Transport::Stdio).await;
    let read = server.call("read", json!({"path": "docs\\a.md"})).await;
    assert_eq!(read.ok()["content"], "deep");
    let read = server.call("read", json!({"path": "x\\y"})).await;
    assert_eq!(read.ok()["content"], "odd");
    let out = server
        .call("read", json!({"path": "..\\..\\etc\\passwd"}))
        .await;
    assert_eq!(out.error()["error"]["code"], "path_validation_error");
    server
        .call("write", json!({"path": "docs\\new.md", "content": "n"}))
        .await
        .ok();
    assert_eq!(tree.text("docs/new.md"), "n");
}

#[tokio::test]
async fn workspace_messages_are_bounded() {
    let tree = Tree::new();
    let server = Workspace::setup(&tree).start(Transport::Stdio).await;
    let long = "directory/".repeat(380) + "x";
    let reply = server.call("read_file", json!({"path": long})).await;
    assert!(
        reply.is_error && reply.text.chars().count() <= 2000,
        "{}",
        reply.text.len()
    );
    let message = reply.structured["error"]["message"]
        .as_str()
        .expect("a message");
    assert_eq!(message, reply.text);
}
