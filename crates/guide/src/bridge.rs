//! The bridge to the agent's files: from the cache where it can, else by asking the agent.
//!
//! A request runs until it is done or needs an answer that is not there yet; with the answer it is begun again where it
//! stopped ([`Resume`]). So nothing waits here, and any process with the same cache or none can go on. What fails is
//! never cached.

use std::sync::Arc;
use std::time::Duration;

use crate::agent::{
    Agent, AgentQuestion, AskResult, ContentSource, Lack, Resume, StepOutcome, Subject,
};
use crate::agent_answer::{self, AnswerMeaning};
use crate::cache::{CacheKind, CachedValue, FileCache, Verdict};
use crate::encoding::TextEncoding;
use crate::error::{Error, Result};
use crate::file::{AgentFile, ContentShape};
use crate::listing::{self, Accepts, DirectoryListing, PathInfo};
use crate::policy::{PathValidator, ProjectPath};
use crate::store::{IncomingFile, Warning};
use crate::time::Now;
use crate::upload::Uploads;

/// How long an upload may pause.
const UPLOAD_LIFETIME: Duration = Duration::from_secs(600);

/// What the bridge may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BridgeLimits {
    /// Bytes in the cache, and as many in uploads under way.
    pub cache_size: u64,
    /// How long an entry is kept; none is for ever.
    pub cache_ttl: Option<Duration>,
}

/// The way to the agent's files.
#[derive(Debug)]
pub struct FilesystemBridge {
    pub(crate) validator: PathValidator,
    pub(crate) cache: FileCache,
    pub(crate) uploads: Uploads,
}

/// Whether what is held will do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Freshness {
    /// It will.
    #[default]
    Cached,
    /// The agent is to be asked in any case.
    Refresh,
}

/// A request for a file.
#[derive(Debug, Clone, PartialEq)]
pub struct FileRequest {
    /// The path as it was given.
    pub path: String,
    /// As text, or as bytes.
    pub shape: ContentShape,
    /// The encoding to read text with, where one was named.
    pub encoding: Option<TextEncoding>,
    /// When the agent's file was changed, where that is known: older content will not do.
    pub mtime: Option<f64>,
    /// Whether what is held will do.
    pub freshness: Freshness,
}

/// A file's content as it was asked for.
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
    /// What it was read with.
    pub encoding: TextEncoding,
    /// The file as it is held.
    pub file: Arc<AgentFile>,
    /// Where it came from.
    pub source: ContentSource,
    /// What is odd about it.
    pub warnings: Vec<Warning>,
}

/// A request for a directory.
#[derive(Clone)]
pub struct DirectoryRequest<'call> {
    /// The path as it was given.
    pub path: String,
    /// With everything below.
    pub recursive: bool,
    /// Only files that match: the pattern, and what it means for a name and a path relative to the directory.
    pub filter: Option<(&'call str, Accepts<'call>)>,
    /// Whether what is held will do.
    pub freshness: Freshness,
}

/// A directory that was read.
#[derive(Debug, Clone, PartialEq)]
pub struct DirectoryRead {
    /// Its path.
    pub path: ProjectPath,
    /// Its entries.
    pub entries: Vec<PathInfo>,
    /// Files at every depth.
    pub files: u64,
    /// Directories at every depth.
    pub directories: u64,
    /// When it was told.
    pub stored_at: f64,
    /// Where it came from.
    pub source: ContentSource,
    /// What is odd about it.
    pub warnings: Vec<Warning>,
}

impl FilesystemBridge {
    /// A bridge with an empty cache.
    #[must_use]
    pub fn new(validator: PathValidator, limits: BridgeLimits) -> FilesystemBridge {
        let lifetime = limits
            .cache_ttl
            .map_or(UPLOAD_LIFETIME, |ttl| ttl.min(UPLOAD_LIFETIME));
        FilesystemBridge {
            validator,
            cache: FileCache::new(limits.cache_size, limits.cache_ttl),
            uploads: Uploads::new(limits.cache_size, lifetime),
        }
    }

    /// Who judges paths.
    #[must_use]
    pub fn validator(&self) -> &PathValidator {
        &self.validator
    }

    /// What is held.
    #[must_use]
    pub fn cache(&self) -> &FileCache {
        &self.cache
    }

    /// The uploads under way.
    #[must_use]
    pub fn uploads(&self) -> &Uploads {
        &self.uploads
    }

    /// Reads a file: from the cache, or by asking. What the agent does not have any more goes.
    pub fn read_file(
        &self,
        request: &FileRequest,
        resume: Option<Resume>,
        agent: &mut dyn Agent,
        now: Now,
    ) -> Result<StepOutcome<FileRead>> {
        let path = self.validator.validate(&request.path)?;
        let outcome = self.held_or_asked_file(request, &path, resume, agent, now);
        outcome.map_err(|error| {
            if matches!(error, Error::NotFound { .. }) {
                self.cache.invalidate(path.as_str(), now.steady, |_| true);
            }
            self.placed(error, &path)
        })
    }

