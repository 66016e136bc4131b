//! The interface behind the page: it answers each request with JSON.

use std::collections::BTreeMap;
use std::sync::Arc;

use hyper::body::Bytes;
use hyper::header::HeaderValue;
use hyper::{Method, StatusCode};
use ops::{ChangeFilter, NoLines, Operation, OtherRoot, Place, Restore, Undo, UndoTarget};
use sandbox::{NamedRoot, Root, parse_change_id};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use toolset::{Admission, Allowlist, RootGrant};

use super::board::CallBoard;
use super::{AdminReply, reply, text};
use crate::change_words::{OPERATOR, OperatorContext, object, refused};
use crate::commands::root_risks;
use crate::http::HttpGauges;
use crate::in_force::InForce;
use crate::log::CALLS;
use crate::process_usage::ProcessFigures;
use crate::settings::Settings;

/// How many changes one answer holds.
const CHANGES_MAX: usize = 200;

/// The state that the interface reports.
pub(crate) struct AdminState {
    pub(crate) board: Arc<CallBoard>,
    pub(crate) admission: Arc<InForce<Admission>>,
    pub(crate) gauges: Option<Arc<HttpGauges>>,
    pub(crate) process: Arc<ProcessFigures>,
    /// How the process is confined to its roots.
    pub(crate) protection: String,
    /// The warnings of `check`.
    pub(crate) warnings: Arc<InForce<Vec<String>>>,
    /// The clients that the settings name.
    pub(crate) clients: Arc<InForce<Vec<String>>>,
    /// The settings in force.
    pub(crate) settings: Arc<InForce<Settings>>,
    /// The warnings of `check` about each root, once they were requested.
    pub(crate) root_risks: InForce<Option<RootRisks>>,
}

/// The warnings of `check` about each root, under the settings that were in force.
#[derive(Clone)]
pub(crate) struct RootRisks {
    settings: Arc<Settings>,
    risks: Arc<BTreeMap<String, Vec<String>>>,
}

/// An answer, or a sentence about what is wrong with the request.
type Answer = Result<Value, (StatusCode, String)>;

#[derive(Deserialize)]
struct Suspend {
    client: String,
    suspended: bool,
}

#[derive(Deserialize)]
struct ChangesAsked {
    root: String,
    path: Option<String>,
    client: Option<String>,
}

#[derive(Deserialize)]
struct TakeBack {
    root: String,
    change: String,
    /// Required, so that a request that forgot it does not undo anything.
    dry_run: bool,
}

#[derive(Deserialize)]
struct Shown {
    root: String,
    change: String,
}

#[derive(Deserialize)]
struct BringBack {
    root: String,
    change: String,
    path: String,
    /// Required, as for an undo.
    dry_run: bool,
}

impl AdminState {
    pub(super) async fn answer(
        &self,
        name: &str,
        method: &Method,
        query: &str,
        body: &Bytes,
    ) -> AdminReply {
        let answer = match (method, name) {
            (&Method::GET, "live") => Ok(self.live(query)),
            (&Method::GET, "roots") => self.roots().await,
            (&Method::GET, "clients") => Ok(self.clients()),
            (&Method::POST, "suspend") => self.suspend(body),
            (&Method::POST, "changes") => self.changes(body).await,
            (&Method::POST, "diff") => self.diff(body).await,
            (&Method::POST, "undo") => self.undo(body).await,
            (&Method::POST, "restore") => self.restore(body).await,
            (_, "live" | "roots" | "clients") => Err(wrong_method("GET")),
            (_, "suspend" | "changes" | "diff" | "undo" | "restore") => Err(wrong_method("POST")),
            _ => Err((
                StatusCode::NOT_FOUND,
                "Not Found: there are live, roots, clients, suspend, changes, diff, undo and restore"
                    .to_owned(),
            )),
        };
        match answer {
            Ok(answer) => reply(
                StatusCode::OK,
                answer.to_string().into(),
                HeaderValue::from_static("application/json"),
            ),
            Err((status, message)) => text(status, message),
        }
    }

    fn live(&self, query: &str) -> Value {
        let after = query
            .strip_prefix("after=")
            .and_then(|after| after.parse().ok());
        let admission = self.admission.now();
        let (running, waiting) = admission.busy();
        let mut answer = json!({
            "calls": self.board.live(after.unwrap_or(0)),
            "version": env!("CARGO_PKG_VERSION"),
            "uptime_seconds": self.process.uptime_seconds(),
            "memory_bytes": self.process.resident_bytes(),
            "cpu_seconds": self.process.cpu_seconds(),
            "held_bytes": admission.byte_budget().bytes_held(),
            "running": running,
            "waiting": waiting,
        });
        if let (Some(gauges), Some(answer)) = (&self.gauges, answer.as_object_mut()) {
            answer.insert("connections".to_owned(), json!(gauges.connections()));
            answer.insert("sessions".to_owned(), json!(gauges.sessions()));
        }
        answer
    }

