//! SIGHUP: reads the config file again and puts in force what can change while the process runs.
//!
//! Everything that can fail comes first. So a mistake in any of the operator's files leaves all of the old state in force.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Result, bail};
use mcp::AccessChange;
use sandbox::{Cluster, LiveRoot, NamedRoot, Roots};
use toolset::{Deployment, RootGrant};

use super::served::Served;
use crate::commands::check::settings_risks;
use crate::deployment::{Reopening, grant, live_root, with_grants};
use crate::http::{CredentialStore, HostCheck};
use crate::in_force::InForce;
use crate::settings::{ChangedKeys, RootAccess, RootSettings, Settings};
use crate::{histories, open_roots, operator_files, root_watch};

/// Reads all sources of the settings again.
pub(super) type ReadAgain = Box<dyn Fn() -> Result<Settings> + Send + Sync>;

/// The sources that a reload reads, and the state that it changes.
pub(super) struct Reloader {
    pub(super) read: ReadAgain,
    pub(super) in_force: Mutex<Settings>,
    /// The directories to which Landlock confines the process; `None` is everywhere.
    pub(super) locked: Option<LockedDirectories>,
    pub(super) reopening: Reopening,
    pub(super) cluster: Option<Arc<Cluster>>,
    pub(super) served: Arc<Served>,
    pub(super) credentials: Arc<CredentialStore>,
    pub(super) places: Arc<ServedPlaces>,
}

/// Other values from the settings that are read while requests are served.
pub(super) struct ServedPlaces {
    /// The hosts and origins of clients.
    pub(super) host_check: Arc<InForce<HostCheck>>,
    /// Those of the operator's page.
    pub(super) page_host_check: Arc<InForce<HostCheck>>,
    /// The warnings of `check`.
    pub(super) warnings: Arc<InForce<Vec<String>>>,
    /// The names of the clients.
    pub(super) clients: Arc<InForce<Vec<String>>>,
    /// All settings, for the operator's page.
    pub(super) settings: Arc<InForce<Settings>>,
}

impl ServedPlaces {
    pub(super) fn new(settings: &Settings) -> ServedPlaces {
        ServedPlaces {
            host_check: Arc::new(InForce::new(host_check(settings))),
            page_host_check: Arc::new(InForce::new(page_host_check(settings))),
            warnings: Arc::new(InForce::new(settings_risks(settings))),
            clients: Arc::new(InForce::new(client_names(settings))),
            settings: Arc::new(InForce::new(settings.clone())),
        }
    }

    fn replace(&self, settings: &Settings) {
        self.host_check.replace(host_check(settings));
        self.page_host_check.replace(page_host_check(settings));
        self.warnings.replace(settings_risks(settings));
        self.clients.replace(client_names(settings));
        self.settings.replace(settings.clone());
    }
}

fn client_names(settings: &Settings) -> Vec<String> {
    let clients = settings.clients.iter();
    clients.map(|client| client.name.clone()).collect()
}

fn host_check(settings: &Settings) -> HostCheck {
    HostCheck::new(
        &settings.host,
        &settings.allowed_hosts,
        &settings.allowed_origins,
    )
}

fn page_host_check(settings: &Settings) -> HostCheck {
    let host = settings.admin_listen;
    let host = host.map(|address| address.ip().to_string());
    HostCheck::new(&host.unwrap_or_default(), &settings.allowed_hosts, &[])
}

/// The directories that Landlock's rules name, and whether files in them may be changed.
pub(super) struct LockedDirectories(Vec<(PathBuf, bool)>);

impl LockedDirectories {
    pub(super) fn of(roots: &Roots) -> LockedDirectories {
        let roots = roots.iter();
        let directories = roots.map(|root| (root.root.real_path().to_owned(), !root.read_only));
        LockedDirectories(directories.collect())
    }

    fn allow(&self, path: &Path, access: RootAccess) -> bool {
        let writes = access == RootAccess::ReadWrite;
        let mut own = self.0.iter();
        own.any(|(directory, is_writable)| path.starts_with(directory) && (*is_writable || !writes))
    }
}

/// The roots of the next state, and which of them were opened for it.
struct NextRoots {
    grants: Vec<RootGrant>,
    opened: Vec<NamedRoot>,
}

impl Reloader {
    /// Reads everything again, and logs the result.
    pub(super) fn reload(&self) {
        match self.try_reload() {
            Ok(keys) => tell(&keys),
            Err(error) => tracing::error!(
                error = format!("{error:#}"),
                "the configuration, tokens and certificates could not be read again; the old ones stay in force"
            ),
        }
    }

