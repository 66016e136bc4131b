//! Comparisons of work that changes files: copies, removals, patches, replacements.
//!
//! Each round works on its own files, because creating files right after a mass removal is slow on some file systems.

use std::fs;
use std::path::Path;

use anyhow::Result;
use serde_json::{Value, json};

use crate::corpus::ONCE;
use crate::goals::Goals;
use crate::measure::{self, Cost, Line};
use crate::pair::{Pair, Peer, Subject};
use crate::rows::Bench;
use crate::server::{Durability, Server};

const CHANGES: &str = "Changes";
/// How many hunks the patch has, and how many lines are between two.
const HUNKS: usize = 500;
const LINES_PER_HUNK: usize = 50;

impl Bench {
    /// Everything that changes files, with our writes as fast as the peer's and as safe as the default.
    pub(crate) fn changes(&self) -> Vec<Pair> {
        let mut rows = Vec::new();
        if let Some(group) = self.corpus.tree.get(1) {
            let part = format!("tree/{}", group.name);
            rows.extend(self.tree_rows(&part, group.files));
            rows.push(self.copy_row(&part, group.files, Durability::Fsync));
        }
        rows.extend(self.tree_rows("tree", self.files()));
        rows.push(self.file_copy());
        for durability in [Durability::Fast, Durability::Fsync] {
            rows.push(self.patch(durability));
            rows.push(self.replacement(durability));
        }
        rows
    }

    /// Removes what comparisons left.
    pub(crate) fn clean(&self) -> Result<()> {
        let scratch = self.corpus.root.join("scratch");
        if scratch.exists() {
            fs::remove_dir_all(&scratch)?;
        }
        Ok(fs::create_dir_all(&scratch)?)
    }

    fn files(&self) -> usize {
        self.corpus.tree.iter().map(|group| group.files).sum()
    }

    /// Copies into fresh directories by both sides, then removals of what the copies left.
    fn tree_rows(&self, source: &str, files: usize) -> Vec<Pair> {
        let removal = Pair {
            part: CHANGES,
            name: format!("remove a tree of {files} files"),
            peer_name: "rm -rf".to_owned(),
            goals: Goals::wall(0.9),
            subject: self.removal(source, files),
            peer: self.removal_peer(source, files),
        };
        vec![self.copy_row(source, files, Durability::Fast), removal]
    }

    fn copy_row(&self, source: &str, files: usize, durability: Durability) -> Pair {
        let (peer_name, goal) = match durability {
            Durability::Fast => ("cp -r", 0.8),
            Durability::Fsync => ("cp -r, sync -f", 0.9),
        };
        Pair {
            part: CHANGES,
            name: format!("copy a tree of {files} files{}", said(durability)),
            peer_name: peer_name.to_owned(),
            goals: Goals::wall(goal),
            subject: copy(source, files, durability),
            peer: self.copy_peer(source, files, durability),
        }
    }

