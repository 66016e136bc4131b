//! `read_file`: a file's content, whole or in part.

use ops::text::encoding::to_base64;
use ops::{
    Body, Contents, Encoding, Error, InlineRead, Operation, Oversize, Read, ReadRange, StoredForm,
    TextPolicy, Totals,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::errors::{Workspace, operation_message};
use super::versions::{may_change, noted, told};
use crate::arguments::shortened;
use crate::contract::{NamedPlace, names_of, names_shown};
use crate::defaults::yes;
use crate::deployment::ReplyHalves;
use crate::history::moment;
use crate::json_text::{JsonContent, JsonText};
use crate::media::{Media, MediaFacts, recognized};
use crate::text_form::{binary, human_size, shown};
use crate::tool::{Call, Inline, RootUse, Tool, ToolEffect, Weight};

pub(super) struct ReadFileTool;

#[derive(Deserialize, JsonSchema)]
pub(super) struct Arguments {
    /// A name from list_roots.
    root: String,
    path: Option<String>,
    /// Several files instead of path.
    #[schemars(length(min = 1, max = 50))]
    paths: Option<Vec<String>>,
    /// First byte, from 0. Bytes and lines do not go together.
    offset_bytes: Option<u64>,
    #[schemars(range(min = 1))]
    limit_bytes: Option<u64>,
    /// First line, from 1; -20 begins at the last 20 lines.
    offset_lines: Option<i64>,
    #[schemars(range(min = 1))]
    limit_lines: Option<u64>,
    /// Whether the text has line numbers.
    #[serde(default = "yes")]
    line_numbers: bool,
    /// Of a file that is not UTF-8, such as shift_jis.
    encoding: Option<String>,
    /// Of .gz and .zst, the content.
    #[serde(default)]
    decompress: bool,
    /// As it was just before a change or a time.
    at: Option<String>,
}

/// A file's content, or the part of it that was asked for; with paths those of several files.
#[derive(Serialize, JsonSchema)]
pub(super) struct Reply {
    /// Name of the root.
    root: String,
    /// The one file.
    #[serde(flatten)]
    file: Option<FileReply>,
    /// With paths: each file, or why it could not be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    files: Option<Vec<BatchFile>>,
}

/// One file of several.
#[derive(Serialize, JsonSchema)]
struct BatchFile {
    /// What was read.
    #[serde(flatten)]
    file: Option<FileReply>,
    /// Why nothing was.
    #[serde(flatten)]
    failed: Option<FailedFile>,
}

/// A file that could not be read.
#[derive(Serialize, JsonSchema)]
struct FailedFile {
    /// The file as it was given.
    path: String,
    /// Why it could not be read.
    error: String,
}

/// A file's content.
#[derive(Serialize, JsonSchema)]
struct FileReply {
    /// The file, relative to the root, links resolved.
    path: String,
    /// The content, without line numbers; left out if it is an image or sound, which comes as a block of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    content: Option<JsonContent>,
    /// utf-8, or base64 if the content is not text.
    encoding: &'static str,
    /// The file's own encoding, if it is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    decoded_from: Option<&'static str>,
    /// The MIME type of an image or sound.
    #[serde(skip_serializing_if = "Option::is_none")]
    mime_type: Option<&'static str>,
    /// Size of the whole file in bytes; of its whole content, if that was decompressed.
    size: u64,
    /// How many lines the whole file has; not for reads by bytes, nor if counting them would take too long.
    #[serde(skip_serializing_if = "Option::is_none")]
    lines_total: Option<u64>,
    /// Number of the first line returned.
    #[serde(skip_serializing_if = "Option::is_none")]
    start_line: Option<u64>,
    /// Number of the last line returned.
    #[serde(skip_serializing_if = "Option::is_none")]
    end_line: Option<u64>,
    /// The file's version, for if_version; left out if the root allows no change.
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<String>,
    /// True if more of the file follows after what was returned.
    truncated: bool,
    /// True if the file is not text.
    binary: bool,
    /// Why nothing was returned; or where the last line was cut and continues; or the encoding that
    /// was used.
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
    #[serde(skip)]
    line_numbers: bool,
    /// How to read on, for the text.
    #[serde(skip)]
    more: Option<String>,
    #[serde(skip)]
    media: Option<(MediaFacts, String)>,
}

impl Tool for ReadFileTool {
    type Arguments = Arguments;
    type Reply = Reply;

    const NAME: &'static str = "read_file";
    const TITLE: &'static str = "Read a file";
    const DESCRIPTION: &'static str = "Reads a file, or several at once; images come as images. A file over the server's limit (1 MB \
        unless configured) has to be read in parts: by lines, or by bytes, which is quick in huge files. Line numbers in the \
        reply are not part of the file. Use grep to find where to read.";
    const CONTENT: &'static [&'static str] = &[];
    const EFFECT: ToolEffect = ToolEffect::Read;
    const LARGE_REPLIES: bool = true;
    const ROOTS: &'static [RootUse] = &[RootUse::READ];
    const TRY_INLINE: bool = true;

    fn run(arguments: Arguments, call: &Call) -> ops::Result<Reply> {
        if let Some(paths) = &arguments.paths {
            return several(&arguments, paths, call);
        }
        let contents = read(&arguments, request(&arguments, call)?, call)?;
        Ok(one(&arguments, contents, call))
    }

    fn try_inline(arguments: Arguments, call: &Call) -> Inline<Reply> {
        if arguments.paths.is_some() || arguments.at.is_some() {
            return Inline::Later(Box::new(|call| Self::run(arguments, call)), Weight::Heavy);
        }
        match request(&arguments, call).map(|request| request.try_inline(&call.context)) {
            Err(error) => Inline::Done(Err(error)),
            Ok(InlineRead::Done(read)) => {
                Inline::Done(read.map(|contents| one(&arguments, contents, call)))
            }
            Ok(InlineRead::Later(rest)) => {
                let weight = Weight::of_read(&rest);
                let rest = move |call: &Call| Ok(one(&arguments, rest.run(&call.context)?, call));
                Inline::Later(Box::new(rest), weight)
            }
        }
    }

    fn json_text(reply: &Reply, replies: ReplyHalves) -> Option<JsonText> {
        if let Some(file) = &reply.file {
            return Some(file.text(replies));
        }
        let mut text = JsonText::default();
        for file in reply.files.iter().flatten() {
            file.add_to(&mut text, replies);
        }
        text.pop_line_end();
        Some(text)
    }

    fn media(reply: &mut Reply) -> Option<Media> {
        let (facts, data) = reply.file.as_mut()?.media.take()?;
        Some(Media {
            kind: facts.kind,
            mime_type: facts.mime_type,
            data,
            uri: None,
        })
    }
}

