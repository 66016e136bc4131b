//! What clients search for: patterns for lines, and globs and regular expressions for paths.
//!
//! Everything is bounded before it is parsed, because parsers and compilers of patterns cost far more than
//! their text. Nothing here touches a file.

use std::ops::Range;

use grep_matcher::{LineMatchKind, Matcher};
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use memchr::{memchr, memrchr};
use sandbox::Seen;

use crate::character_glob::CharacterGlob;
use crate::error::{Error, PatternRole, Result};
use crate::go_regex;
use crate::regex_cost::{self, LINE_PLACES, PATH_PLACES, Reach};
use crate::search_memory::Needs;

/// The longest pattern.
const PATTERN_MAX: usize = 4096;
/// The deepest `{` nesting of a glob and `(` nesting of a regular expression: parsers recurse.
const GLOB_NESTING_MAX: usize = 32;
const REGEX_NESTING_MAX: u32 = 100;
/// The longest character, in bytes: a match on a character that a cut splits means nothing.
const CHARACTER_MAX: usize = 4;
/// How many matches near a cut are passed over in a part of a line.
const PART_TRIES: usize = 16;
/// The most memory that a compiled pattern may use.
const COMPILED_MAX: usize = 10 * 1024 * 1024;
/// The most memory that each thread may use for the states of a pattern.
const STATES_MAX: usize = 4 * 1024 * 1024;

/// What lines are searched for.
#[derive(Debug, Clone)]
pub struct Pattern {
    /// What the client wrote: a line matches if any of them does. An empty one is in every line.
    pub texts: Vec<String>,
    /// How they are read.
    pub syntax: Syntax,
    /// Whether upper and lower case differ.
    pub case: Case,
}

/// How a pattern is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Syntax {
    /// As a regular expression.
    Regex,
    /// As the text itself.
    Literal,
}

/// Whether upper and lower case differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Case {
    /// They differ.
    Sensitive,
    /// They are equal.
    Insensitive,
}

/// Finds matching lines. Cloning it is cheap; threads have their own, so that they do not share scratch space.
#[derive(Debug, Clone)]
pub(crate) struct LineMatcher {
    regex: RegexMatcher,
    ends: LineEndKind,
    reach: Reach,
    /// Whether it looks beside a match: `^`, `$`, `\b` and the like.
    looks_around: bool,
}

/// What ends a line for a pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LineEndKind {
    /// `\n` or `\r\n`.
    Either,
    /// `\n` only: the pattern asks for `\r`.
    Newline,
}

/// Where a part of a line begins: with the line, or after a cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PartStart {
    Line,
    Cut,
}

/// Where a part of a line ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PartEnd {
    Line,
    Cut,
}

impl LineMatcher {
    /// Compiles a pattern.
    pub(crate) fn new(pattern: &Pattern) -> Result<LineMatcher> {
        let invalid = |reason| Error::InvalidPattern {
            role: PatternRole::Lines,
            reason,
        };
        check_length(pattern.texts.iter().map(String::len).sum()).map_err(invalid)?;
        let read = pattern.texts.iter().map(|text| match pattern.syntax {
            Syntax::Regex => read_regex(text, LINE_PLACES),
            Syntax::Literal => Ok(ReadRegex::literal(text)),
        });
        let read: Vec<ReadRegex> = read.collect::<Result<_, _>>().map_err(invalid)?;
        let places = read.iter().map(|one| one.places).sum();
        regex_cost::check(places, LINE_PLACES).map_err(invalid)?;
        let texts: Vec<&str> = read.iter().map(|one| one.text.as_str()).collect();
        let build = |ends| build(&texts, pattern.case, ends);
        let (regex, ends) = build(LineEndKind::Either)
            .or_else(|error| build(LineEndKind::Newline).map_err(|_| error))
            .map_err(|error| invalid(explained(pattern, &error)))?;
        Ok(LineMatcher {
            regex,
            ends,
            reach: Reach::of(places),
            looks_around: read.iter().any(|one| one.looks_around),
        })
    }

