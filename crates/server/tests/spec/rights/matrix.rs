//! Every tool of every set, by four clients, in three roots, on what exists for them and on what does not.

use std::collections::BTreeMap;

use testkit::{Value, json};

use super::ground::{CLIENTS, DOCS, MARKDOWN, NARROW, READER, ROOTS, SETS, Secret, WHOLE};
use super::scene::Scene;
use super::templates::{At, LISTS, calls, methods};
use crate::harness::machine::share;

/// A directory that exists for every client and holds something that exists for none.
const NEST: &str = "open/sub/nest";
/// Paths that exist for every client that may have files of their kind.
const OPEN: [&str; 6] = [
    ".",
    "open",
    NEST,
    "open/sub",
    "open/sub/file.txt",
    "open/sub/image.png",
];
/// Those that can destroy the most come last.
const ORDER: [usize; 5] = [NARROW, MARKDOWN, DOCS, READER, WHOLE];
/// Needs a change of its own to succeed: `history.rs` has it.
const NEEDS_A_CHANGE: &str = "undo";
/// The tools that tell what was changed before, which differs from path to path.
const OF_HISTORIES: [&str; 2] = [NEEDS_A_CHANGE, "changes"];

/// How many characters a version has.
const VERSION: usize = 9;

/// A tool as its list describes it.
#[derive(Clone)]
struct Listed {
    name: String,
    reads: bool,
}

/// One round: a client in a root of a set.
struct Round<'scene> {
    scene: &'scene mut Scene,
    client: usize,
    set: &'static str,
    root: usize,
    made: usize,
    /// Whether nothing was changed yet.
    is_fresh: bool,
    /// How many calls of each tool succeeded.
    succeeded: BTreeMap<String, usize>,
    /// How many copies of a directory succeeded that holds something hidden.
    nests_copied: usize,
}

impl<'scene> Round<'scene> {
    fn new(scene: &'scene mut Scene, client: usize, set: &'static str, root: usize) -> Self {
        Round {
            is_fresh: false,
            scene,
            client,
            set,
            root,
            made: 0,
            succeeded: BTreeMap::new(),
            nests_copied: 0,
        }
    }

    async fn run(&mut self, tools: &[Listed]) {
        for tool in tools {
            self.prepare(tool);
            self.try_secrets(tool).await;
            self.scene
                .look_for_damage(self.client, self.root, &tool.name);
            for &path in self.open_paths() {
                self.prepare(tool);
                if tool.name != "watch" || path == "." {
                    self.calls(tool, path).await;
                }
                self.scene
                    .look_for_damage(self.client, self.root, &tool.name);
            }
        }
        self.scene.ground.plant(self.root);
        self.try_methods().await;
    }

    fn prepare(&self, tool: &Listed) {
        if !tool.reads {
            self.scene.ground.plant(self.root);
        }
    }

