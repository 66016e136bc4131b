//! Schemas as clients and models like them: flat, without references, names of Rust types and other noise.

use rmcp::model::JsonObject;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

/// The schema of a tool's arguments. Unknown arguments are refused, and `null` is the same as absent.
pub(crate) fn input<T: JsonSchema>() -> JsonObject {
    let mut schema = open_input::<T>();
    schema.insert("additionalProperties".to_owned(), Value::Bool(false));
    schema
}

/// The schema of a tool's arguments that takes others, too.
pub(crate) fn open_input<T: JsonSchema>() -> JsonObject {
    let settings = settings().for_deserialize();
    let mut schema = settings
        .into_generator()
        .into_root_schema_for::<T>()
        .to_value();
    tidy(&mut schema, Null::Absent);
    let mut schema = into_object(schema);
    schema.entry("properties").or_insert_with(|| json!({}));
    schema
}

/// The schema of a tool's reply.
pub(crate) fn output<T: JsonSchema>() -> JsonObject {
    let settings = settings().for_serialize();
    let mut schema = settings
        .into_generator()
        .into_root_schema_for::<T>()
        .to_value();
    tidy(&mut schema, Null::Value);
    into_object(schema)
}

/// Adds the fields of `T` to a reply's schema. A reply may leave them out.
pub(crate) fn add_optional<T: JsonSchema>(reply: &mut JsonObject) {
    let more = output::<T>().remove("properties");
    if let (Some(Value::Object(own)), Some(Value::Object(more))) =
        (reply.get_mut("properties"), more)
    {
        own.extend(more);
    }
}

/// Makes the error object an alternative of a reply's schema. Some clients check the structured content of failures
/// too.
pub(crate) fn or_error(reply: &JsonObject, error: &Value) -> JsonObject {
    let mut either = reply.clone();
    let required = either.remove("required").unwrap_or_else(|| json!([]));
    let mut properties = error
        .get("properties")
        .cloned()
        .unwrap_or_else(|| json!({}));
    if let (Some(Value::Object(own)), Value::Object(all)) =
        (either.remove("properties"), &mut properties)
    {
        all.extend(own);
    }
    either.insert("properties".to_owned(), properties);
    let error_required = error.get("required").cloned().unwrap_or_else(|| json!([]));
    either.insert(
        "anyOf".to_owned(),
        json!([{ "required": required }, { "required": error_required }]),
    );
    either
}

/// Marks an argument so that clients repeat it in the header `Mcp-Param-<header>`.
pub(crate) fn mark_header(input: &mut JsonObject, argument: &str, header: &str) {
    let property = input
        .get_mut("properties")
        .and_then(|all| all.get_mut(argument));
    if let Some(Value::Object(property)) = property {
        property.insert("x-mcp-header".to_owned(), Value::from(header));
    }
}

/// Lets an argument be left out.
pub(crate) fn make_optional(input: &mut JsonObject, argument: &str) {
    let Some(Value::Array(required)) = input.get_mut("required") else {
        return;
    };
    required.retain(|name| name != argument);
    if required.is_empty() {
        input.remove("required");
    }
}

fn settings() -> SchemaSettings {
    SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    })
}

fn into_object(schema: Value) -> JsonObject {
    let mut schema = match schema {
        Value::Object(object) => object,
        _ => Map::new(),
    };
    // The tool's own description replaces the type's.
    schema.remove("description");
    schema.insert("type".to_owned(), Value::from("object"));
    schema
}

/// What `null` means in a schema.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Null {
    /// It is the same as leaving the argument out, so it need not be mentioned.
    Absent,
    /// It can occur, so it must be mentioned.
    Value,
}

