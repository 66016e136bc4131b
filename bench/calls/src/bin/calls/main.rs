//! `make bench-calls`: what a small call costs beside a tool built by hand on rmcp (`floor`), as a Markdown table.
//!
//! Instructions are counted, so that the table is the same on a busy machine: small calls by single steps on the real
//! kernel, large ones by callgrind. Requests a second are taken in turns, round by round. Both servers have to be built
//! for release already.
#![expect(
    clippy::disallowed_methods,
    reason = "it makes its own files and drives the servers from outside"
)]

mod connection;
mod single_step;

use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, ChildStderr, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::connection::{Connection, greeting, post, request, with_progress};
use crate::single_step::Steps;

/// How many calls are made before the steps are counted, and how many are counted.
const WARM_UP: usize = 20;
const STEPPED: usize = 3;
/// How many calls the shorter and the longer run under callgrind make; their difference is what is counted.
const LARGE_RUNS: (usize, usize) = (5, 25);
/// How long a server is loaded before the other has its turn, and how often.
const TURN: Duration = Duration::from_millis(800);
const TURNS: usize = 9;
/// How many reads one after the other are timed.
const READS: usize = 200;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Who {
    Ours,
    Floor,
    /// Another build of ours.
    Earlier,
    /// Ours with a client's globs and denied globs, from a config file.
    Guarded,
    /// Ours with the same config file, without either.
    Unguarded,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Wire {
    Stdio,
    Http,
    /// With a progress token.
    Progress,
    /// In a session.
    Session,
}

impl Wire {
    fn name(self) -> &'static str {
        match self {
            Wire::Stdio => "stdio",
            Wire::Http => "HTTP, stateless, JSON",
            Wire::Progress => "HTTP, with a progress token",
            Wire::Session => "HTTP, in a session",
        }
    }
}

/// What a root denies, and what exists for the client on standard input and output.
const DENY: &str = ", deny: [secrets, \"**/internal/**\"]";
const CLIENT: &str = "clients: [{name: stdio, roots: {bench: {paths: [\"*.txt\", \"src/**\", \"!src/private\"]}}}]\n";

/// Where everything is.
struct Bench {
    binaries: PathBuf,
    /// Another build of ours to compare with.
    earlier: Option<PathBuf>,
    root: PathBuf,
}

/// A server that runs, and how to reach it.
struct Server {
    child: Child,
    address: String,
    stdout: Option<BufReader<ChildStdout>>,
    stderr: Option<BufReader<ChildStderr>>,
}

impl Bench {
    fn new(root: PathBuf, earlier: Option<PathBuf>) -> Result<Bench> {
        let line = "fn measure(line: &str) -> usize { line.len() } // é\n";
        fs::write(root.join("small.txt"), cut(&line.repeat(100), 4096))?;
        fs::write(root.join("large.txt"), cut(&line.repeat(40_000), 1 << 20))?;
        let config = format!(
            "host: 127.0.0.1\nserver: {{sessions: on}}\nroots: [{{name: bench, path: {}, allowed_tools: [\"*\"]}}]\n",
            root.display()
        );
        fs::write(root.with_extension("yaml"), config)?;
        for (extension, keys, client) in [("guarded", DENY, CLIENT), ("unguarded", "", "")] {
            let config = format!(
                "roots: [{{name: bench, path: {}, allowed_tools: [\"*\"]{keys}}}]\n{client}",
                root.display()
            );
            fs::write(root.with_extension(extension), config)?;
        }
        let own = std::env::current_exe()?;
        let binaries = own.parent().context("no directory")?;
        Ok(Bench {
            binaries: binaries.to_owned(),
            earlier,
            root,
        })
    }

