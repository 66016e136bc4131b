//! The entries of a directory, as resources name them.

use ops::{FileKind, LinkTarget, ListEntry};

/// The MIME type of a directory.
pub(super) const DIRECTORY: &str = "inode/directory";

/// Whether an entry is a directory, or a link to one inside the root.
pub(super) fn is_directory(entry: &ListEntry) -> bool {
    let target = entry.target.as_deref();
    let leads_to_one = target.is_some_and(|target| match target {
        LinkTarget::Inside { metadata, .. } => metadata.kind == FileKind::Directory,
        _ => false,
    });
    entry.facts.kind == FileKind::Directory || leads_to_one
}

/// The size of what is read at an entry, if it is known.
pub(super) fn size(entry: &ListEntry) -> Option<u64> {
    match (entry.facts.kind, entry.target.as_deref()) {
        (FileKind::File, _) => entry.facts.is_described.then_some(entry.facts.size),
        (_, Some(LinkTarget::Inside { metadata, .. })) if metadata.kind == FileKind::File => {
            Some(metadata.size)
        }
        _ => None,
    }
}

/// The MIME type that the name of an entry tells.
pub(super) fn mime_type(entry: &ListEntry) -> Option<&'static str> {
    if is_directory(entry) {
        return Some(DIRECTORY);
    }
    ops::type_by_name(entry.name())
}
