//! The revisions of the protocol: which one applies to a request, and what follows from that. Decided here and nowhere
//! else.
//!
//! Up to 2025-11-25 a client greets (`initialize`) and the revision is agreed on once. From 2026-07-28 on every request
//! introduces its client in `_meta`.

use rmcp::model::{
    ClientCapabilities, ErrorData, InitializeRequestParams, JsonObject, ProgressToken,
    ProtocolVersion,
};
use serde::Deserialize;
use serde_json::Value;
use toolset::TraceContext;

use crate::message::Params;
use crate::result::{Links, Wording};

/// The revision of an HTTP request that names none.
pub(crate) const UNSAID: ProtocolVersion = ProtocolVersion::V_2025_03_26;

const REVISION: &str = "io.modelcontextprotocol/protocolVersion";
const CLIENT: &str = "io.modelcontextprotocol/clientInfo";
const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
const PROGRESS: &str = "progressToken";

/// The method by which a client begins, up to 2025-11-25.
pub(crate) const INITIALIZE: &str = "initialize";
/// The method by which a client asks what is offered, before anything is agreed on.
pub(crate) const DISCOVER: &str = "server/discover";
const PING: &str = "ping";

/// What a client said about itself in `initialize`.
#[derive(Debug, Clone)]
pub(crate) struct Greeting {
    /// The revision that was agreed on.
    pub(crate) revision: ProtocolVersion,
    /// What the client calls itself.
    pub(crate) client: Option<ClientName>,
    /// Whether it can be asked to let its model answer.
    pub(crate) samples: bool,
    /// Whether the client can put a question to its user.
    pub(crate) elicits: bool,
    /// Whether it can be asked which directories it works in.
    pub(crate) has_roots: bool,
}

impl Greeting {
    /// A client that has not greeted and names a revision in a header of each request.
    pub(crate) fn unsaid(revision: ProtocolVersion) -> Greeting {
        Greeting {
            revision,
            client: None,
            samples: false,
            elicits: false,
            has_roots: false,
        }
    }

    /// Reads `initialize`.
    pub(crate) fn of(params: &InitializeRequestParams) -> Greeting {
        Greeting {
            revision: negotiated(&params.protocol_version),
            client: Some(ClientName {
                program: params.client_info.name.clone(),
                version: params.client_info.version.clone(),
            }),
            samples: params.capabilities.sampling.is_some(),
            elicits: elicits(&params.capabilities),
            has_roots: params.capabilities.roots.is_some(),
        }
    }
}

/// What a connection has agreed on with its client so far.
#[derive(Debug, Clone, Default)]
pub(crate) struct Lifecycle {
    /// What the client said when it greeted.
    pub(crate) greeting: Option<Greeting>,
    /// Whether the client began without `initialize` and introduces itself in every request.
    pub(crate) introduces_itself: bool,
}

impl Lifecycle {
    fn is_new(&self) -> bool {
        self.greeting.is_none() && !self.introduces_itself
    }
}

/// What a request says in its `_meta`.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Meta<'request>(pub(crate) Option<&'request JsonObject>);

impl<'request> Meta<'request> {
    fn get(self, key: &str) -> Option<&'request Value> {
        toolset::field(self.0?, key)
    }

    /// The revision it names.
    pub(crate) fn revision(self) -> Option<&'request str> {
        self.get(REVISION)?.as_str()
    }

    /// Whether it introduces its client in a revision that has no greetings.
    fn is_newest(self) -> bool {
        self.revision().is_some_and(is_newest_name)
    }

    fn capabilities(self) -> Option<ClientCapabilities> {
        ClientCapabilities::deserialize(self.get(CAPABILITIES)?).ok()
    }

    /// What its client calls itself.
    pub(crate) fn client(self) -> Option<ClientName> {
        let client = self.get(CLIENT)?;
        let text = |key| Some(client.get(key)?.as_str()?.to_owned());
        Some(ClientName {
            program: text("name")?,
            version: text("version")?,
        })
    }

    /// The token under which its client wants progress.
    pub(crate) fn progress(self) -> Option<ProgressToken> {
        ProgressToken::deserialize(self.get(PROGRESS)?).ok()
    }

    /// The trace that it belongs to.
    pub(crate) fn trace(self) -> Option<TraceContext> {
        let text = |key| self.get(key).and_then(Value::as_str);
        TraceContext::new(text("traceparent"), text("tracestate"))
    }

    /// Whether it has the fields that introduce a client.
    pub(crate) fn introduces(self) -> bool {
        self.revision().is_some() && self.capabilities().is_some()
    }

    /// Which of the fields that introduce a client it lacks.
    fn missing(self) -> Vec<&'static str> {
        let mut missing = Vec::new();
        if self.revision().is_none() {
            missing.push(REVISION);
        }
        if self.capabilities().is_none() {
            missing.push(CAPABILITIES);
        }
        missing
    }

    /// What is wrong with a request that should introduce its client.
    pub(crate) fn check_introduction(self) -> Result<(), String> {
        let missing = self.missing();
        if missing.is_empty() {
            return Ok(());
        }
        Err(format!(
            "request _meta is missing or has malformed required fields: {}",
            missing.join(", ")
        ))
    }
}