    fn command(&self, who: Who, wire: Wire, file: &str, address: &str) -> (PathBuf, Vec<String>) {
        let text = |path: PathBuf| path.to_string_lossy().into_owned();
        let file = text(self.root.join(file));
        let root = text(self.root.clone());
        let ours = self.earlier.as_ref().filter(|_| who == Who::Earlier);
        let ours = ours.map_or_else(|| self.binaries.join("mcp-filesystem"), PathBuf::clone);
        match (who, wire) {
            (Who::Floor, Wire::Stdio) => (self.binaries.join("floor"), vec!["stdio".into(), file]),
            (Who::Floor, _) => (
                self.binaries.join("floor"),
                vec!["http".into(), address.into(), file],
            ),
            (Who::Guarded | Who::Unguarded, _) => {
                let extension = if who == Who::Guarded {
                    "guarded"
                } else {
                    "unguarded"
                };
                let config = text(self.root.with_extension(extension));
                let flags = ["--config", &config, "--transport", "stdio"];
                (ours, flags.map(str::to_owned).into())
            }
            (Who::Ours | Who::Earlier, Wire::Stdio) => (ours, vec![root]),
            (Who::Ours | Who::Earlier, Wire::Session) => {
                let config = text(self.root.with_extension("yaml"));
                let port = address.rsplit(':').next().unwrap_or_default();
                let flags = ["--config", &config, "--port", port];
                (ours, flags.map(str::to_owned).into())
            }
            (Who::Ours | Who::Earlier, Wire::Http | Wire::Progress) => {
                let port = address.rsplit(':').next().unwrap_or_default();
                let flags = ["--transport", "http", "--host", "127.0.0.1", "--port", port];
                let mut arguments: Vec<String> = flags.map(str::to_owned).into();
                arguments.push(root);
                (ours, arguments)
            }
        }
    }

    /// Starts a server, under callgrind where its instructions are to be counted.
    fn start(&self, who: Who, wire: Wire, file: &str, counted: Counted) -> Result<Server> {
        let free = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
        let address = free.to_string();
        let (program, arguments) = self.command(who, wire, file, &address);
        let mut command = match counted {
            Counted::No => Command::new(program),
            Counted::Yes => {
                let mut command = Command::new("valgrind");
                let out = self.root.with_extension("callgrind");
                command
                    .args(["--tool=callgrind", "--fair-sched=yes"])
                    .arg(format!("--callgrind-out-file={}", out.display()))
                    .arg(program);
                command
            }
        };
        command
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        command.stderr(match counted {
            Counted::No => Stdio::null(),
            Counted::Yes => Stdio::piped(),
        });
        let mut child = command.spawn().context("cannot start a server")?;
        let stdout = child.stdout.take().map(BufReader::new);
        let stderr = child.stderr.take().map(BufReader::new);
        Ok(Server {
            child,
            address,
            stdout,
            stderr,
        })
    }

    /// Fails unless both servers give the same reply, but for the version of the file, which the floor makes up.
    fn check_replies(&self) -> Result<()> {
        let reply = |who| -> Result<String> {
            let mut server = self.start(who, Wire::Stdio, "small.txt", Counted::No)?;
            server.greet()?;
            let reply = server.exchange(&request("small.txt"))?;
            server.stop(Wire::Stdio)?;
            without_version(&reply)
        };
        let (ours, floor) = (reply(Who::Ours)?, reply(Who::Floor)?);
        ensure!(
            ours == floor,
            "the floor gives another reply: {floor}ours: {ours}"
        );
        Ok(())
    }

    /// Instructions of a small call, by single steps.
    fn steps(&self, who: Who, wire: Wire) -> Result<f64> {
        let mut server = self.start(who, wire, "small.txt", Counted::No)?;
        let process = server.child.id();
        let mut caller = server.caller(wire)?;
        caller.call(WARM_UP)?;
        // What a server puts off at its start would be counted too.
        single_step::wait_until_idle(process)?;
        let steps = Steps::of(process)?;
        // The first stepped call still finishes what earlier ones began.
        caller.call(1)?;
        let before = steps.taken();
        caller.call(STEPPED)?;
        let taken = steps.taken() - before;
        server.child.kill()?;
        Ok(taken as f64 / STEPPED as f64)
    }

    /// Instructions of a large call on stdio, by callgrind.
    fn instructions(&self, who: Who) -> Result<f64> {
        let (few, many) = LARGE_RUNS;
        let count = |calls| -> Result<u64> {
            let mut server = self.start(who, Wire::Stdio, "large.txt", Counted::Yes)?;
            let counting = server.collect();
            server.greet()?;
            server.call_on_stdio("large.txt", calls)?;
            server.stop(Wire::Stdio)?;
            counting
                .join()
                .ok()
                .flatten()
                .context("valgrind said no count")
        };
        Ok((count(many)? as f64 - count(few)? as f64) / (many - few) as f64)
    }

