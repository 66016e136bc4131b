//! Decides which lines belong to a hunk, and how they may be read.

use super::forbidden::forbidden;
use super::hunk::{HunkBody, HunkLineKind, HunkReading, PatchLines, kind_and_text};
use super::parse::{HunkHeader, is_search, malformed};
use crate::error::Result;

const UNEVEN: &str = "lines that start with `+` follow the last line that its counts allow; put the counts right, or leave \
    them out (`@@` alone)";

/// How the lines begin that the `*** Begin Patch` envelope has outside of hunks.
const ENVELOPE: [&[u8]; 6] = [
    b"*** Begin Patch",
    b"*** End",
    b"*** Update File:",
    b"*** Add File:",
    b"*** Delete File",
    b"*** Move to",
];

/// The lines that may be those of a hunk.
pub(super) struct HunkBlock<'p> {
    start: PatchLines<'p>,
    header: Option<HunkHeader>,
    bare: bool,
}

/// A hunk as it may be read.
pub(super) struct Readings<'p> {
    /// The likeliest first.
    pub(super) readings: Vec<HunkReading<'p>>,
    /// Where prose may begin.
    pub(super) talk: PatchLines<'p>,
    /// Where to go on.
    pub(super) end: PatchLines<'p>,
}

/// A run of lines, and where it ends.
#[derive(Clone, Copy)]
struct Run<'p> {
    end: PatchLines<'p>,
}

