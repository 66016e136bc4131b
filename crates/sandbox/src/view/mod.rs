//! What is visible in a root: globs, matched against the resolved path from the root.
//!
//! What a view hides is treated as missing by every look-up, listing and walk ([`crate::Root::seen_through`]). A glob
//! that matches a directory matches all below it. A directory on the way to something visible is visible too, and shows
//! only that.

mod glob;
mod glob_list;
mod hidden;
mod name_pattern;
mod placed;
mod secrets;
#[cfg(test)]
mod tests;
mod whole;

use std::borrow::Cow;

use crate::metadata::FileKind;

pub use glob::{GlobFault, GlobReason};
pub use hidden::HiddenEntries;
pub(crate) use placed::RootView;
pub use secrets::SECRETS;
pub(crate) use whole::is_whole;

use glob_list::{GlobList, Purpose, parsed};

/// The word that stands for the shipped list in a list to deny.
pub const SECRETS_WORD: &str = "secrets";

/// What is visible in a root, and what is hidden.
#[derive(Debug)]
pub struct View {
    /// A path is visible if every one of these lists makes it visible.
    lists: Vec<GlobList>,
}

/// The state of a view's globs at a directory or an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Standing(Vec<u64>);

impl View {
    /// Reads a view: it shows what `paths` match (everything if there are none), without what `deny` matches.
    ///
    /// Each is judged in order, the last glob that matches decides, and `!` makes an exception; `paths` of exceptions
    /// alone begin with everything. In `deny` the word `secrets` stands for [`SECRETS`]. `None` if all of the root is
    /// visible.
    ///
    /// # Errors
    ///
    /// If a glob cannot be read, or if `deny` has nothing but exceptions.
    pub fn new<S: AsRef<str>>(paths: &[S], deny: &[S]) -> Result<Option<View>, GlobFault> {
        let mut lists = Vec::new();
        if !paths.is_empty() {
            let globs = parsed(paths.iter().map(AsRef::as_ref))?;
            lists.push(GlobList::new(&globs, Purpose::Show));
        }
        if !deny.is_empty() {
            let globs = parsed(denied(deny))?;
            if let Some(first) = deny.first()
                && globs.iter().all(|glob| glob.is_exception)
            {
                return Err(GlobFault {
                    glob: first.as_ref().to_owned(),
                    reason: GlobReason::OnlyExceptions,
                });
            }
            lists.push(GlobList::new(&globs, Purpose::Hide));
        }
        Ok((!lists.is_empty()).then_some(View { lists }))
    }

    /// Tells whether an entry of this kind is visible at a resolved path, which is empty for the root itself.
    #[must_use]
    pub fn shows(&self, path: &[u8], kind: FileKind) -> bool {
        path.is_empty() || self.judges(&self.standing(path), kind)
    }

    /// Tells whether this path, all directories above it included, is one that the view shows as `kind`, and all below it.
    #[must_use]
    pub fn shows_all_below(&self, path: &[u8]) -> bool {
        self.all_below(&self.standing(path))
    }

    pub(crate) fn standing(&self, path: &[u8]) -> Standing {
        let mut standing = self.start();
        for name in path.split(|&byte| byte == b'/').filter(|n| !n.is_empty()) {
            standing = self.step(&standing, name);
        }
        standing
    }

    pub(crate) fn start(&self) -> Standing {
        let words = self.lists.iter().map(GlobList::words).sum();
        let mut start = Vec::with_capacity(words);
        for list in &self.lists {
            start.extend_from_slice(list.start());
        }
        Standing(start)
    }

    pub(crate) fn step(&self, from: &Standing, name: &[u8]) -> Standing {
        let mut into = Standing(vec![0; from.0.len()]);
        self.step_into(from, name, &mut into);
        into
    }

    /// Goes on to an entry. `spare` is any other standing, which is written over.
    pub(super) fn step_on(&self, at: &mut Standing, spare: &mut Standing, name: &[u8]) {
        self.step_into(at, name, spare);
        std::mem::swap(at, spare);
    }

    fn step_into(&self, from: &Standing, name: &[u8], into: &mut Standing) {
        self.advance(from, into, |list, from, into| list.step(from, name, into));
    }

