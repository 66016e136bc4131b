//! One edit by text: finds the bytes to remove, and determines the bytes to insert.
//!
//! Line ends are compared as line ends, whole ones: `\n` and `\r\n` in the old string fit both, and neither is ever
//! cut. What the old and the new string have in common at their beginning and end stays as the text has it; line ends
//! that come in are those of the lines that go, or of the line before. If the string does not occur exactly, its place
//! may differ in invisible characters (see [`Folded`]), but only if there is one such place. Nothing is guessed.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use memchr::memmem;

use crate::error::{EditFault, Result};
use crate::text::folded::{FOLDED_MAX, Folded, LastBlanks};
use crate::text::lines::{self, LineEnd};
use crate::text::near_lines::nearest_region;
use crate::text::pieces::SharedSplice;
use crate::text::string_search::{
    LineEndMatch, Occurrences, Overlap, PLACES, WantedString, find, line_numbers,
};
use crate::text::trimmed;
use crate::text::{ReadAt, encoding};

/// How many places one edit changes at most: each takes memory.
pub const REPLACED_MAX: usize = 250_000;
/// If the new string is shorter than this, its presence proves nothing.
const TELLING: usize = 4;

/// How many places an edit applies to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EditScope {
    /// The only place.
    Unique,
    /// Every place, from the first on, without those that overlap one before.
    All,
}

/// What may match an old string that does not occur letter for letter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum EditMatching {
    /// The only place that differs in invisible characters. An edit that changes nothing is refused.
    #[default]
    Unseen,
    /// Nothing. An edit may change nothing.
    Exact,
    /// The only lines that differ in blanks around them; the new lines are indented like those. An edit may change nothing.
    TrimmedLines,
}

/// What the edits of a call may still do. Places and inserted text are held until all files are written.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EditRoom {
    /// How many places they may change.
    pub(crate) places: u64,
    /// How many bytes they may put in.
    pub(crate) bytes: u64,
    /// How many bytes a text may have afterwards.
    pub(crate) length: u64,
}

impl EditRoom {
    /// Counts what a plan does.
    pub(crate) fn take(&mut self, plan: &EditPlan) {
        let bytes = plan.splices.iter().map(|splice| splice.new.len() as u64);
        self.places = self.places.saturating_sub(plan.splices.len() as u64);
        self.bytes = self.bytes.saturating_sub(bytes.sum());
    }
}

/// What an edit does to a text.
#[derive(Debug)]
pub(crate) struct EditPlan {
    /// The changes, in order.
    pub(crate) splices: Vec<SharedSplice>,
    /// Whether the place differs from the old string in invisible characters.
    pub(crate) folded: bool,
}

/// Plans an edit of a text of `size` bytes, or says why there is none.
///
/// The first pass reads the whole text once and in order.
pub(crate) fn plan(
    read: &mut ReadAt<'_>,
    size: u64,
    (old, new): (&str, &str),
    (scope, matching): (EditScope, EditMatching),
    room: EditRoom,
) -> Result<Result<EditPlan, EditFault>> {
    let edit = Replacement::new(old, new);
    let found = find(read, &edit.wanted(scope))?;
    if edit.is_idle() && matching == EditMatching::Unseen {
        return Ok(Err(EditFault::Idle));
    }
    if found.count == 0 {
        return match matching {
            EditMatching::Unseen => edit.plan_folded(read, size, scope),
            EditMatching::Exact => Ok(Err(EditFault::Missing { nearest: None })),
            EditMatching::TrimmedLines => edit.plan_trimmed(read, size),
        };
    }
    let fault = match scope {
        EditScope::Unique if found.count > 1 => Some(repeated(read, &found)?),
        EditScope::All if found.count > room.places => Some(EditFault::TooMany {
            count: found.count,
            most: REPLACED_MAX as u64,
        }),
        _ if !edit.fits(found.count, size, room) => Some(EditFault::TooLong { most: room.length }),
        _ => None,
    };
    match fault {
        Some(fault) => Ok(Err(fault)),
        None => edit.plan_exact(read, &found).map(Ok),
    }
}

