//! Puts hunks into a text, in order, in one pass.

use super::parse::{HunkLine, HunkLineKind, ParsedHunk, ParsedPatch};
use super::search::{self, Budget, Cursor, Difference, LineComparison, TextLine};
use super::{Applied, HunkPlace};
use crate::context::Cancel;
use crate::error::{Error, Result};
use crate::text::lines::LineEnd;
use crate::text::{encoding, excerpt};

/// How much of a line an error repeats.
const SHOWN: usize = 300;
/// What an error says was expected where the text should have ended, or not yet.
const END: &str = "(end of file)";
const MORE: &str = "(more lines)";

/// Applies a parsed patch.
pub(super) fn run(
    path: &str,
    content: &[u8],
    patch: &ParsedPatch<'_>,
    cancel: &Cancel,
) -> Result<Applied> {
    let (bom, body) = split_bom(content, patch);
    let mut work = PatchRun::new(path, body, patch, cancel);
    work.output.extend_from_slice(bom);
    work.head = bom.len();
    if patch.creates && !content.is_empty() {
        return Err(Error::PatchCreates {
            path: path.to_owned(),
        });
    }
    for (index, hunk) in patch.hunks.iter().enumerate() {
        cancel.check()?;
        work.hunk(index, hunk)?;
    }
    Ok(work.finish())
}

/// A byte order mark that the patch does not know of stays where it is.
fn split_bom<'c>(content: &'c [u8], patch: &ParsedPatch<'_>) -> (&'c [u8], &'c [u8]) {
    match content.strip_prefix(encoding::BOM) {
        Some(body) if !patch.has_bom => (encoding::BOM, body),
        _ => (&[], content),
    }
}

struct PatchRun<'a> {
    path: &'a str,
    content: &'a [u8],
    cancel: &'a Cancel,
    /// The patch knows line ends: what it adds without old lines is taken to the letter.
    knows_line_ends: bool,
    /// The old text is copied or left out up to here.
    cursor: Cursor,
    output: Vec<u8>,
    /// How much of the output is no line but a byte order mark.
    head: usize,
    /// How the text's first line ends. Many hunks may ask, and the line may be long.
    first_end: LineEnd,
    /// How far the last hunk was from the place in its header; the next is likely as far.
    shift: i64,
    /// How many lines longer the new text is so far.
    grown: i64,
    places: Vec<HunkPlace>,
    budget: Budget,
}

