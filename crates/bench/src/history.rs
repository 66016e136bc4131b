//! What a history costs: our server with a history beside our server without, and undo beside the change it undoes.

use std::cell::{Cell, RefCell};
use std::fs;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::changes::{called, needle};
use crate::goals::Goals;
use crate::measure::{self, Cost, Line};
use crate::pair::{Pair, Servers};
use crate::rows::Bench;
use crate::server::{Durability, Own, Server};

const HISTORY: &str = "History";
/// The sizes of files that are replaced.
const SIZES: [(usize, &str); 2] = [(4 << 10, "4 KiB"), (1 << 20, "1 MiB")];
/// How many files the removed trees have, and how many records a server starts with.
const TREES: [usize; 2] = [5_000, 50_000];
const RECORDS: usize = 100_000;
/// How many files a directory of a tree has.
const PER_DIRECTORY: usize = 100;
/// How long after a removal that is kept for a second it is pruned.
const KEPT: Duration = Duration::from_millis(1_200);
/// How much longer a start with many records may take than one without, and how much memory they may take, in KiB.
const START_MORE: Duration = Duration::from_millis(20);
const RECORDS_MEMORY: u64 = 8 * 1024;

/// A server without a history, which the subject of a pair starts and its peer uses.
type Without = Rc<RefCell<Option<Server>>>;

impl Bench {
    /// Pairs with and without a history.
    pub(crate) fn history(&self) -> Vec<Pair> {
        let mut rows = Vec::new();
        for (size, word) in SIZES {
            for (durability, goal) in [(Durability::Fsync, 1.25), (Durability::Fast, 1.0)] {
                rows.push(replace(size, word, durability, goal));
                rows.push(undo_replace(size, word, durability, goal));
            }
        }
        rows.push(self.edit(false));
        rows.push(self.edit(true));
        for files in TREES {
            let files = files / self.corpus.divisor;
            rows.push(self.remove(files, false));
            rows.push(self.remove(files, true));
        }
        rows.push(self.prune(TREES[0] / self.corpus.divisor));
        let records = Records::new(RECORDS / self.corpus.divisor);
        rows.push(start(&records));
        rows.push(start_unfinished(&records));
        rows.push(records_memory(&records));
        rows.push(with_records(
            &records,
            "changes, one of",
            20,
            |server, _| called(server, "changes", &json!({"root": "bench", "limit": 1})),
        ));
        rows.push(with_records(
            &records,
            "changes of a path among",
            50,
            |server, _| {
                called(
                    server,
                    "changes",
                    &json!({"root": "bench", "path": "none", "limit": 1}),
                )
            },
        ));
        rows.push(with_records(
            &records,
            "undo the last of",
            20,
            |server, round| {
                server.ask("write_file", &content("scratch/history-last", 16, round))?;
                undo(server)
            },
        ));
        rows
    }

    /// One string in 100 MB, or the undo of that, beside the edit without a history.
    fn edit(&self, is_undo: bool) -> Pair {
        let log = self.corpus.root.join(self.corpus.edited_log());
        let root = self.corpus.root.clone();
        let (of, name) = match is_undo {
            false => ("edit", "edit one string in the large log"),
            true => ("undo", "undo an edit of one string in the large log"),
        };
        let copies = ["with", "without"].map(|side| format!("scratch/history-{of}-{side}.log"));
        let [with, without] = copies.clone();
        let (own, other) = sides("memory", Durability::Fast);
        let edit = |path: &str, round: usize| json!({"path": path, "old_str": needle(round), "new_str": needle(round + 1)});
        Pair {
            part: HISTORY,
            name: name.to_owned(),
            peer_name: "an edit without".to_owned(),
            goals: Goals::wall(1.05),
            subject: Box::new(move |servers, round| {
                if round == 0 {
                    for copy in &copies {
                        fs::copy(&log, root.join(copy))?;
                    }
                }
                own(servers)?;
                if !is_undo {
                    let server = servers.get("memory", Durability::Fast)?;
                    return called(server, "str_replace", &edit(&with, round));
                }
                // The set `memory` does not name its changes, so another undoes an edit of its own.
                let server = servers.get("workspace", Durability::Fast)?;
                let edits = json!([{"old": needle(0), "new": needle(1)}]);
                let arguments = json!({"root": "bench", "path": with, "edits": edits});
                called(server, "edit_file", &arguments)?;
                undo(server)
            }),
            peer: Box::new(move |round| other("str_replace", &edit(&without, round))),
        }
    }

