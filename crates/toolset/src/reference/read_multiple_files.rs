//! `read_multiple_files`: the texts of several files.

use ops::Error;
use schemars::JsonSchema;
use serde::Deserialize;

use super::content::Content;
use super::errors::Reference;
use super::paths::place;
use super::read_text_file::whole_within;
use crate::contract::{CallSubject, Contract, Failure, NamedPlace};
use crate::deployment::ReplyHalves;
use crate::json_text::JsonText;
use crate::tool::{Call, PlaceAccess, RootUse, Tool, ToolEffect, Weight};

pub(super) struct ReadMultipleFiles;

#[derive(Deserialize, JsonSchema)]
pub(super) struct Arguments {
    /// Array of file paths to read. Each path must be a string pointing to a valid file within allowed directories.
    #[schemars(length(min = 1))]
    paths: Vec<String>,
}

impl Tool for ReadMultipleFiles {
    type Arguments = Arguments;
    type Reply = Content;

    const NAME: &'static str = "read_multiple_files";
    const TITLE: &'static str = "Read Multiple Files";
    const DESCRIPTION: &'static str = "Read the contents of multiple files simultaneously. This is more efficient than reading files one by one when \
        you need to analyze or compare multiple files. Each file's content is returned with its path as a reference. Failed reads for individual \
        files won't stop the entire operation. Only works within allowed directories.";
    const CONTENT: &'static [&'static str] = &[];
    const EFFECT: ToolEffect = ToolEffect::Read;
    const ROOTS: &'static [RootUse] = &[RootUse::host("paths", PlaceAccess::Read)];

    fn weight(_arguments: &Arguments) -> Weight {
        Weight::Heavy
    }

    fn run(arguments: Arguments, call: &Call) -> ops::Result<Content> {
        let mut files = Vec::with_capacity(arguments.paths.len());
        let mut room = call.context.limits.max_file_size;
        for path in &arguments.paths {
            call.context.cancel.check()?;
            let text = one(path, room, call)?;
            room = room.saturating_sub(text.len() as u64);
            files.push(text);
        }
        Ok(files.join("\n---\n").into())
    }

    fn json_text(reply: &Content, _replies: ReplyHalves) -> Option<JsonText> {
        Some(reply.text())
    }
}

/// One file, if there is room for it, or why it could not be read.
fn one(path: &str, room: u64, call: &Call) -> ops::Result<String> {
    let all = call.context.limits.max_file_size;
    match place(call, path).and_then(|place| whole_within(place, room, call)) {
        Ok(text) => Ok(format!("{path}:\n{text}\n")),
        // On its own it would fit.
        Err(Error::TooLarge { size, .. }) if size <= all => Ok(format!(
            "{path}: Error - not enough room is left in this reply: the file has {size} bytes, and a reply holds {all}; \
             read it in another call"
        )),
        Err(stopped @ (Error::Timeout | Error::Cancelled)) => Err(stopped),
        Err(error) => Ok(failed(path, with_limit(error, all).into(), call)),
    }
}

/// The error with the limit of a whole reply, because the room that is left is not a limit for a single file.
fn with_limit(error: Error, limit: u64) -> Error {
    match error {
        Error::TooLarge { path, size, .. } => Error::TooLarge { path, size, limit },
        other => other,
    }
}

/// The text for a file that could not be read: the message that a call for it alone would get. A violation is logged,
/// because the call itself does not fail.
fn failed(path: &str, failure: Failure, call: &Call) -> String {
    let named = NamedPlace {
        root: None,
        path: Some(path.to_owned()),
    };
    let mut subject = CallSubject {
        tool: ReadMultipleFiles::NAME,
        places: vec![named.clone()],
        ..CallSubject::default()
    };
    if let Some(roots) = &call.host_roots {
        subject = subject.on_host(roots.directories(), &[]);
    }
    let worded = Reference.word(&failure, &subject);
    let message = worded.readable(&failure, &subject).message;
    call.record_violation(&Reference, ReadMultipleFiles::NAME, named, failure);
    format!("{path}: Error - {message}")
}
