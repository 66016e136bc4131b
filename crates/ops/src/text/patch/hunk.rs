//! The lines of a patch, and those of a hunk as they may be read.

use memchr::{memchr, memrchr};

use crate::text::encoding;

/// A run of changes.
#[derive(Debug)]
pub(super) struct ParsedHunk<'p> {
    /// The line of the patch, from 1, that it starts behind.
    pub(super) line: usize,
    /// The first old line, from 0, as the header has it; for an insertion the line it is put before.
    pub(super) start: Option<usize>,
    /// What its lines may be, the likeliest first.
    pub(super) readings: Vec<HunkReading<'p>>,
}

/// How the lines of a hunk may be read.
#[derive(Debug)]
pub(super) struct HunkReading<'p> {
    body: HunkBody<'p>,
    transport: LineTransport,
    /// How many old and new lines it has.
    pub(super) old: usize,
    pub(super) new: usize,
    /// How many lines of context it begins with.
    pub(super) leading: usize,
    /// How many lines it has, and how many up to its last change.
    lines: usize,
    pub(super) changed: usize,
    /// An old line ends in `\r`: old lines are compared to the letter.
    pub(super) old_carriage_returns: bool,
    /// Some lines end in `\r` and others do not, so the hunk shows line ends.
    pub(super) carriage_returns: bool,
    /// Some old line starts with a byte order mark.
    pub(super) has_bom: bool,
    /// The old side, or the new, ends with a line that has no newline.
    pub(super) old_open: bool,
    pub(super) new_open: bool,
}

/// Where the lines of a hunk are.
#[derive(Debug, Clone, Copy)]
pub(super) enum HunkBody<'p> {
    /// Each starts with a sign.
    Prefixed(&'p [u8]),
    /// Context may have lost the space before it.
    Verbatim(&'p [u8]),
    /// All old ones, then all new ones, without signs.
    Search { old: &'p [u8], new: &'p [u8] },
}

/// One line of a hunk.
#[derive(Debug, Clone, Copy)]
pub(super) struct HunkLine<'p> {
    pub(super) kind: HunkLineKind,
    /// The line without its `\n`, but with a `\r` before it.
    pub(super) text: &'p [u8],
    /// What the text may be as well.
    pub(super) other: Option<&'p [u8]>,
    /// It has no newline: `\ No newline at end of file` follows.
    pub(super) open: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HunkLineKind {
    Context,
    Removed,
    Added,
}

impl<'p> HunkReading<'p> {
    pub(super) fn new(body: HunkBody<'p>, transport: LineTransport) -> HunkReading<'p> {
        let mut reading = HunkReading {
            body,
            transport,
            old: 0,
            new: 0,
            leading: 0,
            lines: 0,
            changed: 0,
            old_carriage_returns: false,
            carriage_returns: false,
            has_bom: false,
            old_open: false,
            new_open: false,
        };
        let lines: BodyLines<'p> = reading.lines();
        lines.for_each(|line| reading.count(&line));
        reading
    }

    fn count(&mut self, line: &HunkLine<'_>) {
        let (is_old, is_new) = (
            line.kind != HunkLineKind::Added,
            line.kind != HunkLineKind::Removed,
        );
        self.lines += 1;
        if line.kind != HunkLineKind::Context {
            if self.changed == 0 {
                self.leading = self.old;
            }
            self.changed = self.lines;
        }
        self.old += usize::from(is_old);
        self.new += usize::from(is_new);
        let carriage_return = line.text.ends_with(b"\r");
        self.carriage_returns |= carriage_return;
        self.old_carriage_returns |= carriage_return && is_old;
        self.has_bom |= is_old && line.text.starts_with(encoding::BOM);
        self.old_open |= is_old && line.open;
        self.new_open |= is_new && line.open;
    }

    pub(super) fn has_lines(&self) -> bool {
        self.old + self.new > 0
    }

    /// Tells whether it changes anything.
    pub(super) fn has_changes(&self) -> bool {
        self.changed > 0
    }

    pub(super) fn lines(&self) -> BodyLines<'p> {
        let source = |text| PatchLines::new(text, self.transport);
        match self.body {
            HunkBody::Prefixed(body) => BodyLines {
                source: source(body),
                signs: Signs::All,
                then: None,
            },
            HunkBody::Verbatim(body) => BodyLines {
                source: source(body),
                signs: Signs::Lost,
                then: None,
            },
            HunkBody::Search { old, new } => BodyLines {
                source: source(old),
                signs: Signs::None(HunkLineKind::Removed),
                then: Some(source(new)),
            },
        }
    }

    /// The lines that must be in the text.
    pub(super) fn old_lines(&self) -> impl Iterator<Item = HunkLine<'p>> + use<'p> {
        self.lines().filter(|line| line.kind != HunkLineKind::Added)
    }
}

/// Cuts the body of a hunk into its lines.
pub(super) struct BodyLines<'p> {
    source: PatchLines<'p>,
    signs: Signs,
    /// The new lines, after the old ones.
    then: Option<PatchLines<'p>>,
}

#[derive(Clone, Copy)]
enum Signs {
    All,
    Lost,
    None(HunkLineKind),
}

