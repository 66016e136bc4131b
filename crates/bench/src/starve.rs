//! Measures how long one client's small reads and writes wait while another client runs 256 heavy calls at a time.
//!
//! The attacker calls from another loopback address than the victim, so the server takes them for two clients. Idle and
//! loaded phases take turns, because the machine may be busy with other things too. On a machine with more to run than it has
//! cores the figures say little: niceness counts inside a session or a container only, and there the heavy work uses up the
//! share of the small calls too. A second victim calls rarely, from a third address, once the first one is silent. A second
//! server syncs its writes; what these take beside the load is reported and has no goal.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;

use crate::corpus::Scale;
use crate::load::{HttpServer, reply, request};
use crate::server::{Durability, Own};

/// How many calls the attacker has in progress.
const ATTACKERS: usize = 256;
/// How much the attacker gives way to the victim and the server.
const ATTACKER_NICENESS: i32 = 10;
const ATTACKER: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);
const VICTIM: Ipv4Addr = Ipv4Addr::LOCALHOST;
const RARE_VICTIM: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 3);
/// How long the rare victim is silent before each pair of calls, so that the attacker seems to be alone.
const SILENCE: Duration = Duration::from_millis(1500);
/// How long an idle and a loaded phase are, which take turns.
const PHASE: Duration = Duration::from_secs(3);
/// How long the attacker's calls run before the victim is looked at.
const WARM_UP: Duration = Duration::from_millis(1500);
/// When a call of the victim counts as lost.
const LOST: Duration = Duration::from_secs(15);
/// The goal: what the slowest hundredth may take beside a load, as a multiple of what it takes without.
const GOAL: f64 = 10.0;

/// The attacks, and whether the victim was served as it should be.
pub(crate) struct Starved {
    pub(crate) table: String,
    pub(crate) holds: bool,
}

/// One kind of heavy call; the number tells calls apart that each need a place of their own.
struct Load {
    name: &'static str,
    tool: &'static str,
    arguments: fn(usize) -> Value,
}

const LOADS: &[Load] = &[
    Load {
        name: "costly grep",
        tool: "grep",
        arguments: |_| json!({"path": "costly.txt", "pattern": "(?:[a-c]{0,40}){0,45}[0-9]", "timeout_seconds": 60}),
    },
    Load {
        name: "grep of many files",
        tool: "grep",
        arguments: |_| json!({"path": "many", "pattern": "n[eo]+dles"}),
    },
    Load {
        name: "glob",
        tool: "glob",
        arguments: |_| json!({"path": ".", "pattern": "**/*.text"}),
    },
    Load {
        name: "list of 5,000 entries",
        tool: "list_folder",
        arguments: |_| json!({"path": "listed"}),
    },
    Load {
        name: "hash of a large file",
        tool: "hash_file",
        arguments: |_| json!({"path": "endless", "algorithm": "sha256"}),
    },
    Load {
        name: "line count of a large file",
        tool: "read_file",
        arguments: |number| json!({"path": "endless", "offset_lines": 1_000_000_000 + number, "limit_lines": 1}),
    },
    Load {
        name: "copy of a tree",
        tool: "copy",
        arguments: |number| {
            json!({"source_root": "bench", "source_path": "many", "dest_root": "bench",
                   "dest_path": format!("copies/{number}")})
        },
    },
    Load {
        // Without a history, or a removal would be a rename.
        name: "copy and removal of a tree, no history",
        tool: "remove_folder",
        arguments: |number| json!({"path": format!("copies/{number}")}),
    },
    Load {
        name: "compare of unlike files",
        tool: "compare",
        arguments: |_| json!({"root": "bench", "path": "unlike.txt", "other": "like.txt"}),
    },
    Load {
        name: "edit of a large file",
        tool: "edit_file",
        arguments: |_| json!({"path": "patched.txt", "edits": [{"old": "nothing like this", "new": "x"}]}),
    },
    Load {
        name: "one byte in another encoding",
        tool: "read_file",
        arguments: |_| json!({"path": "patched.txt", "encoding": "utf-16le", "offset_bytes": 0, "limit_bytes": 1}),
    },
    Load {
        name: "write with a body of 1 MiB",
        tool: "write_file",
        arguments: |number| json!({"path": format!("writes/{}", number % ATTACKERS), "content": "some text\n".repeat(100_000)}),
    },
    Load {
        name: "patch that fits nowhere",
        tool: "patch_file",
        arguments: |_| {
            let patch = "@@ -1,3 +1,3 @@\n abcabcabd\n-nothing like this\n+x\n abcabcabd\n";
            json!({"path": "patched.txt", "patch": patch})
        },
    },
    Load {
        name: "read of 1 MiB",
        tool: "read_file",
        arguments: |_| json!({"path": "costly.txt", "offset_bytes": 0, "limit_bytes": 1 << 20}),
    },
    Load {
        name: "small read",
        tool: "read_file",
        arguments: |_| json!({"path": "small.txt"}),
    },
    Load {
        name: "small write",
        tool: "write_file",
        arguments: |number| json!({"path": format!("writes/{}", number % ATTACKERS), "content": "some text\n"}),
    },
];

