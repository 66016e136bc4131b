//! Guesses what a string that is not in a text was meant to be: the line or lines most like it.
//!
//! Everything here looks at a bounded part of the text and does a bounded amount of work.

use std::collections::HashMap;

use unicode_normalization::UnicodeNormalization;

use crate::error::{NearDifference, NearRegion, Result};
use crate::text::lines::{self, Blocks};
use crate::text::{ReadAt, encoding, excerpt};

/// Limits for a hint: how much of a text, which lines of it, and how much work.
const HINT_BYTES: u64 = 8 * 1024 * 1024;
const HINT_LINE: usize = 400;
const HINT_CELLS: usize = 20_000_000;
/// Below this likeness a hint would mislead.
const HINT_LIKENESS: f64 = 0.6;
/// How much of a line is shown.
const HINT_SHOWN: usize = 300;

/// The line of the text that is most like the first line of `wanted` that is not blank.
///
/// Looks at a bounded part of a large text; gives nothing if no line is similar enough.
pub(crate) fn nearest_line(read: &mut ReadAt<'_>, wanted: &str) -> Result<Option<(u64, String)>> {
    let Some(mut hint) = Hint::new(wanted) else {
        return Ok(None);
    };
    let mut rest: Vec<u8> = Vec::new();
    let mut blocks = Blocks::new(read, 0, lines::BLOCK);
    while let Some((offset, block)) = blocks.next()? {
        rest.extend_from_slice(block);
        let whole = memchr::memrchr(b'\n', &rest).map_or(0, |newline| newline + 1);
        rest.get(..whole)
            .unwrap_or(&[])
            .split_inclusive(|b| *b == b'\n')
            .for_each(|l| hint.see(l));
        rest.drain(..whole);
        if hint.is_settled() || offset > HINT_BYTES {
            return Ok(hint.best());
        }
    }
    hint.see(&rest);
    Ok(hint.best())
}

/// How many lines of a text, and of a string, are compared for the nearest region.
const REGION_TEXT_LINES: usize = 200_000;
const REGION_LINES: usize = 200;
/// How many lines of a region are shown.
const REGION_SHOWN: usize = 3;

/// The lines of the text that are most like `wanted`, which may have several.
///
/// Looks at a bounded part of a large text; gives nothing if no line is similar enough.
pub(crate) fn nearest_region(read: &mut ReadAt<'_>, wanted: &str) -> Result<Option<NearRegion>> {
    let wanted: Vec<&str> = wanted
        .trim_matches('\n')
        .lines()
        .take(REGION_LINES)
        .collect();
    let text = beginning(read)?;
    let Some(text) = encoding::utf8(encoding::trim_end(&text)) else {
        return Ok(None);
    };
    let lines: Vec<&str> = text.lines().take(REGION_TEXT_LINES).collect();
    let start = match most_agreed_start(&lines, &wanted) {
        Some(start) => Some(start),
        None => start_by_nearest_line(read, &wanted)?,
    };
    Ok(start.and_then(|start| region(&lines, start, &wanted)))
}

/// Where the wanted lines would start so that the first that is not blank is at the line most like them.
fn start_by_nearest_line(read: &mut ReadAt<'_>, wanted: &[&str]) -> Result<Option<usize>> {
    let blank = wanted.iter().take_while(|line| line.trim().is_empty());
    let nearest = nearest_line(read, &wanted.join("\n"))?;
    Ok(nearest.map(|(line, _)| {
        let index = usize::try_from(line - 1).unwrap_or(usize::MAX);
        index.saturating_sub(blank.count())
    }))
}

fn beginning(read: &mut ReadAt<'_>) -> Result<Vec<u8>> {
    let mut text = Vec::new();
    let mut blocks = Blocks::new(read, 0, lines::BLOCK);
    while let Some((offset, block)) = blocks.next()? {
        text.extend_from_slice(block);
        if offset > HINT_BYTES {
            break;
        }
    }
    Ok(text)
}

/// Where the wanted lines would start so that most of them agree, blanks around them aside; at least half must.
fn most_agreed_start(lines: &[&str], wanted: &[&str]) -> Option<usize> {
    let places = places_of_lines(wanted);
    let needed: usize = places.values().map(Vec::len).sum::<usize>().div_ceil(2);
    let mut agreed: HashMap<usize, usize> = HashMap::new();
    for (number, line) in lines.iter().enumerate() {
        for index in places.get(line.trim()).into_iter().flatten().take(4) {
            if let Some(start) = number.checked_sub(*index) {
                *agreed.entry(start).or_default() += 1;
            }
        }
    }
    let best = agreed
        .into_iter()
        .max_by_key(|(start, count)| (*count, usize::MAX - start))?;
    (best.1 >= needed.max(1)).then_some(best.0)
}

/// At which places each line is, blanks around it aside.
fn places_of_lines<'l>(lines: &[&'l str]) -> HashMap<&'l str, Vec<usize>> {
    let mut places: HashMap<&str, Vec<usize>> = HashMap::new();
    for (index, line) in lines.iter().enumerate() {
        let line = line.trim();
        if !line.is_empty() {
            places.entry(line).or_default().push(index);
        }
    }
    places
}

