//! Versions of files: short marks that show a client later whether a file is still what it saw.
//!
//! A version is made of the file's inode number, size and times, which a look-up already knows. Times are coarse: two
//! changes within one tick of the clock look the same. So while the last change is younger than two seconds, the
//! version of a small file is a hash of its content instead. Larger files always use their times: reading them would
//! cost more, and two rewrites of that much within one tick are unlikely.

use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sandbox::{FileKind, Follow, Located, Metadata, OpenFile};
use sha2::{Digest, Sha256};

use crate::context::Cancel;
use crate::error::{Error, RequestPart, Result};
use crate::history::last_of_path;
use crate::place::Place;
use crate::read_at::read_up_to;

/// How old a change must be, in seconds, for the times to distinguish it from the next one. No file system has a
/// coarser clock.
const SETTLED: i64 = 2;
/// The largest file whose content is hashed.
const HASHED_MAX: u64 = 256 * 1024;

/// The form made of number, size and times.
const BY_TIMES: char = 's';
/// The form made of the content.
const BY_CONTENT: char = 'h';
/// How many bytes of a hash a version has: enough to tell versions of one file apart, and few tokens.
const MARK: usize = 6;
/// How many characters that are.
const MARK_CHARS: usize = 8;

/// The state of a file at some moment. Clients hand it back as they got it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Version(String);

impl Version {
    /// Reads a version that a client hands back; `None` if it can never have been one.
    #[must_use]
    pub fn parse(text: &str) -> Option<Version> {
        let mark = text.strip_prefix([BY_TIMES, BY_CONTENT])?;
        let is_mark = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        (mark.len() == MARK_CHARS && mark.bytes().all(is_mark)).then(|| Version(text.to_owned()))
    }

    /// The version as clients see it.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    fn new(form: char, hashed: &[u8]) -> Version {
        let mark = hashed.get(..MARK).unwrap_or_default();
        let mut text = String::with_capacity(1 + MARK_CHARS);
        text.push(form);
        URL_SAFE_NO_PAD.encode_string(mark, &mut text);
        Version(text)
    }

    fn of_times(metadata: &Metadata) -> Version {
        let mut mixed = mix(metadata.inode, metadata.size);
        for time in [metadata.modified, metadata.changed] {
            mixed = mix(mixed, time.seconds.cast_unsigned());
            mixed = mix(mixed, u64::from(time.nanoseconds));
        }
        Version::new(BY_TIMES, &mixed.to_le_bytes())
    }

    fn of_content(bytes: &[u8]) -> Version {
        Version::new(BY_CONTENT, &Sha256::digest(bytes))
    }

    /// The version of an open file. It is never newer than what is read from the file afterwards.
    fn of_open(open: &OpenFile, cancel: &Cancel) -> Result<Version> {
        if is_settled(&open.metadata) {
            return Ok(Version::of_times(&open.metadata));
        }
        let hashed = hash_of(open, cancel)?;
        Ok(hashed.unwrap_or_else(|| Version::of_times(&open.metadata)))
    }

    /// Tells whether what is there now has this version.
    fn fits(&self, now: &Located<'_>, cancel: &Cancel) -> Result<bool> {
        let Some(metadata) = now.metadata() else {
            return Ok(false);
        };
        if self.0.starts_with(BY_TIMES) {
            return Ok(*self == Version::of_times(metadata));
        }
        // A larger file never had a version of this form.
        Ok(metadata.size <= HASHED_MAX
            && hash_of(&now.open_file()?, cancel)?.as_ref() == Some(self))
    }
}