    /// A removal beside `rm -rf`, or the undo of one.
    fn remove(&self, files: usize, is_undo: bool) -> Pair {
        let root = self.corpus.root.clone();
        let peer_root = root.clone();
        let name = if is_undo {
            format!("undo the removal of {files} files")
        } else {
            format!("remove {files} files and keep them")
        };
        Pair {
            part: HISTORY,
            name,
            peer_name: "rm -rf".to_owned(),
            goals: Goals::wall(0.05),
            subject: Box::new(move |servers, round| {
                let path = tree_of("own", files, is_undo, round);
                make_tree(&root.join(&path), files)?;
                let server = servers.get("workspace", Durability::Fast)?;
                let arguments = json!({"root": "bench", "path": path});
                let removed = called(server, "remove_folder", &arguments)?;
                if !is_undo {
                    return Ok(removed);
                }
                undo(server)
            }),
            peer: Box::new(move |round| {
                let path = tree_of("peer", files, is_undo, round);
                make_tree(&peer_root.join(&path), files)?;
                Ok(measure::run(&Line::new(&peer_root, &["rm", "-rf", &path]))?.0)
            }),
        }
    }

    /// Pruning, which removes a kept tree for good, beside `rm -rf` of such a tree.
    fn prune(&self, files: usize) -> Pair {
        let top = self.corpus.root.join("scratch/pruned");
        let peer_top = top.clone();
        let place = |side: &str, round: usize| format!("{side}-{round}");
        Pair {
            part: HISTORY,
            name: format!("prune {files} removed files, by the command"),
            peer_name: "rm -rf".to_owned(),
            // It runs in the background: its cost is reported, not judged.
            goals: Goals::none(),
            subject: Box::new(move |servers, round| {
                make_tree(&top.join(place("own", round)), files)?;
                let own = Own {
                    root: top.clone(),
                    ..servers.own().clone()
                };
                let mut server = own.start_guarded("prune", "    history: { keep: 1s }\n", "")?;
                let arguments = json!({"root": "bench", "path": place("own", round)});
                called(&mut server, "remove_folder", &arguments)?;
                drop(server);
                std::thread::sleep(KEPT);
                Ok(measure::run(&own.command("prune", &["history", "prune"]))?.0)
            }),
            peer: Box::new(move |round| {
                let path = place("peer", round);
                make_tree(&peer_top.join(&path), files)?;
                Ok(measure::run(&Line::new(&peer_top, &["rm", "-rf", &path]))?.0)
            }),
        }
    }
}

fn replace(size: usize, word: &str, durability: Durability, goal: f64) -> Pair {
    let (own, other) = sides("workspace", durability);
    let path = move |side: &str| format!("scratch/history-{side}-{size}-{}", durability.word());
    Pair {
        part: HISTORY,
        name: format!("replace {word}, {}", durability.word()),
        peer_name: "the same without".to_owned(),
        goals: Goals::wall(goal),
        subject: Box::new(move |servers, round| {
            own(servers)?;
            let server = servers.get("workspace", durability)?;
            called(server, "write_file", &content(&path("with"), size, round))
        }),
        peer: Box::new(move |round| other("write_file", &content(&path("without"), size, round))),
    }
}