/// What the victim's calls took, in seconds, and how many were lost or refused.
#[derive(Default)]
struct Waits {
    reads: Vec<f64>,
    writes: Vec<f64>,
    lost: usize,
}

impl Waits {
    fn add(&mut self, other: Waits) {
        self.reads.extend(other.reads);
        self.writes.extend(other.writes);
        self.lost += other.lost;
    }
}

/// Attacks a server of its own with each load.
pub(crate) fn attack(own: &Own, scale: Scale, only: impl Fn(&str) -> bool) -> Result<Starved> {
    let rounds = match scale {
        Scale::Full => 3,
        Scale::Quick => 1,
    };
    let own = Own {
        root: prepared(&own.base)?,
        ..own.clone()
    };
    let mut starved = Starved {
        table: "| load | read idle p50 / p99 | loaded p50 / p99 | p99 ratio | write idle p50 / p99 | loaded p50 / p99 \
                | p99 ratio | rare read p50 / worst | rare write p50 / worst | synced write p50 / p99 | calls done | refused \
                | lost |\n|---|---|---|--:|---|---|--:|---|---|---|--:|--:|--:|\n"
            .to_owned(),
        holds: true,
    };
    for load in LOADS.iter().filter(|load| only(load.name)) {
        let row = under(&own, load, rounds)?;
        crate::say(row.line.trim_end())?;
        starved.table += &row.line;
        starved.holds &= row.holds;
    }
    let _ = fs::remove_dir_all(&own.root);
    Ok(starved)
}

struct Row {
    line: String,
    holds: bool,
}

fn under(own: &Own, load: &'static Load, rounds: usize) -> Result<Row> {
    let server = started(own, load, Durability::Fast)?;
    let (mut idle, mut loaded, mut rare) = (Waits::default(), Waits::default(), Waits::default());
    let mut ended = EndedCalls::default();
    let mut worked = Duration::ZERO;
    for _ in 0..rounds {
        idle.add(victim(server.address, Pace::WITHOUT_PAUSE)?);
        let attackers = Attackers::start(server.address, load);
        thread::sleep(WARM_UP);
        let cpu = server.cpu()?;
        loaded.add(victim(server.address, Pace::WITHOUT_PAUSE)?);
        worked += server.cpu()?.saturating_sub(cpu);
        rare.add(victim(server.address, Pace::RARE)?);
        let (done, refused) = attackers.stop()?;
        ended.done += done;
        ended.refused += refused;
    }
    drop(server);
    let mut synced = synced_writes(own, load)?;
    let lost = idle.lost + loaded.lost + rare.lost + synced.lost;
    let reads = Compared::new(&mut idle.reads, &mut loaded.reads);
    let writes = Compared::new(&mut idle.writes, &mut loaded.writes);
    let rare_reads = Compared::of_rare(&reads, &mut rare.reads);
    let rare_writes = Compared::of_rare(&writes, &mut rare.writes);
    let EndedCalls { done, refused } = ended;
    let line = format!(
        "| {} | {reads} | {writes} | {} | {} | {} | {done} | {refused} | {lost} |\n",
        load.name,
        milliseconds(rare_reads.loaded),
        milliseconds(rare_writes.loaded),
        milliseconds(percentiles(&mut synced.writes)),
    );
    // A load that does not reach the server shows nothing. Some calls are longer than a phase.
    let is_load = done > 0 || worked > PHASE / 4;
    let is_served = reads.ratio() <= GOAL && writes.ratio() <= GOAL;
    // The worst of a few calls says little, so the middle one is judged.
    let is_rare_served = rare_reads.middle_ratio() <= GOAL && rare_writes.middle_ratio() <= GOAL;
    let holds = is_load && lost == 0 && is_served && is_rare_served;
    Ok(Row { line, holds })
}

