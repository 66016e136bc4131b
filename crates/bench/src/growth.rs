//! How cost grows: with the number of files, the size of a file, the number of clients, and searches beside small calls.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Result;
use serde_json::{Value, json};

use crate::corpus::RARE;
use crate::load::{self, HttpServer};
use crate::measure::{Costs, quantile};
use crate::pair::Servers;
use crate::rows::Bench;
use crate::searches::BEFORE_TENTH;
use crate::server::{Durability, Own, Server};
use crate::svg::{Line, Plot};

/// How often each point is measured.
const ROUNDS: usize = 5;
/// How many clients there are.
const CLIENTS: [usize; 5] = [1, 10, 50, 200, 1_000];
/// How many searches run beside small calls.
const SEARCHES: [usize; 4] = [0, 1, 4, 16];
const LOAD: Duration = Duration::from_secs(3);

/// A plot with the name of its file, and a description.
pub(crate) struct Grown {
    pub(crate) file: &'static str,
    pub(crate) plot: Plot,
    pub(crate) words: String,
}

impl Bench {
    /// All plots.
    pub(crate) fn growth(&self, own: &Own) -> Result<Vec<Grown>> {
        let mut servers = Servers::new(own.clone());
        let http = HttpServer::start(own)?;
        Ok(vec![
            self.by_files(&mut servers)?,
            self.by_size(&mut servers)?,
            self.by_clients(&http)?,
            self.beside_searches(&http)?,
        ])
    }

    fn by_files(&self, servers: &mut Servers) -> Result<Grown> {
        let grep = |path: &str| json!({"root": "bench", "path": path, "pattern": RARE, "max_results": 1000});
        let glob = |path: &str| json!({"root": "bench", "path": path, "pattern": "**/*.toml", "max_results": 1_000_000});
        let (mut searched, mut tenth, mut named) = (Vec::new(), Vec::new(), Vec::new());
        for group in &self.corpus.tree {
            let path = format!("tree/{}", group.name);
            let across = count(group.files);
            let first = unremembered(servers, "grep", &grep(&path))?;
            searched.push((across, first));
            tenth.push((across, remembered(servers, "grep", &grep(&path))?));
        }
        for group in &self.corpus.names {
            let path = format!("names/{}", group.name);
            let took = unremembered(servers, "glob", &glob(&path))?;
            named.push((count(group.files), took));
        }
        let words = format!(
            "grep for a rare literal, nothing remembered: {}; the tenth: {}; glob `**/*.toml`, nothing remembered: {}",
            told(&searched, "µs a file", 1e3),
            told(&tenth, "µs a file", 1e3),
            told(&named, "µs a name", 1e3)
        );
        Ok(Grown {
            file: "files.svg",
            plot: plot(
                "Cost against the number of files",
                "files",
                "ms",
                vec![
                    line("grep", searched),
                    line("grep, the tenth", tenth),
                    line("glob", named),
                ],
            ),
            words,
        })
    }

    fn by_size(&self, servers: &mut Servers) -> Result<Grown> {
        let calls: [(&str, &str, Value); 4] = [
            ("grep", "grep", json!({"pattern": "needle-[0-9]+"})),
            ("sha256", "hash_file", json!({"algorithm": "sha256"})),
            (
                "last 50 lines",
                "read_file",
                json!({"offset_lines": -50, "limit_lines": 50}),
            ),
            ("64 KiB at the end", "read_file", json!({})),
        ];
        let mut lines = Vec::new();
        for (name, tool, more) in calls {
            let mut points = Vec::new();
            for size in &self.corpus.logs {
                let mut arguments = more.clone();
                arguments["root"] = json!("bench");
                arguments["path"] = json!(format!("logs/{size}.log"));
                if name.starts_with("64") {
                    arguments["offset_bytes"] = json!(size - 65_536);
                    arguments["limit_bytes"] = json!(65_536);
                }
                let megabytes = size / 1_000_000;
                let across = count(usize::try_from(megabytes)?);
                points.push((across, unremembered(servers, tool, &arguments)?));
            }
            lines.push(line(name, points));
        }
        let words = lines
            .iter()
            .map(|line| format!("{}: {}", line.name, told(&line.points, "ms a MB", 1.0)))
            .collect::<Vec<_>>()
            .join("; ");
        Ok(Grown {
            file: "sizes.svg",
            plot: plot("Cost against the size of one file", "MB", "ms", lines),
            words,
        })
    }