fn repeated(read: &mut ReadAt<'_>, found: &Occurrences) -> Result<EditFault> {
    let starts = found.places.iter().map(|place| place.range.start);
    Ok(EditFault::Repeated {
        count: found.count,
        lines: line_numbers(read, starts.take(PLACES))?,
    })
}

/// The two strings of an edit, with `\n` for every line end.
struct Replacement<'e> {
    old: Cow<'e, str>,
    new: Cow<'e, str>,
    /// How many bytes both begin with, and end with.
    prefix: usize,
    suffix: usize,
}

impl<'e> Replacement<'e> {
    fn new(old: &'e str, new: &'e str) -> Replacement<'e> {
        let (old, new) = (with_newlines(old), with_newlines(new));
        let same = |(a, b): &(char, char)| a == b;
        let length = |(character, _): (char, char)| character.len_utf8();
        let prefix: usize = old
            .chars()
            .zip(new.chars())
            .take_while(same)
            .map(length)
            .sum();
        let rest = |text: &'_ str| text.get(prefix..).unwrap_or_default().to_owned();
        let (old_rest, new_rest) = (rest(&old), rest(&new));
        let ends = old_rest.chars().rev().zip(new_rest.chars().rev());
        let suffix = ends.take_while(same).map(length).sum();
        Replacement {
            old,
            new,
            prefix,
            suffix,
        }
    }

    /// Tells whether there is room for the insertions at this many places of a text of `size` bytes, and for the
    /// resulting text.
    fn fits(&self, places: u64, size: u64, room: EditRoom) -> bool {
        let new = self.incoming();
        let line_ends = memchr::memchr_iter(b'\n', new.as_bytes()).count();
        let coming = places.saturating_mul((new.len() + line_ends) as u64);
        let going = places.saturating_mul(self.changed().len() as u64);
        let then = size.saturating_sub(going).saturating_add(coming);
        coming <= room.bytes && (then <= room.length || coming <= going)
    }

    /// Tells whether both strings are the same.
    fn is_idle(&self) -> bool {
        self.old == self.new
    }

    /// The part of the old string to remove.
    fn changed(&self) -> Range<usize> {
        self.prefix..self.old.len() - self.suffix
    }

    /// The text to insert in its place.
    fn incoming(&self) -> &str {
        let range = self.prefix..self.new.len() - self.suffix;
        self.new.get(range).unwrap_or_default()
    }

    fn wanted(&self, scope: EditScope) -> WantedString<'_> {
        let (overlap, most) = match scope {
            EditScope::Unique => (Overlap::First, PLACES),
            EditScope::All => (Overlap::Never, REPLACED_MAX),
        };
        WantedString {
            text: &self.old,
            changed: self.changed(),
            line_ends: line_ends_of(&self.old),
            overlap,
            most,
        }
    }

    fn plan_exact(&self, read: &mut ReadAt<'_>, found: &Occurrences) -> Result<EditPlan> {
        let mut incoming = NewText::new(self.incoming());
        let mut splices = Vec::with_capacity(found.places.len());
        for place in &found.places {
            splices.push(SharedSplice {
                range: place.changed.clone(),
                new: incoming.at(read, place.changed.start, &place.line_ends)?,
            });
        }
        Ok(EditPlan {
            splices,
            folded: false,
        })
    }

    /// Searches again, ignoring invisible characters.
    fn plan_folded(
        &self,
        read: &mut ReadAt<'_>,
        size: u64,
        scope: EditScope,
    ) -> Result<Result<EditPlan, EditFault>> {
        if size <= FOLDED_MAX
            && let Some(range) = self.folded_place(&read_all(read, size)?)
        {
            return self.plan_at(read, range).map(Ok);
        }
        self.why_missing(read, scope).map(Err)
    }

    /// The likely mistake if the old string does not occur.
    fn why_missing(&self, read: &mut ReadAt<'_>, scope: EditScope) -> Result<EditFault> {
        let already = self.already_there(read, scope)?;
        if !already.is_empty() {
            return Ok(EditFault::AlreadyThere { lines: already });
        }
        let escaped = self.escaped(read)?;
        if !escaped.is_empty() {
            return Ok(EditFault::Escaped { lines: escaped });
        }
        let nearest = nearest_region(read, &self.old)?;
        Ok(EditFault::Missing { nearest })
    }

    /// Searches again, ignoring blanks around lines.
    fn plan_trimmed(
        &self,
        read: &mut ReadAt<'_>,
        size: u64,
    ) -> Result<Result<EditPlan, EditFault>> {
        let missing = || Ok(Err(EditFault::Missing { nearest: None }));
        if size > FOLDED_MAX {
            return missing();
        }
        let bytes = read_all(read, size)?;
        let text = encoding::utf8(&bytes).unwrap_or_default();
        let places = trimmed::places(text, &self.old, PLACES);
        let first = match places.as_slice() {
            [] => return missing(),
            [only] => *only,
            several => {
                return Ok(Err(EditFault::Repeated {
                    count: several.len() as u64,
                    lines: several.iter().map(|line| *line as u64 + 1).collect(),
                }));
            }
        };
        let range = trimmed::range(text, first, self.old.split('\n').count());
        let going = text.get(range.clone()).unwrap_or_default();
        let new = trimmed::indented(going, &self.old, &self.new);
        let ends = going.as_bytes().split_inclusive(|byte| *byte == b'\n');
        let ends: Vec<LineEnd> = ends.filter_map(LineEnd::closing).collect();
        let range = range.start as u64..range.end as u64;
        let new = NewText::new(&new).at(read, range.start, &ends)?;
        Ok(Ok(EditPlan {
            splices: vec![SharedSplice { range, new }],
            folded: false,
        }))
    }

    /// The bytes that change if the old string occurs exactly once when invisible characters are ignored.
    fn folded_place(&self, text: &[u8]) -> Option<Range<usize>> {
        let text = Folded::new(encoding::utf8(text)?, LastBlanks::Dropped);
        let old = Folded::new(&self.old, LastBlanks::Kept);
        let (start, length) = only_place(&text.text, &old.text)?;
        let at = |raw: usize| start + old.place_of(raw).min(length);
        let (from, to) = (at(self.changed().start), at(self.changed().end));
        let from = if from == start {
            text.start_of(from)
        } else {
            text.end_of(from)
        };
        Some(from..text.end_of(to).max(from))
    }

    fn plan_at(&self, read: &mut ReadAt<'_>, range: Range<usize>) -> Result<EditPlan> {
        let mut going = vec![0; range.len()];
        let count = read(range.start as u64, &mut going)?;
        let lines = going.get(..count).unwrap_or_default();
        let ends = lines.split_inclusive(|byte| *byte == b'\n');
        let ends: Vec<LineEnd> = ends.filter_map(LineEnd::closing).collect();
        let range = range.start as u64..range.end as u64;
        let new = NewText::new(self.incoming()).at(read, range.start, &ends)?;
        Ok(EditPlan {
            splices: vec![SharedSplice { range, new }],
            folded: true,
        })
    }

    /// The lines that contain the new string, if that shows that the edit was already made.
    fn already_there(&self, read: &mut ReadAt<'_>, scope: EditScope) -> Result<Vec<u64>> {
        if self.new.trim().chars().count() < TELLING {
            return Ok(Vec::new());
        }
        let wanted = WantedString {
            text: &self.new,
            changed: 0..0,
            line_ends: line_ends_of(&self.new),
            overlap: Overlap::Never,
            most: PLACES,
        };
        let found = find(read, &wanted)?;
        if scope == EditScope::Unique && found.count != 1 {
            return Ok(Vec::new());
        }
        line_numbers(read, found.places.iter().map(|place| place.range.start))
    }

    /// The lines that contain the old string if its line ends were spelled out by mistake.
    fn escaped(&self, read: &mut ReadAt<'_>) -> Result<Vec<u64>> {
        if !self.old.contains("\\n") {
            return Ok(Vec::new());
        }
        let meant = self.old.replace("\\r\\n", "\n").replace("\\n", "\n");
        let wanted = WantedString {
            text: &meant,
            changed: 0..0,
            line_ends: LineEndMatch::Either,
            overlap: Overlap::Never,
            most: PLACES,
        };
        let found = find(read, &wanted)?;
        line_numbers(read, found.places.iter().map(|place| place.range.start))
    }
}

