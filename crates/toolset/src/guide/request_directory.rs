//! `guide_request_directory`: a directory's entries, from the cache or from the agent.

use guide::{DirectoryRead, DirectoryRequest, Now, StepOutcome};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::list_directory::{filter, is_match};
use super::listing_json::{ListedEntry, entries};
use super::reply::{CacheFigures, Success, iso};
use super::request_file::{age, freshness, source};
use super::tool::{GuideTool, MayAsk, StepContext};
use crate::contract::Failure;
use crate::tool::{Example, ToolEffect};

pub(super) struct RequestDirectory;

#[derive(Deserialize, Serialize, JsonSchema)]
pub(super) struct Arguments {
    /// Relative to the project root.
    path: String,
    /// Everything below as children.
    #[serde(default)]
    recursive: bool,
    /// Only files that match this glob: by name, or with a slash by path.
    pattern: Option<String>,
    /// Asks even if the directory is cached.
    #[serde(default)]
    refresh: bool,
}

/// A directory.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Data {
    /// The directory, relative to the project root.
    path: String,
    /// Its entries in the order of their names.
    entries: Vec<ListedEntry>,
    /// Files in entries, at every depth.
    file_count: u64,
    /// Directories in entries, at every depth.
    directory_count: u64,
    /// Where it came from: cache, client (in its answer), or handover (by a tool while it was asked).
    source: &'static str,
    /// When the agent told it, in ISO 8601.
    listed_at: String,
    /// Seconds since then.
    age_seconds: u64,
    /// How the cache is doing.
    cache: CacheFigures,
}

impl GuideTool for RequestDirectory {
    type Arguments = Arguments;
    type Data = Data;

    const NAME: &'static str = "guide_request_directory";
    const TITLE: &'static str = "Request a directory listing";
    const DESCRIPTION: &'static str = "Gives the entries of one of the project's directories: from a cached listing, or by asking the client by \
        sampling. Without sampling it fails with unsupported: hand the listing over with \
        guide_list_directory. Security: the directory and every name in the answer are checked against the allowed \
        directories. Example: {\"path\":\"docs\",\"recursive\":true}";
    const CONTENT: &'static [&'static str] = &[];
    const EFFECT: ToolEffect = ToolEffect::Write {
        destructive: false,
        idempotent: true,
    };
    const EXAMPLES: &'static [Example] = &[
        Example {
            title: "A directory that was handed over before",
            arguments: r#"{"path": "docs"}"#,
            reply: r#"{"success": true, "data": {"path": "docs", "entries": [{"name": "plan.md", "type": "file", "size": 7, "mtime": 1770000000.0}], "file_count": 1, "directory_count": 0, "source": "cache", "listed_at": "2026-02-02T02:40:00.000Z", "age_seconds": 12, "cache": {"entries": 1, "bytes": 143, "max_bytes": 67108864, "hits": 1, "misses": 0, "updates": 0, "evictions": 0, "expirations": 0, "invalidations": 0}}, "message": "docs came from the cache: 1 files, 0 directories"}"#,
        },
        Example {
            title: "A directory that is not allowed",
            arguments: r#"{"path": "/etc"}"#,
            reply: r#"{"success": false, "error": "Security violation: \"/etc\" is refused: it is outside the allowed directories", "error_type": "security", "instruction": "Do not try this path again. Use a path inside the allowed directories of the project (docs, src, tests, .guide, .todo), and leave what lies outside out of batches and listings; only the operator can allow more."}"#,
        },
    ];
    const MAY_ASK: MayAsk = MayAsk::Yes;

    fn step(
        arguments: &Arguments,
        context: &mut StepContext<'_>,
    ) -> Result<StepOutcome<Success<Data>>, Failure> {
        let filter = filter(arguments.pattern.as_deref())?;
        let accepts = |name: &str, path: &str| is_match(filter.as_ref(), name, path);
        let wanted = arguments.pattern.as_deref();
        let request = DirectoryRequest {
            path: arguments.path.clone(),
            recursive: arguments.recursive,
            filter: wanted.map(|pattern| (pattern, &accepts as _)),
            freshness: freshness(arguments.refresh),
        };
        let bridge = context.bridge;
        let outcome =
            bridge.list_directory(&request, context.resume, &mut context.agent, context.now)?;
        Ok(outcome.map(|read| success(read, CacheFigures::now(bridge), context.now)))
    }
}

fn success(read: DirectoryRead, cache: CacheFigures, now: Now) -> Success<Data> {
    let data = Data {
        path: read.path.to_string(),
        entries: entries(read.entries),
        file_count: read.files,
        directory_count: read.directories,
        source: source(read.source),
        listed_at: iso(read.stored_at),
        age_seconds: age(read.stored_at, now),
        cache,
    };
    let message = format!(
        "{} came from the {}: {} files, {} directories",
        data.path, data.source, data.file_count, data.directory_count
    );
    let paths = vec![data.path.clone()];
    Success::new(data, message, &read.warnings, paths)
}
