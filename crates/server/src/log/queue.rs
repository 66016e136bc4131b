//! A queue of log lines that one thread writes: putting a line into it never waits.
//!
//! Standard error may be a pipe that nobody reads. So its queue is bounded: a line that finds it full is dropped and
//! counted, and the count is written once there is room again. The audit file's queue drops nothing: if it is full,
//! calls wait before they begin, changes first, and calls that are refused are counted ([`Recorder`]).

use std::io::{self, Write};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::thread;
use std::time::Duration;

use tokio::sync::Notify;
use toolset::{Recorded, Recorder};

use super::line::{LineFormat, LogLine};

/// The most lines that wait for standard error, and for the audit file before changes wait.
const MAX_WAITING: usize = 1024;
/// The most lines that wait for the audit file before all calls wait.
const MAX_WAITING_READS: usize = 64 * 1024;

/// How many bytes of lines are written together.
const BATCH_SIZE: usize = 64 * 1024;
/// How long the writer pauses after a batch, so that the next lines gather.
const BATCH_PAUSE: Duration = Duration::from_millis(2);

/// How long the end of the process waits for the last lines.
const LAST_LINES: Duration = Duration::from_secs(1);

/// The output that lines are written to.
pub(super) trait LogOutput: Write + Send + 'static {
    /// Opens the file again, if it is one.
    fn reopen(&mut self) {}

    /// Makes sure that there is room for the following lines, if that can be known.
    fn reserve(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// Reports that lines cannot be written. Called once, until [`LogOutput::recovered`].
    fn failed(&mut self, _error: &io::Error) {}

    /// Reports that lines can be written again.
    fn recovered(&mut self) {}

    /// Does periodic work while no line waits. Returns when to call again, if anything will be due.
    fn idle(&mut self) -> Option<Duration> {
        None
    }

    /// Does the remaining work before the process ends.
    fn ending(&mut self) {}
}

/// Nothing is reported: a closed standard error is no reason to stop serving, and there is no other place to report to.
impl LogOutput for io::Stderr {}

#[derive(Debug)]
enum QueueItem {
    Line(Vec<u8>),
    Reopen,
    Flush(SyncSender<()>),
}

/// What happens to a line for which there is no room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OnFull {
    /// It is dropped and counted.
    Drop,
    /// It is queued anyway. Calls wait before they begin ([`Recorder::room`]), so the queue stays small.
    Keep,
}

/// A queue of lines and the thread that writes them.
#[derive(Debug, Clone)]
pub(super) struct LineQueue {
    lines: Sender<QueueItem>,
    state: Arc<QueueState>,
    on_full: OnFull,
    /// Changes are refused while the output fails.
    refuses_changes: bool,
}

/// The state that both ends of a queue share.
#[derive(Debug, Default)]
struct QueueState {
    /// The lines that are not written yet.
    waiting: AtomicUsize,
    dropped: AtomicU64,
    written: Notify,
    /// The output cannot be written, or has no room for more.
    failing: AtomicBool,
}

impl LineQueue {
    /// Starts the thread that writes.
    pub(super) fn start(
        mut output: impl LogOutput,
        format: LineFormat,
        on_full: OnFull,
    ) -> io::Result<LineQueue> {
        let (lines, waiting) = channel();
        let state = Arc::<QueueState>::default();
        // Determined before the first call, because the thread may start later.
        let ready = output.reserve();
        state.failing.store(ready.is_err(), Ordering::Relaxed);
        let own = Arc::clone(&state);
        let work = move || write_lines(&waiting, LineWriter::new(output, &own, format));
        thread::Builder::new().name("log".to_owned()).spawn(work)?;
        Ok(LineQueue {
            lines,
            state,
            on_full,
            refuses_changes: false,
        })
    }

    /// The same queue, which lets no change begin while its output fails.
    pub(super) fn refusing_changes(self, refuses_changes: bool) -> LineQueue {
        LineQueue {
            refuses_changes,
            ..self
        }
    }

    /// Tells whether lines cannot be written.
    pub(super) fn is_failing(&self) -> bool {
        self.state.failing.load(Ordering::Relaxed)
    }

