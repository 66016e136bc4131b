//! The one road of a call: admit → decode → run → word → record.

mod asking_first;
mod encoding;
mod inline;
mod outcome;
mod reload;

use std::sync::Arc;
use std::time::Instant;

use ops::{Cancel, Context, Planned};
use rmcp::model::JsonObject;
use serde_json::Value;
use tokio_util::task::TaskTracker;

pub use self::encoding::{Encoded, Encoder, NoMessage};
use self::inline::RestOfWork;
use self::outcome::EndingCall;
use crate::admission::{self, Admission, run_in_pool, run_with};
use crate::arguments;
use crate::audit;
use crate::call_watch::CallWatch;
use crate::catalogue::{Catalogue, SetupError, ToolEntry};
use crate::change_after_call::{LateEnd, observed};
use crate::client::Caller;
use crate::confirm;
use crate::contract::{CallSubject, Failure};
use crate::deployment::{ClientGrant, Recorded};
use crate::history::{account_of, client_of};
use crate::host_paths::HostDirectories;
use crate::reply::{CallOutcome, EncodedReply};
use crate::resources::{ResourceChange, Subscription};
use crate::tool::{Blocking, Call, CallWork, Ended, Prepared, ToolEffect, ToolSet, Weight};

/// Runs the calls of one endpoint. Cloning is cheap.
#[derive(Clone)]
pub struct Service {
    inner: Arc<ServiceParts>,
}

struct ServiceParts {
    catalogue: Catalogue,
    admission: Arc<Admission>,
    /// The running calls, whether or not their clients still wait.
    running: TaskTracker,
}

impl Service {
    /// Prepares an endpoint that serves one set, or several whose tools have different names.
    pub fn new(sets: Vec<ToolSet>, admission: Arc<Admission>) -> Result<Service, SetupError> {
        Ok(Service {
            inner: Arc::new(ServiceParts {
                catalogue: Catalogue::new(sets, &admission)?,
                admission,
                running: TaskTracker::new(),
            }),
        })
    }

    /// The same endpoint for a named client, by its own admission; `None` if the client may use none of its sets.
    #[must_use]
    pub fn for_client(&self, client: &ClientGrant, admission: &Arc<Admission>) -> Option<Service> {
        let catalogue = self.inner.catalogue.for_client(client, admission)?;
        Some(Service {
            inner: Arc::new(ServiceParts {
                catalogue,
                admission: Arc::clone(admission),
                running: self.inner.running.clone(),
            }),
        })
    }

    /// The tools of the endpoint.
    #[must_use]
    pub fn catalogue(&self) -> &Catalogue {
        &self.inner.catalogue
    }

    /// Runs a call to its result or its question; `None` if no tool has this name.
    pub async fn call(&self, tool: &str, arguments: Value, caller: &Caller) -> Option<CallOutcome> {
        let called = self.call_encoded(tool, arguments, caller, &NoMessage);
        called.await.map(|called| called.outcome)
    }

    /// Runs a call like [`Service::call`] and makes the message of its outcome: the record of the call says what goes over
    /// the wire.
    pub async fn call_encoded(
        &self,
        tool: &str,
        arguments: Value,
        caller: &Caller,
        encoder: &dyn Encoder,
    ) -> Option<Encoded> {
        let entry = self.inner.catalogue.entry(tool)?;
        Some(self.dispatch(entry, arguments, caller, encoder).await)
    }

    /// Runs a method of the protocol on a root; `None` if no set of the endpoint has it. It takes the road of a call.
    pub async fn call_method(
        &self,
        method: &str,
        root: &str,
        arguments: Value,
        caller: &Caller,
        encoder: &dyn Encoder,
    ) -> Option<Encoded> {
        let entry = self.inner.catalogue.method(method, root)?;
        Some(self.dispatch(entry, arguments, caller, encoder).await)
    }

    async fn dispatch(
        &self,
        entry: &ToolEntry,
        arguments: Value,
        caller: &Caller,
        encoder: &dyn Encoder,
    ) -> Encoded {
        let _running = self.inner.running.token();
        let dispatch = Dispatch {
            entry,
            admission: &self.inner.admission,
            running: &self.inner.running,
            caller,
        };
        dispatch.call(arguments, encoder).await
    }

