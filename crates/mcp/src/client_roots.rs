//! The directories that a client says it works in (`roots/list`). They narrow what is served, and never widen it.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::watch;
use toolset::{HostDirectories, Service};

use crate::connection::Outbox;
use crate::questions::Questions;

/// How long calls wait for the client to say where it works.
const PATIENCE: Duration = Duration::from_secs(5);

/// What is known about a client's directories; empty until the client is asked.
#[derive(Debug, Default)]
pub(crate) struct ClientRoots(OnceLock<watch::Sender<Known>>);

#[derive(Debug, Clone, Default)]
struct Known {
    /// How many questions are pending.
    asking: usize,
    /// Its last answer.
    uris: Option<Arc<[String]>>,
    /// The part of it that is served, and the endpoint by which that was judged.
    narrowed: Option<Arc<HostDirectories>>,
    judged_by: Option<Service>,
}

impl ClientRoots {
    /// Announces that the client will be asked: later calls wait for its answer.
    pub(crate) fn begin(&self) {
        self.known().send_modify(|known| known.asking += 1);
    }

    /// Asks the client, and keeps its answer.
    pub(crate) async fn ask(
        &self,
        questions: &Arc<Questions>,
        outbox: &Arc<dyn Outbox>,
        service: &Service,
    ) {
        let answer = tokio::time::timeout(PATIENCE, answer(questions, outbox)).await;
        let uris = answer.ok().flatten().and_then(|answer| uris(&answer));
        if uris.is_none() {
            tracing::warn!("the client did not say which directories it works in");
        }
        let uris: Option<Arc<[String]>> = uris.map(Into::into);
        let narrowed = match &uris {
            Some(uris) => narrowed(service, uris).await,
            None => None,
        };
        self.known().send_modify(|known| {
            known.asking = known.asking.saturating_sub(1);
            if uris.is_some() {
                known.uris = uris;
                known.narrowed = narrowed;
                known.judged_by = Some(service.clone());
            }
        });
    }

    fn known(&self) -> &watch::Sender<Known> {
        self.0.get_or_init(watch::Sender::default)
    }

    /// The client's answer, if there is one, limited to what `service` serves.
    pub(crate) async fn narrowed(&self, service: &Service) -> Option<Arc<HostDirectories>> {
        // Most clients are never asked, and most connections over HTTP last for one call.
        let sender = self.0.get()?;
        let known = settled(sender).await;
        let uris = known.uris?;
        // Security: directories are stored by their index among the roots, so they are judged again if the roots
        // change.
        if known.judged_by.is_some_and(|own| own.is_same(service)) {
            return known.narrowed;
        }
        let narrowed = narrowed(service, &uris).await;
        sender.send_modify(|known| {
            known.narrowed.clone_from(&narrowed);
            known.judged_by = Some(service.clone());
        });
        narrowed
    }
}

/// The known answer once no question is pending, or once waiting took too long.
async fn settled(sender: &watch::Sender<Known>) -> Known {
    let mut receiver = sender.subscribe();
    let settled = receiver.wait_for(|known| known.asking == 0);
    let settled = tokio::time::timeout(PATIENCE, settled).await;
    match settled {
        Ok(Ok(known)) => known.clone(),
        _ => sender.borrow().clone(),
    }
}

async fn answer(questions: &Arc<Questions>, outbox: &Arc<dyn Outbox>) -> Option<Value> {
    let mut question = questions.ask("roots/list", json!({}), outbox).await?;
    question.answer().await?.ok()
}

/// The URIs of an answer; `None` if it is not an answer.
fn uris(answer: &Value) -> Option<Vec<String>> {
    let roots = answer.get("roots")?.as_array()?;
    let uris = roots.iter().filter_map(|root| root.get("uri")?.as_str());
    Some(uris.map(str::to_owned).collect())
}

/// The client's directories that are served.
async fn narrowed(service: &Service, uris: &[String]) -> Option<Arc<HostDirectories>> {
    let narrowed = service.narrowed(uris).await;
    if narrowed.is_none() {
        tracing::warn!(
            named = uris.len(),
            "none of the client's directories is inside a served root, so all roots stay available"
        );
    }
    narrowed
}
