//! Asking a person before a call removes or overwrites much: by a request of ours while the call waits (revisions up to
//! 2025-11-25), or by a result that names what is missing (2026-07-28).
//!
//! An operation that would do more than the operator allows unasked fails before it changes anything. The question says
//! how much that is. After a plain yes the call runs again from the start and counts again. The answer covers a number,
//! so a call that would now do more asks again.
//!
//! The answer is only the client's word: nothing here proves that a person saw the question.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use ops::{Consent, Planned};
use rmcp::model::{
    InputRequests, InputRequiredResult, JsonObject, RequestStateCodec, RequestStateError,
    SealOptions,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use crate::client::{Answers, Caller};
use crate::contract::Failure;
use crate::deployment::{Allowlist, RootGrant};
use crate::tool::{Definition, PlaceAccess};

/// The request that asks a client to put a question to its user.
pub(crate) const ELICITATION: &str = "elicitation/create";
/// The name of our one question in an input-required result.
const QUESTION: &str = "confirm";
/// The most questions that wait for answers at once.
const WAITING_MAX: usize = 1024;
/// The most places that a question names.
const SHOWN_PLACES: usize = 5;

/// What a root allows without asking a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfirmRule {
    /// How many files a call may remove.
    pub removes: Option<u64>,
    /// How many files a call may overwrite.
    pub overwrites: Option<u64>,
    /// The tools that always ask.
    pub tools: Option<Allowlist>,
}

/// Why a call that needs confirmation does not have it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotConfirmed {
    /// The client cannot ask a person.
    CannotAsk,
    /// Too many questions wait already.
    Busy,
    /// The person said no.
    Declined,
    /// The question was closed without an answer.
    Closed,
    /// The client answered with an error, or with nothing that can be read.
    Unanswered,
    /// The answer came too late.
    Late,
    /// The answer was used before.
    Used,
    /// The state is not ours, or belongs to another client or call.
    Foreign,
}

/// What a call may do unasked, in the roots that it changes. For a move between roots, the source root's limit covers
/// what it removes, and the destination's what it overwrites.
pub(crate) fn consent(grants: &[&RootGrant], definition: &Definition, set: &str) -> Consent {
    let uses = definition.roots.iter().map(|root_use| root_use.access);
    let uses: Vec<(PlaceAccess, &RootGrant)> = uses.zip(grants.iter().copied()).collect();
    let has = |wanted| uses.iter().any(|(access, _)| *access == wanted);
    let (removes, writes) = (has(PlaceAccess::Remove), has(PlaceAccess::Write));
    // A tool with neither knows only while it runs whether it changes anything.
    let changed = uses
        .iter()
        .filter(|(access, _)| *access != PlaceAccess::Read || !(removes || writes));
    changed.fold(Consent::default(), |all, (access, grant)| {
        let Some(rule) = &grant.confirm else {
            return all;
        };
        let is_source = *access == PlaceAccess::Remove && writes;
        let is_target = *access == PlaceAccess::Write && removes;
        let mut tools = rule.tools.iter();
        Consent {
            removes: least(all.removes, rule.removes.filter(|_| !is_target)),
            overwrites: least(all.overwrites, rule.overwrites.filter(|_| !is_source)),
            asks_always: all.asks_always || tools.any(|tools| tools.allows(set, definition.name)),
        }
    })
}

fn least(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    one.into_iter().chain(other).min()
}

/// A call about which a person may have to be asked.
pub(crate) struct AskedCall<'call> {
    pub(crate) set: &'static str,
    pub(crate) tool: &'static str,
    pub(crate) arguments: &'call JsonObject,
    pub(crate) caller: &'call Caller,
}

impl AskedCall<'_> {
    /// The scope of an answer: this client, this tool, these arguments.
    fn binding(&self) -> String {
        let arguments = sorted(Value::Object(self.arguments.clone()));
        let client = (self.caller.owner_name(), &*self.caller.allowance);
        json!(["confirm", self.set, self.tool, client, arguments]).to_string()
    }

    /// The question: what the call would do, and where.
    pub(crate) fn question(&self, planned: Planned, places: &[String]) -> Value {
        let shown = places.iter().take(SHOWN_PLACES);
        let mut shown: Vec<&str> = shown.map(String::as_str).collect();
        if places.len() > SHOWN_PLACES {
            shown.push("…");
        }
        let message = format!(
            "May {} go ahead{}? It would {}.",
            self.tool,
            match shown.is_empty() {
                true => String::new(),
                false => format!(" on {}", shown.join(", ")),
            },
            planned_words(planned)
        );
        json!({
            "mode": "form",
            "message": message,
            "requestedSchema": answer_schema(),
        })
    }
}