impl<'p> HunkBlock<'p> {
    pub(super) fn new(
        start: PatchLines<'p>,
        header: Option<HunkHeader>,
        bare: bool,
    ) -> HunkBlock<'p> {
        HunkBlock {
            start,
            header,
            bare,
        }
    }

    pub(super) fn readings(&self) -> Result<Readings<'p>> {
        let (greedy, whole) = (self.greedy(), self.whole());
        let counted = self.header.and_then(|header| self.counted(header));
        if counted.is_none()
            && let Some(header) = self.header
            && let Some(lost) = self.counted_without_spaces(header)
            && lost.end.line > whole.end.line
        {
            return Ok(self.beyond_ends(lost, greedy, whole));
        }
        let mut readings = Vec::new();
        let mut last = greedy;
        match counted {
            Some(counted) if counted.end.line >= greedy.end.line => {
                readings.push(self.reading(counted));
                // The lines that it leaves out are skipped: they must not be changes or headers of another file.
                if counted.end.line > greedy.end.line && is_prose(self.between(greedy, counted)) {
                    readings.push(self.reading(greedy));
                }
                last = counted;
            }
            Some(counted) => readings.push(self.uneven(counted, greedy, whole)?),
            None => readings.push(self.reading(greedy)),
        }
        if !is_prose(self.between(last, whole)) {
            // A change would be left out, so only a reading with all lines will do.
            readings.clear();
        }
        if whole.end.line > greedy.end.line {
            readings.push(self.verbatim(whole));
        }
        readings.retain(HunkReading::has_lines);
        Ok(Readings {
            readings,
            talk: last.end,
            end: last.end.later(whole.end),
        })
    }

    /// The reading where lines that may be changes follow those that the header counts.
    fn uneven(&self, counted: Run<'p>, greedy: Run<'p>, whole: Run<'p>) -> Result<HunkReading<'p>> {
        let more = self.between(counted, greedy);
        let is_prose = is_prose(self.between(counted, whole));
        let separate = counted.end.peek().is_some_and(<[u8]>::is_empty);
        if is_prose && (separate || more.clone().all(is_bullet)) {
            return Ok(self.reading(counted));
        }
        if more.clone().any(is_old) {
            return Ok(self.reading(greedy));
        }
        Err(malformed(self.start.line, UNEVEN))
    }

    /// Correct counts decide, even if context that lost its space looks like a fence or a header. Other counts are only
    /// tried if what they leave out is neither a change nor a name.
    fn beyond_ends(&self, lost: Run<'p>, greedy: Run<'p>, whole: Run<'p>) -> Readings<'p> {
        let mut readings = vec![self.verbatim(lost)];
        let more = self.between(greedy, lost);
        if is_prose(more.clone()) && !more.clone().any(|line| line.starts_with(b"Index: ")) {
            readings.push(self.reading(greedy));
            readings.push(self.verbatim(whole));
        }
        readings.retain(HunkReading::has_lines);
        Readings {
            readings,
            talk: lost.end,
            end: lost.end,
        }
    }

    fn body(&self, run: Run<'p>) -> &'p [u8] {
        run.end.since(self.start)
    }

    fn reading(&self, run: Run<'p>) -> HunkReading<'p> {
        HunkReading::new(HunkBody::Prefixed(self.body(run)), self.start.transport)
    }

    fn verbatim(&self, run: Run<'p>) -> HunkReading<'p> {
        HunkReading::new(HunkBody::Verbatim(self.body(run)), self.start.transport)
    }

    fn between(&self, from: Run<'p>, to: Run<'p>) -> impl Iterator<Item = &'p [u8]> + Clone {
        let lines = PatchLines::new(to.end.since(from.end), self.start.transport);
        lines.iter()
    }

    /// As many lines as the header promises, if they are of the kinds it promises.
    fn counted(&self, header: HunkHeader) -> Option<Run<'p>> {
        self.count(header, |_| None)
    }

    /// Reads a block whose context lines may have lost their leading space.
    fn counted_without_spaces(&self, header: HunkHeader) -> Option<Run<'p>> {
        self.count(header, |line| {
            (!is_structure(line)).then_some(HunkLineKind::Context)
        })
    }

    fn count(
        &self,
        header: HunkHeader,
        without_sign: impl Fn(&[u8]) -> Option<HunkLineKind>,
    ) -> Option<Run<'p>> {
        let (mut old, mut new) = (header.old.count, header.new.count);
        let mut source = self.start;
        while old > 0 || new > 0 {
            let line = source.next()?;
            if line.starts_with(b"\\") {
                continue;
            }
            let kind = match kind_and_text(line) {
                Some((kind, _)) => kind,
                None => without_sign(line)?,
            };
            if kind != HunkLineKind::Added {
                old = old.checked_sub(1)?;
            }
            if kind != HunkLineKind::Removed {
                new = new.checked_sub(1)?;
            }
        }
        Some(Run {
            end: source.over_marker(),
        })
    }

    /// All lines that can be those of a hunk, without empty ones at the end.
    fn greedy(&self) -> Run<'p> {
        self.run(|line| kind_and_text(line).is_some() || line.starts_with(b"\\"))
    }

    /// All lines up to what is certainly no line of the hunk, without empty ones at the end.
    fn whole(&self) -> Run<'p> {
        self.run(|_| true)
    }

    fn run(&self, belongs: impl Fn(&[u8]) -> bool) -> Run<'p> {
        let mut source = self.start;
        let mut end = source;
        while let Some(line) = source.next() {
            if self.ends_hunk(line, source) || !belongs(line) {
                break;
            }
            if !line.is_empty() {
                end = source;
            }
        }
        Run { end }
    }

    /// Tells whether a line certainly does not belong to a hunk; `after` is what follows it.
    fn ends_hunk(&self, line: &[u8], after: PatchLines<'p>) -> bool {
        let names = || {
            let mut ahead = after;
            ahead.next().is_some_and(|next| next.starts_with(b"+++ "))
                && ahead.next().is_some_and(|next| next.starts_with(b"@@"))
        };
        let signature = || {
            let next = after.peek().and_then(|next| next.first().copied());
            next.is_some_and(|byte| byte.is_ascii_digit())
        };
        is_structure(line)
            || line.starts_with(b"```")
            || line.starts_with(b"Index: ")
            || (line.starts_with(b"--- ") && !self.bare && names())
            || (matches!(line, b"-- " | b"--") && signature())
    }
}

/// Tells whether a line begins something else than a line of a hunk, whatever counts say.
fn is_structure(line: &[u8]) -> bool {
    line.starts_with(b"@@")
        || line.starts_with(b"diff -")
        || is_search(line)
        || ENVELOPE.iter().any(|words| line.starts_with(words))
        || forbidden(line).is_some()
}

pub(super) fn is_change(line: &[u8]) -> bool {
    matches!(line.first(), Some(b'+' | b'-'))
}

/// A line that must be in the text, and is not empty.
fn is_old(line: &[u8]) -> bool {
    matches!(line, [b' ' | b'-', rest @ ..] if !rest.trim_ascii().is_empty())
}

/// An item of a list in prose: a sign, one space, and a word.
pub(super) fn is_bullet(line: &[u8]) -> bool {
    matches!(line, [b'+' | b'-', b' ', word, ..] if word.is_ascii_alphanumeric() || *word >= 0x80 || *word == b'`')
}

/// Tells whether no line can be a change.
fn is_prose<'p>(mut lines: impl Iterator<Item = &'p [u8]>) -> bool {
    lines.all(|line| !is_change(line) || is_bullet(line))
}
