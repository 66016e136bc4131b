//! `undo`: takes changes back.

use schemars::JsonSchema;
use serde::Deserialize;

use super::paths::place;
use crate::history::{UndoRequest, UndoTool};
use crate::tool::{Call, PlaceAccess, RootUse};

pub(super) struct UndoWork;

#[derive(Deserialize, JsonSchema)]
pub(super) struct Arguments {
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
            root: None,
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

    const DESCRIPTION: &'static str = "Undoes a change, your last one if none is named: all of it or nothing. \
        Undoing an undo makes the change again.";
    const ROOTS: &'static [RootUse] = &[RootUse::home("path", PlaceAccess::Write)];
    const REMOVING: &'static [&'static str] = &["delete"];
    const WRITING: &'static [&'static str] = &["write"];
    const MOVING: &'static [&'static str] = &["move"];

    fn path(path: &str, call: &Call) -> ops::Result<String> {
        place(call, path)?.changed_path()
    }
}