    fn held_or_asked_file(
        &self,
        request: &FileRequest,
        path: &ProjectPath,
        resume: Option<Resume>,
        agent: &mut dyn Agent,
        now: Now,
    ) -> Result<StepOutcome<FileRead>> {
        // Before the search, which throws out what is out of date.
        let handed = self.handed_over(CacheKind::File, path, resume, now);
        if let Some(read) = self.held_file(request, path, resume, now)? {
            return Ok(StepOutcome::Done(read));
        }
        self.count_miss(resume, now);
        let mut shape = resume.map_or(request.shape, |resume| resume.shape);
        if let Some(CachedValue::File(file)) = handed {
            let lack = request.lack(&file);
            return once_more(request.question(path, shape), lack, resume);
        }
        loop {
            let question = request.question(path, shape);
            let answer = match agent.ask(&question) {
                AskResult::Waiting => return Ok(StepOutcome::Waiting(question)),
                AskResult::Failed(error) => return Err(instead_of_timeout(error, resume)),
                AskResult::Answered(answer) => answer,
            };
            match (agent_answer::meaning(path, &answer), shape) {
                (AnswerMeaning::Failure(error), _) => return Err(error),
                // It cannot be read as text over there, so its bytes are wanted here.
                (AnswerMeaning::NotText, ContentShape::Text) => shape = ContentShape::Bytes,
                (AnswerMeaning::NotText, ContentShape::Bytes) => {
                    return Err(agent_answer::failure(path, &answer));
                }
                (AnswerMeaning::Content, _) => {
                    let is_fenced = shape == ContentShape::Text && agent_answer::is_fenced(&answer);
                    let content = content(path, shape, answer, agent)?;
                    let mut read = self.keep(request, path.clone(), shape, content, now)?;
                    read.warnings.extend(is_fenced.then_some(Warning::Fenced));
                    return Ok(StepOutcome::Done(read));
                }
            }
        }
    }

    /// Lists a directory: from the cache, or by asking. What the agent does not have any more goes.
    pub fn list_directory(
        &self,
        request: &DirectoryRequest<'_>,
        resume: Option<Resume>,
        agent: &mut dyn Agent,
        now: Now,
    ) -> Result<StepOutcome<DirectoryRead>> {
        let path = self.validator.validate(&request.path)?;
        let outcome = self.held_or_asked_directory(request, &path, resume, agent, now);
        outcome.map_err(|error| {
            if matches!(error, Error::NotFound { .. }) {
                self.forget_directory(path.as_str(), now);
            }
            self.placed(error, &path)
        })
    }

    fn held_or_asked_directory(
        &self,
        request: &DirectoryRequest<'_>,
        path: &ProjectPath,
        resume: Option<Resume>,
        agent: &mut dyn Agent,
        now: Now,
    ) -> Result<StepOutcome<DirectoryRead>> {
        if let Some(read) = self.held_directory(request, path, resume, now) {
            return Ok(StepOutcome::Done(read));
        }
        self.count_miss(resume, now);
        let question = request.question(path);
        if let Some(CachedValue::Listing(listing)) =
            self.handed_over(CacheKind::Listing, path, resume, now)
        {
            let lack = request.lack(&listing);
            return match once_more(question, lack, resume) {
                Err(error) => request.incomplete(path, &listing, error),
                asked => asked,
            };
        }
        let answer = match agent.ask(&question) {
            AskResult::Waiting => return Ok(StepOutcome::Waiting(question)),
            AskResult::Failed(error) => {
                let error = instead_of_timeout(error, resume);
                return self.second_best(request, path, resume, error, now);
            }
            AskResult::Answered(answer) => answer,
        };
        if let AnswerMeaning::Failure(error) = agent_answer::meaning(path, &answer) {
            return Err(error);
        }
        let entries = match agent.entries(&answer) {
            Ok(entries) => entries,
            Err(reason) => {
                let error = Error::BadListing {
                    path: path.to_string(),
                    reason,
                };
                return self.second_best(request, path, resume, error, now);
            }
        };
        let stored = self.store_listing(path.as_str(), entries, request.filter, now)?;
        let mut read = request.read(path, &stored.listing.entries, &stored.listing);
        read.source = ContentSource::Answer;
        read.warnings = stored.warnings;
        let is_shallow = request.recursive && !stored.listing.is_deep();
        read.warnings.extend(is_shallow.then_some(Warning::Shallow));
        Ok(StepOutcome::Done(read))
    }

    /// Tells whether the agent has handed over what a question asks for since it was asked.
    #[must_use]
    pub fn has_arrived(&self, question: &AgentQuestion, asked_at: f64, now: Now) -> bool {
        let kind = match question.subject {
            Subject::File { .. } => CacheKind::File,
            Subject::Directory { .. } => CacheKind::Listing,
        };
        self.stored_since(kind, &question.path, asked_at, now)
            .is_some()
    }

