//! `view`: a file's content or a directory's names.

use ops::text::encoding::to_base64;
use ops::{
    Body, Contents, Detail, Error, Hidden, LargeText, List, Listed, Operation, Oversize, Place,
    Read, ReadOrLeft, ReadRange, StoredForm, TextPolicy, Totals,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::deployment::ReplyHalves;
use crate::json::escaped_length;
use crate::json_text::{JsonContent, JsonText};
use crate::streamed_content::StreamedContent;
use crate::text_form::{TextLines, binary, shown};
use crate::tool::{Call, PlaceAccess, RootUse, Tool, ToolEffect};

/// The largest text that is held whole for its reply.
const HELD_MAX: u64 = 1024 * 1024;
/// Ends the content of a file that changed while it was sent.
const CHANGED: &str =
    "\n[the file changed while it was sent: what follows is left out; view it again]";

pub(super) struct ViewTool;

#[derive(Deserialize, JsonSchema)]
pub(super) struct Arguments {
    path: String,
    /// The first and the last line of a file to return, from 1; -1 as the last is the end.
    #[schemars(length(min = 2, max = 2))]
    view_range: Option<Vec<i64>>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum ViewedKind {
    File,
    Directory,
}

/// A file's content or a directory's names.
#[derive(Serialize, JsonSchema)]
pub(super) struct Reply {
    /// What the path names.
    #[serde(rename = "type")]
    kind: ViewedKind,
    /// The whole content of a file: text, or base64 if it is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    content: Option<JsonContent>,
    /// How content is written: utf-8 or base64.
    #[serde(skip_serializing_if = "Option::is_none")]
    encoding: Option<&'static str>,
    /// Size of the file in bytes, before any base64.
    #[serde(skip_serializing_if = "Option::is_none")]
    size: Option<u64>,
    /// The names in a directory, sorted by Unicode code point, without hidden ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    entries: Option<Vec<String>>,
    /// Said only if it is true: lines of view_range are left out because they are too much for a reply, or the directory
    /// holds more than a million names.
    #[serde(skip_serializing_if = "Option::is_none")]
    truncated: Option<bool>,
    /// Where lines are left out: the first of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_line: Option<u64>,
    /// Said only if it is true: bytes of some names are not UTF-8. The names shown here still open the files.
    #[serde(skip_serializing_if = "Option::is_none")]
    invalid_utf8: Option<bool>,
    /// The content of a large file, which is still there.
    #[serde(skip)]
    streamed: Option<StreamedContent>,
}

impl Tool for ViewTool {
    type Arguments = Arguments;
    type Reply = Reply;

    const NAME: &'static str = "view";
    const TITLE: &'static str = "View a file or directory";
    const DESCRIPTION: &'static str = "Reads a file, or lists the names in a directory; \".\" is everything. Names that begin with a dot are not \
        listed but can be viewed. Large files: in parts, with view_range.";
    const CONTENT: &'static [&'static str] = &[];
    const EFFECT: ToolEffect = ToolEffect::Read;
    const LARGE_REPLIES: bool = true;
    const ROOTS: &'static [RootUse] = &[RootUse::home("path", PlaceAccess::Read)];

    fn run(arguments: Arguments, call: &Call) -> ops::Result<Reply> {
        let place = call.place(&arguments.path)?.relative()?;
        let read = Read {
            place: place.clone(),
            range: range(arguments.view_range.as_deref())?,
            max_bytes: None,
            // What can be edited can be viewed, unless the operator chose a limit.
            oversize: Oversize::Refuse {
                over: call.context.limits.max_viewed_size,
            },
            text: TextPolicy::Utf8,
            totals: Totals::Skip,
            form: StoredForm::AsStored,
        };
        let mut json_bytes = 0;
        let told = |piece: &str| json_bytes += escaped_length(piece);
        let largest = if call.may_stream() {
            HELD_MAX
        } else {
            u64::MAX
        };
        match read.run_or_leave(largest, &call.context, told) {
            Err(Error::IsADirectory { .. }) => Ok(directory(&listed(place, call)?)),
            Ok(ReadOrLeft::Left(text)) => Ok(large(text, json_bytes)),
            Ok(ReadOrLeft::Read(contents)) => Ok(file(contents)),
            Err(error) => Err(error),
        }
    }

    fn streamed(reply: &mut Reply) -> Option<StreamedContent> {
        reply.streamed.take()
    }

    fn json_text(reply: &Reply, replies: ReplyHalves) -> Option<JsonText> {
        if let Some(entries) = &reply.entries {
            return Some(names(entries, reply.truncated == Some(true)).into());
        }
        let content = reply.content.as_ref()?.text();
        let mut text = match reply.encoding {
            Some("utf-8") => content.clone(),
            _ => binary("the file", reply.size.unwrap_or(0), content, replies),
        };
        if let Some(line) = reply.next_line {
            text.note(&[&format!(
                "cut, because it is too much for a reply; go on with view_range [{line}, -1]"
            )]);
        }
        Some(text)
    }
}

fn listed(place: Place, call: &Call) -> ops::Result<Listed> {
    let list = List {
        place,
        max_depth: Some(1),
        hidden: Hidden::Skip,
        pattern: None,
        detail: Detail::Names,
        max_entries: List::MAX_ENTRIES,
    };
    list.run(&call.context)
}

/// The lines that a range names.
fn range(range: Option<&[i64]>) -> ops::Result<ReadRange> {
    let invalid = |reason: String| Error::InvalidArgument {
        argument: "view_range",
        reason,
    };
    match range {
        None => Ok(ReadRange::Whole),
        Some(&[first, last]) if first >= 1 && (last == -1 || last >= first) => {
            Ok(ReadRange::Lines {
                offset: first,
                limit: u64::try_from(last - first + 1).ok().filter(|_| last != -1),
            })
        }
        Some(other) => Err(invalid(format!(
            "must be [first, last] with lines from 1, or -1 as the last, got {other:?}"
        ))),
    }
}

fn names(entries: &[String], is_truncated: bool) -> String {
    let mut lines = TextLines::default();
    for name in entries {
        lines.line(shown(name));
    }
    if entries.is_empty() {
        lines.note("the directory is empty, or has only hidden names");
    }
    if is_truncated {
        lines.note("the directory has more names");
    }
    lines.finish()
}

fn file(contents: Contents) -> Reply {
    let size = contents.size;
    // A single line that is too long is cut, and its rest left out.
    let next_line = contents.end_line.filter(|_| contents.cut);
    let next_line = next_line.map(|last| last.saturating_add(1));
    let (content, encoding) = match contents.body {
        Body::Text(text) => (text.into(), "utf-8"),
        Body::Bytes(bytes) => (JsonContent::of_base64(to_base64(&bytes)), "base64"),
    };
    Reply {
        kind: ViewedKind::File,
        content: Some(content),
        encoding: Some(encoding),
        size: Some(size),
        entries: None,
        truncated: contents.cut.then_some(true),
        next_line,
        invalid_utf8: None,
        streamed: None,
    }
}

/// A text that stays in its file until it is sent.
fn large(text: LargeText, json_bytes: usize) -> Reply {
    Reply {
        kind: ViewedKind::File,
        content: Some(JsonContent::streamed()),
        encoding: Some("utf-8"),
        size: Some(text.size()),
        entries: None,
        truncated: None,
        next_line: None,
        invalid_utf8: None,
        streamed: Some(StreamedContent::new(text, json_bytes, CHANGED)),
    }
}

fn directory(listed: &Listed) -> Reply {
    let is_odd = listed.entries.iter().any(|entry| entry.facts.invalid_utf8);
    let names = listed.entries.iter().map(|entry| entry.name().to_owned());
    let mut names: Vec<String> = names.collect();
    // The listing is in byte order, which is not the order of what is shown for names that are not UTF-8.
    names.sort_unstable();
    Reply {
        kind: ViewedKind::Directory,
        content: None,
        encoding: None,
        size: None,
        entries: Some(names),
        truncated: listed.truncated.then_some(true),
        next_line: None,
        invalid_utf8: is_odd.then_some(true),
        streamed: None,
    }
}
