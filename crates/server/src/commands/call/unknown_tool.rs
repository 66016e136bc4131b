//! What a call of a tool that is not there is told: which set has it, or which tool was meant.

use anyhow::{Error, anyhow};
use ops::text::near_names::nearest;

/// The mistake of a call of none of these tools.
pub(super) fn fault(tool: &str, names: &[String]) -> Error {
    if let Some(hint) = other_set(tool) {
        return anyhow!("unknown tool {tool}; {hint}");
    }
    let near = nearest(tool, names).map(|near| format!("; did you mean {near}?"));
    anyhow!(
        "unknown tool {tool}{}; there are {}",
        near.unwrap_or_default(),
        names.join(", ")
    )
}

/// Which sets have a tool, and how to call it there.
pub(super) fn other_set(tool: &str) -> Option<String> {
    let sets = toolset::every_set().iter();
    let sets = sets.filter(|set| set.tools.contains(&tool));
    let sets: Vec<&str> = sets.map(|set| set.set).collect();
    let first = sets.first()?;
    Some(format!(
        "it is in the set {}: add --toolset {first}, if that is served",
        sets.join(" and in ")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_set_or_the_tool_that_was_meant_is_named() {
        let names = ["read_file".to_owned(), "grep".to_owned()];
        let told = |tool| fault(tool, &names).to_string();
        assert_eq!(
            told("view"),
            "unknown tool view; it is in the set memory: add --toolset memory, if that is served"
        );
        assert_eq!(
            told("raed_file"),
            "unknown tool raed_file; did you mean read_file?; there are read_file, grep"
        );
        assert_eq!(told("zzz"), "unknown tool zzz; there are read_file, grep");
    }
}
