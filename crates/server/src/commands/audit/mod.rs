//! `mcp-filesystem audit verify`: tells whether an audit file is as it was written.
//!
//! On a terminal it prints sentences, elsewhere one JSON object a file.

mod verify;

use std::io::{BufRead, BufReader, IsTerminal, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use self::verify::{Break, ChainFault, LookFor, Verified, verify};
use crate::log::chain::{ChainLink, LineHash};
use crate::operator_files::{self, reason};

/// The file name that means standard input.
const STDIN: &str = "-";

/// Verifies files that follow one another, the oldest first. A broken chain is an error.
pub(crate) fn run(files: &[PathBuf], head: Option<&str>) -> Result<()> {
    let head = head.map(parse_head).transpose()?;
    let mut report = Report {
        for_people: std::io::stdout().is_terminal(),
        broken: 0,
    };
    let mut found_head = false;
    for (index, path) in files.iter().enumerate() {
        let next = files.get(index + 1);
        let handover = next.map(|next| beginning(next)).transpose()?;
        let look_for = LookFor {
            head,
            handover: handover.flatten(),
        };
        let mut verified = verify_file(path, look_for)?;
        found_head |= verified.found_head.is_some();
        if next.is_some() {
            check_handover(&mut verified, look_for.handover);
        } else if head.is_some() && !found_head && verified.broken.is_none() {
            verified.broken = Some(Break {
                line: None,
                fault: ChainFault::HeadNotFound,
            });
        }
        report.print(path, &verified, look_for.handover)?;
    }
    if report.broken > 0 {
        bail!("the audit chain is broken");
    }
    Ok(())
}

fn parse_head(text: &str) -> Result<LineHash> {
    LineHash::parse(text).context("--head: expected the 64 digits of a hash")
}

fn open(path: &Path) -> Result<Box<dyn BufRead>> {
    if path == Path::new(STDIN) {
        return Ok(Box::new(std::io::stdin().lock()));
    }
    let file = operator_files::open(path);
    let file = file.map_err(|error| anyhow::anyhow!("{path:?}: {}", reason(&error)))?;
    Ok(Box::new(BufReader::with_capacity(256 * 1024, file)))
}

fn verify_file(path: &Path, look_for: LookFor) -> Result<Verified> {
    let verified = verify(&mut open(path)?, look_for);
    verified.with_context(|| format!("{path:?}"))
}

/// What the first line of a file says it follows; `None` if it says nothing.
fn beginning(path: &Path) -> Result<Option<LineHash>> {
    if path == Path::new(STDIN) {
        bail!("standard input can only be the first file");
    }
    let mut line = Vec::new();
    open(path)?.read_until(b'\n', &mut line)?;
    let link = ChainLink::read(line.trim_ascii_end());
    Ok(link.map(|link| link.prev))
}

/// Checks that the next file continues from a line of this one, or begins a chain of its own.
fn check_handover(verified: &mut Verified, handover: Option<LineHash>) {
    let follows = match handover {
        None => false,
        Some(hash) => is_new_chain(hash) || verified.found_handover.is_some(),
    };
    if !follows && verified.broken.is_none() {
        verified.broken = Some(Break {
            line: None,
            fault: ChainFault::NextDoesNotFollow,
        });
    }
}

fn is_new_chain(prev: LineHash) -> bool {
    prev == LineHash::default()
}

/// The report, and how much was broken.
struct Report {
    for_people: bool,
    broken: usize,
}

impl Report {
    fn print(
        &mut self,
        path: &Path,
        verified: &Verified,
        handover: Option<LineHash>,
    ) -> Result<()> {
        self.broken += usize::from(verified.broken.is_some());
        let notes = notes(verified, handover);
        let mut out = std::io::stdout().lock();
        if !self.for_people {
            writeln!(out, "{}", as_json(path, verified, &notes))?;
            return Ok(());
        }
        let verdict = match &verified.broken {
            Some(broken) => in_words(broken),
            None => format!(
                "{} lines, the chain is unbroken; head {} {}",
                verified.lines, verified.head.seq, verified.head.hash
            ),
        };
        writeln!(out, "{}: {verdict}", path.display())?;
        for note in notes {
            writeln!(out, "  {note}")?;
        }
        Ok(())
    }
}

fn as_json(path: &Path, verified: &Verified, notes: &[String]) -> Value {
    let broken = verified.broken.as_ref();
    let mut object = json!({
        "file": path.display().to_string(),
        "ok": broken.is_none(),
        "lines": verified.lines,
    });
    let fields = match broken {
        Some(broken) => json!({
            "line": broken.line,
            "fault": name(&broken.fault),
            "message": in_words(broken),
        }),
        None => json!({
            "first_seq": verified.first,
            "seq": verified.head.seq,
            "head": verified.head.hash.to_string(),
        }),
    };
    if let (Value::Object(object), Value::Object(fields)) = (&mut object, fields) {
        object.extend(fields);
        if !notes.is_empty() {
            object.insert("notes".to_owned(), json!(notes));
        }
    }
    object
}

fn name(fault: &ChainFault) -> &'static str {
    match fault {
        ChainFault::Altered => "altered",
        ChainFault::Missing { .. } | ChainFault::NoBeginning { .. } => "missing",
        ChainFault::Misplaced { .. } => "misplaced",
        ChainFault::HeadNotFound => "head_not_found",
        ChainFault::NextDoesNotFollow => "next_does_not_follow",
    }
}

fn in_words(broken: &Break) -> String {
    let line = broken.line.map(|line| format!("line {line}"));
    let line = line.unwrap_or_default();
    match &broken.fault {
        ChainFault::Altered => format!("{line} was altered (or what the next line says of it)"),
        ChainFault::Missing { from, to } if from == to => {
            format!("before {line} the line with seq {from} is missing")
        }
        ChainFault::Missing { from, to } => {
            format!("before {line} the lines with seq {from} to {to} are missing")
        }
        ChainFault::Misplaced { seq, expected } => {
            format!("{line} does not belong there: it has seq {seq}, and {expected} would follow")
        }
        ChainFault::NoBeginning { seq } => {
            format!("the beginning of the file is missing: {line} has seq {seq} and begins no file")
        }
        ChainFault::HeadNotFound => {
            "no line has the hash of --head: lines were removed or altered since it was noted"
                .to_owned()
        }
        ChainFault::NextDoesNotFollow => {
            "the next file does not go on from any line of this one: lines or files are missing"
                .to_owned()
        }
    }
}

/// Remarks about a file whose chain is unbroken.
fn notes(verified: &Verified, handover: Option<LineHash>) -> Vec<String> {
    let mut notes = Vec::new();
    if verified.unchained > 0 {
        notes.push(format!(
            "the first {} lines have no hashes (an older version wrote them): nothing proves them",
            verified.unchained
        ));
    }
    for line in &verified.cut {
        notes.push(format!("line {line} was cut off when a process died"));
    }
    if handover.is_some_and(is_new_chain) {
        notes.push("the next file begins a new chain: only the heads in the log tell whether lines are missing between".to_owned());
    }
    match verified.found_handover {
        Some(line) if line < verified.lines => notes.push(format!(
            "{} lines were added after the next file began",
            verified.lines - line
        )),
        _ => {}
    }
    notes
}
