//! Which tools there are, and for whom: the only place that knows.
//!
//! Settings, documents and tests ask [`every_set`] for the names of tools. [`Catalogue`] has the tools of one endpoint
//! as its clients see them.

mod again;

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, OnceLock};

use ops::text::encoding::to_base64;
use rmcp::model::{
    Icon, Implementation, JsonObject, PromptsCapability, ResourcesCapability, ServerCapabilities,
    ServerConfig, Tool as McpTool, ToolsCapability,
};

use crate::admission::Admission;
use crate::arguments::shortened;
use crate::contract::Contract;
use crate::deployment::{ClientGrant, Deployment, ReplyHalves, RootGrant};
use crate::media;
use crate::metrics::{CallCounters, ToolMetrics};
use crate::prompts::{self, PromptInfo};
use crate::resources;
use crate::schema;
use crate::tool::{AnyTool, Definition, ReplyForm, RootInfo, RootSource, ToolEffect, ToolSet};
use crate::tool_names;
use crate::tool_reference;
use crate::{files, guide, memory, memory_tool, reference, workspace};

/// How `resources/directory/read` is declared. The extension that defines it is about skills, which are not served here.
const DIRECTORY_READ_EXTENSION: &str = "io.github.mcp-filesystem/directory-read";

/// The names of a set's tools.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetNames {
    /// The set.
    pub set: &'static str,
    /// All its tools, in the specification's order.
    pub tools: Vec<&'static str>,
    /// The tools that an allowlist decides on. A tool of a set with roots that uses none itself is always available.
    pub restricted: Vec<&'static str>,
}

impl SetNames {
    fn of(set: &ToolSet) -> SetNames {
        let definitions = || set.tools.iter().map(|tool| tool.definition());
        let uses_roots = |tool: &&Definition| !tool.roots.is_empty();
        let has_roots = definitions().any(|tool| uses_roots(&tool));
        let restricted = definitions().filter(|tool| uses_roots(tool) || !has_roots);
        SetNames {
            set: set.contract.name(),
            tools: definitions().map(|tool| tool.name).collect(),
            restricted: restricted.map(|tool| tool.name).collect(),
        }
    }
}

/// Every tool set of this program, in the order of its documents.
#[must_use]
pub fn every_set() -> &'static [SetNames] {
    static SETS: LazyLock<Vec<SetNames>> = LazyLock::new(|| {
        let memory = SetNames {
            // An allowlist may name the tool that is only there where the operator wants it.
            restricted: SetNames::of(&memory::toolset(true)).restricted,
            ..SetNames::of(&memory::toolset(false))
        };
        let [workspace, files, guide, reference, memory_tool] = [
            workspace::toolset(),
            files::toolset(),
            guide::toolset(None),
            reference::toolset(),
            memory_tool::toolset(),
        ]
        .map(|set| SetNames::of(&set));
        vec![workspace, files, memory, guide, reference, memory_tool]
    });
    &SETS
}

/// Two sets that cannot share an endpoint, because names mean two things.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetCollision {
    /// One set.
    pub first: &'static str,
    /// The other set.
    pub second: &'static str,
    /// The names that both have.
    pub tools: Vec<&'static str>,
}

/// Finds the first two sets that have tools of the same name.
#[must_use]
pub fn first_collision(sets: &[&SetNames]) -> Option<SetCollision> {
    let pairs = sets.iter().enumerate().flat_map(|(index, first)| {
        let later = sets.iter().skip(index + 1);
        later.map(move |second| (first, second))
    });
    let mut collisions = pairs.map(|(first, second)| {
        let shared = first
            .tools
            .iter()
            .filter(|tool| second.tools.contains(tool));
        SetCollision {
            first: first.set,
            second: second.set,
            tools: shared.copied().collect(),
        }
    });
    collisions.find(|collision| !collision.tools.is_empty())
}

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
    /// A set that has to have its endpoint for itself is to share one.
    #[error("the tool set {set} tells paths on the host, so it needs an endpoint of its own")]
    Alone {
        /// The set.
        set: &'static str,
    },
    /// A set of which no root lets clients use a tool.
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

/// The tools as clients see them.
struct Descriptions {
    /// What `tools/list` answers.
    listed: Vec<McpTool>,
    /// Every tool, listed or not, in the order of the entries: headers are checked against its schema.
    all: Vec<McpTool>,
}

impl Descriptions {
    fn new(entries: &[ToolEntry], admission: &Admission) -> Descriptions {
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
        let mut methods: Vec<ToolEntry> = sets.iter().flat_map(methods).collect();
        let entries: Vec<ToolEntry> = sets
            .into_iter()
            .flat_map(|set| entries(set, admission))
            .collect();
        share_root_infos(&entries, &mut methods);
        let mut info = introduction(&entries, admission).ok_or(SetupError::Empty)?;
        declare_resources(&mut info.capabilities, &methods, admission);
        Ok(Catalogue {
            info,
            admission: Arc::clone(admission),
            by_name: by_name(&entries),
            entries,
            methods,
            descriptions: OnceLock::new(),
        })
    }

