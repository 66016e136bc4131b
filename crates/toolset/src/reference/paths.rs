//! Paths as clients of this set write them.

use ops::{Error, Place};

use crate::tool::Call;

/// The place that a path means.
pub(super) fn place(call: &Call, path: &str) -> ops::Result<Place> {
    match &call.host_roots {
        Some(roots) => roots.place(path),
        None => Err(Error::PermissionDenied {
            path: path.to_owned(),
        }),
    }
}
