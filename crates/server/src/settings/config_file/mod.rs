//! The config file: YAML in, partial settings out, and every mistake in one clear line.
//!
//! Which keys there are, [`super::table`] says; here is how the file is walked and how the settings that are more than a
//! plain value are read. Nothing here touches the directories the file names: `open_roots` does that.

mod allowlist;
mod file;
mod reader;
mod yaml;

use std::path::{Path, PathBuf};
use std::time::Duration;

use sandbox::{Quota, SECRETS_WORD, View};
use toolset::CallRate;

pub(crate) use file::{ConfigFile, read};
pub(crate) use reader::Field;

use super::choices::{Toolset, Transport};
use super::client_settings::{ClientSettings, client};
use super::error::{KeyPath, SettingsError, quoted};
use super::oauth_settings::{OAuthSettings, read as read_oauth};
use super::table::{self, InnerKey};
use super::value::{Bounds, ReadContext, Reading, SettingValue};
use super::{
    ConfirmSettings, HistoryKept, HistoryWhere, OnMissingRoot, Partial, RootAccess, RootSettings,
    StateDir, Tls,
};
pub(crate) use allowlist::allowed_tools;
use reader::Section;
use yaml::YamlValue;

/// The longest name of a root, in bytes: names are sent in a header.
const MAX_NAME: usize = 128;

/// Reads the text of a config file. Relative paths in it are relative to `directory`.
pub(crate) fn parse(text: &str, directory: &Path) -> Reading<Partial> {
    let tree = YamlValue::parse(text)?;
    let mut file = ConfigReader {
        top: Field::top(&tree).section()?,
        section: "",
        open: None,
        directory,
    };
    let partial = Partial::from_file(&mut file)?;
    let is_shared = file.top.has("cluster");
    file.finish()?;
    Ok(Partial {
        // Whoever writes `cluster` relies on its locks, whatever is in it.
        cluster_state_dir: partial
            .cluster_state_dir
            .or(is_shared.then_some(Some(StateDir::InRoot))),
        // A server with a config file is meant for others to connect to.
        transport: Some(Transport::Http),
        ..partial
    })
}

/// A config file while its keys are read, one section after the other.
pub(crate) struct ConfigReader<'a> {
    top: Section<'a>,
    /// The section that is being read; empty at the top.
    section: &'static str,
    /// The file's content of that section, if any.
    open: Option<Section<'a>>,
    directory: &'a Path,
}

impl ConfigReader<'_> {
    /// Reads the value of a key, if the setting has one and it is there.
    pub(crate) fn read<T>(
        &mut self,
        key: Option<&'static str>,
        bounds: Option<Bounds>,
        roots: Option<&[RootSettings]>,
        read: fn(&Field<'_>, &ReadContext<'_>) -> Reading<T>,
    ) -> Reading<Option<T>> {
        let Some(key) = key else { return Ok(None) };
        let context = ReadContext {
            directory: self.directory,
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
        let value = section.map(|section| section.read(name, |field| read(field, &context)));
        value.transpose().map(Option::flatten)
    }

    /// Enters another section, and closes the previous one.
    fn enter(&mut self, section: &'static str) -> Reading<()> {
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

    fn finish(mut self) -> Reading<()> {
        self.enter("")?;
        self.top.finish()
    }
}

/// Reads the list of roots.
pub(crate) fn roots(field: &Field<'_>, context: &ReadContext<'_>) -> Reading<Vec<RootSettings>> {
    let roots = at_least_one(field, "at least one root", |item| {
        RootSettings::read(item, context)
    })?;
    let names = roots.iter().map(|root| root.name.as_str());
    distinct(names, "root name", |index| {
        field.path().item(index).key("name")
    })?;
    Ok(roots)
}

/// Reads the list of tool sets.
pub(crate) fn toolsets(field: &Field<'_>, _: &ReadContext<'_>) -> Reading<Vec<Toolset>> {
    let sets: Vec<Toolset> = at_least_one(field, "at least one tool set", Field::word)?;
    let names = sets.iter().map(|set| set.name());
    distinct(names, "tool set", |index| field.path().item(index))?;
    Ok(sets)
}

/// Reads a list that must not be empty.
pub(crate) fn at_least_one<'n, T>(
    field: &Field<'n>,
    expected: &str,
    read: impl Fn(&Field<'n>) -> Reading<T>,
) -> Reading<Vec<T>> {
    let items = field.list_of(read)?;
    if items.is_empty() {
        return Err(SettingsError::Unexpected {
            path: field.path().clone(),
            expected: expected.to_owned(),
            found: "an empty list".to_owned(),
        });
    }
    Ok(items)
}

/// Checks that no two names are the same; `path` is the place of a name.
pub(crate) fn distinct<'a>(
    names: impl Iterator<Item = &'a str>,
    what: &'static str,
    path: impl Fn(usize) -> KeyPath,
) -> Reading<()> {
    let names: Vec<&str> = names.collect();
    for (index, name) in names.iter().enumerate() {
        let first = names.iter().position(|other| other == name);
        if let Some(first) = first.filter(|first| *first < index) {
            return Err(SettingsError::Duplicate {
                path: path(index),
                what,
                value: quoted(name),
                first: path(first),
            });
        }
    }
    Ok(())
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

            fn read(field: &Field<'_>, context: &ReadContext<'_>) -> Reading<$type> {
                $read(field, context)
            }
        }
    )*};
}

