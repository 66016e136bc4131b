//! `guide_cache_stats`: how the cache is doing, and who calls how often.

use std::time::Instant;

use guide::StepOutcome;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::reply::{CacheFigures, Success};
use super::tool::{GuideTool, StepContext};
use crate::client_stats::ClientStats;
use crate::contract::Failure;
use crate::tool::{Example, ToolEffect};

pub(super) struct CacheStats;

#[derive(Deserialize, Serialize, JsonSchema)]
pub(super) struct Arguments {}

/// How everything is doing.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Data {
    /// How your part of the cache is doing.
    cache: CacheFigures,
    /// Uploads in chunks that are not complete.
    uploads_pending: usize,
    /// Bytes they hold.
    upload_bytes: u64,
    /// Questions that wait for the agent's answer.
    questions_pending: usize,
    /// Your calls and violations; of each client, in the order they came, if all share one cache.
    clients: Vec<ClientCacheFigures>,
    /// Violations of these clients.
    violations: u64,
    /// The directories of the project that may be named.
    allowed_paths: Vec<String>,
}

/// What one client did.
#[derive(Debug, Serialize, JsonSchema)]
struct ClientCacheFigures {
    /// Its number; addresses are in the server's log only.
    client: usize,
    /// Whether it is you.
    is_you: bool,
    /// Its calls since the start.
    calls: u64,
    /// Its calls in the last 10 to 20 seconds.
    recent_calls: u64,
    /// Its attempts at what is forbidden.
    violations: u64,
}

impl GuideTool for CacheStats {
    type Arguments = Arguments;
    type Data = Data;

    const NAME: &'static str = "guide_cache_stats";
    const TITLE: &'static str = "Cache statistics";
    const DESCRIPTION: &'static str = "Tells how your part of the cache is doing, what is pending, how often you called and tried what is forbidden, \
        and which directories are allowed. Security: other clients appear by number only, and only if all share one cache. \
        Example: {}";
    const CONTENT: &'static [&'static str] = &[];
    const EFFECT: ToolEffect = ToolEffect::Read;
    const EXAMPLES: &'static [Example] = &[
        Example {
            title: "A server that was just started",
            arguments: "{}",
            reply: r#"{"success": true, "data": {"cache": {"entries": 0, "bytes": 0, "max_bytes": 67108864, "hits": 0, "misses": 0, "updates": 0, "evictions": 0, "expirations": 0, "invalidations": 0}, "uploads_pending": 0, "upload_bytes": 0, "questions_pending": 0, "clients": [{"client": 1, "is_you": true, "calls": 1, "recent_calls": 1, "violations": 0}], "violations": 0, "allowed_paths": ["docs", "src", "tests", ".guide", ".todo"]}, "message": "0 entries with 0 of 67108864 bytes"}"#,
        },
        Example {
            title: "An argument it does not have",
            arguments: r#"{"client": 1}"#,
            reply: r#"{"success": false, "error": "unknown argument: client; this tool takes no arguments", "error_type": "validation", "instruction": "Correct the arguments of guide_cache_stats and call it again."}"#,
        },
    ];

    fn step(
        _arguments: &Arguments,
        context: &mut StepContext<'_>,
    ) -> Result<StepOutcome<Success<Data>>, Failure> {
        let (state, bridge, now) = (context.state, context.bridge, Instant::now());
        let mut clients = context.client_stats.all(context.account, now);
        // If clients share nothing, other clients are not shown.
        clients.retain(|(_, is_you)| *is_you || state.is_shared());
        let (uploads_pending, upload_bytes) = bridge.upload_usage(now);
        let figures = bridge.cache_usage(now);
        let allowed = bridge.validator().policy().allowed();
        let data = Data {
            cache: CacheFigures::now(bridge),
            uploads_pending,
            upload_bytes,
            questions_pending: state.questions.count(bridge.owner()),
            violations: clients.iter().map(|(stats, _)| stats.violations).sum(),
            clients: clients
                .iter()
                .take(100)
                .map(ClientCacheFigures::of)
                .collect(),
            allowed_paths: allowed.map(str::to_owned).collect(),
        };
        let message = format!(
            "{} entries with {} of {} bytes",
            figures.entries, figures.bytes, figures.max_bytes
        );
        Ok(StepOutcome::Done(Success::new(
            data,
            message,
            &[],
            Vec::new(),
        )))
    }
}

impl ClientCacheFigures {
    fn of((stats, is_you): &(ClientStats, bool)) -> ClientCacheFigures {
        ClientCacheFigures {
            client: stats.number,
            is_you: *is_you,
            calls: stats.calls,
            recent_calls: stats.recent,
            violations: stats.violations,
        }
    }
}
