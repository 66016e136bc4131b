//! `read`: a file's content, whole or some of its lines.

use ops::text::encoding::to_base64;
use ops::{
    Body, Contents, Error, InlineRead, Operation, Oversize, Read, ReadRange, StoredForm,
    TextPolicy, Totals,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::facts::FileFacts;
use super::paths::place;
use crate::deployment::ReplyHalves;
use crate::json_text::{JsonContent, JsonText};
use crate::text_form::binary;
use crate::tool::{Call, Inline, PlaceAccess, RootUse, Tool, ToolEffect, Weight};

pub(super) struct ReadTool;

#[derive(Deserialize, JsonSchema)]
pub(super) struct Arguments {
    /// Path to the file to read (relative to server root).
    path: String,
    /// base64 and binary give bytes as base64.
    #[serde(default)]
    encoding: Encoding,
    /// From 0.
    start_line: Option<u64>,
    /// Inclusive.
    end_line: Option<u64>,
    /// Maximum number of bytes to read.
    #[serde(default = "max_size")]
    #[schemars(range(min = 1))]
    max_size: u64,
    /// Reads what .gz and .zst files unfold to.
    #[serde(default)]
    decompress: bool,
}

#[derive(Deserialize, Serialize, JsonSchema, Default, Clone, Copy)]
#[serde(rename_all = "snake_case")]
enum Encoding {
    #[default]
    Utf8,
    Base64,
    Binary,
}

fn max_size() -> u64 {
    1_048_576
}

/// A file's content, or the part of it that was asked for.
#[derive(Serialize, JsonSchema)]
pub(super) struct Reply {
    /// The content: text, or base64-encoded data.
    #[schemars(with = "String")]
    content: JsonContent,
    /// utf8 or base64: how content is written.
    encoding: &'static str,
    /// How many bytes of the file are returned.
    size: u64,
    /// True if a limit cut off what was asked for.
    truncated: bool,
    /// How many lines are returned.
    line_count: u64,
    /// The whole file.
    metadata: FileFacts,
    /// Said if the content was cut: by what, and how to read on.
    #[serde(skip_serializing_if = "Option::is_none")]
    warning: Option<String>,
}

impl Tool for ReadTool {
    type Arguments = Arguments;
    type Reply = Reply;

    const NAME: &'static str = "read";
    const TITLE: &'static str = "Read a file";
    const DESCRIPTION: &'static str = "Reads a file, or some of its lines. At most max_size bytes are returned; a warning then says how to read on. \
        Files that are not UTF-8 come as base64. Lines count from 0 here and from 1 in search.";
    const CONTENT: &'static [&'static str] = &[];
    const EFFECT: ToolEffect = ToolEffect::Read;
    const LARGE_REPLIES: bool = true;
    const ROOTS: &'static [RootUse] = &[RootUse::home("path", PlaceAccess::Read)];
    const TRY_INLINE: bool = true;

    fn run(arguments: Arguments, call: &Call) -> ops::Result<Reply> {
        let contents = request(&arguments, call)?.run(&call.context)?;
        Ok(reply(contents, &arguments, call))
    }

    fn try_inline(arguments: Arguments, call: &Call) -> Inline<Reply> {
        match request(&arguments, call).map(|request| request.try_inline(&call.context)) {
            Err(error) => Inline::Done(Err(error)),
            Ok(InlineRead::Done(read)) => {
                Inline::Done(read.map(|contents| reply(contents, &arguments, call)))
            }
            Ok(InlineRead::Later(rest)) => {
                let weight = Weight::of_read(&rest);
                let rest = move |call: &Call| Ok(reply(rest.run(&call.context)?, &arguments, call));
                Inline::Later(Box::new(rest), weight)
            }
        }
    }

    fn json_text(reply: &Reply, replies: ReplyHalves) -> Option<JsonText> {
        let path = &reply.metadata.path;
        let content = reply.content.text();
        let mut text = if reply.encoding == "base64" {
            binary(path, reply.size, content, replies)
        } else {
            content.clone()
        };
        let warning: Vec<&str> = reply.warning.as_deref().into_iter().collect();
        text.note(&warning);
        Some(text)
    }
}

