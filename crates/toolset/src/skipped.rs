//! What a copy left out, in the words of every set.

use ops::{SkipReason, Skipped};
use schemars::JsonSchema;
use serde::Serialize;

use crate::text_form::{TextLines, shown};

/// Something that was left out.
#[derive(Serialize, JsonSchema)]
pub(crate) struct SkippedEntry {
    /// Its path, relative to the source root.
    path: String,
    /// Why.
    reason: String,
}

impl From<&Skipped> for SkippedEntry {
    fn from(skipped: &Skipped) -> SkippedEntry {
        let reason = match skipped.reason {
            SkipReason::LeadsOutside => "symlink leads outside the root".to_owned(),
            SkipReason::Dangling => "symlink leads to nothing".to_owned(),
            SkipReason::Loop => "symlink leads in a circle".to_owned(),
            SkipReason::Untranslatable => "symlink cannot be written at the destination".to_owned(),
            SkipReason::Special(kind) => format!("{kind}: not a regular file"),
        };
        SkippedEntry {
            path: skipped.path.clone(),
            reason,
        }
    }
}

/// Says in a text what was left out: how much, and the first three.
pub(crate) fn add_skipped(lines: &mut TextLines, skipped: &[SkippedEntry], total: u64) {
    if total == 0 {
        return;
    }
    let first = skipped.iter().take(3);
    let first = first.map(|entry| format!("{} ({})", shown(&entry.path), entry.reason));
    let first: Vec<String> = first.collect();
    let more = if total > 3 { ", …" } else { "" };
    lines.note(format!("left out {total}: {}{more}", first.join(", ")));
}
