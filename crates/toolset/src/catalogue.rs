//! Which tools there are, and for whom: the only place that knows.
//!
//! Settings, documents and tests ask [`every_set`] for the names of tools. [`Catalogue`] has the tools of one endpoint
//! as its clients see them.

mod descriptions;
mod introduction;
mod names;
mod reload;

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use rmcp::model::{ServerConfig, Tool as McpTool};

use self::descriptions::Descriptions;
use self::introduction::{introduction, prompt_roots};
pub use self::names::{SetCollision, SetNames, every_set, first_collision};
use crate::admission::Admission;
use crate::arguments::shortened;
use crate::contract::Contract;
use crate::deployment::{ClientGrant, ReplyHalves};
use crate::metrics::{CallCounters, ToolMetrics};
use crate::prompts::{self, PromptInfo};
use crate::resources;
use crate::tool::{AnyTool, ReplyForm, RootInfo, ToolSet};
use crate::tool_names;
use crate::tool_reference;

/// Why an endpoint cannot be prepared.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// Two sets of one endpoint have tools of the same name.
    #[error(
        "the tool sets {} and {} cannot share one endpoint: both have {}",
        .0.first,
        .0.second,
        .0.tools.join(", ")
    )]
    Collision(SetCollision),
    /// A set that needs an endpoint of its own would share one.
    #[error("the tool set {set} tells paths on the host, so it needs an endpoint of its own")]
    Alone {
        /// The set.
        set: &'static str,
    },
    /// A set none of whose tools is allowed in any root.
    #[error(
        "the tool set {set} has no usable tool: {}; change allowed_tools or read_only there, or do not serve the set",
        root.as_ref().map_or_else(
            || "no root allows any of its tools".to_owned(),
            |root| format!("its root \"{root}\" allows none of them"),
        )
    )]
    NoTool {
        /// The set.
        set: &'static str,
        /// Its root, if it has only one.
        root: Option<String>,
    },
    /// There is nothing to serve.
    #[error("no tool set is given")]
    Empty,
}

/// A tool in its set.
#[derive(Clone)]
pub(crate) struct ToolEntry {
    pub(crate) tool: Arc<dyn AnyTool>,
    pub(crate) contract: &'static dyn Contract,
    pub(crate) root_infos: Arc<[RootInfo]>,
    pub(crate) counters: Arc<CallCounters>,
}

/// The tools of one endpoint.
pub struct Catalogue {
    info: ServerConfig,
    admission: Arc<Admission>,
    entries: Vec<ToolEntry>,
    by_name: HashMap<&'static str, usize>,
    /// The methods of the protocol by which files are resources, set by set.
    methods: Vec<ToolEntry>,
    descriptions: OnceLock<Descriptions>,
}

impl Catalogue {
    pub(crate) fn new(
        sets: Vec<ToolSet>,
        admission: &Arc<Admission>,
    ) -> Result<Catalogue, SetupError> {
        let names: Vec<SetNames> = sets.iter().map(SetNames::of).collect();
        if let Some(collision) = first_collision(&names.iter().collect::<Vec<_>>()) {
            return Err(SetupError::Collision(collision));
        }
        let alone = sets.iter().find(|set| set.contract.tells_host_paths());
        if let (Some(alone), true) = (alone, sets.len() > 1) {
            let set = alone.contract.name();
            return Err(SetupError::Alone { set });
        }
        if let Some(idle) = sets.iter().find(|set| is_idle(set, admission)) {
            let set = idle.contract.name();
            let root = admission.home(set).map(|home| home.name.clone());
            return Err(SetupError::NoTool { set, root });
        }
        let methods = sets.iter().flat_map(methods).collect();
        let entries = sets.into_iter().flat_map(|set| entries(set, admission));
        Catalogue::of(entries.collect(), methods, admission).ok_or(SetupError::Empty)
    }

    /// `None` without a tool.
    fn of(
        entries: Vec<ToolEntry>,
        mut methods: Vec<ToolEntry>,
        admission: &Arc<Admission>,
    ) -> Option<Catalogue> {
        share_root_infos(&entries, &mut methods);
        Some(Catalogue {
            info: introduction(&entries, &methods, admission)?,
            admission: Arc::clone(admission),
            by_name: by_name(&entries),
            entries,
            methods,
            descriptions: OnceLock::new(),
        })
    }

