//! Checks arguments against the tool's own schema, so that no tool needs code for that, then decodes them.
//!
//! Only what our schemas use is understood: types, enumerations, bounds, lengths, nested objects and arrays, and
//! references into `$defs` for types that contain themselves.

use std::borrow::Cow;

use ops::text::near_names::nearest;
use rmcp::model::JsonObject;
use serde::de::DeserializeOwned;
use serde_json::{Map, Number, Value};

use crate::tool::ToolEffect;

/// How much of a wrong value a message repeats.
const SHOWN_MAX: usize = 60;
/// How deep values may be nested: as deep as a message can be, because tools that take trees have a bound of their own.
const DEPTH_MAX: usize = 128;

/// What is wrong with an argument.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[expect(
    missing_docs,
    reason = "the field names and the variants' sentences say it all"
)]
pub enum BadArgument {
    #[error("missing required argument: {argument} ({expected})")]
    Missing { argument: String, expected: String },
    #[error("argument {argument} must be {expected}, got {got}")]
    Mistyped {
        argument: String,
        expected: String,
        got: String,
    },
    #[error("argument {argument} must be {bound}, got {got}")]
    OutOfBounds {
        argument: String,
        bound: String,
        got: String,
    },
    #[error("invalid {argument}: {got}; valid values: {}", valid.join(", "))]
    NotOneOf {
        argument: String,
        got: String,
        valid: Vec<String>,
    },
    #[error("unknown argument: {argument}; {}", advice(nearest.as_deref(), valid))]
    Unknown {
        argument: String,
        nearest: Option<String>,
        valid: Vec<String>,
    },
    #[error("invalid arguments: {reason}")]
    Undecodable { reason: String },
    #[error("{}", each(first, *more, ToString::to_string))]
    Several {
        /// The first few mistakes.
        first: Vec<BadArgument>,
        /// How many more mistakes there are.
        more: usize,
    },
}

impl BadArgument {
    /// The argument that is wrong, if a single one is.
    #[must_use]
    pub fn argument(&self) -> Option<&str> {
        match self {
            BadArgument::Missing { argument, .. }
            | BadArgument::Mistyped { argument, .. }
            | BadArgument::OutOfBounds { argument, .. }
            | BadArgument::NotOneOf { argument, .. }
            | BadArgument::Unknown { argument, .. } => Some(argument),
            BadArgument::Undecodable { .. } => None,
            BadArgument::Several { first, .. } => first.iter().find_map(BadArgument::argument),
        }
    }
}

/// Words several wrong arguments, one after the other.
pub(crate) fn each(
    first: &[BadArgument],
    more: usize,
    word: impl Fn(&BadArgument) -> String,
) -> String {
    let mut words: Vec<String> = first.iter().map(word).collect();
    if more > 0 {
        words.push(format!("{more} more are wrong"));
    }
    words.join("; ")
}

/// How wrong values are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Slips {
    /// For tools that only read: `"1"` is 1, `"true"` is true, and an empty optional text is absent.
    Forgiven,
    /// For tools that change something: they are errors.
    Refused,
}

impl Slips {
    /// The mode for a tool with this effect.
    pub(crate) fn of(effect: ToolEffect) -> Slips {
        match effect {
            ToolEffect::Read => Slips::Forgiven,
            ToolEffect::Write { .. } => Slips::Refused,
        }
    }
}

/// The arguments that decide what a change does, or which change is meant. `null` or an empty text for one of them is
/// an error, never the same as leaving it out.
const DECIDING: [&str; 7] = [
    "change",
    "to",
    "if_version",
    "at",
    "dry_run",
    "overwrite",
    "all",
];
/// How many wrong arguments a message names.
const NAMED_MAX: usize = 5;

pub(crate) fn advice(nearest: Option<&str>, valid: &[String]) -> String {
    match nearest {
        Some(nearest) => format!("did you mean {nearest}?"),
        None if valid.is_empty() => "this tool takes no arguments".to_owned(),
        None => format!("valid arguments: {}", valid.join(", ")),
    }
}

