//! Storing what agents hand over: files, chunks of files, listings.

use std::sync::Arc;
use std::time::Duration;

use super::{ClientBridge, staleness};
use crate::cache::{CachedValue, DoesNotFit, Evicted, PutOutcome, StoreStatus};
use crate::encoding::TextEncoding;
use crate::error::{Error, Result};
use crate::file::{AgentFile, ContentHash, ContentShape, ToldBy, encoded};
use crate::listing::{self, Accepts, DirectoryListing, PathInfo};
use crate::project_path::ProjectPath;
use crate::time::Now;
use crate::upload::{Chunk, UploadProgress, check_hash};

/// A file as an agent hands it over.
#[derive(Debug, Clone, PartialEq)]
pub struct IncomingFile {
    /// The path as the agent gave it.
    pub path: String,
    /// The content; UTF-8 if it is text.
    pub content: Vec<u8>,
    /// Whether the content is text or bytes.
    pub shape: ContentShape,
    /// The encoding of the agent's file.
    pub encoding: TextEncoding,
    /// When the agent's file was last changed, in seconds since the epoch.
    pub mtime: Option<f64>,
    /// The size of the agent's file.
    pub size: Option<u64>,
}

/// A file that was stored.
#[derive(Debug, Clone, PartialEq)]
pub struct Stored {
    /// Its path, which is its key.
    pub path: ProjectPath,
    /// Whether it is new or replaced another.
    pub status: StoreStatus,
    /// The hash of its content.
    pub hash: ContentHash,
    /// The file itself.
    pub file: Arc<AgentFile>,
}

/// Files that were stored together.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredFiles {
    /// Each file, in order.
    pub files: Vec<Stored>,
    /// What was evicted to make room.
    pub evicted: Evicted,
    /// What is unusual about them.
    pub warnings: Vec<Warning>,
}

/// A file, or a chunk of one, with the hashes that it should have.
#[derive(Debug, Clone, PartialEq)]
pub struct Upload {
    /// The file. Its `content` is empty if there is a chunk.
    pub file: IncomingFile,
    /// The chunk, if the file does not come whole.
    pub chunk: Option<Chunk>,
    /// The hash that the whole content should have.
    pub content_hash: Option<String>,
}

/// The result of an upload.
#[derive(Debug, Clone, PartialEq)]
pub enum Uploaded {
    /// Some chunks have not come yet.
    Partial {
        /// The file's path.
        path: ProjectPath,
        /// The number of chunks that have come.
        received: u32,
        /// The first chunks that have not come.
        missing: Vec<u32>,
        /// The number of chunks of the file.
        count: u32,
        /// What is unusual about it.
        warnings: Vec<Warning>,
    },
    /// The whole file has come and is stored.
    Whole {
        /// What was stored.
        stored: StoredFiles,
        /// Whether it was compared with the hash of the whole.
        is_verified: bool,
    },
}

/// A listing that was stored.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredListing {
    /// The directory.
    pub path: ProjectPath,
    /// The listing itself.
    pub listing: Arc<DirectoryListing>,
    /// Whether it is new or replaced another.
    pub status: StoreStatus,
    /// The number of files in it, at every depth.
    pub files: u64,
    /// The number of directories in it, at every depth.
    pub directories: u64,
    /// Files whose cached content is not what the listing says, and was removed.
    pub invalidated: Vec<String>,
    /// What was evicted to make room.
    pub evicted: Evicted,
    /// What is unusual about it.
    pub warnings: Vec<Warning>,
}

/// What is unusual about a success.
#[derive(Debug, Clone, PartialEq)]
pub enum Warning {
    /// The content has another size than the agent said.
    SizeDiffers {
        /// The file.
        path: String,
        /// The size that the agent said.
        told: u64,
        /// The size of the content.
        found: u64,
    },
    /// A chunk came without a hash.
    Unchecked {
        /// Its index.
        chunk: u32,
    },
    /// Earlier chunks were dropped, because the number of chunks changed.
    Restarted,
    /// Earlier chunks were dropped, because the next one came too late.
    Expired,
    /// Some files do not match the pattern and were left out.
    LeftOut {
        /// The number of files.
        files: u64,
        /// The pattern.
        pattern: String,
    },
    /// The request was recursive, but some directories came without their entries.
    Shallow,
    /// The whole answer is one code fence, which may not be in the file.
    Fenced,
    /// The content is not in the encoding that was asked for, and was read with another.
    Fallback {
        /// The encoding that was asked for.
        wanted: TextEncoding,
        /// The encoding that it was read with.
        used: TextEncoding,
    },
    /// Entries were evicted to make room.
    Evicted(Evicted),
    /// The text cannot be turned back into the file's bytes, so its size and hash are those of the text in UTF-8.
    BytesUnknown {
        /// The file.
        path: String,
        /// The encoding of the file.
        encoding: TextEncoding,
    },
    /// The agent should have been asked again, but there is nobody to ask.
    NotRechecked {
        /// How old the copy is.
        age: Duration,
    },
}