    /// The first matching line of `bytes` that begins at or after `from`, which begins a line; with its terminator.
    pub(crate) fn next_line(&self, bytes: &[u8], from: usize) -> Option<Range<usize>> {
        if self.regex.line_terminator().is_some() {
            self.next_candidate(bytes, from)
        } else {
            self.next_by_line(bytes, from)
        }
    }

    /// Lets the matcher run across line ends and looks up the line in which it stops.
    fn next_candidate(&self, bytes: &[u8], mut from: usize) -> Option<Range<usize>> {
        while from < bytes.len() {
            let found = self.regex.find_candidate_line(bytes.get(from..)?).ok()??;
            let (LineMatchKind::Confirmed(at) | LineMatchKind::Candidate(at)) = found;
            let line = line_around(bytes, from + at);
            let confirmed = matches!(found, LineMatchKind::Confirmed(_));
            // An empty match after the last line's end is in no line.
            if !line.is_empty() && (confirmed || self.is_match(bytes.get(line.clone())?)) {
                return Some(line);
            }
            from = line.end.max(from + 1);
        }
        None
    }

    /// For patterns with text anchors (`\A`, `\z`), which mean the line's ends.
    fn next_by_line(&self, bytes: &[u8], mut from: usize) -> Option<Range<usize>> {
        while from < bytes.len() {
            let line = line_around(bytes, from);
            if self.is_match(bytes.get(line.clone())?) {
                return Some(line);
            }
            from = line.end;
        }
        None
    }

    /// Tells whether one line matches; its terminator does not count.
    pub(crate) fn is_match(&self, line: &[u8]) -> bool {
        self.regex.is_match(self.content(line)).unwrap_or(false)
    }

    /// How much may be searched at once.
    pub(crate) fn reach(&self) -> Reach {
        self.reach
    }

    /// Where the first match of a line is; its terminator does not count.
    pub(crate) fn find(&self, line: &[u8]) -> Option<Range<usize>> {
        let found = self.regex.find(self.content(line)).ok()??;
        Some(found.start()..found.end())
    }

    /// Finds a match in a part of a line that is a match of the line too.
    ///
    /// A pattern that looks beside a match would take a cut for the end of a line or word. So a match of such a pattern
    /// near a cut does not count: the next part overlaps and sees more of it.
    pub(crate) fn find_within(
        &self,
        part: &[u8],
        start: PartStart,
        end: PartEnd,
    ) -> Option<Range<usize>> {
        let part = match end {
            PartEnd::Line => self.content(part),
            PartEnd::Cut => part,
        };
        let margin = if self.looks_around { CHARACTER_MAX } else { 0 };
        let mut from = match start {
            PartStart::Line => 0,
            PartStart::Cut => margin,
        };
        let last = match end {
            PartEnd::Line => part.len(),
            PartEnd::Cut => part.len().checked_sub(margin)?,
        };
        for _ in 0..PART_TRIES {
            let found = self
                .regex
                .find_at(part, Some(from).filter(|&from| from <= last)?);
            let found = found.ok()??;
            if found.end() <= last {
                return Some(found.start()..found.end());
            }
            from = found.start() + 1;
        }
        None
    }

    fn content<'line>(&self, line: &'line [u8]) -> &'line [u8] {
        match self.ends {
            LineEndKind::Either => without_terminator(line),
            LineEndKind::Newline => line.strip_suffix(b"\n").unwrap_or(line),
        }
    }
}

/// What a text needs so that a line of it can match; `None` if every text has it.
pub(crate) fn needs(pattern: &Pattern) -> Option<Needs> {
    let read = pattern.texts.iter().map(|text| match pattern.syntax {
        Syntax::Regex => go_regex::translate(text).ok(),
        Syntax::Literal => Some(regex_syntax::escape(text)),
    });
    let read: Vec<String> = read.collect::<Option<_>>()?;
    let texts: Vec<&str> = read.iter().map(String::as_str).collect();
    let ignores_case = pattern.case == Case::Insensitive;
    Needs::of(&texts, ignores_case, REGEX_NESTING_MAX)
}

