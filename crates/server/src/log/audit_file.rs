//! The audit file: every call, one JSON line each, at its end.

use std::fmt::Display;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::queue::LogOutput;
use crate::operator_files;
use crate::settings::AuditOnFailure;

/// The file that every call is recorded in: whole lines at its end.
#[derive(Debug)]
pub(crate) struct AuditFile {
    path: PathBuf,
    file: File,
    /// Where the room begins that is kept for further lines.
    kept_from: u64,
    on_failure: AuditOnFailure,
}

/// Tells the operator that calls cannot be recorded, and what becomes of changes.
pub(super) fn tell_failing(error: &dyn Display, on_failure: AuditOnFailure) {
    let changes = match on_failure {
        AuditOnFailure::Refuse => "refused",
        AuditOnFailure::Continue => "not recorded",
    };
    tracing::error!(%error, changes, "the audit file cannot be written");
}

/// How many bytes are kept for the lines that follow.
const ROOM: u64 = 1024 * 1024;

impl AuditFile {
    /// Opens the file, and creates it where it is missing.
    pub(crate) fn open(path: &Path, on_failure: AuditOnFailure) -> io::Result<AuditFile> {
        Ok(AuditFile {
            file: operator_files::append(path)?,
            path: path.to_owned(),
            // Nothing is kept yet: the first look at the end finds that.
            kept_from: u64::MAX,
            on_failure,
        })
    }
}

impl AuditFile {
    /// Room for the lines of the changes that may be under way: it is kept before they begin, so that a full disk is found
    /// by the next change and not by their record.
    fn keep_room(&mut self) -> io::Result<()> {
        let end = self.file.metadata()?.len();
        let is_kept = end >= self.kept_from && end - self.kept_from <= ROOM / 2;
        if !is_kept {
            operator_files::keep_room(&self.file, end, ROOM)?;
            self.kept_from = end;
        }
        Ok(())
    }
}

impl Write for AuditFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    /// Removes what was written of lines that do not fit, so that every line of the file is whole.
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        let before = self.file.metadata()?.len();
        (&self.file).write_all(bytes).inspect_err(|_| {
            // The next line would follow a broken one: nothing better can be done where this fails too.
            let _ = self.file.set_len(before);
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl LogOutput for AuditFile {
    fn reopen(&mut self) {
        match AuditFile::open(&self.path, self.on_failure) {
            Ok(file) => *self = file,
            Err(error) => tracing::error!(%error, "the audit file could not be opened again"),
        }
    }

    fn reserve(&mut self) -> io::Result<()> {
        self.keep_room()
    }

    fn failed(&mut self, error: &io::Error) {
        tell_failing(error, self.on_failure);
    }

    fn recovered(&mut self) {
        tracing::warn!("the audit file can be written again");
    }
}
