//! From settings to a running server, in the one order that works.
//!
//! Roots, port and user names are taken first, because they need more of the host than the roots;
//! then the process locks itself in; only then the first threads begin (the log's, the runtime's).

use std::collections::BTreeSet;
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, anyhow};
use mcp::Server;
use sandbox::{Exception, ExceptionRights, NamedRoot, Roots, Users};
use toolset::{Allowlist, Deployment, Gate, RootGrant, Service};

use crate::cli::Arguments;
use crate::config::reason;
use crate::door::Door;
use crate::keys::KeyRing;
use crate::log::AuditFile;
use crate::project::Project;
use crate::sets::tools_of;
use crate::settings::{
    AllowedTools, Replies, RootSettings, Sessions, Settings, Toolset, Transport,
};
use crate::{call, http, listen, log, operator, project, reload, roots, shutdown, stdio, welcome};

/// How long work that hangs in the kernel may keep the process.
const LAST_WORK: Duration = Duration::from_millis(500);

/// When a process that has just begun does what nobody waits for.
const AFTER_START: Duration = Duration::from_millis(50);

/// Serves until the client hangs up or the process is asked to stop. `arguments` are those that start the same server
/// from anywhere, for a person to copy.
pub(crate) fn run(settings: &Settings, arguments: &[String]) -> Result<()> {
    sandbox::raise_descriptor_limit();
    let roots = roots::open(settings)?;
    let project = project::open(settings)?;
    let listener = match settings.transport {
        Transport::Stdio => None,
        Transport::Http => Some(listen::bind(settings)?),
    };
    let users = Users::load();
    let keys = Arc::new(KeyRing::load(settings)?);
    let audit = settings.audit_file.as_deref().map(audit_file).transpose()?;
    let protection = sandbox::lock_in(&roots, settings.landlock.into(), &exceptions(settings))?;

    let log = log::start(settings, audit)?;
    roots.count_in_background();
    project.iter().for_each(Project::warn);
    let gate = Gate::new(Deployment {
        recorder: log.recorder(),
        ..deployment(settings, &roots, users)
    });
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    let address = listener.as_ref().and_then(|one| one.local_addr().ok());
    welcome::greet(settings, address, arguments);
    log::started(settings, &place(address), &protection.to_string());
    let reload = reload::on_hangup(log.reopener(), Arc::clone(&keys));
    let sweep = roots.sweeper();
    let ended = runtime.block_on(async {
        tokio::spawn(reload);
        tokio::spawn(after_start(sweep));
        serve(settings, listener, gate, keys, project.as_ref()).await
    });
    runtime.shutdown_timeout(LAST_WORK);
    ended
}

/// Does what can wait until a process that has just begun has answered its client for the first time.
async fn after_start(work: impl FnOnce()) {
    tokio::time::sleep(AFTER_START).await;
    work();
}

/// Makes what clients see of the tools, so that the first who asks does not wait for it.
fn prepared(service: Service) -> impl FnOnce() {
    move || {
        let _ = service.listed();
    }
}

/// Takes one call from the shell through the same walls as a client's.
pub(crate) fn call_once(settings: &Settings, tool: &str, arguments: &Arguments) -> Result<()> {
    let roots = roots::open(settings)?;
    let project = project::open(settings)?;
    let users = Users::load();
    sandbox::lock_in(&roots, settings.landlock.into(), &[])?;
    let gate = Gate::new(deployment(settings, &roots, users));
    let service = every_set(settings, gate, project.as_ref())?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(call::run(&service, tool, arguments))
}

fn audit_file(path: &Path) -> Result<AuditFile> {
    let file = AuditFile::open(path);
    file.map_err(|error| anyhow!("log.audit_file: {path:?}: {}", reason(&error)))
}

/// What stays reachable beside the roots, to be read or opened again on SIGHUP. A file may then be another one of the
/// same name, so it is its directory that is let through.
fn exceptions(settings: &Settings) -> Vec<Exception<'_>> {
    let tls = settings.tls.as_ref().map(|tls| [&tls.cert, &tls.key]);
    let read = tls.into_iter().flatten();
    let read = read.chain(&settings.bearer_tokens_file);
    let read = read.map(|path| (path, ExceptionRights::Read));
    let written = settings.audit_file.iter();
    let written = written.map(|path| (path, ExceptionRights::Write));
    let all = read.chain(written).map(|(path, rights)| Exception {
        path: operator::directory_of(path),
        rights,
    });
    all.collect()
}

/// One service that speaks all configured sets.
fn every_set(settings: &Settings, gate: Arc<Gate>, project: Option<&Project>) -> Result<Service> {
    let desk = project.map(|project| &project.desk);
    let sets = settings.toolsets.iter().map(|set| tools_of(*set, desk));
    Ok(Service::new(sets.collect(), gate)?)
}

