//! The tool reference, generated from the definitions: the same for every set, never written by hand.

use std::fmt::Write;
use std::sync::LazyLock;

use rmcp::model::{JsonObject, Tool as McpTool};
use serde_json::{Map, Value, json};

use crate::catalogue::ToolEntry;
use crate::contract::CallSubject;

/// A Markdown page that documents these tools.
#[must_use]
pub(crate) fn markdown(title: &str, entries: &[ToolEntry], tools: &[McpTool]) -> String {
    let mut page = format!("# {title}\n");
    if let Some(first) = entries.first() {
        let _ = writeln!(page, "\n{}", first.contract.security());
    }
    for (entry, tool) in entries.iter().zip(tools) {
        tool_section(&mut page, tool);
        examples(&mut page, entry);
    }
    page
}

/// The tool's own examples, or else the call in its description; always followed by a failure in the set's words.
fn examples(page: &mut String, entry: &ToolEntry) {
    let definition = entry.tool.definition();
    for example in definition.examples {
        show(
            page,
            example.title,
            &parsed(example.arguments),
            &parsed(example.reply),
        );
    }
    if !definition.examples.is_empty() {
        return;
    }
    if let Some(arguments) = described_call(definition.description) {
        let _ = writeln!(page, "\nExample call:\n\n```json\n{arguments:#}\n```");
    }
    if let Some((arguments, reply)) = refused_call(entry) {
        show(page, "A call that is refused", &arguments, &reply);
    }
}

fn show(page: &mut String, title: &str, arguments: &Value, reply: &Value) {
    let _ = writeln!(
        page,
        "\n{title}:\n\n```json\n{arguments:#}\n```\n\n```json\n{reply:#}\n```"
    );
}

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| Value::from(text))
}

/// The arguments that a description ends with.
fn described_call(description: &str) -> Option<Value> {
    let (_, example) = description.rsplit_once("Example: ")?;
    serde_json::from_str(example.trim()).ok()
}

/// A call that the tool's own schema refuses: without its required arguments, or with one it does not have.
fn refused_call(entry: &ToolEntry) -> Option<(Value, Value)> {
    let calls = [json!({}), json!({ "unknown": true })];
    calls.into_iter().find_map(|arguments| {
        let given: JsonObject = arguments.as_object().cloned()?;
        let subject = CallSubject::new(entry.tool.definition(), &given, None);
        let refused = entry
            .tool
            .prepare(given, std::time::Duration::ZERO, &ops::Limits::for_tests())
            .err()?;
        Some((
            arguments,
            entry.contract.word(&refused.into(), &subject).object,
        ))
    })
}

fn tool_section(page: &mut String, tool: &McpTool) {
    // Writing to a String cannot fail.
    let _ = writeln!(page, "\n## `{}`\n", tool.name);
    let _ = writeln!(
        page,
        "{}\n",
        tool.description.as_deref().unwrap_or_default()
    );
    let _ = writeln!(page, "{}\n", hints(tool));
    let properties = properties(&tool.input_schema);
    if properties.is_empty() {
        let _ = writeln!(page, "No arguments.");
    } else {
        arguments_table(page, &tool.input_schema, properties);
    }
    if let Some(output) = &tool.output_schema {
        reply_table(page, output);
    }
}

fn hints(tool: &McpTool) -> String {
    let annotations = tool.annotations.clone().unwrap_or_default();
    let said = [
        (annotations.read_only_hint, "read-only"),
        (annotations.destructive_hint, "destructive"),
        (annotations.idempotent_hint, "idempotent"),
    ];
    let words: Vec<&str> = said
        .iter()
        .filter(|(hint, _)| *hint == Some(true))
        .map(|(_, word)| *word)
        .collect();
    match words.as_slice() {
        [] => "Not read-only.".to_owned(),
        words if annotations.read_only_hint == Some(true) => {
            format!("Hints: {}.", words.join(", "))
        }
        words => format!("Not read-only. Hints: {}.", words.join(", ")),
    }
}

fn arguments_table(
    page: &mut String,
    schema: &Map<String, Value>,
    properties: &Map<String, Value>,
) {
    let _ = writeln!(
        page,
        "| argument | type | required | default | constraints | meaning |"
    );
    let _ = writeln!(page, "|---|---|---|---|---|---|");
    argument_rows(page, "", schema, properties);
}

