//! Guesses what a wrong name was meant to be.
//!
//! Files, tools, arguments, roots and settings are compared by the same measure.

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

use crate::text::folded::plain_twin;

/// How many names are offered.
const OFFERED: usize = 3;
/// How many names of a directory are looked at.
const LOOKED_AT: usize = 100_000;
/// How many cells of edit-distance tables are filled for one answer, about a tenth of a second.
const CELLS: usize = 20_000_000;
/// The longest name that is compared, in bytes: the longest name that a file can have.
const LONGEST: usize = 255;

/// How a name resembles the wrong one; better matches sort first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Likeness {
    /// Only the Unicode form, the case or the kind of spaces, dashes or quotes differs.
    Form,
    /// This many characters differ.
    Distance(usize),
    /// The names share words; this many words are in one of them only.
    Words(usize),
}

/// Returns the name that looks most like the wrong one, if any does.
pub fn nearest<N: AsRef<str>>(wrong: &str, names: impl IntoIterator<Item = N>) -> Option<N> {
    near_matches(wrong, names).into_iter().next()
}

/// Returns up to three of `names` that look like the wrong one, the likeliest first, whatever order they come in.
pub fn near_matches<N: AsRef<str>>(wrong: &str, names: impl IntoIterator<Item = N>) -> Vec<N> {
    let mut wrong = WrongName::new(wrong);
    let mut best: Vec<(Likeness, N)> = Vec::with_capacity(OFFERED + 1);
    for name in names.into_iter().take(LOOKED_AT) {
        if let Some(likeness) = wrong.likeness(name.as_ref()) {
            best.push((likeness, name));
            best.sort_by(|(one, a), (other, b)| (one, a.as_ref()).cmp(&(other, b.as_ref())));
            best.truncate(OFFERED);
        }
    }
    best.into_iter().map(|(_, name)| name).collect()
}

/// Says in what a name differs from another that has the same letters: a mark that stands by itself in one of them.
pub fn other_form(given: &str, name: &str) -> Option<String> {
    if given == name || !given.nfc().eq(name.nfc()) {
        return None;
    }
    let marks = |text: &str| text.chars().filter(|c| is_combining_mark(*c)).count();
    let mark = name.chars().find(|c| is_combining_mark(*c));
    match mark.filter(|_| marks(name) > marks(given)) {
        Some(mark) => Some(format!("written with a combining {}", mark_name(mark))),
        None => Some("written with composed letters".to_owned()),
    }
}

/// The name of a mark that is put on letters.
fn mark_name(mark: char) -> String {
    let name = match mark {
        '\u{300}' => "grave accent",
        '\u{301}' => "acute accent",
        '\u{302}' => "circumflex",
        '\u{303}' => "tilde",
        '\u{304}' => "macron",
        '\u{306}' => "breve",
        '\u{307}' => "dot above",
        '\u{308}' => "diaeresis",
        '\u{30a}' => "ring above",
        '\u{30b}' => "double acute accent",
        '\u{30c}' => "caron",
        '\u{327}' => "cedilla",
        '\u{328}' => "ogonek",
        other => return format!("mark U+{:04X}", u32::from(other)),
    };
    name.to_owned()
}

struct WrongName<'n> {
    name: &'n str,
    folded: String,
    words: Vec<String>,
    length: usize,
    cells: usize,
}

impl WrongName<'_> {
    fn new(name: &str) -> WrongName<'_> {
        // An absurdly long name resembles nothing, and comparing it would cost its length squared.
        let folded = if name.len() <= LONGEST {
            fold(name)
        } else {
            String::new()
        };
        WrongName {
            name,
            length: folded.chars().count(),
            words: words(&fold(&parted(name))).map(str::to_owned).collect(),
            folded,
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
        let distance = self.distance(&folded).map(Likeness::Distance);
        distance.or_else(|| self.unshared(&folded).map(Likeness::Words))
    }

    /// The distance if it is small for names of this length: 1 from two characters on, a third at most.
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

    /// How many words the names do not share, if they share enough: all words of `folded`, or the first one and half
    /// of the longer name.
    fn unshared(&self, folded: &str) -> Option<usize> {
        let (mut count, mut shared, mut same_beginning) = (0, 0, false);
        for word in words(folded) {
            same_beginning |= count == 0 && self.words.first().is_some_and(|first| first == word);
            shared += usize::from(self.words.iter().any(|own| own == word));
            count += 1;
        }
        let longer = count.max(self.words.len());
        let enough = shared == count || (same_beginning && shared * 2 >= longer);
        (shared > 0 && enough).then(|| longer.saturating_sub(shared))
    }
}

