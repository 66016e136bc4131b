//! From the words of a patch to its hunks. A hunk keeps its lines as they stand in the patch; they are cut again
//! when it is applied, so that a patch of millions of lines costs no memory but its own.

use memchr::memchr;

use crate::context::Cancel;
use crate::error::{Error, Result};
use crate::text::{encoding, excerpt};

/// A patch for one file.
#[derive(Debug)]
pub(super) struct ParsedPatch<'p> {
    pub(super) hunks: Vec<ParsedHunk<'p>>,
    /// The old file is `/dev/null`: there must be nothing yet.
    pub(super) creates: bool,
    /// Some line of it ends in `\r\n` where others do not: it knows about line ends.
    pub(super) has_carriage_returns: bool,
    /// Some old line starts with a byte order mark.
    pub(super) has_bom: bool,
    /// How many bytes it has.
    pub(super) size: usize,
}

/// A run of changes.
#[derive(Debug)]
pub(super) struct ParsedHunk<'p> {
    pub(super) header: Header,
    body: &'p [u8],
    transport: LineTransport,
    /// An old line ends in `\r`: it is compared to the letter.
    pub(super) old_carriage_returns: bool,
    /// The old side, or the new, ends with a line that has no newline.
    pub(super) old_open: bool,
    pub(super) new_open: bool,
}

impl<'p> ParsedHunk<'p> {
    /// The first old line, from 0; for an insertion the line it is put before.
    pub(super) fn first_line(&self) -> usize {
        self.header.old.start - usize::from(self.header.old.count > 0)
    }

    pub(super) fn lines(&self) -> BodyLines<'p> {
        BodyLines {
            source: PatchLines::new(self.body, self.transport),
        }
    }

    /// The lines that must be in the text.
    pub(super) fn old_lines(&self) -> impl Iterator<Item = HunkLine<'p>> + use<'p> {
        self.lines().filter(|line| line.kind != HunkLineKind::Added)
    }
}

/// One line of a hunk.
#[derive(Debug, Clone, Copy)]
pub(super) struct HunkLine<'p> {
    pub(super) kind: HunkLineKind,
    /// The line without its `\n`, but with a `\r` before it.
    pub(super) text: &'p [u8],
    /// It has no newline: `\ No newline at end of file` follows.
    pub(super) open: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HunkLineKind {
    Context,
    Removed,
    Added,
}

/// Cuts the body of a hunk, which the parser has seen, into its lines.
pub(super) struct BodyLines<'p> {
    source: PatchLines<'p>,
}

impl<'p> Iterator for BodyLines<'p> {
    type Item = HunkLine<'p>;

    fn next(&mut self) -> Option<HunkLine<'p>> {
        let (kind, text) = kind_and_text(self.source.next()?)?;
        let open = self.source.is_at_marker();
        if open {
            self.source.next();
        }
        Some(HunkLine { kind, text, open })
    }
}

/// Which kind a body line is. An empty one is a context line whose only character, a space, got lost;
/// the counts of the header say whether one is due.
fn kind_and_text(line: &[u8]) -> Option<(HunkLineKind, &[u8])> {
    match line {
        [b' ', text @ ..] => Some((HunkLineKind::Context, text)),
        [b'-', text @ ..] => Some((HunkLineKind::Removed, text)),
        [b'+', text @ ..] => Some((HunkLineKind::Added, text)),
        [] | [b'\r'] => Some((HunkLineKind::Context, line)),
        _ => None,
    }
}

fn is_marker(line: &[u8]) -> bool {
    line.starts_with(b"\\")
}

/// What became of the patch's own line ends on its way here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LineTransport {
    /// They are as the patch was made.
    Plain,
    /// Every line, headers too, was given a `\r`: it is no part of the lines.
    CarriageReturns,
}

/// The lines of a patch and where they are.
#[derive(Debug, Clone, Copy)]
struct PatchLines<'p> {
    rest: &'p [u8],
    transport: LineTransport,
    /// The number of the line that was given last, from 1.
    line: usize,
}

