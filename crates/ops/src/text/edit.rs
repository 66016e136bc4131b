//! Edits of a text: replace one string, insert before a line, and suggest what was probably meant if a string is
//! missing.
//!
//! An edit is a [`Splice`]: the bytes to remove and the bytes to insert. Nothing else of the text is touched, so line
//! ends, a byte order mark and a missing final newline stay as they are.
//!
//! Strings written with `\n` fit texts that have `\r\n`: the searched string matches either line end, and inserted text
//! gets the line end of its surroundings. A string that has a `\r` itself is taken as it is.

use std::ops::Range;

use crate::error::{Error, Result};
use crate::text::lines::{self, LineEnd, Sought};
use crate::text::near_lines::nearest_line;
use crate::text::string_search::{Occurrence, line_numbers, occurrences};
use crate::text::{ReadAt, encoding};

/// One change: some bytes are replaced by others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Splice {
    /// The bytes of the old text to remove.
    pub range: Range<u64>,
    /// The bytes to insert in their place.
    pub replacement: Vec<u8>,
}

impl Splice {
    /// The text with this change made.
    #[must_use]
    pub fn applied(&self, text: &[u8]) -> Vec<u8> {
        let at = |offset: u64| {
            usize::try_from(offset)
                .unwrap_or(usize::MAX)
                .min(text.len())
        };
        let before = text.get(..at(self.range.start)).unwrap_or(text);
        let after = text.get(at(self.range.end)..).unwrap_or(&[]);
        [before, &self.replacement, after].concat()
    }
}

/// Finds the only place of `old` and puts `new` there, literally.
///
/// Fails with [`Error::StringNotFound`], which names the likeliest line, or [`Error::StringNotUnique`].
pub fn replace_unique(path: &str, read: &mut ReadAt<'_>, old: &str, new: &str) -> Result<Splice> {
    let found = occurrences(read, old)?;
    match (found.count, found.places.first()) {
        (1, Some(place)) => {
            let end = place_line_end(read, place, old, new)?;
            Ok(Splice {
                range: place.range.clone(),
                replacement: with_line_ends(new, end),
            })
        }
        (0, _) | (_, None) => Err(Error::StringNotFound {
            path: path.to_owned(),
            nearest: nearest_line(read, old)?,
        }),
        (count, Some(_)) => {
            let lines = line_numbers(read, found.places.iter().map(|place| place.range.start))?;
            Err(Error::StringNotUnique {
                path: path.to_owned(),
                count,
                lines,
            })
        }
    }
}

/// Inserts `new` before a line, counted from 1; one after the last line is allowed.
///
/// A last line without a newline is ended first. Before line 1 means after a byte order mark.
pub fn insert_before(path: &str, read: &mut ReadAt<'_>, line: i64, new: &str) -> Result<Splice> {
    let before = u64::try_from(line)
        .ok()
        .and_then(|line| line.checked_sub(1));
    let (offset, opening) = match lines::find_line_start(read, before.unwrap_or(u64::MAX))? {
        Sought::At(0) => (length_of_bom(read)?, false),
        Sought::At(offset) => (offset, false),
        Sought::Beyond { lines, size } if before == Some(lines) => (size, true),
        Sought::Beyond { lines, .. } => {
            return Err(Error::LineOutOfRange {
                path: path.to_owned(),
                line,
                max: lines + 1,
            });
        }
    };
    let surrounding = lines::line_end_near(read, offset)?.unwrap_or(LineEnd::Lf);
    let end = if new.contains('\r') {
        LineEnd::Lf
    } else {
        surrounding
    };
    let mut replacement = if opening {
        surrounding.as_bytes().to_vec()
    } else {
        Vec::new()
    };
    replacement.extend(with_line_ends(new, end));
    Ok(Splice {
        range: offset..offset,
        replacement,
    })
}

