//! What was counted, and whether the server held.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Result, bail};

use crate::server::{Ending, Sample};

/// How long the server may take to end with everybody connected.
const ENDS_WITHIN: Duration = Duration::from_secs(5);
/// How much memory may move about without growing: allocators keep pages for a while.
const MEMORY_PLAY: u64 = 16 << 20;
/// How many descriptors may come and go with the misbehaving clients.
const DESCRIPTOR_PLAY: usize = 150;
/// How many errors are shown word for word.
const SHOWN: usize = 5;

/// What the clients saw.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    connected: AtomicU64,
    calls: AtomicU64,
    errors: AtomicU64,
    rogue: AtomicU64,
    durations: Mutex<Vec<u32>>,
    words: Mutex<Vec<String>>,
}

impl Counts {
    pub(crate) fn connected(&self) {
        self.connected.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn misbehaved(&self) {
        self.rogue.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn succeeded(&self, took: Duration) {
        self.calls.fetch_add(1, Ordering::Relaxed);
        let micros = u32::try_from(took.as_micros()).unwrap_or(u32::MAX);
        let mut durations = self
            .durations
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        durations.push(micros);
    }

    pub(crate) fn failed(&self, error: &anyhow::Error) {
        self.errors.fetch_add(1, Ordering::Relaxed);
        let mut words = self.words.lock().unwrap_or_else(PoisonError::into_inner);
        if words.len() < SHOWN {
            words.push(format!("{error:#}").chars().take(500).collect());
        }
    }

    /// The time that so many of a hundred calls took at most, in milliseconds.
    fn percentile(&self, percent: usize) -> f64 {
        let durations = self
            .durations
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let mut sorted = durations.clone();
        sorted.sort_unstable();
        let index = sorted.len().saturating_sub(1) * percent / 100;
        f64::from(sorted.get(index).copied().unwrap_or_default()) / 1000.0
    }
}

/// Everything that is judged.
pub(crate) struct Verdict {
    pub(crate) clients: usize,
    pub(crate) seconds: u64,
    pub(crate) counts: Arc<Counts>,
    pub(crate) idle: Sample,
    pub(crate) samples: Vec<Sample>,
    pub(crate) ending: Ending,
}

impl Verdict {
    /// The figures, as Markdown.
    pub(crate) fn table(&self) -> String {
        let counts = &self.counts;
        let calls = counts.calls.load(Ordering::Relaxed);
        let (half, end) = (self.at_half(), self.at_end());
        let rows = [
            (
                "clients",
                format!("{}, every tenth misbehaving", self.clients),
            ),
            (
                "well-behaved clients that connected",
                counts.connected.load(Ordering::Relaxed).to_string(),
            ),
            ("seconds", self.seconds.to_string()),
            (
                "calls of well-behaved clients",
                format!("{calls} ({}/s)", calls / self.seconds.max(1)),
            ),
            (
                "errors they saw",
                counts.errors.load(Ordering::Relaxed).to_string(),
            ),
            (
                "median / p99 of a call, ms",
                format!(
                    "{:.1} / {:.1}",
                    counts.percentile(50),
                    counts.percentile(99)
                ),
            ),
            (
                "acts of misbehaving clients",
                counts.rogue.load(Ordering::Relaxed).to_string(),
            ),
            (
                "resident memory idle, at half time, at the end, MiB",
                format!(
                    "{}, {}, {}",
                    mib(self.idle.resident),
                    mib(half.resident),
                    mib(end.resident)
                ),
            ),
            (
                "descriptors idle, at half time, at the end",
                format!(
                    "{}, {}, {}",
                    self.idle.descriptors, half.descriptors, end.descriptors
                ),
            ),
            (
                "end with everybody connected, s",
                format!("{:.2}", self.ending.took.as_secs_f64()),
            ),
        ];
        let rows = rows.map(|(what, figure)| format!("| {what} | {figure} |\n"));
        format!("| what | figure |\n|---|---|\n{}", rows.concat())
    }

    /// An error says what did not hold.
    pub(crate) fn judge(&self) -> Result<()> {
        let errors = self.counts.errors.load(Ordering::Relaxed);
        if errors > 0 {
            let words = self
                .counts
                .words
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            bail!(
                "{errors} errors for well-behaved clients, such as:\n{}",
                words.join("\n")
            );
        }
        let (half, end) = (self.at_half(), self.at_end());
        if end.resident > half.resident + half.resident / 10 + MEMORY_PLAY {
            bail!(
                "memory grew from {} to {} MiB in the second half",
                mib(half.resident),
                mib(end.resident)
            );
        }
        if end.descriptors > half.descriptors + DESCRIPTOR_PLAY {
            bail!(
                "descriptors grew from {} to {}",
                half.descriptors,
                end.descriptors
            );
        }
        if self.ending.took > ENDS_WITHIN || self.ending.code != Some(0) {
            bail!(
                "it ended after {:?} with {:?}",
                self.ending.took,
                self.ending.code
            );
        }
        Ok(())
    }

    /// The most around half time: a single moment says little with clients that come and go.
    fn at_half(&self) -> Sample {
        let half = self.samples.len() / 2;
        self.most(half.saturating_sub(5)..half + 5)
    }

    fn at_end(&self) -> Sample {
        self.most(self.samples.len().saturating_sub(10)..self.samples.len())
    }

    fn most(&self, range: std::ops::Range<usize>) -> Sample {
        let samples = self.samples.get(range).unwrap_or(&self.samples);
        Sample {
            resident: samples
                .iter()
                .map(|sample| sample.resident)
                .max()
                .unwrap_or_default(),
            descriptors: samples
                .iter()
                .map(|sample| sample.descriptors)
                .max()
                .unwrap_or_default(),
        }
    }
}

fn mib(bytes: u64) -> u64 {
    bytes >> 20
}
