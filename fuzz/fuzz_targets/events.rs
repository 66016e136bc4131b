//! A session whose client opens, breaks and resumes streams in any order: what it reads is always whole events with ids
//! that grow, never a panic.
#![no_main]

use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use mcp::{
    EventStream, HttpClient, Incoming, Message, Notification, Request, Server, Session,
    SessionLimits, Sessions, message,
};
use serde_json::{Value, json};
use toolset::{Admission, Deployment, Service, workspace};

#[derive(Arbitrary, Debug)]
enum Step<'a> {
    Ask(u8),
    Cancel(u8),
    Listen,
    Resume(&'a str),
    ResumeAt(u8, u8),
    Read(u8),
    Break(u8),
}

fn request(id: u8, method: &str, params: Value) -> Request {
    let text = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string();
    match message::read(text.as_bytes()) {
        Incoming::Message(Message::Request(request)) => request,
        other => panic!("{other:?}"),
    }
}

fn cancelled(id: u8) -> Notification {
    let params = json!({"requestId": id});
    let text = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params});
    match message::read(text.to_string().as_bytes()) {
        Incoming::Message(Message::Notification(notification)) => notification,
        other => panic!("{other:?}"),
    }
}

fn client() -> HttpClient {
    HttpClient::at(([127, 0, 0, 1], 1).into())
}

async fn session() -> Arc<Session> {
    let gate = Admission::new(Deployment::for_tests());
    let service = Service::new(vec![workspace::toolset()], gate).expect("a service");
    let sessions = Sessions::new(Server::new(service), SessionLimits::of(1));
    let params = json!({
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "n", "version": "1"}
    });
    let begun = sessions
        .begin(request(0, "initialize", params), None, client())
        .await;
    begun.expect("room").0.expect("a session")
}

fn read(stream: &mut EventStream) {
    let mut context = Context::from_waker(Waker::noop());
    if let Poll::Ready(Some(event)) = stream.poll_next(&mut context) {
        let event = std::str::from_utf8(&event).expect("text");
        assert!(
            event.starts_with("data: ") && event.ends_with("\n\n"),
            "{event:?}"
        );
        assert!(event.contains("\nid: "), "{event:?}");
    }
}

fuzz_target!(|steps: Vec<Step<'_>>| {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.expect("a runtime").block_on(async {
        let session = session().await;
        let mut streams = Vec::new();
        for step in steps.into_iter().take(64) {
            match step {
                Step::Ask(id) => {
                    streams.extend(session.request(request(id, "ping", json!({})), client(), None))
                }
                Step::Cancel(id) => session.notice(&cancelled(id)),
                Step::Listen => streams.push(session.listen()),
                Step::Resume(last) => streams.push(session.resume(last)),
                Step::ResumeAt(event, stream) => {
                    streams.push(session.resume(&format!("{event}/{stream}")))
                }
                Step::Read(index) => {
                    if let Some(stream) = streams.get_mut(usize::from(index)) {
                        read(stream);
                    }
                }
                Step::Break(index) if usize::from(index) < streams.len() => {
                    streams.swap_remove(usize::from(index));
                }
                Step::Break(_) => {}
            }
        }
    });
});