/// One row an argument, and one for each field of arguments that are objects.
fn argument_rows(
    page: &mut String,
    prefix: &str,
    schema: &Map<String, Value>,
    properties: &Map<String, Value>,
) {
    let required = required(schema);
    for (name, property) in properties {
        let is_required = required.contains(&name.as_str());
        let row = argument_row(&format!("{prefix}{name}"), property, is_required);
        let _ = writeln!(page, "{row}");
        for (inner, dots) in [(Some(property), "."), (property.get("items"), "[].")] {
            if let Some(inner) = inner.and_then(Value::as_object) {
                let prefix = format!("{prefix}{name}{dots}");
                argument_rows(page, &prefix, inner, self::properties(inner));
            }
        }
    }
}

fn argument_row(name: &str, property: &Value, is_required: bool) -> String {
    let kind = type_of(property);
    let needed = if is_required { "yes" } else { "no" };
    let default = property.get("default");
    let default = default.map(|value| format!("`{value}`"));
    let default = default.unwrap_or_default();
    let constraints = constraints(property);
    let meaning = cell(text(property, "description"));
    format!("| `{name}` | {kind} | {needed} | {default} | {constraints} | {meaning} |")
}

fn reply_table(page: &mut String, schema: &Map<String, Value>) {
    let _ = writeln!(page, "\n| reply field | type | meaning |\n|---|---|---|");
    reply_rows(page, "", schema);
}

/// One row a field, and one for each field of those that are objects.
fn reply_rows(page: &mut String, prefix: &str, schema: &Map<String, Value>) {
    for (name, property) in properties(schema)
        .iter()
        .filter(|(name, property)| !is_error_object(name, property))
    {
        let meaning = cell(text(property, "description"));
        let kind = type_of(property);
        let _ = writeln!(page, "| `{prefix}{name}` | {kind} | {meaning} |");
        if let Some(inner) = property.as_object() {
            reply_rows(page, &format!("{prefix}{name}."), inner);
        }
    }
}

/// Distinguishes the error object, which all tools of a set share and the examples show, from an `error` field that is
/// text.
fn is_error_object(name: &str, property: &Value) -> bool {
    name == "error" && property.get("type").and_then(Value::as_str) == Some("object")
}

fn properties(schema: &Map<String, Value>) -> &Map<String, Value> {
    static NONE: LazyLock<Map<String, Value>> = LazyLock::new(Map::new);
    schema
        .get("properties")
        .and_then(Value::as_object)
        .unwrap_or(&NONE)
}

fn required(schema: &Map<String, Value>) -> Vec<&str> {
    let names = schema.get("required").and_then(Value::as_array);
    names
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect()
}

fn type_of(property: &Value) -> String {
    match property.get("type") {
        Some(Value::String(kind)) if kind == "array" => {
            format!(
                "array of {}",
                property.get("items").map_or("any".to_owned(), type_of)
            )
        }
        Some(Value::String(kind)) => kind.clone(),
        Some(Value::Array(kinds)) => kinds
            .iter()
            .filter_map(Value::as_str)
            .collect::<Vec<_>>()
            .join(" or "),
        _ if !choices(property).is_empty() => "string".to_owned(),
        _ => "any".to_owned(),
    }
}

fn constraints(property: &Value) -> String {
    let choices = choices(property);
    if !choices.is_empty() {
        return format!("one of {}", choices.join(", "));
    }
    let bound = |key: &str, word: &str| property.get(key).map(|value| format!("{word} {value}"));
    let items = |key: &str, word: &str| bound(key, word).map(|bound| format!("{bound} items"));
    let bounds = [
        bound("minimum", "at least"),
        bound("maximum", "at most"),
        items("minItems", "at least"),
        items("maxItems", "at most"),
    ];
    bounds.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn choices(property: &Value) -> Vec<String> {
    let plain = property
        .get("enum")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    let described = property
        .get("oneOf")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    let all = plain.chain(described.filter_map(|choice| choice.get("const")));
    all.filter_map(Value::as_str)
        .map(|choice| format!("`{choice}`"))
        .collect()
}

fn text<'a>(property: &'a Value, key: &str) -> &'a str {
    property
        .get(key)
        .and_then(Value::as_str)
        .unwrap_or_default()
}

/// Escapes what would break a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}
