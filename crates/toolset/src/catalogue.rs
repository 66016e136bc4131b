//! One endpoint's tools: what it says of itself, what clients see of its tools, and the way into a call.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use rmcp::model::{
    Implementation, JsonObject, ServerCapabilities, ServerConfig, Tool as McpTool, ToolsCapability,
};
use serde_json::Value;
use tokio_util::task::TaskTracker;

use crate::admission::Admission;
use crate::arguments::nearest;
use crate::client::Caller;
use crate::dispatch::ToolEntry;
use crate::metrics::{CallCounters, ToolMetrics};
use crate::reply::CallOutcome;
use crate::schema;
use crate::tool::{Definition, RootInfo, RootSource, ToolEffect, ToolSet};
use crate::tool_reference;

/// Why a service cannot be built.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// Two sets of one endpoint have a tool of the same name.
    #[error("the tool sets {first} and {second} cannot share one endpoint: both have {tool}")]
    Collision {
        /// The name both have.
        tool: &'static str,
        /// One set.
        first: &'static str,
        /// The other set.
        second: &'static str,
    },
    /// There is nothing to serve.
    #[error("no tool set is given")]
    Empty,
}

/// One endpoint's tools. Cloning is cheap.
#[derive(Clone)]
pub struct Service {
    inner: Arc<EndpointTools>,
}

struct EndpointTools {
    info: ServerConfig,
    admission: Arc<Admission>,
    entries: Vec<ToolEntry>,
    by_name: HashMap<&'static str, usize>,
    catalogue: OnceLock<Catalogue>,
    /// The calls that run, whether somebody waits for them or not.
    running: TaskTracker,
}

/// The tools as clients see them.
struct Catalogue {
    /// What `tools/list` answers.
    listed: Vec<McpTool>,
    /// Every tool, listed or not, in the order of the entries: the transport checks headers against its schema.
    tools: Vec<McpTool>,
}

impl EndpointTools {
    /// The tools as clients see them, made when they are first asked for.
    fn catalogue(&self) -> &Catalogue {
        self.catalogue
            .get_or_init(|| Catalogue::new(&self.entries, &self.admission))
    }
}

impl Catalogue {
    fn new(entries: &[ToolEntry], admission: &Admission) -> Catalogue {
        let tools: Vec<McpTool> = entries
            .iter()
            .map(|entry| described(entry, admission))
            .collect();
        let offered =
            |entry: &ToolEntry| admission.offers(entry.contract.name(), entry.tool.definition());
        let listed = entries
            .iter()
            .zip(&tools)
            .filter(|(entry, _)| offered(entry));
        Catalogue {
            listed: listed.map(|(_, tool)| tool.clone()).collect(),
            tools,
        }
    }
}

impl Service {
    /// Prepares an endpoint that speaks one set, or several whose names do not collide.
    pub fn new(sets: Vec<ToolSet>, admission: Arc<Admission>) -> Result<Service, SetupError> {
        let info = introduction(&sets, &admission).ok_or(SetupError::Empty)?;
        let entries: Vec<ToolEntry> = sets
            .into_iter()
            .flat_map(|set| entries(set, &admission))
            .collect();
        let by_name = index(&entries)?;
        Ok(Service {
            inner: Arc::new(EndpointTools {
                info,
                admission,
                entries,
                by_name,
                catalogue: OnceLock::new(),
                running: TaskTracker::new(),
            }),
        })
    }

    /// Takes a call all the way, to a result or to a question; `None` where no tool has this name.
    pub async fn call(&self, tool: &str, arguments: Value, caller: &Caller) -> Option<CallOutcome> {
        let entry = self.entry(tool)?;
        let _known = self.inner.running.token();
        Some(entry.call(&self.inner.admission, arguments, caller).await)
    }

    /// What the endpoint says of itself.
    #[must_use]
    pub fn info(&self) -> &ServerConfig {
        &self.inner.info
    }

    /// What the calls of every tool came to so far, in order.
    pub fn metrics(&self) -> impl Iterator<Item = ToolMetrics> {
        self.inner.entries.iter().map(|entry| {
            let tool = entry.tool.definition().name;
            entry.counters.metrics(entry.contract.name(), tool)
        })
    }

    fn entry(&self, tool: &str) -> Option<&ToolEntry> {
        let index = self.inner.by_name.get(tool)?;
        self.inner.entries.get(*index)
    }

    /// The tools as clients see them, in order.
    #[must_use]
    pub fn listed(&self) -> &[McpTool] {
        &self.inner.catalogue().listed
    }

    /// Every tool, also those that no root allows, in order.
    #[must_use]
    pub fn described(&self) -> &[McpTool] {
        &self.inner.catalogue().tools
    }

    /// A page that tells everything about the tools.
    #[must_use]
    pub fn reference(&self, title: &str) -> String {
        tool_reference::markdown(title, &self.inner.entries, self.described())
    }