/// Undoing a replacement beside making one without a history.
fn undo_replace(size: usize, word: &str, durability: Durability, goal: f64) -> Pair {
    let (own, other) = sides("workspace", durability);
    let path =
        move |side: &str| format!("scratch/history-undo-{side}-{size}-{}", durability.word());
    Pair {
        part: HISTORY,
        name: format!("undo a replacement of {word}, {}", durability.word()),
        peer_name: "a replacement without".to_owned(),
        goals: Goals::wall(goal),
        subject: Box::new(move |servers, round| {
            own(servers)?;
            let server = servers.get("workspace", durability)?;
            if round == 0 {
                called(server, "write_file", &content(&path("with"), size, 999))?;
            }
            called(server, "write_file", &content(&path("with"), size, round))?;
            undo(server)
        }),
        peer: Box::new(move |round| other("write_file", &content(&path("without"), size, round))),
    }
}

/// The records that some rows begin with. They are made once.
#[derive(Clone)]
struct Records {
    count: usize,
    are_made: Rc<Cell<bool>>,
}

impl Records {
    fn new(count: usize) -> Records {
        Records {
            count,
            are_made: Rc::default(),
        }
    }

    fn make(&self, servers: &mut Servers) -> Result<()> {
        if self.are_made.replace(true) {
            return Ok(());
        }
        let server = servers.get("workspace", Durability::Fast)?;
        for number in 0..self.count {
            let arguments = content("scratch/history-records", 16, number);
            server.ask("write_file", &arguments)?;
        }
        server.reply().map(drop)
    }
}

/// A call with many records, beside the time that it may take.
fn with_records(
    records: &Records,
    what: &str,
    milliseconds: u64,
    call: impl Fn(&mut Server, usize) -> Result<Cost> + 'static,
) -> Pair {
    let records = records.clone();
    Pair {
        part: HISTORY,
        name: format!("{what} {} records", records.count),
        peer_name: format!("{milliseconds} ms"),
        goals: Goals::wall(1.0),
        subject: Box::new(move |servers, round| {
            records.make(servers)?;
            call(servers.get("workspace", Durability::Fast)?, round)
        }),
        peer: Box::new(move |_| Ok(at_most(milliseconds))),
    }
}

/// What something may cost.
fn at_most(milliseconds: u64) -> Cost {
    let wall = Duration::from_millis(milliseconds);
    Cost {
        wall,
        cpu: wall,
        peak: 0,
    }
}

/// The time to the first reply with many records, beside that without a history and 20 ms.
fn start(records: &Records) -> Pair {
    beside_without(
        records,
        format!("start with {} records", records.count),
        "start without, and 20 ms",
        Goals::wall(1.0),
        |server| Ok(started(server)),
        |cost| Cost {
            wall: cost.wall + START_MORE,
            cpu: cost.cpu + START_MORE,
            ..cost
        },
    )
}

/// The memory that is resident once many records were looked at, beside that of a server without a history and 8 MiB.
fn records_memory(records: &Records) -> Pair {
    beside_without(
        records,
        format!("memory once `changes` saw {} records", records.count),
        "memory without, and 8 MiB",
        Goals::peak(1.0),
        |server| {
            let arguments = json!({"root": "bench", "limit": 1});
            // Without a history there is no such tool; a small call takes its place.
            if server
                .ask("changes", &arguments)
                .and(server.reply())
                .is_err()
            {
                server.ask("list_roots", &json!({}))?;
            }
            Ok(Cost {
                peak: server.resident(),
                ..Cost::default()
            })
        },
        |cost| Cost {
            peak: cost.peak + RECORDS_MEMORY,
            ..cost
        },
    )
}

/// A fresh server with many records beside a fresh one without a history, with what it may have more.
fn beside_without(
    records: &Records,
    name: String,
    peer_name: &str,
    goals: Goals,
    cost: impl Fn(&mut Server) -> Result<Cost> + 'static,
    allowed: impl Fn(Cost) -> Cost + 'static,
) -> Pair {
    let records = records.clone();
    let without: Rc<Cell<Cost>> = Rc::default();
    let told = Rc::clone(&without);
    Pair {
        part: HISTORY,
        name,
        peer_name: peer_name.to_owned(),
        goals,
        subject: Box::new(move |servers, _| {
            records.make(servers)?;
            let own = servers.own().clone();
            // Who begins changes from round to round; here both sides start in one go.
            let mut plain = own.start_without_history("workspace", Durability::Fast)?;
            without.set(allowed(cost(&mut plain)?));
            drop(plain);
            cost(&mut own.start("workspace", Durability::Fast)?)
        }),
        peer: Box::new(move |_| Ok(told.get())),
    }
}

