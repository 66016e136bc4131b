//! Waiting for a condition instead of sleeping and hoping.

use std::time::Duration;

use testkit::Server;

/// How often a condition is looked at.
const STEP: Duration = Duration::from_millis(10);
/// How often at most, about twenty seconds.
const STEPS: usize = 2000;

/// Waits until a condition holds, and tells whether it did in time.
pub(crate) async fn becomes(condition: impl AsyncFn() -> bool) -> bool {
    for _ in 0..STEPS {
        if condition().await {
            return true;
        }
        tokio::time::sleep(STEP).await;
    }
    false
}

/// Waits until something is so, for at most ten seconds.
pub(crate) async fn becomes_in_ten_seconds(condition: impl AsyncFn() -> bool) -> bool {
    let waited = tokio::time::timeout(Duration::from_secs(10), becomes(condition)).await;
    waited.unwrap_or(false)
}

/// Waits until the server's metrics have a line.
pub(crate) async fn metrics_show(server: &Server, line: &str) {
    let shown = becomes(async || {
        let page = server.http().get("/metrics").await.body;
        page.lines().any(|own| own == line)
    });
    assert!(shown.await, "never: {line}");
}
