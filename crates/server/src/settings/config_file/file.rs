//! Reads the config file.

use std::io;
use std::path::{Path, PathBuf};

use crate::operator_files;
use crate::settings::error::SettingsError;

/// A config file as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ConfigFile {
    /// Its absolute path.
    pub(crate) path: PathBuf,
    /// Its content.
    pub(crate) text: String,
}

impl ConfigFile {
    /// The directory that relative paths in the file start from.
    pub(crate) fn directory(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new("/"))
    }
}

/// Reads a config file: a regular file of at most 1 MiB of UTF-8.
pub(crate) fn read(path: &Path) -> Result<ConfigFile, SettingsError> {
    let read = std::path::absolute(path).and_then(read_regular);
    read.map_err(|error| SettingsError::Unreadable {
        path: path.to_owned(),
        reason: operator_files::reason(&error),
    })
}

fn read_regular(path: PathBuf) -> io::Result<ConfigFile> {
    let (text, _) = operator_files::read(&path)?;
    Ok(ConfigFile { path, text })
}
