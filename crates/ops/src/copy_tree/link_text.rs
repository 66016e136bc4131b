//! The texts of links inside a tree that is copied: which of them stay inside it, and what they become in the copy.

/// How many directories below `top` the directory `path` is.
pub(super) fn depth_in(top: &str, path: &str) -> usize {
    let below = path.strip_prefix(top).unwrap_or(path);
    below.split('/').filter(|name| !name.is_empty()).count()
}

/// Tells whether a link's text, read from `depth` directories below a top, never goes above that top.
pub(super) fn stays_below(text: &[u8], depth: usize) -> bool {
    if text.starts_with(b"/") {
        return false;
    }
    let mut depth = Some(depth);
    for step in text.split(|&byte| byte == b'/') {
        depth = match step {
            b"" | b"." => depth,
            b".." => depth.and_then(|depth| depth.checked_sub(1)),
            _ => depth.map(|depth| depth + 1),
        };
    }
    depth.is_some()
}

/// The text of a link `depth` directories below `top` that leads to `path`. `None` if the path is shown with
/// characters that stand for bytes.
pub(super) fn relative_text(top: &str, path: &str, depth: usize) -> Option<String> {
    if matches!(sandbox::shown(path.as_bytes()), std::borrow::Cow::Owned(_)) {
        return None;
    }
    let below = path
        .strip_prefix(top)
        .unwrap_or(path)
        .trim_start_matches('/');
    let text = format!("{}{}", "../".repeat(depth), below.trim_start_matches("./"));
    let text = text.trim_end_matches('/');
    Some(if text.is_empty() {
        ".".to_owned()
    } else {
        text.to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn link_texts_that_go_above_the_top_are_seen() {
        let cases = [
            ("a", 0, true),
            ("../a", 0, false),
            ("../a", 1, true),
            ("a/../../b", 0, false),
            ("a/../../b", 1, true),
            ("../../b/c", 1, false),
            ("/a", 5, false),
            ("./a/./..", 0, true),
        ];
        for (text, depth, expected) in cases {
            assert_eq!(
                stays_below(text.as_bytes(), depth),
                expected,
                "{text} at {depth}"
            );
        }
    }

    #[test]
    fn link_texts_are_written_anew() {
        assert_eq!(relative_text("a", "a/b/c", 2).as_deref(), Some("../../b/c"));
        assert_eq!(relative_text("a", "a", 0).as_deref(), Some("."));
        assert_eq!(relative_text("a", "a", 1).as_deref(), Some(".."));
        assert_eq!(relative_text("", "x", 1).as_deref(), Some("../x"));
        assert_eq!(relative_text("a", "a/\u{F7FF}", 0), None);
    }
}
