//! What the process runs with: every setting, what it means and its default, in one place.
//!
//! The command line and the config file each give a [`Partial`]; [`Partial::or`] is the one merge
//! rule (the flag or environment variable first, then the file) and [`Partial::complete`] fills in
//! the defaults. Nothing here reads a file or an environment variable.

mod choices;
mod collision;
pub(crate) mod config_file;
mod error;
mod in_yaml;
mod load;
mod reference;
mod root_settings;

use std::path::PathBuf;
use std::time::Duration;

pub(crate) use choices::{
    Durability, Landlock, LogFormat, LogLevel, Replies, SessionPolicy, Toolset, Transport,
};
pub(crate) use collision::first_collision;
pub(crate) use config_file::{HOST, is_host};
pub(crate) use error::{KeyPath, SettingsError};
pub(crate) use in_yaml::InYaml;
pub(crate) use load::{CURRENT_DIRECTORY, LoadedSettings, RootsNeed, load};
pub(crate) use reference::page as reference;
pub(crate) use root_settings::{
    AllowedTools, OnMissingRoot, Quota, RootAccess, RootSettings, tools_of,
};

/// The tool names of each tool set, in the order of the sets: `("workspace", &["list_folder", …])`.
pub(crate) type KnownTools<'a> = &'a [(&'a str, &'a [&'a str])];

/// The bounds of every number, shared by the command line and the file.
pub(crate) mod bounds {
    use std::ops::RangeInclusive;

    /// What a reply or a request body may hold at most: 4 GiB.
    pub(crate) const CONTENT: RangeInclusive<u64> = 1..=(4 << 30);
    /// A port; 0 takes any that is free.
    pub(crate) const PORT: RangeInclusive<u64> = 0..=65_535;
    /// A timeout in seconds, up to a day.
    pub(crate) const TIMEOUT: RangeInclusive<u64> = 1..=86_400;
    /// How long something is kept, in seconds, up to a year; 0 keeps it for ever.
    pub(crate) const TTL: RangeInclusive<u64> = 0..=31_536_000;
    /// How many of something the process holds at once.
    pub(crate) const COUNT: RangeInclusive<u64> = 1..=1_000_000;
    /// Bytes or files of a whole root or cache.
    pub(crate) const QUOTA: RangeInclusive<u64> = 1..=(1 << 62);
}

/// What is known of one setting besides its name in the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Described {
    /// The setting's field.
    pub(crate) field: &'static str,
    /// What it is for.
    pub(crate) meaning: &'static str,
    /// What can stand there.
    pub(crate) kind: String,
    /// Its default, as the file would have it.
    pub(crate) default: String,
    /// The words that can stand there and what each means, where it is one of a few.
    pub(crate) words: Vec<(String, String)>,
}

macro_rules! settings {
    ($( $(#[doc = $doc:literal])* $field:ident : $type:ty = $default:expr; )*) => {
        /// What the process runs with.
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub(crate) struct Settings { $( $(#[doc = $doc])* pub(crate) $field: $type, )* }

        /// What one source (the command line, the file) says; the rest is left to the next.
        #[derive(Debug, Clone, Default, PartialEq, Eq)]
        pub(crate) struct Partial { $( $(#[doc = $doc])* pub(crate) $field: Option<$type>, )* }

        impl Settings {
            /// Every setting in words, in the order below.
            pub(crate) fn described() -> Vec<Described> {
                vec![$({
                    let default: $type = $default;
                    Described {
                        field: stringify!($field),
                        meaning: concat!($($doc),*).trim(),
                        kind: <$type as InYaml>::kind(),
                        default: default.in_yaml(),
                        words: <$type as InYaml>::words(),
                    }
                }),*]
            }
        }

        impl Partial {
            /// Takes each setting from here, or else from `lower`.
            #[must_use]
            pub(crate) fn or(self, lower: Partial) -> Partial {
                Partial { $( $field: self.$field.or(lower.$field), )* }
            }

            /// Fills in the defaults.
            #[must_use]
            pub(crate) fn complete(self) -> Settings {
                Settings { $( $field: self.$field.unwrap_or_else(|| $default), )* }
            }
        }
    };
}

settings! {
    /// The config file that was read, if any.
    config_file: Option<PathBuf> = None;
    /// How clients reach the process; reading a config file turns the default into HTTP.
    transport: Transport = Transport::Stdio;
    /// The address HTTP listens on.
    host: String = "0.0.0.0".to_owned();
    /// The port HTTP listens on; 0 takes any that is free.
    port: u16 = 8091;
    /// The tool sets that are served; the first is also `/mcp`.
    toolsets: Vec<Toolset> = vec![Toolset::Workspace];
    /// The directories that are served, in the order they were given.
    roots: Vec<RootSettings> = Vec::new();
    /// The name of the root that `files` uses; none is the first.
    files_root: Option<String> = None;
    /// The name of the root that `memory` uses; none is the first.
    memory_root: Option<String> = None;
    /// The largest file that is read whole without an explicit range, in bytes.
    max_full_read_size: u64 = 1_048_576;
    /// The most bytes of content one reply holds; for files that `workspace` reads whole it is `max_full_read_size`, for `memory` 100 MB.
    max_file_size: u64 = 10_485_760;
    /// How long a call may take; `grep` and `glob` have their own default.
    request_timeout: Duration = Duration::from_secs(30);
    /// How many calls run at once; others wait.
    max_concurrent_calls: usize = 256;
    /// How many calls a client may make; none is as many as it likes.
    rate: Option<Rate> = None;
    /// Whether a write is on disk before it is confirmed.
    durability: Durability = Durability::Fsync;
    /// Whether the process locks itself into its roots.
    landlock: Landlock = Landlock::Auto;
    /// Host names clients may use, besides loopback names and `host` itself.
    allowed_hosts: Vec<String> = Vec::new();
    /// Origins whose requests are served; one with any other Origin header gets 403.
    allowed_origins: Vec<String> = Vec::new();
    /// The largest HTTP request body, in bytes.
    max_body_size: u64 = 16_777_216;
    /// How many HTTP connections are held at once.
    max_connections: usize = 1024;
    /// How long a client may take to send a request, to begin the next one, and to take part of a reply.
    client_timeout: Duration = Duration::from_secs(30);
    /// Which clients get a session.
    sessions: SessionPolicy = SessionPolicy::Auto;
    /// How many sessions are held at once; idle ones expire.
    max_sessions: usize = 10_000;
    /// The certificate and key of HTTPS; none is plain HTTP.
    tls: Option<Tls> = None;
    /// A file with one bearer token a line; set, every MCP request needs one.
    bearer_tokens_file: Option<PathBuf> = None;
    /// Which halves of a reply are sent.
    replies: Replies = Replies::Both;
    /// Whether the `root` argument is also asked for as a header, so that a proxy can route by it.
    root_header: bool = true;
    /// The project of `guide`; none is the current directory.
    guide_project_root: Option<PathBuf> = None;
    /// The paths of the project that `guide` may ask for.
    guide_allowed_paths: Vec<String> =
        ["docs", "src", "tests", ".guide", ".todo"].map(str::to_owned).to_vec();
    /// How many bytes `guide` keeps; the least recently used go first.
    guide_cache_size: u64 = 67_108_864;
    /// How long `guide` keeps a file; zero is for ever.
    guide_cache_ttl: Duration = Duration::from_secs(3600);
    /// How long `guide` waits for the client to answer.
    guide_sampling_timeout: Duration = Duration::from_secs(60);
    /// The key that seals what clients carry for `guide`, the same for all replicas; none is one of this process alone.
    guide_state_key_file: Option<PathBuf> = None;
    /// The least important log lines that are written.
    log_level: LogLevel = LogLevel::Info;
    /// How a log line is written.
    log_format: LogFormat = LogFormat::Json;
    /// A file that every call is also recorded in.
    audit_file: Option<PathBuf> = None;
}

impl Settings {
    /// The root that a single-root tool set uses: the one that was named, or the first.
    pub(crate) fn root_of(&self, toolset: Toolset) -> Option<&RootSettings> {
        let name = match toolset {
            Toolset::Files => self.files_root.as_deref(),
            Toolset::Memory => self.memory_root.as_deref(),
            Toolset::Workspace | Toolset::Guide => None,
        };
        // A name from the file means nothing once the command line replaced the file's roots.
        let named = self
            .roots
            .iter()
            .find(|root| Some(root.name.as_str()) == name);
        named.or_else(|| self.roots.first())
    }
}

/// A client's allowance of calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rate {
    /// Calls a second in the long run.
    pub(crate) per_second: u32,
    /// Calls at once after a pause.
    pub(crate) burst: u32,
}

/// The files HTTPS needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Tls {
    /// The certificate chain, PEM.
    pub(crate) cert: PathBuf,
    /// The private key, PEM.
    pub(crate) key: PathBuf,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_higher_source_wins_setting_by_setting() {
        let high = Partial {
            port: Some(1),
            ..Partial::default()
        };
        let low = Partial {
            port: Some(2),
            host: Some("low".to_owned()),
            ..Partial::default()
        };
        let settings = high.or(low).complete();
        assert_eq!((settings.port, settings.host.as_str()), (1, "low"));
        assert_eq!(settings.max_full_read_size, 1_048_576);
    }

    #[test]
    fn an_explicit_nothing_beats_a_lower_something() {
        let high = Partial {
            rate: Some(None),
            ..Partial::default()
        };
        let low = Partial {
            rate: Some(Some(Rate {
                per_second: 1,
                burst: 1,
            })),
            ..Partial::default()
        };
        assert_eq!(high.or(low).complete().rate, None);
    }

    #[test]
    fn defaults_are_those_of_the_contract() {
        let settings = Partial::default().complete();
        assert_eq!((settings.host.as_str(), settings.port), ("0.0.0.0", 8091));
        assert_eq!(settings.toolsets, [Toolset::Workspace]);
        assert_eq!(settings.max_file_size, 10_485_760);
        assert_eq!(settings.request_timeout, Duration::from_secs(30));
        assert_eq!(
            (settings.max_body_size, settings.max_connections),
            (16_777_216, 1024)
        );
        assert_eq!(
            (settings.max_sessions, settings.max_concurrent_calls),
            (10_000, 256)
        );
        assert_eq!(settings.guide_cache_size, 67_108_864);
    }
}
