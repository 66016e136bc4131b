//! Reads the config file.

use std::io;
use std::path::{Path, PathBuf};

use super::fault::Fault;
use crate::operator;

/// A config file as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ConfigFile {
    /// Where it is, absolute.
    pub(crate) path: PathBuf,
    /// What it says.
    pub(crate) text: String,
}

impl ConfigFile {
    /// The directory that relative paths in the file start from.
    pub(crate) fn directory(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new("/"))
    }
}

/// Reads a config file: a regular file of at most 1 MiB of UTF-8.
pub(crate) fn read(path: &Path) -> Result<ConfigFile, Fault> {
    let read = std::path::absolute(path).and_then(read_regular);
    read.map_err(|error| Fault::Unreadable {
        path: path.to_owned(),
        reason: reason(&error),
    })
}

fn read_regular(path: PathBuf) -> io::Result<ConfigFile> {
    let (text, _) = operator::read(&path)?;
    Ok(ConfigFile { path, text })
}

/// The system's words without its error number.
pub(crate) fn reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "no such file or directory".to_owned(),
        io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
        io::ErrorKind::NotADirectory => "not a directory".to_owned(),
        io::ErrorKind::InvalidData => "not UTF-8 text".to_owned(),
        _ => error.to_string().lines().collect::<Vec<_>>().join(" "),
    }
}
