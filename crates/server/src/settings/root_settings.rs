//! The directories that are served: their names, what is allowed in them, and where they came from.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use sandbox::Quota;

use toolset::every_set;

use super::Toolset;

/// One directory that is served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RootSettings {
    /// Its name for clients.
    pub(crate) name: String,
    /// Its absolute path on the host.
    pub(crate) path: PathBuf,
    /// Its origin, for messages: `roots[0].path`, `DIR`, `--root-dir`.
    pub(crate) origin: String,
    /// The tools that may be used in it.
    pub(crate) tools: AllowedTools,
    /// Whether anything in it may be changed.
    pub(crate) access: RootAccess,
    /// Its quota; at least one of the two limits is set.
    pub(crate) quota: Option<Quota>,
    /// How replaced and removed content is kept.
    pub(crate) history: Option<HistoryKept>,
    /// What a person has to confirm.
    pub(crate) confirm: Option<ConfirmSettings>,
    /// The globs of what it hides.
    pub(crate) deny: Vec<String>,
    /// What happens if the directory does not exist.
    pub(crate) on_missing: OnMissingRoot,
    /// Whether absolute paths on the host that lead into it are taken as paths inside it.
    pub(crate) host_paths: bool,
}

impl RootSettings {
    /// A root with every tool allowed, as the command line gives it.
    pub(crate) fn open_to_all(name: String, path: PathBuf, origin: &str) -> RootSettings {
        RootSettings {
            name,
            path,
            origin: origin.to_owned(),
            tools: AllowedTools::All,
            access: RootAccess::ReadWrite,
            quota: None,
            history: Some(HistoryKept::default()),
            confirm: None,
            deny: Vec::new(),
            on_missing: OnMissingRoot::Fail,
            // The person who named the directory on the command line works in it under that name.
            host_paths: true,
        }
    }
}

/// What a call may do in a root without asking a person first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ConfirmSettings {
    /// How many files it may remove.
    pub(crate) remove: Option<u64>,
    /// How many files it may overwrite.
    pub(crate) overwrite: Option<u64>,
    /// The tools that always ask.
    pub(crate) tools: Option<AllowedTools>,
}

/// How the history of a root is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HistoryKept {
    /// Where it is.
    pub(crate) place: HistoryWhere,
    /// How long a change is kept.
    pub(crate) keep: Duration,
    /// How many bytes of old content are kept.
    pub(crate) max_bytes: u64,
    /// How many changes are kept.
    pub(crate) max_changes: u64,
    /// Whether a client may undo what others changed.
    pub(crate) undo_any: bool,
}

impl Default for HistoryKept {
    fn default() -> HistoryKept {
        HistoryKept {
            place: HistoryWhere::Auto,
            keep: Duration::from_secs(7 * 24 * 60 * 60),
            max_bytes: 1 << 30,
            max_changes: 100_000,
            undo_any: false,
        }
    }
}

/// Where the history of a root is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum HistoryWhere {
    /// In the state directory if that is on the root's file system, else in the root.
    Auto,
    /// In the root.
    Root,
    /// Below this directory.
    At(PathBuf),
}

/// Where replicas keep what they share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum StateDir {
    /// In the only writable root, out of the clients' sight.
    InRoot,
    /// In this directory.
    At(PathBuf),
}

/// Whether anything in a root may be changed, whatever its allowlist says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RootAccess {
    /// The allowlist decides.
    ReadWrite,
    /// Every tool that changes anything is refused.
    ReadOnly,
}

/// What happens if a root's directory does not exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OnMissingRoot {
    /// The server does not start.
    Fail,
    /// It is created.
    Create,
}

/// The tools that may be used in a root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum AllowedTools {
    /// `"*"`: all of them.
    All,
    /// Those that were named: `copy` in every set, `files.copy` in one.
    Only(BTreeSet<String>),
}

