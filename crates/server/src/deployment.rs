//! Converts the settings for the tools: roots, rights and limits.

use std::collections::BTreeSet;
use std::sync::Arc;

use sandbox::{Cluster, LiveRoot, Reopen, Rights, Root, Roots, Users, View};
use toolset::{
    Allowlist, ClientGrant, ClientRootGrant, ConfirmRule, Deployment, MemoryToolChoices, RootGrant,
};

use crate::settings::{
    AllowedTools, ClientRoot, ClientSettings, RootAccess, RootSettings, Settings, Toolset,
};
use crate::{open_roots, operator_files};

/// Whether a directory that takes the place of a root's is opened while the server runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reopening {
    Yes,
    No,
}

/// Builds the deployment of the tools.
pub(crate) fn deployment(
    settings: &Settings,
    roots: &Roots,
    users: Arc<Users>,
    reopening: Reopening,
) -> Deployment {
    let granted = roots.iter().zip(&settings.roots);
    let grants = granted.map(|(root, own)| {
        let live = live_root(
            Arc::clone(&root.root),
            own,
            settings,
            (reopening, roots.cluster()),
        );
        grant(live, own, settings)
    });
    let grants = grants.collect();
    with_grants(grants, settings, users)
}

/// Builds the deployment of the tools in these roots.
pub(crate) fn with_grants(
    roots: Vec<RootGrant>,
    settings: &Settings,
    users: Arc<Users>,
) -> Deployment {
    Deployment {
        roots,
        limits: Arc::new(limits(settings)),
        users,
        request_timeout: settings.request_timeout,
        max_concurrent_calls: settings.max_concurrent_calls,
        held_bytes: ops::ByteLimits {
            all: settings.max_held_bytes,
            of_one: settings.max_held_bytes_per_client,
        },
        rate: settings.rate,
        replies: settings.replies,
        text: settings.text,
        root_header: settings.root_header,
        home: operator_files::home_directory(),
        confirm_timeout: settings.confirm_timeout,
        has_clients: !settings.clients.is_empty(),
        memory_tool: MemoryToolChoices {
            store: settings.memory_tool_store,
            create: settings.memory_tool_create,
        },
        recorder: None,
        observer: None,
    }
}

fn limits(settings: &Settings) -> ops::Limits {
    ops::Limits {
        max_full_read_size: settings.max_full_read_size,
        max_file_size: settings.max_file_size,
        max_viewed_size: match settings.is_max_file_size_given {
            true => settings.max_file_size.min(ops::WHOLE_FILE_MAX),
            false => ops::WHOLE_FILE_MAX,
        },
        search_timeout: settings.search_timeout,
        search_memory: settings.search_memory,
        durability: settings.durability,
    }
}

/// A root that is watched while the server runs.
pub(crate) fn live_root(
    root: Arc<Root>,
    own: &RootSettings,
    settings: &Settings,
    (reopening, cluster): (Reopening, Option<&Arc<Cluster>>),
) -> Arc<LiveRoot> {
    let reopen = || -> Reopen {
        let (own, cluster) = (own.clone(), cluster.cloned());
        let audience = open_roots::audience(&own, settings);
        Box::new(move || open_roots::reopen(&own, audience, cluster.as_ref()))
    };
    let reopen = (reopening == Reopening::Yes).then(reopen);
    Arc::new(LiveRoot::new(root, reopen))
}

/// What every caller may do in a root.
pub(crate) fn grant(root: Arc<LiveRoot>, own: &RootSettings, settings: &Settings) -> RootGrant {
    RootGrant {
        name: own.name.clone(),
        root,
        read_only: own.access == RootAccess::ReadOnly,
        tools: allowlist(&own.tools),
        confirm: own.confirm.as_ref().map(|confirm| ConfirmRule {
            removes: confirm.remove,
            overwrites: confirm.overwrite,
            tools: confirm.tools.as_ref().map(allowlist),
        }),
        client_tools: Allowlist::All,
        rights: Rights::ALL,
        home_of: homes(own, settings),
    }
}

fn allowlist(tools: &AllowedTools) -> Allowlist {
    match tools {
        AllowedTools::All => Allowlist::All,
        AllowedTools::Only(names) => Allowlist::Only(names.clone()),
    }
}

/// What a named client may do: its part of each root is made here, once.
pub(crate) fn client_grant(
    client: &ClientSettings,
    settings: &Settings,
    deployment: &Deployment,
) -> ClientGrant {
    let part = |grant: &RootGrant| {
        let own = settings.roots.iter().find(|own| own.name == grant.name)?;
        client_root(grant, own, client.root(&grant.name)?)
    };
    let names = |sets: &Vec<Toolset>| sets.iter().map(|set| set.name().to_owned()).collect();
    ClientGrant {
        name: client.name.as_str().into(),
        roots: deployment.roots.iter().filter_map(part).collect(),
        toolsets: client.toolsets.as_ref().map(names),
        rate: client.rate,
        max_calls: client.max_calls,
    }
}

/// A client's part of a root; `None` if its globs are invalid, which the settings have ruled out.
fn client_root(
    grant: &RootGrant,
    own: &RootSettings,
    part: &ClientRoot,
) -> Option<ClientRootGrant> {
    let mut root = Arc::clone(&grant.root);
    if !part.paths.is_empty() {
        // The root's own `deny` still applies: a root has one view.
        let view = View::new(&part.paths, &own.deny).ok()??;
        root = Arc::new(root.seen_through(Arc::new(view)));
    }
    if part.rights != Rights::ALL {
        root = Arc::new(root.with_rights(part.rights));
    }
    Some(ClientRootGrant {
        name: grant.name.clone(),
        root,
        tools: allowlist(&part.tools),
        rights: part.rights,
    })
}

/// The single-root sets that use this root.
fn homes(own: &RootSettings, settings: &Settings) -> BTreeSet<String> {
    let sets = [Toolset::Files, Toolset::Memory, Toolset::MemoryTool].into_iter();
    let lives_here = |set: &Toolset| {
        settings
            .root_of(*set)
            .is_some_and(|home| home.name == own.name)
    };
    sets.filter(lives_here)
        .map(|set| set.name().to_owned())
        .collect()
}
