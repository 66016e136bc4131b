//! How two texts differ, line by line, as a unified diff.
//!
//! The shortest way from one text to the other, and among equally short ones the way that programs take which show such
//! diffs to models: removed lines precede added ones, and unchanged lines are kept as early as possible.

use std::collections::HashMap;
use std::fmt::Write as _;

/// How many lines may be added or removed before the rest is shown as replaced as a whole.
const EDITS_MAX: i64 = 1000;

/// What happens to lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LineFate {
    Stays,
    Goes,
    Comes,
}

/// Some lines that have the same fate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct LineRun {
    fate: LineFate,
    lines: usize,
}

/// The hunks of a unified diff with so many lines around each change; empty if both texts are the same.
#[must_use]
pub fn unified(old: &str, new: &str, context: usize) -> String {
    let (old, new): (Vec<&str>, Vec<&str>) = (lines(old), lines(new));
    let mut hunks = String::new();
    let mut writer = HunkWriter {
        old: &old,
        new: &new,
        context,
        hunk: None,
        old_line: 0,
        new_line: 0,
    };
    let runs = runs(&old, &new);
    for (index, run) in runs.iter().enumerate() {
        writer.add(*run, index + 1 == runs.len(), &mut hunks);
    }
    writer.finish(&mut hunks);
    hunks
}

fn lines(text: &str) -> Vec<&str> {
    text.split_inclusive('\n').collect()
}

/// A hunk that is not finished.
struct Hunk {
    old_start: usize,
    new_start: usize,
    body: String,
}

struct HunkWriter<'t> {
    old: &'t [&'t str],
    new: &'t [&'t str],
    context: usize,
    hunk: Option<Hunk>,
    /// How many lines of each text have been passed.
    old_line: usize,
    new_line: usize,
}

impl HunkWriter<'_> {
    fn add(&mut self, run: LineRun, is_last: bool, out: &mut String) {
        match run.fate {
            LineFate::Stays => self.stay(run.lines, is_last, out),
            LineFate::Goes => {
                let (old, start) = (self.old, self.old_line);
                let mut hunk = self.begun();
                put_lines(&mut hunk.body, '-', old.iter().skip(start).take(run.lines));
                self.hunk = Some(hunk);
                self.old_line += run.lines;
            }
            LineFate::Comes => {
                let (new, start) = (self.new, self.new_line);
                let mut hunk = self.begun();
                put_lines(&mut hunk.body, '+', new.iter().skip(start).take(run.lines));
                self.hunk = Some(hunk);
                self.new_line += run.lines;
            }
        }
    }

    /// The hunk so far, or a new one with the lines before it.
    fn begun(&mut self) -> Hunk {
        if let Some(hunk) = self.hunk.take() {
            return hunk;
        }
        let before = self.context.min(self.old_line);
        let mut hunk = Hunk {
            old_start: self.old_line - before,
            new_start: self.new_line - before,
            body: String::new(),
        };
        let lines = self.old.iter().skip(self.old_line - before).take(before);
        put_lines(&mut hunk.body, ' ', lines);
        hunk
    }

    fn stay(&mut self, count: usize, is_last: bool, out: &mut String) {
        if let Some(hunk) = &mut self.hunk {
            let joins = count <= self.context * 2 && !is_last;
            let shown = if joins {
                count
            } else {
                count.min(self.context)
            };
            let lines = self.old.iter().skip(self.old_line).take(shown);
            put_lines(&mut hunk.body, ' ', lines);
            if !joins {
                self.pass(shown);
                self.finish(out);
                return self.pass(count - shown);
            }
        }
        self.pass(count);
    }

    /// Passes lines that both texts have.
    fn pass(&mut self, lines: usize) {
        self.old_line += lines;
        self.new_line += lines;
    }

    fn finish(&mut self, out: &mut String) {
        let Some(hunk) = self.hunk.take() else { return };
        let (old_lines, new_lines) = (
            self.old_line - hunk.old_start,
            self.new_line - hunk.new_start,
        );
        // Lines count from 1; if there are none, the line before is named.
        let first = |start: usize, lines: usize| start + usize::from(lines > 0);
        // Writing into a string cannot fail.
        let _ = writeln!(
            out,
            "@@ -{},{old_lines} +{},{new_lines} @@",
            first(hunk.old_start, old_lines),
            first(hunk.new_start, new_lines),
        );
        out.push_str(&hunk.body);
    }
}

