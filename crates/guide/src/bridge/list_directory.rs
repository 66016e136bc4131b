//! Listing a directory: from a cached listing of it or of a directory above it, or by asking the agent.

use super::attempt::Attempt;
use super::{ClientBridge, Freshness, Warning};
use crate::agent::{
    Agent, AgentQuestion, AskResult, ContentSource, Lack, Resume, StepOutcome, Subject,
};
use crate::cache::{CacheKind, CachedValue, Verdict};
use crate::error::{Error, Result};
use crate::file::ToldBy;
use crate::listing::{self, Accepts, DirectoryListing, PathInfo};
use crate::project_path::ProjectPath;
use crate::time::Now;

/// A request for a directory.
#[derive(Clone)]
pub struct DirectoryRequest<'call> {
    /// The path as the client gave it.
    pub path: String,
    /// Whether everything below the directory is wanted too.
    pub recursive: bool,
    /// The pattern that files have to match, and a function that applies it to a name and a path relative to the directory.
    pub filter: Option<(&'call str, Accepts<'call>)>,
    /// Whether a cached copy is good enough.
    pub freshness: Freshness,
}

/// A directory that was read.
#[derive(Debug, Clone, PartialEq)]
pub struct DirectoryRead {
    /// Its path.
    pub path: ProjectPath,
    /// Its entries.
    pub entries: Vec<PathInfo>,
    /// The number of files at every depth.
    pub files: u64,
    /// The number of directories at every depth.
    pub directories: u64,
    /// When the agent listed it, in seconds since the epoch.
    pub stored_at: f64,
    /// Where it came from.
    pub source: ContentSource,
    /// What is unusual about it.
    pub warnings: Vec<Warning>,
}

impl ClientBridge {
    /// Lists a directory from the cache, or asks for it. Drops the cached listings that show it if the agent has no such
    /// directory any more.
    pub fn list_directory(
        &self,
        request: &DirectoryRequest<'_>,
        resume: Option<Resume>,
        agent: &mut dyn Agent,
        now: Now,
    ) -> Result<StepOutcome<DirectoryRead>> {
        let path = self.parts.validator.validate(&request.path)?;
        let attempt = Attempt {
            bridge: self,
            path: &path,
            resume,
            now,
        };
        request.run(&attempt, agent).map_err(|error| {
            if matches!(error, Error::NotFound { .. }) {
                forget_directory(&attempt);
            }
            self.with_directory_above(error, &path)
        })
    }
}

