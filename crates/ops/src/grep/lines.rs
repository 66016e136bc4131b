//! Lines in bytes: where they begin and end, what is around them, and how they are shown. Pure functions.

use std::ops::{ControlFlow, Range};

use memchr::{memchr_iter, memrchr, memrchr_iter};

use crate::ordered::Halt;
use crate::pattern::{LineMatcher, PartEnd, PartStart, without_terminator};
use crate::text::encoding::trim_end;

/// How much of a line is shown.
pub(super) const SHOWN_MAX: usize = 2000;
/// How much a part of a long line repeats of the one before it.
pub(super) const OVERLAP: usize = 4096;

/// How a search through bytes ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Searched {
    /// All were searched.
    All,
    /// The caller of each match had enough.
    Enough,
    /// The deadline passed, or the caller gave up.
    Halted,
}

/// Hands every matching line of `bytes`, which begin a line, to `matched`.
pub(super) fn search(
    matcher: &LineMatcher,
    bytes: &[u8],
    halt: &Halt,
    matched: &mut dyn FnMut(Range<usize>) -> ControlFlow<()>,
) -> Searched {
    let mut from = 0;
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
            if matched(line).is_break() {
                return Searched::Enough;
            }
        }
        if let Some(line) = long {
            match search_in_parts(matcher, bytes.get(line.clone()).unwrap_or_default(), halt) {
                None => return Searched::Halted,
                Some(true) if matched(line).is_break() => return Searched::Enough,
                Some(_) => {}
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

/// The last line of a stretch, where it is longer than what is matched as a whole.
fn long_line(bytes: &[u8], stretch: Range<usize>, longest: usize) -> Option<Range<usize>> {
    if stretch.len() <= longest {
        return None;
    }
    let start = stretch.start + last_line(bytes.get(stretch.clone())?);
    (stretch.end - start > longest).then_some(start..stretch.end)
}

/// Matches a long line part by part; `None` when it has to stop.
fn search_in_parts(matcher: &LineMatcher, line: &[u8], halt: &Halt) -> Option<bool> {
    let step = matcher.reach().line.saturating_sub(OVERLAP).max(1);
    for start in (0..line.len()).step_by(step) {
        halt.give_way();
        if halt.must_stop() {
            return None;
        }
        let rest = line.get(start..)?;
        let (part, end) = match rest.get(..step + OVERLAP) {
            Some(part) if part.len() < rest.len() => (part, PartEnd::Cut),
            _ => (rest, PartEnd::Line),
        };
        let begin = if start == 0 {
            PartStart::Line
        } else {
            PartStart::Cut
        };
        if matcher.is_match_within(part, begin, end) {
            return Some(true);
        }
        if end == PartEnd::Line {
            break;
        }
    }
    Some(false)
}

/// Where the last `count` lines of `bytes` begin; `None` where that is before them. `bytes` end with a line's end.
pub(super) fn lines_before(bytes: &[u8], count: usize) -> Option<usize> {
    memrchr_iter(b'\n', bytes)
        .nth(count)
        .map(|newline| newline + 1)
}

/// Where the first `count` lines of `bytes` end; `None` where that is behind them.
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
