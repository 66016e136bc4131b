//! The changes of a root: who made them, what they did, and how they are undone.

mod crossed;
mod dirs_on_the_way;
mod effect;
mod moment;
mod restore;
mod seen;
#[cfg(test)]
mod tests;
mod undo;

use std::sync::Arc;

use sandbox::{
    Author, ChangeRecord, FileKind, Follow, History, Ledger, ListedChange, Mention, Part, PartKind,
    Root, change_id, is_within,
};

use crate::context::Context;
use crate::error::{Error, Result};
use crate::place::Place;
use effect::Effects;

pub use crossed::OtherRoot;
pub use moment::{Diff, Moment, compare_at};
pub use restore::{Restore, Restored};
pub use undo::{Undo, UndoBy, UndoRefusal, UndoTarget, Undone};

/// Which changes to return.
#[derive(Debug, Clone, Default)]
pub struct ChangeFilter {
    /// Only those of this path, of entries below it, or of a directory that contains it.
    pub path: Option<String>,
    /// Only those after this.
    pub since: Option<Moment>,
    /// Only those of this client.
    pub client: Option<String>,
    /// How many at most.
    pub limit: usize,
}

/// A change as it is reported.
#[derive(Debug, Clone)]
pub struct ToldChange {
    /// Its record.
    pub record: ChangeRecord,
    /// The change that undid it, if there is one and it is still in effect.
    pub undone_by: Option<u64>,
    /// What it did to the lines of its files, if requested and known.
    pub diff: Option<Diff>,
}

/// Changes of a root, the newest first.
#[derive(Debug, Clone)]
pub struct ToldChanges {
    /// The changes.
    pub changes: Vec<ToldChange>,
    /// Whether there are older matching ones.
    pub more: bool,
}

/// Whether changed lines are returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiffWish {
    /// No lines are returned.
    None,
    /// How many lines were added and removed.
    Counts,
    /// All changed lines, as unified diffs.
    Lines,
}

/// Lists the changes of a root, newest first; `None` if it keeps no history.
#[must_use]
pub fn changes(root: &Root, filter: &ChangeFilter) -> Vec<ToldChange> {
    let ledger = root.history().map(|history| history.ledger());
    ledger.map_or(Vec::new(), |ledger| told(root, &ledger, filter).changes)
}

fn told(root: &Root, ledger: &Ledger<'_>, filter: &ChangeFilter) -> ToldChanges {
    let effects = Effects::of(ledger);
    let path = filter.path.as_deref().map(Mention::of_path);
    let client = filter.client.as_deref().map(Mention::of_text);
    let is_near = |change: &ListedChange<'_>| {
        let mentions = |mention: &Option<Mention>| {
            let mention = mention.as_ref();
            mention.is_none_or(|mention| change.mentions(mention))
        };
        mentions(&path) && mentions(&client)
    };
    let is_wanted = |record: &ChangeRecord| {
        let by_client = |client: &String| is_by(&record.author, client);
        let touched = |path: &String| touches_visibly(root, record, path);
        record.is_made()
            && !record.is_pruned()
            && seen::is_seen(root, record)
            && filter.path.as_ref().is_none_or(touched)
            && filter.client.as_ref().is_none_or(by_client)
    };
    let first = filter.since.as_ref().map_or(0, Moment::number);
    let newest = ledger.after(first).rev();
    let mut changes: Vec<ToldChange> = newest
        .filter(|change| {
            let since = filter.since.as_ref();
            since.is_none_or(|since| since.is_before(change)) && is_near(change)
        })
        .filter_map(|change| change.record().filter(is_wanted))
        .take(filter.limit.saturating_add(1))
        .map(|record| ToldChange {
            undone_by: effects.undone_by(record.number),
            record: seen::seen_part(root, record),
            diff: None,
        })
        .collect();
    let more = changes.len() > filter.limit;
    changes.truncate(filter.limit);
    ToldChanges { changes, more }
}

/// Lists the changes at a place and below it.
#[derive(Debug)]
pub struct ListChanges {
    /// Where; the root itself is everything.
    pub place: Place,
    /// Only those after this.
    pub since: Option<Moment>,
    /// Only those of this client.
    pub client: Option<String>,
    /// How many at most.
    pub limit: usize,
    /// Whether the changed lines are told.
    pub diffs: DiffWish,
}

impl crate::Operation for ListChanges {
    type Outcome = ToldChanges;

    fn run(self, context: &Context) -> Result<ToldChanges> {
        let history = history_of(&self.place.root)?;
        if let Some(since) = &self.since {
            since.require_known(history)?;
        }
        let path = self.place.changed_path()?;
        let filter = ChangeFilter {
            path: (!path.is_empty()).then_some(path),
            since: self.since,
            client: self.client,
            limit: self.limit,
        };
        let ledger = history.ledger();
        let mut told = told(&self.place.root, &ledger, &filter);
        if self.diffs != DiffWish::None {
            for change in &mut told.changes {
                context.cancel.check()?;
                change.diff = moment::diff(&self.place.root, &ledger, &change.record, context);
            }
        }
        Ok(told)
    }
}

