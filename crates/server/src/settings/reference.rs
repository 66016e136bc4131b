//! The reference of the config file, `docs/configuration.md`: every key with its type, default, bounds and meaning.
//!
//! Meanings and defaults are those of [`Settings`]; here stands only where a setting is in the file. The tests compare
//! this with the reader of the file, key by key and bound by bound.

use std::fmt::Write;
use std::ops::RangeInclusive;

use super::{Described, Settings, bounds};

/// Where a setting stands in the file.
struct Key {
    key: &'static str,
    field: &'static str,
    bounds: Option<RangeInclusive<u64>>,
    /// What holds without the key, where that is no value.
    otherwise: Option<&'static str>,
}

const fn key(key: &'static str, field: &'static str) -> Key {
    Key {
        key,
        field,
        bounds: None,
        otherwise: None,
    }
}

const fn bounded(name: &'static str, field: &'static str, bounds: RangeInclusive<u64>) -> Key {
    Key {
        bounds: Some(bounds),
        ..key(name, field)
    }
}

const fn otherwise(name: &'static str, field: &'static str, otherwise: &'static str) -> Key {
    Key {
        otherwise: Some(otherwise),
        ..key(name, field)
    }
}

/// Every setting that the file can hold, in the order of the page.
const KEYS: &[Key] = &[
    key("host", "host"),
    bounded("port", "port", bounds::PORT),
    bounded("max_full_read_size", "max_full_read_size", bounds::CONTENT),
    key("toolsets", "toolsets"),
    otherwise("roots", "roots", "none: has to be given"),
    key("durability", "durability"),
    otherwise("files.root", "files_root", "the first root"),
    otherwise("memory.root", "memory_root", "the first root"),
    otherwise(
        "guide.project_root",
        "guide_project_root",
        "the current directory",
    ),
    key("guide.allowed_paths", "guide_allowed_paths"),
    bounded("guide.cache_size", "guide_cache_size", bounds::QUOTA),
    bounded("guide.cache_ttl", "guide_cache_ttl", bounds::TTL),
    bounded(
        "guide.sampling_timeout",
        "guide_sampling_timeout",
        bounds::TIMEOUT,
    ),
    key("guide.state_key_file", "guide_state_key_file"),
    key("server.allowed_hosts", "allowed_hosts"),
    key("server.allowed_origins", "allowed_origins"),
    bounded("server.max_body_size", "max_body_size", bounds::CONTENT),
    bounded("server.max_connections", "max_connections", bounds::COUNT),
    bounded("server.client_timeout", "client_timeout", bounds::TIMEOUT),
    key("server.sessions", "sessions"),
    bounded("server.max_sessions", "max_sessions", bounds::COUNT),
    key("server.tls", "tls"),
    key("server.bearer_tokens_file", "bearer_tokens_file"),
    key("server.replies", "replies"),
    key("server.root_header", "root_header"),
    bounded("limits.request_timeout", "request_timeout", bounds::TIMEOUT),
    bounded("limits.max_file_size", "max_file_size", bounds::CONTENT),
    bounded(
        "limits.max_concurrent_calls",
        "max_concurrent_calls",
        bounds::COUNT,
    ),
    key("limits.rate", "rate"),
    key("sandbox.landlock", "landlock"),
    key("log.level", "log_level"),
    key("log.format", "log_format"),
    key("log.audit_file", "audit_file"),
];

/// A key of a map inside a setting.
struct Inner {
    key: &'static str,
    kind: &'static str,
    default: &'static str,
    bounds: Option<RangeInclusive<u64>>,
    meaning: &'static str,
}

const REQUIRED: &str = "has to be given";

/// The keys of maps inside settings, each under the key of its setting.
const INNER: &[Inner] = &[
    Inner {
        key: "roots[].name",
        kind: "text",
        default: REQUIRED,
        bounds: None,
        meaning: "What clients call the root; at most 128 bytes, each name once.",
    },
    Inner {
        key: "roots[].path",
        kind: "path",
        default: REQUIRED,
        bounds: None,
        meaning: "The directory. It has to exist and to be readable by the server's user.",
    },
    Inner {
        key: "roots[].allowed_tools",
        kind: "list of tool names",
        default: REQUIRED,
        bounds: None,
        meaning: "The tools that may be used in the root: `\"*\"` for all, `copy` for that tool in every set, `files.copy` \
                  for that of one set, `files.*` for all of one set. `list_roots` is always there and cannot be named.",
    },
    Inner {
        key: "roots[].read_only",
        kind: "`true` or `false`",
        default: "`false`",
        bounds: None,
        meaning: "Refuses every tool that changes anything, whatever `allowed_tools` says.",
    },
    Inner {
        key: "roots[].quota",
        kind: "map or `null`",
        default: "`null`",
        bounds: None,
        meaning: "What the root may hold at most: one of the two keys below, or both.",
    },
    Inner {
        key: "roots[].quota.max_bytes",
        kind: "number",
        default: "no limit",
        bounds: Some(bounds::QUOTA),
        meaning: "Bytes of all its files.",
    },
    Inner {
        key: "roots[].quota.max_files",
        kind: "number",
        default: "no limit",
        bounds: Some(bounds::QUOTA),
        meaning: "The number of its files and directories.",
    },
    Inner {
        key: "server.tls.cert",
        kind: "path",
        default: REQUIRED,
        bounds: None,
        meaning: "The certificate chain, PEM. Read again on SIGHUP.",
    },
    Inner {
        key: "server.tls.key",
        kind: "path",
        default: REQUIRED,
        bounds: None,
        meaning: "The private key, PEM. Read again on SIGHUP.",
    },
    Inner {
        key: "limits.rate.per_second",
        kind: "number",
        default: REQUIRED,
        bounds: Some(bounds::COUNT),
        meaning: "Calls a second in the long run.",
    },
    Inner {
        key: "limits.rate.burst",
        kind: "number",
        default: REQUIRED,
        bounds: Some(bounds::COUNT),
        meaning: "Calls at once after a pause.",
    },
];

