//! `compare`: how two directories or two files differ.

use ops::{Error, Operation};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::comparison::Comparison;
use crate::deployment::ReplyHalves;
use crate::history::moment;
use crate::tool::{Call, PlaceAccess, RootSource, RootUse, Tool, ToolEffect, Weight};

pub(super) struct CompareTool;

#[derive(Deserialize, JsonSchema)]
pub(super) struct Arguments {
    /// A name from list_roots.
    root: String,
    path: String,
    /// Another directory or file.
    other: Option<String>,
    /// If it is in another root.
    other_root: Option<String>,
    /// For path: the file just before a change or a time; without other, compared with now.
    at: Option<String>,
}

/// How they differ.
#[derive(Serialize, JsonSchema)]
pub(super) struct Reply {
    /// Name of the root.
    root: String,
    /// Name of the other's root.
    other_root: String,
    /// What was found.
    #[serde(flatten)]
    comparison: Comparison,
}

impl Tool for CompareTool {
    type Arguments = Arguments;
    type Reply = Reply;

    const NAME: &'static str = "compare";
    const TITLE: &'static str = "Compare";
    const DESCRIPTION: &'static str = "Compares two directories by content (what only one has, what differs, how much is equal) or two \
        files (a unified diff).";
    const CONTENT: &'static [&'static str] = &[];
    const EFFECT: ToolEffect = ToolEffect::Read;
    const ROOTS: &'static [RootUse] = &[
        RootUse::READ,
        RootUse {
            root: RootSource::ArgumentOr("other_root", "root"),
            path: "other",
            access: PlaceAccess::Read,
            and_others: false,
        },
    ];

    fn weight(_arguments: &Arguments) -> Weight {
        Weight::Heavy
    }

    fn run(arguments: Arguments, call: &Call) -> ops::Result<Reply> {
        let other = arguments.other_path()?.to_owned();
        let place = call.place(&arguments.path)?;
        let other_place = call.destination(&other)?;
        let compared = match &arguments.at {
            Some(at) => {
                let at = moment("at", at)?;
                ops::compare_at(&place, &at, &other_place, &call.context)
            }
            None => {
                let other = other_place;
                ops::Compare { place, other }.run(&call.context)
            }
        }?;
        let other_root = arguments.other_root;
        Ok(Reply {
            other_root: other_root.unwrap_or_else(|| arguments.root.clone()),
            root: arguments.root,
            comparison: Comparison::new(arguments.path, other, compared),
        })
    }

    fn text(reply: &Reply, _replies: ReplyHalves) -> Option<String> {
        Some(reply.comparison.text())
    }
}

impl Arguments {
    /// What `path` is compared with: something else, or its earlier content.
    fn other_path(&self) -> ops::Result<&str> {
        match (&self.other, &self.at) {
            (Some(other), _) => Ok(other),
            (None, Some(_)) => Ok(&self.path),
            (None, None) => Err(Error::InvalidArgument {
                argument: "other",
                reason: "it is required, or at for what path was".to_owned(),
            }),
        }
    }
}
