//! The record of a change: JSON lines, each with the hash of the one before.
//!
//! A change has a number. Its first line says who made it, each of its lines has parts, and its last line says that all
//! of them were done. A part is recorded before it is visible, so that nothing happens without a record.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::metadata::{FileKind, Metadata, Time};

/// The most bytes of a hash that are kept: a chain needs no more against accidents and attempts alike.
const HASH_BYTES: usize = 16;

/// The hash of the line before the first.
pub(crate) const NO_HASH: &str = "";

/// One line of a record file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Line {
    /// The number of the change.
    pub(crate) n: u64,
    /// All parts were done, or those that were done were undone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) end: Option<End>,
    /// Who made the change, on its first line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) by: Option<Author>,
    /// What is about to happen.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) parts: Vec<Part>,
    /// The indexes of parts that were recorded but did not happen.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) failed: Vec<u32>,
    /// No further part will follow: if these are in place, the change is done.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) last: bool,
    /// The hash of the line before.
    pub(crate) prev: String,
}

impl Line {
    /// An empty line.
    pub(crate) fn of(number: u64) -> Line {
        Line {
            n: number,
            end: None,
            by: None,
            parts: Vec::new(),
            failed: Vec::new(),
            last: false,
            prev: NO_HASH.to_owned(),
        }
    }
}

/// How a change ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum End {
    /// Its parts were done.
    Done,
    /// Its parts were undone, or never done.
    Void,
    /// Its parts were done, and its old content was pruned before that of older changes.
    Pruned,
}

/// Who made a change, when and how.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Author {
    /// When, in milliseconds since the epoch.
    pub time: u64,
    /// The client's name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub client: String,
    /// What tells this connection or token from others.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub account: String,
    /// The tool or command.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub tool: String,
    /// The changes that this one undoes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub undoes: Vec<u64>,
}

/// What happens to an entry of the root.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PartKind {
    /// A file, link or tree was created.
    Create,
    /// A file or link takes the place of another.
    Replace,
    /// Bytes are added to the end of a file.
    Append,
    /// Bytes are cut off the end of a file.
    Cut,
    /// A file, a link or a tree goes.
    Remove,
    /// An entry gets another path.
    Move,
    /// A directory is made.
    MakeDir,
    /// An empty directory goes.
    RemoveDir,
}

/// What happens to one entry, and where its old content is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// What happens.
    pub kind: PartKind,
    /// The path inside the root as clients see it; for a move, the source.
    pub path: String,
    /// The destination of a move.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// What was there before; of a move at its destination.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) old: Option<Stamp>,
    /// What is there afterwards.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) new: Option<Stamp>,
    /// The object that holds what was there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) object: Option<String>,
    /// What the object is, if it is a copy: what comes back is another file then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) copy: Option<Stamp>,
    /// The object that the new content is taken from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) source: Option<String>,
    /// The old content could not be kept, so this cannot be undone.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub lost: bool,
    /// What an append added, or a cut took.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) tail: Option<Tail>,
    /// Where else the change is written down, if it moves something between roots.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) crossing: Option<Crossing>,
}

impl Part {
    /// A part without anything to keep.
    pub(crate) fn new(kind: PartKind, path: String) -> Part {
        Part {
            kind,
            path,
            to: None,
            old: None,
            new: None,
            object: None,
            copy: None,
            source: None,
            lost: false,
            tail: None,
            crossing: None,
        }
    }

    /// The history that has the other end of a move between roots.
    #[must_use]
    pub fn other_history(&self) -> Option<&str> {
        self.crossing.as_ref().map(|other| other.history.as_str())
    }

    /// The kind of the entry for a view: a directory, or a file like everything else.
    ///
    /// Security: an unrecorded kind counts as a file. A directory could be visible because of what is below it.
    #[must_use]
    pub fn entry_kind(&self) -> FileKind {
        let stamp = match self.kind {
            PartKind::MakeDir | PartKind::RemoveDir => return FileKind::Directory,
            PartKind::Remove => self.old,
            _ => self.new,
        };
        match stamp.is_some_and(|stamp| stamp.is_directory()) {
            true => FileKind::Directory,
            false => FileKind::File,
        }
    }
}

