//! Every mistake that a configuration can have, each with a message of one line.
//!
//! A message names the key (or the flag), what was found and what is allowed. No file content can make it longer than
//! a line, and it never shows a secret.

use std::fmt;
use std::path::{Path, PathBuf};

use toolset::SetCollision;

/// The most characters of a value that a message shows.
const SHOWN: usize = 80;

/// One mistake in a configuration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SettingsError {
    /// The file is not YAML.
    #[error("line {line}, column {column}: not valid YAML: {reason}{hint}")]
    Syntax {
        line: u64,
        column: u64,
        reason: String,
        hint: &'static str,
    },
    /// One map has a key twice.
    #[error("line {line}: the key {key} is given twice")]
    DuplicateKey { line: u64, key: String },
    /// An unknown key.
    #[error("{path}: unknown key{}; allowed: {}", Suggestion(nearest), allowed.join(", "))]
    UnknownKey {
        path: KeyPath,
        allowed: Vec<&'static str>,
        nearest: Option<String>,
    },
    /// A required key is missing.
    #[error("{path}: missing; expected {expected}")]
    Missing { path: KeyPath, expected: String },
    /// A value of the wrong type, or out of range.
    #[error("{path}: expected {expected}, got {found}")]
    Unexpected {
        path: KeyPath,
        expected: String,
        found: String,
    },
    /// A word that is not allowed.
    #[error("{path}: unknown {what} {value}{}; allowed: {}", Suggestion(nearest), allowed.join(", "))]
    UnknownWord {
        path: KeyPath,
        what: &'static str,
        value: String,
        allowed: Vec<String>,
        nearest: Option<String>,
    },
    /// Two entries are the same and must not be.
    #[error("{path}: duplicate {what} {value}, already used at {first}")]
    Duplicate {
        path: KeyPath,
        what: &'static str,
        value: String,
        first: KeyPath,
    },
    /// An allowlist names the tool that is always available.
    #[error(
        "{path}: \"{tool}\" is always available and cannot be restricted; remove it from the list"
    )]
    AlwaysAvailable { path: KeyPath, tool: &'static str },
    /// A root whose directory cannot be used.
    #[error("{origin}: cannot use the directory {}: {reason}", quoted_path(path))]
    BadDirectory {
        origin: String,
        path: PathBuf,
        reason: String,
    },
    /// A file that the configuration names cannot be used.
    #[error("{key}: cannot use the file {}: {reason}", quoted_path(path))]
    BadFile {
        key: &'static str,
        path: PathBuf,
        reason: String,
    },
    /// The config file itself cannot be used.
    #[error("cannot read the config file {}: {reason}", quoted_path(path))]
    Unreadable { path: PathBuf, reason: String },
    /// Nothing to serve.
    #[error(
        "no directory to serve: give one (mcp-filesystem DIR), or a config file with roots (--config FILE)"
    )]
    NoRoots,
    /// Nothing to store files in.
    #[error(
        "no directory to store files in: give one with --base-path DIR or in the environment variable BASE_PATH, or a config \
         file with roots (--config FILE)"
    )]
    NoStorage,
    /// A tool set that tells host paths cannot share standard input and output.
    #[error(
        "the tool set {toolset} tells paths of this machine, so nothing is served beside it; on stdio serve it alone, or use \
         --transport http"
    )]
    NotAlone { toolset: &'static str },
    /// Two tool sets cannot share standard input and output.
    #[error(
        "the tool sets {} and {} both have {}; on stdio serve one of them, or use --transport http",
        .0.first, .0.second, .0.tools.join(", ")
    )]
    Collision(SetCollision),
    /// A flag that does nothing with the tool sets that were chosen.
    #[error("{flag} is for the tool set {toolset}, which is not served; add --toolset {toolset}")]
    IdleFlag {
        flag: &'static str,
        toolset: &'static str,
    },
    /// The operator's page would be open to everybody.
    #[error("admin.listen: the page needs a token; set admin.token_file to a file with one")]
    PageWithoutToken,
    /// A client is known by access tokens, and none are taken.
    #[error(
        "clients: {client} is known by access tokens, but auth.oauth names no issuer; set it, or give the client tokens"
    )]
    ClientWithoutIssuer { client: String },
    /// A scope stands for a client that is not there.
    #[error("auth.oauth.scopes: {scope} stands for the client {client}, which is not in clients")]
    ScopeWithoutClient { scope: String, client: String },
    /// A mistake in a config file.
    #[error("{}: {fault}", quoted_path(file))]
    InFile {
        file: PathBuf,
        fault: Box<SettingsError>,
    },
}

impl SettingsError {
    /// Adds the file to the mistake.
    pub(crate) fn in_file(self, file: &Path) -> SettingsError {
        match self {
            named @ (SettingsError::Unreadable { .. } | SettingsError::InFile { .. }) => named,
            fault => SettingsError::InFile {
                file: file.to_owned(),
                fault: Box::new(fault),
            },
        }
    }
}

/// A value's place in the file: `roots[1].allowed_tools[0]`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct KeyPath(String);

impl KeyPath {
    /// The path of a key inside this map.
    pub(crate) fn key(&self, key: &str) -> KeyPath {
        let key = if is_plain(key) {
            key.to_owned()
        } else {
            quoted(key)
        };
        if self.0.is_empty() {
            KeyPath(key)
        } else {
            KeyPath(format!("{}.{key}", self.0))
        }
    }

    /// The path of an item of this list.
    pub(crate) fn item(&self, index: usize) -> KeyPath {
        KeyPath(format!("{}[{index}]", self.0))
    }
}

impl fmt::Display for KeyPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_empty() {
            "the file"
        } else {
            &self.0
        })
    }
}

fn is_plain(key: &str) -> bool {
    let plain = |character: char| character.is_alphanumeric() || "_-".contains(character);
    !key.is_empty() && key.len() <= SHOWN && key.chars().all(plain)
}

/// Quotes text on one line and cuts it if it is long.
pub(crate) fn quoted(text: &str) -> String {
    format!("{:?}", sandbox::truncated(text, SHOWN))
}

/// Quotes a host path on one line, uncut: the reader is the operator.
pub(crate) fn quoted_path(path: &Path) -> String {
    format!("{:?}", path.to_string_lossy())
}

struct Suggestion<'a>(&'a Option<String>);

impl fmt::Display for Suggestion<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(nearest) => write!(f, " (did you mean {}?)", quoted(nearest)),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shown_values_stay_on_one_short_line() {
        assert_eq!(quoted("a\nb\u{1b}"), r#""a\nb\u{1b}""#);
        assert_eq!(quoted(&"x".repeat(1000)).chars().count(), SHOWN + 3);
        assert_eq!(KeyPath::default().key("a\nb").to_string(), r#""a\nb""#);
    }

    #[test]
    fn paths_read_like_the_file() {
        let path = KeyPath::default()
            .key("roots")
            .item(1)
            .key("allowed_tools")
            .item(0);
        assert_eq!(path.to_string(), "roots[1].allowed_tools[0]");
    }
}