impl BatchFile {
    /// Adds the file to the text of all files.
    fn add_to(&self, text: &mut JsonText, replies: ReplyHalves) {
        if let Some(file) = &self.file {
            text.push_line(&format!("==> {} <==", shown(&file.path)).into());
            let mut content = file.text(replies);
            while content.pop_line_end() {}
            text.push_line(&content);
        } else if let Some(failed) = &self.failed {
            let path = shown(&failed.path);
            text.push_line(&format!("==> {path} <== error: {}", failed.error).into());
        }
    }
}

impl FileReply {
    fn text(&self, replies: ReplyHalves) -> JsonText {
        let Some(content) = &self.content else {
            return self.note.as_deref().unwrap_or_default().into();
        };
        if self.binary {
            return binary(&self.path, self.size, content.text(), replies);
        }
        let mut text = match self.start_line {
            Some(first) if self.line_numbers => content.numbered(first),
            _ => content.text().clone(),
        };
        // A request without line numbers wants the content as it is.
        let version = self.version.as_deref().filter(|_| self.line_numbers);
        let version = version.map(noted);
        let notes = [&self.note, &self.more, &version].into_iter().flatten();
        let notes: Vec<&str> = notes.map(|note| note.trim_end_matches('.')).collect();
        text.note(&notes);
        text
    }
}

/// Reads several files, each whole or the same part of it. All of them together may have as many bytes as one whole file.
fn several(arguments: &Arguments, paths: &[String], call: &Call) -> ops::Result<Reply> {
    if arguments.path.is_some() {
        return Err(wrong("paths", "give path or paths, not both"));
    }
    let mut room = call.context.limits.max_full_read_size;
    let mut files = Vec::with_capacity(paths.len());
    for path in paths {
        call.context.cancel.check()?;
        files.push(one_of_several(arguments, path, &mut room, call)?);
    }
    Ok(Reply {
        root: arguments.root.clone(),
        file: None,
        files: Some(files),
    })
}

/// One file of several, which takes some of the room that is left; or why it could not be read.
fn one_of_several(
    arguments: &Arguments,
    path: &str,
    room: &mut u64,
    call: &Call,
) -> ops::Result<BatchFile> {
    match read_within(*room, arguments, path, call) {
        Ok(contents) => {
            *room = room.saturating_sub(contents.body.as_bytes().len() as u64);
            Ok(BatchFile {
                file: Some(file_reply(arguments, contents, call)),
                failed: None,
            })
        }
        Err(error @ (Error::Cancelled | Error::Timeout)) => Err(error),
        Err(error) => Ok(BatchFile {
            file: None,
            failed: Some(failed(arguments, path, error, call)),
        }),
    }
}

