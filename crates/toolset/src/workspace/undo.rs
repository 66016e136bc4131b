//! `undo`: takes changes back.

use schemars::JsonSchema;
use serde::Deserialize;

use super::errors::Workspace;
use crate::history::{UNDO, UndoRequest, UndoTool, log_if_hidden};
use crate::tool::{Call, RootUse};

pub(crate) struct UndoWork;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Arguments {
    /// A name from list_roots.
    root: String,
    change: Option<String>,
    last: Option<bool>,
    /// The last change of this path.
    path: Option<String>,
    /// This change and all after it (with path: of that path).
    to: Option<String>,
    dry_run: Option<bool>,
}

impl From<Arguments> for UndoRequest {
    fn from(arguments: Arguments) -> UndoRequest {
        UndoRequest {
            root: Some(arguments.root),
            change: arguments.change,
            last: arguments.last,
            path: arguments.path,
            to: arguments.to,
            dry_run: arguments.dry_run,
        }
    }
}

impl UndoTool for UndoWork {
    type Arguments = Arguments;

    const ROOTS: &'static [RootUse] = &[RootUse::WRITE.and_others()];
    const REMOVING: &'static [&'static str] = &["remove_file", "remove_folder"];
    const WRITING: &'static [&'static str] = &["write_file", "edit_file", "patch_file"];
    const MOVING: &'static [&'static str] = &["move"];

    fn path(path: &str, call: &Call) -> ops::Result<String> {
        let place = call.place(path)?;
        log_if_hidden(&place, path, call, (&Workspace, UNDO));
        place.changed_path()
    }
}