    fn try_reload(&self) -> Result<ChangedKeys> {
        let mut in_force = self.in_force.lock().unwrap_or_else(PoisonError::into_inner);
        let (read, _) = open_roots::without_missing(&(self.read)()?);
        let (mut next, mut keys) = in_force.reloaded(&read);
        keep_issuer(&in_force, &mut next, &mut keys);
        self.keep_roots(&in_force, &mut next, &mut keys);
        check_homes(&next, &read)?;
        let roots = self.roots(&in_force, &next)?;
        let credentials = self.credentials.read(&next)?;
        let before = self.served.admission();
        let before = before.deployment();
        let deployment = Deployment {
            recorder: before.recorder.clone(),
            observer: before.observer.clone(),
            ..with_grants(roots.grants.clone(), &next, Arc::clone(&before.users))
        };
        let changes = |client: Option<&str>| access_change(&in_force, &next, client);
        let served = self.served.prepare(&next, deployment, &changes)?;
        look_after(&before.roots, roots)?;
        // Nothing can fail from here on. Clients get their parts before their tokens let them in.
        self.served.put_in_force(served);
        let revoked = self.credentials.replace(credentials, &next);
        self.served.end_revoked(&revoked);
        self.places.replace(&next);
        *in_force = next;
        Ok(keys)
    }

    /// Keeps those properties of roots that cannot change while the process runs.
    fn keep_roots(&self, before: &Settings, next: &mut Settings, keys: &mut ChangedKeys) {
        let is_shared = next.cluster_state_dir.is_some();
        next.roots.retain_mut(|own| {
            let (name, origin) = (own.name.clone(), own.origin.clone());
            let known = before.roots.iter().find(|root| root.name == name);
            let mut kept = match known {
                Some(known) if known.path == own.path => self.keep_root(known, own, is_shared),
                _ if self.may_serve(own) => Vec::new(),
                _ => vec!["path"],
            };
            if let (Some(known), true) = (known, kept.contains(&"path")) {
                kept.extend(changed_beside_path(known, own));
            }
            let place = origin.strip_suffix(".path").unwrap_or(&origin);
            let restart = kept.iter().map(|key| format!("{place}.{key} ({name})"));
            keys.restart.extend(restart);
            match known {
                _ if !kept.contains(&"path") => true,
                // The directory that had the name before keeps it, under its old settings.
                Some(known) => {
                    own.clone_from(known);
                    true
                }
                None => false,
            }
        });
        let is_changed = before.roots != next.roots;
        keys.applied.retain(|key| key != "roots" || is_changed);
    }

    /// Keeps those properties of one root that cannot change: what Landlock allows there, and its history. Returns
    /// their keys.
    fn keep_root(
        &self,
        known: &RootSettings,
        own: &mut RootSettings,
        is_shared: bool,
    ) -> Vec<&'static str> {
        let mut kept = Vec::new();
        if known.access == RootAccess::ReadWrite && known.history != own.history {
            own.history.clone_from(&known.history);
            kept.push("history");
        }
        if is_shared && known.quota != own.quota {
            own.quota = known.quota;
            kept.push("quota");
        }
        if known.access != own.access && !self.may_serve(own) {
            own.access = known.access;
            kept.push("read_only");
        }
        kept
    }

    /// Tells whether Landlock lets a root be served as the settings have it. A missing directory is not Landlock's
    /// concern.
    fn may_serve(&self, root: &RootSettings) -> bool {
        let Some(locked) = &self.locked else {
            return true;
        };
        match operator_files::look_at(&root.path) {
            Ok((path, _)) => locked.allow(&path, root.access),
            // Opening it reports the reason.
            Err(_) => true,
        }
    }

    /// The roots of the next state. A directory that stays is not opened again: running calls still use its history,
    /// its account and its locks.
    fn roots(&self, before: &Settings, next: &Settings) -> Result<NextRoots> {
        let admission = self.served.admission();
        let served = &admission.deployment().roots;
        let mut roots = NextRoots {
            grants: Vec::new(),
            opened: Vec::new(),
        };
        for own in &next.roots {
            let mut known = before.roots.iter();
            let known = known.find(|root| root.name == own.name && root.path == own.path);
            let granted = served.iter().find(|grant| grant.name == own.name);
            let kept = match (known, granted) {
                (Some(known), Some(grant)) => {
                    self.kept(&grant.root, (known, before), (own, next))?
                }
                _ => None,
            };
            let live = match kept {
                Some(live) => live,
                None => {
                    let opened = open_roots::open_one(own, next, self.cluster.as_ref())?;
                    let live = self.live(Arc::clone(&opened.root), own, next);
                    roots.opened.push(opened);
                    live
                }
            };
            roots.grants.push(grant(live, own, next));
        }
        Ok(roots)
    }

    /// A root that is already open, under the next settings; `None` if it has to be opened.
    fn kept(
        &self,
        live: &Arc<LiveRoot>,
        (known, before): (&RootSettings, &Settings),
        (own, next): (&RootSettings, &Settings),
    ) -> Result<Option<Arc<LiveRoot>>> {
        let is_same = known.host_paths == own.host_paths
            && known.quota == own.quota
            && known.deny == own.deny
            && open_roots::audience(known, before) == open_roots::audience(own, next);
        let current = live.current();
        let wants_history = own.access == RootAccess::ReadWrite && own.history.is_some();
        let lacks_history = |root: &Arc<sandbox::Root>| wants_history && root.history().is_none();
        match current {
            Some(root) if lacks_history(&root) => Ok(None),
            _ if is_same => Ok(Some(Arc::clone(live))),
            None => Ok(None),
            Some(root) => {
                let terms = open_roots::terms(own, next);
                let changed = terms.and_then(|terms| root.on_terms(&terms));
                let changed =
                    changed.map_err(|error| open_roots::bad_directory(own, next, &error))?;
                Ok(Some(self.live(Arc::new(changed), own, next)))
            }
        }
    }

    fn live(&self, root: Arc<sandbox::Root>, own: &RootSettings, next: &Settings) -> Arc<LiveRoot> {
        live_root(root, own, next, (self.reopening, self.cluster.as_ref()))
    }
}