    /// The paths that exist for everybody; in the other roots those with everything below them, and all for who has most.
    fn open_paths(&self) -> &'static [&'static str] {
        let is_all = self.root == 0 || self.client == WHOLE || share(50) == 50;
        if is_all { &OPEN } else { &OPEN[..3] }
    }

    fn secrets(&self) -> Vec<Secret> {
        let secrets = self.scene.ground.secrets.iter();
        let own = secrets.filter(|secret| secret.root == self.root);
        own.cloned().collect()
    }

    /// The ways to a secret that are tried: the plain one, and another beside it for every second secret of the first root
    /// and every sixth of the others. With everything tried, all of them.
    fn ways(&self, secret: &Secret, turn: usize) -> Vec<String> {
        let mut ways = secret.ways();
        let others = ways.split_off(1);
        if share(50) == 50 {
            ways.extend(others);
        } else if (turn + self.root).is_multiple_of(if self.root == 0 { 2 } else { 6 }) {
            let other = others.get((turn + self.root) % others.len());
            ways.extend(other.cloned());
        }
        ways
    }

    /// What is hidden is told like what is missing.
    async fn try_secrets(&mut self, tool: &Listed) {
        for (turn, secret) in self.secrets().into_iter().enumerate() {
            let is_hidden = secret.is_hidden_from(self.client);
            if tool.name == "watch" && !is_hidden {
                continue;
            }
            for way in self.ways(&secret, turn + tool.name.len()) {
                let real = self.calls(tool, &way).await;
                let missing = self.calls(tool, &secret.near(&way)).await;
                // Beside a directory that is hidden by its name alone, something new may be made.
                let is_comparable = tool.reads || secret.content.is_some();
                let has_history = OF_HISTORIES.contains(&&*tool.name) && !self.is_fresh;
                if is_hidden && is_comparable && !has_history {
                    self.compare(tool, &secret, &real, &missing);
                }
            }
        }
    }

    /// Compares replies about what is hidden with those about what is missing.
    fn compare(&mut self, tool: &Listed, secret: &Secret, real: &[Value], missing: &[Value]) {
        for (real, missing) in real.iter().zip(missing) {
            // A link that leads to something hidden is itself no secret: it can be moved and removed.
            let has_changed = !tool.reads && (succeeds(real) || succeeds(missing));
            let missing = secret.back(&missing.to_string());
            if !has_changed && plain(&real.to_string()) != plain(&missing) {
                let (client, set) = (CLIENTS[self.client].name, self.set);
                self.scene.leaks.push(format!(
                    "{set} {} tells {client} that there is a {}:\n{real}\n{missing}",
                    tool.name, secret.path
                ));
            }
        }
    }

    async fn calls(&mut self, tool: &Listed, path: &str) -> Vec<Value> {
        self.made += 1;
        let end = if self.client == MARKDOWN { ".md" } else { "" };
        let free = format!("open/sub/free-{}{end}", self.made);
        let host = self.scene.ground.trees[self.root]
            .path()
            .display()
            .to_string();
        let at = At {
            root: ROOTS[self.root],
            host: &host,
            path,
            free: &free,
        };
        let Some(calls) = calls(self.set, &tool.name, &at) else {
            panic!(
                "{} of {} is not tried: give it a template",
                tool.name, self.set
            );
        };
        let mut replies = Vec::new();
        for arguments in calls {
            let reply = self
                .scene
                .call(self.client, self.set, &tool.name, &arguments)
                .await;
            if succeeds(&reply) {
                *self.succeeded.entry(tool.name.clone()).or_default() += 1;
                self.nests_copied += usize::from(tool.name == "copy" && path == NEST);
            }
            replies.push(reply);
        }
        replies
    }

    /// Resources, completions and prompts.
    async fn try_methods(&mut self) {
        for method in LISTS {
            self.scene
                .ask(self.client, self.set, method, &json!({}))
                .await;
        }
        let mut paths: Vec<String> = OPEN.map(str::to_owned).to_vec();
        for (turn, secret) in self.secrets().into_iter().enumerate() {
            let ways = self.ways(&secret, turn);
            paths.extend(ways.iter().map(|way| secret.near(way)));
            paths.extend(ways);
        }
        for path in paths {
            let at = At {
                root: ROOTS[self.root],
                host: "",
                path: &path,
                free: "",
            };
            for (method, params) in methods(&at) {
                self.scene.ask(self.client, self.set, method, &params).await;
            }
        }
    }
}

fn succeeds(reply: &Value) -> bool {
    reply["result"]["isError"] == json!(false)
        || (reply["result"].is_object() && reply["result"].get("isError").is_none())
}

/// A text without the versions that follow this mark.
fn without_versions(text: &str, mark: &str) -> String {
    let mut parts = text.split(mark);
    let first = parts.next().unwrap_or_default().to_owned();
    let rest = parts.map(|part| part.get(VERSION..).unwrap_or_default());
    rest.fold(first, |all, part| all + part)
}

/// A reply without its numbers and versions: sizes and times differ between any two entries.
fn plain(reply: &str) -> String {
    let reply = without_versions(reply, "version ");
    let reply = without_versions(&reply, "\"version\":\"");
    let mut plain = String::new();
    for letter in reply.chars() {
        if !letter.is_ascii_digit() {
            plain.push(letter);
        } else if !plain.ends_with('#') {
            plain.push('#');
        }
    }
    plain
}

/// The tools of a set, as its own list has them.
async fn listed(scene: &mut Scene, set: &str) -> Vec<Listed> {
    let list = scene.ask(WHOLE, set, "tools/list", &json!({})).await;
    let tools = list["result"]["tools"].as_array().expect("tools").clone();
    let tool = |tool: &Value| Listed {
        name: tool["name"].as_str().expect("a name").to_owned(),
        reads: tool["annotations"]["readOnlyHint"] == json!(true),
    };
    tools.iter().map(tool).collect()
}

/// Tries a set in some roots with every client. Every tool has to work for somebody.
async fn try_set(scene: &mut Scene, set: &'static str, roots: &[usize]) {
    let tools = listed(scene, set).await;
    let mut succeeded: BTreeMap<String, usize> = BTreeMap::new();
    for &root in roots {
        for client in ORDER {
            let mut round = Round::new(scene, client, set, root);
            round.run(&tools).await;
            let copies = round.nests_copied;
            let may_create = client != READER && (client != NARROW || root == 0);
            let has_copies = tools.iter().any(|tool| tool.name == "copy");
            assert!(
                copies > 0 || !may_create || !has_copies,
                "{} copies no directory that holds something hidden with {set} in root {root}",
                CLIENTS[client].name
            );
            for (tool, times) in round.succeeded {
                *succeeded.entry(tool).or_default() += times;
            }
        }
    }
    for tool in tools.iter().filter(|tool| tool.name != NEEDS_A_CHANGE) {
        assert!(
            succeeded.contains_key(&tool.name),
            "no call of {} in {set} succeeds: its template is wrong",
            tool.name
        );
    }
}

