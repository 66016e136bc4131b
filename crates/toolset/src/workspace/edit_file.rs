//! `edit_file`: text replaced by text, in one file or in several, all or nothing.

use std::collections::BTreeSet;

use ops::{
    EditFiles, EditMatching, EditScope, EditedFiles, Error, FileEdit, Operation, Place, Rehearsal,
    WriteEffect,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::edit_words::{ChangedPart, add_changes, syntax_warnings};
use super::versions::{add_version, in_line, told, versioned};
use crate::deployment::ReplyHalves;
use crate::text_form::{TextLines, counted, shown};
use crate::tool::{Call, Example, Inline, RootUse, Tool, ToolEffect, Weight};

pub(super) struct EditFile;

#[derive(Deserialize, JsonSchema)]
pub(super) struct Arguments {
    /// A name from list_roots.
    root: String,
    /// For edits that name none.
    path: Option<String>,
    /// Version of path from an earlier reply; fails if it changed.
    if_version: Option<String>,
    /// In order; each sees the result of those before.
    #[schemars(length(min = 1, max = 500))]
    edits: Vec<EditArgument>,
    /// Checks everything and changes nothing.
    #[serde(default)]
    dry_run: bool,
}

#[derive(Deserialize, JsonSchema)]
struct EditArgument {
    path: Option<String>,
    if_version: Option<String>,
    /// Copied from the file without line numbers; has to occur once. Empty makes a new file.
    old: String,
    new: String,
    /// Replaces every occurrence.
    #[serde(default)]
    all: bool,
}

/// What was changed.
#[derive(Serialize, JsonSchema)]
pub(super) struct Reply {
    /// Name of the root.
    root: String,
    /// True if this was a dry run: nothing was changed.
    dry_run: bool,
    /// The files, in the order of their first edits.
    files: Vec<FileReply>,
    /// The first ten changes.
    changes: Vec<ChangedPart>,
    /// Files that parsed before and do not now.
    warnings: Vec<String>,
    /// Edits whose old differs from the file in invisible characters.
    notes: Vec<String>,
}

/// A file that was changed.
#[derive(Serialize, JsonSchema)]
struct FileReply {
    /// The file, relative to the root.
    path: String,
    /// How many places were replaced.
    replacements: u64,
    /// True if the file is new.
    created: bool,
    /// Size of the file now, in bytes.
    size: u64,
    /// The file's version now, for if_version.
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<String>,
}

impl Tool for EditFile {
    type Arguments = Arguments;
    type Reply = Reply;

    const NAME: &'static str = "edit_file";
    const TITLE: &'static str = "Edit files";
    const DESCRIPTION: &'static str = "Replaces text in one file or several: each old must occur exactly once, letter for letter, unless all is true; \
        line ends stay what they are. All edits are made or none; errors show the nearest lines. For a diff use \
        patch_file, for whole files write_file.";
    const CONTENT: &'static [&'static str] = &["old", "new"];
    const EFFECT: ToolEffect = ToolEffect::Write {
        destructive: false,
        idempotent: false,
    };
    const ROOTS: &'static [RootUse] = &[RootUse::WRITE];
    const REPLACES_CONTENT: bool = true;
    const TRY_INLINE: bool = true;
    const EXAMPLES: &'static [Example] = &[Example {
        title: "One line of a file",
        arguments: r#"{"root":"workspace","path":"hello.txt","edits":[{"old":"Hello World","new":"Hello Agent"}]}"#,
        reply: r#"{"root":"workspace","dry_run":false,"files":[{"path":"hello.txt","replacements":1,"created":false,"size":12,"version":"hq3Xn0sYw"}],"changes":[{"path":"hello.txt","line":1,"lines":["Hello Agent"]}],"warnings":[],"notes":[]}"#,
    }];

    fn try_inline(arguments: Arguments, call: &Call) -> Inline<Reply> {
        let weight = Weight::of_edit(&arguments.places(call));
        Inline::Later(Box::new(|call| Self::run(arguments, call)), weight)
    }

    fn run(arguments: Arguments, call: &Call) -> ops::Result<Reply> {
        let file = (arguments.path.as_deref(), arguments.if_version.as_deref());
        let edits = arguments.edits.into_iter().enumerate();
        let edits = edits.map(|(index, edit)| file_edit(index, edit, file, call));
        let edit = EditFiles {
            edits: edits.collect::<ops::Result<_>>()?,
            rehearsal: if arguments.dry_run {
                Rehearsal::Only
            } else {
                Rehearsal::None
            },
            diff_context: None,
        };
        let edited = edit.run(&call.context)?;
        Ok(reply(arguments.root, arguments.dry_run, edited))
    }

    fn text(reply: &Reply, _replies: ReplyHalves) -> Option<String> {
        let mut text = TextLines::default();
        let several = reply.files.len() > 1;
        for file in &reply.files {
            let version = file.version.as_deref().filter(|_| several);
            text.line(format_args!("{}{}", file.line(), in_line(version)));
        }
        add_changes(&mut text, &reply.changes, several);
        for remark in reply.warnings.iter().chain(&reply.notes) {
            text.note(remark);
        }
        if let [file] = reply.files.as_slice() {
            add_version(&mut text, file.version.as_deref());
        }
        if reply.dry_run {
            text.note("dry run: nothing was changed");
        }
        Some(text.finish())
    }
}

