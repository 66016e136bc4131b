//! Finds the place of every hunk in a text, then puts them in.

use std::ops::Range;

use super::hunk::{HunkLine, HunkLineKind, HunkReading, ParsedHunk};
use super::parse::{FilePatch, malformed};
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
const NO_CONTEXT: &str = "the hunk only adds lines and has no line of the file; put the line before or after them in as \
    context, starting with a space";
const OVERLAP: &str = "the hunk changes lines that another hunk changes";
const NO_CHANGE: &str = "it changes nothing: no line starts with `-` or `+`";

/// Applies the part of a patch for one file.
pub(super) fn run(
    path: &str,
    content: &[u8],
    patch: &FilePatch<'_>,
    cancel: &Cancel,
) -> Result<Applied> {
    refuse_pointless(path, content, patch)?;
    let (bom, body) = match content.strip_prefix(encoding::BOM) {
        // A byte order mark that the patch does not mention stays.
        Some(body) if !readings(patch).any(|reading| reading.has_bom) => (encoding::BOM, body),
        _ => (&[][..], content),
    };
    let mut placing = Placing {
        path,
        content: body,
        cancel,
        shift: 0,
        budget: Budget::new(body, patch.hunks.len()),
    };
    let mut placed = Vec::with_capacity(patch.hunks.len());
    for (index, hunk) in patch.hunks.iter().enumerate() {
        cancel.check()?;
        placed.push(placing.place(index, hunk)?);
    }
    let knows_line_ends = readings(patch).any(|reading| reading.carriage_returns);
    write_all(bom, body, placed, knows_line_ends)
}

fn readings<'h, 'p>(patch: &'h FilePatch<'p>) -> impl Iterator<Item = &'h HunkReading<'p>> {
    patch.hunks.iter().flat_map(|hunk| &hunk.readings)
}

/// Fails if the patch makes a file that is there, or changes nothing.
fn refuse_pointless(path: &str, content: &[u8], patch: &FilePatch<'_>) -> Result<()> {
    if patch.creates && !content.is_empty() {
        return Err(Error::PatchCreates {
            path: path.to_owned(),
        });
    }
    if !readings(patch).any(HunkReading::has_changes) {
        let line = patch.hunks.first().map_or(1, |hunk| hunk.line);
        return Err(malformed(line, NO_CHANGE));
    }
    Ok(())
}

/// A hunk, as it was read, and its place.
struct Placed<'h, 'p> {
    index: usize,
    hunk: &'h ParsedHunk<'p>,
    reading: &'h HunkReading<'p>,
    place: Cursor,
    /// Where its first change is.
    change: Cursor,
}

struct Placing<'a> {
    path: &'a str,
    content: &'a [u8],
    cancel: &'a Cancel,
    /// The distance of the last hunk from the line in its header; the next one is probably as far off.
    shift: i64,
    budget: Budget,
}

impl<'a> Placing<'a> {
    fn place<'h, 'p>(&mut self, index: usize, hunk: &'h ParsedHunk<'p>) -> Result<Placed<'h, 'p>> {
        for reading in &hunk.readings {
            let strict = LineComparison::of(reading);
            for comparison in [strict, LineComparison::Loose] {
                let place = self.only_place(index, hunk, reading, comparison)?;
                if let Some(place) = place {
                    return self.settle(index, hunk, reading, place);
                }
            }
        }
        Err(self.mismatch(index, hunk))
    }

    fn settle<'h, 'p>(
        &mut self,
        index: usize,
        hunk: &'h ParsedHunk<'p>,
        reading: &'h HunkReading<'p>,
        place: Cursor,
    ) -> Result<Placed<'h, 'p>> {
        if let Some(start) = hunk.start {
            self.shift = signed(place.line) - signed(start);
        }
        let change = search::seek(self.content, place, place.line + reading.leading);
        Ok(Placed {
            index,
            hunk,
            reading,
            place,
            change: change.unwrap_or(place),
        })
    }

    /// The line that the header names, if the reading fits there.
    fn at_header(
        &mut self,
        hunk: &ParsedHunk<'_>,
        reading: &HunkReading<'_>,
        comparison: LineComparison,
    ) -> Option<Cursor> {
        let place = search::seek(self.content, Cursor::TOP, hunk.start?)?;
        let difference =
            search::compare(self.content, place, reading, comparison, &mut self.budget);
        difference.is_none().then_some(place)
    }

