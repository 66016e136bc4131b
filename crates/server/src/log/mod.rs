//! Logs: one line an event on standard error, and every call in the audit file.
//!
//! No call waits for the reader of the log: lines go through a [`LineQueue`]. Start the log after the process confined
//! itself: its writer is the first thread.

mod audit_file;
pub(crate) mod chain;
mod line;
mod queue;

use std::io;
use std::sync::Arc;

use toolset::Recorder;
use tracing::level_filters::LevelFilter;
use tracing::{Event, Subscriber};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;

pub(crate) use self::audit_file::AuditFile;
pub(crate) use self::line::LineFormat;
use self::line::LogLine;
use self::queue::{LineQueue, OnFull};
use crate::settings::{AuditOnFailure, LogLevel, Settings};

/// The crates whose lines are written at the configured level; from other crates only warnings are.
const OURS: &[&str] = &[
    "mcp_filesystem",
    "mcp",
    "toolset",
    "guide",
    "ops",
    "sandbox",
];

/// The target of the lines in which [`toolset`] records calls.
pub(crate) const CALLS: &str = "toolset::audit";

/// Starts logging for the whole process. Keep the [`Log`] until the end: dropping it writes the lines that still wait.
pub(crate) fn start(settings: &Settings, audit: Option<AuditFile>) -> io::Result<Log> {
    let format = LineFormat::of_standard_error(settings.log_format);
    let queue = LineQueue::start(io::stderr(), format, OnFull::Drop)?;
    let lines = LineLayer {
        queue: queue.clone(),
        format,
    };
    let lines = lines.with_filter(targets(settings.log_level));
    let audit = audit.map(|file| LineQueue::start(file, LineFormat::Json, OnFull::Keep));
    let audit = audit.transpose()?;
    let refuses = settings.audit_on_failure == AuditOnFailure::Refuse;
    let audit = audit.map(|queue| queue.refusing_changes(refuses));
    let calls = audit.clone().map(|queue| {
        let format = LineFormat::Json;
        let calls = Targets::new().with_target(CALLS, LevelFilter::INFO);
        LineLayer { queue, format }.with_filter(calls)
    });
    tracing_subscriber::registry()
        .with(lines)
        .with(calls)
        .try_init()
        .map_err(io::Error::other)?;
    std::panic::set_hook(Box::new(log_panic));
    if audit.as_ref().is_some_and(LineQueue::is_failing) {
        audit_file::tell_failing(&"no room is left for it", settings.audit_on_failure);
    }
    Ok(Log { queue, audit })
}

/// Logs a panic as a line like any other; the standard hook would wait for the reader of standard error.
fn log_panic(panic: &std::panic::PanicHookInfo<'_>) {
    let place = panic.location().map(ToString::to_string);
    let payload = panic.payload();
    let text = payload.downcast_ref::<&str>().copied();
    let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    tracing::error!(place, "internal error: {}", text.unwrap_or("panic"));
}

fn targets(level: LogLevel) -> Targets {
    let level = match level {
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
        LogLevel::Trace => LevelFilter::TRACE,
    };
    // Libraries word their own INFO lines: these may name host paths or flood the log.
    let others = match level {
        LevelFilter::DEBUG | LevelFilter::TRACE => level,
        _ => level.min(LevelFilter::WARN),
    };
    Targets::new()
        .with_default(others)
        .with_targets(OURS.iter().map(|target| (*target, level)))
}

/// The process's log. Dropping it writes the lines that still wait, but does not wait long for a reader that is gone.
#[derive(Debug)]
pub(crate) struct Log {
    queue: LineQueue,
    audit: Option<LineQueue>,
}

impl Log {
    /// The record that every call has to be in, if there is an audit file.
    pub(crate) fn recorder(&self) -> Option<Arc<dyn Recorder>> {
        let audit = self.audit.clone()?;
        Some(Arc::new(audit))
    }

    /// A function that opens the audit file again, so that a file that was moved away is let go of.
    pub(crate) fn reopener(&self) -> impl Fn() + Send + 'static {
        let audit = self.audit.clone();
        move || {
            if let Some(audit) = &audit {
                audit.reopen();
            }
        }
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        // The audit file first: its own messages go to the other queue.
        self.audit.iter().for_each(LineQueue::flush);
        self.queue.flush();
    }
}

/// Turns events into lines.
struct LineLayer {
    queue: LineQueue,
    format: LineFormat,
}

impl<S: Subscriber> Layer<S> for LineLayer {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut line = LogLine::new(self.format, "");
        event.record(&mut line);
        self.queue.push(line.render(*event.metadata().level()));
    }
}

#[cfg(test)]
pub(crate) mod tests;