/// Judges the arguments against the schema, then decodes them.
pub(crate) fn decode<T: DeserializeOwned>(
    schema: &JsonObject,
    mut arguments: JsonObject,
    slips: Slips,
) -> Result<T, BadArgument> {
    let mut judge = Judge {
        definitions: field(schema, "$defs"),
        slips,
        wrong: Vec::new(),
    };
    judge.object(schema, "", &mut arguments, 0);
    judge.verdict()?;
    serde_json::from_value(Value::Object(arguments)).map_err(|error| BadArgument::Undecodable {
        reason: error.to_string(),
    })
}

/// Words a root argument that is missing or not a string. Roots are judged before the other arguments.
pub(crate) fn not_a_root(argument: &str, got: Option<&Value>, known: &[String]) -> BadArgument {
    match got {
        None | Some(Value::Null) => BadArgument::Missing {
            argument: argument.to_owned(),
            expected: format!("string; {}", roots_there_are(known)),
        },
        Some(value) => mistyped(argument, "a string", value),
    }
}

/// Names the roots, or the first of very many.
pub(crate) fn roots_there_are(known: &[String]) -> String {
    const MOST: usize = 20;
    match known {
        [] => "there is no root".to_owned(),
        known => {
            let first: Vec<String> = known
                .iter()
                .take(MOST)
                .map(|name| shortened(name))
                .collect();
            let more = if known.len() > MOST { ", …" } else { "" };
            format!("roots: {}{more}", first.join(", "))
        }
    }
}

/// Words arguments that are not an object.
pub(crate) fn not_an_object(got: &Value) -> BadArgument {
    mistyped("arguments", "an object", got)
}

struct Judge<'schema> {
    definitions: Option<&'schema Value>,
    slips: Slips,
    /// Everything that is wrong, in the schema's order.
    wrong: Vec<BadArgument>,
}

impl<'schema> Judge<'schema> {
    /// One error for everything that was found.
    fn verdict(&mut self) -> Result<(), BadArgument> {
        let mut wrong = std::mem::take(&mut self.wrong);
        match wrong.len() {
            0 => Ok(()),
            1 => wrong.pop().map_or(Ok(()), Err),
            all => {
                wrong.truncate(NAMED_MAX);
                Err(BadArgument::Several {
                    more: all - wrong.len(),
                    first: wrong,
                })
            }
        }
    }

    /// `prefix` is the path to this object, for names like `files[0].path`.
    fn object(
        &mut self,
        schema: &'schema Map<String, Value>,
        prefix: &str,
        value: &mut Map<String, Value>,
        depth: usize,
    ) {
        let required = field(schema, "required").and_then(Value::as_array);
        let required = required.into_iter().flatten().filter_map(Value::as_str);
        let required: Vec<&str> = required.collect();
        leave_out_empty(value, &required, self.slips);
        self.names(schema, prefix, &required, value);
        let properties = field(schema, "properties").and_then(Value::as_object);
        for (name, property) in properties.into_iter().flatten() {
            // Most calls give few of the arguments: comparing names costs less than hashing them.
            if let Some((_, value)) = value.iter_mut().find(|(given, _)| *given == name) {
                let name = prefixed(prefix, name);
                self.value(property, &name, value, depth);
            }
        }
    }

    /// Checks which fields are present, not their values.
    fn names(
        &mut self,
        schema: &Map<String, Value>,
        prefix: &str,
        required: &[&str],
        value: &Map<String, Value>,
    ) {
        let is_closed = field(schema, "additionalProperties") == Some(&Value::Bool(false));
        let is_absent = |name: &&&str| field(value, name).is_none();
        // A missing argument was probably given under another name.
        if is_closed || required.iter().any(|name| is_absent(&name)) {
            let properties = field(schema, "properties").and_then(Value::as_object);
            self.wrong.extend(unknown(properties, prefix, value));
        }
        for name in required.iter().filter(is_absent) {
            let missing = missing(field(schema, "properties"), name, prefix);
            self.wrong.push(missing);
        }
    }

    fn value(&mut self, schema: &'schema Value, name: &str, value: &mut Value, depth: usize) {
        if depth > DEPTH_MAX {
            let reason = format!("{name} is nested too deeply: more than {DEPTH_MAX} levels");
            self.wrong.push(BadArgument::Undecodable { reason });
            return;
        }
        let schema = self.resolve(schema);
        if let Err(wrong) = plain_value(schema, name, value, self.slips) {
            self.wrong.push(wrong);
            return;
        }
        match (value, schema) {
            (Value::Array(items), _) => self.items(schema, name, items, depth + 1),
            (Value::Object(object), Value::Object(schema)) => {
                self.object(schema, &format!("{name}."), object, depth + 1);
            }
            _ => {}
        }
    }

