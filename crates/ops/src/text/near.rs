//! Near names: what a missing name was probably meant to be.

use unicode_normalization::UnicodeNormalization;

/// How many names are offered.
const OFFERED: usize = 3;
/// How many names of a directory are looked at.
const LOOKED_AT: usize = 100_000;
/// How many cells of edit-distance tables are filled for one answer, about a tenth of a second.
const CELLS: usize = 20_000_000;

/// How a name resembles the missing one; the better comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Likeness {
    /// Only the Unicode form, the case or the kind of spaces, dashes or quotes differs.
    Form,
    /// This many characters differ.
    Distance(usize),
    /// The same up to the extension.
    Stem,
}

/// Up to three of `names` that look like the missing one, the likeliest first, whatever order they come in.
pub fn near_matches<I>(missing: &str, names: I) -> Vec<String>
where
    I: IntoIterator,
    I::Item: AsRef<str>,
{
    let mut wanted = WantedName::new(missing);
    let mut best: Vec<(Likeness, String)> = Vec::with_capacity(OFFERED + 1);
    for name in names.into_iter().take(LOOKED_AT) {
        let name = name.as_ref();
        if let Some(likeness) = wanted.likeness(name) {
            best.push((likeness, name.to_owned()));
            best.sort();
            best.truncate(OFFERED);
        }
    }
    best.into_iter().map(|(_, name)| name).collect()
}

struct WantedName<'m> {
    name: &'m str,
    folded: String,
    length: usize,
    cells: usize,
}

impl WantedName<'_> {
    fn new(name: &str) -> WantedName<'_> {
        let folded = fold(name);
        let length = folded.chars().count();
        WantedName {
            name,
            folded,
            length,
            cells: CELLS,
        }
    }

    fn likeness(&mut self, name: &str) -> Option<Likeness> {
        if name == self.name || self.folded.is_empty() {
            return None;
        }
        let folded = fold(name);
        if folded == self.folded {
            return Some(Likeness::Form);
        }
        let by_stem = (stem(&folded) == stem(&self.folded)).then_some(Likeness::Stem);
        self.distance(&folded).map(Likeness::Distance).or(by_stem)
    }

    /// The distance where it is small for names of this length: 1 from two characters on, a third at most.
    fn distance(&mut self, folded: &str) -> Option<usize> {
        let length = folded.chars().count();
        let most = (self.length.min(length) / 3).clamp(1, 8);
        if self.length.min(length) < 2 || self.length.abs_diff(length) > most {
            return None;
        }
        self.cells = self.cells.checked_sub(length * self.length)?;
        let distance = strsim::osa_distance(folded, &self.folded);
        (distance <= most).then_some(distance)
    }
}

/// The name without its extension; a leading dot starts no extension.
fn stem(name: &str) -> &str {
    match name.rsplit_once('.') {
        Some((stem, _)) if !stem.is_empty() => stem,
        _ => name,
    }
}

/// One spelling for all that look or sound the same.
fn fold(name: &str) -> String {
    if name.is_ascii() {
        return name.to_ascii_lowercase();
    }
    name.nfkc()
        .filter_map(plain)
        .flat_map(char::to_lowercase)
        .nfc()
        .collect()
}

/// The plain twin of a character that people rarely type; nothing for one that cannot be seen.
fn plain(character: char) -> Option<char> {
    match character {
        '\u{200b}'..='\u{200f}' | '\u{2060}' | '\u{feff}' => None,
        '\u{2018}' | '\u{2019}' | '\u{201b}' => Some('\''),
        '\u{201c}' | '\u{201d}' | '\u{201f}' => Some('"'),
        '\u{2010}'..='\u{2015}' | '\u{2212}' => Some('-'),
        space if space.is_whitespace() => Some(' '),
        other => Some(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn near_names_are_found_in_order() {
        let table: [(&str, &[&str], &[&str]); 10] = [
            (
                "readme.md",
                &["README.md", "readme.txt", "other"],
                &["README.md", "readme.txt"],
            ),
            ("confg.yaml", &["config.yaml", "zzz"], &["config.yaml"]),
            ("recieve.rs", &["receive.rs"], &["receive.rs"]),
            ("caf\u{e9}.txt", &["cafe\u{301}.txt"], &["cafe\u{301}.txt"]),
            (
                "Screenshot 1.00 PM.png",
                &[
                    "Screenshot 1.00\u{202f}PM.png",
                    "Screenshot\u{a0}1.00 AM.png",
                ],
                &[
                    "Screenshot 1.00\u{202f}PM.png",
                    "Screenshot\u{a0}1.00 AM.png",
                ],
            ),
            ("it's.md", &["it\u{2019}s.md"], &["it\u{2019}s.md"]),
            (
                "main.ts",
                &["main.tsx", "main.test.ts", "mine.ts"],
                &["main.tsx", "mine.ts"],
            ),
            ("notes.markdown", &["notes.md"], &["notes.md"]),
            ("a", &["b", "c"], &[]),
            ("", &["a"], &[]),
        ];
        for (missing, names, expected) in table {
            assert_eq!(near_matches(missing, names), expected, "{missing:?}");
        }
    }

    #[test]
    fn at_most_three_are_offered_and_never_the_name_itself() {
        let names = ["file1", "file2", "file3", "file4", "file"];
        assert_eq!(near_matches("file", names), ["file1", "file2", "file3"]);
    }

    #[test]
    fn a_directory_of_long_names_costs_a_bounded_amount() {
        let names = (0..50_000).map(|n| format!("{}{n}", "x".repeat(240)));
        assert!(near_matches(&"x".repeat(243), names).len() <= OFFERED);
    }

    proptest! {
        #[test]
        fn the_order_of_the_names_does_not_matter(
            missing in "[a-c.]{1,6}",
            mut names in proptest::collection::vec("[a-cA-C.]{1,6}", 0..8),
        ) {
            let forward = near_matches(&missing, &names);
            names.reverse();
            prop_assert_eq!(forward, near_matches(&missing, &names));
        }

        #[test]
        fn arbitrary_names_never_panic(missing in ".{0,20}", name in ".{0,20}") {
            near_matches(&missing, [name]);
        }
    }
}