    /// The only place of a reading, or the one at the line that its header names.
    fn only_place(
        &mut self,
        index: usize,
        hunk: &ParsedHunk<'_>,
        reading: &HunkReading<'_>,
        comparison: LineComparison,
    ) -> Result<Option<Cursor>> {
        if reading.old == 0 {
            return if self.content.is_empty() {
                Ok(Some(Cursor::TOP))
            } else {
                Err(malformed(hunk.line, NO_CONTEXT))
            };
        }
        if self.shift == 0
            && let Some(place) = self.at_header(hunk, reading, comparison)
        {
            return Ok(Some(place));
        }
        let (budget, cancel) = (&mut self.budget, self.cancel);
        let found = search::places(self.content, reading, comparison, budget, cancel)?;
        match found.places.as_slice() {
            [] => Ok(None),
            [only] => Ok(Some(*only)),
            several => match self.named(hunk, several) {
                Some(place) => Ok(Some(place)),
                None => Err(Error::PatchNotUnique {
                    path: self.path.to_owned(),
                    hunk: index + 1,
                    count: found.count as u64,
                    lines: several.iter().map(|place| place.line as u64 + 1).collect(),
                }),
            },
        }
    }

    /// The place that is as far from the header's line as the hunk before was from its own, if no place is at that line.
    fn named(&self, hunk: &ParsedHunk<'_>, places: &[Cursor]) -> Option<Cursor> {
        let start = hunk.start?;
        let moved = usize::try_from(signed(start) + self.shift).ok()?;
        let at = |line: usize| places.iter().find(|place| place.line == line).copied();
        match (at(start), at(moved)) {
            (None, Some(place)) => Some(place),
            _ => None,
        }
    }

    /// Says where the likeliest reading differs from the text: at the line of its header, or at its first line.
    fn mismatch(&mut self, index: usize, hunk: &ParsedHunk<'_>) -> Error {
        let top = Cursor { offset: 0, line: 0 };
        let Some(reading) = hunk.readings.first() else {
            return malformed(hunk.line, "the hunk has no lines");
        };
        let comparison = LineComparison::of(reading);
        let guess = hunk.start.map(|start| signed(start) + self.shift);
        let guess = guess.and_then(|guess| usize::try_from(guess).ok());
        let place = match guess.and_then(|guess| search::seek(self.content, top, guess)) {
            Some(place) => place,
            None => self.likeliest(reading).unwrap_or(top),
        };
        let difference =
            search::compare(self.content, place, reading, comparison, &mut self.budget);
        let shown = |text: &[u8]| excerpt(search::without_return(text), SHOWN);
        let difference = difference.unwrap_or(Difference {
            line: place.line,
            expected: None,
            found: None,
        });
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

    /// The first line of the text that is the first old line, or like it but for blanks.
    fn likeliest(&mut self, reading: &HunkReading<'_>) -> Option<Cursor> {
        let mut cursor = Cursor { offset: 0, line: 0 };
        let first = reading
            .old_lines()
            .find(|line| !line.text.trim_ascii().is_empty())?;
        while let Some(line) = TextLine::at(self.content, cursor.offset) {
            if line.text.trim_ascii() == first.text.trim_ascii() {
                return Some(cursor);
            }
            cursor = Cursor {
                offset: line.next,
                line: cursor.line + 1,
            };
        }
        None
    }
}

/// Puts hunks in, in the order of the text.
fn write_all(
    bom: &[u8],
    content: &[u8],
    mut placed: Vec<Placed<'_, '_>>,
    knows_line_ends: bool,
) -> Result<Applied> {
    placed.sort_by_key(|placed| (placed.change.offset, placed.index));
    let mut writer = Writer {
        content,
        knows_line_ends,
        cursor: Cursor::TOP,
        output: bom.to_vec(),
        head: bom.len(),
        first_end: LineEnd::first(content).unwrap_or(LineEnd::Lf),
        grown: 0,
        changes: Vec::new(),
    };
    writer.output.reserve(content.len());
    let mut hunks: Vec<(usize, HunkPlace)> = Vec::with_capacity(placed.len());
    for placed in &placed {
        if placed.change.offset < writer.cursor.offset {
            return Err(malformed(placed.hunk.line, OVERLAP));
        }
        hunks.push((placed.index, writer.place_told(placed)));
        writer.hunk(placed);
    }
    hunks.sort_by_key(|(index, _)| *index);
    let hunks = hunks.into_iter().map(|(_, place)| place).collect();
    Ok(writer.finish(hunks))
}

struct Writer<'a> {
    content: &'a [u8],
    /// The patch shows line ends: lines it adds without old lines are taken literally.
    knows_line_ends: bool,
    /// The old text is copied or left out up to here.
    cursor: Cursor,
    output: Vec<u8>,
    /// The size of the byte order mark at the start of the output.
    head: usize,
    /// How the text's first line ends. Many hunks may ask, and the line may be long.
    first_end: LineEnd,
    /// How many lines longer the new text is so far.
    grown: i64,
    changes: Vec<Range<u64>>,
}

