//! What rights cost: our server with globs of a client and denied globs of the root beside our server without.

use std::cell::RefCell;
use std::rc::Rc;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::corpus::{COMMON, RARE};
use crate::goals::Goals;
use crate::measure::Cost;
use crate::pair::{Pair, Servers};
use crate::searches::BEFORE_TENTH;
use crate::server::Server;

const RIGHTS: &str = "Rights";
/// How many small reads are one round: one alone is over before a clock can tell.
const READS: usize = 2_000;
/// What the root denies, and what the client sees: the whole corpus, so that both sides do the same work.
const ROOT_KEYS: &str = "    deny: [secrets, \"**/internal/**\", \"!**/*.example\"]\n";
const CLIENT: &str = "clients:\n  - name: stdio\n    roots:\n      bench:\n        \
                      paths: [\"tree/**\", \"small.txt\", \"!tree/private/**\", \"!**/drafts\"]\n";
/// Searches begin anew each time.
const UNREMEMBERED: &str = "limits: { search_memory: 0, request_timeout: 600 }\n";
const REMEMBERED: &str = "limits: { request_timeout: 600 }\n";

/// Two servers that are told apart by their rights alone.
#[derive(Default)]
struct Sides {
    with: Option<Server>,
    without: Option<Server>,
}

impl Sides {
    fn start(&mut self, servers: &Servers, more: &str) -> Result<()> {
        if self.with.is_none() {
            let own = servers.own();
            let guarded = format!("{more}{CLIENT}");
            self.with = Some(own.start_guarded("rights", ROOT_KEYS, &guarded)?);
            self.without = Some(own.start_guarded("no-rights", "", more)?);
        }
        Ok(())
    }
}

/// Pairs with and without rights; `divisor` says by how much the tree is smaller than 50,000 files.
pub(crate) fn rows(divisor: usize) -> Vec<Pair> {
    let files = 50_000 / divisor;
    let grep = |pattern: &str| {
        let arguments =
            json!({"root": "bench", "path": "tree", "pattern": pattern, "max_results": 1_000_000});
        ("grep", arguments)
    };
    let glob =
        json!({"root": "bench", "path": "tree", "pattern": "**/*.rs", "max_results": 1_000_000});
    let read = ("read_file", json!({"root": "bench", "path": "small.txt"}));
    vec![
        row(
            format!("search {files} files, rare"),
            1.05,
            UNREMEMBERED,
            1,
            grep(RARE),
        ),
        row(
            format!("search {files} files, common"),
            1.05,
            UNREMEMBERED,
            1,
            grep(COMMON),
        ),
        row(
            format!("search {files} files again"),
            1.05,
            REMEMBERED,
            1,
            grep(RARE),
        ),
        row(
            format!("`*.rs` of {files} names"),
            1.05,
            UNREMEMBERED,
            1,
            ("glob", glob),
        ),
        row(
            format!("{READS} reads of 4 KiB"),
            1.02,
            REMEMBERED,
            READS,
            read,
        ),
    ]
}

fn row(
    name: String,
    goal: f64,
    more: &'static str,
    times: usize,
    (tool, arguments): (&'static str, Value),
) -> Pair {
    let sides = Rc::new(RefCell::new(Sides::default()));
    let (own, other) = (Rc::clone(&sides), sides);
    let others = arguments.clone();
    Pair {
        part: RIGHTS,
        name,
        peer_name: "the same without rights".to_owned(),
        goals: Goals::wall(goal),
        subject: Box::new(move |servers, round| {
            let mut sides = own.borrow_mut();
            sides.start(servers, more)?;
            if round == 0 {
                // Then both know all that they will.
                for _ in 0..BEFORE_TENTH {
                    agree(&mut sides, tool, &arguments)?;
                }
            }
            repeated(sides.with.as_mut(), tool, &arguments, times)
        }),
        peer: Box::new(move |_| {
            repeated(other.borrow_mut().without.as_mut(), tool, &others, times)
        }),
    }
}

/// Both sides have to find the same.
fn agree(sides: &mut Sides, tool: &str, arguments: &Value) -> Result<()> {
    let mut counts = Vec::new();
    for side in [&mut sides.with, &mut sides.without] {
        let server = side.as_mut().context("it was started")?;
        server.ask(tool, arguments)?;
        let reply = server.reply()?;
        counts.push((
            reply.get("total_matches").cloned(),
            reply.get("size").cloned(),
        ));
    }
    ensure!(
        counts.first() == counts.last(),
        "with rights something else is found: {counts:?}"
    );
    Ok(())
}

/// Calls some times; what that cost together.
fn repeated(
    server: Option<&mut Server>,
    tool: &str,
    arguments: &Value,
    times: usize,
) -> Result<Cost> {
    let server = server.context("it was started")?;
    let mut sum = Cost::default();
    for _ in 0..times {
        let cost = server.call(tool, arguments)?;
        sum.wall += cost.wall;
        sum.cpu += cost.cpu;
        sum.peak = sum.peak.max(cost.peak);
    }
    server.reply()?;
    Ok(sum)
}
