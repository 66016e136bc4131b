//! Comparisons of work that changes files: copies, removals, patches, replacements.
//!
//! Each round works on things of its own, because creating files right after a mass removal is slow on some file systems.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::json;

use crate::corpus::ONCE;
use crate::measure::{self, Line};
use crate::pair::{Pair, Peer, Subject};
use crate::rows::Bench;
use crate::server::Durability;

const CHANGES: &str = "Changes";
/// How many hunks the patch has, and how many lines are between two.
const HUNKS: usize = 500;
const LINES_PER_HUNK: usize = 50;

impl Bench {
    /// Everything that changes files, with our writes as fast as the peer's and as safe as the default.
    pub(crate) fn changes(&self) -> Result<Vec<Pair>> {
        let scratch = self.corpus.root.join("scratch");
        if scratch.exists() {
            fs::remove_dir_all(&scratch)?;
        }
        fs::create_dir_all(&scratch)?;
        let mut rows = Vec::new();
        let group = self.corpus.tree.get(1).context("a group")?;
        let part = format!("tree/{}", group.name);
        for (source, name) in [(part.as_str(), group.files), ("tree", self.files())] {
            rows.extend(self.tree_rows(source, name, 0.8, 0.9));
        }
        rows.push(self.file_copy());
        for durability in [Durability::Fast, Durability::Fsync] {
            rows.push(self.patch(&scratch, durability)?);
            rows.push(self.replacement(&scratch, durability)?);
        }
        Ok(rows)
    }

    fn files(&self) -> usize {
        self.corpus.tree.iter().map(|group| group.files).sum()
    }

    /// Copies into fresh directories by both sides, then removals of what the copies left.
    fn tree_rows(&self, source: &str, files: usize, copy_goal: f64, remove_goal: f64) -> Vec<Pair> {
        let copy = |durability| Pair {
            part: CHANGES,
            name: format!("copy a tree of {files} files{}", said(durability)),
            peer_name: "cp -r".to_owned(),
            goal: copy_goal,
            subject: copy(source, files, durability),
            peer: self.copy_peer(source, files, durability),
        };
        let removal = Pair {
            part: CHANGES,
            name: format!("remove a tree of {files} files"),
            peer_name: "rm -rf".to_owned(),
            goal: remove_goal,
            subject: self.removal(source, files),
            peer: self.removal_peer(source, files),
        };
        vec![copy(Durability::Fast), removal, copy(Durability::Fsync)]
    }

    fn removal(&self, source: &str, files: usize) -> Subject {
        let (root, source) = (self.corpus.root.clone(), source.to_owned());
        Box::new(move |servers, round| {
            let path = copied("own", &source, files, Durability::Fast, round);
            ensure_copy(&root, &source, &path)?;
            let server = servers.get("workspace", Durability::Fast)?;
            let cost = server.call("remove_folder", &json!({"root": "bench", "path": path}))?;
            server.reply()?;
            Ok(cost)
        })
    }

    fn removal_peer(&self, source: &str, files: usize) -> Peer {
        let (root, source) = (self.corpus.root.clone(), source.to_owned());
        Box::new(move |round| {
            let path = copied("peer", &source, files, Durability::Fast, round);
            ensure_copy(&root, &source, &path)?;
            Ok(measure::run(&Line::new(&root, &["rm", "-rf", &path]))?.0)
        })
    }

    fn copy_peer(&self, source: &str, files: usize, durability: Durability) -> Peer {
        let (root, source) = (self.corpus.root.clone(), source.to_owned());
        Box::new(move |round| {
            let path = copied("peer", &source, files, durability, round);
            Ok(measure::run(&Line::new(&root, &["cp", "-r", &source, &path]))?.0)
        })
    }

    fn file_copy(&self) -> Pair {
        let (root, log, other) = (
            self.corpus.root.clone(),
            self.corpus.log(),
            self.corpus.log(),
        );
        Pair {
            part: CHANGES,
            name: format!("copy one large file{}", said(Durability::Fast)),
            peer_name: "cp".to_owned(),
            goal: 1.1,
            subject: Box::new(move |servers, round| {
                let path = format!("scratch/own-large-{round}");
                let server = servers.get("workspace", Durability::Fast)?;
                let cost = server.call("copy", &from_to(&log, &path))?;
                server.reply()?;
                Ok(cost)
            }),
            peer: Box::new(move |round| {
                let path = format!("scratch/peer-large-{round}");
                let cost = measure::run(&Line::new(&root, &["cp", &other, &path]))?.0;
                // Both copies of this round are made, whoever was first.
                for path in [path, format!("scratch/own-large-{}", round.wrapping_sub(1))] {
                    let _ = fs::remove_file(root.join(path));
                }
                Ok(cost)
            }),
        }
    }