async fn serve(
    settings: &Settings,
    listener: Option<TcpListener>,
    gate: Arc<Gate>,
    keys: Arc<KeyRing>,
    project: Option<&Project>,
) -> Result<()> {
    let shutdown = shutdown::on_signals()?;
    let max_size = usize::try_from(settings.max_body_size).unwrap_or(usize::MAX);
    let Some(listener) = listener else {
        let service = every_set(settings, gate, project)?;
        tokio::spawn(after_start(prepared(service.clone())));
        stdio::serve(Server::new(service), max_size, shutdown).await;
        return Ok(());
    };
    let options = http::Options {
        door: Door::new(
            &settings.host,
            &settings.allowed_hosts,
            &settings.allowed_origins,
        ),
        keys,
        gate: Arc::clone(&gate),
        desk: project.map(|project| Arc::clone(&project.desk)),
        max_body_size: max_size,
        max_connections: settings.max_connections,
    };
    let endpoints = settings
        .toolsets
        .iter()
        .map(|set| endpoint(*set, settings, &gate, project));
    let endpoints = endpoints.collect::<Result<_>>()?;
    let listener = tokio::net::TcpListener::from_std(listener)?;
    http::serve(listener, options, endpoints, shutdown).await;
    Ok(())
}

fn endpoint(
    set: Toolset,
    settings: &Settings,
    gate: &Arc<Gate>,
    project: Option<&Project>,
) -> Result<http::Endpoint> {
    let desk = project.map(|project| &project.desk);
    let service = Service::new(vec![tools_of(set, desk)], Arc::clone(gate))?;
    tokio::spawn(after_start(prepared(service.clone())));
    let has_sessions = match settings.sessions {
        Sessions::On => true,
        Sessions::Off => false,
        Sessions::Auto => set == Toolset::Guide,
    };
    let max_sessions = has_sessions.then_some(settings.max_sessions);
    let server = Server::new(service);
    Ok(http::Endpoint::new(
        set.name().to_owned(),
        server,
        max_sessions,
    ))
}

/// Where clients find us, for the log.
fn place(address: Option<SocketAddr>) -> String {
    address.map_or_else(|| "stdio".to_owned(), |address| address.to_string())
}

fn deployment(settings: &Settings, roots: &Roots, users: Users) -> Deployment {
    let granted = roots.iter().zip(&settings.roots);
    Deployment {
        roots: granted
            .map(|(root, own)| grant(root, own, settings))
            .collect(),
        limits: Arc::new(ops::Limits {
            max_full_read_size: settings.max_full_read_size,
            max_file_size: settings.max_file_size,
            durability: settings.durability.into(),
        }),
        users: Arc::new(users),
        request_timeout: settings.request_timeout,
        max_concurrent_calls: settings.max_concurrent_calls,
        rate: settings.rate.map(|rate| toolset::Rate {
            per_second: rate.per_second,
            burst: rate.burst,
        }),
        replies: match settings.replies {
            Replies::Both => toolset::Replies::Both,
            Replies::Text => toolset::Replies::Text,
            Replies::Structured => toolset::Replies::Structured,
        },
        root_header: settings.root_header,
        recorder: None,
    }
}

fn grant(root: &NamedRoot, own: &RootSettings, settings: &Settings) -> RootGrant {
    RootGrant {
        read_only: root.read_only,
        tools: match &own.tools {
            AllowedTools::All => Allowlist::All,
            AllowedTools::Only(names) => Allowlist::Only(names.clone()),
        },
        home_of: homes(own, settings),
        ..RootGrant::new(root.name.clone(), Arc::clone(&root.root))
    }
}

/// The single-root sets that live in this root.
fn homes(own: &RootSettings, settings: &Settings) -> BTreeSet<String> {
    let sets = [Toolset::Files, Toolset::Memory].into_iter();
    let lives_here = |set: &Toolset| {
        settings
            .root_of(*set)
            .is_some_and(|home| home.name == own.name)
    };
    sets.filter(lives_here)
        .map(|set| set.name().to_owned())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::known::KNOWN_TOOLS;

    #[test]
    fn allowlists_know_the_tools_that_are_there() {
        let sets = [
            Toolset::Workspace,
            Toolset::Files,
            Toolset::Memory,
            Toolset::Guide,
        ];
        for set in sets {
            let tools = tools_of(set, None).tools;
            let names = tools.iter().map(|tool| tool.definition().name);
            let restricted: BTreeSet<&str> = names.filter(|name| *name != "list_roots").collect();
            let known = crate::settings::tools_of(set.name(), KNOWN_TOOLS);
            assert_eq!(restricted, known.iter().copied().collect());
        }
    }
}
