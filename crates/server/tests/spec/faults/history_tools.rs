//! `changes` and `undo` as clients use them, and files as they were: `at`, `since`.

use testkit::{Server, Setup, Transport, Tree, Value, json, over_both};

use crate::harness::machine::{left_out, succeeds};
use crate::harness::program;

fn setup(tree: &Tree) -> Setup {
    program().root("workspace", tree.path())
}

async fn ok(server: &Server, tool: &str, arguments: Value) -> Value {
    server.call(tool, arguments).await.ok().clone()
}

/// Makes a change and tells its name, which is at the end of the text too.
async fn changed(server: &Server, tool: &str, arguments: Value) -> String {
    let outcome = server.call(tool, arguments).await;
    let change = outcome.ok()["change"].as_str();
    let change = change.unwrap_or_else(|| panic!("{}", outcome.story()));
    let end = format!("undo: {change}]");
    assert!(outcome.text.ends_with(&end), "{}", outcome.story());
    change.to_owned()
}

async fn refused(server: &Server, code: &str, tool: &str, arguments: Value) -> String {
    let outcome = server.call(tool, arguments).await;
    let error = &outcome.error()["error"];
    assert_eq!(error["code"], code, "{}", outcome.story());
    error["message"].as_str().expect("a message").to_owned()
}

fn write(path: &str, content: &str) -> Value {
    json!({"path": path, "content": content})
}

#[tokio::test]
async fn history_changes_tells_who_did_what() {
    over_both(async |transport| {
        let tree = Tree::new().file("a", "one\ntwo\n").file("dir/b", "x\n");
        let server = setup(&tree).start(transport).await;
        let first = changed(&server, "write_file", write("a", "one\n2\nthree\n")).await;
        let second = changed(&server, "write_file", write("dir/new", "n\n")).await;
        let arguments = json!({"source_path": "dir/b", "dest_path": "c"});
        let third = changed(&server, "move", arguments).await;
        let outcome = server.call("changes", json!({})).await;
        let lines: Vec<&str> = outcome.text.lines().collect();
        assert_eq!(lines.len(), 3, "{}", outcome.story());
        for (line, change, told) in [
            (lines[0], &third, "move dir/b -> c by "),
            (lines[1], &second, "write_file dir/new (+1 -0) by "),
            (lines[2], &first, "write_file a (+2 -1) by "),
        ] {
            assert!(line.starts_with(&format!("{change} ")), "{line}");
            assert!(line.contains(told), "{line}");
        }
        let reply = ok(&server, "changes", json!({"path": "dir", "limit": 1})).await;
        assert_eq!(
            (&reply["changes"][0]["change"], &reply["more"]),
            (&json!(third), &json!(true))
        );
        let reply = ok(&server, "changes", json!({"since": first})).await;
        assert_eq!(reply["changes"].as_array().unwrap().len(), 2);
        let reply = ok(&server, "changes", json!({"client": "nobody"})).await;
        assert_eq!(reply["changes"], json!([]));
        let outcome = server
            .call("changes", json!({"path": "a", "diff": true}))
            .await;
        assert!(
            outcome.text.contains("-two\n+2\n+three"),
            "{}",
            outcome.story()
        );
        refused(&server, "not_found", "changes", json!({"since": "ffff"})).await;
        refused(
            &server,
            "invalid_arguments",
            "changes",
            json!({"since": "yesterday"}),
        )
        .await;
    })
    .await;
}

