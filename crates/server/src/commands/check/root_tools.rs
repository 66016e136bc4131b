//! Which tools of which sets a root has.

use crate::settings::{RootSettings, Settings, Toolset, tools_of};

/// A line for each set that uses the root. `guide` uses none; `files`, `memory` and `memory_tool` use one each.
pub(super) fn lines<'a>(
    root: &'a RootSettings,
    settings: &'a Settings,
) -> impl Iterator<Item = String> + 'a {
    let sets = settings.toolsets.iter();
    sets.filter_map(move |set| line(root, *set, settings))
}

fn line(root: &RootSettings, set: Toolset, settings: &Settings) -> Option<String> {
    let name = set.name();
    let tools = in_words(root, set, settings);
    match set {
        Toolset::Guide => None,
        Toolset::Workspace => Some(format!("{name}: {tools}")),
        Toolset::Reference => Some(format!(
            "{name}: {tools} on files, and list_allowed_directories; replies show paths of this machine"
        )),
        Toolset::Files | Toolset::Memory | Toolset::MemoryTool => {
            let home = settings.root_of(set)?;
            (home.name == root.name).then(|| format!("{name} (this root only): {tools}"))
        }
    }
}

/// The tools of a set that an allowlist decides on, as configured: `memory` has `undo` only with `memory.undo`.
pub(super) fn available(set: Toolset, settings: &Settings) -> impl Iterator<Item = &'static str> {
    let without_undo = set == Toolset::Memory && !settings.memory_undo;
    let tools = tools_of(set.name()).iter().copied();
    tools.filter(move |tool| !(without_undo && *tool == "undo"))
}

fn in_words(root: &RootSettings, set: Toolset, settings: &Settings) -> String {
    let all = available(set, settings).count();
    let allowed = available(set, settings).filter(|tool| root.tools.allows(set, tool));
    let allowed: Vec<&str> = allowed.collect();
    match allowed.len() {
        0 => "no tool".to_owned(),
        1 if all == 1 => "its one tool".to_owned(),
        some if some == all => format!("all {all} tools"),
        some => format!("{some} of {all} tools: {}", allowed.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::settings::config_file;

    fn told(yaml: &str) -> Vec<Vec<String>> {
        let settings = config_file::parse(yaml, Path::new("/etc"))
            .unwrap()
            .complete();
        let roots = settings.roots.iter();
        roots.map(|root| lines(root, &settings).collect()).collect()
    }

    const ROOTS: &str = "
roots:
  - {name: code, path: /code, allowed_tools: [read_file, memory.undo]}
  - {name: notes, path: /notes, allowed_tools: ['*']}
memory: {root: notes}
";

    #[test]
    fn a_set_with_one_root_is_listed_there_only() {
        let told = told(&format!(
            "toolsets: [workspace, memory, memory_tool, guide]{ROOTS}"
        ));
        assert_eq!(told[0].len(), 1, "{told:?}");
        assert!(told[0][0].starts_with("workspace: 1 of "), "{told:?}");
        assert_eq!(
            told[1][1..],
            [
                "memory (this root only): all 6 tools",
                "memory_tool (this root only): its one tool"
            ]
        );
    }

    #[test]
    fn memory_has_undo_only_if_it_is_on() {
        let on = ROOTS.replace("{root: notes}", "{root: notes, undo: true}");
        let told = told(&format!("toolsets: [memory]{on}"));
        assert_eq!(told[0], Vec::<String>::new());
        assert_eq!(told[1], ["memory (this root only): all 7 tools"]);
    }
}