    /// What `serde_json` needs to make JSON of the large file's text.
    fn escaping(&self) -> Result<f64> {
        let count = |times: usize| -> Result<u64> {
            let output = Command::new("valgrind")
                .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
                .arg(self.binaries.join("floor"))
                .arg("escape")
                .arg(self.root.join("large.txt"))
                .arg(times.to_string())
                .output()?;
            counted(&String::from_utf8_lossy(&output.stderr)).context("valgrind said no count")
        };
        let (few, many) = LARGE_RUNS;
        Ok((count(many)? as f64 - count(few)? as f64) / (many - few) as f64)
    }

    /// Requests a second of both servers.
    fn throughput(&self, connections: usize) -> Result<TurnsCompared> {
        let ours = self.start(Who::Ours, Wire::Http, "small.txt", Counted::No)?;
        let floor = self.start(Who::Floor, Wire::Http, "small.txt", Counted::No)?;
        let compared = TurnsCompared::in_turns(
            || load(&ours.address, connections),
            || load(&floor.address, connections),
        )?;
        ours.stop(Wire::Http)?;
        floor.stop(Wire::Http)?;
        Ok(compared)
    }

    /// Milliseconds of reads one after the other on stdio, ours and another server's.
    fn sequential_reads(&self, ours: Who, other: Who) -> Result<TurnsCompared> {
        let mut ours = self.start(ours, Wire::Stdio, "small.txt", Counted::No)?;
        let mut other = self.start(other, Wire::Stdio, "small.txt", Counted::No)?;
        for server in [&mut ours, &mut other] {
            server.greet()?;
            server.call_on_stdio("small.txt", WARM_UP)?;
        }
        let compared = TurnsCompared::in_turns(|| ours.time_reads(), || other.time_reads())?;
        ours.stop(Wire::Stdio)?;
        other.stop(Wire::Stdio)?;
        Ok(compared)
    }
}

/// Figures of two servers, each the middle of its turns, and the middle of their ratios.
struct TurnsCompared {
    ours: f64,
    other: f64,
    ratio: f64,
}

impl TurnsCompared {
    fn in_turns(
        mut ours: impl FnMut() -> Result<f64>,
        mut other: impl FnMut() -> Result<f64>,
    ) -> Result<TurnsCompared> {
        let rounds: Result<Vec<(f64, f64)>> = (0..TURNS).map(|_| Ok((ours()?, other()?))).collect();
        let rounds = rounds?;
        Ok(TurnsCompared {
            ours: middle(rounds.iter().map(|round| round.0)),
            other: middle(rounds.iter().map(|round| round.1)),
            ratio: middle(rounds.iter().map(|round| round.0 / round.1)),
        })
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Counted {
    Yes,
    No,
}

impl Server {
    /// Reads what valgrind says at the end.
    fn collect(&mut self) -> std::thread::JoinHandle<Option<u64>> {
        let stderr = self.stderr.take();
        std::thread::spawn(move || {
            let mut said = String::new();
            stderr?.read_to_string(&mut said).ok()?;
            counted(&said)
        })
    }

    /// A client of it that is ready to call.
    fn caller(&mut self, wire: Wire) -> Result<Caller<'_>> {
        if wire == Wire::Stdio {
            self.greet()?;
            return Ok(Caller::Stdio(self));
        }
        let mut connection = Connection::open(&self.address)?;
        let (body, headers) = match wire {
            Wire::Progress => (with_progress("small.txt"), Vec::new()),
            Wire::Session => (
                request("small.txt"),
                vec![connection.begin_session(&self.address)?],
            ),
            _ => (request("small.txt"), Vec::new()),
        };
        let call = post(&self.address, &body, &headers);
        Ok(Caller::Http(connection, call))
    }

    fn greet(&mut self) -> Result<()> {
        self.exchange(&greeting())?;
        let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        self.say(&ready.to_string())
    }

    fn call_on_stdio(&mut self, file: &str, calls: usize) -> Result<()> {
        let call = request(file);
        for _ in 0..calls {
            let reply = self.exchange(&call)?;
            ensure!(reply.contains("structuredContent"), "no reply: {reply}");
        }
        Ok(())
    }

    /// Milliseconds of reads one after the other.
    fn time_reads(&mut self) -> Result<f64> {
        let begun = Instant::now();
        self.call_on_stdio("small.txt", READS)?;
        Ok(begun.elapsed().as_secs_f64() * 1000.0)
    }

    fn say(&mut self, message: &str) -> Result<()> {
        let stdin = self.child.stdin.as_mut().context("no standard input")?;
        stdin.write_all(format!("{message}\n").as_bytes())?;
        Ok(())
    }

    fn exchange(&mut self, message: &str) -> Result<String> {
        self.say(message)?;
        let mut reply = String::new();
        let stdout = self.stdout.as_mut().context("no standard output")?;
        stdout.read_line(&mut reply)?;
        Ok(reply)
    }

    /// Ends the server and waits for it.
    fn stop(mut self, wire: Wire) -> Result<()> {
        drop(self.child.stdin.take());
        if wire != Wire::Stdio {
            let pid = self.child.id().to_string();
            Command::new("kill").arg(pid).status()?;
        }
        self.child.wait()?;
        Ok(())
    }
}

/// A client that calls `read_file` on the small file.
enum Caller<'server> {
    Stdio(&'server mut Server),
    Http(Connection, Vec<u8>),
}

impl Caller<'_> {
    fn call(&mut self, times: usize) -> Result<()> {
        match self {
            Caller::Stdio(server) => server.call_on_stdio("small.txt", times),
            Caller::Http(connection, call) => {
                (0..times).try_for_each(|_| connection.exchange(call))
            }
        }
    }
}

