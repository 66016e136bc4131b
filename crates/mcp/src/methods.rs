//! The methods that clients can call: one match over them, for every revision and every transport.

use std::borrow::Cow;
use std::sync::Arc;

use ops::{ReplyRoom, Reserved};
use rmcp::model::{ErrorData, InitializeRequestParams, InputResponses, RequestId};
use serde::Deserialize;
use serde_json::Value;
use toolset::prompts::GET;
use toolset::resources::{COMPLETE, DIRECTORY_READ, READ, SUBSCRIBE};
use toolset::{Answers, AskBy, CallOutcome, Caller, Encoded, Encoder, ReplyMessage};

use crate::connection::{
    BegunSubscriptions, Connection, Outbox, RequestClient, RequestContext, Response,
};
use crate::message::{LISTEN, Params, Request};
use crate::resources::unknown_method;
use crate::result::{self, Links, Wording};
use crate::revision::{self, Agreed, ClientName, DISCOVER, Greeting, INITIALIZE, Meta};

/// Serves one request to its end.
pub(crate) async fn answer(request: Request, context: RequestContext) -> Response {
    let Request { id, method, params } = request;
    let served = match agree(&method, &params, &context.connection) {
        Ok(agreed) => {
            let id = &id;
            let asked = AgreedRequest {
                id,
                agreed,
                context,
            };
            asked.serve(&method, params).await
        }
        Err(error) => Err(error),
    };
    match served {
        Ok((message, held)) => Response {
            message,
            error: None,
            held,
        },
        Err(error) => Response {
            message: result::error(Some(&id), &error).into(),
            error: Some(error.code),
            held: None,
        },
    }
}

/// Agrees on the revision of a request. A client whose first request is not `initialize` introduces itself in every one.
fn agree(method: &str, params: &Params, connection: &Connection) -> Result<Agreed, ErrorData> {
    let mut lifecycle = connection.lifecycle();
    let greets = revision::greets(Some(method), params);
    let agreed = revision::agree(method, greets, Meta(params.meta()), &lifecycle)?;
    if lifecycle.greeting.is_none() && !agreed.is_legacy && method != DISCOVER {
        lifecycle.introduces_itself = true;
    }
    Ok(agreed)
}

/// A request whose revision is agreed on.
pub(crate) struct AgreedRequest<'request> {
    pub(crate) id: &'request RequestId,
    pub(crate) agreed: Agreed,
    pub(crate) context: RequestContext,
}

/// A message, and its room in the budget of bytes if it is large.
pub type HeldMessage = (ReplyMessage, Option<Reserved>);

