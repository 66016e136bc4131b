//! Finds lines that differ from the searched ones only in surrounding blanks, and indents new lines like the old ones.

use std::ops::Range;

/// Where a text has the lines of `old`, blanks around lines aside: the numbers of the first lines, from 0. There may be
/// more than are returned.
pub(crate) fn places(text: &str, old: &str, most: usize) -> Vec<usize> {
    let lines: Vec<&str> = text.split('\n').map(str::trim).collect();
    let wanted: Vec<&str> = old.split('\n').map(str::trim).collect();
    let windows = lines.windows(wanted.len()).enumerate();
    let same = windows.filter(|(_, window)| *window == wanted);
    same.map(|(line, _)| line).take(most).collect()
}

/// The bytes of this many lines from this one on, without the last line end.
pub(crate) fn range(text: &str, first: usize, count: usize) -> Range<usize> {
    let mut start = 0;
    let mut end = 0;
    for (number, line) in text.split('\n').enumerate().take(first + count) {
        if number < first {
            start += line.len() + 1;
        }
        end += line.len() + 1;
    }
    // A carriage return belongs to the line end that stays.
    let lines = text.get(start..end.saturating_sub(1)).unwrap_or_default();
    let lines = lines.strip_suffix('\r').unwrap_or(lines);
    start..start + lines.len()
}

/// The new lines: the first with the indentation of the removed line, the others relative to it.
pub(crate) fn indented(going: &str, old: &str, new: &str) -> String {
    let indentation = indentation(going);
    let mut old = old.split('\n');
    let lines = new.split('\n').enumerate().map(|(number, line)| {
        let old = old.next().map(self::indentation).unwrap_or_default();
        let own = self::indentation(line);
        match number {
            0 => format!("{indentation}{}", line.trim_start()),
            _ if !old.is_empty() && !own.is_empty() => {
                let deeper = own.chars().count().saturating_sub(old.chars().count());
                format!("{indentation}{}{}", " ".repeat(deeper), line.trim_start())
            }
            _ => line.to_owned(),
        }
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn indentation(line: &str) -> &str {
    let text = line.trim_start();
    line.get(..line.len() - text.len()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_found_and_replaced_with_their_indentation() {
        let text = "fn a() {\r\n    one();\r\n    two();\r\n}\r\n";
        let old = "one();\n  two();";
        assert_eq!(places(text, old, 9), [1]);
        let range = range(text, 1, 2);
        assert_eq!(&text[range], "    one();\r\n    two();");
        assert_eq!(
            indented("    one();", old, "if x {\n    three();\n}"),
            "    if x {\n      three();\n}"
        );
        assert_eq!(places("x\n x\n", "x ", 9), [0, 1]);
        assert_eq!(super::range("x", 0, 1), 0..1);
    }
}