fn read_within(room: u64, arguments: &Arguments, path: &str, call: &Call) -> ops::Result<Contents> {
    let request = Read {
        max_bytes: Some(room.max(1)),
        ..request_of(arguments, path, room, call)?
    };
    read(arguments, request, call)
}

/// One file of several that could not be read. A violation is logged, because the call itself does not fail.
fn failed(arguments: &Arguments, path: &str, error: Error, call: &Call) -> FailedFile {
    let most = call.context.limits.max_full_read_size;
    let message = names_shown(&failure(&error, most), &names_of(&error));
    let place = NamedPlace {
        root: Some(arguments.root.clone()),
        path: Some(path.to_owned()),
    };
    call.record_violation(&Workspace, ReadFileTool::NAME, place, error.into());
    FailedFile {
        path: path.to_owned(),
        error: message,
    }
}

/// Reads a file as it is, or as it was.
fn read(arguments: &Arguments, request: Read, call: &Call) -> ops::Result<Contents> {
    match &arguments.at {
        None => request.run(&call.context),
        Some(at) => request.run_at(&moment("at", at)?, &call.context),
    }
}

fn failure(error: &Error, most: u64) -> String {
    match error {
        Error::TooLarge { size, .. } if *size <= most => {
            format!("the {most} bytes of one call are used up; read it in another call")
        }
        error => operation_message(error, ReadFileTool::NAME),
    }
}

fn one(arguments: &Arguments, contents: Contents, call: &Call) -> Reply {
    let facts = match (&contents.body, arguments.range()) {
        (Body::Bytes(bytes), Ok(ReadRange::Whole)) if call.replies.text() => recognized(bytes),
        _ => None,
    };
    let mut file = file_reply(arguments, contents, call);
    if let Some(facts) = facts {
        file.note = Some(about(&file, &facts));
        file.mime_type = Some(facts.mime_type);
        file.media = file
            .content
            .take()
            .map(|data| (facts, data.text().decoded()));
    }
    Reply {
        root: arguments.root.clone(),
        file: Some(file),
        files: None,
    }
}

/// An image or sound in one line.
fn about(file: &FileReply, facts: &MediaFacts) -> String {
    let name = file.path.rsplit('/').next().unwrap_or(&file.path);
    let pixels = facts
        .pixels
        .map_or_else(String::new, |(width, height)| format!(", {width}x{height}"));
    let size = human_size(file.size, " ");
    format!("{}: {}{pixels}, {size}", shown(name), facts.name)
}

fn request(arguments: &Arguments, call: &Call) -> ops::Result<Read> {
    let Some(path) = &arguments.path else {
        return Err(wrong("path", "it is required, or paths for several files"));
    };
    let most = call.context.limits.max_full_read_size;
    request_of(arguments, path, most, call)
}

/// A read of one file; a whole read is refused if the file has more than `most` bytes.
fn request_of(arguments: &Arguments, path: &str, most: u64, call: &Call) -> ops::Result<Read> {
    Ok(Read {
        place: call.place(path)?.versioned(None),
        range: arguments.range()?,
        max_bytes: None,
        oversize: Oversize::Refuse { over: most },
        text: text_policy(arguments.encoding.as_deref())?,
        totals: Totals::Count,
        form: if arguments.decompress {
            StoredForm::Decompressed
        } else {
            StoredForm::AsStored
        },
    })
}

fn text_policy(encoding: Option<&str>) -> ops::Result<TextPolicy> {
    let Some(name) = encoding else {
        return Ok(TextPolicy::DetectLegacy);
    };
    match Encoding::for_label(name.as_bytes()) {
        Some(encoding) => Ok(TextPolicy::Encoding(encoding)),
        None => Err(wrong(
            "encoding",
            &format!(
                "{} is no name of an encoding; names are those of the WHATWG, such as windows-1252, shift_jis or utf-16le",
                shortened(name)
            ),
        )),
    }
}

fn wrong(argument: &'static str, reason: &str) -> Error {
    Error::InvalidArgument {
        argument,
        reason: reason.to_owned(),
    }
}

impl Arguments {
    fn range(&self) -> ops::Result<ReadRange> {
        let by_bytes = self.offset_bytes.is_some() || self.limit_bytes.is_some();
        let by_lines = self.offset_lines.is_some() || self.limit_lines.is_some();
        match (by_bytes, by_lines) {
            (true, true) => Err(wrong(byte_argument(self), NOT_BOTH)),
            (true, false) => Ok(ReadRange::Bytes {
                offset: self.offset_bytes.unwrap_or(0),
                limit: self.limit_bytes,
            }),
            (false, true) if self.offset_lines == Some(0) => Err(wrong(
                "offset_lines",
                "lines count from 1; negative numbers count from the end",
            )),
            (false, true) => Ok(ReadRange::Lines {
                offset: self.offset_lines.unwrap_or(1),
                limit: self.limit_lines,
            }),
            (false, false) => Ok(ReadRange::Whole),
        }
    }
}

