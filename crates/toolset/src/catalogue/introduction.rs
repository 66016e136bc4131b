//! How an endpoint describes itself when a client connects.

use ops::text::encoding::to_base64;
use rmcp::model::{
    Icon, Implementation, JsonObject, PromptsCapability, ResourcesCapability, ServerCapabilities,
    ServerConfig, ToolsCapability,
};

use super::ToolEntry;
use crate::admission::Admission;
use crate::deployment::RootGrant;
use crate::prompts;
use crate::resources;
use crate::tool::{Definition, ToolEffect};

/// How `resources/directory/read` is declared. The extension that defines it is about skills, which are not served here.
const DIRECTORY_READ_EXTENSION: &str = "io.github.mcp-filesystem/directory-read";

/// The description of an endpoint with these tools and methods; `None` if it has no tool.
pub(super) fn introduction(
    entries: &[ToolEntry],
    methods: &[ToolEntry],
    admission: &Admission,
) -> Option<ServerConfig> {
    let first = entries.first()?.contract;
    let sets = entries.chunk_by(|one, next| one.contract.name() == next.contract.name());
    let instructions: Vec<String> = sets.map(|set| instructions(set, admission)).collect();
    let mut server = Implementation::new(first.server_name(), env!("CARGO_PKG_VERSION"))
        .with_title(first.server_title())
        .with_icons(vec![icon()]);
    server.description = first.server_description().map(str::to_owned);
    let mut capabilities = ServerCapabilities::default();
    capabilities.tools = Some(ToolsCapability::default());
    declare_resources(&mut capabilities, methods, admission);
    Some(
        ServerConfig::new(capabilities)
            .with_server_info(server)
            .with_instructions(instructions.join("\n\n")),
    )
}

/// The server's picture, small enough to be sent with its name.
fn icon() -> Icon {
    let image = to_base64(include_bytes!("../icon.svg").trim_ascii());
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

/// Declares only the capabilities that at least one root allows.
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
pub(super) fn prompt_roots<'own>(
    methods: &[ToolEntry],
    admission: &'own Admission,
) -> Vec<&'own str> {
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
