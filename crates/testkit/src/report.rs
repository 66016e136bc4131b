//! Tells everything when a test fails.

use std::sync::Mutex;

use crate::process::Log;

/// How many calls a report shows.
const CALLS: usize = 12;
/// How much of a call or a reply a report shows.
const LENGTH: usize = 4000;

/// What a failed test prints: dropped in a panic, it speaks.
#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) command: String,
    pub(crate) config: String,
    pub(crate) log: Log,
    pub(crate) exchanges: Mutex<Vec<String>>,
}

impl Report {
    /// Remembers a call and what came of it.
    pub(crate) fn add(&self, exchange: &str) {
        let shown = exchange.chars().take(LENGTH).collect();
        self.exchanges
            .lock()
            .expect("no panic while held")
            .push(shown);
    }

    fn text(&self) -> String {
        let exchanges = self
            .exchanges
            .lock()
            .map(|held| held.clone())
            .unwrap_or_default();
        let first = exchanges.len().saturating_sub(CALLS);
        format!(
            "=== server\n{}\n=== config\n{}\n=== last calls of {}\n{}\n=== standard error\n{}\n===\n",
            self.command,
            self.config,
            exchanges.len(),
            exchanges[first..].join("\n"),
            self.log.lines().join("\n"),
        )
    }
}

impl Drop for Report {
    #[expect(
        clippy::print_stderr,
        reason = "a failed test tells its story to whoever runs it"
    )]
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}", self.text());
        }
    }
}
