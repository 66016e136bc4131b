//! The one table of settings: each row is a setting's field, type, default, place in the file, flag, bounds and meaning.
//!
//! The reader of the file, the command line, the defaults, the reference and the file to begin with all come from these
//! rows. A new setting is a row here. The order is that of the file and of the reference.

use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Arg, ArgMatches};
use sandbox::{Durability, Landlock};
use toolset::guide::CacheSharing;
use toolset::{CallRate, MemoryCreate, MemoryStore, ReplyPolicy, TextForm};

use super::choices::{AuditOnFailure, LogFormat, LogLevel, SessionPolicy, Toolset, Transport};
use super::config_file::{ConfigReader, origins, root_name_of, secret_path, some_path};
use super::flags::FlagValue;
use super::network::Network;
use super::value::{Bounds, Host, Reading, SettingValue};
use super::{ClientSettings, OAuthSettings, RootSettings, StateDir, Tls};

/// What a reply or a request body may hold at most: 4 GiB.
const CONTENT: RangeInclusive<u64> = 1..=(4 << 30);
/// What the process may remember: nothing, or up to 64 GiB.
const MEMORY: RangeInclusive<u64> = 0..=(64 << 30);
/// A port; 0 takes any that is free.
const PORT: RangeInclusive<u64> = 0..=65_535;
/// A timeout in seconds, up to a day.
const TIMEOUT: RangeInclusive<u64> = 1..=86_400;
/// How long something is kept, in seconds, up to a year; 0 keeps it for ever.
const TTL: RangeInclusive<u64> = 0..=31_536_000;
/// Seconds between two log lines, up to a day; 0 for none.
const PAUSE: RangeInclusive<u64> = 0..=86_400;
/// How many of something the process holds at once.
const COUNT: RangeInclusive<u64> = 1..=1_000_000;
/// How many files a call may change, none included.
const MANY: RangeInclusive<u64> = 0..=(1 << 62);
/// Bytes or files of a whole root or cache.
const QUOTA: RangeInclusive<u64> = 1..=(1 << 62);

/// A row of the table: one setting.
pub(crate) struct Row {
    /// The setting's field.
    pub(crate) field: &'static str,
    /// Where it is in the file, if it can be there.
    pub(crate) key: Option<&'static str>,
    /// Its flag, if it has one.
    pub(crate) flag: Option<Flag>,
    /// The environment variable with the same meaning as the flag.
    pub(crate) environment: Option<&'static str>,
    /// The bounds of a number.
    pub(crate) bounds: Option<Bounds>,
    /// What applies if it is missing, if that cannot be written as a value.
    pub(crate) otherwise: Option<&'static str>,
    /// Its meaning.
    pub(crate) meaning: &'static str,
    /// The kind of value.
    pub(crate) kind: fn() -> String,
    /// The allowed words and what each means, for types of a few words.
    pub(crate) words: fn() -> Vec<(&'static str, &'static str)>,
    /// Its default, as the file would have it.
    pub(crate) default: fn() -> String,
    /// What a changed value needs to take effect.
    pub(crate) change: TakesEffect,
}

/// What a changed value needs to take effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TakesEffect {
    /// SIGHUP.
    Reload,
    /// A restart.
    Restart,
}

/// The settings that a reload would change.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ChangedKeys {
    /// Those that take effect at once.
    pub(crate) applied: Vec<String>,
    /// Those that need a restart.
    pub(crate) restart: Vec<String>,
}

/// The flag of a setting.
pub(crate) struct Flag {
    /// Its name, without the dashes.
    pub(crate) name: &'static str,
    /// What the help calls its value.
    pub(crate) value_name: &'static str,
    /// Adds how its value is parsed.
    pub(crate) with_parser: fn(Arg, Option<Bounds>) -> Arg,
}