#[tokio::test]
async fn history_undo_takes_back_one_all_or_nothing() {
    over_both(async |transport| {
        let tree = Tree::new().file("a", "0\n").file("b", "0\n");
        let before = tree.listing();
        let server = setup(&tree).start(transport).await;
        let files = json!([{"path": "a", "content": "1\n"}, {"path": "b", "content": "1\n"}]);
        let first = changed(&server, "write_file", json!({"files": files})).await;
        let second = changed(&server, "write_file", write("b", "2\n")).await;
        let message = refused(
            &server,
            "version_conflict",
            "undo",
            json!({"change": first}),
        )
        .await;
        for told in [
            &*second,
            "b was changed since by",
            "to: ",
            "+2",
            "nothing was undone",
        ] {
            assert!(message.contains(told), "{told} in {message}");
        }
        assert_eq!(
            (tree.text("a"), tree.text("b")),
            ("1\n".into(), "2\n".into())
        );
        let rehearsed = json!({"to": first, "dry_run": true});
        let outcome = server.call("undo", rehearsed).await;
        assert!(
            outcome.text.starts_with("would undo "),
            "{}",
            outcome.story()
        );
        assert!(outcome.ok().get("change").is_none(), "{}", outcome.story());
        assert_eq!(tree.text("a"), "1\n");
        let undo = changed(&server, "undo", json!({"to": first})).await;
        assert_eq!(tree.listing(), before);
        let message = refused(
            &server,
            "version_conflict",
            "undo",
            json!({"change": first}),
        )
        .await;
        assert!(message.contains(&undo), "{message}");
        changed(&server, "undo", json!({"change": undo})).await;
        assert_eq!(
            (tree.text("a"), tree.text("b")),
            ("1\n".into(), "2\n".into())
        );
        changed(&server, "undo", json!({"to": first, "path": "b"})).await;
        refused(&server, "not_found", "undo", json!({"change": "ffff"})).await;
        for (wrong, value) in [
            ("change", json!("")),
            ("change", json!(null)),
            ("to", json!("")),
            ("to", json!(null)),
            ("dry_run", json!(null)),
            ("dry_run", json!("")),
            ("change", json!("yesterday")),
        ] {
            let mut arguments = json!({});
            arguments[wrong] = value;
            refused(&server, "invalid_arguments", "undo", arguments).await;
        }
    })
    .await;
}

/// Another program's change is not overwritten.
#[tokio::test]
async fn history_undo_leaves_alone_what_others_changed() {
    over_both(async |transport| {
        let tree = Tree::new().file("a", "0\n").file("b", "0\n").dir("d");
        let server = setup(&tree).start(transport).await;
        let first = changed(&server, "write_file", write("a", "1\n")).await;
        tree.write("a", "somebody's\n");
        let message = refused(
            &server,
            "version_conflict",
            "undo",
            json!({"change": first}),
        )
        .await;
        assert!(message.contains("another program"), "{message}");
        assert_eq!(tree.text("a"), "somebody's\n");
        let removed = changed(&server, "remove_file", json!({"path": "b"})).await;
        tree.write("b", "somebody's\n");
        refused(
            &server,
            "version_conflict",
            "undo",
            json!({"change": removed}),
        )
        .await;
        let made = changed(&server, "create_folder", json!({"path": "new"})).await;
        tree.write("new/file", "x");
        let message = refused(&server, "version_conflict", "undo", json!({"change": made})).await;
        assert!(message.contains("no longer empty"), "{message}");
        let created = changed(&server, "write_file", write("c", "1\n")).await;
        std::fs::remove_file(tree.join("c")).expect("it is there");
        refused(
            &server,
            "version_conflict",
            "undo",
            json!({"change": created}),
        )
        .await;
        assert_eq!(
            (tree.text("b"), tree.text("new/file")),
            ("somebody's\n".into(), "x".into())
        );
    })
    .await;
}

/// On a connection the last change need not be named; without a session or token it has to be.
#[tokio::test]
async fn history_undo_without_argument_is_the_last_of_the_connection() {
    let tree = Tree::new().file("a", "0\n").file("b", "0\n");
    let server = setup(&tree).start(Transport::Stdio).await;
    let other = setup(&tree).start(Transport::Stdio).await;
    for text in ["1\n", "2\n"] {
        changed(&server, "write_file", write("a", text)).await;
        changed(&other, "write_file", write("b", text)).await;
    }
    changed(&server, "undo", json!({})).await;
    assert_eq!(
        (tree.text("a"), tree.text("b")),
        ("1\n".into(), "2\n".into())
    );
    changed(&server, "undo", json!({"last": true})).await;
    assert_eq!(
        (tree.text("a"), tree.text("b")),
        ("0\n".into(), "2\n".into())
    );
    refused(&server, "not_found", "undo", json!({})).await;
    changed(&other, "undo", json!({"path": "b"})).await;
    assert_eq!(tree.text("b"), "1\n");
    let tree = Tree::new().file("a", "0\n");
    let server = setup(&tree).start(Transport::Http).await;
    let change = changed(&server, "write_file", write("a", "1\n")).await;
    let message = refused(&server, "invalid_arguments", "undo", json!({})).await;
    assert!(message.contains("required"), "{message}");
    changed(&server, "undo", json!({"change": change})).await;
    assert_eq!(tree.text("a"), "0\n");
}