/// Why there are no lines of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoLines {
    /// It is of directories, or moves entries: as a whole, without a line of a file.
    OfWholeEntries,
    /// No content of its files can be compared: it is no text, too large, or no longer kept.
    Unknown,
}

/// What one change did to the lines of its files.
pub fn change_diff(
    root: &Arc<Root>,
    number: u64,
    context: &Context,
) -> Result<std::result::Result<Diff, NoLines>> {
    let ledger = history_of(root)?.ledger();
    let wanted = |record: &ChangeRecord| record.is_made() && seen::is_seen(root, record);
    let found = ledger.get(number).filter(wanted);
    let record = found.ok_or_else(|| refused(UndoRefusal::Unknown))?;
    let seen = seen::seen_part(root, record);
    let is_whole =
        |part: &Part| part.kind == PartKind::Move || part.entry_kind() == FileKind::Directory;
    let reason = match seen.made().all(is_whole) {
        true => NoLines::OfWholeEntries,
        false => NoLines::Unknown,
    };
    Ok(moment::diff(root, &ledger, &seen, context).ok_or(reason))
}

/// The history of a root; fails if it keeps none.
fn history_of(root: &Root) -> Result<&History> {
    let history = root.history().map(|history| &**history);
    history.ok_or_else(|| refused(UndoRefusal::NoHistory))
}

fn refused(refusal: UndoRefusal) -> Error {
    Error::UndoRefused(Box::new(refusal))
}

impl Place {
    /// The path under which changes of this place are recorded.
    ///
    /// Security: a hidden place has a path like a missing one. No change of it is visible.
    pub fn changed_path(&self) -> Result<String> {
        let error = match self.locate(Follow::Never) {
            Ok(located) => return Ok(located.path()),
            Err(error) => error,
        };
        let given = self.path.as_given().trim_end_matches('/');
        let (above, name) = given.rsplit_once('/').unwrap_or(("", given));
        if !is_hidden(&error) || name.is_empty() {
            return Err(error);
        }
        let above = Place::new(Arc::clone(&self.root), above)?.changed_path()?;
        Ok(match (above.as_str(), name) {
            (_, ".") => above,
            (above, "..") => above.rsplit_once('/').map_or("", |(up, _)| up).to_owned(),
            ("" | ".", name) => name.to_owned(),
            (above, name) => format!("{above}/{name}"),
        })
    }

    /// The error of naming this place, if it is hidden: for the log only.
    pub fn hidden(&self) -> Option<Error> {
        let found = self.locate(Follow::Never);
        found.err().filter(is_hidden)
    }
}

fn is_hidden(error: &Error) -> bool {
    matches!(error, Error::NotFound { denied: true, .. })
}

/// Tells whether a client made a change, by the name of its program, its token or both.
fn is_by(author: &Author, client: &str) -> bool {
    let words = author.client.split(['(', ')']).map(str::trim);
    author.client == client || words.into_iter().any(|word| word == client)
}

/// Tells whether a change is of a path, of something below it or of a directory that it is in.
fn touches(record: &ChangeRecord, path: &str) -> bool {
    record.made().any(|part| is_of(part, path))
}

/// Tells the same of the visible parts of a change.
///
/// Security: else a change of several files would tell that a hidden one was among them.
fn touches_visibly(root: &Root, record: &ChangeRecord, path: &str) -> bool {
    let mut parts = record.made();
    parts.any(|part| is_of(part, path) && seen::is_part_seen(root, part))
}

fn is_of(part: &Part, path: &str) -> bool {
    let ends = [Some(part.path.as_str()), part.to.as_deref()];
    let is_near = |end: &str| is_within(end, path) || is_within(path, end);
    // A parent directory that was made for a change does not count as a change of its content.
    let is_above = part.kind == PartKind::MakeDir && part.path != path;
    ends.into_iter().flatten().any(|end| {
        if is_above {
            is_within(end, path)
        } else {
            is_near(end)
        }
    })
}

/// The changes of a path after this one, the newest first.
fn newest_of<'l>(
    ledger: &'l Ledger<'l>,
    path: &'l str,
    after: u64,
) -> impl Iterator<Item = ChangeRecord> + 'l {
    let mention = Mention::of_path(path);
    let newest = ledger.after(after).rev();
    newest
        .filter(move |change| change.mentions(&mention))
        .filter_map(|change| change.record())
        .filter(move |record| record.is_made() && touches(record, path))
}

/// The last change of a path, for a message.
pub(crate) fn last_of_path(root: &Root, path: &str) -> Option<ChangeRecord> {
    let ledger = root.history()?.ledger();
    newest_of(&ledger, path, 0).next()
}

impl ToldChange {
    /// The name of the change.
    #[must_use]
    pub fn id(&self) -> String {
        change_id(self.record.number)
    }

    /// What happened.
    pub fn parts(&self) -> impl Iterator<Item = &Part> {
        self.record.made()
    }
}