    fn removal(&self, source: &str, files: usize) -> Subject {
        let (root, source) = (self.corpus.root.clone(), source.to_owned());
        Box::new(move |servers, round| {
            let path = copied("own", &source, files, Durability::Fast, round);
            ensure_copy(&root, &source, &path)?;
            let server = servers.get("workspace", Durability::Fast)?;
            called(
                server,
                "remove_folder",
                &json!({"root": "bench", "path": path}),
            )
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
            let synced = format!("cp -r {source} {path} && sync -f {path}");
            let line = match durability {
                Durability::Fast => Line::new(&root, &["cp", "-r", &source, &path]),
                Durability::Fsync => Line::new(&root, &["sh", "-c", &synced]),
            };
            Ok(measure::run(&line)?.0)
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
            goals: Goals::wall(1.1),
            subject: Box::new(move |servers, round| {
                let path = format!("scratch/own-large-{round}");
                let server = servers.get("workspace", Durability::Fast)?;
                called(server, "copy", &from_to(&log, &path))
            }),
            peer: Box::new(move |round| {
                let path = format!("scratch/peer-large-{round}");
                let cost = measure::run(&Line::new(&root, &["cp", &other, &path]))?.0;
                // Both copies of this round are made, in either order.
                for path in [path, format!("scratch/own-large-{}", round.wrapping_sub(1))] {
                    let _ = fs::remove_file(root.join(path));
                }
                Ok(cost)
            }),
        }
    }

    fn patch(&self, durability: Durability) -> Pair {
        let (before, patch) = patched_file();
        let place = format!("scratch/patch-{}", durability.word());
        let directory = self.corpus.root.join(&place);
        let (own_directory, own_before, own_patch) =
            (directory.clone(), before.clone(), patch.clone());
        Pair {
            part: CHANGES,
            name: format!("apply {HUNKS} hunks to 1 MB{}", said(durability)),
            peer_name: "git apply".to_owned(),
            goals: Goals::wall(0.15),
            subject: Box::new(move |servers, _| {
                fs::create_dir_all(&own_directory)?;
                fs::write(own_directory.join("own.txt"), &own_before)?;
                let path = format!("{place}/own.txt");
                let arguments = json!({"root": "bench", "path": path, "patch": own_patch});
                called(
                    servers.get("workspace", durability)?,
                    "patch_file",
                    &arguments,
                )
            }),
            peer: Box::new(move |_| {
                fs::create_dir_all(&directory)?;
                fs::write(directory.join("change.patch"), &patch)?;
                fs::write(directory.join("peer.txt"), &before)?;
                Ok(measure::run(&Line::new(&directory, &["git", "apply", "change.patch"]))?.0)
            }),
        }
    }

    fn replacement(&self, durability: Durability) -> Pair {
        let scratch = self.corpus.root.join("scratch");
        let log = self.corpus.root.join(self.corpus.edited_log());
        let name = format!("replace-{}", durability.word());
        let (own, peer) = (format!("{name}-own.log"), format!("{name}-peer.log"));
        let (own_log, own_place) = (log.clone(), scratch.join(&own));
        Pair {
            part: CHANGES,
            name: format!(
                "replace one string in {}{}",
                size_of_log(&log),
                said(durability)
            ),
            peer_name: "sed -i".to_owned(),
            goals: Goals::wall(0.2),
            subject: Box::new(move |servers, round| {
                if round == 0 {
                    fs::copy(&own_log, &own_place)?;
                }
                let (old, new) = (needle(round), needle(round + 1));
                let path = format!("scratch/{own}");
                let arguments = json!({"path": path, "old_str": old, "new_str": new});
                called(
                    servers.get("memory", durability)?,
                    "str_replace",
                    &arguments,
                )
            }),
            peer: Box::new(move |round| {
                if round == 0 {
                    fs::copy(&log, scratch.join(&peer))?;
                }
                let script = format!("s/{}/{}/", needle(round), needle(round + 1));
                Ok(measure::run(&Line::new(&scratch, &["sed", "-i", &script, &peer]))?.0)
            }),
        }
    }
}

/// A call that has to succeed.
pub(crate) fn called(server: &mut Server, tool: &str, arguments: &Value) -> Result<Cost> {
    let cost = server.call(tool, arguments)?;
    server.reply()?;
    Ok(cost)
}

fn size_of_log(path: &Path) -> String {
    let size = fs::metadata(path).map_or(0, |metadata| metadata.len());
    format!("{} MB", size / 1_000_000)
}

fn said(durability: Durability) -> &'static str {
    match durability {
        Durability::Fast => ", nobody waits for the disk",
        Durability::Fsync => ", ours on disk when it replies",
    }
}

/// Makes a copy for a removal, if the comparison of copies left none.
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
        called(server, "copy", &from_to(&source, &path))
    })
}

fn from_to(source: &str, destination: &str) -> Value {
    json!({"source_root": "bench", "source_path": source, "dest_root": "bench", "dest_path": destination})
}

/// The marker that a log has after some rounds.
pub(crate) fn needle(round: usize) -> String {
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