fn put_lines<'t>(out: &mut String, sign: char, lines: impl Iterator<Item = &'t &'t str>) {
    for line in lines {
        out.push(sign);
        out.push_str(line);
        if !line.ends_with('\n') {
            out.push_str("\n\\ No newline at end of file\n");
        }
    }
}

/// One way from the beginning of both texts, as far as it came on its diagonal.
#[derive(Clone, Copy)]
struct EditPath {
    /// How many lines of the old text are behind it.
    old: i64,
    /// Its last step, in the list of all steps.
    last: Option<usize>,
}

struct DiffStep {
    run: LineRun,
    before: Option<usize>,
}

fn runs(old: &[&str], new: &[&str]) -> Vec<LineRun> {
    let mut search = Search {
        old,
        new,
        steps: Vec::new(),
    };
    let mut last = search.run();
    if last.is_none() {
        return replaced(old, new);
    }
    let mut runs = Vec::new();
    while let Some(step) = last.and_then(|index| search.steps.get(index)) {
        runs.push(step.run);
        last = step.before;
    }
    runs.reverse();
    runs
}

struct Search<'t> {
    old: &'t [&'t str],
    new: &'t [&'t str],
    steps: Vec<DiffStep>,
}

impl Search<'_> {
    /// The last step of the shortest way; `None` for equal empty texts and if it takes too many edits.
    fn run(&mut self) -> Option<usize> {
        let (old_length, new_length) = (self.old.len() as i64, self.new.len() as i64);
        let start = EditPath { old: 0, last: None };
        let (start, new_at) = self.along(start, 0);
        if start.old >= old_length && new_at >= new_length {
            return start.last;
        }
        let mut ways = HashMap::from([(0, start)]);
        let (mut lowest, mut highest) = (i64::MIN, i64::MAX);
        for edits in 1..=EDITS_MAX.min(old_length + new_length) {
            let mut diagonal = lowest.max(-edits);
            while diagonal <= highest.min(edits) {
                let way = self.next(&mut ways, diagonal);
                let Some((way, new_at)) = way else {
                    ways.remove(&diagonal);
                    diagonal += 2;
                    continue;
                };
                if way.old >= old_length && new_at >= new_length {
                    return way.last;
                }
                ways.insert(diagonal, way);
                if way.old >= old_length {
                    highest = highest.min(diagonal - 1);
                }
                if new_at >= new_length {
                    lowest = lowest.max(diagonal + 1);
                }
                diagonal += 2;
            }
        }
        None
    }

    /// The best way on a diagonal with one edit more, and how many lines of the new text are behind it.
    fn next(
        &mut self,
        ways: &mut HashMap<i64, EditPath>,
        diagonal: i64,
    ) -> Option<(EditPath, i64)> {
        let (old_length, new_length) = (self.old.len() as i64, self.new.len() as i64);
        let removing = ways
            .remove(&(diagonal - 1))
            .filter(|way| way.old < old_length);
        let adding = ways.get(&(diagonal + 1)).copied().filter(|way| {
            let new_at = way.old - diagonal - 1;
            (0..new_length).contains(&new_at)
        });
        let way = match (removing, adding) {
            (None, None) => return None,
            (Some(removing), Some(adding)) if removing.old < adding.old => {
                self.step(adding, LineFate::Comes)
            }
            (Some(removing), _) => self.step(removing, LineFate::Goes),
            (None, Some(adding)) => self.step(adding, LineFate::Comes),
        };
        Some(self.along(way, diagonal))
    }

    /// The way with one line more that comes or goes.
    fn step(&mut self, way: EditPath, fate: LineFate) -> EditPath {
        let last = way.last.and_then(|index| self.steps.get(index));
        let (lines, before) = match last {
            Some(step) if step.run.fate == fate => (step.run.lines + 1, step.before),
            _ => (1, way.last),
        };
        EditPath {
            old: way.old + i64::from(fate == LineFate::Goes),
            last: self.remember(LineRun { fate, lines }, before),
        }
    }

    /// Keeps a step and returns its number.
    fn remember(&mut self, run: LineRun, before: Option<usize>) -> Option<usize> {
        self.steps.push(DiffStep { run, before });
        Some(self.steps.len() - 1)
    }

    /// The way with all lines that follow and stay.
    fn along(&mut self, way: EditPath, diagonal: i64) -> (EditPath, i64) {
        let at = |index: i64| usize::try_from(index).unwrap_or(usize::MAX);
        let (mut old_at, mut new_at) = (way.old, way.old - diagonal);
        while let (Some(old), Some(new)) = (self.old.get(at(old_at)), self.new.get(at(new_at)))
            && old == new
        {
            old_at += 1;
            new_at += 1;
        }
        let lines = at(old_at - way.old);
        let mut way = EditPath { old: old_at, ..way };
        if lines > 0 {
            let fate = LineFate::Stays;
            way.last = self.remember(LineRun { fate, lines }, way.last);
        }
        (way, new_at)
    }
}

