//! Starts the server. The order matters.
//!
//! Roots, port and user names come first, because they need files outside the roots. Then the process confines itself.
//! Only then the first threads start (the log's, the runtime's): confinement holds for threads started after it.

mod reload;
mod served;
mod welcome;

use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::{Result, anyhow};
use sandbox::{Exception, ExceptionRights, LiveRoot, Protection, Roots, Users};
use tokio::runtime::Runtime;
use tokio::signal::unix::Signal;
use toolset::guide::GuideState;
use toolset::{Admission, CallObserver, Deployment, Service};

use self::reload::{LockedDirectories, ReadAgain, Reloader, ServedPlaces};
use self::served::Served;
use super::check::open_door;
use crate::admin::{self, AdminOptions, AdminState, CallBoard};
use crate::deployment::{Reopening, deployment};
use crate::guide_project::{self, GuideProject};
use crate::http::{self, CredentialStore, DoorLimits, HttpGauges, listener};
use crate::in_force::InForce;
use crate::log::{self, AuditFile};
use crate::operator_files::{self, reason};
use crate::process_usage::ProcessFigures;
use crate::settings::{OAuthSettings, RootSettings, Settings, Transport};
use crate::{histories, open_roots, root_watch, service_manager, signals, stdio, tool_sets};

/// How long the process waits at its end for work that is stuck in the kernel.
const LAST_WORK: Duration = Duration::from_millis(500);

/// How long work that nobody waits for is put off after the start.
const AFTER_START: Duration = Duration::from_millis(50);

/// Serves until the client hangs up or the process is asked to stop. `arguments` start the same server from any
/// directory, for a person to copy; `read_again` reads the settings again.
pub(crate) fn run(settings: &Settings, arguments: &[String], read_again: ReadAgain) -> Result<()> {
    sandbox::raise_descriptor_limit();
    let (settings, missing) = open_roots::without_missing(settings);
    let settings = &settings;
    let opened = open(settings)?;
    let (roots, protection) = (opened.roots, opened.protection);

    let log = log::start(settings, opened.audit)?;
    tend_histories(&roots);
    missing.iter().for_each(warn_of_missing);
    opened.project.iter().for_each(GuideProject::warn);
    let (listener, admin) = (opened.listener, opened.admin);
    let board = admin.is_some().then(|| Arc::new(CallBoard::default()));
    let observer = board.clone().map(|board| board as Arc<dyn CallObserver>);
    let admission = admitting(Deployment {
        recorder: log.recorder(),
        observer,
        ..deployment(settings, &roots, opened.users, reopening(&protection))
    })?;
    let (runtime, hangups) = start_runtime()?;
    let listeners = (listener.as_ref(), admin.as_ref());
    announce(settings, arguments, listeners, &protection);
    let shared = SharedParts {
        admission: Arc::new(InForce::new(admission)),
        credentials: opened.credentials,
        gauges: listener.is_some().then(Arc::<HttpGauges>::default),
        process: opened.process,
        places: Arc::new(ServedPlaces::new(settings)),
        guide_state: opened.project.map(|project| project.state),
    };
    let page = admin.zip(board);
    let page = page.map(|(admin, board)| (admin, shared.page(board, &protection)));
    let ended = runtime.block_on(async {
        let served = Arc::new(shared.served(settings)?);
        let reloader = shared.reloader(settings, &served, read_again, (&roots, &protection));
        begin_background(&shared, hangups.zip(Some((log.reopener(), reloader))));
        tokio::spawn(after_start(roots.sweeper()));
        // Roots that the operator takes away are not held open.
        drop(roots);
        let parts = ServedParts {
            listener,
            shared,
            served,
            page,
        };
        serve(settings, parts).await
    });
    runtime.shutdown_timeout(LAST_WORK);
    ended
}

/// Ends what was under way when the process last stopped, and keeps the histories in their bounds from now on.
fn tend_histories(roots: &Roots) {
    histories::recover(roots);
    histories::prune_in_background(roots);
    histories::heed_the_dead(roots);
}

/// Starts the threads for calls. From now on SIGHUP does not end the process, so this comes before anyone is told that the
/// server is there.
fn start_runtime() -> Result<(Runtime, Option<Signal>)> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    let hangups = {
        let _inside = runtime.enter();
        signals::hangups()
    };
    Ok((runtime, hangups))
}

/// What needs files outside the roots.
struct OpenedParts {
    roots: Roots,
    project: Option<GuideProject>,
    listener: Option<TcpListener>,
    admin: Option<TcpListener>,
    process: Arc<ProcessFigures>,
    users: Users,
    credentials: Arc<CredentialStore>,
    audit: Option<AuditFile>,
    protection: Protection,
}

/// Opens everything that needs files outside the roots, then locks the process in.
fn open(settings: &Settings) -> Result<OpenedParts> {
    let roots = open_roots::open(settings)?;
    tool_sets::check(settings, &roots)?;
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
    Ok(OpenedParts {
        roots,
        project,
        listener,
        admin,
        process,
        users,
        credentials,
        audit,
        protection,
    })
}