/// What a person is asked to fill in.
fn answer_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "confirm": {
                "type": "boolean",
                "title": "Go ahead",
                "description": "Yes lets this one call do it."
            }
        },
        "required": ["confirm"]
    })
}

/// A value whose maps are sorted, so that the same arguments are the same text.
fn sorted(value: Value) -> Value {
    match value {
        Value::Object(map) => {
            let mut entries: Vec<(String, Value)> = map.into_iter().collect();
            entries.sort_by(|(one, _), (other, _)| one.cmp(other));
            let entries = entries.into_iter();
            Value::Object(entries.map(|(name, value)| (name, sorted(value))).collect())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(sorted).collect()),
        other => other,
    }
}

/// The state that a client carries for us while its user decides.
#[derive(Debug, Serialize, Deserialize)]
struct Carried {
    once: String,
    planned: Planned,
}

/// The questions of this process.
#[derive(Debug)]
pub(crate) struct Confirmations {
    /// How long a person may take; the operator may change it while questions wait.
    patience: Mutex<Duration>,
    /// `None` if the system has no randomness; then input-required results cannot be used.
    seal: Option<RequestStateCodec>,
    /// The answers that were used, until they expire by themselves.
    used: Mutex<HashMap<String, Instant>>,
    pub(crate) waiting: Semaphore,
}

impl Confirmations {
    /// No question waits.
    pub(crate) fn new(patience: Duration) -> Confirmations {
        Confirmations {
            patience: Mutex::new(patience),
            seal: random::<32>().and_then(|key| RequestStateCodec::try_new(key).ok()),
            used: Mutex::default(),
            waiting: Semaphore::new(WAITING_MAX),
        }
    }