fn with_newlines(text: &str) -> Cow<'_, str> {
    if memmem::find(text.as_bytes(), b"\r\n").is_some() {
        Cow::Owned(text.replace("\r\n", "\n"))
    } else {
        Cow::Borrowed(text)
    }
}

/// Strings without a line end are compared as bytes, which is quicker and the same.
fn line_ends_of(text: &str) -> LineEndMatch {
    if text.contains(['\r', '\n']) {
        LineEndMatch::Either
    } else {
        LineEndMatch::Exact
    }
}

fn read_all(read: &mut ReadAt<'_>, size: u64) -> Result<Vec<u8>> {
    let mut text = vec![0; usize::try_from(size).unwrap_or(0)];
    let count = read(0, &mut text)?;
    text.truncate(count);
    Ok(text)
}

/// The place of a folded string in a folded text, if there is exactly one: its start and length there.
///
/// Blanks at the end of the string may be those at the end of a line, which the text has lost.
fn only_place(text: &str, old: &str) -> Option<(usize, usize)> {
    let seen = old.trim_end_matches([' ', '\t']);
    if seen.trim().is_empty() {
        return None;
    }
    let at_line_end =
        |start: &usize| matches!(text.as_bytes().get(start + seen.len()), None | Some(b'\n'));
    let mut places: Vec<(usize, usize)> = starts(text, old).map(|at| (at, old.len())).collect();
    if seen.len() < old.len() {
        let ends = starts(text, seen).filter(at_line_end);
        places.extend(ends.map(|at| (at, seen.len())));
    }
    match places.as_slice() {
        [only] => Some(*only),
        _ => None,
    }
}

