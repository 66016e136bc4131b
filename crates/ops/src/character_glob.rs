//! Globs whose `?` and classes match characters; those of `globset` match bytes.
//!
//! `globset` parses and translates. Before that, `?` and classes are replaced by stand-ins; afterwards the stand-ins
//! become expressions over characters. As in Go's doublestar, a backslash escapes in a class too, and an unmatched `}`
//! is a plain character. Names that are not UTF-8 are matched in the form that clients see, so that a name from a reply
//! works in a pattern. The caller bounds the pattern.

use std::borrow::Cow;
use std::str::Chars;

use globset::{Candidate, Glob, GlobBuilder, GlobSet, GlobSetBuilder};
use regex::bytes::{Regex, RegexBuilder};

/// The first of the stand-ins for `?` and classes: private use, the last plane.
const STAND_INS: std::ops::RangeInclusive<char> = '\u{100000}'..='\u{10FFFD}';
/// The most memory that a compiled glob may use.
const COMPILED_MAX: usize = 10 * 1024 * 1024;

/// A compiled glob.
#[derive(Debug)]
pub(crate) struct CharacterGlob {
    /// The end that every matching path has. For most names of a tree, this alone decides.
    tail: Vec<u8>,
    matcher: Matcher,
}

#[derive(Debug)]
enum Matcher {
    /// Without `?` and classes bytes and characters are the same, and this is quicker.
    Bytes(GlobSet),
    /// With `?` or classes.
    Characters(Regex),
}

impl CharacterGlob {
    /// Compiles a glob; fails with a reason.
    pub(crate) fn new(text: &str) -> Result<CharacterGlob, String> {
        Ok(CharacterGlob {
            matcher: Matcher::new(text)?,
            tail: tail(text).to_vec(),
        })
    }

    /// Tells whether a path matches as a whole.
    pub(crate) fn is_match(&self, path: &[u8]) -> bool {
        path.ends_with(&self.tail) && self.matcher.is_match(path)
    }
}

impl Matcher {
    fn new(text: &str) -> Result<Matcher, String> {
        let (plain, taken_out) = take_out(text)?;
        let glob = parse(&plain)?;
        if taken_out.is_empty() {
            // Security: `Glob::compile_matcher` panics if a set reports an error.
            let set = GlobSetBuilder::new().add(glob).build();
            return set.map(Matcher::Bytes).map_err(reason);
        }
        let translated = put_in(glob.regex(), &taken_out);
        RegexBuilder::new(&translated)
            .dot_matches_new_line(true)
            .size_limit(COMPILED_MAX)
            .dfa_size_limit(COMPILED_MAX)
            .build()
            .map(Matcher::Characters)
            .map_err(|_| "it is too large once it is compiled".to_owned())
    }

    fn is_match(&self, path: &[u8]) -> bool {
        let path = as_shown(path);
        match self {
            Matcher::Bytes(set) => set.is_match_candidate(&Candidate::from_bytes(&*path)),
            Matcher::Characters(regex) => regex.is_match(&path),
        }
    }
}

/// The plain characters that a glob ends with, as far as they are ASCII: other bytes may be shown in another form.
fn tail(glob: &str) -> &[u8] {
    let is_plain = |c: char| c.is_ascii() && !r"*?[]{},!\/".contains(c);
    // Anything may follow a backslash, and a slash may be part of `**/`, which also matches nothing.
    if glob.contains('\\') {
        return &[];
    }
    let plain = glob.trim_end_matches(is_plain).len();
    glob.as_bytes().get(plain..).unwrap_or_default()
}

/// The bytes of a path as clients see it.
fn as_shown(path: &[u8]) -> Cow<'_, [u8]> {
    if path.is_ascii() {
        return Cow::Borrowed(path);
    }
    match sandbox::shown(path) {
        Cow::Borrowed(text) => Cow::Borrowed(text.as_bytes()),
        Cow::Owned(text) => Cow::Owned(text.into_bytes()),
    }
}