impl AgreedRequest<'_> {
    async fn serve(self, method: &str, params: Params) -> Result<HeldMessage, ErrorData> {
        match method {
            "tools/call" => self.call_tool(params).await,
            READ if self.offers_resources() => self.read_resource(params).await,
            DIRECTORY_READ if self.offers_resources() => self.read_directory(params).await,
            COMPLETE if self.offers_resources() => self.complete(params).await,
            GET if self.offers_prompts() => self.get_prompt(params).await,
            SUBSCRIBE if self.can_subscribe() => self.subscribe(params).await,
            LISTEN if self.can_listen() => self.listen(params).await,
            _ => Ok((self.answer_at_once(method, params)?.into(), None)),
        }
    }

    /// Fails if the operator has suspended the client. Tool calls are refused in `toolset`, where they are recorded.
    pub(crate) fn refuse_suspended(&self) -> Result<(), ErrorData> {
        let service = self.context.server.service();
        if service.is_suspended(&self.context.origin.allowance()) {
            return Err(ErrorData::invalid_request(
                "the operator has suspended this client for now",
                None,
            ));
        }
        Ok(())
    }

    fn answer_at_once(self, method: &str, params: Params) -> Result<Vec<u8>, ErrorData> {
        self.refuse_suspended()?;
        match method {
            INITIALIZE if self.agreed.is_legacy => self.initialize(params),
            DISCOVER => Ok(result::result(self.id, &self.context.server.discovered())),
            // The newest revision has no ping.
            "ping" if self.agreed.is_legacy => {
                Ok(result::result(self.id, &Value::Object(Default::default())))
            }
            "tools/list" => self.list_tools(&params),
            "resources/list" if self.offers_resources() => self.list_resources(&params),
            "resources/templates/list" if self.offers_resources() => self.list_templates(&params),
            "prompts/list" if self.offers_prompts() => self.list_prompts(&params),
            "resources/unsubscribe" if self.can_subscribe() => self.unsubscribe(&params),
            other => Err(unknown_method(other)),
        }
    }

    fn initialize(self, params: Params) -> Result<Vec<u8>, ErrorData> {
        let params = InitializeRequestParams::deserialize(params.into_value()).map_err(|_| {
            invalid_params(
                "initialize takes params with protocolVersion (string), capabilities (object) and clientInfo (object \
                 with name and version)",
            )
        })?;
        let greeting = Greeting::of(&params);
        let connection = &self.context.connection;
        let hears_changes = connection.common().is_some();
        let server = &self.context.server;
        let info = server.initialized(greeting.revision.clone(), hears_changes);
        connection.lifecycle().greeting = Some(greeting);
        Ok(result::result(self.id, &info))
    }

    fn list_tools(self, params: &Params) -> Result<Vec<u8>, ErrorData> {
        match params.get("cursor") {
            None | Some(Value::Null) => {
                let client = self.client(Meta(params.meta()));
                let program = client.as_ref().map(|client| client.program.as_str());
                let server = &self.context.server;
                let list = server.list(self.agreed.wording(), program);
                Ok(result::result(self.id, &list))
            }
            // All tools fit one page, so no cursor was ever given out.
            Some(_) => Err(invalid_params("Unknown cursor: tools/list has one page")),
        }
    }

    async fn call_tool(self, mut params: Params) -> Result<HeldMessage, ErrorData> {
        let Some(Value::String(name)) = params.take("name") else {
            return Err(invalid_params(
                "tools/call takes params with name (string) and arguments (object)",
            ));
        };
        let arguments = match params.take("arguments") {
            None | Some(Value::Null) => Value::Object(Default::default()),
            Some(arguments) => arguments,
        };
        let (id, wording) = (self.id, self.agreed.wording());
        let links = self.agreed.links();
        let server = self.context.server.clone();
        let outbox = Arc::clone(&self.context.outbox);
        let narrowed = self.context.connection.narrowed(server.service()).await;
        let caller = Caller {
            narrowed,
            ..self.caller(params)?
        };
        let service = server.service();
        let encoder = ToolEncoder {
            id: Cow::Borrowed(id),
            wording,
            links,
            outbox: Some(&*outbox),
        };
        let called = service.call_encoded(&name, arguments, &caller, &encoder);
        let Some(Encoded { message, .. }) = called.await else {
            let unknown = server.service().catalogue().unknown_tool(&name);
            return Err(invalid_params(unknown));
        };
        let room = caller.room.as_ref();
        let held = room.and_then(|room| room.hand_over(message.held() as u64));
        Ok((message, held))
    }

    pub(crate) fn caller(self, params: Params) -> Result<Caller, ErrorData> {
        self.caller_that_watches(params, None)
    }

    /// The caller, and the resources that the call will have begun to watch.
    pub(crate) fn watching_caller(
        self,
        params: Params,
    ) -> Result<(Caller, BegunSubscriptions), ErrorData> {
        let begun = BegunSubscriptions::default();
        let caller = self.caller_that_watches(params, Some(begun.clone()))?;
        Ok((caller, begun))
    }

    fn caller_that_watches(
        self,
        mut params: Params,
        begun: Option<BegunSubscriptions>,
    ) -> Result<Caller, ErrorData> {
        let asks_by = self.context.connection.asks_by(self.agreed.is_newest());
        let able = |is_able| if is_able { asks_by } else { AskBy::Never };
        let asking = able(self.agreed.samples);
        let asking_person = able(self.agreed.elicits);
        let answers = if [asking, asking_person].contains(&AskBy::Result) {
            answers(&mut params)?
        } else {
            None
        };
        let meta = Meta(params.meta());
        let client = self.client(meta);
        let origin = &self.context.origin;
        let allowance = origin.allowance();
        let budget = self.context.server.service().byte_budget();
        let room = ReplyRoom::new(
            Arc::clone(budget),
            Arc::clone(&allowance),
            origin.patience(),
        );
        Ok(Caller {
            room: Some(Arc::new(room)),
            name: origin.shown(client.as_ref().map(ClientName::shown)),
            program: client.map(|client| client.program),
            request_size: params.message_size(),
            trace: meta.trace(),
            account: origin.account(),
            account_kind: origin.account_kind(),
            allowance,
            subject: origin.subject(),
            answers,
            narrowed: None,
            client: Arc::new(RequestClient {
                progress: meta.progress(),
                is_asking_off: self
                    .context
                    .connection
                    .is_asking_off(self.agreed.is_newest()),
                context: self.context,
                asking,
                asking_person,
                begun,
            }),
        })
    }

    /// What the client calls itself: in this request, or else when it greeted.
    fn client(&self, meta: Meta<'_>) -> Option<ClientName> {
        let greeted_as = || {
            let lifecycle = self.context.connection.lifecycle();
            if lifecycle.introduces_itself {
                return None;
            }
            lifecycle.greeting.as_ref()?.client.clone()
        };
        meta.client().or_else(greeted_as)
    }
}

/// What a client sends back after a question ended its earlier call.
fn answers(params: &mut Params) -> Result<Option<Answers>, ErrorData> {
    let responses = match params.take("inputResponses") {
        None | Some(Value::Null) => InputResponses::default(),
        Some(responses) => InputResponses::deserialize(responses)
            .map_err(|_| invalid_params("inputResponses has to be an object"))?,
    };
    match params.take("requestState") {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(state)) => Ok(Some(Answers { state, responses })),
        Some(_) => Err(invalid_params("requestState has to be a string")),
    }
}

pub(crate) fn invalid_params(message: impl Into<String>) -> ErrorData {
    ErrorData::invalid_params(message.into(), None)
}

/// Encodes the replies to tool calls.
struct ToolEncoder<'call> {
    id: Cow<'call, RequestId>,
    wording: Wording,
    links: Links,
    /// How the reply is sent.
    outbox: Option<&'call dyn Outbox>,
}

impl Encoder for ToolEncoder<'_> {
    fn encode(&self, outcome: &mut CallOutcome) -> ReplyMessage {
        match outcome {
            CallOutcome::Result(result) => {
                result::tool_result(&self.id, result, self.wording, self.links)
            }
            CallOutcome::Question(question) => result::result(&self.id, question).into(),
            // Only other methods can fail like this.
            CallOutcome::Refused(_) => Vec::new().into(),
        }
    }

    fn frame(&self) -> usize {
        self.outbox.map_or(0, Outbox::frame)
    }

    fn apart(&self) -> Box<dyn Encoder> {
        Box::new(ToolEncoder {
            id: Cow::Owned(RequestId::clone(&self.id)),
            wording: self.wording,
            links: self.links,
            outbox: None,
        })
    }
}
