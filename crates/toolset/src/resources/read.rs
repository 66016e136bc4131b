//! `resources/read`: a file as text or bytes, a directory as its listing.

use ops::text::encoding::to_base64;
use ops::{
    Body, Contents, Detail, Error, Hidden, InlineRead, List, Listed, Operation, Oversize, Read,
    ReadRange, StoredForm, TextPolicy, Totals,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::listing::{DIRECTORY, is_directory, size};
use crate::json_text::JsonContent;
use crate::text_form::{TextLines, shown, shown_directory};
use crate::tool::{Call, Inline, RootUse, Tool, ToolEffect, Weight};

/// The most entries of a directory that one resource shows.
const ENTRIES_MAX: usize = 10_000;
/// How many bytes tell the type of a file.
const HEAD: usize = 8 * 1024;

pub(super) struct ReadResource;

#[derive(Deserialize, JsonSchema)]
pub(super) struct Arguments {
    #[serde(rename = "root")]
    _root: String,
    path: String,
    /// The URI as the client wrote it.
    uri: String,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Reply {
    contents: [Content; 1],
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Content {
    uri: String,
    mime_type: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    text: Option<JsonContent>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    blob: Option<JsonContent>,
}

impl Tool for ReadResource {
    type Arguments = Arguments;
    type Reply = Reply;

    const NAME: &'static str = super::READ;
    const TITLE: &'static str = "Read a resource";
    const DESCRIPTION: &'static str = "Reads a file, or lists a directory.";
    const CONTENT: &'static [&'static str] = &[];
    const EFFECT: ToolEffect = ToolEffect::Read;
    const ROOTS: &'static [RootUse] = &[RootUse::READ];
    const TRY_INLINE: bool = true;

    fn run(arguments: Arguments, call: &Call) -> ops::Result<Reply> {
        match request(&arguments, call)?.run(&call.context) {
            Ok(contents) => Ok(file(&arguments, contents)),
            Err(Error::IsADirectory { .. }) => list(&arguments, call),
            Err(error) => Err(error),
        }
    }

    fn try_inline(arguments: Arguments, call: &Call) -> Inline<Reply> {
        match request(&arguments, call).map(|request| request.try_inline(&call.context)) {
            Err(error) => Inline::Done(Err(error)),
            Ok(InlineRead::Done(Err(Error::IsADirectory { .. }))) => {
                Inline::Later(Box::new(move |call| list(&arguments, call)), Weight::Heavy)
            }
            Ok(InlineRead::Done(read)) => {
                Inline::Done(read.map(|contents| file(&arguments, contents)))
            }
            Ok(InlineRead::Later(rest)) => {
                let weight = Weight::of_read(&rest);
                let rest = move |call: &Call| match rest.run(&call.context) {
                    Ok(contents) => Ok(file(&arguments, contents)),
                    Err(Error::IsADirectory { .. }) => list(&arguments, call),
                    Err(error) => Err(error),
                };
                Inline::Later(Box::new(rest), weight)
            }
        }
    }
}

fn request(arguments: &Arguments, call: &Call) -> ops::Result<Read> {
    Ok(Read {
        place: call.place(&arguments.path)?,
        range: ReadRange::Whole,
        max_bytes: None,
        oversize: Oversize::Refuse {
            over: call.context.limits.max_full_read_size,
        },
        // A client that writes the text back gets the file back.
        text: TextPolicy::Utf8,
        totals: Totals::Skip,
        form: StoredForm::AsStored,
    })
}

fn file(arguments: &Arguments, contents: Contents) -> Reply {
    let bytes = contents.body.as_bytes();
    let head = bytes.get(..HEAD).unwrap_or(bytes);
    let mime_type = ops::content_type(head, &contents.path);
    let (text, blob) = match contents.body {
        Body::Text(text) => (Some(text.into()), None),
        Body::Bytes(bytes) => (None, Some(JsonContent::of_base64(to_base64(&bytes)))),
    };
    Reply {
        contents: [Content {
            uri: arguments.uri.clone(),
            mime_type,
            text,
            blob,
        }],
    }
}

fn list(arguments: &Arguments, call: &Call) -> ops::Result<Reply> {
    let list = List {
        place: call.place(&arguments.path)?,
        max_depth: Some(1),
        hidden: Hidden::Include,
        pattern: None,
        detail: Detail::Metadata,
        max_entries: ENTRIES_MAX,
    };
    let text = lines(&list.run(&call.context)?);
    Ok(Reply {
        contents: [Content {
            uri: arguments.uri.clone(),
            mime_type: DIRECTORY,
            text: Some(text.into()),
            blob: None,
        }],
    })
}

/// One line an entry: its name, and of a file its size.
fn lines(listed: &Listed) -> String {
    let mut lines = TextLines::default();
    for entry in &listed.entries {
        let name = shown(entry.name());
        lines.line(match size(entry) {
            _ if is_directory(entry) => shown_directory(entry.name()),
            Some(size) => format!("{name}\t{size}"),
            None => format!("{name}\t{}", entry.facts.kind),
        });
    }
    if listed.truncated {
        lines.note("the directory has more entries; resources/directory/read gives all of them, page by page");
    }
    lines.finish()
}
