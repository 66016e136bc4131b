//! Files as resources: what clients send, and how the outcome is worded for their revision.
//!
//! `toolset` decides what a resource is and who may read it, and handles it like every call.

use std::borrow::Cow;
use std::sync::Arc;

use rmcp::model::{ErrorCode, ErrorData, RequestId};
use serde::Serialize;
use serde_json::{Value, json};
use toolset::resources::uri::{self, BadUri, ResourcePlace};
use toolset::resources::{COMPLETE, DIRECTORY_READ, READ, SUBSCRIBE};
use toolset::{
    CallOutcome, Caller, Encoded, Encoder, MethodFailure, NoMessage, RefusalKind, ReplyMessage,
    Service, shortened,
};

use crate::connection::Outbox;
use crate::message::Params;
use crate::methods::{AgreedRequest, HeldMessage, invalid_params};
use crate::result::{self, Lifetime, Wording};
use crate::server::LIST_LIFETIME_MS;

/// The argument of prompts that names a root.
const ROOT_ARGUMENT: &str = "root";
/// The most values that the protocol lets a completion have.
pub(crate) const VALUES_MAX: usize = 100;

/// A list that is the same for all clients, in the newest revision's form.
#[derive(Serialize)]
struct SharedList {
    #[serde(flatten)]
    list: Value,
    #[serde(flatten)]
    lifetime: Option<Lifetime>,
}

