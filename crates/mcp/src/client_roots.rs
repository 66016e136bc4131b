//! The directories that a client says it works in (`roots/list`). They narrow what is served, and never widen it.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::watch;
use toolset::{HostDirectories, Service};

use crate::connection::Outbox;
use crate::questions::Questions;

/// How long calls wait for the client to say where it works.
const PATIENCE: Duration = Duration::from_secs(5);

/// What is known of a client's directories.
#[derive(Debug, Default)]
pub(crate) struct ClientRoots(watch::Sender<Known>);

#[derive(Debug, Clone, Default)]
struct Known {
    /// How many questions are under way.
    asking: usize,
    /// What it said last, as far as it is served.
    narrowed: Option<Arc<HostDirectories>>,
}

impl ClientRoots {
    /// Says that the client will be asked: calls that come from now on wait for its answer.
    pub(crate) fn begin(&self) {
        self.0.send_modify(|known| known.asking += 1);
    }

    /// Asks the client, and keeps what it says.
    pub(crate) async fn ask(
        &self,
        questions: &Arc<Questions>,
        outbox: &Arc<dyn Outbox>,
        service: &Service,
    ) {
        let answer = tokio::time::timeout(PATIENCE, answer(questions, outbox)).await;
        let uris = answer.ok().flatten().and_then(|answer| uris(&answer));
        let narrowed = match uris {
            Some(uris) => Some(narrowed(service, uris).await),
            None => {
                tracing::warn!("the client did not say which directories it works in");
                None
            }
        };
        self.0.send_modify(|known| {
            known.asking = known.asking.saturating_sub(1);
            if let Some(narrowed) = narrowed {
                known.narrowed = narrowed;
            }
        });
    }

    /// What the client said, once it did.
    pub(crate) async fn narrowed(&self) -> Option<Arc<HostDirectories>> {
        let mut known = self.0.subscribe();
        let settled = known.wait_for(|known| known.asking == 0);
        let settled = tokio::time::timeout(PATIENCE, settled).await;
        match settled {
            Ok(Ok(known)) => known.narrowed.clone(),
            _ => self.0.borrow().narrowed.clone(),
        }
    }
}

async fn answer(questions: &Arc<Questions>, outbox: &Arc<dyn Outbox>) -> Option<Value> {
    let mut question = questions.ask("roots/list", json!({}), outbox).await?;
    question.answer().await?.ok()
}

/// The URIs of an answer; `None` if it is none.
fn uris(answer: &Value) -> Option<Vec<String>> {
    let roots = answer.get("roots")?.as_array()?;
    let uris = roots.iter().filter_map(|root| root.get("uri")?.as_str());
    Some(uris.map(str::to_owned).collect())
}

/// Looks at directories, which may wait.
async fn narrowed(service: &Service, uris: Vec<String>) -> Option<Arc<HostDirectories>> {
    let service = service.clone();
    let named = uris.len();
    let narrowed = tokio::task::spawn_blocking(move || service.narrowed(&uris)).await;
    let narrowed = narrowed.ok().flatten();
    if narrowed.is_none() && named > 0 {
        tracing::warn!(
            named,
            "none of the client's directories is inside a served root, so all roots stay available"
        );
    }
    narrowed
}