impl ClientBridge {
    /// Stores files, all or none. Every path is checked before anything is stored.
    pub fn store(&self, files: Vec<IncomingFile>, now: Now) -> Result<StoredFiles> {
        self.store_told(files, ToldBy::Tool, now)
    }

    /// Stores files that came in an answer or by a tool.
    pub(super) fn store_told(
        &self,
        files: Vec<IncomingFile>,
        told_by: ToldBy,
        now: Now,
    ) -> Result<StoredFiles> {
        let validator = &self.parts.validator;
        let checked = files
            .into_iter()
            .map(|file| Ok((validator.validate_file(&file.path)?, file)));
        let checked = checked.collect::<Result<Vec<_>>>()?;
        self.store_checked(checked, told_by, now)
    }

    fn store_checked(
        &self,
        files: Vec<(ProjectPath, IncomingFile)>,
        told_by: ToldBy,
        now: Now,
    ) -> Result<StoredFiles> {
        let other_sizes = files
            .iter()
            .filter_map(|(path, file)| size_differs(path, file));
        let mut warnings: Vec<Warning> = other_sizes.collect();
        let files: Vec<(ProjectPath, Arc<AgentFile>)> = files
            .into_iter()
            .map(|(path, file)| (path, Arc::new(file.into_file(told_by, now))))
            .collect();
        let unknown = files.iter();
        warnings.extend(unknown.filter_map(|(path, file)| bytes_unknown(path, file)));
        let PutOutcome { statuses, evicted } = self.put_files(&files, now)?;
        warnings.extend(eviction(evicted));
        Ok(StoredFiles {
            files: files
                .into_iter()
                .zip(statuses)
                .map(|((path, file), status)| Stored {
                    path,
                    status,
                    hash: file.hash(),
                    file,
                })
                .collect(),
            evicted,
            warnings,
        })
    }

    fn put_files(&self, files: &[(ProjectPath, Arc<AgentFile>)], now: Now) -> Result<PutOutcome> {
        let entries = files
            .iter()
            .map(|(path, file)| (path.clone(), CachedValue::File(Arc::clone(file))));
        let (cache, entries) = (&self.parts.cache, entries.collect());
        let put = cache.put(&self.owner, entries, now.steady);
        put.map_err(|excess| {
            let largest = files.iter().max_by_key(|(_, file)| file.held_bytes());
            too_large(largest.map(|(path, _)| path), excess)
        })
    }

    /// Stores a file that comes whole or in chunks.
    pub fn upload(&self, upload: Upload, now: Now) -> Result<Uploaded> {
        let path = self.parts.validator.validate_file(&upload.file.path)?;
        let Upload {
            mut file,
            chunk,
            mut content_hash,
        } = upload;
        let mut warnings = Vec::new();
        if let Some(mut chunk) = chunk {
            chunk.content_hash = content_hash;
            let count = chunk.count;
            warnings.extend(unchecked(&chunk));
            check_chunk(&path, &chunk, &file)?;
            let uploads = &self.parts.uploads;
            let mut progress = uploads.add(&self.owner, &path, chunk, now.steady)?;
            warnings.extend(progress.restarted.then_some(Warning::Restarted));
            let Some(whole) = progress.whole.take() else {
                return Ok(partial(path, progress, count, warnings));
            };
            (file.content, content_hash) = whole;
        }
        let bytes = encoded(&file.content, file.shape, file.encoding);
        let bytes = bytes.unwrap_or((&file.content).into());
        check_hash(&path, None, &bytes, content_hash.as_deref())?;
        let mut stored = self.store_checked(vec![(path, file)], ToldBy::Tool, now)?;
        stored.warnings.splice(0..0, warnings);
        Ok(Uploaded::Whole {
            stored,
            is_verified: content_hash.is_some(),
        })
    }