/// Requests a second that many connections get at once.
fn load(address: &str, connections: usize) -> Result<f64> {
    let (done, over) = (AtomicU64::new(0), AtomicBool::new(false));
    let call = post(address, &request("small.txt"), &[]);
    let opened: Result<Vec<Connection>> = (0..connections)
        .map(|_| Connection::open(address))
        .collect();
    let begun = Instant::now();
    std::thread::scope(|scope| -> Result<()> {
        let work = |mut connection: Connection| {
            while !over.load(Ordering::Relaxed) {
                connection.exchange(&call)?;
                done.fetch_add(1, Ordering::Relaxed);
            }
            Ok::<_, anyhow::Error>(())
        };
        let threads: Vec<_> = opened?
            .into_iter()
            .map(|connection| scope.spawn(move || work(connection)))
            .collect();
        std::thread::sleep(TURN);
        over.store(true, Ordering::Relaxed);
        let ended = threads.into_iter().filter_map(|thread| thread.join().ok());
        ended.collect()
    })?;
    Ok(done.load(Ordering::Relaxed) as f64 / begun.elapsed().as_secs_f64())
}

/// The count in what callgrind says when it ends.
fn counted(said: &str) -> Option<u64> {
    let line = said
        .lines()
        .rev()
        .find(|line| line.contains("Collected :"))?;
    line.rsplit(' ').next()?.parse().ok()
}

fn middle(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}

/// A reply with as many other letters for its file's version.
fn without_version(reply: &str) -> Result<String> {
    let message: Value = serde_json::from_str(reply)?;
    let version = &message["result"]["structuredContent"]["version"];
    let version = version.as_str().context("a reply without a version")?;
    Ok(reply.replace(version, &"v".repeat(version.len())))
}

/// The first `length` bytes, or a few less where a character would be cut.
fn cut(text: &str, length: usize) -> &str {
    let end = (0..=length).rev().find(|&end| text.is_char_boundary(end));
    text.get(..end.unwrap_or_default()).unwrap_or_default()
}