impl<'p> PatchLines<'p> {
    fn new(text: &'p [u8], transport: LineTransport) -> PatchLines<'p> {
        PatchLines {
            rest: text,
            transport,
            line: 0,
        }
    }

    fn next(&mut self) -> Option<&'p [u8]> {
        if self.rest.is_empty() {
            return None;
        }
        let end = memchr(b'\n', self.rest).unwrap_or(self.rest.len());
        let (line, rest) = self.rest.split_at_checked(end)?;
        self.rest = rest.get(1..).unwrap_or(&[]);
        self.line += 1;
        match self.transport {
            LineTransport::Plain => Some(line),
            LineTransport::CarriageReturns => Some(line.strip_suffix(b"\r").unwrap_or(line)),
        }
    }

    fn peek(&self) -> Option<&'p [u8]> {
        let mut copy = *self;
        copy.next()
    }

    fn is_at_marker(&self) -> bool {
        is_marker(self.rest)
    }

    /// Tells whether the line that was given last starts the names of a file: `---` and `+++` do only together.
    fn starts_names(&self, line: &[u8]) -> bool {
        line.starts_with(b"--- ") && self.peek().is_some_and(|next| next.starts_with(b"+++ "))
    }

    /// What was given since `earlier`.
    fn since(&self, earlier: PatchLines<'p>) -> &'p [u8] {
        let length = earlier.rest.len().saturating_sub(self.rest.len());
        earlier.rest.get(..length).unwrap_or(earlier.rest)
    }
}

/// The numbers of a hunk header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) old: HunkRange,
    pub(super) new: HunkRange,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct HunkRange {
    pub(super) start: usize,
    pub(super) count: usize,
}

impl Header {
    fn parse(line: &[u8]) -> Option<Header> {
        let rest = line.strip_prefix(b"@@ -")?;
        let (old, rest) = HunkRange::parse(rest)?;
        let (new, rest) = HunkRange::parse(rest.strip_prefix(b" +")?)?;
        rest.starts_with(b" @@").then_some(Header { old, new })
    }
}

impl HunkRange {
    /// `start,count`, or `start` alone for one line.
    fn parse(text: &[u8]) -> Option<(HunkRange, &[u8])> {
        let (start, rest) = number(text)?;
        match rest.strip_prefix(b",") {
            Some(rest) => number(rest).map(|(count, rest)| (HunkRange { start, count }, rest)),
            None => Some((HunkRange { start, count: 1 }, rest)),
        }
    }
}

fn number(text: &[u8]) -> Option<(usize, &[u8])> {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (digits, rest) = text.split_at_checked(digits)?;
    let value: u32 = std::str::from_utf8(digits).ok()?.parse().ok()?;
    Some((usize::try_from(value).ok()?, rest))
}

/// Parses a patch for one file; [`Error::PatchMalformed`] says at which line of it something is wrong.
pub(super) fn parse<'p>(text: &'p str, cancel: &Cancel) -> Result<ParsedPatch<'p>> {
    let text = text.as_bytes();
    let mut parser = Parser::new(text);
    while let Some(line) = parser.source.next() {
        if line.starts_with(b"@@") {
            parser.hunk(line, cancel)?;
        } else if parser.patch.hunks.is_empty() {
            parser.preamble(line)?;
        } else {
            parser.afterword(line)?;
        }
    }
    if parser.patch.hunks.is_empty() {
        Err(malformed(parser.source.line.max(1), NO_HUNK))
    } else {
        Ok(parser.patch)
    }
}

const NO_HUNK: &str = "it has no hunk, which starts with `@@ -line,count +line,count @@`";
const TWO_FILES: &str = "it has a second file, send the patch of each file by itself";
const AFTER_END: &str = "a line follows one that has no newline and so ends the file";

fn malformed(line: usize, reason: impl Into<String>) -> Error {
    Error::PatchMalformed {
        line,
        reason: reason.into(),
    }
}

