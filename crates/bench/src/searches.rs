//! Comparisons of searches that are made again, of directories that are compared, and of replies in each form.
//!
//! The first search of a server reads everything; later ones open only what may match. Each row says which search of a
//! server it measures.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::corpus::RARE;
use crate::goals::Goals;
use crate::measure::{self, Line};
use crate::pair::{Pair, Subject, call, program};
use crate::rows::Bench;
use crate::server::Durability;

const AGAIN: &str = "Searches made again";
const COMPARISONS: &str = "Comparisons of directories";
const FORMS: &str = "Replies of each form";
/// How many searches are made before the tenth.
pub(crate) const BEFORE_TENTH: usize = 9;
/// One file of so many is written anew.
const CHANGED_OF: usize = 100;
/// How long until files that were written are remembered.
const SETTLED: Duration = Duration::from_millis(2_200);

impl Bench {
    /// Searches that are made again beside the same programs, which begin anew each time.
    pub(crate) fn searches_again(&self, rg: &str) -> Vec<Pair> {
        let literal = ["-e", RARE];
        let no_case = ["--ignore-case", "-e", "ZYZZYVA_Marker"];
        let anything = r"[a-z]{12}_[a-z]{2} = [a-z]{14}\.";
        let search = |pattern: &str| json!({"root": "bench", "path": "tree", "pattern": pattern, "max_results": 1_000_000});
        let mut ignoring = search("ZYZZYVA_Marker");
        ignoring["case_insensitive"] = json!(true);
        let row = |name: &str, goals, words: &[&str], subject| Pair {
            part: AGAIN,
            name: name.to_owned(),
            peer_name: "ripgrep".to_owned(),
            goals,
            subject,
            peer: program(self.ripgrep(rg, words)),
        };
        vec![
            row(
                "rare literal, the first search of a server",
                Goals::wall(1.0).and_cpu(1.0),
                &literal,
                fresh(search(RARE), 0),
            ),
            row(
                "rare literal, the second",
                Goals::wall(1.0).and_cpu(1.0),
                &literal,
                fresh(search(RARE), 1),
            ),
            row(
                "rare literal, the tenth",
                Goals::wall(0.3).and_cpu(0.3),
                &literal,
                late("grep", search(RARE)),
            ),
            row(
                "case-insensitive, the tenth",
                Goals::wall(0.3).and_cpu(0.3),
                &no_case,
                late("grep", ignoring),
            ),
            row(
                "no literal, the tenth",
                Goals::wall(0.8),
                &["-e", anything],
                late("grep", search(anything)),
            ),
            row(
                "rare literal, 1 % of the files changed since",
                Goals::wall(0.35),
                &literal,
                self.after_changes(search(RARE)),
            ),
        ]
    }

    /// Names that are looked for again.
    pub(crate) fn finds_again(&self, fd: &str) -> Vec<Pair> {
        let words = [
            fd,
            "--unrestricted",
            "--color=never",
            "--glob",
            "*.rs",
            "names",
        ];
        let arguments = json!({"root": "bench", "path": "names", "pattern": "**/*.rs", "max_results": 1_000_000});
        vec![Pair {
            part: AGAIN,
            name: "`*.rs` of 200,000 names, the tenth".to_owned(),
            peer_name: "fd".to_owned(),
            goals: Goals::wall(0.4),
            subject: late("glob", arguments),
            peer: program(Line::new(&self.corpus.root, &words)),
        }]
    }

    /// Two equal trees compared by content.
    pub(crate) fn comparisons(&self) -> Vec<Pair> {
        let Some(group) = self.corpus.tree.first() else {
            return Vec::new();
        };
        let (tree, copy) = (format!("tree/{}", group.name), "scratch/compared");
        let arguments = json!({"root": "bench", "path": tree, "other": copy});
        let (from, to) = (self.corpus.root.join(&tree), self.corpus.root.join(copy));
        let mut compare = call("workspace", "compare", arguments, |_| Ok(()));
        let subject: Subject = Box::new(move |servers, round| {
            if round == 0 {
                copied(&from, &to)?;
            }
            compare(servers, round)
        });
        vec![Pair {
            part: COMPARISONS,
            name: format!("two equal trees of {} files", group.files),
            peer_name: "diff -rq".to_owned(),
            goals: Goals::wall(0.6),
            subject,
            peer: program(Line::new(&self.corpus.root, &["diff", "-rq", &tree, copy])),
        }]
    }

