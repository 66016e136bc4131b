//! A YAML file as a plain tree.
//!
//! The tree keeps the types of the file (a quoted number stays text), so that the reader can report what it expected
//! and what it found.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_saphyr::options::DuplicateKeyPolicy;

use crate::settings::error::{SettingsError, quoted};

/// One value of the file.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum YamlValue {
    /// Nothing: `null`, `~`, or a key without a value.
    Null,
    /// `true` or `false`; `yes`, `on` and the like are text.
    Boolean(bool),
    /// A whole number.
    Integer(i128),
    /// A number with a fraction or an exponent.
    Fraction(f64),
    /// Text, quoted or not.
    Text(String),
    /// A sequence.
    List(Vec<YamlValue>),
    /// A mapping, in the order of the file.
    Map(Vec<(String, YamlValue)>),
}

impl YamlValue {
    /// Reads one YAML document; an empty file is [`YamlValue::Null`].
    pub(crate) fn parse(text: &str) -> Result<YamlValue, SettingsError> {
        let options = serde_saphyr::options! {
            duplicate_keys: DuplicateKeyPolicy::Error,
            strict_booleans: true,
            reject_unsupported_tags: true,
            with_snippet: false,
        };
        if is_blank(text) {
            return Ok(YamlValue::Null);
        }
        serde_saphyr::from_str_with_options(text, options).map_err(|error| syntax(&error, text))
    }
}

/// Shows a value in an error message, always on one short line.
impl fmt::Display for YamlValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            YamlValue::Null => f.write_str("nothing"),
            YamlValue::Boolean(value) => write!(f, "{value}"),
            YamlValue::Integer(value) => write!(f, "{value}"),
            YamlValue::Fraction(value) => write!(f, "{value}"),
            YamlValue::Text(value) => f.write_str(&quoted(value)),
            YamlValue::List(_) => f.write_str("a list"),
            YamlValue::Map(_) => f.write_str("a map"),
        }
    }
}

fn is_blank(text: &str) -> bool {
    text.lines()
        .all(|line| line.trim().is_empty() || line.trim_start().starts_with('#'))
}

fn syntax(error: &serde_saphyr::Error, text: &str) -> SettingsError {
    let (line, column) = place(error);
    if let serde_saphyr::Error::DuplicateMappingKey { key, .. } = error.without_snippet() {
        return SettingsError::DuplicateKey {
            line,
            key: quoted(key.as_deref().unwrap_or_default()),
        };
    }
    let rendered = error.without_snippet().render();
    let reason = rendered
        .lines()
        .next()
        .unwrap_or_default()
        .trim()
        .to_owned();
    SettingsError::Syntax {
        line,
        column,
        reason,
        hint: hint(text, line),
    }
}

fn place(error: &serde_saphyr::Error) -> (u64, u64) {
    error
        .location()
        .map_or((1, 1), |location| (location.line(), location.column()))
}

/// Explains a bare star, a common mistake: YAML takes it for an alias.
fn hint(text: &str, line: u64) -> &'static str {
    let line = usize::try_from(line.saturating_sub(1)).unwrap_or(usize::MAX);
    // The parser may report the line after the mistake, so check both.
    let near = text.lines().skip(line.saturating_sub(1)).take(2);
    if near.into_iter().any(has_bare_star) {
        " (a star needs quotes: \"*\")"
    } else {
        ""
    }
}

fn has_bare_star(line: &str) -> bool {
    line.contains('*') && !line.contains("\"*\"") && !line.contains("'*'")
}

impl<'de> Deserialize<'de> for YamlValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<YamlValue, D::Error> {
        deserializer.deserialize_any(YamlVisitor)
    }
}

struct YamlVisitor;

impl<'de> Visitor<'de> for YamlVisitor {
    type Value = YamlValue;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a YAML value")
    }

    fn visit_unit<E>(self) -> Result<YamlValue, E> {
        Ok(YamlValue::Null)
    }

    fn visit_none<E>(self) -> Result<YamlValue, E> {
        Ok(YamlValue::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<YamlValue, E> {
        Ok(YamlValue::Boolean(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<YamlValue, E> {
        Ok(YamlValue::Integer(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<YamlValue, E> {
        Ok(YamlValue::Integer(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<YamlValue, E> {
        Ok(YamlValue::Fraction(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<YamlValue, E> {
        Ok(YamlValue::Text(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<YamlValue, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(YamlValue::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<YamlValue, A::Error> {
        let mut map = Vec::new();
        while let Some((key, value)) = entries.next_entry::<YamlValue, YamlValue>()? {
            map.push((key_text(key).map_err(A::Error::custom)?, value));
        }
        Ok(YamlValue::Map(map))
    }
}

fn key_text(key: YamlValue) -> Result<String, &'static str> {
    match key {
        YamlValue::Text(text) => Ok(text),
        YamlValue::List(_) | YamlValue::Map(_) => Err("a key must be text"),
        other => Ok(other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(value: &str) -> YamlValue {
        YamlValue::Text(value.to_owned())
    }

    #[test]
    fn values_keep_the_type_they_were_written_in() {
        let node = YamlValue::parse("[1, '1', -2, 1.5, true, on, off, yes, null, ~, x]").unwrap();
        let expected = vec![
            YamlValue::Integer(1),
            text("1"),
            YamlValue::Integer(-2),
            YamlValue::Fraction(1.5),
            YamlValue::Boolean(true),
            text("on"),
            text("off"),
            text("yes"),
            YamlValue::Null,
            YamlValue::Null,
            text("x"),
        ];
        assert_eq!(node, YamlValue::List(expected));
    }

    #[test]
    fn an_empty_file_is_nothing() {
        for empty in ["", "\n", "# only a comment\n", "---\n"] {
            assert_eq!(
                YamlValue::parse(empty).unwrap(),
                YamlValue::Null,
                "{empty:?}"
            );
        }
    }

    #[test]
    fn anchors_work_and_bombs_do_not() {
        let shared = "a: &tools [x]\nb: *tools\n";
        let list = YamlValue::List(vec![text("x")]);
        let expected = vec![("a".to_owned(), list.clone()), ("b".to_owned(), list)];
        assert_eq!(YamlValue::parse(shared).unwrap(), YamlValue::Map(expected));

        let mut bomb = String::from("a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n");
        for level in 1..10 {
            let below = level - 1;
            let items = vec![format!("*a{below}"); 10].join(",");
            bomb.push_str(&format!("a{level}: &a{level} [{items}]\n"));
        }
        assert!(YamlValue::parse(&bomb).is_err());
        assert!(YamlValue::parse(&"[".repeat(10_000)).is_err());
        assert!(YamlValue::parse(&"- ".repeat(10_000)).is_err());
    }
}
