//! Parses a patch into files and hunks.
//!
//! Models write patches from memory: counts are off, headers are bare or missing, prose and fences stand around. What a
//! line is may then be read in more than one way. A hunk therefore has several readings, the likeliest first, and the
//! text that is patched decides: a reading counts only if its old lines are in the text. A reading that leaves out a
//! possible change does not count.
//!
//! A hunk keeps its lines as they stand in the patch; they are cut again when it is applied, so that a patch of millions
//! of lines costs no memory but its own.

use std::collections::HashMap;

use memchr::memchr;

use super::block::{HunkBlock, Readings, is_bullet, is_change};
use super::forbidden::forbidden;
use super::hunk::{HunkBody, HunkReading, LineTransport, ParsedHunk, PatchLines, kind_and_text};
use super::names::{self, TalkLine};
use crate::context::Cancel;
use crate::error::{Error, Result};

/// A patch as it was read.
#[derive(Debug)]
pub struct ParsedPatch<'p> {
    /// The files that it names, in its order; of a malformed patch those up to the fault. For the record of the call.
    pub names: Vec<String>,
    /// Its parts, or what is wrong with it.
    pub files: Result<Vec<FilePatch<'p>>>,
}

/// The part of a patch that is for one file.
#[derive(Debug, Default)]
pub struct FilePatch<'p> {
    /// The file, as the patch names it.
    pub name: Option<String>,
    /// The line of the patch where it begins.
    line: usize,
    /// The old file is `/dev/null`: there must be none yet.
    pub(super) creates: bool,
    pub(super) hunks: Vec<ParsedHunk<'p>>,
}

const NO_HUNK: &str =
    "it has no hunk, which starts with `@@` and has lines that start with ` `, `-` or `+`";
const NO_HUNK_NEXT: &str =
    "leave it out, and make an empty file with write_file; nothing but lines is changed by patches";
const LITERAL: &str = "it has `\\n` written out where lines should end; send real line ends";
const DELETES: &str =
    "deleting the file (`+++ /dev/null`) is not supported by patches; use remove_file";
const STRAY: &str = "the line starts with `+` or `-` but belongs to no hunk; put a space before each line of context, also \
    before fences, and the counts right, or an `@@` before the hunk";
const SEVERAL_DIVIDERS: &str = "the SEARCH block has a second line of `=` like the one that ends it, so nobody knows where \
    it ends; choose lines without it, or send a unified diff";
const UNCLOSED: &str = "the SEARCH block has no `=======` and `>>>>>>> REPLACE` behind it";
const STRAY_REPLACE: &str = "`>>>>>>> REPLACE` has no SEARCH block before it";
const UNCLEAR_NAME: &str = "the lines before the SEARCH block may name another file; put the file's name alone on the line \
    before the block, even if it is the same file";
const UNCLEAR_NEW: &str = "it is not clear whether the line before the empty SEARCH block names a new file; write its name \
    with `./` before it";

pub(super) fn malformed(line: usize, reason: impl Into<String>) -> Error {
    Error::PatchMalformed {
        line,
        reason: reason.into(),
    }
}

/// Parses a patch; [`Error::PatchMalformed`] says at which line of it something is wrong.
pub(super) fn parse<'p>(text: &'p str, cancel: &Cancel) -> ParsedPatch<'p> {
    let text = text.as_bytes();
    let one_line = memchr(b'\n', text.trim_ascii()).is_none();
    if one_line && memchr::memmem::find(text, b"\\n").is_some() {
        return ParsedPatch {
            names: Vec::new(),
            files: Err(malformed(1, LITERAL)),
        };
    }
    let mut parser = Parser::new(text);
    let read = parser.run(cancel);
    let lines = parser.source.line.max(1);
    let parts = merged(parser.files);
    let is_full = |file: &&FilePatch<'_>| !file.hunks.is_empty();
    let names = parts.iter().filter(is_full);
    let names = names.filter_map(|file| file.name.clone()).collect();
    let files = read.and_then(|()| without_empty(parts, lines));
    ParsedPatch { names, files }
}

/// Refuses a patch with a part that has no hunk: what such a part asks for is nothing that is done here.
fn without_empty(parts: Vec<FilePatch<'_>>, lines: usize) -> Result<Vec<FilePatch<'_>>> {
    if parts.iter().all(|part| part.hunks.is_empty()) {
        return Err(malformed(lines, NO_HUNK));
    }
    match parts.iter().find(|part| part.hunks.is_empty()) {
        Some(empty) => Err(malformed(empty.line, empty.has_no_hunk())),
        None => Ok(parts),
    }
}

impl FilePatch<'_> {
    fn has_no_hunk(&self) -> String {
        let name = self.name.as_deref().unwrap_or("a file");
        format!("the part for {name} has no hunk; {NO_HUNK_NEXT}")
    }
}