    /// The same tools for a client, without those that it may not use. `None` if it may use none of the sets.
    pub(crate) fn for_client(
        &self,
        client: &ClientGrant,
        admission: &Arc<Admission>,
    ) -> Option<Catalogue> {
        let own = |entries: &[ToolEntry]| -> Vec<ToolEntry> {
            let entries = entries.iter();
            let entries = entries.filter(|entry| client.may_use(entry.contract.name()));
            entries.cloned().collect()
        };
        let (mut entries, methods) = (own(&self.entries), own(&self.methods));
        let infos: HashMap<&str, Arc<[RootInfo]>> = entries
            .chunk_by(|one, next| one.contract.name() == next.contract.name())
            .filter_map(|set| Some((set.first()?.contract, set)))
            .map(|(contract, set)| (contract.name(), root_infos(contract.name(), set, admission)))
            .collect();
        for entry in &mut entries {
            if let Some(infos) = infos.get(entry.contract.name()) {
                entry.root_infos = Arc::clone(infos);
            }
        }
        Catalogue::of(entries, methods, admission)
    }

    /// How the endpoint describes itself to clients.
    #[must_use]
    pub fn info(&self) -> &ServerConfig {
        &self.info
    }

    /// The tools that some root lets clients use, in order.
    #[must_use]
    pub fn listed(&self) -> &[McpTool] {
        &self.descriptions().listed
    }

    /// The tools as a client that gets these halves of replies sees them. Without output schemas, no client library
    /// waits for a structured half.
    #[must_use]
    pub fn listed_with(&self, halves: ReplyHalves) -> Vec<McpTool> {
        let mut tools = self.listed().to_vec();
        let is_chosen = |name: &str| {
            let entry = self.entry(name);
            entry.is_some_and(|entry| entry.tool.definition().form == ReplyForm::Chosen)
        };
        if !halves.structured() {
            let chosen = tools.iter_mut().filter(|tool| is_chosen(&tool.name));
            chosen.for_each(|tool| tool.output_schema = None);
        }
        tools
    }

    /// Whether the directories that a client names (`roots/list`) matter.
    #[must_use]
    pub fn tells_host_paths(&self) -> bool {
        let mut contracts = self.entries.iter().map(|entry| entry.contract);
        contracts.any(Contract::tells_host_paths)
    }

    /// The halves of replies that a client of this name gets.
    #[must_use]
    pub fn halves(&self, client: Option<&str>) -> ReplyHalves {
        self.admission.deployment().replies.halves(client)
    }

    /// Whether every client sees the same list of tools.
    #[must_use]
    pub fn is_uniform(&self) -> bool {
        self.admission.deployment().replies.is_uniform() && self.has_uniform_resources()
    }

    /// Every tool in order, including those that no root allows.
    #[must_use]
    pub fn described(&self) -> &[McpTool] {
        &self.descriptions().all
    }

    /// A tool as clients see it, whether or not it is listed.
    #[must_use]
    pub fn tool(&self, name: &str) -> Option<&McpTool> {
        let index = self.by_name.get(name)?;
        self.described().get(*index)
    }

    /// The message for a client that calls a tool by a wrong name.
    #[must_use]
    pub fn unknown_tool(&self, name: &str) -> String {
        let names: Vec<&str> = self.listed().iter().map(|tool| &*tool.name).collect();
        let shown = shortened(name);
        match tool_names::meant(name, &names) {
            Some(meant) => format!("Unknown tool: {shown}; did you mean {meant}?"),
            None => format!("Unknown tool: {shown}; tools: {}", names.join(", ")),
        }
    }

    /// A page that documents every tool.
    #[must_use]
    pub fn reference(&self, title: &str) -> String {
        tool_reference::markdown(title, &self.entries, self.described())
    }

    /// The metrics of every tool since the start, in order.
    pub fn metrics(&self) -> impl Iterator<Item = ToolMetrics> {
        self.entries.iter().chain(&self.methods).map(|entry| {
            let tool = entry.tool.definition().name;
            entry.counters.metrics(entry.contract.name(), tool)
        })
    }

    /// The names of the roots whose files are resources, in the operator's order.
    #[must_use]
    pub fn resource_roots(&self) -> Vec<&str> {
        let usable = self
            .methods_of(resources::READ)
            .flat_map(|entry| self.usable(entry));
        let usable: Vec<&str> = usable.collect();
        let names = self
            .admission
            .deployment()
            .roots
            .iter()
            .map(|grant| grant.name.as_str());
        names.filter(|name| usable.contains(name)).collect()
    }

