//! What the text of an agent's answer means: content, or a failure in the agent's own words.

use crate::error::Error;
use crate::policy::ProjectPath;

/// How an agent's answer begins that says a file is not there.
const NOT_FOUND: &str = "File not found";
/// How one begins that says the agent may not look.
const PERMISSION_DENIED: &str = "Permission denied";
/// How one begins that says a file cannot be read as text.
const ENCODING_ERROR: &str = "Encoding error";
/// How an answer of one line begins, in small letters, that says in other words that a file is not there.
const NOT_FOUND_TOO: [&str; 3] = ["not found:", "error: file not found", "enoent"];
/// How much of an answer is looked at for such words.
const WORDS_MAX: usize = 64;
/// What stands around a code fence.
const FENCE: &str = "```";

/// What the text of an answer says.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum AnswerMeaning {
    /// It is what was asked for.
    Content,
    /// The file cannot be read as text in the encoding that was asked for.
    NotText,
    /// It is a failure.
    Failure(Error),
}

/// Tells content from failure by how it begins.
pub(crate) fn meaning(path: &ProjectPath, answer: &str) -> AnswerMeaning {
    let (path, said) = (path.to_string(), first_line(answer));
    let plain = plain_line(answer);
    let begins =
        |words: &str| answer.starts_with(words) || plain.starts_with(&words.to_ascii_lowercase());
    if begins(NOT_FOUND) || NOT_FOUND_TOO.iter().any(|words| plain.starts_with(words)) {
        AnswerMeaning::Failure(Error::NotFound { path, above: None })
    } else if begins(PERMISSION_DENIED) {
        AnswerMeaning::Failure(Error::PermissionDenied { path, said })
    } else if begins(ENCODING_ERROR) {
        AnswerMeaning::NotText
    } else {
        AnswerMeaning::Content
    }
}

/// The failure that an agent's error message tells of.
#[must_use]
pub(crate) fn failure(path: &ProjectPath, message: &str) -> Error {
    match meaning(path, message) {
        AnswerMeaning::Failure(error) => error,
        AnswerMeaning::Content | AnswerMeaning::NotText => Error::AgentFailed {
            path: path.to_string(),
            said: first_line(message),
        },
    }
}

/// How an answer of one line begins, in small letters and without what models put around it; nothing for a longer one.
fn plain_line(answer: &str) -> String {
    let line = answer.trim();
    if line.contains('\n') {
        return String::new();
    }
    let is_around = |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '`' | '*');
    let plain = line.trim_start_matches(is_around);
    plain
        .chars()
        .take(WORDS_MAX)
        .collect::<String>()
        .to_ascii_lowercase()
}

/// Tells whether an answer is one code fence and nothing else.
pub(crate) fn is_fenced(answer: &str) -> bool {
    let mut lines = answer.trim().lines();
    let opens = |line: &str| line.starts_with(FENCE);
    let is_opened = lines.next().is_some_and(opens);
    let is_closed = lines.next_back() == Some(FENCE);
    is_opened && is_closed && !lines.any(opens)
}

fn first_line(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    line.chars().take(200).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_not_found(answer: &str) -> bool {
        let meaning = meaning(&ProjectPath::unchecked("docs/a"), answer);
        matches!(meaning, AnswerMeaning::Failure(Error::NotFound { .. }))
    }

    #[test]
    fn failures_are_known_in_other_words() {
        for answer in [
            "File not found: docs/a\nand more",
            "file not found",
            " **File not found**: docs/a ",
            "\"Not found: docs/a\"",
            "Error: file not found",
            "`ENOENT: no such file or directory`",
        ] {
            assert!(is_not_found(answer), "{answer}");
        }
        for content in [
            "# File not found",
            "not found: one\nnot found: two",
            "Not found in this file",
            "The words File not found",
        ] {
            assert!(!is_not_found(content), "{content}");
        }
        let denied = meaning(&ProjectPath::unchecked("docs/a"), "*PERMISSION DENIED*");
        assert!(matches!(
            denied,
            AnswerMeaning::Failure(Error::PermissionDenied { .. })
        ));
    }

    #[test]
    fn a_fence_is_all_of_an_answer_or_none() {
        for fenced in ["```\nx\n```", "```rust\nfn x() {}\n\n```\n", "```\n```"] {
            assert!(is_fenced(fenced), "{fenced}");
        }
        for plain in [
            "",
            "```",
            "```x```",
            "a\n```\nx\n```",
            "```\na\n```\nb\n```\nc\n```",
        ] {
            assert!(!is_fenced(plain), "{plain}");
        }
    }
}