    /// Says where to look instead of a path that is not there.
    fn placed(&self, error: Error, path: &ProjectPath) -> Error {
        match error {
            Error::NotFound { path: missing, .. } => Error::NotFound {
                path: missing,
                above: self.validator.above(path),
            },
            other => other,
        }
    }

    /// What came after a moment, whether it will do or not.
    fn stored_since(
        &self,
        kind: CacheKind,
        path: &ProjectPath,
        moment: f64,
        now: Now,
    ) -> Option<CachedValue> {
        let held = self.cache.peek(kind, path.as_str(), now.steady)?;
        (held.stored_at() >= moment).then_some(held)
    }

    /// What the agent handed over to answer the last question, whether it will do or not.
    fn handed_over(
        &self,
        kind: CacheKind,
        path: &ProjectPath,
        resume: Option<Resume>,
        now: Now,
    ) -> Option<CachedValue> {
        self.stored_since(kind, path, resume?.looked_at, now)
    }

    /// What was handed over for the first question, where the second one came to nothing; else the failure.
    fn second_best(
        &self,
        request: &DirectoryRequest<'_>,
        path: &ProjectPath,
        resume: Option<Resume>,
        error: Error,
        now: Now,
    ) -> Result<StepOutcome<DirectoryRead>> {
        let first = resume.filter(|resume| resume.lack.is_some());
        let handed = first
            .and_then(|first| self.stored_since(CacheKind::Listing, path, first.asked_at, now));
        match handed {
            Some(CachedValue::Listing(listing)) => request.incomplete(path, &listing, error),
            _ => Err(error),
        }
    }

    fn count_miss(&self, resume: Option<Resume>, now: Now) {
        if resume.is_none() {
            self.cache.missed(now.steady);
        }
    }

    fn held_file(
        &self,
        request: &FileRequest,
        path: &ProjectPath,
        resume: Option<Resume>,
        now: Now,
    ) -> Result<Option<FileRead>> {
        let judge = |value: &CachedValue| request.judge(value, resume);
        let held = self
            .cache
            .find(CacheKind::File, path.as_str(), now.steady, judge);
        let Some(CachedValue::File(file)) = held else {
            return Ok(None);
        };
        let read = read(request, path.clone(), file)?;
        Ok(Some(FileRead {
            source: source(read.file.stored_at, resume),
            ..read
        }))
    }

    fn keep(
        &self,
        request: &FileRequest,
        path: ProjectPath,
        shape: ContentShape,
        content: Vec<u8>,
        now: Now,
    ) -> Result<FileRead> {
        let handover = IncomingFile {
            path: path.to_string(),
            content,
            shape,
            encoding: request.encoding.unwrap_or(TextEncoding::UTF_8),
            mtime: request.mtime,
            size: None,
        };
        let stored = self.store(vec![handover], now)?;
        let file = stored.files.into_iter().next().map(|stored| stored.file);
        let file = file.ok_or_else(|| Error::Unverifiable {
            path: path.to_string(),
            reason: "it was not stored".to_owned(),
        })?;
        let mut read = read(request, path, file)?;
        read.warnings.splice(0..0, stored.warnings);
        Ok(read)
    }

    /// A listing of the directory itself, or one of a directory above that goes down to it.
    fn held_directory(
        &self,
        request: &DirectoryRequest<'_>,
        path: &ProjectPath,
        resume: Option<Resume>,
        now: Now,
    ) -> Option<DirectoryRead> {
        upwards(path.as_str()).find_map(|(directory, below)| {
            let judge = |value: &CachedValue| request.judge(value, below, resume);
            let held = self
                .cache
                .find(CacheKind::Listing, directory, now.steady, judge);
            let Some(CachedValue::Listing(listing)) = held else {
                return None;
            };
            let entries = inside(&listing, below)?;
            let mut read = request.read(path, entries, &listing);
            read.source = source(listing.stored_at, resume);
            Some(read)
        })
    }

    /// Throws out every listing that shows a directory.
    fn forget_directory(&self, path: &str, now: Now) {
        for (directory, below) in upwards(path) {
            let judge = |value: &CachedValue| match value {
                CachedValue::Listing(listing) if inside(listing, below).is_some() => Verdict::Stale,
                _ => Verdict::Unfit,
            };
            self.cache
                .find(CacheKind::Listing, directory, now.steady, judge);
        }
    }
}

/// A directory and those above it, each with the way down from there.
fn upwards(path: &str) -> impl Iterator<Item = (&str, &str)> {
    let directories = std::iter::successors(Some(path), |directory| {
        let (parent, _) = directory.rsplit_once('/')?;
        Some(parent)
    });
    directories.map(move |directory| {
        let below = path.strip_prefix(directory).unwrap_or_default();
        (directory, below.trim_start_matches('/'))
    })
}

impl FileRequest {
    fn question(&self, path: &ProjectPath, shape: ContentShape) -> AgentQuestion {
        let encoding = self.encoding.unwrap_or(TextEncoding::UTF_8);
        AgentQuestion {
            path: path.clone(),
            subject: Subject::File { shape, encoding },
            lack: None,
        }
    }