    /// The prompts that clients can use: those whose tools they have.
    #[must_use]
    pub fn prompts(&self) -> Vec<PromptInfo> {
        let has = |tool: &str| self.listed().iter().any(|own| own.name == tool);
        let all = prompts::PROMPTS.into_iter();
        all.filter(|prompt| prompt.needs.is_none_or(has)).collect()
    }

    /// The names of the roots that prompts are about: those that keep a history, in the operator's order.
    #[must_use]
    pub fn prompt_roots(&self) -> Vec<&str> {
        prompt_roots(&self.methods, &self.admission)
    }

    /// Whether every client sees the same resources.
    #[must_use]
    pub fn has_uniform_resources(&self) -> bool {
        !self.admission.is_of_client() && !self.admission.deployment().has_clients
    }

    /// The method of a set that allows it on this root; otherwise that of the first set, which explains the refusal.
    pub(crate) fn method(&self, method: &str, root: &str) -> Option<&ToolEntry> {
        let mut lets = self
            .methods_of(method)
            .filter(|entry| self.usable(entry).contains(&root));
        lets.next().or_else(|| self.methods_of(method).next())
    }

    fn methods_of<'own>(&'own self, method: &str) -> impl Iterator<Item = &'own ToolEntry> {
        let entries = self.methods.iter();
        entries.filter(move |entry| entry.tool.definition().name == method)
    }

    fn usable(&self, entry: &ToolEntry) -> Vec<&str> {
        self.admission
            .usable(entry.contract.name(), entry.tool.definition())
    }

    pub(crate) fn entry(&self, tool: &str) -> Option<&ToolEntry> {
        let index = self.by_name.get(tool)?;
        self.entries.get(*index)
    }

    /// Describes the tools when they are first asked for: start-up does not wait for their schemas.
    fn descriptions(&self) -> &Descriptions {
        self.descriptions
            .get_or_init(|| Descriptions::new(&self.entries, &self.admission))
    }
}

/// Whether no root lets clients use any tool of a set that works on roots. Without roots a service only describes tools.
fn is_idle(set: &ToolSet, admission: &Admission) -> bool {
    let definitions = set.tools.iter().map(|tool| tool.definition());
    let mut on_roots = definitions.filter(|tool| !tool.roots.is_empty()).peekable();
    let works_on_roots = on_roots.peek().is_some() && !admission.deployment().roots.is_empty();
    works_on_roots && !on_roots.any(|tool| admission.offers(set.contract.name(), tool))
}

fn by_name(entries: &[ToolEntry]) -> HashMap<&'static str, usize> {
    let names = entries.iter().map(|entry| entry.tool.definition().name);
    names.zip(0..).collect()
}

fn entries(set: ToolSet, admission: &Admission) -> Vec<ToolEntry> {
    let contract = set.contract;
    let entry = |tool: Box<dyn AnyTool>| ToolEntry {
        tool: tool.into(),
        contract,
        root_infos: Arc::default(),
        counters: Arc::default(),
    };
    let mut entries: Vec<ToolEntry> = set.tools.into_iter().map(entry).collect();
    let infos = root_infos(contract.name(), &entries, admission);
    for entry in &mut entries {
        entry.root_infos = Arc::clone(&infos);
    }
    entries
}

/// Gives the methods of each set the same root information as its tools.
fn share_root_infos(entries: &[ToolEntry], methods: &mut [ToolEntry]) {
    for method in methods {
        let set = method.contract.name();
        let of_set = entries.iter().find(|entry| entry.contract.name() == set);
        if let Some(entry) = of_set {
            method.root_infos = Arc::clone(&entry.root_infos);
        }
    }
}

/// The methods of a set whose files are resources.
fn methods(set: &ToolSet) -> impl Iterator<Item = ToolEntry> + use<> {
    let contract = set.contract;
    let methods = resources::methods(contract).into_iter();
    methods.map(move |tool| ToolEntry {
        tool: tool.into(),
        contract,
        root_infos: Arc::default(),
        counters: Arc::default(),
    })
}

/// What clients of a set may know of every root.
fn root_infos(name: &str, set: &[ToolEntry], admission: &Admission) -> Arc<[RootInfo]> {
    let grants = admission.deployment().roots.iter();
    grants
        .map(|grant| RootInfo {
            name: grant.name.clone(),
            read_only: grant.read_only,
            allowed_tools: set
                .iter()
                .map(|entry| entry.tool.definition())
                // A tool that uses no root is always available: no root allows or forbids it.
                .filter(|tool| Admission::lets_use(grant, name, tool))
                .map(|tool| tool.name)
                .collect(),
        })
        .collect()
}
