//! Reads a glob: what a path from the root has to look like, component by component.

use std::fmt;

use super::name_pattern::{NamePattern, Token};

/// The most globs that the braces of one glob may stand for.
const MAX_ALTERNATIVES: usize = 256;

/// One component of a glob.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Component {
    /// Any number of directories: `**`.
    Deep,
    /// Any name: `*`.
    Any,
    /// A name that looks like this.
    Named(NamePattern),
}

/// A glob that was read: one for each choice that its braces leave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ViewGlob {
    /// It began with `!`.
    pub(super) is_exception: bool,
    pub(super) alternatives: Vec<Vec<Component>>,
}

/// A glob that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the glob {glob:?} {reason}")]
pub struct GlobFault {
    /// The glob as it was written.
    pub glob: String,
    /// What is wrong with it.
    pub reason: GlobReason,
}

/// What is wrong with a glob.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GlobReason {
    /// It names nothing.
    Empty,
    /// It has a `.` or `..` as a component.
    Dots,
    /// A bracket or brace is never closed, or closed without being opened.
    Unclosed,
    /// A range in brackets ends before it begins.
    Range,
    /// A backslash ends it.
    Escape,
    /// Its braces stand for too many globs.
    TooMany,
    /// It has a NUL character.
    Nul,
    /// A list to deny has nothing but exceptions, so that it denies nothing.
    OnlyExceptions,
}

impl fmt::Display for GlobReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            GlobReason::Empty => "names nothing: write a path from the root, such as src/**",
            GlobReason::Dots => "has . or .. in it: write the path from the root without them",
            GlobReason::Unclosed => {
                "has a [ or { without its end (or an end alone): close it, or write \\ before it"
            }
            GlobReason::Range => "has a range that ends before it begins, such as [z-a]",
            GlobReason::Escape => "ends in a backslash: write \\\\ for the character itself",
            GlobReason::TooMany => "has braces that stand for more than 256 globs",
            GlobReason::Nul => "has a NUL character",
            GlobReason::OnlyExceptions => {
                "is an exception to nothing: a list to deny needs at least one glob without !"
            }
        })
    }
}

impl ViewGlob {
    /// Reads a glob.
    pub(super) fn parse(text: &str) -> Result<ViewGlob, GlobFault> {
        let fault = |reason| GlobFault {
            glob: text.to_owned(),
            reason,
        };
        let (is_exception, pattern) = match text.strip_prefix('!') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        if pattern.contains('\0') {
            return Err(fault(GlobReason::Nul));
        }
        let mut alternatives = Vec::new();
        for plain in expanded(pattern).map_err(fault)? {
            alternatives.push(components(&plain).map_err(fault)?);
        }
        Ok(ViewGlob {
            is_exception,
            alternatives,
        })
    }
}

/// Every text that the braces of a pattern stand for.
fn expanded(pattern: &str) -> Result<Vec<String>, GlobReason> {
    let mut done = Vec::new();
    let mut open = vec![pattern.to_owned()];
    while let Some(next) = open.pop() {
        match first_braces(&next)? {
            None => done.push(next),
            Some((before, choices, after)) => {
                let all = choices.iter().rev();
                open.extend(all.map(|choice| format!("{before}{choice}{after}")));
            }
        }
        if done.len() + open.len() > MAX_ALTERNATIVES {
            return Err(GlobReason::TooMany);
        }
    }
    Ok(done)
}

/// The outermost braces that come first: what is before them, the choices in them, and what is after them.
#[expect(clippy::type_complexity, reason = "three parts of one text")]
fn first_braces(pattern: &str) -> Result<Option<(&str, Vec<&str>, &str)>, GlobReason> {
    let mut depth = 0_usize;
    let mut cuts = Vec::new();
    let mut letters = pattern.char_indices();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '\\' => drop(letters.next()),
            '[' => skip_class(&mut letters)?,
            '{' => {
                depth += 1;
                if depth == 1 {
                    cuts.push(at);
                }
            }
            ',' if depth == 1 => cuts.push(at),
            '}' => {
                depth = depth.checked_sub(1).ok_or(GlobReason::Unclosed)?;
                if depth == 0 {
                    cuts.push(at);
                    let choices = cuts.windows(2).filter_map(|cut| match cut {
                        [from, to] => pattern.get(from + 1..*to),
                        _ => None,
                    });
                    let start = cuts.first().copied().unwrap_or_default();
                    let (before, after) = (pattern.get(..start), pattern.get(at + 1..));
                    let (before, after) = (before.unwrap_or_default(), after.unwrap_or_default());
                    return Ok(Some((before, choices.collect(), after)));
                }
            }
            _ => {}
        }
    }
    if depth > 0 {
        return Err(GlobReason::Unclosed);
    }
    Ok(None)
}