/// The sections of the file and what each is about.
const SECTIONS: &[(&str, &str)] = &[
    ("", "At the top of the file."),
    (
        "roots",
        "One entry a directory. Clients see names, never paths.",
    ),
    ("files", "The tool set `files` works in one root."),
    ("memory", "The tool set `memory` works in one root."),
    ("guide", "The tool set `guide`: files on the agent's side."),
    (
        "server",
        "HTTP: who is let in, and how much he may ask for.",
    ),
    ("limits", "What one call, and one client, may cost."),
    ("sandbox", "The second wall around the process."),
    ("log", "What is written about calls."),
];

const HEAD: &str = "\
# Configuration

<!-- Generated by `mcp-filesystem settings`; `UPDATE_DOCS=1 cargo test -p mcp-filesystem --test docs` writes it anew. -->

The config file is YAML: `mcp-filesystem --config FILE`, or the environment variable `MCP_FILESYSTEM_CONFIG`. Only `roots` has to be
there. A flag wins over an environment variable, that over the file, that over the default. Relative paths start from the file's
directory. An unknown key, a value of the wrong type or out of bounds, a missing directory: one line that names the key, and exit code 1.
`mcp-filesystem check --config FILE` says in plain words what a file does.

On SIGHUP the tokens and certificates are read again and the audit file is opened anew; everything else holds until the
process ends. [config/mcp-filesystem.yaml](../config/mcp-filesystem.yaml) is a file to begin with.
";

/// Writes the page.
pub(crate) fn page() -> String {
    let described = Settings::described();
    let mut page = HEAD.to_owned();
    for (section, about) in SECTIONS {
        let title = match *section {
            "" => "The top level".to_owned(),
            section => format!("`{section}`"),
        };
        push(&mut page, format_args!("\n## {title}\n\n{about}\n\n"));
        page += "| key | type | default | meaning |\n|---|---|---|---|\n";
        for key in KEYS.iter().filter(|key| section_of(key.key) == *section) {
            row(&mut page, key, &described);
            inner_rows(&mut page, &format!("{}.", key.key));
        }
        if *section == "roots" {
            inner_rows(&mut page, "roots[].");
        }
    }
    page
}

/// The section a key is shown in: that of its first part, where it has several.
fn section_of(key: &str) -> &str {
    key.split_once('.').map_or("", |(section, _)| section)
}

fn row(page: &mut String, key: &Key, described: &[Described]) {
    let Some(setting) = described.iter().find(|one| one.field == key.field) else {
        return;
    };
    let default = match key.otherwise {
        Some(otherwise) => otherwise.to_owned(),
        None => format!("`{}`", setting.default),
    };
    // Where leaving the key out means something of its own, nothing else can say it.
    let kind = match key.otherwise {
        Some(_) => setting.kind.trim_end_matches(" or `null`"),
        None => &setting.kind,
    };
    let kind = bounded_kind(kind, key.bounds.as_ref());
    let meaning = format!("{}{}", setting.meaning, words(setting));
    push(
        page,
        format_args!("| `{}` | {kind} | {default} | {meaning} |\n", key.key),
    );
}

/// The rows of the keys inside a setting.
fn inner_rows(page: &mut String, prefix: &str) {
    for inner in INNER.iter().filter(|inner| inner.key.starts_with(prefix)) {
        let kind = bounded_kind(inner.kind, inner.bounds.as_ref());
        let (key, default, meaning) = (inner.key, inner.default, inner.meaning);
        push(
            page,
            format_args!("| `{key}` | {kind} | {default} | {meaning} |\n"),
        );
    }
}

fn bounded_kind(kind: &str, bounds: Option<&RangeInclusive<u64>>) -> String {
    match bounds {
        Some(bounds) => format!("{kind}, {} to {}", bounds.start(), bounds.end()),
        None => kind.to_owned(),
    }
}

fn words(setting: &Described) -> String {
    let words = setting.words.iter();
    let lines = words.map(|(word, help)| format!("<br>`{word}`: {help}"));
    lines.collect()
}