    /// The same tools for a client: those that it may not use do not exist. `None` if it may use none of the sets.
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
        let (mut entries, mut methods) = (own(&self.entries), own(&self.methods));
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
        share_root_infos(&entries, &mut methods);
        let mut info = introduction(&entries, admission)?;
        declare_resources(&mut info.capabilities, &methods, admission);
        Some(Catalogue {
            info,
            admission: Arc::clone(admission),
            by_name: by_name(&entries),
            entries,
            methods,
            descriptions: OnceLock::new(),
        })
    }

    /// What the endpoint says of itself.
    #[must_use]
    pub fn info(&self) -> &ServerConfig {
        &self.info
    }

    /// The tools that some root lets clients use, in order.
    #[must_use]
    pub fn listed(&self) -> &[McpTool] {
        &self.descriptions().listed
    }

    /// The tools as a client sees them that gets these halves of replies. Without output schemas, no client library waits
    /// for a structured half.
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

    /// Whether what a client says of its directories matters.
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

    /// Every tool, also those that no root allows, in order.
    #[must_use]
    pub fn described(&self) -> &[McpTool] {
        &self.descriptions().all
    }

    /// A tool as clients see it, listed or not.
    #[must_use]
    pub fn tool(&self, name: &str) -> Option<&McpTool> {
        let index = self.by_name.get(name)?;
        self.described().get(*index)
    }

    /// What a client that calls a tool by a wrong name is told.
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

    /// A method as the set has it that lets clients use it on this root; else as the first set has it, which says why not.
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

fn introduction(entries: &[ToolEntry], admission: &Admission) -> Option<ServerConfig> {
    let first = entries.first()?.contract;
    let sets = entries.chunk_by(|one, next| one.contract.name() == next.contract.name());
    let instructions: Vec<String> = sets.map(|set| instructions(set, admission)).collect();
    let mut server = Implementation::new(first.server_name(), env!("CARGO_PKG_VERSION"))
        .with_title(first.server_title())
        .with_icons(vec![icon()]);
    server.description = first.server_description().map(str::to_owned);
    let mut capabilities = ServerCapabilities::default();
    capabilities.tools = Some(ToolsCapability::default());
    Some(
        ServerConfig::new(capabilities)
            .with_server_info(server)
            .with_instructions(instructions.join("\n\n")),
    )
}

/// The server's picture, small enough to be sent with its name.
fn icon() -> Icon {
    let image = to_base64(include_bytes!("icon.svg").trim_ascii());
    Icon::new(format!("data:image/svg+xml;base64,{image}"))
        .with_mime_type("image/svg+xml")
        .with_sizes(vec!["any".to_owned()])
}

/// How the tools of a set are meant to be used; how to change files only if some root lets them.
fn instructions(set: &[ToolEntry], admission: &Admission) -> String {
    let Some(contract) = set.first().map(|entry| entry.contract) else {
        return String::new();
    };
    let mut definitions = set.iter().map(|entry| entry.tool.definition());
    let changes = |tool: &Definition| tool.effect != ToolEffect::Read;
    let may_change =
        definitions.any(|tool| changes(tool) && admission.offers(contract.name(), tool));
    match contract.changing() {
        Some(changing) if may_change => format!("{} {changing}", contract.instructions()),
        _ => contract.instructions().to_owned(),
    }
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

/// Lets the methods of each set know what its tools know of every root.
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

/// Declares what some root lets clients do, and nothing else.
fn declare_resources(
    capabilities: &mut ServerCapabilities,
    methods: &[ToolEntry],
    admission: &Admission,
) {
    let offers = |method: &str| {
        let mut entries = methods.iter();
        entries.any(|entry| {
            let definition = entry.tool.definition();
            definition.name == method && admission.offers(entry.contract.name(), definition)
        })
    };
    if offers(resources::READ) {
        let mut declared = ResourcesCapability::default();
        declared.subscribe = offers(resources::SUBSCRIBE).then_some(true);
        capabilities.resources = Some(declared);
    }
    if offers(resources::READ) && offers(resources::COMPLETE) {
        capabilities.completions = Some(JsonObject::new());
    }
    if !prompt_roots(methods, admission).is_empty() {
        capabilities.prompts = Some(PromptsCapability::default());
    }
    if offers(resources::DIRECTORY_READ) {
        let own = (DIRECTORY_READ_EXTENSION.to_owned(), JsonObject::new());
        capabilities.extensions = Some([own].into_iter().collect());
    }
}

/// The names of the roots that keep a history which clients may see.
fn prompt_roots<'own>(methods: &[ToolEntry], admission: &'own Admission) -> Vec<&'own str> {
    let usable = |name: &str| {
        let mut entries = methods.iter();
        entries.any(|entry| {
            let definition = entry.tool.definition();
            definition.name == prompts::GET
                && admission
                    .usable(entry.contract.name(), definition)
                    .contains(&name)
        })
    };
    let keeps_history = |grant: &RootGrant| {
        let root = grant.root.current();
        root.is_some_and(|root| root.history().is_some())
    };
    let grants = admission.deployment().roots.iter();
    grants
        .filter(|grant| keeps_history(grant) && usable(&grant.name))
        .map(|grant| grant.name.as_str())
        .collect()
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
                // A tool that names no root is always there; no root allows or forbids it.
                .filter(|tool| Admission::lets_use(grant, name, tool))
                .map(|tool| tool.name)
                .collect(),
        })
        .collect()
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
        // This one may be left out anyway.
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
