//! Lines in bytes: where they begin and end, what is around them, and how they are shown. Pure functions.

use std::ops::{ControlFlow, Range};

use memchr::{memchr_iter, memrchr, memrchr_iter};

use crate::ordered::Halt;
use crate::pattern::{LineMatcher, PartEnd, PartStart, without_terminator};
use crate::text::encoding::{characters, trim_end, trim_start};

/// How much of a line is shown.
pub(super) const SHOWN_MAX: usize = 2000;
/// How much is shown before a match that is far in its line.
const SHOWN_BEFORE: usize = 500;
/// How much a part of a long line repeats of the one before it.
const OVERLAP: usize = 4096;

/// How a search through bytes ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Searched {
    /// All bytes were searched.
    All,
    /// The receiver of the matches had enough.
    Enough,
    /// The deadline passed, or the caller gave up.
    Halted,
}

/// Receives what a search finds.
pub(super) trait LineSink {
    /// Takes a matching line; breaks if that is enough.
    fn matched(&mut self, line: Range<usize>, found: FoundLine) -> ControlFlow<()>;

    /// Called for a line that is too long to be matched as a whole.
    fn searched_in_parts(&mut self);
}

/// How the match of a line was found.
#[derive(Debug)]
pub(super) enum FoundLine {
    /// In the whole line.
    InLine,
    /// In a part of a line that is too long to be matched as a whole.
    InPart(PartMatch),
}

/// A match in a part of a line.
#[derive(Debug)]
pub(super) struct PartMatch {
    /// Where in the line it begins, in characters, from 1.
    pub(super) column: u64,
    /// The piece of the line around it.
    pub(super) shown: String,
}

/// Hands every matching line of `bytes` from a position on, where a line begins, to `sink`.
pub(super) fn search(
    matcher: &LineMatcher,
    bytes: &[u8],
    mut from: usize,
    halt: &Halt,
    sink: &mut impl LineSink,
) -> Searched {
    while from < bytes.len() {
        if from > 0 {
            halt.give_way();
            if halt.must_stop() {
                return Searched::Halted;
            }
        }
        let end = stretch_end(bytes, from, matcher.reach().stretch);
        let long = long_line(bytes, from..end, matcher.reach().line);
        let plain = long.as_ref().map_or(end, |line| line.start);
        let Some(stretch) = bytes.get(..plain) else {
            break;
        };
        while let Some(line) = matcher.next_line(stretch, from) {
            from = line.end;
            if sink.matched(line, FoundLine::InLine).is_break() {
                return Searched::Enough;
            }
        }
        if let Some(line) = long {
            let content = bytes.get(line.clone()).unwrap_or_default();
            match end_long_line(line, search_in_parts(matcher, content, halt), sink) {
                Searched::All => {}
                ended => return ended,
            }
        }
        from = end;
    }
    Searched::All
}

/// The end of the lines that one stretch holds.
fn stretch_end(bytes: &[u8], from: usize, length: usize) -> usize {
    let tail = bytes.get(from.saturating_add(length)..).unwrap_or_default();
    match memchr::memchr(b'\n', tail) {
        Some(newline) => from + length + newline + 1,
        None => bytes.len(),
    }
}

/// The last line of a stretch, if it is longer than what is matched as a whole.
fn long_line(bytes: &[u8], stretch: Range<usize>, longest: usize) -> Option<Range<usize>> {
    if stretch.len() <= longest {
        return None;
    }
    let start = stretch.start + last_line(bytes.get(stretch.clone())?);
    (stretch.end - start > longest).then_some(start..stretch.end)
}

/// Passes on what was found in a long line.
pub(super) fn end_long_line(
    line: Range<usize>,
    found: ControlFlow<(), Option<PartMatch>>,
    sink: &mut impl LineSink,
) -> Searched {
    sink.searched_in_parts();
    match found {
        ControlFlow::Break(()) => Searched::Halted,
        ControlFlow::Continue(None) => Searched::All,
        ControlFlow::Continue(Some(found)) => match sink.matched(line, FoundLine::InPart(found)) {
            ControlFlow::Break(()) => Searched::Enough,
            ControlFlow::Continue(()) => Searched::All,
        },
    }
}

