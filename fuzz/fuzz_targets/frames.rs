//! Any bytes as a JSON-RPC message: a message, nothing, or a reply that says what is wrong, never a panic.
#![no_main]
#![expect(dead_code, reason = "the program's own file, of which this uses a part")]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/server/src/frame.rs"]
mod frame;

fuzz_target!(|bytes: &[u8]| {
    match frame::read(bytes) {
        frame::Frame::Message(message) => {
            let text = serde_json::to_vec(&message).unwrap();
            let again = frame::read(&text);
            assert!(matches!(again, frame::Frame::Message(_)), "{again:?}");
        }
        frame::Frame::Mistake(reply) => {
            let reply = serde_json::to_value(&reply).unwrap();
            assert!(reply["error"]["message"].as_str().is_some_and(|words| !words.is_empty()));
        }
        frame::Frame::Spoiled(answer) => {
            let text = serde_json::to_vec(&answer.instead()).unwrap();
            let again = frame::read(&text);
            assert!(matches!(again, frame::Frame::Message(_)), "{again:?}");
        }
        frame::Frame::Nothing => {}
    }
});
