//! `list_allowed_directories`: the directories that are served.

use schemars::JsonSchema;
use serde::Deserialize;

use super::content::Content;
use crate::deployment::ReplyHalves;
use crate::json_text::JsonText;
use crate::tool::{Call, RootUse, Tool, ToolEffect};

pub(super) struct ListAllowedDirectories;

#[derive(Deserialize, JsonSchema)]
pub(super) struct Arguments {}

impl Tool for ListAllowedDirectories {
    type Arguments = Arguments;
    type Reply = Content;

    const NAME: &'static str = "list_allowed_directories";
    const TITLE: &'static str = "List Allowed Directories";
    const DESCRIPTION: &'static str = "Returns the list of directories that this server is allowed to access. Subdirectories within these allowed \
        directories are also accessible. Use this to understand which directories and their nested paths are available before trying to access \
        files.";
    const CONTENT: &'static [&'static str] = &[];
    const EFFECT: ToolEffect = ToolEffect::Read;
    const ROOTS: &'static [RootUse] = &[];

    fn run(_arguments: Arguments, call: &Call) -> ops::Result<Content> {
        let roots = call.host_roots.as_ref();
        let directories = roots.map(|roots| roots.directories().spellings());
        let directories = directories.unwrap_or_default().join("\n");
        Ok(format!("Allowed directories:\n{directories}").into())
    }

    fn json_text(reply: &Content, _replies: ReplyHalves) -> Option<JsonText> {
        Some(reply.text())
    }
}
