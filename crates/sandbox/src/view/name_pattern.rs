//! One component of a glob, and a table that finds the components a name fits.

use std::collections::HashMap;

/// The pattern for a name.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum NamePattern {
    /// Exactly this.
    Exact(String),
    /// It ends with this.
    Suffix(String),
    /// It begins with this.
    Prefix(String),
    /// Anything else.
    Tokens(Vec<Token>),
}

/// A piece of a pattern.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Token {
    /// This character.
    Literal(char),
    /// One character.
    One,
    /// Any number of characters.
    Star,
    /// One character that is in one of these ranges, or in none of them.
    Class {
        negated: bool,
        ranges: Vec<(char, char)>,
    },
}

impl NamePattern {
    /// The plainest pattern for some tokens.
    pub(super) fn of(tokens: Vec<Token>) -> NamePattern {
        let text = |tokens: &[Token]| {
            let letters = tokens.iter().map(|token| match token {
                Token::Literal(letter) => Some(*letter),
                _ => None,
            });
            letters.collect::<Option<String>>()
        };
        let plain = match tokens.as_slice() {
            [Token::Star, rest @ ..] if !rest.is_empty() => text(rest).map(NamePattern::Suffix),
            [rest @ .., Token::Star] if !rest.is_empty() => text(rest).map(NamePattern::Prefix),
            all => text(all).map(NamePattern::Exact),
        };
        plain.unwrap_or(NamePattern::Tokens(tokens))
    }

    /// The same pattern for names in lower case.
    pub(super) fn lowered(&self) -> NamePattern {
        let lowered = |letter: char| letter.to_lowercase().next().unwrap_or(letter);
        match self {
            NamePattern::Exact(text) => NamePattern::Exact(text.to_lowercase()),
            NamePattern::Suffix(text) => NamePattern::Suffix(text.to_lowercase()),
            NamePattern::Prefix(text) => NamePattern::Prefix(text.to_lowercase()),
            NamePattern::Tokens(tokens) => {
                let lower = |token: &Token| match token {
                    Token::Literal(letter) => Token::Literal(lowered(*letter)),
                    Token::Class { negated, ranges } => Token::Class {
                        negated: *negated,
                        ranges: ranges
                            .iter()
                            .flat_map(|&(a, b)| [(a, b), (lowered(a), lowered(b))])
                            .collect(),
                    },
                    other => other.clone(),
                };
                NamePattern::Tokens(tokens.iter().map(lower).collect())
            }
        }
    }
}

/// The first character of some bytes and its length; a byte that begins none stands for itself.
fn first_char(bytes: &[u8]) -> Option<(Option<char>, usize)> {
    let first = *bytes.first()?;
    let length = match first {
        0..=0x7f => return Some((Some(char::from(first)), 1)),
        0xc2..=0xdf => 2,
        0xe0..=0xef => 3,
        _ => 4,
    };
    let read = bytes
        .get(..length)
        .and_then(|piece| str::from_utf8(piece).ok());
    match read.and_then(|piece| piece.chars().next()) {
        Some(letter) => Some((Some(letter), length)),
        None => Some((None, 1)),
    }
}

impl Token {
    /// How many bytes of a name it takes, if it takes one character and fits.
    fn takes(&self, name: &[u8]) -> Option<usize> {
        let (letter, length) = first_char(name)?;
        let fits = match self {
            Token::Literal(wanted) => letter == Some(*wanted),
            Token::One => true,
            Token::Star => false,
            Token::Class { negated, ranges } => {
                let is_in = letter.is_some_and(|letter| {
                    let mut ranges = ranges.iter();
                    ranges.any(|&(from, to)| (from..=to).contains(&letter))
                });
                is_in != *negated
            }
        };
        fits.then_some(length)
    }
}