impl<'p> Iterator for BodyLines<'p> {
    type Item = HunkLine<'p>;

    fn next(&mut self) -> Option<HunkLine<'p>> {
        let Some(line) = self.source.next() else {
            self.source = self.then.take()?;
            self.signs = Signs::None(HunkLineKind::Added);
            return self.next();
        };
        if let Signs::None(kind) = self.signs {
            return Some(HunkLine {
                kind,
                text: line,
                other: None,
                open: false,
            });
        }
        if line.starts_with(b"\\") {
            return self.next();
        }
        let (kind, text) = match (kind_and_text(line), self.signs) {
            (Some(found), _) => found,
            (None, _) => (HunkLineKind::Context, line),
        };
        let lost = matches!(self.signs, Signs::Lost) && kind == HunkLineKind::Context;
        let open = self
            .source
            .peek()
            .is_some_and(|next| next.starts_with(b"\\"));
        Some(HunkLine {
            kind,
            text,
            other: lost.then_some(line),
            open,
        })
    }
}

/// Which kind a body line is. An empty one is a context line whose only character, a space, got lost.
pub(super) fn kind_and_text(line: &[u8]) -> Option<(HunkLineKind, &[u8])> {
    match line {
        [b' ', text @ ..] => Some((HunkLineKind::Context, text)),
        [b'-', text @ ..] => Some((HunkLineKind::Removed, text)),
        [b'+', text @ ..] => Some((HunkLineKind::Added, text)),
        [] | [b'\r'] => Some((HunkLineKind::Context, line)),
        _ => None,
    }
}

/// What happened to the patch's own line ends on its way here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LineTransport {
    /// They are as the patch was made.
    Plain,
    /// Every line, headers too, was given a `\r`: it is no part of the lines.
    CarriageReturns,
}

/// The lines of a patch and where they are.
#[derive(Debug, Clone, Copy)]
pub(super) struct PatchLines<'p> {
    whole: &'p [u8],
    at: usize,
    pub(super) transport: LineTransport,
    /// The number of the line that was given last, from 1.
    pub(super) line: usize,
}

impl<'p> PatchLines<'p> {
    pub(super) fn new(text: &'p [u8], transport: LineTransport) -> PatchLines<'p> {
        PatchLines {
            whole: text,
            at: 0,
            transport,
            line: 0,
        }
    }

    pub(super) fn next(&mut self) -> Option<&'p [u8]> {
        let rest = self.whole.get(self.at..).filter(|rest| !rest.is_empty())?;
        let end = memchr(b'\n', rest).unwrap_or(rest.len());
        let line = rest.get(..end)?;
        self.at = (self.at + end + 1).min(self.whole.len());
        self.line += 1;
        Some(self.carried(line))
    }

    fn carried(&self, line: &'p [u8]) -> &'p [u8] {
        match self.transport {
            LineTransport::Plain => line,
            LineTransport::CarriageReturns => line.strip_suffix(b"\r").unwrap_or(line),
        }
    }

    pub(super) fn iter(mut self) -> impl Iterator<Item = &'p [u8]> + Clone {
        std::iter::from_fn(move || self.next())
    }

    pub(super) fn peek(&self) -> Option<&'p [u8]> {
        let mut copy = *self;
        copy.next()
    }

    pub(super) fn is_done(&self) -> bool {
        self.at >= self.whole.len()
    }

    /// Behind a `\ No newline`, if one is next.
    pub(super) fn over_marker(mut self) -> PatchLines<'p> {
        if self.peek().is_some_and(|next| next.starts_with(b"\\")) {
            self.next();
        }
        self
    }

    /// The later of two places.
    pub(super) fn later(self, other: PatchLines<'p>) -> PatchLines<'p> {
        if self.at < other.at { other } else { self }
    }

    /// What was given since `earlier`.
    pub(super) fn since(&self, earlier: PatchLines<'p>) -> &'p [u8] {
        self.whole.get(earlier.at..self.at).unwrap_or_default()
    }

    /// The line before this place, and the place before that line.
    fn back(self) -> Option<(&'p [u8], PatchLines<'p>)> {
        let before = self.whole.get(..self.at)?;
        let body = before.strip_suffix(b"\n").unwrap_or(before);
        if before.is_empty() {
            return None;
        }
        let at = memrchr(b'\n', body).map_or(0, |newline| newline + 1);
        let line = self.carried(body.get(at..)?);
        let line_before = PatchLines {
            at,
            line: self.line.saturating_sub(1),
            ..self
        };
        Some((line, line_before))
    }

    /// Before the line that was given last and the lines before it that start with a space or a sign.
    pub(super) fn back_over_hunk(self) -> PatchLines<'p> {
        let mut place = self.back().map_or(self, |(_, before)| before);
        while let Some((line, before)) = place.back() {
            if !matches!(line.first(), Some(b' ' | b'-' | b'+')) {
                break;
            }
            place = before;
        }
        place
    }

    /// The lines from here to the one that was given last at `place`, which is left out.
    pub(super) fn before_last_line(self, place: PatchLines<'p>) -> PatchLines<'p> {
        let end = place.back().map_or(place, |(_, before)| before);
        PatchLines::new(end.since(self), self.transport)
    }
}