/// What a client calls itself (`clientInfo`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ClientName {
    /// The name of its program.
    pub(crate) program: String,
    version: String,
}

impl ClientName {
    /// Name and version as the log shows them.
    pub(crate) fn shown(&self) -> String {
        format!("{}/{}", self.program, self.version)
    }
}

/// What is agreed on for one request.
#[derive(Debug, Clone)]
pub(crate) struct Agreed {
    revision: ProtocolVersion,
    /// Whether the request belongs to a client that greeted, or should have.
    pub(crate) is_legacy: bool,
    /// Whether the client can be asked to let its model answer.
    pub(crate) samples: bool,
    /// Whether the client can put a question to its user.
    pub(crate) elicits: bool,
}

impl Agreed {
    /// Whether the client is asked by results instead of requests of ours.
    pub(crate) fn is_newest(&self) -> bool {
        is_newest(&self.revision)
    }

    /// How its reply is worded.
    pub(crate) fn wording(&self) -> Wording {
        if self.is_newest() {
            Wording::Newest
        } else {
            Wording::Older
        }
    }

    /// Whether its replies may have links to resources.
    pub(crate) fn links(&self) -> Links {
        if self.revision.as_str() >= ProtocolVersion::V_2025_06_18.as_str() {
            Links::Known
        } else {
            Links::Unknown
        }
    }
}

/// Whether a revision is the newest or an unknown later one.
pub(crate) fn is_newest(revision: &ProtocolVersion) -> bool {
    !revision.has_initialize()
}

/// Whether the revision of this name is the newest or an unknown later one.
pub(crate) fn is_newest_name(name: &str) -> bool {
    is_newest(&named(name))
}

/// Whether a message greets. A client that introduces itself instead of what a greeting says has no use for `initialize`.
pub(crate) fn greets(method: Option<&str>, params: &Params) -> bool {
    let says_revision = || params.get("protocolVersion").is_some();
    method == Some(INITIALIZE) && (says_revision() || !Meta(params.meta()).is_newest())
}

/// Whether a request belongs to a client that greeted, or should have.
pub(crate) fn is_legacy(greets: bool, is_introduced: bool, revision: &ProtocolVersion) -> bool {
    greets || !(is_introduced || is_newest(revision))
}

/// Decides which revision a request is made in, and whether it says what that revision wants.
pub(crate) fn agree(
    method: &str,
    greets: bool,
    meta: Meta<'_>,
    lifecycle: &Lifecycle,
) -> Result<Agreed, ErrorData> {
    let greeting = lifecycle.greeting.as_ref();
    if greets || (method == PING && lifecycle.is_new()) {
        return Ok(Agreed {
            revision: ProtocolVersion::LATEST_WITH_INITIALIZE,
            is_legacy: true,
            samples: false,
            elicits: false,
        });
    }
    let named = meta.revision().map(known).transpose()?;
    let introduces_itself = method == DISCOVER
        || lifecycle.introduces_itself
        || lifecycle.is_new()
        || named.as_ref().is_some_and(is_newest);
    if introduces_itself {
        let introduced = meta.check_introduction();
        introduced.map_err(|fault| ErrorData::invalid_params(fault, None))?;
    }
    let revision = named.or_else(|| greeting.map(|greeting| greeting.revision.clone()));
    let revision = revision.unwrap_or(UNSAID);
    let own = meta.capabilities();
    let able = |own: Option<bool>, earlier: fn(&Greeting) -> bool| {
        let greeted = greeting.filter(|_| !lifecycle.introduces_itself);
        own.unwrap_or_else(|| greeted.is_some_and(earlier))
    };
    Ok(Agreed {
        is_legacy: is_legacy(greets, introduces_itself, &revision),
        samples: able(own.as_ref().map(|own| own.sampling.is_some()), |greeting| {
            greeting.samples
        }),
        elicits: able(own.as_ref().map(elicits), |greeting| greeting.elicits),
        revision,
    })
}

