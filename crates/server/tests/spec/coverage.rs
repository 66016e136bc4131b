//! Fails when a numbered requirement has no test or no sentence, and writes the page of requirements.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// One sentence for each number: `workspace_fr_001: Every path …`. The names of its tests begin with the number, or with
/// one of the words in parentheses behind it.
const SENTENCES: &str = include_str!("requirements.txt");

/// The requirements: set, kind, the highest number and how many digits it is written with; they count from 1
/// without gaps.
const REQUIREMENTS: [(&str, &str, usize, usize); 14] = [
    ("files", "path", 3, 1),
    ("files", "tool", 9, 1),
    ("files", "error", 5, 1),
    ("files", "option", 4, 1),
    ("files", "detail", 4, 1),
    ("files", "safety", 4, 1),
    ("guide", "bridge", 26, 2),
    ("guide", "tools", 28, 2),
    ("memory", "ac", 24, 2),
    ("memory", "scenario", 9, 1),
    ("workspace", "e2e", 84, 3),
    ("workspace", "fr", 19, 3),
    ("workspace", "nfr", 25, 3),
    ("workspace", "us", 11, 3),
];

/// What a number asks for, and how the names of its tests begin.
struct Requirement {
    sentence: &'static str,
    tests: Vec<String>,
}

/// A test and the file that it is in, seen from the folder of these tests.
struct NamedTest {
    name: String,
    file: String,
}

/// The Rust sources in a directory and below it, by their path from the folder of these tests.
fn sources(directory: &Path, within: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for name in testkit::names_in(directory) {
        let path = directory.join(&name);
        if name.ends_with(".rs") {
            found.push((format!("{within}{name}"), testkit::text_of(&path)));
        } else if !name.contains('.') {
            found.extend(sources(&path, &format!("{within}{name}/")));
        }
    }
    found
}

/// The names of all tests in a source.
fn tests_in(source: &str) -> Vec<String> {
    let mut names = Vec::new();
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
    names
}

/// All tests in these folders.
fn tests() -> Vec<NamedTest> {
    let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/spec"));
    let sources = sources(folder, "").into_iter();
    let tests = sources.flat_map(|(file, source)| {
        let names = tests_in(&source).into_iter();
        names.map(move |name| NamedTest {
            name,
            file: file.clone(),
        })
    });
    tests.collect()
}

/// What `requirements.txt` says of each number. A number that is there twice is a mistake.
fn requirements() -> BTreeMap<&'static str, Requirement> {
    let mut requirements = BTreeMap::new();
    let lines = SENTENCES.lines();
    for line in lines.filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let (head, sentence) = line.split_once(": ").unwrap_or((line, ""));
        let (number, words) = head.split_once(" (").unwrap_or((head, ""));
        let words = words.trim_end_matches(')').split_whitespace();
        let mut tests: Vec<String> = words.map(str::to_owned).collect();
        if tests.is_empty() {
            tests.push(format!("{number}_"));
        }
        let before = requirements.insert(number, Requirement { sentence, tests });
        assert!(before.is_none(), "{number} is there twice");
    }
    requirements
}

/// Every number.
fn numbers() -> impl Iterator<Item = String> {
    REQUIREMENTS
        .iter()
        .flat_map(|(set, kind, highest, digits)| {
            (1..=*highest).map(move |number| format!("{set}_{kind}_{number:0digits$}"))
        })
}

#[test]
fn every_requirement_has_a_sentence() {
    let requirements = requirements();
    for number in numbers() {
        let requirement = requirements.get(number.as_str());
        let sentence = requirement.map_or("", |requirement| requirement.sentence);
        let is_sentence = sentence.ends_with('.') && sentence.contains(' ');
        assert!(is_sentence, "requirements.txt: {number}: {sentence:?}");
    }
    let known: BTreeSet<String> = numbers().collect();
    let stray: Vec<_> = requirements
        .keys()
        .filter(|number| !known.contains(**number))
        .collect();
    assert!(stray.is_empty(), "no such requirements: {stray:?}");
}

