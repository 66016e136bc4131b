//! Reading a file: from the cache, or by asking the agent.

use std::sync::Arc;

use super::attempt::Attempt;
use super::store::bytes_unknown;
use super::{ClientBridge, Freshness, IncomingFile, Warning};
use crate::agent::{
    Agent, AgentQuestion, AskResult, ContentSource, Lack, Resume, StepOutcome, Subject, Told,
};
use crate::cache::{CacheKind, CachedValue, Verdict};
use crate::encoding::TextEncoding;
use crate::error::{Error, Result};
use crate::file::{AgentFile, ContentShape, ToldBy};
use crate::project_path::ProjectPath;
use crate::time::Now;

/// The start and the end of a code fence.
const FENCE: &str = "```";

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
pub enum FileContent {
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
    pub content: FileContent,
    /// The encoding that the text was read with.
    pub encoding: TextEncoding,
    /// The file as the cache holds it.
    pub file: Arc<AgentFile>,
    /// Where it came from.
    pub source: ContentSource,
    /// What is unusual about it.
    pub warnings: Vec<Warning>,
}

impl ClientBridge {
    /// Reads a file from the cache, or asks for it. Drops the cached copy if the agent has no such file any more.
    pub fn read_file(
        &self,
        request: &FileRequest,
        resume: Option<Resume>,
        agent: &mut dyn Agent,
        now: Now,
    ) -> Result<StepOutcome<FileRead>> {
        let path = self.parts.validator.validate(&request.path)?;
        let attempt = Attempt {
            bridge: self,
            path: &path,
            resume,
            now,
        };
        request.run(&attempt, agent).map_err(|error| {
            if matches!(error, Error::NotFound { .. }) {
                let cache = &self.parts.cache;
                cache.forget_file(&self.owner, path.as_str(), now.steady);
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
            return attempt.ask_again(self.question(attempt, shape), self.lack(&file));
        }
        self.ask(attempt, shape, agent)
    }

    /// Reads a cached copy that is good enough.
    fn held(&self, attempt: &Attempt<'_>) -> Result<Option<FileRead>> {
        let is_fresh =
            |file: &AgentFile| attempt.is_fresh(self.freshness, file.mtime, file.stored_at);
        self.found(attempt, is_fresh)
    }

    fn found(
        &self,
        attempt: &Attempt<'_>,
        is_fresh: impl Fn(&AgentFile) -> bool,
    ) -> Result<Option<FileRead>> {
        let judge = |value: &CachedValue| self.judge(value, is_fresh);
        let held = attempt.find(CacheKind::File, attempt.path.as_str(), judge);
        let Some(CachedValue::File(file)) = held else {
            return Ok(None);
        };
        let source = attempt.source(file.stored_at, file.told_by);
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
        let question = self.question(attempt, shape);
        match (agent.ask(&question), shape) {
            (AskResult::Waiting, _) => Ok(StepOutcome::Waiting(question)),
            (AskResult::Failed(error), _) => self.old_copy(attempt, error),
            (AskResult::NotText, ContentShape::Text) => {
                self.ask(attempt, ContentShape::Bytes, agent)
            }
            (AskResult::NotText, ContentShape::Bytes) => Err(Error::AgentFailed {
                path: attempt.path.to_string(),
                said: "it has no bytes of it".to_owned(),
            }),
            (AskResult::Answered(told), _) => self
                .keep(attempt, shape, told, agent)
                .map(StepOutcome::Done),
        }
    }

    /// Falls back to a cached copy that should have been asked for again, if there is nobody to ask.
    fn old_copy(&self, attempt: &Attempt<'_>, error: Error) -> Result<StepOutcome<FileRead>> {
        let is_wanted = self.freshness == Freshness::Cached;
        if matches!(error, Error::Unsupported { .. })
            && is_wanted
            && let Some(mut read) = self.found(attempt, |_| true)?
        {
            let warning = attempt.not_rechecked(&error, read.file.stored_at);
            read.warnings.extend(warning);
            return Ok(StepOutcome::Done(read));
        }
        Err(attempt.explained(error))
    }

    /// Stores an answer and reads it in the form that was asked for.
    fn keep(
        &self,
        attempt: &Attempt<'_>,
        shape: ContentShape,
        told: Told,
        agent: &dyn Agent,
    ) -> Result<FileRead> {
        let path = attempt.path;
        let is_fenced = shape == ContentShape::Text && is_fenced(&told.content);
        let incoming = IncomingFile {
            path: path.to_string(),
            content: content(path, shape, told.content, agent)?,
            shape,
            encoding: self.encoding.unwrap_or(TextEncoding::UTF_8),
            mtime: told.mtime.or(self.mtime),
            size: told.size,
        };
        let bridge = attempt.bridge;
        let stored = bridge.store_told(vec![incoming], ToldBy::Answer, attempt.now)?;
        let file = stored.files.into_iter().next().map(|stored| stored.file);
        let file = file.ok_or_else(|| Error::Unverifiable {
            path: path.to_string(),
            reason: "it was not stored".to_owned(),
        })?;
        let mut read = self.read(path.clone(), file)?;
        read.warnings.retain(|one| !stored.warnings.contains(one));
        read.warnings.splice(0..0, stored.warnings);
        read.warnings.extend(is_fenced.then_some(Warning::Fenced));
        Ok(read)
    }

    fn question(&self, attempt: &Attempt<'_>, shape: ContentShape) -> AgentQuestion {
        let encoding = self.encoding.unwrap_or(TextEncoding::UTF_8);
        AgentQuestion {
            path: attempt.path.clone(),
            subject: Subject::File { shape, encoding },
            lack: None,
            size: attempt.bridge.listed_size(attempt.path, attempt.now),
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

    fn judge(&self, value: &CachedValue, is_fresh: impl Fn(&AgentFile) -> bool) -> Verdict {
        let CachedValue::File(file) = value else {
            return Verdict::Unfit;
        };
        if self.is_outdated(file) {
            return Verdict::Stale;
        }
        let has_form = || self.shape == ContentShape::Text || file.bytes().is_some();
        if is_fresh(file) && has_form() {
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
                let bytes = file.bytes();
                let bytes = bytes.ok_or_else(|| bad(&path, "its bytes are not known"))?;
                (FileContent::Bytes(bytes.into_owned()), file.encoding)
            }
            ContentShape::Text => {
                let wanted = self.wanted_encoding(&file);
                let text = file.to_text(wanted);
                let (text, used) = text.ok_or_else(|| bad(&path, "it is not text"))?;
                let is_other = used != wanted && file.shape == ContentShape::Bytes;
                warnings.extend(is_other.then_some(Warning::Fallback { wanted, used }));
                warnings.extend(bytes_unknown(&path, &file));
                (FileContent::Text(text), used)
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

/// Tells whether an answer is one code fence and nothing else.
fn is_fenced(answer: &str) -> bool {
    let mut lines = answer.trim().lines();
    let opens = |line: &str| line.starts_with(FENCE);
    let is_opened = lines.next().is_some_and(opens);
    let is_closed = lines.next_back() == Some(FENCE);
    is_opened && is_closed && !lines.any(opens)
}

fn bad(path: &ProjectPath, reason: &str) -> Error {
    Error::BadContent {
        path: path.to_string(),
        reason: reason.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::is_fenced;

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
