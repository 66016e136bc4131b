//! The endpoints that clients are served, on stdio or over HTTP: built at the start, and again on SIGHUP.

use std::sync::Arc;

use anyhow::{Result, anyhow};
use mcp::{AccessChange, LiveServer, Server};
use toolset::guide::GuideState;
use toolset::{Admission, ClientGrant, Deployment, Service, ToolSet};

use crate::deployment::client_grant;
use crate::http::{Endpoint, EndpointParts, RevokedTokens, ServedPart};
use crate::in_force::InForce;
use crate::settings::{STDIO_CLIENT, SessionPolicy, Settings, Toolset, Transport};
use crate::tool_sets::tools_of;

/// The endpoints in force.
pub(super) struct Served {
    admission: Arc<InForce<Admission>>,
    guide_state: Option<Arc<GuideState>>,
    clients: InForce<Vec<NamedClient>>,
    way: ServedWay,
}

/// A client that the settings name.
struct NamedClient {
    grant: ClientGrant,
    admission: Arc<Admission>,
}

enum ServedWay {
    Stdio {
        /// All sets, for a caller that is no named client.
        all: InForce<Service>,
        live: LiveServer,
    },
    Http(Vec<(Toolset, Arc<Endpoint>)>),
}

/// The endpoints that will be served next.
pub(super) struct NextServed {
    admission: Arc<Admission>,
    clients: Vec<NamedClient>,
    way: NextWay,
}

enum NextWay {
    Stdio { all: Service, own: ServedPart },
    Http(Vec<EndpointParts>),
}

/// Whether a named client, or callers without a name, may reach other things than before.
pub(super) type AccessChanges<'own> = &'own dyn Fn(Option<&str>) -> AccessChange;

impl Served {
    /// Prepares the endpoints of the start.
    pub(super) fn start(
        settings: &Settings,
        admission: Arc<InForce<Admission>>,
        guide_state: Option<Arc<GuideState>>,
    ) -> Result<Served> {
        let now = admission.now();
        let clients = named_clients(settings, &now, &[]);
        let tools = |set: &Toolset| tools_of(*set, settings, guide_state.as_ref());
        let way = match settings.transport {
            Transport::Stdio => way_of_stdio(settings, tools, now, &clients)?,
            Transport::Http => way_of_http(settings, tools, &now, &clients)?,
        };
        Ok(Served {
            admission,
            guide_state,
            clients: InForce::new(clients),
            way,
        })
    }

    /// The admission in force.
    pub(super) fn admission(&self) -> Arc<Admission> {
        self.admission.now()
    }

    /// The server on standard input and output, if there is one.
    pub(super) fn stdio(&self) -> Option<&LiveServer> {
        match &self.way {
            ServedWay::Stdio { live, .. } => Some(live),
            ServedWay::Http(_) => None,
        }
    }

    /// The endpoints over HTTP.
    pub(super) fn endpoints(&self) -> Vec<Arc<Endpoint>> {
        match &self.way {
            ServedWay::Stdio { .. } => Vec::new(),
            ServedWay::Http(endpoints) => {
                endpoints.iter().map(|(_, one)| Arc::clone(one)).collect()
            }
        }
    }

    /// The tools for callers that are no named client.
    pub(super) fn services(&self) -> Vec<Service> {
        match &self.way {
            ServedWay::Stdio { live, .. } => vec![live.now().service().clone()],
            ServedWay::Http(endpoints) => {
                let servers = endpoints.iter().map(|(_, endpoint)| endpoint.server());
                servers.map(|server| server.service().clone()).collect()
            }
        }
    }

    /// Prepares the endpoints of new settings; nothing is in force yet.
    pub(super) fn prepare(
        &self,
        settings: &Settings,
        deployment: Deployment,
        changes: AccessChanges<'_>,
    ) -> Result<NextServed> {
        let admission = self.admission.now().again(deployment);
        let clients = named_clients(settings, &admission, &self.clients.now());
        let way = self.next_way(settings, &admission, &clients, changes)?;
        Ok(NextServed {
            admission,
            clients,
            way,
        })
    }

    fn next_way(
        &self,
        settings: &Settings,
        admission: &Arc<Admission>,
        clients: &[NamedClient],
        changes: AccessChanges<'_>,
    ) -> Result<NextWay> {
        let tools = |set: &Toolset| tools_of(*set, settings, self.guide_state.as_ref());
        match &self.way {
            ServedWay::Stdio { all, .. } => {
                let sets = settings.toolsets.iter().map(tools).collect();
                let all = all.now().again(sets, Arc::clone(admission))?;
                next_of_stdio(all, clients, changes)
            }
            ServedWay::Http(endpoints) => {
                next_of_http(endpoints, tools, admission, clients, changes)
            }
        }
    }

    /// Puts in force what was prepared.
    pub(super) fn put_in_force(&self, next: NextServed) {
        next.admission.enforce();
        self.admission.replace(next.admission);
        self.clients.replace(next.clients);
        match (&self.way, next.way) {
            (ServedWay::Stdio { all, live }, NextWay::Stdio { all: next, own }) => {
                all.replace(next);
                live.replace(live.now().with_tools(own.service), own.access);
            }
            (ServedWay::Http(endpoints), NextWay::Http(parts)) => {
                for ((_, endpoint), parts) in endpoints.iter().zip(parts) {
                    endpoint.replace(parts);
                }
            }
            // The prepared endpoints are always for the same transport.
            (ServedWay::Stdio { .. }, NextWay::Http(_))
            | (ServedWay::Http(_), NextWay::Stdio { .. }) => {}
        }
    }