struct Parser<'p> {
    source: PatchLines<'p>,
    patch: ParsedPatch<'p>,
    git_header: bool,
    names: bool,
    /// The last hunk says that its text ends with it.
    ended: bool,
    /// Where the lines of the last hunk start, and its header.
    last: Option<(PatchLines<'p>, Header)>,
    signed: bool,
}

impl<'p> Parser<'p> {
    fn new(text: &'p [u8]) -> Parser<'p> {
        let patch = ParsedPatch {
            hunks: Vec::new(),
            creates: false,
            has_carriage_returns: false,
            has_bom: false,
            size: text.len(),
        };
        let source = PatchLines::new(text, transport(text));
        Parser {
            source,
            patch,
            git_header: false,
            names: false,
            ended: false,
            last: None,
            signed: false,
        }
    }

    fn refuse<T>(&self, reason: impl Into<String>) -> Result<T> {
        Err(malformed(self.source.line, reason))
    }

    /// A line before the first hunk: a header, something to refuse, or talk.
    fn preamble(&mut self, line: &[u8]) -> Result<()> {
        if let Some(thing) = forbidden(line) {
            return self.refuse(format!(
                "{thing} is not supported, only changes of lines are"
            ));
        }
        if line.starts_with(b"diff --git ") {
            if self.git_header || self.names {
                return self.refuse(TWO_FILES);
            }
            self.git_header = true;
        } else if self.source.starts_names(line) {
            self.names(line)?;
        }
        Ok(())
    }

    fn names(&mut self, old: &[u8]) -> Result<()> {
        if self.names {
            return self.refuse(TWO_FILES);
        }
        self.names = true;
        self.patch.creates = is_nothing(old);
        let new = self.source.next().unwrap_or(&[]);
        if is_nothing(new) {
            return self.refuse("deleting the file (`+++ /dev/null`) is not supported by patches");
        }
        Ok(())
    }

    /// A line after a hunk that is not the next hunk: only what tools put at the end is taken.
    fn afterword(&mut self, line: &[u8]) -> Result<()> {
        if self.source.starts_names(line)
            || line.starts_with(b"diff ")
            || line.starts_with(b"Index: ")
        {
            return self.refuse(TWO_FILES);
        }
        if let Some(thing) = forbidden(line) {
            return self.refuse(format!(
                "{thing} is not supported, only changes of lines are"
            ));
        }
        let signature = matches!(line, b"-- " | b"--")
            && self
                .source
                .peek()
                .and_then(|next| next.first())
                .is_some_and(u8::is_ascii_digit);
        self.signed |= signature || line.starts_with(b"```");
        if self.signed || line.trim_ascii().is_empty() {
            return Ok(());
        }
        match (self.last, kind_and_text(line)) {
            (Some((start, header)), Some(_)) => Err(wrong_counts(start, header)),
            _ => self.refuse(format!("{:?} belongs to no hunk", excerpt(line, 80))),
        }
    }

    fn hunk(&mut self, line: &[u8], cancel: &Cancel) -> Result<()> {
        cancel.check()?;
        if line.starts_with(b"@@@") {
            return self.refuse("a combined diff (`@@@`) is not supported");
        }
        let Some(header) = Header::parse(line) else {
            let shown = excerpt(line, 80);
            let reason = format!("{shown:?} is no hunk header `@@ -line,count +line,count @@`");
            return self.refuse(reason);
        };
        self.check_order(header)?;
        self.last = Some((self.source, header));
        let hunk = self.body(header, cancel)?;
        self.ended = hunk.old_open || hunk.new_open;
        self.patch.hunks.push(hunk);
        Ok(())
    }

    fn check_order(&self, header: Header) -> Result<()> {
        let HunkRange { start, count } = header.old;
        if count == 0 && header.new.count == 0 {
            return self.refuse("the hunk is empty");
        }
        if count > 0 && start == 0 {
            return self.refuse("lines are counted from 1, line 0 has nothing to remove or keep");
        }
        if self.ended {
            return self.refuse(AFTER_END);
        }
        let first = start - usize::from(count > 0);
        match self.patch.hunks.last() {
            Some(last) if first < last.first_line() + last.header.old.count => {
                self.refuse("the hunk overlaps the one before or comes before it")
            }
            _ => Ok(()),
        }
    }

    /// Takes as many lines as the header promises.
    fn body(&mut self, header: Header, cancel: &Cancel) -> Result<ParsedHunk<'p>> {
        let start = self.source;
        let mut tally = HunkTally::new(header);
        while !tally.is_complete() || self.source.is_at_marker() {
            if self.source.line.is_multiple_of(4096) {
                cancel.check()?;
            }
            let taken = self.source.next().map(|line| tally.take(line));
            match taken.unwrap_or(LineVerdict::Unexpected) {
                LineVerdict::Fits => {}
                LineVerdict::AfterEnd => return self.refuse(AFTER_END),
                LineVerdict::Stray => return self.refuse("`\\` follows no line of the hunk"),
                LineVerdict::Unexpected => return Err(wrong_counts(start, header)),
            }
        }
        self.patch.has_carriage_returns |= tally.carriage_returns;
        self.patch.has_bom |= tally.bom;
        Ok(ParsedHunk {
            header,
            body: self.source.since(start),
            transport: start.transport,
            old_carriage_returns: tally.old_carriage_returns,
            old_open: tally.old_open,
            new_open: tally.new_open,
        })
    }
}