    fn patch(&self, scratch: &Path, durability: Durability) -> Result<Pair> {
        let (before, patch) = patched_file();
        let directory = scratch.join(format!("patch-{}", durability.word()));
        fs::create_dir_all(&directory)?;
        fs::write(directory.join("change.patch"), &patch)?;
        let own = format!("scratch/patch-{}/own.txt", durability.word());
        let (root, content) = (self.corpus.root.clone(), before.clone());
        Ok(Pair {
            part: CHANGES,
            name: format!("apply {HUNKS} hunks to 1 MB{}", said(durability)),
            peer_name: "git apply".to_owned(),
            goal: 0.3,
            subject: Box::new(move |servers, _| {
                fs::write(root.join(&own), &content)?;
                let server = servers.get("workspace", durability)?;
                let arguments = json!({"root": "bench", "path": own, "patch": patch});
                let cost = server.call("patch_file", &arguments)?;
                server.reply()?;
                Ok(cost)
            }),
            peer: Box::new(move |_| {
                fs::write(directory.join("peer.txt"), &before)?;
                Ok(measure::run(&Line::new(&directory, &["git", "apply", "change.patch"]))?.0)
            }),
        })
    }

    fn replacement(&self, scratch: &Path, durability: Durability) -> Result<Pair> {
        let log = self.corpus.root.join(self.corpus.edited_log());
        let name = format!("replace-{}", durability.word());
        let (own, peer) = (format!("{name}-own.log"), format!("{name}-peer.log"));
        fs::copy(&log, scratch.join(&own))?;
        fs::copy(&log, scratch.join(&peer))?;
        let path = format!("scratch/{own}");
        let directory: PathBuf = scratch.to_owned();
        Ok(Pair {
            part: CHANGES,
            name: format!("replace one string in 100 MB{}", said(durability)),
            peer_name: "sed -i".to_owned(),
            goal: 0.2,
            subject: Box::new(move |servers, round| {
                let (old, new) = (needle(round), needle(round + 1));
                let server = servers.get("memory", durability)?;
                let arguments = json!({"path": path, "old_str": old, "new_str": new});
                let cost = server.call("str_replace", &arguments)?;
                server.reply()?;
                Ok(cost)
            }),
            peer: Box::new(move |round| {
                let script = format!("s/{}/{}/", needle(round), needle(round + 1));
                Ok(measure::run(&Line::new(&directory, &["sed", "-i", &script, &peer]))?.0)
            }),
        })
    }
}

fn said(durability: Durability) -> &'static str {
    match durability {
        Durability::Fast => ", nobody waits for the disk",
        Durability::Fsync => ", ours on disk when it replies",
    }
}

/// Makes a copy for a removal, where the comparison of copies left none.
fn ensure_copy(root: &Path, source: &str, path: &str) -> Result<()> {
    if !root.join(path).exists() {
        measure::run(&Line::new(root, &["cp", "-r", source, path]))?;
    }
    Ok(())
}

/// Where a side's copy of a round goes.
fn copied(side: &str, source: &str, files: usize, durability: Durability, round: usize) -> String {
    let kind = source.replace('/', "-");
    format!(
        "scratch/{side}-{kind}-{files}-{}-{round}",
        durability.word()
    )
}

fn copy(source: &str, files: usize, durability: Durability) -> Subject {
    let source = source.to_owned();
    Box::new(move |servers, round| {
        let path = copied("own", &source, files, durability, round);
        let server = servers.get("workspace", durability)?;
        let cost = server.call("copy", &from_to(&source, &path))?;
        server.reply()?;
        Ok(cost)
    })
}

fn from_to(source: &str, destination: &str) -> serde_json::Value {
    json!({"source_root": "bench", "source_path": source, "dest_root": "bench", "dest_path": destination})
}

/// The marker that stands in a log after some rounds.
fn needle(round: usize) -> String {
    let number = format!("{round:04}");
    ONCE.replace("0000", &number)
}

/// A file of a megabyte and a patch that changes a line every fifty.
fn patched_file() -> (String, String) {
    let line = |number: usize| format!("line {number:06} of the file that is patched\n");
    let lines: Vec<String> = (1..=HUNKS * LINES_PER_HUNK).map(line).collect();
    let mut patch = String::from("--- a/peer.txt\n+++ b/peer.txt\n");
    for hunk in 0..HUNKS {
        let first = hunk * LINES_PER_HUNK + 20;
        patch += &format!("@@ -{first},7 +{first},7 @@\n");
        for (place, number) in (first..first + 7).enumerate() {
            match place {
                3 => patch += &format!("-{}+changed {number}\n", line(number)),
                _ => patch += &format!(" {}", line(number)),
            }
        }
    }
    (lines.concat(), patch)
}