/// Everything between what both texts begin and end with, as replaced.
fn replaced(old: &[&str], new: &[&str]) -> Vec<LineRun> {
    let same = |(one, other): &(&&str, &&str)| one == other;
    let front = old.iter().zip(new).take_while(same).count();
    let rest = old.len().min(new.len()) - front;
    let back = old.iter().rev().zip(new.iter().rev()).take_while(same);
    let back = back.count().min(rest);
    let runs = [
        (LineFate::Stays, front),
        (LineFate::Goes, old.len() - front - back),
        (LineFate::Comes, new.len() - front - back),
        (LineFate::Stays, back),
    ];
    let runs = runs.into_iter().filter(|(_, lines)| *lines > 0);
    runs.map(|(fate, lines)| LineRun { fate, lines }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn hunks_are_those_that_programs_show() {
        for (old, new, diff) in [
            (
                "a\nb\nc\n",
                "a\nB\nc\n",
                "@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n",
            ),
            ("", "x\n", "@@ -0,0 +1,1 @@\n+x\n"),
            ("x\n", "", "@@ -1,1 +0,0 @@\n-x\n"),
            (
                "a",
                "b",
                "@@ -1,1 +1,1 @@\n-a\n\\ No newline at end of file\n+b\n\\ No newline at end of file\n",
            ),
            ("same\n", "same\n", ""),
        ] {
            assert_eq!(unified(old, new, 4), diff);
        }
        let numbered: Vec<String> = (1..=30).map(|n| format!("{n}\n")).collect();
        let old = numbered.concat();
        let new = old.replace("3\n4\n", "3\nx\n").replace("27\n", "y\n");
        assert!(unified(&old, &new, 4).contains("\n@@ -23,8 +23,8 @@\n 23\n"));
    }

    /// Applies hunks, without looking where their lines match.
    fn applied(old: &str, hunks: &str) -> String {
        let old = lines(old);
        let mut new = String::new();
        let mut at = 0;
        for line in hunks.split_inclusive('\n') {
            let (sign, text) = line.split_at(1);
            match sign {
                "@" => {
                    let (range, _) = text.split_once(" +").unwrap();
                    let (start, count) = range.split_once('-').unwrap().1.split_once(',').unwrap();
                    let start: usize = start.parse().unwrap();
                    let start = if count == "0" { start } else { start - 1 };
                    new.extend(old.iter().take(start).skip(at).copied());
                    at = start;
                }
                "\\" => drop(new.ends_with('\n').then(|| new.pop())),
                " " => {
                    new.push_str(text);
                    at += 1;
                }
                "+" => new.push_str(text),
                _ => at += 1,
            }
        }
        new.extend(old.iter().skip(at).copied());
        new
    }

    proptest! {
        #[test]
        fn a_diff_leads_from_one_text_to_the_other(old in "[abc\n]{0,40}", new in "[abc\n]{0,40}") {
            // The mark of a missing last line end belongs to the side that was written before it.
            let (old, new) = (format!("{old}\n"), format!("{new}\n"));
            prop_assert_eq!(applied(&old, &unified(&old, &new, 1)), new.clone());
            let runs = replaced(&lines(&old), &lines(&new));
            let going: usize = runs.iter().filter(|run| run.fate != LineFate::Comes).map(|run| run.lines).sum();
            prop_assert_eq!(going, lines(&old).len());
        }
    }
}