/// What is still to come in a hunk, and what was seen.
struct HunkTally {
    old: usize,
    new: usize,
    last: Option<HunkLineKind>,
    old_open: bool,
    new_open: bool,
    carriage_returns: bool,
    old_carriage_returns: bool,
    bom: bool,
}

enum LineVerdict {
    Fits,
    /// It does not belong here or is one too many.
    Unexpected,
    /// Its side has ended with a line without newline.
    AfterEnd,
    /// A marker that marks nothing.
    Stray,
}

impl HunkTally {
    fn new(header: Header) -> HunkTally {
        HunkTally {
            old: header.old.count,
            new: header.new.count,
            last: None,
            old_open: false,
            new_open: false,
            carriage_returns: false,
            old_carriage_returns: false,
            bom: false,
        }
    }

    fn is_complete(&self) -> bool {
        self.old == 0 && self.new == 0
    }

    fn take(&mut self, line: &[u8]) -> LineVerdict {
        if is_marker(line) {
            return self.mark();
        }
        let Some((kind, text)) = kind_and_text(line) else {
            return LineVerdict::Unexpected;
        };
        let (old, new) = (kind != HunkLineKind::Added, kind != HunkLineKind::Removed);
        if (old && self.old == 0) || (new && self.new == 0) {
            return LineVerdict::Unexpected;
        }
        if (old && self.old_open) || (new && self.new_open) {
            return LineVerdict::AfterEnd;
        }
        self.old -= usize::from(old);
        self.new -= usize::from(new);
        self.last = Some(kind);
        self.note(old, text);
        LineVerdict::Fits
    }

    fn note(&mut self, old: bool, text: &[u8]) {
        let carriage_return = text.ends_with(b"\r");
        self.carriage_returns |= carriage_return;
        self.old_carriage_returns |= carriage_return && old;
        self.bom |= old && text.starts_with(encoding::BOM);
    }

    fn mark(&mut self) -> LineVerdict {
        let Some(kind) = self.last.take() else {
            return LineVerdict::Stray;
        };
        self.old_open |= kind != HunkLineKind::Added;
        self.new_open |= kind != HunkLineKind::Removed;
        // No line of a side that has ended may be due any more.
        if (self.old_open && self.old > 0) || (self.new_open && self.new > 0) {
            LineVerdict::AfterEnd
        } else {
            LineVerdict::Fits
        }
    }
}

