//! What a history holds to: shares of clients, files that only look unchanged, what cannot be kept, layers of overlayfs.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::process::Command;

use testkit::{Setup, Transport, Tree, Value, json, over_both};

use crate::harness::machine::{call, fails, left_out, ok, succeeds};
use crate::harness::{ToolSet, program};
use crate::workspace::Workspace;

const TOKENS: [&str; 2] = ["first-token-0123456789", "second-token-0123456789"];

fn in_root(tree: &Tree, history: Value) -> Setup {
    let keys = json!({"allowed_tools": ["*"], "history": history});
    program().root_with("workspace", tree.path(), keys)
}

/// Many changes of one client do not take the undo of another's away, though both call themselves the same.
#[tokio::test]
async fn history_many_changes_of_one_client_leave_those_of_others() {
    let tree = Tree::new().file("mine", "old\n");
    let tokens = Tree::new().file("tokens", TOKENS.join("\n"));
    let few = || in_root(&tree, json!({"place": "root", "max_changes": 20}));
    let setup = few().set("server.bearer_tokens_file", json!(tokens.join("tokens")));
    let server = setup.clone().token(TOKENS[0]).start(Transport::Http).await;
    let other = server.another_client(&setup.token(TOKENS[1])).await;
    let arguments = json!({"path": "mine", "content": "new\n"});
    let first = ok(&server, "write_file", arguments).await;
    let mut theirs = Vec::new();
    for number in 0..30 {
        let path = format!("f{number}");
        let arguments = json!({"root": "workspace", "path": path, "content": "x"});
        let reply = other.call("write_file", arguments).await;
        theirs.push(reply.ok()["change"].clone());
    }
    let ended = few().arguments(["history", "prune"]).run().await;
    assert_eq!(ended.code, Some(0), "{:?}", ended.stderr);
    assert!(ended.stdout.contains("\"removed\":11"), "{}", ended.stdout);
    let listed = ok(&server, "changes", json!({"limit": 100})).await;
    let listed = listed["changes"].as_array().expect("changes").len();
    assert_eq!(listed, 20);
    let undo = |change| json!({"root": "workspace", "change": change});
    let gone = other.call("undo", undo(&theirs[0])).await;
    assert_eq!(gone.error()["error"]["code"], "gone", "{}", gone.story());
    other.call("undo", undo(&theirs[29])).await.ok();
    ok(&server, "undo", json!({"change": first["change"]})).await;
    assert_eq!(tree.text("mine"), "old\n");
    // What went from among others does not come back with the next look.
    let ended = few().arguments(["history", "prune"]).run().await;
    assert!(ended.stdout.contains("\"removed\":2"), "{}", ended.stdout);
    let ended = few().arguments(["history", "verify"]).run().await;
    assert_eq!(ended.code, Some(0), "{:?}", ended.stderr);
}

/// An edit that leaves size and time as they were is seen.
#[tokio::test]
async fn history_a_file_that_only_looks_unchanged_is_not_overwritten() {
    let tree = Tree::new().file("a", "0\n");
    let server = in_root(&tree, json!({"place": "root"}))
        .start(Transport::Stdio)
        .await;
    let reply = ok(
        &server,
        "write_file",
        json!({"path": "a", "content": "1\n"}),
    )
    .await;
    let time = tree.join("a").metadata().and_then(|found| found.modified());
    let mut file = OpenOptions::new()
        .write(true)
        .open(tree.join("a"))
        .expect("a file");
    file.write_all(b"9\n").expect("it is written");
    let time = time.expect("a time");
    file.set_modified(time).expect("it is set");
    let undo = json!({"change": reply["change"]});
    fails(&server, "version_conflict", "undo", undo.clone()).await;
    assert_eq!(tree.text("a"), "9\n");
    let again = File::options().write(true).open(tree.join("a"));
    let mut again = again.expect("a file");
    again.write_all(b"1\n").expect("it is written");
    again.set_modified(time).expect("it is set");
    ok(&server, "undo", undo).await;
    assert_eq!(tree.text("a"), "0\n");
}

