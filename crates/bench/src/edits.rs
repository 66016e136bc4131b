//! One small edit after the other through our server, beside other servers that have the same tool.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::goals::Goals;
use crate::measure::Cost;
use crate::pair::Pair;
use crate::rows::Bench;
use crate::server::{Durability, Server};

const EDITS: &str = "Small edits";
/// How many edits are one round: one alone is over before a clock can tell.
const TIMES: usize = 100;
/// How many lines the edited file has.
const LINES: usize = 100;

impl Bench {
    /// `edit_file` beside the servers that have a tool of that name. None of them waits for the disk, so ours does not here.
    pub(crate) fn edits(&self) -> Vec<Pair> {
        let known = [
            ("reference server (npm)", self.peers.reference(), None),
            (
                "rust-mcp-filesystem",
                self.peers.path("rust-mcp-filesystem"),
                Some("--allow-write"),
            ),
        ];
        let pair = |(name, program, flag): (&'static str, Option<String>, Option<&str>)| {
            let root = self.corpus.root.display().to_string();
            let flag = flag.map(str::to_owned);
            let line = std::iter::once(program?).chain(flag).chain([root]);
            Some(self.edit_beside(name, line.collect()))
        };
        known.into_iter().filter_map(pair).collect()
    }

    fn edit_beside(&self, name: &str, line: Vec<String>) -> Pair {
        let root = self.corpus.root.clone();
        let word = name.split(' ').next().unwrap_or_default();
        let own = format!("scratch/edit-own-{word}.txt");
        let theirs = root.join(format!("scratch/edit-{word}.txt"));
        let own_file = root.join(&own);
        let mut other: Option<Server> = None;
        Pair {
            part: EDITS,
            name: format!("{TIMES} edits of a line of 4 KiB, nobody waits for the disk"),
            peer_name: name.to_owned(),
            goals: Goals::wall(1.0).and_cpu(1.0),
            subject: Box::new(move |servers, round| {
                let server = servers.get("workspace", Durability::Fast)?;
                edited(server, &own_file, round, |old, new| {
                    let edits = json!([{"old": old, "new": new}]);
                    json!({"root": "bench", "path": own, "edits": edits})
                })
            }),
            peer: Box::new(move |round| {
                let server = ready(&mut other, &line, &root)?;
                edited(server, &theirs, round, |old, new| {
                    let edits = json!([{"oldText": old, "newText": new}]);
                    json!({"path": theirs.display().to_string(), "edits": edits})
                })
            }),
        }
    }
}

fn ready<'a>(
    server: &'a mut Option<Server>,
    line: &[String],
    root: &Path,
) -> Result<&'a mut Server> {
    if server.is_none() {
        let started = Server::start(line, root)?;
        started.settle()?;
        *server = Some(started);
    }
    server.as_mut().context("it was just started")
}

/// Makes the file, then changes one line of it again and again; what the calls cost together.
fn edited(
    server: &mut Server,
    file: &Path,
    round: usize,
    arguments: impl Fn(&str, &str) -> Value,
) -> Result<Cost> {
    let line = |number: usize| format!("line {number:04} of the file that is edited\n");
    let text: String = (0..LINES).map(line).collect();
    fs::write(file, text.replace(&line(50), &wanted(0)))?;
    let mut sum = Cost::default();
    for number in 0..TIMES {
        let (old, new) = (wanted(number), wanted(number + 1));
        let cost = server.call("edit_file", &arguments(old.trim_end(), new.trim_end()))?;
        sum.wall += cost.wall;
        sum.cpu += cost.cpu;
        sum.peak = sum.peak.max(cost.peak);
    }
    server.reply()?;
    if round == 0 {
        let after = fs::read_to_string(file)?;
        anyhow::ensure!(after.contains(&wanted(TIMES)), "the edits were not made");
    }
    Ok(sum)
}

/// The line that is changed, as it is after so many edits.
fn wanted(edits: usize) -> String {
    format!("this line was changed {edits:04} times\n")
}
