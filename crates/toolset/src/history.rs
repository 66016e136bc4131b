//! Changes and how they are taken back, as every set that has this: what is asked, told and refused.

use std::time::{SystemTime, UNIX_EPOCH};

use jiff::Timestamp;
use ops::{
    Author, ChangeRecord, Diff, Error, Found, Moment, Operation, Part, PartKind, ToldChange,
    ToldChanges, Undo, UndoBy, UndoRefusal, UndoTarget, change_id, parse_change_id,
};
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::client::{AccountKind, Caller};
use crate::deployment::ReplyHalves;
use crate::iso_time::iso_of_ms;
use crate::text_form::{TextLines, shown};
use crate::tool::{Call, RootUse, Tool, ToolEffect};

/// How many paths of a change the text names.
const PATHS_TOLD: usize = 5;
/// How many lines of a file a refusal quotes, and how long each may be.
const LINES_QUOTED: usize = 3;
const LINE_MAX: usize = 120;

/// What tells a client's changes from others': its token, its session, its host, or this run of its program.
pub(crate) fn account_of(caller: &Caller) -> String {
    let account = &caller.account;
    match caller.account_kind {
        AccountKind::Connection => format!("{}{}", stdio_prefix(caller), run()),
        AccountKind::Token => format!("token/{account}"),
        AccountKind::Session => format!("session/{account}"),
        AccountKind::Host => format!("host/{account}"),
    }
}

/// On standard input and output a program that is started again is still the same client.
fn stdio_prefix(caller: &Caller) -> String {
    format!("stdio/{}/", caller.program.as_deref().unwrap_or_default())
}

/// Tells this process from all others that had its number.
fn run() -> &'static str {
    static RUN: std::sync::LazyLock<String> = std::sync::LazyLock::new(|| {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now = now.map_or(0, |now| now.as_millis());
        format!("{:x}-{now:x}", std::process::id())
    });
    &RUN
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

/// The last time when the clock showed this in UTC.
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

fn change_number(argument: &'static str, text: &str) -> ops::Result<u64> {
    parse_change_id(text).ok_or_else(|| Error::InvalidArgument {
        argument,
        reason: "expected a change as replies name it, such as 4f2a".to_owned(),
    })
}

/// What a client asks to take back.
#[derive(Debug, Default)]
pub(crate) struct UndoRequest {
    pub(crate) root: Option<String>,
    pub(crate) change: Option<String>,
    pub(crate) last: Option<bool>,
    pub(crate) path: Option<String>,
    pub(crate) to: Option<String>,
    pub(crate) dry_run: Option<bool>,
}

impl UndoRequest {
    /// Which changes are meant. `path` is resolved by the set.
    fn target(&self, path: Option<String>, caller: &Caller) -> ops::Result<UndoTarget> {
        let wants_last = self.last == Some(true);
        let named = [self.change.is_some(), self.to.is_some(), wants_last];
        let alone = |argument, reason: &str| Error::InvalidArgument {
            argument,
            reason: reason.to_owned(),
        };
        if named.into_iter().filter(|is_named| *is_named).count() > 1 {
            return Err(alone("change", "give one of change, to and last"));
        }
        match (&self.change, &self.to, path) {
            (Some(_), _, Some(_)) => Err(alone(
                "path",
                "a change is undone as a whole; leave out path",
            )),
            (Some(change), _, None) => change_number("change", change).map(UndoTarget::Change),
            (None, Some(to), path) => {
                change_number("to", to).map(|number| UndoTarget::Since(number, path))
            }
            (None, None, Some(_)) if wants_last => {
                Err(alone("last", "leave it out: path alone is its last change"))
            }
            (None, None, Some(path)) => Ok(UndoTarget::LastOfPath(path)),
            (None, None, None) if caller.account_kind == AccountKind::Host => Err(alone(
                "change",
                "it is required: without a session or a token your last change cannot be told from others'",
            )),
            (None, None, None) => Ok(UndoTarget::Last),
        }
    }
}