/// Whether a client can show its user a form. A client that names no mode can.
fn elicits(capabilities: &ClientCapabilities) -> bool {
    let elicitation = capabilities.elicitation.as_ref();
    elicitation.is_some_and(|modes| modes.form.is_some() || modes.url.is_none())
}

/// A revision by its name.
fn known(name: &str) -> Result<ProtocolVersion, ErrorData> {
    let known = ProtocolVersion::KNOWN_VERSIONS;
    found(name).ok_or_else(|| ErrorData::unsupported_protocol_version(named(name), known))
}

fn found(name: &str) -> Option<ProtocolVersion> {
    let mut known = ProtocolVersion::KNOWN_VERSIONS.iter();
    known.find(|known| known.as_str() == name).cloned()
}

/// The names of the revisions that are served, the oldest first.
#[must_use]
pub fn known_revisions() -> Vec<&'static str> {
    let known = ProtocolVersion::KNOWN_VERSIONS.iter();
    known.map(ProtocolVersion::as_str).collect()
}

/// Whether a revision of this name is served.
pub(crate) fn is_known(name: &str) -> bool {
    found(name).is_some()
}

/// A revision by its name, whether it is known or not.
pub(crate) fn named(name: &str) -> ProtocolVersion {
    // Any text can be a revision.
    let unknown = || ProtocolVersion::deserialize(Value::from(name)).unwrap_or(UNSAID);
    found(name).unwrap_or_else(unknown)
}

/// The revision that `initialize` is answered with: the client's own, or the newest that still has `initialize`.
fn negotiated(asked: &ProtocolVersion) -> ProtocolVersion {
    if asked.has_initialize() && is_known(asked.as_str()) {
        return asked.clone();
    }
    ProtocolVersion::LATEST_WITH_INITIALIZE
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn meta(revision: &str, capabilities: &Value) -> Value {
        json!({ REVISION: revision, CAPABILITIES: capabilities })
    }

    fn agreed(method: &str, meta: &Value, lifecycle: &Lifecycle) -> Result<Agreed, ErrorData> {
        let meta = Meta(meta.as_object());
        agree(method, method == INITIALIZE, meta, lifecycle)
    }

    fn greeted(revision: ProtocolVersion) -> Lifecycle {
        Lifecycle {
            greeting: Some(Greeting::unsaid(revision)),
            introduces_itself: false,
        }
    }

    #[test]
    fn a_greeting_is_answered_with_a_revision_that_has_greetings() {
        for known in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
            assert_eq!(negotiated(&named(known)).as_str(), known);
        }
        for other in ["2026-07-28", "2099-01-01", "1.0", ""] {
            assert_eq!(negotiated(&named(other)).as_str(), "2025-11-25", "{other}");
        }
    }

    #[test]
    fn a_request_of_a_greeted_client_needs_no_introduction() {
        let lifecycle = greeted(ProtocolVersion::V_2025_06_18);
        let own = agreed("tools/call", &json!({}), &lifecycle).unwrap();
        assert!(own.is_legacy);
        assert!(!own.is_newest());
        let newest = meta("2026-07-28", &json!({ "sampling": {} }));
        let own = agreed("tools/call", &newest, &lifecycle).unwrap();
        assert!(!own.is_legacy);
        assert!(own.samples);
    }

    #[test]
    fn a_client_that_did_not_greet_introduces_itself() {
        let new = Lifecycle::default();
        assert!(agreed("ping", &json!({}), &new).is_ok());
        assert!(agreed("initialize", &json!({}), &new).is_ok());
        let fault = agreed("tools/call", &json!({}), &new).unwrap_err();
        assert!(fault.message.contains(CAPABILITIES), "{}", fault.message);
        let introduced = meta("2026-07-28", &json!({}));
        assert!(agreed("tools/call", &introduced, &new).unwrap().is_newest());
        let odd = meta("2026-07-28", &json!([]));
        assert!(agreed("tools/call", &odd, &new).is_err());
    }

    #[test]
    fn an_unknown_revision_is_refused_with_those_that_are_known() {
        let fault = agreed(
            "tools/list",
            &meta("1.0", &json!({})),
            &Lifecycle::default(),
        );
        let data = fault.unwrap_err().data.expect("data");
        assert_eq!(data["requested"], "1.0");
        assert_eq!(data["supported"].as_array().map(Vec::len), Some(5));
    }
}