impl AgreedRequest<'_> {
    /// Whether some root lets clients read resources.
    pub(crate) fn offers_resources(&self) -> bool {
        let catalogue = self.context.server.service().catalogue();
        catalogue.info().capabilities.resources.is_some()
    }

    /// `resources/list`: the roots and nothing more. A tree has too many files to list them all.
    pub(crate) fn list_resources(self, params: &Params) -> Result<Vec<u8>, ErrorData> {
        refuse_cursor(params, "resources/list")?;
        let resource = |root: &str| {
            json!({
                "uri": uri::of(root, "."),
                "name": root,
                "mimeType": "inode/directory",
            })
        };
        let resources: Vec<Value> = self.resource_roots().map(resource).collect();
        Ok(self.listed(json!({ "resources": resources })))
    }

    /// `resources/templates/list`: one per root.
    pub(crate) fn list_templates(self, params: &Params) -> Result<Vec<u8>, ErrorData> {
        refuse_cursor(params, "resources/templates/list")?;
        let template = |root: &str| {
            json!({
                "uriTemplate": uri::template(root),
                "name": root,
                "description": format!("A file or directory in {root}, by its path"),
            })
        };
        let templates: Vec<Value> = self.resource_roots().map(template).collect();
        Ok(self.listed(json!({ "resourceTemplates": templates })))
    }

    /// `resources/read`.
    pub(crate) async fn read_resource(self, params: Params) -> Result<HeldMessage, ErrorData> {
        let (uri, place) = place_of(&params, READ)?;
        let ResourcePlace { root, path } = place;
        let arguments = json!({ "root": root, "path": path, "uri": uri });
        let lifetime = Some(Lifetime::PRIVATE);
        self.run_method(READ, &root, arguments, lifetime, Some(uri), params)
            .await
    }

    /// `resources/directory/read`.
    pub(crate) async fn read_directory(self, params: Params) -> Result<HeldMessage, ErrorData> {
        let (uri, place) = place_of(&params, DIRECTORY_READ)?;
        let ResourcePlace { root, path } = place;
        let mut arguments = json!({ "root": root, "path": path });
        match params.get("cursor") {
            None | Some(Value::Null) => {}
            Some(Value::String(cursor)) => arguments["cursor"] = Value::from(cursor.as_str()),
            Some(_) => return Err(invalid_params("cursor has to be a string")),
        }
        self.run_method(DIRECTORY_READ, &root, arguments, None, Some(uri), params)
            .await
    }

    /// `completion/complete`.
    pub(crate) async fn complete(self, params: Params) -> Result<HeldMessage, ErrorData> {
        if let Some(roots) = self.completed_prompt_roots(&params)? {
            self.refuse_suspended()?;
            let completion = json!({ "values": roots, "total": roots.len(), "hasMore": false });
            let mut completed = json!({ "completion": completion });
            if self.agreed.wording() == Wording::Newest {
                completed["resultType"] = Value::from("complete");
            }
            return Ok((result::result(self.id, &completed).into(), None));
        }
        let (root, path) = self.completed(&params)?;
        let arguments = json!({ "root": root, "path": path });
        self.run_method(COMPLETE, &root, arguments, None, None, params)
            .await
    }

    /// The roots that complete a prompt's argument, if a root is what is being typed.
    fn completed_prompt_roots(&self, params: &Params) -> Result<Option<Vec<&str>>, ErrorData> {
        match Completed::read(params) {
            Some(asked) if asked.kind == "ref/prompt" && asked.argument == ROOT_ARGUMENT => {
                self.completed_roots(&asked.of, &asked.value).map(Some)
            }
            _ => Ok(None),
        }
    }

    /// The root and the typed path of a completion.
    fn completed(&self, params: &Params) -> Result<(String, String), ErrorData> {
        let Some(asked) = Completed::read(params) else {
            return Err(invalid_params(
                "completion/complete takes params with ref (object with type, and uri or name) and argument (object with name \
                 and value)",
            ));
        };
        let root = match asked.kind.as_str() {
            "ref/resource" => asked.root_of_template()?,
            "ref/prompt" => self.completed_root(&asked.of, params)?,
            other => {
                let other = shortened(other);
                let fault =
                    format!("Unknown ref type: {other}; there are ref/resource and ref/prompt");
                return Err(invalid_params(fault));
            }
        };
        if asked.argument != uri::TEMPLATE_ARGUMENT {
            let (name, own) = (shortened(&asked.argument), uri::TEMPLATE_ARGUMENT);
            let also = match asked.kind.as_str() {
                "ref/prompt" => " and root",
                _ => "",
            };
            let fault = format!("Unknown argument {name}: what can be completed is {own}{also}");
            return Err(invalid_params(fault));
        }
        // An unfinished percent escape stands for itself.
        let path = uri::from_argument(&asked.value).unwrap_or(asked.value);
        Ok((root, path))
    }

    pub(crate) async fn run_method(
        self,
        method: &'static str,
        root: &str,
        arguments: Value,
        lifetime: Option<Lifetime>,
        uri: Option<String>,
        params: Params,
    ) -> Result<HeldMessage, ErrorData> {
        let (id, wording) = (self.id, self.agreed.wording());
        let service = self.context.server.service().clone();
        let outbox = Arc::clone(&self.context.outbox);
        let caller = self.caller(params)?;
        let encoder = MethodEncoder {
            id: Cow::Borrowed(id),
            wording,
            lifetime,
            uri: uri.as_deref().map(Cow::Borrowed),
            outbox: Some(&*outbox),
        };
        let called = service.call_method(method, root, arguments, &caller, &encoder);
        let Encoded {
            outcome, message, ..
        } = called.await.ok_or_else(|| unknown_method(method))?;
        if let CallOutcome::Refused(failure) = outcome {
            return Err(error(&failure, uri.as_deref(), wording));
        }
        let room = caller.room.as_ref();
        let held = room.and_then(|room| room.hand_over(message.held() as u64));
        Ok((message, held))
    }

    pub(crate) fn listed(self, list: Value) -> Vec<u8> {
        let lifetime = match self.agreed.wording() {
            Wording::Older => None,
            Wording::Newest => Some(self.list_lifetime()),
        };
        result::result(self.id, &SharedList { list, lifetime })
    }

    fn list_lifetime(&self) -> Lifetime {
        let catalogue = self.context.server.service().catalogue();
        if catalogue.has_uniform_resources() {
            Lifetime::public(LIST_LIFETIME_MS)
        } else {
            Lifetime::PRIVATE
        }
    }

    fn resource_roots(&self) -> impl Iterator<Item = &str> {
        let catalogue = self.context.server.service().catalogue();
        catalogue.resource_roots().into_iter()
    }
}

/// Encodes the replies to methods other than tool calls.
struct MethodEncoder<'call> {
    id: Cow<'call, RequestId>,
    wording: Wording,
    lifetime: Option<Lifetime>,
    uri: Option<Cow<'call, str>>,
    /// How the reply is sent.
    outbox: Option<&'call dyn Outbox>,
}

