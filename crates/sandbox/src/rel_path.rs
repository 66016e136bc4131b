//! A client's path after parsing: bounded, without NUL, cut into components, not yet looked up.

use std::borrow::Cow;
use std::ffi::CString;

use crate::error::{Error, PathFault, Result};
use crate::name::{self, Name};
use crate::name_path::NamePath;

/// The longest path the system takes, with its terminating NUL.
const PATH_MAX: usize = 4096;
/// The longest name the system takes.
const NAME_MAX: usize = 255;
/// How much of a bad path an error repeats.
const SHOWN_MAX: usize = 256;

/// One step of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PathStep {
    /// Into an entry of the current directory.
    Into(Name),
    /// To the directory above.
    Up,
}

/// A path inside a root, as a client gave it. A leading `/` means the root itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RelPath {
    /// The bytes that the client's text stands for, in the form of system calls.
    bytes: CString,
    /// The text itself, if it differs from those bytes: a second copy of every path would cost a hundredth of its open.
    text: Option<String>,
    /// The last step must be a directory (`dir/`, `dir/.`).
    directory: bool,
    absolute: bool,
}

impl RelPath {
    /// Parses what a client sent. Percent signs, backslashes, `~` and `$` are ordinary characters.
    pub fn parse(text: &str) -> Result<RelPath> {
        let fault = |fault| Error::InvalidPath {
            path: crate::shorten::truncated(text, SHOWN_MAX),
            fault,
        };
        let path = RelPath::of(text).ok_or_else(|| fault(PathFault::Nul))?;
        match path.as_bytes() {
            bytes if bytes.len() <= NAME_MAX => Ok(path),
            bytes if bytes.len() >= PATH_MAX => Err(fault(PathFault::TooLong)),
            bytes if pieces(bytes).any(|piece| piece.len() > NAME_MAX) => {
                Err(fault(PathFault::NameTooLong))
            }
            _ => Ok(path),
        }
    }

    /// Reads a text; `None` if it has a NUL byte.
    fn of(text: &str) -> Option<RelPath> {
        let (bytes, text) = match name::to_bytes(text) {
            Cow::Borrowed(bytes) => (CString::new(bytes).ok()?, None),
            Cow::Owned(bytes) => (CString::new(bytes).ok()?, Some(text.to_owned())),
        };
        let whole = bytes.as_bytes();
        Some(RelPath {
            directory: ends_as_directory(whole),
            absolute: whole.starts_with(b"/"),
            text,
            bytes,
        })
    }

    /// The root itself.
    #[must_use]
    pub fn root() -> RelPath {
        RelPath {
            bytes: CString::default(),
            text: None,
            directory: false,
            absolute: false,
        }
    }

    /// The path as the client wrote it.
    #[must_use]
    pub fn as_given(&self) -> &str {
        match &self.text {
            Some(text) => text,
            // The bytes came from text.
            None => self.bytes.to_str().unwrap_or_default(),
        }
    }

    /// Tells whether the client wrote a leading `/`.
    #[must_use]
    pub fn is_absolute(&self) -> bool {
        self.absolute
    }

    /// Tells whether the client wrote a trailing `/`, so that only a directory will do.
    #[must_use]
    pub fn must_be_directory(&self) -> bool {
        self.directory
    }

    /// This path with one more name at its end.
    #[must_use]
    pub fn join(&self, name: &Name) -> RelPath {
        let text = match self.as_given().trim_end_matches('/') {
            "" => name.shown().into_owned(),
            parent => format!("{parent}/{}", name.shown()),
        };
        // Neither a path nor a name has a NUL byte, so this never falls back.
        RelPath {
            absolute: self.absolute,
            ..RelPath::of(&text).unwrap_or_else(RelPath::root)
        }
    }

    /// The last name, if the path ends in one.
    #[must_use]
    pub fn file_name(&self) -> Option<Name> {
        let last = pieces(self.as_bytes()).rfind(|piece| !matches!(*piece, b"" | b"."));
        last.and_then(Name::new)
    }

