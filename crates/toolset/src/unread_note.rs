//! What a search could not read, in the words of every set: how much, and the first few.

use ops::{UnreadReason, UnreadTotal};
use schemars::JsonSchema;
use serde::Serialize;

use crate::text_form::{TextLines, human_size, shown};

/// Something that could not be read.
#[derive(Serialize, JsonSchema)]
struct UnreadEntry {
    /// Its path, relative to the root.
    path: String,
    /// Why.
    reason: String,
}

/// What could not be read, or not to its end.
#[derive(Serialize, JsonSchema)]
pub(crate) struct UnreadNote {
    /// How many files and directories.
    count: u64,
    /// The first few of them.
    first: Vec<UnreadEntry>,
}

impl UnreadNote {
    /// What there is to say; `None` if everything was read.
    pub(crate) fn of(total: UnreadTotal) -> Option<UnreadNote> {
        let first = total.first.into_iter().map(|unread| UnreadEntry {
            path: unread.path,
            reason: reason(&unread.reason),
        });
        let note = UnreadNote {
            count: total.count,
            first: first.collect(),
        };
        (total.count > 0).then_some(note)
    }

    /// Says it in a text.
    pub(crate) fn add_to(&self, lines: &mut TextLines) {
        let first = self.first.iter();
        let first = first.map(|entry| format!("{} ({})", shown(&entry.path), entry.reason));
        let first: Vec<String> = first.collect();
        let more = if self.count > self.first.len() as u64 {
            ", …"
        } else {
            ""
        };
        let (count, first) = (self.count, first.join(", "));
        lines.note(format!("{count} could not be read: {first}{more}"));
    }
}

fn reason(reason: &UnreadReason) -> String {
    match reason {
        UnreadReason::Denied => "permission denied".to_owned(),
        UnreadReason::Gone => "gone meanwhile".to_owned(),
        UnreadReason::Damaged => "compressed content is damaged".to_owned(),
        UnreadReason::Unfolds { most } => {
            format!("searched only to {} of its content", human_size(*most, " "))
        }
        UnreadReason::Failed(reason) => reason.clone(),
    }
}
