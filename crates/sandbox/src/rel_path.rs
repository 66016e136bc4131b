//! A client's path after parsing: bounded, without NUL, cut into components, not yet looked up.

use std::borrow::Cow;

use crate::error::{Error, PathFault, Result};
use crate::name::{self, Name};

/// The longest path the system takes, with its terminating NUL.
const PATH_MAX: usize = 4096;
/// The longest name the system takes.
const NAME_MAX: usize = 255;
/// How much of a bad path an error repeats.
const SHOWN_MAX: usize = 256;

/// One step of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Step {
    /// Into an entry of the current directory.
    Into(Name),
    /// To the directory above.
    Up,
}

/// A path inside a root, as a client gave it. A leading `/` means the root itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RelPath {
    text: String,
    /// The bytes the text stands for, where they are not its own.
    bytes: Option<Vec<u8>>,
    /// How it is written.
    spelling: Spelling,
    /// The last step must be a directory (`dir/`, `dir/.`).
    directory: bool,
    absolute: bool,
}

/// How a path is written, so that the usual one is used as it came, without being taken apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Spelling {
    /// Names with one slash between each two.
    Plain,
    /// With `.`, `..`, or slashes that say nothing.
    Other,
}

impl RelPath {
    /// Parses what a client sent. Percent signs, backslashes, `~` and `$` are ordinary characters.
    pub fn parse(text: &str) -> Result<RelPath> {
        let path = RelPath::of(text.to_owned());
        let fault = |fault| Error::InvalidPath {
            path: shortened(text),
            fault,
        };
        let bytes = path.as_bytes();
        if bytes.contains(&0) {
            return Err(fault(PathFault::Nul));
        }
        if bytes.len() >= PATH_MAX {
            return Err(fault(PathFault::TooLong));
        }
        if pieces(bytes).any(|piece| piece.len() > NAME_MAX) {
            return Err(fault(PathFault::NameTooLong));
        }
        Ok(path)
    }

    fn of(text: String) -> RelPath {
        let bytes = match name::to_bytes(&text) {
            Cow::Borrowed(_) => None,
            Cow::Owned(bytes) => Some(bytes),
        };
        let mut path = RelPath {
            text,
            bytes,
            spelling: Spelling::Other,
            directory: false,
            absolute: false,
        };
        let bytes = path.as_bytes();
        let plain = pieces(bytes).all(|piece| !matches!(piece, b"" | b"." | b".."));
        let (directory, absolute) = (ends_as_directory(bytes), bytes.starts_with(b"/"));
        if plain {
            path.spelling = Spelling::Plain;
        }
        (path.directory, path.absolute) = (directory, absolute);
        path
    }

    /// The root itself.
    #[must_use]
    pub fn root() -> RelPath {
        RelPath::of(String::new())
    }

    /// The path as the client wrote it.
    #[must_use]
    pub fn as_given(&self) -> &str {
        &self.text
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
        let text = match self.text.trim_end_matches('/') {
            "" => name.shown().into_owned(),
            parent => format!("{parent}/{}", name.shown()),
        };
        RelPath {
            absolute: self.absolute,
            ..RelPath::of(text)
        }
    }

    /// The last name, where the path ends in one.
    #[must_use]
    pub fn file_name(&self) -> Option<Name> {
        let last = pieces(self.as_bytes()).rfind(|piece| !matches!(*piece, b"" | b"."));
        last.and_then(Name::new)
    }

    pub(crate) fn steps(&self) -> Vec<Step> {
        steps(self.as_bytes())
    }

    /// The path in bytes without what says nothing; `None` where a step goes up.
    pub(crate) fn downward(&self) -> Option<Cow<'_, [u8]>> {
        let bytes = self.as_bytes();
        if self.spelling == Spelling::Plain {
            return Some(Cow::Borrowed(bytes));
        }
        let mut path = Vec::with_capacity(bytes.len());
        for piece in pieces(bytes).filter(|piece| !matches!(*piece, b"" | b".")) {
            // Security: the path is joined only of what a name can be, so `..` ends it here.
            let name = (piece != b"..").then_some(piece)?;
            if !path.is_empty() {
                path.push(b'/');
            }
            path.extend_from_slice(name);
        }
        Some(Cow::Owned(path))
    }

    fn as_bytes(&self) -> &[u8] {
        self.bytes.as_deref().unwrap_or(self.text.as_bytes())
    }
}

fn pieces(bytes: &[u8]) -> impl DoubleEndedIterator<Item = &[u8]> {
    bytes.split(|&b| b == b'/')
}

/// Cuts a path or a link's text at its slashes; empty pieces and `.` say nothing.
pub(crate) fn steps(bytes: &[u8]) -> Vec<Step> {
    pieces(bytes)
        .filter_map(|piece| match piece {
            b".." => Some(Step::Up),
            piece => Name::new(piece).map(Step::Into),
        })
        .collect()
}

/// Tells whether a slash at the end says that only a directory will do.
pub(crate) fn ends_as_directory(bytes: &[u8]) -> bool {
    bytes.ends_with(b"/") || bytes.ends_with(b"/.")
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(SHOWN_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
