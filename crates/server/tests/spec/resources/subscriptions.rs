//! Clients that are told what changes: on a pipe, in a session, and by a request that lasts.

use std::cell::Cell;
use std::collections::HashMap;
use std::time::Duration;

use testkit::{Http, Setup, Transport, Tree, Value, Wire, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::net::TcpStream;
use tokio::task::yield_now;
use tokio::time::{Instant, sleep_until, timeout};

use super::{Era, Peer, headers, message};
use crate::harness::ToolSet;
use crate::harness::machine::share;
use crate::harness::message::{cancelled, initialize};
use crate::workspace::Workspace;

const PATIENCE: Duration = Duration::from_secs(60);
const UPDATED: &str = "notifications/resources/updated";
const ID: &str = "io.modelcontextprotocol/subscriptionId";
const UNSURE: &str = "io.github.mcp-filesystem/unsure";

/// Whatever tells a client of changes.
pub(crate) enum Told {
    Pipe(Box<Peer>),
    Stream(Lines<BufReader<TcpStream>>),
}

impl Told {
    /// Sends a request over HTTP and reads what comes back, event by event.
    pub(crate) async fn stream(
        http: &Http,
        verb: &str,
        headers: &[(&str, String)],
        body: &str,
    ) -> Told {
        let mut stream = TcpStream::connect(http.address())
            .await
            .expect("a connection");
        let mut request = format!(
            "{verb} /mcp HTTP/1.1\r\nhost: {}\r\naccept: application/json, text/event-stream\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n",
            http.address(),
            body.len()
        );
        for (name, value) in headers {
            request += &format!("{name}: {value}\r\n");
        }
        request += "\r\n";
        request += body;
        stream
            .write_all(request.as_bytes())
            .await
            .expect("it is sent");
        Told::Stream(BufReader::new(stream).lines())
    }

    /// The next message.
    pub(crate) async fn next(&mut self) -> Value {
        let line = match self {
            Told::Pipe(peer) => peer.wire.next().await.expect("the server hung up"),
            Told::Stream(lines) => loop {
                let line = timeout(PATIENCE, lines.next_line())
                    .await
                    .expect("no line in time");
                let line = line.expect("a line").expect("the server hung up");
                if let Some(data) = line.strip_prefix("data: ").filter(|data| !data.is_empty()) {
                    break data.to_owned();
                }
            },
        };
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"))
    }

    /// The next change that is told.
    async fn update(&mut self) -> Value {
        let told = self.next().await;
        assert_eq!(told["method"], UPDATED, "{told}");
        told["params"].clone()
    }

    /// Reads until a resource is told to have changed.
    async fn until(&mut self, uri: &str) -> Value {
        loop {
            let update = self.update().await;
            if update["uri"] == uri {
                return update;
            }
        }
    }
}

fn listen(id: u64, notifications: Value) -> Value {
    message(
        Era::Newest,
        id,
        "subscriptions/listen",
        json!({"notifications": notifications}),
    )
}

fn tree() -> Tree {
    Tree::new().file("dir/f", "1").file("beside", "1")
}

/// Listens for resources in the newest revision.
async fn listening(setup: Setup, transport: Transport, uris: &[&str]) -> (Told, Option<Peer>) {
    let peer = Peer::new(setup, transport, Era::Newest).await;
    let request = listen(
        7,
        json!({"toolsListChanged": true, "resourceSubscriptions": uris}),
    );
    let (mut told, peer) = match transport {
        Transport::Stdio => {
            let mut peer = peer;
            peer.wire.send(&request.to_string()).await;
            (Told::Pipe(Box::new(peer)), None)
        }
        Transport::Http => {
            let headers = headers(Era::Newest, &request);
            let told = Told::stream(peer.wire.http(), "POST", &headers, &request.to_string()).await;
            (told, Some(peer))
        }
    };
    let first = told.next().await;
    assert_eq!(
        first["method"], "notifications/subscriptions/acknowledged",
        "{first}"
    );
    assert_eq!(first["params"]["_meta"][ID], 7);
    let granted = json!({"toolsListChanged": true, "resourceSubscriptions": uris});
    assert_eq!(first["params"]["notifications"], granted);
    (told, peer)
}

#[tokio::test]
async fn subscriptions_of_the_newest_revision_tell_files_and_what_is_below_directories() {
    for transport in [Transport::Stdio, Transport::Http] {
        let tree = tree();
        let uris = ["fs://workspace/dir", "fs://workspace/beside"];
        let (mut told, _peer) = listening(Workspace::setup(&tree), transport, &uris).await;
        tree.write("dir/f", "2");
        let update = told.update().await;
        assert_eq!(update["uri"], "fs://workspace/dir/f");
        assert_eq!(update["_meta"][ID], 7);
        assert_eq!(told.update().await["uri"], "fs://workspace/dir");
        tree.write("beside", "2");
        let update = told.update().await;
        assert_eq!(update, json!({"uri": uris[1], "_meta": {ID: 7}}));
        tree.write("dir/new ?", "");
        assert_eq!(told.update().await["uri"], "fs://workspace/dir/new%20%3F");
    }
}

#[tokio::test]
async fn subscriptions_on_a_pipe_end_when_they_are_cancelled_or_the_server_ends() {
    let tree = tree();
    let uris = ["fs://workspace/dir"];
    let (told, _) = listening(Workspace::setup(&tree), Transport::Stdio, &uris).await;
    let Told::Pipe(mut peer) = told else {
        panic!("it is a pipe");
    };
    peer.wire.send(&cancelled(7).to_string()).await;
    // The same id again: it is free once the first request has ended.
    peer.wire.send(&listen(7, json!({})).to_string()).await;
    let first = Told::Pipe(peer);
    let mut told = first;
    let acknowledged = told.next().await;
    assert_eq!(
        acknowledged["params"]["notifications"],
        json!({}),
        "{acknowledged}"
    );
    tree.write("dir/f", "2");
    let Told::Pipe(mut peer) = told else {
        panic!("it is a pipe");
    };
    assert_eq!(
        peer.ok("tools/list", json!({})).await["resultType"],
        "complete"
    );
    let ended = peer.wire.stop().await;
    assert_eq!(ended.code, Some(0));
    assert!(
        ended.stderr.iter().all(|line| !line.contains("cut")),
        "{ended:?}"
    );
}

#[tokio::test]
async fn subscriptions_over_http_end_with_a_result_when_the_server_does() {
    let tree = tree();
    let uris = ["fs://workspace/dir"];
    let (mut told, peer) = listening(Workspace::setup(&tree), Transport::Http, &uris).await;
    let stopping = tokio::spawn(peer.expect("over HTTP").wire.stop());
    let last = told.next().await;
    assert_eq!(last["id"], 7, "{last}");
    assert_eq!(last["result"]["resultType"], "complete");
    assert_eq!(last["result"]["_meta"][ID], 7);
    assert_eq!(stopping.await.unwrap().code, Some(0));
}

#[tokio::test]
async fn subscriptions_of_older_revisions_work_on_a_pipe_and_in_sessions() {
    let tree = tree();
    let mut peer = Peer::new(Workspace::setup(&tree), Transport::Stdio, Era::Older).await;
    let uri = json!({"uri": "fs://workspace/dir"});
    assert_eq!(peer.ok("resources/subscribe", uri.clone()).await, json!({}));
    tree.write("dir/f", "2");
    let mut told = Told::Pipe(Box::new(peer));
    assert_eq!(told.update().await, json!({"uri": "fs://workspace/dir/f"}));
    assert_eq!(told.update().await, uri);
    let Told::Pipe(mut peer) = told else {
        panic!("it is a pipe");
    };
    peer.ok("resources/unsubscribe", uri.clone()).await;
    let error = peer.fails("resources/unsubscribe", uri.clone()).await;
    assert!(
        error["message"]
            .as_str()
            .unwrap()
            .contains("not subscribed"),
        "{error}"
    );

    let setup = Workspace::setup(&tree).set("server.sessions", "on");
    let wire = setup.wire(Transport::Http).await;
    let http = wire.http();
    let begun = http.post("/mcp", &[], &initialize(&json!({}))).await;
    assert_eq!(
        begun.json()["result"]["capabilities"]["resources"],
        json!({"subscribe": true})
    );
    let session = begun
        .header("mcp-session-id")
        .expect("a session")
        .to_owned();
    let own = [
        ("mcp-session-id", session),
        ("mcp-protocol-version", "2025-11-25".to_owned()),
    ];
    let mut told = Told::stream(http, "GET", &own, "").await;
    let request = message(Era::Older, 1, "resources/subscribe", uri.clone());
    let shown: Vec<(&str, &str)> = own
        .iter()
        .map(|(name, value)| (*name, value.as_str()))
        .collect();
    let answer = http.post("/mcp", &shown, &request).await.json();
    assert_eq!(answer["result"], json!({}), "{answer}");
    tree.write("dir/f", "3");
    told.until("fs://workspace/dir").await;
}

#[tokio::test]
async fn subscriptions_are_not_offered_where_nobody_can_be_told() {
    let tree = tree();
    let mut peer = Peer::new(Workspace::setup(&tree), Transport::Http, Era::Older).await;
    let begun = peer
        .wire
        .http()
        .post("/mcp", &[], &initialize(&json!({})))
        .await
        .json();
    assert_eq!(
        begun["result"]["capabilities"]["resources"],
        json!({}),
        "{begun}"
    );
    let uri = json!({"uri": "fs://workspace/dir"});
    let error = peer.fails("resources/subscribe", uri).await;
    assert_eq!(error["code"], -32601, "{error}");
}

#[tokio::test]
async fn subscriptions_say_what_is_wrong() {
    let tree = tree();
    for transport in [Transport::Stdio, Transport::Http] {
        let mut peer = Peer::new(Workspace::setup(&tree), transport, Era::Newest).await;
        let many: Vec<String> = (0..17).map(|n| format!("fs://workspace/{n}")).collect();
        many.iter()
            .enumerate()
            .for_each(|(n, _)| tree.write(n.to_string(), ""));
        let table = [
            (json!({}), "notifications (object)"),
            (json!({"notifications": []}), "notifications (object)"),
            (
                json!({"notifications": {"resourceSubscriptions": "x"}}),
                "list of URIs",
            ),
            (
                json!({"notifications": {"resourceSubscriptions": [1]}}),
                "list of URIs",
            ),
            (
                json!({"notifications": {"resourceSubscriptions": ["x:y"]}}),
                "fs://ROOT/PATH",
            ),
            (
                json!({"notifications": {"resourceSubscriptions": ["fs://workspace/none"]}}),
                "not found",
            ),
            (
                json!({"notifications": {"resourceSubscriptions": many}}),
                "16 for one client",
            ),
        ];
        for (params, expected) in table {
            let error = peer.fails("subscriptions/listen", params).await;
            assert_eq!(error["code"], -32602, "{error}");
            let message = error["message"].as_str().unwrap();
            assert!(message.contains(expected), "{message}");
        }
        // What was begun before the mistake was found is watched no longer.
        let few = json!({"notifications": {"resourceSubscriptions": ["x:y"]}});
        for _ in 0..20 {
            peer.fails("subscriptions/listen", few.clone()).await;
        }
    }
}

/// Makes a change that is told by its name: until then, others are told together with it.
async fn until_calm(told: &mut Told, tree: &Tree) -> Vec<(String, bool)> {
    let mut updates = Vec::new();
    for number in 0..200 {
        let name = format!("calm{number}");
        tree.write(&name, "");
        loop {
            let update = told.update().await;
            let uri = update["uri"].as_str().unwrap().to_owned();
            updates.push((uri.clone(), update["_meta"][UNSURE].is_string()));
            if uri == format!("fs://workspace/{name}") {
                return updates;
            }
            if uri == "fs://workspace/" {
                break;
            }
        }
    }
    panic!("it never becomes calm");
}

/// How a client hears of changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Listener {
    Pipe,
    Request,
    Session,
}