/// What a set's `undo` takes.
pub(crate) trait UndoTool: Send + Sync + 'static {
    /// What a client sends.
    type Arguments: DeserializeOwned + JsonSchema + Into<UndoRequest> + Send + 'static;

    const DESCRIPTION: &'static str;
    const ROOTS: &'static [RootUse];
    /// The tools that remove, write and move: one of them has to be allowed to undo what needs it.
    const REMOVING: &'static [&'static str];
    const WRITING: &'static [&'static str];
    const MOVING: &'static [&'static str];

    /// The path under which changes of a path are written down.
    fn path(path: &str, call: &Call) -> ops::Result<String>;
}

/// A set's `undo`.
pub(crate) struct UndoChanges<T>(std::marker::PhantomData<fn() -> T>);

/// What was undone, or could be.
#[derive(Serialize, JsonSchema)]
pub(crate) struct UndoReply {
    /// Name of the root.
    #[serde(skip_serializing_if = "Option::is_none")]
    root: Option<String>,
    /// The changes that were undone, newest first.
    undone: Vec<UndoneReply>,
    /// True where nothing was done.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    dry_run: bool,
}

#[derive(Serialize, JsonSchema)]
struct UndoneReply {
    /// Names it.
    change: String,
    /// The tool that made it.
    tool: String,
    /// What it had changed.
    paths: Vec<String>,
}

impl<T: UndoTool> Tool for UndoChanges<T> {
    type Arguments = T::Arguments;
    type Reply = UndoReply;

    const NAME: &'static str = "undo";
    const TITLE: &'static str = "Undo changes";
    const DESCRIPTION: &'static str = T::DESCRIPTION;
    const EFFECT: ToolEffect = ToolEffect::Write {
        destructive: false,
        idempotent: false,
    };
    const ROOTS: &'static [RootUse] = T::ROOTS;

    fn run(arguments: T::Arguments, call: &Call) -> ops::Result<UndoReply> {
        let request: UndoRequest = arguments.into();
        let path = request.path.as_deref();
        let path = path.map(|path| T::path(path, call)).transpose()?;
        let target = request.target(path, &call.caller)?;
        let is_rehearsal = request.dry_run.unwrap_or(false);
        let undo = Undo {
            root: call.root()?,
            target,
            by: undo_by(&call.caller),
            forbids: forbids::<T>,
            tools: call.allowed_tools().to_vec(),
            is_rehearsal,
        };
        let undone = undo.run(&call.context)?;
        Ok(UndoReply {
            root: request.root,
            undone: undone.changes.iter().map(undone_reply).collect(),
            dry_run: is_rehearsal,
        })
    }

    fn text(reply: &UndoReply, _replies: ReplyHalves) -> Option<String> {
        let mut text = TextLines::default();
        let verb = if reply.dry_run { "would undo" } else { "undid" };
        for one in &reply.undone {
            text.line(format_args!(
                "{verb} {}: {} {}",
                one.change,
                one.tool,
                some_paths(one.paths.iter().map(String::as_str))
            ));
        }
        Some(text.finish())
    }
}

fn undo_by(caller: &Caller) -> UndoBy {
    UndoBy::Account {
        account: account_of(caller),
        before: (caller.account_kind == AccountKind::Connection && caller.program.is_some())
            .then(|| stdio_prefix(caller)),
    }
}

fn forbids<T: UndoTool>(tools: &[&str], kind: PartKind) -> bool {
    let needed = match kind {
        PartKind::Create | PartKind::MakeDir => T::REMOVING,
        PartKind::Move => T::MOVING,
        PartKind::Replace
        | PartKind::Append
        | PartKind::Cut
        | PartKind::Remove
        | PartKind::RemoveDir => T::WRITING,
    };
    !needed.iter().any(|tool| tools.contains(tool))
}

fn undone_reply(record: &ChangeRecord) -> UndoneReply {
    UndoneReply {
        change: change_id(record.number),
        tool: record.author.tool.clone(),
        paths: paths_of(record).map(str::to_owned).collect(),
    }
}

