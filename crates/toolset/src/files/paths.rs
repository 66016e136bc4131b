//! Paths as clients of this set write them: a backslash separates names, as a slash does, unless an entry has it in its name.

use ops::Place;

use crate::tool::Call;

/// A path in the root.
pub(super) fn place(call: &Call, path: &str) -> ops::Result<Place> {
    separated(path, |path| call.place(path))
}

/// A path in the root where something is put.
pub(super) fn destination(call: &Call, path: &str) -> ops::Result<Place> {
    separated(path, |path| call.destination(path))
}

/// A glob with slashes for the backslashes that separate names. A backslash before a special character escapes it.
pub(super) fn with_slashes(glob: &str) -> String {
    let mut text = String::with_capacity(glob.len());
    let mut characters = glob.chars().peekable();
    while let Some(character) = characters.next() {
        let escapes = characters
            .peek()
            .is_none_or(|next| r"*?[]{}\-!^,".contains(*next));
        match (character, escapes) {
            ('\\', false) => text.push('/'),
            ('\\', true) => {
                text.push('\\');
                text.extend(characters.next());
            }
            (other, _) => text.push(other),
        }
    }
    text
}

fn separated(path: &str, place: impl Fn(&str) -> ops::Result<Place>) -> ops::Result<Place> {
    let given = place(path)?;
    if !path.contains('\\') || given.is_there() {
        return Ok(given);
    }
    place(&path.replace('\\', "/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backslash_separates_unless_it_escapes() {
        for (given, meant) in [
            ("src\\main.rs", "src/main.rs"),
            ("a\\b\\c*", "a/b/c*"),
            ("a\\*", "a\\*"),
            ("a\\\\b", "a\\\\b"),
            ("plain/*.rs", "plain/*.rs"),
        ] {
            assert_eq!(with_slashes(given), meant, "{given}");
        }
    }
}