/// A client that listens, and the server's process if that is not the client's own pipe.
struct Listening {
    told: Told,
    wire: Option<Wire>,
}

impl Listening {
    async fn begin(setup: Setup, listener: Listener) -> Listening {
        let uris = ["fs://workspace/"];
        if listener == Listener::Session {
            let (told, wire) = in_session(setup, uris[0]).await;
            return Listening {
                told,
                wire: Some(wire),
            };
        }
        let transport = match listener {
            Listener::Pipe => Transport::Stdio,
            _ => Transport::Http,
        };
        let (told, peer) = listening(setup, transport, &uris).await;
        Listening {
            told,
            wire: peer.map(|peer| peer.wire),
        }
    }

    fn memory(&self) -> u64 {
        let wire = match (&self.wire, &self.told) {
            (Some(wire), _) => wire,
            (None, Told::Pipe(peer)) => &peer.wire,
            (None, Told::Stream(_)) => panic!("a stream has a server"),
        };
        wire.memory().resident
    }
}

/// Subscribes in a session of an older revision, and opens its stream.
async fn in_session(setup: Setup, uri: &str) -> (Told, Wire) {
    let wire = setup
        .set("server.sessions", "on")
        .wire(Transport::Http)
        .await;
    let http = wire.http();
    let begun = http.post("/mcp", &[], &initialize(&json!({}))).await;
    let session = begun.header("mcp-session-id").expect("a session");
    let own = [
        ("mcp-session-id", session.to_owned()),
        ("mcp-protocol-version", "2025-11-25".to_owned()),
    ];
    let told = Told::stream(http, "GET", &own, "").await;
    let shown = own.each_ref().map(|(name, value)| (*name, value.as_str()));
    let request = message(Era::Older, 1, "resources/subscribe", json!({"uri": uri}));
    let answer = http.post("/mcp", &shown, &request).await.json();
    assert_eq!(answer["result"], json!({}), "{answer}");
    (told, wire)
}