/// Starts a server for a load and warms it up.
fn started(own: &Own, load: &Load, durability: Durability) -> Result<HttpServer> {
    let _ = fs::remove_dir_all(own.root.join("copies"));
    let more: &[&str] = match load.tool {
        "remove_folder" => &["--no-history"],
        _ => &[],
    };
    let server = HttpServer::start_with(own, durability, more)?;
    // The first calls of a server are slower than all others.
    victim(server.address, Pace::SHORT)?;
    Ok(server)
}

/// What the victim's calls take beside a load if the server syncs every write, on the disk that the load is on.
fn synced_writes(own: &Own, load: &'static Load) -> Result<Waits> {
    let server = started(own, load, Durability::Fsync)?;
    let attackers = Attackers::start(server.address, load);
    thread::sleep(WARM_UP);
    let waits = victim(server.address, Pace::WITHOUT_PAUSE)?;
    attackers.stop()?;
    Ok(waits)
}

/// The outcomes of the attacker's calls.
#[derive(Default)]
struct EndedCalls {
    done: usize,
    /// For want of room or of a turn.
    refused: usize,
}

/// Idle and loaded percentiles of one kind of call.
struct Compared {
    idle: [f64; 2],
    loaded: [f64; 2],
}

impl Compared {
    fn new(idle: &mut [f64], loaded: &mut [f64]) -> Compared {
        Compared {
            idle: percentiles(idle),
            loaded: percentiles(loaded),
        }
    }

    /// The middle and the worst of a few rare calls, beside what many calls take on an idle server.
    fn of_rare(many: &Compared, rare: &mut [f64]) -> Compared {
        let [middle, _] = percentiles(rare);
        let worst = rare.last().copied().unwrap_or(f64::INFINITY);
        Compared {
            idle: many.idle,
            loaded: [middle, worst],
        }
    }

    fn ratio(&self) -> f64 {
        self.loaded[1] / self.idle[1].max(f64::EPSILON)
    }

    /// The middle one under load beside the slowest hundredth without.
    fn middle_ratio(&self) -> f64 {
        self.loaded[0] / self.idle[1].max(f64::EPSILON)
    }
}

impl std::fmt::Display for Compared {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let [idle, loaded] = [self.idle, self.loaded].map(milliseconds);
        write!(out, "{idle} | {loaded} | {:.1}", self.ratio())
    }
}

/// Two durations as a cell of the table.
fn milliseconds(seconds: [f64; 2]) -> String {
    let [first, second] = seconds.map(|seconds| seconds * 1000.0);
    format!("{first:.2} / {second:.2} ms")
}

/// The middle one and the one that a hundredth exceeds.
fn percentiles(waits: &mut [f64]) -> [f64; 2] {
    waits.sort_unstable_by(f64::total_cmp);
    let at = |share: usize| waits.get(waits.len() * share / 100).copied();
    [50, 99].map(|share| at(share).unwrap_or(f64::INFINITY))
}

/// How often a victim calls, and for how long.
#[derive(Clone, Copy)]
struct Pace {
    from: Ipv4Addr,
    /// How long it is silent before each pair of calls.
    silence: Duration,
    time: Duration,
}

impl Pace {
    const WITHOUT_PAUSE: Pace = Pace {
        from: VICTIM,
        silence: Duration::ZERO,
        time: PHASE,
    };
    const SHORT: Pace = Pace {
        time: Duration::from_millis(500),
        ..Pace::WITHOUT_PAUSE
    };
    const RARE: Pace = Pace {
        from: RARE_VICTIM,
        silence: SILENCE,
        time: Duration::from_secs(6),
    };
}

