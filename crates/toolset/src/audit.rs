//! One log line for each call. Violations are warnings and say what was tried and where it would have led.

use std::time::Duration;

use crate::client::Caller;
use crate::client_stats::ClientStats;
use crate::contract::{CallSubject, Failure, NamedPlace, Worded};
use crate::metrics::OK;
use crate::observer::{Observation, ObservedEnd};
use crate::trace::TraceContext;

/// How much of a client's text a log line holds.
const VALUE_MAX: usize = 1024;

/// The target of lines about calls that are not for the audit file.
const UNRECORDED: &str = "toolset::unrecorded";

/// The log line of one call.
pub(crate) struct CallRecord<'call> {
    pub(crate) toolset: &'static str,
    pub(crate) subject: &'call CallSubject,
    pub(crate) caller: &'call Caller,
    /// What it changed, if the root keeps a history.
    pub(crate) change: Option<String>,
    pub(crate) stats: ClientStats,
    pub(crate) duration: Duration,
    pub(crate) response_size: usize,
    /// The operator's observer of the call, if there is one.
    pub(crate) observation: Option<Observation>,
}

/// Writes the line of a call: the fields of every line, with the outcome in the middle and optional fields at the end.
macro_rules! call_line {
    ($level:ident, $record:expr, $place:expr, [$($ended:tt)*], [$($rest:tt)*]) => {{
        let place: Option<&NamedPlace> = $place;
        tracing::$level!(
            toolset = $record.toolset,
            tool = $record.subject.tool,
            command = $record.subject.command.as_deref().map(capped),
            root = place.and_then(root),
            path = place.and_then(path),
            destination_root = $record.destination().and_then(root),
            destination_path = $record.destination().and_then(path),
            paths = $record.listed().as_deref(),
            arguments = $record.subject.arguments.as_deref().map(str::as_bytes),
            change = $record.change.as_deref(),
            $($ended)*
            client = &*$record.caller.name,
            client_name = $record.caller.client_name(),
            traceparent = $record.traceparent(),
            tracestate = $record.tracestate(),
            $($rest)*
        );
    }};
}

impl CallRecord<'_> {
    pub(crate) fn success(mut self) {
        self.tell_observer(OK, None, false);
        call_line!(
            info,
            self,
            self.subject.places.first(),
            [
                outcome = "ok",
                duration_ms = milliseconds(self.duration),
                request_size = self.caller.request_size,
                response_size = self.response_size,
            ],
            ["call"]
        );
    }

    pub(crate) fn failure(mut self, failure: &Failure, worded: &Worded) {
        let reason = reason(failure, worded);
        self.tell_observer(worded.code, Some(&reason), violation(failure).is_some());
        match violation(failure) {
            Some(violation) => self.refused(failure, worded.code, &reason, &violation),
            None => self.failed(failure, worded.code, &reason),
        }
        if let Failure::Internal { reason } = failure {
            tracing::error!(
                toolset = self.toolset,
                tool = self.subject.tool,
                reason,
                "bug in a tool"
            );
        }
    }

    /// Logs a refused call for which the audit file has no room.
    pub(crate) fn unrecorded(mut self, failure: &Failure, worded: &Worded) {
        let reason = reason(failure, worded);
        self.tell_observer(worded.code, Some(&reason), violation(failure).is_some());
        let place = self.subject.place_of(failure);
        tracing::warn!(
            target: UNRECORDED,
            toolset = self.toolset,
            tool = self.subject.tool,
            command = self.subject.command.as_deref().map(capped),
            root = root(&place),
            path = path(&place),
            arguments = self.subject.arguments.as_deref().map(str::as_bytes),
            error_code = worded.code,
            client = &*self.caller.name,
            client_name = self.caller.client_name(),
            traceparent = self.traceparent(),
            tracestate = self.tracestate(),
            "a refused call is only counted in the audit file: too many lines wait for it"
        );
    }

    /// Logs how a change ended that outlived its call.
    pub(crate) fn ended_late(&self, outcome: &str, code: Option<&str>) {
        call_line!(
            warn,
            self,
            self.subject.places.first(),
            [
                outcome,
                error_code = code,
                duration_ms = milliseconds(self.duration),
            ],
            ["a change has ended after its call"]
        );
    }

    fn traceparent(&self) -> Option<&str> {
        self.caller.trace.as_ref().map(TraceContext::parent)
    }

    fn tracestate(&self) -> Option<&str> {
        self.caller.trace.as_ref().and_then(TraceContext::state)
    }

    fn tell_observer(&mut self, outcome: &str, reason: Option<&str>, is_violation: bool) {
        if let Some(observation) = self.observation.take() {
            observation.end(&ObservedEnd {
                outcome,
                reason,
                is_violation,
                duration: self.duration,
                bytes: self.response_size,
            });
        }
    }

    /// The destination of a call that names two places.
    fn destination(&self) -> Option<&NamedPlace> {
        self.subject.places.get(1)
    }

    /// The place that a line of a failure begins with: where the failure is, unless the call has two places. Then it is the
    /// first, as in the line of a success, and the failure's own path has a field of its own.
    fn first_place(&self, failure: &Failure) -> (NamedPlace, Option<String>) {
        let failed = self.subject.place_of(failure);
        match self.subject.places.as_slice() {
            [first, _, ..] => (first.clone(), failed.path),
            _ => (failed, None),
        }
    }

    /// The paths of a call that has a list of them, as JSON.
    fn listed(&self) -> Option<String> {
        let found = self.subject.found.paths();
        let listed = self.subject.listed.iter().filter_map(path);
        let paths: Vec<&str> = listed
            .chain(found.iter().map(|path| capped(path)))
            .collect();
        if paths.is_empty() {
            return None;
        }
        serde_json::to_string(&paths).ok()
    }

    fn failed(&self, failure: &Failure, code: &str, reason: &str) {
        let (place, failed_path) = self.first_place(failure);
        call_line!(
            info,
            self,
            Some(&place),
            [
                failed_path = failed_path.as_deref().map(capped),
                outcome = "error",
                error_code = code,
                reason,
                duration_ms = milliseconds(self.duration),
                request_size = self.caller.request_size,
                response_size = self.response_size,
            ],
            ["call"]
        );
    }

    fn refused(&self, failure: &Failure, code: &str, reason: &str, violation: &RefusedAttempt<'_>) {
        let (place, failed_path) = self.first_place(failure);
        let attempted = failed_path.as_deref().map(capped).or_else(|| path(&place));
        call_line!(
            warn,
            self,
            Some(&place),
            [
                attempted_path = attempted,
                resolved_path = violation.leads_to.map(capped),
                violation = violation.kind,
                outcome = "error",
                error_code = code,
                reason,
                duration_ms = milliseconds(self.duration),
                request_size = self.caller.request_size,
                response_size = self.response_size,
            ],
            [
                client_calls = self.stats.calls,
                client_violations = self.stats.violations,
                "violation"
            ]
        );
    }
}

