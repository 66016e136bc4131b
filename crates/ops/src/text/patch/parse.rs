//! From the words of a patch to its files and hunks.
//!
//! Models write patches from memory: counts are off, headers are bare or missing, prose and fences stand around. What a
//! line is may then be read in more than one way. A hunk therefore has readings, the likeliest first, and the text that
//! is patched decides: a reading counts only where its old lines are. A reading that would leave out a line that may be a
//! change is none.
//!
//! A hunk keeps its lines as they stand in the patch; they are cut again when it is applied, so that a patch of millions
//! of lines costs no memory but its own.

use memchr::memchr;

use super::forbidden::forbidden;
use super::hunk::{
    Body, HunkLineKind, LineTransport, ParsedHunk, PatchLines, Reading, kind_and_text,
};
use crate::context::Cancel;
use crate::error::{Error, Result};
use crate::text::excerpt;

/// A patch.
#[derive(Debug)]
pub(super) struct ParsedPatch<'p> {
    pub(super) files: Vec<FilePatch<'p>>,
}

/// The part of a patch that is for one file.
#[derive(Debug, Default)]
pub struct FilePatch<'p> {
    /// The file, as the patch names it.
    pub name: Option<String>,
    /// The old file is nothing: there must be none yet.
    pub(super) creates: bool,
    pub(super) hunks: Vec<ParsedHunk<'p>>,
}

const NO_HUNK: &str =
    "it has no hunk, which starts with `@@` and has lines that start with ` `, `-` or `+`";
const LITERAL: &str = "it has `\\n` written out where lines should end; send real line ends";
const DELETES: &str =
    "deleting the file (`+++ /dev/null`) is not supported by patches; use remove_file";
const UNEVEN: &str = "lines that start with `+` follow the last line that its counts allow; put the counts right, or leave \
    them out (`@@` alone)";

pub(super) fn malformed(line: usize, reason: impl Into<String>) -> Error {
    Error::PatchMalformed {
        line,
        reason: reason.into(),
    }
}

/// Parses a patch; [`Error::PatchMalformed`] says at which line of it something is wrong.
pub(super) fn parse<'p>(text: &'p str, cancel: &Cancel) -> Result<ParsedPatch<'p>> {
    let text = text.as_bytes();
    let one_line = memchr(b'\n', text.trim_ascii()).is_none();
    if one_line && memchr::memmem::find(text, b"\\n").is_some() {
        return Err(malformed(1, LITERAL));
    }
    let mut parser = Parser {
        source: PatchLines::new(text, transport(text)),
        files: Vec::new(),
        bare: !has_hunk_marks(text),
        git_name: None,
    };
    while let Some(line) = parser.source.next() {
        cancel.check()?;
        parser.line(line)?;
    }
    let lines = parser.source.line.max(1);
    let files = merged(parser.files);
    if files.is_empty() {
        return Err(malformed(lines, NO_HUNK));
    }
    Ok(ParsedPatch { files })
}

/// Tells whether some line starts a hunk by a mark.
fn has_hunk_marks(text: &[u8]) -> bool {
    let mut lines = PatchLines::new(text, LineTransport::CarriageReturns);
    std::iter::from_fn(|| lines.next()).any(|line| line.starts_with(b"@@") || is_search(line))
}

/// Files without hunks are prose; two parts for one file are one.
fn merged(files: Vec<FilePatch<'_>>) -> Vec<FilePatch<'_>> {
    let mut merged: Vec<FilePatch<'_>> = Vec::new();
    for file in files.into_iter().filter(|file| !file.hunks.is_empty()) {
        let known = merged.iter_mut().find(|known| known.name == file.name);
        match known {
            Some(known) => known.hunks.extend(file.hunks),
            None => merged.push(file),
        }
    }
    merged
}

struct Parser<'p> {
    source: PatchLines<'p>,
    files: Vec<FilePatch<'p>>,
    /// Nothing marks where hunks start.
    bare: bool,
    /// The name in a `diff --git` line.
    git_name: Option<String>,
}

impl<'p> Parser<'p> {
    fn refuse<T>(&self, reason: impl Into<String>) -> Result<T> {
        Err(malformed(self.source.line, reason))
    }

