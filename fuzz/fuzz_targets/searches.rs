//! Any expressions and any text: what is remembered of a text never excludes it from a search that finds something in it.
#![no_main]

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use ops::{Case, Pattern, Syntax, excludes_content, excludes_parts, matches_content};

#[derive(Debug, Arbitrary)]
struct Input {
    /// What is searched for: any of these, each put together of pieces.
    expressions: Vec<Vec<Expression>>,
    is_literal: bool,
    ignores_case: bool,
    /// Pieces of the text: some are taken from the expressions, so that there is something to find.
    pieces: Vec<Piece>,
    folds: u8,
    /// How many lines each part has in which the text is learned a second time, as large files are.
    lines: u8,
}

#[derive(Debug, Arbitrary)]
enum Expression {
    Any(String),
    Word(u8),
    Class(u8, u8),
    Repeated(u8, u8),
    Either(u8, u8),
    Optional(u8),
    Gap,
    Edge,
}

#[derive(Debug, Arbitrary)]
enum Piece {
    Bytes(Vec<u8>),
    Word(u8),
    UpperWord(u8),
    LineEnd,
    Kelvin,
    LongS,
}

/// How many expressions are searched for at once.
const TEXTS_MAX: usize = 5;

const WORDS: [&str; 12] = [
    "skip",
    "task",
    "Kiss",
    "disk_",
    "abc",
    "straße",
    "ſkin",
    "\u{212A}elvin",
    "xy",
    "0",
    " ",
    "é1é",
];

fn word(number: u8) -> &'static str {
    WORDS[usize::from(number) % WORDS.len()]
}

impl Expression {
    fn text(&self) -> String {
        match self {
            Expression::Any(text) => text.clone(),
            Expression::Word(number) => word(*number).to_owned(),
            Expression::Class(one, other) => format!("[{}{}]", word(*one), word(*other)),
            Expression::Repeated(number, times) => {
                format!(
                    "(?:{}){{{},{}}}",
                    word(*number),
                    times % 4,
                    times % 4 + times / 64
                )
            }
            Expression::Either(one, other) => format!("(?:{}|{})", word(*one), word(*other)),
            Expression::Optional(number) => format!("(?:{})?", word(*number)),
            Expression::Gap => ".*".to_owned(),
            Expression::Edge => "\\b".to_owned(),
        }
    }
}

impl Piece {
    fn bytes(&self) -> Vec<u8> {
        match self {
            Piece::Bytes(bytes) => bytes.clone(),
            Piece::Word(number) => word(*number).as_bytes().to_vec(),
            Piece::UpperWord(number) => word(*number).to_uppercase().into_bytes(),
            Piece::LineEnd => b"\r\n".to_vec(),
            Piece::Kelvin => "\u{212A}".as_bytes().to_vec(),
            Piece::LongS => "\u{17F}".as_bytes().to_vec(),
        }
    }
}

fuzz_target!(|input: Input| {
    let texts: Vec<String> = input
        .expressions
        .iter()
        .take(TEXTS_MAX)
        .map(|pieces| pieces.iter().map(Expression::text).collect())
        .collect();
    if texts.is_empty() || texts.iter().any(|text: &String| text.len() > 400) {
        return;
    }
    let pattern = Pattern {
        texts,
        syntax: if input.is_literal {
            Syntax::Literal
        } else {
            Syntax::Regex
        },
        case: if input.ignores_case {
            Case::Insensitive
        } else {
            Case::Sensitive
        },
    };
    let content: Vec<u8> = input.pieces.iter().flat_map(Piece::bytes).collect();
    let (folds, lines) = (u32::from(input.folds % 8), usize::from(input.lines % 8));
    let whole = excludes_content(&pattern, &content, folds);
    let in_parts = excludes_parts(&pattern, &content, lines, folds);
    if whole == Some(true) || in_parts == Some(true) {
        assert_ne!(
            matches_content(&pattern, &content),
            Some(true),
            "{pattern:?} in {content:?}"
        );
    }
});
