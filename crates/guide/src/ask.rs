//! Asking the agent: what is asked, of whom, and what an answer's text can mean.

use crate::encoding::TextEncoding;
use crate::error::Error;
use crate::file::Shape;
use crate::listing::PathInfo;
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

/// Something the agent is asked.
#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    /// What it is about.
    pub path: ProjectPath,
    /// What is wanted of it.
    pub subject: Subject,
    /// What was handed over lacks this, so it is asked once more.
    pub lack: Option<Lack>,
}

/// What a hand-over lacks of what was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lack {
    /// Everything below was asked for, but directories came without their entries.
    Children,
    /// Only files that match a pattern came, and not the one that was asked for.
    Files,
    /// The file has changed after what came.
    Changes,
    /// Text came that cannot be turned back into the file's bytes.
    Bytes,
}

/// What is wanted.
#[derive(Debug, Clone, PartialEq)]
pub enum Subject {
    /// A file's content.
    File {
        /// As text, or as bytes.
        shape: Shape,
        /// The encoding to read text with.
        encoding: TextEncoding,
    },
    /// A directory's entries.
    Directory {
        /// With everything below.
        recursive: bool,
        /// Only files that match.
        pattern: Option<String>,
    },
}

/// Whom to ask. It never waits: where an answer takes time, whoever calls comes back with it.
pub trait Agent {
    /// Asks, or hands over the answer where it is there already.
    fn ask(&mut self, question: &Question) -> Asked;

    /// Reads bytes as the agent writes them into an answer, or says why it cannot.
    fn bytes(&self, answer: &str) -> Result<Vec<u8>, String>;

    /// Reads a directory's entries as the agent writes them into an answer, or says why it cannot.
    fn entries(&self, answer: &str) -> Result<Vec<PathInfo>, String>;
}

/// What came of asking.
#[derive(Debug, Clone, PartialEq)]
pub enum Asked {
    /// The text of the answer.
    Answered(String),
    /// It will take time.
    Waiting,
    /// There is no answer.
    Failed(Error),
}

/// A question that was asked before: where to go on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Resume {
    /// When the first question of the call was asked, in seconds since the epoch.
    pub asked_at: f64,
    /// When the cache was looked at before the last question: only what came after that answers it.
    pub looked_at: f64,
    /// What was asked for last.
    pub shape: Shape,
    /// What a hand-over lacked that was asked for once more: nobody is asked a third time.
    pub lack: Option<Lack>,
}

/// What came of a request.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome<T> {
    /// It is done.
    Done(T),
    /// The agent has to answer this first.
    Waiting(Question),
}

/// Where content came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// It was there before anyone asked.
    Cache,
    /// From the agent's answer.
    Answer,
    /// The agent handed it over while it was being asked.
    Handover,
}

/// What the text of an answer says.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Said {
    /// It is what was asked for.
    Content,
    /// The file cannot be read as text in the encoding that was asked for.
    NotText,
    /// It is a failure.
    Failure(Error),
}

/// Tells content from failure by how it begins.
pub(crate) fn said(path: &ProjectPath, answer: &str) -> Said {
    let (path, said) = (path.to_string(), first_line(answer));
    let plain = plain_line(answer);
    let begins =
        |words: &str| answer.starts_with(words) || plain.starts_with(&words.to_ascii_lowercase());
    if begins(NOT_FOUND) || NOT_FOUND_TOO.iter().any(|words| plain.starts_with(words)) {
        Said::Failure(Error::NotFound { path, above: None })
    } else if begins(PERMISSION_DENIED) {
        Said::Failure(Error::PermissionDenied { path, said })
    } else if begins(ENCODING_ERROR) {
        Said::NotText
    } else {
        Said::Content
    }
}

/// The failure that an agent's error message tells of.
#[must_use]
pub(crate) fn failure(path: &ProjectPath, message: &str) -> Error {
    match said(path, message) {
        Said::Failure(error) => error,
        Said::Content | Said::NotText => Error::AgentFailed {
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

impl Question {
    /// The failure that an agent's error message tells of.
    #[must_use]
    pub fn failed(&self, message: &str) -> Error {
        failure(&self.path, message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_not_found(answer: &str) -> bool {
        let said = said(&ProjectPath::unchecked("docs/a"), answer);
        matches!(said, Said::Failure(Error::NotFound { .. }))
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
        let denied = said(&ProjectPath::unchecked("docs/a"), "*PERMISSION DENIED*");
        assert!(matches!(
            denied,
            Said::Failure(Error::PermissionDenied { .. })
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