/// Starts what runs beside the calls: SIGHUP, and the issuer's keys.
fn begin_background(
    shared: &SharedParts,
    hangups: Option<(Signal, (impl Fn() + Send + 'static, Reloader))>,
) {
    if let Some((hangups, (reopen_audit, reloader))) = hangups {
        let reloader = Arc::new(reloader);
        let reload = move || reloader.reload();
        tokio::spawn(signals::reload_on_hangup(hangups, reopen_audit, reload));
    }
    if let Some(oauth) = shared.credentials.oauth().cloned() {
        tokio::spawn(oauth.keep_keys_fresh());
    }
}

/// Warns of a directory that is not served. Only its name is told: the log holds no host paths.
fn warn_of_missing(root: &RootSettings) {
    let root = root.name.as_str();
    tracing::warn!(root, "a directory is missing; the others are served");
}

/// Counts what the roots hold and watches them from now on.
fn admitting(deployment: Deployment) -> Result<Arc<Admission>> {
    let admission = Admission::new(deployment);
    let live_roots = admission.deployment().roots.iter();
    LiveRoot::count_in_background(live_roots.map(|grant| Arc::clone(&grant.root)));
    root_watch::start(admission.deployment().roots.iter())?;
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
    let read = read.chain(&settings.metrics_tokens_file);
    let read = read.chain(settings.oauth.as_ref().and_then(OAuthSettings::key_file));
    let read = read.chain(&settings.config_file);
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
    served: Arc<Served>,
    page: Option<(TcpListener, AdminOptions)>,
}

/// What clients and the operator's page share.
struct SharedParts {
    admission: Arc<InForce<Admission>>,
    credentials: Arc<CredentialStore>,
    /// Only with HTTP.
    gauges: Option<Arc<HttpGauges>>,
    process: Arc<ProcessFigures>,
    places: Arc<ServedPlaces>,
    guide_state: Option<Arc<GuideState>>,
}

impl SharedParts {
    /// The operator's page.
    fn page(&self, board: Arc<CallBoard>, protection: &Protection) -> AdminOptions {
        let state = AdminState {
            board,
            admission: Arc::clone(&self.admission),
            gauges: self.gauges.clone(),
            process: Arc::clone(&self.process),
            protection: protection.to_string(),
            warnings: Arc::clone(&self.places.warnings),
            clients: Arc::clone(&self.places.clients),
            settings: Arc::clone(&self.places.settings),
            root_risks: InForce::new(None),
        };
        AdminOptions {
            host_check: Arc::clone(&self.places.page_host_check),
            credentials: Arc::clone(&self.credentials),
            state,
        }
    }

    /// What clients are served.
    fn served(&self, settings: &Settings) -> Result<Served> {
        let admission = Arc::clone(&self.admission);
        Served::start(settings, admission, self.guide_state.clone())
    }

    /// What SIGHUP changes.
    fn reloader(
        &self,
        settings: &Settings,
        served: &Arc<Served>,
        read_again: ReadAgain,
        (roots, protection): (&Roots, &Protection),
    ) -> Reloader {
        let reopening = reopening(protection);
        Reloader {
            read: read_again,
            in_force: Mutex::new(settings.clone()),
            locked: (reopening == Reopening::No).then(|| LockedDirectories::of(roots)),
            reopening,
            cluster: roots.cluster().cloned(),
            served: Arc::clone(served),
            credentials: Arc::clone(&self.credentials),
            places: Arc::clone(&self.places),
        }
    }
}

async fn serve(settings: &Settings, parts: ServedParts) -> Result<()> {
    let shutdown = signals::stop_on_signals()?;
    let (shared, served) = (parts.shared, parts.served);
    if let Some((listener, options)) = parts.page {
        tokio::spawn(admin::serve(listener, options, shutdown.clone()));
    }
    for service in served.services() {
        tokio::spawn(after_start(prepared(service)));
    }
    if let Some(live) = served.stdio() {
        stdio::serve(live.clone(), settings.max_body_size, shutdown.clone()).await;
    }
    let Some(listener) = parts.listener else {
        return Ok(());
    };
    let options = http::HttpOptions {
        gauges: shared.gauges.unwrap_or_default(),
        process: shared.process,
        host_check: Arc::clone(&shared.places.host_check),
        credentials: shared.credentials,
        admission: shared.admission,
        guide_state: shared.guide_state,
        max_body_size: settings.max_body_size,
        door_limits: door_limits(settings),
        handshake_timeout: settings.handshake_timeout,
        client_timeout: settings.client_timeout,
    };
    let listener = tokio::net::TcpListener::from_std(listener)?;
    service_manager::tell_ready();
    http::serve(listener, options, served.endpoints(), shutdown).await;
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

/// Announces on the terminal and in the log which addresses serve clients and the operator.
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