    fn by_clients(&self, http: &HttpServer) -> Result<Grown> {
        let request = load::request(http.address, "read_file", &small_read());
        load::serve(http.address, &request, 1, LOAD / 3)?;
        let (mut rates, mut middles, mut lates) = (Vec::new(), Vec::new(), Vec::new());
        let mut words = Vec::new();
        for clients in CLIENTS {
            let served = load::serve(http.address, &request, clients, LOAD)?;
            let (middle, late) = (
                quantile(served.waits.clone(), 0.5) * 1e3,
                quantile(served.waits, 0.99) * 1e3,
            );
            rates.push((count(clients), served.rate));
            middles.push((count(clients), middle));
            lates.push((count(clients), late));
            words.push(format!(
                "{clients} clients: {:.0} calls/s, p50 {middle:.2} ms, p99 {late:.2} ms",
                served.rate
            ));
        }
        Ok(Grown {
            file: "clients.svg",
            plot: plot(
                "4 KiB reads over HTTP",
                "clients",
                "calls/s and ms",
                vec![
                    line("calls a second", rates),
                    line("p50, ms", middles),
                    line("p99, ms", lates),
                ],
            ),
            words: words.join("; "),
        })
    }

    /// Small calls of ten clients while searches of the whole tree run without end.
    fn beside_searches(&self, http: &HttpServer) -> Result<Grown> {
        let small = load::request(http.address, "read_file", &small_read());
        let search = json!({"root": "bench", "path": "tree", "pattern": RARE});
        let search = load::request(http.address, "grep", &search);
        let (mut middles, mut lates, mut words) = (Vec::new(), Vec::new(), Vec::new());
        for searches in SEARCHES {
            let waits = beside(http.address, &search, searches, &small)?;
            let (middle, late) = (
                quantile(waits.clone(), 0.5) * 1e3,
                quantile(waits, 0.99) * 1e3,
            );
            middles.push((count(searches) + 1.0, middle));
            lates.push((count(searches) + 1.0, late));
            words.push(format!(
                "{searches} searches: p50 {middle:.2} ms, p99 {late:.2} ms"
            ));
        }
        Ok(Grown {
            file: "searches.svg",
            plot: plot(
                "4 KiB reads of 10 clients while searches run",
                "searches + 1",
                "ms",
                vec![line("p50", middles), line("p99", lates)],
            ),
            words: words.join("; "),
        })
    }
}

fn beside(
    address: std::net::SocketAddr,
    search: &[u8],
    searches: usize,
    small: &[u8],
) -> Result<Vec<f64>> {
    let over = Arc::new(AtomicBool::new(false));
    std::thread::scope(|scope| {
        for _ in 0..searches {
            let over = Arc::clone(&over);
            scope.spawn(move || {
                while !over.load(Ordering::Relaxed) {
                    if load::serve(address, search, 1, LOAD / 30).is_err() {
                        break;
                    }
                }
            });
        }
        let served = load::serve(address, small, 10, LOAD);
        over.store(true, Ordering::Relaxed);
        Ok(served?.waits)
    })
}

fn small_read() -> Value {
    json!({"root": "bench", "path": "small.txt"})
}

/// The milliseconds of a call of a server that remembers nothing of earlier searches.
fn unremembered(servers: &mut Servers, tool: &str, arguments: &Value) -> Result<f64> {
    milliseconds(servers.unremembered()?, 1, tool, arguments)
}

/// The milliseconds of a call that was made nine times before.
fn remembered(servers: &mut Servers, tool: &str, arguments: &Value) -> Result<f64> {
    let server = servers.get("workspace", Durability::Fsync)?;
    milliseconds(server, BEFORE_TENTH, tool, arguments)
}

fn milliseconds(server: &mut Server, before: usize, tool: &str, arguments: &Value) -> Result<f64> {
    for _ in 0..before {
        server.ask(tool, arguments)?;
    }
    server.reply()?;
    let mut costs = Costs::default();
    for _ in 0..ROUNDS {
        costs.push(server.call(tool, arguments)?);
    }
    Ok(costs.wall() * 1e3)
}

fn told(points: &[(f64, f64)], unit: &str, factor: f64) -> String {
    let each = points
        .iter()
        .map(|(across, up)| format!("{:.2}", up / across * factor));
    format!("{} {unit}", each.collect::<Vec<_>>().join(", "))
}

fn line(name: &str, points: Vec<(f64, f64)>) -> Line {
    Line {
        name: name.to_owned(),
        points,
    }
}

fn plot(title: &str, across: &str, up: &str, lines: Vec<Line>) -> Plot {
    Plot {
        title: title.to_owned(),
        across: across.to_owned(),
        up: up.to_owned(),
        lines,
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts of files and clients")]
fn count(number: usize) -> f64 {
    number as f64
}