/// A file with other names is kept as a copy, and one that is too large for that is told.
#[tokio::test]
async fn history_a_file_with_other_names() {
    let tree = Tree::new()
        .file("small", "old\n")
        .hard_link("other", "small")
        .sparse("large", 65 << 20)
        .hard_link("other-large", "large");
    let server = in_root(&tree, json!({"place": "root"}))
        .start(Transport::Stdio)
        .await;
    let outcome = call(&server, "remove_file", json!({"path": "small"})).await;
    assert_eq!(outcome.ok().get("not_kept"), None, "{}", outcome.story());
    tree.write("other", "changed\n");
    ok(&server, "undo", json!({"change": outcome.ok()["change"]})).await;
    assert_eq!(tree.text("small"), "old\n");
    let outcome = call(&server, "remove_file", json!({"path": "large"})).await;
    assert_eq!(outcome.ok()["not_kept"], true, "{}", outcome.story());
    assert!(
        outcome.text.contains("cannot be undone"),
        "{}",
        outcome.story()
    );
    let undo = json!({"change": outcome.ok()["change"]});
    fails(&server, "gone", "undo", undo).await;
    assert!(!tree.has("large") && tree.has("other-large"));
}

/// A root that is only read keeps nothing and makes nothing.
#[tokio::test]
async fn history_a_read_only_root_has_none() {
    let tree = Tree::new().file("a", "0\n");
    let keys = json!({"allowed_tools": ["*"], "read_only": true, "history": {"place": "root"}});
    let setup = || program().root_with("workspace", tree.path(), keys.clone());
    let server = setup().start(Transport::Stdio).await;
    let outcome = call(&server, "write_file", json!({"path": "a", "content": "1"})).await;
    assert!(outcome.is_error, "{}", outcome.story());
    assert_eq!(tree.text("a"), "0\n");
    assert!(!tree.has(".mcp-filesystem"));
    let ended = setup().arguments(["history", "verify"]).run().await;
    assert_eq!(ended.code, Some(0), "{:?}", ended.stderr);
    assert!(ended.stdout.contains("\"lines\":0"), "{}", ended.stdout);
}

fn two_roots(one: &Tree, two: &Tree, of_two: Value) -> Setup {
    let mut keys = json!({"allowed_tools": ["*"], "history": {"place": "root"}});
    let first = keys.clone();
    for (key, value) in of_two.as_object().expect("keys") {
        keys[key] = value.clone();
    }
    program()
        .root_with("one", one.path(), first)
        .root_with("two", two.path(), keys)
}

fn from_one_to_two(from: &str, to: &str) -> Value {
    json!({"source_root": "one", "source_path": from, "dest_root": "two", "dest_path": to})
}

/// A move between two roots has one name in both, and is undone from either, in both.
#[tokio::test]
async fn history_a_move_between_roots_is_undone_from_either() {
    over_both(async |transport| {
        let one = Tree::new().file("a", "text\n").file("dir/f", "f\n");
        let two = Tree::new().file("there", "there\n");
        let server = two_roots(&one, &two, json!({})).start(transport).await;
        for text in ["1\n", "2\n"] {
            let arguments = json!({"root": "one", "path": "other", "content": text});
            server.call("write_file", arguments).await.ok();
        }
        for (from, to) in [("a", "there"), ("dir", "x/dir")] {
            let (first, second) = (one.listing(), two.listing());
            let moved = server.call("move", from_one_to_two(from, to)).await;
            let change = moved.ok()["change"].clone();
            assert!(change.is_string(), "{}", moved.story());
            let (moved_first, moved_second) = (one.listing(), two.listing());
            for root in ["one", "two"] {
                let told = server
                    .call("changes", json!({"root": root, "limit": 1}))
                    .await;
                assert_eq!(
                    told.ok()["changes"][0]["change"],
                    change,
                    "{}",
                    told.story()
                );
            }
            let files = |all: std::collections::BTreeMap<String, String>| -> Vec<(String, String)> {
                let all = all.into_iter();
                all.filter(|(path, _)| !path.contains(".mcp-filesystem"))
                    .collect()
            };
            let undone = server
                .call("undo", json!({"root": "two", "change": change}))
                .await;
            let undone = undone.ok()["change"].clone();
            assert_eq!(files(one.listing()), files(first), "{from}");
            assert_eq!(files(two.listing()), files(second), "{from}");
            server
                .call("undo", json!({"root": "one", "change": undone}))
                .await
                .ok();
            assert_eq!(files(one.listing()), files(moved_first), "{from}");
            assert_eq!(files(two.listing()), files(moved_second), "{from}");
        }
    })
    .await;
}

