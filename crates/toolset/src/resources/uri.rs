//! The URIs of resources: `fs://{root}/{path}`, and the template of each root, `fs://{root}/{+path}`.
//!
//! A path is what clients see everywhere else (names that are not UTF-8 have their stand-in characters),
//! percent-encoded as UTF-8. So URI and path convert into each other without loss.

use std::fmt;

/// The scheme, with what follows it.
const SCHEME: &str = "fs://";
/// The variable part of a template.
const VARIABLE: &str = "{+path}";
/// The argument of a template that can be completed.
pub const TEMPLATE_ARGUMENT: &str = "path";
/// How much of a bad URI is shown.
const SHOWN_MAX: usize = 200;
const HEX: &[u8; 16] = b"0123456789ABCDEF";

/// A place that a URI names: a root and a path inside it. Whether they exist has not been checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResourcePlace {
    /// The name of the root.
    pub root: String,
    /// The path inside it, as tools take it; `.` is the root itself.
    pub path: String,
}

/// Why a text is no URI of a resource here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadUri(String);

impl fmt::Display for BadUri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Reads a URI. Characters that should have been encoded are taken as they are, because clients leave many of them.
pub fn parse(uri: &str) -> Result<ResourcePlace, BadUri> {
    let rest = after_scheme(uri)?;
    if let Some(fault) = unencoded(rest) {
        return Err(bad(uri, fault));
    }
    let (root, path) = rest.split_once('/').unwrap_or((rest, ""));
    let root = decoded(root).map_err(|fault| bad(uri, &fault))?;
    if root.is_empty() {
        return Err(bad(uri, "it names no root; fs://ROOT/PATH does"));
    }
    if path.to_ascii_lowercase().contains("%2f") {
        return Err(bad(uri, "no name has a slash, so %2F stands for nothing"));
    }
    let path = decoded(path).map_err(|fault| bad(uri, &fault))?;
    Ok(ResourcePlace {
        root,
        path: if path.is_empty() {
            ".".to_owned()
        } else {
            path
        },
    })
}

/// The error for an unencoded character that has a meaning in a URI or a template.
fn unencoded(rest: &str) -> Option<&'static str> {
    match rest.chars().find(|character| "?#".contains(*character)) {
        Some('?') => return Some("a ? in a name is written %3F"),
        Some(_) => return Some("a # in a name is written %23"),
        None => {}
    }
    rest.contains(['{', '}']).then_some(
        "it is a template: put a path in the place of {+path}, and write braces as %7B and %7D",
    )
}

/// The URI of a place.
#[must_use]
pub fn of(root: &str, path: &str) -> String {
    let mut uri = SCHEME.to_owned();
    encode(root, is_plain, &mut uri);
    uri.push('/');
    if path != "." {
        encode(path, |byte| is_plain(byte) || byte == b'/', &mut uri);
    }
    uri
}

/// The template of a root.
#[must_use]
pub fn template(root: &str) -> String {
    of(root, ".") + VARIABLE
}

/// The root of a template, as this server gives them out.
pub fn root_of_template(template: &str) -> Result<String, BadUri> {
    let unknown = || {
        let fault = "templates here are fs://ROOT/{+path}; resources/templates/list has them";
        bad(template, fault)
    };
    let root = template.strip_suffix(VARIABLE).ok_or_else(unknown)?;
    let place = parse(root)?;
    if place.path == "." && root.ends_with('/') {
        Ok(place.root)
    } else {
        Err(unknown())
    }
}

/// A path as the value of a template's argument. Clients put the value into the template almost as it is, so what would end
/// the path there is encoded.
#[must_use]
pub fn as_argument(path: &str) -> String {
    let mut value = String::with_capacity(path.len());
    for character in path.chars() {
        match character {
            '%' => value.push_str("%25"),
            '?' => value.push_str("%3F"),
            '#' => value.push_str("%23"),
            '{' => value.push_str("%7B"),
            '}' => value.push_str("%7D"),
            other => value.push(other),
        }
    }
    value
}

/// The path that the value of a template's argument stands for, as far as it is typed.
pub fn from_argument(value: &str) -> Result<String, BadUri> {
    decoded(value).map_err(|fault| bad(value, &fault))
}

fn after_scheme(uri: &str) -> Result<&str, BadUri> {
    let scheme = uri
        .get(..SCHEME.len())
        .filter(|scheme| scheme.eq_ignore_ascii_case(SCHEME));
    let rest = scheme.and_then(|_| uri.get(SCHEME.len()..));
    rest.ok_or_else(|| {
        bad(
            uri,
            "resources here are fs://ROOT/PATH; resources/list has the roots",
        )
    })
}

