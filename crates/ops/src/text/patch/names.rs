//! Which file a part of a patch is for: the names in headers and in the prose before a SEARCH block.

use memchr::memchr;

use crate::text::excerpt;

/// The most bytes of a name that are kept; no path is longer.
const NAME_MAX: usize = 4096;
/// The name that headers use for a file that does not exist.
const NOTHING: &[u8] = b"/dev/null";

pub(super) const BAD_QUOTES: &str = "the name in quotes is not written as git writes it (`\"b/\\303\\244.txt\"`); write it \
    without quotes";

/// The name in `--- name<tab>time`, as it stands there.
fn header_name(line: &[u8]) -> &[u8] {
    let name = line.get(4..).unwrap_or(&[]);
    let end = memchr(b'\t', name).unwrap_or(name.len());
    name.get(..end).unwrap_or(name).trim_ascii()
}

/// Tells whether a line `--- name` or `+++ name` says that there is no such file.
pub(super) fn is_nothing(line: &[u8]) -> bool {
    header_name(line) == NOTHING
}

/// The file that `--- old` and `+++ new` are for; nothing if its quotes are wrong. `announced` is the name in a
/// `diff` line before them.
pub(super) fn of_header(old: &[u8], new: &[u8], announced: Option<&str>) -> Option<String> {
    let (old, new) = (header_name(old), of_line(header_name(new))?);
    if old != NOTHING {
        return Some(without_prefix(&of_line(old)?, new));
    }
    if announced == Some(new.as_str()) {
        return Some(new);
    }
    let plain = new.strip_prefix("b/").or_else(|| new.strip_prefix("a/"));
    Some(plain.map_or_else(|| new.clone(), str::to_owned))
}

/// The new name without `b/`, if the old one has the `a/` that belongs to it: a directory may be called so.
fn without_prefix(old: &str, new: String) -> String {
    match new.strip_prefix("b/") {
        Some(plain) if old.starts_with("a/") => plain.to_owned(),
        _ => new,
    }
}

/// The file that `diff --git old new`, or another `diff` line, is for; nothing if that is not clear.
pub(super) fn of_diff(line: &[u8]) -> Option<String> {
    let (old, new) = match line.strip_prefix(b"diff --git ") {
        Some(names) => git_names(names.trim_ascii())?,
        None => last_two_words(line.trim_ascii())?,
    };
    Some(without_prefix(&of_line(old)?, of_line(new)?))
}

/// The two names of a `diff --git` line. Names with blanks are told apart because both are the same.
fn git_names(names: &[u8]) -> Option<(&[u8], &[u8])> {
    if names.starts_with(b"\"") {
        let end = memchr::memmem::find(names, b"\" \"")?;
        return Some((names.get(..=end)?, names.get(end + 2..)?));
    }
    same_names(names).or_else(|| {
        let two = last_two_words(names);
        two.filter(|(old, new)| old.len() + 1 + new.len() == names.len())
    })
}

/// Two names that differ in `a/` and `b/` at most.
fn same_names(names: &[u8]) -> Option<(&[u8], &[u8])> {
    let (old, rest) = names.split_at_checked(names.len() / 2)?;
    let new = rest.strip_prefix(b" ")?;
    let is_pair =
        matches!((old, new), ([b'a', b'/', old @ ..], [b'b', b'/', new @ ..]) if old == new);
    (is_pair || old == new).then_some((old, new))
}

fn last_two_words(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut words = line.rsplitn(3, |byte| *byte == b' ');
    let (new, old) = (words.next()?, words.next()?);
    Some((old, new)).filter(|_| !old.starts_with(b"-") && !new.starts_with(b"-"))
}

/// A name that stands alone; nothing if its quotes are wrong.
pub(super) fn of_line(name: &[u8]) -> Option<String> {
    let name = name.trim_ascii();
    if name.starts_with(b"\"") {
        return String::from_utf8(unquoted(name)?).ok();
    }
    Some(excerpt(name, NAME_MAX))
}

/// A name in quotes, with `\t`, `\"` and `\303` in it, as git and C write it.
fn unquoted(name: &[u8]) -> Option<Vec<u8>> {
    let inside = name.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
    let mut plain = Vec::with_capacity(inside.len());
    let mut bytes = inside.iter().copied();
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => return None,
            b'\\' => plain.push(escaped(&mut bytes)?),
            other => plain.push(other),
        }
    }
    Some(plain)
}

/// The byte that an escape stands for.
fn escaped(bytes: &mut impl Iterator<Item = u8>) -> Option<u8> {
    let digit = |byte: u8| matches!(byte, b'0'..=b'7').then(|| byte - b'0');
    match bytes.next()? {
        b'a' => Some(7),
        b'b' => Some(8),
        b't' => Some(b'\t'),
        b'n' => Some(b'\n'),
        b'v' => Some(11),
        b'f' => Some(12),
        b'r' => Some(b'\r'),
        same @ (b'\\' | b'"') => Some(same),
        first @ b'0'..=b'3' => {
            let (second, third) = (digit(bytes.next()?)?, digit(bytes.next()?)?);
            Some((first - b'0') * 64 + second * 8 + third)
        }
        _ => None,
    }
}