    async fn roots(&self) -> Answer {
        let grants = self.admission.now().deployment().roots.clone();
        let mut roots = blocking(move || grants.iter().map(told_root).collect::<Vec<_>>()).await?;
        let risks = self.risks_of_roots().await?;
        for root in &mut roots {
            let name = root["name"].as_str().unwrap_or_default();
            root["risks"] = json!(risks.get(name));
        }
        Ok(json!({
            "roots": roots,
            "protection": self.protection,
            "warnings": *self.warnings.now(),
        }))
    }

    fn clients(&self) -> Value {
        let refused = self.gauges.as_ref();
        let refused = refused.map(|gauges| gauges.refusals().senders());
        json!({ "clients": self.board.clients(&self.clients.now()), "refused": refused })
    }

    /// The warnings of `check` about each root. They take a walk through the roots, so they are computed once for the
    /// settings in force.
    async fn risks_of_roots(
        &self,
    ) -> Result<Arc<BTreeMap<String, Vec<String>>>, (StatusCode, String)> {
        let settings = self.settings.now();
        if let Some(known) = &*self.root_risks.now()
            && Arc::ptr_eq(&known.settings, &settings)
        {
            return Ok(Arc::clone(&known.risks));
        }
        let admission = self.admission.now();
        let grants = admission.deployment().roots.iter();
        let roots = grants.filter_map(|grant| {
            Some(NamedRoot {
                name: grant.name.clone(),
                root: grant.root.current()?,
                read_only: grant.read_only,
            })
        });
        let (roots, own) = (roots.collect::<Vec<_>>(), Arc::clone(&settings));
        let risks = Arc::new(blocking(move || root_risks(&roots, &own)).await?);
        self.root_risks.replace(Some(RootRisks {
            settings,
            risks: Arc::clone(&risks),
        }));
        Ok(risks)
    }

    fn suspend(&self, body: &Bytes) -> Answer {
        let Suspend { client, suspended } = decoded(body)?;
        let configured = self.clients.now();
        if !self.board.suspend(&client, suspended, &configured) {
            let message = "Not Found: no such client is configured or has called since the start";
            return Err((StatusCode::NOT_FOUND, message.to_owned()));
        }
        let verb = if suspended {
            "suspended"
        } else {
            "let in again"
        };
        tracing::warn!(
            target: CALLS,
            toolset = "admin",
            tool = "suspend",
            suspended,
            of = client,
            outcome = "ok",
            client = OPERATOR,
            "a client was {verb} by the operator"
        );
        Ok(json!({ "client": client, "suspended": suspended }))
    }

    async fn changes(&self, body: &Bytes) -> Answer {
        let ChangesAsked { root, path, client } = decoded(body)?;
        let current = self.root(&root)?;
        let filter = ChangeFilter {
            path: path.filter(|path| !path.is_empty()),
            client: client.filter(|client| !client.is_empty()),
            limit: CHANGES_MAX,
            ..ChangeFilter::default()
        };
        let is_kept = current.history().is_some();
        let changes = blocking(move || {
            let told = ops::changes(&current, &filter);
            told.iter()
                .map(|one| object(&root, one))
                .collect::<Vec<_>>()
        });
        Ok(json!({ "changes": changes.await?, "kept": is_kept }))
    }

    async fn undo(&self, body: &Bytes) -> Answer {
        let TakeBack {
            root,
            change,
            dry_run,
        } = decoded(body)?;
        let (current, number) = (self.root(&root)?, numbered(&change)?);
        let context = self.operator().context();
        let undo = Undo::by_operator(
            current,
            self.other_roots(),
            UndoTarget::Change(number),
            dry_run,
        );
        let notes = context.change_notes.clone();
        let undone = blocking(move || undo.run(&context)).await?;
        let undone = undone.map_err(|error| conflict(&root, &error));
        if !dry_run {
            record("undo", &root, &change, None, undone.as_ref().err());
        }
        let undone = undone?;
        let parts = undone.changes.iter().flat_map(|record| &record.parts);
        let parts: Vec<Value> = parts.map(crate::change_words::part_object).collect();
        Ok(json!({
            "change": change,
            "dry_run": dry_run,
            "undone_by": notes.change_ids().first(),
            "parts": parts,
        }))
    }

    /// The lines that a change added and removed.
    async fn diff(&self, body: &Bytes) -> Answer {
        let Shown { root, change } = decoded(body)?;
        let (current, number) = (self.root(&root)?, numbered(&change)?);
        let context = self.operator().context();
        let diff = blocking(move || ops::change_diff(&current, number, &context)).await?;
        let diff = diff.map_err(|error| conflict(&root, &error))?;
        Ok(match diff {
            Ok(diff) => json!({
                "change": change,
                "diff": diff.text,
                "added": diff.added,
                "removed": diff.removed,
                "truncated": diff.truncated,
            }),
            Err(reason) => {
                json!({ "change": change, "diff": null, "reason": no_lines(reason) })
            }
        })
    }

