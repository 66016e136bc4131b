//! Formats a reply for people: names and values line by line, lists of objects as tables.

use serde_json::{Map, Value};

/// The widest column of a table, in characters; a longer cell shifts the rest of its row.
const MAX_CELL: usize = 60;

/// Formats a reply.
pub(crate) fn readable(value: &Value) -> String {
    let mut lines = Vec::new();
    match value {
        Value::Object(object) => fields(object, 0, &mut lines),
        other => lines.push(plain(other)),
    }
    lines.join("\n")
}

fn fields(object: &Map<String, Value>, depth: usize, lines: &mut Vec<String>) {
    for (name, value) in object {
        field(name, value, depth, lines);
    }
}

fn field(name: &str, value: &Value, depth: usize, lines: &mut Vec<String>) {
    let indent = "  ".repeat(depth);
    let inner = "  ".repeat(depth + 1);
    match value {
        Value::Object(object) if !object.is_empty() => {
            lines.push(format!("{indent}{name}:"));
            fields(object, depth + 1, lines);
        }
        Value::Array(items) if !items.is_empty() => {
            lines.push(format!("{indent}{name}:"));
            lines.extend(list(items).into_iter().map(|line| inner.clone() + &line));
        }
        Value::String(text) if text.contains('\n') => {
            lines.push(format!("{indent}{name}:"));
            lines.extend(text.lines().map(|line| inner.clone() + &escaped(line)));
        }
        plain_one => lines.push(format!("{indent}{name}: {}", plain(plain_one))),
    }
}

fn list(items: &[Value]) -> Vec<String> {
    let objects: Option<Vec<&Map<String, Value>>> = items.iter().map(Value::as_object).collect();
    match objects {
        Some(objects) => table(&objects),
        None => items.iter().map(plain).collect(),
    }
}

/// One row an object, one column for each name that has a value in any of them.
fn table(objects: &[&Map<String, Value>]) -> Vec<String> {
    let mut columns: Vec<&str> = Vec::new();
    for (name, value) in objects.iter().flat_map(|object| object.iter()) {
        let is_empty = value.as_array().is_some_and(Vec::is_empty);
        if !is_empty && !columns.contains(&name.as_str()) {
            columns.push(name);
        }
    }
    // Lists are long, so they come last, where they shift nothing.
    let is_list = |name: &&str| {
        let mut values = objects.iter().filter_map(|object| object.get(*name));
        values.any(Value::is_array)
    };
    columns.sort_by_key(is_list);
    let head = columns.iter().map(|name| (*name).to_owned()).collect();
    let row = |object: &&Map<String, Value>| {
        let cell = |name: &&str| object.get(*name).map_or_else(String::new, plain);
        columns.iter().map(cell).collect::<Vec<String>>()
    };
    let rows: Vec<Vec<String>> = std::iter::once(head)
        .chain(objects.iter().map(row))
        .collect();
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        let longest = cells.map(|cell| cell.chars().count()).max();
        longest.unwrap_or(0).min(MAX_CELL)
    };
    let widths: Vec<usize> = (0..columns.len()).map(width).collect();
    rows.iter().map(|row| aligned(row, &widths)).collect()
}

fn aligned(row: &[String], widths: &[usize]) -> String {
    let cells = row.iter().zip(widths);
    let cells = cells.map(|(cell, width)| format!("{cell:width$}"));
    let line: Vec<String> = cells.collect();
    line.join("  ").trim_end().to_owned()
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => escaped(text),
        Value::Null => "-".to_owned(),
        Value::Array(items) if items.iter().all(Value::is_string) && !items.is_empty() => {
            let items: Vec<String> = items.iter().map(plain).collect();
            items.join(", ")
        }
        other => other.to_string(),
    }
}

/// Escapes control characters, which a terminal would obey.
fn escaped(text: &str) -> String {
    let shown = |character: char| match character {
        '\t' => ' '.to_string(),
        control if control.is_control() => control.escape_default().to_string(),
        other => other.to_string(),
    };
    text.chars().map(shown).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn lists_of_things_are_tables() {
        let reply = json!({
            "root": "app",
            "entries": [
                { "name": "a.txt", "size": 12, "notes": [] },
                { "name": "folder", "type": "directory" },
            ],
            "names": ["x", "y"],
            "none": [],
            "details": { "path": "a\u{1b}[2J", "old": null },
        });
        let expected = "\
root: app
entries:
  name    size  type
  a.txt   12
  folder        directory
names:
  x
  y
none: []
details:
  path: a\\u{1b}[2J
  old: -";
        assert_eq!(readable(&reply), expected);
    }

    #[test]
    fn long_text_keeps_its_lines() {
        let reply = json!({ "content": "one\ntwo\n" });
        assert_eq!(readable(&reply), "content:\n  one\n  two");
        assert_eq!(readable(&json!("text")), "text");
    }
}