/// Why a call failed: the first line of the message that the client got, but never what is in a file.
fn reason(failure: &Failure, worded: &Worded) -> String {
    let own = match failure {
        Failure::Operation(ops::Error::PatchMismatch { hunk, line, .. }) => {
            format!("patch failed: hunk {hunk} does not match at line {line}")
        }
        Failure::Operation(ops::Error::PatchMalformed { line, .. }) => {
            format!("patch failed: malformed at line {line} of the patch")
        }
        Failure::Operation(ops::Error::EditRefused {
            path, edit, edits, ..
        }) => format!("edit {edit} of {edits} does not fit {path}"),
        Failure::Operation(ops::Error::StringNotFound { .. }) => "string not found".to_owned(),
        Failure::Operation(ops::Error::StringNotUnique { count, .. }) => {
            format!("string found {count} times")
        }
        _ => worded.message.lines().next().unwrap_or_default().to_owned(),
    };
    capped(&own).to_owned()
}

/// What a call changed, if histories keep it.
pub(crate) fn change_of(notes: &ops::ChangeNotes) -> Option<String> {
    let changes = notes.change_ids();
    (!changes.is_empty()).then(|| changes.join(" "))
}

/// Whether any line about calls is written.
pub(crate) fn is_on() -> bool {
    tracing::enabled!(tracing::Level::WARN)
}

/// Logs that a client calls unusually often.
pub(crate) fn frequent(toolset: &str, caller: &Caller, calls: u64) {
    tracing::warn!(
        toolset,
        client = &*caller.name,
        client_name = caller.client_name(),
        calls,
        "unusual call frequency: so many calls within ten seconds"
    );
}

/// An attempt at something forbidden.
#[derive(Default)]
pub(crate) struct RefusedAttempt<'failure> {
    /// Where it would have led.
    leads_to: Option<&'failure str>,
    /// Its kind, if there are several kinds.
    kind: Option<&'static str>,
}

/// Tells whether a failure is a violation.
pub(crate) fn violation(failure: &Failure) -> Option<RefusedAttempt<'_>> {
    match failure {
        Failure::Operation(ops::Error::Outside { leads_to, .. }) => Some(RefusedAttempt {
            leads_to: Some(leads_to),
            ..RefusedAttempt::default()
        }),
        // Nobody writes a NUL byte into a path by mistake.
        Failure::Operation(ops::Error::InvalidPath {
            fault: ops::PathFault::Nul,
            ..
        })
        | Failure::Operation(ops::Error::NotFound { denied: true, .. })
        | Failure::Operation(ops::Error::NotGranted { .. })
        | Failure::UnknownRoot {
            is_hidden: true, ..
        }
        | Failure::ToolNotAllowed { .. }
        | Failure::ReadOnly { .. } => Some(RefusedAttempt::default()),
        Failure::Operation(ops::Error::UndoRefused(refusal)) => {
            let is_forbidden = matches!(
                **refusal,
                ops::UndoRefusal::Forbidden { .. } | ops::UndoRefusal::OtherEnd
            );
            is_forbidden.then(RefusedAttempt::default)
        }
        Failure::Guide(guide::Error::Violation {
            violation,
            leads_to,
            ..
        }) => Some(RefusedAttempt {
            leads_to: leads_to.as_deref(),
            kind: Some(violation.name()),
        }),
        _ => None,
    }
}

fn root(place: &NamedPlace) -> Option<&str> {
    place.root.as_deref().map(capped)
}

fn path(place: &NamedPlace) -> Option<&str> {
    place.path.as_deref().map(capped)
}

fn capped(text: &str) -> &str {
    ops::first_chars(text, VALUE_MAX)
}

/// Milliseconds with three decimals: most calls take only microseconds.
fn milliseconds(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1_000_000.0).round() / 1000.0
}
