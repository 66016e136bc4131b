//! Sessions: whose they are, how many there are, and streams that break.

use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use mcp::{EventStream, HttpClient, NoRoom, Session, SessionLimits, Sessions};

use crate::service::{call, cancelled, greeting, server};

fn client() -> HttpClient {
    HttpClient::at(([127, 0, 0, 1], 1).into())
}

fn sessions(most: usize) -> Arc<Sessions> {
    Sessions::new(server(), SessionLimits::of(most))
}

async fn begun(sessions: &Arc<Sessions>, owner: Option<[u8; 32]>) -> Arc<Session> {
    let begun = sessions
        .begin(greeting("2025-11-25"), owner, client())
        .await;
    begun.unwrap().0.expect("a session")
}

async fn next(stream: &mut EventStream) -> Option<String> {
    let event = std::future::poll_fn(|context| stream.poll_next(context)).await;
    event.map(|event| String::from_utf8(event.to_vec()).unwrap())
}

fn is_waiting(stream: &mut EventStream) -> bool {
    let mut context = Context::from_waker(Waker::noop());
    matches!(stream.poll_next(&mut context), Poll::Pending)
}

#[tokio::test]
async fn a_session_is_its_owners_alone() {
    let sessions = sessions(10);
    let session = begun(&sessions, Some([1; 32])).await;
    assert!(sessions.find(session.id(), Some([1; 32])).is_some());
    assert!(sessions.find(session.id(), Some([2; 32])).is_none());
    assert!(sessions.find(session.id(), None).is_none());
    assert!(sessions.find("", Some([1; 32])).is_none());
    let other = begun(&sessions, None).await;
    assert_ne!(session.id(), other.id());
    assert_eq!(session.id().len(), 36);
    sessions.end(&session);
    assert!(sessions.find(session.id(), Some([1; 32])).is_none());
    assert_eq!(sessions.count(), 1);
}

#[tokio::test]
async fn there_are_only_so_many_and_a_greeting_that_fails_begins_none() {
    let sessions = sessions(1);
    let bad = crate::service::request(0, "initialize", &serde_json::json!({}));
    let (none, reply) = sessions.begin(bad, None, client()).await.unwrap();
    assert!(none.is_none() && reply.error.is_some());
    assert_eq!(sessions.count(), 0);
    begun(&sessions, None).await;
    let full = sessions.begin(greeting("2025-11-25"), None, client()).await;
    assert_eq!(full.err(), Some(NoRoom));
}

#[tokio::test]
async fn a_request_is_answered_in_a_stream_of_its_own() {
    let sessions = sessions(1);
    let session = begun(&sessions, None).await;
    let mut stream = session.request(call(1, 0), client(), None).unwrap();
    assert_eq!(
        next(&mut stream).await.unwrap(),
        "data: \nid: 0/0\nretry: 3000\n\n"
    );
    let reply = next(&mut stream).await.unwrap();
    assert!(
        reply.contains("\"id\":1") && reply.ends_with("\nid: 1/0\n\n"),
        "{reply}"
    );
    assert_eq!(next(&mut stream).await, None);
}

#[tokio::test]
async fn a_stream_that_breaks_is_read_on_and_the_request_goes_on() {
    let sessions = sessions(1);
    let session = begun(&sessions, None).await;
    let mut broken = session.request(call(1, 80), client(), None).unwrap();
    next(&mut broken).await;
    drop(broken);
    let mut resumed = session.resume("0/0");
    let reply = next(&mut resumed).await.unwrap();
    assert!(reply.contains("\"done\":true"), "{reply}");
    assert_eq!(next(&mut resumed).await, None);
    let mut again = session.resume("0/0");
    assert_eq!(
        next(&mut again).await,
        Some(reply),
        "it is kept for a while"
    );
    for unknown in ["0/99", "x", "", "7"] {
        let mut other = session.resume(unknown);
        assert!(
            unknown == "7" || next(&mut other).await.is_none(),
            "{unknown}"
        );
    }
}

#[tokio::test]
async fn an_id_in_use_gets_no_stream_and_not_the_others_reply() {
    let sessions = sessions(1);
    let session = begun(&sessions, None).await;
    let mut first = session.request(call(1, 60), client(), None).unwrap();
    let refused = session
        .request(call(1, 0), client(), None)
        .expect_err("a refusal");
    assert!(refused.reason().contains("the id 1 is in use"));
    next(&mut first).await;
    assert!(next(&mut first).await.unwrap().contains("\"id\":1"));
    session
        .request(call(1, 0), client(), None)
        .expect("it is free again");
}

#[tokio::test]
async fn a_cancelled_request_ends_its_stream_without_a_reply() {
    let sessions = sessions(1);
    let session = begun(&sessions, None).await;
    let mut stream = session.request(call(1, 60_000), client(), None).unwrap();
    next(&mut stream).await;
    assert!(is_waiting(&mut stream));
    session.notice(&cancelled(1));
    assert_eq!(next(&mut stream).await, None);
}

#[tokio::test]
async fn the_end_of_a_session_is_the_end_of_all_its_streams() {
    let sessions = sessions(1);
    let session = begun(&sessions, None).await;
    let mut streams = [
        session.listen(),
        session.listen(),
        session.request(call(1, 60_000), client(), None).unwrap(),
    ];
    next(&mut streams[2]).await;
    assert!(streams.iter_mut().all(is_waiting));
    sessions.end_all();
    for stream in &mut streams {
        assert_eq!(next(stream).await, None);
    }
    assert_eq!(sessions.count(), 0);
}

#[tokio::test(start_paused = true)]
async fn idle_sessions_end_and_those_that_are_heard_do_not() {
    let idle = Duration::ZERO;
    let sessions = Sessions::new(server(), SessionLimits { most: 10, idle });
    let (left, heard) = (begun(&sessions, None).await, begun(&sessions, None).await);
    let stream = heard.listen();
    std::thread::sleep(Duration::from_millis(5));
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert!(sessions.find(left.id(), None).is_none());
    assert!(sessions.find(heard.id(), None).is_some());
    drop(stream);
    std::thread::sleep(Duration::from_millis(5));
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert_eq!(sessions.count(), 0);
}
