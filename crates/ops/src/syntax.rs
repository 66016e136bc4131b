//! Tells whether a change broke a JSON, YAML or TOML file. It warns and never refuses: a file may be broken on purpose.

use serde::de::IgnoredAny;

use crate::context::Context;
use crate::error::Result;
use crate::text::encoding;

/// The largest file that is parsed.
pub(crate) const PARSED_MAX: u64 = 4 * 1024 * 1024;
/// How much of a parser's reason is repeated.
const REASON_SHOWN: usize = 200;

/// Why a file does not parse.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SyntaxFault {
    /// What it was read as.
    pub language: &'static str,
    /// The line, from 1, if the parser says one.
    pub line: Option<u64>,
    /// The parser's words, in one line.
    pub reason: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Language {
    Json,
    Yaml,
    Toml,
}

/// The fault of a file that has one now and had none before; a new file had none. `size` is its size now. Without room
/// for parsing, returns none.
pub(crate) fn new_fault(
    path: &str,
    before: &dyn Fn() -> Result<Option<Vec<u8>>>,
    (after, size): (&dyn Fn() -> Result<Vec<u8>>, u64),
    context: &Context,
) -> Result<Option<SyntaxFault>> {
    let Some(language) = Language::of(path).filter(|_| size <= PARSED_MAX) else {
        return Ok(None);
    };
    let Some(_room) = context.spare_room(size.saturating_mul(language.footprint())) else {
        return Ok(None);
    };
    let Some(fault) = language.fault(&after()?) else {
        return Ok(None);
    };
    let parsed = before()?.is_none_or(|before| language.fault(&before).is_none());
    Ok(parsed.then_some(fault))
}

impl Language {
    fn of(path: &str) -> Option<Language> {
        let (_, extension) = path.rsplit_once('.')?;
        match extension.to_ascii_lowercase().as_str() {
            "json" => Some(Language::Json),
            "yaml" | "yml" => Some(Language::Yaml),
            "toml" => Some(Language::Toml),
            _ => None,
        }
    }

    /// How many times its size a text takes in memory while it is parsed, about.
    fn footprint(self) -> u64 {
        match self {
            Language::Json | Language::Yaml => 2,
            // It is parsed to a tree that keeps every blank.
            Language::Toml => 24,
        }
    }

    fn fault(self, text: &[u8]) -> Option<SyntaxFault> {
        let text = text.strip_prefix(encoding::BOM).unwrap_or(text);
        if text.len() as u64 > PARSED_MAX {
            return None;
        }
        let text = encoding::utf8(text)?;
        let (language, line, reason) = match self {
            Language::Json => {
                let error = serde_json::from_str::<IgnoredAny>(text).err()?;
                ("JSON", Some(error.line() as u64), error.to_string())
            }
            Language::Yaml => {
                let error = serde_saphyr::from_multiple::<IgnoredAny>(text).err()?;
                if matches!(error.without_snippet(), serde_saphyr::Error::Budget { .. }) {
                    // Being too complex to parse here is no fault of the file.
                    return None;
                }
                let line = error.location().map(|location| location.line());
                ("YAML", line, error.without_snippet().to_string())
            }
            Language::Toml => {
                let error = text.parse::<toml_edit::DocumentMut>().err()?;
                let start = error.span().map(|span| span.start);
                let before = start.and_then(|start| text.get(..start));
                let line = before.map(|before| before.matches('\n').count() as u64 + 1);
                ("TOML", line, error.message().to_owned())
            }
        };
        Some(SyntaxFault {
            language,
            line,
            reason: sandbox::truncated(without_place(&reason), REASON_SHOWN).to_owned(),
        })
    }
}

/// The first line of a parser's message, without the position, which is reported separately.
fn without_place(reason: &str) -> &str {
    let reason = reason.lines().next().unwrap_or_default();
    reason
        .rsplit_once(" at line ")
        .map_or(reason, |(reason, _)| reason)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::byte_budget::{ByteBudget, ByteLimits, ReplyRoom};
    use crate::testing::context;
    use std::sync::Arc;
    use std::time::Duration;

    fn fault(path: &str, before: Option<&str>, after: &str) -> Option<SyntaxFault> {
        let before = || Ok(before.map(|text| text.as_bytes().to_vec()));
        fault_within(path, &before, after, &context())
    }

    fn fault_within(
        path: &str,
        before: &dyn Fn() -> Result<Option<Vec<u8>>>,
        after: &str,
        context: &Context,
    ) -> Option<SyntaxFault> {
        let text = || Ok(after.as_bytes().to_vec());
        new_fault(path, before, (&text, after.len() as u64), context).unwrap()
    }

    #[test]
    fn parsing_takes_room_and_is_left_out_without() {
        let limits = ByteLimits {
            all: 1024 * 1024,
            of_one: 1024 * 1024,
        };
        let budget = ByteBudget::new(limits);
        let client: Arc<str> = "client".into();
        let room = ReplyRoom::new(Arc::clone(&budget), Arc::clone(&client), Duration::ZERO);
        let context = Context {
            room: Some(Arc::new(room)),
            ..context()
        };
        let new = || Ok(None);
        let bad = format!("{}b = \n", "# a line\n".repeat(1_000));
        let held = budget.hold(&client, limits.of_one - 100_000);
        assert_eq!(fault_within("a.toml", &new, &bad, &context), None);
        assert!(fault_within("a.yaml", &new, "a: [\n", &context).is_some());
        drop(held);
        assert!(fault_within("a.toml", &new, &bad, &context).is_some());
        assert_eq!(budget.bytes_held(), 0);
    }

    #[test]
    fn what_no_longer_parses_is_told_with_its_line() {
        for (path, good, bad, line) in [
            ("a.json", "{\"a\": 1}", "{\n\"a\": 1,\n}", 3),
            ("a.JSON", "[]", "[1,\n2", 2),
            ("a.yaml", "a: 1\nb: 2\n", "a: 1\nb: [1, 2\n", 2),
            ("a.yml", "a: 1\n", "a: 1\n\tb: 2\n", 1),
            ("d/a.toml", "[a]\nb = 1\n", "[a]\nb = \n", 2),
            ("a.toml", "a = 1\n", "a = 1\na = 2\n", 2),
        ] {
            let found = fault(path, Some(good), bad).expect(path);
            assert_eq!(found.line, Some(line), "{path} {found:?}");
            assert!(!found.reason.is_empty() && !found.reason.contains('\n'));
            assert!(!found.reason.contains("line "), "{found:?}");
            assert_eq!(fault(path, None, bad), Some(found), "{path}");
            assert_eq!(fault(path, Some(bad), bad), None, "{path}");
            assert_eq!(fault(path, Some(bad), good), None, "{path}");
            assert_eq!(fault("a.txt", Some(good), bad), None);
        }
    }

    #[test]
    fn what_is_valid_is_not_warned_about() {
        for (path, text) in [
            ("a.json", "\u{feff}{\"a\": [1, 2.5e3, null]}\r\n"),
            ("a.yaml", "---\na: &x 1\nb: *x\n---\n- c\n"),
            ("a.yaml", ""),
            ("a.toml", "a = 1\r\n[b]\nc.d = \"\\u00e9\"\n"),
            ("a.toml", ""),
        ] {
            assert_eq!(fault(path, None, text), None, "{path} {text:?}");
        }
    }
}
