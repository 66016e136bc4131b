//! `undo`: takes changes back.

use super::errors::Files;
use super::paths::place;
use crate::history::{OneRootArguments, UNDO, UndoTool, log_if_hidden};
use crate::tool::{Call, PlaceAccess, RootUse};

pub(crate) struct UndoWork;

impl UndoTool for UndoWork {
    type Arguments = OneRootArguments;

    const ROOTS: &'static [RootUse] = &[RootUse::home("path", PlaceAccess::Write)];
    const REMOVING: &'static [&'static str] = &["delete"];
    const WRITING: &'static [&'static str] = &["write"];
    const MOVING: &'static [&'static str] = &["move"];

    fn path(path: &str, call: &Call) -> ops::Result<String> {
        let place = place(call, path)?;
        log_if_hidden(&place, path, call, (&Files, UNDO));
        place.changed_path()
    }
}
