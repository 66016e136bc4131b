//! Explains why a change was not undone.

use ops::{ChangeRecord, Diff, InPlace, PartKind, UndoRefusal, change_id};

/// How many lines of a file a refusal quotes, and how long each may be.
const LINES_QUOTED: usize = 3;
const LINE_MAX: usize = 120;

/// Every code of a refusal, in every set.
#[cfg(test)]
pub(crate) const REFUSAL_CODES: [&str; 5] = [
    NOT_FOUND,
    GONE,
    VERSION_CONFLICT,
    PERMISSION_DENIED,
    IO_ERROR,
];
const NOT_FOUND: &str = "not_found";
const GONE: &str = "gone";
const VERSION_CONFLICT: &str = "version_conflict";
const PERMISSION_DENIED: &str = "permission_denied";
const IO_ERROR: &str = "io_error";

/// The code of a refusal.
pub(crate) fn refusal_code(refusal: &UndoRefusal) -> &'static str {
    match refusal {
        UndoRefusal::NoHistory | UndoRefusal::Unknown | UndoRefusal::NothingLeft => NOT_FOUND,
        UndoRefusal::Gone { .. } => GONE,
        UndoRefusal::Conflict { .. }
        | UndoRefusal::AlreadyUndone(_)
        | UndoRefusal::Together(_)
        | UndoRefusal::Alone(_)
        | UndoRefusal::UnderWay => VERSION_CONFLICT,
        UndoRefusal::Foreign(_) | UndoRefusal::Forbidden { .. } | UndoRefusal::OtherEnd => {
            PERMISSION_DENIED
        }
        UndoRefusal::Failed { .. } => IO_ERROR,
        UndoRefusal::Elsewhere { refusal, .. } => refusal_code(refusal),
    }
}

/// Says why a change was not undone, or why the state it left is unknown.
#[must_use]
pub fn refusal_words(refusal: &UndoRefusal) -> String {
    match refusal {
        UndoRefusal::NoHistory => {
            "this root keeps no history, so nothing can be undone or read as it was".to_owned()
        }
        UndoRefusal::Unknown => "no such change; replies name changes as undo: ID".to_owned(),
        UndoRefusal::NothingLeft => {
            "nothing to undo: no change of yours is left; name one with change".to_owned()
        }
        UndoRefusal::Gone { path: None } => {
            "gone: that is older than what the history keeps".to_owned()
        }
        UndoRefusal::Gone { path: Some(path) } => {
            format!("gone: the old content of {path} is no longer kept")
        }
        UndoRefusal::Conflict {
            change,
            path,
            found,
            since,
            diff,
        } => {
            let refused = match since {
                Some(since) => changed_by(*change, path, since, diff.as_ref()),
                None => changed_by_others(path, *found),
            };
            quoting(refused, diff.as_ref())
        }
        UndoRefusal::AlreadyUndone(by) => {
            let by = change_id(*by);
            format!("it was undone already, by {by}; undo {by} to make it again")
        }
        UndoRefusal::Together(form) => {
            let form = change_id(*form);
            format!(
                "it was redone together with others by {form}; undo {form}, or use to with a change"
            )
        }
        UndoRefusal::Foreign(record) => format!(
            "{} was made by {}, and you may undo only your own changes; nothing was undone",
            change_id(record.number),
            named(record)
        ),
        UndoRefusal::Forbidden { kind, path } => forbidden(*kind, path),
        UndoRefusal::Alone(change) => format!(
            "{} moved something to or from another root, which is undone by itself: undo it with change, \
             after what came later and before the others; nothing was undone",
            change_id(*change)
        ),
        UndoRefusal::OtherEnd => {
            "it moved something to or from another root, where you may not undo it; \
             nothing was undone"
                .to_owned()
        }
        UndoRefusal::Elsewhere { root, refusal } => {
            format!("in the root {root}: {}", refusal_words(refusal))
        }
        UndoRefusal::UnderWay => "the change is still under way; try again in a moment".to_owned(),
        UndoRefusal::Failed { path, reason } => format!("{path}: {reason}; nothing was undone"),
    }
}

fn forbidden(kind: PartKind, path: &str) -> String {
    let what = match kind {
        PartKind::Create | PartKind::MakeDir => "removes",
        PartKind::Move => "moves back",
        _ => "writes",
    };
    format!("undoing it {what} {path}, which no tool allowed here may do; nothing was undone")
}

fn changed_by(change: u64, path: &str, since: &ChangeRecord, diff: Option<&Diff>) -> String {
    let (change, later) = (change_id(change), change_id(since.number));
    let lines = diff.map_or(String::new(), |diff| {
        format!(" (+{} -{})", diff.added, diff.removed)
    });
    format!(
        "{path} was changed since by {}: {later} {}{lines}; undo {later} first, or all together with to: {change}; \
         nothing was undone",
        named(since),
        since.author.tool
    )
}

fn changed_by_others(path: &str, found: InPlace) -> String {
    let what = match found {
        InPlace::Changed => "was changed since by another program",
        InPlace::Missing => "is not where the change left it",
        InPlace::Occupied => "is taken: something else is there now",
        InPlace::NotEmpty => "is a directory that is no longer empty",
    };
    format!("{path} {what}; look at it before you change it; nothing was undone")
}

/// Adds the first lines that were changed since.
fn quoting(mut message: String, diff: Option<&Diff>) -> String {
    let text = diff.map_or("", |diff| diff.text.as_str());
    let is_changed = |line: &&str| {
        line.starts_with(['+', '-']) && !line.starts_with("+++ ") && !line.starts_with("--- ")
    };
    for line in text.lines().filter(is_changed).take(LINES_QUOTED) {
        message.push('\n');
        message.push_str(&ops::truncated(line, LINE_MAX));
    }
    message
}

fn named(record: &ChangeRecord) -> &str {
    match record.author.client.as_str() {
        "" => "somebody",
        client => client,
    }
}
