//! The directory that replicas share: where it is, and whether locks in it protect anything.
//!
//! A mistake here loses changes without a word, so each is an error at the start.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use sandbox::{Cluster, Mount, MountFault, Roots, is_out_of_sight};

use crate::open_roots;
use crate::operator_files::{self, reason};
use crate::settings::{KeyPath, RootAccess, RootSettings, Settings, SettingsError, StateDir};

/// The setting.
const KEY: &str = "cluster.state_dir";
/// The place in a root, out of the clients' sight.
const IN_ROOT: &str = ".mcp-filesystem/cluster";

/// Opens the directory that replicas share, if the settings say that there are any.
pub(crate) fn open(settings: &Settings) -> Result<Option<Arc<Cluster>>, SettingsError> {
    let Some(path) = chosen(settings)? else {
        return Ok(None);
    };
    // The shared directory is made with all above it: that must not make the missing directory of a root.
    let mut roots = settings.roots.iter();
    roots.try_for_each(|root| open_roots::check_there(root, settings))?;
    check_out_of_sight(&path, settings)?;
    let opened = Cluster::open(&path);
    let opened = opened.map_err(|error| unusable(&path, reason(&error), settings))?;
    // Now that all of it is there, no `..` in the path can hide where it is.
    check_out_of_sight(&path, settings)?;
    Ok(Some(opened))
}

/// The directory that the settings choose.
fn chosen(settings: &Settings) -> Result<Option<PathBuf>, SettingsError> {
    Ok(match &settings.cluster_state_dir {
        None => None,
        Some(StateDir::At(path)) => Some(path.clone()),
        Some(StateDir::InRoot) => Some(only_writable_root(settings)?.path.join(IN_ROOT)),
    })
}

/// The root that holds the directory if no other is named. With several, replicas could choose different ones.
fn only_writable_root(settings: &Settings) -> Result<&RootSettings, SettingsError> {
    let is_writable = |root: &&RootSettings| root.access == RootAccess::ReadWrite;
    let mut writable = settings.roots.iter().filter(is_writable);
    match (writable.next(), writable.count()) {
        (Some(only), 0) => Ok(only),
        (first, more) => {
            let count = more + usize::from(first.is_some());
            let fault = SettingsError::Missing {
                path: KeyPath::default().key("cluster").key("state_dir"),
                expected: format!(
                    "the directory that all replicas share; it is in the root only if exactly one is writable, and {count} are"
                ),
            };
            Err(in_file(fault, settings))
        }
    }
}

/// Security: clients must not see or change what orders the changes of replicas.
fn check_out_of_sight(path: &Path, settings: &Settings) -> Result<(), SettingsError> {
    let place = future_place(path);
    let shows = |root: &&RootSettings| {
        let inside = place.strip_prefix(future_place(&root.path));
        inside.is_ok_and(|inside| !is_out_of_sight(inside))
    };
    match settings.roots.iter().find(shows) {
        None => Ok(()),
        Some(root) => {
            let advice = format!(
                "it is in the root \"{}\", where clients see it; name a directory below .mcp-filesystem, or one outside all roots",
                root.name
            );
            Err(unusable(path, advice, settings))
        }
    }
}

/// The real path of something that may not be there yet.
fn future_place(path: &Path) -> PathBuf {
    let mut above = path.ancestors();
    let known = above.find_map(|above| Some((above, operator_files::look_at(above).ok()?)));
    match known {
        Some((above, (real, _))) => path
            .strip_prefix(above)
            .map_or_else(|_| path.to_owned(), |missing| real.join(missing)),
        None => path.to_owned(),
    }
}

/// Fails if replicas on other machines would not see each other's locks.
pub(crate) fn check_mounts(
    cluster: &Cluster,
    roots: &Roots,
    settings: &Settings,
) -> Result<(), SettingsError> {
    let shared = chosen(settings)?.unwrap_or_default();
    for (root, own) in roots.iter().zip(&settings.roots) {
        let fault = cluster.mount_fault(&root.root);
        let reason = match fault.filter(|_| !root.read_only) {
            None => continue,
            Some(MountFault::RootKeepsLocks(option)) => {
                let reason = std::io::Error::other(kept_locks(&option));
                return Err(open_roots::bad_directory(own, settings, &reason));
            }
            Some(MountFault::SharedKeepsLocks(option)) => kept_locks(&option),
            Some(MountFault::Apart(kind)) => format!(
                "it is on this machine, and the root \"{}\" on a file server ({kind}): other machines do not see its locks; name \
                 a directory on the file server",
                root.name
            ),
        };
        return Err(unusable(&shared, reason, settings));
    }
    Ok(())
}

fn kept_locks(option: &str) -> String {
    format!(
        "it is mounted with {option}, so other machines do not see its locks; mount it without this option"
    )
}

/// The risk of roots that other machines may change too, without anything that orders the changes.
pub(crate) fn risk(roots: &Roots, settings: &Settings) -> Option<String> {
    if settings.cluster_state_dir.is_some() {
        return None;
    }
    let writable = roots.iter().filter(|root| !root.read_only);
    let remote = |mount: &Mount| mount.is_remote();
    let told = writable.filter_map(|root| {
        let mount = root.root.distant_mount().filter(remote)?;
        Some(format!("\"{}\" ({})", root.name, mount.file_system()))
    });
    unordered(&told.collect::<Vec<_>>())
}

fn unordered(roots: &[String]) -> Option<String> {
    (!roots.is_empty()).then(|| {
        format!(
            "a file server has the files of these roots, and cluster is not set: {}; if several processes or machines \
             serve one of them, they lose each other's changes (docs/scale.md)",
            roots.join(", ")
        )
    })
}

fn unusable(path: &Path, reason: String, settings: &Settings) -> SettingsError {
    let fault = SettingsError::BadDirectory {
        origin: KEY.to_owned(),
        path: path.to_owned(),
        reason,
    };
    in_file(fault, settings)
}

fn in_file(fault: SettingsError, settings: &Settings) -> SettingsError {
    match &settings.config_file {
        Some(file) => fault.in_file(file),
        None => fault,
    }
}
