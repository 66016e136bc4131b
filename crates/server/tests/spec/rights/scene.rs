//! A server with its clients: everything that is asked is remembered, everything that is told is looked through.

use testkit::{Transport, Value, Wire, json};

use super::ground::{CLIENTS, Ground};
use crate::resources::{Era, headers, message};

/// A running server on planted roots.
pub(super) struct Scene {
    pub(super) ground: Ground,
    pub(super) wire: Wire,
    asked: Vec<Asked>,
    /// What was told to somebody who may not know it.
    pub(super) leaks: Vec<String>,
}

/// A request: who made it, and its text.
struct Asked {
    client: usize,
    text: String,
}

impl Scene {
    /// Starts the server; single-root sets use the root of this number.
    pub(super) async fn start(home: usize) -> Scene {
        let ground = Ground::new();
        let wire = ground.setup(home).wire(Transport::Http).await;
        Scene {
            ground,
            wire,
            asked: Vec::new(),
            leaks: Vec::new(),
        }
    }

    /// Asks as a client. The request is marked, so that its log line can be found.
    pub(super) async fn ask(
        &mut self,
        client: usize,
        set: &str,
        method: &str,
        params: &Value,
    ) -> Value {
        let number = self.asked.len();
        let text = params.to_string();
        let mut params = params.clone();
        params["_meta"]["traceparent"] = json!(trace(number));
        // Without a session `guide` can be called in the newest revision alone.
        let era = if set == "guide" {
            Era::Newest
        } else {
            Era::Older
        };
        let message = message(era, 1, method, params);
        let mut headers = headers(era, &message);
        headers.push(("authorization", format!("Bearer {}", CLIENTS[client].token)));
        let headers: Vec<(&str, &str)> = headers
            .iter()
            .map(|(name, value)| (*name, value.as_str()))
            .collect();
        let endpoint = format!("/mcp/{set}");
        let reply = self.wire.http().post(&endpoint, &headers, &message).await;
        let leaks = self.ground.leaks(client, &reply.body, &text);
        if !leaks.is_empty() {
            let name = CLIENTS[client].name;
            self.leaks.push(format!(
                "{leaks:?} told to {name} by {set} {method} {text}: {}",
                reply.body
            ));
        }
        self.asked.push(Asked { client, text });
        if reply.status == 200 {
            reply.json()
        } else {
            json!({"status": reply.status, "body": reply.body})
        }
    }

    /// Calls a tool.
    pub(super) async fn call(
        &mut self,
        client: usize,
        set: &str,
        tool: &str,
        arguments: &Value,
    ) -> Value {
        let params = json!({"name": tool, "arguments": arguments});
        self.ask(client, set, "tools/call", &params).await
    }

    /// How many requests there were.
    pub(super) fn count(&self) -> usize {
        self.asked.len()
    }

    /// The log line of a request.
    pub(super) async fn line_of(&self, number: usize) -> Value {
        self.wire
            .logged(|line| line["traceparent"] == trace(number).as_str())
            .await
    }

    /// Notes what a client did to things that do not exist for it.
    pub(super) fn look_for_damage(&mut self, client: usize, root: usize, after: &str) {
        for damage in self.ground.damage(client, root) {
            let name = CLIENTS[client].name;
            self.leaks.push(format!("{after} of {name}: {damage}"));
        }
    }

    /// Ends the server and looks through its log: a line about a client says nothing that this client may not know, but
    /// what it said itself in the request that the line is about.
    pub(super) async fn end(self) {
        let Scene {
            ground,
            wire,
            asked,
            mut leaks,
        } = self;
        let ended = wire.stop().await;
        let mut lines = 0;
        for line in ended.log() {
            let Some((client, said)) = whose(&line, &asked) else {
                continue;
            };
            lines += 1;
            let told = ground.leaks(client, &line.to_string(), said);
            if !told.is_empty() {
                leaks.push(format!("{told:?} in the log: {line} after {said}"));
            }
        }
        let (calls, shown) = (asked.len(), leaks.len().min(40));
        assert!(lines > 0, "no log line names a client");
        assert!(
            leaks.is_empty(),
            "{} leaks in {calls} requests:\n{}",
            leaks.len(),
            leaks[..shown].join("\n")
        );
    }
}

/// Whose line this is, and what that client asked.
fn whose<'asked>(line: &Value, asked: &'asked [Asked]) -> Option<(usize, &'asked str)> {
    let by_trace = || {
        let number = line["traceparent"].as_str()?.get(3..35)?;
        let number = usize::from_str_radix(number, 16).ok()?;
        let asked = asked.get(number)?;
        Some((asked.client, asked.text.as_str()))
    };
    let by_name = || {
        let shown = line["client"].as_str()?;
        let is_own = |client: &super::ground::Client| shown.contains(&format!("({})", client.name));
        CLIENTS.iter().position(is_own).map(|client| (client, ""))
    };
    by_trace().or_else(by_name)
}

fn trace(number: usize) -> String {
    format!("00-{number:032x}-{:016x}-01", 1)
}
