//! The comparisons of the table, as data: what is asked of our server, and the program that does the same.

use std::cell::Cell;
use std::rc::Rc;

use anyhow::Result;
use serde_json::{Value, json};

use crate::corpus::{COMMON, Corpus, FREQUENT, RARE};
use crate::goals::Goals;
use crate::measure::{Cost, Line};
use crate::pair::{Pair, as_many, call, call_unremembered, program};
use crate::peers::Peers;
use crate::rights;

/// What rows are made from.
pub(crate) struct Bench {
    pub(crate) corpus: Corpus,
    pub(crate) peers: Peers,
}

const SEARCH: &str = "Content search";
const NAMES: &str = "Names and listings";

impl Bench {
    /// All comparisons, in the order of the report.
    pub(crate) fn rows(&self) -> Vec<Pair> {
        let mut rows = Vec::new();
        if let Some(rg) = self.peers.path("rg") {
            rows.extend(self.searches(&rg));
        }
        rows.extend(large_replies(self.corpus.flat.iter().max()));
        if let Some(rg) = self.peers.path("rg") {
            rows.extend(self.searches_again(&rg));
        }
        if let Some(fd) = self.peers.path("fd") {
            rows.extend(self.finds(&fd));
            rows.extend(self.finds_again(&fd));
        }
        rows.extend(self.listings());
        rows.extend(self.large_files());
        rows.extend(self.changes());
        rows.extend(self.edits());
        rows.extend(self.history());
        rows.extend(rights::rows(self.corpus.divisor));
        rows.extend(self.comparisons());
        rows.extend(self.reply_forms());
        rows
    }

    fn searches(&self, rg: &str) -> Vec<Pair> {
        let tree = |name, goal, pattern, flags: &[&str], more| {
            self.search(rg, "tree", name, goal, pattern, flags, more)
        };
        let log = self.corpus.log();
        vec![
            tree("rare literal", 0.8, RARE, &[], json!({})),
            tree("common literal, all results", 0.6, COMMON, &[], json!({})),
            tree(
                "common literal, count per file",
                0.6,
                COMMON,
                &["--count"],
                json!({"output": "count"}),
            ),
            tree(
                "common literal, files only",
                0.6,
                COMMON,
                &["--files-with-matches"],
                json!({"output": "files"}),
            ),
            tree(
                "case-insensitive",
                0.8,
                "ZYZZYVA_Marker",
                &["--ignore-case"],
                json!({"case_insensitive": true}),
            ),
            tree(
                "class regex",
                0.8,
                r"[A-Z][a-z]+Error\(\d{3}\)",
                &[],
                json!({}),
            ),
            tree(
                "no literal",
                0.8,
                r"[a-z]{12}_[a-z]{2} = [a-z]{14}\.",
                &[],
                json!({}),
            ),
            tree(
                "2 lines of context",
                0.7,
                FREQUENT,
                &["--context", "2"],
                json!({"context_lines": 2}),
            ),
            self.search(
                rg,
                &log,
                "one 1 GB file, rare match",
                0.6,
                "needle-[0-9]+",
                &[],
                json!({}),
            ),
        ]
    }

    #[expect(clippy::too_many_arguments, reason = "a row of a table")]
    fn search(
        &self,
        rg: &str,
        place: &str,
        name: &str,
        goal: f64,
        pattern: &str,
        flags: &[&str],
        more: Value,
    ) -> Pair {
        let fixed = [
            "--no-config",
            "--no-ignore",
            "--hidden",
            "--no-heading",
            "--line-number",
            "--color=never",
        ];
        let mut words = vec![rg];
        words.extend(fixed);
        words.extend(flags);
        words.extend(["-e", pattern, place]);
        let line = Line::new(&self.corpus.root, &words);
        let mut arguments =
            json!({"root": "bench", "path": place, "pattern": pattern, "max_results": 1_000_000});
        merge(&mut arguments, more);
        let context = flags.contains(&"--context");
        let checked = self.counted(rg, place, pattern, if context { &[] } else { flags });
        let counts = if flags.contains(&"--count") {
            "/files"
        } else {
            "/total_matches"
        };
        Pair {
            part: SEARCH,
            name: name.to_owned(),
            peer_name: "ripgrep".to_owned(),
            goals: Goals::wall(goal),
            subject: call_unremembered("grep", arguments, checked_count(counts, checked)),
            peer: program(line),
        }
    }

    fn counted(&self, rg: &str, place: &str, pattern: &str, flags: &[&str]) -> Line {
        let mut words = vec![
            rg,
            "--no-config",
            "--no-ignore",
            "--hidden",
            "--no-heading",
            "--no-line-number",
        ];
        words.extend(flags);
        words.extend(["-e", pattern, place]);
        Line::new(&self.corpus.root, &words)
    }

