//! The config file: YAML in, partial settings out, and every mistake in one clear line.
//!
//! Each key is read in exactly one place below; what is left over when a map is closed is unknown.
//! Nothing here touches the directories the file names: that is for whoever opens the roots.

mod file;
mod reader;
mod yaml;

use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub(crate) use file::{ConfigFile, read};

use super::error::{KeyPath, SettingsError, quoted};
use super::{
    AllowedTools, KnownTools, OnMissingRoot, Partial, Quota, Rate, RootAccess, RootSettings, Tls,
    Toolset, Transport, bounds, tools_of,
};
use reader::{Field, Result};
use yaml::YamlValue;

/// The tool that is always there; no allowlist has a say in it.
const ALWAYS_AVAILABLE: &str = "list_roots";

/// The longest name of a root, in bytes: it travels in a header.
const MAX_NAME: usize = 128;

/// Reads the text of a config file. Relative paths in it are relative to `directory`.
pub(crate) fn parse(text: &str, directory: &Path, known: KnownTools<'_>) -> Result<Partial> {
    let node = YamlValue::parse(text)?;
    FileReader { directory, known }.partial(&Field::top(&node))
}

/// What reading a file needs to know besides its text.
struct FileReader<'a> {
    directory: &'a Path,
    known: KnownTools<'a>,
}

