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
use tokio_util::sync::CancellationToken;
use toolset::guide::GuideState;
use toolset::{Admission, CallObserver, Deployment};

use self::reload::{LockedDirectories, ReadAgain, Reloader, ServedPlaces};
use self::served::Served;
use super::check::open_door;
use crate::admin::{self, AdminOptions, AdminState, CallBoard};
use crate::deployment::{Reopening, deployment};
use crate::guide_project::{self, GuideProject};
use crate::http::{self, ConnectionLimits, CredentialStore, HttpGauges, listener};
use crate::in_force::InForce;
use crate::log::{self, AuditFile, Log};
use crate::operator_files::{self, reason};
use crate::process_usage::ProcessFigures;
use crate::settings::{OAuthSettings, RootSettings, Settings, Transport};
use crate::{
    histories, open_roots, recovery, root_watch, service_manager, shared_directory, signals, stdio,
    tool_sets,
};

/// How long the process waits at exit for work that is stuck in the kernel.
const LAST_WORK: Duration = Duration::from_millis(500);

/// How many threads may block for other things than calls, such as looks at roots and large bodies.
const SPARE_THREADS: usize = 256;

/// How long background work is delayed after the start.
const AFTER_START: Duration = Duration::from_millis(50);

/// Serves until the client hangs up or the process is asked to stop. `arguments` start the same server from any
/// directory, for a person to copy; `read_again` reads the settings again.
pub(crate) fn run(settings: &Settings, arguments: &[String], read_again: ReadAgain) -> Result<()> {
    sandbox::raise_descriptor_limit();
    let (settings, missing) = open_roots::without_missing(settings);
    let mut opened = open(&settings)?;

    let log = log::start(&settings, opened.audit.take())?;
    tend_histories(&opened.roots);
    missing.iter().for_each(warn_of_missing);
    if let Some(risk) = &opened.unordered {
        tracing::warn!("{risk}");
    }
    opened.project.iter().for_each(GuideProject::warn);
    let shared = SharedParts::new(&settings, &opened, &log)?;
    let (cluster, admission) = (
        opened.roots.cluster().cloned(),
        Arc::clone(&shared.admission),
    );
    recovery::start(cluster.as_ref(), &admission);
    let (runtime, hangups) = start_runtime(&settings)?;
    announce(&settings, arguments, &opened);
    let hangups = hangups.zip(Some(log.reopener()));
    let ended = runtime.block_on(async {
        let served = shared.begin(&settings, &opened, read_again, hangups)?;
        serve(&settings, opened, shared, served).await
    });
    runtime.shutdown_timeout(LAST_WORK);
    if let Some(cluster) = cluster.filter(|_| admission.now().busy().0 == 0) {
        // What a call that is stuck leaves is for the others to clear up.
        cluster.leave();
    }
    ended
}

/// Settles unfinished changes of an earlier process, and from now on keeps the histories within their bounds.
fn tend_histories(roots: &Roots) {
    histories::recover(roots);
    histories::prune_in_background(roots);
}

/// Starts the threads for calls. From now on SIGHUP does not end the process, so this comes before anyone is told that the
/// server is there.
fn start_runtime(settings: &Settings) -> Result<(Runtime, Option<Signal>)> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        // Each small call may hold one, as when a file server does not answer.
        .max_blocking_threads(settings.max_concurrent_calls.saturating_add(SPARE_THREADS))
        .enable_all()
        .build()?;
    let hangups = {
        let _inside = runtime.enter();
        signals::hangups()
    };
    Ok((runtime, hangups))
}

/// Everything that was opened outside the roots.
struct OpenedParts {
    roots: Roots,
    project: Option<GuideProject>,
    listener: Option<TcpListener>,
    admin: Option<TcpListener>,
    process: Arc<ProcessFigures>,
    users: Arc<Users>,
    credentials: Arc<CredentialStore>,
    audit: Option<AuditFile>,
    /// The risk of roots that other machines may change too.
    unordered: Option<String>,
    protection: Protection,
}