    fn items(&mut self, schema: &'schema Value, name: &str, items: &mut [Value], depth: usize) {
        let Some(each) = keyword_of(schema, "items") else {
            return;
        };
        for (index, item) in items.iter_mut().enumerate() {
            self.value(each, &format!("{name}[{index}]"), item, depth);
            // Mistakes beyond those that are named are counted only if that costs nothing.
            if self.wrong.len() > NAMED_MAX {
                return;
            }
        }
    }

    /// Follows a reference to a type that contains itself.
    fn resolve(&self, schema: &'schema Value) -> &'schema Value {
        let reference = keyword_of(schema, "$ref").and_then(Value::as_str);
        let name = reference.and_then(|reference| reference.strip_prefix("#/$defs/"));
        name.and_then(|name| self.definitions?.get(name))
            .unwrap_or(schema)
    }
}

/// The value of a field. Schemas and calls have few of them, so comparing names costs less than hashing one.
#[must_use]
pub fn field<'object>(object: &'object Map<String, Value>, name: &str) -> Option<&'object Value> {
    let mut fields = object.iter();
    fields.find_map(|(field, value)| (field == name).then_some(value))
}

fn keyword_of<'schema>(schema: &'schema Value, name: &str) -> Option<&'schema Value> {
    field(schema.as_object()?, name)
}

/// Removes what counts as not given: nulls, and empty texts if slips are forgiven.
fn leave_out_empty(value: &mut Map<String, Value>, required: &[&str], slips: Slips) {
    value.retain(|name, value| {
        let decides = DECIDING.contains(&name.as_str());
        let is_required = required.contains(&name.as_str());
        let is_forgiven = slips == Slips::Forgiven && !is_required && !decides;
        let is_empty = value == "" && is_forgiven;
        let is_absent = value.is_null() && !decides;
        !is_empty && !is_absent
    });
}

fn prefixed<'name>(prefix: &str, name: &'name str) -> Cow<'name, str> {
    match prefix {
        "" => Cow::Borrowed(name),
        prefix => Cow::Owned(format!("{prefix}{name}")),
    }
}

/// Checks a value itself, not its items or fields.
fn plain_value(
    schema: &Value,
    name: &str,
    value: &mut Value,
    slips: Slips,
) -> Result<(), BadArgument> {
    let Some(kind) = keyword_of(schema, "type").and_then(Value::as_str) else {
        return Ok(());
    };
    if slips == Slips::Forgiven {
        forgive(kind, value);
    }
    whole_number(kind, value);
    if !is_of(kind, value) {
        return Err(mistyped(name, &with_article(&expected(schema)), value));
    }
    one_of(schema, name, value)?;
    bounds(schema, name, value)
}

/// Takes `"1"` for 1 and `"true"` for true.
fn forgive(kind: &str, value: &mut Value) {
    let Some(text) = value.as_str() else { return };
    let meant = match (kind, text) {
        ("boolean", "true") => Some(Value::Bool(true)),
        ("boolean", "false") => Some(Value::Bool(false)),
        ("integer" | "number", number) => number.parse::<i64>().ok().map(Value::from),
        _ => None,
    };
    if let Some(meant) = meant {
        *value = meant;
    }
}

/// The arguments that the schema does not have.
fn unknown(
    properties: Option<&Map<String, Value>>,
    prefix: &str,
    value: &Map<String, Value>,
) -> Vec<BadArgument> {
    let known = |name: &String| properties.is_some_and(|all| all.contains_key(name));
    if value.keys().all(known) {
        return Vec::new();
    }
    let valid = properties.into_iter().flat_map(Map::keys).cloned();
    let valid: Vec<String> = valid.collect();
    // An argument that was given under its own name was not meant by the wrong one too.
    let free = || valid.iter().filter(|name| field(value, name).is_none());
    let unknown = value.keys().filter(|name| !known(name));
    let unknown = unknown.take(NAMED_MAX).map(|unknown| BadArgument::Unknown {
        argument: format!("{prefix}{}", shortened(unknown)),
        nearest: nearest(unknown, free()).cloned(),
        valid: valid.clone(),
    });
    unknown.collect()
}

