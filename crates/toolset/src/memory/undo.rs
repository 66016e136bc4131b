//! `undo`: takes changes back.

use super::errors::Memory;
use crate::history::{OneRootArguments, UNDO, UndoTool, log_if_hidden};
use crate::tool::{Call, PlaceAccess, RootUse};

pub(crate) struct UndoWork;

impl UndoTool for UndoWork {
    type Arguments = OneRootArguments;

    const ROOTS: &'static [RootUse] = &[RootUse::home("path", PlaceAccess::Write)];
    const REMOVING: &'static [&'static str] = &["delete"];
    const WRITING: &'static [&'static str] = &["create", "str_replace", "insert"];
    const MOVING: &'static [&'static str] = &["rename"];

    fn path(path: &str, call: &Call) -> ops::Result<String> {
        let place = call.place(path)?.relative()?;
        log_if_hidden(&place, path, call, (&Memory, UNDO));
        place.changed_path()
    }
}
