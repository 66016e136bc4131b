//! The agent as the bridge sees it: what it can be asked, and how an answer comes back.

use crate::agent_answer;
use crate::encoding::TextEncoding;
use crate::error::Error;
use crate::file::ContentShape;
use crate::listing::PathInfo;
use crate::policy::ProjectPath;

/// Something the agent is asked.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentQuestion {
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
        shape: ContentShape,
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
    fn ask(&mut self, question: &AgentQuestion) -> AskResult;

    /// Reads bytes as the agent writes them into an answer, or says why it cannot.
    fn bytes(&self, answer: &str) -> Result<Vec<u8>, String>;

    /// Reads a directory's entries as the agent writes them into an answer, or says why it cannot.
    fn entries(&self, answer: &str) -> Result<Vec<PathInfo>, String>;
}

/// What came of asking.
#[derive(Debug, Clone, PartialEq)]
pub enum AskResult {
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
    pub shape: ContentShape,
    /// What a hand-over lacked that was asked for once more: nobody is asked a third time.
    pub lack: Option<Lack>,
}

/// What came of a request.
#[derive(Debug, Clone, PartialEq)]
pub enum StepOutcome<T> {
    /// It is done.
    Done(T),
    /// The agent has to answer this first.
    Waiting(AgentQuestion),
}

/// Where content came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ContentSource {
    /// It was there before anyone asked.
    Cache,
    /// From the agent's answer.
    Answer,
    /// The agent handed it over while it was being asked.
    Handover,
}

impl AgentQuestion {
    /// The failure that an agent's error message tells of.
    #[must_use]
    pub fn failed(&self, message: &str) -> Error {
        agent_answer::failure(&self.path, message)
    }
}
