//! Decides whether a call may run. Checked in this order: the client's rate; then, for each root of the call, whether
//! it is known, whether its allowlist has the tool, and whether it may be changed. No path is parsed before that. Then
//! the call waits for a slot.

mod reload;

use std::any::Any;
use std::collections::{HashMap, HashSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use ops::text::near_names::nearest;
use ops::{ByteBudget, Cancel, ErrorKind, LineIndexCache, Right, Root, SearchMemory};
use rmcp::model::JsonObject;
use serde_json::Value;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tokio_util::sync::CancellationToken;

use crate::arguments;
use crate::client_stats::{ClientStats, StatsTable};
use crate::confirm::Confirmations;
use crate::contract::{CallSubject, Failure};
use crate::deployment::{Deployment, RootGrant};
use crate::fair_queue::{CallSlot, CallSlots, QueueFull, Turn};
use crate::host_paths::{HostDirectories, HostRoots};
use crate::rate::RateLimit;
use crate::resources::SubscriptionCounts;
use crate::root_turns::RootTurns;
use crate::tool::{Definition, PlaceAccess, RootSource, RootUse, Weight};
use crate::watch::WatchCounts;

/// How long a client that finds the queue full should wait: by then many of the waiting calls have run.
pub(crate) const LATER_MS: u64 = 1000;
/// How long the check whether a root's directory is gone may take.
const LOOK_MAX: Duration = Duration::from_millis(500);

/// Admits the calls of every tool set of the process.
#[derive(Debug)]
pub struct Admission {
    deployment: Deployment,
    by_name: HashMap<String, usize>,
    rate: Option<Arc<RateLimit>>,
    /// How many calls of the client may run at once, if it has a limit of its own.
    places: Option<Arc<Semaphore>>,
    max_calls: Option<usize>,
    /// The roots that only other clients see.
    hidden: HashSet<String>,
    /// Whether others see other roots or tools.
    is_of_client: bool,
    slots: Arc<CallSlots>,
    client_stats: Arc<StatsTable>,
    line_index_cache: Arc<LineIndexCache>,
    search_memory: Arc<SearchMemory>,
    byte_budget: Arc<ByteBudget>,
    closing: CancellationToken,
    watches: Arc<WatchCounts>,
    subscriptions: Arc<SubscriptionCounts>,
    host_directories: Arc<HostDirectories>,
    confirmations: Arc<Confirmations>,
    root_turns: Arc<RootTurns>,
}

impl Admission {
    /// Prepares admission for a deployment.
    #[must_use]
    pub fn new(deployment: Deployment) -> Arc<Admission> {
        let names = deployment.roots.iter().enumerate();
        let by_name = names
            .map(|(index, grant)| (grant.name.clone(), index))
            .collect();
        let host_directories = Arc::new(HostDirectories::of(&deployment));
        Arc::new(Admission {
            host_directories,
            rate: deployment.rate.map(RateLimit::new).map(Arc::new),
            places: None,
            max_calls: None,
            hidden: HashSet::new(),
            is_of_client: false,
            client_stats: Arc::default(),
            slots: CallSlots::new(deployment.max_concurrent_calls),
            byte_budget: ByteBudget::new(deployment.held_bytes),
            search_memory: Arc::new(SearchMemory::new(deployment.limits.search_memory)),
            confirmations: Arc::new(Confirmations::new(deployment.confirm_timeout)),
            deployment,
            by_name,
            line_index_cache: Arc::default(),
            closing: CancellationToken::new(),
            watches: WatchCounts::of_tool(),
            subscriptions: Arc::default(),
            root_turns: Arc::default(),
        })
    }

    /// Whether this admission belongs to one named client.
    pub(crate) fn is_of_client(&self) -> bool {
        self.is_of_client
    }

    /// Takes one of the client's slots for simultaneous calls. Dropping it gives the slot back.
    pub(crate) fn take_place(&self) -> Result<Option<OwnedSemaphorePermit>, Failure> {
        let Some(places) = &self.places else {
            return Ok(None);
        };
        let place = Arc::clone(places).try_acquire_owned();
        place.map(Some).map_err(|_| Failure::RateLimited {
            retry_after_ms: LATER_MS,
        })
    }

    /// The questions that people were asked.
    pub(crate) fn confirmations(&self) -> &Confirmations {
        &self.confirmations
    }

    /// The line indexes that all calls of the process share.
    pub(crate) fn line_index_cache(&self) -> Arc<LineIndexCache> {
        Arc::clone(&self.line_index_cache)
    }

    /// What all searches of the process remember.
    #[must_use]
    pub fn search_memory(&self) -> &Arc<SearchMemory> {
        &self.search_memory
    }

    /// The roots as directories of the host.
    pub(crate) fn host_directories(&self) -> &Arc<HostDirectories> {
        &self.host_directories
    }

    /// Where host paths lead, restricted to the roots in which the tool may be used.
    pub(crate) fn host_roots(
        &self,
        directories: Arc<HostDirectories>,
        set: &str,
        tool: &Definition,
    ) -> HostRoots {
        let grants = self.deployment.roots.iter();
        let roots = grants.map(|grant| {
            let may_use = Admission::lets_use(grant, set, tool);
            may_use.then(|| grant.root.current()).flatten()
        });
        HostRoots::new(directories, roots.collect())
    }

    /// Whose turn it is to look at a root outside of a call.
    pub(crate) fn root_turns(&self) -> &RootTurns {
        &self.root_turns
    }

    /// The watches that wait.
    pub(crate) fn watches(&self) -> &Arc<WatchCounts> {
        &self.watches
    }

    /// The resources that are watched.
    pub(crate) fn subscriptions(&self) -> &SubscriptionCounts {
        &self.subscriptions
    }

    /// The budget for the bytes that clients make the process hold.
    #[must_use]
    pub fn byte_budget(&self) -> &Arc<ByteBudget> {
        &self.byte_budget
    }

    /// The operator's settings.
    #[must_use]
    pub fn deployment(&self) -> &Deployment {
        &self.deployment
    }

    /// Refuses a client that the operator keeps out, and takes a call from its allowance.
    pub(crate) fn check_client(&self, client: &str) -> Result<(), Failure> {
        if self.is_suspended(client) {
            return Err(Failure::Suspended);
        }
        self.check_rate(client)
    }

    /// Tells whether the operator keeps a client out for now.
    pub(crate) fn is_suspended(&self, client: &str) -> bool {
        let observer = self.deployment.observer.as_ref();
        observer.is_some_and(|observer| observer.is_suspended(client))
    }

    /// Takes a call from its client's allowance.
    fn check_rate(&self, client: &str) -> Result<(), Failure> {
        let Some(rate) = &self.rate else {
            return Ok(());
        };
        rate.take(client, Instant::now()).map_err(|wait| {
            // Rounded up, so that a client that waits as long as it is told is let in.
            let retry_after_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
            Failure::RateLimited {
                retry_after_ms: retry_after_ms.saturating_add(1),
            }
        })
    }

    /// Names the only root if a call names none.
    pub(crate) fn complete(&self, tool: &Definition, arguments: &mut JsonObject) {
        let [only] = self.deployment.roots.as_slice() else {
            return;
        };
        for use_ in tool.roots {
            if let RootSource::Argument(name) = use_.root
                && arguments::field(arguments, name).is_none_or(Value::is_null)
            {
                arguments.insert(name.to_owned(), Value::from(only.name.as_str()));
            }
        }
    }

    /// Admits a call to its roots, in the order of [`Definition::roots`].
    pub(crate) fn admit(
        &self,
        set: &str,
        tool: &Definition,
        arguments: &JsonObject,
        hosts: &HostDirectories,
    ) -> Result<Vec<&RootGrant>, Failure> {
        let grants = self.find_all(set, tool, arguments, hosts)?;
        for grant in &grants {
            check_allowed(grant, set, tool.allowed_as())?;
        }
        for (grant, use_) in grants.iter().zip(tool.roots) {
            check_access(grant, use_.access)?;
        }
        Ok(grants)
    }

    /// Explains that a call found nothing because its root's directory is gone, if it is. Only a failed call pays for
    /// this check.
    pub(crate) async fn if_root_is_gone(&self, failure: Failure, subject: &CallSubject) -> Failure {
        match &failure {
            Failure::Operation(error) if error.kind() == ErrorKind::NotFound => {}
            _ => return failure,
        }
        let places = subject.places.iter();
        let names = places.filter_map(|place| place.root.as_deref());
        let grants = names.filter_map(|name| self.named(name).ok());
        let until = tokio::time::Instant::now() + LOOK_MAX;
        for grant in grants {
            let Some(root) = grant.root.current() else {
                return root_gone(grant);
            };
            // A mount that does not answer must block neither this thread nor the call.
            let look = self.root_turns.look(&grant.name, move || root.is_removed());
            if let Ok(Some(true)) = tokio::time::timeout_at(until, look).await {
                return root_gone(grant);
            }
        }
        failure
    }

    /// Whose call it is and where it works. With a single root, there is no other root to keep free for the client.
    pub(crate) fn turn(&self, client: &Arc<str>, cancel: &Cancel) -> Turn {
        match self.deployment.roots.len() {
            0 | 1 => Turn::new(client, [0; 2]),
            _ => Turn::new(client, cancel.roots()),
        }
    }

    /// Waits for a call's turn, which lasts until the work itself has ended.
    pub(crate) async fn enter(&self, turn: &Turn, weight: Weight) -> Result<CallSlot, Failure> {
        let slot = self.slots.take(turn, weight).await;
        slot.map_err(|QueueFull| Failure::RateLimited {
            retry_after_ms: LATER_MS,
        })
    }

    /// Takes a slot for a small call if one is free now.
    pub(crate) fn try_enter(&self, turn: &Turn) -> Option<CallSlot> {
        self.slots.try_take(turn, Weight::Small)
    }

    /// Waits for a client's turn, then does some work on the blocking pool.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        client: &Arc<str>,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Failure> {
        let slot = self
            .enter(&Turn::new(client, [0; 2]), Weight::Small)
            .await?;
        run_with(slot, work).await
    }

    /// Counts a client's call. Returns the recent number once it becomes unusual.
    pub(crate) fn called(&self, client: &str, usual: Option<u64>) -> Option<u64> {
        self.client_stats.called(client, usual, Instant::now())
    }

    /// Counts a client's violation, and tells what it did so far.
    pub(crate) fn violated(&self, client: &str) -> ClientStats {
        self.client_stats.violated(client, Instant::now())
    }

    /// What every client did so far.
    pub(crate) fn client_stats(&self) -> Arc<StatsTable> {
        Arc::clone(&self.client_stats)
    }

    /// How many calls run and how many wait for their turn.
    #[must_use]
    pub fn busy(&self) -> (usize, usize) {
        self.slots.counts()
    }

    /// Cancels every running call, because the process ends.
    pub(crate) fn close(&self) {
        self.closing.cancel();
    }

    /// Waits until running calls are to be cancelled.
    pub(crate) async fn cut(&self) {
        self.closing.cancelled().await;
    }

    /// Tells whether some root lets a set's tool do each of the things it does.
    pub(crate) fn offers(&self, set: &str, tool: &Definition) -> bool {
        tool.roots.iter().all(|use_| {
            self.candidates(set, use_).any(|grant| {
                check_allowed(grant, set, tool.allowed_as()).is_ok()
                    && check_access(grant, use_.access).is_ok()
            })
        })
    }

    /// Tells whether a root lets a set's tool do at least one of the things it does there.
    pub(crate) fn lets_use(grant: &RootGrant, set: &str, tool: &Definition) -> bool {
        let may_access = |use_: &RootUse| check_access(grant, use_.access).is_ok();
        check_allowed(grant, set, tool.allowed_as()).is_ok() && tool.roots.iter().any(may_access)
    }

    /// The roots that a set's tool or method can use, by name.
    pub(crate) fn usable(&self, set: &str, tool: &Definition) -> Vec<&str> {
        let roots = tool.roots.first();
        let grants = roots.map(|use_| self.candidates(set, use_));
        let usable = grants.into_iter().flatten();
        usable
            .filter(|grant| Admission::lets_use(grant, set, tool))
            .map(|grant| grant.name.as_str())
            .collect()
    }

    /// The root of a set that has only one, as the operator's settings chose it.
    pub(crate) fn home(&self, set: &str) -> Option<&RootGrant> {
        let mut roots = self.deployment.roots.iter();
        roots.find(|grant| grant.home_of.contains(set))
    }

    fn candidates<'a>(
        &'a self,
        set: &str,
        use_: &RootUse,
    ) -> Box<dyn Iterator<Item = &'a RootGrant> + 'a> {
        match use_.root {
            RootSource::Argument(_) | RootSource::ArgumentOr(..) | RootSource::HostPath(_) => {
                Box::new(self.deployment.roots.iter())
            }
            RootSource::Home | RootSource::NamedHome(_) => Box::new(self.home(set).into_iter()),
        }
    }

    fn find_all(
        &self,
        set: &str,
        tool: &Definition,
        arguments: &JsonObject,
        hosts: &HostDirectories,
    ) -> Result<Vec<&RootGrant>, Failure> {
        let each = tool.roots.iter();
        each.map(|use_| match use_.root {
            RootSource::HostPath(name) => self.find_on_host(set, tool, arguments.get(name), hosts),
            source => self.find(set, source, arguments),
        })
        .collect()
    }

    /// The root that a path on the host leads into. Without a path, a root that allows the tool, if there is one.
    fn find_on_host(
        &self,
        set: &str,
        tool: &Definition,
        path: Option<&Value>,
        hosts: &HostDirectories,
    ) -> Result<&RootGrant, Failure> {
        let roots = &self.deployment.roots;
        let root = match path {
            Some(Value::String(path)) => {
                let (root, _) = hosts.inside(path)?;
                roots.get(root)
            }
            _ => {
                let is_usable = |grant: &&RootGrant| Admission::lets_use(grant, set, tool);
                roots.iter().find(is_usable).or(roots.first())
            }
        };
        root.ok_or_else(|| no_such_root(set, Vec::new()))
    }

    fn find(
        &self,
        set: &str,
        source: RootSource,
        arguments: &JsonObject,
    ) -> Result<&RootGrant, Failure> {
        match source {
            RootSource::Home | RootSource::HostPath(_) => {
                self.home(set).ok_or_else(|| no_such_root(set, Vec::new()))
            }
            RootSource::NamedHome(name) => self.home_named(set, arguments.get(name)),
            RootSource::ArgumentOr(name, other) => {
                let absent = arguments.get(name).is_none_or(Value::is_null);
                let name = if absent { other } else { name };
                self.named_by(name, arguments)
            }
            RootSource::Argument(name) => self.named_by(name, arguments),
        }
    }

    /// The root that an argument names.
    fn named_by(&self, argument: &str, arguments: &JsonObject) -> Result<&RootGrant, Failure> {
        match arguments::field(arguments, argument) {
            Some(Value::String(root)) => self.named(root),
            other => Err(arguments::not_a_root(argument, other, &self.root_names()).into()),
        }
    }

    /// The only root of a set, if the client gave its name.
    fn home_named(&self, set: &str, name: Option<&Value>) -> Result<&RootGrant, Failure> {
        let name = name.and_then(Value::as_str).unwrap_or_default();
        let home = self.home(set);
        home.filter(|grant| grant.name == name).ok_or_else(|| {
            let known = home.map(|grant| grant.name.clone());
            no_such_root(name, known.into_iter().collect())
        })
    }

    fn root_names(&self) -> Vec<String> {
        let names = self.deployment.roots.iter().map(|grant| &grant.name);
        names.cloned().collect()
    }

    fn root_like(&self, name: &str) -> Option<String> {
        let names = self.deployment.roots.iter().map(|grant| &*grant.name);
        nearest(name, names).map(str::to_owned)
    }

    fn named(&self, root: &str) -> Result<&RootGrant, Failure> {
        let grant = self
            .by_name
            .get(root)
            .and_then(|&index| self.deployment.roots.get(index));
        grant.ok_or_else(|| Failure::UnknownRoot {
            root: root.to_owned(),
            nearest: self.root_like(root),
            known: self.root_names(),
            is_hidden: self.hidden.contains(root),
        })
    }
}

