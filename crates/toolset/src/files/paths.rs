//! Paths as clients of this set write them: a backslash separates names, as a slash does, unless an entry has it in its name.

use ops::Place;

use crate::tool::Call;

/// A path in the root.
pub(super) fn place(call: &Call, path: &str) -> ops::Result<Place> {
    separated(path, |path| call.place(path))
}

/// A path in the root where something is put.
pub(super) fn destination(call: &Call, path: &str) -> ops::Result<Place> {
    separated(path, |path| call.destination(path))
}

fn separated(path: &str, place: impl Fn(&str) -> ops::Result<Place>) -> ops::Result<Place> {
    let given = place(path)?;
    if !path.contains('\\') || given.is_there() {
        return Ok(given);
    }
    place(&path.replace('\\', "/"))
}