    /// Puts a line into the queue, or drops it if there is no room and the queue may drop lines.
    pub(super) fn push(&self, line: Vec<u8>) {
        let waiting = self.state.waiting.fetch_add(1, Ordering::Relaxed);
        if self.on_full == OnFull::Drop && waiting >= MAX_WAITING {
            self.state.waiting.fetch_sub(1, Ordering::Relaxed);
            self.state.dropped.fetch_add(1, Ordering::Relaxed);
            return;
        }
        // The writer thread runs as long as the process.
        let _ = self.lines.send(QueueItem::Line(line));
    }

    /// Makes the output begin a new file if it can.
    pub(super) fn reopen(&self) {
        let _ = self.lines.send(QueueItem::Reopen);
    }

    /// Waits until all lines are written, but not long for a reader that is gone.
    pub(super) fn flush(&self) {
        let (done, finished) = sync_channel(1);
        let _ = self.lines.send(QueueItem::Flush(done));
        let _ = finished.recv_timeout(LAST_LINES);
    }
}

impl Recorder for LineQueue {
    fn has_room(&self, call: Recorded) -> bool {
        let most = match call {
            Recorded::Change => MAX_WAITING,
            Recorded::Read => MAX_WAITING_READS,
        };
        self.state.waiting.load(Ordering::Relaxed) < most
    }

    fn room(&self, call: Recorded) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(async move {
            loop {
                let mut written = std::pin::pin!(self.state.written.notified());
                // Listen before looking, so that no notification is missed in between.
                written.as_mut().enable();
                if self.has_room(call) {
                    return;
                }
                written.await;
            }
        })
    }

    fn refuses_changes(&self) -> bool {
        self.refuses_changes && self.is_failing()
    }

    fn count_unrecorded(&self) {
        self.state.dropped.fetch_add(1, Ordering::Relaxed);
    }
}

/// Writes lines until the last sender is gone. Lines are written in batches: waking this thread and writing for each of
/// thousands of lines a second would cost as much as the calls they record.
fn write_lines(waiting: &Receiver<QueueItem>, mut writer: LineWriter<'_, impl LogOutput>) {
    while let Some(first) = next_item(waiting, &mut writer.output) {
        let count = writer.take_batch(first, waiting);
        writer.write();
        writer.state.waiting.fetch_sub(count, Ordering::Relaxed);
        writer.state.written.notify_waiters();
        writer.write_lost();
        thread::sleep(BATCH_PAUSE);
    }
}

/// Waits for the next item; `None` once nobody can send one.
fn next_item(waiting: &Receiver<QueueItem>, output: &mut impl LogOutput) -> Option<QueueItem> {
    loop {
        let Some(due) = output.idle() else {
            return waiting.recv().ok();
        };
        match waiting.recv_timeout(due) {
            Ok(item) => return Some(item),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return None,
        }
    }
}

/// The lines that are written together, and where to.
struct LineWriter<'a, Output> {
    output: Output,
    state: &'a QueueState,
    format: LineFormat,
    batch: Vec<u8>,
    /// How many lines the batch has.
    lines: u64,
}