/// Goes behind the bracket that closes a class.
fn skip_class(letters: &mut impl Iterator<Item = (usize, char)>) -> Result<(), GlobReason> {
    let mut is_first = true;
    while let Some((_, letter)) = letters.next() {
        match letter {
            ']' if !is_first => return Ok(()),
            '!' | '^' if is_first => continue,
            '\\' => drop(letters.next()),
            _ => {}
        }
        is_first = false;
    }
    Err(GlobReason::Unclosed)
}

/// Cuts a pattern without braces into its components.
fn components(pattern: &str) -> Result<Vec<Component>, GlobReason> {
    let pattern = pattern.strip_prefix("./").unwrap_or(pattern);
    let mut components: Vec<Component> = Vec::new();
    for piece in pieces(pattern) {
        match piece {
            "" => {}
            "." | ".." => return Err(GlobReason::Dots),
            "*" => components.push(Component::Any),
            // Two in a row are one.
            "**" if components.last() == Some(&Component::Deep) => {}
            "**" => components.push(Component::Deep),
            piece => components.push(Component::Named(NamePattern::of(tokens(piece)?))),
        }
    }
    match components.last() {
        None => Err(GlobReason::Empty),
        // What is below a directory has at least one name more.
        Some(Component::Deep) => {
            components.push(Component::Any);
            Ok(components)
        }
        Some(_) => Ok(components),
    }
}

/// Cuts at slashes; one inside brackets is none that a name could have, and cuts all the same.
fn pieces(pattern: &str) -> impl Iterator<Item = &str> {
    pattern.split('/')
}

fn tokens(piece: &str) -> Result<Vec<Token>, GlobReason> {
    let mut tokens: Vec<Token> = Vec::new();
    let mut letters = piece.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '*' if tokens.last() == Some(&Token::Star) => {}
            '*' => tokens.push(Token::Star),
            '?' => tokens.push(Token::One),
            '\\' => {
                let literal = letters.next().ok_or(GlobReason::Escape)?;
                tokens.push(Token::Literal(literal));
            }
            '[' => tokens.push(class(&mut letters)?),
            ']' | '}' => return Err(GlobReason::Unclosed),
            letter => tokens.push(Token::Literal(letter)),
        }
    }
    Ok(tokens)
}

/// Reads what is between brackets; a `]` that comes first stands for itself.
fn class(letters: &mut std::iter::Peekable<std::str::Chars<'_>>) -> Result<Token, GlobReason> {
    let negated = letters
        .next_if(|&letter| matches!(letter, '!' | '^'))
        .is_some();
    let mut ranges = Vec::new();
    let mut is_first = true;
    loop {
        let from = match letters.next().ok_or(GlobReason::Unclosed)? {
            ']' if !is_first => return Ok(Token::Class { negated, ranges }),
            '\\' => letters.next().ok_or(GlobReason::Escape)?,
            letter => letter,
        };
        is_first = false;
        let mut ahead = letters.clone();
        let is_range = ahead.next() == Some('-') && ahead.next().is_some_and(|next| next != ']');
        if !is_range {
            ranges.push((from, from));
            continue;
        }
        letters.next();
        let to = match letters.next().ok_or(GlobReason::Unclosed)? {
            '\\' => letters.next().ok_or(GlobReason::Escape)?,
            letter => letter,
        };
        if to < from {
            return Err(GlobReason::Range);
        }
        ranges.push((from, to));
    }
}
