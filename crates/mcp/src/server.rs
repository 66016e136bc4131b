//! One endpoint as clients see it: its tools and its description, prepared once.

use std::fmt;
use std::sync::{Arc, OnceLock};

use rmcp::model::{
    CacheScope, DiscoverResult, InitializeResult, ListToolsResult, ProtocolVersion, ResultType,
    ServerCapabilities,
};
use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;
use toolset::{ReplyHalves, Service};

use crate::result::Wording;

/// How long clients may keep the tool list. It changes only when the operator changes the configuration.
pub(crate) const LIST_LIFETIME_MS: u64 = 5 * 60 * 1000;

/// One endpoint. Cloning is cheap.
#[derive(Clone)]
pub struct Server {
    inner: Arc<ServerState>,
}

struct ServerState {
    service: Service,
    older_lists: ToolLists,
    newest_lists: ToolLists,
    /// Whether the operator can change the tools while the process runs.
    may_change: bool,
    /// Cancelled when no more changes of resources are reported.
    ending: CancellationToken,
}

/// The encoded tool lists of one wording.
#[derive(Default)]
struct ToolLists {
    /// For clients that get the structured half.
    with_output: OnceLock<Box<RawValue>>,
    /// For clients that get text alone: without output schemas, no client library waits for a structured half.
    without_output: OnceLock<Box<RawValue>>,
}

impl Server {
    /// Serves an endpoint's tools.
    #[must_use]
    pub fn new(service: Service) -> Server {
        Server::with_parts(service, false, CancellationToken::new())
    }

    /// Serves an endpoint's tools, which the operator can change while the process runs: clients are told.
    #[must_use]
    pub fn that_may_change(service: Service) -> Server {
        Server::with_parts(service, true, CancellationToken::new())
    }

    /// The same endpoint with other tools: a client's part of them, or those after a reload. It ends when this endpoint ends.
    #[must_use]
    pub fn with_tools(&self, service: Service) -> Server {
        Server::with_parts(service, self.inner.may_change, self.inner.ending.clone())
    }

    fn with_parts(service: Service, may_change: bool, ending: CancellationToken) -> Server {
        Server {
            inner: Arc::new(ServerState {
                service,
                older_lists: ToolLists::default(),
                newest_lists: ToolLists::default(),
                may_change,
                ending,
            }),
        }
    }

    /// Its tools.
    #[must_use]
    pub fn service(&self) -> &Service {
        &self.inner.service
    }

    /// Ends everything that clients listen to, because the process ends.
    pub fn end_subscriptions(&self) {
        self.inner.ending.cancel();
    }

    /// Waits until everything that clients listen to is to end.
    pub(crate) async fn subscriptions_end(&self) {
        self.inner.ending.cancelled().await;
    }

    /// What `initialize` is answered with, to a client that can be told of changes or not.
    pub(crate) fn initialized(
        &self,
        revision: ProtocolVersion,
        hears_changes: bool,
    ) -> InitializeResult {
        let mut info = self.inner.service.catalogue().info().clone();
        info.protocol_version = revision;
        if let Some(resources) = &mut info.capabilities.resources
            && !hears_changes
        {
            resources.subscribe = None;
        }
        if hears_changes {
            self.declare_changes(&mut info.capabilities);
        }
        info
    }

    /// Declares that clients are told when the list of tools changes, if it can change.
    fn declare_changes(&self, capabilities: &mut ServerCapabilities) {
        if let Some(tools) = &mut capabilities.tools
            && self.inner.may_change
        {
            tools.list_changed = Some(true);
        }
    }

    /// Whether the operator can change the tools while the process runs.
    pub(crate) fn may_change(&self) -> bool {
        self.inner.may_change
    }

    /// What `server/discover` is answered with.
    pub(crate) fn discovered(&self) -> DiscoverResult {
        let known = ProtocolVersion::KNOWN_VERSIONS.to_vec();
        let mut info = self.inner.service.catalogue().info().clone();
        self.declare_changes(&mut info.capabilities);
        let mut discovered = DiscoverResult::from_server_info(known, info);
        (discovered.ttl_ms, discovered.cache_scope) =
            if self.inner.service.catalogue().has_uniform_resources() {
                (LIST_LIFETIME_MS, CacheScope::Public)
            } else {
                (0, CacheScope::Private)
            };
        discovered
    }

    /// What `tools/list` is answered with, for a client of this name.
    pub(crate) fn list(&self, wording: Wording, client: Option<&str>) -> &RawValue {
        let lists = match wording {
            Wording::Older => &self.inner.older_lists,
            Wording::Newest => &self.inner.newest_lists,
        };
        let halves = self.inner.service.catalogue().halves(client);
        let list = if halves.structured() {
            &lists.with_output
        } else {
            &lists.without_output
        };
        list.get_or_init(|| self.encoded_list(wording, halves))
    }

    fn encoded_list(&self, wording: Wording, halves: ReplyHalves) -> Box<RawValue> {
        let catalogue = self.inner.service.catalogue();
        let tools = catalogue.listed_with(halves);
        // A shared cache could hand one client's list to another.
        let (lifetime, scope) = if catalogue.is_uniform() {
            (LIST_LIFETIME_MS, CacheScope::Public)
        } else {
            (0, CacheScope::Private)
        };
        let mut list = ListToolsResult::with_all_items(tools)
            .with_ttl_ms(lifetime)
            .with_cache_scope(scope);
        list.result_type = match wording {
            Wording::Older => None,
            Wording::Newest => Some(ResultType::COMPLETE),
        };
        // Every schema can be written as JSON.
        serde_json::value::to_raw_value(&list).unwrap_or_default()
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Server")
    }
}
