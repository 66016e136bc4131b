//! Files as they were at an earlier time, and the lines that changes added and removed.

use std::sync::Arc;

use sandbox::{
    ChangeRecord, FileKind, History, Ledger, ListedChange, OpenFile, PartKind, Past, Root,
};
use similar::{ChangeTag, TextDiff};

use super::undo::UndoRefusal;
use super::{history_of, refused};
use crate::compare::{Compared, DIFF_TIME, compare_files, unified, whole_lines};
use crate::context::Context;
use crate::error::{Error, Result, Wanted};
use crate::place::Place;
use crate::read::{Contents, Read};
use crate::read_at::read_up_to;
use crate::text::encoding;

/// Limits for diffs of changes: the largest file, the number of files, and the total size.
const DIFFED_MAX: u64 = 256 * 1024;
const FILES_DIFFED: usize = 10;
const DIFF_TOLD: usize = 16 * 1024;

/// A moment that a client names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Moment {
    /// A change.
    Change(u64),
    /// Milliseconds since the epoch.
    Time(u64),
}

impl Moment {
    /// The number of the change, if it is one.
    pub(super) fn number(&self) -> u64 {
        match self {
            Moment::Change(number) => *number,
            Moment::Time(_) => 0,
        }
    }

    /// Tells whether a change was made after this moment.
    pub(super) fn is_before(&self, change: &ListedChange<'_>) -> bool {
        match self {
            Moment::Change(number) => change.number() > *number,
            Moment::Time(time) => change.time().is_some_and(|made| made >= *time),
        }
    }

    /// Fails if it is a change that was never made or is no longer kept.
    pub(super) fn require_known(&self, history: &History) -> Result<()> {
        match self {
            Moment::Change(number) if *number < history.oldest_kept() => {
                Err(refused(UndoRefusal::Gone { path: None }))
            }
            Moment::Change(number) if *number > history.last_number() => {
                Err(refused(UndoRefusal::Unknown))
            }
            _ => Ok(()),
        }
    }

    /// The last change before it.
    fn number_before(&self, history: &History, ledger: &Ledger<'_>) -> Result<u64> {
        self.require_known(history)?;
        match self {
            Moment::Change(number) => Ok(number.saturating_sub(1)),
            Moment::Time(time) => {
                let is_before = |change: &ListedChange<'_>| change.time() < Some(*time);
                let before = ledger.all().rev().find(is_before);
                let before = before.map(|change| change.number());
                // Once changes were pruned, the state before the oldest kept one is unknown.
                match before {
                    None if history.oldest_kept() > 0 => {
                        Err(refused(UndoRefusal::Gone { path: None }))
                    }
                    before => Ok(before.unwrap_or(0)),
                }
            }
        }
    }
}

impl Place {
    /// Opens the file as it was just before a moment.
    pub(super) fn open_past(&self, at: &Moment) -> Result<OpenFile> {
        let history = history_of(&self.root)?;
        let ledger = history.ledger();
        let after = at.number_before(history, &ledger)?;
        let missing = |denied| Error::NotFound {
            path: self.path.as_given().to_owned(),
            wanted: Wanted::File,
            near: Vec::new(),
            denied,
        };
        // Security: a file that the view hides gets the same message as one that did not exist then.
        let located = match self.locate(sandbox::Follow::Last) {
            Err(Error::NotFound { denied: true, .. }) => return Err(missing(true)),
            located => located?,
        };
        let path = located.path();
        // If nothing is there now, the look-up could not check its kind: only a file has content.
        if !self.root.shows(&path, FileKind::File) {
            return match located.metadata() {
                Some(_) => self.open_file(Wanted::File),
                None => Err(missing(true)),
            };
        }
        match open_at(&self.root, history, &ledger, &path, after) {
            Err(Error::NotFound { denied, .. }) => Err(missing(denied)),
            opened => opened?.ok_or_else(|| missing(false)),
        }
    }
}

