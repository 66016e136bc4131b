//! The audit file: every call, one JSON line each, at its end.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::queue::LogOutput;
use crate::operator_files;

/// The file that every call is recorded in: whole lines at its end.
#[derive(Debug)]
pub(crate) struct AuditFile {
    path: PathBuf,
    file: File,
}

impl AuditFile {
    /// Opens the file, and creates it where it is missing.
    pub(crate) fn open(path: &Path) -> io::Result<AuditFile> {
        Ok(AuditFile {
            file: operator_files::append(path)?,
            path: path.to_owned(),
        })
    }
}

impl Write for AuditFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl LogOutput for AuditFile {
    fn reopen(&mut self) {
        match operator_files::append(&self.path) {
            Ok(file) => self.file = file,
            Err(error) => tracing::error!(%error, "the audit file could not be opened again"),
        }
    }

    fn failed(&mut self, error: &io::Error) {
        tracing::error!(%error, "a call could not be recorded in the audit file");
    }
}