/// Reads and writes small files in turn for a while; tells what each took, and how many were lost.
fn victim(address: SocketAddr, pace: Pace) -> Result<Waits> {
    let read = json!({"root": "bench", "path": "small.txt"});
    let write =
        json!({"root": "bench", "path": "written.txt", "content": "some text\n".repeat(100)});
    let calls = [
        request(address, "read_file", &read),
        request(address, "write_file", &write),
    ];
    runtime()?.block_on(async {
        let mut waits = Waits::default();
        let mut stream = connect(pace.from, address).await?;
        let mut buffer = Vec::new();
        let begun = Instant::now();
        while begun.elapsed() < pace.time {
            tokio::time::sleep(pace.silence).await;
            for (number, call) in calls.iter().enumerate() {
                let start = Instant::now();
                let exchanged = timeout(LOST, exchange(&mut stream, call, &mut buffer)).await;
                let is_whole = matches!(exchanged, Ok(Ok(())));
                if !is_whole {
                    stream = connect(pace.from, address).await?;
                }
                if !is_whole || !is_success(&buffer) {
                    // A quick refusal is not a quick answer.
                    waits.lost += 1;
                    continue;
                }
                let waited = start.elapsed().as_secs_f64();
                match number {
                    0 => waits.reads.push(waited),
                    _ => waits.writes.push(waited),
                }
            }
        }
        Ok(waits)
    })
}

/// How many calls of the attacker have ended, and how.
#[derive(Default)]
struct Counts {
    done: AtomicUsize,
    refused: AtomicUsize,
}

/// Calls again and again, 256 at a time, until it is stopped.
struct Attackers {
    over: Arc<AtomicBool>,
    counts: Arc<Counts>,
    thread: JoinHandle<Result<()>>,
}