/// Opens a file as it was just after a change; `None` if there was none.
///
/// Security: kept content has no view, so the path must be one that exists for the caller.
fn open_at(
    root: &Arc<Root>,
    history: &History,
    ledger: &Ledger<'_>,
    path: &str,
    after: u64,
) -> Result<Option<OpenFile>> {
    if !root.shows(path, FileKind::File) {
        return Ok(None);
    }
    let now = |path: &str| {
        let place = Place::new(Arc::clone(root), path).ok()?;
        place.open_file(Wanted::File).ok()
    };
    match history.past(ledger, path, after, &now) {
        Past::File(file) => Ok(Some(*file)),
        Past::Nothing => Ok(None),
        Past::Now(path) => {
            let place = Place::new(Arc::clone(root), &path)?;
            match place.open_file(Wanted::File) {
                Err(Error::NotFound { denied: false, .. }) => Ok(None),
                opened => opened.map(Some),
            }
        }
        Past::Other(FileKind::Directory) => Err(Error::IsADirectory {
            path: path.to_owned(),
        }),
        Past::Other(kind) => Err(Error::NotAFile {
            path: path.to_owned(),
            kind,
        }),
        Past::Gone => Err(refused(UndoRefusal::Gone {
            path: Some(path.to_owned()),
        })),
    }
}

impl Read {
    /// Reads the file as it was just before a moment.
    pub fn run_at(self, at: &Moment, context: &Context) -> Result<Contents> {
        let open = self.place.open_past(at)?;
        let mut contents = self.read(open, context)?;
        contents.version = None;
        Ok(contents)
    }
}

/// Compares a file as it was just before a moment with another.
pub fn compare_at(
    place: &Place,
    at: &Moment,
    other: &Place,
    context: &Context,
) -> Result<Compared> {
    let one = place.open_past(at)?;
    let other = other.open_file(Wanted::File)?;
    compare_files(&one, &other, context).map(Compared::Files)
}

/// What a change did to lines.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Diff {
    /// How many lines were added.
    pub added: u64,
    /// How many lines were removed.
    pub removed: u64,
    /// Unified diffs of its files.
    pub text: String,
    /// Whether the diffs are incomplete.
    pub truncated: bool,
}

/// What a change did to the lines of its files; `None` if that is not known of any of them.
pub(super) fn diff(
    root: &Arc<Root>,
    ledger: &Ledger<'_>,
    record: &ChangeRecord,
    context: &Context,
) -> Option<Diff> {
    let history = root.history()?;
    let mut paths: Vec<&str> = Vec::new();
    for part in record.made() {
        let is_of_file = matches!(
            part.kind,
            PartKind::Create
                | PartKind::Replace
                | PartKind::Append
                | PartKind::Cut
                | PartKind::Remove
        );
        if is_of_file && !paths.contains(&part.path.as_str()) {
            paths.push(&part.path);
        }
    }
    let mut whole = Diff {
        truncated: paths.len() > FILES_DIFFED,
        ..Diff::default()
    };
    let mut is_known = false;
    for path in paths.into_iter().take(FILES_DIFFED) {
        let text_after = |after| text_at(root, history, ledger, path, after, context);
        let before = text_after(record.number.saturating_sub(1));
        let texts = before.zip(text_after(record.number));
        match texts {
            Some((old, new)) => is_known |= add_diff(&mut whole, path, &old, &new),
            None => whole.truncated = true,
        }
    }
    is_known.then_some(whole)
}

/// A file's text just after a change; empty if there was no file; `None` if it is not text, too large or unknown.
fn text_at(
    root: &Arc<Root>,
    history: &History,
    ledger: &Ledger<'_>,
    path: &str,
    after: u64,
    context: &Context,
) -> Option<String> {
    let open = match open_at(root, history, ledger, path, after) {
        Ok(Some(open)) => open,
        Ok(None) => return Some(String::new()),
        Err(_) => return None,
    };
    if open.metadata.size > DIFFED_MAX {
        return None;
    }
    let bytes = read_up_to(&open, 0, DIFFED_MAX, &context.cancel).ok()?;
    encoding::utf8(&bytes).map(str::to_owned)
}

fn add_diff(whole: &mut Diff, path: &str, old: &str, new: &str) -> bool {
    let mut config = TextDiff::configure();
    let lines = config.timeout(DIFF_TIME).diff_lines(old, new);
    for change in lines.iter_all_changes() {
        match change.tag() {
            ChangeTag::Insert => whole.added += 1,
            ChangeTag::Delete => whole.removed += 1,
            ChangeTag::Equal => {}
        }
    }
    let room = DIFF_TOLD.saturating_sub(whole.text.len());
    let text = unified(&lines, path, path);
    whole.truncated |= text.len() > room;
    whole.text.push_str(&whole_lines(text, room));
    true
}