/// What is in the way at the other end is told, with its root, and a move between roots is undone by itself.
#[tokio::test]
async fn history_a_move_between_roots_is_undone_in_both_or_in_neither() {
    let (one, two) = (Tree::new().file("a", "text\n"), Tree::new());
    let server = two_roots(&one, &two, json!({}))
        .start(Transport::Stdio)
        .await;
    let moved = server.call("move", from_one_to_two("a", "b")).await;
    let change = moved.ok()["change"].clone();
    let write = json!({"root": "two", "path": "b", "content": "other\n"});
    server.call("write_file", write).await.ok();
    let conflict = |outcome: testkit::Outcome, told: &str| {
        let error = &outcome.error()["error"];
        assert_eq!(error["code"], "version_conflict", "{}", outcome.story());
        let message = error["message"].as_str().expect("a message");
        assert!(message.contains(told), "{message}");
        assert!(message.contains("nothing was undone"), "{message}");
    };
    let undo = json!({"root": "one", "change": change});
    conflict(
        server.call("undo", undo).await,
        "in the root two: b was changed since",
    );
    let all = json!({"root": "two", "to": change});
    conflict(server.call("undo", all).await, "undone by itself");
    assert_eq!((one.has("a"), two.text("b")), (false, "other\n".to_owned()));
    // The operator's commands do it too.
    let last = json!({"root": "two", "last": true});
    server.call("undo", last).await.ok();
    server.stop().await;
    let command = ["undo", change.as_str().expect("a name"), "one"];
    let ended = two_roots(&one, &two, json!({}))
        .arguments(command)
        .run()
        .await;
    assert_eq!(ended.code, Some(0), "{:?}", ended.stderr);
    assert_eq!((one.text("a"), two.has("b")), ("text\n".to_owned(), false));
}

/// Undoing it needs the rights for that in both roots.
#[tokio::test]
async fn history_a_move_between_roots_is_not_undone_without_rights_in_both() {
    let (one, two) = (Tree::new().file("a", "text\n"), Tree::new());
    let server = two_roots(&one, &two, json!({}))
        .start(Transport::Stdio)
        .await;
    let moved = server.call("move", from_one_to_two("a", "b")).await;
    let change = moved.ok()["change"].clone();
    server.stop().await;
    for keys in [
        json!({"read_only": true}),
        json!({"allowed_tools": ["write_file", "move", "read_file"]}),
        json!({"allowed_tools": ["undo", "write_file"]}),
        json!({"confirm": {"remove": 5}}),
    ] {
        let server = two_roots(&one, &two, keys.clone())
            .start(Transport::Stdio)
            .await;
        let outcome = server
            .call("undo", json!({"root": "one", "change": change}))
            .await;
        let error = &outcome.error()["error"];
        assert_eq!(
            error["code"],
            "permission_denied",
            "{keys}: {}",
            outcome.story()
        );
        assert_eq!((one.has("a"), two.text("b")), (false, "text\n".to_owned()));
        server.stop().await;
    }
}

/// A directory of a lower layer cannot be renamed: it is copied, and what was copied goes entry by entry.
#[tokio::test]
async fn history_a_directory_of_a_lower_layer_is_moved() {
    for more in [&[][..], &["--no-history"]] {
        let (tree, layers) = (Tree::new(), Tree::new());
        let mount = format!(
            "mount -t tmpfs tmpfs '{layers}' && cd '{layers}' && mkdir -p low/dir/sub up work \
             && echo x > low/dir/sub/f && echo y > low/dir/g && mount -t overlay overlay \
             -o redirect_dir=off,lowerdir=low,upperdir=up,workdir=work '{root}' && cd /",
            layers = layers.path().display(),
            root = tree.path().display(),
        );
        if !succeeds(Command::new("unshare").args(["-m", "sh", "-c", &mount])) {
            left_out("no layers can be mounted here");
            return;
        }
        let mount = format!("{mount} && exec \"$0\" \"$@\"");
        let setup = Workspace::setup(&tree).arguments(more.iter().copied());
        let setup = setup.wrapped_in(["unshare", "-m", "sh", "-c", &mount]);
        let server = setup.start(Transport::Stdio).await;
        let join = |path: &str| format!("/proc/{}/root{}", server.pid(), tree.join(path).display());
        let arguments = json!({"source_path": "dir", "dest_path": "moved"});
        ok(&server, "move", arguments).await;
        let read = |path: &str| std::fs::read_to_string(join(path)).expect("a file");
        assert_eq!(
            (read("moved/sub/f"), read("moved/g")),
            ("x\n".into(), "y\n".into())
        );
        let listed = ok(&server, "list_folder", json!({"path": ""})).await;
        assert!(!std::path::Path::new(&join("dir")).exists(), "{listed}");
        server.stop().await;
    }
}