    /// A line outside of hunks: a header, something to refuse, or talk.
    fn line(&mut self, line: &'p [u8]) -> Result<()> {
        if let Some(thing) = forbidden(line) {
            return self.refuse(format!(
                "{thing} is not supported, only changes of lines are"
            ));
        }
        if let Some(name) = line.strip_prefix(b"*** Update File:") {
            self.begin_file(Some(path_text(name)), false);
            return self.unmarked_hunk();
        }
        if let Some(name) = line.strip_prefix(b"*** Add File:") {
            self.begin_file(Some(path_text(name)), true);
            return self.unmarked_hunk();
        }
        if line.starts_with(b"diff --git ") {
            self.git_name = line.rsplit(|byte| *byte == b' ').next().map(plain_name);
            return Ok(());
        }
        if self.starts_names(line) {
            return self.names(line);
        }
        if line.starts_with(b"@@") {
            return self.marked_hunk(line);
        }
        if is_search(line) {
            return self.search_block();
        }
        if self.bare && is_change(line) && !is_bullet(line) {
            return self.bare_hunk();
        }
        self.check_literal(line)
    }

    /// `---` and `+++` name a file only together, and with a hunk behind them.
    fn starts_names(&self, line: &[u8]) -> bool {
        let mut ahead = self.source;
        line.starts_with(b"--- ")
            && ahead.next().is_some_and(|next| next.starts_with(b"+++ "))
            && ahead.next().is_some_and(|next| {
                next.starts_with(b"@@") || (self.bare && kind_and_text(next).is_some())
            })
    }

    fn names(&mut self, old: &[u8]) -> Result<()> {
        let new = self.source.next().unwrap_or(&[]);
        if is_nothing(new) {
            return self.refuse(DELETES);
        }
        let name = plain_name(name_of(new));
        self.begin_file(Some(name), is_nothing(old));
        if self.bare {
            self.unmarked_hunk()
        } else {
            Ok(())
        }
    }

    fn begin_file(&mut self, name: Option<String>, creates: bool) {
        self.git_name = None;
        self.files.push(FilePatch {
            name,
            creates,
            hunks: Vec::new(),
        });
    }

    /// A hunk that begins with the next line, if that line can be one of a hunk.
    fn unmarked_hunk(&mut self) -> Result<()> {
        let next = self.source.peek();
        if next.is_some_and(|next| kind_and_text(next).is_some() && !next.is_empty()) {
            return self.hunk(None);
        }
        Ok(())
    }

    /// A hunk of a patch without marks. The line that was just given is its first change; context may be before it.
    fn bare_hunk(&mut self) -> Result<()> {
        let behind = self.source;
        self.source = behind.back_over_context();
        self.hunk(None)?;
        // A hunk that ends before its first change must not make the parser read that line for ever.
        self.source = self.source.later(behind);
        Ok(())
    }

    fn marked_hunk(&mut self, line: &'p [u8]) -> Result<()> {
        if line.starts_with(b"@@@") {
            return self.refuse("a combined diff (`@@@`) is not supported");
        }
        self.check_literal(line)?;
        self.hunk(Header::parse(line))
    }

    /// A patch as one line, with `\n` in words.
    fn check_literal(&self, line: &[u8]) -> Result<()> {
        let starts =
            line.starts_with(b"@@") || line.starts_with(b"---") || line.starts_with(b"***");
        let written = [&b"\\n-"[..], b"\\n+", b"\\n@@"];
        if starts
            && written
                .iter()
                .any(|sign| memchr::memmem::find(line, sign).is_some())
        {
            return self.refuse(LITERAL);
        }
        Ok(())
    }

    fn hunk(&mut self, header: Option<Header>) -> Result<()> {
        if let Some(header) = header
            && header.old.count > 0
            && header.old.start == 0
        {
            return self.refuse("lines are counted from 1, line 0 has nothing to remove or keep");
        }
        let line = self.source.line.max(1);
        let block = Block::new(self.source, header, self.bare);
        let (readings, taken) = block.readings()?;
        self.source = taken;
        if readings.is_empty() {
            return Ok(());
        }
        let start = header.map(|header| header.old.start - usize::from(header.old.count > 0));
        self.add(ParsedHunk {
            line,
            start,
            readings,
        });
        Ok(())
    }