fn missing(properties: Option<&Value>, name: &str, prefix: &str) -> BadArgument {
    let expected = properties
        .and_then(|all| all.get(name))
        .map_or("value".to_owned(), expected);
    BadArgument::Missing {
        argument: format!("{prefix}{name}"),
        expected,
    }
}

fn mistyped(name: &str, expected: &str, got: &Value) -> BadArgument {
    BadArgument::Mistyped {
        argument: name.to_owned(),
        expected: expected.to_owned(),
        got: described(got),
    }
}

/// The type that a schema expects, in a word or two.
fn expected(schema: &Value) -> String {
    let kind = schema
        .get("type")
        .and_then(Value::as_str)
        .unwrap_or("value");
    match schema.get("enum").and_then(Value::as_array) {
        Some(values) => {
            let values: Vec<&str> = values.iter().filter_map(Value::as_str).collect();
            format!("one of {}", values.join(", "))
        }
        None => kind.to_owned(),
    }
}

fn with_article(expected: &str) -> String {
    match expected.chars().next() {
        _ if expected.starts_with("one of ") => expected.to_owned(),
        Some('a' | 'e' | 'i' | 'o' | 'u') => format!("an {expected}"),
        _ => format!("a {expected}"),
    }
}

/// Accepts 5.0 for 5 if an integer is expected: some clients have only one kind of number. A number beyond the range
/// that we count in becomes the largest of that range: no file has that many bytes, lines or entries.
fn whole_number(kind: &str, value: &mut Value) {
    const LIMIT: f64 = 9_007_199_254_740_992.0;
    if kind != "integer" {
        return;
    }
    if value.is_u64() && !value.is_i64() {
        *value = Value::from(i64::MAX);
    }
    let whole = value
        .as_number()
        .filter(|number| number.is_f64())
        .and_then(Number::as_f64);
    if let Some(whole) = whole.filter(|whole| whole.fract() == 0.0 && whole.abs() <= LIMIT) {
        // In this range a float holds every integer exactly.
        *value = Value::from(whole as i64);
    }
}

fn is_of(kind: &str, value: &Value) -> bool {
    match kind {
        "string" => value.is_string(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => true,
    }
}

fn one_of(schema: &Value, name: &str, value: &Value) -> Result<(), BadArgument> {
    let Some(valid) = keyword_of(schema, "enum").and_then(Value::as_array) else {
        return Ok(());
    };
    if valid.contains(value) {
        return Ok(());
    }
    let text = value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned);
    Err(BadArgument::NotOneOf {
        argument: name.to_owned(),
        got: shortened(&text),
        valid: valid
            .iter()
            .filter_map(Value::as_str)
            .map(str::to_owned)
            .collect(),
    })
}

fn bounds(schema: &Value, name: &str, value: &Value) -> Result<(), BadArgument> {
    let Some((size, keys, unit)) = measured(value) else {
        return Ok(());
    };
    let bounds = keys.map(|key| keyword_of(schema, key).and_then(Value::as_number));
    let Some(bound) = crossed(bounds, size) else {
        return Ok(());
    };
    let got = if unit.is_empty() {
        value.to_string()
    } else {
        format!("{size}")
    };
    Err(BadArgument::OutOfBounds {
        argument: name.to_owned(),
        bound: format!("{bound}{unit}"),
        got,
    })
}

/// The size of a value, the keywords that bound it, and what it is counted in.
fn measured(value: &Value) -> Option<(f64, [&'static str; 2], &'static str)> {
    match value {
        Value::Number(number) => Some((number.as_f64()?, ["minimum", "maximum"], "")),
        Value::String(text) => {
            let size = text.chars().count() as f64;
            Some((size, ["minLength", "maxLength"], " characters long"))
        }
        Value::Array(items) => {
            let size = items.len() as f64;
            Some((size, ["minItems", "maxItems"], " items long"))
        }
        _ => None,
    }
}

/// The bound that a size exceeds, if it does.
fn crossed([least, most]: [Option<&Number>; 2], size: f64) -> Option<String> {
    let least = least.filter(|least| least.as_f64().is_some_and(|least| size < least));
    let most = most.filter(|most| most.as_f64().is_some_and(|most| size > most));
    match (least, most) {
        (Some(least), _) => Some(format!("at least {least}")),
        (_, Some(most)) => Some(format!("at most {most}")),
        _ => None,
    }
}

/// Shows a value with its kind, short enough for a message.
fn described(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(value) => format!("boolean {value}"),
        Value::Number(value) => format!("number {value}"),
        Value::String(value) => format!("string {:?}", shortened(value)),
        Value::Array(items) => format!("an array of {}", items.len()),
        Value::Object(_) => "an object".to_owned(),
    }
}