/// The keys of a root whose values changed, apart from its path.
fn changed_beside_path(known: &RootSettings, own: &RootSettings) -> Vec<&'static str> {
    let changed = [
        ("allowed_tools", known.tools != own.tools),
        ("read_only", known.access != own.access),
        ("quota", known.quota != own.quota),
        ("history", known.history != own.history),
        ("confirm", known.confirm != own.confirm),
        ("deny", known.deny != own.deny),
        ("on_missing", known.on_missing != own.on_missing),
        ("host_paths", known.host_paths != own.host_paths),
    ];
    let changed = changed.into_iter().filter(|(_, is_other)| *is_other);
    changed.map(|(key, _)| key).collect()
}

/// The issuer of access tokens cannot change; the clients that its scopes stand for can.
fn keep_issuer(before: &Settings, next: &mut Settings, keys: &mut ChangedKeys) {
    const KEY: &str = "auth.oauth";
    if before.oauth == next.oauth {
        return;
    }
    keys.applied.retain(|key| key != KEY);
    let is_same_issuer = match (&before.oauth, &next.oauth) {
        (Some(known), Some(own)) => known.has_same_issuer(own),
        _ => false,
    };
    if is_same_issuer {
        keys.applied.push(format!("{KEY}.scopes"));
    } else {
        next.oauth.clone_from(&before.oauth);
        keys.restart.push(KEY.to_owned());
    }
}

/// Security: a set whose root cannot be served yet must not use another one meanwhile.
fn check_homes(next: &Settings, read: &Settings) -> Result<()> {
    let homes = [
        ("files.root", &next.files_root),
        ("memory.root", &next.memory_root),
        ("memory_tool.root", &next.memory_tool_root),
    ];
    let has = |settings: &Settings, name: &str| settings.roots.iter().any(|root| root.name == name);
    for (key, name) in homes {
        if let Some(name) = name
            && has(read, name)
            && !has(next, name)
        {
            bail!("{key}: the root {name} cannot be served without a restart");
        }
    }
    Ok(())
}

/// Whether a named client, or callers without a name, may reach other things than before.
fn access_change(before: &Settings, next: &Settings, client: Option<&str>) -> AccessChange {
    let part = |settings: &Settings| {
        let client = client.and_then(|name| settings.clients.iter().find(|own| own.name == name));
        client.map(|client| (client.roots.clone(), client.toolsets.clone()))
    };
    if before.roots == next.roots && part(before) == part(next) {
        AccessChange::Same
    } else {
        AccessChange::Changed
    }
}

/// Does for new roots what the start does for all.
fn look_after(before: &[RootGrant], roots: NextRoots) -> Result<()> {
    let opened = Roots::new(roots.opened);
    histories::recover(&opened);
    histories::prune_in_background(&opened);
    opened.sweeper()();
    let is_new = |grant: &&RootGrant| {
        let mut before = before.iter();
        !before.any(|known| Arc::ptr_eq(&known.root, &grant.root))
    };
    let new: Vec<&RootGrant> = roots.grants.iter().filter(is_new).collect();
    LiveRoot::count_in_background(new.iter().map(|grant| Arc::clone(&grant.root)));
    root_watch::start(new.into_iter())?;
    Ok(())
}

/// Logs what a reload changed, and what it could not change.
fn tell(keys: &ChangedKeys) {
    if !keys.restart.is_empty() {
        tracing::warn!(
            keys = keys.restart.join(", "),
            "changed settings need a restart; their old values stay in force"
        );
    }
    if !keys.applied.is_empty() {
        tracing::info!(
            keys = keys.applied.join(", "),
            "changed settings are in force"
        );
    }
    tracing::info!("the configuration, tokens and certificates were read again");
}
