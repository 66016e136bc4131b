//! The arguments of a call as the log shows them: those that the tool's schema knows, but never the content of a file.
//!
//! An argument that the schema does not know, or whose type is another, may be content under a wrong name: its value is
//! left out. So a log line shows what a call wanted, and no mistake of a client or in a new tool can put a file into
//! it.

use serde_json::{Map, Value};

use crate::arguments::field;
use crate::json::escape;
use crate::tool::Definition;

/// The most bytes that the arguments of one call take, and one text among them.
const ALL_MAX: usize = 4096;
const TEXT_MAX: usize = 1024;
/// The most entries of one list.
const ENTRIES_MAX: usize = 50;
/// Stands for what is left out.
const LEFT_OUT: &[u8] = "\"…\"".as_bytes();

/// The arguments as JSON, without those that have log fields of their own.
pub(crate) fn told(
    definition: &Definition,
    arguments: &Map<String, Value>,
    left_out: &[&str],
) -> String {
    let mut telling = ArgumentsText {
        content: definition.content,
        left_out,
        out: Vec::with_capacity(128),
    };
    telling.object(arguments, Some(&definition.input));
    // Only whole characters were written.
    String::from_utf8(telling.out).unwrap_or_default()
}

struct ArgumentsText<'call> {
    content: &'static [&'static str],
    left_out: &'call [&'call str],
    out: Vec<u8>,
}

impl ArgumentsText<'_> {
    fn object(&mut self, object: &Map<String, Value>, schema: Option<&Map<String, Value>>) {
        let known = schema.and_then(|schema| field(schema, "properties"));
        let known = known.and_then(Value::as_object);
        self.out.push(b'{');
        let start = self.out.len();
        for (name, value) in object {
            let Some(property) = known.and_then(|known| field(known, name)) else {
                continue;
            };
            let name = name.as_str();
            if value.is_null() || self.content.contains(&name) || self.left_out.contains(&name) {
                continue;
            }
            self.separate(start);
            if self.out.len() > ALL_MAX {
                self.out.extend_from_slice(LEFT_OUT);
                self.out.extend_from_slice(b":true");
                break;
            }
            self.text(name);
            self.out.push(b':');
            self.value(value, property);
        }
        self.out.push(b'}');
    }

    fn value(&mut self, value: &Value, schema: &Value) {
        let keywords = schema.as_object();
        let keyword = |name| keywords.and_then(|keywords| field(keywords, name));
        match (value, keyword("type").and_then(Value::as_str)) {
            (Value::Bool(_) | Value::Number(_), _) => {
                // Writing into memory does not fail.
                let _ = serde_json::to_writer(&mut self.out, value);
            }
            (Value::String(text), Some("string")) => self.text(text),
            (Value::Array(entries), Some("array")) => self.list(entries, keyword("items")),
            (Value::Object(object), Some("object")) => self.object(object, keywords),
            _ => self.out.extend_from_slice(LEFT_OUT),
        }
    }

    fn list(&mut self, entries: &[Value], items: Option<&Value>) {
        self.out.push(b'[');
        let start = self.out.len();
        for (index, entry) in entries.iter().enumerate() {
            self.separate(start);
            if index >= ENTRIES_MAX || self.out.len() > ALL_MAX {
                self.out.extend_from_slice(LEFT_OUT);
                break;
            }
            self.value(entry, items.unwrap_or(&Value::Null));
        }
        self.out.push(b']');
    }

    fn separate(&mut self, start: usize) {
        if self.out.len() > start {
            self.out.push(b',');
        }
    }

    fn text(&mut self, text: &str) {
        let shown = ops::first_chars(text, TEXT_MAX);
        self.out.push(b'"');
        escape(shown, &mut self.out);
        if shown.len() < text.len() {
            self.out.extend_from_slice("…".as_bytes());
        }
        self.out.push(b'"');
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::workspace;

    fn told_of(tool: &str, arguments: Value) -> Value {
        let set = workspace::toolset();
        let mut tools = set.tools.iter().map(|tool| tool.definition());
        let definition = tools.find(|definition| definition.name == tool).unwrap();
        let text = told(definition, arguments.as_object().unwrap(), &[]);
        assert!(text.len() < 2 * ALL_MAX, "{}", text.len());
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
    }

    #[test]
    fn content_and_what_may_be_content_is_left_out() {
        let files = json!([{"path": "b", "content": "SECRET", "contents": "SECRET"}]);
        let arguments = json!({"root": "r", "path": "a\n", "content": "SECRET", "contnet": "SECRET", "files": files});
        let expected = json!({"root": "r", "path": "a\n", "files": [{"path": "b"}]});
        assert_eq!(told_of("write_file", arguments), expected);
        let arguments =
            json!({"root": "r", "edits": "SECRET", "dry_run": true, "path": null, "if_version": 3});
        let expected = json!({"root": "r", "edits": "…", "dry_run": true, "if_version": 3});
        assert_eq!(told_of("edit_file", arguments), expected);
    }

    #[test]
    fn what_is_long_is_cut() {
        let paths: Vec<String> = (0..500).map(|number| format!("{number:0>2000}é")).collect();
        let told = told_of("read_file", json!({"root": "r", "paths": paths}));
        assert!(told["paths"].as_array().unwrap().len() <= 6, "{told}");
        let paths: Vec<String> = (0..500).map(|number| number.to_string()).collect();
        let told = told_of("read_file", json!({"paths": paths}));
        assert_eq!(told["paths"].as_array().unwrap().len(), ENTRIES_MAX + 1);
    }
}
