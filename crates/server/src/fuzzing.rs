//! The root of the fuzz target `config`: any text as a config file gives settings, or an error of one line.
//!
//! It is not part of the program. It is in this folder because it includes the program's own modules.
#![no_main]
#![expect(
    dead_code,
    unused_imports,
    reason = "the program's own files, of which this uses a part"
)]

mod command_line;
mod operator_files;
mod settings;

use std::path::Path;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    match settings::config_file::parse(&text, Path::new("/config")) {
        Ok(partial) => drop(partial.complete()),
        Err(fault) => {
            let words = fault.to_string();
            assert!(!words.is_empty() && !words.contains('\n'), "{words:?}");
        }
    }
});
