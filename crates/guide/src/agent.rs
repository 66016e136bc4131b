//! The agent as the bridge sees it: the questions it can be asked, and how an answer comes back.

use serde::{Deserialize, Serialize};

use crate::encoding::TextEncoding;
use crate::error::Error;
use crate::file::ContentShape;
use crate::listing::PathInfo;
use crate::project_path::ProjectPath;

/// A question to the agent.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct AgentQuestion {
    /// The path that it is about.
    pub path: ProjectPath,
    /// What is requested about the path.
    pub subject: Subject,
    /// What was missing from the first hand-over, if this is the second question.
    pub lack: Option<Lack>,
    /// The size of the file, if a listing told it.
    pub size: Option<u64>,
}

/// What is missing from a hand-over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Lack {
    /// The request was recursive, but directories came without their entries.
    Children,
    /// Only files that match another pattern came.
    Files,
    /// The file was changed after the content was taken from it.
    Changes,
    /// The content came as text that cannot be turned back into the file's bytes.
    Bytes,
}

/// What a question asks for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Subject {
    /// A file's content.
    File {
        /// Whether text or bytes are requested.
        shape: ContentShape,
        /// The encoding to read text with.
        encoding: TextEncoding,
    },
    /// A directory's entries.
    Directory {
        /// Whether everything below the directory is requested too.
        recursive: bool,
        /// The pattern that files have to match.
        pattern: Option<String>,
    },
}

/// Someone who can be asked for files. It never waits: if an answer takes time, the caller comes back with it.
pub trait Agent {
    /// Asks, or returns the answer that has already come.
    fn ask(&mut self, question: &AgentQuestion) -> AskResult;

    /// Decodes bytes from an answer, or returns why it cannot.
    fn bytes(&self, answer: &str) -> Result<Vec<u8>, String>;

    /// Decodes a directory's entries from an answer, or returns why it cannot.
    fn entries(&self, answer: &str) -> Result<Vec<PathInfo>, String>;
}

/// What an agent told about a path.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Told {
    /// The content, or a directory's entries, without the marker.
    pub content: String,
    /// When the agent's file was last changed, in seconds since the epoch, if the agent said so.
    pub mtime: Option<f64>,
    /// The size of the agent's file in bytes, if the agent said so.
    pub size: Option<u64>,
}

/// The result of asking.
#[derive(Debug, Clone, PartialEq)]
pub enum AskResult {
    /// The agent answered with what it was asked for.
    Answered(Told),
    /// The agent cannot read the file as text.
    NotText,
    /// The answer takes time.
    Waiting,
    /// There will be no answer.
    Failed(Error),
}

/// What was asked before, so that a request can continue. A client may carry it between two calls, sealed.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Resume {
    /// When the first question of the request was asked, in seconds since the epoch.
    pub asked_at: f64,
    /// When the cache was searched before the last question. Only what was stored after that answers it.
    pub looked_at: f64,
    /// Whether the last question asked for text or bytes.
    pub shape: ContentShape,
    /// What was missing from the first hand-over, if there was a second question. There is no third.
    pub lack: Option<Lack>,
    /// Identifies the last question. The answer to it begins with this.
    pub marker: u32,
}

/// The result of one step of a request.
#[derive(Debug, Clone, PartialEq)]
pub enum StepOutcome<T> {
    /// The request is done.
    Done(T),
    /// The agent has to answer this question first.
    Waiting(AgentQuestion),
}

impl<T> StepOutcome<T> {
    /// Converts the result of a finished outcome.
    pub fn map<U>(self, make: impl FnOnce(T) -> U) -> StepOutcome<U> {
        match self {
            StepOutcome::Done(done) => StepOutcome::Done(make(done)),
            StepOutcome::Waiting(question) => StepOutcome::Waiting(question),
        }
    }
}

/// Where content came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ContentSource {
    /// It was in the cache before the agent was asked.
    Cache,
    /// It came in the agent's answer.
    Answer,
    /// The agent handed it over while it was being asked.
    Handover,
}