impl std::fmt::Display for Header {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} old and {} new lines", self.old.count, self.new.count)
    }
}

/// Says what the header promises and what the hunk really has, so that the sender can mend the header.
fn wrong_counts(start: PatchLines<'_>, promised: Header) -> Error {
    let mut actual = Header {
        old: HunkRange {
            count: 0,
            ..promised.old
        },
        new: HunkRange {
            count: 0,
            ..promised.new
        },
    };
    let mut source = start;
    let mut blank = 0;
    while let Some(line) = source.next() {
        if source.starts_names(line) {
            break;
        }
        match kind_and_text(line) {
            // Blank lines count once something follows them.
            Some((HunkLineKind::Context, [])) if line.is_empty() => blank += 1,
            Some((kind, _)) => {
                actual.old.count += blank + usize::from(kind != HunkLineKind::Added);
                actual.new.count += blank + usize::from(kind != HunkLineKind::Removed);
                blank = 0;
            }
            None if is_marker(line) => {}
            None => break,
        }
    }
    let reason = if actual == promised {
        format!("the hunk's lines do not add up to {promised}")
    } else {
        format!("the hunk's header says {promised}, but it has {actual}")
    };
    malformed(start.line, reason)
}

/// A patch whose first hunk header ends in `\r` was converted as a whole.
fn transport(text: &[u8]) -> LineTransport {
    let mut source = PatchLines::new(text, LineTransport::Plain);
    while let Some(line) = source.next() {
        if line.starts_with(b"@@ -") {
            let converted = line.ends_with(b"\r");
            return if converted {
                LineTransport::CarriageReturns
            } else {
                LineTransport::Plain
            };
        }
    }
    LineTransport::Plain
}

fn is_nothing(name_line: &[u8]) -> bool {
    let name = name_line.get(4..).unwrap_or(&[]);
    let end = memchr(b'\t', name).unwrap_or(name.len());
    name.get(..end).unwrap_or(name).trim_ascii() == b"/dev/null"
}

/// What git's extended headers ask for beyond changing lines, in words.
fn forbidden(line: &[u8]) -> Option<String> {
    const PREFIXES: [(&[u8], &str); 10] = [
        (b"rename from ", "a rename (`rename from`)"),
        (b"rename to ", "a rename (`rename to`)"),
        (b"copy from ", "a copy (`copy from`)"),
        (b"copy to ", "a copy (`copy to`)"),
        (b"old mode ", "a change of mode (`old mode`)"),
        (b"new mode ", "a change of mode (`new mode`)"),
        (
            b"deleted file mode ",
            "deleting the file (`deleted file mode`)",
        ),
        (b"GIT binary patch", "binary content (`GIT binary patch`)"),
        (b"Binary files ", "binary content (`Binary files … differ`)"),
        (b"diff --cc ", "a combined diff (`diff --cc`)"),
    ];
    let named = PREFIXES.iter().find(|(prefix, _)| line.starts_with(prefix));
    named
        .map(|(_, name)| (*name).to_owned())
        .or_else(|| forbidden_mode(line))
}

/// A mode that is not that of a plain file, as in `new file mode 120000` or `index 1234..5678 120000`.
fn forbidden_mode(line: &[u8]) -> Option<String> {
    let mode = match line.strip_prefix(b"new file mode ") {
        Some(mode) => mode,
        None => line.strip_prefix(b"index ").and_then(mode_of_index)?,
    };
    match mode.trim_ascii() {
        b"100644" | b"100755" => None,
        b"120000" => Some("a symbolic link (mode 120000)".to_owned()),
        other => Some(format!("mode {}", excerpt(other, 20))),
    }
}

/// The mode in `<hash>..<hash> <mode>`.
fn mode_of_index(rest: &[u8]) -> Option<&[u8]> {
    let space = memchr(b' ', rest.trim_ascii_end())?;
    let (hashes, mode) = rest.split_at_checked(space)?;
    memchr::memmem::find(hashes, b"..").map(|_| mode)
}
