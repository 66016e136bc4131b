//! Comparisons on large files: parts of them, counts and hashes.

use std::fs::File;
use std::time::SystemTime;

use serde_json::{Value, json};

use crate::goals::Goals;
use crate::measure::Line;
use crate::pair::{Pair, Subject, as_many, call, program};
use crate::rows::Bench;
use crate::server::Durability;

const LARGE: &str = "Large files";

impl Bench {
    /// Reads and hashes of the largest log.
    pub(crate) fn large_files(&self) -> Vec<Pair> {
        let log = self.corpus.log();
        let first = self.corpus.logs.last().copied().unwrap_or_default() / 1_000;
        let last = first + 49;
        let range = format!("{first},{last}p;{last}q");
        let lines = json!({"root": "bench", "path": log, "offset_lines": first, "limit_lines": 50});
        // Its lines count from 0, both ends included.
        let uncounted = json!({"path": log, "start_line": first - 1, "end_line": last - 1});
        let tail = json!({"root": "bench", "path": log, "offset_lines": -50, "limit_lines": 50});
        let count = json!({"root": "bench", "path": log, "offset_lines": 1, "limit_lines": 1});
        let all_lines = as_many("/lines_total", self.peer(&["cat", &log]));
        let sed = self.peer(&["sed", "-n", &range, &log]);
        let row = |name: String, peer_name: &str, goal, subject, peer| Pair {
            part: LARGE,
            name,
            peer_name: peer_name.to_owned(),
            goals: Goals::wall(goal),
            subject,
            peer: program(peer),
        };
        let mut rows = vec![
            row(
                format!("lines {first} to {last}, file not seen before"),
                "sed -n q",
                1.0,
                self.unseen("workspace", "read_file", lines.clone()),
                sed.clone(),
            ),
            row(
                format!(
                    "lines {first} to {last}, file not seen before, lines not counted (`files`)"
                ),
                "sed -n q",
                0.5,
                self.unseen("files", "read", uncounted),
                sed.clone(),
            ),
            row(
                format!("lines {first} to {last}, read again"),
                "sed -n q",
                0.05,
                call("workspace", "read_file", lines, all_lines),
                sed,
            ),
            row(
                "the last 50 lines".to_owned(),
                "tail -n 50",
                0.6,
                call("workspace", "read_file", tail, |_| Ok(())),
                self.peer(&["tail", "-n", "50", &log]),
            ),
            row(
                "count all lines, file not seen before".to_owned(),
                "wc -l",
                1.0,
                self.unseen("workspace", "read_file", count),
                self.peer(&["wc", "-l", &log]),
            ),
        ];
        for (algorithm, goal) in [("sha256", 1.0), ("sha1", 1.0), ("md5", 1.2)] {
            let arguments = json!({"root": "bench", "path": log, "algorithm": algorithm});
            let flag = format!("-{algorithm}");
            rows.push(row(
                algorithm.to_owned(),
                "openssl",
                goal,
                call("workspace", "hash_file", arguments, |_| Ok(())),
                self.peer(&["openssl", "dgst", &flag, &log]),
            ));
        }
        rows
    }

    fn peer(&self, words: &[&str]) -> Line {
        Line::new(&self.corpus.root, words)
    }

    /// A call on the log, which looks changed each time, so that nothing remembered of it helps.
    fn unseen(&self, set: &'static str, tool: &'static str, arguments: Value) -> Subject {
        let path = self.corpus.root.join(self.corpus.log());
        Box::new(move |servers, _| {
            File::options()
                .append(true)
                .open(&path)?
                .set_modified(SystemTime::now())?;
            let server = servers.get(set, Durability::Fsync)?;
            let cost = server.call(tool, &arguments)?;
            server.reply()?;
            Ok(cost)
        })
    }
}