impl<Output: LogOutput> LineWriter<'_, Output> {
    fn new(output: Output, state: &QueueState, format: LineFormat) -> LineWriter<'_, Output> {
        LineWriter {
            output,
            state,
            format,
            batch: Vec::new(),
            lines: 0,
        }
    }

    /// Takes waiting lines, up to a full batch. Returns how many there were.
    fn take_batch(&mut self, first: QueueItem, waiting: &Receiver<QueueItem>) -> usize {
        let mut count = 0;
        let mut next = Some(first);
        while let Some(item) = next.take() {
            count += usize::from(matches!(item, QueueItem::Line(_)));
            self.take(item);
            if self.batch.len() < BATCH_SIZE {
                next = waiting.try_recv().ok();
            }
        }
        count
    }

    fn take(&mut self, item: QueueItem) {
        match item {
            QueueItem::Line(line) => self.add(&line),
            QueueItem::Reopen => {
                self.write();
                self.output.reopen();
                self.reserve();
            }
            QueueItem::Flush(done) => {
                self.write();
                // The waiting thread may end the process, so the count must be written before.
                self.write_lost();
                self.output.ending();
                let _ = done.try_send(());
            }
        }
    }

    fn add(&mut self, line: &[u8]) {
        self.batch.extend_from_slice(line);
        self.lines += 1;
    }

    /// Writes the batch. Lines that cannot be written are counted as dropped.
    fn write(&mut self) {
        if self.batch.is_empty() {
            return;
        }
        let written = self.output.write_all(&self.batch);
        if written.is_err() {
            self.state.dropped.fetch_add(self.lines, Ordering::Relaxed);
        }
        self.batch.clear();
        self.lines = 0;
        let ready = written.and_then(|()| self.output.reserve());
        self.note(ready);
    }

    /// Finds out whether there is room in a new file.
    fn reserve(&mut self) {
        let ready = self.output.reserve();
        self.note(ready);
    }

    fn note(&mut self, ready: io::Result<()>) {
        let was_failing = self.state.failing.swap(ready.is_err(), Ordering::Relaxed);
        match ready {
            Err(error) if !was_failing => self.output.failed(&error),
            Ok(()) if was_failing => self.output.recovered(),
            _ => {}
        }
    }

    /// Writes how many lines were dropped since the last count, unless lines cannot be written at all.
    fn write_lost(&mut self) {
        if self.state.failing.load(Ordering::Relaxed) {
            return;
        }
        let lost = self.state.dropped.swap(0, Ordering::Relaxed);
        if lost > 0 {
            self.add(&lost_line(lost, self.format));
            // A line that says that others are missing is not one of them.
            self.lines = 0;
            self.write();
        }
    }
}

fn lost_line(lost: u64, format: LineFormat) -> Vec<u8> {
    let mut line = LogLine::new(format, "log lines were dropped");
    line.push("dropped", lost);
    line.render(tracing::Level::WARN)
}

#[cfg(test)]
pub(in crate::log) mod tests {
    use std::sync::Mutex;

    use super::*;

    /// An output that tests read.
    #[derive(Debug, Clone, Default)]
    pub(in crate::log) struct SharedBuffer(Arc<Mutex<Vec<u8>>>);

    impl Write for SharedBuffer {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl LogOutput for SharedBuffer {}

    impl SharedBuffer {
        /// What was written.
        pub(in crate::log) fn text(&self) -> String {
            String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
        }
    }

    /// An output that takes nothing until it is let.
    struct Gated {
        gate: Option<Receiver<()>>,
        output: SharedBuffer,
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

    impl LogOutput for Gated {}

    #[test]
    fn a_reader_that_does_not_read_stops_nobody() {
        let (release, gate) = channel::<()>();
        let output = SharedBuffer::default();
        let queue = LineQueue::start(
            Gated {
                gate: Some(gate),
                output: output.clone(),
            },
            LineFormat::Json,
            OnFull::Drop,
        )
        .unwrap();
        let mut numbers = 0..1_000_000;
        while queue.state.dropped.load(Ordering::Relaxed) < 20 {
            let number = numbers.next().expect("a queue that is never full");
            queue.push(format!("{number}\n").into_bytes());
        }
        drop(release);
        queue.flush();
        let log = output.text();
        assert!(log.starts_with("0\n"), "the oldest lines are kept");
        assert!(
            log.contains(r#""message":"log lines were dropped","dropped":20}"#),
            "{log}"
        );
    }

    #[tokio::test]
    async fn calls_wait_for_a_record_that_is_stuck_and_changes_wait_first() {
        let (release, gate) = channel::<()>();
        let written = SharedBuffer::default();
        let output = Gated {
            gate: Some(gate),
            output: written.clone(),
        };
        let queue = LineQueue::start(output, LineFormat::Json, OnFull::Keep).unwrap();
        let fill = |lines| (0..lines).for_each(|_| queue.push(b"line\n".to_vec()));
        fill(MAX_WAITING);
        assert!(!queue.has_room(Recorded::Change) && queue.has_room(Recorded::Read));
        fill(MAX_WAITING_READS);
        assert!(!queue.has_room(Recorded::Read));
        let early = tokio::time::timeout(Duration::from_millis(20), queue.room(Recorded::Read));
        assert!(early.await.is_err());
        queue.count_unrecorded();
        drop(release);
        queue.room(Recorded::Change).await;
        assert!(queue.has_room(Recorded::Change));
        queue.flush();
        let counted = r#""message":"log lines were dropped","dropped":1}"#;
        assert!(written.text().contains(counted));
    }
}
