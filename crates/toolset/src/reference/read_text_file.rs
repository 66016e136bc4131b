//! `read_text_file` and its older name `read_file`: a file's text, or its first or last lines.

use ops::{
    Body, Contents, Error, Operation, Oversize, Place, Read, ReadRange, StoredForm, TextPolicy,
    Totals,
};
use schemars::JsonSchema;
use serde::Deserialize;

use super::content::Content;
use super::paths::place;
use crate::deployment::ReplyHalves;
use crate::json_text::JsonText;
use crate::tool::{Call, PlaceAccess, RootUse, Tool, ToolEffect, Weight};

pub(super) struct ReadFile;
pub(super) struct ReadTextFile;

#[derive(Deserialize, JsonSchema)]
pub(super) struct Arguments {
    path: String,
    /// If provided, returns only the last N lines of the file
    tail: Option<f64>,
    /// If provided, returns only the first N lines of the file
    head: Option<f64>,
}

impl Tool for ReadFile {
    type Arguments = Arguments;
    type Reply = Content;

    const NAME: &'static str = "read_file";
    const TITLE: &'static str = "Read File (Deprecated)";
    const DESCRIPTION: &'static str =
        "Read the complete contents of a file as text. DEPRECATED: Use read_text_file instead.";
    const CONTENT: &'static [&'static str] = &[];
    const EFFECT: ToolEffect = ToolEffect::Read;
    const ROOTS: &'static [RootUse] = &[RootUse::host("path", PlaceAccess::Read)];

    fn weight(_arguments: &Arguments) -> Weight {
        Weight::Heavy
    }

    fn run(arguments: Arguments, call: &Call) -> ops::Result<Content> {
        read(&arguments, call)
    }

    fn json_text(reply: &Content, _replies: ReplyHalves) -> Option<JsonText> {
        Some(reply.text())
    }
}

impl Tool for ReadTextFile {
    type Arguments = Arguments;
    type Reply = Content;

    const NAME: &'static str = "read_text_file";
    const TITLE: &'static str = "Read Text File";
    const DESCRIPTION: &'static str = "Read the complete contents of a file from the file system as text. Handles various text encodings and \
        provides detailed error messages if the file cannot be read. Use this tool when you need to examine the contents of a single file. \
        Use the 'head' parameter to read only the first N lines of a file, or the 'tail' parameter to read only the last N lines of a file. \
        Operates on the file as text regardless of extension. Only works within allowed directories.";
    const CONTENT: &'static [&'static str] = &[];
    const EFFECT: ToolEffect = ToolEffect::Read;
    const ROOTS: &'static [RootUse] = &[RootUse::host("path", PlaceAccess::Read)];

    fn weight(_arguments: &Arguments) -> Weight {
        Weight::Heavy
    }

    fn run(arguments: Arguments, call: &Call) -> ops::Result<Content> {
        read(&arguments, call)
    }

    fn json_text(reply: &Content, _replies: ReplyHalves) -> Option<JsonText> {
        Some(reply.text())
    }
}

fn read(arguments: &Arguments, call: &Call) -> ops::Result<Content> {
    let place = place(call, &arguments.path)?;
    // Zero counts as not given, and a negative number gives no line.
    let wanted = |lines: Option<f64>| lines.filter(|lines| *lines != 0.0);
    let text = match (wanted(arguments.head), wanted(arguments.tail)) {
        (None, None) => whole(place, call)?,
        (Some(lines), None) => head(place, whole_number(lines), call)?,
        (None, Some(lines)) => tail(place, whole_number(lines), call)?,
        (Some(_), Some(_)) => {
            return Err(Error::InvalidArgument {
                argument: "head",
                reason: "Cannot specify both head and tail parameters simultaneously".to_owned(),
            });
        }
    };
    Ok(text.into())
}

/// Part of a line counts as the whole line.
fn whole_number(lines: f64) -> i64 {
    // Casts of numbers out of bounds end at the bounds.
    lines.ceil() as i64
}

/// The whole text of a file.
pub(super) fn whole(place: Place, call: &Call) -> ops::Result<String> {
    whole_within(place, call.context.limits.max_file_size, call)
}

/// The whole text of a file that has at most so many bytes.
pub(super) fn whole_within(place: Place, most: u64, call: &Call) -> ops::Result<String> {
    let read = Read {
        oversize: Oversize::Refuse { over: most },
        ..request(place, ReadRange::Whole, call)
    };
    read.run(&call.context).map(text)
}

fn head(place: Place, lines: i64, call: &Call) -> ops::Result<String> {
    let range = ReadRange::Lines {
        offset: 1,
        limit: Some(u64::try_from(lines).unwrap_or(0)),
    };
    let mut text = lines_of(place, range, call)?;
    if text.ends_with('\n') {
        text.pop();
    }
    Ok(text)
}

/// The last lines as the reference server counts them: after a last line end there is one more, which is empty.
fn tail(place: Place, lines: i64, call: &Call) -> ops::Result<String> {
    let last = |lines: i64| {
        let range = ReadRange::Lines {
            offset: -lines.max(1),
            limit: None,
        };
        lines_of(place.clone(), range, call)
    };
    // The line before may be very long, so it is only read if needed.
    let mut text = last(lines.saturating_sub(1))?;
    if lines > 1 && !text.ends_with('\n') {
        text = last(lines)?;
    }
    let text = text.replace("\r\n", "\n");
    if lines <= 0 {
        return Ok(String::new());
    }
    let all = text.split('\n').count();
    let wanted = usize::try_from(lines).unwrap_or(usize::MAX);
    let last: Vec<&str> = text.split('\n').skip(all.saturating_sub(wanted)).collect();
    Ok(last.join("\n"))
}

fn lines_of(place: Place, range: ReadRange, call: &Call) -> ops::Result<String> {
    let contents = request(place, range, call).run(&call.context)?;
    if contents.cut {
        return Err(Error::TooLarge {
            path: contents.path,
            size: contents.size,
            limit: call.context.limits.max_file_size,
        });
    }
    Ok(text(contents))
}

fn request(place: Place, range: ReadRange, call: &Call) -> Read {
    Read {
        place,
        range,
        max_bytes: None,
        oversize: Oversize::Refuse {
            over: call.context.limits.max_file_size,
        },
        text: TextPolicy::Utf8,
        totals: Totals::Skip,
        form: StoredForm::AsStored,
    }
}

/// Bytes that are not valid text are replaced.
fn text(contents: Contents) -> String {
    match contents.body {
        Body::Text(text) => text,
        Body::Bytes(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
    }
}