/// The paths that a change is about, without directories that were made on the way.
fn paths_of(record: &ChangeRecord) -> impl Iterator<Item = &str> {
    let only_dirs = record.made().all(|part| part.kind == PartKind::MakeDir);
    let parts = record.made();
    let parts = parts.filter(move |part| only_dirs || part.kind != PartKind::MakeDir);
    parts.flat_map(|part| {
        [Some(part.path.as_str()), part.to.as_deref()]
            .into_iter()
            .flatten()
    })
}

fn some_paths<'path>(paths: impl Iterator<Item = &'path str>) -> String {
    let all: Vec<&str> = paths.collect();
    let first: Vec<_> = all
        .iter()
        .take(PATHS_TOLD)
        .map(|path| shown(path))
        .collect();
    let more = all.len().saturating_sub(PATHS_TOLD);
    let more = if more > 0 {
        format!(" and {more} more")
    } else {
        String::new()
    };
    format!("{}{more}", first.join(", "))
}

/// Changes, the newest first.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ChangesReply {
    /// Name of the root.
    #[serde(skip_serializing_if = "Option::is_none")]
    root: Option<String>,
    /// Newest first.
    changes: Vec<ChangeReply>,
    /// True where older ones fit too.
    more: bool,
}

#[derive(Serialize, JsonSchema)]
struct ChangeReply {
    /// Names it.
    change: String,
    /// When, in UTC.
    time: String,
    /// The tool that made it.
    tool: String,
    /// Who made it.
    client: String,
    /// What it did.
    parts: Vec<PartReply>,
    /// How many lines came, where that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    added: Option<u64>,
    /// How many lines went.
    #[serde(skip_serializing_if = "Option::is_none")]
    removed: Option<u64>,
    /// The changes that it took back.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    undoes: Vec<String>,
    /// The change that took it back.
    #[serde(skip_serializing_if = "Option::is_none")]
    undone_by: Option<String>,
    /// With diff: true, unified diffs.
    #[serde(skip_serializing_if = "Option::is_none")]
    diff: Option<String>,
    /// True where the diff is not complete.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    truncated: bool,
}

#[derive(Serialize, JsonSchema)]
struct PartReply {
    /// create, replace, append, cut, remove, move, make_dir or remove_dir.
    kind: &'static str,
    /// The path, relative to the root.
    path: String,
    /// Where it was moved.
    #[serde(skip_serializing_if = "Option::is_none")]
    to: Option<String>,
    /// True where it cannot be undone.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    not_kept: bool,
}

impl ChangesReply {
    pub(crate) fn new(root: Option<String>, told: ToldChanges, with_diffs: bool) -> ChangesReply {
        let changes = told.changes.into_iter();
        ChangesReply {
            root,
            changes: changes.map(|one| change_reply(one, with_diffs)).collect(),
            more: told.more,
        }
    }

    pub(crate) fn text(&self) -> String {
        let mut text = TextLines::default();
        for change in &self.changes {
            text.line(change.line());
            if let Some(diff) = &change.diff {
                text.line(diff.trim_end_matches('\n'));
            }
        }
        if self.changes.is_empty() {
            text.line("no changes");
        }
        if self.more {
            text.note("older ones follow; raise limit, or name a path or client");
        }
        if self
            .changes
            .iter()
            .any(|change| change.truncated && change.diff.is_some())
        {
            text.note("diffs are cut; use read_file and compare with at");
        }
        text.finish()
    }
}

impl ChangeReply {
    fn line(&self) -> String {
        let lines = self.added.zip(self.removed);
        let lines = lines.map_or(String::new(), |(came, went)| format!(" (+{came} -{went})"));
        let undoes = match self.undoes.as_slice() {
            [] => String::new(),
            undoes => format!(" {} of", undoes.join(" ")),
        };
        let undone = self.undone_by.as_ref();
        let undone = undone.map_or(String::new(), |by| format!(", undone by {by}"));
        format!(
            "{} {} {}{undoes} {}{lines} by {}{undone}",
            self.change,
            short_time(&self.time),
            self.tool,
            self.parts_told(),
            shown(&self.client)
        )
    }