    /// Waits until no call runs. For the end, when none can begin: also calls whose clients hung up have to be logged.
    pub async fn settle(&self) {
        self.inner.running.close();
        self.inner.running.wait().await;
    }

    /// Cancels the running calls of every endpoint of the process: it ends, and their time to finish is over.
    pub fn cut_calls(&self) {
        self.inner.admission.close();
    }

    /// A tool as clients see it, listed or not.
    #[must_use]
    pub fn tool(&self, name: &str) -> Option<&McpTool> {
        let index = self.inner.by_name.get(name)?;
        self.described().get(*index)
    }

    /// What a client that calls a tool by a wrong name is told.
    #[must_use]
    pub fn unknown_tool(&self, name: &str) -> String {
        let names = self.listed().iter().map(|tool| &*tool.name);
        let shown = crate::arguments::shortened(name);
        match nearest(name, names) {
            Some(nearest) => format!("Unknown tool: {shown}; did you mean {nearest}?"),
            None => format!("Unknown tool: {shown}"),
        }
    }
}

fn introduction(sets: &[ToolSet], admission: &Admission) -> Option<ServerConfig> {
    let first = sets.first()?.contract;
    let instructions: Vec<String> = sets
        .iter()
        .map(|set| instructions(set, admission))
        .collect();
    let server = Implementation::new(first.server_name(), env!("CARGO_PKG_VERSION"))
        .with_title(first.server_title());
    let mut capabilities = ServerCapabilities::default();
    capabilities.tools = Some(ToolsCapability::default());
    Some(
        ServerConfig::new(capabilities)
            .with_server_info(server)
            .with_instructions(instructions.join("\n\n")),
    )
}

/// How the tools of a set are meant to be used; how to change files only where some root lets them.
fn instructions(set: &ToolSet, admission: &Admission) -> String {
    let contract = set.contract;
    let mut definitions = set.tools.iter().map(|tool| tool.definition());
    let changes = |tool: &Definition| tool.effect != ToolEffect::Read;
    let may_change =
        definitions.any(|tool| changes(tool) && admission.offers(contract.name(), tool));
    match contract.changing() {
        Some(changing) if may_change => format!("{} {changing}", contract.instructions()),
        _ => contract.instructions().to_owned(),
    }
}

fn entries(set: ToolSet, admission: &Admission) -> Vec<ToolEntry> {
    let directory = directory(&set, admission);
    let contract = set.contract;
    let entry = |tool| ToolEntry {
        tool,
        contract,
        directory: Arc::clone(&directory),
        counters: CallCounters::default(),
    };
    set.tools.into_iter().map(entry).collect()
}

/// What clients of a set may know of every root.
fn directory(set: &ToolSet, admission: &Admission) -> Arc<[RootInfo]> {
    let name = set.contract.name();
    let grants = admission.deployment().roots.iter();
    grants
        .map(|grant| RootInfo {
            name: grant.name.clone(),
            read_only: grant.read_only,
            allowed_tools: set
                .tools
                .iter()
                .map(|tool| tool.definition())
                // A tool that names no root is always there; no root allows or forbids it.
                .filter(|tool| Admission::lets_use(grant, name, tool))
                .map(|tool| tool.name)
                .collect(),
        })
        .collect()
}

fn index(entries: &[ToolEntry]) -> Result<HashMap<&'static str, usize>, SetupError> {
    let mut by_name = HashMap::new();
    for (index, entry) in entries.iter().enumerate() {
        let tool = entry.tool.definition().name;
        let earlier = by_name
            .insert(tool, index)
            .and_then(|earlier| entries.get(earlier));
        if let Some(earlier) = earlier {
            let (first, second) = (earlier.contract.name(), entry.contract.name());
            return Err(SetupError::Collision {
                tool,
                first,
                second,
            });
        }
    }
    Ok(by_name)
}

/// A tool as clients see it.
fn described(entry: &ToolEntry, admission: &Admission) -> McpTool {
    let definition = entry.tool.definition();
    let deployment = admission.deployment();
    let mut tool = McpTool::new(
        definition.name,
        definition.description,
        input_schema(definition, deployment.root_header),
    )
    .with_title(definition.title)
    .with_annotations(definition.annotations());
    if deployment.replies.structured() {
        let either = schema::or_error(&definition.output, &entry.contract.error_schema());
        tool = tool.with_raw_output_schema(Arc::new(either));
    }
    tool
}

fn input_schema(definition: &Definition, root_header: bool) -> Arc<JsonObject> {
    let named = |source| source == RootSource::Argument("root");
    if !root_header || !definition.roots.iter().any(|use_| named(use_.root)) {
        return Arc::clone(&*definition.input);
    }
    let mut marked = definition.input.as_ref().clone();
    schema::mark_header(&mut marked, "root", "Root");
    Arc::new(marked)
}