impl Encoder for MethodEncoder<'_> {
    fn encode(&self, outcome: &mut CallOutcome) -> ReplyMessage {
        match outcome {
            CallOutcome::Result(done) => {
                result::method_result(&self.id, done, self.wording, self.lifetime)
            }
            CallOutcome::Question(question) => result::result(&self.id, question).into(),
            CallOutcome::Refused(failure) => {
                let error = error(failure, self.uri.as_deref(), self.wording);
                result::error(Some(&self.id), &error).into()
            }
        }
    }

    fn frame(&self) -> usize {
        self.outbox.map_or(0, Outbox::frame)
    }

    fn apart(&self) -> Box<dyn Encoder> {
        let uri = self.uri.as_deref();
        Box::new(MethodEncoder {
            id: Cow::Owned(RequestId::clone(&self.id)),
            wording: self.wording,
            lifetime: self.lifetime,
            uri: uri.map(|uri| Cow::Owned(uri.to_owned())),
            outbox: None,
        })
    }
}

/// Begins to watch a resource for its client.
pub(crate) async fn subscribe(
    service: &Service,
    uri: &str,
    caller: &Caller,
    wording: Wording,
) -> Result<CallOutcome, ErrorData> {
    let ResourcePlace { root, path } = parsed(uri)?;
    let arguments = json!({ "root": root, "path": path, "uri": uri });
    let called = service.call_method(SUBSCRIBE, &root, arguments, caller, &NoMessage);
    let called = called.await.ok_or_else(|| unknown_method(SUBSCRIBE))?;
    match called.outcome {
        CallOutcome::Refused(failure) => Err(error(&failure, Some(uri), wording)),
        outcome => Ok(outcome),
    }
}

/// The URI that a request names, and the place behind it.
pub(crate) fn place_of(
    params: &Params,
    method: &str,
) -> Result<(String, ResourcePlace), ErrorData> {
    let Some(uri) = params.text("uri") else {
        return Err(invalid_params(format!(
            "{method} takes params with uri (string)"
        )));
    };
    Ok((uri.to_owned(), parsed(uri)?))
}

fn parsed(text: &str) -> Result<ResourcePlace, ErrorData> {
    uri::parse(text).map_err(|fault| bad_uri(&fault, text))
}

fn bad_uri(fault: &BadUri, uri: &str) -> ErrorData {
    ErrorData::invalid_params(fault.to_string(), Some(json!({ "uri": shortened(uri) })))
}

/// The subject of a completion.
struct Completed {
    kind: String,
    /// The URI or name of the template or prompt.
    of: String,
    argument: String,
    value: String,
}

impl Completed {
    fn read(params: &Params) -> Option<Completed> {
        let text = |object: &Value, key: &str| object.get(key)?.as_str().map(str::to_owned);
        let (reference, argument) = (params.get("ref")?, params.get("argument")?);
        Some(Completed {
            kind: text(reference, "type")?,
            of: text(reference, "uri").or_else(|| text(reference, "name"))?,
            argument: text(argument, "name")?,
            value: text(argument, "value")?,
        })
    }

    /// The root whose paths complete a template.
    fn root_of_template(&self) -> Result<String, ErrorData> {
        uri::root_of_template(&self.of).map_err(|fault| bad_uri(&fault, &self.of))
    }
}

/// Every list fits on one page, so no cursor was ever given out.
pub(crate) fn refuse_cursor(params: &Params, method: &str) -> Result<(), ErrorData> {
    match params.get("cursor") {
        None | Some(Value::Null) => Ok(()),
        Some(_) => Err(invalid_params(format!(
            "Unknown cursor: {method} has one page"
        ))),
    }
}

/// A failure as an error of the protocol.
fn error(failure: &MethodFailure, uri: Option<&str>, wording: Wording) -> ErrorData {
    let code = match failure.kind {
        // The newest revision has no code of its own for it.
        RefusalKind::NotFound if wording == Wording::Older => ErrorCode::RESOURCE_NOT_FOUND,
        RefusalKind::NotFound | RefusalKind::Invalid => ErrorCode::INVALID_PARAMS,
        RefusalKind::TooMany { .. } | RefusalKind::Internal => ErrorCode::INTERNAL_ERROR,
    };
    let mut data = json!({ "code": failure.code });
    if let Some(uri) = uri {
        data["uri"] = Value::from(uri);
    }
    if let RefusalKind::TooMany {
        retry_after_ms: Some(later),
    } = failure.kind
    {
        data["retryAfterMs"] = Value::from(later);
    }
    ErrorData::new(code, failure.message.clone(), Some(data))
}

pub(crate) fn unknown_method(method: &str) -> ErrorData {
    ErrorData::new(
        ErrorCode::METHOD_NOT_FOUND,
        format!("unknown method: {}", shortened(method)),
        None,
    )
}