fn request(arguments: &Arguments, call: &Call) -> ops::Result<Read> {
    Ok(Read {
        place: place(call, &arguments.path)?,
        range: range(arguments.start_line, arguments.end_line)?,
        max_bytes: Some(arguments.max_size),
        oversize: Oversize::Cut,
        text: match arguments.encoding {
            Encoding::Utf8 => TextPolicy::Detect,
            Encoding::Base64 | Encoding::Binary => TextPolicy::Never,
        },
        totals: Totals::Skip,
        form: if arguments.decompress {
            StoredForm::Decompressed
        } else {
            StoredForm::AsStored
        },
    })
}

fn range(start: Option<u64>, end: Option<u64>) -> ops::Result<ReadRange> {
    if (start, end) == (None, None) {
        return Ok(ReadRange::Whole);
    }
    let first = start.unwrap_or(0);
    let limit = match end {
        Some(end) if end < first => {
            return Err(Error::InvalidArgument {
                argument: "end_line",
                reason: format!("it is {end}, before start_line {first}"),
            });
        }
        Some(end) => Some((end - first).saturating_add(1)),
        None => None,
    };
    Ok(ReadRange::Lines {
        offset: i64::try_from(first.saturating_add(1)).unwrap_or(i64::MAX),
        limit,
    })
}

fn reply(contents: Contents, arguments: &Arguments, call: &Call) -> Reply {
    let (max_size, server_limit) = (arguments.max_size, call.context.limits.max_file_size);
    let size = contents.body.as_bytes().len() as u64;
    let warning = contents
        .cut
        .then(|| warning(&contents, size, max_size, server_limit));
    let line_count = contents.body.line_count();
    let metadata = FileFacts::new(&contents.path, &contents.metadata);
    let (content, encoding) = match contents.body {
        Body::Text(text) => (text.into(), "utf8"),
        Body::Bytes(bytes) => (JsonContent::of_base64(to_base64(&bytes)), "base64"),
    };
    Reply {
        content,
        encoding,
        size,
        truncated: contents.cut,
        line_count,
        metadata,
        warning,
    }
}

fn warning(contents: &Contents, size: u64, max_size: u64, server_limit: u64) -> String {
    let is_own = max_size <= server_limit;
    let limit = match is_own {
        true => format!("max_size is {max_size}"),
        false => format!("the server's maximum is {server_limit}"),
    };
    let advice = match contents.body.line_count() {
        // A line number is no help if a single line is longer than a reply.
        0 | 1 if is_own => "give a larger max_size to read more",
        _ => "use start_line and end_line to read other parts",
    };
    format!(
        "Truncated: only {size} bytes are returned of a file of {} bytes, because {limit}; {advice}",
        contents.size
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(start: Option<u64>, end: Option<u64>) -> Option<(i64, Option<u64>)> {
        match range(start, end) {
            Ok(ReadRange::Lines { offset, limit }) => Some((offset, limit)),
            _ => None,
        }
    }

    #[test]
    fn lines_count_from_zero_and_include_the_last() {
        assert_eq!(range(None, None).unwrap(), ReadRange::Whole);
        assert_eq!(lines(Some(0), Some(0)), Some((1, Some(1))));
        assert_eq!(lines(Some(2), Some(4)), Some((3, Some(3))));
        assert_eq!(lines(Some(2), None), Some((3, None)));
        assert_eq!(lines(None, Some(4)), Some((1, Some(5))));
        assert_eq!(lines(Some(u64::MAX), None), Some((i64::MAX, None)));
        assert_eq!(lines(None, Some(u64::MAX)), Some((1, Some(u64::MAX))));
        assert!(range(Some(3), Some(2)).is_err());
    }
}
