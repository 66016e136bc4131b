//! `guide_list_directory`: the agent hands over a directory's entries.

use guide::StepOutcome;
use ops::{FileFilter, PatternRole};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::listing_json::{ListedEntry, infos};
use super::prompts;
use super::reply::{CacheFigures, EvictedFigures, Success};
use super::tool::{GuideTool, StepContext};
use crate::contract::Failure;
use crate::tool::{Example, ToolEffect};

pub(super) struct HandOverListing;

#[derive(Deserialize, Serialize, JsonSchema)]
pub(super) struct Arguments {
    /// Relative to the project root.
    path: String,
    /// In any order.
    #[schemars(length(max = guide::ENTRIES_MAX))]
    entries: Vec<ListedEntry>,
    /// Takes only files that match this glob: by name, or with a slash by path.
    pattern: Option<String>,
}

/// What was taken.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Data {
    /// The directory, relative to the project root: also the key of its cache entry.
    cache_key: String,
    /// cached if it is new, updated if it replaced a listing.
    status: &'static str,
    /// Files taken, at every depth.
    file_count: u64,
    /// Directories taken, at every depth.
    directory_count: u64,
    /// Files whose cached content was thrown out: they are not listed, or have another size or mtime here.
    invalidated: Vec<String>,
    /// What had to go to make room.
    evicted: EvictedFigures,
    /// How the cache is doing.
    cache: CacheFigures,
}

impl GuideTool for HandOverListing {
    type Arguments = Arguments;
    type Data = Data;

    const NAME: &'static str = "guide_list_directory";
    const TITLE: &'static str = "Hand over a directory listing";
    const DESCRIPTION: &'static str = "Hands the listing of one of your directories over to the server: up to 32 levels and 30000 entries, larger \
        trees directory by directory. Cached content of files that are missing here, or have another size or mtime, is thrown out. Security: the directory and every \
        name below have to be in an allowed directory; one that leads out refuses the whole listing and is logged. \
        Example: {\"path\":\"docs\",\"entries\":[{\"name\":\"plan.md\",\"type\":\"file\"}]}";
    const CONTENT: &'static [&'static str] = &[];
    const EFFECT: ToolEffect = ToolEffect::Write {
        destructive: false,
        idempotent: true,
    };
    const EXAMPLES: &'static [Example] = &[
        Example {
            title: "A directory with one file",
            arguments: r#"{"path": "docs", "entries": [{"name": "plan.md", "type": "file", "size": 7, "mtime": 1770000000}]}"#,
            reply: r#"{"success": true, "data": {"cache_key": "docs", "status": "cached", "file_count": 1, "directory_count": 0, "invalidated": [], "evicted": {"entries": 0, "bytes": 0}, "cache": {"entries": 1, "bytes": 143, "max_bytes": 67108864, "hits": 0, "misses": 0, "updates": 0, "evictions": 0, "expirations": 0, "invalidations": 0}}, "message": "docs is known: 1 files, 0 directories"}"#,
        },
        Example {
            title: "A name that leads out refuses the whole listing",
            arguments: r#"{"path": "docs", "entries": [{"name": "../secret", "type": "file"}]}"#,
            reply: r#"{"success": false, "error": "Security violation: \"docs/../secret\" is refused: a listed name has to be one name, without / and not . or ..", "error_type": "security", "instruction": "Do not try this path again. Use a path inside the allowed directories of the project (docs, src, tests, .guide, .todo), and leave what lies outside out of batches and listings; only the operator can allow more."}"#,
        },
    ];

    fn step(
        arguments: &Arguments,
        context: &mut StepContext<'_>,
    ) -> Result<StepOutcome<Success<Data>>, Failure> {
        let filter = filter(arguments.pattern.as_deref())?;
        let accepts = |name: &str, path: &str| is_match(filter.as_ref(), name, path);
        let wanted = arguments.pattern.as_deref();
        let stored = context.bridge.store_listing(
            &arguments.path,
            infos(arguments.entries.clone()),
            wanted.map(|pattern| (pattern, &accepts as _)),
            context.now,
        )?;
        let data = Data {
            cache_key: stored.path.to_string(),
            status: prompts::status(stored.status),
            file_count: stored.files,
            directory_count: stored.directories,
            invalidated: stored.invalidated,
            evicted: EvictedFigures::of(stored.evicted),
            cache: CacheFigures::now(context.bridge),
        };
        let message = format!(
            "{} is known: {} files, {} directories",
            data.cache_key, data.file_count, data.directory_count
        );
        let paths = vec![data.cache_key.clone()];
        Ok(StepOutcome::Done(Success::new(
            data,
            message,
            &stored.warnings,
            paths,
        )))
    }
}

/// Compiles a pattern; one that is invalid or absurd is refused here.
pub(super) fn filter(pattern: Option<&str>) -> Result<Option<FileFilter>, Failure> {
    let compiled = pattern.map(|text| FileFilter::new(PatternRole::ListedEntries, text));
    Ok(compiled.transpose()?)
}

/// Tells whether a file is wanted.
pub(super) fn is_match(filter: Option<&FileFilter>, name: &str, path: &str) -> bool {
    filter.is_none_or(|filter| filter.is_match(name.as_bytes(), || path.as_bytes().to_vec()))
}
