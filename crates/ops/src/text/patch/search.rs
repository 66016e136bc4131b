//! Where a hunk's old lines are in a text.

use memchr::memchr;

use super::parse::{HunkLine, ParsedHunk};
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
}

impl LineComparison {
    pub(super) fn of(hunk: &ParsedHunk<'_>) -> LineComparison {
        if hunk.old_carriage_returns {
            LineComparison::Exact
        } else {
            LineComparison::Either
        }
    }

    fn same(self, wanted: &HunkLine<'_>, found: &TextLine<'_>) -> bool {
        let text = wanted.text;
        match (wanted.open, found.closed, self) {
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

/// Compares the hunk's old lines with the text from here on.
pub(super) fn compare<'p, 't>(
    content: &'t [u8],
    from: Cursor,
    hunk: &ParsedHunk<'p>,
    cancel: &Cancel,
) -> Result<Option<Difference<'p, 't>>> {
    let ends = LineComparison::of(hunk);
    let Cursor {
        mut offset,
        mut line,
    } = from;
    for wanted in hunk.old_lines() {
        let found = TextLine::at(content, offset);
        match found {
            Some(found) if ends.same(&wanted, &found) => offset = found.next,
            _ => {
                let found = found.map(|found| found.text);
                return Ok(Some(Difference {
                    line,
                    expected: Some(wanted.text),
                    found,
                }));
            }
        }
        line += 1;
        if line.is_multiple_of(4096) {
            cancel.check()?;
        }
    }
    // A last line without newline has to be the last line of the new text too.
    let rest = if hunk.new_open {
        TextLine::at(content, offset)
    } else {
        None
    };
    Ok(rest.map(|rest| Difference {
        line,
        expected: None,
        found: Some(rest.text),
    }))
}

/// Moves forward to a line; nothing where the text has too few. Costs no more than the way there.
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

/// Hunks with more old lines than this are not looked for elsewhere: that would take memory.
const SEARCHED_LINES: usize = 1 << 20;

/// How many bytes all searches of a patch may pass over, so that no patch makes them quadratic.
#[derive(Debug)]
pub(super) struct Budget(usize);

impl Budget {
    pub(super) fn for_text(content: &[u8]) -> Budget {
        Budget(
            content
                .len()
                .saturating_mul(8)
                .saturating_add(16 * 1024 * 1024),
        )
    }

    fn spend(&mut self, bytes: usize) -> bool {
        self.0 = self.0.saturating_sub(bytes);
        self.0 > 0
    }
}

/// Finds the line nearest to `guess`, not before `from`, where all old lines of the hunk are.
///
/// One pass, whatever repeats in text or hunk (Knuth, Morris and Pratt's search, over lines). Of two places
/// equally near, the later.
pub(super) fn nearest(
    content: &[u8],
    from: Cursor,
    guess: usize,
    hunk: &ParsedHunk<'_>,
    budget: &mut Budget,
    cancel: &Cancel,
) -> Result<Option<Cursor>> {
    let wanted = hunk.header.old.count;
    if wanted == 0 || wanted > SEARCHED_LINES || wanted > content.len() - from.offset {
        return Ok(None);
    }
    let mut places = Places::new(hunk);
    let mut best = Nearest {
        guess,
        before: None,
    };
    let Cursor {
        mut offset,
        mut line,
    } = from;
    while let Some(found) = TextLine::at(content, offset) {
        let start = (line + 1).saturating_sub(wanted);
        let whole = places.advance(&found);
        let fits = whole && !(hunk.new_open && found.next < content.len());
        if best.settles(start, fits) || !budget.spend(found.next - offset) {
            break;
        }
        (offset, line) = (found.next, line + 1);
        if line.is_multiple_of(4096) {
            cancel.check()?;
        }
    }
    Ok(best.before.and_then(|line| seek(content, from, line)))
}

/// The nearest place so far; places come in order.
struct Nearest {
    guess: usize,
    before: Option<usize>,
}

impl Nearest {
    /// Takes the next place, if it `fits`, and tells whether no later one can be nearer.
    fn settles(&mut self, start: usize, fits: bool) -> bool {
        let distance = start.saturating_sub(self.guess);
        let known = self
            .before
            .map_or(usize::MAX, |before| self.guess.abs_diff(before));
        if fits && (start <= self.guess || distance <= known) {
            self.before = Some(start);
        }
        start > self.guess && (fits || distance >= known)
    }
}

/// How much of a hunk's old lines the text's last lines are.
struct Places<'p> {
    wanted: Vec<HunkLine<'p>>,
    /// For each length of a beginning, the longest shorter one that it ends with.
    shorter: Vec<u32>,
    ends: LineComparison,
    matched: usize,
}

impl<'p> Places<'p> {
    fn new(hunk: &ParsedHunk<'p>) -> Places<'p> {
        let wanted: Vec<HunkLine<'p>> = hunk.old_lines().collect();
        let shorter = shorter_beginnings(&wanted);
        Places {
            wanted,
            shorter,
            ends: LineComparison::of(hunk),
            matched: 0,
        }
    }

    /// Takes the next line of the text and tells whether all old lines end with it.
    fn advance(&mut self, found: &TextLine<'_>) -> bool {
        if self.matched == self.wanted.len() {
            self.matched = self.shorten();
        }
        loop {
            let fits = self
                .wanted
                .get(self.matched)
                .is_some_and(|w| self.ends.same(w, found));
            if fits {
                self.matched += 1;
                return self.matched == self.wanted.len();
            }
            if self.matched == 0 {
                return false;
            }
            self.matched = self.shorten();
        }
    }

    fn shorten(&self) -> usize {
        self.shorter
            .get(self.matched.wrapping_sub(1))
            .map_or(0, |length| *length as usize)
    }
}

fn shorter_beginnings(wanted: &[HunkLine<'_>]) -> Vec<u32> {
    let mut shorter: Vec<u32> = vec![0; wanted.len()];
    let mut length = 0usize;
    let same = |a: usize, b: usize| match (wanted.get(a), wanted.get(b)) {
        (Some(a), Some(b)) => a.text == b.text && a.open == b.open,
        _ => false,
    };
    for index in 1..wanted.len() {
        while length > 0 && !same(index, length) {
            length = shorter.get(length - 1).map_or(0, |known| *known as usize);
        }
        length += usize::from(same(index, length));
        if let (Some(slot), Ok(known)) = (shorter.get_mut(index), u32::try_from(length)) {
            *slot = known;
        }
    }
    shorter
}
