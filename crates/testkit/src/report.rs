//! The report that a failed test prints.

use std::sync::Mutex;

use crate::process::Log;

/// How many calls a report shows.
const CALLS: usize = 12;
/// How much of a call or a reply a report shows.
const LENGTH: usize = 4000;

/// Everything about a server. Prints itself when it is dropped during a panic.
#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) command: String,
    pub(crate) config: String,
    pub(crate) log: Log,
    pub(crate) exchanges: Mutex<Vec<String>>,
}

impl Report {
    /// Adds a call and its reply.
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
        reason = "a failed test reports to the person who runs it"
    )]
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}", self.text());
        }
    }
}