const NOT_BOTH: &str = "byte and line parameters are mutually exclusive; give offset_bytes/limit_bytes or \
     offset_lines/limit_lines, not both";

/// The argument of the byte kind that was given.
fn byte_argument(arguments: &Arguments) -> &'static str {
    match arguments.offset_bytes {
        Some(_) => "offset_bytes",
        None => "limit_bytes",
    }
}

fn file_reply(arguments: &Arguments, contents: Contents, call: &Call) -> FileReply {
    let version = contents.version.as_ref();
    let version = told(version.filter(|_| may_change(&arguments.root, call)));
    let note = note(arguments, &contents);
    let more = more(&contents)
        .filter(|_| !contents.body.as_bytes().is_empty() && !is_cut_line(arguments, &contents));
    let (content, encoding) = match contents.body {
        Body::Text(text) => (text.into(), "utf-8"),
        Body::Bytes(bytes) => (JsonContent::of_base64(to_base64(&bytes)), "base64"),
    };
    FileReply {
        path: contents.path,
        content: Some(content),
        encoding,
        decoded_from: contents.decoded_from,
        mime_type: None,
        size: contents.size,
        lines_total: contents.lines_total,
        start_line: contents.start_line,
        end_line: contents.end_line,
        version,
        truncated: contents.truncated,
        binary: contents.binary,
        note,
        line_numbers: arguments.line_numbers,
        more,
        media: None,
    }
}

/// Says which part was read, where more follows, and how to go on.
fn more(contents: &Contents) -> Option<String> {
    if !contents.truncated {
        return None;
    }
    Some(match (contents.start_line, contents.end_line) {
        (Some(first), Some(last)) => {
            let total = contents.lines_total;
            let total = total.map_or_else(String::new, |total| format!(" of {total}"));
            let next = last + 1;
            format!("lines {first}-{last}{total}; go on with offset_lines: {next}")
        }
        _ => more_bytes(contents),
    })
}

fn more_bytes(contents: &Contents) -> String {
    let (first, next) = (contents.start_byte, contents.end_byte);
    let last = next.saturating_sub(1);
    // If the text was decoded, the file's size does not tell where it ends.
    let size = match contents.decoded_from {
        None => format!(" of {}", contents.size),
        Some(_) => String::new(),
    };
    format!("bytes {first}-{last}{size}; go on with offset_bytes: {next}")
}

/// Says where a cut line continues when its line number cannot.
fn cut_line(contents: &Contents) -> Option<String> {
    let next = contents.end_byte;
    (!contents.body.as_bytes().ends_with(b"\n")).then(|| {
        format!(
            "The last line is too long for one reply and was cut; go on with offset_bytes {next}."
        )
    })
}

/// Whether a line was too long for the reply.
fn is_cut_line(arguments: &Arguments, contents: &Contents) -> bool {
    let by_lines = arguments.offset_lines.is_some() || arguments.limit_lines.is_some();
    contents.cut && by_lines && !contents.body.as_bytes().ends_with(b"\n")
}

/// Says in which encoding a file was read if the call did not name one.
fn guessed_encoding(arguments: &Arguments, contents: &Contents) -> Option<String> {
    let encoding = contents.decoded_from?;
    arguments
        .encoding
        .is_none()
        .then(|| format!("Not UTF-8: read as {encoding}; give encoding if that is wrong."))
}

/// The remarks about what was read, or why there is nothing.
fn note(arguments: &Arguments, contents: &Contents) -> Option<String> {
    if is_cut_line(arguments, contents) {
        return cut_line(contents);
    }
    if !contents.body.as_bytes().is_empty() {
        return guessed_encoding(arguments, contents);
    }
    Some(why_empty(arguments, contents))
}

/// An empty reply says why it is empty, so that an agent does not take it for an empty file.
fn why_empty(arguments: &Arguments, contents: &Contents) -> String {
    let size = contents.size;
    let (line, offset) = (arguments.offset_lines, arguments.offset_bytes);
    match (line, contents.lines_total, offset) {
        _ if size == 0 => "The file is empty.".to_owned(),
        (Some(line), Some(total), _) => {
            format!("Nothing at line {line}: the file has {total} lines.")
        }
        (.., Some(offset)) if offset < size => {
            format!("No character begins at byte {offset} or right after it; raise limit_bytes.")
        }
        (.., Some(offset)) => format!("Nothing at byte {offset}: the file has {size} bytes."),
        _ => "Nothing was read.".to_owned(),
    }
}