/// What a line of prose before a SEARCH block says about its file.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum TalkLine {
    /// Nothing: it is empty, or a fence.
    Empty,
    /// Nothing: it is prose.
    Prose,
    /// It is a name.
    Name(String),
    /// It is prose or a fence with something in it that may be a name.
    Mention,
}

impl TalkLine {
    pub(super) fn of(line: &[u8]) -> TalkLine {
        let line = String::from_utf8_lossy(line);
        let line = line.trim();
        let fence = line
            .strip_prefix("```")
            .or_else(|| line.strip_prefix("~~~"));
        if let Some(info) = fence {
            let names = info.split_whitespace().any(has_path_sign);
            return if names {
                TalkLine::Mention
            } else {
                TalkLine::Empty
            };
        }
        let bare = undecorated(line);
        if !bare.contains(char::is_alphabetic) {
            return TalkLine::Empty;
        }
        if !bare.contains(char::is_whitespace) {
            return of_line(bare.as_bytes()).map_or(TalkLine::Mention, TalkLine::Name);
        }
        let mut words = line.split_whitespace();
        if words.any(|word| is_marked(word) || has_path_sign(word)) {
            TalkLine::Mention
        } else {
            TalkLine::Prose
        }
    }
}

/// A line without what Markdown and prose put around a name.
fn undecorated(line: &str) -> &str {
    let heading = line.trim_start_matches('#').trim_start();
    let decoration = |sign: char| matches!(sign, '*' | '`' | ':');
    heading.trim_matches(decoration)
}

/// A word in backticks or stars.
fn is_marked(word: &str) -> bool {
    word.starts_with(['`', '*']) && word.len() > 2
}

/// Tells whether a word has a `/`, or a `.` inside.
pub(super) fn has_path_sign(word: &str) -> bool {
    let prose = |sign: char| matches!(sign, '.' | ',' | ';' | ':' | '!' | '?' | ')' | '(');
    let inner = word.trim_end_matches(prose).trim_start_matches('(');
    inner.contains(['/', '.'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_are_taken_off_in_pairs() {
        for (old, new, name) in [
            ("a/x", "b/x", "x"),
            ("a/x", "b/y", "y"),
            ("b/x", "b/x", "b/x"),
            ("a/x", "a/x", "a/x"),
            ("x", "b/x", "b/x"),
            ("a/x", "x", "x"),
            ("/dev/null", "b/x", "x"),
            ("/dev/null", "a/x", "x"),
            ("/dev/null", "x", "x"),
            (r#""a/\303\244\t\"""#, r#""b/\303\244\t\"""#, "ä\t\""),
        ] {
            let (old, new) = (format!("--- {old}\t1"), format!("+++ {new}\t2"));
            let found = of_header(old.as_bytes(), new.as_bytes(), None);
            assert_eq!(found.as_deref(), Some(name), "{old} {new}");
        }
        // The `diff` line tells that there are no prefixes.
        let made = of_header(b"--- /dev/null", b"+++ b/x", Some("b/x"));
        assert_eq!(made.as_deref(), Some("b/x"));
        for wrong in [
            r#"+++ "b/x"#,
            r#"+++ "b/\9""#,
            r#"+++ "b/\377""#,
            r#"+++ "a"b""#,
            r#"+++ "\"#,
        ] {
            assert_eq!(
                of_header(b"--- a/x", wrong.as_bytes(), None),
                None,
                "{wrong}"
            );
        }
    }

    #[test]
    fn diff_lines_name_files() {
        for (line, name) in [
            ("diff --git a/x b/x", Some("x")),
            ("diff --git a/my file b/my file", Some("my file")),
            ("diff --git x x", Some("x")),
            ("diff --git b/x b/x", Some("b/x")),
            ("diff --git a/x b/other", Some("other")),
            ("diff --git a/one two b/three", None),
            (r#"diff --git "a/\303\244 x" "b/\303\244 x""#, Some("ä x")),
            ("diff -ru a/x b/x", Some("x")),
            ("diff --git", None),
            ("diff --git ", None),
        ] {
            assert_eq!(of_diff(line.as_bytes()).as_deref(), name, "{line}");
        }
    }

    #[test]
    fn talk_may_name_a_file() {
        for name in [
            "Makefile",
            "**Makefile**",
            "### `Makefile`",
            "Makefile:",
            "\"Makefile\"",
        ] {
            let found = TalkLine::of(name.as_bytes());
            assert_eq!(found, TalkLine::Name("Makefile".to_owned()), "{name}");
        }
        for (line, expected) in [
            ("", TalkLine::Empty),
            ("```python", TalkLine::Empty),
            ("---", TalkLine::Empty),
            ("2.", TalkLine::Empty),
            ("```python y.py", TalkLine::Mention),
            ("Now for y.py:", TalkLine::Mention),
            ("And in `Makefile`:", TalkLine::Mention),
            ("The second change.", TalkLine::Prose),
        ] {
            assert_eq!(TalkLine::of(line.as_bytes()), expected, "{line}");
        }
    }
}
