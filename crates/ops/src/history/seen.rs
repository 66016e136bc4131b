//! Reduces a root's changes to those that its holder may see: the changes of visible paths.

use sandbox::{ChangeRecord, Part, Root};

/// Tells whether both ends of a part are visible.
pub(super) fn is_part_seen(root: &Root, part: &Part) -> bool {
    if root.shows_everything() {
        return true;
    }
    let ends = [Some(&part.path), part.to.as_ref()];
    let mut ends = ends.into_iter().flatten();
    ends.all(|path| root.shows(path, part.entry_kind()))
}

/// Tells whether any part of a change is visible.
pub(super) fn is_seen(root: &Root, record: &ChangeRecord) -> bool {
    root.shows_everything() || record.made().any(|part| is_part_seen(root, part))
}

/// Tells whether every part of a change is visible.
pub(super) fn is_wholly_seen(root: &Root, record: &ChangeRecord) -> bool {
    root.shows_everything() || record.parts.iter().all(|part| is_part_seen(root, part))
}

/// The visible parts of a change.
pub(super) fn seen_part(root: &Root, mut seen: ChangeRecord) -> ChangeRecord {
    if !root.shows_everything() {
        seen.keep_made(|part| is_part_seen(root, part));
    }
    seen
}