    /// How long a person may take.
    pub(crate) fn patience(&self) -> Duration {
        *self.patience.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives persons another time from now on.
    pub(crate) fn set_patience(&self, patience: Duration) {
        *self.patience.lock().unwrap_or_else(PoisonError::into_inner) = patience;
    }

    /// The result that ends a call with a question.
    pub(crate) fn input_required(
        &self,
        call: &AskedCall<'_>,
        planned: Planned,
        question: Value,
    ) -> Option<InputRequiredResult> {
        let once = random::<16>()?;
        let carried = Carried {
            once: once.iter().map(|byte| format!("{byte:02x}")).collect(),
            planned,
        };
        let binding = call.binding();
        let options = SealOptions::new()
            .associated_data(binding.as_bytes())
            .ttl(self.patience());
        let sealed = self.seal.as_ref()?.seal_json_with(&carried, &options);
        let request = json!({"method": ELICITATION, "params": question});
        let request = serde_json::from_value(request).ok()?;
        let requests = InputRequests::from([(QUESTION.to_owned(), request)]);
        Some(InputRequiredResult::new(Some(requests), Some(sealed.ok()?)))
    }

    /// What the answer of a client that calls again allows; `None` if it brings no answer.
    pub(crate) fn brought(
        &self,
        call: &AskedCall<'_>,
        answers: &Answers,
    ) -> Result<Option<Planned>, NotConfirmed> {
        let Some(answer) = answers.responses.get(QUESTION) else {
            return Ok(None);
        };
        let seal = self.seal.as_ref().ok_or(NotConfirmed::Foreign)?;
        let opened = seal.open_json_with::<Carried>(&answers.state, call.binding().as_bytes());
        let carried = opened.map_err(|error| match error {
            RequestStateError::Expired => NotConfirmed::Late,
            _ => NotConfirmed::Foreign,
        })?;
        // A no, too, can be used only once.
        if !self.use_once(carried.once) {
            return Err(NotConfirmed::Used);
        }
        judge(answer).map(|()| Some(carried.planned))
    }

    fn use_once(&self, once: String) -> bool {
        let now = Instant::now();
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        // An expired answer is refused anyway. The grace covers the small difference between the clocks of seal and
        // list.
        let forgotten = self.patience().saturating_mul(2);
        used.retain(|_, since| now.duration_since(*since) < forgotten);
        used.insert(once, now).is_none()
    }
}

/// Whether an answer is a plain yes.
pub(crate) fn judge(answer: &Value) -> Result<(), NotConfirmed> {
    match answer.get("action").and_then(Value::as_str) {
        Some("accept") if answer.pointer("/content/confirm") == Some(&Value::Bool(true)) => Ok(()),
        Some("accept" | "decline") => Err(NotConfirmed::Declined),
        Some("cancel") => Err(NotConfirmed::Closed),
        _ => Err(NotConfirmed::Unanswered),
    }
}

fn random<const LENGTH: usize>() -> Option<Vec<u8>> {
    let mut bytes = [0; LENGTH];
    getrandom::fill(&mut bytes).ok()?;
    Some(bytes.to_vec())
}

fn planned_words(planned: Planned) -> String {
    let counted = |verb: &str, count: u64| match count {
        0 => None,
        1 => Some(format!("{verb} 1 file")),
        many => Some(format!("{verb} {many} files")),
    };
    let parts = [
        counted("remove", planned.removes),
        counted("overwrite", planned.overwrites),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    match parts.is_empty() {
        true => "remove and overwrite nothing".to_owned(),
        false => parts.join(" and "),
    }
}

/// The failure in words, the same in every set.
pub(crate) fn not_confirmed_words(
    planned: Planned,
    limits: Consent,
    why: &NotConfirmed,
    tool: &str,
) -> String {
    let nothing = "nothing was changed";
    let again = "call again to ask again";
    match why {
        NotConfirmed::CannotAsk => cannot_ask(planned, limits, tool),
        NotConfirmed::Busy => {
            format!("too many questions wait for an answer already; {nothing}; try again later")
        }
        NotConfirmed::Declined => format!(
            "the person was asked whether to {} and did not agree; {nothing}; do not repeat the call",
            planned_words(planned)
        ),
        NotConfirmed::Closed => format!(
            "the question whether to {} was closed without an answer; {nothing}",
            planned_words(planned)
        ),
        NotConfirmed::Unanswered => {
            format!("the client gave no answer to the question; {nothing}; {again}")
        }
        NotConfirmed::Late => format!("the answer came too late; {nothing}; {again}"),
        NotConfirmed::Used => format!(
            "this answer was used already, and each is good for one call; {nothing}; {again}, without requestState"
        ),
        NotConfirmed::Foreign => format!(
            "requestState does not belong to this call of this client; {nothing}; {again}, without requestState"
        ),
    }
}

/// Says how to stay within the limit, or what the operator can change.
fn cannot_ask(planned: Planned, limits: Consent, tool: &str) -> String {
    let would = planned_words(planned);
    let head = format!(
        "a person has to confirm this call, which would {would}, and this client cannot ask one (it has no elicitation)"
    );
    if limits.asks_always {
        return format!(
            "{head}; {tool} always asks here: use another tool, or let the operator take it out of roots[].confirm"
        );
    }
    match with_less(planned, limits) {
        None => format!("{head}; the operator can change roots[].confirm"),
        Some(less) => format!("{head}; {less}, or let the operator raise roots[].confirm"),
    }
}

/// What would pass unasked, if a smaller call could.
fn with_less(planned: Planned, limits: Consent) -> Option<String> {
    let most = |limit: Option<u64>, count: u64, verb: &str| {
        let limit = limit.filter(|limit| count > *limit && *limit > 0)?;
        Some(format!("{verb} at most {limit} files with one call"))
    };
    let less = [
        most(limits.removes, planned.removes, "remove"),
        most(limits.overwrites, planned.overwrites, "overwrite"),
    ];
    let less: Vec<String> = less.into_iter().flatten().collect();
    (!less.is_empty()).then(|| less.join(" and "))
}

impl Failure {
    /// The failure of a call that a person did not confirm.
    pub(crate) fn not_confirmed(planned: Planned, limits: Consent, why: NotConfirmed) -> Failure {
        Failure::NotConfirmed {
            planned,
            limits,
            why,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    fn answers(state: &str, answer: Value) -> Answers {
        Answers {
            state: state.to_owned(),
            responses: [(QUESTION.to_owned(), answer)].into(),
        }
    }

    fn yes() -> Value {
        json!({"action": "accept", "content": {"confirm": true}})
    }

    fn arguments(path: &str) -> JsonObject {
        let arguments = json!({"root": "a", "path": path});
        arguments.as_object().cloned().unwrap_or_default()
    }

    fn call<'call>(arguments: &'call JsonObject, caller: &'call Caller) -> AskedCall<'call> {
        AskedCall {
            set: "workspace",
            tool: "remove_folder",
            arguments,
            caller,
        }
    }

    fn asked(desk: &Confirmations, call: &AskedCall<'_>) -> String {
        let question = call.question(Planned::removing(30), &["x".to_owned()]);
        let result = desk.input_required(call, Planned::removing(30), question);
        let result = serde_json::to_value(result.unwrap()).unwrap();
        let request = &result["inputRequests"][QUESTION];
        assert_eq!(request["method"], ELICITATION);
        let words = "May remove_folder go ahead on x? It would remove 30 files.";
        assert_eq!(request["params"]["message"], words);
        result["requestState"].as_str().unwrap().to_owned()
    }

    #[test]
    fn an_answer_is_good_once_for_the_same_call_of_the_same_client() {
        let desk = Confirmations::new(Duration::from_secs(60));
        let caller = Caller::default();
        let here = arguments("x");
        let state = asked(&desk, &call(&here, &caller));
        let elsewhere = arguments("y");
        let other = Caller {
            account: Arc::from("other"),
            ..Caller::default()
        };
        let brought =
            |call: AskedCall<'_>, state: &str| desk.brought(&call, &answers(state, yes()));
        assert_eq!(
            brought(call(&elsewhere, &caller), &state),
            Err(NotConfirmed::Foreign)
        );
        assert_eq!(
            brought(call(&here, &other), &state),
            Err(NotConfirmed::Foreign)
        );
        assert_eq!(
            brought(call(&here, &caller), "forged"),
            Err(NotConfirmed::Foreign)
        );
        let reordered = json!({"path": "x", "root": "a"});
        let reordered = reordered.as_object().unwrap();
        let allowed = Some(Planned::removing(30));
        assert_eq!(brought(call(reordered, &caller), &state), Ok(allowed));
        assert_eq!(
            brought(call(&here, &caller), &state),
            Err(NotConfirmed::Used)
        );
        let another = Confirmations::new(Duration::from_secs(60));
        let fresh = asked(&another, &call(&here, &caller));
        assert_eq!(
            brought(call(&here, &caller), &fresh),
            Err(NotConfirmed::Foreign)
        );
    }

    #[test]
    fn only_a_plain_yes_is_one() {
        assert_eq!(judge(&yes()), Ok(()));
        for (answer, why) in [
            (json!({"action": "accept"}), NotConfirmed::Declined),
            (
                json!({"action": "accept", "content": {"confirm": false}}),
                NotConfirmed::Declined,
            ),
            (
                json!({"action": "accept", "content": {"confirm": "true"}}),
                NotConfirmed::Declined,
            ),
            (
                json!({"action": "accept", "content": {"yes": true}}),
                NotConfirmed::Declined,
            ),
            (
                json!({"action": "decline", "content": {"confirm": true}}),
                NotConfirmed::Declined,
            ),
            (json!({"action": "cancel"}), NotConfirmed::Closed),
            (json!({"action": "ACCEPT"}), NotConfirmed::Unanswered),
            (json!("accept"), NotConfirmed::Unanswered),
            (json!(true), NotConfirmed::Unanswered),
        ] {
            assert_eq!(judge(&answer), Err(why), "{answer}");
        }
    }

    #[test]
    fn a_refusal_says_how_to_do_with_less() {
        let limits = Consent {
            removes: Some(20),
            overwrites: Some(0),
            asks_always: false,
        };
        let words = |planned, limits| {
            not_confirmed_words(planned, limits, &NotConfirmed::CannotAsk, "copy")
        };
        let many = words(Planned::removing(57), limits);
        assert!(
            many.contains("would remove 57 files")
                && many.contains("at most 20 files with one call"),
            "{many}"
        );
        let none = words(Planned::overwriting(1), limits);
        assert!(
            none.ends_with("the operator can change roots[].confirm"),
            "{none}"
        );
        let named = words(
            Planned::NOTHING,
            Consent {
                asks_always: true,
                ..limits
            },
        );
        assert!(named.contains("copy always asks here"), "{named}");
    }
}
