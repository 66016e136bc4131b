//! Reads the config file: the one file the process opens by a path string, before it serves anyone.

use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::fault::Fault;

/// No config file is larger than this.
const MAX_SIZE: u64 = 1024 * 1024;

/// A config file as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ConfigFile {
    /// Where it is, absolute.
    pub(crate) path: PathBuf,
    /// What it says.
    pub(crate) text: String,
    /// Who may read and write it: the mode bits.
    pub(crate) mode: u32,
}

impl ConfigFile {
    /// The directory that relative paths in the file start from.
    pub(crate) fn directory(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new("/"))
    }
}

/// Reads a config file: a regular file of at most 1 MiB of UTF-8.
pub(crate) fn read(path: &Path) -> Result<ConfigFile, Fault> {
    read_beside(path).map_err(|error| Fault::Unreadable {
        path: path.to_owned(),
        reason: reason(&error),
    })
}

/// Reads a file that the config names, within the same bounds.
pub(crate) fn read_beside(path: &Path) -> io::Result<ConfigFile> {
    std::path::absolute(path).and_then(read_regular)
}

#[expect(
    clippy::disallowed_methods,
    reason = "the operator's own config file lies outside every root and is read before serving"
)]
fn read_regular(path: PathBuf) -> io::Result<ConfigFile> {
    // Looked at before it is opened: opening a FIFO that was given by mistake would hang.
    let metadata = std::fs::metadata(&path)?;
    if !metadata.is_file() {
        return Err(io::Error::other("not a regular file"));
    }
    let file = std::fs::File::open(&path)?;
    let mut text = String::new();
    file.take(MAX_SIZE + 1).read_to_string(&mut text)?;
    if text.len() as u64 > MAX_SIZE {
        return Err(io::Error::other(format!("larger than {MAX_SIZE} bytes")));
    }
    Ok(ConfigFile {
        path,
        text,
        mode: metadata.mode() & 0o7777,
    })
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