impl Attackers {
    fn start(address: SocketAddr, load: &'static Load) -> Attackers {
        let (over, counts) = (Arc::new(AtomicBool::new(false)), Arc::<Counts>::default());
        let (is_over, counted) = (Arc::clone(&over), Arc::clone(&counts));
        let thread = thread::spawn(move || {
            // The attacker would have a machine of its own: here it must not take the processor from the victim.
            let _ = rustix::process::setpriority_process(None, ATTACKER_NICENESS);
            runtime()?.block_on(async {
                let calls: Vec<_> = (0..ATTACKERS)
                    .map(|number| {
                        tokio::spawn(attacker(address, load, number, Arc::clone(&counted)))
                    })
                    .collect();
                while !is_over.load(Ordering::Relaxed) {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
                for call in calls {
                    // A load that does not reach the server would show nothing.
                    if call.is_finished() {
                        call.await??;
                    } else {
                        call.abort();
                    }
                }
                Ok(())
            })
        });
        Attackers {
            over,
            counts,
            thread,
        }
    }

    /// Hangs up, and returns how many calls were done and refused by then.
    fn stop(self) -> Result<(usize, usize)> {
        self.over.store(true, Ordering::Relaxed);
        match self.thread.join() {
            Ok(ended) => ended?,
            Err(_) => bail!("the attacker panicked"),
        }
        let Counts { done, refused } = &*self.counts;
        Ok((
            done.load(Ordering::Relaxed),
            refused.load(Ordering::Relaxed),
        ))
    }
}

async fn attacker(
    address: SocketAddr,
    load: &'static Load,
    number: usize,
    counts: Arc<Counts>,
) -> Result<()> {
    let mut stream = connect(ATTACKER, address).await?;
    let mut buffer = Vec::new();
    for round in 0.. {
        if load.tool == "remove_folder" {
            // Each call finds something to remove: a call that finds nothing is no heavy one.
            let copy = json!({"source_root": "bench", "source_path": "removed", "dest_root": "bench",
                              "dest_path": format!("copies/{}", number + round * ATTACKERS)});
            let copy = request(address, "copy", &copy);
            exchange(&mut stream, &copy, &mut buffer).await?;
        }
        let mut arguments = (load.arguments)(number + round * ATTACKERS);
        if !matches!(load.tool, "copy" | "compare")
            && let Some(arguments) = arguments.as_object_mut()
        {
            arguments.insert("root".to_owned(), json!("bench"));
        }
        let call = request(address, load.tool, &arguments);
        let exchanged = exchange(&mut stream, &call, &mut buffer).await;
        let is_refused = is_refused(&buffer);
        if is_refused {
            // The server closes the connection of a body that it does not read.
            stream = connect(ATTACKER, address).await?;
        } else {
            exchanged?;
        }
        let count = match is_refused || is_refusal(&buffer) {
            true => &counts.refused,
            false => &counts.done,
        };
        count.fetch_add(1, Ordering::Relaxed);
    }
    Ok(())
}

/// Whether a request was refused before it was read.
fn is_refused(reply: &[u8]) -> bool {
    let statuses = [b"HTTP/1.1 429".as_slice(), b"HTTP/1.1 503"];
    statuses.iter().any(|status| reply.starts_with(status))
}

/// Whether a reply says that there was no room or no turn. Other failures are work that was done.
fn is_refusal(reply: &[u8]) -> bool {
    let has = |word: &[u8]| reply.windows(word.len()).any(|piece| piece == word);
    reply.ends_with(br#""isError":true}}"#) && has(br#""code":"rate_limited""#)
}

/// Whether the call was done.
fn is_success(reply: &[u8]) -> bool {
    reply.ends_with(br#""isError":false}}"#)
}

async fn exchange(stream: &mut TcpStream, call: &[u8], buffer: &mut Vec<u8>) -> Result<()> {
    stream.write_all(call).await?;
    reply(stream, buffer).await
}

async fn connect(from: Ipv4Addr, to: SocketAddr) -> Result<TcpStream> {
    let socket = TcpSocket::new_v4()?;
    socket.bind(SocketAddr::new(IpAddr::V4(from), 0))?;
    let stream = socket.connect(to).await.context("no connection")?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

fn runtime() -> Result<tokio::runtime::Runtime> {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    Ok(builder.enable_all().build()?)
}

/// Makes what the calls work on, in a directory of its own.
fn prepared(base: &Path) -> Result<std::path::PathBuf> {
    let root = base.join("starve");
    let _ = fs::remove_dir_all(&root);
    fs::create_dir_all(root.join("listed"))?;
    fs::write(root.join("small.txt"), "a small file\n".repeat(80))?;
    fs::write(root.join("costly.txt"), "abcabcabc\n".repeat(900_000))?;
    let unlike: String = (0..200_000)
        .map(|line| format!("{}\n", line % 7919))
        .collect();
    fs::write(root.join("unlike.txt"), &unlike)?;
    fs::write(root.join("like.txt"), unlike.replace('3', "4"))?;
    fs::write(root.join("patched.txt"), "abcabcabc\n".repeat(400_000))?;
    fs::File::create(root.join("endless"))?.set_len(1 << 40)?;
    for number in 0..5_000 {
        fs::write(root.join(format!("listed/{number}.txt")), "")?;
    }
    tree(&root.join("many"), 40)?;
    tree(&root.join("removed"), 5)?;
    Ok(root)
}

fn tree(top: &Path, directories: usize) -> Result<()> {
    for directory in 0..directories {
        let path = top.join(format!("d{directory}"));
        fs::create_dir_all(&path)?;
        for file in 0..25 {
            fs::write(
                path.join(format!("{file}.txt")),
                "a line with no needle\n".repeat(200),
            )?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_no_work_that_was_done() {
        let reply = |code: &str| {
            let error = json!({"code": code});
            format!(r#"{{"structuredContent":{{"error":{error}}},"isError":true}}}}"#)
        };
        assert!(is_refusal(reply("rate_limited").as_bytes()));
        assert!(is_refused(b"HTTP/1.1 429 Too Many Requests\r\n"));
        assert!(!is_refused(b"HTTP/1.1 200 OK\r\n"));
        assert!(!is_refusal(reply("hunk_mismatch").as_bytes()));
        assert!(!is_success(reply("rate_limited").as_bytes()));
        assert!(is_success(
            br#"{"text":"\"isError\":true}}","isError":false}}"#
        ));
        assert!(!is_refusal(
            br#"{"text":"\"code\":\"rate_limited\"","isError":false}}"#
        ));
    }

    #[test]
    fn percentiles_are_of_what_was_measured() {
        let mut waits: Vec<f64> = (0..1000).rev().map(f64::from).collect();
        assert_eq!(percentiles(&mut waits), [500.0, 990.0]);
        assert_eq!(percentiles(&mut []), [f64::INFINITY; 2]);
    }
}
