//! `/metrics`: counts of calls, refusals and connections in the text format of Prometheus. It names tools and codes,
//! never a path or a client.

use std::collections::BTreeMap;
use std::fmt::Write;

use sandbox::{HistoryCounts, QuotaUse};
use toolset::{Admission, DURATION_BUCKETS, ToolMetrics};

use super::root_looks::RootLooks;
use crate::process_usage::ProcessFigures;

/// The values on the page.
pub(super) struct Snapshot {
    /// The calls of every tool of every endpoint.
    pub(super) tools: Vec<ToolMetrics>,
    /// Requests refused before any call, by status.
    pub(super) refusals: BTreeMap<u16, u64>,
    /// Open connections.
    pub(super) connections: u64,
    /// Open sessions.
    pub(super) sessions: usize,
    /// Running calls.
    pub(super) running: usize,
    /// Waiting calls.
    pub(super) waiting: usize,
    /// The roots.
    pub(super) roots: Vec<RootFigures>,
    /// The process's memory and processor time.
    pub(super) process: ProcessSnapshot,
    /// Bytes of bodies, replies, session streams and uploads.
    pub(super) held_bytes: u64,
    /// The memory of searches.
    pub(super) search_memory: ops::SearchMemoryUsage,
    /// The cache of `guide`, if it is served.
    pub(super) cache: Option<guide::CacheUsage>,
}

/// The figures of a root.
#[derive(Debug)]
pub(super) struct RootFigures {
    pub(super) name: String,
    /// Whether its directory is there.
    pub(super) is_up: bool,
    /// Its quota and usage, if it has a quota.
    pub(super) quota: Option<QuotaUse>,
    /// What is kept of its changes, if that is kept.
    pub(super) history: Option<HistoryCounts>,
}

impl RootFigures {
    /// Looks at all roots that are served now. Of one that does not answer only is told whether it is there.
    pub(super) async fn of_all(looks: &RootLooks, admission: &Admission) -> Vec<RootFigures> {
        let seen = looks.at_all(admission, |root| {
            let history = root.history().map(|history| history.counts());
            (root.quota_use(), history)
        });
        let figures = seen.await.into_iter().map(|look| {
            let (quota, history) = look.seen.unwrap_or_default();
            RootFigures {
                name: look.name,
                is_up: look.is_up,
                quota,
                history,
            }
        });
        figures.collect()
    }
}

/// The figures of the process.
#[derive(Debug, Default)]
pub(super) struct ProcessSnapshot {
    resident_bytes: Option<u64>,
    cpu_seconds: Option<f64>,
    started_at: f64,
}

impl ProcessSnapshot {
    /// Reads the current figures.
    pub(super) fn of(process: &ProcessFigures) -> ProcessSnapshot {
        ProcessSnapshot {
            resident_bytes: process.resident_bytes(),
            cpu_seconds: process.cpu_seconds(),
            started_at: process.started_at(),
        }
    }
}

/// Writes the page.
pub(super) fn page(snapshot: &Snapshot) -> String {
    let mut page = Page(String::new());
    page.calls(&snapshot.tools);
    page.durations(&snapshot.tools);
    page.bytes(&snapshot.tools);
    page.head(
        "refusals_total",
        "counter",
        "Requests refused before any call.",
    );
    for (status, count) in &snapshot.refusals {
        page.line("refusals_total", &format!("status=\"{status}\""), count);
    }
    let gauges = [
        ("connections", "Open connections.", snapshot.connections),
        ("sessions", "Open sessions.", snapshot.sessions as u64),
        (
            "calls_running",
            "Calls that run now.",
            snapshot.running as u64,
        ),
        (
            "calls_waiting",
            "Calls that wait for their turn.",
            snapshot.waiting as u64,
        ),
        (
            "held_bytes",
            "Bytes of large bodies, replies, session streams and uploads.",
            snapshot.held_bytes,
        ),
    ];
    for (name, help, value) in gauges {
        page.head(name, "gauge", help);
        page.line(name, "", value);
    }
    page.roots(&snapshot.roots);
    page.quotas(&snapshot.roots);
    page.process(&snapshot.process);
    page.histories(&snapshot.roots);
    page.search_memory(snapshot.search_memory);
    if let Some(cache) = &snapshot.cache {
        page.cache(cache);
    }
    page.0
}

struct Page(String);

impl Page {
    fn head(&mut self, name: &str, kind: &str, help: &str) {
        let name = format!("mcp_filesystem_{name}");
        self.push(format_args!("# HELP {name} {help}\n# TYPE {name} {kind}\n"));
    }

    fn line(&mut self, name: &str, labels: &str, value: impl std::fmt::Display) {
        match labels {
            "" => self.push(format_args!("mcp_filesystem_{name} {value}\n")),
            _ => self.push(format_args!("mcp_filesystem_{name}{{{labels}}} {value}\n")),
        }
    }

