//! Opens the roots of the settings, once, at start-up.
//!
//! Only this file passes host paths to the sandbox; afterwards a root is a descriptor and a name.

use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

use ops::text::near_names::nearest;
use sandbox::{
    Change, Cluster, Durability, FileAccess, Follow, HistoryPlace, HistorySettings, NamedRoot,
    OnExisting, Parents, RelPath, Root, RootTerms, Roots, View,
};

use crate::command_line;
use crate::operator_files::{self, reason};
use crate::settings::SettingsError;
use crate::settings::{
    HistoryKept, HistoryWhere, OnMissingRoot, RootAccess, RootSettings, Settings, TYPED, Toolset,
};
use crate::shared_directory;

/// Opens every root. The error names the first that is not a usable directory.
pub(crate) fn open(settings: &Settings) -> Result<Roots, SettingsError> {
    let cluster = shared_directory::open(settings)?;
    let roots = settings.roots.iter();
    let roots = roots.map(|root| open_one(root, settings, cluster.as_ref()));
    let roots = roots.collect::<Result<Vec<_>, _>>().map(Roots::new)?;
    if let Some(cluster) = &cluster {
        shared_directory::check_mounts(cluster, &roots, settings)?;
    }
    Ok(roots.of_cluster(cluster))
}

/// Fails if the directory of a root is missing and is not to be made.
pub(crate) fn check_there(root: &RootSettings, settings: &Settings) -> Result<(), SettingsError> {
    match Root::open(&root.path) {
        Err(error) if !is_to_be_created(root, &error) => Err(bad_directory(root, settings, &error)),
        _ => Ok(()),
    }
}

/// Who may access new files in a root.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Audience {
    /// Those whom the umask allows.
    AsUsual,
    /// Only their owner.
    Owner,
}

/// Who may access new files in a root: files of `memory_tool` are private.
pub(crate) fn audience(root: &RootSettings, settings: &Settings) -> Audience {
    let home = settings.root_of(Toolset::MemoryTool);
    let is_home = home.is_some_and(|home| home.name == root.name);
    if settings.serves(Toolset::MemoryTool) && is_home {
        Audience::Owner
    } else {
        Audience::AsUsual
    }
}

