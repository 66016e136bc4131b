//! Patterns as the reference server writes them (minimatch, with names that begin with a dot), as regular expressions.

use ops::{Error, PathPattern, PatternRole};

/// The most patterns that the braces of one may stand for.
const EXPANDED_MAX: usize = 1000;

/// Compiles a pattern for paths.
pub(super) fn pattern(text: &str) -> ops::Result<PathPattern> {
    let plain = text.trim_start_matches('!');
    let is_negated = (text.len() - plain.len()) % 2 == 1;
    let regex = if plain.starts_with('#') && plain.len() == text.len() {
        // A comment matches nothing.
        "^\\z$[^/]".to_owned()
    } else {
        whole(plain).map_err(|reason| Error::InvalidPattern {
            role: PatternRole::PathGlob,
            reason,
        })?
    };
    Ok(if is_negated {
        PathPattern::NotRegex(regex)
    } else {
        PathPattern::Regex(regex)
    })
}

fn whole(text: &str) -> Result<String, String> {
    let mut expanded = Vec::new();
    expand(text, &mut expanded)?;
    let paths: Result<Vec<String>, String> = expanded.iter().map(|text| path(text)).collect();
    Ok(format!("^(?:{})$", paths?.join("|")))
}

/// Expands braces: `{a,b}` and `{1..3}`.
fn expand(text: &str, out: &mut Vec<String>) -> Result<(), String> {
    let Some((before, choices, after)) = first_braces(text) else {
        if out.len() >= EXPANDED_MAX {
            return Err(format!(
                "its braces stand for more than {EXPANDED_MAX} patterns"
            ));
        }
        out.push(text.to_owned());
        return Ok(());
    };
    for choice in choices {
        expand(&format!("{before}{choice}{after}"), out)?;
    }
    Ok(())
}

/// The first braces that stand for something, with what is before and after them.
fn first_braces(text: &str) -> Option<(&str, Vec<String>, &str)> {
    let mut starts = text.match_indices('{').map(|(at, _)| at);
    starts.find_map(|start| {
        let is_escaped = text.get(..start)?.ends_with('\\');
        let inside = text.get(start + 1..).filter(|_| !is_escaped)?;
        let end = closing(inside)?;
        let choices = choices(inside.get(..end)?)?;
        Some((text.get(..start)?, choices, inside.get(end + 1..)?))
    })
}

/// The position at which the brace opened before this text closes.
fn closing(text: &str) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, character) in text.char_indices() {
        match character {
            '{' => depth += 1,
            '}' if depth == 0 => return Some(at),
            '}' => depth -= 1,
            _ => {}
        }
    }
    None
}

/// What stands between braces, separated by commas or as a range.
fn choices(inside: &str) -> Option<Vec<String>> {
    let choices = separated(inside);
    if choices.len() > 1 {
        return Some(choices);
    }
    range(inside)
}

/// Splits at commas that are not inside nested braces.
fn separated(inside: &str) -> Vec<String> {
    let mut done = Vec::new();
    let mut last = String::new();
    let mut depth = 0_usize;
    for character in inside.chars() {
        if character == ',' && depth == 0 {
            done.push(std::mem::take(&mut last));
            continue;
        }
        depth = match character {
            '{' => depth + 1,
            '}' => depth.saturating_sub(1),
            _ => depth,
        };
        last.push(character);
    }
    done.push(last);
    done
}

/// The numbers of a range such as `1..3`, unless they are too many.
fn range(inside: &str) -> Option<Vec<String>> {
    let (from, to) = inside.split_once("..")?;
    let (from, to): (i32, i32) = (from.parse().ok()?, to.parse().ok()?);
    let count = usize::try_from(from.abs_diff(to)).unwrap_or(usize::MAX);
    let range: Vec<i32> = if from <= to {
        (from..=to).take(EXPANDED_MAX).collect()
    } else {
        (to..=from).rev().take(EXPANDED_MAX).collect()
    };
    (count < EXPANDED_MAX).then(|| range.iter().map(i32::to_string).collect())
}

/// A pattern without braces: names between slashes.
fn path(text: &str) -> Result<String, String> {
    let mut regex = String::new();
    let mut names = text.split('/').peekable();
    let mut is_first = true;
    while let Some(name) = names.next() {
        let is_last = names.peek().is_none();
        match name {
            // Repeated slashes count as one.
            "" if !is_first && !is_last => continue,
            "**" if is_last => regex.push_str("[^/]+(?:/[^/]+)*"),
            "**" => regex.push_str("(?:[^/]+/)*"),
            "*" => regex.push_str("[^/]+"),
            name => regex.push_str(&one_name(name)?),
        }
        if !is_last && name != "**" {
            regex.push('/');
        }
        is_first = false;
    }
    Ok(regex)
}

