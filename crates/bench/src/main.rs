//! Compares the release server with the tools people would reach for, through the tool call itself.
//!
//! `bench [--quick] [--only WORD] [--save]` makes the corpus, gets the peers, runs each pair in turn and prints Markdown;
//! `bench starve` attacks the server with 256 heavy calls of each kind and fails if another client waits too long;
//! `bench rights` measures what rights cost, alone and without peers.
//! `--save` writes it to `bench/RESULTS.md`. Run it with `make bench` or `make bench-quick`. No figure of it is a test.

#![expect(
    clippy::disallowed_methods,
    reason = "the bench prepares host directories and looks at processes from outside the sandbox"
)]

mod changes;
mod corpus;
mod edits;
mod goals;
mod growth;
mod history;
mod large;
mod load;
mod measure;
mod others;
mod pair;
mod peers;
mod random;
mod report;
mod rights;
mod rows;
mod searches;
mod server;
mod starve;
mod svg;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};

use crate::corpus::{Corpus, Scale};
use crate::pair::{Compared, Patience, Servers};
use crate::peers::Peers;
use crate::rows::Bench;
use crate::server::Own;
use crate::starve::Starved;

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.split_first() {
        Some((first, rest)) if first == "measure" => measure::measure(rest),
        Some((first, rest)) if first == "starve" => starve(&Wanted::read(rest)?),
        Some((first, rest)) if first == "rights" => rights(&Wanted::read(rest)?),
        _ => compare(&Wanted::read(&arguments)?),
    }
}

/// The parsed command line.
struct Wanted {
    scale: Scale,
    /// Only rows whose part or name has this in it.
    only: Option<String>,
    save: bool,
    /// Another build of the server.
    server: Option<PathBuf>,
}

impl Wanted {
    fn read(arguments: &[String]) -> Result<Wanted> {
        let mut wanted = Wanted {
            scale: Scale::Full,
            only: None,
            save: false,
            server: None,
        };
        let mut words = arguments.iter();
        while let Some(word) = words.next() {
            match word.as_str() {
                "--quick" => wanted.scale = Scale::Quick,
                "--save" => wanted.save = true,
                "--server" => {
                    let path = words.next().context("--server needs a path")?;
                    wanted.server = Some(std::path::absolute(path)?);
                }
                "--only" => {
                    wanted.only = Some(words.next().context("--only needs a word")?.clone())
                }
                other => {
                    anyhow::bail!(
                        "unknown argument {other}; known: --quick, --only WORD, --server PATH, --save"
                    )
                }
            }
        }
        Ok(wanted)
    }

    fn patience(&self) -> Patience {
        match self.scale {
            Scale::Full => Patience {
                fewest: 3,
                most: 15,
                time: Duration::from_secs(6),
            },
            Scale::Quick => Patience {
                fewest: 3,
                most: 7,
                time: Duration::from_millis(1500),
            },
        }
    }

    fn takes(&self, part: &str, name: &str) -> bool {
        let has = |word: &String| part.contains(word.as_str()) || name.contains(word.as_str());
        self.only.as_ref().is_none_or(has)
    }
}

fn compare(wanted: &Wanted) -> Result<()> {
    let target = target_directory()?;
    let base = target.join("bench");
    std::fs::create_dir_all(&base)?;
    let peers = Peers::ready(&base)?;
    let corpus = Corpus::ready(&base, wanted.scale)?;
    let program = wanted.server.clone();
    let own = Own {
        program: program.unwrap_or_else(|| target.join("release/mcp-filesystem")),
        base,
        root: corpus.root.clone(),
    };
    let bench = Bench { corpus, peers };
    std::fs::create_dir_all(results())?;
    bench.clean()?;
    let Report { text, starved } = run(wanted, &bench, &own)?;
    bench.clean()?;
    say(&text)?;
    if wanted.save {
        std::fs::write(results().join("RESULTS.md"), text)?;
    }
    starved.as_ref().map_or(Ok(()), nobody_starved)
}

/// Fails if the attacked server did not serve another client as it should.
fn nobody_starved(starved: &Starved) -> Result<()> {
    anyhow::ensure!(
        starved.holds,
        "another client's p99, or its middle rare call, is over ten times its idle p99 under some load, or a call was lost"
    );
    Ok(())
}

/// Attacks the server with heavy calls; fails if another client's small calls wait too long.
fn starve(wanted: &Wanted) -> Result<()> {
    let target = target_directory()?;
    let base = target.join("bench");
    std::fs::create_dir_all(&base)?;
    let program = wanted.server.clone();
    let own = Own {
        program: program.unwrap_or_else(|| target.join("release/mcp-filesystem")),
        root: base.clone(),
        base,
    };
    let starved = starve::attack(&own, wanted.scale, |name| wanted.takes("", name))?;
    say(&starved.table)?;
    nobody_starved(&starved)
}

