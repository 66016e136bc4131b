//! Logs: one line an event on standard error, and never a call that waits for the reader.
//!
//! A line is `timestamp, level, message` and then the event's own fields, flat. Values are cut at a
//! few kilobytes, control characters are escaped, so that no file name can forge a line.
//!
//! Standard error may be a pipe that nobody reads. So lines go into a bounded queue that one thread
//! empties; where the queue is full the line is dropped and counted, and the count is written once
//! there is room again. Start it after the process locked itself in: it is the first thread.
//!
//! The audit file gets every call, whatever the level, and loses none: where its queue is full, calls wait before they
//! begin, changes first ([`Recorder`]). Nobody who writes a line waits.

use std::fmt::{self, Write as _};
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread;
use std::time::Duration;

use tokio::sync::Notify;
use toolset::{Recorded, Recorder};
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::{Event, Subscriber};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;

use crate::check;
use crate::operator;
use crate::settings::{LogFormat, LogLevel, Settings};

/// The most lines that wait for standard error, and for the audit file before changes wait.
const QUEUE: usize = 1024;
/// The most lines that wait for the audit file before all calls wait.
const QUEUE_OF_READS: usize = 64 * 1024;

/// The most bytes of one value that a line shows.
const MAX_VALUE: usize = 4096;

/// How many bytes of lines are written together, and how long the next ones are waited for.
const TOGETHER: usize = 64 * 1024;
const APART: Duration = Duration::from_millis(2);

/// How long the end of the process waits for the last lines.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// The crates whose lines are written at the level that was set; others only speak up to warn.
const OURS: &[&str] = &[
    "mcp_filesystem",
    "mcp",
    "toolset",
    "guide",
    "ops",
    "sandbox",
];

/// Where calls are recorded, as [`toolset`] names its lines.
const CALLS: &str = "toolset::audit";

/// Starts logging for the whole process. Keep what comes back until the end: dropping it writes what
/// is still waiting.
pub(crate) fn start(settings: &Settings, audit: Option<AuditFile>) -> io::Result<Log> {
    let queue = Queue::start(io::stderr(), settings.log_format, OnFull::Drop)?;
    let lines = Lines {
        queue: queue.clone(),
        format: settings.log_format,
    };
    let lines = lines.with_filter(targets(settings.log_level));
    let audit = audit.map(|file| Queue::start(file, LogFormat::Json, OnFull::Keep));
    let audit = audit.transpose()?;
    let calls = audit.clone().map(|queue| {
        let format = LogFormat::Json;
        let calls = Targets::new().with_target(CALLS, LevelFilter::INFO);
        Lines { queue, format }.with_filter(calls)
    });
    tracing_subscriber::registry()
        .with(lines)
        .with(calls)
        .try_init()
        .map_err(io::Error::other)?;
    std::panic::set_hook(Box::new(log_panic));
    Ok(Log { queue, audit })
}

/// A panic is a line like any other; the standard hook would wait for whoever reads standard error.
fn log_panic(panic: &std::panic::PanicHookInfo<'_>) {
    let place = panic.location().map(ToString::to_string);
    let payload = panic.payload();
    let text = payload.downcast_ref::<&str>().copied();
    let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    tracing::error!(place, "internal error: {}", text.unwrap_or("panic"));
}

/// Logs what is served: the one line at INFO with a host path, the config file's.
pub(crate) fn started(settings: &Settings, address: &str, protections: &str) {
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
        "server started"
    );
    if let Some(risk) = check::open_door(settings) {
        tracing::warn!(address, "{risk}");
    }
}

fn targets(level: LogLevel) -> Targets {
    let level = match level {
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
        LogLevel::Trace => LevelFilter::TRACE,
    };
    // What libraries tell at INFO is theirs to word: it may name host paths or flood the log.
    let others = match level {
        LevelFilter::DEBUG | LevelFilter::TRACE => level,
        _ => level.min(LevelFilter::WARN),
    };
    Targets::new()
        .with_default(others)
        .with_targets(OURS.iter().map(|target| (*target, level)))
}