    /// Waits for the next change of a resource that is watched; `None` once nothing more can be seen.
    pub async fn next_change(&self, subscription: &mut Subscription) -> Option<ResourceChange> {
        subscription.next(&self.inner.admission).await
    }

    /// The budget for the bytes that clients make the process hold.
    #[must_use]
    pub fn byte_budget(&self) -> &Arc<ops::ByteBudget> {
        self.inner.admission.byte_budget()
    }

    /// The directories that a client names as its roots (`roots/list`), limited to those inside served directories.
    /// `None` means that nothing is narrowed. Reads directories, so it may have to wait for a file server.
    pub async fn narrowed(&self, uris: &[String]) -> Option<Arc<HostDirectories>> {
        let admission = &self.inner.admission;
        let hosts = admission.host_directories();
        let mut found = Vec::new();
        for (root, named) in hosts.named_by_root(uris) {
            let grant = admission.deployment().roots.get(root);
            let Some((grant, open)) = grant.and_then(|grant| Some((grant, grant.root.current()?)))
            else {
                continue;
            };
            let turns = admission.root_turns();
            let look = turns.look(&grant.name, move || named.directories(root, &open));
            found.extend(look.await.into_iter().flatten());
        }
        hosts.narrowed_to(found).map(Arc::new)
    }

    /// Waits until no call runs. Used at shutdown, when none can begin: calls whose clients hung up are recorded too.
    pub async fn settle(&self) {
        self.inner.running.close();
        self.inner.running.wait().await;
    }

    /// Cancels the running calls of every endpoint of the process, because their time to finish is over.
    pub fn cut_calls(&self) {
        self.inner.admission.close();
    }
}

/// One call on its road.
#[derive(Clone, Copy)]
struct Dispatch<'call> {
    entry: &'call ToolEntry,
    admission: &'call Admission,
    running: &'call TaskTracker,
    caller: &'call Caller,
}

/// A call that was admitted and decoded, and whose record has room.
struct BegunCall<'call> {
    /// In a place of its own: each step of the road would copy it into its future.
    call: Box<Call>,
    work: CallWork,
    watch: CallWatch<'call>,
}

impl<'call> Dispatch<'call> {
    async fn call(self, arguments: Value, encoder: &dyn Encoder) -> Encoded {
        let start = Instant::now();
        self.count();
        let (arguments, wrong) = self.object(arguments);
        let subject = self.subject(&arguments);
        let mut told = EndingCall {
            observation: self.observe(&subject),
            subject: &subject,
            start,
            notes: None,
        };
        // Kept in case the call has to run again after a question.
        let kept = self.may_ask_first().then(|| arguments.clone());
        // Held until the call has ended: the client's calls at once are counted by it.
        let place = self.admission.take_place();
        let begun = match (wrong, &place) {
            (Some(wrong), _) => Err(wrong),
            (None, Err(_)) => Err(Failure::RateLimited {
                retry_after_ms: admission::LATER_MS,
            }),
            (None, Ok(_)) => self.begin_confirmed(arguments, &subject).await,
        };
        let begun = match begun {
            Ok(begun) => begun,
            Err(failure) => return self.refused(told, &failure, encoder),
        };
        if self.changes() {
            told.notes = Some(begun.call.context.change_notes.clone());
        }
        let ended = match kept {
            Some(arguments) => self.run_asking(begun, &arguments, &subject).await,
            None => self.run(begun, &subject).await,
        };
        self.ended(told, ended, encoder).await
    }

    /// The arguments, with optional ones filled in; if they are not an object, none, and the error.
    fn object(self, arguments: Value) -> (JsonObject, Option<Failure>) {
        match arguments {
            Value::Object(mut arguments) => {
                let definition = self.entry.tool.definition();
                self.admission.complete(definition, &mut arguments);
                (arguments, None)
            }
            other => {
                let wrong = arguments::not_an_object(&other).into();
                (JsonObject::new(), Some(wrong))
            }
        }
    }

