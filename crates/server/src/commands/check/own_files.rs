//! The operator's own files and who else may read or write them.

use std::path::{Path, PathBuf};

use crate::operator_files;
use crate::settings::LoadedSettings;

/// One of the operator's files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct OwnFile {
    /// Its name in a sentence.
    pub(super) what: &'static str,
    /// Its real path.
    pub(super) real_path: PathBuf,
    /// Its mode bits.
    pub(super) mode: u32,
    /// Why others should not have access.
    pub(super) holds: Holds,
}

/// The content of such a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Holds {
    /// The rules for agents.
    Policy,
    /// A secret that grants access.
    Secret,
    /// The record of what agents did.
    Record,
    /// The server itself.
    Program,
}

/// The files that exist. Loading the settings already reported those that do not.
pub(super) fn all(loaded: &LoadedSettings) -> Vec<OwnFile> {
    let settings = &loaded.settings;
    let program = std::env::current_exe().ok();
    let config = loaded.file.as_ref().map(|file| file.path.as_path());
    let key = settings.tls.as_ref().map(|tls| tls.key.as_path());
    let tokens = settings.bearer_tokens_file.as_deref();
    let page = settings.admin_token_file.as_deref();
    let seal = settings.guide_state_key_file.as_deref();
    let audit = settings.audit_file.as_deref();
    let named = [
        look_at("the config file", config, Holds::Policy),
        look_at("the tokens file", tokens, Holds::Secret),
        look_at("the operator's tokens", page, Holds::Secret),
        look_at("the TLS key", key, Holds::Secret),
        look_at("the seal's key", seal, Holds::Secret),
        look_at("the audit file", audit, Holds::Record),
        look_at("the server's program", program.as_deref(), Holds::Program),
    ];
    named.into_iter().flatten().collect()
}

fn look_at(what: &'static str, path: Option<&Path>, holds: Holds) -> Option<OwnFile> {
    let (real_path, mode) = operator_files::look_at(path?).ok()?;
    Some(OwnFile {
        what,
        real_path,
        mode,
        holds,
    })
}
