//! `patch_file`: a diff, for one file or for several, applied whole or not at all.

use std::sync::Arc;

use ops::text::patch::HunkPlace;
use ops::{Error, Patch, PatchTarget, Patched, Place, WriteEffect};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::edit_words::{ChangedPart, add_changes, syntax_warnings};
use super::versions::{add_version, in_line, told, versioned};
use crate::deployment::ReplyHalves;
use crate::text_form::{TextLines, counted, shown};
use crate::tool::{Call, Inline, RootUse, Tool, ToolEffect, Weight};

/// A longer patch takes its turn among heavy calls.
const LARGE_PATCH: usize = 256 * 1024;

pub(super) struct PatchFile;

#[derive(Deserialize, JsonSchema)]
pub(super) struct Arguments {
    /// A name from list_roots.
    root: String,
    /// The file, whatever its name in the patch.
    path: Option<String>,
    /// As `diff -u` writes it; a bare `@@` is fine.
    patch: String,
    /// Version of path from an earlier reply.
    if_version: Option<String>,
}

/// What was applied.
#[derive(Serialize, JsonSchema)]
pub(super) struct Reply {
    /// Name of the root.
    root: String,
    /// The first file, relative to the root.
    path: String,
    /// How many hunks were applied: all of them.
    hunks_applied: usize,
    /// Where each hunk went.
    hunks: Vec<HunkReply>,
    /// True if the first file is new.
    created: bool,
    /// Size of the first file now, in bytes.
    size: u64,
    /// The first file's version now, for if_version.
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<String>,
    /// All files, in the order of the patch.
    files: Vec<FileReply>,
    /// The first ten changes.
    changes: Vec<ChangedPart>,
    /// Files that parsed before and do not now.
    warnings: Vec<String>,
}

/// A file that was patched.
#[derive(Serialize, JsonSchema)]
struct FileReply {
    /// The file, relative to the root.
    path: String,
    /// How many hunks were applied to it.
    hunks_applied: u64,
    /// True if the file is new.
    created: bool,
    /// Size of the file now, in bytes.
    size: u64,
    /// The file's version now, for if_version.
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<String>,
}

/// Where a hunk went.
#[derive(Serialize, JsonSchema)]
struct HunkReply {
    /// The line of the new content where it begins.
    line: u64,
    /// How many lines it was shifted from where its header said.
    offset: i64,
}

impl Tool for PatchFile {
    type Arguments = Arguments;
    type Reply = Reply;

    const NAME: &'static str = "patch_file";
    const TITLE: &'static str = "Patch files";
    const DESCRIPTION: &'static str = "Changes parts of a file by a unified diff; without path, all files that the diff names. All hunks apply or \
        nothing changes. Context and removed lines have to be in the file, in one place or at the line of the \
        header; counts may be wrong. A missing file counts as empty. For small changes use edit_file.";
    const CONTENT: &'static [&'static str] = &["patch"];
    const EFFECT: ToolEffect = ToolEffect::Write {
        destructive: false,
        idempotent: false,
    };
    const ROOTS: &'static [RootUse] = &[RootUse::WRITE];
    const REPLACES_CONTENT: bool = true;
    const TRY_INLINE: bool = true;

    fn weight(arguments: &Arguments) -> Weight {
        if arguments.patch.len() > LARGE_PATCH {
            Weight::Heavy
        } else {
            Weight::Small
        }
    }

    fn try_inline(arguments: Arguments, call: &Call) -> Inline<Reply> {
        let weight = match Self::weight(&arguments) {
            Weight::Heavy => Weight::Heavy,
            Weight::Small => Weight::of_edit(&places(&arguments, call)),
        };
        Inline::Later(Box::new(|call| Self::run(arguments, call)), weight)
    }

    fn run(arguments: Arguments, call: &Call) -> ops::Result<Reply> {
        let patch = Patch {
            target: target(&arguments, call)?,
            patch: arguments.patch,
        };
        let names_files = arguments.path.is_none();
        let take_names = |names| {
            if names_files {
                call.found_paths.add(names);
            }
        };
        let patched = patch.run_naming(&call.context, take_names)?;
        Ok(reply(arguments.root, &patched))
    }

    fn text(reply: &Reply, _replies: ReplyHalves) -> Option<String> {
        let mut text = TextLines::default();
        let several = reply.files.len() > 1;
        for file in &reply.files {
            let version = file.version.as_deref().filter(|_| several);
            text.line(format_args!("{}{}", file.line(), in_line(version)));
        }
        add_changes(&mut text, &reply.changes, several);
        for warning in &reply.warnings {
            text.note(warning);
        }
        if !several {
            add_version(&mut text, reply.version.as_deref());
        }
        Some(text.finish())
    }
}

impl FileReply {
    fn line(&self) -> String {
        let path = shown(&self.path);
        let hunks = counted(self.hunks_applied, "hunk", "hunks");
        let made = if self.created { "created, " } else { "" };
        format!("{path}: {made}{hunks} applied, {} bytes", self.size)
    }
}

impl From<&HunkPlace> for HunkReply {
    fn from(hunk: &HunkPlace) -> HunkReply {
        HunkReply {
            line: hunk.line as u64,
            offset: hunk.offset,
        }
    }
}

impl From<&Patched> for FileReply {
    fn from(file: &Patched) -> FileReply {
        FileReply {
            path: file.path.clone(),
            hunks_applied: file.hunks.len() as u64,
            created: file.effect == WriteEffect::Created,
            size: file.size,
            version: told(file.version.as_ref()),
        }
    }
}

fn target(arguments: &Arguments, call: &Call) -> ops::Result<PatchTarget> {
    let if_version = arguments.if_version.as_deref();
    match &arguments.path {
        Some(path) => {
            let place = versioned(call.place(path)?, if_version)?;
            Ok(PatchTarget::File(place))
        }
        None if if_version.is_some() => Err(Error::InvalidArgument {
            argument: "if_version",
            reason: "it is of one file: give path too".to_owned(),
        }),
        None => Ok(PatchTarget::Named(Arc::clone(&call.place("")?.root))),
    }
}

/// The files that a small patch names, as far as it can be parsed.
fn places(arguments: &Arguments, call: &Call) -> Vec<Place> {
    let names = match &arguments.path {
        Some(path) => vec![path.clone()],
        None => ops::names_in_patch(&arguments.patch, &call.context.cancel),
    };
    let places = names.iter().map(|name| call.place(name));
    places.flatten().collect()
}

fn reply(root: String, patched: &[Patched]) -> Reply {
    let hunks = patched.iter().flat_map(|file| &file.hunks);
    let hunks: Vec<HunkReply> = hunks.map(HunkReply::from).collect();
    let files: Vec<FileReply> = patched.iter().map(FileReply::from).collect();
    let changes = patched
        .iter()
        .map(|file| (file.path.as_str(), &*file.changes));
    let faults = patched.iter();
    let faults = faults.map(|file| (file.path.as_str(), file.fault.as_ref()));
    let first = files.first();
    Reply {
        root,
        path: first.map(|file| file.path.clone()).unwrap_or_default(),
        hunks_applied: hunks.len(),
        hunks,
        created: first.is_some_and(|file| file.created),
        size: first.map_or(0, |file| file.size),
        version: first.and_then(|file| file.version.clone()),
        changes: ChangedPart::of(changes),
        warnings: syntax_warnings(faults),
        files,
    }
}
