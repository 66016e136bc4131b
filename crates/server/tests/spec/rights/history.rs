//! What is told of the past, of changes as they happen, and of directories that somebody moves.

use std::fs;

use testkit::{Http, Value, json};

use super::ground::{CLIENTS, DOCS, MARKDOWN, NARROW, READER, ROOTS, WHOLE};
use super::scene::Scene;
use crate::resources::subscriptions::Told;
use crate::resources::{Era, headers, message};

const ROOT: &str = ROOTS[0];
const ASKING: [usize; 4] = [DOCS, READER, NARROW, MARKDOWN];

/// Calls a tool of `workspace` as the client that may do everything; it has to succeed. Returns the change.
async fn done(scene: &mut Scene, tool: &str, arguments: Value) -> String {
    let reply = scene.call(WHOLE, "workspace", tool, &arguments).await;
    assert_eq!(reply["result"]["isError"], json!(false), "{tool}: {reply}");
    let change = &reply["result"]["structuredContent"]["change"];
    change.as_str().unwrap_or_default().to_owned()
}

/// Changes of every kind where others may not look, and one that is also where they may.
async fn hidden_changes(scene: &mut Scene) -> Vec<String> {
    let secrets: Vec<_> = scene.ground.secrets.iter().take(7).cloned().collect();
    let mut changes = Vec::new();
    for secret in &secrets[2..7] {
        let content = secret.content.clone().unwrap_or_default();
        let write =
            json!({"root": ROOT, "path": secret.path, "content": format!("{content} again\n")});
        changes.push(done(scene, "write_file", write).await);
    }
    let [zebrafish, pangolin] = [&secrets[2].path, &secrets[3].path];
    let moved = json!({"source_root": ROOT, "source_path": pangolin, "dest_root": ROOT,
        "dest_path": zebrafish.replace("zebrafish", "zebrafish-moved-pangolin")});
    changes.push(done(scene, "move", moved).await);
    let both = json!({"root": ROOT, "files": [
        {"path": "open/sub/both.txt", "content": "open half\n"},
        {"path": zebrafish, "content": format!("{} both\n", secrets[2].content.clone().unwrap_or_default())}]});
    changes.push(done(scene, "write_file", both).await);
    // From a hidden place to one that exists: before the move there was nothing at the new one.
    let out = json!({"source_root": ROOT, "source_path": zebrafish, "dest_root": ROOT, "dest_path": "lobster/out.txt"});
    changes.push(done(scene, "copy", out).await);
    let gone = json!({"root": ROOT, "path": "lobster/out.txt"});
    changes.push(done(scene, "remove_file", gone).await);
    for secret in &secrets[3..7] {
        let at = match secret.path == *pangolin {
            true => pangolin.replace("deep/pangolin-0", "zebrafish-moved-pangolin-0"),
            false => secret.path.clone(),
        };
        let gone = json!({"root": ROOT, "path": at});
        changes.push(done(scene, "remove_file", gone).await);
    }
    changes
}