/// Opens everything that needs files outside the roots, then locks the process in.
fn open(settings: &Settings) -> Result<OpenedParts> {
    let roots = open_roots::open(settings)?;
    tool_sets::check(settings, &roots)?;
    let audit = settings.audit_file.as_deref();
    Ok(OpenedParts {
        project: guide_project::open(settings)?,
        listener: match settings.transport {
            Transport::Stdio => None,
            Transport::Http => Some(listener::bind(settings)?),
        },
        admin: settings.admin_listen.map(admin::bind).transpose()?,
        process: Arc::new(ProcessFigures::open()),
        users: Arc::new(Users::load()),
        credentials: Arc::new(CredentialStore::load(settings)?),
        audit: audit.map(|path| audit_file(path, settings)).transpose()?,
        unordered: shared_directory::risk(&roots, settings),
        // Last, because everything above needs files outside the roots.
        protection: lock_in(&roots, settings)?,
        roots,
    })
}

fn lock_in(roots: &Roots, settings: &Settings) -> Result<Protection> {
    let resolver = resolver_files(settings);
    let exceptions = exceptions(settings, &resolver);
    Ok(sandbox::lock_in(roots, settings.landlock, &exceptions)?)
}

/// Warns about a directory that is not served. Only its name is logged: the log holds no host paths.
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

/// Landlock's rules apply to the directories that were open at the start: a replacement could not be used.
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

