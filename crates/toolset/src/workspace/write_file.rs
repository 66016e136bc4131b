//! `write_file`: the content of a file or of several, made, replaced or added to.

use ops::text::encoding::from_base64;
use ops::{
    Error, FileToWrite, Operation, Parents, SyntaxCheck, Write, WriteEffect, WriteFiles, WriteMode,
    Written,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::edit_words::syntax_warnings;
use super::versions::{add_version, in_line, told, versioned};
use crate::deployment::ReplyHalves;
use crate::text_form::{TextLines, shown};
use crate::tool::{Call, RootUse, Tool, ToolEffect};

pub(super) struct WriteFile;

#[derive(Deserialize, JsonSchema)]
pub(super) struct Arguments {
    /// A name from list_roots.
    root: String,
    path: Option<String>,
    content: Option<String>,
    /// create_only fails if the file exists.
    #[serde(default)]
    mode: Mode,
    /// base64 for bytes.
    #[serde(default)]
    encoding: Encoding,
    /// Version from an earlier reply; fails if the file changed.
    if_version: Option<String>,
    /// Instead of path and content.
    #[schemars(length(min = 1, max = 200))]
    files: Option<Vec<FileArgument>>,
}

#[derive(Deserialize, JsonSchema)]
struct FileArgument {
    path: String,
    content: String,
    #[serde(default)]
    mode: Mode,
    #[serde(default)]
    encoding: Encoding,
    if_version: Option<String>,
}

#[derive(Deserialize, Serialize, JsonSchema, Default, Clone, Copy)]
#[serde(rename_all = "snake_case")]
enum Mode {
    #[default]
    Overwrite,
    Append,
    CreateOnly,
}

#[derive(Deserialize, Serialize, JsonSchema, Default, Clone, Copy)]
enum Encoding {
    #[default]
    #[serde(rename = "utf-8")]
    Utf8,
    #[serde(rename = "base64")]
    Base64,
}

/// What was written.
#[derive(Serialize, JsonSchema)]
pub(super) struct Reply {
    /// Name of the root.
    root: String,
    /// The first file, relative to the root.
    path: String,
    /// How many bytes were written to it.
    size: u64,
    /// The mode that was used for it.
    mode: Mode,
    /// True if it is new.
    created: bool,
    /// The file's version now, for if_version.
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<String>,
    /// All files, if several were asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    files: Vec<FileReply>,
    /// Files that parsed before and do not now, or are new and do not parse.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
}

/// A file that was written.
#[derive(Serialize, JsonSchema)]
struct FileReply {
    /// The file, relative to the root.
    path: String,
    /// How many bytes were written.
    size: u64,
    /// The mode that was used.
    mode: Mode,
    /// True if the file is new.
    created: bool,
    /// The file's version now, for if_version.
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<String>,
}

impl Tool for WriteFile {
    type Arguments = Arguments;
    type Reply = Reply;

    const NAME: &'static str = "write_file";
    const TITLE: &'static str = "Write a file";
    const DESCRIPTION: &'static str = "Writes a whole file, or several (all or none), and makes missing parent directories; readers never see a \
        part of it. To change a part use edit_file.";
    const CONTENT: &'static [&'static str] = &["content"];
    const EFFECT: ToolEffect = ToolEffect::Write {
        destructive: false,
        idempotent: false,
    };
    const ROOTS: &'static [RootUse] = &[RootUse::WRITE];
    const REPLACES_CONTENT: bool = true;

    fn run(arguments: Arguments, call: &Call) -> ops::Result<Reply> {
        let several = arguments.files.is_some();
        let (root, files) = arguments.into_files()?;
        let modes: Vec<Mode> = files.iter().map(|file| file.mode).collect();
        let written = if several {
            let files = files.into_iter().map(|file| file.into_request(call));
            let files = files.collect::<ops::Result<_>>()?;
            WriteFiles { files }.run(&call.context)?
        } else {
            let each = files.into_iter().map(|file| write_one(file, call));
            each.collect::<ops::Result<_>>()?
        };
        Ok(reply(root, &written, &modes, several))
    }

    fn text(reply: &Reply, _replies: ReplyHalves) -> Option<String> {
        let mut text = TextLines::default();
        if reply.files.is_empty() {
            text.line(described(
                &reply.path,
                reply.size,
                reply.mode,
                reply.created,
            ));
            add_version(&mut text, reply.version.as_deref());
        }
        for file in &reply.files {
            let line = described(&file.path, file.size, file.mode, file.created);
            text.line(format_args!("{line}{}", in_line(file.version.as_deref())));
        }
        for warning in &reply.warnings {
            text.note(warning);
        }
        Some(text.finish())
    }
}