impl<'a> PatchRun<'a> {
    fn new(
        path: &'a str,
        content: &'a [u8],
        patch: &ParsedPatch<'_>,
        cancel: &'a Cancel,
    ) -> PatchRun<'a> {
        PatchRun {
            path,
            content,
            cancel,
            knows_line_ends: patch.has_carriage_returns,
            cursor: Cursor { offset: 0, line: 0 },
            output: Vec::with_capacity(content.len() + patch.size),
            head: 0,
            first_end: LineEnd::first(content).unwrap_or(LineEnd::Lf),
            shift: 0,
            grown: 0,
            places: Vec::with_capacity(patch.hunks.len()),
            budget: Budget::for_text(content),
        }
    }

    fn hunk(&mut self, index: usize, hunk: &ParsedHunk<'_>) -> Result<()> {
        let place = self.place(index, hunk)?;
        self.shift = signed(place.line) - signed(hunk.first_line());
        let line = usize::try_from(signed(place.line) + self.grown).unwrap_or(0) + 1;
        self.places.push(HunkPlace {
            line,
            offset: self.shift,
        });
        self.grown += signed(hunk.header.new.count) - signed(hunk.header.old.count);
        self.copy_until(place);
        self.write(hunk);
        Ok(())
    }

    /// Where the hunk goes: its line, moved along with the hunk before it, or the nearest place that fits.
    fn place(&mut self, index: usize, hunk: &ParsedHunk<'_>) -> Result<Cursor> {
        let moved = signed(hunk.first_line()).saturating_add(self.shift);
        let guess = usize::try_from(moved).unwrap_or(0).max(self.cursor.line);
        if hunk.header.old.count == 0 && self.content.is_empty() {
            return Ok(self.cursor);
        }
        let difference = match search::seek(self.content, self.cursor, guess) {
            Some(there) => match search::compare(self.content, there, hunk, self.cancel)? {
                None => return Ok(there),
                Some(difference) => difference,
            },
            None => Difference {
                line: guess,
                expected: first_old_text(hunk),
                found: None,
            },
        };
        let (cursor, cancel) = (self.cursor, self.cancel);
        search::nearest(self.content, cursor, guess, hunk, &mut self.budget, cancel)?
            .ok_or_else(|| self.mismatch(index, &difference))
    }

    fn mismatch(&self, index: usize, difference: &Difference<'_, '_>) -> Error {
        let shown = |text| excerpt(search::without_return(text), SHOWN);
        let nothing = if difference.found.is_some() {
            END
        } else {
            MORE
        };
        Error::PatchMismatch {
            path: self.path.to_owned(),
            hunk: index + 1,
            line: difference.line + 1,
            expected: difference
                .expected
                .map_or_else(|| nothing.to_owned(), shown),
            found: difference.found.map(shown),
        }
    }

    fn copy_until(&mut self, place: Cursor) {
        let kept = self
            .content
            .get(self.cursor.offset..place.offset)
            .unwrap_or(&[]);
        self.output.extend_from_slice(kept);
        self.cursor = place;
    }

    /// Writes the new lines of a hunk whose old lines are here.
    fn write(&mut self, hunk: &ParsedHunk<'_>) {
        let literal = self.is_literal(hunk);
        let mut end = self.line_end_here(hunk);
        let mut last = None;
        for line in hunk.lines() {
            match line.kind {
                HunkLineKind::Added => {
                    self.add(&line, if literal { LineEnd::Lf } else { end }, end)
                }
                HunkLineKind::Context | HunkLineKind::Removed => {
                    end = self.pass(line.kind).unwrap_or(end)
                }
            }
            last = Some(line);
        }
        if last.is_some_and(|line| line.kind == HunkLineKind::Added && !line.open) {
            self.keep_end_open(hunk);
        }
    }

    /// Whether `\n` in what the hunk adds means just that.
    fn is_literal(&self, hunk: &ParsedHunk<'_>) -> bool {
        match hunk.header.old.count {
            0 => self.knows_line_ends,
            _ => LineComparison::of(hunk) == LineComparison::Exact,
        }
    }

    /// The line end that added lines get until the hunk passes an old line: that of the first old line, or of the
    /// line before an insertion, or of the first line there is.
    fn line_end_here(&self, hunk: &ParsedHunk<'_>) -> LineEnd {
        let (before, after) = self
            .content
            .split_at_checked(self.cursor.offset)
            .unwrap_or_default();
        let first_old = match hunk.header.old.count {
            0 => None,
            _ => LineEnd::first(after),
        };
        let previous = || LineEnd::closing(before);
        first_old.or_else(previous).unwrap_or(self.first_end)
    }

    fn add(&mut self, line: &HunkLine<'_>, end: LineEnd, surrounding: LineEnd) {
        if !matches!(self.output.get(self.head..), None | Some([] | [.., b'\n'])) {
            // The last line of the text has no newline and now gets a line after it.
            self.output.extend_from_slice(surrounding.as_bytes());
        }
        self.output.extend_from_slice(line.text);
        if line.open {
            return;
        }
        if line.text.ends_with(b"\r") {
            self.output.push(b'\n');
        } else {
            self.output.extend_from_slice(end.as_bytes());
        }
    }

    /// Goes over an old line, keeping it or not, and says how it ends.
    fn pass(&mut self, kind: HunkLineKind) -> Option<LineEnd> {
        let start = self.cursor.offset;
        let next = TextLine::at(self.content, start).map_or(start, |line| line.next);
        let line = self.content.get(start..next).unwrap_or(&[]);
        if kind == HunkLineKind::Context {
            self.output.extend_from_slice(line);
        }
        self.cursor = Cursor {
            offset: next,
            line: self.cursor.line + 1,
        };
        LineEnd::closing(line)
    }

    /// A text whose last line has no newline still has none, unless the patch says that it knew.
    fn keep_end_open(&mut self, hunk: &ParsedHunk<'_>) {
        let at_end = self.cursor.offset == self.content.len() && !self.content.is_empty();
        let open = !self.content.ends_with(b"\n");
        if at_end && open && !hunk.old_open {
            let end = LineEnd::closing(&self.output).map_or(0, |end| end.as_bytes().len());
            self.output.truncate(self.output.len() - end);
        }
    }

    fn finish(mut self) -> Applied {
        let rest = self.content.get(self.cursor.offset..).unwrap_or(&[]);
        self.output.extend_from_slice(rest);
        Applied {
            content: self.output,
            hunks: self.places,
        }
    }
}

fn first_old_text<'p>(hunk: &ParsedHunk<'p>) -> Option<&'p [u8]> {
    hunk.old_lines().next().map(|line| line.text)
}

/// Line numbers fit: a text in memory has fewer lines than bytes.
fn signed(lines: usize) -> i64 {
    i64::try_from(lines).unwrap_or(i64::MAX)
}