/// Each client undoes its own changes, unless the operator lets it undo any.
#[tokio::test]
async fn history_undo_is_for_own_changes() {
    for any in [false, true] {
        let tree = Tree::new().file("a", "0\n");
        let history = json!({"undo_any": any});
        let setup = || {
            let keys = json!({"allowed_tools": ["*"], "history": history});
            program().root_with("workspace", tree.path(), keys)
        };
        let http = setup().start(Transport::Http).await;
        let change = changed(&http, "write_file", write("a", "1\n")).await;
        let stdio = setup().start(Transport::Stdio).await;
        let undo = json!({"change": change});
        if any {
            changed(&stdio, "undo", undo).await;
            assert_eq!(tree.text("a"), "0\n");
        } else {
            let message = refused(&stdio, "permission_denied", "undo", undo).await;
            assert!(message.contains("only your own"), "{message}");
            assert_eq!(tree.text("a"), "1\n");
        }
    }
}

/// Undoing needs the rights that it would take to do the reverse.
#[tokio::test]
async fn history_undo_needs_the_rights_of_the_reverse() {
    let tree = Tree::new().file("a", "0\n");
    let setup = || {
        let tools = ["write_file", "undo"];
        program().root_allowing("workspace", tree.path(), &tools)
    };
    let server = setup().start(Transport::Stdio).await;
    let replaced = changed(&server, "write_file", write("a", "1\n")).await;
    let created = changed(&server, "write_file", write("new", "1\n")).await;
    let message = refused(
        &server,
        "permission_denied",
        "undo",
        json!({"change": created}),
    )
    .await;
    assert!(message.contains("removes new"), "{message}");
    changed(&server, "undo", json!({"change": replaced})).await;
    assert_eq!(
        (tree.text("a"), tree.text("new")),
        ("0\n".into(), "1\n".into())
    );
}

#[tokio::test]
async fn history_files_are_read_and_compared_as_they_were() {
    over_both(async |transport| {
        let tree = Tree::new().file("a", "0\n").file("dir/b", "b\n");
        let server = setup(&tree).start(transport).await;
        let first = changed(&server, "write_file", write("a", "1\n")).await;
        let second = changed(&server, "write_file", write("a", "2\n")).await;
        let more = json!({"path": "a", "content": "more\n", "mode": "append"});
        let third = changed(&server, "write_file", more).await;
        let gone = changed(&server, "remove_folder", json!({"path": "dir"})).await;
        for (path, at, content) in [
            ("a", &first, "0\n"),
            ("a", &second, "1\n"),
            ("a", &third, "2\n"),
            ("a", &gone, "2\nmore\n"),
            ("dir/b", &first, "b\n"),
            ("dir/b", &gone, "b\n"),
        ] {
            let reply = ok(&server, "read_file", json!({"path": path, "at": at})).await;
            assert_eq!(reply["content"], content, "{path} before {at}");
            assert!(reply.get("version").is_none(), "{reply}");
        }
        let outcome = server
            .call("compare", json!({"path": "a", "at": second}))
            .await;
        assert!(
            outcome.text.contains("-1\n+2\n+more"),
            "{}",
            outcome.story()
        );
        refused(
            &server,
            "not_found",
            "read_file",
            json!({"path": "a", "at": "ffff"}),
        )
        .await;
        for wrong in [json!(""), json!(null), json!("soon")] {
            let arguments = json!({"path": "a", "at": wrong});
            refused(&server, "invalid_arguments", "read_file", arguments).await;
        }
        refused(
            &server,
            "invalid_arguments",
            "compare",
            json!({"path": "a"}),
        )
        .await;
        let before = json!({"path": "a", "at": "2020-01-01T00:00:00Z"});
        assert_eq!(ok(&server, "read_file", before).await["content"], "0\n");
        let created = changed(&server, "write_file", write("new", "n\n")).await;
        refused(
            &server,
            "not_found",
            "read_file",
            json!({"path": "new", "at": created}),
        )
        .await;
    })
    .await;
}