/// The same, after the last process was killed in a change.
fn start_unfinished(records: &Records) -> Pair {
    let records = records.clone();
    Pair {
        part: HISTORY,
        name: format!("start after a kill with {} records", records.count),
        peer_name: "100 ms".to_owned(),
        goals: Goals::wall(1.0),
        subject: Box::new(move |servers, round| {
            records.make(servers)?;
            servers.stop();
            let own = servers.own().clone();
            let mut killed = own.start("workspace", Durability::Fast)?;
            killed.ask("write_file", &content("scratch/history-killed", 16, round))?;
            drop(killed);
            cut_ends(&own.base.join("state"))?;
            Ok(started(&own.start("workspace", Durability::Fast)?))
        }),
        peer: Box::new(|_| Ok(at_most(100))),
    }
}

/// Cuts the last line, which says that the change ended, off each record file that was left open.
fn cut_ends(top: &Path) -> Result<()> {
    let mut pending = vec![top.to_owned()];
    while let Some(dir) = pending.pop() {
        for entry in fs::read_dir(dir)? {
            let path = entry?.path();
            if path.is_dir() {
                pending.extend(
                    path.file_name()
                        .is_some_and(|name| name != "objects")
                        .then_some(path),
                );
            } else if path.extension().is_some_and(|end| end == "open") {
                let text = fs::read_to_string(&path)?;
                let whole = text
                    .trim_end_matches('\n')
                    .rfind('\n')
                    .map_or(0, |end| end + 1);
                fs::write(&path, text.get(..whole).unwrap_or_default())?;
            }
        }
    }
    Ok(())
}

fn started(server: &Server) -> Cost {
    Cost {
        wall: server.first_reply,
        cpu: server.first_reply,
        peak: server.resident(),
    }
}

/// Starts the server without a history when the subject first runs, and calls it for the peer.
fn sides(
    toolset: &'static str,
    durability: Durability,
) -> (
    impl Fn(&Servers) -> Result<()>,
    impl Fn(&str, &Value) -> Result<Cost>,
) {
    let without: Without = Rc::default();
    let shared = Rc::clone(&without);
    let ready = move |servers: &Servers| {
        let mut without = without.borrow_mut();
        if without.is_none() {
            *without = Some(servers.own().start_without_history(toolset, durability)?);
        }
        Ok(())
    };
    let call = move |tool: &str, arguments: &Value| {
        let mut without = shared.borrow_mut();
        called(without.as_mut().context("it was started")?, tool, arguments)
    };
    (ready, call)
}

fn content(path: &str, size: usize, round: usize) -> Value {
    let mut text = format!("{round:08}\n").repeat(size / 9 + 1);
    text.truncate(size);
    json!({"root": "bench", "path": path, "content": text})
}

/// Takes back the last change of the server; its cost.
fn undo(server: &mut Server) -> Result<Cost> {
    let reply = server.reply()?;
    let change = reply.get("change").context("no change was kept")?;
    called(server, "undo", &json!({"root": "bench", "change": change}))
}

fn tree_of(side: &str, files: usize, is_undo: bool, round: usize) -> String {
    let kind = if is_undo { "undo" } else { "remove" };
    format!("scratch/history-{kind}-{side}-{files}-{round}")
}

fn make_tree(top: &Path, files: usize) -> Result<()> {
    for number in 0..files {
        let dir: PathBuf = top.join(format!("d{}", number / PER_DIRECTORY));
        if number % PER_DIRECTORY == 0 {
            fs::create_dir_all(&dir)?;
        }
        fs::write(dir.join(format!("f{number}")), "some text\n")?;
    }
    Ok(())
}
