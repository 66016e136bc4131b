//! What agents hand over of their own accord: files, pieces of files, listings.

use std::sync::Arc;

use crate::bridge::FilesystemBridge;
use crate::cache::{CachedValue, DoesNotFit, Evicted, StoreStatus};
use crate::encoding::TextEncoding;
use crate::error::{Error, Result};
use crate::file::{AgentFile, ContentHash, ContentShape};
use crate::listing::{self, Accepts, DirectoryListing, PathInfo};
use crate::policy::ProjectPath;
use crate::time::Now;
use crate::upload::{Chunk, check_hash};

/// A file as an agent hands it over.
#[derive(Debug, Clone, PartialEq)]
pub struct IncomingFile {
    /// The path as the agent gave it.
    pub path: String,
    /// The content: UTF-8 where it is text.
    pub content: Vec<u8>,
    /// Text or bytes.
    pub shape: ContentShape,
    /// The encoding of the agent's file.
    pub encoding: TextEncoding,
    /// When the agent's file was changed.
    pub mtime: Option<f64>,
    /// The size of the agent's file.
    pub size: Option<u64>,
}

/// A file that was stored.
#[derive(Debug, Clone, PartialEq)]
pub struct Stored {
    /// Its path, which is its key.
    pub path: ProjectPath,
    /// New or replaced.
    pub status: StoreStatus,
    /// The hash of its content.
    pub hash: ContentHash,
    /// The file itself.
    pub file: Arc<AgentFile>,
}

/// Files that were stored together.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredFiles {
    /// Each of them, in order.
    pub files: Vec<Stored>,
    /// What had to go for them.
    pub evicted: Evicted,
    /// What is odd about them.
    pub warnings: Vec<Warning>,
}

/// A file, or a piece of one, with the hashes it should have.
#[derive(Debug, Clone, PartialEq)]
pub struct Upload {
    /// The file; of a piece, its `content` is empty.
    pub file: IncomingFile,
    /// The piece, where it is one.
    pub chunk: Option<Chunk>,
    /// The hash the whole content should have.
    pub content_hash: Option<String>,
}

/// What became of an upload.
#[derive(Debug, Clone, PartialEq)]
pub enum Uploaded {
    /// Pieces are missing.
    Partial {
        /// The file's path.
        path: ProjectPath,
        /// How many pieces came.
        received: u32,
        /// The first of those that have not come.
        missing: Vec<u32>,
        /// How many there are.
        count: u32,
        /// What is odd about it.
        warnings: Vec<Warning>,
    },
    /// All of it came and is stored.
    Whole {
        /// What was stored.
        stored: StoredFiles,
        /// It was compared with the hash of the whole.
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
    /// New or replaced.
    pub status: StoreStatus,
    /// Files in it, at every depth.
    pub files: u64,
    /// Directories in it, at every depth.
    pub directories: u64,
    /// Files whose cached content is older than the listing says, and went.
    pub invalidated: Vec<String>,
    /// What had to go to make room.
    pub evicted: Evicted,
    /// What is odd about it.
    pub warnings: Vec<Warning>,
}

/// What is odd about a success.
#[derive(Debug, Clone, PartialEq)]
pub enum Warning {
    /// The agent told another size than the content has.
    SizeDiffers {
        /// The file.
        path: String,
        /// The size that was told.
        told: u64,
        /// The size of the content.
        found: u64,
    },
    /// A piece came without a hash.
    Unchecked {
        /// Its number.
        chunk: u32,
    },
    /// Pieces that came before were thrown away, because the number of pieces changed.
    Restarted,
    /// Pieces that came before were thrown away, because the next one took too long to come.
    Expired,
    /// Files do not match the pattern and were left out.
    LeftOut {
        /// How many.
        files: u64,
        /// The pattern.
        pattern: String,
    },
    /// Everything below was asked for, but some directories came without their entries.
    Shallow,
    /// The whole answer is one code fence, which may not be in the file.
    Fenced,
    /// The content is not in the encoding that was asked for, and was read with another.
    Fallback {
        /// What was asked for.
        wanted: TextEncoding,
        /// What it was read with.
        used: TextEncoding,
    },
    /// Something had to go to make room.
    Evicted(Evicted),
}

impl FilesystemBridge {
    /// Stores files, all or none: every path is judged before anything is stored.
    pub fn store(&self, files: Vec<IncomingFile>, now: Now) -> Result<StoredFiles> {
        let admitted = files
            .into_iter()
            .map(|file| Ok((self.validator.validate_file(&file.path)?, file)));
        let admitted = admitted.collect::<Result<Vec<_>>>()?;
        self.store_admitted(admitted, now)
    }

    fn store_admitted(
        &self,
        files: Vec<(ProjectPath, IncomingFile)>,
        now: Now,
    ) -> Result<StoredFiles> {
        let told = files
            .iter()
            .filter_map(|(path, file)| size_differs(path, file));
        let mut warnings: Vec<Warning> = told.collect();
        let files: Vec<(ProjectPath, Arc<AgentFile>)> = files
            .into_iter()
            .map(|(path, file)| (path, Arc::new(file.into_file(now))))
            .collect();
        let entries = files
            .iter()
            .map(|(path, file)| (path.clone(), CachedValue::File(Arc::clone(file))));
        let batch = self.cache.put(entries.collect(), now.steady);
        let batch = batch.map_err(|excess| too_large(&files, excess))?;
        warnings.extend(evicted(batch.evicted));
        let stored = files.into_iter().zip(batch.statuses);
        Ok(StoredFiles {
            files: stored
                .map(|((path, file), status)| Stored {
                    path,
                    status,
                    hash: file.hash(),
                    file,
                })
                .collect(),
            evicted: batch.evicted,
            warnings,
        })
    }