/// The failure if a set has no root, or its root has another name.
fn no_such_root(root: &str, known: Vec<String>) -> Failure {
    Failure::UnknownRoot {
        root: root.to_owned(),
        nearest: None,
        known,
        is_hidden: false,
    }
}

/// Does some work on the blocking pool, for a call that has its slot.
pub(crate) async fn run_with<T: Send + 'static>(
    slot: CallSlot,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Failure> {
    let task = tokio::task::spawn_blocking(move || {
        // Held by the work, not by the caller: work that is slow to stop still counts as running.
        let _slot = slot;
        ops::run_light(work)
    });
    task.await.map_err(|error| {
        let panic = error.try_into_panic();
        crashed(panic.as_deref().ok())
    })
}

/// Does some work on the threads for heavy work, for a call that has its slot.
pub(crate) async fn run_in_pool<T: Send + 'static>(
    slot: CallSlot,
    cancel: &Cancel,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Failure> {
    let (told, outcome) = oneshot::channel();
    let run = Box::new(move || {
        // Dropped before the reply is sent, so that a client's next call finds it free.
        let held = slot;
        let outcome = catch_unwind(AssertUnwindSafe(work));
        drop(held);
        // Nobody listens if the call was given up.
        let _ = told.send(outcome);
    });
    if let Err(run) = ops::run_heavy(cancel, run) {
        // No thread could be started: fall back to the runtime's blocking pool.
        tokio::task::spawn_blocking(run);
    }
    match outcome.await {
        Ok(outcome) => outcome.map_err(|panic| crashed(Some(&*panic))),
        Err(_) => Err(crashed(None)),
    }
}

