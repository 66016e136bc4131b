//! Words changes of roots for the operator, on the command line and on the page.

use std::sync::Arc;

use anyhow::anyhow;
use ops::{Cancel, Context, Limits, Part, ToldChange, UndoRefusal};
use sandbox::change_id;
use serde_json::{Value, json};

use crate::settings::Settings;

/// The operator's name in records.
pub(crate) const OPERATOR: &str = "operator";

/// The operator's own calls, which no client's time limit applies to.
#[derive(Debug, Clone)]
pub(crate) struct OperatorContext {
    limits: Arc<Limits>,
}

impl OperatorContext {
    /// Takes the limits of the settings.
    pub(crate) fn new(settings: &Settings) -> OperatorContext {
        OperatorContext {
            limits: Arc::new(Limits {
                max_full_read_size: settings.max_full_read_size,
                max_file_size: settings.max_file_size,
                max_viewed_size: settings.max_file_size,
                search_timeout: settings.search_timeout,
                search_memory: settings.search_memory,
                durability: settings.durability,
            }),
        }
    }

    /// Takes limits that also apply to clients' calls.
    pub(crate) fn within(limits: Arc<Limits>) -> OperatorContext {
        OperatorContext { limits }
    }

    /// The context of one call.
    pub(crate) fn context(&self) -> Context {
        self.context_of("undo")
    }

    /// The context of a call that histories know by this name.
    pub(crate) fn context_of(&self, tool: &str) -> Context {
        Context {
            consent: ops::Consent::default(),
            limits: Arc::clone(&self.limits),
            users: Arc::default(),
            line_index_cache: Arc::default(),
            search_memory: Arc::default(),
            cancel: Cancel::never(),
            change_notes: ops::ChangeNotes::of(ops::Author {
                client: OPERATOR.to_owned(),
                account: OPERATOR.to_owned(),
                tool: tool.to_owned(),
                ..ops::Author::default()
            }),
            room: None,
        }
    }
}

/// The error of a root without a history.
pub(crate) fn none_kept(root: &str) -> anyhow::Error {
    anyhow!("{root} keeps no history")
}

/// A change for programs.
pub(crate) fn object(root: &str, told: &ToldChange) -> Value {
    let author = &told.record.author;
    json!({
        "change": told.id(),
        "root": root,
        "time_ms": author.time,
        "client": author.client,
        "tool": author.tool,
        "undoes": author.undoes.iter().map(|number| change_id(*number)).collect::<Vec<_>>(),
        "undone_by": told.undone_by.map(change_id),
        "parts": told.record.parts.iter().map(part_object).collect::<Vec<_>>(),
    })
}

/// A part of a change for programs.
pub(crate) fn part_object(part: &Part) -> Value {
    json!({"kind": part.kind, "path": part.path, "to": part.to, "kept": !part.lost})
}

/// Says why nothing was undone.
pub(crate) fn refused(root: &str, refusal: &UndoRefusal) -> anyhow::Error {
    match refusal {
        UndoRefusal::NoHistory => none_kept(root),
        refusal => anyhow!(toolset::refusal_words(refusal)),
    }
}