/// The process's log. Dropped, it writes what is still waiting, but does not wait for a reader that is gone.
#[derive(Debug)]
pub(crate) struct Log {
    queue: Queue,
    audit: Option<Queue>,
}

impl Log {
    /// Where every call has to be recorded, where there is an audit file.
    pub(crate) fn recorder(&self) -> Option<Arc<dyn Recorder>> {
        let audit = self.audit.clone()?;
        Some(Arc::new(audit))
    }

    /// What opens the audit file anew, so that a file that was moved away is let go of.
    pub(crate) fn reopener(&self) -> impl Fn() + Send + 'static {
        let audit = self.audit.clone();
        move || {
            if let Some(audit) = &audit {
                let _ = audit.lines.send(Message::Reopen);
            }
        }
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        for queue in [Some(&self.queue), self.audit.as_ref()]
            .into_iter()
            .flatten()
        {
            queue.flush();
        }
    }
}

/// The file that every call is recorded in: whole lines at its end.
#[derive(Debug)]
pub(crate) struct AuditFile {
    path: PathBuf,
    file: File,
}

impl AuditFile {
    /// Opens it, and makes it where it is missing.
    pub(crate) fn open(path: &Path) -> io::Result<AuditFile> {
        Ok(AuditFile {
            file: operator::append(path)?,
            path: path.to_owned(),
        })
    }
}

impl Write for AuditFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Where lines end up.
trait Output: Write + Send + 'static {
    /// Begins anew where that means something.
    fn reopen(&mut self) {}

    /// Is told that a line could not be written.
    fn failed(&mut self, _error: &io::Error) {}
}

/// A closed standard error is no reason to stop serving, and there is nobody else to tell.
impl Output for io::Stderr {}

impl Output for AuditFile {
    fn reopen(&mut self) {
        match operator::append(&self.path) {
            Ok(file) => self.file = file,
            Err(error) => tracing::error!(%error, "the audit file could not be opened again"),
        }
    }

    fn failed(&mut self, error: &io::Error) {
        tracing::error!(%error, "a call could not be recorded in the audit file");
    }
}

#[derive(Debug)]
enum Message {
    Line(Vec<u8>),
    Reopen,
    Flush(SyncSender<()>),
}

/// What becomes of a line for which there is no room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OnFull {
    /// It is dropped and counted.
    Drop,
    /// It waits all the same: whoever causes lines waits before, by [`Recorder::room`].
    Keep,
}

/// The way to an output. Putting a line into it never waits.
#[derive(Debug, Clone)]
struct Queue {
    lines: Sender<Message>,
    state: Arc<QueueState>,
    on_full: OnFull,
}

/// What both ends of a queue know.
#[derive(Debug, Default)]
struct QueueState {
    /// The lines that are not written yet.
    waiting: AtomicUsize,
    dropped: AtomicU64,
    written: Notify,
}

impl Queue {
    fn start(output: impl Output, format: LogFormat, on_full: OnFull) -> io::Result<Queue> {
        let (lines, waiting) = channel();
        let state = Arc::<QueueState>::default();
        let own = Arc::clone(&state);
        let work = move || write_lines(&waiting, &own, format, output);
        thread::Builder::new().name("log".to_owned()).spawn(work)?;
        Ok(Queue {
            lines,
            state,
            on_full,
        })
    }

    fn push(&self, line: Vec<u8>) {
        let waiting = self.state.waiting.fetch_add(1, Ordering::Relaxed);
        if self.on_full == OnFull::Drop && waiting >= QUEUE {
            self.state.waiting.fetch_sub(1, Ordering::Relaxed);
            self.state.dropped.fetch_add(1, Ordering::Relaxed);
            return;
        }
        // The thread that writes lives as long as the process.
        let _ = self.lines.send(Message::Line(line));
    }

    fn flush(&self) {
        let (done, finished) = sync_channel(1);
        let _ = self.lines.send(Message::Flush(done));
        let _ = finished.recv_timeout(LAST_WORDS);
    }
}

