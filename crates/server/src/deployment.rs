//! Turns the settings into what the tools get: roots, rights and limits.

use std::collections::BTreeSet;
use std::sync::Arc;

use sandbox::{Cluster, LiveRoot, NamedRoot, Reopen, Roots, Users};
use toolset::{Allowlist, Deployment, MemoryToolChoices, RootGrant};

use crate::settings::{AllowedTools, RootSettings, Settings, Toolset};
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
    users: Users,
    reopening: Reopening,
) -> Deployment {
    let granted = roots.iter().zip(&settings.roots);
    Deployment {
        roots: granted
            .map(|(root, own)| grant(root, own, settings, (reopening, roots.cluster())))
            .collect(),
        limits: Arc::new(ops::Limits {
            max_full_read_size: settings.max_full_read_size,
            max_file_size: settings.max_file_size,
            max_viewed_size: match settings.is_max_file_size_given {
                true => settings.max_file_size.min(ops::WHOLE_FILE_MAX),
                false => ops::WHOLE_FILE_MAX,
            },
            search_timeout: settings.search_timeout,
            search_memory: settings.search_memory,
            durability: settings.durability,
        }),
        users: Arc::new(users),
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
        memory_tool: MemoryToolChoices {
            store: settings.memory_tool_store,
            create: settings.memory_tool_create,
        },
        recorder: None,
        observer: None,
    }
}

fn grant(
    root: &NamedRoot,
    own: &RootSettings,
    settings: &Settings,
    (reopening, cluster): (Reopening, Option<&Arc<Cluster>>),
) -> RootGrant {
    let reopen = || -> Reopen {
        let (own, cluster) = (own.clone(), cluster.cloned());
        let audience = open_roots::audience(&own, settings);
        Box::new(move || open_roots::reopen(&own, audience, cluster.as_ref()))
    };
    let reopen = (reopening == Reopening::Yes).then(reopen);
    RootGrant {
        root: Arc::new(LiveRoot::new(Arc::clone(&root.root), reopen)),
        read_only: root.read_only,
        tools: match &own.tools {
            AllowedTools::All => Allowlist::All,
            AllowedTools::Only(names) => Allowlist::Only(names.clone()),
        },
        home_of: homes(own, settings),
        ..RootGrant::new(root.name.clone(), Arc::clone(&root.root))
    }
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
