//! Follows the chain of an audit file line by line and finds the first line that does not fit.

use std::io::{self, BufRead, Read};

use crate::log::chain::{ChainHead, ChainLink, LineHash};

/// The longest line that is read. No line of ours is nearly as long.
const MAX_LINE: u64 = 4 * 1024 * 1024;

/// The first thing that is wrong with a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Break {
    /// The line of the file that shows it, from 1; `None` if it is not about a single line.
    pub(crate) line: Option<u64>,
    /// What is wrong.
    pub(crate) fault: ChainFault,
}

/// What is wrong with a chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ChainFault {
    /// The line does not match the hash in the next one, or that hash was altered.
    Altered,
    /// Lines with these numbers should come before it.
    Missing {
        /// The first number.
        from: u64,
        /// The last number.
        to: u64,
    },
    /// The line was added, or moved here from another place.
    Misplaced {
        /// The number it has.
        seq: u64,
        /// The number that should be here.
        expected: u64,
    },
    /// The first line is not one that begins a file.
    NoBeginning {
        /// The number it has.
        seq: u64,
    },
    /// No line has the hash that was kept.
    HeadNotFound,
    /// The next file does not continue from any line of this one.
    NextDoesNotFollow,
}

/// What was found in one file.
#[derive(Debug, Default)]
pub(crate) struct Verified {
    /// The number of its lines.
    pub(crate) lines: u64,
    /// The lines at its beginning that an older version wrote, without hashes.
    pub(crate) unchained: u64,
    /// The number of its first chained line.
    pub(crate) first: Option<u64>,
    /// Its last line.
    pub(crate) head: ChainHead,
    /// The lines that were cut off when a process or the machine died.
    pub(crate) cut: Vec<u64>,
    /// The line with the requested hash, and the one that the next file continues from.
    pub(crate) found_head: Option<u64>,
    pub(crate) found_handover: Option<u64>,
    /// The first thing that is wrong.
    pub(crate) broken: Option<Break>,
}

/// The hashes to look for on the way.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct LookFor {
    /// The hash that was kept elsewhere.
    pub(crate) head: Option<LineHash>,
    /// What the next file's first line says it follows.
    pub(crate) handover: Option<LineHash>,
}

/// Reads a file to its end or to the first line that does not fit.
pub(crate) fn verify(reader: &mut impl BufRead, look_for: LookFor) -> io::Result<Verified> {
    let mut chain = Chain {
        look_for,
        ..Chain::default()
    };
    let mut line = Vec::new();
    while chain.verified.broken.is_none() && read_line(reader, &mut line)? {
        match line.strip_suffix(b"\n") {
            Some(whole) => chain.add(whole),
            None => chain.add_unfinished(&line),
        }
    }
    Ok(chain.finish())
}