const FILES: usize = 10_000;
/// How many changes a second there are, and for how long with everything tried.
const PACE: u64 = 1_000;
const SECONDS: usize = 60;

fn path(number: usize) -> String {
    let number = number % FILES;
    format!("{}/f{number}", number % 100)
}

/// Makes a thousand changes a second, by the clock: what one step is late, the next ones are early.
async fn write_at_pace(tree: &Tree, writes: usize, written: &Cell<usize>) {
    let begun = Instant::now();
    for number in 0..writes {
        tree.write(path(number), "changed");
        written.set(number + 1);
        if number % 10 == 9 {
            sleep_until(begun + Duration::from_micros((number as u64 + 1) * 1_000_000 / PACE))
                .await;
            yield_now().await;
        }
    }
}

/// A directory with ten thousand files under a thousand changes a second: nothing is lost without a word, and nothing piles
/// up. Prints its figures; `SANDBOX_EXHAUSTIVE` goes on for a minute.
async fn under_load(listener: Listener) {
    let writes = share(SECONDS).max(2) * PACE as usize;
    let tree = (0..FILES).fold(Tree::new(), |tree, number| tree.file(path(number), ""));
    let mut listening = Listening::begin(Workspace::setup(&tree), listener).await;
    let before = listening.memory();
    let begun = Instant::now();
    let written = Cell::new(0);
    let told = &mut listening.told;
    // How many changes there were when a resource was told last, and when anything was said to have changed.
    let mut told_at: HashMap<String, usize> = HashMap::new();
    let mut covered = 0;
    let reading = async {
        while written.get() < writes {
            let update = told.update().await;
            // Whoever is told that anything may have changed looks at everything again, at what is written by now.
            if update["_meta"][UNSURE].is_string() {
                covered = written.get();
            }
            let uri = update["uri"].as_str().expect("a URI").to_owned();
            told_at.insert(uri, written.get());
        }
    };
    tokio::join!(write_at_pace(&tree, writes, &written), reading);
    let seconds = begun.elapsed().as_secs_f64();
    for (uri, unsure) in until_calm(told, &tree).await {
        covered = if unsure { writes } else { covered };
        told_at.insert(uri, writes);
    }
    for number in covered.max(writes.saturating_sub(FILES))..writes {
        let uri = format!("fs://workspace/{}", path(number));
        let is_told = told_at.get(&uri).is_some_and(|at| *at > number);
        assert!(is_told, "{uri} was lost without a word");
    }
    // A client that reads nothing for a while: the kernel's queue is all that grows.
    for number in 0..FILES {
        tree.write(path(number), "again");
    }
    let updates = until_calm(told, &tree).await;
    assert!(updates.iter().any(|(_, unsure)| *unsure), "{updates:?}");
    let grown = listening.memory().saturating_sub(before);
    let (rate, mebibytes) = (writes as f64 / seconds, grown as f64 / f64::from(1 << 20));
    crate::harness::machine::said(&format!(
        "{listener:?}: {writes} changes, {rate:.0} a second, {mebibytes:.1} MiB more"
    ));
    assert!(grown < 64 << 20, "{grown} bytes more");
}

#[tokio::test]
async fn subscriptions_under_load_lose_nothing_without_saying_so() {
    under_load(Listener::Pipe).await;
}

#[tokio::test]
async fn subscriptions_under_load_over_http_lose_nothing_without_saying_so() {
    under_load(Listener::Request).await;
}

#[tokio::test]
async fn subscriptions_under_load_in_a_session_lose_nothing_without_saying_so() {
    under_load(Listener::Session).await;
}