/// Mixes a number into others (the steps of SplitMix64). A cryptographic hash would be a thirtieth of a small read, and
/// would protect nothing: anyone who can forge a file's number, size and change times can change the file.
fn mix(mixed: u64, number: u64) -> u64 {
    let sum = mixed
        .rotate_left(23)
        .wrapping_add(number)
        .wrapping_add(0x9e37_79b9_7f4a_7c15);
    let once = (sum ^ (sum >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let twice = (once ^ (once >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    twice ^ (twice >> 31)
}

/// The version by content of a file that is not too large for it.
fn hash_of(open: &OpenFile, cancel: &Cancel) -> Result<Option<Version>> {
    if open.metadata.size > HASHED_MAX {
        return Ok(None);
    }
    let bytes = read_up_to(open, 0, HASHED_MAX + 1, cancel)?;
    let is_small = bytes.len() as u64 <= HASHED_MAX;
    Ok(is_small.then(|| Version::of_content(&bytes)))
}

/// Tells whether any later change will have another time. A change in the future is not settled.
fn is_settled(metadata: &Metadata) -> bool {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let now = now.map_or(0, |now| i64::try_from(now.as_secs()).unwrap_or(i64::MAX));
    now.saturating_sub(metadata.changed.seconds) > SETTLED
}

/// What a call needs the version of a place for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) enum Versioning {
    /// It is not needed, which costs nothing.
    #[default]
    None,
    /// Its outcome reports it.
    Told,
    /// Its outcome reports it, and nothing is changed unless the file had this one before.
    Required(Version),
}

impl Place {
    /// The same place, with outcomes that report the version. With `if_version`, changes are only made if that is its
    /// version.
    #[must_use]
    pub fn versioned(mut self, if_version: Option<Version>) -> Place {
        self.versioning = if_version.map_or(Versioning::Told, Versioning::Required);
        self
    }

    /// Fails unless the file has the version that the caller requires. Call it with the file locked.
    ///
    /// A missing file is a conflict too: it was there when the caller saw it.
    pub(crate) fn check_version(&self, now: &Located<'_>, cancel: &Cancel) -> Result<()> {
        let Versioning::Required(version) = &self.versioning else {
            return Ok(());
        };
        match now.metadata().map(|metadata| metadata.kind) {
            // A link has no content: its version is that of what it leads to.
            Some(FileKind::Symlink) => {
                let target = self.locate(Follow::Last)?;
                self.check_file_version(version, &target, cancel)
            }
            _ => self.check_file_version(version, now, cancel),
        }
    }

    fn check_file_version(
        &self,
        version: &Version,
        now: &Located<'_>,
        cancel: &Cancel,
    ) -> Result<()> {
        let there = now.metadata().map(|metadata| metadata.kind);
        if now.is_root() || there.is_some_and(|kind| kind != FileKind::File) {
            return Err(Error::InvalidPart {
                part: RequestPart::Version,
                reason: "only files have versions".to_owned(),
            });
        }
        if version.fits(now, cancel)? {
            return Ok(());
        }
        let present = match now.metadata() {
            Some(_) => Some(Version::of_open(&now.open_file()?, cancel)?),
            None => None,
        };
        Err(Error::VersionConflict {
            path: now.path(),
            expected: version.as_str().to_owned(),
            present: present.map(|present| present.0),
            by: last_of_path(&self.root, &now.path())
                .map(|last| (last.author.client, sandbox::change_id(last.number))),
        })
    }

    /// The version of a file that was opened at this place to be read, if the caller wants it. Ask before reading.
    pub(crate) fn version_of(&self, open: &OpenFile, cancel: &Cancel) -> Result<Option<Version>> {
        match self.versioning {
            Versioning::None => Ok(None),
            _ => Version::of_open(open, cancel).map(Some),
        }
    }

    /// The version of a file that was just written here, with the turn to change it still held. `content` is what was
    /// written, if it is in memory.
    pub(crate) fn version_written(
        &self,
        metadata: &Metadata,
        content: Option<&[u8]>,
        cancel: &Cancel,
    ) -> Option<Version> {
        if self.versioning == Versioning::None {
            return None;
        }
        if metadata.size > HASHED_MAX {
            return Some(Version::of_times(metadata));
        }
        if let Some(content) = content.filter(|content| content.len() as u64 == metadata.size) {
            return Some(Version::of_content(content));
        }
        let hashed = self.hash_of_own(metadata, cancel);
        Some(hashed.unwrap_or_else(|| Version::of_times(metadata)))
    }

    /// The hash of a file that was written, unless another program has replaced it meanwhile.
    fn hash_of_own(&self, written: &Metadata, cancel: &Cancel) -> Option<Version> {
        let open = self.root.open_file(&self.path).ok()?;
        if Version::of_times(&open.metadata) != Version::of_times(written) {
            return None;
        }
        hash_of(&open, cancel).ok().flatten()
    }

    /// The version of what is here now; `None` if it is no file, or if the caller does not want it.
    pub(crate) fn version_now(&self, cancel: &Cancel) -> Option<Version> {
        if self.versioning == Versioning::None {
            return None;
        }
        let located = self.locate(Follow::Last).ok()?;
        let metadata = located.metadata()?;
        if metadata.kind != FileKind::File {
            return None;
        }
        if is_settled(metadata) || metadata.size > HASHED_MAX {
            return Some(Version::of_times(metadata));
        }
        // A file that may not be read has a version too.
        let hashed = located.open_file().ok();
        let hashed = hashed.and_then(|open| Version::of_open(&open, cancel).ok());
        Some(hashed.unwrap_or_else(|| Version::of_times(metadata)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;
    use crate::testing::Tree;

    fn version(tree: &Tree, path: &str) -> Version {
        let place = tree.place(path).versioned(None);
        place.version_now(&Cancel::never()).unwrap()
    }

    fn check(tree: &Tree, path: &str, version: &Version) -> Result<()> {
        let place = tree.place(path).versioned(Some(version.clone()));
        let located = place.file_to_write()?;
        place.check_version(&located, &Cancel::never())
    }

    #[test]
    fn a_young_small_file_is_known_by_its_content_and_an_old_one_by_its_times() {
        let tree = Tree::new();
        tree.file("f", "one");
        let young = version(&tree, "f");
        assert!(young.as_str().starts_with(BY_CONTENT), "{young:?}");
        assert_eq!(Version::parse(young.as_str()), Some(young.clone()));
        check(&tree, "f", &young).unwrap();
        let located = tree.place("f");
        let located = located.file_to_write().unwrap();
        let old = Version::of_times(located.metadata().unwrap());
        check(&tree, "f", &old).unwrap();
        tree.file("f", "two");
        for version in [young, old] {
            let failure = check(&tree, "f", &version).unwrap_err();
            assert_eq!(failure.kind(), ErrorKind::VersionConflict);
        }
    }

    #[test]
    fn a_large_file_is_never_read_for_its_version() {
        let tree = Tree::new();
        tree.file("f", "x".repeat(usize::try_from(HASHED_MAX).unwrap() + 1));
        let large = version(&tree, "f");
        assert!(large.as_str().starts_with(BY_TIMES));
        check(&tree, "f", &large).unwrap();
        let hashed = Version::of_content(b"other");
        let failure = check(&tree, "f", &hashed).unwrap_err();
        let Error::VersionConflict { present, .. } = failure else {
            panic!("{failure:?}")
        };
        assert_eq!(present.as_deref(), Some(large.as_str()));
    }

    #[test]
    fn only_files_have_versions_and_a_missing_one_conflicts() {
        let tree = Tree::new();
        tree.file("f", "").directory("dir");
        let known = version(&tree, "f");
        let failure = check(&tree, "gone", &known).unwrap_err();
        assert!(
            matches!(failure, Error::VersionConflict { present: None, .. }),
            "{failure:?}"
        );
        let place = tree.place("dir").versioned(Some(known));
        let located = place.locate(Follow::Never).unwrap();
        let failure = place.check_version(&located, &Cancel::never());
        assert_eq!(failure.unwrap_err().kind(), ErrorKind::InvalidArgument);
        assert_eq!(place.version_now(&Cancel::never()), None);
    }

    #[test]
    fn what_is_no_version_is_not_taken_for_one() {
        for wrong in [
            "",
            "s",
            "sAAAAAAAAA",
            "xAAAAAAAA",
            "sAAAA AAA",
            "hAAAAAAA=",
            "latest",
        ] {
            assert_eq!(Version::parse(wrong), None, "{wrong}");
        }
        assert!(Version::parse("sAb-_9876").is_some());
    }

    #[test]
    fn a_change_in_the_future_is_not_settled() {
        let tree = Tree::new();
        tree.file("f", "");
        let place = tree.place("f");
        let located = place.file_to_write().unwrap();
        let mut metadata = *located.metadata().unwrap();
        assert!(!is_settled(&metadata));
        metadata.changed.seconds += 3600;
        assert!(!is_settled(&metadata));
        metadata.changed.seconds -= 7200;
        assert!(is_settled(&metadata));
    }
}
