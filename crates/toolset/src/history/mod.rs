//! Changes and undo for every set that has them: requests, replies and refusals.

mod changes;
mod refusal;
mod undo;

use std::time::{SystemTime, UNIX_EPOCH};

use jiff::Timestamp;
use ops::{Error, Moment, Place, parse_change_id};

pub(crate) use changes::ChangesReply;
#[cfg(test)]
pub(crate) use refusal::REFUSAL_CODES;
pub(crate) use refusal::refusal_code;
pub use refusal::refusal_words;
pub(crate) use undo::{OneRootArguments, UNDO, UndoChanges, UndoRequest, UndoTool};

use crate::client::{AccountKind, Caller};
use crate::contract::{Contract, NamedPlace};
use crate::tool::Call;

/// How many paths of a change the text names.
const PATHS_TOLD: usize = 5;

/// Identifies a client's own changes: by the subject of its access token, its token, its session, its host, its user at a shell, or this run of its program.
pub(crate) fn account_of(caller: &Caller) -> String {
    // Security: a person and a program whose tokens have the same name are two clients.
    if let Some(subject) = &caller.subject {
        return format!("subject/{subject}");
    }
    let account = &caller.account;
    match caller.account_kind {
        AccountKind::Connection => format!("{}{}", stdio_prefix(caller), run()),
        AccountKind::Shell => format!("shell/{account}"),
        AccountKind::Token => format!("token/{account}"),
        AccountKind::Session => format!("session/{account}"),
        AccountKind::Host => format!("host/{account}"),
    }
}

/// On stdio, a program that is started again is still the same client.
fn stdio_prefix(caller: &Caller) -> String {
    format!("stdio/{}/", caller.program.as_deref().unwrap_or_default())
}

/// Distinguishes this process from earlier ones with the same process id.
fn run() -> &'static str {
    static RUN: std::sync::LazyLock<String> = std::sync::LazyLock::new(|| {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now = now.map_or(0, |now| now.as_millis());
        format!("{:x}-{now:x}", std::process::id())
    });
    &RUN
}

/// Logs that a client named something hidden. It is told the same as of something missing, so the call does not fail.
pub(crate) fn log_if_hidden(
    place: &Place,
    path: &str,
    call: &Call,
    (contract, tool): (&dyn Contract, &'static str),
) {
    let Some(error) = place.hidden() else { return };
    let root = call.root_index.and_then(|index| call.root_infos.get(index));
    let named = NamedPlace {
        root: root.map(|root| root.name.clone()),
        path: Some(path.to_owned()),
    };
    call.record_violation(contract, tool, named, error.into());
}

/// A client as `changes` names it: its program, and the operator's name for its token. Not its address.
pub(crate) fn client_of(caller: &Caller) -> String {
    let program = caller.program.as_deref().unwrap_or("unknown");
    match caller.account_kind {
        AccountKind::Token => format!("{program} ({})", caller.account),
        _ => program.to_owned(),
    }
}

/// Reads a change or a time: `4f2a`, `2026-11-18T14:02:11Z`, or `14:02:11` of the last day.
pub(crate) fn moment(argument: &'static str, text: &str) -> ops::Result<Moment> {
    let time = || {
        let time = text.parse::<Timestamp>().ok().or_else(|| time_of_day(text));
        let time = time.and_then(|time| u64::try_from(time.as_millisecond()).ok());
        time.map(Moment::Time)
    };
    let change = parse_change_id(text).map(Moment::Change);
    change.or_else(time).ok_or_else(|| Error::InvalidArgument {
        argument,
        reason: "expected a change as replies name it, such as 4f2a, or a time such as 2026-11-18T14:02:11Z"
            .to_owned(),
    })
}

/// The most recent moment with this time of day in UTC.
fn time_of_day(text: &str) -> Option<Timestamp> {
    let time: jiff::civil::Time = text.trim_end_matches('Z').parse().ok()?;
    let now = Timestamp::now().to_zoned(jiff::tz::TimeZone::UTC);
    let today = now.with().time(time).build().ok()?;
    let then = if today > now {
        today.yesterday().ok()?.with().time(time).build().ok()?
    } else {
        today
    };
    Some(then.timestamp())
}

/// The first paths of a change, and how many more there are.
fn some_told(told: &[String]) -> String {
    let more = told.len().saturating_sub(PATHS_TOLD);
    let first = told.get(..PATHS_TOLD).unwrap_or(told).join(", ");
    if more > 0 {
        format!("{first} and {more} more")
    } else {
        first
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_changes_or_times() {
        assert_eq!(moment("at", "4f2a").unwrap(), Moment::Change(0x4f2a));
        let time = moment("at", "1970-01-01T00:00:02Z").unwrap();
        assert_eq!(time, Moment::Time(2000));
        assert!(matches!(moment("at", "14:02:11"), Ok(Moment::Time(_))));
        assert!(matches!(moment("at", "00:00:00Z"), Ok(Moment::Time(_))));
        for wrong in ["", "yesterday", "-1", "now"] {
            assert!(moment("at", wrong).is_err(), "{wrong}");
        }
    }
}
