//! A client's path after parsing: bounded, without NUL, cut into components, not yet looked up.

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

impl Step {
    /// How many bytes it takes in a path.
    fn length(&self) -> usize {
        match self {
            Step::Into(name) => name.as_bytes().len(),
            Step::Up => 2,
        }
    }
}

/// A path inside a root, as a client gave it. A leading `/` means the root itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RelPath {
    text: String,
    steps: Vec<Step>,
    /// The last step must be a directory (`dir/`, `dir/.`).
    directory: bool,
    absolute: bool,
}

impl RelPath {
    /// Parses what a client sent. Percent signs, backslashes, `~` and `$` are ordinary characters.
    pub fn parse(text: &str) -> Result<RelPath> {
        let bytes = name::to_bytes(text);
        let fault = |fault| Error::InvalidPath {
            path: shortened(text),
            fault,
        };
        if bytes.contains(&0) {
            return Err(fault(PathFault::Nul));
        }
        if bytes.len() >= PATH_MAX {
            return Err(fault(PathFault::TooLong));
        }
        let steps = steps(&bytes);
        if steps
            .iter()
            .any(|s| matches!(s, Step::Into(n) if n.as_bytes().len() > NAME_MAX))
        {
            return Err(fault(PathFault::NameTooLong));
        }
        Ok(RelPath {
            text: text.to_owned(),
            steps,
            directory: ends_as_directory(&bytes),
            absolute: bytes.starts_with(b"/"),
        })
    }

    /// The root itself.
    #[must_use]
    pub fn root() -> RelPath {
        RelPath {
            text: String::new(),
            steps: Vec::new(),
            directory: false,
            absolute: false,
        }
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
        let mut steps = self.steps.clone();
        steps.push(Step::Into(name.clone()));
        let text = match self.text.trim_end_matches('/') {
            "" => name.shown().into_owned(),
            parent => format!("{parent}/{}", name.shown()),
        };
        RelPath {
            text,
            steps,
            directory: false,
            absolute: self.absolute,
        }
    }

    /// The last name, where the path ends in one.
    #[must_use]
    pub fn file_name(&self) -> Option<&Name> {
        match self.steps.last() {
            Some(Step::Into(name)) => Some(name),
            _ => None,
        }
    }

    pub(crate) fn steps(&self) -> &[Step] {
        &self.steps
    }
}

/// Cuts a path or a link's text at its slashes; empty pieces and `.` say nothing.
pub(crate) fn steps(bytes: &[u8]) -> Vec<Step> {
    bytes
        .split(|&b| b == b'/')
        .filter_map(|piece| match piece {
            b".." => Some(Step::Up),
            piece => Name::new(piece).map(Step::Into),
        })
        .collect()
}

/// Joins steps that only go down; `None` where one goes up.
pub(crate) fn downward(steps: &[Step]) -> Option<Vec<u8>> {
    let length = steps.iter().map(|step| step.length() + 1).sum();
    let mut path = Vec::with_capacity(length);
    for step in steps {
        let Step::Into(name) = step else { return None };
        if !path.is_empty() {
            path.push(b'/');
        }
        path.extend_from_slice(name.as_bytes());
    }
    Some(path)
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