/// Turns a panic and its message into a failure.
pub(crate) fn crashed(panic: Option<&(dyn Any + Send)>) -> Failure {
    let said = |panic: &(dyn Any + Send)| {
        let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
        text.or_else(|| panic.downcast_ref::<String>().cloned())
            .unwrap_or_default()
    };
    Failure::Internal {
        reason: panic.map_or_else(|| "the task was stopped".to_owned(), said),
    }
}

/// The directories of the admitted roots; fails if one is gone.
pub(crate) fn current_roots(grants: &[&RootGrant]) -> Result<Vec<Arc<Root>>, Failure> {
    let current = |grant: &&RootGrant| grant.root.current().ok_or_else(|| root_gone(grant));
    grants.iter().map(current).collect()
}

fn root_gone(grant: &RootGrant) -> Failure {
    Failure::RootGone {
        root: grant.name.clone(),
    }
}

fn check_allowed(grant: &RootGrant, set: &str, tool: &str) -> Result<(), Failure> {
    if grant.tools.allows(set, tool) && grant.client_tools.allows(set, tool) {
        Ok(())
    } else {
        Err(Failure::ToolNotAllowed {
            root: grant.name.clone(),
        })
    }
}

fn check_access(grant: &RootGrant, access: PlaceAccess) -> Result<(), Failure> {
    let root = || grant.name.clone();
    match access {
        PlaceAccess::Read => Ok(()),
        PlaceAccess::Write | PlaceAccess::Remove if grant.read_only => {
            Err(Failure::ReadOnly { root: root() })
        }
        PlaceAccess::Remove if !grant.rights.has(Right::Remove) => {
            Err(Failure::ToolNotAllowed { root: root() })
        }
        PlaceAccess::Write | PlaceAccess::Remove => Ok(()),
    }
}