impl FileReader<'_> {
    fn partial(&self, top: &Field<'_>) -> Result<Partial> {
        let mut section = top.section()?;
        let mut partial = Partial {
            // A server with a config file is one that others connect to.
            transport: Some(Transport::Http),
            host: section.read("host", host)?,
            port: section.read("port", port)?,
            max_full_read_size: section.read("max_full_read_size", content_size)?,
            toolsets: section.read("toolsets", toolsets)?,
            roots: section.read("roots", |field| self.roots(&field))?,
            durability: section.read("durability", |field| field.word("durability"))?,
            ..Partial::default()
        };
        partial.files_root = section
            .read("files", |field| single_root(&field, &partial))?
            .flatten();
        partial.memory_root = section
            .read("memory", |field| single_root(&field, &partial))?
            .flatten();
        section.read("guide", |field| self.guide(&field, &mut partial))?;
        section.read("server", |field| self.server(&field, &mut partial))?;
        section.read("limits", |field| limits(&field, &mut partial))?;
        section.read("sandbox", |field| sandbox(&field, &mut partial))?;
        section.read("log", |field| self.log(&field, &mut partial))?;
        section.finish()?;
        Ok(partial)
    }

    fn roots(&self, field: &Field<'_>) -> Result<Vec<RootSettings>> {
        let items = field.list()?;
        if items.is_empty() {
            return Err(empty_list(field, "at least one root"));
        }
        let mut roots: Vec<RootSettings> = Vec::new();
        for item in &items {
            let root = self.root(item)?;
            if let Some(first) = roots.iter().position(|other| other.name == root.name) {
                return Err(duplicate_root(field.path(), first, roots.len(), &root.name));
            }
            roots.push(root);
        }
        Ok(roots)
    }

    fn root(&self, field: &Field<'_>) -> Result<RootSettings> {
        let mut section = field.section()?;
        let root = RootSettings {
            name: section.require("name", "a name that clients use", |field| root_name(&field))?,
            path: section.require("path", "a directory", |field| self.path(&field))?,
            origin: field.path().key("path").to_string(),
            tools: section.require(
                "allowed_tools",
                "a list of tool names, or [\"*\"]",
                |field| self.allowed_tools(&field),
            )?,
            access: section
                .read("read_only", access)?
                .unwrap_or(RootAccess::ReadWrite),
            quota: section
                .read("quota", |field| field.nullable(|field| quota(&field)))?
                .flatten(),
            on_missing: OnMissingRoot::Fail,
        };
        section.finish()?;
        Ok(root)
    }

    fn path(&self, field: &Field<'_>) -> Result<PathBuf> {
        field.text().map(|text| self.directory.join(text))
    }

    fn allowed_tools(&self, field: &Field<'_>) -> Result<AllowedTools> {
        let names = field.list_of(|item| self.tool_names(item))?;
        let names: BTreeSet<String> = names.into_iter().flatten().collect();
        Ok(if names.contains("*") {
            AllowedTools::All
        } else {
            AllowedTools::Only(names)
        })
    }

    /// The names one entry stands for: `files.*` is every tool of that set.
    fn tool_names(&self, field: &Field<'_>) -> Result<Vec<String>> {
        let text = field.text()?;
        let (toolset, tool) = match text.split_once('.') {
            Some((toolset, tool)) => (Some(toolset), tool),
            None => (None, text),
        };
        if tool == ALWAYS_AVAILABLE && toolset.is_none_or(|set| set == Toolset::Workspace.name()) {
            let path = field.path().clone();
            return Err(SettingsError::AlwaysAvailable {
                path,
                tool: ALWAYS_AVAILABLE,
            });
        }
        if !self.is_known(toolset, tool) {
            return Err(field.unknown("tool", text, self.tool_words(toolset)));
        }
        Ok(match toolset {
            Some(set) if tool == "*" => narrowed(set, tools_of(set, self.known)),
            _ => vec![text.to_owned()],
        })
    }

    fn is_known(&self, toolset: Option<&str>, tool: &str) -> bool {
        let mut sets = self
            .known
            .iter()
            .filter(|(set, _)| toolset.is_none_or(|name| name == *set));
        sets.any(|(_, tools)| tool == "*" || tools.contains(&tool))
    }

    /// The names to choose from: those of the set that was named, or else the plain names of all.
    fn tool_words(&self, toolset: Option<&str>) -> Vec<String> {
        let mut words = vec!["*".to_owned()];
        match toolset.map(|set| (set, tools_of(set, self.known))) {
            Some((set, tools)) if !tools.is_empty() => words.extend(narrowed(set, tools)),
            _ => {
                let all = self.known.iter().flat_map(|(_, tools)| tools.iter());
                words.extend(all.map(|tool| (*tool).to_owned()));
                let mut seen = BTreeSet::new();
                words.retain(|word| seen.insert(word.clone()));
            }
        }
        words
    }

    fn guide(&self, field: &Field<'_>, partial: &mut Partial) -> Result<()> {
        let mut section = field.section()?;
        partial.guide_project_root = section
            .read("project_root", |field| self.path(&field))?
            .map(Some);
        partial.guide_allowed_paths = section.read("allowed_paths", |field| texts(&field))?;
        partial.guide_cache_size =
            section.read("cache_size", |field| field.number(bounds::QUOTA))?;
        partial.guide_cache_ttl =
            section.read("cache_ttl", |field| seconds(&field, bounds::TTL))?;
        partial.guide_sampling_timeout =
            section.read("sampling_timeout", |field| seconds(&field, bounds::TIMEOUT))?;
        partial.guide_state_key_file = section.read("state_key_file", |field| {
            field.secret().nullable(|field| self.path(&field))
        })?;
        section.finish()
    }

    fn server(&self, field: &Field<'_>, partial: &mut Partial) -> Result<()> {
        let mut section = field.section()?;
        partial.allowed_hosts = section.read("allowed_hosts", |field| texts(&field))?;
        partial.allowed_origins = section.read("allowed_origins", |field| field.list_of(origin))?;
        partial.max_body_size = section.read("max_body_size", content_size)?;
        partial.max_connections = section.read("max_connections", count)?;
        partial.client_timeout =
            section.read("client_timeout", |field| seconds(&field, bounds::TIMEOUT))?;
        partial.sessions = section.read("sessions", |field| field.word("choice"))?;
        partial.max_sessions = section.read("max_sessions", count)?;
        partial.tls = section.read("tls", |field| field.nullable(|field| self.tls(&field)))?;
        partial.bearer_tokens_file = section.read("bearer_tokens_file", |field| {
            field.secret().nullable(|field| self.path(&field))
        })?;
        partial.replies = section.read("replies", |field| field.word("choice"))?;
        partial.root_header = section.read("root_header", |field| field.boolean())?;
        section.finish()
    }

    fn tls(&self, field: &Field<'_>) -> Result<Tls> {
        let mut section = field.section()?;
        let tls = Tls {
            cert: section.require("cert", "a certificate file", |field| self.path(&field))?,
            key: section.require("key", "a key file", |field| self.path(&field.secret()))?,
        };
        section.finish()?;
        Ok(tls)
    }

    fn log(&self, field: &Field<'_>, partial: &mut Partial) -> Result<()> {
        let mut section = field.section()?;
        partial.log_level = section.read("level", |field| field.word("level"))?;
        partial.log_format = section.read("format", |field| field.word("format"))?;
        partial.audit_file = section.read("audit_file", |field| {
            field.nullable(|field| self.path(&field))
        })?;
        section.finish()
    }
}

fn narrowed(set: &str, tools: &[&str]) -> Vec<String> {
    tools.iter().map(|tool| format!("{set}.{tool}")).collect()
}

fn limits(field: &Field<'_>, partial: &mut Partial) -> Result<()> {
    let mut section = field.section()?;
    partial.request_timeout =
        section.read("request_timeout", |field| seconds(&field, bounds::TIMEOUT))?;
    partial.max_file_size = section.read("max_file_size", content_size)?;
    partial.max_concurrent_calls = section.read("max_concurrent_calls", count)?;
    partial.rate = section.read("rate", |field| field.nullable(|field| rate(&field)))?;
    section.finish()
}

fn sandbox(field: &Field<'_>, partial: &mut Partial) -> Result<()> {
    let mut section = field.section()?;
    partial.landlock = section.read("landlock", |field| field.word("choice"))?;
    section.finish()
}

fn rate(field: &Field<'_>) -> Result<Rate> {
    let mut section = field.section()?;
    let rate = Rate {
        per_second: section.require("per_second", "calls a second", |field| small(&field))?,
        burst: section.require("burst", "calls at once", |field| small(&field))?,
    };
    section.finish()?;
    Ok(rate)
}

