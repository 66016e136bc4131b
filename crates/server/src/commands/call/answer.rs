//! Prints what a tool answered: text on a terminal, JSON elsewhere.

use std::io::{IsTerminal, Write};

use anyhow::{Result, bail};
use serde_json::Value;

use super::readable::readable;

/// The tool whose answer is a table for people; its text is written for models.
const TABLED: &str = "list_roots";

/// What a tool answered, here or on another machine.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ToolAnswer {
    /// The text block.
    pub(super) text: Option<String>,
    /// The structured content, as JSON.
    pub(super) structured: Option<String>,
    /// Whether the tool failed.
    pub(super) is_error: bool,
}

impl ToolAnswer {
    /// Prints the answer; a tool that failed is an error.
    pub(super) fn print(&self, tool: &str) -> Result<()> {
        let mut out = std::io::stdout().lock();
        let shown = match (&self.structured, out.is_terminal()) {
            (Some(structured), false) => structured.clone(),
            _ => self.for_people(tool)?,
        };
        writeln!(out, "{}", shown.trim_end_matches('\n'))?;
        if self.is_error {
            bail!("{tool} failed");
        }
        Ok(())
    }

    /// What a person reads: the text, or the structured content if the text only repeats it as JSON.
    fn for_people(&self, tool: &str) -> Result<String> {
        let text = self.text.clone().unwrap_or_default();
        let Some(structured) = &self.structured else {
            return Ok(text);
        };
        let structured: Value = serde_json::from_str(structured)?;
        let is_tabled = tool == TABLED && !self.is_error;
        Ok(
            if is_tabled || text.is_empty() || repeats(&text, &structured) {
                readable(&structured)
            } else {
                text
            },
        )
    }
}

fn repeats(text: &str, structured: &Value) -> bool {
    serde_json::from_str::<Value>(text).is_ok_and(|value| value == *structured)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(tool: &str, text: &str, structured: &str) -> String {
        let answer = ToolAnswer {
            text: Some(text.to_owned()),
            structured: Some(structured.to_owned()),
            is_error: false,
        };
        answer.for_people(tool).unwrap()
    }

    #[test]
    fn people_read_the_text_unless_it_is_json_again() {
        assert_eq!(shown("grep", "a:1", r#"{"n":1}"#), "a:1");
        assert_eq!(shown("grep", r#"{"n": 1}"#, r#"{"n":1}"#), "n: 1");
    }

    #[test]
    fn the_roots_are_a_table() {
        let roots =
            r#"{"roots":[{"name":"app","allowed_tools":["copy","move"],"read_only":false}]}"#;
        assert_eq!(
            shown("list_roots", "app: copy, move", roots),
            "roots:\n  name  read_only  allowed_tools\n  app   false      copy, move"
        );
    }
}