/// The settings without the missing ones of the typed directories, and those separately. Only for a set whose clients
/// expect that, and only if a directory is left.
pub(crate) fn without_missing(settings: &Settings) -> (Settings, Vec<RootSettings>) {
    let mut left = settings.clone();
    let is_missing = |root: &RootSettings| {
        let missing = Root::open(&root.path).err();
        let missing = missing.map(|error| error.kind());
        root.origin == TYPED
            && matches!(
                missing,
                Some(io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
            )
    };
    let (missing, there): (Vec<_>, Vec<_>) = left.roots.drain(..).partition(is_missing);
    if settings.toolsets != [Toolset::Reference] || there.is_empty() {
        return (settings.clone(), Vec::new());
    }
    left.roots = there;
    (left, missing)
}

/// What this process may do with the root's own directory.
pub(crate) fn access(root: &Root) -> Option<FileAccess> {
    let itself = RelPath::parse(".").ok()?;
    let located = root.locate(&itself, Follow::Last).ok()?;
    Some(located.access())
}

/// Opens one root.
pub(crate) fn open_one(
    root: &RootSettings,
    settings: &Settings,
    cluster: Option<&Arc<Cluster>>,
) -> Result<NamedRoot, SettingsError> {
    let audience = audience(root, settings);
    let open_directory = || open_directory(root, audience, cluster);
    let opened = match open_directory() {
        Err(error) if is_to_be_created(root, &error) => {
            create(&root.path, audience).and_then(|()| open_directory())
        }
        opened => opened,
    };
    let opened = opened.map_err(|error| bad_directory(root, settings, &error))?;
    Ok(NamedRoot {
        name: root.name.clone(),
        root: Arc::new(opened),
        read_only: root.access == RootAccess::ReadOnly,
    })
}

/// The settings of an open root.
pub(crate) fn terms(root: &RootSettings, settings: &Settings) -> io::Result<RootTerms> {
    let view = View::new(&[], &root.deny).map_err(io::Error::other)?;
    Ok(RootTerms {
        host_paths: root.host_paths,
        private_entries: audience(root, settings) == Audience::Owner,
        quota: root.quota,
        view: view.map(Arc::new),
    })
}

/// Opens a root again whose directory was replaced while the server runs, with the checks of the start.
pub(crate) fn reopen(
    root: &RootSettings,
    audience: Audience,
    cluster: Option<&Arc<Cluster>>,
) -> Option<Root> {
    open_directory(root, audience, cluster).ok()
}

fn open_directory(
    root: &RootSettings,
    audience: Audience,
    cluster: Option<&Arc<Cluster>>,
) -> io::Result<Root> {
    let opened = for_audience(Root::open(&root.path)?, audience);
    check_usable(&opened, root)?;
    let opened = if root.host_paths {
        opened.taking_host_paths()
    } else {
        opened
    };
    let opened = with_records(opened, root, cluster)?;
    // The globs were checked with the settings.
    match View::new(&[], &root.deny).map_err(io::Error::other)? {
        Some(view) => Ok(opened.seen_through(Arc::new(view))),
        None => Ok(opened),
    }
}

/// A directory has to be readable; one that the server may create is for writing.
fn check_usable(opened: &Root, root: &RootSettings) -> io::Result<()> {
    match access(opened) {
        Some(access) if access.readable && access.executable => {}
        _ => return Err(io::ErrorKind::PermissionDenied.into()),
    }
    if root.on_missing == OnMissingRoot::Create && !takes_files(opened) {
        return Err(io::Error::other("no file can be made in it"));
    }
    Ok(())
}

/// The root with its state: the quota's account, the replicas' shared directory, and its history.
fn with_records(
    opened: Root,
    root: &RootSettings,
    cluster: Option<&Arc<Cluster>>,
) -> io::Result<Root> {
    let opened = match root.quota {
        Some(quota) => opened.with_quota(quota)?,
        None => opened,
    };
    let opened = match cluster {
        Some(cluster) => opened.with_cluster(Arc::clone(cluster), &root.name)?,
        None => opened,
    };
    match &root.history {
        Some(kept) if root.access == RootAccess::ReadWrite => {
            opened.with_history(history_settings(kept))
        }
        _ => Ok(opened),
    }
}

fn for_audience(root: Root, audience: Audience) -> Root {
    match audience {
        Audience::AsUsual => root,
        Audience::Owner => root.with_private_entries(),
    }
}

fn history_settings(kept: &HistoryKept) -> HistorySettings {
    HistorySettings {
        place: match &kept.place {
            HistoryWhere::Auto => HistoryPlace::Auto(operator_files::state_directories()),
            HistoryWhere::Root => HistoryPlace::Root,
            HistoryWhere::At(path) => HistoryPlace::At(path.clone()),
        },
        keep: kept.keep,
        max_bytes: kept.max_bytes,
        max_changes: kept.max_changes,
        undo_any: kept.undo_any,
    }
}

/// Tells whether files can be created in a directory, by staging one and dropping it. Permission bits are not enough:
/// they do not bind the administrator, and the file system may be read-only.
fn takes_files(root: &Root) -> bool {
    let begun = RelPath::parse(".probe").and_then(|name| {
        let place = root.locate(&name, Follow::Never)?;
        Change::begin(Durability::Fast).stage(&place, OnExisting::Replace, Parents::Require)
    });
    begun.is_ok()
}

fn is_to_be_created(root: &RootSettings, error: &io::Error) -> bool {
    root.on_missing == OnMissingRoot::Create && error.kind() == io::ErrorKind::NotFound
}

/// Creates a directory and its parents.
fn create(path: &Path, audience: Audience) -> io::Result<()> {
    let whole = for_audience(Root::open(Path::new("/"))?, audience);
    let made = RelPath::parse(&sandbox::shown(path.as_os_str().as_bytes())).and_then(|path| {
        let place = whole.locate(&path, Follow::Last)?;
        Change::begin(Durability::Fsync).make_dirs(&place)
    });
    made.map(drop).map_err(io::Error::other)
}

/// The error of a root that is not a usable directory.
pub(crate) fn bad_directory(
    root: &RootSettings,
    settings: &Settings,
    error: &io::Error,
) -> SettingsError {
    let fault = SettingsError::BadDirectory {
        origin: root.origin.clone(),
        path: root.path.clone(),
        reason: reason(error) + &meant_command(root, error),
    };
    match &settings.config_file {
        Some(file) if root.origin.starts_with("roots[") => fault.in_file(file),
        _ => fault,
    }
}

/// What to add if a directory that was typed is missing and reads like a command.
fn meant_command(root: &RootSettings, error: &io::Error) -> String {
    let name = root.path.file_name().map(|name| name.to_string_lossy());
    let is_missing = root.origin == TYPED && error.kind() == io::ErrorKind::NotFound;
    let commands: Vec<String> = command_line::command()
        .get_subcommands()
        .map(|command| command.get_name().to_owned())
        .collect();
    let near = name
        .filter(|_| is_missing)
        .and_then(|name| nearest(&name, &commands).cloned());
    near.map_or_else(String::new, |near| {
        format!("; did you mean the command {near}?")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::{Partial, RootSettings};

    fn settings(path: &Path, on_missing: OnMissingRoot) -> Settings {
        let root = RootSettings::open_to_all("a".to_owned(), path.to_owned(), "--base-path");
        let root = RootSettings { on_missing, ..root };
        Partial {
            roots: Some(vec![root]),
            ..Partial::default()
        }
        .complete()
    }

    #[test]
    fn a_missing_directory_is_created_only_where_that_was_asked_for() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("new/notes");
        assert!(open(&settings(&path, OnMissingRoot::Fail)).is_err());
        let roots = open(&settings(&path, OnMissingRoot::Create)).unwrap();
        let access = access(&roots.get("a").unwrap().root).unwrap();
        assert!(access.readable && access.writable);
        assert!(open(&settings(&path, OnMissingRoot::Fail)).is_ok());
    }
}