fn read_line(reader: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<bool> {
    line.clear();
    Ok(reader.take(MAX_LINE).read_until(b'\n', line)? > 0)
}

/// The chain so far.
#[derive(Debug, Default)]
struct Chain {
    look_for: LookFor,
    verified: Verified,
    /// The line before is not one of ours, which is right only if the next one says that it was cut off.
    after_scrap: bool,
}

impl Chain {
    fn add(&mut self, line: &[u8]) {
        self.verified.lines += 1;
        let hash = LineHash::of(line);
        match ChainLink::read(line) {
            Some(link) => {
                self.verified.broken = self.fault(&link);
                if self.after_scrap && self.verified.broken.is_none() {
                    self.verified.cut.push(self.verified.lines - 1);
                }
                self.after_scrap = false;
                self.verified.first.get_or_insert(link.seq);
                self.go_on(link.seq, hash);
            }
            None if self.verified.first.is_none() => {
                self.verified.unchained += 1;
                self.go_on(0, hash);
            }
            None if self.after_scrap => self.verified.broken = Some(self.altered_before()),
            None => {
                self.after_scrap = true;
                self.go_on(self.verified.head.seq.saturating_add(1), hash);
            }
        }
    }

    /// A last line without its end: it is being written, or was cut off.
    fn add_unfinished(&mut self, line: &[u8]) {
        if line.len() as u64 >= MAX_LINE {
            self.verified.lines += 1;
            self.verified.broken = Some(self.here(ChainFault::Altered));
            return;
        }
        if self.after_scrap {
            self.verified.broken = Some(self.altered_before());
        }
        self.verified.lines += 1;
        self.verified.cut.push(self.verified.lines);
    }

    fn go_on(&mut self, seq: u64, hash: LineHash) {
        let line = Some(self.verified.lines);
        if self.look_for.head == Some(hash) {
            self.verified.found_head = line;
        }
        if self.look_for.handover == Some(hash) {
            self.verified.found_handover = line;
        }
        self.verified.head = ChainHead { seq, hash };
    }

    /// What is wrong with the place of a line, if anything.
    fn fault(&self, link: &ChainLink) -> Option<Break> {
        let (before, seq) = (self.verified.head, link.seq);
        if self.verified.lines == 1 {
            return (!link.first).then(|| self.here(ChainFault::NoBeginning { seq }));
        }
        let expected = before.seq.saturating_add(1);
        let follows = link.prev == before.hash;
        match (follows, seq == expected) {
            (true, true) if self.after_scrap && !link.after_cut => Some(self.altered_before()),
            (true, true) => None,
            // Nothing is missing between the two lines: the number itself was changed.
            (true, false) => Some(self.here(ChainFault::Altered)),
            (false, true) => Some(self.altered_before()),
            (false, false) if seq > expected => {
                let (from, to) = (expected, seq - 1);
                Some(self.here(ChainFault::Missing { from, to }))
            }
            (false, false) => Some(self.here(ChainFault::Misplaced { seq, expected })),
        }
    }

    fn here(&self, fault: ChainFault) -> Break {
        Break {
            line: Some(self.verified.lines),
            fault,
        }
    }

    /// The line before was altered: the current one, or the lack of one, shows it.
    fn altered_before(&self) -> Break {
        Break {
            line: Some(self.verified.lines.saturating_sub(1)),
            fault: ChainFault::Altered,
        }
    }

    fn finish(mut self) -> Verified {
        if self.after_scrap && self.verified.broken.is_none() {
            self.verified.broken = Some(self.here(ChainFault::Altered));
        }
        self.verified
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::chain::{Follows, push_chained};

    /// The lines of a file with `count` calls, the first of them with the number `from` + 1.
    fn file(count: u64, head: ChainHead) -> (Vec<String>, ChainHead) {
        let (mut text, mut head) = (Vec::new(), head);
        for number in 0..count {
            let follows = if number == 0 {
                Follows::Nothing
            } else {
                Follows::Line
            };
            let line = format!(r#"{{"call":{number}}}"#);
            head = push_chained(line.as_bytes(), head, follows, &mut text);
        }
        let text = String::from_utf8(text).unwrap();
        (text.lines().map(str::to_owned).collect(), head)
    }

    fn of(lines: &[String]) -> Verified {
        let text = lines.iter().map(|line| format!("{line}\n"));
        let text: String = text.collect();
        verify(&mut text.as_bytes(), LookFor::default()).unwrap()
    }

    fn fault(lines: &[String]) -> (u64, ChainFault) {
        let broken = of(lines).broken.expect("a fault");
        (broken.line.expect("a line"), broken.fault)
    }

    #[test]
    fn an_unbroken_chain_is_followed_to_its_head() {
        let (lines, head) = file(5, ChainHead::default());
        let verified = of(&lines);
        assert_eq!(verified.broken, None);
        assert_eq!(verified.lines, 5);
        assert_eq!(verified.head, head);
    }

    #[test]
    fn every_alteration_is_found_where_it_is() {
        let (lines, _) = file(6, ChainHead::default());
        let mut altered = lines.clone();
        altered[2] = altered[2].replace("\"call\":2", "\"call\":7");
        assert_eq!(fault(&altered), (3, ChainFault::Altered));

        let mut removed = lines.clone();
        removed.remove(2);
        assert_eq!(fault(&removed), (3, ChainFault::Missing { from: 3, to: 3 }));

        let mut swapped = lines.clone();
        swapped.swap(2, 3);
        assert_eq!(fault(&swapped), (3, ChainFault::Missing { from: 3, to: 3 }));

        let mut twice = lines.clone();
        twice.insert(3, lines[2].clone());
        let misplaced = ChainFault::Misplaced {
            seq: 3,
            expected: 4,
        };
        assert_eq!(fault(&twice), (4, misplaced));

        let mut renumbered = lines.clone();
        renumbered[2] = renumbered[2].replace("\"seq\":3", "\"seq\":9");
        assert_eq!(fault(&renumbered), (3, ChainFault::Altered));

        assert_eq!(fault(&lines[1..]), (1, ChainFault::NoBeginning { seq: 2 }));

        let mut scrap = lines.clone();
        scrap[2] = "x".to_owned();
        assert_eq!(fault(&scrap), (3, ChainFault::Altered));
        let mut last = lines.clone();
        last[5] = "x".to_owned();
        assert_eq!(fault(&last), (6, ChainFault::Altered));
    }

    #[test]
    fn a_cut_end_is_only_found_with_the_head() {
        let (lines, head) = file(5, ChainHead::default());
        let shorter = &lines[..4];
        assert_eq!(of(shorter).broken, None);
        let look_for = LookFor {
            head: Some(head.hash),
            handover: None,
        };
        let text = shorter.join("\n") + "\n";
        let verified = verify(&mut text.as_bytes(), look_for).unwrap();
        assert_eq!(verified.found_head, None);
    }

    #[test]
    fn a_line_that_a_crash_cut_off_is_told_and_no_fault() {
        let (lines, head) = file(2, ChainHead::default());
        let scrap = "{\"ha";
        let before = ChainHead {
            seq: head.seq + 1,
            hash: LineHash::of(scrap.as_bytes()),
        };
        let mut text = lines.join("\n").into_bytes();
        text.extend_from_slice(b"\n{\"ha\n");
        push_chained(b"{\"on\":1}", before, Follows::CutLine, &mut text);
        let verified = verify(&mut text.as_slice(), LookFor::default()).unwrap();
        assert_eq!(verified.broken, None);
        assert_eq!(verified.cut, [3]);
    }

    #[test]
    fn lines_of_an_older_version_are_counted() {
        let old = "{\"message\":\"call\"}";
        let before = ChainHead {
            seq: 0,
            hash: LineHash::of(old.as_bytes()),
        };
        let mut text = format!("{old}\n").into_bytes();
        push_chained(b"{\"on\":1}", before, Follows::Line, &mut text);
        let verified = verify(&mut text.as_slice(), LookFor::default()).unwrap();
        assert_eq!(verified.broken, None);
        assert_eq!(verified.unchained, 1);
    }
}