/// Matches a long line part by part; breaks when it has to stop.
fn search_in_parts(
    matcher: &LineMatcher,
    line: &[u8],
    halt: &Halt,
) -> ControlFlow<(), Option<PartMatch>> {
    let mut long = LongLine::new(matcher);
    let mut start = 0;
    loop {
        halt.give_way();
        if halt.must_stop() {
            return ControlFlow::Break(());
        }
        let rest = line.get(start..).unwrap_or_default();
        let (part, end) = match rest.get(..matcher.reach().line) {
            Some(part) if part.len() < rest.len() => (part, PartEnd::Cut),
            _ => (rest, PartEnd::Line),
        };
        match long.search(part, end) {
            PartSearched::Found(found) => return ControlFlow::Continue(Some(found)),
            PartSearched::End => return ControlFlow::Continue(None),
            PartSearched::Next(step) => start += step,
        }
    }
}

/// A line that is matched part by part, in order.
pub(super) struct LongLine<'a> {
    matcher: &'a LineMatcher,
    start: PartStart,
    /// How many characters are before the next part.
    characters: u64,
}

/// The result for a part of a long line.
pub(super) enum PartSearched {
    Found(PartMatch),
    /// No match; the next part begins this many bytes after the beginning of this one.
    Next(usize),
    /// No match, and this was the last part.
    End,
}

impl<'a> LongLine<'a> {
    pub(super) fn new(matcher: &'a LineMatcher) -> Self {
        LongLine {
            matcher,
            start: PartStart::Line,
            characters: 0,
        }
    }

    /// Searches the next part.
    pub(super) fn search(&mut self, part: &[u8], end: PartEnd) -> PartSearched {
        let before = |to: usize| characters(part.get(..to).unwrap_or_default());
        if let Some(found) = self.matcher.find_within(part, self.start, end) {
            return PartSearched::Found(PartMatch {
                column: self.characters + before(found.start) + 1,
                shown: piece_around(part, &found),
            });
        }
        if end == PartEnd::Line {
            return PartSearched::End;
        }
        let step = part.len().saturating_sub(OVERLAP).max(1);
        self.start = PartStart::Cut;
        self.characters += before(step);
        PartSearched::Next(step)
    }
}

/// Where the last `count` lines of `bytes` begin; `None` if that is before them. `bytes` end with a line's end.
pub(super) fn lines_before(bytes: &[u8], count: usize) -> Option<usize> {
    memrchr_iter(b'\n', bytes)
        .nth(count)
        .map(|newline| newline + 1)
}

/// Where the first `count` lines of `bytes` end; `None` if that is behind them.
pub(super) fn lines_after(bytes: &[u8], count: usize) -> Option<usize> {
    match count.checked_sub(1) {
        None => Some(0),
        Some(before) => memchr_iter(b'\n', bytes)
            .nth(before)
            .map(|newline| newline + 1),
    }
}

/// The lines of `bytes` as they are shown.
pub(super) fn shown_lines(bytes: &[u8]) -> Vec<String> {
    let body = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    if bytes.is_empty() {
        return Vec::new();
    }
    body.split(|byte| *byte == b'\n')
        .map(|line| shown_line(line).0)
        .collect()
}

/// A line without its terminator as it is shown, and whether it was cut.
pub(super) fn shown_line(line: &[u8]) -> (String, bool) {
    let line = without_terminator(line);
    let cut = line.get(..SHOWN_MAX).unwrap_or(line);
    let truncated = cut.len() < line.len();
    let cut = if truncated { trim_end(cut) } else { cut };
    (String::from_utf8_lossy(cut).into_owned(), truncated)
}

/// A line as it is shown with a match in it, and whether it was cut: its beginning if the match is in that, else the piece
/// around the match.
pub(super) fn shown_match(line: &[u8], found: &Range<usize>) -> (String, bool) {
    if line.len() <= SHOWN_MAX || found.end <= SHOWN_MAX {
        return shown_line(line);
    }
    (piece_around(without_terminator(line), found), true)
}

