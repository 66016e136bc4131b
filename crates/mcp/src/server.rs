//! One endpoint as clients see it: its tools, and what it says of itself, prepared once.

use std::fmt;
use std::sync::{Arc, OnceLock};

use rmcp::model::{
    CacheScope, DiscoverResult, InitializeResult, ListToolsResult, ProtocolVersion, ResultType,
};
use serde_json::value::RawValue;
use toolset::Service;

use crate::result::Wording;

/// How long clients may keep the tool list. It changes only when the server restarts.
const LIST_LIFETIME_MS: u64 = 5 * 60 * 1000;

/// One endpoint. Cloning is cheap.
#[derive(Clone)]
pub struct Server {
    inner: Arc<ServerState>,
}

struct ServerState {
    service: Service,
    older_list: OnceLock<Box<RawValue>>,
    newest_list: OnceLock<Box<RawValue>>,
}

impl Server {
    /// Serves an endpoint's tools.
    #[must_use]
    pub fn new(service: Service) -> Server {
        Server {
            inner: Arc::new(ServerState {
                service,
                older_list: OnceLock::new(),
                newest_list: OnceLock::new(),
            }),
        }
    }

    /// Its tools.
    #[must_use]
    pub fn service(&self) -> &Service {
        &self.inner.service
    }

    /// What `initialize` is answered with.
    pub(crate) fn initialized(&self, revision: ProtocolVersion) -> InitializeResult {
        let mut info = self.inner.service.catalogue().info().clone();
        info.protocol_version = revision;
        info
    }

    /// What `server/discover` is answered with.
    pub(crate) fn discovered(&self) -> DiscoverResult {
        let known = ProtocolVersion::KNOWN_VERSIONS.to_vec();
        DiscoverResult::from_server_info(known, self.inner.service.catalogue().info().clone())
    }

    /// What `tools/list` is answered with: the same for everyone and for as long as the process lives.
    pub(crate) fn list(&self, wording: Wording) -> &RawValue {
        let list = match wording {
            Wording::Older => &self.inner.older_list,
            Wording::Newest => &self.inner.newest_list,
        };
        list.get_or_init(|| self.encoded_list(wording))
    }

    fn encoded_list(&self, wording: Wording) -> Box<RawValue> {
        let mut list =
            ListToolsResult::with_all_items(self.inner.service.catalogue().listed().to_vec())
                .with_ttl_ms(LIST_LIFETIME_MS)
                .with_cache_scope(CacheScope::Public);
        list.result_type = match wording {
            Wording::Older => None,
            Wording::Newest => Some(ResultType::COMPLETE),
        };
        // Every schema has a form in JSON.
        serde_json::value::to_raw_value(&list).unwrap_or_default()
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Server")
    }
}
