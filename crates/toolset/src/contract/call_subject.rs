//! What a call is about, read from its arguments before they are checked.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rmcp::model::JsonObject;
use serde_json::Value;

use super::Failure;
use crate::arguments::field;
use crate::host_paths::{HostDirectories, HostNames};
use crate::told_arguments::told;
use crate::tool::{Definition, RootSource};

/// The arguments in which a call can name many places.
const LISTS: [&str; 4] = ["paths", "files", "edits", "moves"];
/// The most places of a list that are kept: as many as a call may have.
const LISTED_MAX: usize = 500;

/// What a call was about, as the client gave it: for error details and the log.
#[derive(Debug, Clone, Default)]
pub struct CallSubject {
    /// The tool.
    pub tool: &'static str,
    /// The places it names, in the tool's order.
    pub places: Vec<NamedPlace>,
    /// The places that it names in a list.
    pub listed: Vec<NamedPlace>,
    /// The paths that its work found inside an argument.
    pub found: FoundPaths,
    /// The host paths of its places, for sets that use host paths.
    pub hosts: Option<HostNames>,
    /// What it does, for a tool that does several things.
    pub command: Option<String>,
    /// Its arguments that are not content, as JSON, for the log; none if no line is written.
    pub arguments: Option<String>,
    /// The texts that its edits look for, in order: some sets repeat them in messages. They are never logged.
    pub sought: Vec<String>,
}

/// Paths inside an argument, such as a patch, that only the work itself reads. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct FoundPaths(Arc<Mutex<Vec<String>>>);

impl FoundPaths {
    /// Adds paths, up to the number that a record keeps.
    pub(crate) fn add(&self, mut paths: Vec<String>) {
        let mut found = self.lock();
        paths.truncate(LISTED_MAX.saturating_sub(found.len()));
        found.append(&mut paths);
    }

    /// The paths found so far.
    #[must_use]
    pub fn paths(&self) -> Vec<String> {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A place as the client named it, before anything was checked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NamedPlace {
    /// The root's name, if one was given.
    pub root: Option<String>,
    /// The path, if one was given.
    pub path: Option<String>,
}

impl CallSubject {
    /// Reads the places from arguments that have not been checked yet.
    pub(crate) fn new(
        definition: &Definition,
        arguments: &JsonObject,
        home: Option<&str>,
    ) -> CallSubject {
        let places = named_places(definition, arguments, home);
        CallSubject {
            tool: definition.name,
            listed: listed_places(arguments, places.first()),
            places,
            found: FoundPaths::default(),
            hosts: None,
            command: text_of(arguments, "command"),
            arguments: None,
            sought: sought(arguments),
        }
    }

    /// The subject with the arguments that the log shows. Paths on the host are not told: the log has them as root and
    /// path.
    pub(crate) fn with_arguments(
        mut self,
        definition: &Definition,
        arguments: &JsonObject,
        tells_host_paths: bool,
    ) -> CallSubject {
        let places = definition.roots.iter().map(|place| place.path);
        let left_out: Vec<&str> = if tells_host_paths {
            places.chain(LISTS).collect()
        } else {
            Vec::new()
        };
        self.arguments = Some(told(definition, arguments, &left_out));
        self
    }

    /// The subject of a call with host paths: its places become root and path, and keep their host paths besides.
    pub(crate) fn on_host(mut self, hosts: &HostDirectories, roots: &[String]) -> CallSubject {
        let mut paths = Vec::new();
        for place in self.places.iter_mut().chain(&mut self.listed) {
            let looked_up = place.path.as_deref().map(|given| hosts.look_up(given));
            let Some(found) = looked_up else {
                paths.push(String::new());
                continue;
            };
            if let Some((root, inside)) = &found.inside {
                place.root = roots.get(*root).cloned();
                place.path = Some(inside.clone());
            }
            paths.push(found.absolute);
        }
        self.hosts = Some(HostNames {
            paths,
            served: hosts.spellings(),
        });
        self
    }

    /// The root and path that a failure is about: the place whose path the error names, else the first.
    #[must_use]
    pub fn place_of(&self, failure: &Failure) -> NamedPlace {
        let (root, path) = (failure.root(), failure.path());
        let named = |place: &&NamedPlace| match (root, path) {
            (Some(_), _) => place.root.as_ref() == root,
            (None, Some(path)) => place.path.as_deref() == Some(path),
            (None, None) => true,
        };
        let first = self.places.iter().find(named).or(self.places.first());
        let mut place = first.cloned().unwrap_or_default();
        if let Some(path) = path {
            place.path = Some(path.to_owned());
        }
        place
    }
}

/// The texts that edits look for.
fn sought(arguments: &JsonObject) -> Vec<String> {
    let edits = field(arguments, "edits").and_then(Value::as_array);
    let listed = edits.into_iter().flatten().map(|edit| edit.get("oldText"));
    let texts = std::iter::once(field(arguments, "old_str")).chain(listed);
    let texts = texts.flatten().filter_map(Value::as_str);
    texts.map(str::to_owned).collect()
}

fn text_of(arguments: &JsonObject, name: &str) -> Option<String> {
    let text = field(arguments, name).and_then(Value::as_str);
    text.map(str::to_owned)
}

/// The places that a tool's arguments name, one for each root it uses.
fn named_places(
    definition: &Definition,
    arguments: &JsonObject,
    home: Option<&str>,
) -> Vec<NamedPlace> {
    if definition.roots.is_empty() {
        // The agent's files are in no root, but messages and the log name their paths too.
        return vec![NamedPlace {
            root: None,
            path: text_of(arguments, "path"),
        }];
    }
    let places = definition.roots.iter().map(|use_| NamedPlace {
        root: named_root(use_.root, arguments, home),
        path: text_of(arguments, use_.path),
    });
    places.collect()
}

fn named_root(source: RootSource, arguments: &JsonObject, home: Option<&str>) -> Option<String> {
    match source {
        RootSource::Argument(name) | RootSource::NamedHome(name) => text_of(arguments, name),
        RootSource::ArgumentOr(name, other) => {
            text_of(arguments, name).or_else(|| text_of(arguments, other))
        }
        RootSource::Home => home.map(str::to_owned),
        // The host path itself determines the root.
        RootSource::HostPath(_) => None,
    }
}

/// The places in the arguments that are lists.
fn listed_places(arguments: &JsonObject, first: Option<&NamedPlace>) -> Vec<NamedPlace> {
    let lists = LISTS.iter().filter_map(|list| field(arguments, list));
    let entries = lists.filter_map(Value::as_array).flatten();
    let places = entries.filter_map(|entry| listed_place(entry, first));
    let mut places: Vec<NamedPlace> = places.take(LISTED_MAX).collect();
    // Several edits of one file follow each other.
    places.dedup();
    places
}

/// A place in a list: a path, or an object with one, in the root of the call unless it names its own.
fn listed_place(entry: &Value, first: Option<&NamedPlace>) -> Option<NamedPlace> {
    let text = |name: &str| entry.get(name).and_then(Value::as_str).map(str::to_owned);
    let path = entry.as_str().map(str::to_owned).or_else(|| text("path"))?;
    let root = text("root").or_else(|| first?.root.clone());
    Some(NamedPlace {
        root,
        path: Some(path),
    })
}