/// Tells whether some line starts a hunk by a mark.
fn has_hunk_marks(text: &[u8]) -> bool {
    let mut lines = PatchLines::new(text, LineTransport::CarriageReturns);
    std::iter::from_fn(|| lines.next()).any(|line| line.starts_with(b"@@") || is_search(line))
}

/// Two parts for one file are merged. Parts without a name stay apart.
fn merged(files: Vec<FilePatch<'_>>) -> Vec<FilePatch<'_>> {
    let mut merged: Vec<FilePatch<'_>> = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    for file in files {
        let place = file.name.clone().map_or(merged.len(), |name| {
            *places.entry(name).or_insert(merged.len())
        });
        match merged.get_mut(place) {
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
    /// A part that a `diff` or `Index:` line begins. Names may follow; a hunk that follows is of this part.
    announced: Option<FilePatch<'p>>,
    /// Where the prose before this place began.
    talk: PatchLines<'p>,
}

impl<'p> Parser<'p> {
    fn new(text: &'p [u8]) -> Parser<'p> {
        let source = PatchLines::new(text, transport(text));
        Parser {
            source,
            files: Vec::new(),
            bare: !has_hunk_marks(text),
            announced: None,
            talk: source,
        }
    }

    fn run(&mut self, cancel: &Cancel) -> Result<()> {
        while let Some(line) = self.source.next() {
            cancel.check()?;
            self.line(line)?;
        }
        self.files.extend(self.announced.take());
        Ok(())
    }

    fn refuse<T>(&self, reason: impl Into<String>) -> Result<T> {
        Err(malformed(self.source.line, reason))
    }

    /// A line outside of hunks: a header, something to refuse, or prose.
    fn line(&mut self, line: &'p [u8]) -> Result<()> {
        if let Some(thing) = forbidden(line) {
            return self.refuse(format!(
                "{thing} is not supported, only changes of lines are"
            ));
        }
        if self.header(line)? {
            self.talk = self.source;
            return Ok(());
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
        self.check_talk(line)
    }

    /// Begins the file that a header names; tells whether the line is one.
    fn header(&mut self, line: &'p [u8]) -> Result<bool> {
        let updated = line.strip_prefix(b"*** Update File:");
        if let Some(name) = updated.or_else(|| line.strip_prefix(b"*** Add File:")) {
            let name = self.named(names::of_line(name))?;
            self.begin_file(Some(name), updated.is_none());
            self.unmarked_hunk()?;
        } else if line.starts_with(b"diff -") {
            self.announce(names::of_diff(line));
        } else if let Some(name) = line.strip_prefix(b"Index: ") {
            self.announce(names::of_line(name));
        } else if self.starts_names(line) {
            self.names(line)?;
        } else {
            return Ok(false);
        }
        Ok(true)
    }

    fn named(&self, name: Option<String>) -> Result<String> {
        name.map_or_else(|| self.refuse(names::BAD_QUOTES), Ok)
    }

    fn announce(&mut self, name: Option<String>) {
        // Nothing followed the one before: it is refused in the end.
        self.files.extend(self.announced.take());
        self.announced = Some(FilePatch {
            name,
            line: self.source.line,
            ..FilePatch::default()
        });
    }

    /// What is neither a header nor a hunk must be prose: nothing that may be a change is skipped.
    fn check_talk(&self, line: &[u8]) -> Result<()> {
        self.check_literal(line)?;
        if is_replace(line) {
            return self.refuse(STRAY_REPLACE);
        }
        let before_hunks = self.files.is_empty() || self.announced.is_some();
        let half_header = line.starts_with(b"--- ") || line.starts_with(b"+++ ");
        let is_rule = matches!(line.trim_ascii_end(), b"--" | b"---");
        let is_item = is_bullet(line) && line.starts_with(b"-");
        let is_talk = self.bare || is_rule || is_item || (before_hunks && half_header);
        if is_change(line) && !is_talk {
            return self.refuse(STRAY);
        }
        Ok(())
    }

    /// `---` and `+++` name a file only together. If nothing marks hunks they may be lines, unless one is behind them.
    fn starts_names(&self, line: &[u8]) -> bool {
        let mut ahead = self.source;
        line.starts_with(b"--- ")
            && ahead.next().is_some_and(|next| next.starts_with(b"+++ "))
            && (!self.bare
                || ahead
                    .next()
                    .is_some_and(|next| kind_and_text(next).is_some()))
    }

    fn names(&mut self, old: &[u8]) -> Result<()> {
        let new = self.source.next().unwrap_or(&[]);
        if names::is_nothing(new) {
            return self.refuse(DELETES);
        }
        let announced = self.announced.as_ref();
        let announced = announced.and_then(|file| file.name.as_deref());
        let name = self.named(names::of_header(old, new, announced))?;
        self.begin_file(Some(name), names::is_nothing(old));
        if self.bare {
            self.unmarked_hunk()
        } else {
            Ok(())
        }
    }

    fn begin_file(&mut self, name: Option<String>, creates: bool) {
        self.announced = None;
        self.files.push(FilePatch {
            name,
            line: self.source.line,
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
        self.source = behind.back_over_hunk().later(self.talk);
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
        self.hunk(HunkHeader::parse(line))
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

    fn hunk(&mut self, header: Option<HunkHeader>) -> Result<()> {
        if header.is_some_and(|header| header.old.count > 0 && header.old.start == 0) {
            return self.refuse("lines are counted from 1, line 0 has nothing to remove or keep");
        }
        let line = self.source.line.max(1);
        let block = HunkBlock::new(self.source, header, self.bare);
        let Readings {
            readings,
            talk,
            end,
        } = block.readings()?;
        (self.source, self.talk) = (end, talk);
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
        if self.announced.is_some() || self.files.is_empty() {
            self.files.push(self.announced.take().unwrap_or_default());
        }
        if let Some(file) = self.files.last_mut() {
            file.hunks.push(hunk);
        }
    }

    /// `<<<<<<< SEARCH`, the old lines, `=======`, the new ones, `>>>>>>> REPLACE`.
    fn search_block(&mut self) -> Result<()> {
        let line = self.source.line;
        let name = self.name_in_talk()?;
        let start = self.source;
        let old = self.until(is_divider, line)?;
        let new = self.until(is_replace, line)?;
        if let Some(name) = name {
            if old.is_empty() && !names::has_path_sign(&name) {
                return Err(malformed(line, UNCLEAR_NEW));
            }
            self.begin_file_unless_known(name);
        }
        let body = HunkBody::Search { old, new };
        self.add(ParsedHunk {
            line,
            start: None,
            readings: vec![HunkReading::new(body, start.transport)],
        });
        self.talk = self.source;
        Ok(())
    }

    fn begin_file_unless_known(&mut self, name: String) {
        let part = self.announced.as_ref().or(self.files.last());
        if part.is_none_or(|file| file.name.as_ref() != Some(&name)) {
            self.begin_file(Some(name), false);
        }
    }

    /// The name in the prose before a SEARCH block: alone in the line before it, ignoring fences and empty lines. If
    /// another line may hold a name, the block is not simply assigned to the previous file.
    fn name_in_talk(&self) -> Result<Option<String>> {
        let talk = self.talk.before_last_line(self.source);
        let mut has_name = false;
        let mut nearest = TalkLine::Empty;
        for found in talk.iter().map(TalkLine::of) {
            if found != TalkLine::Empty {
                has_name |= matches!(found, TalkLine::Name(_));
                nearest = found;
            }
        }
        let unclear = has_name || nearest == TalkLine::Mention;
        match nearest {
            TalkLine::Name(name) => Ok(Some(name)),
            TalkLine::Prose | TalkLine::Mention if unclear && !self.files.is_empty() => {
                self.refuse(UNCLEAR_NAME)
            }
            TalkLine::Prose | TalkLine::Mention | TalkLine::Empty => Ok(None),
        }
    }

    /// What comes before a mark of a SEARCH block, which is passed. Another mark before it is refused.
    fn until(&mut self, ends: fn(&[u8]) -> bool, block: usize) -> Result<&'p [u8]> {
        let start = self.source;
        loop {
            let before = self.source;
            let line = self
                .source
                .next()
                .ok_or_else(|| malformed(block, UNCLOSED))?;
            if ends(line) {
                return Ok(before.since(start));
            }
            if is_divider(line) {
                return self.refuse(SEVERAL_DIVIDERS);
            }
            if is_search(line) || is_replace(line) {
                return Err(malformed(block, UNCLOSED));
            }
        }
    }
}

/// A line of one sign, repeated, and a word behind it.
fn is_conflict_mark(line: &[u8], sign: u8, word: &[u8]) -> bool {
    let signs = line.iter().take_while(|byte| **byte == sign).count();
    (5..=9).contains(&signs) && line.get(signs..).unwrap_or_default().trim_ascii() == word
}

pub(super) fn is_search(line: &[u8]) -> bool {
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
pub(super) struct HunkHeader {
    pub(super) old: HunkRange,
    pub(super) new: HunkRange,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct HunkRange {
    start: usize,
    pub(super) count: usize,
}

impl HunkHeader {
    /// The numbers, if all of them are there; anything else after `@@` is prose.
    fn parse(line: &[u8]) -> Option<HunkHeader> {
        let rest = line.strip_prefix(b"@@ -")?;
        let (old, rest) = HunkRange::parse(rest)?;
        let (new, rest) = HunkRange::parse(rest.strip_prefix(b" +")?)?;
        rest.starts_with(b" @@").then_some(HunkHeader { old, new })
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