macro_rules! settings {
    (@optional) => { None };
    (@optional $value:expr) => { Some($value) };
    (@flag $type:ty) => { None };
    (@flag $type:ty, $name:literal, $value_name:literal) => {
        Some(Flag {
            name: $name,
            value_name: $value_name,
            with_parser: <$type as FlagValue>::with_parser,
        })
    };
    (@given $matches:ident, $field:ident, $type:ty) => { None };
    (@given $matches:ident, $field:ident, $type:ty, $name:literal) => {
        <$type as FlagValue>::given($matches, stringify!($field))
    };
    (@change) => { TakesEffect::Restart };
    (@change $change:ident) => { TakesEffect::$change };
    (@reader $type:ty) => { <$type as SettingValue>::read };
    (@reader $type:ty, $reader:path) => { $reader };
    ($(
        $(#[doc = $doc:literal])*
        $field:ident: $type:ty = $default:expr
            $(, key $key:literal)?
            $(, flag $flag:literal $value_name:literal)?
            $(, env $environment:literal)?
            $(, within $bounds:ident)?
            $(, otherwise $otherwise:literal)?
            $(, read_by $reader:path)?
            $(, on_change $change:ident)?
        ;
    )*) => {
        /// The settings that the process runs with.
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub(crate) struct Settings { $( $(#[doc = $doc])* pub(crate) $field: $type, )* }

        /// The settings of one source (the command line, the file); the rest is left to the next source.
        #[derive(Debug, Clone, Default, PartialEq, Eq)]
        pub(crate) struct Partial { $( $(#[doc = $doc])* pub(crate) $field: Option<$type>, )* }

        /// Every setting.
        pub(crate) const TABLE: &[Row] = &[$(Row {
            field: stringify!($field),
            key: settings!(@optional $($key)?),
            flag: settings!(@flag $type $(, $flag, $value_name)?),
            environment: settings!(@optional $($environment)?),
            bounds: settings!(@optional $($bounds)?),
            otherwise: settings!(@optional $($otherwise)?),
            meaning: concat!($($doc),*).trim_ascii(),
            kind: <$type as SettingValue>::kind,
            words: <$type as SettingValue>::words,
            default: || <$type as SettingValue>::in_yaml(&$default),
            change: settings!(@change $($change)?),
        }),*];

        impl Settings {
            /// These settings after the sources were read again: what can change while the process runs is taken from
            /// `read`, everything else stays. Tells what differs.
            pub(crate) fn reloaded(&self, read: &Settings) -> (Settings, ChangedKeys) {
                let (mut next, mut keys) = (self.clone(), ChangedKeys::default());
                $(
                    if self.$field != read.$field {
                        let key: Option<&str> = settings!(@optional $($key)?);
                        let key = key.map(str::to_owned);
                        match settings!(@change $($change)?) {
                            TakesEffect::Reload => {
                                next.$field = read.$field.clone();
                                keys.applied.extend(key);
                            }
                            TakesEffect::Restart => keys.restart.extend(key),
                        }
                    }
                )*
                (next, keys)
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

            /// Takes what was typed or found in the environment.
            pub(crate) fn from_flags(matches: &ArgMatches) -> Partial {
                Partial { $( $field: settings!(@given matches, $field, $type $(, $flag)?), )* }
            }

            /// Reads every key of a config file.
            pub(crate) fn from_file(file: &mut ConfigReader<'_>) -> Reading<Partial> {
                let mut partial = Partial::default();
                $(
                    let key = settings!(@optional $($key)?);
                    let bounds = settings!(@optional $($bounds)?);
                    let read = settings!(@reader $type $(, $reader)?);
                    let roots = partial.roots.as_deref();
                    partial.$field = file.read(key, bounds, roots, read)?;
                )*
                Ok(partial)
            }
        }
    };
}

settings! {
    /// The config file that was read, if any.
    config_file: Option<PathBuf> = None;
    /// Whether somebody chose `max_file_size`.
    is_max_file_size_given: bool = false, on_change Reload;
    /// How clients reach the process; reading a config file turns the default into HTTP.
    transport: Transport = Transport::Stdio, flag "transport" "TRANSPORT";

    /// The address HTTP listens on; without a config file it is 127.0.0.1, which only this machine reaches.
    host: Host = Host::every_interface(), key "host", flag "host" "HOST";
    /// The HTTP port; 0 picks any free port.
    port: u16 = 8091, key "port", flag "port" "PORT", within PORT;
    /// The largest file that is read whole without an explicit range, in bytes.
    max_full_read_size: u64 = 1_048_576, key "max_full_read_size", within CONTENT, on_change Reload;
    /// The tool sets that are served; the first is also `/mcp`.
    toolsets: Vec<Toolset> = vec![Toolset::Workspace],
        key "toolsets", flag "toolset" "NAME", read_by super::config_file::toolsets;
    /// The directories that are served, in the order they were given.
    roots: Vec<RootSettings> = Vec::new(),
        key "roots", otherwise "none: has to be given", read_by super::config_file::roots, on_change Reload;
    /// The named clients and their rights in each root. Without any, every caller may do what the roots allow.
    clients: Vec<ClientSettings> = Vec::new(),
        key "clients", read_by super::client_settings::clients, on_change Reload;
    /// Whether a write is on disk before it is confirmed.
    durability: Durability = Durability::Fsync, key "durability", on_change Reload;

    /// The name of the root that `files` uses; the first root if not set.
    files_root: Option<String> = None,
        key "files.root", otherwise "the first root", read_by root_name_of, on_change Reload;
    /// The name of the root that `memory` uses; the first root if not set.
    memory_root: Option<String> = None,
        key "memory.root", otherwise "the first root", read_by root_name_of, on_change Reload;
    /// Whether `memory` has a seventh tool, `undo`.
    memory_undo: bool = false, key "memory.undo", on_change Reload;
    /// The name of the root that `memory_tool` uses; that of `memory` if not set. New files are 0600 and new directories 0700.
    memory_tool_root: Option<String> = None,
        key "memory_tool.root", otherwise "the root of `memory`", read_by root_name_of, on_change Reload;
    /// Whether clients share the files of `memory_tool`.
    memory_tool_store: MemoryStore = MemoryStore::Shared, key "memory_tool.store", on_change Reload;
    /// What `create` of `memory_tool` does if the file exists.
    memory_tool_create: MemoryCreate = MemoryCreate::Fail, key "memory_tool.create", on_change Reload;

    /// The project of `guide`; the current directory if not set.
    guide_project_root: Option<PathBuf> = None,
        key "guide.project_root", flag "project-root" "PATH", otherwise "the current directory", read_by some_path;
    /// The paths of the project that `guide` may ask for.
    guide_allowed_paths: Option<Vec<String>> = None,
        key "guide.allowed_paths", otherwise "`[docs, src, tests, .guide, .todo]`";
    /// Who sees what an agent handed over to `guide`.
    guide_cache: CacheSharing = CacheSharing::PerClient, key "guide.cache";
    /// How many bytes `guide` keeps for all clients together; the least recently used of the one with the most go first.
    guide_cache_size: u64 = 67_108_864, key "guide.cache_size", within QUOTA;
    /// How long `guide` keeps a file; 0 keeps it for ever.
    guide_cache_ttl: Duration = Duration::from_secs(3600), key "guide.cache_ttl", within TTL;
    /// After how long `guide` asks again for what came without a modification time; zero is never.
    guide_recheck: Duration = Duration::from_secs(60), key "guide.recheck", within TTL;
    /// How long `guide` waits for the client to answer: less than the 60 seconds after which many clients give up.
    guide_sampling_timeout: Duration = Duration::from_secs(50), key "guide.sampling_timeout", within TIMEOUT;
    /// The key that seals the state clients carry for `guide`; all replicas need the same. Without it each process makes its own.
    guide_state_key_file: Option<PathBuf> = None, key "guide.state_key_file", read_by secret_path;

    /// Host names clients may use, besides loopback names and `host` itself.
    allowed_hosts: Vec<String> = Vec::new(), key "server.allowed_hosts", on_change Reload;
    /// Origins whose requests are served; one with any other Origin header gets 403.
    allowed_origins: Vec<String> = Vec::new(), key "server.allowed_origins", read_by origins, on_change Reload;
    /// The largest HTTP request body, in bytes.
    max_body_size: usize = 16_777_216, key "server.max_body_size", within CONTENT, read_by super::config_file::memory_size;
    /// How many HTTP connections are held at once.
    max_connections: usize = 1024, key "server.max_connections", within COUNT;
    /// How many connections one address may have; half of all if not set. One more replaces the oldest connection of that address that was never admitted.
    max_connections_per_address: Option<usize> = None,
        key "server.max_connections_per_address", within COUNT;
    /// Trusted reverse proxies. For their connections, limits, log and audit use the client address in `X-Forwarded-For`, or else `Forwarded`.
    trusted_proxies: Vec<Network> = Vec::new(), key "server.trusted_proxies";
    /// How long a new connection may take for the TLS handshake and the headers of its first request.
    handshake_timeout: Duration = Duration::from_secs(5), key "server.handshake_timeout", within TIMEOUT;
    /// How long a client may take to send a request, to begin the next one, and to take part of a reply.
    client_timeout: Duration = Duration::from_secs(30), key "server.client_timeout", within TIMEOUT;
    /// Which clients get a session.
    sessions: SessionPolicy = SessionPolicy::Auto, key "server.sessions";
    /// How many sessions are held at once; idle ones expire.
    max_sessions: usize = 10_000, key "server.max_sessions", within COUNT;
    /// The certificate and key for HTTPS; plain HTTP if not set.
    tls: Option<Tls> = None, key "server.tls", on_change Reload;
    /// A file with one bearer token per line. If set, every MCP request needs one of them.
    bearer_tokens_file: Option<PathBuf> = None, key "server.bearer_tokens_file", read_by secret_path, on_change Reload;
    /// A file with one token per line. Its holders may read `/metrics` and nothing else. Named clients may not read `/metrics`, because it names all roots.
    metrics_tokens_file: Option<PathBuf> = None, key "server.metrics_tokens_file", read_by secret_path, on_change Reload;
    /// Which halves of a reply are sent.
    replies: ReplyPolicy = ReplyPolicy::Auto, key "server.replies", flag "replies" "HALVES", on_change Reload;
    /// How the text half of a reply is written.
    text: TextForm = TextForm::Compact, key "server.text", on_change Reload;
    /// Whether the `root` argument is also asked for as a header, so that a proxy can route by it.
    root_header: bool = true, key "server.root_header", on_change Reload;

    /// The issuer whose access tokens let clients in; none takes no access tokens. See [oauth.md](oauth.md).
    oauth: Option<OAuthSettings> = None, key "auth.oauth", on_change Reload;

    /// A directory on the shared file system for the locks, quotas and liveness of all replicas; inside a root only below `.mcp-filesystem`. `cluster: {}` is `.mcp-filesystem/cluster` of the only writable root; without `cluster` there is one machine. See [scale.md](scale.md).
    cluster_state_dir: Option<StateDir> = None, key "cluster.state_dir", otherwise "one machine", read_by super::config_file::state_dir;

    /// How long a call may take; `grep`, `glob` and `watch` take as long as they ask for, within `limits.search_timeout`.
    request_timeout: Duration = Duration::from_secs(30),
        key "limits.request_timeout", flag "request-timeout" "SECONDS", env "FS_REQUEST_TIMEOUT", within TIMEOUT, on_change Reload;
    /// The longest that `grep` and `glob` may take and `watch` may wait, whatever `timeout_seconds` they ask for; what was found by then is returned.
    search_timeout: Duration = Duration::from_secs(300), key "limits.search_timeout", within TIMEOUT, on_change Reload;
    /// How many bytes `grep` and `glob` may remember of the files and directories they meet, so that they need not read them again; 0 remembers nothing.
    search_memory: u64 = 67_108_864, key "limits.search_memory", within MEMORY, on_change Reload;
    /// The most bytes of content one reply holds; for files that `workspace` reads whole it is `max_full_read_size`, for `memory` 100 MB unless this is set.
    max_file_size: u64 = 10_485_760,
        key "limits.max_file_size", flag "max-file-size" "BYTES", env "FS_MAX_FILE_SIZE", within CONTENT, on_change Reload;
    /// How many calls run at once; others wait. Searches, hashes, listings, copies and removals of trees get three quarters at most.
    max_concurrent_calls: usize = 256, key "limits.max_concurrent_calls", within COUNT, on_change Reload;
    /// How many bytes of request bodies, replies, session streams and uploads are held at once; a request beyond it waits, then gets 503.
    max_held_bytes: u64 = 268_435_456, key "limits.max_held_bytes", within CONTENT;
    /// How many of them one client may have (its token, else its address); a request beyond it waits, then gets 429.
    max_held_bytes_per_client: u64 = 33_554_432, key "limits.max_held_bytes_per_client", within CONTENT;
    /// How long a person may take to confirm a call that `roots[].confirm` asks about.
    confirm_timeout: Duration = Duration::from_secs(300), key "limits.confirm_timeout", within TIMEOUT, on_change Reload;
    /// The call rate of each client; unlimited if not set.
    rate: Option<CallRate> = None, key "limits.rate", on_change Reload;

    /// The address of the operator's page, separate from MCP; no page if not set.
    admin_listen: Option<SocketAddr> = None, key "admin.listen";
    /// A file with one token a line: every request to the page's interface needs one. Read again on SIGHUP.
    admin_token_file: Option<PathBuf> = None, key "admin.token_file", read_by secret_path, on_change Reload;

    /// Whether the process locks itself into its roots.
    landlock: Landlock = Landlock::Auto, key "sandbox.landlock";

    /// The least important log lines that are written.
    log_level: LogLevel = LogLevel::Info, key "log.level", flag "log-level" "LEVEL", env "FS_LOG_LEVEL";
    /// How a log line is written.
    log_format: LogFormat = LogFormat::Auto, key "log.format";
    /// A file that every call is also recorded in.
    audit_file: Option<PathBuf> = None, key "log.audit_file";
    /// What happens to changes while the audit file cannot be written, for example on a full disk.
    audit_on_failure: AuditOnFailure = AuditOnFailure::Refuse, key "log.audit_on_failure";
    /// How many seconds after a line the hash of the audit file's last line is written to the ordinary log, so that a cut end can be proved; 0 never does it.
    audit_head_every: Duration = Duration::from_secs(300), key "log.audit_head_every", within PAUSE;
}

/// A row of the table: a key of a map inside a setting.
pub(crate) struct InnerKey {
    /// Where it is in the file.
    pub(crate) key: &'static str,
    /// The kind of value.
    pub(crate) kind: &'static str,
    /// The bounds of a number.
    pub(crate) bounds: Option<Bounds>,
    /// What applies if it is missing.
    pub(crate) absent: Absent,
    /// Its meaning.
    pub(crate) meaning: &'static str,
}

/// What a missing key of a map means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Absent {
    /// A mistake; this is what was expected.
    Mistake(&'static str),
    /// This applies.
    Default(&'static str),
}

impl InnerKey {
    /// The key in its own map.
    pub(crate) fn name(&self) -> &'static str {
        self.key.rsplit('.').next().unwrap_or(self.key)
    }

    /// The names of all keys of its map.
    pub(crate) fn siblings(&self) -> Vec<&'static str> {
        let map_of = |key: &'static str| key.rsplit_once('.').map(|(map, _)| map);
        let own = INNER_KEYS.iter();
        let own = own.filter(|other| map_of(other.key) == map_of(self.key));
        own.map(InnerKey::name).collect()
    }

    /// The bounds of a number.
    pub(crate) fn bounds(&self) -> Bounds {
        self.bounds.clone().unwrap_or(0..=u64::MAX)
    }

    /// The expectation in the message about a missing key.
    pub(crate) fn expected(&self) -> &'static str {
        match self.absent {
            Absent::Mistake(words) | Absent::Default(words) => words,
        }
    }
}

macro_rules! inner_keys {
    (@optional) => { None };
    (@optional $value:expr) => { Some($value) };
    ($(
        $(#[doc = $doc:literal])*
        $name:ident = $key:literal, $kind:literal $(within $bounds:ident)?, $absent:ident $words:literal;
    )*) => {
        $(
            $(#[doc = $doc])*
            pub(crate) const $name: InnerKey = InnerKey {
                key: $key,
                kind: $kind,
                bounds: inner_keys!(@optional $($bounds)?),
                absent: Absent::$absent($words),
                meaning: concat!($($doc),*).trim_ascii(),
            };
        )*

        /// The keys of maps inside settings, each under the key of its setting.
        pub(crate) const INNER_KEYS: &[InnerKey] = &[$($name),*];
    };
}

inner_keys! {
    /// What clients call the root; at most 128 bytes, each name once.
    ROOT_NAME = "roots[].name", "text", Mistake "a name that clients use";
    /// The directory. It has to exist and to be readable by the server's user.
    ROOT_PATH = "roots[].path", "path", Mistake "a directory";
    /// The tools that may be used in the root: `"*"` for all, `copy` for that tool in every set, `files.copy` for that of one set, `files.*` for all of one set. `list_roots` is always there and cannot be named.
    ROOT_TOOLS = "roots[].allowed_tools", "list of tool names", Mistake "a list of tool names, or [\"*\"]";
    /// Refuses every tool that changes anything, whatever `allowed_tools` says.
    ROOT_READ_ONLY = "roots[].read_only", "`true` or `false`", Default "`false`";
    /// Accepts absolute host paths that lead into the root, unless their first component is an entry of the root. Always on for roots from the command line.
    ROOT_HOST_PATHS = "roots[].host_paths", "`true` or `false`", Default "`false`";
    /// What the root may hold at most: one of the two keys below, or both.
    ROOT_QUOTA = "roots[].quota", "map or `null`", Default "`null`";
    /// Bytes of all its files.
    QUOTA_BYTES = "roots[].quota.max_bytes", "bytes, also `10MB` or `1GiB`" within QUOTA, Default "no limit";
    /// The number of its files and directories.
    QUOTA_FILES = "roots[].quota.max_files", "number" within QUOTA, Default "no limit";
    /// What does not exist in the root for any tool or client: `secrets` for the shipped list of names that usually hold secrets, or a list of globs from the root (`build/**`, `**/*.key`), in which `secrets` may stand too and `!` makes an exception. The last glob that matches decides. See [secrets.md](secrets.md).
    ROOT_DENY = "roots[].deny", "`secrets` or list of globs", Default "`[]`";
    /// Keeps what changes replace or remove, so that they can be seen and undone: `on`, `off`, or a map of the keys below. Read-only roots have none.
    ROOT_HISTORY = "roots[].history", "`on`, `off` or map", Default "`on`";
    /// Where it is kept: `auto` is the server's state directory (`$STATE_DIRECTORY`, `$XDG_STATE_HOME/mcp-filesystem`, `~/.local/state/mcp-filesystem`) if that is on the root's file system, else the root; `root` is `.mcp-filesystem` in the root; or a directory. With `cluster` it is always in the root, where all replicas find it.
    HISTORY_PLACE = "roots[].history.place", "`auto`, `root` or path", Default "`auto`";
    /// How long a change is kept: seconds, or a number with `s`, `m`, `h` or `d`.
    HISTORY_KEEP = "roots[].history.keep", "duration", Default "`7d`";
    /// How many bytes of old content are kept; the oldest goes first.
    HISTORY_BYTES = "roots[].history.max_bytes", "bytes, also `10MB` or `1GiB`" within QUOTA, Default "`1073741824`";
    /// How many changes are kept.
    HISTORY_CHANGES = "roots[].history.max_changes", "number" within COUNT, Default "`100000`";
    /// Lets a client undo what others changed; otherwise each undoes its own changes.
    HISTORY_UNDO_ANY = "roots[].history.undo_any", "`true` or `false`", Default "`false`";
    /// Asks a person (by the client's elicitation) before a call does more than the keys below let pass. A client that cannot ask is refused. See [security.md](security.md#asking-a-person-first).
    ROOT_CONFIRM = "roots[].confirm", "map or `null`", Default "`null`";
    /// How many files a call may remove unasked; 0 asks about each.
    CONFIRM_REMOVE = "roots[].confirm.remove", "number" within MANY, Default "any number";
    /// How many files a call may overwrite, edit or patch unasked; 0 asks about each.
    CONFIRM_OVERWRITE = "roots[].confirm.overwrite", "number" within MANY, Default "any number";
    /// The tools whose changes always ask, named as in `allowed_tools`.
    CONFIRM_TOOLS = "roots[].confirm.tools", "list of tool names", Default "`[]`";
    /// What log, audit, history and metrics call the client; each name once. On standard input and output the caller is the client called `stdio`, if there is one.
    CLIENT_NAME = "clients[].name", "text", Mistake "the name of a client";
    /// Digests of the tokens that are its own, each `sha256:` and 64 hex digits; `mcp-filesystem token NAME` makes a token and its digest.
    CLIENT_TOKENS = "clients[].tokens", "list of digests", Default "`[]`";
    /// The access tokens that are its own: `{scope: "files:read"}`, `{subject: alice}` or `{claim: {department: docs}}`.
    CLIENT_OAUTH = "clients[].oauth", "map", Default "none";
    /// A scope that the token has.
    CLIENT_OAUTH_SCOPE = "clients[].oauth.scope", "text", Default "one of the three";
    /// The subject of the token (`sub`).
    CLIENT_OAUTH_SUBJECT = "clients[].oauth.subject", "text", Default "one of the three";
    /// A claim of the token and its value.
    CLIENT_OAUTH_CLAIM = "clients[].oauth.claim", "map of one claim", Default "one of the three";
    /// The roots it may use, each with what it may do there; any other root does not exist for it. `{}` is none, `NAME: {}` everything that the root allows.
    CLIENT_ROOTS = "clients[].roots", "map of root names", Mistake "the roots it may use, such as {workspace: {rights: [read]}}";
    /// The tools it may use in the root, inside the root's own `allowed_tools`; written the same way.
    CLIENT_ROOT_TOOLS = "clients[].roots.NAME.tools", "list of tool names", Default "`[\"*\"]`";
    /// Globs on the path from the root: what exists for it. The last match decides; `!` marks an exception. A list with only exceptions shows everything else.
    CLIENT_ROOT_PATHS = "clients[].roots.NAME.paths", "list of globs", Default "everything";
    /// What it may do to files: `read` (always needed), `create`, `change`, `remove`. A move removes at its source and creates at its destination.
    CLIENT_ROOT_RIGHTS = "clients[].roots.NAME.rights", "list of words", Default "`[read, create, change, remove]`";
    /// The tool sets it may use.
    CLIENT_TOOLSETS = "clients[].toolsets", "list of words", Default "every set that is served";
    /// How many calls it may make.
    CLIENT_RATE = "clients[].rate", "map", Default "what `limits.rate` says";
    /// Calls a second in the long run.
    CLIENT_RATE_SECOND = "clients[].rate.per_second", "number" within COUNT, Mistake "calls a second";
    /// The burst: calls allowed at once after a pause.
    CLIENT_RATE_BURST = "clients[].rate.burst", "number" within COUNT, Mistake "calls at once";
    /// How many of its calls run at once; further ones are refused.
    CLIENT_MAX_CALLS = "clients[].max_calls", "number" within COUNT, Default "no limit of its own";
    /// The certificate chain, PEM. Read again on SIGHUP.
    TLS_CERT = "server.tls.cert", "path", Mistake "a certificate file";
    /// The private key, PEM. Read again on SIGHUP.
    TLS_KEY = "server.tls.key", "path", Mistake "a key file";
    /// The issuer, letter for letter as its tokens name it (`iss`).
    OAUTH_ISSUER = "auth.oauth.issuer", "address", Mistake "the address of the issuer";
    /// Where clients see this server. It is an audience that tokens may have, and so is the address of an endpoint (for example `https://files.example.org/mcp/workspace`) at that endpoint.
    OAUTH_PUBLIC_URL = "auth.oauth.public_url", "address", Mistake "the address that clients use for this server";
    /// Further audiences (`aud`) that tokens for this server may have, for issuers that do not take the address of a resource.
    OAUTH_AUDIENCE = "auth.oauth.audience", "list of text", Default "`[]`";
    /// Where the issuer's public keys are: https, or plain http on this machine. They are fetched at the start, every hour, and when a token names a key that is not there, at most once a minute.
    OAUTH_JWKS_URI = "auth.oauth.jwks_uri", "address", Default "this or `jwks_file`";
    /// A file with the issuer's public keys (a JWK Set) instead. Read again on SIGHUP.
    OAUTH_JWKS_FILE = "auth.oauth.jwks_file", "path", Default "this or `jwks_uri`";
    /// Scopes, each with the name of the client that a token with it stands for; the first that a token has decides. Clients can also be chosen by `clients[].oauth`.
    OAUTH_SCOPES = "auth.oauth.scopes", "map of client names", Default "`{}`";
    /// Calls a second in the long run.
    RATE_PER_SECOND = "limits.rate.per_second", "number" within COUNT, Mistake "calls a second";
    /// The burst: calls allowed at once after a pause.
    RATE_BURST = "limits.rate.burst", "number" within COUNT, Mistake "calls at once";
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
            host: "low".parse().ok(),
            ..Partial::default()
        };
        let settings = high.or(low).complete();
        assert_eq!(settings.port, 1);
        assert_eq!(&*settings.host, "low");
        assert_eq!(settings.max_full_read_size, 1_048_576);
    }

    #[test]
    fn an_explicit_nothing_beats_a_lower_something() {
        let high = Partial {
            rate: Some(None),
            ..Partial::default()
        };
        let low = Partial {
            rate: Some(Some(CallRate {
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
        assert_eq!(&*settings.host, "0.0.0.0");
        assert_eq!(settings.port, 8091);
        assert_eq!(settings.toolsets, [Toolset::Workspace]);
        assert_eq!(settings.max_file_size, 10_485_760);
        assert_eq!(settings.request_timeout, Duration::from_secs(30));
        assert_eq!(settings.max_body_size, 16_777_216);
        assert_eq!(settings.max_connections, 1024);
        assert_eq!(settings.max_sessions, 10_000);
        assert_eq!(settings.max_concurrent_calls, 256);
        assert_eq!(settings.guide_cache_size, 67_108_864);
    }
}