/// The first places of a string, overlapping ones too: enough to tell whether there is one.
fn starts(text: &str, wanted: &str) -> impl Iterator<Item = usize> {
    let mut from = 0;
    std::iter::from_fn(move || {
        let found = memmem::find(text.as_bytes().get(from..)?, wanted.as_bytes())?;
        from += found + 1;
        Some(from - 1)
    })
    .take(PLACES)
}

/// The inserted text with the line ends of each place; made once for each kind.
struct NewText<'n> {
    new: &'n str,
    has_line_end: bool,
    uniform: [Option<Arc<[u8]>>; 2],
}

impl<'n> NewText<'n> {
    fn new(new: &'n str) -> NewText<'n> {
        NewText {
            new,
            has_line_end: new.contains('\n'),
            uniform: [None, None],
        }
    }

    /// The inserted text at a place whose removed lines have these ends.
    fn at(&mut self, read: &mut ReadAt<'_>, offset: u64, gone: &[LineEnd]) -> Result<Arc<[u8]>> {
        let last = match gone.last() {
            _ if !self.has_line_end => LineEnd::Lf,
            Some(last) => *last,
            None => lines::line_end_near(read, offset)?.unwrap_or(LineEnd::Lf),
        };
        if gone.iter().any(|end| *end != last) {
            return Ok(Arc::from(with_line_ends(self.new, gone, last)));
        }
        let slot = match last {
            LineEnd::Lf => 0,
            LineEnd::CrLf => 1,
        };
        let new = self.new;
        Ok(match self.uniform.get_mut(slot) {
            Some(made) => {
                Arc::clone(made.get_or_insert_with(|| Arc::from(with_line_ends(new, &[], last))))
            }
            None => Arc::from(new.as_bytes()),
        })
    }
}

/// The string with its line ends in order, and then the last of them.
fn with_line_ends(text: &str, ends: &[LineEnd], last: LineEnd) -> Vec<u8> {
    let mut output = Vec::with_capacity(text.len());
    let mut ends = ends.iter().copied().chain(std::iter::repeat(last));
    for line in text.split_inclusive('\n') {
        match line.strip_suffix('\n') {
            Some(body) => {
                output.extend_from_slice(body.as_bytes());
                output.extend_from_slice(ends.next().unwrap_or(last).as_bytes());
            }
            None => output.extend_from_slice(line.as_bytes()),
        }
    }
    output
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::NearDifference;
    use crate::text::pieces::Pieces;
    use crate::text::reader;
    use proptest::prelude::*;

    const ROOM: EditRoom = EditRoom {
        places: REPLACED_MAX as u64,
        bytes: 1000,
        length: 10_000,
    };

    fn planned(text: &str, old: &str, new: &str, scope: EditScope) -> Result<EditPlan, EditFault> {
        let mut read = reader(text.as_bytes());
        plan(
            &mut read,
            text.len() as u64,
            (old, new),
            (scope, EditMatching::Unseen),
            ROOM,
        )
        .unwrap()
    }

    fn applied(text: &str, plan: &EditPlan) -> String {
        let mut pieces = Pieces::whole(text.len() as u64);
        pieces.splice(&plan.splices);
        let mut result = vec![0; pieces.length() as usize];
        let mut base = reader(text.as_bytes());
        pieces.read(&mut base, 0, &mut result).unwrap();
        String::from_utf8(result).unwrap()
    }

    fn edited(text: &str, old: &str, new: &str) -> Result<String, EditFault> {
        planned(text, old, new, EditScope::Unique).map(|plan| applied(text, &plan))
    }

    #[track_caller]
    fn check(text: &str, old: &str, new: &str, expected: &str) {
        let plan = planned(text, old, new, EditScope::Unique).expect(old);
        assert!(!plan.folded, "{text:?} {old:?}");
        assert_eq!(applied(text, &plan), expected, "{text:?} {old:?} {new:?}");
    }

    #[test]
    fn line_ends_of_the_file_are_kept() {
        check("a\r\nb\r\nc\r\n", "a\nb", "x\ny", "x\r\ny\r\nc\r\n");
        check("a\r\nb\r\nc\r\n", "b\r\n", "", "a\r\nc\r\n");
        check("a\nb\nc\n", "a\r\nb", "x\r\ny", "x\ny\nc\n");
        check("a\r\nb\r\n", "b", "b\nc", "a\r\nb\r\nc\r\n");
        check("a\r\nb\r\n", "\nb", "\nx\ny", "a\r\nx\r\ny\r\n");
        check("\u{feff}a\r\nb", "b", "x\ny", "\u{feff}a\r\nx\r\ny");
        // Mixed: each line keeps its own, and what comes in has that of the line before.
        check(
            "a\r\nb\nc\r\nd",
            "a\nb\nc\nd",
            "a\nnew\nb\nc\nd",
            "a\r\nnew\r\nb\nc\r\nd",
        );
        check("a\r\nb\nc\r\n", "b\nc", "b\nnew\nc", "a\r\nb\nnew\nc\r\n");
        check("a\r\nb\nc\r\n", "a\nb\nc\n", "x\ny\nz\n", "x\r\ny\nz\r\n");
        check("a\r\nb\nc", "a\nb\nc", "x\ny\nz\nq", "x\r\ny\nz\nq");
    }

    #[test]
    fn a_line_end_is_never_cut() {
        assert!(matches!(
            edited("a\r\nb", "a\r", "x"),
            Err(EditFault::Missing { .. })
        ));
        assert!(matches!(
            edited("a\r\nb", "\r", "x"),
            Err(EditFault::Missing { .. })
        ));
        check("a\r\nb", "\n", "-", "a-b");
        check("a\rb\r\nc", "\r", "-", "a-b\r\nc");
        check("x\r", "x\r", "y", "y");
    }

    #[test]
    fn what_both_strings_share_is_not_touched() {
        let plan = planned(
            "one two three",
            "one two three",
            "one 2 three",
            EditScope::Unique,
        );
        assert_eq!(plan.unwrap().splices[0].range, 4..7);
        let plan = planned("caf\u{e9}", "caf\u{e9}", "caf\u{e8}", EditScope::Unique).unwrap();
        assert_eq!(plan.splices[0].range.clone(), 3..5);
        assert_eq!(&*plan.splices[0].new, "\u{e8}".as_bytes());
        assert_eq!(edited("a\r\nb", "a\nb", "a\r\nb"), Err(EditFault::Idle));
    }

    #[test]
    fn places_that_overlap_are_two() {
        let twice = |lines| EditFault::Repeated { count: 2, lines };
        assert_eq!(edited("aaa", "aa", "b"), Err(twice(vec![1, 1])));
        assert_eq!(
            edited("x\na\nx\na\nx\n", "x\na\nx", "y"),
            Err(twice(vec![1, 3]))
        );
        let all = planned("aaaaa", "aa", "b", EditScope::All).unwrap();
        assert_eq!(applied("aaaaa", &all), "bba");
    }

    #[test]
    fn all_places_get_the_line_ends_around_them() {
        let text = "a x\r\nb x\nc x\r\n";
        let plan = planned(text, "x", "x\ny", EditScope::All).unwrap();
        assert_eq!(applied(text, &plan), "a x\r\ny\r\nb x\r\ny\nc x\ny\r\n");
        let plan = planned(text, "x\n", "y\n", EditScope::All).unwrap();
        assert_eq!(applied(text, &plan), "a y\r\nb y\nc y\r\n");
    }

    #[test]
    fn what_cannot_be_seen_may_differ_in_a_unique_place() {
        let folded = |text: &str, old: &str, new: &str| {
            let plan = planned(text, old, new, EditScope::Unique).expect(old);
            assert!(plan.folded);
            applied(text, &plan)
        };
        assert_eq!(folded("a  \nb\n", "a\nb", "a\nc"), "a  \nc\n");
        assert_eq!(folded("a\nb\n", "a  \nb", "a  \nc"), "a\nc\n");
        assert_eq!(
            folded(
                "say \u{201c}hi\u{201d} now\n",
                "say \"hi\" now",
                "say \"hi\" then"
            ),
            "say \u{201c}hi\u{201d} then\n"
        );
        assert_eq!(
            folded("1\u{a0}\u{2013}\u{a0}2\n", "1 - 2", "1 - 3"),
            "1\u{a0}\u{2013}\u{a0}3\n"
        );
        assert_eq!(folded("it's\n", "it\u{2019}s", "it is"), "it is\n");
        assert_eq!(
            folded("a \t\r\nb\r\n", "a\nb\n", "a\nx\nb\n"),
            "a \t\r\nx\r\nb\r\n"
        );
        assert_eq!(folded("x = 1\ny\n", "x = 1 ", "x = 2"), "x = 2\ny\n");
        // Two such places, a place inside a line, or blanks that can be seen: no.
        for (text, old) in [
            ("a \nb\na\t\nb\n", "a\nb"),
            ("x =1\n", "x = "),
            ("  a\nb\n", "   a\nb"),
            ("a b\n", "a  b"),
            (" \n \n", "\t\n\t"),
        ] {
            let fault = edited(text, old, "new text").unwrap_err();
            assert!(
                matches!(fault, EditFault::Missing { .. }),
                "{text:?} {old:?} {fault:?}"
            );
        }
    }

    #[test]
    fn an_exact_place_is_preferred_to_one_that_looks_the_same() {
        check(
            "\"a\" \u{201c}a\u{201d}",
            "\"a\"",
            "b",
            "b \u{201c}a\u{201d}",
        );
        check("a \nb\na\nb\n", "a\nb", "x", "a \nb\nx\n");
    }

    #[test]
    fn equal_after_normalisation_is_not_equal() {
        // Composed and decomposed: the bytes differ, and what the file has is not guessed.
        let fault = edited("cafe\u{301}\n", "caf\u{e9}", "tea").unwrap_err();
        assert!(matches!(fault, EditFault::Missing { .. }), "{fault:?}");
        // Upper and lower case, and full-width letters, are no typography.
        for text in [
            "CAF\u{c9}\n",
            "\u{ff43}\u{ff41}\u{ff46}\u{e9}\n",
            "ca\u{fb00}e\n",
        ] {
            assert!(edited(text, "caf\u{e9}", "tea").is_err(), "{text:?}");
        }
    }

    #[test]
    fn a_missing_string_is_told_with_what_is_near() {
        let text = "fn a() {\n    one();\n    two();\n}\n\nfn b() {\n    three();\n}\n";
        let nearest = |old: &str| match edited(text, old, "something else") {
            Err(EditFault::Missing { nearest }) => nearest,
            other => panic!("{other:?}"),
        };
        let region = nearest("  one();\n  two();\n").unwrap();
        assert_eq!(region.first, 2);
        assert_eq!(region.last, 3);
        assert_eq!(region.difference, Some(NearDifference::Indentation));
        assert_eq!(
            region.lines,
            [(2, "    one();".to_owned()), (3, "    two();".to_owned())]
        );
        let region = nearest("fn A() {\n    one();\n    TWO();\n}").unwrap();
        assert_eq!(region.first, 1);
        assert_eq!(region.last, 4);
        assert_eq!(region.lines.len(), 3);
        assert_eq!(region.difference, Some(NearDifference::Case));
        let region = nearest("one() ;").unwrap();
        assert_eq!(region.first, 2);
        assert_eq!(region.difference, Some(NearDifference::Blanks));
        let region = nearest("    thre();").unwrap();
        assert_eq!(region.first, 7);
        assert_eq!(region.last, 7);
        assert_eq!(region.difference, None);
        assert_eq!(nearest("nothing like it whatsoever"), None);
    }

    #[test]
    fn a_line_end_that_is_spelled_out_is_told() {
        let escaped = |lines| Err(EditFault::Escaped { lines });
        assert_eq!(
            edited("a\none\r\ntwo\n", "one\\ntwo", "x"),
            escaped(vec![2])
        );
        assert_eq!(edited("one\ntwo\n", "one\\r\\ntwo", "x"), escaped(vec![1]));
        // Where the file spells it out too, it is meant.
        check("print('a\\n')\n", "a\\n", "b\\n", "print('b\\n')\n");
    }

    #[test]
    fn an_edit_made_twice_is_told() {
        let there = |lines| EditFault::AlreadyThere { lines };
        assert_eq!(
            edited("let total = 2;\n", "let total = 1;", "let total = 2;"),
            Err(there(vec![1]))
        );
        let fault = planned("count\ncount\n", "number", "count", EditScope::All).unwrap_err();
        assert_eq!(fault, there(vec![1, 2]));
        // A short string, or one that is there often, tells nothing.
        assert!(matches!(
            edited("} }\n", "]", "}"),
            Err(EditFault::Missing { .. })
        ));
        assert!(matches!(
            edited("count count\n", "number", "count"),
            Err(EditFault::Missing { .. })
        ));
    }

    /// Texts of few different lines, so that strings occur often, with line ends of both kinds.
    fn text() -> impl Strategy<Value = String> {
        let line = prop_oneof![
            "[ab]{0,3}",
            "[ab \u{201c}\"\u{a0}]{0,4}",
            Just("\u{e9}\u{1f600}".to_owned())
        ];
        let end = prop_oneof![Just("\n"), Just("\r\n")];
        let lines = proptest::collection::vec((line, end), 0..8);
        (lines, "[ab]{0,2}", any::<bool>()).prop_map(|(lines, last, bom)| {
            let bom = if bom { "\u{feff}" } else { "" };
            let lines: String = lines.into_iter().map(|(line, end)| line + end).collect();
            format!("{bom}{lines}{last}")
        })
    }

    fn piece(text: &str, a: prop::sample::Index, b: prop::sample::Index) -> String {
        let plain: Vec<char> = text.replace("\r\n", "\n").chars().collect();
        let (a, b) = (a.index(plain.len() + 1), b.index(plain.len() + 1));
        plain[a.min(b)..a.max(b)].iter().collect()
    }

    /// How often a string occurs, overlapping places counted.
    fn count(text: &str, wanted: &str) -> usize {
        text.char_indices()
            .filter(|(at, _)| text[*at..].starts_with(wanted))
            .count()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(600))]

