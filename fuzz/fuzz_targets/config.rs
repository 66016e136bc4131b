//! Any text as a config file: settings or one line that says what is wrong, never a panic.
#![no_main]
#![allow(dead_code, unused_imports, reason = "the program's own files, of which this uses a part")]

use std::path::Path;

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/server/src/cli.rs"]
mod cli;
#[path = "../../crates/server/src/config.rs"]
mod config;
#[path = "../../crates/server/src/known.rs"]
mod known;
#[path = "../../crates/server/src/operator.rs"]
mod operator;
#[path = "../../crates/server/src/settings.rs"]
mod settings;

fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    match config::parse(&text, Path::new("/config"), known::KNOWN_TOOLS) {
        Ok(partial) => drop(partial.complete()),
        Err(fault) => {
            let words = fault.to_string();
            assert!(!words.is_empty() && !words.contains('\n'), "{words:?}");
        }
    }
});
