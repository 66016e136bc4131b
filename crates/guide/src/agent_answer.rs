//! What the text of an agent's answer means: content, or a failure in the agent's own words.

use crate::error::Error;
use crate::project_path::ProjectPath;

/// The start of an answer that says that the file does not exist.
const NOT_FOUND: &str = "File not found";
/// The start of an answer that says that the agent may not read the file.
const PERMISSION_DENIED: &str = "Permission denied";
/// The start of an answer that says that the file cannot be read as text.
const ENCODING_ERROR: &str = "Encoding error";
/// Other starts, in lower case, of a one-line answer that says that the file does not exist.
const NOT_FOUND_VARIANTS: [&str; 3] = ["not found:", "error: file not found", "enoent"];
/// How many characters of an answer are compared with these texts.
const COMPARED_MAX: usize = 64;
/// The start and the end of a code fence.
const FENCE: &str = "```";

/// What the text of an answer means.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum AnswerMeaning {
    /// It is the content that was asked for.
    Content,
    /// The agent cannot read the file as text in the encoding that was asked for.
    NotText,
    /// It reports a failure.
    Failure(Error),
}

/// Tells content and failures apart by how the answer starts.
pub(crate) fn meaning(path: &ProjectPath, answer: &str) -> AnswerMeaning {
    let (path, said) = (path.to_string(), first_line(answer));
    let plain = plain_start(answer);
    let starts_with =
        |words: &str| answer.starts_with(words) || plain.starts_with(&words.to_ascii_lowercase());
    if starts_with(NOT_FOUND)
        || NOT_FOUND_VARIANTS
            .iter()
            .any(|words| plain.starts_with(words))
    {
        AnswerMeaning::Failure(Error::NotFound { path, above: None })
    } else if starts_with(PERMISSION_DENIED) {
        AnswerMeaning::Failure(Error::PermissionDenied { path, said })
    } else if starts_with(ENCODING_ERROR) {
        AnswerMeaning::NotText
    } else {
        AnswerMeaning::Content
    }
}

/// Returns the failure that an agent's error message describes.
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

/// Returns the start of a one-line answer in lower case, without the quotes and markup that models add; empty for a longer
/// answer.
fn plain_start(answer: &str) -> String {
    let line = answer.trim();
    if line.contains('\n') {
        return String::new();
    }
    let is_decoration = |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '`' | '*');
    let plain = line.trim_start_matches(is_decoration);
    plain
        .chars()
        .take(COMPARED_MAX)
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
    sandbox::first_chars(line, 200).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_not_found(answer: &str) -> bool {
        let meaning = meaning(&ProjectPath::allowed("docs/a"), answer);
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
        let denied = meaning(&ProjectPath::allowed("docs/a"), "*PERMISSION DENIED*");
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