#[tokio::test]
async fn history_watch_tells_what_happened_since() {
    over_both(async |transport| {
        let tree = Tree::new().file("a", "0\n");
        let server = setup(&tree).start(transport).await;
        let first = changed(&server, "write_file", write("a", "1\n")).await;
        let second = changed(&server, "write_file", write("new", "1\n")).await;
        let arguments = json!({"since": first, "timeout_seconds": 30});
        let reply = ok(&server, "watch", arguments).await;
        assert_eq!(reply["timed_out"], false);
        assert_eq!(reply["changes"][0]["path"], "new");
        assert_eq!(reply["changes"][0]["change"], second);
        let arguments = json!({"since": second, "timeout_seconds": 1});
        assert_eq!(ok(&server, "watch", arguments).await["timed_out"], true);
    })
    .await;
}

/// The sets with one root have `undo` too: `memory` only if the operator wants it.
#[tokio::test]
async fn history_undo_in_files_and_memory() {
    over_both(async |transport| {
        let tree = Tree::new().file("a", "0\n");
        let setup = program()
            .root("data", tree.path())
            .set("toolsets", json!(["files"]));
        let server = setup.start(transport).await;
        let write = json!({"path": "a", "content": "1\n"});
        let change = changed(&server, "write", write).await;
        let arguments = json!({"change": change});
        changed(&server, "undo", arguments.clone()).await;
        assert_eq!(tree.text("a"), "0\n");
        refused(&server, "version_conflict", "undo", arguments).await;
        for is_on in [false, true] {
            let tree = Tree::new().file("a.md", "0\n");
            let memory = json!({"root": "data", "undo": is_on});
            let setup = program().root("data", tree.path());
            let setup = setup
                .set("toolsets", json!(["memory"]))
                .set("memory", memory);
            let server = setup.start(transport).await;
            let tools = server.list_tools().await;
            assert_eq!(tools.len(), if is_on { 7 } else { 6 });
            let edit = json!({"path": "a.md", "old_str": "0", "new_str": "1"});
            let change = changed(&server, "str_replace", edit).await;
            if is_on {
                changed(&server, "undo", json!({"change": change})).await;
                assert_eq!(tree.text("a.md"), "0\n");
            }
        }
    })
    .await;
}

/// Makes a directory immutable, or lets it be changed again.
fn flagged(tree: &Tree, directory: &str, flag: &str) -> bool {
    let mut command = std::process::Command::new("chattr");
    succeeds(command.arg(flag).arg(tree.join(directory)))
}

/// Nothing of an undo stays that fails in the middle, and it can be tried again.
#[tokio::test]
async fn history_an_undo_that_failed_works_later() {
    // The last part is undone first, so that each of the two is the one that fails.
    for fixed in ["x", "y"] {
        let tree = Tree::new()
            .file("x/a", "old\n")
            .file("y/b", "old\n")
            .file("y/gone", "old\n");
        let setup = setup(&tree);
        let server = setup.start(Transport::Stdio).await;
        let files = json!({"files": [write("x/a", "new\n"), write("y/b", "new\n")]});
        let change = changed(&server, "write_file", files).await;
        if !flagged(&tree, fixed, "+i") {
            return left_out("directories cannot be made immutable here");
        }
        let undo = json!({"change": change});
        let outcome = server.call("undo", undo.clone()).await;
        let texts = [tree.text("x/a"), tree.text("y/b")];
        assert!(flagged(&tree, fixed, "-i"));
        let message = outcome.error()["error"]["message"].as_str();
        let message = message.expect("a message");
        assert!(message.contains("nothing was undone"), "{message}");
        assert_eq!(texts, ["new\n", "new\n"], "{fixed}");
        let told = ok(&server, "changes", json!({})).await;
        assert_eq!(told["changes"].as_array().unwrap().len(), 1, "{told}");
        let before = json!({"path": "x/a", "at": change});
        assert_eq!(ok(&server, "read_file", before).await["content"], "old\n");
        ok(&server, "undo", undo).await;
        assert_eq!([tree.text("x/a"), tree.text("y/b")], ["old\n", "old\n"]);
        server.stop().await;
    }
}