impl Arguments {
    /// The files to write, of which there is one unless several were named.
    fn into_files(self) -> ops::Result<(String, Vec<FileArgument>)> {
        let missing = |argument, reason: &str| Error::InvalidArgument {
            argument,
            reason: reason.to_owned(),
        };
        match (self.files, self.path, self.content) {
            (Some(_), None, None) if self.if_version.is_some() => {
                Err(missing("if_version", "give it in the items of files"))
            }
            (Some(files), None, None) => Ok((self.root, files)),
            (Some(_), _, _) => Err(missing("files", "give either files, or path and content")),
            (None, Some(path), Some(content)) => {
                let (mode, encoding) = (self.mode, self.encoding);
                let file = FileArgument {
                    path,
                    content,
                    mode,
                    encoding,
                    if_version: self.if_version,
                };
                Ok((self.root, vec![file]))
            }
            (None, None, _) => Err(missing("path", "it is required, unless files is given")),
            (None, _, None) => Err(missing("content", "it is required, unless files is given")),
        }
    }
}

impl FileArgument {
    fn into_request(self, call: &Call) -> ops::Result<FileToWrite> {
        Ok(FileToWrite {
            place: versioned(call.place(&self.path)?, self.if_version.as_deref())?,
            bytes: match self.encoding {
                Encoding::Utf8 => self.content.into_bytes(),
                Encoding::Base64 => from_base64(&self.content)?,
            },
            mode: match self.mode {
                Mode::Overwrite => WriteMode::Overwrite,
                Mode::Append => WriteMode::Append,
                Mode::CreateOnly => WriteMode::CreateOnly,
            },
        })
    }
}

fn write_one(file: FileArgument, call: &Call) -> ops::Result<Written> {
    let FileToWrite { place, bytes, mode } = file.into_request(call)?;
    let write = Write {
        place,
        bytes,
        mode,
        parents: Parents::Create,
        syntax: SyntaxCheck::Warn,
    };
    write.run(&call.context)
}

fn reply(root: String, written: &[Written], modes: &[Mode], several: bool) -> Reply {
    let files = written.iter().zip(modes).map(|(written, mode)| FileReply {
        path: written.path.clone(),
        size: written.bytes_written,
        mode: *mode,
        created: written.effect == WriteEffect::Created,
        version: told(written.version.as_ref()),
    });
    let mut files: Vec<FileReply> = files.collect();
    let faults = written.iter();
    let faults = faults.map(|file| (file.path.as_str(), file.fault.as_ref()));
    let first = files.first();
    let reply = Reply {
        root,
        path: first.map(|file| file.path.clone()).unwrap_or_default(),
        size: first.map_or(0, |file| file.size),
        mode: first.map(|file| file.mode).unwrap_or_default(),
        created: first.is_some_and(|file| file.created),
        version: first.and_then(|file| file.version.clone()),
        warnings: syntax_warnings(faults),
        files: Vec::new(),
    };
    if !several {
        files.clear();
    }
    Reply { files, ..reply }
}

/// What happened to a file, in one line.
fn described(path: &str, size: u64, mode: Mode, created: bool) -> String {
    let path = shown(path);
    let done = match mode {
        _ if created => "created",
        Mode::Append => "appended",
        Mode::Overwrite | Mode::CreateOnly => "replaced",
    };
    format!("{path}: {done}, {size} bytes")
}
