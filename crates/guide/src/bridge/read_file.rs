//! Reading a file: from the cache, or by asking the agent.

use std::sync::Arc;

use super::attempt::Attempt;
use super::{FilesystemBridge, Freshness, IncomingFile, Warning};
use crate::agent::{
    Agent, AgentQuestion, AskResult, ContentSource, Lack, Resume, StepOutcome, Subject,
};
use crate::agent_answer::{self, AnswerMeaning};
use crate::cache::{CacheKind, CachedValue, Verdict};
use crate::encoding::TextEncoding;
use crate::error::{Error, Result};
use crate::file::{AgentFile, ContentShape};
use crate::project_path::ProjectPath;
use crate::time::Now;

/// A request for a file.
#[derive(Debug, Clone, PartialEq)]
pub struct FileRequest {
    /// The path as the client gave it.
    pub path: String,
    /// Whether text or bytes are wanted.
    pub shape: ContentShape,
    /// The encoding to read text with, if the client named one.
    pub encoding: Option<TextEncoding>,
    /// When the agent's file was last changed, if the client knows. Older content is out of date.
    pub mtime: Option<f64>,
    /// Whether a cached copy is good enough.
    pub freshness: Freshness,
}

/// A file's content in the form that was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    /// Text.
    Text(String),
    /// Bytes.
    Bytes(Vec<u8>),
}

/// A file that was read.
#[derive(Debug, Clone, PartialEq)]
pub struct FileRead {
    /// Its path.
    pub path: ProjectPath,
    /// Its content.
    pub content: Content,
    /// The encoding that the text was read with.
    pub encoding: TextEncoding,
    /// The file as the cache holds it.
    pub file: Arc<AgentFile>,
    /// Where it came from.
    pub source: ContentSource,
    /// What is unusual about it.
    pub warnings: Vec<Warning>,
}

impl FilesystemBridge {
    /// Reads a file from the cache, or asks for it. Drops the cached copy if the agent has no such file any more.
    pub fn read_file(
        &self,
        request: &FileRequest,
        resume: Option<Resume>,
        agent: &mut dyn Agent,
        now: Now,
    ) -> Result<StepOutcome<FileRead>> {
        let path = self.validator.validate(&request.path)?;
        let attempt = Attempt {
            bridge: self,
            path: &path,
            resume,
            now,
        };
        request.run(&attempt, agent).map_err(|error| {
            if matches!(error, Error::NotFound { .. }) {
                self.cache.invalidate(path.as_str(), now.steady, |_| true);
            }
            self.with_directory_above(error, &path)
        })
    }
}

impl FileRequest {
    fn run(&self, attempt: &Attempt<'_>, agent: &mut dyn Agent) -> Result<StepOutcome<FileRead>> {
        // Taken before `held`, which removes what is out of date.
        let handed_over = attempt.handed_over(CacheKind::File);
        if let Some(read) = self.held(attempt)? {
            return Ok(StepOutcome::Done(read));
        }
        attempt.count_miss();
        let shape = attempt.resume.map_or(self.shape, |resume| resume.shape);
        if let Some(CachedValue::File(file)) = handed_over {
            return attempt.ask_again(self.question(attempt.path, shape), self.lack(&file));
        }
        self.ask(attempt, shape, agent)
    }

    /// Reads a cached copy that is good enough.
    fn held(&self, attempt: &Attempt<'_>) -> Result<Option<FileRead>> {
        let judge = |value: &CachedValue| self.judge(value, attempt);
        let held = attempt.find(CacheKind::File, attempt.path.as_str(), judge);
        let Some(CachedValue::File(file)) = held else {
            return Ok(None);
        };
        let source = attempt.source(file.stored_at);
        let read = self.read(attempt.path.clone(), file)?;
        Ok(Some(FileRead { source, ..read }))
    }

    /// Asks the agent. A file that the agent cannot read as text is asked for as bytes.
    fn ask(
        &self,
        attempt: &Attempt<'_>,
        shape: ContentShape,
        agent: &mut dyn Agent,
    ) -> Result<StepOutcome<FileRead>> {
        let path = attempt.path;
        let question = self.question(path, shape);
        let answer = match agent.ask(&question) {
            AskResult::Waiting => return Ok(StepOutcome::Waiting(question)),
            AskResult::Failed(error) => return Err(attempt.explained(error)),
            AskResult::Answered(answer) => answer,
        };
        match (agent_answer::meaning(path, &answer), shape) {
            (AnswerMeaning::Failure(error), _) => Err(error),
            (AnswerMeaning::NotText, ContentShape::Text) => {
                self.ask(attempt, ContentShape::Bytes, agent)
            }
            (AnswerMeaning::NotText, ContentShape::Bytes) => {
                Err(agent_answer::failure(path, &answer))
            }
            (AnswerMeaning::Content, _) => self
                .keep(attempt, shape, answer, agent)
                .map(StepOutcome::Done),
        }
    }