/// Why a pattern cannot be used. For a line end the library only says that it is not allowed.
fn explained(pattern: &Pattern, error: &grep_regex::Error) -> String {
    let has_line_end = |text: &String| text.contains('\n') || text.contains("\\n");
    if pattern.texts.iter().any(has_line_end)
        && matches!(error.kind(), grep_regex::ErrorKind::NotAllowed(_))
    {
        "it contains a line end, but lines are searched one by one: search for text within one line"
            .to_owned()
    } else {
        error.to_string()
    }
}

fn build(
    texts: &[&str],
    case: Case,
    ends: LineEndKind,
) -> Result<(RegexMatcher, LineEndKind), grep_regex::Error> {
    let mut builder = RegexMatcherBuilder::new();
    builder
        .case_insensitive(case == Case::Insensitive)
        // `^` and `$` are the ends of a line, anywhere in the file.
        .multi_line(true)
        .size_limit(COMPILED_MAX)
        .dfa_size_limit(STATES_MAX)
        .nest_limit(REGEX_NESTING_MAX + 2);
    match ends {
        LineEndKind::Either => builder.crlf(true),
        LineEndKind::Newline => builder.line_terminator(Some(b'\n')),
    };
    Ok((builder.build_many(texts)?, ends))
}

fn line_around(bytes: &[u8], at: usize) -> Range<usize> {
    let at = at.min(bytes.len());
    let (before, after) = bytes.split_at(at);
    let start = memrchr(b'\n', before).map_or(0, |newline| newline + 1);
    let end = memchr(b'\n', after).map_or(bytes.len(), |newline| at + newline + 1);
    start..end
}

