//! Paths of the project as text: their normal form, and the errors for paths without one.

use std::fmt;
use std::sync::Arc;

use crate::error::{Error, FormatFault, PolicyViolation, Result};

/// The longest path in bytes.
const PATH_MAX: usize = 4095;
/// The longest name in bytes.
const NAME_MAX: usize = 255;
/// How many characters of a bad path an error repeats.
const SHOWN_MAX: usize = 256;
/// The normal form of the project root.
pub(crate) const PROJECT_ROOT: &str = ".";

/// A path that the policy allows: relative to the project root, without `.`, `..` or doubled slashes. It is the cache key.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ProjectPath(Arc<str>);

impl ProjectPath {
    /// Returns the path as text; `.` is the project root itself.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Takes a normal form that the validator has allowed.
    pub(crate) fn allowed(normal: &str) -> ProjectPath {
        ProjectPath(normal.into())
    }
}

impl fmt::Display for ProjectPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Makes the checks of a path that do not depend on the project.
pub(crate) fn check_format(path: &str) -> Result<()> {
    if path.contains('\0') {
        return Err(violation(path, PolicyViolation::NulByte, None));
    }
    let fault = if path.is_empty() {
        FormatFault::Empty
    } else if path.len() > PATH_MAX {
        FormatFault::TooLong
    } else if path.split('/').any(|name| name.len() > NAME_MAX) {
        FormatFault::NameTooLong
    } else if path.chars().any(char::is_control) {
        FormatFault::ControlCharacter
    } else {
        return Ok(());
    };
    Err(bad_format(path, fault))
}

/// Resolves `.` and `..` by text alone. Returns `None` if `..` leads above the start.
pub(crate) fn without_dots(path: &str) -> Option<String> {
    let mut names: Vec<&str> = Vec::new();
    for piece in path.split('/') {
        match piece {
            "" | "." => {}
            ".." => {
                names.pop()?;
            }
            name => names.push(name),
        }
    }
    if names.is_empty() {
        return Some(PROJECT_ROOT.to_owned());
    }
    Some(names.join("/"))
}

/// Returns the path of a name in a directory.
pub(crate) fn joined(directory: &str, name: &str) -> String {
    match directory {
        PROJECT_ROOT => name.to_owned(),
        directory => format!("{directory}/{name}"),
    }
}

/// Creates the error about a path that the policy refuses. The validator adds the allowed directories.
pub(crate) fn violation(path: &str, violation: PolicyViolation, leads_to: Option<String>) -> Error {
    Error::Violation {
        path: cut_path(path),
        violation,
        leads_to,
        allowed: Vec::new(),
    }
}

/// Creates the error about a path whose form is wrong.
pub(crate) fn bad_format(path: &str, fault: FormatFault) -> Error {
    Error::Format {
        path: cut_path(path),
        fault,
    }
}

/// Cuts a long path, so that an error does not repeat all of it.
pub(crate) fn cut_path(path: &str) -> String {
    sandbox::truncated(path, SHOWN_MAX)
}