fn region(lines: &[&str], start: usize, wanted: &[&str]) -> Option<NearRegion> {
    let end = start.saturating_add(wanted.len()).min(lines.len());
    let found = lines.get(start..end).filter(|found| !found.is_empty())?;
    let differs = |(found, wanted): (&&str, &&str)| found.trim_end() != wanted.trim_end();
    let first = found.iter().zip(wanted).position(differs).unwrap_or(0);
    let last_start = found.len().saturating_sub(REGION_SHOWN);
    let shown = found
        .iter()
        .zip(start as u64 + 1..)
        .skip(first.min(last_start));
    Some(NearRegion {
        first: start as u64 + 1,
        last: end as u64,
        difference: difference(found, wanted),
        lines: shown
            .take(REGION_SHOWN)
            .map(|(line, number)| (number, excerpt(line.trim_end().as_bytes(), HINT_SHOWN)))
            .collect(),
    })
}

/// What all lines differ in, if it can be named.
fn difference(found: &[&str], wanted: &[&str]) -> Option<NearDifference> {
    let agree = |seen: fn(&str) -> String| {
        let pairs = found.iter().zip(wanted);
        found.len() == wanted.len() && pairs.into_iter().all(|(a, b)| seen(a) == seen(b))
    };
    let without_blanks = |line: &str| line.split_whitespace().collect::<String>();
    if agree(str::to_owned) {
        Some(NearDifference::LastLineEnd)
    } else if agree(|line| line.trim().to_owned()) {
        Some(NearDifference::Indentation)
    } else if agree(without_blanks) {
        Some(NearDifference::Blanks)
    } else if agree(|line| line.trim().to_lowercase()) {
        Some(NearDifference::Case)
    } else if agree(|line| line.trim().nfc().collect()) {
        Some(NearDifference::UnicodeForm)
    } else {
        None
    }
}

struct Hint<'w> {
    wanted: &'w str,
    length: usize,
    bytes: [i32; 256],
    line: u64,
    likeness: f64,
    best: Option<(u64, String)>,
    cells: usize,
}

impl<'w> Hint<'w> {
    fn new(wanted: &'w str) -> Option<Hint<'w>> {
        let wanted = wanted
            .lines()
            .map(str::trim)
            .find(|line| !line.is_empty())?;
        if wanted.len() > HINT_LINE {
            return None;
        }
        let mut bytes = [0; 256];
        wanted
            .bytes()
            .for_each(|byte| bytes[usize::from(byte)] += 1);
        let length = wanted.chars().count();
        Some(Hint {
            wanted,
            length,
            bytes,
            line: 0,
            likeness: 0.0,
            best: None,
            cells: HINT_CELLS,
        })
    }

    /// No better line can come, or no work is left.
    fn is_settled(&self) -> bool {
        self.likeness >= 1.0 || self.cells == 0
    }

    fn best(self) -> Option<(u64, String)> {
        self.best
    }

    fn see(&mut self, line: &[u8]) {
        self.line += 1;
        if self.is_settled() || line.len() > 2 * HINT_LINE {
            return;
        }
        let Some(text) = encoding::utf8(line).map(str::trim) else {
            return;
        };
        let likeness = self.likeness(text);
        if likeness >= HINT_LIKENESS && likeness > self.likeness {
            self.likeness = likeness;
            let shown = line.trim_ascii_end();
            self.best = Some((self.line, excerpt(shown, HINT_SHOWN)));
        }
    }

    fn likeness(&mut self, line: &str) -> f64 {
        if line == self.wanted {
            return 1.0;
        }
        if !self.may_be_better(line) {
            return 0.0;
        }
        self.cells = self.cells.saturating_sub(self.length * line.len());
        strsim::normalized_levenshtein(line, self.wanted)
    }

    /// A cheap bound on the likeness from which bytes the two lines have, before the expensive comparison.
    fn may_be_better(&self, line: &str) -> bool {
        let length = line.chars().count().max(self.length);
        let mut bytes = self.bytes;
        line.bytes().for_each(|byte| bytes[usize::from(byte)] -= 1);
        let more: i32 = bytes.iter().filter(|count| **count > 0).sum();
        let fewer: i32 = -bytes.iter().filter(|count| **count < 0).sum::<i32>();
        // A character has up to four bytes, and one edit changes one character.
        let least = f64::from(more.max(fewer))
            / if line.is_ascii() && self.wanted.is_ascii() {
                1.0
            } else {
                4.0
            };
        let bound = 1.0 - least / length as f64;
        bound >= HINT_LIKENESS && bound > self.likeness
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::reader;

    #[test]
    fn a_hint_costs_a_bounded_amount() {
        let text = "lorem ipsum dolor sit amet consectetur\n".repeat(100_000);
        let found = nearest_line(&mut reader(text.as_bytes()), &"lorem ipsum ".repeat(10)).unwrap();
        assert_eq!(found, None);
        let one_line = "x".repeat(20_000_000);
        let mut read = reader(one_line.as_bytes());
        assert_eq!(nearest_line(&mut read, "xxxx").unwrap(), None);
    }
}
