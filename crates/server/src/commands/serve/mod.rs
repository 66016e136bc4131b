//! Starts the server. The order matters.
//!
//! Roots, port and user names come first, because they need files outside the roots. Then the process confines itself.
//! Only then the first threads start (the log's, the runtime's): confinement holds for threads started after it.

mod welcome;

use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, anyhow};
use mcp::Server;
use sandbox::{Exception, ExceptionRights, LiveRoot, Protection, Users};
use toolset::{Admission, CallObserver, ClientGrant, Deployment, Service};

use super::check::{open_door, settings_risks};
use crate::admin::{self, AdminOptions, AdminState, CallBoard};
use crate::change_words::OperatorContext;
use crate::deployment::{Reopening, client_grant, deployment};
use crate::guide_project::{self, GuideProject};
use crate::http::{self, CredentialStore, DoorLimits, HostCheck, HttpGauges, listener};
use crate::log::{self, AuditFile};
use crate::operator_files::{self, reason};
use crate::process_figures::ProcessFigures;
use crate::settings::{
    OAuthSettings, RootSettings, STDIO_CLIENT, SessionPolicy, Settings, Toolset, Transport,
};
use crate::tool_sets::{every_set, tools_of};
use crate::{histories, open_roots, root_watch, service_manager, signals, stdio};

/// How long the process waits at its end for work that is stuck in the kernel.
const LAST_WORK: Duration = Duration::from_millis(500);

/// How long work that nobody waits for is put off after the start.
const AFTER_START: Duration = Duration::from_millis(50);

/// Serves until the client hangs up or the process is asked to stop. `arguments` start the same server from any
/// directory, for a person to copy.
pub(crate) fn run(settings: &Settings, arguments: &[String]) -> Result<()> {
    sandbox::raise_descriptor_limit();
    let (settings, missing) = open_roots::without_missing(settings);
    let settings = &settings;
    let roots = open_roots::open(settings)?;
    let project = guide_project::open(settings)?;
    let listener = match settings.transport {
        Transport::Stdio => None,
        Transport::Http => Some(listener::bind(settings)?),
    };
    let admin = settings.admin_listen.map(admin::bind).transpose()?;
    let process = Arc::new(ProcessFigures::open());
    let users = Users::load();
    let credentials = Arc::new(CredentialStore::load(settings)?);
    let audit = settings.audit_file.as_deref();
    let audit = audit.map(|path| audit_file(path, settings)).transpose()?;
    let resolver = resolver_files(settings);
    let exceptions = exceptions(settings, &resolver);
    let protection = sandbox::lock_in(&roots, settings.landlock, &exceptions)?;

    let log = log::start(settings, audit)?;
    histories::recover(&roots);
    histories::prune_in_background(&roots);
    histories::heed_the_dead(&roots);
    missing.iter().for_each(warn_of_missing);
    project.iter().for_each(GuideProject::warn);
    let board = admin.is_some().then(|| Arc::new(CallBoard::default()));
    let observer = board.clone().map(|board| board as Arc<dyn CallObserver>);
    let admission = admitting(Deployment {
        recorder: log.recorder(),
        observer,
        ..deployment(settings, &roots, users, reopening(&protection))
    })?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    announce(
        settings,
        arguments,
        (listener.as_ref(), admin.as_ref()),
        &protection,
    );
    let reload = signals::reload_on_hangup(log.reopener(), Arc::clone(&credentials));
    let sweep = roots.sweeper();
    let oauth = credentials.oauth().cloned();
    let shared = SharedParts {
        admission,
        credentials,
        gauges: listener.is_some().then(Arc::<HttpGauges>::default),
        process,
    };
    let page = admin.zip(board);
    let page = page.map(|(admin, board)| (admin, shared.page(settings, board, &protection)));
    let parts = ServedParts {
        listener,
        shared,
        page,
    };
    let ended = runtime.block_on(async {
        tokio::spawn(reload);
        if let Some(oauth) = oauth {
            tokio::spawn(oauth.keep_keys_fresh());
        }
        tokio::spawn(after_start(sweep));
        serve(settings, parts, project.as_ref()).await
    });
    runtime.shutdown_timeout(LAST_WORK);
    ended
}

/// Warns of a directory that is not served. Only its name is told: the log holds no host paths.
fn warn_of_missing(root: &RootSettings) {
    let root = root.name.as_str();
    tracing::warn!(
        root,
        "a directory is missing, and the others are served without it"
    );
}

/// Counts what the roots hold and watches them from now on.
fn admitting(deployment: Deployment) -> Result<Arc<Admission>> {
    let admission = Admission::new(deployment);
    let live_roots = admission.deployment().roots.iter();
    LiveRoot::count_in_background(live_roots.map(|grant| Arc::clone(&grant.root)));
    root_watch::start(admission.deployment())?;
    Ok(admission)
}

/// Landlock's rules are for the directories that were open at the start: another one in their place could not be used.
fn reopening(protection: &Protection) -> Reopening {
    match protection {
        Protection::Enforced { .. } => Reopening::No,
        Protection::Unavailable | Protection::Off => Reopening::Yes,
    }
}