    /// Stores a file that comes whole or in pieces. `owner` keeps the pieces of two clients apart.
    pub fn upload(&self, owner: &str, upload: Upload, now: Now) -> Result<Uploaded> {
        let path = self.validator.validate_file(&upload.file.path)?;
        let Upload {
            mut file,
            chunk,
            mut content_hash,
        } = upload;
        let mut warnings = Vec::new();
        if let Some(mut chunk) = chunk {
            chunk.content_hash = content_hash.clone();
            let (index, count) = (chunk.index, chunk.count);
            if chunk.hash.is_none() && content_hash.is_none() {
                warnings.push(Warning::Unchecked { chunk: index });
            }
            let progress = self.uploads.add(owner, &path, chunk, now.steady)?;
            warnings.extend(progress.restarted.then_some(Warning::Restarted));
            let Some((whole, hash)) = progress.whole else {
                warnings.extend(progress.expired.then_some(Warning::Expired));
                return Ok(Uploaded::Partial {
                    path,
                    received: progress.received,
                    missing: progress.missing,
                    count,
                    warnings,
                });
            };
            (file.content, content_hash) = (whole, hash);
        }
        check_hash(&path, None, &file.content, content_hash.as_deref())?;
        let mut stored = self.store_admitted(vec![(path, file)], now)?;
        stored.warnings.splice(0..0, warnings);
        Ok(Uploaded::Whole {
            stored,
            is_verified: content_hash.is_some(),
        })
    }

    /// Stores a directory's entries; every path in it is judged first. Content that it shows to be out of date goes.
    pub fn store_listing(
        &self,
        path: &str,
        entries: Vec<PathInfo>,
        filter: Option<(&str, Accepts<'_>)>,
        now: Now,
    ) -> Result<StoredListing> {
        let path = self.validator.validate(path)?;
        let mut entries = listing::admitted(&self.validator, &path, entries)?;
        let mut warnings = Vec::new();
        if let Some((pattern, accepts)) = filter {
            let files = listing::filtered(&mut entries, accepts);
            let pattern = pattern.to_owned();
            warnings.extend((files > 0).then_some(Warning::LeftOut { files, pattern }));
        }
        let (files, directories) = listing::count(&entries);
        let listing = Arc::new(DirectoryListing {
            entries,
            pattern: filter.map(|(pattern, _)| pattern.into()),
            stored_at: now.wall,
        });
        let entry = (path.clone(), CachedValue::Listing(Arc::clone(&listing)));
        let batch = self.cache.put(vec![entry], now.steady);
        let batch = batch.map_err(|excess| Error::TooLarge {
            path: path.to_string(),
            size: excess.size,
            limit: excess.limit,
        })?;
        warnings.extend(evicted(batch.evicted));
        Ok(StoredListing {
            invalidated: self.invalidated(&path, &listing, now),
            path,
            listing,
            status: batch
                .statuses
                .first()
                .copied()
                .unwrap_or(StoreStatus::Cached),
            files,
            directories,
            evicted: batch.evicted,
            warnings,
        })
    }

    fn invalidated(&self, path: &ProjectPath, listing: &DirectoryListing, now: Now) -> Vec<String> {
        let mut invalidated = Vec::new();
        listing::visit(path.as_str(), &listing.entries, &mut |path, entry| {
            let Some(mtime) = entry.mtime else { return };
            let is_stale = |file: &AgentFile| file.is_older_than(mtime);
            if self.cache.invalidate(path, now.steady, is_stale) {
                invalidated.push(path.to_owned());
            }
        });
        invalidated
    }
}

impl IncomingFile {
    fn into_file(self, now: Now) -> AgentFile {
        AgentFile {
            content: self.content.into(),
            shape: self.shape,
            encoding: self.encoding,
            mtime: self.mtime,
            stored_at: now.wall,
        }
    }
}

/// Compares sizes where they can be compared: text in another encoding has another size there.
fn size_differs(path: &ProjectPath, file: &IncomingFile) -> Option<Warning> {
    let is_same_bytes = file.shape == ContentShape::Bytes || file.encoding == TextEncoding::UTF_8;
    let (told, found) = (file.size?, file.content.len() as u64);
    (is_same_bytes && told != found).then(|| Warning::SizeDiffers {
        path: path.to_string(),
        told,
        found,
    })
}

fn evicted(evicted: Evicted) -> Option<Warning> {
    (evicted.entries > 0).then_some(Warning::Evicted(evicted))
}

/// Names the largest file of a batch that does not fit.
fn too_large(files: &[(ProjectPath, Arc<AgentFile>)], excess: DoesNotFit) -> Error {
    let largest = files.iter().max_by_key(|(_, file)| file.size());
    Error::TooLarge {
        path: largest.map_or_else(String::new, |(path, _)| path.to_string()),
        size: excess.size,
        limit: excess.limit,
    }
}
