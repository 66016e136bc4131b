//! Which tool sets can be served together.

use super::SettingsError;
use super::{KnownTools, Toolset, tools_of};

/// The first two tool sets that cannot be served on one connection, because names mean two things.
pub(crate) fn first_collision(
    toolsets: &[Toolset],
    known: KnownTools<'_>,
) -> Option<SettingsError> {
    let pairs = toolsets.iter().enumerate().flat_map(|(index, first)| {
        toolsets
            .iter()
            .skip(index + 1)
            .map(move |second| (first.name(), second.name()))
    });
    pairs
        .filter_map(|(first, second)| collision(first, second, known))
        .next()
}

fn collision(
    first: &'static str,
    second: &'static str,
    known: KnownTools<'_>,
) -> Option<SettingsError> {
    let taken = tools_of(second, known);
    let both = tools_of(first, known)
        .iter()
        .filter(|tool| taken.contains(tool));
    let tools: Vec<String> = both.map(|tool| (*tool).to_owned()).collect();
    (!tools.is_empty()).then_some(SettingsError::Collision {
        first,
        second,
        tools,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: KnownTools<'static> = &[
        ("workspace", &["copy", "move", "grep"]),
        ("files", &["copy", "move", "list"]),
        ("guide", &["g"]),
    ];

    #[test]
    fn sets_that_share_names_collide() {
        let fault = first_collision(&[Toolset::Guide, Toolset::Workspace, Toolset::Files], KNOWN);
        let text = fault.unwrap().to_string();
        assert_eq!(
            text,
            "the tool sets workspace and files both have copy, move; on stdio serve one of them, \
             or use --transport http"
        );
        assert_eq!(
            first_collision(&[Toolset::Workspace, Toolset::Guide], KNOWN),
            None
        );
    }
}
