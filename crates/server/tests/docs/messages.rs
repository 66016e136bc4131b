//! The page of troubleshooting has the messages that there are, and the log has no line that the page leaves out.

use std::path::{Path, PathBuf};

use super::{document, text};

/// Crates whose log no operator sees.
const NOT_THE_SERVER: [&str; 3] = ["bench", "load", "testkit"];

/// Messages without a row, and why.
const WITHOUT_A_ROW: [(&str, &str); 1] = [(
    "{risk}",
    "any risk of `check`, which says itself what to change",
)];

/// What the first column of the tables of `docs/troubleshooting.md` quotes: the parts between ellipses.
fn quoted_messages(page: &str) -> Vec<String> {
    let rows = page.lines().filter_map(|line| line.strip_prefix("| "));
    let cells = rows.filter_map(|row| row.split(" | ").next());
    let quoted = cells.flat_map(|cell| cell.split('`').skip(1).step_by(2));
    let parts = quoted.flat_map(|message| message.split('…'));
    let parts = parts.map(|part| part.trim().to_owned());
    parts.filter(|part| part.len() > 4).collect()
}

/// Every source file, its lines joined as the compiler joins a text that goes on after a backslash.
fn sources() -> Vec<(PathBuf, String)> {
    let mut pending = vec![document("crates")];
    let mut sources = Vec::new();
    while let Some(place) = pending.pop() {
        for entry in std::fs::read_dir(place).unwrap() {
            let path = entry.unwrap().path();
            let is_source = path.components().any(|part| part.as_os_str() == "src");
            if path.is_dir() {
                pending.push(path);
            } else if is_source && path.extension().is_some_and(|end| end == "rs") {
                let text = std::fs::read_to_string(&path).unwrap();
                let lines = text.split("\\\n").map(str::trim_start);
                let text = lines.collect::<String>().replace("\\\"", "\"");
                sources.push((path, text));
            }
        }
    }
    sources
}

#[test]
fn messages_of_the_troubleshooting_page_exist() {
    let sources = sources();
    let messages = quoted_messages(&text("docs/troubleshooting.md"));
    assert!(messages.len() > 40, "{messages:?}");
    let missing: Vec<&String> = messages
        .iter()
        .filter(|message| {
            let mut texts = sources.iter().map(|(_, text)| text);
            !texts.any(|text| text.contains(message.as_str()))
        })
        .collect();
    assert!(missing.is_empty(), "no message has {missing:#?}");
}

/// The message of a log line: the last text among the arguments of the macro call that this is the inside of. A text that
/// is an argument of another call is none.
fn message(inside: &str) -> Option<&str> {
    let (mut depth, mut begun, mut is_escaped, mut last) = (1, None, false, None);
    for (at, character) in inside.char_indices() {
        match (character, begun) {
            _ if is_escaped => is_escaped = false,
            ('\\', Some(_)) => is_escaped = true,
            ('"', Some(start)) => {
                last = (depth == 1).then(|| &inside[start..at]).or(last);
                begun = None;
            }
            ('"', None) => begun = Some(at + 1),
            ('(', None) => depth += 1,
            (')', None) => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            break;
        }
    }
    last
}

/// The messages of the lines that a source file logs with this macro.
fn logged_with(opening: &str, source: &str) -> Vec<String> {
    let calls = source.match_indices(opening);
    let messages = calls.filter_map(|(at, _)| message(&source[at + opening.len()..]));
    messages.map(str::to_owned).collect()
}

/// What an operator can find in the log at WARN and ERROR.
fn warnings() -> Vec<String> {
    let is_of_server = |path: &Path| {
        let mut parts = path.components().map(|part| part.as_os_str());
        let is_test = path.file_name().is_some_and(|name| name == "tests.rs");
        !is_test && !parts.any(|part| NOT_THE_SERVER.iter().any(|other| part == *other))
    };
    let mut messages = Vec::new();
    for (path, source) in sources() {
        if is_of_server(path.strip_prefix(document("crates")).unwrap()) {
            // The second form is the macro of the lines of calls, whose first argument is the level.
            let compact: String = source.split_inclusive('\n').map(str::trim_start).collect();
            for opening in ["warn!(", "error!(", "call_line!(\nwarn,"] {
                messages.extend(logged_with(opening, &compact));
            }
        }
    }
    messages
}

#[test]
fn the_message_is_the_last_text_of_the_call() {
    let source = r#"warn!(count = of("x", ")"), kind = "y", "first {x}");
        warn!("second: {}", what.unwrap_or("none")); warn!(error); f("other")"#;
    let messages = logged_with("warn!(", source);
    assert_eq!(messages, ["first {x}", "second: {}"]);
}

#[test]
fn every_warning_of_the_log_is_explained() {
    let messages = warnings();
    assert!(messages.len() > 30, "{messages:#?}");
    for (message, _) in WITHOUT_A_ROW {
        assert!(messages.iter().any(|one| one == message), "{message}");
    }
    let quoted = quoted_messages(&text("docs/troubleshooting.md"));
    let is_told = |message: &str| {
        // What stands in braces differs from line to line.
        let parts = message.split(['{', '}']).step_by(2).map(str::trim);
        let mut parts = parts.filter(|part| part.len() > 4);
        parts.all(|part| quoted.iter().any(|one| one.contains(part)))
    };
    let has_reason = |message: &str| WITHOUT_A_ROW.iter().any(|(one, _)| *one == message);
    let untold: Vec<&String> = messages
        .iter()
        .filter(|message| !is_told(message) && !has_reason(message))
        .collect();
    assert!(
        untold.is_empty(),
        "docs/troubleshooting.md has no row for {untold:#?}"
    );
}