fn quota(field: &Field<'_>) -> Result<Quota> {
    let mut section = field.section()?;
    let quota = Quota {
        max_bytes: section.read("max_bytes", |field| field.number(bounds::QUOTA))?,
        max_files: section.read("max_files", |field| field.number(bounds::QUOTA))?,
    };
    section.finish()?;
    if quota.max_bytes.is_none() && quota.max_files.is_none() {
        return Err(field.unexpected("max_bytes, max_files or both"));
    }
    Ok(quota)
}

/// `files: { root: NAME }`, where NAME is one of the file's own roots.
fn single_root(field: &Field<'_>, partial: &Partial) -> Result<Option<Option<String>>> {
    let mut section = field.section()?;
    let name = section.read("root", |field| one_of_the_roots(&field, partial))?;
    section.finish()?;
    Ok(name.map(Some))
}

fn one_of_the_roots(field: &Field<'_>, partial: &Partial) -> Result<String> {
    let name = field.text()?;
    let names = partial.roots.iter().flatten().map(|root| root.name.clone());
    let names: Vec<String> = names.collect();
    if names.iter().any(|known| known == name) {
        return Ok(name.to_owned());
    }
    Err(field.unknown("root", name, names))
}

fn host(field: Field<'_>) -> Result<String> {
    let host = field.text()?;
    if is_host(host) {
        Ok(host.to_owned())
    } else {
        Err(field.unexpected(HOST))
    }
}

/// What a host has to be, in words.
pub(crate) const HOST: &str = "an IP address or a host name, without a port";

/// Tells whether text can be the address to listen on: an IP address, or a name that may resolve.
pub(crate) fn is_host(host: &str) -> bool {
    let is_name = |host: &str| {
        let allowed =
            |character: char| character.is_ascii_alphanumeric() || ".-_".contains(character);
        !host.is_empty() && host.chars().all(allowed)
    };
    host.parse::<std::net::IpAddr>().is_ok() || is_name(host)
}

fn port(field: Field<'_>) -> Result<u16> {
    let port = field.number(bounds::PORT)?;
    Ok(u16::try_from(port).unwrap_or(u16::MAX))
}

fn toolsets(field: Field<'_>) -> Result<Vec<Toolset>> {
    let items = field.list()?;
    if items.is_empty() {
        return Err(empty_list(&field, "at least one tool set"));
    }
    let mut sets: Vec<Toolset> = Vec::new();
    for item in &items {
        let set: Toolset = item.word("tool set")?;
        if let Some(first) = sets.iter().position(|other| *other == set) {
            let first = field.path().item(first);
            let value = quoted(set.name());
            return Err(SettingsError::Duplicate {
                path: item.path().clone(),
                what: "tool set",
                value,
                first,
            });
        }
        sets.push(set);
    }
    Ok(sets)
}

fn root_name(field: &Field<'_>) -> Result<String> {
    let name = field.text()?;
    if name.trim() == name && name.len() <= MAX_NAME {
        return Ok(name.to_owned());
    }
    Err(field.unexpected(format!(
        "a name of at most {MAX_NAME} bytes without spaces around it"
    )))
}

fn duplicate_root(roots: &KeyPath, first: usize, second: usize, name: &str) -> SettingsError {
    SettingsError::Duplicate {
        path: roots.item(second).key("name"),
        what: "root name",
        value: quoted(name),
        first: roots.item(first).key("name"),
    }
}

fn empty_list(field: &Field<'_>, expected: &str) -> SettingsError {
    let found = "an empty list".to_owned();
    SettingsError::Unexpected {
        path: field.path().clone(),
        expected: expected.to_owned(),
        found,
    }
}

fn access(field: Field<'_>) -> Result<RootAccess> {
    Ok(if field.boolean()? {
        RootAccess::ReadOnly
    } else {
        RootAccess::ReadWrite
    })
}

fn origin(field: &Field<'_>) -> Result<String> {
    let text = field.text()?;
    let rest = text.split_once("://").map(|(_, rest)| rest);
    if rest.is_some_and(|rest| !rest.is_empty() && !rest.contains('/')) {
        return Ok(text.to_owned());
    }
    Err(field.unexpected("an origin like https://example.org or http://localhost:3000"))
}

fn texts(field: &Field<'_>) -> Result<Vec<String>> {
    field.list_of(|item| item.text().map(str::to_owned))
}

fn content_size(field: Field<'_>) -> Result<u64> {
    field.number(bounds::CONTENT)
}

fn count(field: Field<'_>) -> Result<usize> {
    let count = field.number(bounds::COUNT)?;
    Ok(usize::try_from(count).unwrap_or(usize::MAX))
}

fn small(field: &Field<'_>) -> Result<u32> {
    let number = field.number(bounds::COUNT)?;
    Ok(u32::try_from(number).unwrap_or(u32::MAX))
}

fn seconds(field: &Field<'_>, range: RangeInclusive<u64>) -> Result<Duration> {
    field.number(range).map(Duration::from_secs)
}

#[cfg(test)]
mod tests;
