//! `changes`: what was changed, when and by whom.

use ops::{DiffWish, ListChanges, Operation};
use schemars::JsonSchema;
use serde::Deserialize;

use super::errors::Workspace;
use crate::deployment::ReplyHalves;
use crate::history::{ChangesReply, log_if_hidden, moment};
use crate::search_bounds::here;
use crate::tool::{Call, RootUse, Tool, ToolEffect, Weight};

/// The most changes of one reply.
const LIMIT: usize = 1000;

pub(super) struct Changes;

#[derive(Deserialize, JsonSchema)]
pub(super) struct Arguments {
    /// A name from list_roots.
    root: String,
    #[serde(default = "here")]
    path: String,
    /// A change or a time.
    since: Option<String>,
    client: Option<String>,
    #[serde(default = "limit")]
    #[schemars(range(min = 1, max = LIMIT))]
    limit: usize,
    #[serde(default)]
    diff: bool,
}

fn limit() -> usize {
    20
}

impl Tool for Changes {
    type Arguments = Arguments;
    type Reply = ChangesReply;

    const NAME: &'static str = "changes";
    const TITLE: &'static str = "Changes";
    const DESCRIPTION: &'static str = "Lists what was changed through this server, newest first: change, time, tool, path, lines, client.";
    const CONTENT: &'static [&'static str] = &[];
    const EFFECT: ToolEffect = ToolEffect::Read;
    const ROOTS: &'static [RootUse] = &[RootUse::READ];

    fn weight(_arguments: &Arguments) -> Weight {
        Weight::Heavy
    }

    fn run(arguments: Arguments, call: &Call) -> ops::Result<ChangesReply> {
        let since = arguments.since.as_deref();
        let place = call.place(&arguments.path)?;
        log_if_hidden(&place, &arguments.path, call, (&Workspace, Self::NAME));
        let list = ListChanges {
            place,
            since: since.map(|since| moment("since", since)).transpose()?,
            client: arguments.client,
            limit: arguments.limit,
            diffs: if arguments.diff {
                DiffWish::Lines
            } else {
                DiffWish::Counts
            },
        };
        let told = list.run(&call.context)?;
        Ok(ChangesReply::new(
            Some(arguments.root),
            told,
            arguments.diff,
        ))
    }

    fn text(reply: &ChangesReply, _replies: ReplyHalves) -> Option<String> {
        Some(reply.text())
    }
}
