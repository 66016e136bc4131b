//! `read_file`: a file's content, whole or in part.

use ops::text::encoding::to_base64;
use ops::text::lines::numbered;
use ops::{
    Body, Contents, Error, InlineRead, Operation, Oversize, Read, ReadRange, TextPolicy, Totals,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::defaults::yes;
use crate::deployment::ReplyHalves;
use crate::tool::{Call, Inline, RootUse, Tool, ToolEffect, Weight};

pub(super) struct ReadFileTool;

#[derive(Deserialize, JsonSchema)]
pub(super) struct Arguments {
    /// Name of the root, as list_roots tells it.
    root: String,
    /// The file, relative to the root.
    path: String,
    /// Read by bytes: the first byte, from 0. Not together with offset_lines or limit_lines.
    offset_bytes: Option<u64>,
    /// Read by bytes: how many at most. In text up to 3 more come so that the last character is whole.
    #[schemars(range(min = 1))]
    limit_bytes: Option<u64>,
    /// Read by lines: the first line, from 1. Negative counts from the end: -20 begins at the last 20 lines.
    offset_lines: Option<i64>,
    /// Read by lines: how many at most.
    #[schemars(range(min = 1))]
    limit_lines: Option<u64>,
    /// Whether the text block shows line numbers. The content field never has them.
    #[serde(default = "yes")]
    line_numbers: bool,
}

/// A file's content, or the part of it that was asked for.
#[derive(Serialize, JsonSchema)]
pub(super) struct Reply {
    /// Name of the root.
    root: String,
    /// The file, relative to the root, links resolved.
    path: String,
    /// The content, without line numbers.
    content: String,
    /// utf-8, or base64 where the content is not text.
    encoding: &'static str,
    /// Size of the whole file in bytes.
    size: u64,
    /// How many lines the whole file has; not for reads by bytes, nor where counting them would take too long.
    #[serde(skip_serializing_if = "Option::is_none")]
    lines_total: Option<u64>,
    /// Number of the first line returned.
    #[serde(skip_serializing_if = "Option::is_none")]
    start_line: Option<u64>,
    /// Number of the last line returned.
    #[serde(skip_serializing_if = "Option::is_none")]
    end_line: Option<u64>,
    /// True where more of the file follows after what was returned.
    truncated: bool,
    /// True where the file is not text.
    binary: bool,
    /// Said where nothing was returned, and why; or where the last line was cut, and where it goes on.
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
    #[serde(skip)]
    line_numbers: bool,
}

impl Tool for ReadFileTool {
    type Arguments = Arguments;
    type Reply = Reply;

    const NAME: &'static str = "read_file";
    const TITLE: &'static str = "Read a file";
    const DESCRIPTION: &'static str = "Reads a file. Without offset or limit it reads the whole file, up to the server's \
        threshold (1 MB unless configured); larger files give an error with the size, then read a part: offset_lines and \
        limit_lines for text (lines count from 1, negative from the end), or offset_bytes and limit_bytes. \
        Reading past the end is no error and returns what is there. In files of many gigabytes lines far from both ends take \
        long to find, and lines_total may be left out: offset_bytes is quick everywhere. \
        Returns content (text, or base64 with encoding \"base64\" and binary true where the file is not text), size, \
        lines_total, start_line, end_line, and truncated (more follows). The text block shows line numbers; they are not \
        part of the file. Use grep to find where to read. \
        Example: {\"root\":\"logs\",\"path\":\"app.log\",\"offset_lines\":1000,\"limit_lines\":50}";
    const EFFECT: ToolEffect = ToolEffect::Read;
    const ROOTS: &'static [RootUse] = &[RootUse::READ];
    const TRY_INLINE: bool = true;

    fn run(arguments: Arguments, call: &Call) -> ops::Result<Reply> {
        let contents = request(&arguments, call)?.run(&call.context)?;
        Ok(reply(&arguments, contents))
    }

    fn try_inline(arguments: Arguments, call: &Call) -> Inline<Reply> {
        match request(&arguments, call).map(|request| request.try_inline(&call.context)) {
            Err(error) => Inline::Done(Err(error)),
            Ok(InlineRead::Done(read)) => {
                Inline::Done(read.map(|contents| reply(&arguments, contents)))
            }
            Ok(InlineRead::Later(rest)) => {
                let weight = Weight::of_read(&rest);
                let rest = move |call: &Call| Ok(reply(&arguments, rest.run(&call.context)?));
                Inline::Later(Box::new(rest), weight)
            }
        }
    }

    fn text(reply: &Reply, replies: ReplyHalves) -> Option<String> {
        Some(match (reply.binary, &reply.note, reply.start_line) {
            // Nothing else is sent, so the content has to be here.
            (true, ..) if !replies.structured() => return None,
            (true, ..) => format!(
                "{} is a binary file of {} bytes; its content is in structuredContent as base64.",
                reply.path, reply.size
            ),
            (false, Some(note), _) if reply.content.is_empty() => note.clone(),
            (false, note, first) => {
                let mut text = match first {
                    Some(first) if reply.line_numbers => numbered(&reply.content, first),
                    _ => reply.content.clone(),
                };
                if let Some(note) = note {
                    text.push('\n');
                    text.push_str(note);
                }
                text
            }
        })
    }
}

fn request(arguments: &Arguments, call: &Call) -> ops::Result<Read> {
    Ok(Read {
        place: call.place(&arguments.path)?,
        range: range(arguments)?,
        max_bytes: None,
        oversize: Oversize::Refuse {
            over: call.context.limits.max_full_read_size,
        },
        text: TextPolicy::Detect,
        totals: Totals::Count,
    })
}

fn range(arguments: &Arguments) -> ops::Result<ReadRange> {
    let by_bytes = arguments.offset_bytes.is_some() || arguments.limit_bytes.is_some();
    let by_lines = arguments.offset_lines.is_some() || arguments.limit_lines.is_some();
    let wrong = |argument, reason: &str| Error::InvalidArgument {
        argument,
        reason: reason.to_owned(),
    };
    match (by_bytes, by_lines) {
        (true, true) => Err(wrong(
            byte_argument(arguments),
            "byte and line parameters are mutually exclusive; give offset_bytes/limit_bytes or \
             offset_lines/limit_lines, not both",
        )),
        (true, false) => Ok(ReadRange::Bytes {
            offset: arguments.offset_bytes.unwrap_or(0),
            limit: arguments.limit_bytes,
        }),
        (false, true) if arguments.offset_lines == Some(0) => Err(wrong(
            "offset_lines",
            "lines count from 1; negative numbers count from the end",
        )),
        (false, true) => Ok(ReadRange::Lines {
            offset: arguments.offset_lines.unwrap_or(1),
            limit: arguments.limit_lines,
        }),
        (false, false) => Ok(ReadRange::Whole),
    }
}

/// The argument of the byte kind that was given.
fn byte_argument(arguments: &Arguments) -> &'static str {
    match arguments.offset_bytes {
        Some(_) => "offset_bytes",
        None => "limit_bytes",
    }
}

fn reply(arguments: &Arguments, contents: Contents) -> Reply {
    let note = note(arguments, &contents);
    let (content, encoding) = match contents.body {
        Body::Text(text) => (text, "utf-8"),
        Body::Bytes(bytes) => (to_base64(&bytes), "base64"),
    };
    Reply {
        root: arguments.root.clone(),
        path: contents.path,
        content,
        encoding,
        size: contents.metadata.size,
        lines_total: contents.lines_total,
        start_line: contents.start_line,
        end_line: contents.end_line,
        truncated: contents.truncated,
        binary: contents.binary,
        note,
        line_numbers: arguments.line_numbers,
    }
}

/// Says where a cut line continues when its line number cannot.
fn cut_line(contents: &Contents) -> Option<String> {
    let bytes = contents.body.as_bytes();
    let next = contents.start_byte + bytes.len() as u64;
    (!bytes.ends_with(b"\n")).then(|| {
        format!(
            "The last line is too long for one reply and was cut; go on with offset_bytes {next}."
        )
    })
}

/// An empty reply says why it is empty, so that an agent does not take it for an empty file.
fn note(arguments: &Arguments, contents: &Contents) -> Option<String> {
    if contents.cut && (arguments.offset_lines.is_some() || arguments.limit_lines.is_some()) {
        return cut_line(contents);
    }
    if !contents.body.as_bytes().is_empty() {
        return None;
    }
    let size = contents.metadata.size;
    Some(
        match (
            arguments.offset_lines,
            contents.lines_total,
            arguments.offset_bytes,
        ) {
            _ if size == 0 => "The file is empty.".to_owned(),
            (Some(line), Some(total), _) => {
                format!("Nothing at line {line}: the file has {total} lines.")
            }
            (.., Some(offset)) if offset < size => {
                format!(
                    "No character begins at byte {offset} or right after it; raise limit_bytes."
                )
            }
            (.., Some(offset)) => format!("Nothing at byte {offset}: the file has {size} bytes."),
            _ => "Nothing was read.".to_owned(),
        },
    )
}