/// Matches with one place to come back to: what a star took earlier never needs to be taken back.
fn fits(tokens: &[Token], name: &[u8]) -> bool {
    let (mut token, mut at) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    loop {
        let rest = name.get(at..).unwrap_or_default();
        match tokens.get(token) {
            Some(Token::Star) => {
                star = Some((token, at));
                token += 1;
                continue;
            }
            None if rest.is_empty() => return true,
            Some(one) => {
                if let Some(length) = one.takes(rest) {
                    (token, at) = (token + 1, at + length);
                    continue;
                }
            }
            None => {}
        }
        let Some((from, taken)) = star else {
            return false;
        };
        let Some((_, length)) = first_char(name.get(taken..).unwrap_or_default()) else {
            return false;
        };
        star = Some((from, taken + length));
        (token, at) = (from + 1, taken + length);
    }
}

/// Which components of a list a name fits, as sets of bits.
#[derive(Debug, Default)]
pub(super) struct NameTable {
    exact: HashMap<Vec<u8>, Vec<u64>>,
    /// The lengths of the exact names, so that most names need no look into the table.
    lengths: Vec<bool>,
    /// The exact names' first bytes, likewise.
    firsts: Vec<bool>,
    /// By their last byte.
    suffixes: ByByte,
    /// By their first byte.
    prefixes: ByByte,
    tokens: Vec<TokenPattern>,
    /// Where names begin or end that may fit: most names do neither.
    may_begin: Vec<bool>,
    may_end: Vec<bool>,
    /// A pattern has neither a beginning nor an end of its own.
    may_be_any: bool,
}

/// A pattern that is matched token by token.
#[derive(Debug)]
struct TokenPattern {
    tokens: Vec<Token>,
    /// What every name that fits begins with.
    head: Vec<u8>,
    /// What every name that fits ends with.
    tail: Vec<u8>,
    bits: Vec<u64>,
}

impl TokenPattern {
    fn new(tokens: Vec<Token>, bits: Vec<u64>) -> TokenPattern {
        let tail: Vec<char> = literals(tokens.iter().rev()).collect();
        TokenPattern {
            head: literals(tokens.iter()).collect::<String>().into_bytes(),
            tail: tail.iter().rev().collect::<String>().into_bytes(),
            tokens,
            bits,
        }
    }

    /// Most names differ at one of their ends, which is seen at once.
    fn fits(&self, name: &[u8]) -> bool {
        begins(name, &self.head) && ends(name, &self.tail) && fits(&self.tokens, name)
    }
}

/// The characters of tokens up to the first that stands for another.
fn literals<'a>(tokens: impl Iterator<Item = &'a Token>) -> impl Iterator<Item = char> {
    tokens.map_while(|token| match token {
        Token::Literal(letter) => Some(*letter),
        _ => None,
    })
}

/// Texts and their bits, by one of their bytes; 256 lists, or none at all.
type ByByte = Vec<Vec<(Vec<u8>, Vec<u64>)>>;

impl NameTable {
    /// A table of patterns, each with the bits it stands for.
    pub(super) fn new(patterns: HashMap<NamePattern, Vec<u64>>) -> NameTable {
        let mut table = NameTable {
            lengths: vec![false; 256],
            firsts: vec![false; 256],
            may_begin: vec![false; 256],
            may_end: vec![false; 256],
            ..NameTable::default()
        };
        for (pattern, bits) in patterns {
            table.add(pattern, bits);
        }
        table
    }

