//! `watch`: waits until something below a path changes.

use ops::Place;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::search_bounds::here;
use crate::tool::{Call, RootUse};
use crate::watch::{TIMEOUT_SECONDS, WatchTool, timeout_seconds};

pub(super) struct WatchFiles;

#[derive(Deserialize, JsonSchema)]
pub(super) struct Arguments {
    /// A name from list_roots.
    root: String,
    #[serde(default = "here")]
    path: String,
    /// A change or a time: what was changed since counts too.
    since: Option<String>,
    #[serde(default = "timeout_seconds")]
    #[schemars(range(min = 1, max = TIMEOUT_SECONDS))]
    timeout_seconds: u64,
}

impl WatchTool for WatchFiles {
    type Arguments = Arguments;

    const DESCRIPTION: &'static str = "Waits until a file, or anything below a directory, changes, whoever changes it, and tells what did.";
    const ROOTS: &'static [RootUse] = &[RootUse::READ];

    fn root(arguments: &Arguments) -> Option<String> {
        Some(arguments.root.clone())
    }

    fn place(arguments: &Arguments, call: &Call) -> ops::Result<Place> {
        call.place(&arguments.path)
    }

    fn since(arguments: &Arguments) -> Option<&str> {
        arguments.since.as_deref()
    }

    fn seconds(arguments: &Arguments) -> u64 {
        arguments.timeout_seconds
    }
}