    /// A megabyte of text in each form of a reply.
    pub(crate) fn reply_forms(&self) -> Vec<Pair> {
        let smallest = self.corpus.logs.first().copied().unwrap_or_default();
        let log = format!("logs/{smallest}.log");
        let forms = [
            ("both", "both"),
            ("text only", "text"),
            ("structured only", "structured"),
        ];
        let row = |(name, word): (&str, &'static str)| {
            let arguments = json!({"root": "bench", "path": log});
            let subject: Subject = Box::new(move |servers, round| {
                let more =
                    format!("server: {{ replies: {word} }}\nlimits: {{ request_timeout: 600 }}\n");
                let server = servers.configured(word, &more)?;
                let cost = server.call("read_file", &arguments)?;
                if round == 0 {
                    server.reply()?;
                }
                Ok(cost)
            });
            Pair {
                part: FORMS,
                name: format!("{smallest} bytes of text, {name}"),
                peer_name: "cat".to_owned(),
                goals: Goals::wall(5.0),
                subject,
                peer: program(Line::new(&self.corpus.root, &["cat", &log])),
            }
        };
        forms.into_iter().map(row).collect()
    }

    fn ripgrep(&self, rg: &str, words: &[&str]) -> Line {
        let fixed = [
            rg,
            "--no-config",
            "--no-ignore",
            "--hidden",
            "--no-heading",
            "--line-number",
            "--color=never",
        ];
        let all: Vec<&str> = fixed.iter().chain(words).copied().chain(["tree"]).collect();
        Line::new(&self.corpus.root, &all)
    }

    /// Writes some files anew before each round, with what they hold.
    fn after_changes(&self, arguments: Value) -> Subject {
        let tree = self.corpus.root.join("tree");
        let mut files = Vec::new();
        let mut search = late("grep", arguments);
        Box::new(move |servers, round| {
            if round == 0 {
                files_below(&tree, &mut files)?;
                files.sort();
                search(servers, 0)?;
            }
            for path in files.iter().skip(round % CHANGED_OF).step_by(CHANGED_OF) {
                fs::write(path, fs::read(path)?)?;
            }
            let cost = search(servers, round.max(1))?;
            // So that the next round changes files that are known.
            std::thread::sleep(SETTLED);
            search(servers, round.max(1))?;
            Ok(cost)
        })
    }
}

/// A search by a server that made so many before.
fn fresh(arguments: Value, before: usize) -> Subject {
    Box::new(move |servers, _| {
        servers.stop();
        let server = servers.get("workspace", Durability::Fsync)?;
        for _ in 0..before {
            server.ask("grep", &arguments)?;
        }
        let cost = server.call("grep", &arguments)?;
        server.reply()?;
        Ok(cost)
    })
}

/// A call by a server that made the same at least nine times before.
fn late(tool: &'static str, arguments: Value) -> Subject {
    Box::new(move |servers, round| {
        let server = servers.get("workspace", Durability::Fsync)?;
        if round == 0 {
            for _ in 0..BEFORE_TENTH {
                server.ask(tool, &arguments)?;
            }
        }
        let cost = server.call(tool, &arguments)?;
        server.reply()?;
        Ok(cost)
    })
}

fn copied(from: &Path, to: &Path) -> Result<()> {
    if to.exists() {
        return Ok(());
    }
    let (from, to) = (from.display().to_string(), to.display().to_string());
    let line = Line::new(Path::new("/"), &["cp", "-r", &from, &to]);
    measure::run(&line)?;
    ensure!(Path::new(&to).exists(), "{to} was not made");
    Ok(())
}

fn files_below(directory: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(directory).context("a directory of the corpus")? {
        let entry = entry?;
        let kind = entry.file_type()?;
        if kind.is_dir() {
            files_below(&entry.path(), files)?;
        } else if kind.is_file() && entry.metadata()?.len() < 1_000_000 {
            files.push(entry.path());
        }
    }
    Ok(())
}
