//! Turns what was typed into a tool's arguments.
//!
//! NAME=VALUE is read by the tool's schema: text stays as it was typed, everything else is JSON. A name that is given
//! twice is a list.

use std::io::Read;

use anyhow::{Context, Result, bail};
use ops::text::near_names::nearest;
use serde_json::{Map, Value};

use crate::command_line::CallArguments;

/// The most bytes of arguments read from standard input.
const MAX_ARGUMENTS: u64 = 64 * 1024 * 1024;

/// Reads the arguments of a tool whose input has this schema.
pub(super) fn read(arguments: &CallArguments, schema: &Value) -> Result<Map<String, Value>> {
    let text = match arguments {
        CallArguments::None => return Ok(Map::new()),
        CallArguments::Pairs(pairs) => return from_pairs(pairs, schema),
        CallArguments::Json(text) => text.clone(),
        CallArguments::Stdin => read_standard_input()?,
    };
    serde_json::from_str(&text).context("the arguments are not a JSON object")
}

fn read_standard_input() -> Result<String> {
    let mut text = String::new();
    std::io::stdin()
        .lock()
        .take(MAX_ARGUMENTS)
        .read_to_string(&mut text)?;
    Ok(text)
}

fn from_pairs(pairs: &[String], schema: &Value) -> Result<Map<String, Value>> {
    let mut arguments = Map::new();
    for pair in pairs {
        let Some((name, value)) = pair.split_once('=') else {
            bail!("{pair:?}: expected NAME=VALUE, or one JSON object for all arguments");
        };
        let types = types_of(name, schema)?;
        let value = typed(value, &types);
        match arguments.get_mut(name) {
            None => {
                let is_list = types.iter().any(|kind| kind == "array");
                let alone = is_list && types.len() == 1 && !value.is_array();
                let value = if alone {
                    Value::Array(vec![value])
                } else {
                    value
                };
                arguments.insert(name.to_owned(), value);
            }
            Some(Value::Array(list)) => list.push(value),
            Some(first) => *first = Value::Array(vec![first.take(), value]),
        }
    }
    Ok(arguments)
}

/// The types that the schema allows for an argument; none if it does not say.
fn types_of(name: &str, schema: &Value) -> Result<Vec<String>> {
    let Some(known) = schema.get("properties").and_then(Value::as_object) else {
        return Ok(Vec::new());
    };
    let Some(property) = known.get(name) else {
        let names: Vec<String> = known.keys().cloned().collect();
        let near = nearest(name, &names).map(|near| format!("; did you mean {near}?"));
        bail!(
            "unknown argument {name}; there are {}{}",
            names.join(", "),
            near.unwrap_or_default()
        );
    };
    let mut types = Vec::new();
    collect_types(property, &mut types);
    Ok(types)
}

fn collect_types(schema: &Value, types: &mut Vec<String>) {
    match schema.get("type") {
        Some(Value::String(one)) => types.push(one.clone()),
        Some(Value::Array(several)) => {
            let names = several.iter().filter_map(Value::as_str);
            types.extend(names.filter(|name| *name != "null").map(str::to_owned));
        }
        _ => {}
    }
    for key in ["anyOf", "oneOf"] {
        let choices = schema.get(key).and_then(Value::as_array);
        let choices = choices.into_iter().flatten();
        choices.for_each(|choice| collect_types(choice, types));
    }
}

/// Converts a value to one of its types. A value that is not JSON stays text: the tool's own message says best what it
/// expects.
fn typed(value: &str, types: &[String]) -> Value {
    let text = || Value::String(value.to_owned());
    if types.iter().all(|kind| kind == "string") {
        return text();
    }
    let parsed = serde_json::from_str(value).unwrap_or_else(|_| text());
    let is_allowed = types.iter().any(|kind| kind == kind_of(&parsed));
    let takes_text = types.iter().any(|kind| kind == "string");
    if takes_text && !is_allowed {
        return text();
    }
    parsed
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read_pairs(pairs: &[&str]) -> Result<Value> {
        let schema = json!({ "properties": {
            "path": { "type": "string" },
            "limit": { "type": ["integer", "null"] },
            "all": { "type": "boolean" },
            "paths": { "type": "array" },
            "change": { "anyOf": [{ "type": "string" }, { "type": "integer" }] },
        } });
        let pairs = pairs.iter().map(|pair| (*pair).to_owned()).collect();
        read(&CallArguments::Pairs(pairs), &schema).map(Value::Object)
    }

    #[test]
    fn values_get_the_type_of_the_schema() {
        let pairs = ["path=1=2", "limit=5", "all=true", "change=4f2a"];
        let wanted = json!({ "path": "1=2", "limit": 5, "all": true, "change": "4f2a" });
        assert_eq!(read_pairs(&pairs).unwrap(), wanted);
        assert_eq!(read_pairs(&["change=7"]).unwrap(), json!({ "change": 7 }));
        assert_eq!(
            read_pairs(&["limit=many"]).unwrap(),
            json!({ "limit": "many" })
        );
    }

    #[test]
    fn a_list_is_json_or_one_pair_an_item() {
        let both = json!({ "paths": ["a", "b"] });
        assert_eq!(read_pairs(&["paths=a", "paths=b"]).unwrap(), both);
        assert_eq!(read_pairs(&[r#"paths=["a","b"]"#]).unwrap(), both);
        assert_eq!(read_pairs(&["paths=a"]).unwrap(), json!({ "paths": ["a"] }));
    }

    #[test]
    fn mistakes_name_what_was_expected() {
        let message = |pairs: &[&str]| read_pairs(pairs).unwrap_err().to_string();
        assert!(message(&["pth=a"]).ends_with("did you mean path?"));
        assert!(message(&["path"]).contains("expected NAME=VALUE"));
    }
}
