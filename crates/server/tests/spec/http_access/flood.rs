//! A flood of small calls by one client, and the order in which another client's calls are answered beside it.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use testkit::{Transport, Tree, json};

use super::connections::{OTHER, ask, connect, with_body};
use super::{few_or_all, status};
use crate::harness::machine::said;
use crate::harness::message::tool_call;
use crate::harness::{ToolSet, becomes};
use crate::workspace::Workspace;

/// How many connections the attacker calls on at once.
const CONNECTIONS: usize = 300;
/// How many calls the victim makes.
const CALLS: usize = 30;
/// How long a rare call waits for the next one: longer than the second after which a client once counted as alone.
const SILENCE: Duration = Duration::from_millis(1500);

fn read_call() -> String {
    let read = json!({"root": "workspace", "path": "f"});
    with_body("", &tool_call(1, "read_file", &read))
}

/// Calls again and again on one connection, and counts the replies.
async fn call_for_ever(address: SocketAddr, replies: Arc<AtomicUsize>) {
    let mut stream = connect(OTHER, address).await;
    loop {
        let answer = ask(&mut stream, &read_call()).await;
        assert_eq!(status(&answer), Some(200), "{answer}");
        replies.fetch_add(1, Ordering::SeqCst);
    }
}

/// The attacker, on a thread of its own so that the victim's replies are seen when they come.
struct Flood {
    replies: Arc<AtomicUsize>,
    is_over: Arc<AtomicBool>,
}

impl Flood {
    fn begin(address: SocketAddr) -> Flood {
        let (replies, is_over) = (Arc::<AtomicUsize>::default(), Arc::<AtomicBool>::default());
        let (counted, over) = (Arc::clone(&replies), Arc::clone(&is_over));
        std::thread::spawn(move || {
            let mut builder = tokio::runtime::Builder::new_current_thread();
            let runtime = builder.enable_all().build().unwrap();
            runtime.block_on(async {
                for _ in 0..CONNECTIONS {
                    tokio::spawn(call_for_ever(address, Arc::clone(&counted)));
                }
                while !over.load(Ordering::SeqCst) {
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
            });
        });
        Flood { replies, is_over }
    }

    fn replies(&self) -> usize {
        self.replies.load(Ordering::SeqCst)
    }
}

impl Drop for Flood {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::SeqCst);
    }
}

/// Makes a call, and tells how many replies the attacker got between the request and the reply.
fn overtaken(stream: &mut TcpStream, flood: &Flood) -> usize {
    let call = read_call();
    let before = flood.replies();
    stream.write_all(call.as_bytes()).unwrap();
    let mut answer = [0; 16 * 1024];
    let length = stream.read(&mut answer).unwrap();
    let overtaken = flood.replies() - before;
    let answer = String::from_utf8_lossy(answer.get(..length).unwrap_or_default());
    assert!(answer.contains("\"isError\":false"), "{answer}");
    overtaken
}

#[tokio::test]
async fn a_flood_of_small_calls_does_not_go_before_those_of_another_client() {
    let tree = Tree::new().file("f", "small\n");
    let setup = Workspace::setup(&tree)
        .set("server.max_connections", 2 * CONNECTIONS)
        .set("server.max_connections_per_address", CONNECTIONS + 1);
    let server = setup.start(Transport::Http).await;
    let address = server.http().address();
    let flood = Flood::begin(address);
    let is_under_way = becomes(async || flood.replies() > 2 * CONNECTIONS).await;
    assert!(is_under_way, "{} replies", flood.replies());
    let mut stream = TcpStream::connect(address).unwrap();
    for (pace, calls, silence) in [
        ("often", CALLS, Duration::ZERO),
        ("rarely", few_or_all(3, CALLS), SILENCE),
    ] {
        let mut counts = Vec::new();
        for _ in 0..calls {
            std::thread::sleep(silence);
            counts.push(overtaken(&mut stream, &flood));
        }
        counts.sort_unstable();
        let (middle, worst) = (counts[calls / 2], counts[calls - 1]);
        said(&format!(
            "a victim that calls {pace} beside {CONNECTIONS} connections: {middle} replies of the attacker go before one \
             of its own, {worst} at most"
        ));
        // Of its calls under way, one on each connection, at most a quarter goes first.
        assert!(middle <= CONNECTIONS / 4, "{counts:?}");
    }
}
