//! Fails when a numbered requirement has no test.

use std::collections::BTreeSet;
use std::path::Path;

/// The requirements: set, kind, the highest number and how many digits it is written with; they count from 1
/// without gaps.
const REQUIREMENTS: [(&str, &str, usize, usize); 8] = [
    ("guide", "bridge", 26, 2),
    ("guide", "tools", 28, 2),
    ("memory", "ac", 24, 2),
    ("memory", "scenario", 9, 1),
    ("workspace", "e2e", 84, 3),
    ("workspace", "fr", 19, 3),
    ("workspace", "nfr", 25, 3),
    ("workspace", "us", 11, 3),
];

/// The Rust sources in a directory and below it.
fn sources(directory: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for name in testkit::names_in(directory) {
        let path = directory.join(&name);
        if name.ends_with(".rs") {
            found.push(testkit::text_of(&path));
        } else if !name.contains('.') {
            found.extend(sources(&path));
        }
    }
    found
}

/// The names of all tests in these folders.
fn tests() -> Vec<String> {
    let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/spec"));
    let mut names = Vec::new();
    for source in sources(folder) {
        let mut marked = false;
        for line in source.lines() {
            let name = line.trim_start_matches("async ").strip_prefix("fn ");
            if let Some((name, _)) = name
                .filter(|_| marked)
                .and_then(|rest| rest.split_once('('))
            {
                names.push(name.to_owned());
            }
            marked = line == "#[test]" || line.starts_with("#[tokio::test");
        }
    }
    names
}

#[test]
fn every_requirement_has_a_test() {
    let tests = tests();
    let mut missing = Vec::new();
    for (set, kind, highest, digits) in REQUIREMENTS {
        for number in 1..=highest {
            let prefix = format!("{set}_{kind}_{number:0digits$}_");
            if !tests.iter().any(|name| name.starts_with(&prefix)) {
                missing.push(prefix);
            }
        }
    }
    assert!(missing.is_empty(), "no test for {missing:?}");
}

/// What the page calls a kind of requirement.
fn title(set: &str, kind: &str) -> String {
    let words = match kind {
        "ac" => "acceptance criteria",
        "bridge" => "of the bridge",
        "e2e" => "end-to-end scenarios",
        "fr" => "functional requirements",
        "nfr" => "requirements on quality",
        "scenario" => "scenarios",
        "tools" => "of the tools",
        "us" => "user stories",
        other => other,
    };
    format!("`{set}`, {words}")
}

/// The page of requirements: each number, in the words of the tests that show it.
fn page() -> String {
    let tests = tests();
    let mut page = "# Requirements\n\n\
        Tests carry the numbers of the specifications that this program was written against. This page tells what each number is about, in the\n\
        words of the tests that show it: `workspace_fr_016_…` is a test of requirement 16 of the functional ones of `workspace`. Run one with\n\
        `cargo nextest run -p mcp-filesystem workspace_fr_016`. `files` has no numbers; its tests are in `crates/server/tests/spec/files`, one file a tool.\n\n\
        A test writes this page (`UPDATE_DOCS=1 cargo test -p mcp-filesystem --test spec requirements`) and fails if a number has no test.\n"
        .to_owned();
    for (set, kind, highest, digits) in REQUIREMENTS {
        page += &format!(
            "\n## {}\n\n| number | what is shown |\n|---|---|\n",
            title(set, kind)
        );
        for number in 1..=highest {
            let prefix = format!("{set}_{kind}_{number:0digits$}_");
            let shown = tests.iter().filter_map(|name| name.strip_prefix(&prefix));
            let shown: BTreeSet<String> = shown.map(|rest| rest.replace('_', " ")).collect();
            let shown: Vec<String> = shown.into_iter().collect();
            let prefix = prefix.trim_end_matches('_');
            page += &format!("| `{prefix}` | {} |\n", shown.join("; "));
        }
    }
    page
}

#[test]
fn the_page_of_requirements_is_fresh() {
    let path = Path::new(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/requirements.md"
    ));
    let page = page();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        testkit::write_text(path, &page);
    }
    assert!(
        testkit::text_of(path) == page,
        "docs/requirements.md is stale: run UPDATE_DOCS=1 cargo test -p mcp-filesystem --test spec requirements"
    );
}

#[test]
fn no_test_claims_a_requirement_that_is_not_there() {
    let known: BTreeSet<String> = REQUIREMENTS
        .iter()
        .flat_map(|(set, kind, highest, digits)| {
            (1..=*highest).map(move |n| format!("{set}_{kind}_{n:0digits$}"))
        })
        .collect();
    for name in tests() {
        let words: Vec<&str> = name.splitn(4, '_').collect();
        if let [set, kind, number, _] = words[..] {
            let numbered = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
            assert!(
                !numbered || known.contains(&format!("{set}_{kind}_{number}")),
                "{name}"
            );
        }
    }
}