    /// The first name, if the path begins with one.
    pub(crate) fn first_name(&self) -> Option<Name> {
        match self.steps().into_iter().next()? {
            PathStep::Into(name) => Some(name),
            PathStep::Up => None,
        }
    }

    /// What follows after these names, as a path that is still absolute.
    pub(crate) fn below(&self, names: &[Name]) -> Option<RelPath> {
        let steps = self.steps();
        let (above, rest) = steps.split_at_checked(names.len())?;
        let is_named = |(step, name): (&PathStep, &Name)| *step == PathStep::Into(name.clone());
        if !above.iter().zip(names).all(is_named) {
            return None;
        }
        let pieces = rest.iter().map(|step| match step {
            PathStep::Into(name) => name.shown(),
            PathStep::Up => Cow::Borrowed(".."),
        });
        let text = pieces.collect::<Vec<_>>().join("/");
        Some(RelPath {
            absolute: true,
            directory: self.directory,
            ..RelPath::of(&text)?
        })
    }

    pub(crate) fn steps(&self) -> Vec<PathStep> {
        steps(self.as_bytes())
    }

    /// The path without empty pieces and `.`; `None` if a step goes up, and for the root itself.
    pub(crate) fn downward(&self) -> Option<NamePath<'_>> {
        NamePath::new(&*self.bytes).or_else(|| {
            let said = pieces(self.as_bytes()).filter(|piece| !matches!(*piece, b"" | b"."));
            NamePath::copied(&said.collect::<Vec<_>>().join(&b'/'))
        })
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        self.bytes.as_bytes()
    }
}

fn pieces(bytes: &[u8]) -> impl DoubleEndedIterator<Item = &[u8]> {
    bytes.split(|&b| b == b'/')
}

/// Cuts a path or a link's text at its slashes; empty pieces and `.` are dropped.
pub(crate) fn steps(bytes: &[u8]) -> Vec<PathStep> {
    pieces(bytes)
        .filter_map(|piece| match piece {
            b".." => Some(PathStep::Up),
            piece => Name::new(piece).map(PathStep::Into),
        })
        .collect()
}

/// Tells whether a slash at the end says that only a directory will do.
pub(crate) fn ends_as_directory(bytes: &[u8]) -> bool {
    bytes.ends_with(b"/") || bytes.ends_with(b"/.")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_usual_spelling_is_taken_as_it_came() {
        for plain in ["a", "a/b", "..a/.b/c..", "日本/é"] {
            let path = RelPath::parse(plain).unwrap();
            let names = path.downward().unwrap();
            assert!(std::ptr::eq(names.as_bytes(), path.as_bytes()), "{plain:?}");
        }
    }

    #[test]
    fn only_a_name_at_the_end_is_the_last_name() {
        for (text, name) in [
            ("a/b", Some("b")),
            ("a/b/./", Some("b")),
            ("a/..", None),
            ("", None),
        ] {
            let path = RelPath::parse(text).unwrap();
            let shown = path.file_name().map(|name| name.shown().into_owned());
            assert_eq!(shown.as_deref(), name, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn going_down_in_one_call_and_step_by_step_is_the_same(text in r"([a\u{F7E9}é./]|\.\./){0,12}") {
            let path = RelPath::parse(&text).unwrap();
            let names: Option<Vec<Vec<u8>>> = path.steps().into_iter().map(|step| match step {
                PathStep::Into(name) => Some(name.as_bytes().to_vec()),
                PathStep::Up => None,
            }).collect();
            let direct = path.downward().map(|direct| direct.as_bytes().to_vec());
            let joined = names.map(|names| names.join(&b'/')).filter(|joined| !joined.is_empty());
            prop_assert_eq!(direct, joined);
        }

        #[test]
        fn joining_is_parsing_the_joined_text(parent in "[aé\u{F7E9}]{1,4}(/[b.]{1,3})?", name in "[aé\u{F7E9}]{1,4}") {
            let joined = RelPath::parse(&parent).unwrap().join(&Name::new(&name::to_bytes(&name)).unwrap());
            prop_assert_eq!(joined.steps(), RelPath::parse(&format!("{parent}/{name}")).unwrap().steps());
        }
    }
}
