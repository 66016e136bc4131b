//! Fails when a numbered requirement has no test.

use std::collections::BTreeSet;

/// The sources whose tests carry requirements in their names.
const SOURCES: [&str; 24] = [
    include_str!("guide/bridge.rs"),
    include_str!("guide/tools.rs"),
    include_str!("memory/criteria.rs"),
    include_str!("memory/edits.rs"),
    include_str!("memory/errors.rs"),
    include_str!("memory/scenarios.rs"),
    include_str!("memory/together.rs"),
    include_str!("project.rs"),
    include_str!("workspace/config.rs"),
    include_str!("workspace/copy_move.rs"),
    include_str!("workspace/errors.rs"),
    include_str!("workspace/folders.rs"),
    include_str!("workspace/glob.rs"),
    include_str!("workspace/grep.rs"),
    include_str!("workspace/journeys.rs"),
    include_str!("workspace/logs.rs"),
    include_str!("workspace/metadata.rs"),
    include_str!("workspace/patch.rs"),
    include_str!("workspace/performance.rs"),
    include_str!("workspace/protocol.rs"),
    include_str!("workspace/read.rs"),
    include_str!("workspace/roots.rs"),
    include_str!("workspace/security.rs"),
    include_str!("workspace/write.rs"),
];

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

/// The names of all functions that the test harness runs.
fn tests() -> Vec<&'static str> {
    let mut names = Vec::new();
    for source in SOURCES {
        let mut marked = false;
        for line in source.lines() {
            let name = line.trim_start_matches("async ").strip_prefix("fn ");
            if let Some((name, _)) = name
                .filter(|_| marked)
                .and_then(|rest| rest.split_once('('))
            {
                names.push(name);
            }
            marked = matches!(line, "#[test]" | "#[tokio::test]");
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