/// Measures what rights cost on a corpus of sources alone.
fn rights(wanted: &Wanted) -> Result<()> {
    let target = target_directory()?;
    let base = target.join("bench");
    std::fs::create_dir_all(&base)?;
    let corpus = Corpus::sources(&base, wanted.scale)?;
    let program = wanted.server.clone();
    let mut servers = Servers::new(Own {
        program: program.unwrap_or_else(|| target.join("release/mcp-filesystem")),
        base,
        root: corpus.root.clone(),
    });
    let mut compared = Vec::new();
    for row in rights::rows(corpus.divisor) {
        if wanted.takes(row.part, &row.name) {
            compared.push(row.run(&mut servers, wanted.patience())?);
        }
    }
    let rows: Vec<&Compared> = compared.iter().collect();
    say(&report::table(&rows))
}

/// What a run found.
struct Report {
    text: String,
    /// The attacks, if they were wanted.
    starved: Option<Starved>,
}

/// Runs what is wanted and puts the report together.
fn run(wanted: &Wanted, bench: &Bench, own: &Own) -> Result<Report> {
    let compared = compare_all(wanted, bench, own)?;
    let mut text = report::opening(&compared);
    let mut parts: Vec<&str> = compared.iter().map(|row| row.part).collect();
    parts.dedup();
    for part in parts {
        let rows: Vec<&Compared> = compared.iter().filter(|row| row.part == part).collect();
        text += &format!("\n## {part}\n\n{}", report::table(&rows));
    }
    if wanted.takes("Servers", "") {
        text += &format!(
            "\n## Start, size and other servers\n\n{}",
            bench.other_servers(own)?
        );
        text += &format!("\nThe stripped binary has {}.\n", size(&own.program));
    }
    let mut starved = None;
    if wanted.takes("Attack", "") {
        let attacked = starve::attack(own, wanted.scale, |_| true)?;
        text += &format!(
            "\n## A client's small calls beside 256 heavy ones of another\n\n{}",
            attacked.table
        );
        starved = Some(attacked);
    }
    if wanted.takes("Growth", "") && wanted.scale == Scale::Full {
        text += &format!("\n## Growth\n\n{}", growth(wanted, bench, own)?);
    }
    if let Ok(reasons) = std::fs::read_to_string(results().join("REASONS.md")) {
        text += &format!("\n{reasons}");
    }
    text += &versions(bench);
    Ok(Report { text, starved })
}

fn compare_all(wanted: &Wanted, bench: &Bench, own: &Own) -> Result<Vec<Compared>> {
    let mut servers = Servers::new(own.clone());
    let mut compared = Vec::new();
    for row in bench.rows() {
        if !wanted.takes(row.part, &row.name) {
            continue;
        }
        let name = row.name.clone();
        match row.run(&mut servers, wanted.patience()) {
            Ok(row) => {
                say(report::table(&[&row]).lines().last().unwrap_or_default())?;
                compared.push(row);
            }
            Err(error) => say(&format!("{name}: {error:#}"))?,
        }
    }
    Ok(compared)
}

fn growth(wanted: &Wanted, bench: &Bench, own: &Own) -> Result<String> {
    let mut text = String::new();
    for grown in bench.growth(own)? {
        text += &format!(
            "![{}]({})\n\n{}.\n\n",
            grown.plot.title, grown.file, grown.words
        );
        if wanted.save {
            std::fs::write(results().join(grown.file), grown.plot.svg())?;
        }
    }
    Ok(text)
}

fn versions(bench: &Bench) -> String {
    let mut text = String::from("\n## Machine and versions\n\n");
    let machine = report::machine(&bench.corpus.root);
    for line in machine.iter().chain(&bench.peers.versions()) {
        text += &format!("- {line}\n");
    }
    for line in &bench.peers.missing {
        text += &format!("- not compared, {line}\n");
    }
    text
}

fn size(program: &Path) -> String {
    let bytes = std::fs::metadata(program).map_or(0, |metadata| metadata.len());
    report::memory(bytes / 1024)
}

/// Where results are kept: `bench` beside the `crates` directory.
fn results() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench")
}

/// The directory that this very program was built in.
fn target_directory() -> Result<PathBuf> {
    let program = std::env::current_exe()?;
    let target = program.parent().and_then(Path::parent);
    target
        .map(Path::to_owned)
        .context("the bench lies in target/release")
}

fn say(text: &str) -> Result<()> {
    writeln!(std::io::stdout(), "{text}")?;
    Ok(())
}
