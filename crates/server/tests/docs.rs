//! The generated parts of the documents are what the program says. `UPDATE_DOCS=1` writes them anew.
#![expect(
    clippy::disallowed_methods,
    reason = "the documents lie beside the code"
)]

use std::path::{Path, PathBuf};
use std::process::Command;

const SETS: [&str; 4] = ["workspace", "files", "memory", "guide"];

fn document(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(name)
}

fn said(arguments: &[&str]) -> String {
    let binary = env!("CARGO_BIN_EXE_mcp-filesystem");
    let output = Command::new(binary).args(arguments).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Compares a document with what it should be, or writes it.
fn check(name: &str, wanted: &str) {
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(document(name), wanted).unwrap();
    }
    let is = std::fs::read_to_string(document(name)).unwrap_or_default();
    assert!(
        is == wanted,
        "{name} is stale: run UPDATE_DOCS=1 cargo test -p mcp-filesystem --test docs"
    );
}

#[test]
fn the_tool_reference_is_fresh() {
    let pages: Vec<String> = SETS
        .iter()
        .map(|set| said(&["tools", "--toolset", set]))
        .collect();
    check("docs/functionalities.md", &pages.join("\n"));
}

#[test]
fn the_tables_of_the_readme_are_fresh() {
    let mut readme = std::fs::read_to_string(document("README.md")).unwrap();
    for set in SETS {
        let opening = format!("<!-- tools:{set} -->\n");
        let start = readme.find(&opening).unwrap() + opening.len();
        let end = start + readme[start..].find("<!-- /tools -->").unwrap();
        readme.replace_range(start..end, &table(set));
    }
    check("README.md", &readme);
}

/// One row a tool, with the first sentence of its description.
fn table(set: &str) -> String {
    let said: serde_json::Value =
        serde_json::from_str(&said(&["tools", "--toolset", set, "--format", "json"])).unwrap();
    let mut table = "| tool | what it does |\n|---|---|\n".to_owned();
    for tool in said["tools"].as_array().unwrap() {
        let description = tool["description"].as_str().unwrap();
        let sentence = description
            .split_once(". ")
            .map_or(description, |(first, _)| first);
        table += &format!("| `{}` | {sentence}. |\n", tool["name"].as_str().unwrap());
    }
    table
}