impl DirectoryRequest<'_> {
    fn run(
        &self,
        attempt: &Attempt<'_>,
        agent: &mut dyn Agent,
    ) -> Result<StepOutcome<DirectoryRead>> {
        if let Some(read) = self.held(attempt) {
            return Ok(StepOutcome::Done(read));
        }
        attempt.count_miss();
        let question = self.question(attempt.path);
        if let Some(CachedValue::Listing(listing)) = attempt.handed_over(CacheKind::Listing) {
            let asked = attempt.ask_again(question, self.lack(&listing));
            return asked.or_else(|error| self.incomplete(attempt, &listing, error));
        }
        match agent.ask(&question) {
            AskResult::Waiting => Ok(StepOutcome::Waiting(question)),
            AskResult::Failed(error) => self.old_copy(attempt, error),
            AskResult::NotText => Err(Error::AgentFailed {
                path: attempt.path.to_string(),
                said: "it is not a directory".to_owned(),
            }),
            AskResult::Answered(told) => self.keep(attempt, &told.content, agent),
        }
    }

    /// Reads a cached listing of the directory itself, or one of a directory above that reaches down to it.
    fn held(&self, attempt: &Attempt<'_>) -> Option<DirectoryRead> {
        self.found(attempt, |listing| {
            attempt.is_fresh(self.freshness, None, listing.stored_at)
        })
    }

    fn found(
        &self,
        attempt: &Attempt<'_>,
        is_fresh: impl Fn(&DirectoryListing) -> bool,
    ) -> Option<DirectoryRead> {
        ancestors(attempt.path.as_str()).find_map(|(directory, below)| {
            let judge = |value: &CachedValue| self.judge(value, below, &is_fresh);
            let held = attempt.find(CacheKind::Listing, directory, judge);
            let Some(CachedValue::Listing(listing)) = held else {
                return None;
            };
            let source = attempt.source(listing.stored_at, listing.told_by);
            let entries = entries_below(&listing, below)?;
            Some(self.read(attempt.path, entries, &listing, source))
        })
    }

    /// Falls back to a cached listing that should have been asked for again, if there is nobody to ask.
    fn old_copy(&self, attempt: &Attempt<'_>, error: Error) -> Result<StepOutcome<DirectoryRead>> {
        let is_wanted = self.freshness == Freshness::Cached;
        if matches!(error, Error::Unsupported { .. })
            && is_wanted
            && let Some(mut read) = self.found(attempt, |_| true)
        {
            let warning = attempt.not_rechecked(&error, read.stored_at);
            read.warnings.extend(warning);
            return Ok(StepOutcome::Done(read));
        }
        self.first_hand_over(attempt, attempt.explained(error))
    }

    /// Stores an answer and reads it in the form that was asked for.
    fn keep(
        &self,
        attempt: &Attempt<'_>,
        answer: &str,
        agent: &dyn Agent,
    ) -> Result<StepOutcome<DirectoryRead>> {
        let path = attempt.path;
        let entries = match agent.entries(answer) {
            Ok(entries) => entries,
            Err(reason) => {
                let path = path.to_string();
                return self.first_hand_over(attempt, Error::BadListing { path, reason });
            }
        };
        let (bridge, told_by) = (attempt.bridge, ToldBy::Answer);
        let stored =
            bridge.store_told_listing(path.as_str(), entries, self.filter, told_by, attempt.now)?;
        let listing = &stored.listing;
        let mut read = self.read(path, &listing.entries, listing, ContentSource::Answer);
        read.warnings = stored.warnings;
        let is_shallow = self.recursive && !listing.is_deep();
        read.warnings.extend(is_shallow.then_some(Warning::Shallow));
        Ok(StepOutcome::Done(read))
    }

    /// Falls back to what was handed over for the first question when the second one failed.
    fn first_hand_over(
        &self,
        attempt: &Attempt<'_>,
        error: Error,
    ) -> Result<StepOutcome<DirectoryRead>> {
        match attempt.handed_over_first(CacheKind::Listing) {
            Some(CachedValue::Listing(listing)) => self.incomplete(attempt, &listing, error),
            _ => Err(error),
        }
    }

    /// Accepts a listing that does not reach the lowest directories, because the reader can see where it stops. A
    /// listing that lacks files would look complete, so it fails.
    fn incomplete(
        &self,
        attempt: &Attempt<'_>,
        listing: &DirectoryListing,
        error: Error,
    ) -> Result<StepOutcome<DirectoryRead>> {
        if !self.has_all_files(listing) {
            return Err(error);
        }
        let source = ContentSource::Handover;
        let mut read = self.read(attempt.path, &listing.entries, listing, source);
        read.warnings.push(Warning::Shallow);
        Ok(StepOutcome::Done(read))
    }

    fn question(&self, path: &ProjectPath) -> AgentQuestion {
        AgentQuestion {
            path: path.clone(),
            subject: Subject::Directory {
                recursive: self.recursive,
                pattern: self.filter.map(|(pattern, _)| pattern.to_owned()),
            },
            lack: None,
            size: None,
        }
    }

    /// Names what is wrong with a listing that was handed over for this request but is not good enough.
    fn lack(&self, listing: &DirectoryListing) -> Lack {
        if self.has_all_files(listing) {
            Lack::Children
        } else {
            Lack::Files
        }
    }

    fn has_all_files(&self, listing: &DirectoryListing) -> bool {
        let wanted = self.filter.map(|(pattern, _)| pattern);
        listing.pattern.is_none() || listing.pattern.as_deref() == wanted
    }

    /// Checks a listing of the directory, or of one above it; `below` leads down from there.
    fn judge(
        &self,
        value: &CachedValue,
        below: &str,
        is_fresh: impl Fn(&DirectoryListing) -> bool,
    ) -> Verdict {
        let CachedValue::Listing(listing) = value else {
            return Verdict::Unfit;
        };
        let has_all =
            listing.pattern.is_none() || (below.is_empty() && self.has_all_files(listing));
        let is_deep = !self.recursive || listing.is_deep();
        if is_fresh(listing) && has_all && is_deep && entries_below(listing, below).is_some() {
            Verdict::Fresh
        } else {
            Verdict::Unfit
        }
    }

    /// Gives entries of a listing the form that was asked for.
    fn read(
        &self,
        path: &ProjectPath,
        entries: &[PathInfo],
        listing: &DirectoryListing,
        source: ContentSource,
    ) -> DirectoryRead {
        let mut entries = entries.to_vec();
        if let Some((_, accepts)) = self.filter {
            listing::filter(&mut entries, accepts);
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
            source,
            warnings: Vec::new(),
        }
    }
}

/// Drops every listing that shows the directory.
fn forget_directory(attempt: &Attempt<'_>) {
    for (directory, below) in ancestors(attempt.path.as_str()) {
        let judge = |value: &CachedValue| match value {
            CachedValue::Listing(listing) if entries_below(listing, below).is_some() => {
                Verdict::Stale
            }
            _ => Verdict::Unfit,
        };
        attempt.find(CacheKind::Listing, directory, judge);
    }
}

/// Iterates over a directory and those above it, each with the path that leads down from there.
pub(super) fn ancestors(path: &str) -> impl Iterator<Item = (&str, &str)> {
    let directories = std::iter::successors(Some(path), |directory| {
        let (parent, _) = directory.rsplit_once('/')?;
        Some(parent)
    });
    directories.map(move |directory| {
        let below = path.strip_prefix(directory).unwrap_or_default();
        (directory, below.trim_start_matches('/'))
    })
}

fn entries_below<'a>(listing: &'a DirectoryListing, below: &str) -> Option<&'a [PathInfo]> {
    match below {
        "" => Some(&listing.entries),
        below => listing.below(below),
    }
}