    /// Writing to a string cannot fail.
    fn push(&mut self, text: std::fmt::Arguments<'_>) {
        let _ = self.0.write_fmt(text);
    }

    fn calls(&mut self, tools: &[ToolMetrics]) {
        self.head(
            "calls_total",
            "counter",
            "Calls by tool and outcome: ok, or the error's code.",
        );
        for tool in tools {
            for (outcome, count) in &tool.outcomes {
                let labels = format!("{},outcome=\"{outcome}\"", labels(tool));
                self.line("calls_total", &labels, count);
            }
        }
    }

    fn durations(&mut self, tools: &[ToolMetrics]) {
        self.head("call_duration_seconds", "histogram", "How long calls took.");
        for tool in tools {
            let count: u64 = tool.outcomes.values().sum();
            if count == 0 {
                continue;
            }
            let labels = labels(tool);
            for (most, calls) in DURATION_BUCKETS.iter().zip(tool.at_most) {
                let labels = format!("{labels},le=\"{most}\"");
                self.line("call_duration_seconds_bucket", &labels, calls);
            }
            let all = format!("{labels},le=\"+Inf\"");
            self.line("call_duration_seconds_bucket", &all, count);
            let sum = tool.duration.as_secs_f64();
            self.line("call_duration_seconds_sum", &labels, sum);
            self.line("call_duration_seconds_count", &labels, count);
        }
    }

    fn roots(&mut self, roots: &[RootFigures]) {
        let help =
            "Whether the directory of a root is there: 1, or 0 if it was removed or replaced.";
        self.head("root_up", "gauge", help);
        for root in roots {
            self.line("root_up", &root.label(), u8::from(root.is_up));
        }
    }

    fn quotas(&mut self, roots: &[RootFigures]) {
        type Figure = fn(&QuotaUse) -> Option<u64>;
        let figures: [(&str, &str, Figure); 4] = [
            (
                "quota_bytes",
                "Bytes that a root with a quota may hold.",
                |quota| quota.quota.max_bytes,
            ),
            (
                "quota_bytes_used",
                "Bytes that a root with a quota holds.",
                |quota| quota.quota.max_bytes.and(Some(quota.used?.bytes)),
            ),
            (
                "quota_files",
                "Entries that a root with a quota may hold.",
                |quota| quota.quota.max_files,
            ),
            (
                "quota_files_used",
                "Entries that a root with a quota holds.",
                |quota| Some(quota.used?.files),
            ),
        ];
        for (name, help, figure) in figures {
            let told = roots
                .iter()
                .filter_map(|root| Some((root.label(), figure(root.quota.as_ref()?)?)));
            let told: Vec<(String, u64)> = told.collect();
            if told.is_empty() {
                continue;
            }
            self.head(name, "gauge", help);
            for (label, value) in told {
                self.line(name, &label, value);
            }
        }
    }

    /// The names are those that every client library of Prometheus uses.
    fn process(&mut self, process: &ProcessSnapshot) {
        let version = env!("CARGO_PKG_VERSION");
        self.head("build_info", "gauge", "The version that runs.");
        self.line("build_info", &format!("version={version:?}"), 1);
        let figures = [
            (
                "process_resident_memory_bytes",
                "gauge",
                process.resident_bytes.map(|bytes| bytes as f64),
            ),
            ("process_cpu_seconds_total", "counter", process.cpu_seconds),
            (
                "process_start_time_seconds",
                "gauge",
                Some(process.started_at),
            ),
        ];
        for (name, kind, value) in figures {
            if let Some(value) = value {
                self.push(format_args!("# TYPE {name} {kind}\n{name} {value}\n"));
            }
        }
    }

    fn histories(&mut self, roots: &[RootFigures]) {
        type Figure = fn(&HistoryCounts) -> u64;
        let figures: [(&str, &str, &str, Figure); 4] = [
            (
                "history_changes",
                "gauge",
                "Changes that are kept.",
                |counts| counts.changes,
            ),
            (
                "history_bytes",
                "gauge",
                "Bytes of old content, looked at once a minute.",
                |counts| counts.bytes,
            ),
            (
                "history_pruned_total",
                "counter",
                "Changes that went because they were old or too many.",
                |counts| counts.pruned,
            ),
            (
                "history_undone_total",
                "counter",
                "Changes that were undone.",
                |counts| counts.undone,
            ),
        ];
        for (name, kind, help, figure) in figures {
            self.head(name, kind, help);
            for root in roots {
                if let Some(counts) = &root.history {
                    self.line(name, &root.label(), figure(counts));
                }
            }
        }
    }