    /// Goes on from a directory to an entry, list by list.
    fn advance(
        &self,
        from: &Standing,
        into: &mut Standing,
        step: impl Fn(&GlobList, &[u64], &mut [u64]),
    ) {
        let (mut from, mut into) = (from.0.as_slice(), into.0.as_mut_slice());
        for list in &self.lists {
            let (own, rest) = from.split_at_checked(list.words()).unwrap_or_default();
            let taken = std::mem::take(&mut into);
            let (target, behind) = taken.split_at_mut_checked(list.words()).unwrap_or_default();
            step(list, own, target);
            (from, into) = (rest, behind);
        }
    }

    /// Tells whether what is at a place may be visible: as any kind, if its kind is unknown.
    pub(crate) fn judges(&self, at: &Standing, kind: FileKind) -> bool {
        self.all(at, |list, state| {
            list.shows(state) || (may_lead_on(kind) && list.may_show_below(state))
        })
    }

    fn all_below(&self, at: &Standing) -> bool {
        self.all(at, GlobList::shows_all_below)
    }

    fn all(&self, at: &Standing, holds: impl Fn(&GlobList, &[u64]) -> bool) -> bool {
        let mut rest = at.0.as_slice();
        self.lists.iter().all(|list| {
            let (own, behind) = rest.split_at_checked(list.words()).unwrap_or_default();
            rest = behind;
            holds(list, own)
        })
    }

    /// Tells whether a file system might find an entry by this name that is stored under another one, which the view judges
    /// otherwise: by case, by a short name, by what is cut off, or by characters that are folded.
    pub(crate) fn is_doubtful(&self, from: &Standing, name: &[u8]) -> bool {
        if self.all_below(from) {
            return false;
        }
        let odd_end = matches!(name.last(), Some(b'.' | b' '));
        if odd_end || !name.is_ascii() || name.iter().any(|byte| matches!(byte, b'~' | b':')) {
            return true;
        }
        let lowered: Cow<'_, [u8]> = match name.iter().any(u8::is_ascii_uppercase) {
            true => name.to_ascii_lowercase().into(),
            false => name.into(),
        };
        let mut rest = from.0.as_slice();
        self.lists.iter().any(|list| {
            let (own, behind) = rest.split_at_checked(list.words()).unwrap_or_default();
            rest = behind;
            list.case_decides(own, name, &lowered)
        })
    }

    /// Judges the entries of a directory.
    pub(crate) fn entries_of<'a>(&'a self, dir: &'a Standing) -> EntryJudge<'a> {
        let mut scratch = Standing(vec![0; dir.0.len()]);
        self.advance(dir, &mut scratch, GlobList::step_unnamed);
        EntryJudge {
            view: self,
            dir,
            all: self.all_below(dir),
            unnamed_leaf: self.judges(&scratch, FileKind::File),
            unnamed_directory: self.judges(&scratch, FileKind::Directory),
            scratch,
        }
    }
}

/// Decides which entries of one directory are visible.
#[derive(Debug)]
pub(crate) struct EntryJudge<'a> {
    view: &'a View,
    dir: &'a Standing,
    all: bool,
    /// The verdict for entries that no glob names. These are most entries, so it is computed once.
    unnamed_leaf: bool,
    unnamed_directory: bool,
    scratch: Standing,
}

impl EntryJudge<'_> {
    /// Tells whether an entry is visible; its name is the stored one.
    pub(crate) fn shows(&mut self, name: &[u8], kind: FileKind) -> bool {
        if self.all {
            return true;
        }
        if !self.view.lists.iter().any(|list| list.names(name)) {
            return if may_lead_on(kind) {
                self.unnamed_directory
            } else {
                self.unnamed_leaf
            };
        }
        self.view.step_into(self.dir, name, &mut self.scratch);
        self.view.judges(&self.scratch, kind)
    }
}

/// Tells whether something may be below an entry of this kind.
fn may_lead_on(kind: FileKind) -> bool {
    matches!(kind, FileKind::Directory | FileKind::Unknown)
}

/// The globs of a list to deny, with the shipped list in the place of its word.
fn denied<S: AsRef<str>>(deny: &[S]) -> Vec<&str> {
    let expand = |glob: &str| glob == SECRETS_WORD;
    let mut globs = Vec::new();
    for glob in deny.iter().map(AsRef::as_ref) {
        if expand(glob) {
            globs.extend(SECRETS);
        } else {
            globs.push(glob);
        }
    }
    globs
}
