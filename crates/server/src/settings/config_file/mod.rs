//! The config file: YAML in, partial settings out, and every mistake in one clear line.
//!
//! Which keys there are, [`super::table`] says; here is how the file is walked and how the settings that are more than a
//! plain value are read. Nothing here touches the directories the file names: that is for whoever opens the roots.

mod file;
mod reader;
mod yaml;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use sandbox::Quota;
use toolset::CallRate;

pub(crate) use file::{ConfigFile, read};
pub(crate) use reader::Field;

use super::choices::{Toolset, Transport};
use super::error::{KeyPath, SettingsError, quoted};
use super::table::{self, InnerKey};
use super::value::{Bounds, ReadContext, SettingValue};
use super::{
    AllowedTools, KnownTools, OnMissingRoot, Partial, RootAccess, RootSettings, Tls, tools_of,
};
use reader::Section;
use yaml::YamlValue;

/// The tool that is always available; no allowlist can name it.
const ALWAYS_AVAILABLE: &str = "list_roots";

/// The longest name of a root, in bytes: names are sent in a header.
const MAX_NAME: usize = 128;

/// Reads the text of a config file. Relative paths in it are relative to `directory`.
pub(crate) fn parse(
    text: &str,
    directory: &Path,
    known: KnownTools<'_>,
) -> Result<Partial, SettingsError> {
    let tree = YamlValue::parse(text)?;
    let mut file = ConfigReader {
        top: Field::top(&tree).section()?,
        section: "",
        open: None,
        directory,
        known,
    };
    let partial = Partial::from_file(&mut file)?;
    file.finish()?;
    Ok(Partial {
        // A server with a config file is one that others connect to.
        transport: Some(Transport::Http),
        ..partial
    })
}

/// A config file while its keys are read, one section after the other.
pub(crate) struct ConfigReader<'a> {
    top: Section<'a>,
    /// The section that is being read; empty at the top.
    section: &'static str,
    /// What the file has in that section, if anything.
    open: Option<Section<'a>>,
    directory: &'a Path,
    known: KnownTools<'a>,
}

impl ConfigReader<'_> {
    /// Reads the value of a key, if the setting has one and it is there.
    pub(crate) fn read<T>(
        &mut self,
        key: Option<&'static str>,
        bounds: Option<Bounds>,
        roots: Option<&[RootSettings]>,
        read: fn(&Field<'_>, &ReadContext<'_>) -> Result<T, SettingsError>,
    ) -> Result<Option<T>, SettingsError> {
        let Some(key) = key else { return Ok(None) };
        let context = ReadContext {
            directory: self.directory,
            known: self.known,
            roots: roots.unwrap_or_default(),
            bounds,
        };
        let (section, name) = key.split_once('.').unwrap_or(("", key));
        self.enter(section)?;
        let section = if section.is_empty() {
            Some(&mut self.top)
        } else {
            self.open.as_mut()
        };
        let value = section.map(|section| section.read(name, |field| read(&field, &context)));
        value.transpose().map(Option::flatten)
    }

    /// Goes to another section, which closes the one before.
    fn enter(&mut self, section: &'static str) -> Result<(), SettingsError> {
        if self.section == section {
            return Ok(());
        }
        if let Some(before) = self.open.take() {
            before.finish()?;
        }
        self.section = section;
        self.open = match section {
            "" => None,
            section => self.top.read(section, |field| field.section())?,
        };
        Ok(())
    }

    fn finish(mut self) -> Result<(), SettingsError> {
        self.enter("")?;
        self.top.finish()
    }
}

/// Reads the list of roots.
pub(crate) fn roots(
    field: &Field<'_>,
    context: &ReadContext<'_>,
) -> Result<Vec<RootSettings>, SettingsError> {
    let items = field.list()?;
    if items.is_empty() {
        return Err(empty_list(field, "at least one root"));
    }
    let mut roots: Vec<RootSettings> = Vec::new();
    for item in &items {
        let root = RootSettings::read(item, context)?;
        if let Some(first) = roots.iter().position(|other| other.name == root.name) {
            return Err(duplicate_root(field.path(), first, roots.len(), &root.name));
        }
        roots.push(root);
    }
    Ok(roots)
}

/// Types that are maps with keys of their own; no default holds one.
macro_rules! map_value {
    ($($type:ty, $read:ident;)*) => {$(
        impl SettingValue for $type {
            fn kind() -> String {
                "map".to_owned()
            }

            fn in_yaml(&self) -> String {
                "{}".to_owned()
            }

            fn read(field: &Field<'_>, context: &ReadContext<'_>) -> Result<$type, SettingsError> {
                let mut section = field.section()?;
                let value = $read(field, &mut section, context)?;
                section.finish()?;
                Ok(value)
            }
        }
    )*};
}

map_value! {
    RootSettings, root;
    Tls, tls;
    CallRate, rate;
}

fn root(
    field: &Field<'_>,
    section: &mut Section<'_>,
    context: &ReadContext<'_>,
) -> Result<RootSettings, SettingsError> {
    Ok(RootSettings {
        name: section.require(&table::ROOT_NAME, |field| root_name(&field))?,
        path: section.require(&table::ROOT_PATH, |field| context.path(&field))?,
        origin: field.path().key("path").to_string(),
        tools: section.require(&table::ROOT_TOOLS, |field| allowed_tools(&field, context))?,
        access: section
            .read(table::ROOT_READ_ONLY.name(), |field| access(&field))?
            .unwrap_or(RootAccess::ReadWrite),
        quota: section
            .read(table::ROOT_QUOTA.name(), |field| {
                field.nullable(|field| quota(&field))
            })?
            .flatten(),
        on_missing: OnMissingRoot::Fail,
    })
}