/// Tidies a schema and everything below it.
fn tidy(schema: &mut Value, null: Null) {
    let Value::Object(schema) = schema else {
        return;
    };
    for key in ["properties", "$defs", "patternProperties"] {
        if let Some(Value::Object(children)) = schema.get_mut(key) {
            children.values_mut().for_each(|child| tidy(child, null));
        }
    }
    for key in ["items", "additionalProperties"] {
        if let Some(child) = schema.get_mut(key) {
            tidy(child, null);
        }
    }
    for key in ["anyOf", "oneOf", "allOf", "prefixItems"] {
        if let Some(Value::Array(children)) = schema.get_mut(key) {
            children.iter_mut().for_each(|child| tidy(child, null));
        }
    }
    match null {
        Null::Absent => drop_null(schema),
        Null::Value => drop_null_of_optional(schema),
    }
    constants_to_enum(schema);
    drop_noise(schema);
}

/// Removes the names of Rust types, number formats and line breaks inside descriptions.
fn drop_noise(schema: &mut Map<String, Value>) {
    schema.remove("title");
    schema.remove("$schema");
    if schema.get("type").is_some_and(is_numeric) {
        schema.remove("format");
    }
    if let Some(Value::String(text)) = schema.get_mut("description") {
        *text = text
            .split('\n')
            .map(str::trim)
            .collect::<Vec<_>>()
            .join(" ");
    }
}

fn is_numeric(kind: &Value) -> bool {
    let numeric = |kind: &Value| kind == "integer" || kind == "number";
    match kind {
        Value::Array(kinds) => kinds.iter().any(numeric),
        kind => numeric(kind),
    }
}

/// Removes `null` from properties that may be left out: they are, instead of being `null`. Some clients turn schemas into
/// a dialect in which a property has one type.
fn drop_null_of_optional(schema: &mut Map<String, Value>) {
    let required = schema.get("required").cloned().unwrap_or_default();
    let is_required = |name: &str| {
        let names = required.as_array().into_iter().flatten();
        names.into_iter().any(|required| required == name)
    };
    let Some(Value::Object(properties)) = schema.get_mut("properties") else {
        return;
    };
    let optional = properties.iter_mut().filter(|(name, _)| !is_required(name));
    for (_, property) in optional {
        if let Value::Object(property) = property {
            drop_null(property);
        }
    }
}

/// Removes `null` from types, enumerations, alternatives and defaults.
fn drop_null(schema: &mut Map<String, Value>) {
    if let Some(Value::Array(kinds)) = schema.get_mut("type") {
        kinds.retain(|kind| kind != "null");
        if let [only] = kinds.as_slice() {
            let only = only.clone();
            schema.insert("type".to_owned(), only);
        }
    }
    if let Some(Value::Array(values)) = schema.get_mut("enum") {
        values.retain(|value| !value.is_null());
    }
    if schema.get("default").is_some_and(Value::is_null) {
        schema.remove("default");
    }
    if let Some(Value::Array(alternatives)) = schema.get_mut("anyOf") {
        alternatives.retain(|one| one.get("type").is_none_or(|kind| kind != "null"));
        if let [Value::Object(only)] = alternatives.as_mut_slice() {
            let only = std::mem::take(only);
            schema.remove("anyOf");
            only.into_iter().for_each(|(key, value)| {
                schema.entry(key).or_insert(value);
            });
        }
    }
}

/// A string and its description.
type Constant = (Value, Option<String>);

/// Merges alternatives that are single strings into one enumeration and keeps the description of each.
fn constants_to_enum(schema: &mut Map<String, Value>) {
    let Some(Value::Array(alternatives)) = schema.get("oneOf") else {
        return;
    };
    let constants: Option<Vec<Vec<Constant>>> = alternatives.iter().map(constants).collect();
    let Some(constants) = constants.map(|each| each.concat()) else {
        return;
    };
    let meanings: Vec<String> = constants
        .iter()
        .filter_map(|(value, meaning)| Some(format!("{}: {}", value.as_str()?, meaning.as_ref()?)))
        .collect();
    schema.remove("oneOf");
    schema.insert("type".to_owned(), Value::from("string"));
    schema.insert(
        "enum".to_owned(),
        constants.into_iter().map(|(value, _)| value).collect(),
    );
    if !meanings.is_empty() {
        let said = schema
            .get("description")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let all = format!("{said} {}", meanings.join(" "));
        schema.insert("description".to_owned(), Value::from(all.trim()));
    }
}