impl Recorder for Queue {
    fn has_room(&self, call: Recorded) -> bool {
        let most = match call {
            Recorded::Change => QUEUE,
            Recorded::Read => QUEUE_OF_READS,
        };
        self.state.waiting.load(Ordering::Relaxed) < most
    }

    fn room(&self, call: Recorded) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(async move {
            loop {
                let mut written = std::pin::pin!(self.state.written.notified());
                // Listening before looking, so that no line is written unnoticed in between.
                written.as_mut().enable();
                if self.has_room(call) {
                    return;
                }
                written.await;
            }
        })
    }
}

/// Empties the queue until the last sender is gone. Lines that come close together are written together: a thread that
/// is woken and a write for each of thousands of lines a second would cost as much as the calls they tell of.
fn write_lines(
    waiting: &Receiver<Message>,
    state: &QueueState,
    format: LogFormat,
    mut output: impl Output,
) {
    let mut lines = Vec::new();
    for first in waiting {
        let mut count = 0;
        let mut next = Some(first);
        while let Some(message) = next.take() {
            match message {
                Message::Line(line) => {
                    lines.extend(line);
                    count += 1;
                }
                Message::Reopen => {
                    write(&mut lines, &mut output);
                    output.reopen();
                }
                Message::Flush(done) => {
                    write(&mut lines, &mut output);
                    let _ = done.try_send(());
                }
            }
            if lines.len() < TOGETHER {
                next = waiting.try_recv().ok();
            }
        }
        write(&mut lines, &mut output);
        state.waiting.fetch_sub(count, Ordering::Relaxed);
        state.written.notify_waiters();
        let lost = state.dropped.swap(0, Ordering::Relaxed);
        if lost > 0 {
            let _ = output.write_all(&lost_line(lost, format));
        }
        thread::sleep(APART);
    }
}

fn write(lines: &mut Vec<u8>, output: &mut impl Output) {
    if let Err(error) = output.write_all(lines) {
        output.failed(&error);
    }
    lines.clear();
}

fn lost_line(lost: u64, format: LogFormat) -> Vec<u8> {
    let mut line = Line {
        message: "log lines were dropped".to_owned(),
        ..Line::default()
    };
    line.push("dropped", lost.into());
    line.render(format, tracing::Level::WARN)
}

/// Turns events into lines.
struct Lines {
    queue: Queue,
    format: LogFormat,
}

impl<S: Subscriber> Layer<S> for Lines {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut line = Line::default();
        event.record(&mut line);
        self.queue
            .push(line.render(self.format, *event.metadata().level()));
    }
}

/// One event's fields.
#[derive(Debug, Default)]
struct Line {
    message: String,
    fields: Vec<(&'static str, serde_json::Value)>,
}

impl Line {
    fn push(&mut self, name: &'static str, value: serde_json::Value) {
        self.fields.push((name, value));
    }

    fn render(&self, format: LogFormat, level: tracing::Level) -> Vec<u8> {
        let now = format!("{:.3}", jiff::Timestamp::now());
        let mut line = match format {
            LogFormat::Json => self.json(&now, level),
            LogFormat::Text => self.text(&now, level),
        };
        if !line.is_ascii() {
            line = visible(&line);
        }
        line.push('\n');
        line.into_bytes()
    }

