//! `insert`: text before a line of a file.

use ops::{InsertLines, Operation};
use schemars::JsonSchema;
use serde::Deserialize;

use super::done::Done;
use crate::tool::{Call, PlaceAccess, RootUse, Tool, ToolEffect};

pub(super) struct Insert;

#[derive(Deserialize, JsonSchema)]
pub(super) struct Arguments {
    /// The file, relative to the base directory.
    path: String,
    /// The line to insert before, from 1; the number of lines plus 1 adds to the end.
    insert_line: i64,
    /// The text to insert. End it with a newline to make whole lines; without one it continues on the line that follows.
    new_str: String,
}

impl Tool for Insert {
    type Arguments = Arguments;
    type Reply = Done;

    const NAME: &'static str = "insert";
    const TITLE: &'static str = "Insert at a line";
    const DESCRIPTION: &'static str = "Inserts text before a line of a file; what was there moves down. Lines count from 1, and \
        one more than the file has adds to its end (a last line without a newline is ended first). new_str is inserted as it \
        is, so end it with \\n to make a line of its own; in a file with CRLF its line ends become CRLF, unless it has a \\r itself. Only text files up to \
        100 MB. Returns success and path. \
        Example: {\"path\":\"notes/tasks.md\",\"insert_line\":3,\"new_str\":\"- New task\\n\"}";
    const EFFECT: ToolEffect = ToolEffect::Write {
        destructive: false,
        idempotent: false,
    };
    const ROOTS: &'static [RootUse] = &[RootUse::home("path", PlaceAccess::Write)];

    fn run(arguments: Arguments, call: &Call) -> ops::Result<Done> {
        let insert = InsertLines {
            place: call.place(&arguments.path)?.relative()?,
            line: arguments.insert_line,
            text: arguments.new_str,
        };
        insert.run(&call.context)?;
        Ok(Done::to(arguments.path))
    }
}
