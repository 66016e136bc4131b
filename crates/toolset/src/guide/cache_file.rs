//! `guide_cache_file`: the agent hands over one file, or several at once.

use guide::{StepOutcome, StoredFiles};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::arguments::{GivenFile, GivenMetadata};
use super::reply::{CacheFigures, EvictedFigures, StoredFile, Success};
use super::tool::{GuideTool, StepContext};
use crate::arguments::BadArgument;
use crate::contract::Failure;
use crate::tool::{Example, ToolEffect};

pub(super) struct CacheFile;

#[derive(Deserialize, Serialize, JsonSchema)]
pub(super) struct Arguments {
    /// Relative to the project root.
    path: Option<String>,
    /// Text, or base64 with binary.
    content: Option<String>,
    /// content is base64.
    #[serde(default)]
    binary: bool,
    /// What is known of the file.
    metadata: Option<GivenMetadata>,
    /// Instead of path and content.
    #[schemars(length(min = 1, max = 1000))]
    files: Option<Vec<FileArgument>>,
}

#[derive(Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct FileArgument {
    /// Relative to the project root.
    path: String,
    /// Text, or base64 with binary.
    content: String,
    /// content is base64.
    #[serde(default)]
    binary: bool,
    metadata: Option<GivenMetadata>,
}

/// What was cached.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Data {
    /// One file's entry, if one was given.
    #[serde(flatten)]
    #[schemars(with = "Option<StoredFile>")]
    one: Option<StoredFile>,
    /// Every file's entry, in the order of files, if several were given.
    #[serde(skip_serializing_if = "Option::is_none")]
    files: Option<Vec<StoredFile>>,
    /// How many files were cached.
    file_count: usize,
    /// Their size together, in bytes.
    total_size: u64,
    /// What had to go to make room.
    evicted: EvictedFigures,
    /// How the cache is doing.
    cache: CacheFigures,
}

impl GuideTool for CacheFile {
    type Arguments = Arguments;
    type Data = Data;

    const NAME: &'static str = "guide_cache_file";
    const TITLE: &'static str = "Cache a file";
    const DESCRIPTION: &'static str = "Hands one of your files over to the server, or several with files (at most 1000; all are cached or none), so \
        that it need not ask. A later mtime makes an entry invalid. Security: paths have to be in an allowed \
        directory of the project (docs, src, tests, .guide, .todo unless configured); what leads out is refused and \
        logged. Example: {\"path\":\"docs/plan.md\",\"content\":\"# Plan\\n\"}";
    const CONTENT: &'static [&'static str] = &["content"];
    const EFFECT: ToolEffect = ToolEffect::Write {
        destructive: false,
        idempotent: true,
    };
    const EXAMPLES: &'static [Example] = &[
        Example {
            title: "A file is cached",
            arguments: r##"{"path": "docs/plan.md", "content": "# Plan\n", "metadata": {"mtime": 1770000000}}"##,
            reply: r#"{"success": true, "data": {"cache_key": "docs/plan.md", "status": "cached", "content_hash": "c3964bb3b70a957ec9b233c7dd3653f6ba17701ab00facf88ae1393dc6155577", "metadata": {"size": 7, "mtime": 1770000000.0, "encoding": "utf-8", "binary": false, "cached_at": "2026-02-02T02:40:00.000Z"}, "file_count": 1, "total_size": 7, "evicted": {"entries": 0, "bytes": 0}, "cache": {"entries": 1, "bytes": 7, "max_bytes": 67108864, "hits": 0, "misses": 0, "updates": 0, "evictions": 0, "expirations": 0, "invalidations": 0}}, "message": "docs/plan.md is cached"}"#,
        },
        Example {
            title: "A path that is not allowed is refused, and the whole batch with it",
            arguments: r#"{"files": [{"path": "docs/a.md", "content": "a"}, {"path": "../secret", "content": "b"}]}"#,
            reply: r#"{"success": false, "error": "Security violation: \"../secret\" is refused: it leads above the project root", "error_type": "security", "instruction": "Do not try this path again. Use a path inside the allowed directories of the project (docs, src, tests, .guide, .todo), and leave what lies outside out of batches and listings; only the operator can allow more."}"#,
        },
    ];

    fn step(
        arguments: &Arguments,
        context: &mut StepContext<'_>,
    ) -> Result<StepOutcome<Success<Data>>, Failure> {
        let (given, is_batch) = given(arguments)?;
        // Every path is judged before any content is decoded.
        for file in &given {
            context.bridge.validator().validate_file(file.path)?;
        }
        let files = given.iter().map(GivenFile::handover);
        let files = files.collect::<Result<Vec<_>, _>>()?;
        let stored = context.bridge.store(files, context.now)?;
        let paths = stored.files.iter().map(|file| file.path.to_string());
        let paths: Vec<String> = paths.collect();
        let data = data(&stored, is_batch, CacheFigures::now(context.bridge));
        let message = message(&data);
        Ok(StepOutcome::Done(Success::new(
            data,
            message,
            &stored.warnings,
            paths,
        )))
    }
}

/// The files, and whether they came as a batch.
fn given(arguments: &Arguments) -> Result<(Vec<GivenFile<'_>>, bool), BadArgument> {
    let missing = |argument: &str, expected: &str| BadArgument::Missing {
        argument: argument.to_owned(),
        expected: expected.to_owned(),
    };
    match (&arguments.path, &arguments.content, &arguments.files) {
        (None, None, Some(files)) => Ok((files.iter().map(FileArgument::given).collect(), true)),
        (_, _, Some(_)) => Err(BadArgument::Undecodable {
            reason: "give either path and content, or files".to_owned(),
        }),
        (None, None, None) => Err(missing(
            "path and content, or files",
            "one file, or several",
        )),
        (None, _, None) => Err(missing("path", "string")),
        (_, None, None) => Err(missing("content", "string")),
        (Some(path), Some(content), None) => {
            let file = GivenFile {
                path,
                content,
                binary: arguments.binary,
                encoding: None,
                metadata: arguments.metadata.as_ref(),
            };
            Ok((vec![file], false))
        }
    }
}

impl FileArgument {
    fn given(&self) -> GivenFile<'_> {
        GivenFile {
            path: &self.path,
            content: &self.content,
            binary: self.binary,
            encoding: None,
            metadata: self.metadata.as_ref(),
        }
    }
}

fn data(stored: &StoredFiles, is_batch: bool, cache: CacheFigures) -> Data {
    let files: Vec<StoredFile> = stored.files.iter().map(StoredFile::of).collect();
    let file_count = files.len();
    let (one, files) = if is_batch {
        (None, Some(files))
    } else {
        (files.into_iter().next(), None)
    };
    Data {
        one,
        files,
        file_count,
        total_size: stored.files.iter().map(|file| file.file.size()).sum(),
        evicted: EvictedFigures::of(stored.evicted),
        cache,
    }
}

fn message(data: &Data) -> String {
    match &data.one {
        Some(one) => one.said(),
        None => format!("{} files are cached", data.file_count),
    }
}
