//! A request that is refused before it becomes a call: what its sender is told, and why for the operator.

use hyper::StatusCode;
use hyper::header::{ALLOW, HeaderValue, RETRY_AFTER};
use mcp::headers::HeaderFault;

use super::answers::{self, HttpReply};

/// A refused request.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) status: StatusCode,
    /// Why, with what to configure if that helps. The sender is told too, unless it gets a message of the protocol.
    pub(crate) reason: String,
    form: RefusalForm,
    /// Whether the sender tried to reach something that exists, but not for it.
    pub(super) is_violation: bool,
}

/// How the sender is told.
#[derive(Debug, PartialEq, Eq)]
enum RefusalForm {
    /// The reason as plain text.
    Text,
    /// The reason as plain text, and the methods that are allowed.
    Methods(&'static str),
    /// A JSON-RPC message.
    Message(Vec<u8>),
}

impl Refusal {
    pub(crate) fn new(status: StatusCode, reason: String) -> Refusal {
        Refusal {
            status,
            reason,
            form: RefusalForm::Text,
            is_violation: false,
        }
    }

    pub(super) fn bad_request(reason: &str) -> Refusal {
        Refusal::new(StatusCode::BAD_REQUEST, format!("Bad Request: {reason}"))
    }

    /// Refuses a body with a JSON-RPC message.
    pub(super) fn message(reason: String, message: Vec<u8>) -> Refusal {
        Refusal {
            form: RefusalForm::Message(message),
            ..Refusal::new(StatusCode::BAD_REQUEST, reason)
        }
    }

    /// Refuses a method and lists those that are allowed.
    pub(super) fn method(allowed: &'static str) -> Refusal {
        let reason = format!("Method Not Allowed: use {allowed}");
        Refusal {
            form: RefusalForm::Methods(allowed),
            ..Refusal::new(StatusCode::METHOD_NOT_ALLOWED, reason)
        }
    }

    /// Marks it as an attempt to reach something that exists, but not for the sender.
    pub(super) fn with_violation(self, is_violation: bool) -> Refusal {
        Refusal {
            is_violation,
            ..self
        }
    }

    /// What the sender gets.
    pub(super) fn into_reply(self) -> HttpReply {
        let mut reply = match self.form {
            RefusalForm::Message(message) => return answers::json(self.status, message),
            RefusalForm::Text | RefusalForm::Methods(_) => answers::text(self.status, self.reason),
        };
        let headers = reply.headers_mut();
        if let RefusalForm::Methods(allowed) = self.form {
            headers.insert(ALLOW, HeaderValue::from_static(allowed));
        }
        let later = [
            StatusCode::SERVICE_UNAVAILABLE,
            StatusCode::TOO_MANY_REQUESTS,
        ];
        if later.contains(&self.status) {
            headers.insert(RETRY_AFTER, HeaderValue::from_static("5"));
        }
        reply
    }
}

impl From<HeaderFault> for Refusal {
    fn from(fault: HeaderFault) -> Refusal {
        match fault {
            HeaderFault::Text(reason) => Refusal::new(StatusCode::BAD_REQUEST, reason),
            HeaderFault::Message { reason, reply } => Refusal::message(reason, reply),
        }
    }
}

impl From<mcp::Refused> for Refusal {
    fn from(refused: mcp::Refused) -> Refusal {
        Refusal::message(refused.reason().to_owned(), refused.reply())
    }
}