    /// Counts a call, and warns when its client calls more often than is usual for the set.
    fn count(self) {
        let contract = self.entry.contract;
        let unusual = self
            .admission
            .called(&self.caller.account, contract.usual_calls());
        if let Some(calls) = unusual {
            audit::frequent(contract.name(), self.caller, calls);
        }
    }

    fn subject(self, arguments: &JsonObject) -> CallSubject {
        let home = self.admission.home(self.entry.contract.name());
        let home = home.map(|grant| grant.name.as_str());
        let definition = self.entry.tool.definition();
        let tells_host_paths = self.entry.contract.tells_host_paths();
        let mut subject = CallSubject::new(definition, arguments, home);
        if audit::is_on() {
            subject = subject.with_arguments(definition, arguments, tells_host_paths);
        }
        if !tells_host_paths {
            return subject;
        }
        let roots = self.admission.deployment().roots.iter();
        let roots: Vec<String> = roots.map(|grant| grant.name.clone()).collect();
        subject.on_host(&self.host_directories(), &roots)
    }

    /// The directories of the host that this client works in.
    fn host_directories(self) -> Arc<HostDirectories> {
        let narrowed = self.caller.narrowed.as_ref();
        Arc::clone(narrowed.unwrap_or_else(|| self.admission.host_directories()))
    }

