//! The operator's own files, and who else can get at them.

use std::path::{Path, PathBuf};

use crate::operator_files;
use crate::settings::LoadedSettings;

/// One file of the operator's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct OwnFile {
    /// What it is, in a sentence.
    pub(super) what: &'static str,
    /// Where it really is.
    pub(super) real_path: PathBuf,
    /// Who may read and write it.
    pub(super) mode: u32,
    /// Why others should not.
    pub(super) holds: Holds,
}

/// What a file of the operator's holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Holds {
    /// What agents may do.
    Policy,
    /// Something that lets its reader in.
    Secret,
    /// What agents did.
    Record,
    /// The server itself.
    Program,
}

/// The files that are there; one that is not has been, or will be, complained about elsewhere.
pub(super) fn all(loaded: &LoadedSettings) -> Vec<OwnFile> {
    let settings = &loaded.settings;
    let program = std::env::current_exe().ok();
    let config = loaded.file.as_ref().map(|file| file.path.as_path());
    let key = settings.tls.as_ref().map(|tls| tls.key.as_path());
    let tokens = settings.bearer_tokens_file.as_deref();
    let seal = settings.guide_state_key_file.as_deref();
    let audit = settings.audit_file.as_deref();
    let named = [
        look_at("the config file", config, Holds::Policy),
        look_at("the tokens file", tokens, Holds::Secret),
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
