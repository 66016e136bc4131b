//! Who may have connections: shares of addresses, strangers that make room, clients behind proxies.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use testkit::{Setup, Transport, Tree, Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;

use super::tls::{certified, with_tls};
use super::{few_or_all, list_roots, status};
use crate::harness::message::initialize;
use crate::harness::{ToolSet, becomes, program};
use crate::workspace::Workspace;

/// Where the attacker and the others call from; all of it is this machine.
pub(super) const ATTACKER: [u8; 4] = [127, 0, 0, 1];
pub(super) const OTHER: [u8; 4] = [127, 0, 0, 2];
const THIRD: [u8; 4] = [127, 0, 0, 3];
/// How long anything may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// Connects from an address of this machine.
pub(super) async fn connect(from: impl Into<IpAddr>, to: SocketAddr) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(SocketAddr::new(from.into(), 0)).unwrap();
    timeout(PATIENCE, socket.connect(to))
        .await
        .expect("it connects")
        .unwrap()
}

/// A request that is let in, and leaves its connection open.
fn call(headers: &str) -> String {
    with_body(headers, &list_roots())
}

/// A request with a body, which leaves its connection open.
pub(super) fn with_body(headers: &str, body: &Value) -> String {
    let body = body.to_string();
    format!(
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n{headers}\
         Accept: application/json, text/event-stream\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// Sends bytes and returns what the server first says; empty if it closes the connection.
pub(super) async fn ask(stream: &mut TcpStream, bytes: &str) -> String {
    let mut answer = vec![0; 64 * 1024];
    let asking = async {
        stream.write_all(bytes.as_bytes()).await?;
        stream.read(&mut answer).await
    };
    let read = timeout(PATIENCE, asking).await.expect("an answer in time");
    answer.truncate(read.unwrap_or_default());
    String::from_utf8(answer).unwrap()
}

async fn is_closed(mut stream: TcpStream) -> bool {
    let mut rest = Vec::new();
    timeout(PATIENCE, stream.read_to_end(&mut rest))
        .await
        .is_ok()
}

/// Holds as many connections as there may be, all from one address, each after sending some bytes.
async fn crowd(address: SocketAddr, connections: usize, bytes: &str) -> Vec<TcpStream> {
    let mut held = Vec::new();
    for _ in 0..connections {
        let mut stream = connect(ATTACKER, address).await;
        // The server may have given its place away already.
        let _ = stream.write_all(bytes.as_bytes()).await;
        held.push(stream);
    }
    held
}

fn limited(setup: Setup, connections: usize) -> Setup {
    setup
        .set("server.max_connections", connections)
        .set("server.client_timeout", 600)
        .set("server.handshake_timeout", 600)
}

/// How many connections the attacker has: a few, or all of the default of `max_connections`.
fn connections() -> usize {
    few_or_all(20, 1024)
}

#[tokio::test]
async fn idle_connections_of_one_address_keep_nobody_out() {
    for sent in [
        "",
        "GET /mcp HTTP/1.1\r\nHost:",
        "GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n",
    ] {
        let tree = Tree::new();
        let most = connections();
        let setup = limited(Workspace::setup(&tree), most);
        let wire = setup.wire(Transport::Http).await;
        let address = wire.http().address();
        let _held = crowd(address, most + 1, sent).await;
        let mut other = connect(OTHER, address).await;
        let answer = ask(&mut other, &call("")).await;
        assert_eq!(status(&answer), Some(200), "{sent:?}: {answer}");
        let mut own = connect(ATTACKER, address).await;
        let answer = ask(&mut own, &call("")).await;
        assert_eq!(status(&answer), Some(200), "its own clients too: {answer}");
    }
}

#[tokio::test]
async fn unfinished_handshakes_keep_nobody_out() {
    let tree = Tree::new();
    let (_, files) = certified();
    let most = connections();
    let setup = limited(with_tls(&tree, &files), most);
    let wire = setup.wire(Transport::Http).await;
    let address = wire.http().address();
    // The beginning of a TLS record.
    let held = crowd(address, most + 1, "\u{16}\u{3}\u{1}").await;
    let mut other = connect(OTHER, address).await;
    // An answer in TLS's words is an answer.
    let alert = ask(&mut other, "GET / HTTP/1.1\r\n\r\n").await;
    assert!(alert.starts_with('\u{15}'), "{alert:?}");
    drop(held);
}

#[tokio::test]
async fn an_address_beyond_its_share_is_told_so_and_others_are_served() {
    let tree = Tree::new();
    let setup = limited(Workspace::setup(&tree), 10).set("server.max_connections_per_address", 2);
    let wire = setup.wire(Transport::Http).await;
    let address = wire.http().address();
    let mut held = Vec::new();
    for _ in 0..2 {
        let mut stream = connect(ATTACKER, address).await;
        let answer = ask(&mut stream, &call("")).await;
        assert_eq!(status(&answer), Some(200), "{answer}");
        held.push(stream);
    }
    let mut third = connect(ATTACKER, address).await;
    let answer = ask(&mut third, "").await;
    assert_eq!(status(&answer), Some(503), "{answer}");
    let lower = answer.to_ascii_lowercase();
    assert!(lower.contains("retry-after: 5\r\n"), "{answer}");
    assert!(
        answer.ends_with("server.max_connections_per_address"),
        "{answer}"
    );
    let mut other = connect(OTHER, address).await;
    assert_eq!(status(&ask(&mut other, &call("")).await), Some(200));
    drop(held);
    let again = becomes(async || {
        let mut stream = connect(ATTACKER, address).await;
        status(&ask(&mut stream, &call("")).await) == Some(200)
    });
    assert!(again.await, "its places are free again");
}

/// How a client keeps a connection.
#[derive(Debug, Clone, Copy)]
enum Keeps {
    Idle,
    /// With a stream of a session that has nothing to say.
    Listening,
    /// With a request whose body does not end.
    Sending,
}

fn greeting() -> String {
    with_body("", &initialize(&json!({})))
}

async fn keep(from: [u8; 4], to: SocketAddr, how: Keeps) -> TcpStream {
    let mut stream = connect(from, to).await;
    match how {
        Keeps::Idle => {
            assert_eq!(status(&ask(&mut stream, &call("")).await), Some(200));
        }
        Keeps::Listening => {
            let greeting = ask(&mut stream, &greeting()).await;
            let lines = greeting.lines();
            let mut sessions = lines.filter(|line| line.starts_with("mcp-session-id:"));
            let session = sessions.next().expect("a session");
            let listen = format!(
                "GET /mcp HTTP/1.1\r\nHost: localhost\r\n{session}\r\nAccept: text/event-stream\r\n\r\n"
            );
            assert_eq!(status(&ask(&mut stream, &listen).await), Some(200));
        }
        Keeps::Sending => {
            assert_eq!(status(&ask(&mut stream, &call("")).await), Some(200));
            let whole = call("");
            let part = whole.get(..whole.len() - 5).unwrap();
            stream.write_all(part.as_bytes()).await.unwrap();
        }
    }
    stream
}

/// Tells whether the server has not closed a connection so far.
fn is_open(stream: &TcpStream) -> bool {
    let mut read = [0; 1024];
    loop {
        match stream.try_read(&mut read) {
            Ok(0) => return false,
            Ok(_) => {}
            Err(error) => return error.kind() == std::io::ErrorKind::WouldBlock,
        }
    }
}

#[tokio::test]
async fn two_addresses_that_hold_all_connections_make_room_for_a_third() {
    for how in [Keeps::Idle, Keeps::Listening, Keeps::Sending] {
        let tree = Tree::new();
        let (sessions, knock) = match how {
            Keeps::Listening => ("on", greeting()),
            Keeps::Idle | Keeps::Sending => ("off", call("")),
        };
        let setup = limited(Workspace::setup(&tree), 8)
            .set("server.max_connections_per_address", 4)
            .set("server.sessions", sessions);
        let wire = setup.wire(Transport::Http).await;
        let address = wire.http().address();
        let mut held = Vec::new();
        for from in [ATTACKER, OTHER].repeat(4) {
            held.push(keep(from, address, how).await);
        }
        let mut third = connect(THIRD, address).await;
        let answer = ask(&mut third, &knock).await;
        assert_eq!(status(&answer), Some(200), "{how:?}: {answer}");
        let open = async || held.iter().filter(|stream| is_open(stream)).count();
        let one_left = becomes(async || open().await == 7).await;
        assert!(one_left, "{how:?}: {} are open", open().await);
    }
}

#[tokio::test]
async fn clients_with_a_token_stay_where_strangers_make_room() {
    let tree = Tree::new();
    let tokens = Tree::new().file("tokens", "a-token-that-is-long-enough-to-be-one\n");
    let setup = limited(Workspace::setup(&tree), 4)
        .set("server.max_connections_per_address", 4)
        .set("server.bearer_tokens_file", json!(tokens.join("tokens")));
    let wire = setup.wire(Transport::Http).await;
    let address = wire.http().address();
    let token = "Authorization: Bearer a-token-that-is-long-enough-to-be-one\r\n";
    let mut known = connect(ATTACKER, address).await;
    assert_eq!(status(&ask(&mut known, &call(token)).await), Some(200));
    let mut stranger = connect(ATTACKER, address).await;
    assert_eq!(status(&ask(&mut stranger, &call("")).await), Some(401));
    let _held = crowd(address, 4, "").await;
    assert!(is_closed(stranger).await, "the oldest stranger made room");
    assert_eq!(status(&ask(&mut known, &call(token)).await), Some(200));
}

#[tokio::test]
async fn a_new_connection_that_asks_nothing_is_closed_soon() {
    let tree = Tree::new();
    let setup = Workspace::setup(&tree)
        .set("server.handshake_timeout", 1)
        .set("server.client_timeout", 600);
    let wire = setup.wire(Transport::Http).await;
    let address = wire.http().address();
    let mut busy = connect(ATTACKER, address).await;
    assert_eq!(status(&ask(&mut busy, &call("")).await), Some(200));
    for sent in ["", "POST /mcp HTTP/1.1\r\nHost: local"] {
        let mut stream = connect(ATTACKER, address).await;
        stream.write_all(sent.as_bytes()).await.unwrap();
        assert!(is_closed(stream).await, "{sent:?}");
    }
    // It asked in time and may be idle for longer.
    assert_eq!(status(&ask(&mut busy, &call("")).await), Some(200));
}

#[tokio::test]
async fn a_handshake_that_does_not_end_is_closed_soon() {
    let tree = Tree::new();
    let (_, files) = certified();
    let setup = with_tls(&tree, &files)
        .set("server.handshake_timeout", 1)
        .set("server.client_timeout", 600);
    let wire = setup.wire(Transport::Http).await;
    for sent in ["", "\u{16}\u{3}\u{1}"] {
        let mut stream = connect(ATTACKER, wire.http().address()).await;
        stream.write_all(sent.as_bytes()).await.unwrap();
        assert!(is_closed(stream).await, "{sent:?}");
    }
}

#[tokio::test]
async fn a_client_behind_a_trusted_proxy_is_known_by_what_the_proxy_says() {
    for (proxies, shown) in [
        (json!(["127.0.0.0/8"]), "192.0.2.7"),
        (json!([]), "127.0.0.1:"),
    ] {
        let tree = Tree::new();
        let setup = limited(Workspace::setup(&tree), 10)
            .set("server.trusted_proxies", proxies)
            .set("limits.rate", json!({"per_second": 1, "burst": 1}));
        let wire = setup.wire(Transport::Http).await;
        let mut proxy = connect(ATTACKER, wire.http().address()).await;
        let forwarded = |client: &str| format!("X-Forwarded-For: 198.51.100.9, {client}\r\n");
        let first = ask(&mut proxy, &call(&forwarded("192.0.2.7"))).await;
        assert!(first.contains("\"isError\":false"), "{first}");
        let line = wire.logged(|line| line["tool"] == "list_roots").await;
        assert!(line["client"].as_str().unwrap().contains(shown), "{line}");
        if shown == "192.0.2.7" {
            let other = ask(&mut proxy, &call(&forwarded("192.0.2.8"))).await;
            assert!(
                other.contains("\"isError\":false"),
                "it has a rate of its own: {other}"
            );
            // A second header that the client made up gives it neither another account nor the proxy's.
            for made_up in ["for=198.51.100.1", "for=127.0.0.1", "nonsense"] {
                let headers = format!("{}Forwarded: {made_up}\r\n", forwarded("192.0.2.8"));
                let again = ask(&mut proxy, &call(&headers)).await;
                assert!(again.contains("rate_limited"), "{made_up}: {again}");
            }
            let standard = ask(&mut proxy, &call("Forwarded: for=192.0.2.9\r\n")).await;
            assert!(standard.contains("\"isError\":false"), "{standard}");
        }
    }
}

#[tokio::test]
async fn without_a_config_file_only_this_machine_reaches_it() {
    let tree = Tree::new();
    let setup = |words: &[&str]| {
        program()
            .arguments(["check", "--transport", "http"])
            .arguments(words.iter().copied())
            .arguments([tree.path().to_string_lossy()])
    };
    let own = setup(&[]).run().await;
    assert!(own.stdout.contains("http on 127.0.0.1:8091"), "{own:?}");
    assert!(
        !own.stdout.contains("without asking for a token"),
        "{own:?}"
    );
    let open = setup(&["--host", "0.0.0.0"]).run().await;
    assert!(open.stdout.contains("http on 0.0.0.0:8091"), "{open:?}");
    assert!(
        open.stdout
            .contains("set server.bearer_tokens_file, or host to 127.0.0.1"),
        "{open:?}"
    );
}