fn length_of_bom(read: &mut ReadAt<'_>) -> Result<u64> {
    let mut head = [0; encoding::BOM.len()];
    let count = read(0, &mut head)?;
    Ok(if head.get(..count) == Some(encoding::BOM) {
        encoding::BOM.len() as u64
    } else {
        0
    })
}

/// The string with each `\n` written as this line end.
fn with_line_ends(text: &str, end: LineEnd) -> Vec<u8> {
    match end {
        LineEnd::Lf => text.as_bytes().to_vec(),
        LineEnd::CrLf => text.replace('\n', "\r\n").into_bytes(),
    }
}

/// The line end that `\n` in the replacement becomes at this place.
fn place_line_end(
    read: &mut ReadAt<'_>,
    place: &Occurrence,
    old: &str,
    new: &str,
) -> Result<LineEnd> {
    if old.contains('\r') || new.contains('\r') || !new.contains('\n') {
        return Ok(LineEnd::Lf);
    }
    match place.line_ends.first() {
        Some(end) => Ok(*end),
        None => Ok(lines::line_end_near(read, place.range.start)?.unwrap_or(LineEnd::Lf)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::reader;
    use proptest::prelude::*;

    fn replaced(text: &str, old: &str, new: &str) -> Result<String> {
        let splice = replace_unique("f", &mut reader(text.as_bytes()), old, new)?;
        Ok(String::from_utf8(splice.applied(text.as_bytes())).unwrap())
    }

    fn inserted(text: &str, line: i64, new: &str) -> Result<String> {
        let splice = insert_before("f", &mut reader(text.as_bytes()), line, new)?;
        Ok(String::from_utf8(splice.applied(text.as_bytes())).unwrap())
    }

    #[test]
    fn replacement_keeps_everything_else() {
        let table = [
            ("a b c", "b", "x", "a x c"),
            ("a b c", "b", "", "a  c"),
            ("a b c", "b", "$& \\1 $0", "a $& \\1 $0 c"),
            ("\u{feff}a\r\nb\nc", "b", "x", "\u{feff}a\r\nx\nc"),
            // Written with LF, found with CRLF.
            ("a\r\nb\r\nc\r\n", "a\nb", "x\ny", "x\r\ny\r\nc\r\n"),
            ("a\r\nb\r\nc\r\n", "b\n", "", "a\r\nc\r\n"),
            ("a\r\nb\r\nc\r\n", "\nb", "\nx\ny", "a\r\nx\r\ny\r\nc\r\n"),
            ("a\r\nb\r\nc\r\n", "\nb", "x", "ax\r\nc\r\n"),
            // One line becomes several, and gets the line ends around it.
            ("a\r\nb\r\n", "b", "x\ny", "a\r\nx\r\ny\r\n"),
            ("a\r\nb\r\n", "a", "x\ny", "x\r\ny\r\nb\r\n"),
            ("a\nb\n", "a", "x\ny", "x\ny\nb\n"),
            ("a\nb\r\nc\r\n", "a\nb", "x\ny", "x\ny\r\nc\r\n"),
            // Who writes a CR means it.
            ("a\r\nb\r\n", "a\r\nb", "a\nb", "a\nb\r\n"),
            ("a\r\nb\r\n", "a", "x\r\ny", "x\r\ny\r\nb\r\n"),
            ("a\rb", "\r", "\n", "a\nb"),
        ];
        for (text, old, new, expected) in table {
            assert_eq!(
                replaced(text, old, new).unwrap(),
                expected,
                "{text:?} {old:?} {new:?}"
            );
        }
    }

    #[test]
    fn several_places_are_counted_and_named() {
        let Err(Error::StringNotUnique { count, lines, .. }) = replaced("aa\naa\n\naaa", "aa", "")
        else {
            panic!("not refused")
        };
        assert_eq!(count, 3);
        assert_eq!(lines, vec![1, 2, 4]);
        let text = "x\r\n".repeat(50);
        let Err(Error::StringNotUnique { count, lines, .. }) = replaced(&text, "x\n", "") else {
            panic!("not refused")
        };
        assert_eq!(count, 50);
        assert_eq!(lines, (1..=20).collect::<Vec<_>>());
        // Both line ends are meant.
        assert!(matches!(
            replaced("a\nb\n a\r\nb", "a\nb", ""),
            Err(Error::StringNotUnique { count: 2, .. })
        ));
    }

    #[test]
    fn an_empty_string_is_refused() {
        assert!(matches!(
            replaced("a", "", "b"),
            Err(Error::EmptySearchString)
        ));
    }

    #[test]
    fn a_missing_string_comes_with_the_nearest_line() {
        let text = "fn main() {\n    let total = count(items);\n    println!();\n}\n";
        let nearest = |old: &str| match replaced(text, old, "") {
            Err(Error::StringNotFound { nearest, .. }) => nearest,
            other => panic!("{other:?}"),
        };
        let line = Some((2, "    let total = count(items);".to_owned()));
        assert_eq!(nearest("\n  let total = counts(item);\n"), line);
        assert_eq!(nearest("let total = count(items);\nelse\n"), line);
        assert_eq!(nearest("nothing of the kind at all"), None);
        assert_eq!(nearest("\n\n\n\n\n"), None);
    }

    #[test]
    fn insertion_follows_the_lines() {
        let table = [
            ("a\nb\n", 1, "x\n", "x\na\nb\n"),
            ("a\nb\n", 2, "x\n", "a\nx\nb\n"),
            ("a\nb\n", 2, "x", "a\nxb\n"),
            ("a\nb\n", 3, "x\n", "a\nb\nx\n"),
            ("a\nb", 3, "x", "a\nb\nx"),
            ("a\r\nb", 3, "x\ny", "a\r\nb\r\nx\r\ny"),
            ("a", 2, "x\n", "a\nx\n"),
            ("", 1, "x\n", "x\n"),
            ("a\r\nb\r\n", 2, "x\n", "a\r\nx\r\nb\r\n"),
            ("a\r\nb\r\n", 1, "x\n", "x\r\na\r\nb\r\n"),
            ("a\r\nb\r\n", 2, "x\r\ny\n", "a\r\nx\r\ny\nb\r\n"),
            ("\u{feff}a\n", 1, "x\n", "\u{feff}x\na\n"),
        ];
        for (text, line, new, expected) in table {
            assert_eq!(
                inserted(text, line, new).unwrap(),
                expected,
                "{text:?} {line} {new:?}"
            );
        }
    }

    #[test]
    fn lines_out_of_range_name_the_largest() {
        for (text, line, most) in [
            ("", 2, 1),
            ("a", 3, 2),
            ("a\n", 3, 2),
            ("a\n", 0, 2),
            ("a\n", -1, 2),
            ("", i64::MAX, 1),
        ] {
            let Err(Error::LineOutOfRange { max, .. }) = inserted(text, line, "x") else {
                panic!("{text:?} {line}")
            };
            assert_eq!(max, most, "{text:?} {line}");
        }
    }

    proptest! {
        #[test]
        fn an_exact_replacement_is_what_the_standard_library_does(
            text in "[abc\\n]{0,20}", old in "[abc\\n]{1,3}", new in "[abc\\n$]{0,3}",
        ) {
            match replaced(&text, &old, &new) {
                Ok(result) => prop_assert_eq!(result, text.replace(&old, &new)),
                Err(Error::StringNotFound { .. }) => prop_assert!(!text.contains(&old)),
                Err(Error::StringNotUnique { count, .. }) => prop_assert!(count > 1),
                Err(other) => prop_assert!(false, "{}", other),
            }
        }

        #[test]
        fn edits_of_arbitrary_text_never_panic(text in ".{0,30}", old in ".{0,6}", line: i64) {
            let _ = replaced(&text, &old, "x\n");
            let _ = inserted(&text, line, "x\n");
        }
    }
}