impl Writer<'_> {
    /// Where a hunk goes, as the reply says it.
    fn place_told(&self, placed: &Placed<'_, '_>) -> HunkPlace {
        let at = signed(placed.place.line);
        HunkPlace {
            line: usize::try_from(at + self.grown).unwrap_or(0) + 1,
            offset: placed.hunk.start.map_or(0, |start| at - signed(start)),
        }
    }

    fn hunk(&mut self, placed: &Placed<'_, '_>) {
        let reading = placed.reading;
        if !reading.has_changes() {
            return;
        }
        self.copy_until(placed.change);
        let start = self.output.len() as u64;
        self.write(placed);
        self.changes
            .push(start..(self.output.len() as u64).max(start));
        self.grown += signed(reading.new) - signed(reading.old);
    }

    fn copy_until(&mut self, place: Cursor) {
        let kept = self.content.get(self.cursor.offset..place.offset);
        self.output.extend_from_slice(kept.unwrap_or_default());
        self.cursor = place;
    }

    /// Writes the lines of a hunk from its first change to its last.
    fn write(&mut self, placed: &Placed<'_, '_>) {
        let reading = placed.reading;
        let literal = self.is_literal(reading);
        let marks_count = self.marks_count(placed);
        let mut end = self.line_end_here(reading);
        let mut last = None;
        for mut line in reading.lines().take(reading.changed).skip(reading.leading) {
            line.open &= marks_count;
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
            self.keep_end_open(reading.old_open && marks_count);
        }
    }

    /// Whether `\n` in added lines is meant literally.
    fn is_literal(&self, reading: &HunkReading<'_>) -> bool {
        match reading.old {
            0 => self.knows_line_ends,
            _ => LineComparison::of(reading) == LineComparison::Exact,
        }
    }

    /// Tells whether marks of a missing newline are to be believed: the hunk ends where the text does, and what it says of
    /// the old text is so.
    fn marks_count(&self, placed: &Placed<'_, '_>) -> bool {
        let reading = placed.reading;
        let end = search::seek(self.content, placed.place, placed.place.line + reading.old);
        let at_end = end.is_none_or(|end| end.offset == self.content.len());
        at_end && !(reading.old_open && self.content.ends_with(b"\n"))
    }

    /// The line end that added lines get until the hunk passes an old line: that of the line before, or of the first old
    /// line if the hunk begins with a change of it, or of the first line there is.
    fn line_end_here(&self, reading: &HunkReading<'_>) -> LineEnd {
        let split = self.content.split_at_checked(self.cursor.offset);
        let (before, after) = split.unwrap_or_default();
        let previous = LineEnd::closing(before);
        let next = (reading.old > 0).then(|| LineEnd::first(after)).flatten();
        let found = if reading.leading > 0 {
            previous.or(next)
        } else {
            next.or(previous)
        };
        found.unwrap_or(self.first_end)
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

    /// Passes an old line, keeping it or not, and returns its line end.
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
    fn keep_end_open(&mut self, knew: bool) {
        let at_end = self.cursor.offset == self.content.len() && !self.content.is_empty();
        let open = !self.content.ends_with(b"\n");
        if at_end && open && !knew {
            let end = LineEnd::closing(&self.output).map_or(0, |end| end.as_bytes().len());
            self.output.truncate(self.output.len() - end);
        }
    }

    fn finish(mut self, hunks: Vec<HunkPlace>) -> Applied {
        let rest = self.content.get(self.cursor.offset..).unwrap_or(&[]);
        self.output.extend_from_slice(rest);
        Applied {
            content: self.output,
            hunks,
            changes: self.changes,
        }
    }
}

/// Line numbers fit: a text in memory has fewer lines than bytes.
fn signed(lines: usize) -> i64 {
    i64::try_from(lines).unwrap_or(i64::MAX)
}