    /// What keeps content that came for this request from being what was asked for.
    fn lack(&self, file: &AgentFile) -> Lack {
        match self.mtime.is_some_and(|mtime| file.is_older_than(mtime)) {
            true => Lack::Changes,
            false => Lack::Bytes,
        }
    }

    fn judge(&self, value: &CachedValue, resume: Option<Resume>) -> Verdict {
        let CachedValue::File(file) = value else {
            return Verdict::Unfit;
        };
        if self.mtime.is_some_and(|mtime| file.is_older_than(mtime)) {
            return Verdict::Stale;
        }
        let is_new = resume.is_some_and(|resume| file.stored_at >= resume.asked_at);
        if self.freshness == Freshness::Refresh && !is_new {
            return Verdict::Unfit;
        }
        match self.shape == ContentShape::Text || bytes(file).is_some() {
            true => Verdict::Fresh,
            false => Verdict::Unfit,
        }
    }
}

impl DirectoryRequest<'_> {
    fn question(&self, path: &ProjectPath) -> AgentQuestion {
        AgentQuestion {
            path: path.clone(),
            subject: Subject::Directory {
                recursive: self.recursive,
                pattern: self.filter.map(|(pattern, _)| pattern.to_owned()),
            },
            lack: None,
        }
    }

    /// What keeps a listing that came for this request from being what was asked for.
    fn lack(&self, listing: &DirectoryListing) -> Lack {
        match self.has_all_files(listing) {
            true => Lack::Children,
            false => Lack::Files,
        }
    }

    fn has_all_files(&self, listing: &DirectoryListing) -> bool {
        let wanted = self.filter.map(|(pattern, _)| pattern);
        listing.pattern.is_none() || listing.pattern.as_deref() == wanted
    }

    /// Takes a listing without all that is below, because it shows what it lacks; one without some of its files fails.
    fn incomplete(
        &self,
        path: &ProjectPath,
        listing: &DirectoryListing,
        error: Error,
    ) -> Result<StepOutcome<DirectoryRead>> {
        if !self.has_all_files(listing) {
            return Err(error);
        }
        let mut read = self.read(path, &listing.entries, listing);
        read.source = ContentSource::Handover;
        read.warnings.push(Warning::Shallow);
        Ok(StepOutcome::Done(read))
    }

    /// Judges a listing of the directory, or of one above it, with the way from there.
    fn judge(&self, value: &CachedValue, below: &str, resume: Option<Resume>) -> Verdict {
        let CachedValue::Listing(listing) = value else {
            return Verdict::Unfit;
        };
        let is_new = resume.is_some_and(|resume| listing.stored_at >= resume.asked_at);
        let is_fresh = is_new || self.freshness == Freshness::Cached;
        let has_all =
            listing.pattern.is_none() || (below.is_empty() && self.has_all_files(listing));
        let is_deep = !self.recursive || listing.is_deep();
        match is_fresh && has_all && is_deep && inside(listing, below).is_some() {
            true => Verdict::Fresh,
            false => Verdict::Unfit,
        }
    }

    fn read(
        &self,
        path: &ProjectPath,
        entries: &[PathInfo],
        listing: &DirectoryListing,
    ) -> DirectoryRead {
        let mut entries = entries.to_vec();
        if let Some((_, accepts)) = self.filter {
            listing::filtered(&mut entries, accepts);
        }
        if !self.recursive {
            entries.iter_mut().for_each(|entry| entry.children = None);
        }
        let (files, directories) = listing::count(&entries);
        DirectoryRead {
            path: path.clone(),
            entries,
            files,
            directories,
            stored_at: listing.stored_at,
            source: ContentSource::Cache,
            warnings: Vec::new(),
        }
    }
}

fn inside<'a>(listing: &'a DirectoryListing, below: &str) -> Option<&'a [PathInfo]> {
    match below {
        "" => Some(&listing.entries),
        below => listing.below(below),
    }
}

fn source(stored_at: f64, resume: Option<Resume>) -> ContentSource {
    match resume {
        Some(resume) if stored_at >= resume.asked_at => ContentSource::Handover,
        _ => ContentSource::Cache,
    }
}

/// Asks again for what a hand-over lacks. An agent that hands over the same twice will not do better the third time.
fn once_more<T>(
    question: AgentQuestion,
    lack: Lack,
    resume: Option<Resume>,
) -> Result<StepOutcome<T>> {
    match resume.and_then(|resume| resume.lack) {
        Some(_) => Err(Error::Lacking {
            path: question.path.to_string(),
            lack,
        }),
        None => Ok(StepOutcome::Waiting(AgentQuestion {
            lack: Some(lack),
            ..question
        })),
    }
}

/// Something came, so the failure is what it lacks and not that the second question had no answer.
fn instead_of_timeout(error: Error, resume: Option<Resume>) -> Error {
    match (error, resume.and_then(|resume| resume.lack)) {
        (Error::Timeout { path, .. }, Some(lack)) => Error::Lacking { path, lack },
        (error, _) => error,
    }
}

