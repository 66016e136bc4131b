//! `memory`: the one tool, with six commands.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::commands;
use super::view;
use crate::deployment::ReplyHalves;
use crate::json_text::JsonText;
use crate::media::Media;
use crate::tool::{Call, PlaceAccess, RootUse, Tool, ToolEffect, Weight};

pub(super) struct Memory;

#[derive(Deserialize, JsonSchema)]
pub(super) struct Arguments {
    /// What to do.
    pub(super) command: Command,
    /// view, create, str_replace, insert, delete: begins with /memories.
    pub(super) path: Option<String>,
    /// view: the first and last line from 1; -1 is the end.
    pub(super) view_range: Option<Vec<i64>>,
    /// create: the content.
    pub(super) file_text: Option<String>,
    /// str_replace: has to occur exactly once.
    pub(super) old_str: Option<String>,
    /// str_replace: without it, old_str is deleted.
    pub(super) new_str: Option<String>,
    /// insert: the line after which; 0 is the beginning.
    pub(super) insert_line: Option<i64>,
    /// insert: the lines.
    pub(super) insert_text: Option<String>,
    /// rename: what.
    pub(super) old_path: Option<String>,
    /// rename: its new path.
    pub(super) new_path: Option<String>,
}

#[derive(Deserialize, Serialize, JsonSchema, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub(super) enum Command {
    View,
    Create,
    StrReplace,
    Insert,
    Delete,
    Rename,
}

/// One text, or one image.
#[derive(Serialize, JsonSchema)]
pub(super) struct Reply {
    pub(super) text: String,
    #[serde(skip)]
    pub(super) image: Option<Media>,
}

impl From<String> for Reply {
    fn from(text: String) -> Reply {
        Reply { text, image: None }
    }
}

impl Tool for Memory {
    type Arguments = Arguments;
    type Reply = Reply;

    const NAME: &'static str = "memory";
    const TITLE: &'static str = "Memory";
    const DESCRIPTION: &'static str = "Stores and reads files under /memories that last between conversations. Commands: view (a file with line \
        numbers, or a directory two levels deep), create, str_replace, insert, delete, rename.";
    const CONTENT: &'static [&'static str] = &["file_text", "old_str", "new_str", "insert_text"];
    const EFFECT: ToolEffect = ToolEffect::Write {
        destructive: true,
        idempotent: false,
    };
    // Each changing command checks whether the root may be changed, because view works on every root.
    const ROOTS: &'static [RootUse] = &[RootUse::home("path", PlaceAccess::Read)];

    fn weight(arguments: &Arguments) -> Weight {
        match arguments.command {
            Command::View | Command::Delete => Weight::Heavy,
            _ => Weight::Small,
        }
    }

    fn run(arguments: Arguments, call: &Call) -> ops::Result<Reply> {
        let ends = [&arguments.old_path, &arguments.new_path];
        call.found_paths
            .add(ends.into_iter().flatten().cloned().collect());
        if arguments.command == Command::View {
            return view::run(&arguments, call);
        }
        commands::check_writable(&arguments, call)?;
        let text = match arguments.command {
            Command::View => String::new(),
            Command::Create => commands::create(&arguments, call)?,
            Command::StrReplace => commands::str_replace(&arguments, call)?,
            Command::Insert => commands::insert(&arguments, call)?,
            Command::Delete => commands::delete(&arguments, call)?,
            Command::Rename => commands::rename(&arguments, call)?,
        };
        Ok(text.into())
    }

    fn json_text(reply: &Reply, _replies: ReplyHalves) -> Option<JsonText> {
        Some(reply.text.as_str().into())
    }

    fn media(reply: &mut Reply) -> Option<Media> {
        reply.image.take()
    }
}