    fn parts_told(&self) -> String {
        let only_dirs = self.parts.iter().all(|part| part.kind == "make_dir");
        let told = self.parts.iter();
        let told: Vec<String> = told
            .filter(|part| only_dirs || part.kind != "make_dir")
            .map(PartReply::told)
            .collect();
        some_told(&told)
    }
}

impl PartReply {
    fn told(&self) -> String {
        let path = shown(&self.path);
        let lost = if self.not_kept { " (not kept)" } else { "" };
        match &self.to {
            Some(to) => format!("{path} -> {}{lost}", shown(to)),
            None => format!("{path}{lost}"),
        }
    }
}

fn some_told(told: &[String]) -> String {
    let more = told.len().saturating_sub(PATHS_TOLD);
    let first = told.get(..PATHS_TOLD).unwrap_or(told).join(", ");
    if more > 0 {
        format!("{first} and {more} more")
    } else {
        first
    }
}

/// A time of today without its date.
fn short_time(iso: &str) -> &str {
    let now = Timestamp::now().to_string();
    match iso.split_once('T') {
        Some((day, time)) if now.starts_with(day) => time,
        _ => iso,
    }
}

fn change_reply(told: ToldChange, with_diffs: bool) -> ChangeReply {
    let Author {
        time,
        client,
        tool,
        undoes,
        ..
    } = &told.record.author;
    let diff = told.diff.as_ref();
    ChangeReply {
        change: told.id(),
        time: iso_of_ms(*time),
        tool: tool.clone(),
        client: client.clone(),
        parts: told.parts().map(part_reply).collect(),
        added: diff.map(|diff| diff.added),
        removed: diff.map(|diff| diff.removed),
        undoes: undoes.iter().map(|number| change_id(*number)).collect(),
        undone_by: told.undone_by.map(change_id),
        diff: diff.filter(|_| with_diffs).map(|diff| diff.text.clone()),
        truncated: with_diffs && diff.is_some_and(|diff| diff.truncated),
    }
}

fn part_reply(part: &Part) -> PartReply {
    PartReply {
        kind: kind_word(part.kind),
        path: part.path.clone(),
        to: part.to.clone(),
        not_kept: part.lost,
    }
}

fn kind_word(kind: PartKind) -> &'static str {
    match kind {
        PartKind::Create => "create",
        PartKind::Replace => "replace",
        PartKind::Append => "append",
        PartKind::Cut => "cut",
        PartKind::Remove => "remove",
        PartKind::Move => "move",
        PartKind::MakeDir => "make_dir",
        PartKind::RemoveDir => "remove_dir",
    }
}

/// The code of a refusal, in every set.
pub(crate) fn refusal_code(refusal: &UndoRefusal) -> &'static str {
    match refusal {
        UndoRefusal::NoHistory | UndoRefusal::Unknown | UndoRefusal::NothingLeft => "not_found",
        UndoRefusal::Gone { .. } => "gone",
        UndoRefusal::Conflict { .. }
        | UndoRefusal::AlreadyUndone(_)
        | UndoRefusal::Together(_)
        | UndoRefusal::UnderWay => "version_conflict",
        UndoRefusal::Foreign(_) | UndoRefusal::Forbidden { .. } => "permission_denied",
        UndoRefusal::Failed { .. } => "io_error",
    }
}