    /// Stores a directory's entries after checking every path in it. Removes what it shows to be out of date.
    pub fn store_listing(
        &self,
        path: &str,
        entries: Vec<PathInfo>,
        filter: Option<(&str, Accepts<'_>)>,
        now: Now,
    ) -> Result<StoredListing> {
        self.store_told_listing(path, entries, filter, ToldBy::Tool, now)
    }

    /// Stores a directory's entries that came in an answer or by a tool.
    pub(super) fn store_told_listing(
        &self,
        path: &str,
        entries: Vec<PathInfo>,
        filter: Option<(&str, Accepts<'_>)>,
        told_by: ToldBy,
        now: Now,
    ) -> Result<StoredListing> {
        let validator = &self.parts.validator;
        let path = validator.validate(path)?;
        let mut entries = listing::checked(validator, &path, entries)?;
        let mut warnings = Vec::new();
        if let Some((pattern, accepts)) = filter {
            let files = listing::filter(&mut entries, accepts);
            let pattern = pattern.to_owned();
            warnings.extend((files > 0).then_some(Warning::LeftOut { files, pattern }));
        }
        let (files, directories) = listing::count(&entries);
        let listing = Arc::new(DirectoryListing {
            entries,
            pattern: filter.map(|(pattern, _)| pattern.into()),
            stored_at: now.wall,
            told_by,
        });
        let entry = (path.clone(), CachedValue::Listing(Arc::clone(&listing)));
        let cache = &self.parts.cache;
        let put = cache.put(&self.owner, vec![entry], now.steady);
        let put = put.map_err(|excess| too_large(Some(&path), excess))?;
        warnings.extend(eviction(put.evicted));
        let accepts = filter.map(|(_, accepts)| accepts);
        let is_stale = |held: &str, value: &CachedValue| {
            staleness::is_stale(held, value, path.as_str(), &listing, accepts)
        };
        Ok(StoredListing {
            invalidated: cache.invalidate_all(&self.owner, now.steady, is_stale),
            path,
            listing,
            status: put.statuses.first().copied().unwrap_or(StoreStatus::Cached),
            files,
            directories,
            evicted: put.evicted,
            warnings,
        })
    }
}

impl IncomingFile {
    fn into_file(self, told_by: ToldBy, now: Now) -> AgentFile {
        AgentFile {
            content: self.content.into(),
            shape: self.shape,
            encoding: self.encoding,
            mtime: self.mtime,
            stored_at: now.wall,
            told_by,
        }
    }
}

fn partial(
    path: ProjectPath,
    progress: UploadProgress,
    count: u32,
    mut warnings: Vec<Warning>,
) -> Uploaded {
    warnings.extend(progress.expired.then_some(Warning::Expired));
    Uploaded::Partial {
        path,
        received: progress.received,
        missing: progress.missing,
        count,
        warnings,
    }
}

fn unchecked(chunk: &Chunk) -> Option<Warning> {
    let has_hash = chunk.hash.is_some() || chunk.content_hash.is_some();
    (!has_hash).then_some(Warning::Unchecked { chunk: chunk.index })
}

/// Compares a chunk with its hash: of the bytes in the agent's file or, for text, of the text as it came.
fn check_chunk(path: &ProjectPath, chunk: &Chunk, file: &IncomingFile) -> Result<()> {
    let Some(bytes) = encoded(&chunk.bytes, file.shape, file.encoding) else {
        return check_hash(path, Some(chunk.index), &chunk.bytes, chunk.hash.as_deref());
    };
    let as_bytes = check_hash(path, Some(chunk.index), &bytes, chunk.hash.as_deref());
    as_bytes.or_else(|_| check_hash(path, Some(chunk.index), &chunk.bytes, chunk.hash.as_deref()))
}

/// Compares the size that the agent told with that of the bytes, if they are known.
fn size_differs(path: &ProjectPath, file: &IncomingFile) -> Option<Warning> {
    let bytes = encoded(&file.content, file.shape, file.encoding)?;
    let (told, found) = (file.size?, bytes.len() as u64);
    (told != found).then(|| Warning::SizeDiffers {
        path: path.to_string(),
        told,
        found,
    })
}

/// Returns the warning for text that cannot be turned back into the file's bytes.
pub(super) fn bytes_unknown(path: &ProjectPath, file: &AgentFile) -> Option<Warning> {
    file.bytes().is_none().then(|| Warning::BytesUnknown {
        path: path.to_string(),
        encoding: file.encoding,
    })
}

fn eviction(evicted: Evicted) -> Option<Warning> {
    (evicted.entries > 0).then_some(Warning::Evicted(evicted))
}

fn too_large(path: Option<&ProjectPath>, excess: DoesNotFit) -> Error {
    Error::TooLarge {
        path: path.map_or_else(String::new, ProjectPath::to_string),
        size: excess.size,
        limit: excess.limit,
    }
}
