//! The MCP server of one endpoint, on rmcp, without its macros: everything it answers is prepared once.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, OnceLock};

use rmcp::model::{
    CacheScope, CallToolRequestParams, CallToolResponse, CallToolResult, ClientCapabilities,
    CompleteRequestMethod, CompleteRequestParams, CompleteResult, ConstString, CustomRequest,
    CustomResult, ErrorCode, Implementation, InputResponses, JsonObject, ListPromptsRequestMethod,
    ListPromptsResult, ListResourceTemplatesRequestMethod, ListResourceTemplatesResult,
    ListResourcesRequestMethod, ListResourcesResult, ListToolsResult, PaginatedRequestParams,
    ProtocolVersion, ServerCapabilities, ServerConfig, Tool as McpTool,
};
use rmcp::service::{NotificationContext, RequestContext};
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde_json::Value;
use tokio_util::task::TaskTracker;

use crate::admit::Gate;
use crate::arguments::nearest;
use crate::dispatch::{Caller, Entry, Progress, Questions};
use crate::figures::{Counters, Figures};
use crate::recorded::Recorded;
use crate::reference;
use crate::reply::{Answer, Delivery, ToolResult};
use crate::schema;
use crate::tool::{Definition, Effect, RootCard, RootSource, ToolSet};

/// How long clients may keep the tool list: an operator's change comes with a restart.
const LIST_LIFETIME_MS: u64 = 5 * 60 * 1000;

/// Who a request came from, as the HTTP transport knows it. Put into the request's extensions.
#[derive(Debug, Clone)]
pub struct Client {
    /// The address and port.
    pub address: Arc<str>,
    /// Whom the operator knows it as by its token.
    pub token: Option<Arc<str>>,
    /// The session it is in.
    pub session: Option<Arc<str>>,
}

impl Client {
    fn known_as(&self) -> Option<&Arc<str>> {
        self.token.as_ref().or(self.session.as_ref())
    }

    /// With whom it takes turns: the operator's name for it, else the host it calls from.
    fn account(&self) -> String {
        match self.known_as() {
            Some(name) => name.to_string(),
            None => host_of(&self.address),
        }
    }

    /// Whose allowance its calls are taken from. A session is not enough: anyone can begin many.
    fn allowance(&self) -> String {
        match &self.token {
            Some(name) => name.to_string(),
            None => host_of(&self.address),
        }
    }

    /// For the log: its own name where it gives one, where it calls from and whom the operator knows it as.
    fn shown(&self, named: Option<String>) -> String {
        let mut shown = named.map_or_else(String::new, |named| named + " ");
        shown += &self.address;
        if let Some(name) = self.known_as() {
            shown += " (";
            shown += name;
            shown.push(')');
        }
        shown
    }
}

/// Something that a transport wants to have dropped when a call ends, not before. Put into the request's extensions.
#[derive(Clone)]
pub struct Held {
    _held: Arc<dyn Send + Sync>,
}

impl Held {
    /// Holds something.
    pub fn new(held: impl Send + Sync + 'static) -> Held {
        Held {
            _held: Arc::new(held),
        }
    }
}

/// What a client says of itself in a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Introduction {
    /// What it is called in the log.
    name: String,
    /// It can be asked to let its model answer.
    samples: bool,
}

impl Introduction {
    /// As the newest revision has it in every request.
    #[must_use]
    pub fn new(client: &Implementation, capabilities: &ClientCapabilities) -> Introduction {
        Introduction {
            name: named_as(client),
            samples: capabilities.sampling.is_some(),
        }
    }

    /// What it is called in the log.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How it is asked: whoever introduces himself in every request is asked by the result.
    fn questions(&self) -> Questions {
        match self.samples {
            true => Questions::Result {
                answers: InputResponses::default(),
                state: None,
            },
            false => Questions::None,
        }
    }
}

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
    inner: Arc<Inner>,
}

