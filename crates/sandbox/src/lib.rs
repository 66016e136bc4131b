//! The place: a root is an open directory, and every path is looked up inside it, by file descriptor.
//!
//! This crate is the only one that talks to the file system. It knows nothing of operations, tools or protocols; the only
//! JSON in it are the records of its own history. Everything above it names files by a [`Root`] and a [`RelPath`], and gets
//! back open descriptors and the resolved path inside the root, so that nothing is looked up twice.
//!
//! What it promises, also against an attacker who renames and links inside the root while we work: nothing outside the
//! root is opened, listed, created, changed or removed, and nothing is revealed about what exists there.

#![expect(
    clippy::disallowed_methods,
    reason = "the one crate that may touch the file system"
)]

// The unit tests use the helpers of the integration tests.
#[cfg(test)]
extern crate self as sandbox;

mod attributes;
mod background;
mod change;
mod copy_content;
mod descent;
mod descriptors;
mod dir;
mod error;
mod hidden_tree;
mod history;
mod in_place;
mod landlock;
mod leftovers;
mod link;
mod listings;
mod live_root;
mod located;
mod metadata;
mod mounts;
mod name;
mod name_path;
mod new_dirs;
mod new_mode;
mod open_file;
mod planted_fault;
mod quota;
mod rel_path;
mod remove;
mod replace;
mod reserved;
mod resolve;
mod rights;
mod root;
mod roots;
mod shorten;
mod syscall;
#[cfg(test)]
mod tests;
mod together;
mod top_path;
mod users;
mod view;
mod walk;
mod wanted;
mod watch;

pub use background::run as run_in_background;
pub use change::{Change, ChangeNotes, Durability, OnExisting, Parents};
pub use copy_content::{ContentCopy, CopyStep, Sharing, copy_part};
pub use descent::Descent;
pub use descriptors::{descriptor_limit, raise_descriptor_limit};
pub use dir::{Dir, DirEntry};
pub use error::{Error, PathFault, Result};
pub use hidden_tree::HiddenTree;
pub use history::{
    Author, BrokenChain, ChangeRecord, CrossedEnd, CrossingFault, History, HistoryCounts,
    HistoryFigures, HistoryPlace, HistorySettings, InPlace, Ledger, ListedChange, Mention, Part,
    PartKind, Past, Pruned, Recovered, UndoFault, change_id, parse_change_id,
};
pub use landlock::{Exception, ExceptionRights, Landlock, LandlockError, Protection, lock_in};
pub use link::LinkTarget;
pub use listings::{ListingVisit, Listings};
pub use live_root::{LiveRoot, Reopen, RootChange};
pub use located::{FileAccess, Located, is_within};
pub use metadata::{FileKind, Metadata, Time};
pub use mounts::{Mount, MountFault};
pub use name::{Name, shown};
pub use new_dirs::NewDirs;
pub use open_file::{OpenFile, Replaceable};
pub use quota::{Amount, Quota, QuotaLimit, QuotaUse};
pub use rel_path::RelPath;
pub use remove::{Approval, EmptiedDir, OnFault, Removal, RemovalStep, TreeRemover};
pub use replace::Staged;
pub use reserved::is_out_of_sight;
pub use resolve::{Follow, Resolver};
pub use rights::{Right, Rights};
pub use root::{Root, RootTerms};
pub use roots::{NamedRoot, Roots};
pub use shorten::{first_chars, truncated};
pub use together::{ChangePlace, Cluster, DeadReplica, Extent, HeldPlaces};
pub use users::Users;
pub use view::{GlobFault, GlobReason, HiddenEntries, SECRETS, SECRETS_WORD, View};
pub use walk::{
    AllLeaves, Choice, Cut, LeftDir, Seen, WalkEvent, WalkFault, WalkItem, WalkOptions, WalkOrder,
    Walker,
};
pub use wanted::while_wanted;
pub use watch::{SeenChange, TreeChanges, TreeWatch};