    fn search_memory(&mut self, memory: ops::SearchMemoryUsage) {
        let lines = [
            ("search_memory_bytes", "gauge", memory.bytes),
            ("search_memory_files", "gauge", memory.files),
            ("search_memory_hits_total", "counter", memory.hits),
        ];
        for (name, kind, value) in lines {
            self.head(
                name,
                kind,
                "Files that searches remember, and did not have to read.",
            );
            self.line(name, "", value);
        }
    }

    fn cache(&mut self, cache: &guide::CacheUsage) {
        let counters = &cache.counters;
        let lines = [
            ("guide_cache_entries", "gauge", cache.entries),
            ("guide_cache_bytes", "gauge", cache.bytes),
            ("guide_cache_hits_total", "counter", counters.hits),
            ("guide_cache_misses_total", "counter", counters.misses),
            ("guide_cache_evictions_total", "counter", counters.evictions),
        ];
        for (name, kind, value) in lines {
            self.head(name, kind, "The agents' files that guide keeps.");
            self.line(name, "", value);
        }
    }

    fn bytes(&mut self, tools: &[ToolMetrics]) {
        self.head(
            "response_bytes_total",
            "counter",
            "Bytes of replies as they are sent.",
        );
        for tool in tools.iter().filter(|tool| tool.bytes > 0) {
            self.line("response_bytes_total", &labels(tool), tool.bytes);
        }
    }
}

impl RootFigures {
    fn label(&self) -> String {
        format!("root={:?}", self.name)
    }
}

fn labels(tool: &ToolMetrics) -> String {
    format!("toolset=\"{}\",tool=\"{}\"", tool.toolset, tool.tool)
}

#[cfg(test)]
mod tests {
    use super::*;
    use sandbox::{Amount, Quota};
    use std::time::Duration;

    fn root(name: &str, is_up: bool) -> RootFigures {
        RootFigures {
            name: name.to_owned(),
            is_up,
            quota: is_up.then_some(QuotaUse {
                quota: Quota {
                    max_bytes: Some(10),
                    max_files: None,
                },
                used: Some(Amount { bytes: 7, files: 1 }),
            }),
            history: is_up.then_some(HistoryCounts {
                changes: 7,
                bytes: 8,
                pruned: 9,
                undone: 10,
            }),
        }
    }

    #[test]
    fn a_page_reads_as_prometheus_expects_it() {
        let mut at_most = [3; DURATION_BUCKETS.len()];
        at_most[0] = 1;
        let tool = ToolMetrics {
            toolset: "workspace",
            tool: "grep",
            outcomes: BTreeMap::from([("ok", 3), ("timeout", 1)]),
            at_most,
            duration: Duration::from_millis(1500),
            bytes: 42,
        };
        let page = page(&Snapshot {
            tools: vec![tool],
            refusals: BTreeMap::from([(403, 2)]),
            connections: 5,
            sessions: 0,
            running: 1,
            waiting: 0,
            roots: vec![root("data", true), root("old", false)],
            process: ProcessSnapshot {
                resident_bytes: Some(4096),
                ..ProcessSnapshot::default()
            },
            held_bytes: 0,
            search_memory: ops::SearchMemoryUsage {
                bytes: 7,
                files: 8,
                hits: 9,
            },
            cache: None,
        });
        for line in [
            "mcp_filesystem_calls_total{toolset=\"workspace\",tool=\"grep\",outcome=\"ok\"} 3",
            "mcp_filesystem_call_duration_seconds_bucket{toolset=\"workspace\",tool=\"grep\",le=\"0.0005\"} 1",
            "mcp_filesystem_call_duration_seconds_bucket{toolset=\"workspace\",tool=\"grep\",le=\"+Inf\"} 4",
            "mcp_filesystem_call_duration_seconds_sum{toolset=\"workspace\",tool=\"grep\"} 1.5",
            "mcp_filesystem_response_bytes_total{toolset=\"workspace\",tool=\"grep\"} 42",
            "mcp_filesystem_refusals_total{status=\"403\"} 2",
            "mcp_filesystem_connections 5",
            "mcp_filesystem_root_up{root=\"data\"} 1",
            "mcp_filesystem_search_memory_bytes 7",
            "mcp_filesystem_search_memory_files 8",
            "mcp_filesystem_search_memory_hits_total 9",
            "mcp_filesystem_root_up{root=\"old\"} 0",
            "mcp_filesystem_quota_bytes{root=\"data\"} 10",
            "mcp_filesystem_quota_bytes_used{root=\"data\"} 7",
            "process_resident_memory_bytes 4096",
            "mcp_filesystem_history_changes{root=\"data\"} 7",
            "mcp_filesystem_history_bytes{root=\"data\"} 8",
            "mcp_filesystem_history_pruned_total{root=\"data\"} 9",
            "mcp_filesystem_history_undone_total{root=\"data\"} 10",
        ] {
            assert!(page.lines().any(|own| own == line), "{line}\nin\n{page}");
        }
    }
}