    fn add(&mut self, pattern: NamePattern, bits: Vec<u64>) {
        match pattern {
            NamePattern::Exact(text) => {
                let text = text.into_bytes();
                if let Some(length) = self.lengths.get_mut(text.len()) {
                    *length = true;
                }
                set(&mut self.firsts, text.first());
                set(&mut self.may_begin, text.first());
                self.exact.insert(text, bits);
            }
            NamePattern::Suffix(text) => {
                let text = text.into_bytes();
                set(&mut self.may_end, text.last());
                put(&mut self.suffixes, text.last().copied(), (text, bits));
            }
            NamePattern::Prefix(text) => {
                let text = text.into_bytes();
                set(&mut self.may_begin, text.first());
                put(&mut self.prefixes, text.first().copied(), (text, bits));
            }
            NamePattern::Tokens(tokens) => {
                let pattern = TokenPattern::new(tokens, bits);
                if pattern.head.is_empty() {
                    set(&mut self.may_end, pattern.tail.last());
                    self.may_be_any |= pattern.tail.is_empty();
                }
                set(&mut self.may_begin, pattern.head.first());
                self.tokens.push(pattern);
            }
        }
    }

    /// Adds the bits of every pattern that a name fits.
    pub(super) fn add_fitting(&self, name: &[u8], into: &mut [u64]) {
        self.fitting(name).for_each(|bits| unite(into, bits));
    }

    /// Tells whether a name fits any pattern.
    pub(super) fn has_fitting(&self, name: &[u8]) -> bool {
        let may = self.may_be_any
            || is_flagged(&self.may_begin, name.first())
            || is_flagged(&self.may_end, name.last());
        may && self.fitting(name).next().is_some()
    }

    /// The bits of every pattern that a name fits.
    fn fitting<'a>(&'a self, name: &'a [u8]) -> impl Iterator<Item = &'a [u64]> {
        let at = |byte: Option<&u8>| byte.map_or(256, |byte| usize::from(*byte));
        let (first, last) = (at(name.first()), at(name.last()));
        let known = |flags: &[bool], at: usize| flags.get(at).copied().unwrap_or(false);
        let may_be_exact = known(&self.firsts, first) && known(&self.lengths, name.len());
        let exact = may_be_exact.then(|| self.exact.get(name)).flatten();
        let suffixes = listed(&self.suffixes, last).iter();
        let prefixes = listed(&self.prefixes, first).iter();
        let ending = suffixes.filter(|(text, _)| ends(name, text));
        let beginning = prefixes.filter(|(text, _)| begins(name, text));
        let tokens = self.tokens.iter().filter(|pattern| pattern.fits(name));
        let texts = ending.chain(beginning).map(|(_, bits)| bits);
        let others = tokens.map(|pattern| &pattern.bits);
        exact
            .into_iter()
            .chain(texts)
            .chain(others)
            .map(Vec::as_slice)
    }
}

/// Byte by byte: most texts differ in the first or second, long before a call of `memcmp` is paid for.
fn begins(name: &[u8], text: &[u8]) -> bool {
    name.len() >= text.len() && name.iter().zip(text).all(|(a, b)| a == b)
}

fn ends(name: &[u8], text: &[u8]) -> bool {
    let mut pairs = name.iter().rev().zip(text.iter().rev());
    name.len() >= text.len() && pairs.all(|(a, b)| a == b)
}

fn is_flagged(flags: &[bool], byte: Option<&u8>) -> bool {
    let flag = byte.and_then(|byte| flags.get(usize::from(*byte)));
    flag.copied().unwrap_or(false)
}

fn set(flags: &mut [bool], byte: Option<&u8>) {
    if let Some(flag) = byte.and_then(|&byte| flags.get_mut(usize::from(byte))) {
        *flag = true;
    }
}

fn put(lists: &mut ByByte, byte: Option<u8>, text: (Vec<u8>, Vec<u64>)) {
    if lists.is_empty() {
        lists.resize_with(256, Vec::new);
    }
    if let Some(list) = byte.and_then(|byte| lists.get_mut(usize::from(byte))) {
        list.push(text);
    }
}

fn listed(lists: &ByByte, byte: usize) -> &[(Vec<u8>, Vec<u64>)] {
    lists.get(byte).map_or(&[], Vec::as_slice)
}

fn unite(into: &mut [u64], bits: &[u64]) {
    for (word, more) in into.iter_mut().zip(bits) {
        *word |= more;
    }
}
