//! The audit file: every call, one JSON line each, at its end, each holding the hash of the line before ([`super::chain`]).
//!
//! Several processes may write one file (a client starts a server for each window): each write holds the file's lock and
//! continues from the line that is the last one then.

use std::fmt::Display;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::chain::{ChainHead, ChainLink, Follows, LineHash, push_chained};
use super::queue::LogOutput;
use crate::operator_files;
use crate::settings::{AuditOnFailure, Settings};

/// The file that every call is recorded in: whole lines at its end.
#[derive(Debug)]
pub(crate) struct AuditFile {
    path: PathBuf,
    file: File,
    /// The position at which the reserved room for further lines begins.
    kept_from: u64,
    on_failure: AuditOnFailure,
    /// The last line that this process wrote or found.
    head: ChainHead,
    /// The length of the file at that time; other processes may append.
    length: u64,
    announcer: HeadAnnouncer,
}

/// Tells the operator that calls cannot be recorded, and what happens to changes.
pub(super) fn tell_failing(error: &dyn Display, on_failure: AuditOnFailure) {
    let changes = match on_failure {
        AuditOnFailure::Refuse => "refused",
        AuditOnFailure::Continue => "not recorded",
    };
    tracing::error!(%error, changes, "the audit file cannot be written");
}

/// How many bytes are kept for the lines that follow.
const ROOM: u64 = 1024 * 1024;

/// How much of the file's end is read to find its last lines. No line of ours is nearly as long.
const TAIL: u64 = 1024 * 1024;

impl AuditFile {
    /// Opens the file, and creates it if it is missing.
    pub(crate) fn open(path: &Path, settings: &Settings) -> io::Result<AuditFile> {
        let every = settings.audit_head_every;
        Ok(AuditFile {
            file: operator_files::append(path)?,
            path: path.to_owned(),
            // No room is reserved yet: the first look at the end finds that.
            kept_from: u64::MAX,
            on_failure: settings.audit_on_failure,
            head: ChainHead::default(),
            length: 0,
            announcer: HeadAnnouncer::new(every),
        })
    }

    /// Room for the lines of changes in progress. It is reserved before they begin, so that a full disk stops the next
    /// change and not the record of this one.
    fn keep_room(&mut self) -> io::Result<()> {
        let end = self.file.metadata()?.len();
        let is_kept = end >= self.kept_from && end - self.kept_from <= ROOM / 2;
        if !is_kept {
            operator_files::keep_room(&self.file, end, ROOM)?;
            self.kept_from = end;
        }
        Ok(())
    }

    /// Chains the lines and writes them. Nobody else writes meanwhile.
    fn write_chained(&mut self, lines: &[u8]) -> io::Result<()> {
        let before = self.file.metadata()?.len();
        let tail = self.look_at_end(before)?;
        let mut chained = Vec::with_capacity(lines.len() * 2);
        if tail.follows == Follows::CutLine {
            chained.push(b'\n');
        }
        let (mut head, mut follows) = (tail.head, tail.follows);
        for line in lines.split_inclusive(|byte| *byte == b'\n') {
            let line = line.strip_suffix(b"\n").unwrap_or(line);
            head = push_chained(line, head, follows, &mut chained);
            follows = Follows::Line;
        }
        (&self.file).write_all(&chained).inspect_err(|_| {
            // Every line stays whole. If this fails too, the next write finds a cut-off line.
            let _ = self.file.set_len(before);
        })?;
        self.head = head;
        self.length = before.saturating_add(chained.len() as u64);
        Ok(())
    }

    /// The line that the next one follows. An empty file goes on from the last line that this process knows, so that a
    /// rotated file and the next are one chain.
    fn look_at_end(&self, length: u64) -> io::Result<FileEnd> {
        if length == 0 {
            return Ok(FileEnd {
                head: self.head,
                follows: Follows::Nothing,
            });
        }
        if length == self.length {
            return Ok(FileEnd {
                head: self.head,
                follows: Follows::Line,
            });
        }
        let start = length.saturating_sub(TAIL);
        let tail = operator_files::read_from(&self.file, start, TAIL)?;
        Ok(FileEnd::of(&tail))
    }
}

/// How a file ends, and so what the next line follows.
#[derive(Debug, PartialEq, Eq)]
struct FileEnd {
    head: ChainHead,
    follows: Follows,
}

impl FileEnd {
    /// Interprets the last bytes of a file. A last line without its end was cut off: it counts as one line, whatever is
    /// left of it.
    fn of(tail: &[u8]) -> FileEnd {
        let whole = tail.strip_suffix(b"\n");
        let mut lines = whole.unwrap_or(tail).rsplit(|byte| *byte == b'\n');
        let last = lines.next().unwrap_or_default();
        let hash = LineHash::of(last);
        // Lines of an older version have no numbers: the chain begins behind them.
        let number = |line: &[u8]| ChainLink::read(line).map_or(0, |link| link.seq);
        match whole {
            Some(_) => FileEnd {
                head: ChainHead {
                    seq: number(last),
                    hash,
                },
                follows: Follows::Line,
            },
            None => FileEnd {
                head: ChainHead {
                    seq: lines.next().map_or(0, number).saturating_add(1),
                    hash,
                },
                follows: Follows::CutLine,
            },
        }
    }
}