    /// Stores an answer and reads it in the form that was asked for.
    fn keep(
        &self,
        attempt: &Attempt<'_>,
        shape: ContentShape,
        answer: String,
        agent: &dyn Agent,
    ) -> Result<FileRead> {
        let path = attempt.path;
        let is_fenced = shape == ContentShape::Text && agent_answer::is_fenced(&answer);
        let incoming = IncomingFile {
            path: path.to_string(),
            content: content(path, shape, answer, agent)?,
            shape,
            encoding: self.encoding.unwrap_or(TextEncoding::UTF_8),
            mtime: self.mtime,
            size: None,
        };
        let stored = attempt.bridge.store(vec![incoming], attempt.now)?;
        let file = stored.files.into_iter().next().map(|stored| stored.file);
        let file = file.ok_or_else(|| Error::Unverifiable {
            path: path.to_string(),
            reason: "it was not stored".to_owned(),
        })?;
        let mut read = self.read(path.clone(), file)?;
        read.warnings.splice(0..0, stored.warnings);
        read.warnings.extend(is_fenced.then_some(Warning::Fenced));
        Ok(read)
    }

    fn question(&self, path: &ProjectPath, shape: ContentShape) -> AgentQuestion {
        let encoding = self.encoding.unwrap_or(TextEncoding::UTF_8);
        AgentQuestion {
            path: path.clone(),
            subject: Subject::File { shape, encoding },
            lack: None,
        }
    }

    /// Names what is wrong with a file that was handed over for this request but is not good enough.
    fn lack(&self, file: &AgentFile) -> Lack {
        if self.is_outdated(file) {
            Lack::Changes
        } else {
            Lack::Bytes
        }
    }

    fn is_outdated(&self, file: &AgentFile) -> bool {
        self.mtime.is_some_and(|mtime| file.is_older_than(mtime))
    }

    fn judge(&self, value: &CachedValue, attempt: &Attempt<'_>) -> Verdict {
        let CachedValue::File(file) = value else {
            return Verdict::Unfit;
        };
        if self.is_outdated(file) {
            return Verdict::Stale;
        }
        let is_fresh = self.freshness == Freshness::Cached || attempt.is_new(file.stored_at);
        let has_form = || self.shape == ContentShape::Text || file.to_bytes().is_some();
        if is_fresh && has_form() {
            Verdict::Fresh
        } else {
            Verdict::Unfit
        }
    }

    /// Gives a file the form that was asked for.
    fn read(&self, path: ProjectPath, file: Arc<AgentFile>) -> Result<FileRead> {
        let mut warnings = Vec::new();
        let (content, encoding) = match self.shape {
            ContentShape::Bytes => {
                let bytes = file.to_bytes();
                let bytes = bytes.ok_or_else(|| bad(&path, "its bytes are not known"))?;
                (Content::Bytes(bytes), file.encoding)
            }
            ContentShape::Text => {
                let wanted = self.wanted_encoding(&file);
                let text = file.to_text(wanted);
                let (text, used) = text.ok_or_else(|| bad(&path, "it is not text"))?;
                let is_other = used != wanted && file.shape == ContentShape::Bytes;
                warnings.extend(is_other.then_some(Warning::Fallback { wanted, used }));
                (Content::Text(text), used)
            }
        };
        Ok(FileRead {
            path,
            content,
            encoding,
            file,
            source: ContentSource::Answer,
            warnings,
        })
    }

    fn wanted_encoding(&self, file: &AgentFile) -> TextEncoding {
        let wanted = self.encoding.unwrap_or(file.encoding);
        match file.shape {
            ContentShape::Bytes => wanted.marked(&file.content),
            ContentShape::Text => wanted,
        }
    }
}

/// Returns the content of an answer.
fn content(
    path: &ProjectPath,
    shape: ContentShape,
    answer: String,
    agent: &dyn Agent,
) -> Result<Vec<u8>> {
    match shape {
        ContentShape::Text => Ok(answer.into_bytes()),
        ContentShape::Bytes => agent.bytes(&answer).map_err(|reason| bad(path, &reason)),
    }
}

fn bad(path: &ProjectPath, reason: &str) -> Error {
    Error::BadContent {
        path: path.to_string(),
        reason: reason.to_owned(),
    }
}
