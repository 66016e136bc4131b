//! The translation against what Go itself says, and against texts at random.

use std::ops::Range;

use proptest::prelude::*;
use serde_json::Value;

use super::translate;

/// What Go says of each expression; `tests/go/expressions.go` makes it.
const TABLE: &str = include_str!("table.jsonl");

/// What Go refuses and we accept, because the engine's own syntax has it.
const EXTRAS: [&str; 1] = [r"\u0041"];

fn compiled(expression: &str) -> Result<regex::bytes::Regex, String> {
    let translated = translate(expression)?;
    regex::bytes::Regex::new(&translated).map_err(|error| format!("{translated}: {error}"))
}

fn spans(expression: &regex::bytes::Regex, text: &str) -> Vec<Range<usize>> {
    let found = expression.find_iter(text.as_bytes());
    found
        .map(|found| found.range())
        // Between the bytes of a character, where Go never looks.
        .filter(|range| text.is_char_boundary(range.start))
        .collect()
}

fn ranges(value: &Value) -> Vec<Range<usize>> {
    let number = |value: &Value| usize::try_from(value.as_u64().unwrap()).unwrap();
    let range = |value: &Value| number(&value[0])..number(&value[1]);
    value.as_array().unwrap().iter().map(range).collect()
}

#[test]
fn workspace_fr_016_expressions_are_read_as_go_reads_them() {
    let mut rows = TABLE.lines().map(|row| serde_json::from_str(row).unwrap());
    let texts: Value = rows.next().unwrap();
    let mut compared = 0;
    let mut wrong = Vec::new();
    for row in rows {
        let row: Value = row;
        let expression = row["expression"].as_str().unwrap();
        let ours = compiled(expression);
        let Some(theirs) = row["spans"].as_array() else {
            if ours.is_ok() != EXTRAS.contains(&expression) {
                wrong.push(format!("{expression} is refused by Go, here {ours:?}"));
            }
            continue;
        };
        for (text, theirs) in texts.as_array().unwrap().iter().zip(theirs) {
            let text = text.as_str().unwrap();
            let found = ours.as_ref().map(|ours| spans(ours, text));
            if found != Ok(ranges(theirs)) {
                wrong.push(format!("{expression} in {text:?}: {found:?}, Go {theirs}"));
            }
            compared += 1;
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(compared > 4000, "{compared}");
}

#[test]
fn what_only_the_engine_has_stays_accepted() {
    for (expression, text, expected) in [
        (r"\u{2713}", "a ✓", 2..5),
        (r"\U0001F600", "😀", 0..4),
        (r"(?x) a  b # and a comment", "ab", 0..2),
        (r"(?x) [a b]+ \ c", "ba c", 0..4),
        (r"(?P<a>x)(?<b>y)", "xy", 0..2),
        (r"\p{Alphabetic}+", "1ab", 1..3),
    ] {
        let found = spans(&compiled(expression).unwrap(), text);
        assert_eq!(found, [expected], "{expression}");
    }
}

#[test]
fn refusals_say_what_to_write() {
    for (expression, reason) in [
        (
            "c++",
            r"invalid nested repetition ++: put what is repeated into a group, or escape the second as \+",
        ),
        (
            "*.rs",
            r"* has nothing to repeat: escape it as \* if the character itself is meant",
        ),
        (
            "foo(",
            r"missing closing ): escape it as \( if the character itself is meant",
        ),
        (
            "foo)",
            r"unexpected ): escape it as \) if the character itself is meant",
        ),
        (
            "a[b",
            r"missing closing ] of [b: escape it as \[ if the character itself is meant",
        ),
        (
            "a{3,2}",
            "invalid repetition {3,2}: counts go up to 1000, the smaller one first",
        ),
        (
            "(?<=a)b",
            "look-around (?<= is not supported: search for the text itself, or filter what was found",
        ),
        (
            "(?!a)b",
            "look-around (?!a is not supported: search for the text itself, or filter what was found",
        ),
        (
            r"(a)\1",
            r"invalid escape \1: references to groups are not supported",
        ),
        (r"a\Z", r"invalid escape \Z; the end of a line is $"),
        (
            r"\p{Nope}",
            r"there is no class \p{Nope}; use a category such as \p{Lu} or a script such as \p{Greek}",
        ),
        (
            "[z-a]",
            "invalid range z-a: it ends before it begins; put - first or last if the character itself is meant",
        ),
        (
            "(?z)a",
            "invalid flags (?z: use i, m, s or U, and - before those to switch off",
        ),
        (
            r"a\",
            r"trailing backslash: write \\ if the character itself is meant",
        ),
    ] {
        assert_eq!(
            translate(expression),
            Err(reason.to_owned()),
            "{expression}"
        );
    }
}

proptest! {
    /// Whatever is translated is read by the engine: no refusal speaks of a text that the client did not write.
    #[test]
    fn what_is_translated_compiles(expression in r"[ab\\\[\]\(\)\{\}?*+|^$.,:<>PQEix0-9dwsbp&~#é -]{0,24}") {
        if let Ok(translated) = translate(&expression) {
            let parsed = regex_syntax::ParserBuilder::new().utf8(false).build().parse(&translated);
            prop_assert!(parsed.is_ok(), "{expression} became {translated}: {parsed:?}");
        }
    }

    /// A quoted text finds itself.
    #[test]
    fn quoted_text_finds_itself(text in r"[^\\\n]{1,16}") {
        let found = spans(&compiled(&format!(r"\Q{text}\E")).unwrap(), &text);
        prop_assert_eq!(found, vec![0..text.len()]);
    }
}