/// A line without `\n` or `\r\n`.
pub(crate) fn without_terminator(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// Matches paths relative to the searched directory.
#[derive(Debug)]
pub(crate) enum PathMatcher {
    /// By glob.
    Glob(PathGlob),
    /// By regular expression, found anywhere in the path.
    Regex(regex::bytes::Regex),
    /// By regular expression, found nowhere in the path.
    NotRegex(regex::bytes::Regex),
}

impl PathMatcher {
    /// Compiles a regular expression over paths.
    pub(crate) fn regex(text: &str) -> Result<PathMatcher> {
        path_regex(text).map(PathMatcher::Regex)
    }

    /// Compiles a regular expression that paths must not have.
    pub(crate) fn not_regex(text: &str) -> Result<PathMatcher> {
        path_regex(text).map(PathMatcher::NotRegex)
    }

    /// Tells whether a relative path matches.
    pub(crate) fn is_match(&self, path: &[u8]) -> bool {
        match self {
            PathMatcher::Glob(glob) => glob.is_match(path),
            PathMatcher::Regex(regex) => regex.is_match(path),
            PathMatcher::NotRegex(regex) => !regex.is_match(path),
        }
    }

    /// Tells whether anything below a directory can match, if its parents passed this check.
    pub(crate) fn may_match_below(&self, name: &[u8], depth: usize) -> bool {
        match self {
            PathMatcher::Glob(glob) => glob.may_match_below(name, depth),
            PathMatcher::Regex(_) | PathMatcher::NotRegex(_) => true,
        }
    }

    /// Tells whether only directories are meant (`dir/`).
    pub(crate) fn directories_only(&self) -> bool {
        matches!(self, PathMatcher::Glob(glob) if glob.directories_only)
    }
}

fn path_regex(text: &str) -> Result<regex::bytes::Regex> {
    let invalid = |reason| Error::InvalidPattern {
        role: PatternRole::PathRegex,
        reason,
    };
    check_length(text.len()).map_err(invalid)?;
    let read = read_regex(text, PATH_PLACES).map_err(invalid)?;
    regex::bytes::RegexBuilder::new(&read.text)
        .size_limit(COMPILED_MAX)
        .dfa_size_limit(STATES_MAX)
        .build()
        .map_err(|error| invalid(error.to_string()))
}

/// A glob over paths, and what it says about each level.
#[derive(Debug)]
pub(crate) struct PathGlob {
    whole: CharacterGlob,
    /// The directory itself, if the glob ends in `/**`: in Go's doublestar `src/**` includes `src`.
    top: Option<CharacterGlob>,
    levels: Vec<GlobLevel>,
    directories_only: bool,
}

/// What a glob requires of one component.
#[derive(Debug)]
enum GlobLevel {
    /// Anything at any depth: from here on nothing can be excluded.
    Deep,
    /// One name.
    Name(CharacterGlob),
}

impl PathGlob {
    /// Compiles a glob.
    pub(crate) fn new(role: PatternRole, text: &str) -> Result<PathGlob> {
        let invalid = |reason| Error::InvalidPattern { role, reason };
        check_glob(text).map_err(invalid)?;
        let directories_only = text.ends_with('/');
        let text = text.strip_prefix("./").unwrap_or(text).trim_matches('/');
        check_names(text).map_err(invalid)?;
        let whole = CharacterGlob::new(text).map_err(invalid)?;
        let top = text.strip_suffix("/**").filter(|top| cuts_safely(top));
        Ok(PathGlob {
            whole,
            top: top.and_then(|top| CharacterGlob::new(top).ok()),
            levels: levels(text),
            directories_only,
        })
    }

    /// Tells whether a relative path matches.
    pub(crate) fn is_match(&self, path: &[u8]) -> bool {
        let is_top = |top: &CharacterGlob| top.is_match(path);
        self.whole.is_match(path) || self.top.as_ref().is_some_and(is_top)
    }

    fn may_match_below(&self, name: &[u8], depth: usize) -> bool {
        let above = self.levels.iter().take(depth.saturating_sub(1));
        if above
            .into_iter()
            .any(|level| matches!(level, GlobLevel::Deep))
        {
            return true;
        }
        match self.levels.get(depth.saturating_sub(1)) {
            Some(GlobLevel::Deep) => true,
            Some(GlobLevel::Name(glob)) => depth < self.levels.len() && glob.is_match(name),
            None => false,
        }
    }
}

/// Chooses files by a glob: without `/` by their name at any depth, else by their relative path.
#[derive(Debug)]
pub struct FileFilter {
    glob: PathGlob,
    by_path: bool,
}

impl FileFilter {
    /// Compiles a filter.
    pub fn new(role: PatternRole, text: &str) -> Result<FileFilter> {
        Ok(FileFilter {
            glob: PathGlob::new(role, text)?,
            by_path: text.contains('/'),
        })
    }

    /// Tells whether a file met on a walk is chosen.
    pub(crate) fn chooses(&self, seen: &Seen<'_>) -> bool {
        let compared = if self.by_path { seen.path } else { seen.name };
        self.glob.is_match(compared)
    }

    /// Tells whether a file is chosen; `path` is asked only if it matters.
    pub fn is_match(&self, name: &[u8], path: impl FnOnce() -> Vec<u8>) -> bool {
        if self.by_path {
            self.glob.is_match(&path())
        } else {
            self.glob.is_match(name)
        }
    }

    /// Tells whether anything below a directory can be chosen.
    pub(crate) fn may_match_below(&self, name: &[u8], depth: usize) -> bool {
        !self.by_path || self.glob.may_match_below(name, depth)
    }
}

fn check_length(length: usize) -> Result<(), String> {
    if length > PATTERN_MAX {
        return Err(format!(
            "{length} bytes are over the limit of {PATTERN_MAX}"
        ));
    }
    Ok(())
}

/// An expression of Go's as the engine reads it.
struct ReadRegex {
    /// In the engine's syntax.
    text: String,
    /// How many places it has.
    places: u64,
    /// Whether it looks beside a match.
    looks_around: bool,
}

impl ReadRegex {
    /// The text itself.
    fn literal(text: &str) -> ReadRegex {
        ReadRegex {
            text: regex_syntax::escape(text),
            places: 1,
            looks_around: false,
        }
    }
}

/// Reads an expression of Go's and bounds it before it is compiled.
fn read_regex(text: &str, most_places: u64) -> Result<ReadRegex, String> {
    let text = go_regex::translate(text)?;
    let expression = regex_syntax::ParserBuilder::new()
        .nest_limit(REGEX_NESTING_MAX)
        .utf8(false)
        .build()
        .parse(&text)
        .map_err(|error| fault(&error))?;
    let places = regex_cost::places(&expression);
    regex_cost::check(places, most_places)?;
    Ok(ReadRegex {
        text,
        places,
        looks_around: !expression.properties().look_set().is_empty(),
    })
}

/// The engine's message without the text it read, which is not the client's own.
fn fault(error: &regex_syntax::Error) -> String {
    match error {
        regex_syntax::Error::Parse(error) => error.kind().to_string(),
        regex_syntax::Error::Translate(error) => error.kind().to_string(),
        other => other.to_string(),
    }
}

/// Bounds a glob before it is parsed.
pub(crate) fn check_glob(text: &str) -> Result<(), String> {
    check_length(text.len())?;
    // Every brace counts, also an escaped one: this is a bound, not a parser.
    let mut depth = 0_usize;
    for byte in text.bytes() {
        match byte {
            b'{' => depth += 1,
            b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > GLOB_NESTING_MAX {
            return Err(format!("braces are nested deeper than {GLOB_NESTING_MAX}"));
        }
    }
    Ok(())
}

/// Refuses a glob that could match nothing, whatever is there, and says what to do instead.
fn check_names(text: &str) -> Result<(), String> {
    let reason = match text {
        "" => "it is empty; use * for the entries of one directory, **/* for everything below it",
        _ if text.contains('\0') => "it holds a NUL byte, which no name has",
        _ if !cuts_safely(text) => return Ok(()),
        _ if text.split('/').any(|name| name == "..") => {
            "\"..\" is not followed in a pattern; name the directory to search as path instead"
        }
        _ if text.split('/').any(|name| matches!(name, "" | ".")) => {
            "it has an empty name or \".\" between slashes, which matches nothing; leave that out"
        }
        _ => return Ok(()),
    };
    Err(reason.to_owned())
}

/// Cuts a glob into levels. A part that cannot be cut for certain is `Deep`, which only makes the search larger.
fn levels(text: &str) -> Vec<GlobLevel> {
    if text.contains(['{', '[', '\\']) && !cuts_safely(text) {
        return vec![GlobLevel::Deep];
    }
    text.split('/').map(level).collect()
}

fn level(component: &str) -> GlobLevel {
    if component.contains("**") {
        return GlobLevel::Deep;
    }
    CharacterGlob::new(component).map_or(GlobLevel::Deep, GlobLevel::Name)
}

/// Tells whether no `/` is inside braces or a class, or after a backslash.
fn cuts_safely(text: &str) -> bool {
    text.split('/').all(|component| {
        let count = |wanted| component.bytes().filter(|byte| *byte == wanted).count();
        count(b'{') == count(b'}') && count(b'[') == count(b']') && !component.ends_with('\\')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(text: &str, syntax: Syntax, case: Case) -> Pattern {
        Pattern {
            texts: vec![text.to_owned()],
            syntax,
            case,
        }
    }

    fn matching(text: &str, bytes: &[u8]) -> Vec<String> {
        let matcher = LineMatcher::new(&pattern(text, Syntax::Regex, Case::Sensitive)).unwrap();
        let mut found = Vec::new();
        let mut from = 0;
        while let Some(line) = matcher.next_line(bytes, from) {
            from = line.end;
            found.push(String::from_utf8_lossy(without_terminator(&bytes[line])).into_owned());
        }
        found
    }

    #[test]
    fn lines_match_as_lines() {
        let bytes = b"alpha\r\nbeta\n\ngamma one\ndelta";
        for (text, expected) in [
            ("", vec!["alpha", "beta", "", "gamma one", "delta"]),
            ("a$", vec!["alpha", "beta", "delta"]),
            ("^$", vec![""]),
            ("^beta$", vec!["beta"]),
            (r"\Abeta\z", vec!["beta"]),
            (r"\Aalpha\z", vec!["alpha"]),
            (r"\w+ one", vec!["gamma one"]),
            (r"a\s*b", vec![]),
            ("[^x]*", vec!["alpha", "beta", "", "gamma one", "delta"]),
            ("(?i)ALPHA|DELTA", vec!["alpha", "delta"]),
            (r"\r", vec!["alpha"]),
        ] {
            assert_eq!(matching(text, bytes), expected, "{text:?}");
        }
    }

    #[test]
    fn literals_are_not_expressions() {
        for (case, text, line, expected) in [
            (Case::Sensitive, "a.b", "a.b", true),
            (Case::Sensitive, "a.b", "axb", false),
            (Case::Sensitive, "A.B", "a.b", false),
            (Case::Insensitive, "A.B(", "xa.b(", true),
        ] {
            let matcher = LineMatcher::new(&pattern(text, Syntax::Literal, case)).unwrap();
            assert_eq!(
                matcher.is_match(line.as_bytes()),
                expected,
                "{text:?} in {line:?}"
            );
        }
    }

    #[test]
    fn any_of_several_patterns_will_do() {
        let matcher = |texts: &[&str], syntax| {
            LineMatcher::new(&Pattern {
                texts: texts.iter().map(|&text| text.to_owned()).collect(),
                ..pattern("", syntax, Case::Sensitive)
            })
        };
        let found = |matcher: &LineMatcher| {
            let lines = ["a(b", "a.b", "one|two", "xyz"];
            lines.map(|line| matcher.is_match(line.as_bytes()))
        };
        let regex = matcher(&["^a.b$", "(?i)Y"], Syntax::Regex).unwrap();
        assert_eq!(found(&regex), [true, true, false, true]);
        let literal = matcher(&["a(b", "one|two"], Syntax::Literal).unwrap();
        assert_eq!(found(&literal), [true, false, true, false]);
        assert!(matcher(&["fine", "(unclosed"], Syntax::Regex).is_err());
        let many = matcher(&["[ab]{900}", "[cd]{900}", "[ef]{900}"], Syntax::Regex);
        let many = many.unwrap_err().to_string();
        assert!(many.contains("2700 places"), "{many}");
    }

    #[test]
    fn bad_patterns_say_why() {
        let long = "a".repeat(PATTERN_MAX + 1);
        let deep = "(".repeat(200) + &")".repeat(200);
        for (text, reason) in [
            ("[invalid", "missing closing ]"),
            ("a)(b", "unexpected )"),
            (r"\p{Nope}", r"there is no class \p{Nope}"),
            ("(?:(?:a{1000}){1000}){1000}", "unfold to 1000000000 places"),
            (r"\pL{900}", "size limit"),
            ("x\ny", "lines are searched one by one"),
            (&*long, "over the limit of 4096"),
            (&*deep, "nested parentheses/brackets (100)"),
        ] {
            let error =
                LineMatcher::new(&pattern(text, Syntax::Regex, Case::Sensitive)).unwrap_err();
            assert!(
                error.to_string().contains(reason),
                "{error} lacks {reason:?}"
            );
        }
        let error = PathMatcher::regex("[unclosed").unwrap_err().to_string();
        assert!(
            error.contains("regular expression for paths") && error.contains("missing closing ]"),
            "{error}"
        );
    }

    #[test]
    fn bad_globs_say_why() {
        let deep = "{".repeat(33);
        let long = "*".repeat(PATTERN_MAX + 1);
        for (text, reason) in [
            ("[a", "class"),
            ("{a", "alternate"),
            (&*deep, "nested deeper than 32"),
            (&*long, "over the limit"),
            ("", "empty"),
            ("/", "empty"),
            ("./", "empty"),
            ("a\0b", "NUL"),
            ("../*", "name the directory to search as path"),
            ("a/../b", "name the directory to search as path"),
            ("a//b", "leave that out"),
            ("a/./b", "leave that out"),
        ] {
            let error = PathGlob::new(PatternRole::PathGlob, text)
                .unwrap_err()
                .to_string();
            assert!(error.contains(reason), "{error} lacks {reason:?}");
        }
    }

    #[test]
    fn globs_match_as_documented() {
        for (text, path, expected) in [
            ("*.go", "a.go", true),
            ("*.go", "src/a.go", false),
            ("**/*.go", "a.go", true),
            ("**/*.go", "src/pkg/a.go", true),
            ("*", ".hidden", true),
            ("src/*.rs", "src/a.rs", true),
            ("src/*.rs", "src/x/a.rs", false),
            ("src/**", "src/x/a.rs", true),
            ("src/**", "src", true),
            ("src/**/x", "src/x", true),
            ("/src/*", "src/a", true),
            ("./src/*", "src/a", true),
            ("*.{rs,toml}", "a.toml", true),
            ("a{,b}", "a", true),
            ("[a-c].txt", "b.txt", true),
            ("[!a-c].txt", "b.txt", false),
            ("?.txt", "a.txt", true),
            ("?.txt", "/.txt", false),
            ("?.txt", "ä.txt", true),
            ("{..,a}/b", "a/b", true),
            (r"\*.txt", "*.txt", true),
            (r"\*.txt", "a.txt", false),
            ("A.txt", "a.txt", false),
            ("dir/", "dir", true),
        ] {
            let glob = PathGlob::new(PatternRole::PathGlob, text).unwrap();
            assert_eq!(
                glob.is_match(path.as_bytes()),
                expected,
                "{text:?} on {path:?}"
            );
        }
        let glob = PathGlob::new(PatternRole::PathGlob, "*.t?t").unwrap();
        assert!(glob.is_match(b"\xff.txt"));
    }

    /// Asks level by level, as a walk does.
    fn enters(glob: &PathGlob, directory: &str) -> bool {
        let mut names = directory.split('/').enumerate();
        names.all(|(index, name)| glob.may_match_below(name.as_bytes(), index + 1))
    }

    #[test]
    fn walks_enter_only_what_can_match() {
        for (text, directory, expected) in [
            ("*.go", "src", false),
            ("src/*.go", "src", true),
            ("src/*.go", "docs", false),
            ("src/*.go", "src/deeper", false),
            ("src/**/x", "docs", false),
            ("src/**/x", "src/a/b/c", true),
            ("s*/t*/x", "src/target", true),
            ("s*/t*/x", "src/other", false),
            ("**/config_*/**/*.toml", "any/thing", true),
            ("{src,docs}/*", "docs", true),
            ("{src,docs}/*", "target", false),
            ("{src/a,docs}/*", "target", true),
            ("[/]x/y", "target", true),
            ("src/a**/x", "src/ab/c", true),
            ("dir/", "dir", false),
        ] {
            let glob = PathGlob::new(PatternRole::PathGlob, text).unwrap();
            assert_eq!(
                enters(&glob, directory),
                expected,
                "{text:?} into {directory:?}"
            );
        }
    }

    #[test]
    fn a_filter_without_slash_is_about_names() {
        let seen = |path: &'static [u8]| Seen {
            path,
            name: b"a.go",
            kind: sandbox::FileKind::File,
            depth: 1,
        };
        let by_name = FileFilter::new(PatternRole::SearchedFiles, "*.go").unwrap();
        assert!(by_name.is_match(b"a.go", || unreachable!()));
        assert!(by_name.chooses(&seen(b"docs/a.go")));
        assert!(by_name.may_match_below(b"any", 1));
        let by_path = FileFilter::new(PatternRole::SearchedFiles, "src/**/*.go").unwrap();
        assert!(by_path.is_match(b"a.go", || b"src/x/a.go".to_vec()));
        assert!(!by_path.is_match(b"a.go", || b"docs/a.go".to_vec()));
        assert!(by_path.chooses(&seen(b"src/x/a.go")));
        assert!(!by_path.chooses(&seen(b"docs/a.go")));
        assert!(!by_path.may_match_below(b"docs", 1));
    }
}