/// The content of an answer.
fn content(
    path: &ProjectPath,
    shape: ContentShape,
    answer: String,
    agent: &dyn Agent,
) -> Result<Vec<u8>> {
    match shape {
        ContentShape::Text => Ok(answer.into_bytes()),
        ContentShape::Bytes => agent.bytes(&answer).map_err(|reason| Error::BadContent {
            path: path.to_string(),
            reason,
        }),
    }
}

/// Gives a file the form that was asked for.
fn read(request: &FileRequest, path: ProjectPath, file: Arc<AgentFile>) -> Result<FileRead> {
    let bad = |reason: &str| Error::BadContent {
        path: path.to_string(),
        reason: reason.to_owned(),
    };
    let mut warnings = Vec::new();
    let (content, encoding) = match request.shape {
        ContentShape::Bytes => {
            let bytes = bytes(&file).ok_or_else(|| bad("its bytes are not known"))?;
            (Content::Bytes(bytes), file.encoding)
        }
        ContentShape::Text => {
            let wanted = request.encoding.unwrap_or(file.encoding);
            let wanted = match file.shape {
                ContentShape::Bytes => wanted.marked(&file.content),
                ContentShape::Text => wanted,
            };
            let (text, used) = text(&file, wanted).ok_or_else(|| bad("it is not text"))?;
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

/// The file as bytes; nothing where it came as text that cannot be written back.
fn bytes(file: &AgentFile) -> Option<Vec<u8>> {
    match file.shape {
        ContentShape::Bytes => Some(file.content.to_vec()),
        ContentShape::Text if file.encoding == TextEncoding::UTF_8 => Some(file.content.to_vec()),
        ContentShape::Text => {
            let text = std::str::from_utf8(&file.content).ok()?;
            file.encoding.encode(text)
        }
    }
}

/// The file as text: with the wanted encoding, or else with the first that fits.
fn text(file: &AgentFile, wanted: TextEncoding) -> Option<(String, TextEncoding)> {
    match file.shape {
        ContentShape::Text => {
            let text = std::str::from_utf8(&file.content).ok()?;
            Some((text.to_owned(), file.encoding))
        }
        ContentShape::Bytes => {
            // The last fallback takes any bytes, but what holds NUL is no text at all.
            let is_binary = file.content.contains(&0);
            let tried = wanted
                .with_fallbacks()
                .filter(|used| *used == wanted || *used == TextEncoding::UTF_8 || !is_binary);
            tried
                .filter_map(|used| Some((used.decode(&file.content)?, used)))
                .next()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::StoreStatus;
    use crate::listing::EntryKind;
    use crate::store::{Upload, Uploaded};
    use crate::upload::Chunk;
    use sandbox::Root;

    /// Answers what it was told to, and remembers what it was asked. Bytes are written in hexadecimal, entries as names.
    #[derive(Default)]
    struct Script {
        answers: Vec<AskResult>,
        asked: Vec<AgentQuestion>,
    }

    impl Script {
        fn answering(answers: &[&str]) -> Script {
            let answers = answers.iter().rev();
            Script {
                answers: answers
                    .map(|text| AskResult::Answered((*text).to_owned()))
                    .collect(),
                asked: Vec::new(),
            }
        }
    }

    impl Agent for Script {
        fn ask(&mut self, question: &AgentQuestion) -> AskResult {
            self.asked.push(question.clone());
            self.answers.pop().unwrap_or(AskResult::Waiting)
        }

        fn bytes(&self, answer: &str) -> Result<Vec<u8>, String> {
            let pairs = answer.split(' ');
            pairs
                .map(|pair| u8::from_str_radix(pair, 16).map_err(|error| error.to_string()))
                .collect()
        }

        fn entries(&self, answer: &str) -> Result<Vec<PathInfo>, String> {
            match answer {
                "" => Err("nothing".to_owned()),
                names => Ok(names.split(' ').map(entry).collect()),
            }
        }
    }

    /// A directory where the name ends in a slash.
    fn entry(name: &str) -> PathInfo {
        let directory = name.strip_suffix('/');
        PathInfo {
            name: directory.unwrap_or(name).into(),
            kind: match directory {
                Some(_) => EntryKind::Directory,
                None => EntryKind::File,
            },
            size: None,
            mtime: None,
            children: None,
        }
    }

    fn bridge() -> FilesystemBridge {
        let directory = std::env::temp_dir();
        let root = Root::open(&directory).unwrap();
        let validator = PathValidator::new(root, &directory, &["docs"]).unwrap();
        let limits = BridgeLimits {
            cache_size: 10_000,
            cache_ttl: Some(Duration::from_secs(60)),
        };
        FilesystemBridge::new(validator, limits)
    }

    fn text(path: &str) -> FileRequest {
        FileRequest {
            path: path.to_owned(),
            shape: ContentShape::Text,
            encoding: None,
            mtime: None,
            freshness: Freshness::Cached,
        }
    }

    fn handover(path: &str, content: &str) -> IncomingFile {
        IncomingFile {
            path: path.to_owned(),
            content: content.as_bytes().to_vec(),
            shape: ContentShape::Text,
            encoding: TextEncoding::UTF_8,
            mtime: None,
            size: None,
        }
    }

    fn directory(path: &str, recursive: bool) -> DirectoryRequest<'static> {
        DirectoryRequest {
            path: path.to_owned(),
            recursive,
            filter: None,
            freshness: Freshness::Cached,
        }
    }

    fn resumed(looked_at: Now, lack: Option<Lack>) -> Resume {
        Resume {
            asked_at: looked_at.wall,
            looked_at: looked_at.wall,
            shape: ContentShape::Text,
            lack,
        }
    }

    #[track_caller]
    fn done<T: std::fmt::Debug>(outcome: Result<StepOutcome<T>>) -> T {
        match outcome {
            Ok(StepOutcome::Done(done)) => done,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn an_answer_is_cached_and_asked_for_once() {
        let (bridge, now) = (bridge(), Now::read());
        let mut agent = Script::answering(&["# Title"]);
        let read = done(bridge.read_file(&text("docs/a.md"), None, &mut agent, now));
        assert_eq!(
            (read.content, read.source),
            (Content::Text("# Title".to_owned()), ContentSource::Answer)
        );
        let again = done(bridge.read_file(&text("docs/./a.md"), None, &mut agent, now));
        assert_eq!((again.source, agent.asked.len()), (ContentSource::Cache, 1));
        let counters = bridge.cache().usage(now.steady).counters;
        assert_eq!((counters.hits, counters.misses), (1, 1));
    }

    #[test]
    fn a_path_is_judged_before_anyone_is_asked() {
        let (bridge, now) = (bridge(), Now::read());
        let mut agent = Script::answering(&["root:x:0"]);
        let refused = bridge.read_file(&text("/etc/passwd"), None, &mut agent, now);
        assert!(matches!(refused, Err(Error::Violation { .. })));
        assert!(agent.asked.is_empty());
    }

    #[test]
    fn failures_are_told_apart_and_never_cached() {
        let (bridge, now) = (bridge(), Now::read());
        let read = |answer: &str| {
            let mut agent = Script::answering(&[answer]);
            bridge
                .read_file(&text("docs/a"), None, &mut agent, now)
                .unwrap_err()
        };
        assert!(matches!(
            read("File not found: docs/a"),
            Error::NotFound { .. }
        ));
        let denied = read("Permission denied (os error 13)\nmore");
        let Error::PermissionDenied { said, .. } = denied else {
            panic!("{denied:?}")
        };
        assert_eq!(said, "Permission denied (os error 13)");
        let mut failing = Script {
            answers: vec![AskResult::Failed(Error::Timeout {
                path: "docs/a".to_owned(),
                seconds: 1,
            })],
            asked: Vec::new(),
        };
        assert!(
            bridge
                .read_file(&text("docs/a"), None, &mut failing, now)
                .is_err()
        );
        assert_eq!(bridge.cache().usage(now.steady).entries, 0);
    }

    #[test]
    fn what_is_no_text_over_there_is_asked_for_as_bytes() {
        let (bridge, now) = (bridge(), Now::read());
        let request = FileRequest {
            encoding: Some(TextEncoding::named("shift_jis").unwrap()),
            ..text("docs/a")
        };
        let mut agent = Script::answering(&["Encoding error: byte 0xff", "ff 41"]);
        let read = done(bridge.read_file(&request, None, &mut agent, now));
        assert_eq!(read.content, Content::Text("ÿA".to_owned()));
        assert!(matches!(read.warnings[..], [Warning::Fallback { .. }]));
        let shapes: Vec<Subject> = agent.asked.into_iter().map(|asked| asked.subject).collect();
        let encoding = TextEncoding::named("shift_jis").unwrap();
        let subject = |shape| Subject::File { shape, encoding };
        assert_eq!(
            shapes,
            [subject(ContentShape::Text), subject(ContentShape::Bytes)]
        );
    }

    #[test]
    fn bytes_are_kept_as_they_are_and_read_as_text_where_they_are_text() {
        let (bridge, now) = (bridge(), Now::read());
        let request = FileRequest {
            shape: ContentShape::Bytes,
            ..text("docs/a")
        };
        let mut agent = Script::answering(&["e3 83 86"]);
        let read = done(bridge.read_file(&request, None, &mut agent, now));
        assert_eq!(read.content, Content::Bytes(vec![0xe3, 0x83, 0x86]));
        let as_text = done(bridge.read_file(&text("docs/a"), None, &mut agent, now));
        assert_eq!(as_text.content, Content::Text("テ".to_owned()));
        let mut agent = Script::answering(&["00 ff"]);
        let request = FileRequest {
            path: "docs/b".to_owned(),
            ..request
        };
        done(bridge.read_file(&request, None, &mut agent, now));
        let binary = bridge.read_file(&text("docs/b"), None, &mut agent, now);
        assert!(
            matches!(binary, Err(Error::BadContent { .. })),
            "{binary:?}"
        );
    }

    #[test]
    fn newer_files_and_refreshes_are_asked_for_again() {
        let (bridge, now) = (bridge(), Now::read());
        let file = IncomingFile {
            mtime: Some(10.0),
            ..handover("docs/a", "old")
        };
        bridge.store(vec![file], now).unwrap();
        let mut agent = Script::answering(&["new", "newest"]);
        let newer = FileRequest {
            mtime: Some(11.0),
            ..text("docs/a")
        };
        let read = done(bridge.read_file(&newer, None, &mut agent, now));
        assert_eq!(read.content, Content::Text("new".to_owned()));
        assert_eq!(bridge.cache().usage(now.steady).counters.invalidations, 1);
        let refresh = FileRequest {
            freshness: Freshness::Refresh,
            ..text("docs/a")
        };
        let read = done(bridge.read_file(&refresh, None, &mut agent, now));
        assert_eq!(read.content, Content::Text("newest".to_owned()));
        // An answer that does not come leaves what was held.
        let waiting = bridge.read_file(&refresh, None, &mut agent, now).unwrap();
        assert!(matches!(waiting, StepOutcome::Waiting(_)));
        let held = done(bridge.read_file(&text("docs/a"), None, &mut agent, now));
        assert_eq!(held.content, Content::Text("newest".to_owned()));
    }

    #[test]
    fn what_is_handed_over_while_asked_is_the_answer() {
        let (bridge, now) = (bridge(), Now::read());
        let mut agent = Script::default();
        let request = FileRequest {
            freshness: Freshness::Refresh,
            ..text("docs/a")
        };
        let Ok(StepOutcome::Waiting(question)) = bridge.read_file(&request, None, &mut agent, now)
        else {
            panic!("nobody answered")
        };
        assert!(!bridge.has_arrived(&question, now.wall, now));
        bridge
            .store(vec![handover("docs/a", "handed")], now.later(1))
            .unwrap();
        assert!(bridge.has_arrived(&question, now.wall, now.later(1)));
        let resume = resumed(now, None);
        let mut agent = Script::answering(&["I have cached it."]);
        let read = done(bridge.read_file(&request, Some(resume), &mut agent, now.later(2)));
        assert_eq!(
            (read.content, read.source),
            (Content::Text("handed".to_owned()), ContentSource::Handover)
        );
        assert_eq!(bridge.cache().usage(now.steady).counters.misses, 1);
    }

    #[test]
    fn a_handover_that_lacks_something_is_asked_for_once_more_and_no_more() {
        let (bridge, start) = (bridge(), Now::read());
        let (mut agent, request) = (Script::default(), directory("docs", true));
        let flat = || vec![entry("inner/")];
        let step =
            |resume, agent: &mut Script, now| bridge.list_directory(&request, resume, agent, now);
        assert!(matches!(
            step(None, &mut agent, start),
            Ok(StepOutcome::Waiting(_))
        ));
        bridge
            .store_listing("docs", flat(), None, start.later(1))
            .unwrap();
        let first = Some(resumed(start, None));
        let again = step(first, &mut agent, start.later(2));
        let Ok(StepOutcome::Waiting(question)) = again else {
            panic!("{again:?}")
        };
        assert_eq!(question.lack, Some(Lack::Children));
        // Whatever the second question comes to, there is something to show.
        let second = Some(Resume {
            looked_at: start.later(2).wall,
            ..resumed(start, question.lack)
        });
        let timeout = AskResult::Failed(Error::Timeout {
            path: "docs".to_owned(),
            seconds: 1,
        });
        for answer in [timeout, AskResult::Answered(String::new())] {
            let mut agent = Script {
                answers: vec![answer],
                asked: Vec::new(),
            };
            let read = done(step(second, &mut agent, start.later(3)));
            assert_eq!(
                (read.source, read.warnings),
                (ContentSource::Handover, vec![Warning::Shallow])
            );
        }
        bridge
            .store_listing("docs", flat(), None, start.later(4))
            .unwrap();
        let read = done(step(second, &mut agent, start.later(5)));
        assert_eq!(read.warnings, [Warning::Shallow]);
        assert_eq!(agent.asked.len(), 1);
    }

    #[test]
    fn a_batch_with_one_bad_path_stores_nothing() {
        let (bridge, now) = (bridge(), Now::read());
        let batch = vec![handover("docs/a", "1"), handover("../b", "2")];
        assert!(bridge.store(batch, now).is_err());
        assert_eq!(bridge.cache().usage(now.steady).entries, 0);
        let batch = vec![handover("docs/a", "1"), handover("docs/a", "22")];
        let stored = bridge.store(batch, now).unwrap();
        let statuses: Vec<StoreStatus> = stored.files.iter().map(|file| file.status).collect();
        assert_eq!(statuses, [StoreStatus::Cached, StoreStatus::Updated]);
        assert_eq!(bridge.cache().usage(now.steady).bytes, 2);
    }

    #[test]
    fn an_upload_with_a_wrong_hash_is_not_stored() {
        let (bridge, now) = (bridge(), Now::read());
        let piece = |index, bytes: &[u8], content_hash: Option<&str>| Upload {
            file: handover("docs/a", ""),
            chunk: Some(Chunk {
                index,
                count: 2,
                bytes: bytes.to_vec(),
                hash: None,
                content_hash: None,
            }),
            content_hash: content_hash.map(str::to_owned),
        };
        let first = bridge.upload("", piece(1, b"B", None), now).unwrap();
        let Uploaded::Partial { warnings, .. } = first else {
            panic!("{first:?}")
        };
        assert_eq!(warnings, [Warning::Unchecked { chunk: 1 }]);
        let failed = bridge.upload("", piece(0, b"A", Some("00")), now);
        assert!(matches!(
            failed,
            Err(Error::HashDiffers { chunk: None, .. })
        ));
        assert_eq!(bridge.cache().usage(now.steady).entries, 0);
        // The hash of the whole may come with any chunk.
        bridge.upload("", piece(0, b"A", Some("00")), now).unwrap();
        let failed = bridge.upload("", piece(1, b"B", None), now);
        assert!(matches!(
            failed,
            Err(Error::HashDiffers { chunk: None, .. })
        ));
        assert_eq!(bridge.cache().usage(now.steady).entries, 0);
    }

    #[test]
    fn a_listing_serves_the_directories_below_it() {
        let (bridge, now) = (bridge(), Now::read());
        let inner = PathInfo {
            children: Some(vec![entry("deep.md")]),
            ..entry("inner/")
        };
        bridge
            .store_listing("docs", vec![inner, entry("a.md")], None, now)
            .unwrap();
        let mut agent = Script::default();
        let top = done(bridge.list_directory(&directory("docs", false), None, &mut agent, now));
        assert_eq!(top.entries, [entry("a.md"), entry("inner/")]);
        let below = directory("docs/inner", true);
        let below = done(bridge.list_directory(&below, None, &mut agent, now));
        assert_eq!(below.entries, [entry("deep.md")]);
        assert!(agent.asked.is_empty());
        let other = bridge.list_directory(&directory("docs/other", false), None, &mut agent, now);
        assert!(matches!(other, Ok(StepOutcome::Waiting(_))));
    }

    #[test]
    fn a_listing_that_is_not_deep_or_filtered_otherwise_will_not_do() {
        let (bridge, now) = (bridge(), Now::read());
        bridge
            .store_listing("docs", vec![entry("inner/")], None, now)
            .unwrap();
        let mut agent = Script::default();
        let deep = bridge.list_directory(&directory("docs", true), None, &mut agent, now);
        assert!(matches!(deep, Ok(StepOutcome::Waiting(_))));
        let is_md = |name: &str, _: &str| name.ends_with(".md");
        let filter: Option<(&str, Accepts<'_>)> = Some(("*.md", &is_md));
        let entries = vec![entry("a.md"), entry("a.rs")];
        let stored = bridge.store_listing("docs", entries, filter, now).unwrap();
        assert_eq!(
            stored.warnings,
            [Warning::LeftOut {
                files: 1,
                pattern: "*.md".to_owned()
            }]
        );
        let all = bridge.list_directory(&directory("docs", false), None, &mut agent, now);
        assert!(matches!(all, Ok(StepOutcome::Waiting(_))));
        let some = DirectoryRequest {
            filter,
            ..directory("docs", false)
        };
        let some = done(bridge.list_directory(&some, None, &mut agent, now));
        assert_eq!(some.entries, [entry("a.md")]);
    }

    #[test]
    fn a_listing_with_newer_times_invalidates_content() {
        let (bridge, now) = (bridge(), Now::read());
        for path in ["docs/a", "docs/b"] {
            let file = IncomingFile {
                mtime: Some(10.0),
                ..handover(path, "old")
            };
            bridge.store(vec![file], now).unwrap();
        }
        let changed = |name, mtime| PathInfo {
            mtime: Some(mtime),
            ..entry(name)
        };
        let entries = vec![changed("a", 10.0), changed("b", 11.0)];
        let stored = bridge.store_listing("docs", entries, None, now).unwrap();
        assert_eq!(stored.invalidated, ["docs/b"]);
    }

    #[test]
    fn listings_are_judged_name_by_name() {
        let (bridge, now) = (bridge(), Now::read());
        let store = |entries| {
            bridge
                .store_listing("docs", entries, None, now)
                .unwrap_err()
        };
        assert!(matches!(
            store(vec![entry("../x")]),
            Error::Violation { .. }
        ));
        assert!(matches!(
            store(vec![entry("a"), entry("a")]),
            Error::BadListing { .. }
        ));
        let odd = PathInfo {
            children: Some(Vec::new()),
            ..entry("a")
        };
        assert!(matches!(store(vec![odd]), Error::BadListing { .. }));
    }
}
