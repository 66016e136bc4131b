//! `edit_file`: texts of a file replaced by others, with a diff of what changed.

use ops::{
    ContentType, EditFiles, EditMatching, EditScope, Error, FileEdit, Operation, Place, Rehearsal,
    Stat,
};
use schemars::JsonSchema;
use serde::Deserialize;

use super::content::Content;
use super::paths::place;
use crate::deployment::ReplyHalves;
use crate::json_text::JsonText;
use crate::tool::{Call, Inline, PlaceAccess, RootUse, Tool, ToolEffect, Weight};

/// How many lines around a change a diff has.
const CONTEXT: usize = 4;

pub(super) struct EditFile;

#[derive(Deserialize, JsonSchema)]
pub(super) struct Arguments {
    path: String,
    edits: Vec<Edit>,
    /// Preview changes using git-style diff format
    #[serde(default, rename = "dryRun")]
    dry_run: bool,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Edit {
    /// Text to search for - must match exactly
    old_text: String,
    /// Text to replace with
    new_text: String,
}

impl Tool for EditFile {
    type Arguments = Arguments;
    type Reply = Content;

    const NAME: &'static str = "edit_file";
    const TITLE: &'static str = "Edit File";
    const DESCRIPTION: &'static str = "Make line-based edits to a text file. Each edit replaces exact line sequences with new content. Returns a \
        git-style diff showing the changes made. Only works within allowed directories.";
    const CONTENT: &'static [&'static str] = &["oldText", "newText"];
    const EFFECT: ToolEffect = ToolEffect::Write {
        destructive: true,
        idempotent: false,
    };
    const ROOTS: &'static [RootUse] = &[RootUse::host("path", PlaceAccess::Write)];
    const TRY_INLINE: bool = true;

    fn try_inline(arguments: Arguments, call: &Call) -> Inline<Content> {
        let weight = Weight::of_edit(place(call, &arguments.path).iter());
        Inline::Later(Box::new(|call| Self::run(arguments, call)), weight)
    }

    fn run(arguments: Arguments, call: &Call) -> ops::Result<Content> {
        let place = place(call, &arguments.path)?;
        let host_path = existing_file(&place, call)?;
        let edits = arguments.edits.into_iter();
        let edit = EditFiles {
            edits: edits
                .map(|edit| file_edit(edit, &place))
                .collect::<ops::Result<_>>()?,
            rehearsal: if arguments.dry_run {
                Rehearsal::Only
            } else {
                Rehearsal::None
            },
            diff_context: Some(CONTEXT),
        };
        let edited = edit.run(&call.context)?;
        let hunks = edited.files.first().map(|file| file.diff.as_deref());
        let hunks = hunks.unwrap_or(Some("")).unwrap_or(TOO_LARGE);
        Ok(fenced(&diff(&host_path, hunks)).into())
    }

    fn json_text(reply: &Content, _replies: ReplyHalves) -> Option<JsonText> {
        Some(reply.text())
    }
}

/// The placeholder for the hunks of a file that is not diffed.
const TOO_LARGE: &str = "\\ The file is too large for a diff\n";

/// Here, unlike in other sets, an edit creates no file.
fn existing_file(place: &Place, call: &Call) -> ops::Result<String> {
    let stat = Stat {
        place: place.clone(),
        content_type: ContentType::Skip,
    };
    let path = place.path.as_given().to_owned();
    if stat.run(&call.context)?.metadata.is_directory() {
        return Err(Error::IsADirectory { path });
    }
    place.host_path()
}

fn file_edit(edit: Edit, place: &Place) -> ops::Result<FileEdit> {
    if edit.old_text.is_empty() {
        return Err(Error::EmptySearchString);
    }
    Ok(FileEdit {
        place: place.clone(),
        old: edit.old_text,
        new: edit.new_text,
        scope: EditScope::Unique,
        matching: EditMatching::TrimmedLines,
    })
}

fn diff(path: &str, hunks: &str) -> String {
    let line = "=".repeat(67);
    format!("Index: {path}\n{line}\n--- {path}\toriginal\n+++ {path}\tmodified\n{hunks}")
}

/// Fences a text with more backticks than it contains.
fn fenced(text: &str) -> String {
    let mut fence = "```".to_owned();
    while text.contains(&fence) {
        fence.push('`');
    }
    format!("{fence}diff\n{text}{fence}\n\n")
}
