//! The tools of an endpoint as clients see them.

use std::sync::Arc;

use rmcp::model::{JsonObject, Tool as McpTool};

use super::ToolEntry;
use crate::admission::Admission;
use crate::deployment::Deployment;
use crate::media;
use crate::schema;
use crate::tool::{Definition, ReplyForm, RootSource};

/// The tools as clients see them.
pub(super) struct Descriptions {
    /// What `tools/list` answers.
    pub(super) listed: Vec<McpTool>,
    /// Every tool in the order of the entries, listed or not: headers are checked against its schema.
    pub(super) all: Vec<McpTool>,
}

impl Descriptions {
    pub(super) fn new(entries: &[ToolEntry], admission: &Admission) -> Descriptions {
        let all: Vec<McpTool> = entries
            .iter()
            .map(|entry| described(entry, admission))
            .collect();
        let is_offered =
            |entry: &ToolEntry| admission.offers(entry.contract.name(), entry.tool.definition());
        let offered = entries
            .iter()
            .zip(&all)
            .filter(|(entry, _)| is_offered(entry));
        Descriptions {
            listed: offered.map(|(_, tool)| tool.clone()).collect(),
            all,
        }
    }
}

/// A tool as clients see it.
fn described(entry: &ToolEntry, admission: &Admission) -> McpTool {
    let definition = entry.tool.definition();
    let deployment = admission.deployment();
    let mut tool = McpTool::new(
        definition.name,
        definition.description,
        input_schema(definition, deployment),
    )
    .with_title(definition.title)
    .with_annotations(entry.contract.annotations(definition.effect));
    if definition.large_replies {
        tool = tool.with_meta(media::large_replies());
    }
    let output = match definition.form {
        ReplyForm::Chosen if deployment.replies.halves(None).structured() => {
            let either = schema::or_error(&definition.output, &entry.contract.error_schema());
            Some(Arc::new(either))
        }
        // Failures have no structured half.
        ReplyForm::Given(halves) if halves.structured() => Some(Arc::clone(&definition.output)),
        ReplyForm::Chosen | ReplyForm::Given(_) => None,
    };
    match output {
        Some(output) => tool.with_raw_output_schema(output),
        None => tool,
    }
}

/// A tool's arguments as clients see them. The only root may be left out.
fn input_schema(definition: &Definition, deployment: &Deployment) -> Arc<JsonObject> {
    let mut named = definition.roots.iter().filter_map(|use_| match use_.root {
        RootSource::Argument(name) => Some(name),
        // This one is optional anyway.
        RootSource::ArgumentOr(..)
        | RootSource::Home
        | RootSource::NamedHome(_)
        | RootSource::HostPath(_) => None,
    });
    let is_only = deployment.roots.len() == 1;
    let mut input = definition.input.as_ref().clone();
    for argument in named.by_ref() {
        if is_only {
            schema::make_optional(&mut input, argument);
        }
        if deployment.root_header && argument == "root" {
            schema::mark_header(&mut input, argument, "Root");
        }
    }
    Arc::new(input)
}