fn parse(text: &str) -> Result<Glob, String> {
    GlobBuilder::new(text)
        .literal_separator(true)
        .backslash_escape(true)
        .empty_alternates(true)
        .build()
        .map_err(reason)
}

fn reason(error: globset::Error) -> String {
    error.kind().to_string()
}

/// A character of the text with `?` and classes taken out, and the expression it stands for.
type StandIn = (char, String);

/// Replaces each `?` and each class by a stand-in of its own, and puts a backslash before each `}` that closes nothing.
fn take_out(text: &str) -> Result<(String, Vec<StandIn>), String> {
    let mut free = STAND_INS.filter(|stand_in| !text.contains(*stand_in));
    let (mut plain, mut taken_out) = (String::with_capacity(text.len()), Vec::new());
    let mut open_braces = 0_usize;
    let mut rest = text.chars();
    while let Some(next) = rest.next() {
        let expression = match next {
            '?' => "(?u:[^/])".to_owned(),
            '[' => class(&mut rest)?,
            '\\' => {
                plain.push(next);
                plain.extend(rest.next());
                continue;
            }
            literal => {
                push_literal(literal, &mut open_braces, &mut plain);
                continue;
            }
        };
        // There are more of them than a pattern may have characters.
        if let Some(stand_in) = free.next() {
            plain.push(stand_in);
            taken_out.push((stand_in, expression));
        }
    }
    Ok((plain, taken_out))
}

fn push_literal(literal: char, open_braces: &mut usize, plain: &mut String) {
    match literal {
        '{' => *open_braces += 1,
        '}' if *open_braces == 0 => plain.push('\\'),
        '}' => *open_braces -= 1,
        _ => {}
    }
    plain.push(literal);
}

/// Reads a class after its bracket and writes it as an expression; no class matches a slash.
fn class(rest: &mut Chars<'_>) -> Result<String, String> {
    let negated = rest.as_str().starts_with(['!', '^']);
    if negated {
        rest.next();
    }
    let members = members(rest)?;
    let ranges = ranges(&members);
    if let Some((from, to)) = ranges.iter().find(|(from, to)| from > to) {
        return Err(format!("invalid range; '{from}' > '{to}'"));
    }
    let inside: String = ranges.into_iter().map(in_class).collect();
    let negation = if negated { "^" } else { "" };
    Ok(format!("(?u:[[{negation}{inside}]&&[^/]])"))
}

/// A character of a class, and whether it is taken literally.
type Member = (char, bool);

/// Reads what a class holds, and its end. A bracket that stands first is one of its characters.
fn members(rest: &mut Chars<'_>) -> Result<Vec<Member>, String> {
    let unclosed = || "unclosed character class; missing ']'".to_owned();
    let mut members = Vec::new();
    loop {
        let member = match rest.next().ok_or_else(unclosed)? {
            ']' if !members.is_empty() => return Ok(members),
            '\\' => (rest.next().ok_or_else(unclosed)?, true),
            member => (member, false),
        };
        members.push(member);
    }
}

/// Reads ranges as `globset` does: a second hyphen makes the last range longer, one at an end is itself.
fn ranges(members: &[Member]) -> Vec<(char, char)> {
    let mut ranges: Vec<(char, char)> = Vec::new();
    let mut in_range = false;
    for (member, escaped) in members {
        match (in_range, ranges.last_mut()) {
            (true, Some(last)) => {
                last.1 = *member;
                in_range = false;
            }
            (false, Some(_)) if *member == '-' && !escaped => in_range = true,
            _ => ranges.push((*member, *member)),
        }
    }
    if in_range {
        ranges.push(('-', '-'));
    }
    ranges
}

fn in_class((from, to): (char, char)) -> String {
    format!("\\x{{{:x}}}-\\x{{{:x}}}", u32::from(from), u32::from(to))
}