/// Makes a client's text fit for a message or a log line: cut, with control characters escaped.
pub fn shortened(text: &str) -> String {
    let mut shown = String::with_capacity(text.len().min(SHOWN_MAX));
    for c in ops::truncated(text, SHOWN_MAX).chars() {
        if c.is_control() {
            shown.extend(c.escape_default());
        } else {
            shown.push(c);
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema;
    use proptest::prelude::*;
    use schemars::JsonSchema;
    use serde::Deserialize;
    use serde_json::json;

    #[derive(Debug, Deserialize, JsonSchema, PartialEq)]
    struct Arguments {
        path: String,
        #[serde(default)]
        mode: Mode,
        #[schemars(range(min = 1, max = 1000))]
        limit_lines: Option<u64>,
        #[serde(default)]
        deep: bool,
        files: Option<Vec<File>>,
        children: Option<Vec<Tree>>,
    }

    #[derive(Debug, Deserialize, JsonSchema, PartialEq)]
    struct File {
        path: String,
        size: Option<u64>,
    }

    #[derive(Debug, Deserialize, JsonSchema, PartialEq)]
    struct Tree {
        name: String,
        children: Option<Vec<Tree>>,
    }

    #[derive(Debug, Default, Deserialize, JsonSchema, PartialEq, serde::Serialize)]
    #[serde(rename_all = "snake_case")]
    enum Mode {
        #[default]
        Overwrite,
        CreateOnly,
    }

    fn judged(value: Value) -> Result<Arguments, String> {
        let Value::Object(arguments) = value else {
            panic!("not an object")
        };
        decode(&schema::input::<Arguments>(), arguments, Slips::Refused)
            .map_err(|bad| bad.to_string())
    }

    fn forgiven(value: Value) -> Result<Arguments, String> {
        let Value::Object(arguments) = value else {
            panic!("not an object")
        };
        decode(&schema::input::<Arguments>(), arguments, Slips::Forgiven)
            .map_err(|bad| bad.to_string())
    }

    fn refusal(value: Value) -> String {
        judged(value).expect_err("refused")
    }

    #[test]
    fn what_is_missing_is_named_with_its_type() {
        assert_eq!(
            refusal(json!({})),
            "missing required argument: path (string)"
        );
        assert_eq!(
            refusal(json!({ "path": null })),
            "missing required argument: path (string)"
        );
    }

    #[test]
    fn what_is_mistyped_is_told_with_what_came() {
        assert_eq!(
            refusal(json!({ "path": "a", "limit_lines": "ten" })),
            r#"argument limit_lines must be an integer, got string "ten""#
        );
        assert_eq!(
            refusal(json!({ "path": ["a"] })),
            "argument path must be a string, got an array of 1"
        );
        assert_eq!(
            refusal(json!({ "path": "a", "limit_lines": 2.5 })),
            "argument limit_lines must be an integer, got number 2.5"
        );
        assert_eq!(
            refusal(json!({ "path": "a", "mode": 3 })),
            "argument mode must be one of overwrite, create_only, got number 3"
        );
    }

    #[test]
    fn an_unknown_name_gets_the_nearest_one_or_the_list() {
        assert_eq!(
            refusal(json!({ "path": "a", "limitLines": 3 })),
            "unknown argument: limitLines; did you mean limit_lines?"
        );
        assert_eq!(
            refusal(json!({ "path": "a", "xyz": 3 })),
            "unknown argument: xyz; valid arguments: path, mode, limit_lines, deep, files, children"
        );
    }

    #[test]
    fn a_wrong_choice_gets_the_valid_ones() {
        assert_eq!(
            refusal(json!({ "path": "a", "mode": "replace" })),
            "invalid mode: replace; valid values: overwrite, create_only"
        );
    }

    #[test]
    fn bounds_come_from_the_schema() {
        assert_eq!(
            refusal(json!({ "path": "a", "limit_lines": 0 })),
            "argument limit_lines must be at least 1, got 0"
        );
        assert_eq!(
            refusal(json!({ "path": "a", "limit_lines": 1e12 })),
            "argument limit_lines must be at most 1000, got 1000000000000"
        );
    }

    #[test]
    fn nested_values_are_named_by_their_way() {
        assert_eq!(
            refusal(json!({ "path": "a", "files": [{ "path": "b" }, { "size": 1 }] })),
            "missing required argument: files[1].path (string)"
        );
        assert_eq!(
            refusal(
                json!({ "path": "a", "children": [{ "name": "b", "children": [{ "name": 1 }] }] })
            ),
            "argument children[0].children[0].name must be a string, got number 1"
        );
    }

    #[test]
    fn null_is_absent_and_whole_floats_are_integers() {
        let arguments =
            judged(json!({ "path": "a", "limit_lines": 5.0, "deep": null, "files": null }));
        let arguments = arguments.expect("accepted");
        assert_eq!(arguments.limit_lines, Some(5));
        assert!(!arguments.deep);
    }

    #[test]
    fn everything_wrong_is_named_at_once() {
        assert_eq!(
            refusal(json!({ "limit_lines": 0, "deep": "x", "limt": 1 })),
            "unknown argument: limt; valid arguments: path, mode, limit_lines, deep, files, children; \
             missing required argument: path (string); argument limit_lines must be at least 1, got 0; \
             argument deep must be a boolean, got string \"x\""
        );
        let many: Vec<Value> = (0..1000).map(Value::from).collect();
        let refusal = refusal(json!({ "path": "a", "files": many }));
        assert!(refusal.ends_with("; 1 more are wrong"), "{refusal}");
    }

    #[test]
    fn slips_are_forgiven_where_nothing_is_changed() {
        let slips = json!({ "path": "a", "limit_lines": "5", "deep": "true", "mode": "" });
        let arguments = forgiven(slips.clone()).expect("accepted");
        assert_eq!(arguments.limit_lines, Some(5));
        assert!(arguments.deep);
        assert_eq!(arguments.mode, Mode::Overwrite);
        let refusal = judged(slips).expect_err("refused");
        assert!(
            refusal.contains("limit_lines") && refusal.contains("deep"),
            "{refusal}"
        );
        for wrong in ["five", "1.5", "TRUE", "99999999999999999999"] {
            let slip = json!({ "path": "a", "limit_lines": wrong });
            assert!(forgiven(slip).is_err(), "{wrong}");
        }
        // A missing required argument is not forgiven.
        assert!(forgiven(json!({ "path": 5 })).is_err());
        assert_eq!(forgiven(json!({ "path": "" })).expect("accepted").path, "");
    }

    #[test]
    fn null_never_decides_about_a_change() {
        #[derive(Debug, Deserialize, JsonSchema)]
        #[expect(dead_code, reason = "only its schema is used")]
        struct Change {
            dry_run: Option<bool>,
        }
        let Value::Object(arguments) = json!({ "dry_run": null }) else {
            panic!("not an object")
        };
        let schema = schema::input::<Change>();
        let refused = decode::<Change>(&schema, arguments, Slips::Refused).expect_err("refused");
        assert_eq!(
            refused.to_string(),
            "argument dry_run must be a boolean, got null"
        );
    }

    #[test]
    fn deep_nesting_is_refused_without_overflow() {
        let mut tree = json!({ "name": "leaf" });
        for _ in 0..100 {
            tree = json!({ "name": "branch", "children": [tree] });
        }
        assert!(refusal(json!({ "path": "a", "children": [tree] })).contains("nested too deeply"));
    }

    fn any_value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            ".{0,80}".prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 16, 4, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                proptest::collection::btree_map("[a-z_]{1,12}", inner, 0..4)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn any_value_for_any_argument_is_taken_or_named(
            name in "path|mode|limit_lines|deep|files|children|[a-z]{1,8}",
            value in any_value(),
        ) {
            let mut arguments = json!({ "path": "a" });
            arguments[&name] = value;
            if let Err(message) = judged(arguments) {
                prop_assert!(message.contains(&name), "{message}");
            }
        }
    }
}