map_value! {
    RootSettings, root;
    ClientSettings, client;
    Quota, quota;
    Tls, tls;
    CallRate, rate;
    OAuthSettings, read_oauth;
    ConfirmSettings, confirm;
}

fn root(field: &Field<'_>, context: &ReadContext<'_>) -> Reading<RootSettings> {
    let mut section = field.section()?;
    let by_default = Some(HistoryKept::default());
    let history = |field: &Field<'_>| history(field, context);
    let root = RootSettings {
        name: section.require(&table::ROOT_NAME, root_name)?,
        path: section.require(&table::ROOT_PATH, |field| context.path(field))?,
        origin: field.path().key("path").to_string(),
        tools: section.require(&table::ROOT_TOOLS, allowed_tools)?,
        access: section.find_or(&table::ROOT_READ_ONLY, RootAccess::ReadWrite, access)?,
        quota: section.find_or(&table::ROOT_QUOTA, None, value_in(context))?,
        history: section.find_or(&table::ROOT_HISTORY, by_default, history)?,
        confirm: section.find_or(&table::ROOT_CONFIRM, None, value_in(context))?,
        deny: section.find_or(&table::ROOT_DENY, Vec::new(), deny)?,
        on_missing: OnMissingRoot::Fail,
        host_paths: section.find_or(&table::ROOT_HOST_PATHS, false, Field::boolean)?,
    };
    section.finish()?;
    Ok(root)
}

/// The function that reads a value of this type.
fn value_in<T: SettingValue>(context: &ReadContext<'_>) -> impl Fn(&Field<'_>) -> Reading<T> {
    |field| T::read(field, context)
}

/// Reads `secrets`, or a list of globs.
fn deny(field: &Field<'_>) -> Reading<Vec<String>> {
    let globs = match field.text() {
        Ok(word) if word == SECRETS_WORD => vec![word.to_owned()],
        _ => field
            .list()
            .map_err(|_| field.unexpected("secrets, or a list of globs"))?
            .iter()
            .map(deny_glob)
            .collect::<Reading<_>>()?,
    };
    match View::new(&[], &globs) {
        Ok(_) => Ok(globs),
        Err(fault) => Err(field.unexpected(format!("globs to deny; {fault}"))),
    }
}

fn deny_glob(field: &Field<'_>) -> Reading<String> {
    let glob = field.text()?;
    match View::new(&[glob], &[]) {
        Ok(_) => Ok(glob.to_owned()),
        Err(fault) => Err(field.unexpected(format!("a glob; {fault}"))),
    }
}

fn quota(field: &Field<'_>, _: &ReadContext<'_>) -> Reading<Quota> {
    let mut section = field.section()?;
    let (bytes, files) = (&table::QUOTA_BYTES, &table::QUOTA_FILES);
    let quota = Quota {
        max_bytes: section.find(bytes, |field| field.size(bytes.bounds()))?,
        max_files: section.find(files, |field| field.number(files.bounds()))?,
    };
    section.finish()?;
    if quota == Quota::default() {
        return Err(field.unexpected("max_bytes, max_files or both"));
    }
    Ok(quota)
}

fn confirm(field: &Field<'_>, _: &ReadContext<'_>) -> Reading<ConfirmSettings> {
    let mut section = field.section()?;
    let mut limit = |key: &InnerKey| section.find(key, |field| field.number(key.bounds()));
    let (remove, overwrite) = (
        limit(&table::CONFIRM_REMOVE)?,
        limit(&table::CONFIRM_OVERWRITE)?,
    );
    let tools = section.find(&table::CONFIRM_TOOLS, allowed_tools)?;
    section.finish()?;
    if (remove, overwrite, &tools) == (None, None, &None) {
        return Err(field.unexpected("remove, overwrite, tools or several of them"));
    }
    Ok(ConfirmSettings {
        remove,
        overwrite,
        tools,
    })
}

/// Reads `on`, `off` or a map.
fn history(field: &Field<'_>, context: &ReadContext<'_>) -> Reading<Option<HistoryKept>> {
    match field.text() {
        Ok("on") => Ok(Some(HistoryKept::default())),
        Ok("off") => Ok(None),
        Ok(_) => Err(field.unexpected("on, off or a map")),
        Err(_) => history_kept(field, context).map(Some),
    }
}