#[tokio::test]
async fn the_past_of_what_is_hidden_is_hidden() {
    let mut scene = Scene::start(0).await;
    let changes = hidden_changes(&mut scene).await;
    let paths = [
        ".",
        "open",
        "open/sub",
        "open/sub/both.txt",
        "open/sub/way-real-2",
    ];
    for client in ASKING {
        for path in paths {
            for arguments in [
                json!({"root": ROOT, "path": path, "diff": true, "limit": 1000}),
                json!({"root": ROOT, "path": path, "since": changes[0]}),
                json!({"root": ROOT, "path": path, "client": "whole"}),
            ] {
                scene.call(client, "workspace", "changes", &arguments).await;
            }
        }
        for change in &changes {
            let (at, path) = (change, "open/sub/both.txt");
            for (tool, arguments) in [
                (
                    "undo",
                    json!({"root": ROOT, "change": change, "dry_run": true}),
                ),
                ("undo", json!({"root": ROOT, "change": change})),
                ("undo", json!({"root": ROOT, "to": change})),
                ("read_file", json!({"root": ROOT, "path": path, "at": at})),
                (
                    "read_file",
                    json!({"root": ROOT, "path": "open/sub/way-real-2", "at": at}),
                ),
                (
                    "read_file",
                    json!({"root": ROOT, "path": "open/sub/into-2/x", "at": at}),
                ),
                ("compare", json!({"root": ROOT, "path": path, "at": at})),
                (
                    "compare",
                    json!({"root": ROOT, "path": "open/sub", "at": at}),
                ),
                (
                    "watch",
                    json!({"root": ROOT, "since": change, "timeout_seconds": 1}),
                ),
                (
                    "changes",
                    json!({"root": ROOT, "since": change, "diff": true}),
                ),
            ] {
                scene.call(client, "workspace", tool, &arguments).await;
            }
        }
    }
    let again = json!({"root": ROOT, "path": "lobster/zebrafish-0.txt"});
    let told = scene.call(WHOLE, "workspace", "read_file", &again).await;
    assert!(
        told.to_string().contains(" both"),
        "somebody undid it: {told}"
    );
    let undo = json!({"root": ROOT, "change": changes[6]});
    done(&mut scene, "undo", undo).await;
    assert!(scene.count() > 300);
    scene.end().await;
}

/// Calls a tool of `workspace` as a client that may; returns the change.
async fn done_by(scene: &mut Scene, client: usize, tool: &str, arguments: Value) -> String {
    let reply = scene.call(client, "workspace", tool, &arguments).await;
    assert_eq!(reply["result"]["isError"], json!(false), "{tool}: {reply}");
    let change = &reply["result"]["structuredContent"]["change"];
    change.as_str().expect("a change").to_owned()
}

/// Undoes a change as a client, tried first and then for good; both have to be refused in the same words. Returns them.
async fn undo_refused(scene: &mut Scene, client: usize, change: &str) -> String {
    let mut told = Vec::new();
    for dry_run in [true, false] {
        let undo = json!({"root": ROOT, "change": change, "dry_run": dry_run});
        let reply = scene.call(client, "workspace", "undo", &undo).await;
        assert_eq!(reply["result"]["isError"], json!(true), "{reply}");
        told.push(reply["result"]["structuredContent"]["error"].to_string());
    }
    assert_eq!(told[0], told[1]);
    told.remove(0)
}

#[tokio::test]
async fn an_undo_quotes_nothing_of_what_is_hidden() {
    let mut scene = Scene::start(0).await;
    let both = "open/sub/both.txt";
    let write = |content: &str| json!({"root": ROOT, "path": both, "content": content});
    done_by(&mut scene, NARROW, "write_file", write("one\n")).await;
    let own = done_by(&mut scene, NARROW, "write_file", write("two\n")).await;
    let secret = scene.ground.secrets[2].clone();
    let content = format!("{} again\n", secret.content.expect("a file"));
    let files = json!({"root": ROOT, "files": [
        {"path": secret.path, "content": content},
        {"path": both, "content": "three\n"}]});
    done_by(&mut scene, WHOLE, "write_file", files).await;
    let told = undo_refused(&mut scene, NARROW, &own).await;
    assert!(
        told.contains("version_conflict") && told.contains("three"),
        "{told}"
    );
    assert!(
        !told.contains("again") && told.contains("(+1 -1)"),
        "{told}"
    );
    scene.end().await;
}