    fn add(&mut self, hunk: ParsedHunk<'p>) {
        if self.files.is_empty() {
            let name = self.git_name.take();
            self.begin_file(name, false);
        }
        if let Some(file) = self.files.last_mut() {
            file.hunks.push(hunk);
        }
    }

    /// `<<<<<<< SEARCH`, the old lines, `=======`, the new ones, `>>>>>>> REPLACE`.
    fn search_block(&mut self) -> Result<()> {
        let line = self.source.line;
        let name = self.source.name_before();
        let start = self.source;
        let unclosed = || {
            malformed(
                line,
                "the SEARCH block has no `=======` and `>>>>>>> REPLACE` behind it",
            )
        };
        let old = self.until(is_divider).ok_or_else(unclosed)?;
        let new = self.until(is_replace).ok_or_else(unclosed)?;
        if name.is_some() && self.files.last().is_none_or(|file| file.name != name) {
            self.begin_file(name, false);
        }
        let body = Body::Search { old, new };
        self.add(ParsedHunk {
            line,
            start: None,
            readings: vec![Reading::new(body, start.transport)],
        });
        Ok(())
    }

    /// What comes before a line, which is passed.
    fn until(&mut self, ends: fn(&[u8]) -> bool) -> Option<&'p [u8]> {
        let start = self.source;
        loop {
            let before = self.source;
            if ends(self.source.next()?) {
                return Some(before.since(start));
            }
        }
    }
}

/// The lines that may be those of a hunk.
struct Block<'p> {
    start: PatchLines<'p>,
    header: Option<Header>,
    bare: bool,
}

/// A run of lines, and where it ends.
#[derive(Clone, Copy)]
struct Run<'p> {
    end: PatchLines<'p>,
}

