//! Long texts cut for messages and records.

/// Returns the first characters of a text, `most` of them at most.
#[must_use]
pub fn first_chars(text: &str, most: usize) -> &str {
    let end = text.char_indices().nth(most).map(|(end, _)| end);
    end.and_then(|end| text.get(..end)).unwrap_or(text)
}

/// Cuts a text after `most` characters, with `…` where it was cut.
#[must_use]
pub fn truncated(text: &str, most: usize) -> String {
    let kept = first_chars(text, most);
    if kept.len() < text.len() {
        format!("{kept}…")
    } else {
        text.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_between_characters() {
        for (text, first, cut) in [("", "", ""), ("añ", "añ", "añ"), ("añb", "añ", "añ…")] {
            assert_eq!(first_chars(text, 2), first);
            assert_eq!(&*truncated(text, 2), cut);
        }
    }
}