/// A name with stars, question marks, classes and groups.
fn one_name(text: &str) -> Result<String, String> {
    let mut regex = String::new();
    let mut rest = text;
    while let Some(character) = rest.chars().next() {
        let after = rest.get(character.len_utf8()..).unwrap_or_default();
        let group = group(character, after)?;
        let (part, left) = group.unwrap_or_else(|| single(character, after));
        regex.push_str(&part);
        rest = left;
    }
    Ok(regex)
}

/// A character that begins no group, or the class that it begins, and what follows after it.
fn single(character: char, after: &str) -> (String, &str) {
    match character {
        '*' => ("[^/]*".to_owned(), after),
        '?' => ("[^/]".to_owned(), after),
        '\\' => {
            let escaped = after.chars().next().unwrap_or('\\');
            let left = after.get(escaped.len_utf8()..).unwrap_or_default();
            (literal(escaped), left)
        }
        '[' => class(after).unwrap_or_else(|| (literal('['), after)),
        other => (literal(other), after),
    }
}

/// A group such as `+(a|b)` that begins with this character, and what follows after it.
fn group(sign: char, after: &str) -> Result<Option<(String, &str)>, String> {
    let Some(inside) = after.strip_prefix('(') else {
        return Ok(None);
    };
    let times = match sign {
        '+' => "+",
        '*' => "*",
        '?' => "?",
        '@' => "",
        '!' => return Err("groups of the form !(…) are not supported".to_owned()),
        _ => return Ok(None),
    };
    let Some(end) = inside.find(')') else {
        return Ok(None);
    };
    let choices = inside.get(..end).unwrap_or_default().split('|');
    let choices: Result<Vec<String>, String> = choices.map(one_name).collect();
    let left = inside.get(end + 1..).unwrap_or_default();
    Ok(Some((format!("(?:{}){times}", choices?.join("|")), left)))
}

/// A class of characters whose bracket was opened, and what follows after it.
fn class(text: &str) -> Option<(String, &str)> {
    let (negation, inside) = match text.strip_prefix(['!', '^']) {
        Some(inside) => ("^/", inside),
        None => ("", text),
    };
    // A bracket at the beginning is one of the characters.
    let from = usize::from(inside.starts_with(']'));
    let end = from + inside.get(from..)?.find(']')?;
    let mut class = format!("[{negation}");
    for character in inside.get(..end)?.chars() {
        match character {
            '-' => class.push('-'),
            other => class.push_str(&literal(other)),
        }
    }
    class.push(']');
    Some((class, inside.get(end + 1..)?))
}

fn literal(character: char) -> String {
    if character.is_ascii_punctuation() && !matches!(character, '_' | '/') {
        format!("\\{character}")
    } else {
        character.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_mean_what_they_mean_there() {
        for (text, regex) in [
            ("*.ts", "^(?:[^/]*\\.ts)$"),
            ("**/*.ts", "^(?:(?:[^/]+/)*[^/]*\\.ts)$"),
            ("src/**", "^(?:src/[^/]+(?:/[^/]+)*)$"),
            ("{a,b{1..2}}/?", "^(?:a/[^/]|b1/[^/]|b2/[^/])$"),
            ("[!a-c]x", "^(?:[^/a-c]x)$"),
            ("a//b", "^(?:a/b)$"),
            ("+(a|b).js", "^(?:(?:a|b)+\\.js)$"),
            ("{a}", "^(?:\\{a\\})$"),
        ] {
            match pattern(text) {
                Ok(PathPattern::Regex(own)) => assert_eq!(own, regex, "{text}"),
                other => panic!("{text}: {other:?}"),
            }
        }
        assert!(matches!(pattern("!*.ts"), Ok(PathPattern::NotRegex(_))));
        assert!(matches!(pattern("!!*.ts"), Ok(PathPattern::Regex(_))));
        assert!(pattern("!(a)").is_ok_and(|it| matches!(it, PathPattern::NotRegex(_))));
        assert!(pattern("a!(b)").is_err());
        assert!(pattern("{1..9}{1..9}{1..9}{1..9}").is_err());
    }
}
