//! The work: one file an operation, each a request, an outcome and `run`.
//!
//! Operations are synchronous, know nothing of JSON or MCP, take places (a root and a path inside it) and
//! a [`Context`], and answer with an outcome or an [`Error`] that holds the facts. Differences between
//! tool sets are knobs of a request; words are not chosen here.

mod byte_budget;
mod byte_budget_line;
mod character_glob;
mod checked_read;
mod compare;
mod consent;
mod content_type;
mod context;
mod copy;
mod copy_tree;
mod count_lines;
mod decompress;
mod descriptor_share;
mod destination;
mod edit;
mod edit_files;
mod edit_lock;
mod entry_facts;
mod error;
mod gathered_bytes;
mod glob;
mod go_regex;
mod grep;
mod hash;
mod history;
mod ignore_rules;
mod insert_lines;
mod line_index_cache;
mod line_search;
mod list;
mod make_directory;
mod move_to;
mod move_tree;
mod name_list;
mod operation;
mod ordered;
mod patch;
mod pattern;
mod permissions;
mod place;
mod pool;
mod read;
mod read_at;
mod regex_cost;
mod remove;
mod replace_string;
mod search_memory;
mod shared_walk;
mod stat;
mod syntax;
#[cfg(test)]
mod testing;
pub mod text;
mod unread;
mod version;
mod watch;
mod write;
mod write_files;

pub use byte_budget::{
    ByteBudget, ByteLimits, OverBudget, ReplyRoom, Reserved, Reserving, SMALL_BYTES,
};
pub use compare::{Compare, Compared, ComparedDirectories, ComparedFiles, ToldPaths};
pub use consent::{Consent, Planned};
pub use content_type::{by_name as type_by_name, content_type};
pub use context::{Cancel, Context, Limits};
pub use copy::{Copied, Copy};
pub use copy_tree::{SkipReason, Skipped};
pub use destination::OnDirectory;
pub use edit::WHOLE_FILE_MAX;
pub use edit_files::{CHANGES_SHOWN, EditFiles, EditedFile, EditedFiles, FileEdit, Rehearsal};
pub use encoding_rs::Encoding;
pub use entry_facts::EntryFacts;
pub use error::{
    EditFault, Error, ErrorKind, NearDifference, NearRegion, PatternRole, RequestPart, Result,
    TreeWork, Wanted,
};
pub use glob::{ENTRIES_MAX, Glob, GlobEntry, GlobOrder, Globbed, Kinds, PathPattern};
pub use grep::{
    CONTEXT_LINES_MAX, CompressedFiles, FileMatches, Grep, Grepped, LineMatch, SearchFrom,
    SearchOutput,
};
pub use hash::{Algorithm, Hash, Hashed};
pub use history::{
    ChangeFilter, Diff, DiffWish, ListChanges, Moment, NoLines, OtherRoot, Restore, Restored,
    ToldChange, ToldChanges, Undo, UndoBy, UndoRefusal, UndoTarget, Undone, change_diff, changes,
    compare_at,
};
pub use ignore_rules::IgnoreRules;
pub use insert_lines::{InsertLines, InsertedLines};
pub use line_index_cache::LineIndexCache;
pub use list::{Detail, Hidden, List, ListEntry, Listed};
pub use make_directory::{MadeDirectory, MakeDirectory, OnExistingDirectory};
pub use move_to::{Method, Move, Moved};
pub use operation::Operation;
pub use patch::{Patch, PatchTarget, Patched, names_in_patch};
pub use pattern::{Case, FileFilter, Pattern, Syntax};
pub use permissions::{PermissionStatus, Permissions};
pub use place::Place;
pub use pool::{run_heavy, run_light};
pub use read::{
    Body, Contents, InlineRead, LargeText, OpenedRead, Oversize, Read, ReadOrLeft, ReadRange,
    StoredForm, TextPolicy, Totals,
};
pub use remove::{LEFT_COUNTED, OnMissing, Recurse, Remove, RemoveTarget, Removed};
pub use replace_string::{ReplaceString, ReplacedString};
pub use search_memory::{
    SearchMemory, SearchMemoryUsage, excludes_content, excludes_parts, matches_content,
};
pub use stat::{ContentType, FileStatus, LinkStatus, Stat};
pub use syntax::SyntaxFault;
pub use text::excerpts::ChangedLines;
pub use text::replace::{EditMatching, EditScope, REPLACED_MAX};
pub use unread::{Unread, UnreadReason, UnreadTotal};
pub use version::Version;
pub use watch::{Watch, Watched};
pub use write::{SyntaxCheck, Write, WriteEffect, WriteMode, Written};
pub use write_files::{FileToWrite, WriteFiles};

/// Knobs that are the sandbox's own, for callers that know only this crate.
pub use sandbox::{
    Author, ChangeNotes, ChangeRecord, Durability, FileAccess, FileKind, HistoryFigures, InPlace,
    LinkTarget, LiveRoot, Metadata, OnExisting, OnFault, Parents, Part, PartKind, PathFault,
    QuotaLimit, Right, Rights, Root, SeenChange, Time, TreeChanges, Users, change_id, first_chars,
    is_within, parse_change_id, truncated,
};
