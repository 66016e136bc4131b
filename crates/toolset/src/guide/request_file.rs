//! `guide_request_file`: a file's content, from the cache or from the agent.

use guide::{ContentSource, FileContent, FileRead, FileRequest, Freshness, Now, StepOutcome};
use ops::text::encoding::to_base64;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::arguments::{encoding, shape};
use super::reply::{CacheFigures, FileMetadata, Success};
use super::tool::{GuideTool, MayAsk, StepContext};
use crate::contract::Failure;
use crate::tool::{Example, ToolEffect};

pub(super) struct RequestFile;

#[derive(Deserialize, Serialize, JsonSchema)]
pub(super) struct Arguments {
    /// Relative to the project root.
    path: String,
    /// To read it with, such as latin-1.
    encoding: Option<String>,
    /// Gives its bytes as base64.
    #[serde(default)]
    binary: bool,
    /// Seconds since the epoch: older content is asked for anew.
    #[schemars(range(min = 0))]
    mtime: Option<f64>,
    /// Asks although it is cached.
    #[serde(default)]
    refresh: bool,
}

/// A file's content.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Data {
    /// The file, relative to the project root: also the key of its cache entry.
    cache_key: String,
    /// The content: text, or base64 if binary is true.
    content: String,
    /// Whether content is base64.
    binary: bool,
    /// What the text was read with.
    encoding: String,
    /// Where it came from: cache, client (in its answer), or handover (by a tool while it was asked).
    source: &'static str,
    /// Seconds since the agent gave it.
    age_seconds: u64,
    /// SHA-256 of the file's bytes, in hexadecimal.
    content_hash: String,
    /// What is known of the file.
    metadata: FileMetadata,
    /// How the cache is doing.
    cache: CacheFigures,
}

impl GuideTool for RequestFile {
    type Arguments = Arguments;
    type Data = Data;

    const NAME: &'static str = "guide_request_file";
    const TITLE: &'static str = "Request a file";
    const DESCRIPTION: &'static str = "Gives the content of one of the project's files: from the cache, or by asking the client by sampling. Without sampling it fails with unsupported: hand the file over with guide_cache_file and call \
        again. Security: the path is checked against the allowed directories before anyone is asked. Example: \
        {\"path\":\"docs/plan.md\"}";
    const CONTENT: &'static [&'static str] = &[];
    const EFFECT: ToolEffect = ToolEffect::Write {
        destructive: false,
        idempotent: true,
    };
    const EXAMPLES: &'static [Example] = &[
        Example {
            title: "A file that was cached before",
            arguments: r#"{"path": "docs/plan.md"}"#,
            reply: r##"{"success": true, "data": {"cache_key": "docs/plan.md", "content": "# Plan\n", "binary": false, "encoding": "utf-8", "source": "cache", "age_seconds": 12, "content_hash": "c3964bb3b70a957ec9b233c7dd3653f6ba17701ab00facf88ae1393dc6155577", "metadata": {"size": 7, "mtime": 1770000000.0, "encoding": "utf-8", "binary": false, "cached_at": "2026-02-02T02:40:00.000Z"}, "cache": {"entries": 1, "bytes": 7, "max_bytes": 67108864, "hits": 1, "misses": 0, "updates": 0, "evictions": 0, "expirations": 0, "invalidations": 0}}, "message": "docs/plan.md came from the cache"}"##,
        },
        Example {
            title: "A client without sampling asks for a file that is not cached",
            arguments: r#"{"path": "docs/other.md"}"#,
            reply: r#"{"success": false, "error": "The agent has to be asked for docs/other.md, and this client cannot be: it does not support sampling", "error_type": "unsupported", "instruction": "Read the file yourself and hand it over with guide_cache_file, then call again without refresh; or give its content as a resource or in the conversation."}"#,
        },
    ];
    const MAY_ASK: MayAsk = MayAsk::Yes;

    fn step(
        arguments: &Arguments,
        context: &mut StepContext<'_>,
    ) -> Result<StepOutcome<Success<Data>>, Failure> {
        let request = FileRequest {
            path: arguments.path.clone(),
            shape: shape(arguments.binary),
            encoding: encoding(arguments.encoding.as_deref())?,
            mtime: arguments.mtime,
            freshness: freshness(arguments.refresh),
        };
        let bridge = context.bridge;
        let outcome =
            bridge.read_file(&request, context.resume, &mut context.agent, context.now)?;
        Ok(outcome.map(|read| success(read, CacheFigures::now(bridge), context.now)))
    }
}

fn success(read: FileRead, cache: CacheFigures, now: Now) -> Success<Data> {
    let path = read.path.to_string();
    let source = source(read.source);
    let (content, binary) = match read.content {
        FileContent::Text(text) => (text, false),
        FileContent::Bytes(bytes) => (to_base64(&bytes), true),
    };
    let data = Data {
        cache_key: path.clone(),
        content,
        binary,
        encoding: read.encoding.name(),
        source,
        age_seconds: age(read.file.stored_at, now),
        content_hash: read.file.hash().to_string(),
        metadata: FileMetadata::of(&read.file),
        cache,
    };
    let message = format!("{path} came from the {source}");
    Success::new(data, message, &read.warnings, vec![path])
}

/// Whether a cached copy is good enough.
pub(super) fn freshness(refresh: bool) -> Freshness {
    if refresh {
        Freshness::Refresh
    } else {
        Freshness::Cached
    }
}

/// How many seconds ago something was stored.
pub(super) fn age(stored_at: f64, now: Now) -> u64 {
    // Whole seconds; a clock that was set back makes nothing younger than new.
    (now.wall - stored_at).max(0.0) as u64
}

/// The word for where something came from.
pub(super) fn source(source: ContentSource) -> &'static str {
    match source {
        ContentSource::Cache => "cache",
        ContentSource::Answer => "client",
        ContentSource::Handover => "handover",
    }
}
