//! The settings that the process runs with.
//!
//! [`table`] has every setting once. The command line and the config file each give a [`Partial`]; [`Partial::or`] is
//! the one merge rule (the flag or environment variable first, then the file) and [`Partial::complete`] fills in the
//! defaults.

mod choices;
mod client_settings;
pub(crate) mod config_file;
mod error;
mod flags;
mod load;
mod network;
mod oauth_settings;
mod reference;
mod root_settings;
mod sample;
mod table;
mod units;
mod value;

use std::path::PathBuf;

pub(crate) use choices::{
    AuditOnFailure, LogFormat, LogLevel, SessionPolicy, Toolset, Transport, WordValue,
};
pub(crate) use client_settings::{
    ClientRoot, ClientSettings, MIN_TOKEN, OAuthSelector, STDIO_CLIENT, TokenDigest, digest_of,
    digest_text, is_client_name,
};
pub(crate) use error::{KeyPath, SettingsError};
pub(crate) use flags::flags;
pub(crate) use load::{CURRENT_DIRECTORY, LoadedSettings, RootsNeed, TYPED, load};
pub(crate) use network::Network;
pub(crate) use oauth_settings::{KeyLocation, OAuthSettings, WebAddress};
pub(crate) use reference::{page as reference, restart_keys};
pub(crate) use root_settings::{
    AllowedTools, ConfirmSettings, HistoryKept, HistoryWhere, OnMissingRoot, RootAccess,
    RootSettings, StateDir, tools_of,
};
pub(crate) use sample::page as sample;
pub(crate) use table::{ChangedKeys, Partial, Settings};
pub(crate) use units::size_in_words;
pub(crate) use value::SettingValue;

impl Settings {
    /// Tells whether a set is served.
    pub(crate) fn serves(&self, toolset: Toolset) -> bool {
        self.toolsets.contains(&toolset)
    }

    /// The root that a single-root tool set uses: the one that was named, or the first.
    pub(crate) fn root_of(&self, toolset: Toolset) -> Option<&RootSettings> {
        let name = match toolset {
            Toolset::Files => self.files_root.as_deref(),
            Toolset::Memory => self.memory_root.as_deref(),
            Toolset::MemoryTool => self
                .memory_tool_root
                .as_deref()
                .or(self.memory_root.as_deref()),
            Toolset::Workspace | Toolset::Guide | Toolset::Reference => None,
        };
        // A name from the file means nothing once the command line replaced the file's roots.
        let named = self
            .roots
            .iter()
            .find(|root| Some(root.name.as_str()) == name);
        named.or_else(|| self.roots.first())
    }
}

/// The files HTTPS needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Tls {
    /// The certificate chain, PEM.
    pub(crate) cert: PathBuf,
    /// The private key, PEM.
    pub(crate) key: PathBuf,
}
