//! What the cache costs: time for a put and a hit, and memory beside the bytes it holds.
//!
//! The goal for memory is at most 10 % over the bytes held plus 200 bytes an entry. It is told, not asserted: resident
//! memory is the kernel's to count.
#![expect(
    clippy::disallowed_methods,
    reason = "resident memory is told in /proc"
)]

use std::io::Write;
use std::time::Duration;

use criterion::{Criterion, criterion_group};
use guide::{
    Agent, AgentQuestion, AskResult, BridgeLimits, CacheOwner, ClientBridge, ContentShape,
    FileRequest, FilesystemBridge, Freshness, IncomingFile, Now, PathInfo, PathValidator,
    TextEncoding,
};
use sandbox::Root;

/// Nobody to ask.
struct Nobody;

impl Agent for Nobody {
    fn ask(&mut self, _question: &AgentQuestion) -> AskResult {
        AskResult::Waiting
    }

    fn bytes(&self, _answer: &str) -> Result<Vec<u8>, String> {
        Err(String::new())
    }

    fn entries(&self, _answer: &str) -> Result<Vec<PathInfo>, String> {
        Err(String::new())
    }
}

fn bridge() -> ClientBridge {
    let directory = std::env::temp_dir();
    let root = Root::open(&directory).expect("a directory");
    let validator = PathValidator::new(root, &directory, &["docs"]).expect("a policy");
    let limits = BridgeLimits {
        cache_size: 1 << 30,
        cache_ttl: Some(Duration::from_secs(3600)),
        recheck: None,
    };
    FilesystemBridge::new(validator, limits).of(CacheOwner::alone("bench"))
}

fn handover(number: usize, size: usize) -> IncomingFile {
    IncomingFile {
        path: format!("docs/some/module/file-{number:07}.md"),
        content: vec![b'x'; size],
        shape: ContentShape::Text,
        encoding: TextEncoding::UTF_8,
        mtime: Some(1.0),
        size: None,
    }
}

fn resident() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = statm
        .split(' ')
        .nth(1)
        .and_then(|pages| pages.parse::<u64>().ok());
    pages.unwrap_or(0) * 4096
}

/// Fills caches and tells what they take beyond the content, each in a process of its own: memory that was given back once
/// would be used again and not be seen.
fn memory_of_each() {
    let program = std::env::current_exe().expect("this program");
    for (entries, size) in [
        (220_000, 0),
        (240_000, 0),
        (220_000, 64),
        (240_000, 64),
        (240_000, 512),
        (100_000, 4096),
    ] {
        let mut child = std::process::Command::new(&program);
        child.env(CHILD, format!("{entries} {size}"));
        child.status().expect("it runs");
    }
}

/// Says that a process is to fill one cache only.
const CHILD: &str = "CACHE_ENTRIES_AND_SIZE";

fn memory(entries: usize, size: usize) {
    let before = resident();
    let bridge = bridge();
    for number in 0..entries {
        let stored = bridge.store(vec![handover(number, size)], Now::read());
        stored.expect("it fits");
    }
    let held = bridge.cache_usage(Now::read().steady).bytes;
    let over = resident().saturating_sub(before).saturating_sub(held);
    let (goal, entries) = (held / 10 + 200 * entries as u64, entries as u64);
    let _ = writeln!(
        std::io::stdout(),
        "memory: {entries} entries of {size} bytes: {held} held, {over} over ({} an entry); goal {goal}: {}",
        over / entries,
        if over <= goal { "met" } else { "missed" },
    );
}

fn cache(criterion: &mut Criterion) {
    let bridge = bridge();
    let file = handover(0, 4096);
    let read = FileRequest {
        path: file.path.clone(),
        shape: ContentShape::Text,
        encoding: None,
        mtime: None,
        freshness: Freshness::Cached,
    };
    criterion.bench_function("store 4 KiB", |bencher| {
        bencher.iter(|| bridge.store(vec![file.clone()], Now::read()));
    });
    criterion.bench_function("read 4 KiB from the cache", |bencher| {
        bencher.iter(|| bridge.read_file(&read, None, &mut Nobody, Now::read()));
    });
}

criterion_group!(benches, cache);

fn main() {
    if let Ok(numbers) = std::env::var(CHILD) {
        let numbers = numbers.split_once(' ');
        if let Some((Ok(entries), Ok(size))) = numbers.map(|(a, b)| (a.parse(), b.parse())) {
            memory(entries, size);
        }
        return;
    }
    memory_of_each();
    benches();
    Criterion::default().configure_from_args().final_summary();
}