/// Builds the lists of tools ahead of time, so that the first client does not wait for them.
fn prepare_lists(served: &Served) {
    for service in served.services() {
        tokio::spawn(after_start(move || {
            let _ = service.catalogue().listed();
        }));
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

/// The files that looking up an issuer's name reads. Without an issuer, no name is ever looked up.
fn resolver_files(settings: &Settings) -> Vec<PathBuf> {
    let oauth = settings.oauth.as_ref();
    let fetches = oauth.is_some_and(|oauth| oauth.key_file().is_none());
    if fetches && settings.transport == Transport::Http {
        return operator_files::resolver_files();
    }
    Vec::new()
}

/// State shared by clients and the operator's page.
struct SharedParts {
    admission: Arc<InForce<Admission>>,
    /// Only with the page.
    board: Option<Arc<CallBoard>>,
    credentials: Arc<CredentialStore>,
    /// Only with HTTP.
    gauges: Option<Arc<HttpGauges>>,
    process: Arc<ProcessFigures>,
    places: Arc<ServedPlaces>,
    guide_state: Option<Arc<GuideState>>,
}

impl SharedParts {
    fn new(settings: &Settings, opened: &OpenedParts, log: &Log) -> Result<SharedParts> {
        let board = opened.admin.is_some().then(Arc::<CallBoard>::default);
        let observer = board.clone().map(|board| board as Arc<dyn CallObserver>);
        let (users, reopening) = (Arc::clone(&opened.users), reopening(&opened.protection));
        let admission = admitting(Deployment {
            recorder: log.recorder(),
            observer,
            ..deployment(settings, &opened.roots, users, reopening)
        })?;
        let project = opened.project.as_ref();
        Ok(SharedParts {
            admission: Arc::new(InForce::new(admission)),
            board,
            credentials: Arc::clone(&opened.credentials),
            gauges: opened.listener.is_some().then(Arc::default),
            process: Arc::clone(&opened.process),
            places: Arc::new(ServedPlaces::new(settings)),
            guide_state: project.map(|project| Arc::clone(&project.state)),
        })
    }

    /// The operator's page, if there is one.
    fn page(&self, protection: &Protection) -> Option<AdminOptions> {
        let state = AdminState {
            board: self.board.clone()?,
            admission: Arc::clone(&self.admission),
            gauges: self.gauges.clone(),
            process: Arc::clone(&self.process),
            protection: protection.to_string(),
            warnings: Arc::clone(&self.places.warnings),
            clients: Arc::clone(&self.places.clients),
            settings: Arc::clone(&self.places.settings),
            root_risks: InForce::new(None),
        };
        Some(AdminOptions {
            host_check: Arc::clone(&self.places.page_host_check),
            credentials: Arc::clone(&self.credentials),
            state,
        })
    }

    /// Prepares the endpoints, and starts the background work.
    fn begin(
        &self,
        settings: &Settings,
        opened: &OpenedParts,
        read_again: ReadAgain,
        hangups: Option<(Signal, impl Fn() + Send + 'static)>,
    ) -> Result<Arc<Served>> {
        let admission = Arc::clone(&self.admission);
        let served = Served::start(settings, admission, self.guide_state.clone())?;
        let served = Arc::new(served);
        if let Some((hangups, reopen_audit)) = hangups {
            let reloader = Arc::new(self.reloader(settings, &served, read_again, opened));
            let reload = move || reloader.reload();
            tokio::spawn(signals::reload_on_hangup(hangups, reopen_audit, reload));
        }
        if let Some(oauth) = self.credentials.oauth().cloned() {
            tokio::spawn(oauth.keep_keys_fresh());
        }
        tokio::spawn(after_start(opened.roots.sweeper()));
        Ok(served)
    }

    fn http_options(self, settings: &Settings) -> http::HttpOptions {
        http::HttpOptions {
            gauges: self.gauges.unwrap_or_default(),
            process: self.process,
            host_check: Arc::clone(&self.places.host_check),
            credentials: self.credentials,
            admission: self.admission,
            guide_state: self.guide_state,
            max_body_size: settings.max_body_size,
            connection_limits: connection_limits(settings),
            handshake_timeout: settings.handshake_timeout,
            client_timeout: settings.client_timeout,
        }
    }

    /// The parts that SIGHUP can change.
    fn reloader(
        &self,
        settings: &Settings,
        served: &Arc<Served>,
        read_again: ReadAgain,
        opened: &OpenedParts,
    ) -> Reloader {
        let (roots, reopening) = (&opened.roots, reopening(&opened.protection));
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

async fn serve(
    settings: &Settings,
    opened: OpenedParts,
    shared: SharedParts,
    served: Arc<Served>,
) -> Result<()> {
    let shutdown = signals::stop_on_signals()?;
    if let Some((listener, options)) = opened.admin.zip(shared.page(&opened.protection)) {
        tokio::spawn(admin::serve(listener, options, shutdown.clone()));
    }
    // Roots that the operator removes are not held open.
    drop(opened.roots);
    prepare_lists(&served);
    if let Some(live) = served.stdio() {
        // On a thread of the runtime, which hears of input itself: here each line would wait for this thread to be woken, and
        // each reply for another one.
        let serving = stdio::serve(live.clone(), settings.max_body_size, shutdown.clone());
        tokio::spawn(serving).await?;
    }
    match opened.listener {
        Some(listener) => serve_http(settings, listener, shared, &served, shutdown).await,
        None => Ok(()),
    }
}

async fn serve_http(
    settings: &Settings,
    listener: TcpListener,
    shared: SharedParts,
    served: &Served,
    shutdown: CancellationToken,
) -> Result<()> {
    let listener = tokio::net::TcpListener::from_std(listener)?;
    service_manager::tell_ready();
    let options = shared.http_options(settings);
    http::serve(listener, options, served.endpoints(), shutdown).await;
    Ok(())
}

/// The limits of open connections.
fn connection_limits(settings: &Settings) -> ConnectionLimits {
    let most = settings.max_connections;
    let half = most.div_ceil(2);
    ConnectionLimits {
        most,
        most_of_one: settings.max_connections_per_address.unwrap_or(half),
        proxies: settings.trusted_proxies.clone(),
    }
}

/// Announces on the terminal and in the log which addresses serve clients and the operator.
fn announce(settings: &Settings, arguments: &[String], opened: &OpenedParts) {
    let address_of = |listener: &Option<TcpListener>| listener.as_ref()?.local_addr().ok();
    let address = address_of(&opened.listener);
    welcome::greet(settings, address, arguments);
    let page_address = address_of(&opened.admin);
    let protection = opened.protection.to_string();
    log_started(settings, &place(address), page_address, &protection);
}

/// The address for the log.
fn place(address: Option<SocketAddr>) -> String {
    address.map_or_else(|| "stdio".to_owned(), |address| address.to_string())
}

/// Logs what is served. This is the only INFO line with a host path: that of the config file.
fn log_started(settings: &Settings, address: &str, admin: Option<SocketAddr>, protections: &str) {
    let roots = settings.roots.iter();
    let roots: Vec<&str> = roots.map(|root| root.name.as_str()).collect();
    let toolsets: Vec<&str> = settings.toolsets.iter().map(|set| set.name()).collect();
    let config = settings.config_file.as_ref();
    let config = config.map(|path| path.to_string_lossy());
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