/// Runs work a moment later, so that it does not delay the first answer.
async fn after_start(work: impl FnOnce()) {
    tokio::time::sleep(AFTER_START).await;
    work();
}

/// Builds the list of tools ahead of time, so that the first client does not wait for it.
fn prepared(service: Service) -> impl FnOnce() {
    move || {
        let _ = service.catalogue().listed();
    }
}

fn audit_file(path: &Path, settings: &Settings) -> Result<AuditFile> {
    let file = AuditFile::open(path, settings);
    file.map_err(|error| bad_audit_file(path, &error))
}

/// The start-up error of an audit file that cannot be opened.
pub(super) fn bad_audit_file(path: &Path, error: &std::io::Error) -> anyhow::Error {
    anyhow!("log.audit_file: {path:?}: {}", reason(error))
}

/// The directories that stay reachable besides the roots, because SIGHUP opens files in them again. A file may have been
/// replaced by then, so its directory has to be reachable, not the file.
fn exceptions<'a>(settings: &'a Settings, resolver: &'a [PathBuf]) -> Vec<Exception<'a>> {
    let tls = settings.tls.as_ref().map(|tls| [&tls.cert, &tls.key]);
    let read = tls.into_iter().flatten();
    let read = read.chain(&settings.bearer_tokens_file);
    let read = read.chain(&settings.admin_token_file);
    let read = read.chain(settings.oauth.as_ref().and_then(OAuthSettings::key_file));
    let read = read.map(|path| (path, ExceptionRights::Read));
    let written = settings.audit_file.iter();
    let written = written.map(|path| (path, ExceptionRights::Write));
    let all = read.chain(written).map(|(path, rights)| Exception {
        path: operator_files::directory_of(path),
        rights,
    });
    let resolver = resolver.iter().map(|path| Exception {
        path,
        rights: ExceptionRights::Read,
    });
    all.chain(resolver).collect()
}

/// What looking up the name of an issuer reads. Without an issuer, no name is ever looked up.
fn resolver_files(settings: &Settings) -> Vec<PathBuf> {
    let oauth = settings.oauth.as_ref();
    let fetches = oauth.is_some_and(|oauth| oauth.key_file().is_none());
    if fetches && settings.transport == Transport::Http {
        return operator_files::resolver_files();
    }
    Vec::new()
}

/// What was prepared before the process locked itself in, or belongs to all of its transports.
struct ServedParts {
    listener: Option<TcpListener>,
    shared: SharedParts,
    page: Option<(TcpListener, AdminOptions)>,
}

/// What clients and the operator's page share.
struct SharedParts {
    admission: Arc<Admission>,
    credentials: Arc<CredentialStore>,
    /// Only with HTTP.
    gauges: Option<Arc<HttpGauges>>,
    process: Arc<ProcessFigures>,
}

impl SharedParts {
    /// The operator's page.
    fn page(
        &self,
        settings: &Settings,
        board: Arc<CallBoard>,
        protection: &Protection,
    ) -> AdminOptions {
        let state = AdminState {
            board,
            admission: Arc::clone(&self.admission),
            gauges: self.gauges.clone(),
            process: Arc::clone(&self.process),
            operator: OperatorContext::new(settings),
            protection: protection.to_string(),
            warnings: settings_risks(settings),
        };
        let host = settings.admin_listen;
        let host = host.map(|address| address.ip().to_string());
        AdminOptions {
            host_check: HostCheck::new(&host.unwrap_or_default(), &settings.allowed_hosts, &[]),
            credentials: Arc::clone(&self.credentials),
            state,
        }
    }
}

async fn serve(
    settings: &Settings,
    parts: ServedParts,
    project: Option<&GuideProject>,
) -> Result<()> {
    let shutdown = signals::stop_on_signals()?;
    let SharedParts {
        admission,
        credentials,
        gauges,
        process,
    } = parts.shared;
    if let Some((listener, options)) = parts.page {
        tokio::spawn(admin::serve(listener, options, shutdown.clone()));
    }
    let Some(listener) = parts.listener else {
        let service = every_set(settings, Arc::clone(&admission), project)?;
        let service = for_stdio(service, settings, &admission)?;
        tokio::spawn(after_start(prepared(service.clone())));
        stdio::serve(Server::new(service), settings.max_body_size, shutdown).await;
        return Ok(());
    };
    let options = http::HttpOptions {
        gauges: gauges.unwrap_or_default(),
        process,
        host_check: HostCheck::new(
            &settings.host,
            &settings.allowed_hosts,
            &settings.allowed_origins,
        ),
        credentials,
        admission: Arc::clone(&admission),
        guide_state: project.map(|project| Arc::clone(&project.state)),
        max_body_size: settings.max_body_size,
        door_limits: door_limits(settings),
        handshake_timeout: settings.handshake_timeout,
        client_timeout: settings.client_timeout,
    };
    let clients = client_admissions(settings, &admission);
    let endpoints = settings
        .toolsets
        .iter()
        .map(|set| endpoint(*set, settings, &admission, &clients, project));
    let endpoints = endpoints.collect::<Result<_>>()?;
    let listener = tokio::net::TcpListener::from_std(listener)?;
    service_manager::tell_ready();
    http::serve(listener, options, endpoints, shutdown).await;
    Ok(())
}