/// The piece around a match.
fn piece_around(line: &[u8], found: &Range<usize>) -> String {
    let latest = line.len().saturating_sub(SHOWN_MAX);
    let start = found.start.saturating_sub(SHOWN_BEFORE).min(latest);
    let end = line.len().min(start + SHOWN_MAX);
    let piece = trim_start(line.get(start..end).unwrap_or_default());
    let piece = if end < line.len() {
        trim_end(piece)
    } else {
        piece
    };
    String::from_utf8_lossy(piece).into_owned()
}

/// Where the last line of `bytes` begins.
pub(super) fn last_line(bytes: &[u8]) -> usize {
    let body = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    memrchr(b'\n', body).map_or(0, |newline| newline + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_around_are_found_or_said_to_be_elsewhere() {
        let bytes = b"one\ntwo\nthree\n";
        assert_eq!(lines_before(bytes, 0), Some(14));
        assert_eq!(lines_before(bytes, 1), Some(8));
        assert_eq!(lines_before(bytes, 2), Some(4));
        assert_eq!(lines_before(bytes, 3), None);
        assert_eq!(lines_before(b"", 1), None);
        assert_eq!(lines_after(bytes, 0), Some(0));
        assert_eq!(lines_after(bytes, 2), Some(8));
        assert_eq!(lines_after(bytes, 4), None);
    }

    #[test]
    fn shown_lines_have_no_ends() {
        assert_eq!(shown_lines(b"a\r\n\nb"), ["a", "", "b"]);
        assert_eq!(shown_lines(b"\n"), [""]);
        assert!(shown_lines(b"").is_empty());
    }

    #[test]
    fn long_lines_are_cut_between_characters() {
        for filler in 0..4 {
            let text = "x".repeat(filler) + &"€".repeat(1000) + "\n";
            let (shown, truncated) = shown_line(text.as_bytes());
            assert!(truncated && text.starts_with(&shown), "{filler}");
            assert!(
                shown.len() > SHOWN_MAX - 3 && shown.len() <= SHOWN_MAX,
                "{}",
                shown.len()
            );
        }
        let exact = "y".repeat(SHOWN_MAX) + "\r\n";
        assert_eq!(shown_line(exact.as_bytes()), ("y".repeat(SHOWN_MAX), false));
    }

    #[test]
    fn a_match_far_in_a_line_is_shown_with_what_is_around_it() {
        for filler in 0..4 {
            let text =
                "x".repeat(filler) + &"€".repeat(3000) + "needle" + &"ä".repeat(3000) + "\r\n";
            let start = text.find("needle").unwrap();
            let (shown, truncated) = shown_match(text.as_bytes(), &(start..start + 6));
            assert!(truncated && text.contains(&shown), "{shown}");
            assert!(shown.contains("€needleä"), "{shown}");
            assert!(shown.len() > SHOWN_MAX - 6 && shown.len() <= SHOWN_MAX);
        }
        let text = "x".repeat(5000) + "end\n";
        let (shown, truncated) = shown_match(text.as_bytes(), &(5000..5003));
        assert!(truncated && shown.len() == SHOWN_MAX && shown.ends_with("xend"));
        let (shown, _) = shown_match(text.as_bytes(), &(1990..2010));
        assert!(shown.len() == SHOWN_MAX);
        assert_eq!(
            shown_match(b"short\n", &(0..5)),
            ("short".to_owned(), false)
        );
    }

    #[test]
    fn bytes_that_are_not_text_are_replaced() {
        assert_eq!(shown_line(b"a\xffb").0, "a\u{fffd}b");
        let bad = [&[b'x'; 1999][..], b"\xff\xff\xff"].concat();
        assert!(shown_line(&bad).1);
    }

    #[test]
    fn the_last_line_begins_after_the_last_end() {
        assert_eq!(last_line(b"a\nbc\n"), 2);
        assert_eq!(last_line(b"a\nbc"), 2);
        assert_eq!(last_line(b"abc"), 0);
    }
}