/// The strings of one alternative; those without a description come together.
fn constants(alternative: &Value) -> Option<Vec<Constant>> {
    if let Some(values) = alternative.get("enum").and_then(Value::as_array) {
        let plain = values.iter().all(Value::is_string);
        return plain.then(|| values.iter().map(|value| (value.clone(), None)).collect());
    }
    let value = alternative.get("const").filter(|value| value.is_string())?;
    let meaning = alternative.get("description").and_then(Value::as_str);
    Some(vec![(value.clone(), meaning.map(str::to_owned))])
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::{Deserialize, Serialize};

    #[derive(Deserialize, JsonSchema)]
    #[expect(dead_code, reason = "only its schema is used")]
    struct Arguments {
        /// The root's name,
        /// as `list_roots` tells it.
        root: String,
        /// How.
        #[serde(default)]
        mode: Mode,
        /// At most so many.
        #[schemars(range(min = 1, max = 100))]
        limit: Option<u64>,
        kind: Option<Plain>,
    }

    #[derive(Deserialize, Serialize, JsonSchema, Default)]
    #[serde(rename_all = "snake_case")]
    enum Mode {
        /// Replaces.
        #[default]
        Overwrite,
        /// Adds.
        Append,
    }

    #[derive(Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    enum Plain {
        File,
        All,
    }

    #[derive(Serialize, JsonSchema)]
    struct Reply {
        size: u64,
        #[serde(skip_serializing_if = "Option::is_none")]
        note: Option<String>,
        /// Always there; `null` if there is none.
        owner: Option<String>,
    }

    #[test]
    fn arguments_come_out_flat() {
        assert_eq!(
            Value::Object(input::<Arguments>()),
            json!({
                "type": "object",
                "properties": {
                    "root": { "type": "string", "description": "The root's name, as `list_roots` tells it." },
                    "mode": {
                        "type": "string", "enum": ["overwrite", "append"], "default": "overwrite",
                        "description": "How. overwrite: Replaces. append: Adds."
                    },
                    "limit": {
                        "type": "integer", "minimum": 1, "maximum": 100, "description": "At most so many."
                    },
                    "kind": { "type": "string", "enum": ["file", "all"] }
                },
                "required": ["root"],
                "additionalProperties": false
            })
        );
    }

    #[test]
    fn a_tool_without_arguments_has_an_empty_object() {
        #[derive(Deserialize, JsonSchema)]
        struct Nothing {}
        let expected = json!({ "type": "object", "properties": {}, "additionalProperties": false });
        assert_eq!(Value::Object(input::<Nothing>()), expected);
    }

    #[test]
    fn a_reply_or_an_error_satisfies_the_output_schema() {
        let error =
            json!({ "properties": { "error": { "type": "object" } }, "required": ["error"] });
        let schema = or_error(&output::<Reply>(), &error);
        assert_eq!(
            Value::Object(schema),
            json!({
                "type": "object",
                "properties": {
                    "error": { "type": "object" },
                    "size": { "type": "integer", "minimum": 0 },
                    "note": { "type": "string" },
                    "owner": {
                        "type": ["string", "null"],
                        "description": "Always there; `null` if there is none."
                    }
                },
                "anyOf": [{ "required": ["size", "owner"] }, { "required": ["error"] }]
            })
        );
    }

    #[test]
    fn the_header_mark_is_put_on_the_argument() {
        let mut schema = input::<Arguments>();
        mark_header(&mut schema, "root", "Root");
        mark_header(&mut schema, "absent", "Root");
        let marked = schema
            .get("properties")
            .and_then(|all| all.get("root")?.get("x-mcp-header"));
        assert_eq!(marked, Some(&json!("Root")));
    }
}
