//! The `workspace` tool set: named roots, each with its own allowlist. The default.
//!
//! Adding a tool: one file here, and its two lines below.

mod face;
mod hash_file;
mod list_roots;

use crate::tool::{ToolSet, tool};

/// The set, its tools in the specification's order.
#[must_use]
pub fn toolset() -> ToolSet {
    ToolSet {
        face: &face::Workspace,
        tools: vec![
            tool::<list_roots::ListRoots>(),
            tool::<hash_file::HashFile>(),
        ],
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    #[expect(clippy::disallowed_methods, reason = "it compares the folder of the sources")]
    fn the_registry_has_every_file_of_the_folder() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/workspace");
        let files = std::fs::read_dir(folder).expect("the folder");
        let stems =
            files.filter_map(|file| Some(file.ok()?.path().file_stem()?.to_str()?.to_owned()));
        let stems: BTreeSet<String> = stems
            .filter(|stem| !["mod", "face"].contains(&stem.as_str()))
            .collect();
        let names = toolset()
            .tools
            .iter()
            .map(|tool| tool.definition().name.to_owned())
            .collect();
        assert_eq!(stems, names);
    }

    #[test]
    fn every_tool_and_argument_is_described() {
        for tool in toolset().tools {
            let definition = tool.definition();
            assert!(definition.description.len() > 80, "{}", definition.name);
            let properties = definition
                .input
                .get("properties")
                .and_then(|all| all.as_object());
            for (name, property) in properties.into_iter().flatten() {
                assert!(
                    property.get("description").is_some(),
                    "{} {name}",
                    definition.name
                );
                assert!(property.get("type").is_some(), "{} {name}", definition.name);
            }
        }
    }
}