        #[test]
        fn an_edit_changes_what_it_names_and_nothing_else(
            text in text(), a: prop::sample::Index, b: prop::sample::Index, new in "[abc\\n\u{201d}]{0,6}",
        ) {
            let old = piece(&text, a, b);
            prop_assume!(!old.is_empty() && old != new);
            let plain = text.replace("\r\n", "\n");
            match planned(&text, &old, &new, EditScope::Unique) {
                Ok(plan) => {
                    prop_assert!(!plan.folded);
                    prop_assert_eq!(count(&plain, &old), 1);
                    let result = applied(&text, &plan);
                    prop_assert_eq!(result.replace("\r\n", "\n"), plain.replacen(&old, &new, 1));
                    let range = &plan.splices[0].range;
                    let (start, end) = (range.start as usize, range.end as usize);
                    prop_assert!(result.starts_with(&text[..start]));
                    prop_assert!(result.ends_with(&text[end..]));
                    for at in [start, end] {
                        prop_assert!(!(text[..at].ends_with('\r') && text[at..].starts_with('\n')));
                    }
                    // A file of one kind of line ends stays one.
                    if !text.replace("\r\n", "").contains('\n') && text.contains('\n') {
                        prop_assert!(!result.replace("\r\n", "").contains('\n'));
                    }
                    if !text.contains('\r') {
                        prop_assert!(!result.contains('\r'));
                    }
                }
                Err(EditFault::Repeated { count: found, .. }) => {
                    prop_assert!(found > 1 && count(&plain, &old) > 1);
                }
                Err(other) => prop_assert!(false, "{:?}", other),
            }
        }

