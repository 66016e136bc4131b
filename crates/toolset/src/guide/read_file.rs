//! `guide_read_file`: the agent hands over a file it was asked for, whole or in chunks, with hashes.

use guide::{Chunk, ChunkFault, Error, HeldRoom, StepOutcome, StoredFiles, Upload, Uploaded};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::arguments::{GivenFile, GivenMetadata};
use super::prompts;
use super::reply::{CacheFigures, EvictedFigures, StoredFile, Success};
use super::tool::{GuideTool, StepContext};
use crate::contract::Failure;
use crate::tool::{Example, ToolEffect};

pub(super) struct HandOverFile;

#[derive(Deserialize, Serialize, JsonSchema)]
pub(super) struct Arguments {
    /// Relative to the project root.
    path: String,
    /// The content or a chunk of it: text, or base64 with binary.
    content: String,
    /// The file's encoding, such as latin-1.
    encoding: Option<String>,
    /// content is base64.
    #[serde(default)]
    binary: bool,
    /// What is known of the file.
    metadata: Option<GivenMetadata>,
    /// From 0.
    chunk_index: Option<u32>,
    /// A file under 10 MB needs none.
    #[schemars(range(min = 1, max = 10_000))]
    chunk_count: Option<u32>,
    /// SHA-256 of the chunk's bytes, hexadecimal.
    chunk_hash: Option<String>,
    /// SHA-256 of the file's bytes, hexadecimal.
    content_hash: Option<String>,
}

/// What came.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Data {
    /// The file's entry, once all of it has come.
    #[serde(flatten)]
    #[schemars(with = "Option<StoredFile>")]
    stored: Option<StoredFile>,
    /// The file, relative to the project root.
    path: String,
    /// Whether all of it has come and is cached.
    complete: bool,
    /// Whether the content was compared with content_hash.
    hash_verified: bool,
    /// How many chunks have come, if it comes in chunks.
    #[serde(skip_serializing_if = "Option::is_none")]
    chunks_received: Option<u32>,
    /// How many chunks there are, if it comes in chunks.
    #[serde(skip_serializing_if = "Option::is_none")]
    chunk_count: Option<u32>,
    /// What had to go to make room.
    #[serde(skip_serializing_if = "Option::is_none")]
    evicted: Option<EvictedFigures>,
    /// How the cache is doing.
    cache: CacheFigures,
}

impl GuideTool for HandOverFile {
    type Arguments = Arguments;
    type Data = Data;

    const NAME: &'static str = "guide_read_file";
    const TITLE: &'static str = "Hand over file content";
    const DESCRIPTION: &'static str = "Hands the content of one of your files over to the server. A large file can come in chunks, in any order: \
        chunk_index, chunk_count, chunk_hash, and content_hash with any of them; it is cached when all have come. \
        Security: the path has to be in an allowed directory of the project; what leads out is refused and logged. \
        Example: {\"path\":\"docs/logo.png\",\"content\":\"iVBORw0KGgo=\",\"binary\":true}";
    const CONTENT: &'static [&'static str] = &["content"];
    const EFFECT: ToolEffect = ToolEffect::Write {
        destructive: false,
        idempotent: true,
    };
    const EXAMPLES: &'static [Example] = &[
        Example {
            title: "The first of two chunks",
            arguments: r#"{"path": "docs/big.txt", "content": "first half", "chunk_index": 0, "chunk_count": 2, "chunk_hash": "bb480f5174f5006c97f20e492a3afd1f335ac4d3c4defe990f47bf8810390794"}"#,
            reply: r#"{"success": true, "data": {"path": "docs/big.txt", "complete": false, "hash_verified": false, "chunks_received": 1, "chunk_count": 2, "cache": {"entries": 0, "bytes": 0, "max_bytes": 67108864, "hits": 0, "misses": 0, "updates": 0, "evictions": 0, "expirations": 0, "invalidations": 0}}, "message": "1 of 2 chunks of docs/big.txt have come; send the others (chunk_index 1)"}"#,
        },
        Example {
            title: "Content that is no base64",
            arguments: r#"{"path": "docs/logo.png", "content": "not base64!", "binary": true}"#,
            reply: r#"{"success": false, "error": "Invalid content of docs/logo.png: invalid base64: ' ' at position 3 is not allowed there", "error_type": "validation", "instruction": "With binary: true, content has to be standard base64 with padding and without line breaks; a file that is not text has to be asked for with binary: true."}"#,
        },
    ];

    fn step(
        arguments: &Arguments,
        context: &mut StepContext<'_>,
    ) -> Result<StepOutcome<Success<Data>>, Failure> {
        let bridge = context.bridge;
        bridge.validator().validate_file(&arguments.path)?;
        let mut upload = upload(arguments)?;
        if let (Some(chunk), Some(room)) = (&mut upload.chunk, context.room) {
            let bytes = chunk.bytes.len() as u64;
            let kept = room.keep(bytes).map_err(|_| ops::Error::NoRoom { bytes })?;
            chunk.held = kept.map_or_else(HeldRoom::default, HeldRoom::new);
        }
        let uploaded = bridge.upload(upload, context.now)?;
        let cache = CacheFigures::now(context.bridge);
        Ok(StepOutcome::Done(match uploaded {
            Uploaded::Partial {
                path,
                received,
                missing,
                count,
                warnings,
            } => {
                let message = prompts::chunks_missing(&path.to_string(), received, count, &missing);
                let path = path.to_string();
                let data = Data {
                    stored: None,
                    path: path.clone(),
                    complete: false,
                    hash_verified: false,
                    chunks_received: Some(received),
                    chunk_count: Some(count),
                    evicted: None,
                    cache,
                };
                Success::new(data, message, &warnings, vec![path])
            }
            Uploaded::Whole {
                stored,
                is_verified,
            } => whole(&stored, is_verified, arguments.chunk_count, cache),
        }))
    }
}

/// The reply to the last chunk, or to the only one.
fn whole(
    stored: &StoredFiles,
    is_verified: bool,
    chunks: Option<u32>,
    cache: CacheFigures,
) -> Success<Data> {
    let paths = stored.files.iter().map(|file| file.path.to_string());
    let paths: Vec<String> = paths.collect();
    let one = stored.files.first().map(StoredFile::of);
    let message = one.as_ref().map(StoredFile::said).unwrap_or_default();
    let data = Data {
        stored: one,
        path: paths.first().cloned().unwrap_or_default(),
        complete: true,
        hash_verified: is_verified,
        chunks_received: chunks,
        chunk_count: chunks,
        evicted: Some(EvictedFigures::of(stored.evicted)),
        cache,
    };
    Success::new(data, message, &stored.warnings, paths)
}

fn upload(arguments: &Arguments) -> Result<Upload, Failure> {
    let given = GivenFile {
        path: &arguments.path,
        content: &arguments.content,
        binary: arguments.binary,
        encoding: arguments.encoding.as_deref(),
        metadata: arguments.metadata.as_ref(),
    };
    let mut file = given.handover()?;
    let chunk = match (arguments.chunk_index, arguments.chunk_count) {
        (Some(index), Some(count)) => Some(Chunk {
            index,
            count,
            bytes: std::mem::take(&mut file.content),
            hash: arguments.chunk_hash.clone(),
            content_hash: None,
            held: HeldRoom::default(),
        }),
        (None, None) if arguments.chunk_hash.is_none() => None,
        _ => {
            let path = arguments.path.clone();
            let fault = ChunkFault::Incomplete;
            return Err(Error::BadChunk { path, fault }.into());
        }
    };
    Ok(Upload {
        file,
        chunk,
        content_hash: arguments.content_hash.clone(),
    })
}
