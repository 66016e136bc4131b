//! Any patch on any text: it applies or is refused, never panics, and what it makes is what its hunks say.
#![no_main]

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use ops::Cancel;
use ops::text::patch::{apply, files};

#[derive(Debug, Arbitrary)]
struct Input {
    text: String,
    /// Cut into hunks with right headers, so that the parser is passed more often.
    hunks: Vec<(u8, Vec<Line>)>,
    /// Used as it is, where there are no hunks.
    raw: String,
}

#[derive(Debug, Arbitrary)]
enum Line {
    Keep(u8),
    Remove(u8),
    Add(u8),
}

fn word(number: u8) -> String {
    ["", "a", "b", "ä", "a\r", " ", "\\ No newline", "+", "@@"][usize::from(number) % 9].to_owned()
}

fn hunk(start: u8, lines: &[Line]) -> String {
    let (mut old, mut new, mut body) = (0, 0, String::new());
    for line in lines.iter().take(20) {
        let (sign, number) = match line {
            Line::Keep(number) => {
                (old, new) = (old + 1, new + 1);
                (' ', number)
            }
            Line::Remove(number) => {
                old += 1;
                ('-', number)
            }
            Line::Add(number) => {
                new += 1;
                ('+', number)
            }
        };
        body += &format!("{sign}{}\n", word(*number));
    }
    format!("@@ -{start},{old} +{start},{new} @@\n{body}")
}

fuzz_target!(|input: Input| {
    let patch = match input.hunks.is_empty() {
        true => input.raw.clone(),
        false => input
            .hunks
            .iter()
            .map(|(start, lines)| hunk(*start, lines))
            .collect(),
    };
    let cancel = Cancel::never();
    let Ok(files) = files(&patch, &cancel) else {
        return;
    };
    for file in &files {
        let Ok(applied) = apply("file", input.text.as_bytes(), file, &cancel) else {
            continue;
        };
        assert!(!applied.hunks.is_empty());
        assert!(
            std::str::from_utf8(&applied.content).is_ok(),
            "text stays text"
        );
        // A line that is added may get a `\r` of its surroundings.
        assert!(applied.content.len() <= input.text.len() + 2 * patch.len() + 2);
        let again = apply("file", input.text.as_bytes(), file, &cancel).unwrap();
        assert_eq!(again, applied);
    }
});
