//! The tool `undo` of every set that has it.

use ops::{
    ChangeRecord, Error, Operation, PartKind, Undo, UndoBy, UndoTarget, change_id, parse_change_id,
};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::{account_of, some_told, stdio_prefix};
use crate::client::{AccountKind, Caller};
use crate::deployment::ReplyHalves;
use crate::text_form::{TextLines, shown};
use crate::tool::{Call, RootUse, Tool, ToolEffect};

/// What every set calls the tool.
pub(crate) const UNDO: &str = "undo";

/// What a client asks to undo.
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

/// What a client of a set with one root sends.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct OneRootArguments {
    change: Option<String>,
    last: Option<bool>,
    /// The last change of this path.
    path: Option<String>,
    /// This change and all after it (with path: of that path).
    to: Option<String>,
    dry_run: Option<bool>,
}

impl From<OneRootArguments> for UndoRequest {
    fn from(arguments: OneRootArguments) -> UndoRequest {
        UndoRequest {
            root: None,
            change: arguments.change,
            last: arguments.last,
            path: arguments.path,
            to: arguments.to,
            dry_run: arguments.dry_run,
        }
    }
}

/// What a set's `undo` takes.
pub(crate) trait UndoTool: Send + Sync + 'static {
    /// What a client sends.
    type Arguments: DeserializeOwned + JsonSchema + Into<UndoRequest> + Send + 'static;

    const DESCRIPTION: &'static str = "Undoes a change, your last one if none is named: all of it or nothing. \
        Undoing an undo makes the change again.";
    const ROOTS: &'static [RootUse];
    /// The tools that remove, write and move: one of them has to be allowed to undo what needs it. A test fails if a
    /// tool that changes files is in none of them.
    const REMOVING: &'static [&'static str];
    const WRITING: &'static [&'static str];
    const MOVING: &'static [&'static str];

    /// The path under which the history records changes of a path.
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
    /// True if nothing was done.
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

    const NAME: &'static str = UNDO;
    const TITLE: &'static str = "Undo changes";
    const DESCRIPTION: &'static str = T::DESCRIPTION;
    const CONTENT: &'static [&'static str] = &[];
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
            others: call.other_roots.clone(),
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
            let paths: Vec<String> = one
                .paths
                .iter()
                .map(|path| shown(path).into_owned())
                .collect();
            text.line(format_args!(
                "{verb} {}: {} {}",
                one.change,
                one.tool,
                some_told(&paths)
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

fn change_number(argument: &'static str, text: &str) -> ops::Result<u64> {
    parse_change_id(text).ok_or_else(|| Error::InvalidArgument {
        argument,
        reason: "expected a change as replies name it, such as 4f2a".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tools that only add something, so that no undo needs them, and `undo` itself.
    const ADDING: [&str; 4] = ["copy", "create_folder", "mkdir", "undo"];

    fn changing_tools_are_listed<T: UndoTool>(set: &crate::tool::ToolSet) {
        let listed = [T::REMOVING, T::WRITING, T::MOVING].concat();
        let definitions = set.tools.iter().map(|tool| tool.definition());
        let changing = definitions.filter(|tool| tool.effect != ToolEffect::Read);
        let names: Vec<&str> = changing.map(|tool| tool.name).collect();
        for name in &names {
            let is_known = listed.contains(name) || ADDING.contains(name);
            assert!(is_known, "{name} changes files, and undo does not know how");
        }
        for name in listed {
            assert!(names.contains(&name), "there is no tool {name}");
        }
    }

    #[test]
    fn undo_knows_every_tool_that_changes_files() {
        changing_tools_are_listed::<crate::workspace::UndoWork>(&crate::workspace::toolset());
        changing_tools_are_listed::<crate::files::UndoWork>(&crate::files::toolset());
        changing_tools_are_listed::<crate::memory::UndoWork>(&crate::memory::toolset(true));
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