fn bad(uri: &str, fault: &str) -> BadUri {
    let shown = ops::truncated(uri, SHOWN_MAX);
    let shown = crate::text_form::shown(&shown);
    BadUri(format!("bad URI {shown}: {fault}"))
}

/// Characters that stand for themselves anywhere in a URI.
fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~')
}

fn encode(text: &str, stays: impl Fn(u8) -> bool, uri: &mut String) {
    for byte in text.bytes() {
        if stays(byte) {
            uri.push(char::from(byte));
            continue;
        }
        uri.push('%');
        for digit in [byte >> 4, byte & 0xf] {
            uri.extend(HEX.get(usize::from(digit)).copied().map(char::from));
        }
    }
}

fn decoded(text: &str) -> Result<String, String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((byte, behind)) = rest.split_first() {
        if *byte != b'%' {
            bytes.push(*byte);
            rest = behind;
            continue;
        }
        let digits = behind.first_chunk::<2>();
        let value = digits.and_then(|[high, low]| Some(digit(*high)? << 4 | digit(*low)?));
        let value =
            value.ok_or("% is followed by two hexadecimal digits; % itself is written %25")?;
        bytes.push(value);
        rest = behind.get(2..).unwrap_or_default();
    }
    String::from_utf8(bytes).map_err(|_| {
        "its percent-encoded bytes are not UTF-8; names that are not UTF-8 have stand-in characters, as listings show them"
            .to_owned()
    })
}

fn digit(byte: u8) -> Option<u8> {
    let digit = char::from(byte).to_digit(16)?;
    u8::try_from(digit).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn place(root: &str, path: &str) -> ResourcePlace {
        ResourcePlace {
            root: root.to_owned(),
            path: path.to_owned(),
        }
    }

    #[test]
    fn uris_name_a_root_and_a_path() {
        let table = [
            ("fs://docs/", "docs", "."),
            ("fs://docs", "docs", "."),
            ("FS://docs/a/b.txt", "docs", "a/b.txt"),
            ("fs://my%20docs/a%20b", "my docs", "a b"),
            ("fs://docs/a b/ñ", "docs", "a b/ñ"),
            ("fs://docs/100%25", "docs", "100%"),
            ("fs://docs/%C3%B1", "docs", "ñ"),
            ("fs://docs/../x", "docs", "../x"),
        ];
        for (uri, root, path) in table {
            assert_eq!(parse(uri), Ok(place(root, path)), "{uri}");
        }
    }

    #[test]
    fn bad_uris_say_what_is_wrong() {
        let table = [
            ("", "fs://ROOT/PATH"),
            ("file:///etc/passwd", "fs://ROOT/PATH"),
            ("fs:/docs/a", "fs://ROOT/PATH"),
            ("fs://", "names no root"),
            ("fs:///a", "names no root"),
            ("fs://docs/a?b", "%3F"),
            ("fs://docs/a#b", "%23"),
            ("fs://docs/{+path}", "template"),
            ("fs://docs/a%2", "two hexadecimal digits"),
            ("fs://docs/a%zz", "two hexadecimal digits"),
            ("fs://docs/%ff", "not UTF-8"),
            ("fs://docs/a%2Fb", "slash"),
        ];
        for (uri, expected) in table {
            let fault = parse(uri).unwrap_err().to_string();
            assert!(
                fault.contains(expected) && !fault.contains('\n'),
                "{uri}: {fault}"
            );
        }
    }

    #[test]
    fn templates_give_their_root_back() {
        assert_eq!(template("my docs"), "fs://my%20docs/{+path}");
        assert_eq!(
            root_of_template("fs://my%20docs/{+path}"),
            Ok("my docs".to_owned())
        );
        for other in [
            "fs://docs/{path}",
            "fs://docs/a/{+path}",
            "fs://{+path}",
            "x",
            "fs://docs/",
        ] {
            assert!(root_of_template(other).is_err(), "{other}");
        }
    }

    proptest! {
        #[test]
        fn a_uri_gives_its_place_back(root in "\\PC{1,12}", path in "\\PC{1,40}") {
            prop_assume!(path != ".");
            let uri = of(&root, &path);
            prop_assert!(uri.is_ascii());
            prop_assert_eq!(parse(&uri), Ok(place(&root, &path)));
        }

        #[test]
        fn an_argument_put_into_its_template_names_the_path(path in "[^/]\\PC{0,40}") {
            prop_assume!(path != ".");
            let uri = format!("fs://docs/{}", as_argument(&path));
            prop_assert_eq!(parse(&uri), Ok(place("docs", &path)));
            prop_assert_eq!(from_argument(&as_argument(&path)), Ok(path));
        }

        #[test]
        fn nothing_is_too_odd(text in ".{0,60}") {
            let _ = parse(&text);
            let _ = root_of_template(&text);
        }
    }
}
