//! Versions of files, as arguments and in replies.

use ops::{Error, Place, Version};

use crate::text_form::TextLines;
use crate::tool::Call;

/// The tools that take `if_version`, as a test compares. If a root allows none of them, the text shows no version.
const TAKING: [&str; 5] = [
    "write_file",
    "remove_file",
    "edit_file",
    "patch_file",
    "move",
];

/// A place whose version is reported, and required if the client names one.
pub(super) fn versioned(place: Place, if_version: Option<&str>) -> ops::Result<Place> {
    let required = if_version.map(|text| {
        Version::parse(text).ok_or_else(|| Error::InvalidArgument {
            argument: "if_version",
            reason: "expected a version as replies tell it, such as s3fQ9xZ2a; leave it out to change the file whatever its version"
                .to_owned(),
        })
    });
    Ok(place.versioned(required.transpose()?))
}

/// The version as a reply has it.
pub(super) fn told(version: Option<&Version>) -> Option<String> {
    version.map(|version| version.as_str().to_owned())
}

/// Tells whether a change may follow in this root.
pub(super) fn may_change(root: &str, call: &Call) -> bool {
    let mut roots = call.root_infos().iter();
    roots.any(|info| {
        let tools = &info.allowed_tools;
        info.name == root && !info.read_only && tools.iter().any(|tool| TAKING.contains(tool))
    })
}

/// Adds the version of the one file of a reply to its last line.
pub(super) fn add_version(text: &mut TextLines, version: Option<&str>) {
    if let Some(version) = version {
        text.note(noted(version));
    }
}

/// The version of the one file of a reply, for its last line.
pub(super) fn noted(version: &str) -> String {
    format!("version {version}")
}

/// The version of one of several files, at the end of its line.
pub(super) fn in_line(version: Option<&str>) -> String {
    version.map_or_else(String::new, |version| format!(", version {version}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_tools_that_take_a_version_are_listed() {
        let set = crate::workspace::toolset();
        let definitions = set.tools.iter().map(|tool| tool.definition());
        let taking = definitions.filter(|tool| {
            let properties = tool.input.get("properties");
            properties.is_some_and(|properties| properties.get("if_version").is_some())
        });
        assert_eq!(taking.map(|tool| tool.name).collect::<Vec<_>>(), TAKING);
    }
}