    /// Brings one file back as it was before a change, or says what that would do.
    async fn restore(&self, body: &Bytes) -> Answer {
        let BringBack {
            root,
            change,
            path,
            dry_run,
        } = decoded(body)?;
        let (current, number) = (self.root(&root)?, numbered(&change)?);
        let context = self.operator().context_of("restore");
        let notes = context.change_notes.clone();
        let wanted = path.clone();
        let restored = blocking(move || {
            let restore = Restore {
                place: Place::new(current, &wanted)?,
                before: number,
                is_rehearsal: dry_run,
            };
            restore.run(&context)
        });
        let restored = restored.await?.map_err(|error| conflict(&root, &error));
        if !dry_run {
            record(
                "restore",
                &root,
                &change,
                Some(&path),
                restored.as_ref().err(),
            );
        }
        let restored = restored?;
        Ok(json!({
            "path": restored.path,
            "size": restored.size,
            "dry_run": dry_run,
            "change": notes.change_ids().first(),
        }))
    }

    /// The limits of the operator's own calls.
    fn operator(&self) -> OperatorContext {
        OperatorContext::within(Arc::clone(&self.admission.now().deployment().limits))
    }

    /// All roots: a move between two is taken back in both.
    fn other_roots(&self) -> Vec<OtherRoot> {
        let admission = self.admission.now();
        let grants = admission.deployment().roots.iter();
        let roots = grants.filter_map(|grant| Some((grant.name.clone(), grant.root.current()?)));
        roots
            .map(|(name, root)| OtherRoot::of(name, root))
            .collect()
    }

    fn root(&self, name: &str) -> Result<Arc<Root>, (StatusCode, String)> {
        let admission = self.admission.now();
        let mut roots = admission.deployment().roots.iter();
        let grant = roots.find(|grant| grant.name == name);
        grant
            .and_then(|grant| grant.root.current())
            .ok_or_else(|| (StatusCode::NOT_FOUND, format!("Not Found: no root {name}")))
    }
}

/// Records what the operator did to files, like a client's call.
fn record(
    tool: &str,
    root: &str,
    change: &str,
    path: Option<&str>,
    refused: Option<&(StatusCode, String)>,
) {
    let outcome = if refused.is_some() { "failed" } else { "ok" };
    let reason = refused.map(|(_, reason)| reason);
    tracing::info!(
        target: CALLS,
        toolset = "admin",
        tool,
        root,
        path,
        change,
        outcome,
        reason,
        client = OPERATOR,
        "the operator changed files"
    );
}

fn told_root(grant: &RootGrant) -> Value {
    let current = grant.root.current();
    let tools = match &grant.tools {
        Allowlist::All => json!("all"),
        Allowlist::Only(names) => json!(names),
    };
    let quota = current.as_ref().and_then(|root| root.quota_use());
    let history = current.as_ref().and_then(|root| {
        let history = root.history()?;
        let figures = history.figures();
        Some(json!({
            "changes": figures.changes,
            "bytes": figures.bytes,
            "oldest_ms": figures.oldest_ms,
            "in_root": history.is_in_root(),
        }))
    });
    json!({
        "name": grant.name,
        "up": current.is_some(),
        "read_only": grant.read_only,
        "tools": tools,
        "quota": quota.map(|usage| json!({
            "max_bytes": usage.quota.max_bytes,
            "max_files": usage.quota.max_files,
            "bytes": usage.used.map(|used| used.bytes),
            "files": usage.used.map(|used| used.files),
        })),
        "history": history,
    })
}

fn decoded<T: DeserializeOwned>(body: &Bytes) -> Result<T, (StatusCode, String)> {
    serde_json::from_slice(body).map_err(|error| bad_request(error.to_string()))
}

fn no_lines(reason: NoLines) -> &'static str {
    match reason {
        NoLines::OfWholeEntries => "the change is of whole files or directories, and not of lines",
        NoLines::Unknown => "the files are binary, large or no longer kept",
    }
}

/// The number of a change by its name.
fn numbered(change: &str) -> Result<u64, (StatusCode, String)> {
    parse_change_id(change).ok_or_else(|| bad_request(format!("{change} is no name of a change")))
}

/// Why nothing was done.
fn conflict(root: &str, error: &ops::Error) -> (StatusCode, String) {
    let reason = match error {
        ops::Error::UndoRefused(refusal) => refused(root, refusal).to_string(),
        error => error.to_string(),
    };
    (StatusCode::CONFLICT, reason)
}

fn bad_request(reason: String) -> (StatusCode, String) {
    (StatusCode::BAD_REQUEST, format!("Bad Request: {reason}"))
}

fn wrong_method(allowed: &str) -> (StatusCode, String) {
    let message = format!("Method Not Allowed: use {allowed}");
    (StatusCode::METHOD_NOT_ALLOWED, message)
}

/// Runs work that reads the disk on a thread that may block.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, (StatusCode, String)> {
    tokio::task::spawn_blocking(work).await.map_err(|_| {
        let message = "Internal Server Error: it was logged";
        (StatusCode::INTERNAL_SERVER_ERROR, message.to_owned())
    })
}