    fn json(&self, now: &str, level: tracing::Level) -> String {
        let message = serde_json::Value::from(self.message.as_str());
        let mut line = format!(r#"{{"timestamp":"{now}","level":"{level}","message":{message}"#);
        for (name, value) in &self.fields {
            let _ = write!(line, r#","{name}":{value}"#);
        }
        line.push('}');
        line
    }

    fn text(&self, now: &str, level: tracing::Level) -> String {
        let message: String = self.message.chars().map(printable).collect();
        let mut line = format!("{now} {level:>5} {message}");
        for (name, value) in &self.fields {
            let _ = write!(line, " {name}={value}");
        }
        line
    }
}

/// Escapes what would steer a terminal, end a line for some readers, or turn text around. JSON itself leaves it.
fn visible(line: &str) -> String {
    let mut shown = String::with_capacity(line.len());
    for character in line.chars() {
        match character {
            '\u{80}'..='\u{9f}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2066}'..='\u{2069}'
            | '\u{feff}' => {
                let _ = write!(shown, "\\u{:04x}", u32::from(character));
            }
            _ => shown.push(character),
        }
    }
    shown
}

fn printable(character: char) -> char {
    if character.is_control() {
        char::REPLACEMENT_CHARACTER
    } else {
        character
    }
}

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let mut text = Capped::default();
        // It stops early, on purpose, when the value is longer than what is shown.
        let _ = write!(text, "{value:?}");
        self.record_text(field, text.0);
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        let mut text = Capped::default();
        let _ = text.write_str(value);
        self.record_text(field, text.0);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.push(field.name(), value.into());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.push(field.name(), value.into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.push(field.name(), value.into());
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.push(field.name(), value.into());
    }
}

impl Line {
    fn record_text(&mut self, field: &Field, text: String) {
        if field.name() == "message" {
            self.message = text;
        } else {
            self.push(field.name(), text.into());
        }
    }
}

/// Text that stops growing: a huge value costs no more than what is shown of it.
#[derive(Debug, Default)]
struct Capped(String);

impl fmt::Write for Capped {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = MAX_VALUE.saturating_sub(self.0.len());
        if text.len() <= room {
            self.0.push_str(text);
            return Ok(());
        }
        let end = (0..=room)
            .rev()
            .find(|end| text.is_char_boundary(*end))
            .unwrap_or(0);
        self.0.push_str(text.get(..end).unwrap_or_default());
        self.0.push('…');
        Err(fmt::Error)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::mpsc::channel;

    use super::*;
    use crate::settings::{Partial, Transport};

    /// Runs `work` with a log of its own and gives back what was written.
    fn logged(format: LogFormat, level: LogLevel, work: impl FnOnce()) -> String {
        let output = Shared::default();
        let queue = Queue::start(output.clone(), format, OnFull::Drop).unwrap();
        let log = log_of(queue.clone());
        let lines = Lines { queue, format }.with_filter(targets(level));
        tracing::subscriber::with_default(tracing_subscriber::registry().with(lines), work);
        drop(log);
        let bytes = output.0.lock().unwrap().clone();
        String::from_utf8(bytes).unwrap()
    }

    fn log_of(queue: Queue) -> Log {
        Log { queue, audit: None }
    }

    impl Output for Shared {}
    impl Output for Gated {}

    #[derive(Debug, Clone, Default)]
    struct Shared(Arc<Mutex<Vec<u8>>>);