impl AllowedTools {
    /// All tools of some sets, and nothing of the others.
    pub(crate) fn all_of(toolsets: &[Toolset]) -> AllowedTools {
        let names = toolsets.iter().flat_map(|toolset| {
            let set = toolset.name();
            let tools = tools_of(set).iter();
            tools.map(move |tool| format!("{set}.{tool}"))
        });
        AllowedTools::Only(names.collect())
    }

    /// Tells whether a tool of a set may be used.
    pub(crate) fn allows(&self, toolset: Toolset, tool: &str) -> bool {
        match self {
            AllowedTools::All => true,
            AllowedTools::Only(names) => {
                names.contains(tool) || names.contains(&format!("{}.{tool}", toolset.name()))
            }
        }
    }
}

/// The tools of a set that an allowlist decides on.
pub(crate) fn tools_of(set: &str) -> &'static [&'static str] {
    let set = every_set().iter().find(|names| names.set == set);
    set.map_or(&[], |names| &names.restricted)
}

/// Names each directory after its last component, adding `-2`, `-3` … if a name is taken.
pub(crate) fn named_after_their_last_component(
    directories: impl IntoIterator<Item = (PathBuf, &'static str)>,
) -> Vec<RootSettings> {
    let mut roots: Vec<RootSettings> = Vec::new();
    for (path, origin) in directories {
        roots.push(RootSettings::open_to_all(
            name_for(&path, &roots),
            path,
            origin,
        ));
    }
    roots
}

/// A name after the last component of `path` that no other root has.
pub(crate) fn name_for(path: &Path, taken: &[RootSettings]) -> String {
    let wanted = last_component(path);
    let is_free = |name: &String| taken.iter().all(|root| root.name != *name);
    let numbered = (2..).map(|number: u64| format!("{wanted}-{number}"));
    std::iter::once(wanted.clone())
        .chain(numbered)
        .find(is_free)
        .unwrap_or_default()
}

/// The last name of a path once `.` and `..` are taken out of its text; `root` for `/`.
fn last_component(path: &Path) -> String {
    let mut names = Vec::new();
    for component in path.components() {
        match component {
            Component::Normal(name) => names.push(name.to_string_lossy()),
            Component::ParentDir => drop(names.pop()),
            Component::CurDir | Component::RootDir | Component::Prefix(_) => {}
        }
    }
    let name = names.pop().unwrap_or("root".into());
    name.chars()
        .map(|shown| if shown.is_control() { '_' } else { shown })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(paths: &[&str]) -> Vec<String> {
        let directories = paths.iter().map(|path| (PathBuf::from(path), "DIR"));
        let roots = named_after_their_last_component(directories);
        roots.into_iter().map(|root| root.name).collect()
    }

    #[test]
    fn clashing_names_get_numbers_that_are_free() {
        assert_eq!(
            names(&["/a/src", "/b/src", "/c/src"]),
            ["src", "src-2", "src-3"]
        );
        assert_eq!(
            names(&["/a/x", "/b/x-2", "/c/x", "/d/x"]),
            ["x", "x-2", "x-3", "x-4"]
        );
    }

    #[test]
    fn odd_paths_still_get_a_name() {
        assert_eq!(
            names(&["/", "/a/.", "/a/b/..", "/a/n\nl/"]),
            ["root", "a", "a-2", "n_l"]
        );
    }

    #[test]
    fn a_narrowed_name_allows_one_set_only() {
        let names = ["copy", "files.delete"].map(str::to_owned);
        let tools = AllowedTools::Only(names.into());
        assert!(tools.allows(Toolset::Workspace, "copy") && tools.allows(Toolset::Files, "copy"));
        assert!(tools.allows(Toolset::Files, "delete"));
        assert!(!tools.allows(Toolset::Memory, "delete"));
        assert!(!tools.allows(Toolset::Files, "write"));
        assert!(AllowedTools::All.allows(Toolset::Memory, "delete"));
    }
}