/// Instructions of one call: the same on a busy machine as on a quiet one.
fn count_instructions(bench: &Bench, table: &mut impl Write) -> Result<()> {
    let mut plain = 0.0;
    for (wire, goal) in [(Wire::Stdio, 0.7), (Wire::Http, 0.5)] {
        let name = wire.name();
        plain = bench.steps(Who::Ours, wire)?;
        let floor = bench.steps(Who::Floor, wire)?;
        let ratio = plain / floor;
        writeln!(
            table,
            "| 4 KiB `read_file`, {name}: instructions | {plain:.0} | {floor:.0} | {ratio:.2} | ≤ {goal} |"
        )?;
    }
    for wire in [Wire::Progress, Wire::Session] {
        let name = wire.name();
        let ours = bench.steps(Who::Ours, wire)?;
        writeln!(
            table,
            "| … {name}, beside the plain call | {ours:.0} | {plain:.0} | {:.2} | ≤ 1.3 |",
            ours / plain
        )?;
    }
    if Command::new("valgrind").arg("--version").output().is_err() {
        writeln!(
            table,
            "| large calls: not counted without valgrind | | | | |"
        )?;
        return Ok(());
    }
    let ours = bench.instructions(Who::Ours)?;
    let floor = bench.instructions(Who::Floor)?;
    let escaping = bench.escaping()?;
    writeln!(
        table,
        "| 1 MiB `read_file`, stdio: instructions | {ours:.0} | {floor:.0} | {:.2} | |",
        ours / floor
    )?;
    writeln!(
        table,
        "| … beside `serde_json` on the same string | {ours:.0} | {escaping:.0} | {:.2} | ≤ 3 |",
        ours / escaping
    )?;
    Ok(())
}

fn count_requests(bench: &Bench, table: &mut impl Write) -> Result<()> {
    for connections in [1, 50] {
        let TurnsCompared { ours, other, ratio } = bench.throughput(connections)?;
        let goal = if connections == 50 { "≥ 1.2" } else { "" };
        writeln!(
            table,
            "| 4 KiB `read_file`, HTTP, {connections} connections: requests/s | {ours:.0} | {other:.0} | {ratio:.2} | {goal} |"
        )?;
    }
    let reads = format!("{READS} reads of 4 KiB one after the other, stdio: ms");
    let TurnsCompared { ours, other, ratio } = bench.sequential_reads(Who::Ours, Who::Floor)?;
    writeln!(table, "| {reads} | {ours:.1} | {other:.1} | {ratio:.2} | |")?;
    if bench.earlier.is_some() {
        let TurnsCompared { ours, other, ratio } =
            bench.sequential_reads(Who::Ours, Who::Earlier)?;
        writeln!(
            table,
            "| … beside the earlier build | {ours:.1} | {other:.1} | {ratio:.2} | ≤ 1 |"
        )?;
    }
    Ok(())
}

/// What rights cost a small read: a client's globs and denied globs beside none.
fn count_rights(bench: &Bench, table: &mut impl Write) -> Result<()> {
    let with = bench.steps(Who::Guarded, Wire::Stdio)?;
    let without = bench.steps(Who::Unguarded, Wire::Stdio)?;
    let ratio = with / without;
    writeln!(
        table,
        "| 4 KiB `read_file` with rights, beside none: instructions | {with:.0} | {without:.0} | {ratio:.3} | ≤ 1.02 |"
    )?;
    let TurnsCompared { ours, other, ratio } =
        bench.sequential_reads(Who::Guarded, Who::Unguarded)?;
    writeln!(
        table,
        "| … {READS} one after the other: ms | {ours:.1} | {other:.1} | {ratio:.3} | ≤ 1.02 |"
    )?;
    Ok(())
}

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let only = arguments.next().unwrap_or_default();
    ensure!(
        ["", "instructions", "requests", "rights"].contains(&only.as_str()),
        "unknown argument {only}; known: rights, instructions, requests [an earlier build of the server] (all without one)"
    );
    let earlier = arguments.next().map(PathBuf::from);
    let parent = tempfile::tempdir()?;
    let root = parent.path().join("bench");
    fs::create_dir(&root)?;
    let bench = Bench::new(root, earlier)?;
    bench.check_replies()?;
    // A row is shown as soon as it is known: the next one may take minutes.
    let mut table = io::stdout();
    writeln!(
        table,
        "| call | ours | floor | ratio | goal |\n|---|---|---|---|---|"
    )?;
    if ["", "rights"].contains(&only.as_str()) {
        count_rights(&bench, &mut table)?;
    }
    if ["", "instructions"].contains(&only.as_str()) {
        count_instructions(&bench, &mut table)?;
    }
    if ["", "requests"].contains(&only.as_str()) {
        count_requests(&bench, &mut table)?;
    }
    Ok(())
}