fn tls(
    _: &Field<'_>,
    section: &mut Section<'_>,
    context: &ReadContext<'_>,
) -> Result<Tls, SettingsError> {
    Ok(Tls {
        cert: section.require(&table::TLS_CERT, |field| context.path(&field))?,
        key: section.require(&table::TLS_KEY, |field| context.path(&field.secret()))?,
    })
}

fn rate(
    _: &Field<'_>,
    section: &mut Section<'_>,
    _: &ReadContext<'_>,
) -> Result<CallRate, SettingsError> {
    let mut number = |key: &InnerKey| {
        let number = section.require(key, |field| field.number(key.bounds()));
        number.map(|number| u32::try_from(number).unwrap_or(u32::MAX))
    };
    Ok(CallRate {
        per_second: number(&table::RATE_PER_SECOND)?,
        burst: number(&table::RATE_BURST)?,
    })
}

fn quota(field: &Field<'_>) -> Result<Quota, SettingsError> {
    let mut section = field.section()?;
    let mut limit = |key: &InnerKey| section.read(key.name(), |field| field.number(key.bounds()));
    let quota = Quota {
        max_bytes: limit(&table::QUOTA_BYTES)?,
        max_files: limit(&table::QUOTA_FILES)?,
    };
    section.finish()?;
    if quota.max_bytes.is_none() && quota.max_files.is_none() {
        return Err(field.unexpected("max_bytes, max_files or both"));
    }
    Ok(quota)
}

fn allowed_tools(
    field: &Field<'_>,
    context: &ReadContext<'_>,
) -> Result<AllowedTools, SettingsError> {
    let names = field.list_of(|item| tool_names(item, context.known))?;
    let names: BTreeSet<String> = names.into_iter().flatten().collect();
    Ok(if names.contains("*") {
        AllowedTools::All
    } else {
        AllowedTools::Only(names)
    })
}

/// The names one entry stands for: `files.*` is every tool of that set.
fn tool_names(field: &Field<'_>, known: KnownTools<'_>) -> Result<Vec<String>, SettingsError> {
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
    if !is_known(known, toolset, tool) {
        return Err(field.unknown("tool", text, tool_words(known, toolset)));
    }
    Ok(match toolset {
        Some(set) if tool == "*" => narrowed(set, tools_of(set, known)),
        _ => vec![text.to_owned()],
    })
}

fn is_known(known: KnownTools<'_>, toolset: Option<&str>, tool: &str) -> bool {
    let mut sets = known
        .iter()
        .filter(|(set, _)| toolset.is_none_or(|name| name == *set));
    sets.any(|(_, tools)| tool == "*" || tools.contains(&tool))
}

/// The names to choose from: those of the set that was named, or else the plain names of all.
fn tool_words(known: KnownTools<'_>, toolset: Option<&str>) -> Vec<String> {
    let mut words = vec!["*".to_owned()];
    match toolset.map(|set| (set, tools_of(set, known))) {
        Some((set, tools)) if !tools.is_empty() => words.extend(narrowed(set, tools)),
        _ => {
            let all = known.iter().flat_map(|(_, tools)| tools.iter());
            words.extend(all.map(|tool| (*tool).to_owned()));
            let mut seen = BTreeSet::new();
            words.retain(|word| seen.insert(word.clone()));
        }
    }
    words
}

fn narrowed(set: &str, tools: &[&str]) -> Vec<String> {
    tools.iter().map(|tool| format!("{set}.{tool}")).collect()
}

/// Reads the name of one of the file's own roots.
pub(crate) fn root_name_of(
    field: &Field<'_>,
    context: &ReadContext<'_>,
) -> Result<Option<String>, SettingsError> {
    let name = field.text()?;
    let names = context.roots.iter().map(|root| root.name.clone());
    let names: Vec<String> = names.collect();
    if names.iter().any(|known| known == name) {
        return Ok(Some(name.to_owned()));
    }
    Err(field.unknown("root", name, names))
}

/// Reads a path that cannot be `null`.
pub(crate) fn some_path(
    field: &Field<'_>,
    context: &ReadContext<'_>,
) -> Result<Option<PathBuf>, SettingsError> {
    context.path(field).map(Some)
}

/// Reads the path of a file that holds a secret.
pub(crate) fn secret_path(
    field: &Field<'_>,
    context: &ReadContext<'_>,
) -> Result<Option<PathBuf>, SettingsError> {
    Option::read(&field.clone().secret(), context)
}

/// Reads web origins.
pub(crate) fn origins(
    field: &Field<'_>,
    _: &ReadContext<'_>,
) -> Result<Vec<String>, SettingsError> {
    field.list_of(origin)
}

/// Reads the list of tool sets.
pub(crate) fn toolsets(
    field: &Field<'_>,
    _: &ReadContext<'_>,
) -> Result<Vec<Toolset>, SettingsError> {
    let items = field.list()?;
    if items.is_empty() {
        return Err(empty_list(field, "at least one tool set"));
    }
    let mut sets: Vec<Toolset> = Vec::new();
    for item in &items {
        let set: Toolset = item.word()?;
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

fn root_name(field: &Field<'_>) -> Result<String, SettingsError> {
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

fn access(field: &Field<'_>) -> Result<RootAccess, SettingsError> {
    Ok(if field.boolean()? {
        RootAccess::ReadOnly
    } else {
        RootAccess::ReadWrite
    })
}

fn origin(field: &Field<'_>) -> Result<String, SettingsError> {
    let text = field.text()?;
    let rest = text.split_once("://").map(|(_, rest)| rest);
    if rest.is_some_and(|rest| !rest.is_empty() && !rest.contains('/')) {
        return Ok(text.to_owned());
    }
    Err(field.unexpected("an origin like https://example.org or http://localhost:3000"))
}

#[cfg(test)]
mod tests;