impl Part {
    /// Tells whether a directory came with all that is in it.
    #[must_use]
    pub fn makes_tree(&self) -> bool {
        let is_directory = |new: &Stamp| new.is_directory();
        self.kind == PartKind::Create && self.new.as_ref().is_some_and(is_directory)
    }
}

/// The other end of a move between roots. The history there has the change under the same number.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Crossing {
    pub(crate) way: CrossingWay,
    /// The history of the other root.
    pub(crate) history: String,
    /// The path there.
    pub(crate) path: String,
}

/// Whether something went to another root or came from there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum CrossingWay {
    Went,
    Came,
}

/// The end of a file that an append adds or a cut takes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Tail {
    /// Where it begins.
    pub(crate) at: u64,
    /// Its length in bytes.
    pub(crate) length: u64,
    /// How far apart, in the file, the positions are up to which it was hashed.
    pub(crate) step: u64,
    /// The hashes of what is before each of these positions, and of all of it.
    pub(crate) hashes: Vec<String>,
}

/// Shows whether an entry is still as it was left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Stamp {
    /// A letter for what it is.
    pub(crate) kind: char,
    pub(crate) inode: u64,
    /// Of files only: a directory's size and times change with its entries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) size: Option<u64>,
    /// When the content changed, in nanoseconds; of files only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) modified: Option<i64>,
    /// Permission bits.
    pub(crate) mode: u32,
    /// A hash of the content of a small file: its times can be set, and may be too coarse to tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) content: Option<u64>,
}

impl Stamp {
    pub(crate) fn of(metadata: &Metadata) -> Stamp {
        let is_file = metadata.kind == FileKind::File;
        Stamp {
            kind: kind_letter(metadata.kind),
            inode: metadata.inode,
            size: is_file.then_some(metadata.size),
            modified: is_file.then(|| nanoseconds(metadata.modified)),
            mode: metadata.mode,
            content: None,
        }
    }

    /// A link that is about to be made.
    pub(crate) fn of_new_link() -> Stamp {
        Stamp {
            kind: 'l',
            inode: 0,
            size: None,
            modified: None,
            mode: 0o777,
            content: None,
        }
    }

    /// Tells whether an entry is still what it was, whatever became of its permissions.
    pub(crate) fn fits(&self, now: &Metadata) -> bool {
        self.fits_stamp(&Stamp::of(now))
    }

    /// Compares with a stamp instead of metadata.
    pub(crate) fn fits_stamp(&self, now: &Stamp) -> bool {
        let is_other = |(left, found)| left != found;
        self.is_same(now)
            && (self.size, self.modified) == (now.size, now.modified)
            && !self.content.zip(now.content).is_some_and(is_other)
    }

    /// Tells whether an entry is the same file, whatever became of its content.
    pub(crate) fn is_same_file(&self, now: &Metadata) -> bool {
        self.is_same(&Stamp::of(now))
    }

    /// A link's number is not known before it is made.
    pub(crate) fn is_same(&self, now: &Stamp) -> bool {
        self.kind == now.kind && (self.inode == 0 || self.inode == now.inode)
    }

    pub(crate) fn is_directory(&self) -> bool {
        self.kind == 'd'
    }

    /// When the content had changed.
    pub(crate) fn modified(&self) -> Option<Time> {
        const SECOND: i64 = 1_000_000_000;
        self.modified.map(|modified| Time {
            seconds: modified.div_euclid(SECOND),
            nanoseconds: u32::try_from(modified.rem_euclid(SECOND)).unwrap_or_default(),
        })
    }
}

fn kind_letter(kind: FileKind) -> char {
    match kind {
        FileKind::File => 'f',
        FileKind::Directory => 'd',
        FileKind::Symlink => 'l',
        _ => 's',
    }
}