/// Replaces the stand-ins, which `globset` wrote byte by byte, with their expressions.
fn put_in(regex: &str, taken_out: &[StandIn]) -> String {
    taken_out
        .iter()
        .fold(regex.to_owned(), |regex, (stand_in, expression)| {
            let mut buffer = [0; 4];
            let bytes = stand_in.encode_utf8(&mut buffer).bytes();
            let written: String = bytes.map(|byte| format!("\\x{byte:02x}")).collect();
            regex.replacen(&written, expression, 1)
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn matches(glob: &str, path: &[u8]) -> bool {
        CharacterGlob::new(glob).unwrap().is_match(path)
    }

    #[test]
    fn characters_count_and_not_bytes() {
        for (glob, path, expected) in [
            ("?.txt", "ä.txt", true),
            ("?.txt", "日.txt", true),
            ("?.txt", "ää.txt", false),
            ("??.txt", "ä.txt", false),
            ("?", "/", false),
            ("[äö].txt", "ö.txt", true),
            ("[äö].txt", "ü.txt", false),
            ("[à-ü].txt", "ö.txt", true),
            ("[!a].txt", "ö.txt", true),
            ("[!ö].txt", "ö.txt", false),
            ("a[!x]b", "a/b", false),
            ("[]].txt", "].txt", true),
            ("[!]].txt", "].txt", false),
            ("[a-].txt", "-.txt", true),
            ("[-a].txt", "-.txt", true),
            ("[]-a].txt", "^.txt", true),
            ("[&&~.]", "&", true),
            (r"[\]a]", "]", true),
            (r"[\]a]", r"\", false),
            (r"[\-x]", "-", true),
            (r"[a\-x]", "b", false),
            (r"[\\]x", r"\x", true),
            ("a}b", "a}b", true),
            ("{a,b}}", "b}", true),
            ("}[}]", "}}", true),
            (r"\?.txt", "?.txt", true),
            (r"\?.txt", "a.txt", false),
            (r"\[?]", "[ü]", true),
            ("{?,ab}/[x-z]/**/*.t?t", "ä/y/deep/er/f.töt", true),
            ("\u{100000}?", "\u{100000}x", true),
            ("*.tx?", "日本.txt", true),
        ] {
            assert_eq!(
                matches(glob, path.as_bytes()),
                expected,
                "{glob:?} on {path:?}"
            );
        }
    }

    #[test]
    fn bytes_that_are_no_characters_match_as_they_are_shown() {
        assert!(matches("?.txt", b"\xff.txt"));
        assert!(!matches("?.txt", b"\xff\xfe.txt"));
        assert!(matches("*.txt", b"\xff.txt"));
        assert!(matches("\u{F7FF}.txt", b"\xff.txt"));
        assert!(matches("[\u{F7FF}].t*", b"\xff.txt"));
    }

    #[test]
    fn what_is_wrong_is_said() {
        for glob in ["[a", "[z-a]", "{a", "a\\", "[", "[!"] {
            assert!(CharacterGlob::new(glob).is_err(), "{glob:?}");
        }
    }

    proptest! {
        /// `globset` is right about ASCII paths, except for what doublestar reads differently.
        #[test]
        fn agrees_with_globset_on_ascii(glob in r"([a-c?*{},\[\]!/-]|\*\*/){0,12}", name in "[a-c!,/-]{1,4}") {
            let own = CharacterGlob::new(&glob);
            let closes_nothing = own.is_ok() && parse(&glob).is_err_and(|error| error.contains("unopened"));
            prop_assume!(!closes_nothing && name.split('/').all(|name| !name.is_empty()));
            let theirs = parse(&glob).and_then(|glob| {
                GlobSetBuilder::new().add(glob).build().map_err(reason)
            });
            prop_assert_eq!(own.is_ok(), theirs.is_ok());
            if let (Ok(own), Ok(theirs)) = (own, theirs) {
                prop_assert_eq!(own.is_match(name.as_bytes()), theirs.is_match(&name));
            }
        }
    }
}
