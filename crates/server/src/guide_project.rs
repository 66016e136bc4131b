//! The project of the `guide` set, opened once at start-up. Paths are looked up in it; its files are never read.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use guide::{AllowedFault, BridgeLimits, FilesystemBridge, PathValidator};
use sandbox::Root;
use toolset::guide::{GuideOptions, GuideState};

use crate::operator_files;
use crate::operator_files::reason;
use crate::settings::{KeyPath, SettingsError};
use crate::settings::{Settings, Toolset};

/// The directories that may be named unless the operator names others.
const ALLOWED_PATHS: [&str; 5] = ["docs", "src", "tests", ".guide", ".todo"];
/// The size of a generated key, in bytes.
const KEY_SIZE: usize = 32;

/// Opens the project if `guide` is served, and finds out which of its allowed directories are missing.
pub(crate) fn open(settings: &Settings) -> Result<Option<GuideProject>> {
    if !settings.toolsets.contains(&Toolset::Guide) {
        return Ok(None);
    }
    let validator = validator(settings)?;
    let project = GuideProject {
        allowed: validator.policy().allowed().map(str::to_owned).collect(),
        missing: validator.policy().missing().map(str::to_owned).collect(),
        is_configured: settings.guide_allowed_paths.is_some(),
        path: validator.root().real_path().to_owned(),
        state: Arc::new(state(settings, validator)?),
    };
    Ok(Some(project))
}

/// The project and the facts about it for operators.
#[derive(Debug)]
pub(crate) struct GuideProject {
    /// The state that the calls of the set share.
    pub(crate) state: Arc<GuideState>,
    /// The real path.
    pub(crate) path: PathBuf,
    /// The allowed directories.
    pub(crate) allowed: Vec<String>,
    /// The allowed directories that do not exist.
    pub(crate) missing: Vec<String>,
    /// Whether the operator named the allowed directories.
    is_configured: bool,
}

impl GuideProject {
    /// Warns of configured directories that do not exist, which may be a mistake. No project has all the usual ones.
    pub(crate) fn warn(&self) {
        let configured = self.missing.iter().filter(|_| self.is_configured);
        for path in configured {
            tracing::warn!(
                toolset = "guide",
                path,
                "an allowed path does not exist in the project"
            );
        }
    }
}

fn validator(settings: &Settings) -> Result<PathValidator> {
    let path = match &settings.guide_project_root {
        Some(path) => path.clone(),
        None => std::env::current_dir().context("cannot determine the current directory")?,
    };
    let root = Root::open(&path).map_err(|error| SettingsError::BadDirectory {
        origin: "the project root (--project-root or guide.project_root)".to_owned(),
        path: path.clone(),
        reason: reason(&error),
    })?;
    let allowed = settings.guide_allowed_paths.clone();
    let allowed = allowed.unwrap_or_else(|| ALLOWED_PATHS.map(str::to_owned).to_vec());
    let validator = PathValidator::new(root, &path, &allowed);
    Ok(validator.map_err(|fault| not_allowed(&fault, settings))?)
}

fn not_allowed(fault: &AllowedFault, settings: &Settings) -> SettingsError {
    let key = KeyPath::default().key("guide").key("allowed_paths");
    let named = SettingsError::Unexpected {
        path: key.item(fault.index),
        expected: "a path inside the project".to_owned(),
        found: format!("{:?}", fault.path),
    };
    match &settings.config_file {
        Some(file) => named.in_file(file),
        None => named,
    }
}

fn state(settings: &Settings, validator: PathValidator) -> Result<GuideState> {
    let unless_zero = |duration: Duration| (duration > Duration::ZERO).then_some(duration);
    let limits = BridgeLimits {
        cache_size: settings.guide_cache_size,
        cache_ttl: unless_zero(settings.guide_cache_ttl),
        recheck: unless_zero(settings.guide_recheck),
    };
    let options = GuideOptions {
        sharing: settings.guide_cache,
        bridge: FilesystemBridge::new(validator, limits),
        sampling_timeout: settings.guide_sampling_timeout,
        state_key: state_key(settings)?,
    };
    GuideState::new(options).map_err(|error| match &settings.guide_state_key_file {
        Some(path) => bad_key(path, &error.to_string()).into(),
        None => error.into(),
    })
}

/// Reads the operator's key, or generates one for this process.
fn state_key(settings: &Settings) -> Result<Vec<u8>> {
    let Some(path) = &settings.guide_state_key_file else {
        let mut key = vec![0; KEY_SIZE];
        getrandom::fill(&mut key)
            .map_err(|error| anyhow!("cannot create a random key: {error}"))?;
        return Ok(key);
    };
    let read = operator_files::read_bytes(path);
    let (bytes, _) = read.map_err(|error| bad_key(path, &reason(&error)))?;
    // A line end after a key written as text does not count.
    Ok(bytes.trim_ascii_end().to_vec())
}

fn bad_key(path: &std::path::Path, reason: &str) -> SettingsError {
    SettingsError::BadFile {
        key: "guide.state_key_file",
        path: path.to_owned(),
        reason: reason.to_owned(),
    }
}