    impl Write for Shared {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_line_is_one_flat_object() {
        let log = logged(LogFormat::Json, LogLevel::Info, || {
            let code: Option<&str> = None;
            tracing::info!(
                tool = "read_file",
                duration_ms = 1.5,
                size = 3_u64,
                code,
                "call"
            );
        });
        let line: serde_json::Value = serde_json::from_str(log.trim_end()).unwrap();
        let keys: Vec<&String> = line.as_object().unwrap().keys().collect();
        assert_eq!(keys.len(), 6, "{log}");
        assert_eq!(line["level"], "INFO");
        assert_eq!(
            (line["message"].as_str(), line["size"].as_u64()),
            (Some("call"), Some(3))
        );
        assert!(log.starts_with(r#"{"timestamp":"2"#), "{log}");
        line["timestamp"]
            .as_str()
            .unwrap()
            .parse::<jiff::Timestamp>()
            .unwrap();
    }

    #[test]
    fn no_value_can_forge_a_line_or_flood_the_log() {
        for format in [LogFormat::Json, LogFormat::Text] {
            let log = logged(format, LogLevel::Info, || {
                let path = format!("a\nb\u{1b}[31m{}", "é".repeat(100_000));
                tracing::warn!(path, other = ?path, "refused {path}");
            });
            assert_eq!(log.lines().count(), 1);
            assert!(log.len() < 4 * MAX_VALUE, "{}", log.len());
            assert!(!log.trim_end().contains(char::is_control));
        }
    }

    #[test]
    fn what_steers_terminals_or_readers_is_escaped() {
        let path = "\u{9b}31m\u{2028}{\u{202e}\u{85}ä";
        let log = logged(LogFormat::Json, LogLevel::Info, || {
            tracing::info!(path, "call");
        });
        let escaped = r#""path":"\u009b31m\u2028{\u202e\u0085ä""#;
        assert!(log.contains(escaped), "{log}");
        let line: serde_json::Value = serde_json::from_str(log.trim_end()).unwrap();
        assert_eq!(line["path"], path, "it is still the same text");
    }

    #[test]
    fn an_open_port_without_a_token_is_warned_of() {
        let warnings = |host: &str, tokens: Option<&str>| {
            let settings = Partial {
                transport: Some(Transport::Http),
                host: Some(host.to_owned()),
                bearer_tokens_file: Some(tokens.map(PathBuf::from)),
                ..Partial::default()
            };
            let settings = settings.complete();
            let log = logged(LogFormat::Text, LogLevel::Info, || {
                started(&settings, "address", "protections");
            });
            log.matches(" WARN it listens on all interfaces without asking for a token")
                .count()
        };
        assert_eq!(warnings("0.0.0.0", None), 1);
        assert_eq!(warnings("0.0.0.0", Some("tokens")), 0);
        assert_eq!(warnings("127.0.0.1", None), 0);
    }

    #[test]
    fn libraries_are_quiet_at_info() {
        let log = logged(LogFormat::Text, LogLevel::Info, || {
            tracing::info!(target: "hyper::proto", "theirs");
            tracing::info!(target: "toolset::dispatch", "ours");
            tracing::debug!(target: "toolset::dispatch", "too much");
        });
        assert_eq!(log.lines().count(), 1, "{log}");
        assert!(log.contains(" INFO ours"), "{log}");
    }

    #[test]
    fn a_reader_that_does_not_read_stops_nobody() {
        let (release, gate) = channel::<()>();
        let output = Shared::default();
        let queue = Queue::start(
            Gated {
                gate: Some(gate),
                output: output.clone(),
            },
            LogFormat::Json,
            OnFull::Drop,
        )
        .unwrap();
        let mut numbers = 0..1_000_000;
        while queue.state.dropped.load(Ordering::Relaxed) < 20 {
            let number = numbers.next().expect("a queue that is never full");
            queue.push(format!("{number}\n").into_bytes());
        }
        drop(release);
        drop(log_of(queue));
        let log = String::from_utf8(output.0.lock().unwrap().clone()).unwrap();
        assert!(log.starts_with("0\n"), "the oldest lines are kept");
        assert!(
            log.contains(r#""message":"log lines were dropped","dropped":20}"#),
            "{log}"
        );
    }

    #[tokio::test]
    async fn calls_wait_for_a_record_that_is_stuck_and_changes_wait_first() {
        let (release, gate) = channel::<()>();
        let output = Gated {
            gate: Some(gate),
            output: Shared::default(),
        };
        let queue = Queue::start(output, LogFormat::Json, OnFull::Keep).unwrap();
        let fill = |lines| (0..lines).for_each(|_| queue.push(b"line\n".to_vec()));
        fill(QUEUE);
        assert!(!queue.has_room(Recorded::Change) && queue.has_room(Recorded::Read));
        fill(QUEUE_OF_READS);
        assert!(!queue.has_room(Recorded::Read));
        let early = tokio::time::timeout(Duration::from_millis(20), queue.room(Recorded::Read));
        assert!(early.await.is_err());
        drop(release);
        queue.room(Recorded::Change).await;
        assert!(queue.has_room(Recorded::Change));
    }

    struct Gated {
        gate: Option<Receiver<()>>,
        output: Shared,
    }

    impl Write for Gated {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if let Some(gate) = self.gate.take() {
                let _ = gate.recv();
            }
            self.output.write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
}
