//! Our server beside other servers for the same: start, memory, small reads, a large listing.

use std::path::Path;
use std::time::Instant;

use anyhow::Result;
use serde_json::{Value, json};

use crate::measure::median;
use crate::report::{memory, time};
use crate::rows::Bench;
use crate::server::{Durability, Own, Server};

/// How many starts, and how many reads one after the other.
const STARTS: usize = 9;
const READS: usize = 200;
const ROUNDS: usize = 5;

/// A server, and how it is asked for a file and a listing.
struct Candidate {
    name: &'static str,
    line: Vec<String>,
    read: (&'static str, Value),
    list: (&'static str, Value),
}

/// The results of a server: medians in seconds, memory in KiB.
struct Figures {
    name: &'static str,
    start: Vec<f64>,
    idle: u64,
    reads: Vec<f64>,
    listing: Vec<f64>,
}

impl Bench {
    /// A table of all servers, measured in turn.
    pub(crate) fn other_servers(&self, own: &Own) -> Result<String> {
        let candidates = self.candidates(own)?;
        let mut all: Vec<Figures> = candidates.iter().map(Figures::new).collect();
        for _ in 0..STARTS {
            for (figures, candidate) in all.iter_mut().zip(&candidates) {
                let server = Server::start(&candidate.line, &own.base)?;
                figures.start.push(server.first_reply.as_secs_f64());
                figures.idle = server.resident();
            }
        }
        let mut servers = Vec::new();
        for candidate in &candidates {
            let server = Server::start(&candidate.line, &own.base)?;
            server.settle()?;
            servers.push(server);
        }
        for _ in 0..=ROUNDS {
            for ((figures, candidate), server) in all.iter_mut().zip(&candidates).zip(&mut servers)
            {
                figures.reads.push(timed(server, &candidate.read, READS)?);
                figures.listing.push(timed(server, &candidate.list, 1)?);
            }
        }
        Ok(table(&all))
    }

    fn candidates(&self, own: &Own) -> Result<Vec<Candidate>> {
        let root = &self.corpus.root;
        let text = |path: &Path| path.display().to_string();
        let (file, directory) = (
            text(&root.join("small.txt")),
            text(&root.join("flat-10000")),
        );
        let mut all = vec![Candidate {
            name: "mcp-filesystem (this)",
            line: own.line("workspace", Durability::Fsync, "stdio")?,
            read: ("read_file", json!({"root": "bench", "path": "small.txt"})),
            list: (
                "list_folder",
                json!({"root": "bench", "path": "flat-10000"}),
            ),
        }];
        let told_to_read: [&str; 3] = ["--stdio", "--enable-read", "-d"];
        let known = [
            ("reference server (npm)", self.peers.reference(), &[][..]),
            (
                "rust-mcp-filesystem",
                self.peers.path("rust-mcp-filesystem"),
                &[][..],
            ),
            (
                "the Cargo crate mcp-filesystem",
                self.peers.path("mcp-filesystem"),
                &told_to_read[..],
            ),
        ];
        for (name, program, flags) in known {
            if let Some(program) = program {
                let flags = flags.iter().map(|flag| (*flag).to_owned());
                let line = std::iter::once(program).chain(flags);
                all.push(Candidate {
                    name,
                    line: line.chain([text(root)]).collect(),
                    read: ("read_text_file", json!({"path": file})),
                    list: ("list_directory", json!({"path": directory})),
                });
            }
        }
        Ok(all)
    }
}

impl Figures {
    fn new(candidate: &Candidate) -> Figures {
        Figures {
            name: candidate.name,
            start: Vec::new(),
            idle: 0,
            reads: Vec::new(),
            listing: Vec::new(),
        }
    }
}

/// The seconds that so many calls take one after the other.
fn timed(server: &mut Server, call: &(&'static str, Value), times: usize) -> Result<f64> {
    let begun = Instant::now();
    for _ in 0..times {
        server.ask(call.0, &call.1)?;
    }
    let took = begun.elapsed().as_secs_f64();
    server.reply()?;
    Ok(took)
}

fn table(all: &[Figures]) -> String {
    let mut text = String::from(
        "| server | start to first reply | resident when idle | 200 reads of 4 KiB, one after the other | 10,000 entries listed |\n\
         |---|--:|--:|--:|--:|\n",
    );
    for figures in all {
        text += &format!(
            "| {} | {} | {} | {} | {} |\n",
            figures.name,
            time(median(figures.start.clone())),
            memory(figures.idle),
            time(median(figures.reads.clone())),
            time(median(figures.listing.clone())),
        );
    }
    text + "\nOurs lists with size, time and type of each entry, the others with names only.\n"
}