/// Says why a change was not undone, or why what it left cannot be told.
#[must_use]
pub fn refusal_words(refusal: &UndoRefusal) -> String {
    match refusal {
        UndoRefusal::NoHistory => {
            "no history is kept here, so nothing can be undone or seen as it was".to_owned()
        }
        UndoRefusal::Unknown => {
            "there is no such change here; replies name changes (undo: ID)".to_owned()
        }
        UndoRefusal::NothingLeft => {
            "nothing to undo: no change of yours is left; name one with change".to_owned()
        }
        UndoRefusal::Gone { path: None } => {
            "gone: that is older than what the history keeps".to_owned()
        }
        UndoRefusal::Gone { path: Some(path) } => {
            format!("gone: what {path} was is not kept any more")
        }
        UndoRefusal::Conflict {
            change,
            path,
            found,
            since,
            diff,
        } => {
            let refused = match since {
                Some(since) => changed_by(*change, path, since, diff.as_ref()),
                None => changed_by_others(path, *found),
            };
            quoting(refused, diff.as_ref())
        }
        UndoRefusal::AlreadyUndone(by) => {
            let by = change_id(*by);
            format!("it was undone already, by {by}; undo {by} to make it again")
        }
        UndoRefusal::Together(form) => {
            let form = change_id(*form);
            format!(
                "it was made again together with others, by {form}; undo {form}, or to: a change"
            )
        }
        UndoRefusal::Foreign(record) => format!(
            "{} was made by {}, and you may undo only your own changes; nothing was undone",
            change_id(record.number),
            named(record)
        ),
        UndoRefusal::Forbidden { kind, path } => {
            let what = match kind {
                PartKind::Create | PartKind::MakeDir => "removes",
                PartKind::Move => "moves back",
                _ => "writes",
            };
            format!(
                "undoing it {what} {path}, which no tool allowed here may do; nothing was undone"
            )
        }
        UndoRefusal::UnderWay => "the change is still under way; try again in a moment".to_owned(),
        UndoRefusal::Failed { path, reason } => format!("{path}: {reason}; nothing was undone"),
    }
}

fn changed_by(change: u64, path: &str, since: &ChangeRecord, diff: Option<&Diff>) -> String {
    let (change, later) = (change_id(change), change_id(since.number));
    let lines = diff.map_or(String::new(), |diff| {
        format!(" (+{} -{})", diff.added, diff.removed)
    });
    format!(
        "{path} was changed since by {}: {later} {}{lines}; undo {later} first, or all together with to: {change}; \
         nothing was undone",
        named(since),
        since.author.tool
    )
}

fn changed_by_others(path: &str, found: Found) -> String {
    let what = match found {
        Found::Changed => "was changed since by another program",
        Found::Missing => "is not where the change left it",
        Found::Occupied => "is taken: something else is there now",
        Found::NotEmpty => "is a directory that is not empty any more",
    };
    format!("{path} {what}; look at it before you change it; nothing was undone")
}

/// Adds the first lines that were changed since.
fn quoting(mut message: String, diff: Option<&Diff>) -> String {
    let text = diff.map_or("", |diff| diff.text.as_str());
    let is_changed = |line: &&str| {
        line.starts_with(['+', '-']) && !line.starts_with("+++ ") && !line.starts_with("--- ")
    };
    for line in text.lines().filter(is_changed).take(LINES_QUOTED) {
        message.push('\n');
        message.push_str(&ops::truncated(line, LINE_MAX));
    }
    message
}

fn named(record: &ChangeRecord) -> &str {
    match record.author.client.as_str() {
        "" => "somebody",
        client => client,
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

    #[test]
    fn a_request_names_one_thing() {
        let caller = Caller::default();
        let target = |request: UndoRequest, path: Option<&str>| {
            request.target(path.map(str::to_owned), &caller)
        };
        let of = |change: Option<&str>, to: Option<&str>, last| UndoRequest {
            change: change.map(str::to_owned),
            to: to.map(str::to_owned),
            last,
            ..UndoRequest::default()
        };
        assert_eq!(
            target(of(Some("a"), None, None), None).unwrap(),
            UndoTarget::Change(10)
        );
        assert_eq!(
            target(of(None, None, Some(true)), None).unwrap(),
            UndoTarget::Last
        );
        assert_eq!(
            target(of(None, Some("a"), None), Some("f")).unwrap(),
            UndoTarget::Since(10, Some("f".to_owned()))
        );
        for wrong in [
            target(of(Some("a"), Some("b"), None), None),
            target(of(Some("a"), None, Some(true)), None),
            target(of(Some("a"), None, None), Some("f")),
            target(of(Some(""), None, None), None),
            target(of(None, Some("x"), None), None),
        ] {
            assert!(wrong.is_err(), "{wrong:?}");
        }
    }
}