    fn finds(&self, fd: &str) -> Vec<Pair> {
        let plain = ["--unrestricted", "--color=never"];
        let by_name = [fd, plain[0], plain[1], "--glob", "*.rs", "names"];
        let by_path = [
            fd,
            plain[0],
            plain[1],
            "--full-path",
            "--glob",
            "**/config_*/**/*.toml",
            "names",
        ];
        let sorted = [
            "sh",
            "-c",
            "find names -name '*.rs' -printf '%p %s %T@\\n' | LC_ALL=C sort",
        ];
        let all = [
            "sh",
            "-c",
            "find names -mindepth 1 -printf '%p %s %T@\\n' | LC_ALL=C sort",
        ];
        vec![
            self.find("`*.rs` of 200,000 names", "fd", 0.8, "**/*.rs", &by_name),
            self.find(
                "`**/config_*/**/*.toml`",
                "fd",
                0.6,
                "**/config_*/**/*.toml",
                &by_path,
            ),
            self.find(
                "`*.rs` with size and time, sorted",
                "find -printf, sort",
                0.8,
                "**/*.rs",
                &sorted,
            ),
            self.find(
                "all 200,000 with size and time, sorted",
                "find -printf, sort",
                0.8,
                "**",
                &all,
            ),
        ]
    }

    fn find(&self, name: &str, peer_name: &str, goal: f64, pattern: &str, words: &[&str]) -> Pair {
        let line = Line::new(&self.corpus.root, words);
        let arguments =
            json!({"root": "bench", "path": "names", "pattern": pattern, "max_results": 1_000_000});
        Pair {
            part: NAMES,
            name: name.to_owned(),
            peer_name: peer_name.to_owned(),
            goals: Goals::wall(goal),
            subject: call_unremembered("glob", arguments, as_many("/total_matches", line.clone())),
            peer: program(line),
        }
    }

    fn listings(&self) -> Vec<Pair> {
        let list = |entries: &usize| {
            let directory = format!("flat-{entries}");
            let line = Line::new(&self.corpus.root, &["ls", "-lU", &directory]);
            let names = Line::new(&self.corpus.root, &["ls", "-U", &directory]);
            Pair {
                part: NAMES,
                name: format!("list {entries} with metadata, sorted"),
                peer_name: "ls -lU, unsorted".to_owned(),
                goals: Goals::wall(0.4),
                subject: call(
                    "workspace",
                    "list_folder",
                    json!({"root": "bench", "path": directory}),
                    as_many("/count", names),
                ),
                peer: program(line),
            }
        };
        self.corpus.flat.iter().map(list).collect()
    }
}

/// The memory that large replies take, beside twice their length.
fn large_replies(flat: Option<&usize>) -> Vec<Pair> {
    let most = 1_000_000;
    let mut rows = vec![large_reply(
        SEARCH,
        "all results of the common literal",
        "grep",
        json!({"root": "bench", "path": "tree", "pattern": COMMON, "max_results": most}),
    )];
    rows.extend(flat.into_iter().flat_map(|entries| {
        let path = format!("flat-{entries}");
        let list = json!({"root": "bench", "path": path});
        let glob = json!({"root": "bench", "path": path, "pattern": "*", "max_results": most});
        let list = large_reply(NAMES, &format!("a list of {entries}"), "list_folder", list);
        let glob = large_reply(NAMES, &format!("{entries} names found"), "glob", glob);
        [list, glob]
    }));
    rows
}

/// The memory that a large reply takes above what is resident before it, beside twice its length.
fn large_reply(part: &'static str, of: &str, tool: &'static str, arguments: Value) -> Pair {
    let length = Rc::new(Cell::new(0));
    let told = Rc::clone(&length);
    Pair {
        part,
        name: format!("memory of the reply with {of}"),
        peer_name: "twice its length".to_owned(),
        goals: Goals::peak(1.0),
        subject: Box::new(move |servers, _| {
            let server = servers.unremembered()?;
            // After a small call nothing of the last large reply is still on its way.
            server.ask("list_roots", &json!({}))?;
            let idle = server.resident();
            let cost = server.call(tool, &arguments)?;
            length.set(server.reply_bytes());
            let peak = cost.peak.saturating_sub(idle);
            Ok(Cost { peak, ..cost })
        }),
        peer: Box::new(move |_| {
            Ok(Cost {
                peak: told.get() * 2 / 1024,
                ..Cost::default()
            })
        }),
    }
}

/// Checks a number or the length of a list.
fn checked_count(pointer: &'static str, line: Line) -> impl Fn(&Value) -> Result<()> {
    let check = as_many("/number", line);
    move |reply| {
        let found = reply.pointer(pointer);
        let number = found
            .and_then(Value::as_array)
            .map(|list| json!(list.len()));
        check(&json!({"number": number.or_else(|| found.cloned())}))
    }
}

fn merge(into: &mut Value, more: Value) {
    if let (Value::Object(into), Value::Object(more)) = (into, more) {
        into.extend(more);
    }
}