    /// Ends the connections of callers that are no longer let in.
    pub(super) fn end_revoked(&self, revoked: &RevokedTokens) {
        let endpoints = self.endpoints();
        endpoints.iter().for_each(|one| one.end_revoked(revoked));
    }
}

/// All tool sets for the one caller.
fn way_of_stdio(
    settings: &Settings,
    tools: impl Fn(&Toolset) -> ToolSet,
    admission: Arc<Admission>,
    clients: &[NamedClient],
) -> Result<ServedWay> {
    let sets = settings.toolsets.iter().map(tools).collect();
    let all = Service::new(sets, admission)?;
    let own = of_stdio(&all, clients)?;
    Ok(ServedWay::Stdio {
        all: InForce::new(all),
        live: LiveServer::new(server_of(settings, own)),
    })
}

/// An endpoint for each tool set.
fn way_of_http(
    settings: &Settings,
    tools: impl Fn(&Toolset) -> ToolSet,
    admission: &Arc<Admission>,
    clients: &[NamedClient],
) -> Result<ServedWay> {
    let endpoints = settings.toolsets.iter().map(|set| {
        let service = Service::new(vec![tools(set)], Arc::clone(admission))?;
        let endpoint = endpoint(*set, settings, service, clients);
        Ok((*set, Arc::new(endpoint)))
    });
    Ok(ServedWay::Http(endpoints.collect::<Result<_>>()?))
}

fn next_of_stdio(
    all: Service,
    clients: &[NamedClient],
    changes: AccessChanges<'_>,
) -> Result<NextWay> {
    let own = ServedPart {
        service: of_stdio(&all, clients)?,
        access: changes(Some(STDIO_CLIENT)),
    };
    Ok(NextWay::Stdio { all, own })
}

fn next_of_http(
    endpoints: &[(Toolset, Arc<Endpoint>)],
    tools: impl Fn(&Toolset) -> ToolSet,
    admission: &Arc<Admission>,
    clients: &[NamedClient],
    changes: AccessChanges<'_>,
) -> Result<NextWay> {
    let parts = endpoints.iter().map(|(set, endpoint)| {
        let before = endpoint.server();
        let tools = vec![tools(set)];
        let service = before.service().again(tools, Arc::clone(admission))?;
        Ok(endpoint_parts(service, clients, changes))
    });
    Ok(NextWay::Http(parts.collect::<Result<_>>()?))
}

/// Every named client with its own admission. The part of its limits that it already used stays used.
fn named_clients(
    settings: &Settings,
    admission: &Admission,
    before: &[NamedClient],
) -> Vec<NamedClient> {
    let clients = settings.clients.iter();
    let grants = clients.map(|client| client_grant(client, settings, admission.deployment()));
    grants
        .map(|grant| {
            let mut known = before.iter();
            let known = known.find(|client| client.grant.name == grant.name);
            let known = known.map(|client| &*client.admission);
            NamedClient {
                admission: admission.for_client(&grant, known),
                grant,
            }
        })
        .collect()
}

/// The list of tools can only change through a config file.
fn server_of(settings: &Settings, service: Service) -> Server {
    match settings.config_file {
        Some(_) => Server::that_may_change(service),
        None => Server::new(service),
    }
}

/// The tools for the one caller on standard input and output: those of the client `stdio`, if there is one.
fn of_stdio(all: &Service, clients: &[NamedClient]) -> Result<Service> {
    let mut clients = clients.iter();
    let Some(client) = clients.find(|client| &*client.grant.name == STDIO_CLIENT) else {
        return Ok(all.clone());
    };
    let own = all.for_client(&client.grant, &client.admission);
    own.ok_or_else(|| {
        anyhow!("clients: the client {STDIO_CLIENT} may use none of the tool sets that are served")
    })
}

fn endpoint(
    set: Toolset,
    settings: &Settings,
    service: Service,
    clients: &[NamedClient],
) -> Endpoint {
    let has_sessions = match settings.sessions {
        SessionPolicy::On => true,
        SessionPolicy::Off => false,
        SessionPolicy::Auto => set == Toolset::Guide,
    };
    let max_sessions = has_sessions.then_some(settings.max_sessions);
    let parts = clients.iter().filter_map(|client| {
        let own = service.for_client(&client.grant, &client.admission)?;
        Some((Arc::clone(&client.grant.name), own))
    });
    let parts = parts.collect();
    let server = server_of(settings, service);
    Endpoint::new(set.name().to_owned(), server, parts, max_sessions)
}

fn endpoint_parts(
    service: Service,
    clients: &[NamedClient],
    changes: AccessChanges<'_>,
) -> EndpointParts {
    let parts = clients.iter().filter_map(|client| {
        let part = ServedPart {
            service: service.for_client(&client.grant, &client.admission)?,
            access: changes(Some(&client.grant.name)),
        };
        Some((Arc::clone(&client.grant.name), part))
    });
    EndpointParts {
        clients: parts.collect(),
        own: ServedPart {
            service,
            access: changes(None),
        },
    }
}