struct Inner {
    info: ServerConfig,
    gate: Arc<Gate>,
    entries: Vec<Entry>,
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

impl Inner {
    /// The tools as clients see them, made when they are first asked for.
    fn catalogue(&self) -> &Catalogue {
        self.catalogue
            .get_or_init(|| Catalogue::new(&self.entries, &self.gate))
    }
}

impl Catalogue {
    fn new(entries: &[Entry], gate: &Gate) -> Catalogue {
        let tools: Vec<McpTool> = entries.iter().map(|entry| described(entry, gate)).collect();
        let offered = |entry: &Entry| gate.offers(entry.face.name(), entry.tool.definition());
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
    pub fn new(sets: Vec<ToolSet>, gate: Arc<Gate>) -> Result<Service, SetupError> {
        let info = introduction(&sets, &gate).ok_or(SetupError::Empty)?;
        let entries: Vec<Entry> = sets
            .into_iter()
            .flat_map(|set| entries(set, &gate))
            .collect();
        let by_name = index(&entries)?;
        Ok(Service {
            inner: Arc::new(Inner {
                info,
                gate,
                entries,
                by_name,
                catalogue: OnceLock::new(),
                running: TaskTracker::new(),
            }),
        })
    }

    /// Takes a call of somebody who cannot be asked all the way; `None` where no tool has this name.
    pub async fn call(
        &self,
        tool: &str,
        arguments: JsonObject,
        caller: &Caller,
    ) -> Option<CallToolResult> {
        match self.respond(tool, arguments, caller).await? {
            Answer::Result(result) => Some(result.into_rmcp()),
            Answer::Question(_) => None,
        }
    }

    /// Takes a call of a client on HTTP, who cannot be asked where it says nothing of itself; `None` where no tool has
    /// this name.
    pub async fn call_of(
        &self,
        tool: &str,
        arguments: JsonObject,
        client: &Client,
        introduction: Option<&Introduction>,
    ) -> Option<Answer> {
        self.entry(tool)?;
        let name = introduction.map(|own| own.name.clone());
        let caller = Caller {
            client: client.shown(name),
            account: client.account(),
            allowance: client.allowance(),
            questions: introduction.map_or(Questions::None, Introduction::questions),
            ..Caller::default()
        };
        let hung_up = caller.cancelled.clone();
        let (service, tool) = (self.clone(), tool.to_owned());
        let call = async move { service.respond(&tool, arguments, &caller).await };
        Recorded::new(call, hung_up).await
    }

    /// Takes a call of the client on stdio, by the name it gave, if that means no waiting at all; `None`, with nothing
    /// done, where it does, or where the call is to be refused.
    #[must_use]
    pub fn call_at_once(
        &self,
        tool: &str,
        arguments: &JsonObject,
        client: &str,
    ) -> Option<ToolResult> {
        let entry = self.entry(tool)?;
        if !entry.tool.may_be_at_hand() {
            return None;
        }
        let caller = Caller {
            client: client.to_owned(),
            ..Caller::default()
        };
        entry.call_at_once(&self.inner.gate, arguments.clone(), &caller)
    }

    /// Tells whether a request of the newest revision repeats its root in a header.
    #[must_use]
    pub fn marks_root(&self) -> bool {
        self.inner.gate.deployment().root_header
    }

    /// Takes a call all the way, to a result or to a question; `None` where no tool has this name.
    pub async fn respond(
        &self,
        tool: &str,
        arguments: JsonObject,
        caller: &Caller,
    ) -> Option<Answer> {
        let entry = self.entry(tool)?;
        let _known = self.inner.running.token();
        Some(entry.call(&self.inner.gate, arguments, caller).await)
    }

    /// What the calls of every tool came to so far, in order.
    pub fn figures(&self) -> impl Iterator<Item = Figures> {
        self.inner.entries.iter().map(|entry| {
            let tool = entry.tool.definition().name;
            entry.counters.figures(entry.face.name(), tool)
        })
    }

    fn entry(&self, tool: &str) -> Option<&Entry> {
        let index = self.inner.by_name.get(tool)?;
        self.inner.entries.get(*index)
    }

    /// Answers a `tools/call` that rmcp could not read. Arguments of a wrong type are the tool's to refuse.
    fn call_misread(
        &self,
        params: Option<&Value>,
        context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let name = params
            .and_then(|params| params.get("name"))
            .and_then(Value::as_str);
        let arguments = params.and_then(|params| params.get("arguments"));
        let (Some(name), Some(arguments)) = (name, arguments.filter(|own| !own.is_object())) else {
            return Err(ErrorData::invalid_params(
                "tools/call takes params with name (string) and arguments (object)",
                None,
            ));
        };
        let entry = self.entry(name).ok_or_else(|| self.unknown_tool(name))?;
        let revision = context.protocol_version();
        let caller = caller(context, Questions::None);
        let refused = entry.refuse(&self.inner.gate, arguments, &caller);
        let mut result = refused.into_rmcp();
        if revision.is_none_or(|revision| revision < ProtocolVersion::V_2026_07_28) {
            // rmcp takes it out of the results it knows; this one is as we write it.
            result.result_type = None;
        }
        let result = serde_json::to_value(result);
        result
            .map(CustomResult::new)
            .map_err(|error| ErrorData::internal_error(error.to_string(), None))
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
        reference::markdown(title, &self.inner.entries, self.described())
    }

    /// Waits until no call runs. For the end, when none can begin: also calls whose clients hung up have to be logged.
    pub async fn settle(&self) {
        self.inner.running.close();
        self.inner.running.wait().await;
    }

    /// Cancels the running calls of every endpoint of the process: it ends, and their time to finish is over.
    pub fn cut_calls(&self) {
        self.inner.gate.close();
    }

    async fn answer(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let _held = context.extensions.get::<Held>().cloned();
        let delivery = delivery(&context);
        let answers = request.input_responses.unwrap_or_default();
        let questions = questions(&context, answers, request.request_state);
        let caller = caller(context, questions);
        let arguments = request.arguments.unwrap_or_default();
        let response = self.respond(&request.name, arguments, &caller).await;
        match response.ok_or_else(|| self.unknown_tool(&request.name))? {
            Answer::Question(question) => Ok((*question).into()),
            Answer::Result(result) => Ok(delivered(result, delivery).into()),
        }
    }

    fn unknown_tool(&self, name: &str) -> ErrorData {
        let names = self.listed().iter().map(|tool| &*tool.name);
        let shown = crate::arguments::shortened(name);
        let message = match nearest(name, names) {
            Some(nearest) => format!("Unknown tool: {shown}; did you mean {nearest}?"),
            None => format!("Unknown tool: {shown}"),
        };
        ErrorData::invalid_params(message, None)
    }
}

fn introduction(sets: &[ToolSet], gate: &Gate) -> Option<ServerConfig> {
    let first = sets.first()?.face;
    let instructions: Vec<String> = sets.iter().map(|set| instructions(set, gate)).collect();
    let server = Implementation::new(first.server_name(), env!("CARGO_PKG_VERSION"))
        .with_title(first.server_title());
    let capabilities = ServerCapabilities::builder().enable_tools().build();
    Some(
        ServerConfig::new(capabilities)
            .with_server_info(server)
            .with_instructions(instructions.join("\n\n")),
    )
}

/// How the tools of a set are meant to be used; how to change files only where some root lets them.
fn instructions(set: &ToolSet, gate: &Gate) -> String {
    let face = set.face;
    let mut definitions = set.tools.iter().map(|tool| tool.definition());
    let changes = |tool: &Definition| tool.effect != Effect::Read;
    let may_change = definitions.any(|tool| changes(tool) && gate.offers(face.name(), tool));
    match face.changing() {
        Some(changing) if may_change => format!("{} {changing}", face.instructions()),
        _ => face.instructions().to_owned(),
    }
}

fn entries(set: ToolSet, gate: &Gate) -> Vec<Entry> {
    let directory = directory(&set, gate);
    let face = set.face;
    let entry = |tool| Entry {
        tool,
        face,
        directory: Arc::clone(&directory),
        counters: Counters::default(),
    };
    set.tools.into_iter().map(entry).collect()
}

/// What clients of a set may know of every root.
fn directory(set: &ToolSet, gate: &Gate) -> Arc<[RootCard]> {
    let name = set.face.name();
    let grants = gate.deployment().roots.iter();
    grants
        .map(|grant| RootCard {
            name: grant.name.clone(),
            read_only: grant.read_only,
            allowed_tools: set
                .tools
                .iter()
                .map(|tool| tool.definition())
                // A tool that names no root is always there; no root allows or forbids it.
                .filter(|tool| Gate::lets_use(grant, name, tool))
                .map(|tool| tool.name)
                .collect(),
        })
        .collect()
}

fn index(entries: &[Entry]) -> Result<HashMap<&'static str, usize>, SetupError> {
    let mut by_name = HashMap::new();
    for (index, entry) in entries.iter().enumerate() {
        let tool = entry.tool.definition().name;
        let earlier = by_name
            .insert(tool, index)
            .and_then(|earlier| entries.get(earlier));
        if let Some(earlier) = earlier {
            let (first, second) = (earlier.face.name(), entry.face.name());
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
fn described(entry: &Entry, gate: &Gate) -> McpTool {
    let definition = entry.tool.definition();
    let deployment = gate.deployment();
    let mut tool = McpTool::new(
        definition.name,
        definition.description,
        input_schema(definition, deployment.root_header),
    )
    .with_title(definition.title)
    .with_annotations(definition.annotations());
    if deployment.replies.structured() {
        let either = schema::or_error(&definition.output, &entry.face.error_schema());
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

impl ServerHandler for Service {
    fn get_info(&self) -> ServerConfig {
        self.inner.info.clone()
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        // In a box: rmcp moves the future of a request several times, and this one is large.
        Box::pin(self.answer(request, context)).await
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        // All tools fit one page, so no cursor was ever given out.
        if request.is_some_and(|request| request.cursor.is_some()) {
            return Err(ErrorData::invalid_params(
                "Unknown cursor: tools/list has one page",
                None,
            ));
        }
        let listed = ListToolsResult::with_all_items(self.listed().to_vec());
        // The list is the same for everyone and for as long as the process lives.
        Ok(listed
            .with_ttl_ms(LIST_LIFETIME_MS)
            .with_cache_scope(CacheScope::Public))
    }

    fn get_tool(&self, name: &str) -> Option<McpTool> {
        let index = self.inner.by_name.get(name)?;
        self.described().get(*index).cloned()
    }

    /// What rmcp could not read as one of its own requests: a method nobody knows, or one whose params are wrong.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        if request.method == "tools/call" {
            return self.call_misread(request.params.as_ref(), context);
        }
        let method = crate::arguments::shortened(&request.method);
        Err(unknown_method(&method))
    }

    async fn complete(
        &self,
        _request: CompleteRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        Err(unknown_method(CompleteRequestMethod::VALUE))
    }

    async fn list_prompts(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        Err(unknown_method(ListPromptsRequestMethod::VALUE))
    }

    async fn list_resources(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        Err(unknown_method(ListResourcesRequestMethod::VALUE))
    }

    async fn list_resource_templates(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Err(unknown_method(ListResourceTemplatesRequestMethod::VALUE))
    }

    async fn on_initialized(&self, _context: NotificationContext<RoleServer>) {}
}

fn unknown_method(method: &str) -> ErrorData {
    let message = format!("unknown method: {method}");
    ErrorData::new(ErrorCode::METHOD_NOT_FOUND, message, None)
}

/// How this client can be asked: it has to declare sampling, and its revision says which way.
fn questions(
    context: &RequestContext<RoleServer>,
    answers: InputResponses,
    state: Option<String>,
) -> Questions {
    let capabilities = context.client_capabilities();
    if capabilities.is_none_or(|declared| declared.sampling.is_none()) {
        return Questions::None;
    }
    match context.protocol_version() {
        Some(revision) if revision >= ProtocolVersion::V_2026_07_28 => {
            Questions::Result { answers, state }
        }
        _ => Questions::Request(context.peer.clone()),
    }
}

fn caller(context: RequestContext<RoleServer>, questions: Questions) -> Caller {
    let http = http_client(&context);
    // On stdio there is only one client.
    let account = http.map(Client::account).unwrap_or_default();
    let allowance = http.map(Client::allowance).unwrap_or_default();
    let client = client(&context);
    let token = context.meta.get_progress_token();
    let progress = token.map(|token| Progress::Client {
        peer: context.peer,
        token,
    });
    Caller {
        client,
        account,
        allowance,
        cancelled: context.ct,
        progress,
        questions,
    }
}

/// How the transport wants the result.
fn delivery(context: &RequestContext<RoleServer>) -> Option<Delivery> {
    let http = context.extensions.get::<http::request::Parts>();
    let extensions = http.map_or_else(|| context.extensions.get(), |http| http.extensions.get());
    extensions.cloned()
}

/// What rmcp gets of a result: all of it, or as much as the transport wants.
fn delivered(result: ToolResult, delivery: Option<Delivery>) -> CallToolResult {
    match delivery {
        Some(Delivery::Carried) => result.carrying(),
        Some(Delivery::Slot(slot)) => {
            let frame = result.frame();
            slot.put(result);
            frame
        }
        None => result.into_rmcp(),
    }
}

fn http_client(context: &RequestContext<RoleServer>) -> Option<&Client> {
    let parts = context.extensions.get::<http::request::Parts>()?;
    parts.extensions.get()
}

/// The host of an address. A host on IPv6 has a whole network of addresses to call from.
fn host_of(address: &str) -> String {
    match address.parse::<SocketAddr>().map(|address| address.ip()) {
        Ok(IpAddr::V4(host)) => host.to_string(),
        Ok(IpAddr::V6(host)) => match (host.to_ipv4_mapped(), host.segments()) {
            (Some(host), _) => host.to_string(),
            (None, [a, b, c, d, ..]) => format!("{a:x}:{b:x}:{c:x}:{d:x}::/64"),
        },
        Err(_) => address.to_owned(),
    }
}

/// How a client that told its name is called in the log.
#[must_use]
pub fn named_as(client: &Implementation) -> String {
    format!("{}/{}", client.name, client.version)
}

/// The client's own name where it gives one, and on HTTP where it calls from and whom the operator knows it as.
fn client(context: &RequestContext<RoleServer>) -> String {
    let http = http_client(context);
    // Without a session rmcp makes up a client for older revisions; only what the request itself says counts.
    let named = match http {
        Some(_) => context.meta.client_info(),
        None => context.client_info(),
    };
    let named = named.map(|named| named_as(&named));
    match http {
        Some(http) => http.shown(named),
        None => named.unwrap_or_else(|| "unknown".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::host_of;

    #[test]
    fn a_client_is_a_host_not_a_connection() {
        assert_eq!(host_of("127.0.0.1:4000"), host_of("127.0.0.1:4001"));
        assert_ne!(host_of("127.0.0.1:4000"), host_of("127.0.0.2:4000"));
        assert_eq!(host_of("[2001:db8::1]:1"), host_of("[2001:db8::2]:1"));
        assert_ne!(host_of("[2001:db8::1]:1"), host_of("[2001:db8:0:1::1]:1"));
        assert_eq!(host_of("[::ffff:10.0.0.1]:1"), host_of("10.0.0.1:1"));
    }
}
