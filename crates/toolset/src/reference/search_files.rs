//! `search_files`: files and directories by a pattern for their paths.

use ops::{
    ContentType, ENTRIES_MAX, FileKind, Glob, GlobEntry, GlobOrder, Globbed, IgnoreRules, Kinds,
    LinkTarget, Operation, PathPattern, Place, Stat,
};
use schemars::JsonSchema;
use serde::Deserialize;

use super::content::Content;
use super::list_directory::joined;
use super::minimatch;
use super::paths::place;
use crate::deployment::ReplyHalves;
use crate::json_text::JsonText;
use crate::text_form::in_one_line;
use crate::tool::{Call, PlaceAccess, RootUse, Tool, ToolEffect, Weight};

pub(super) struct SearchFiles;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Arguments {
    path: String,
    pattern: String,
    #[serde(default)]
    exclude_patterns: Vec<String>,
}

impl Tool for SearchFiles {
    type Arguments = Arguments;
    type Reply = Content;

    const NAME: &'static str = "search_files";
    const TITLE: &'static str = "Search Files";
    const DESCRIPTION: &'static str = "Recursively search for files and directories matching a pattern. The patterns should be glob-style patterns \
        that match paths relative to the working directory. Use pattern like '*.ext' to match files in current directory, and '**/*.ext' to match \
        files in all subdirectories. Returns full paths to all matching items. Great for finding files when you don't know their exact location. \
        Only searches within allowed directories.";
    const CONTENT: &'static [&'static str] = &[];
    const EFFECT: ToolEffect = ToolEffect::Read;
    const ROOTS: &'static [RootUse] = &[RootUse::host("path", PlaceAccess::Read)];

    fn weight(_arguments: &Arguments) -> Weight {
        Weight::Heavy
    }

    fn run(arguments: Arguments, call: &Call) -> ops::Result<Content> {
        let place = place(call, &arguments.path)?;
        let exclude = arguments.exclude_patterns.iter();
        let exclude = exclude.map(|text| minimatch::pattern(text));
        let pattern = minimatch::pattern(&arguments.pattern)?;
        let found = found(&place, pattern, exclude.collect::<ops::Result<_>>()?, call)?;
        let found = found.entries.iter();
        let found = found.filter(|entry| leads_somewhere(entry, &place, call));
        let lines = found.map(|entry| in_one_line(&place.root.host_path(&entry.path)).into_owned());
        let lines = joined(lines);
        Ok(match lines.as_str() {
            "" => "No matches found".to_owned(),
            _ => lines,
        }
        .into())
    }

    fn json_text(reply: &Content, _replies: ReplyHalves) -> Option<JsonText> {
        Some(reply.text())
    }
}

/// Everything below a directory whose path matches.
pub(super) fn found(
    place: &Place,
    pattern: PathPattern,
    exclude: Vec<PathPattern>,
    call: &Call,
) -> ops::Result<Globbed> {
    place.resolved_directory()?;
    let glob = Glob {
        place: place.clone(),
        pattern,
        kinds: Kinds::All,
        max_results: ENTRIES_MAX,
        timeout: call.context.limits.search_timeout,
        max_depth: None,
        ignore_rules: IgnoreRules::Disregard,
        order: GlobOrder::Path,
        exclude,
    };
    complete(glob.run(&call.context)?)
}

/// Refuses to return only a part, because it would look like everything.
fn complete(found: Globbed) -> ops::Result<Globbed> {
    if found.timed_out {
        return Err(ops::Error::Timeout);
    }
    if found.truncated {
        return Err(ops::Error::InvalidArgument {
            argument: "path",
            reason: format!(
                "More than {ENTRIES_MAX} entries match; narrow path or pattern, or exclude directories"
            ),
        });
    }
    Ok(found)
}

/// Links that lead out, or to nothing, are not found.
fn leads_somewhere(entry: &GlobEntry, place: &Place, call: &Call) -> bool {
    if entry.facts.kind != FileKind::Symlink {
        return true;
    }
    let link = Place::new(std::sync::Arc::clone(&place.root), &entry.path);
    let status = link.and_then(|place| {
        let stat = Stat {
            place,
            content_type: ContentType::Skip,
        };
        stat.run(&call.context)
    });
    let target = status.ok().and_then(|status| status.link);
    target.is_some_and(|link| matches!(link.target, LinkTarget::Inside { .. }))
}