    /// Does everything that precedes a call's work. No file is touched yet.
    async fn begin(
        self,
        arguments: JsonObject,
        subject: &CallSubject,
        allowed: Option<Planned>,
    ) -> Result<BegunCall<'call>, Failure> {
        let (mut call, prepared) = self.admit_and_decode(arguments, subject)?;
        if let Some(allowed) = allowed {
            call.context.consent = call.context.consent.widened(allowed);
        }
        let cancel = call.context.cancel.clone();
        let mut watch = CallWatch::new(cancel, prepared.timeout, self.caller, self.admission);
        self.wait_for_record(&mut watch).await?;
        Ok(BegunCall {
            call,
            work: prepared.work,
            watch,
        })
    }

    async fn run(self, begun: BegunCall<'_>, subject: &CallSubject) -> Result<Ended, Failure> {
        let BegunCall {
            call,
            work,
            mut watch,
        } = begun;
        match work {
            CallWork::Blocking(work) => {
                let reply = self.run_blocking(work, call, &mut watch, subject).await;
                reply.map(Ended::Reply)
            }
            CallWork::Asking(work) => watch.wait(work(*call, self.admission)).await?,
        }
    }

    /// Admits a call to its roots and decodes its arguments.
    fn admit_and_decode(
        self,
        arguments: JsonObject,
        subject: &CallSubject,
    ) -> Result<(Box<Call>, Prepared), Failure> {
        let entry = self.entry;
        let deployment = self.admission.deployment();
        let definition = entry.tool.definition();
        let (set, hosts) = (entry.contract.name(), self.host_directories());
        let grants = self.admission.admit(set, definition, &arguments, &hosts)?;
        let may_change = grants.iter().all(|grant| !grant.read_only);
        let host_roots = || self.admission.host_roots(hosts, set, definition);
        let timeout = deployment.request_timeout;
        let prepared = entry.tool.prepare(arguments, timeout, &deployment.limits)?;
        let roots = admission::current_roots(&grants)?;
        let cancel = Cancel::after(prepared.timeout)
            .of_client(Arc::clone(&self.caller.allowance))
            .in_roots(&roots);
        let call = Call {
            context: Context {
                limits: Arc::clone(&deployment.limits),
                users: Arc::clone(&deployment.users),
                line_index_cache: self.admission.line_index_cache(),
                search_memory: Arc::clone(self.admission.search_memory()),
                change_notes: self.change_notes(),
                cancel,
                consent: confirm::consent(&grants, definition, set),
                room: self.caller.room.clone(),
            },
            root_index: grants.first().and_then(|first| {
                let mut all = deployment.roots.iter();
                all.position(|grant| std::ptr::eq(grant, *first))
            }),
            roots,
            other_roots: self.other_roots(),
            root_infos: Arc::clone(&entry.root_infos),
            replies: self.halves(),
            text_form: deployment.text,
            form: definition.form,
            resource_tools: entry.contract.resources(),
            host_roots: entry.contract.tells_host_paths().then(host_roots),
            request_timeout: timeout,
            may_change,
            memory_tool: deployment.memory_tool,
            caller: self.caller.clone(),
            client_stats: self.admission.client_stats(),
            found_paths: subject.found.clone(),
        };
        Ok((Box::new(call), prepared))
    }

    /// The other roots in which the client may use the tool, if its work can reach them. Roots that ask a person first are
    /// left out, because only a call that names such a root can ask.
    fn other_roots(self) -> Vec<ops::OtherRoot> {
        let definition = self.entry.tool.definition();
        if !definition.roots.iter().any(|root| root.and_others) {
            return Vec::new();
        }
        let grants = self.admission.deployment().roots.iter();
        let grants = grants.zip(self.entry.root_infos.iter());
        let others = grants.filter_map(|(grant, info)| {
            let may_use = info.allowed_tools.contains(&definition.name) && !info.read_only;
            let root = grant.root.current()?;
            (may_use && grant.confirm.is_none()).then(|| ops::OtherRoot {
                name: info.name.clone(),
                root,
                tools: info.allowed_tools.clone(),
            })
        });
        others.collect()
    }

    /// Notes who makes the call, for the history of its changes.
    fn change_notes(self) -> ops::ChangeNotes {
        let definition = self.entry.tool.definition();
        if definition.effect == ToolEffect::Read {
            return ops::ChangeNotes::default();
        }
        ops::ChangeNotes::of(ops::Author {
            client: client_of(self.caller),
            account: account_of(self.caller),
            tool: definition.name.to_owned(),
            ..ops::Author::default()
        })
    }

    /// Waits until the call can be recorded. A call whose time runs out here has changed nothing.
    async fn wait_for_record(self, watch: &mut CallWatch<'_>) -> Result<(), Failure> {
        let Some(recorder) = &self.admission.deployment().recorder else {
            return Ok(());
        };
        let kind = match self.entry.tool.definition().effect {
            ToolEffect::Read => Recorded::Read,
            ToolEffect::Write { .. } => Recorded::Change,
        };
        if kind == Recorded::Change && recorder.refuses_changes() {
            return Err(Failure::Unrecordable);
        }
        if recorder.has_room(kind) {
            return Ok(());
        }
        watch.wait(recorder.room(kind)).await
    }

    async fn run_blocking(
        self,
        work: Blocking,
        call: Box<Call>,
        watch: &mut CallWatch<'_>,
        subject: &CallSubject,
    ) -> Result<EncodedReply, Failure> {
        let turn = self
            .admission
            .turn(&self.caller.allowance, &call.context.cancel);
        let RestOfWork { work, weight, slot } =
            match self.try_inline(work, &call, &turn, watch).await? {
                Ok(reply) => return reply,
                Err(rest) => rest,
            };
        let late_end = self.changes().then(|| {
            let notes = &call.context.change_notes;
            LateEnd::new(self.entry.contract, subject, self.caller, notes)
        });
        let work = observed(work, late_end.clone());
        let run = async {
            let slot = match slot {
                Some(slot) => slot,
                None => self.admission.enter(&turn, weight).await?,
            };
            match weight {
                Weight::Small => run_with(slot, move || work(&call)).await,
                Weight::Heavy => {
                    let cancel = call.context.cancel.clone();
                    // The process does not end before the work has cleaned up.
                    let running = self.running.token();
                    let work = move || {
                        let _running = running;
                        // A call that gave up waiting must not touch its root again: the root may be what it waited
                        // for.
                        call.context.cancel.check()?;
                        work(&call)
                    };
                    run_in_pool(slot, &cancel, work).await
                }
            }
        };
        match watch.wait(run).await {
            Ok(reply) => reply?,
            Err(Failure::Operation(error)) if late_end.is_some_and(|end| end.leave()) => {
                Err(Failure::LeftRunning(error))
            }
            Err(failure) => Err(failure),
        }
    }

    fn changes(self) -> bool {
        self.entry.tool.definition().effect != ToolEffect::Read
    }
}

#[cfg(test)]
mod tests;