impl Arguments {
    /// The files that it names.
    fn places(&self, call: &Call) -> Vec<Place> {
        let own = self.edits.iter().map(|edit| edit.path.as_deref());
        let paths = own.map(|path| path.or(self.path.as_deref()));
        let paths: BTreeSet<&str> = paths.flatten().collect();
        let places = paths.into_iter().map(|path| call.place(path));
        places.flatten().collect()
    }
}

impl FileReply {
    fn line(&self) -> String {
        let (path, size) = (shown(&self.path), self.size);
        if self.created {
            return format!("{path}: created, {size} bytes");
        }
        let replaced = counted(self.replacements, "replacement", "replacements");
        format!("{path}: {replaced}, {size} bytes")
    }
}

fn file_edit(
    index: usize,
    edit: EditArgument,
    (path, if_version): (Option<&str>, Option<&str>),
    call: &Call,
) -> ops::Result<FileEdit> {
    // Fields beside `path` must not be about another file.
    let if_version = match &edit.path {
        Some(_) => edit.if_version.as_deref(),
        None => edit.if_version.as_deref().or(if_version),
    };
    let path = edit.path.as_deref().or(path);
    let path = path.ok_or_else(|| Error::InvalidArgument {
        argument: "edits",
        reason: format!("edits[{index}] names no file; give path there or beside edits"),
    })?;
    Ok(FileEdit {
        place: versioned(call.place(path)?, if_version)?,
        old: edit.old,
        new: edit.new,
        scope: if edit.all {
            EditScope::All
        } else {
            EditScope::Unique
        },
        matching: EditMatching::Unseen,
    })
}

fn reply(root: String, dry_run: bool, edited: EditedFiles) -> Reply {
    let files = edited.files.iter();
    let changes = files
        .clone()
        .map(|file| (file.path.as_str(), &*file.changes));
    let faults = files.map(|file| (file.path.as_str(), file.fault.as_ref()));
    let folded = edited.folded.iter();
    Reply {
        root,
        dry_run,
        changes: ChangedPart::of(changes),
        warnings: syntax_warnings(faults),
        notes: folded.map(|number| folded_note(*number)).collect(),
        files: edited.files.into_iter().map(FileReply::from).collect(),
    }
}

fn folded_note(edit: usize) -> String {
    format!(
        "edit {edit}: old fits one place only without blanks at line ends and with plain quotes, dashes and spaces; it was taken"
    )
}

impl From<ops::EditedFile> for FileReply {
    fn from(file: ops::EditedFile) -> FileReply {
        FileReply {
            created: file.effect == WriteEffect::Created,
            replacements: file.replaced,
            size: file.size,
            version: told(file.version.as_ref()),
            path: file.path,
        }
    }
}
