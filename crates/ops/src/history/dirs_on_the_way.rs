//! Directories on the way to what a change made, which an undo left because they held something else.
//!
//! When that undo is undone, its record does not have them. They still belong to the change: they have to go when it is
//! undone again.

use sandbox::{ChangeRecord, Ledger, Part, PartKind, is_within};

/// Adds them to a record that makes a change again.
pub(super) fn with_dirs_on_the_way(mut record: ChangeRecord, ledger: &Ledger<'_>) -> ChangeRecord {
    let dirs = earlier_dirs(&record, ledger);
    if !dirs.is_empty() {
        record.keep_made(|_| true);
        // They were made first, so they go last.
        record.parts.splice(0..0, dirs);
    }
    record
}

/// The directories that the earlier forms of a change made above what it made this time, those above first.
fn earlier_dirs(record: &ChangeRecord, ledger: &Ledger<'_>) -> Vec<Part> {
    let mut dirs: Vec<Part> = Vec::new();
    let mut numbers = vec![record.number];
    // An undo has a larger number than what it undoes, so this ends.
    while let Some(number) = numbers.pop() {
        let forms = ledger.undoes_of(number).iter();
        for form in forms.flat_map(|undo| ledger.undoes_of(*undo)) {
            numbers.push(*form);
            let parts = ledger.get(*form).map(|form| form.parts).unwrap_or_default();
            let made = parts
                .into_iter()
                .filter(|part| part.kind == PartKind::MakeDir);
            let missing = made.filter(|dir| is_on_the_way(dir, record));
            dirs.extend(missing);
        }
    }
    dirs.sort_by(|one, other| one.path.cmp(&other.path));
    dirs.dedup_by(|next, one| next.path == one.path);
    dirs
}

fn is_on_the_way(dir: &Part, record: &ChangeRecord) -> bool {
    record.made().any(|part| is_within(&part.path, &dir.path))
        && !record.made().any(|part| part.path == dir.path)
}