/// What others put into a directory, and what does not exist for a client, neither goes nor moves with an undo.
#[tokio::test]
async fn an_undo_takes_along_nothing_that_is_hidden() {
    let mut scene = Scene::start(0).await;
    let copy = json!({"source_root": ROOT, "source_path": "open/sub/deeper", "dest_root": ROOT, "dest_path": "open/sub/tree"});
    let copied = done_by(&mut scene, NARROW, "copy", copy).await;
    let hide_in = |scene: &Scene, dir: &str| {
        let path = scene.ground.trees[0].join(dir).join("key.pem");
        fs::write(&path, "hidden").expect("it is written");
        path
    };
    let in_copied = hide_in(&scene, "open/sub/tree");
    let removed = json!({"root": ROOT, "path": "open/sub/tree"});
    let removed = scene
        .call(NARROW, "workspace", "remove_folder", &removed)
        .await;
    let refusal = removed["result"]["structuredContent"]["error"].to_string();
    assert!(refusal.contains("permission_denied"), "{removed}");
    let told = undo_refused(&mut scene, NARROW, &copied).await;
    let words = "permission denied: open/sub/tree";
    assert!(told.contains(words) && refusal.contains(words), "{told}");
    assert!(in_copied.exists());
    fs::remove_file(&in_copied).expect("it was there");

    let paths = ["open/sub/tree", "open/sub/moved"];
    let moved = json!({"source_root": ROOT, "source_path": paths[0], "dest_root": ROOT, "dest_path": paths[1]});
    let moved = done_by(&mut scene, NARROW, "move", moved).await;
    let in_moved = hide_in(&scene, paths[1]);
    let told = undo_refused(&mut scene, NARROW, &moved).await;
    assert!(
        told.contains("permission_denied") && in_moved.exists(),
        "{told}"
    );

    let made = json!({"root": ROOT, "path": "open/sub/made"});
    let made = done_by(&mut scene, NARROW, "create_folder", made).await;
    let in_made = hide_in(&scene, "open/sub/made");
    let told = undo_refused(&mut scene, NARROW, &made).await;
    assert!(
        told.contains("permission_denied") && in_made.exists(),
        "{told}"
    );
    for (change, hidden) in [(made, in_made), (moved, in_moved)] {
        fs::remove_file(hidden).expect("it was there");
        done_by(
            &mut scene,
            NARROW,
            "undo",
            json!({"root": ROOT, "change": change}),
        )
        .await;
    }
    assert!(scene.ground.trees[0].join(paths[0]).is_dir());
    scene.end().await;
}

/// A directory that does not exist for a client, what it holds, an open place, and a place that does not exist for the client.
const MOVED: [(usize, &str, &str, &str, &str); 4] = [
    (DOCS, "open/marmoset", "axolotl", "open", "lobster"),
    (READER, "lobster/deep", "pangolin", "open", "lobster"),
    (NARROW, "open/marmoset", "axolotl", "open/sub", "lobster"),
    (WHOLE, "open/walrus", "narwhal", "open", "open/walrus"),
];

/// Somebody moves a directory that a search has seen to where it does not exist, and one from there to where it does and back.
#[tokio::test]
async fn what_was_moved_to_a_hidden_place_is_no_longer_told() {
    let mut scene = Scene::start(0).await;
    for moved in MOVED {
        let roots = if moved.0 == NARROW { 1 } else { ROOTS.len() };
        for root in 0..roots {
            for round in 0..3 {
                move_parents(&mut scene, root, moved, round).await;
            }
        }
    }
    scene.end().await;
}

async fn move_parents(
    scene: &mut Scene,
    root: usize,
    (client, hidden, word, open, outside): (usize, &str, &str, &str, &str),
    round: usize,
) {
    let rename = |scene: &Scene, from: &str, to: &str| {
        let tree = &scene.ground.trees[root];
        fs::rename(tree.join(from), tree.join(to)).expect("it is moved");
    };
    let inside = format!("{open}/roaming-{round}");
    rename(scene, hidden, &inside);
    // Now it exists for this client, and is remembered by searches.
    for (tool, more) in searches() {
        let told = scene.ask_searching((client, root), tool, &more, true).await;
        assert!(told.contains(&format!("{word}-{root}")), "{tool}: {told}");
    }
    rename(scene, &inside, hidden);
    let away = format!("{outside}/deeper");
    rename(scene, "open/sub/deeper", &away);
    for (tool, more) in searches() {
        let told = scene
            .ask_searching((client, root), tool, &more, false)
            .await;
        assert!(!told.contains("more.txt"), "{tool}: {told}");
    }
    rename(scene, &away, "open/sub/deeper");
}