        #[test]
        fn all_places_are_replaced_as_the_standard_library_does(
            text in text(), a: prop::sample::Index, b: prop::sample::Index, new in "[abc\\n]{0,4}",
        ) {
            let old = piece(&text, a, b);
            prop_assume!(!old.is_empty() && old != new);
            let plan = planned(&text, &old, &new, EditScope::All).unwrap();
            let plain = text.replace("\r\n", "\n");
            let result = applied(&text, &plan);
            prop_assert_eq!(plan.splices.len(), plain.matches(&old).count());
            prop_assert_eq!(result.replace("\r\n", "\n"), plain.replace(&old, &new));
        }

        #[test]
        fn a_place_that_looks_the_same_is_the_only_one(
            text in text(), old in "[ab \"\\n\u{201c}\u{a0}]{1,6}", new in "[abc\\n]{0,4}",
        ) {
            let Ok(plan) = planned(&text, &old, &new, EditScope::Unique) else { return Ok(()) };
            prop_assert_eq!(plan.splices.len(), 1);
            let range = &plan.splices[0].range;
            let result = applied(&text, &plan);
            prop_assert!(result.starts_with(&text[..range.start as usize]));
            prop_assert!(result.ends_with(&text[range.end as usize..]));
            if plan.folded {
                prop_assert_eq!(count(&text.replace("\r\n", "\n"), &old), 0);
                let seen = Folded::new(&text, LastBlanks::Dropped).text;
                prop_assert!(count(&seen, &Folded::new(&old, LastBlanks::Kept).text) <= 1);
            }
        }

        #[test]
        fn arbitrary_edits_never_panic_and_never_cut_a_line_end(
            text in "[ab\\r\\n ]{0,20}", old in "[ab\\r\\n ]{1,4}", new in ".{0,4}", all: bool,
        ) {
            let scope = if all { EditScope::All } else { EditScope::Unique };
            let Ok(plan) = planned(&text, &old, &new, scope) else { return Ok(()) };
            for splice in &plan.splices {
                for at in [splice.range.start as usize, splice.range.end as usize] {
                    prop_assert!(!(text[..at].ends_with('\r') && text[at..].starts_with('\n')));
                }
            }
        }
    }
}