impl<'p> Block<'p> {
    fn new(start: PatchLines<'p>, header: Option<Header>, bare: bool) -> Block<'p> {
        Block {
            start,
            header,
            bare,
        }
    }

    /// The readings, the likeliest first, and where to go on.
    fn readings(&self) -> Result<(Vec<Reading<'p>>, PatchLines<'p>)> {
        let greedy = self.greedy();
        let whole = self.whole();
        let counted = self.header.and_then(|header| self.counted(header));
        let mut readings = Vec::new();
        let mut last = greedy;
        match counted {
            Some(counted) if counted.end.line >= greedy.end.line => {
                readings.push(self.reading(counted));
                if counted.end.line > greedy.end.line {
                    readings.push(self.reading(greedy));
                }
                last = counted;
            }
            Some(counted) => {
                let more = self.between(counted, greedy);
                let is_prose = is_prose(self.between(counted, whole));
                let separate = counted.end.peek().is_some_and(<[u8]>::is_empty);
                if is_prose && (separate || more.clone().all(is_bullet)) {
                    readings.push(self.reading(counted));
                } else if more.clone().any(is_old) {
                    readings.push(self.reading(greedy));
                } else {
                    return Err(malformed(self.start.line, UNEVEN));
                }
            }
            None => readings.push(self.reading(greedy)),
        }
        if !is_prose(self.between(last, whole)) {
            // A change would be left out, so only a reading with all lines will do.
            readings.clear();
        }
        if whole.end.line > greedy.end.line {
            readings.push(Reading::new(
                Body::Verbatim(self.body(whole)),
                self.start.transport,
            ));
        }
        readings.retain(Reading::has_lines);
        Ok((
            readings,
            if last.end.line > whole.end.line {
                last.end
            } else {
                whole.end
            },
        ))
    }

    fn body(&self, run: Run<'p>) -> &'p [u8] {
        run.end.since(self.start)
    }

    fn reading(&self, run: Run<'p>) -> Reading<'p> {
        Reading::new(Body::Prefixed(self.body(run)), self.start.transport)
    }

    fn between(&self, from: Run<'p>, to: Run<'p>) -> impl Iterator<Item = &'p [u8]> + Clone {
        let lines = PatchLines::new(to.end.since(from.end), self.start.transport);
        lines.iter()
    }

    /// As many lines as the header promises, if they are of the kinds it promises.
    fn counted(&self, header: Header) -> Option<Run<'p>> {
        let (mut old, mut new) = (header.old.count, header.new.count);
        let mut source = self.start;
        while old > 0 || new > 0 {
            let line = source.next()?;
            if line.starts_with(b"\\") {
                continue;
            }
            let (kind, _) = kind_and_text(line)?;
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

    /// Tells whether a line is certainly none of a hunk; `after` is what follows it.
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
        line.starts_with(b"@@")
            || line.starts_with(b"```")
            || line.starts_with(b"*** ")
            || line.starts_with(b"diff --git ")
            || line.starts_with(b"Index: ")
            || is_search(line)
            || (line.starts_with(b"--- ") && !self.bare && names())
            || (matches!(line, b"-- " | b"--") && signature())
            || forbidden(line).is_some()
    }
}

fn is_change(line: &[u8]) -> bool {
    matches!(line.first(), Some(b'+' | b'-'))
}

/// A line that must be in the text, and is not empty.
fn is_old(line: &[u8]) -> bool {
    matches!(line, [b' ' | b'-', rest @ ..] if !rest.trim_ascii().is_empty())
}

/// An item of a list in prose: a sign, one space, and a word.
fn is_bullet(line: &[u8]) -> bool {
    matches!(line, [b'+' | b'-', b' ', word, ..] if word.is_ascii_alphanumeric() || *word >= 0x80 || *word == b'`')
}

/// Tells whether no line can be a change.
fn is_prose<'p>(mut lines: impl Iterator<Item = &'p [u8]>) -> bool {
    lines.all(|line| !is_change(line) || is_bullet(line))
}

/// A line of one sign, repeated, and a word behind it.
fn is_conflict_mark(line: &[u8], sign: u8, word: &[u8]) -> bool {
    let signs = line.iter().take_while(|byte| **byte == sign).count();
    (5..=9).contains(&signs) && line.get(signs..).unwrap_or_default().trim_ascii() == word
}

fn is_search(line: &[u8]) -> bool {
    is_conflict_mark(line, b'<', b"SEARCH")
}

fn is_divider(line: &[u8]) -> bool {
    is_conflict_mark(line, b'=', b"")
}

fn is_replace(line: &[u8]) -> bool {
    is_conflict_mark(line, b'>', b"REPLACE")
}

/// The numbers of a hunk header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Header {
    old: HunkRange,
    new: HunkRange,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct HunkRange {
    start: usize,
    count: usize,
}

impl Header {
    /// The numbers, if all of them are there; what else follows `@@` is talk.
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

/// A patch whose first hunk header, or every line, ends in `\r` was converted as a whole.
fn transport(text: &[u8]) -> LineTransport {
    let mut source = PatchLines::new(text, LineTransport::Plain);
    let mut all = true;
    while let Some(line) = source.next() {
        let converted = line.ends_with(b"\r");
        if line.starts_with(b"@@") {
            all = converted;
            break;
        }
        all &= converted || source.is_done();
    }
    if all && memchr(b'\n', text).is_some() {
        LineTransport::CarriageReturns
    } else {
        LineTransport::Plain
    }
}

/// The name in `--- name<tab>time`.
fn name_of(line: &[u8]) -> &[u8] {
    let name = line.get(4..).unwrap_or(&[]);
    let end = memchr(b'\t', name).unwrap_or(name.len());
    name.get(..end).unwrap_or(name).trim_ascii()
}

fn is_nothing(name_line: &[u8]) -> bool {
    name_of(name_line) == b"/dev/null"
}

/// A name without the `a/` or `b/` that git puts before it.
fn plain_name(name: &[u8]) -> String {
    let name = path_text(name);
    let plain = name.strip_prefix("a/").or_else(|| name.strip_prefix("b/"));
    plain.map_or_else(|| name.clone(), str::to_owned)
}

fn path_text(name: &[u8]) -> String {
    excerpt(name.trim_ascii(), 4096)
}