/// One test a root, because each takes long.
async fn try_named(root: usize) {
    let mut scene = Scene::start(0).await;
    try_set(&mut scene, "workspace", &[root]).await;
    scene.end().await;
}

#[tokio::test]
async fn nothing_hidden_is_told_by_tools_of_the_first_named_root() {
    try_named(0).await;
}

#[tokio::test]
async fn nothing_hidden_is_told_by_tools_of_the_second_named_root() {
    try_named(1).await;
}

#[tokio::test]
async fn nothing_hidden_is_told_by_tools_of_the_third_named_root() {
    try_named(2).await;
}

#[tokio::test]
async fn nothing_hidden_is_told_by_tools_of_host_paths() {
    let mut scene = Scene::start(0).await;
    try_set(&mut scene, "reference", &[0, 1, 2]).await;
    scene.end().await;
}

async fn try_home(home: usize, sets: &[&'static str]) {
    let mut scene = Scene::start(home).await;
    for set in sets {
        try_set(&mut scene, set, &[home]).await;
    }
    scene.end().await;
}

/// The sets that use one root.
const OF_ONE_ROOT: [&str; 3] = ["files", "memory", "memory_tool"];

#[tokio::test]
async fn nothing_hidden_is_told_by_files_of_the_first_root() {
    try_home(0, &OF_ONE_ROOT[..1]).await;
}

#[tokio::test]
async fn nothing_hidden_is_told_by_memories_of_the_first_root() {
    try_home(0, &OF_ONE_ROOT[1..]).await;
}

#[tokio::test]
async fn nothing_hidden_is_told_by_tools_of_the_second_root() {
    try_home(1, &OF_ONE_ROOT).await;
}

#[tokio::test]
async fn nothing_hidden_is_told_by_tools_of_the_third_root() {
    try_home(2, &OF_ONE_ROOT).await;
}

/// Before anything was changed, what is hidden has no other past than what is missing.
#[tokio::test]
async fn histories_that_are_empty_tell_nothing_hidden() {
    let mut scene = Scene::start(0).await;
    let mut tried = 0;
    for set in ["workspace", "files", "memory"] {
        let tools = listed(&mut scene, set).await;
        let of_histories = tools
            .iter()
            .filter(|tool| OF_HISTORIES.contains(&&*tool.name));
        for tool in of_histories {
            let roots = if set == "workspace" {
                0..ROOTS.len()
            } else {
                0..1
            };
            for (root, client) in roots.flat_map(|root| ORDER.map(|client| (root, client))) {
                let mut round = Round::new(&mut scene, client, set, root);
                round.is_fresh = true;
                round.try_secrets(tool).await;
                tried += round.made;
            }
        }
    }
    assert!(tried > 500, "{tried} calls");
    scene.end().await;
}

#[tokio::test]
async fn every_set_is_tried() {
    let mut scene = Scene::start(0).await;
    for set in SETS {
        for tool in listed(&mut scene, set).await {
            let at = At {
                root: ROOTS[0],
                host: "/",
                path: "open",
                free: "open/free",
            };
            assert!(
                calls(set, &tool.name, &at).is_some(),
                "{set}: {}",
                tool.name
            );
        }
    }
}

/// What agents hand over to `guide` is theirs alone, whatever tool another client asks with.
#[tokio::test]
async fn what_one_client_hands_over_is_told_to_no_other() {
    let mut scene = Scene::start(0).await;
    let tools = listed(&mut scene, "guide").await;
    let path = |client: usize| format!("docs/{}.md", CLIENTS[client].name);
    let mark = |client: usize| format!("HANDED-BY-{}", CLIENTS[client].name);
    for client in ORDER {
        let file = json!({"path": path(client), "content": mark(client)});
        let entry = json!([{"name": format!("ENTRY-OF-{}", mark(client)), "type": "file"}]);
        let listing = json!({"path": "docs", "entries": entry});
        for (tool, arguments) in [
            ("guide_cache_file", file),
            ("guide_list_directory", listing),
        ] {
            let reply = scene.call(client, "guide", tool, &arguments).await;
            assert!(succeeds(&reply), "{reply}");
            if tool == "guide_cache_file" {
                let own = json!({"path": path(client)});
                let told = scene
                    .call(client, "guide", "guide_request_file", &own)
                    .await;
                assert!(told.to_string().contains(&mark(client)), "{told}");
            }
        }
    }
    for client in ORDER {
        for owner in ORDER.into_iter().filter(|owner| *owner != client) {
            for tool in &tools {
                for path in [path(owner), "docs".to_owned()] {
                    let free = format!("docs/free-{}.md", CLIENTS[client].name);
                    let at = At {
                        root: "",
                        host: "",
                        path: &path,
                        free: &free,
                    };
                    for arguments in calls("guide", &tool.name, &at).expect("a template") {
                        let told = scene.call(client, "guide", &tool.name, &arguments).await;
                        assert!(
                            !told.to_string().contains(&mark(owner)),
                            "{arguments}: {told}"
                        );
                    }
                }
            }
        }
    }
    scene.end().await;
}