/// The words of a folded name.
fn words(folded: &str) -> impl Iterator<Item = &str> {
    let words = folded.split(|character: char| !character.is_alphanumeric());
    words.filter(|word| !word.is_empty())
}

/// The name with a space before each capital letter that follows a small one, as in `readFile`.
fn parted(name: &str) -> String {
    let mut parted = String::with_capacity(name.len());
    for character in name.chars().take(LONGEST) {
        if character.is_uppercase() && parted.ends_with(char::is_lowercase) {
            parted.push(' ');
        }
        parted.push(character);
    }
    parted
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

/// The plain equivalent of a character that people rarely type; `None` for an invisible one.
fn plain(character: char) -> Option<char> {
    match character {
        '\u{200b}'..='\u{200f}' | '\u{2060}' | '\u{feff}' => None,
        space if space.is_whitespace() => Some(' '),
        other => Some(plain_twin(other)),
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
                &["main.tsx", "mine.ts", "main.test.ts"],
            ),
            ("notes.markdown", &["notes.md"], &["notes.md"]),
            ("a", &["b", "c"], &[]),
            ("", &["a"], &[]),
        ];
        for (missing, names, expected) in table {
            assert_eq!(
                near_matches(missing, names.iter().copied()),
                expected,
                "{missing:?}"
            );
        }
    }

    #[test]
    fn names_of_tools_and_arguments_are_found() {
        let tools = [
            "list_roots",
            "list_folder",
            "read_file",
            "write_file",
            "remove_folder",
            "create_folder",
            "copy",
            "grep",
        ];
        let arguments = ["root", "path", "limit_lines", "limit_bytes", "max_results"];
        let table: [(&str, &[&str], Option<&str>); 18] = [
            ("raed_file", &tools, Some("read_file")),
            ("READ_FILE", &tools, Some("read_file")),
            ("readFile", &tools, Some("read_file")),
            ("read", &tools, Some("read_file")),
            ("read_text_file", &tools, Some("read_file")),
            ("list_directory", &tools, Some("list_folder")),
            ("createDirectory", &tools, Some("create_folder")),
            ("copy_file", &tools, Some("copy")),
            ("gerp", &tools, Some("grep")),
            ("greet", &tools, None),
            ("file", &tools, None),
            ("no_such_tool", &tools, None),
            ("limit-lines", &arguments, Some("limit_lines")),
            ("file_path", &arguments, Some("path")),
            ("maxMatches", &arguments, Some("max_results")),
            ("timeout", &arguments, None),
            ("rooot", &arguments, Some("root")),
            ("", &arguments, None),
        ];
        for (wrong, names, expected) in table {
            assert_eq!(nearest(wrong, names.iter().copied()), expected, "{wrong:?}");
        }
    }

    #[test]
    fn names_with_the_same_letters_are_told_apart() {
        for (given, name, expected) in [
            (
                "Äx",
                "A\u{308}x",
                Some("written with a combining diaeresis"),
            ),
            ("A\u{308}x", "Äx", Some("written with composed letters")),
            ("e\u{32d}", "e\u{32d}", None),
            ("a", "b", None),
            (
                "ḙé",
                "e\u{32d}é",
                Some("written with a combining mark U+032D"),
            ),
        ] {
            assert_eq!(other_form(given, name).as_deref(), expected, "{name}");
        }
    }

    #[test]
    fn at_most_three_are_offered_and_never_the_name_itself() {
        let names = ["file1", "file2", "file3", "file4", "file"];
        assert_eq!(near_matches("file", names), ["file1", "file2", "file3"]);
    }

    #[test]
    fn a_directory_of_long_names_costs_a_bounded_amount() {
        let names = (0..5_000).map(|n| format!("{}{n}", "x".repeat(240)));
        assert!(near_matches(&"x".repeat(243), names).len() <= OFFERED);
        let name = "x".repeat(LONGEST + 1);
        assert_eq!(nearest(&"x".repeat(10_000_000), [&name]), None);
        assert_eq!(nearest(&name.to_uppercase(), [&name]), None);
    }

    proptest! {
        #[test]
        fn the_order_of_the_names_does_not_matter(
            missing in "[a-c.]{1,6}",
            mut names in proptest::collection::vec("[a-cA-C.]{1,6}", 0..8),
        ) {
            let forward: Vec<String> = near_matches(&missing, names.clone());
            names.reverse();
            prop_assert_eq!(forward, near_matches(&missing, names));
        }

        #[test]
        fn arbitrary_names_never_panic(missing in ".{0,20}", name in ".{0,20}") {
            near_matches(&missing, [name]);
        }
    }
}