fn searches() -> [(&'static str, Value); 3] {
    [
        ("grep", json!({"pattern": "SECRET|more", "output": "files"})),
        ("glob", json!({"pattern": "**/*", "max_results": 1000})),
        ("list_folder", json!({"depth": 4})),
    ]
}

impl Scene {
    /// Searches the whole root. What is told while hidden things are in an open place is no leak.
    async fn ask_searching(
        &mut self,
        (client, root): (usize, usize),
        tool: &str,
        more: &Value,
        open: bool,
    ) -> String {
        let mut arguments = json!({"root": ROOTS[root], "path": "open"});
        let own = arguments.as_object_mut().expect("an object");
        own.extend(more.as_object().cloned().unwrap_or_default());
        let before = self.leaks.len();
        let told = self.call(client, "workspace", tool, &arguments).await;
        if open {
            self.leaks.truncate(before);
        }
        told.to_string()
    }
}

/// A request to listen, as a client sends it.
fn listening(client: usize, paths: &[&str]) -> (Value, Vec<(&'static str, String)>) {
    let uris: Vec<String> = paths
        .iter()
        .map(|path| format!("fs://{ROOT}/{path}"))
        .collect();
    let wanted = json!({"notifications": {"resourceSubscriptions": uris}});
    let request = message(Era::Newest, 7, "subscriptions/listen", wanted);
    let mut headers = headers(Era::Newest, &request);
    headers.push(("authorization", format!("Bearer {}", CLIENTS[client].token)));
    (request, headers)
}

/// What a client is told that wants to listen to something that it may not.
async fn refusal(http: &Http, client: usize, path: &str) -> String {
    let (request, headers) = listening(client, &[path]);
    let headers: Vec<(&str, &str)> = headers
        .iter()
        .map(|(name, value)| (*name, value.as_str()))
        .collect();
    let told = http.post("/mcp", &headers, &request).await.json();
    assert!(told["error"].is_object(), "{told}");
    told.to_string()
}

/// A file that exists for this client.
fn own_file(client: usize) -> &'static str {
    match client {
        MARKDOWN => "open/sub/notes.md",
        _ => "open/sub/file.txt",
    }
}

#[tokio::test]
async fn nobody_hears_of_changes_of_what_is_hidden() {
    let scene = Scene::start(0).await;
    let http = scene.wire.http();
    for client in ASKING {
        // What is hidden cannot be listened to; it is told like what is missing.
        let hidden = refusal(http, client, "lobster/zebrafish-0.txt").await;
        let missing = refusal(http, client, "lobster/zebrzfish-0.txt").await;
        assert_eq!(hidden, missing.replace("zebrzfish", "zebrafish"));
        let (request, headers) = listening(client, &["", "open/sub", own_file(client)]);
        let mut told = Told::stream(http, "POST", &headers, &request.to_string()).await;
        let granted = told.next().await;
        assert!(granted.to_string().contains(own_file(client)), "{granted}");
        let tree = &scene.ground.trees[0];
        for path in [
            "lobster/zebrafish-0.txt",
            "lobster/new-zebrafish-0.txt",
            "capybara-0.txt",
            "open/wolverine-0.pem",
        ] {
            tree.write(path, "changed");
            fs::remove_file(tree.join(path)).expect("it is removed");
        }
        let own = own_file(client);
        tree.write(own, "changed");
        let wanted = format!("fs://{ROOT}/{own}");
        loop {
            let update = told.next().await;
            let leaks = scene.ground.leaks(client, &update.to_string(), "");
            let name = CLIENTS[client].name;
            assert!(leaks.is_empty(), "{leaks:?} told to {name}: {update}");
            // All that happened before has been told by now.
            if update["params"]["uri"] == wanted.as_str() {
                break;
            }
        }
        scene.ground.plant(0);
    }
}
