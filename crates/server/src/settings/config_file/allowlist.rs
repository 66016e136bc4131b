//! The tools that a root allows, as the file names them: `copy`, `files.copy`, `files.*` or `*`.

use std::collections::BTreeSet;

use toolset::{SetNames, every_set};

use super::reader::Field;
use crate::settings::error::SettingsError;
use crate::settings::value::Reading;
use crate::settings::{AllowedTools, tools_of};

/// Reads an allowlist. Only names that the catalogue has are accepted.
pub(crate) fn allowed_tools(field: &Field<'_>) -> Reading<AllowedTools> {
    let names = field.list_of(tool_names)?;
    let names: BTreeSet<String> = names.into_iter().flatten().collect();
    Ok(if names.contains("*") {
        AllowedTools::All
    } else {
        AllowedTools::Only(names)
    })
}

/// The names one entry stands for: `files.*` is every tool of that set.
fn tool_names(field: &Field<'_>) -> Reading<Vec<String>> {
    let text = field.text()?;
    let (set, tool) = match text.split_once('.') {
        Some((set, tool)) => (Some(set), tool),
        None => (None, text),
    };
    let sets = || {
        every_set()
            .iter()
            .filter(move |names| set.is_none_or(|set| set == names.set))
    };
    if !sets().any(|names| tool == "*" || names.restricted.contains(&tool)) {
        return Err(match always_available(sets(), tool) {
            Some(tool) => SettingsError::AlwaysAvailable {
                path: field.path().clone(),
                tool,
            },
            None => field.unknown("tool", text, tool_words(set)),
        });
    }
    Ok(match set {
        Some(set) if tool == "*" => narrowed(set, tools_of(set)),
        _ => vec![text.to_owned()],
    })
}

/// The tool of this name if allowlists do not apply to it.
fn always_available<'a>(
    mut sets: impl Iterator<Item = &'a SetNames>,
    tool: &str,
) -> Option<&'static str> {
    sets.find_map(|names| names.tools.iter().copied().find(|name| *name == tool))
}

/// The names to choose from: those of the set that was named, or else the plain names of all.
fn tool_words(set: Option<&str>) -> Vec<String> {
    let mut words = vec!["*".to_owned()];
    match set.map(|set| (set, tools_of(set))) {
        Some((set, tools)) if !tools.is_empty() => words.extend(narrowed(set, tools)),
        _ => {
            let all = every_set().iter().flat_map(|names| &names.restricted);
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