/// Writing to a string cannot fail.
fn push(page: &mut String, text: std::fmt::Arguments<'_>) {
    let _ = page.write_fmt(text);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::known::KNOWN_TOOLS;
    use crate::settings::SettingsError;
    use crate::settings::config_file::parse;
    use crate::settings::{Partial, Transport};
    use std::path::Path;

    fn read(yaml: &str) -> Result<Partial, SettingsError> {
        parse(yaml, Path::new("/etc"), KNOWN_TOOLS)
    }

    #[test]
    fn every_setting_has_a_place_and_every_place_a_setting() {
        let fields: Vec<&str> = Settings::described().iter().map(|one| one.field).collect();
        // These two are never in the file.
        let of_the_file = fields
            .iter()
            .filter(|field| !["config_file", "transport"].contains(field));
        for field in of_the_file {
            let places = KEYS.iter().filter(|key| key.field == *field).count();
            assert_eq!(places, 1, "{field}");
        }
        for key in KEYS {
            assert!(fields.contains(&key.field), "{}", key.field);
        }
    }

    /// What the reader of the file knows in one map, with a word in it that it does not.
    fn known_in(yaml: &str) -> Vec<&'static str> {
        match read(yaml) {
            Err(SettingsError::UnknownKey { allowed, .. }) => allowed,
            other => panic!("{yaml}: {other:?}"),
        }
    }

    /// The last parts of the keys of this page in one map.
    fn told_in(map: &str) -> Vec<&'static str> {
        let own = KEYS.iter().map(|key| key.key);
        let all = own.chain(INNER.iter().map(|inner| inner.key));
        let mut told: Vec<&str> = all
            .filter_map(|key| match map {
                "" => key.split(['.', '[']).next(),
                map => key
                    .strip_prefix(map)?
                    .strip_prefix('.')
                    .filter(|rest| !rest.contains('.')),
            })
            .collect();
        told.sort_unstable();
        told.dedup();
        told
    }

    #[test]
    fn the_page_has_the_keys_that_the_reader_knows() {
        let root = "name: a, path: /a, allowed_tools: ['*']";
        let maps = [
            ("", "zzz: 1".to_owned()),
            ("roots[]", format!("roots: [{{{root}, zzz: 1}}]")),
            (
                "roots[].quota",
                format!("roots: [{{{root}, quota: {{zzz: 1}}}}]"),
            ),
            ("files", "files: {zzz: 1}".to_owned()),
            ("memory", "memory: {zzz: 1}".to_owned()),
            ("guide", "guide: {zzz: 1}".to_owned()),
            ("server", "server: {zzz: 1}".to_owned()),
            (
                "server.tls",
                "server: {tls: {cert: a, key: b, zzz: 1}}".to_owned(),
            ),
            ("limits", "limits: {zzz: 1}".to_owned()),
            (
                "limits.rate",
                "limits: {rate: {per_second: 1, burst: 1, zzz: 1}}".to_owned(),
            ),
            ("sandbox", "sandbox: {zzz: 1}".to_owned()),
            ("log", "log: {zzz: 1}".to_owned()),
        ];
        for (map, yaml) in maps {
            let mut known = known_in(&yaml);
            known.sort_unstable();
            assert_eq!(told_in(map), known, "{map}");
        }
    }

    /// A file with one key.
    fn file(key: &str, value: &str) -> String {
        match key.split_once('.') {
            Some((section, key)) => format!("{section}: {{{key}: {value}}}"),
            None => format!("{key}: {value}"),
        }
    }

    #[test]
    fn the_defaults_read_as_what_holds_without_them() {
        let plain = Partial {
            transport: Some(Transport::Http),
            ..Partial::default()
        };
        let described = Settings::described();
        for key in KEYS.iter().filter(|key| key.otherwise.is_none()) {
            let setting = described.iter().find(|one| one.field == key.field).unwrap();
            let read = read(&file(key.key, &setting.default)).unwrap();
            assert_ne!(read, plain, "{} is read", key.key);
            assert_eq!(read.complete(), plain.clone().complete(), "{}", key.key);
        }
    }

    #[test]
    fn the_bounds_are_the_reader_s() {
        for key in KEYS {
            let Some(bounds) = &key.bounds else { continue };
            let reads = |number: u64| read(&file(key.key, &number.to_string())).is_ok();
            assert!(
                reads(*bounds.start()) && reads(*bounds.end()),
                "{}",
                key.key
            );
            assert!(!reads(bounds.end() + 1), "{}", key.key);
            let below = bounds.start().checked_sub(1);
            assert!(below.is_none_or(|below| !reads(below)), "{}", key.key);
        }
    }

    #[test]
    fn the_page_shows_every_key_once() {
        let page = page();
        let keys = KEYS.iter().map(|key| key.key);
        for key in keys.chain(INNER.iter().map(|inner| inner.key)) {
            let row = format!("\n| `{key}` | ");
            assert_eq!(page.matches(&row).count(), 1, "{key}");
        }
    }
}