/// Of files with other names copies are kept: a failed undo brings those back, and they are known as what they stand for.
#[tokio::test]
async fn history_an_undo_of_files_with_other_names_that_failed_works_later() {
    for fixed in ["x", "y"] {
        let tree = Tree::new().file("x/a", "old\n").file("y/b", "old\n");
        let outside = Tree::new();
        let server = setup(&tree).start(Transport::Stdio).await;
        let files = json!({"files": [write("x/a", "new\n"), write("y/b", "new\n")]});
        let change = changed(&server, "write_file", files).await;
        for (name, path) in [("a", "x/a"), ("b", "y/b")] {
            std::fs::hard_link(tree.join(path), outside.join(name)).expect("a second name");
        }
        if !flagged(&tree, fixed, "+i") {
            return left_out("directories cannot be made immutable here");
        }
        let undo = json!({"change": change});
        let outcome = server.call("undo", undo.clone()).await;
        let texts = [tree.text("x/a"), tree.text("y/b")];
        assert!(flagged(&tree, fixed, "-i"));
        outcome.error();
        assert_eq!(texts, ["new\n", "new\n"], "{fixed}");
        let undone = changed(&server, "undo", undo).await;
        assert_eq!([tree.text("x/a"), tree.text("y/b")], ["old\n", "old\n"]);
        changed(&server, "undo", json!({"change": undone})).await;
        changed(&server, "undo", json!({"to": change})).await;
        assert_eq!([tree.text("x/a"), tree.text("y/b")], ["old\n", "old\n"]);
        assert_eq!([outside.text("a"), outside.text("b")], ["new\n", "new\n"]);
        server.stop().await;
    }
}

/// What a change replaced is told also after it came back.
#[tokio::test]
async fn history_what_came_back_is_told_as_it_was() {
    let tree = Tree::new().file("a", "one\ntwo\n");
    let server = setup(&tree).start(Transport::Stdio).await;
    let change = changed(&server, "write_file", write("a", "one\n2\nthree\n")).await;
    changed(&server, "undo", json!({"change": change})).await;
    let past = json!({"path": "a", "at": change});
    assert_eq!(
        ok(&server, "read_file", past.clone()).await["content"],
        "one\ntwo\n"
    );
    let compared = ok(&server, "compare", past).await;
    assert_eq!(compared["identical"], true, "{compared}");
    let outcome = server.call("changes", json!({})).await;
    let lines: Vec<&str> = outcome.text.lines().collect();
    assert!(
        lines[0].contains(" of a (+1 -2) by "),
        "{}",
        outcome.story()
    );
    assert!(
        lines[1].contains("write_file a (+2 -1) by "),
        "{}",
        outcome.story()
    );
}

/// A tree that was copied does not go with what was changed in it since.
#[tokio::test]
async fn history_a_copied_tree_goes_only_as_it_came() {
    let tree = Tree::new().file("dir/sub/a", "a\n");
    let server = setup(&tree).start(Transport::Stdio).await;
    let arguments = json!({"source_path": "dir", "dest_path": "copied"});
    let copied = changed(&server, "copy", arguments).await;
    let edited = changed(&server, "write_file", write("copied/sub/a", "other\n")).await;
    let undo = json!({"change": copied});
    for dry_run in [true, false] {
        let undo = json!({"change": copied, "dry_run": dry_run});
        let message = refused(&server, "version_conflict", "undo", undo).await;
        let told = "copied/sub/a was changed since by ";
        assert!(message.starts_with(told), "{message}");
        assert!(
            message.contains(&format!("undo {edited} first")),
            "{message}"
        );
    }
    assert_eq!(tree.text("copied/sub/a"), "other\n");
    // Taken back, it is in the way no more; made again, it is.
    let undone = changed(&server, "undo", json!({"change": edited})).await;
    ok(&server, "undo", json!({"change": copied, "dry_run": true})).await;
    changed(&server, "undo", json!({"change": undone})).await;
    refused(&server, "version_conflict", "undo", undo).await;
    let all = ok(&server, "undo", json!({"to": copied})).await;
    assert_eq!(all["undone"].as_array().unwrap().len(), 2, "{all}");
    assert!(!tree.join("copied").exists());
    assert_eq!(tree.text("dir/sub/a"), "a\n");
}
