//! The roots as they are found on the host at start-up.
//!
//! This is the only place of the server that looks at the directories of the settings.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::config::{Fault, reason};
use crate::settings::{OnMissing, RootSettings, Settings};

/// A root's directory as it is on the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Found {
    /// The root's name.
    pub(crate) name: String,
    /// Where the directory really is, links resolved.
    pub(crate) real_path: PathBuf,
    /// Who may do what with it: the mode bits.
    pub(crate) mode: u32,
}

/// Looks at every root; the first that is not a usable directory is the mistake to report.
pub(crate) fn find(settings: &Settings) -> Result<Vec<Found>, Fault> {
    settings
        .roots
        .iter()
        .map(|root| find_one(root, settings))
        .collect()
}

fn find_one(root: &RootSettings, settings: &Settings) -> Result<Found, Fault> {
    let found = match look(&root.path) {
        Err(error) if is_to_be_created(root, &error) => create(&root.path),
        result => result,
    };
    found
        .map(|(real_path, mode)| Found {
            name: root.name.clone(),
            real_path,
            mode,
        })
        .map_err(|error| bad_directory(root, settings, &error))
}

fn is_to_be_created(root: &RootSettings, error: &io::Error) -> bool {
    root.on_missing == OnMissing::Create && error.kind() == io::ErrorKind::NotFound
}

fn bad_directory(root: &RootSettings, settings: &Settings, error: &io::Error) -> Fault {
    let fault = Fault::BadDirectory {
        origin: root.origin.clone(),
        path: root.path.clone(),
        reason: reason(error),
    };
    match &settings.config_file {
        Some(file) if root.origin.starts_with("roots[") => fault.in_file(file),
        _ => fault,
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "start-up: the operator's directories, before the sandbox opens them for good"
)]
fn look(path: &Path) -> io::Result<(PathBuf, u32)> {
    let real_path = std::fs::canonicalize(path)?;
    // Listing it shows at once whether we may use it at all.
    std::fs::read_dir(&real_path)?;
    let mode = std::fs::metadata(&real_path)?.mode() & 0o7777;
    Ok((real_path, mode))
}

#[expect(
    clippy::disallowed_methods,
    reason = "start-up: `--base-path` is created if missing"
)]
fn create(path: &Path) -> io::Result<(PathBuf, u32)> {
    std::fs::create_dir_all(path)?;
    look(path)
}