/// How many connections are held, and whose.
fn door_limits(settings: &Settings) -> DoorLimits {
    let most = settings.max_connections;
    let half = most.div_ceil(2);
    DoorLimits {
        most,
        most_of_one: settings.max_connections_per_address.unwrap_or(half),
        proxies: settings.trusted_proxies.clone(),
    }
}

/// Every named client, with its own admission.
fn client_admissions(
    settings: &Settings,
    admission: &Admission,
) -> Vec<(ClientGrant, Arc<Admission>)> {
    let clients = settings.clients.iter();
    let grants = clients.map(|client| client_grant(client, settings, admission.deployment()));
    grants
        .map(|grant| {
            let own = admission.for_client(&grant);
            (grant, own)
        })
        .collect()
}

/// The tools for the one caller on standard input and output: those of the client `stdio`, if there is one.
pub(crate) fn for_stdio(
    service: Service,
    settings: &Settings,
    admission: &Admission,
) -> Result<Service> {
    let mut clients = settings.clients.iter();
    let Some(client) = clients.find(|client| client.name == STDIO_CLIENT) else {
        return Ok(service);
    };
    let grant = client_grant(client, settings, admission.deployment());
    let own = service.for_client(&grant, &admission.for_client(&grant));
    own.ok_or_else(|| {
        anyhow!("clients: the client {STDIO_CLIENT} may use none of the tool sets that are served")
    })
}

fn endpoint(
    set: Toolset,
    settings: &Settings,
    admission: &Arc<Admission>,
    clients: &[(ClientGrant, Arc<Admission>)],
    project: Option<&GuideProject>,
) -> Result<http::Endpoint> {
    let guide_state = project.map(|project| &project.state);
    let service = Service::new(
        vec![tools_of(set, settings, guide_state)],
        Arc::clone(admission),
    )?;
    tokio::spawn(after_start(prepared(service.clone())));
    let has_sessions = match settings.sessions {
        SessionPolicy::On => true,
        SessionPolicy::Off => false,
        SessionPolicy::Auto => set == Toolset::Guide,
    };
    let max_sessions = has_sessions.then_some(settings.max_sessions);
    let server = Server::new(service.clone());
    let mut endpoint = http::Endpoint::new(set.name().to_owned(), server, max_sessions);
    for (client, admission) in clients {
        let own = service.for_client(client, admission);
        endpoint.add_client(Arc::clone(&client.name), own);
    }
    Ok(endpoint)
}

/// Tells the person at the terminal and the log what is served where: to clients, and to the operator.
fn announce(
    settings: &Settings,
    arguments: &[String],
    (listener, admin): (Option<&TcpListener>, Option<&TcpListener>),
    protection: &Protection,
) {
    let address = listener.and_then(|one| one.local_addr().ok());
    welcome::greet(settings, address, arguments);
    let page_address = admin.and_then(|one| one.local_addr().ok());
    log_started(
        settings,
        &place(address),
        page_address,
        &protection.to_string(),
    );
}

/// The address for the log.
fn place(address: Option<SocketAddr>) -> String {
    address.map_or_else(|| "stdio".to_owned(), |address| address.to_string())
}

/// Logs what is served. This is the only INFO line with a host path: that of the config file.
fn log_started(settings: &Settings, address: &str, admin: Option<SocketAddr>, protections: &str) {
    let roots: Vec<&str> = settings
        .roots
        .iter()
        .map(|root| root.name.as_str())
        .collect();
    let toolsets: Vec<&str> = settings.toolsets.iter().map(|set| set.name()).collect();
    let config = settings
        .config_file
        .as_ref()
        .map(|path| path.to_string_lossy());
    tracing::info!(
        address,
        toolsets = toolsets.join(","),
        roots = roots.join(","),
        config_file = config.as_deref(),
        protections,
        version = env!("CARGO_PKG_VERSION"),
        admin = admin.map(|admin| admin.to_string()),
        "server started"
    );
    if let Some(risk) = open_door(settings) {
        tracing::warn!(address, "{risk}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::LineFormat;
    use crate::log::tests::logged;
    use crate::settings::{LogLevel, Partial};

    #[test]
    fn an_open_port_without_a_token_is_warned_of() {
        let warnings = |host: &str, tokens: Option<&str>| {
            let settings = Partial {
                transport: Some(Transport::Http),
                host: host.parse().ok(),
                bearer_tokens_file: Some(tokens.map(PathBuf::from)),
                ..Partial::default()
            };
            let settings = settings.complete();
            let log = logged(LineFormat::Text, LogLevel::Info, || {
                log_started(&settings, "address", None, "protections");
            });
            log.matches(" WARN it listens on all interfaces without asking for a token")
                .count()
        };
        assert_eq!(warnings("0.0.0.0", None), 1);
        assert_eq!(warnings("0.0.0.0", Some("tokens")), 0);
        assert_eq!(warnings("127.0.0.1", None), 0);
    }
}