fn nanoseconds(time: Time) -> i64 {
    time.seconds
        .saturating_mul(1_000_000_000)
        .saturating_add(i64::from(time.nanoseconds))
}

/// The hash of some bytes, as text.
pub(crate) fn hash(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// A short hash of a file's content.
pub(crate) fn content_hash(bytes: &[u8]) -> u64 {
    let hash = Sha256::digest(bytes);
    let short = hash.first_chunk::<8>().copied();
    u64::from_be_bytes(short.unwrap_or_default())
}

pub(crate) fn hex(hash: &[u8]) -> String {
    use std::fmt::Write as _;
    hash.iter()
        .take(HASH_BYTES)
        .fold(String::with_capacity(2 * HASH_BYTES), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        })
}

/// The number of a line, and whether it ends its change, by its beginning alone: start-up looks at many.
pub(crate) fn glance(line: &[u8]) -> Option<(u64, bool)> {
    let rest = line.strip_prefix(br#"{"n":"#)?;
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let number = std::str::from_utf8(rest.get(..digits)?)
        .ok()?
        .parse()
        .ok()?;
    let ends = rest.get(digits..)?.starts_with(br#","end":"#);
    Some((number, ends))
}

/// How a line says that its change ended, by its beginning alone.
pub(crate) fn end_of(line: &[u8]) -> Option<End> {
    const ENDS: [(&[u8], End); 3] = [
        (br#","end":"done""#, End::Done),
        (br#","end":"void""#, End::Void),
        (br#","end":"pruned""#, End::Pruned),
    ];
    let comma = line.iter().position(|&byte| byte == b',')?;
    let rest = line.get(comma..)?;
    let end = ENDS.iter().find(|(words, _)| rest.starts_with(words));
    end.map(|(_, end)| *end)
}

/// When a change was made, by the beginning of its first line alone.
pub(crate) fn time_of(line: &[u8]) -> Option<u64> {
    let comma = line.iter().position(|&byte| byte == b',')?;
    let rest = line.get(comma..)?.strip_prefix(br#","by":{"time":"#)?;
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    std::str::from_utf8(rest.get(..digits)?).ok()?.parse().ok()
}

/// The name of a change as clients see it.
#[must_use]
pub fn change_id(number: u64) -> String {
    format!("{number:x}")
}

/// Reads the name of a change.
#[must_use]
pub fn parse_change_id(id: &str) -> Option<u64> {
    let is_hex = !id.is_empty() && id.len() <= 16 && id.bytes().all(|b| b.is_ascii_hexdigit());
    is_hex.then(|| u64::from_str_radix(id, 16).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_glance_tells_the_number_and_the_end() {
        let mut line = Line {
            by: Some(Author::default()),
            parts: vec![Part::new(PartKind::Create, "a".to_owned())],
            last: true,
            ..Line::of(42)
        };
        let text = serde_json::to_vec(&line).unwrap();
        assert_eq!(glance(&text), Some((42, false)));
        assert_eq!(serde_json::from_slice::<Line>(&text).unwrap(), line);
        line.end = Some(End::Done);
        assert_eq!(
            glance(&serde_json::to_vec(&line).unwrap()),
            Some((42, true))
        );
        assert_eq!(glance(b"{}"), None);
        assert_eq!(time_of(&text), Some(0));
        assert_eq!(end_of(&text), None);
        for end in [End::Done, End::Void, End::Pruned] {
            let line = Line {
                end: Some(end),
                ..Line::of(7)
            };
            assert_eq!(end_of(&serde_json::to_vec(&line).unwrap()), Some(end));
        }
    }

    #[test]
    fn names_of_changes_are_read_as_they_were_given() {
        for number in [0, 1, 0x4f2a, u64::MAX] {
            assert_eq!(parse_change_id(&change_id(number)), Some(number));
        }
        for wrong in ["", "x", "-1", "+1", "10000000000000000"] {
            assert_eq!(parse_change_id(wrong), None, "{wrong}");
        }
    }
}
