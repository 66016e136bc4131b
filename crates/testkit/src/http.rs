//! Plain HTTP requests, including those that no MCP client would send.

use std::net::SocketAddr;
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// How long one request may take.
const PATIENCE: Duration = Duration::from_secs(90);

/// A pooled HTTP client and the server's address.
#[derive(Debug, Clone)]
pub struct Http {
    client: reqwest::Client,
    address: SocketAddr,
}

/// An HTTP response.
#[derive(Debug, Clone)]
pub struct Reply {
    /// The status code.
    pub status: u16,
    /// The headers, names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body as text.
    pub body: String,
}

impl Reply {
    /// A header's value.
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(own, _)| own == name);
        found.map(|(_, value)| value.as_str())
    }

    /// The JSON-RPC message: the body, or the last event of a stream.
    #[track_caller]
    pub fn json(&self) -> Value {
        let text = match self.header("content-type") {
            Some(kind) if kind.starts_with("text/event-stream") => last_event(&self.body),
            _ => self.body.clone(),
        };
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error} in {self:?}"))
    }
}

fn last_event(stream: &str) -> String {
    let data = stream.lines().filter_map(|line| line.strip_prefix("data:"));
    data.map(str::trim)
        .rfind(|data| !data.is_empty())
        .unwrap_or_default()
        .to_owned()
}

impl Http {
    /// A client of another listener than the one that clients of MCP use.
    pub fn at(address: SocketAddr) -> Http {
        Http::new(address)
    }

    pub(crate) fn new(address: SocketAddr) -> Http {
        // Loopback only, whatever the environment says about proxies.
        let builder = reqwest::Client::builder().no_proxy().timeout(PATIENCE);
        Http {
            client: builder.build().expect("an HTTP client"),
            address,
        }
    }

    pub(crate) fn client(&self) -> reqwest::Client {
        self.client.clone()
    }

    /// Where the server listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The whole address of a path.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Sends `GET`.
    pub async fn get(&self, path: &str) -> Reply {
        self.send("GET", path, &[]).await
    }

    /// Sends bytes as they are and returns everything until the server closes, as text.
    pub async fn raw(&self, bytes: &[u8]) -> String {
        let mut stream = TcpStream::connect(self.address)
            .await
            .expect("a connection");
        // A server that refuses early may close before it has read everything.
        let _ = stream.write_all(bytes).await;
        let mut answer = Vec::new();
        let reading = timeout(PATIENCE, stream.read_to_end(&mut answer));
        let _ = reading.await.expect("the server never closed");
        String::from_utf8_lossy(&answer).into_owned()
    }

    /// Sends any method without a body.
    pub async fn send(&self, method: &str, path: &str, headers: &[(&str, &str)]) -> Reply {
        let method = method.parse().expect("a method");
        ask(self.client.request(method, self.url(path)), headers).await
    }

    /// Sends a body as it is.
    pub async fn post_text(&self, path: &str, headers: &[(&str, &str)], body: &str) -> Reply {
        let request = self.client.post(self.url(path));
        ask(request.body(body.to_owned()), headers).await
    }

    /// Sends a JSON-RPC message as an MCP client would, with more headers.
    pub async fn post(&self, path: &str, headers: &[(&str, &str)], message: &Value) -> Reply {
        let accepted = "application/json, text/event-stream";
        let request = self.client.post(self.url(path)).header("accept", accepted);
        ask(request.json(message), headers).await
    }
}

async fn ask(mut request: reqwest::RequestBuilder, headers: &[(&str, &str)]) -> Reply {
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let sent = request.send().await;
    let sent = sent.unwrap_or_else(|error| panic!("no reply: {error:?}"));
    let reply = reply(sent).await;
    reply.unwrap_or_else(|error| panic!("no whole reply: {error:?}"))
}

async fn reply(response: reqwest::Response) -> Result<Reply, reqwest::Error> {
    let status = response.status().as_u16();
    let headers = response.headers().iter().map(|(name, value)| {
        (
            name.as_str().to_owned(),
            String::from_utf8_lossy(value.as_bytes()).into_owned(),
        )
    });
    let headers = headers.collect();
    Ok(Reply {
        status,
        headers,
        body: response.text().await?,
    })
}
