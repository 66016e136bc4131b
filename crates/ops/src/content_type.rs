//! The MIME type of a file: by its first bytes, then by its name. Nothing here touches a file.

use crate::text::encoding::{is_binary, trim_end, utf8};

/// Types of text that the first bytes give away. Other signatures are too short to be trusted in text: a letter that
/// begins with "BM" is not a bitmap.
const TOLD_BY_TEXT: [&str; 6] = [
    "text/html",
    "text/x-shellscript",
    "application/pdf",
    "application/postscript",
    "application/rtf",
    "text/rtf",
];

/// Returns the type of a file with these first bytes and this name.
#[must_use]
pub fn content_type(head: &[u8], name: &str) -> &'static str {
    let is_text = !is_binary(head) && utf8(trim_end(head)).is_some();
    let told = infer::get(head).map(|kind| kind.mime_type());
    let told = told.filter(|told| !is_text || TOLD_BY_TEXT.contains(told));
    told.or_else(|| by_name(name)).unwrap_or(if is_text {
        "text/plain"
    } else {
        "application/octet-stream"
    })
}

/// The type that a name alone suggests.
#[must_use]
pub fn by_name(name: &str) -> Option<&'static str> {
    let (_, extension) = name.rsplit_once('.')?;
    Some(match extension.to_ascii_lowercase().as_str() {
        "txt" | "text" | "log" => "text/plain",
        "md" | "markdown" => "text/markdown",
        "html" | "htm" => "text/html",
        "css" => "text/css",
        "csv" => "text/csv",
        "tsv" => "text/tab-separated-values",
        "xml" => "text/xml",
        "svg" => "image/svg+xml",
        "js" | "mjs" | "cjs" => "text/javascript",
        "ts" | "tsx" => "text/x-typescript",
        "json" => "application/json",
        "jsonl" | "ndjson" => "application/x-ndjson",
        "yaml" | "yml" => "application/yaml",
        "toml" => "application/toml",
        "sql" => "application/sql",
        "sh" | "bash" => "text/x-shellscript",
        "py" => "text/x-python",
        "rb" => "text/x-ruby",
        "rs" => "text/x-rust",
        "go" => "text/x-go",
        "c" | "h" => "text/x-c",
        "cc" | "cpp" | "cxx" | "hpp" => "text/x-c++",
        "java" => "text/x-java",
        "diff" | "patch" => "text/x-diff",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_comes_before_the_name() {
        let png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR";
        assert_eq!(content_type(png, "notes.txt"), "image/png");
        assert_eq!(content_type(b"%PDF-1.7\n", "x"), "application/pdf");
        assert_eq!(content_type(b"\0\x01\x02", "x"), "application/octet-stream");
    }

    #[test]
    fn text_goes_by_its_name() {
        let table = [
            ("{}", "a.json", "application/json"),
            ("a,b", "a.CSV", "text/csv"),
            ("# x", "readme.md", "text/markdown"),
            ("<?xml version=\"1.0\"?><svg/>", "a.svg", "image/svg+xml"),
            ("BM is no bitmap here", "letter", "text/plain"),
            ("hello ñ", "Makefile", "text/plain"),
            ("", "empty", "text/plain"),
        ];
        for (text, name, expected) in table {
            assert_eq!(content_type(text.as_bytes(), name), expected, "{name}");
        }
    }

    #[test]
    fn a_character_cut_at_the_end_is_still_text() {
        assert_eq!(content_type(b"caf\xc3", "menu"), "text/plain");
    }
}
