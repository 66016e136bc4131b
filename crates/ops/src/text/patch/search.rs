//! Finds a hunk's old lines in a text.

use memchr::memchr;

use super::hunk::{HunkLine, HunkReading};
use crate::context::Cancel;
use crate::error::Result;
use crate::text::lines::LineSeeker;

/// A place between two lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cursor {
    pub(super) offset: usize,
    /// The line that starts here, from 0.
    pub(super) line: usize,
}

impl Cursor {
    /// Before the first line.
    pub(super) const TOP: Cursor = Cursor { offset: 0, line: 0 };
}

/// A line of the text.
#[derive(Debug, Clone, Copy)]
pub(super) struct TextLine<'t> {
    /// The line without its `\n`, but with a `\r` before it.
    pub(super) text: &'t [u8],
    /// It has a newline.
    pub(super) closed: bool,
    /// Where the next line starts.
    pub(super) next: usize,
}

impl<'t> TextLine<'t> {
    /// The line that starts here; nothing at the end of the text.
    pub(super) fn at(content: &'t [u8], offset: usize) -> Option<TextLine<'t>> {
        let rest = content.get(offset..).filter(|rest| !rest.is_empty())?;
        match memchr(b'\n', rest) {
            Some(end) => Some(TextLine {
                text: rest.get(..end)?,
                closed: true,
                next: offset + end + 1,
            }),
            None => Some(TextLine {
                text: rest,
                closed: false,
                next: content.len(),
            }),
        }
    }
}

/// How lines are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LineComparison {
    /// The hunk's lines know how lines of the text end.
    Exact,
    /// `\n` in the hunk stands for `\r\n` too.
    Either,
    /// Blanks at the end of lines, marks of a missing newline and a lost space before context do not count either.
    Loose,
}

impl LineComparison {
    /// How the old lines of a reading are compared at first.
    pub(super) fn of(reading: &HunkReading<'_>) -> LineComparison {
        if reading.old_carriage_returns {
            LineComparison::Exact
        } else {
            LineComparison::Either
        }
    }

    fn same(self, wanted: &HunkLine<'_>, found: &TextLine<'_>) -> bool {
        let text = wanted.text;
        match (wanted.open, found.closed, self) {
            (_, _, LineComparison::Loose) => {
                let found = found.text.trim_ascii_end();
                let fits = |text: &[u8]| text.trim_ascii_end() == found;
                fits(text) || wanted.other.is_some_and(fits)
            }
            (true, closed, _) => !closed && text == found.text,
            (false, true, LineComparison::Exact) => text == found.text,
            (false, true, LineComparison::Either) => text == without_return(found.text),
            // The patch need not know that the last line has no newline.
            (false, false, _) => text == found.text || without_return(text) == found.text,
        }
    }
}

pub(super) fn without_return(text: &[u8]) -> &[u8] {
    text.strip_suffix(b"\r").unwrap_or(text)
}

/// The first line that is not as the hunk has it.
#[derive(Debug)]
pub(super) struct Difference<'p, 't> {
    pub(super) line: usize,
    /// Nothing: the text should end here.
    pub(super) expected: Option<&'p [u8]>,
    /// Nothing: the text ends here.
    pub(super) found: Option<&'t [u8]>,
}

/// Compares the old lines of a reading with the text from here on.
pub(super) fn compare<'p, 't>(
    content: &'t [u8],
    from: Cursor,
    reading: &HunkReading<'p>,
    comparison: LineComparison,
    budget: &mut Budget,
) -> Option<Difference<'p, 't>> {
    let Cursor {
        mut offset,
        mut line,
    } = from;
    let differs = |line, wanted: &HunkLine<'p>, found| {
        let expected = Some(wanted.text);
        Some(Difference {
            line,
            expected,
            found,
        })
    };
    for wanted in reading.old_lines() {
        let found = TextLine::at(content, offset);
        budget.spend(wanted.text.len() + 1);
        match found {
            Some(found) if comparison.same(&wanted, &found) => offset = found.next,
            _ => return differs(line, &wanted, found.map(|found| found.text)),
        }
        line += 1;
        if budget.is_spent() {
            // This is unknown, so it does not match.
            return differs(line, &wanted, None);
        }
    }
    // A last line without newline has to be the last line of the new text too.
    let ends = reading.new_open && comparison != LineComparison::Loose;
    let rest = TextLine::at(content, offset).filter(|_| ends)?;
    Some(Difference {
        line,
        expected: None,
        found: Some(rest.text),
    })
}

/// Moves forward to a line; nothing if the text has too few. Costs no more than the way there.
pub(super) fn seek(content: &[u8], from: Cursor, line: usize) -> Option<Cursor> {
    let mut seeker = LineSeeker::new(line.checked_sub(from.line)? as u64);
    let mut offset = from.offset;
    let rest = content.get(offset..)?;
    for block in rest.chunks(4096) {
        if let Some(inside) = seeker.feed(block) {
            return Some(Cursor {
                offset: offset + inside,
                line,
            });
        }
        offset += block.len();
    }
    // The end of a text is where the line after its last one would start, newline or not.
    let open = !rest.is_empty() && !rest.ends_with(b"\n");
    seeker
        .feed(if open { b"\n" } else { b"" })
        .map(|_| Cursor { offset, line })
}

/// How many places are kept.
const PLACES: usize = 20;

/// How much all searches of a patch may compare, so that no patch makes them quadratic.
#[derive(Debug)]
pub(super) struct Budget(usize);

impl Budget {
    /// Enough for a few passes over the text for each hunk, up to a number of hunks.
    pub(super) fn new(content: &[u8], hunks: usize) -> Budget {
        let passes = 4 + 2 * hunks.min(64);
        let bytes = content.len().saturating_mul(passes);
        Budget(bytes.saturating_add(16 * 1024 * 1024))
    }

    fn spend(&mut self, bytes: usize) {
        self.0 = self.0.saturating_sub(bytes);
    }

    pub(super) fn is_spent(&self) -> bool {
        self.0 == 0
    }
}

/// Where the old lines of a reading are.
#[derive(Debug, Default)]
pub(super) struct Places {
    pub(super) count: usize,
    /// The first of them.
    pub(super) places: Vec<Cursor>,
}

/// Finds all places of the old lines of a reading; none once the budget is spent.
pub(super) fn places(
    content: &[u8],
    reading: &HunkReading<'_>,
    comparison: LineComparison,
    budget: &mut Budget,
    cancel: &Cancel,
) -> Result<Places> {
    let mut found = Places::default();
    let Some(first) = reading.old_lines().next() else {
        return Ok(found);
    };
    let mut cursor = Cursor { offset: 0, line: 0 };
    while let Some(line) = TextLine::at(content, cursor.offset) {
        budget.spend(line.next - cursor.offset);
        if comparison.same(&first, &line)
            && compare(content, cursor, reading, comparison, budget).is_none()
        {
            found.count += 1;
            if found.places.len() < PLACES {
                found.places.push(cursor);
            }
        }
        if budget.is_spent() {
            return Ok(Places::default());
        }
        cursor = Cursor {
            offset: line.next,
            line: cursor.line + 1,
        };
        if cursor.line.is_multiple_of(4096) {
            cancel.check_and_give_way()?;
        }
    }
    Ok(found)
}