fn history_kept(field: &Field<'_>, context: &ReadContext<'_>) -> Reading<HistoryKept> {
    let mut section = field.section()?;
    let default = HistoryKept::default();
    let (bytes, changes) = (&table::HISTORY_BYTES, &table::HISTORY_CHANGES);
    let kept = HistoryKept {
        place: section.find_or(&table::HISTORY_PLACE, default.place, |field| {
            history_place(field, context)
        })?,
        keep: section.find_or(&table::HISTORY_KEEP, default.keep, |field| {
            field.seconds(0..=u64::MAX).map(Duration::from_secs)
        })?,
        max_bytes: section.find_or(bytes, default.max_bytes, |field| field.size(bytes.bounds()))?,
        max_changes: section.find_or(changes, default.max_changes, |field| {
            field.number(changes.bounds())
        })?,
        undo_any: section.find_or(&table::HISTORY_UNDO_ANY, default.undo_any, Field::boolean)?,
    };
    section.finish()?;
    Ok(kept)
}

fn history_place(field: &Field<'_>, context: &ReadContext<'_>) -> Reading<HistoryWhere> {
    match field.text()? {
        "auto" => Ok(HistoryWhere::Auto),
        "root" => Ok(HistoryWhere::Root),
        _ => context.path(field).map(HistoryWhere::At),
    }
}

fn tls(field: &Field<'_>, context: &ReadContext<'_>) -> Reading<Tls> {
    let mut section = field.section()?;
    let tls = Tls {
        cert: section.require(&table::TLS_CERT, |field| context.path(field))?,
        key: section.require(&table::TLS_KEY, |field| context.path(&field.secret()))?,
    };
    section.finish()?;
    Ok(tls)
}

fn rate(field: &Field<'_>, _: &ReadContext<'_>) -> Reading<CallRate> {
    rate_with(field, [&table::RATE_PER_SECOND, &table::RATE_BURST])
}

/// Reads a rate of calls.
pub(crate) fn rate_with(
    field: &Field<'_>,
    [per_second, burst]: [&InnerKey; 2],
) -> Reading<CallRate> {
    let mut section = field.section()?;
    let mut number = |key: &InnerKey| {
        let number = section.require(key, |field| field.number(key.bounds()));
        number.map(|number| u32::try_from(number).unwrap_or(u32::MAX))
    };
    let rate = CallRate {
        per_second: number(per_second)?,
        burst: number(burst)?,
    };
    section.finish()?;
    Ok(rate)
}

/// Reads the name of one of the file's own roots.
pub(crate) fn root_name_of(
    field: &Field<'_>,
    context: &ReadContext<'_>,
) -> Reading<Option<String>> {
    let name = field.text()?;
    let names = context.roots.iter().map(|root| root.name.clone());
    let names: Vec<String> = names.collect();
    if names.iter().any(|known| known == name) {
        return Ok(Some(name.to_owned()));
    }
    Err(field.unknown("root", name, names))
}

/// Reads a path that cannot be `null`.
pub(crate) fn some_path(field: &Field<'_>, context: &ReadContext<'_>) -> Reading<Option<PathBuf>> {
    context.path(field).map(Some)
}

/// Reads the directory that replicas share.
pub(crate) fn state_dir(field: &Field<'_>, context: &ReadContext<'_>) -> Reading<Option<StateDir>> {
    StateDir::read(field, context).map(Some)
}

/// Reads a size that is kept in memory.
pub(crate) fn memory_size(field: &Field<'_>, context: &ReadContext<'_>) -> Reading<usize> {
    context.memory_size(field)
}

/// Reads the path of a file that holds a secret.
pub(crate) fn secret_path(
    field: &Field<'_>,
    context: &ReadContext<'_>,
) -> Reading<Option<PathBuf>> {
    Option::read(&field.secret(), context)
}

/// Reads web origins.
pub(crate) fn origins(field: &Field<'_>, _: &ReadContext<'_>) -> Reading<Vec<String>> {
    field.list_of(origin)
}

fn root_name(field: &Field<'_>) -> Reading<String> {
    let name = field.text()?;
    if name.trim() == name && name.len() <= MAX_NAME {
        return Ok(name.to_owned());
    }
    Err(field.unexpected(format!(
        "a name of at most {MAX_NAME} bytes without spaces around it"
    )))
}

fn access(field: &Field<'_>) -> Reading<RootAccess> {
    Ok(if field.boolean()? {
        RootAccess::ReadOnly
    } else {
        RootAccess::ReadWrite
    })
}

fn origin(field: &Field<'_>) -> Reading<String> {
    let text = field.text()?;
    let rest = text.split_once("://").map(|(_, rest)| rest);
    if rest.is_some_and(|rest| !rest.is_empty() && !rest.contains('/')) {
        return Ok(text.to_owned());
    }
    Err(field.unexpected("an origin like https://example.org or http://localhost:3000"))
}

#[cfg(test)]
mod tests;