#[test]
fn every_requirement_has_a_test() {
    let tests = tests();
    let has_test = |beginning: &String| {
        let mut names = tests.iter().map(|test| test.name.as_str());
        names.any(|name| name.starts_with(beginning.as_str()))
    };
    let requirements = requirements().into_iter();
    let missing: Vec<String> = requirements
        .flat_map(|(number, requirement)| {
            let tests = requirement.tests.into_iter();
            let missing = tests.filter(|beginning| !has_test(beginning));
            missing.map(move |beginning| format!("{number}: {beginning}…"))
        })
        .collect();
    assert!(missing.is_empty(), "no test for {missing:?}");
}

/// What the page calls a kind of requirement.
fn title(set: &str, kind: &str) -> String {
    let words = match kind {
        "ac" => "acceptance criteria",
        "bridge" => "of the bridge",
        "detail" => "implementation details",
        "e2e" => "end-to-end scenarios",
        "error" => "error handling",
        "fr" => "functional requirements",
        "nfr" => "requirements on quality",
        "option" => "configuration options",
        "path" => "path validation",
        "safety" => "security considerations",
        "scenario" => "scenarios",
        "tool" => "the tools",
        "tools" => "of the tools",
        "us" => "user stories",
        other => other,
    };
    format!("`{set}`, {words}")
}

/// The page of requirements: what each number asks for, and the tests that show it.
fn page() -> String {
    let (tests, requirements) = (tests(), requirements());
    let mut page = "# Requirements\n\n\
        Names of tests carry the numbers of the specifications that this program was written against: `workspace_fr_016_…` is a test of functional\n\
        requirement 16 of `workspace`. This page says what each number asks for, and which tests show it. Run them with\n\
        `cargo nextest run -p mcp-filesystem workspace_fr_016`. Files are below `crates/server/tests/spec`. The specification of `files` only numbers the\n\
        points of its lists; its tests are named by tool. What it lists as possible later (watching, comparing, hashes, MIME types, compressed files, rights)\n\
        is there, and has tests of its own.\n\n\
        A test writes this page from `requirements.txt` beside the tests (`UPDATE_DOCS=1 cargo test -p mcp-filesystem --test spec requirements`). It fails\n\
        if a number has no sentence or no test.\n"
        .to_owned();
    for (set, kind, highest, digits) in REQUIREMENTS {
        page += &format!(
            "\n## {}\n\n| number | what it asks for | shown by |\n|---|---|---|\n",
            title(set, kind)
        );
        for number in 1..=highest {
            let number = format!("{set}_{kind}_{number:0digits$}");
            if let Some(requirement) = requirements.get(number.as_str()) {
                let shown = shown_by(&number, requirement, &tests);
                page += &format!("| `{number}` | {} | {shown} |\n", requirement.sentence);
            }
        }
    }
    page
}

/// The tests of a number in words, file by file.
fn shown_by(number: &str, requirement: &Requirement, tests: &[NamedTest]) -> String {
    let prefix = format!("{number}_");
    let shows = |name: &str| {
        let mut beginnings = requirement.tests.iter();
        beginnings.any(|beginning| name.starts_with(beginning.as_str()))
    };
    let mut files: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for test in tests.iter().filter(|test| shows(&test.name)) {
        let words = files.entry(test.file.as_str()).or_default();
        let name = test.name.strip_prefix(&prefix).unwrap_or(&test.name);
        words.insert(name.replace('_', " "));
    }
    let shown = files.into_iter().map(|(file, words)| {
        let words: Vec<String> = words.into_iter().collect();
        format!("`{file}`: {}", words.join("; "))
    });
    shown.collect::<Vec<_>>().join("<br>")
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
    let known: BTreeSet<String> = numbers().collect();
    for test in tests() {
        let name = test.name;
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
