//! The client's side of the protocol: its name, its capabilities and its answers to sampling.

#![expect(
    deprecated,
    reason = "the SDK marks sampling as deprecated; clients of today still use it"
)]

use std::pin::Pin;
use std::sync::{Arc, Mutex};

use rmcp::model::{
    ClientCapabilities, ClientConfig, CreateMessageRequestParams, CreateMessageResult,
    ElicitRequestParams, ElicitResult, Implementation, ProgressNotificationParam, ProtocolVersion,
};
use rmcp::service::{NotificationContext, RequestContext};
use rmcp::{ClientHandler, ErrorData, RoleClient};
use serde_json::{Value, json};

/// Answers a sampling request: its parameters in, its result out, or the message of an error.
pub(crate) type Sampler = Arc<dyn Fn(Value) -> Sampled + Send + Sync>;
/// The answer, which may arrive later.
pub(crate) type Sampled = Pin<Box<dyn Future<Output = Result<Value, String>> + Send>>;

/// A client that records progress, and answers sampling if it has a sampler.
#[derive(Clone)]
pub(crate) struct Agent {
    pub(crate) revision: ProtocolVersion,
    pub(crate) sampler: Option<Sampler>,
    /// Answers for the person in front of the client.
    pub(crate) person: Option<Sampler>,
    pub(crate) progress: Arc<Mutex<Vec<Value>>>,
}

impl ClientHandler for Agent {
    fn get_info(&self) -> ClientConfig {
        let mut capabilities = json!({});
        if self.sampler.is_some() {
            capabilities["sampling"] = json!({});
        }
        if self.person.is_some() {
            capabilities["elicitation"] = json!({});
        }
        let capabilities: ClientCapabilities =
            serde_json::from_value(capabilities).expect("capabilities");
        let name = Implementation::new("testkit", env!("CARGO_PKG_VERSION"));
        ClientConfig::new(capabilities, name).with_protocol_version(self.revision.clone())
    }

    async fn on_progress(
        &self,
        params: ProgressNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        let note = serde_json::to_value(params).unwrap_or_default();
        self.progress
            .lock()
            .expect("no panic while held")
            .push(note);
    }

    async fn create_message(
        &self,
        params: CreateMessageRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        let refused = |reason: String| ErrorData::internal_error(reason, None);
        let sampler = self
            .sampler
            .clone()
            .ok_or_else(|| refused("no sampling".to_owned()))?;
        let mut params =
            serde_json::to_value(params).map_err(|error| refused(error.to_string()))?;
        // The SDK takes the metadata of a request out of its parameters.
        if params.get("_meta").is_none() {
            params["_meta"] = serde_json::to_value(&context.meta).unwrap_or_default();
        }
        let result = sampler(params).await.map_err(refused)?;
        serde_json::from_value(result).map_err(|error| refused(error.to_string()))
    }

    async fn create_elicitation(
        &self,
        params: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let refused = |reason: String| ErrorData::internal_error(reason, None);
        let person = self.person.clone();
        let person = person.ok_or_else(|| refused("no person".to_owned()))?;
        let params = serde_json::to_value(params).map_err(|error| refused(error.to_string()))?;
        let result = person(params).await.map_err(refused)?;
        serde_json::from_value(result).map_err(|error| refused(error.to_string()))
    }
}