impl Write for AuditFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_all(bytes)?;
        Ok(bytes.len())
    }

    /// Accepts whole lines only.
    fn write_all(&mut self, lines: &[u8]) -> io::Result<()> {
        let locked = operator_files::lock(&self.file);
        let written = self.write_chained(lines);
        if locked {
            operator_files::unlock(&self.file);
        }
        written
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl LogOutput for AuditFile {
    fn reopen(&mut self) {
        // The old file is complete as far as this process knows.
        self.announcer.announce(self.head);
        match operator_files::append(&self.path) {
            Ok(file) => {
                self.file = file;
                self.kept_from = u64::MAX;
                self.length = 0;
            }
            Err(error) => tracing::error!(%error, "the audit file could not be opened again"),
        }
    }

    fn reserve(&mut self) -> io::Result<()> {
        self.keep_room()
    }

    fn failed(&mut self, error: &io::Error) {
        tell_failing(error, self.on_failure);
    }

    fn recovered(&mut self) {
        tracing::warn!("the audit file can be written again");
    }

    fn idle(&mut self) -> Option<Duration> {
        self.announcer.announce_if_due(self.head)
    }

    fn ending(&mut self) {
        self.announcer.announce(self.head);
    }
}

/// Writes the head of the chain to the ordinary log from time to time, which an attacker who can alter the audit file may not be able to change.
///
/// By time and not by number of lines, so that a line is covered soon even on a server with one call an hour, and a
/// busy server does not fill the log. Nothing is written while no line is added.
#[derive(Debug)]
struct HeadAnnouncer {
    /// `None` never announces.
    every: Option<Duration>,
    announced: ChainHead,
    last: Instant,
}

impl HeadAnnouncer {
    fn new(every: Duration) -> HeadAnnouncer {
        HeadAnnouncer {
            every: (!every.is_zero()).then_some(every),
            announced: ChainHead::default(),
            last: Instant::now(),
        }
    }

    /// Announces the head if its time has come. Returns when to look again, if a new head waits.
    fn announce_if_due(&mut self, head: ChainHead) -> Option<Duration> {
        let every = self.every?;
        if head == self.announced {
            return None;
        }
        let left = every.saturating_sub(self.last.elapsed());
        if !left.is_zero() {
            return Some(left);
        }
        self.announce(head);
        None
    }

    fn announce(&mut self, head: ChainHead) {
        if self.every.is_none() || head == self.announced {
            return;
        }
        self.announced = head;
        self.last = Instant::now();
        tracing::info!(seq = head.seq, hash = %head.hash, "audit head");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_goes_on_from_its_last_line() {
        let (mut text, mut head) = (Vec::new(), ChainHead::default());
        for follows in [Follows::Nothing, Follows::Line] {
            head = push_chained(br#"{"a":1}"#, head, follows, &mut text);
        }
        let end = FileEnd::of(&text);
        assert_eq!(end.head, head);
        assert_eq!(end.follows, Follows::Line);
    }

    #[test]
    fn a_line_that_was_cut_off_is_counted() {
        let mut text = Vec::new();
        push_chained(
            br#"{"a":1}"#,
            ChainHead::default(),
            Follows::Nothing,
            &mut text,
        );
        text.extend_from_slice(br#"{"half"#);
        let end = FileEnd::of(&text);
        assert_eq!(end.head.seq, 2);
        assert_eq!(end.head.hash, LineHash::of(br#"{"half"#));
        assert_eq!(end.follows, Follows::CutLine);
    }

    #[test]
    fn lines_of_an_older_version_come_before_the_chain() {
        let end = FileEnd::of(b"{\"message\":\"call\"}\n");
        assert_eq!(end.head.seq, 0);
        assert_eq!(end.head.hash, LineHash::of(br#"{"message":"call"}"#));
    }

    #[test]
    fn a_head_is_announced_once() {
        let mut announcer = HeadAnnouncer::new(Duration::from_millis(1));
        let head = ChainHead {
            seq: 1,
            hash: LineHash::of(b""),
        };
        assert_eq!(announcer.announce_if_due(ChainHead::default()), None);
        std::thread::sleep(Duration::from_millis(2));
        assert_eq!(announcer.announce_if_due(head), None);
        assert_eq!(announcer.announced, head);
        let mut never = HeadAnnouncer::new(Duration::ZERO);
        never.announce(head);
        assert_eq!(never.announced, ChainHead::default());
    }
}
