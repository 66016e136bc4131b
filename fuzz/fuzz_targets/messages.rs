//! Any bytes as a JSON-RPC message: a message, nothing, or a reply that says what is wrong, never a panic. In pieces of
//! any size the same id is made out.
#![no_main]

use libfuzzer_sys::fuzz_target;
use mcp::{Incoming, OutlineSearch, message};
use serde_json::Value;

fuzz_target!(|bytes: &[u8]| {
    if let Incoming::Refused(refused) = message::read(bytes) {
        let reply: Value = serde_json::from_slice(&refused.reply()).expect("a reply is JSON");
        assert!(!refused.reason().is_empty());
        assert_eq!(reply["error"]["message"], refused.reason());
        if let Some(answer) = refused.into_answer() {
            assert!(answer.outcome.is_err() && reply.get("id").is_none());
        }
    }
    let size = bytes.first().map_or(1, |first| usize::from(*first) + 1);
    let mut whole = OutlineSearch::default();
    whole.feed(bytes);
    let mut pieces = OutlineSearch::default();
    bytes.chunks(size).for_each(|piece| pieces.feed(piece));
    assert_eq!(whole.finish(), pieces.finish());
});
