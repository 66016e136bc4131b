//! `mcp-filesystem history` and `mcp-filesystem undo`: show and undo the changes of the roots, even while no server
//! runs.
//!
//! On a terminal, each change or result is a line for people; in a pipe it is a JSON object.

use std::io::{IsTerminal, Write};
use std::sync::Arc;

use anyhow::{Result, anyhow, bail};
use ops::{ChangeFilter, Operation, OtherRoot, Part, PartKind, ToldChange, Undo, UndoTarget};
use sandbox::{BrokenChain, NamedRoot, Roots, change_id, parse_change_id};
use serde_json::{Value, json};

use crate::change_words::{OperatorContext, none_kept, object, refused};
use crate::command_line::{HistoryRequest, UndoCommand};
use crate::open_roots;
use crate::settings::Settings;

/// How many changes are shown.
const SHOWN: usize = 10_000;

/// The output: text for people, or one JSON object per line for programs.
struct Report<'o, W> {
    for_people: bool,
    output: &'o mut W,
}

impl<W: Write> Report<'_, W> {
    fn line(&mut self, words: impl FnOnce() -> String, object: Value) -> Result<()> {
        if self.for_people {
            writeln!(self.output, "{}", words())?;
        } else {
            writeln!(self.output, "{object}")?;
        }
        Ok(())
    }
}

/// Runs the command.
pub(crate) fn run(
    settings: &Settings,
    request: &HistoryRequest,
    output: &mut impl Write,
) -> Result<()> {
    let roots = open_roots::open(settings)?;
    let mut report = Report {
        for_people: std::io::stdout().is_terminal(),
        output,
    };
    match request {
        HistoryRequest::Show { root, path } => {
            show(&roots, root.as_deref(), path.as_deref(), &mut report)
        }
        HistoryRequest::Verify => verify(&roots, &mut report),
        HistoryRequest::Prune => prune(&roots, &mut report),
        HistoryRequest::Forget { path, root } => {
            forget(chosen(&roots, root.as_deref())?, path, &mut report)
        }
        HistoryRequest::Undo(request) => {
            let root = chosen(&roots, request.root.as_deref())?;
            let target = target(request)?;
            undo(
                settings,
                (&roots, root),
                target,
                request.dry_run,
                &mut report,
            )
        }
    }
}

/// The changes to undo.
fn target(request: &UndoCommand) -> Result<UndoTarget> {
    let change = &request.change;
    let number = parse_change_id(change);
    let number = number.ok_or_else(|| anyhow!("{change} is no name of a change"))?;
    Ok(if request.since {
        UndoTarget::Since(number, None)
    } else {
        UndoTarget::Change(number)
    })
}

/// A path in the form of the records: `./b`, `/b` and `b/` become `b`.
fn recorded_path(path: &str) -> Result<String> {
    let names: Vec<&str> = path
        .split('/')
        .filter(|name| !matches!(*name, "" | "."))
        .collect();
    if names.contains(&"..") {
        bail!("{path}: name the path from the root on, without ..");
    }
    Ok(names.join("/"))
}

fn forget(root: &NamedRoot, path: &str, report: &mut Report<'_, impl Write>) -> Result<()> {
    let history = root.root.history().ok_or_else(|| none_kept(&root.name))?;
    let path = recorded_path(path)?;
    if path.is_empty() {
        bail!("name a path inside the root");
    }
    let count = history.forget(&path);
    let words = || format!("{count} kept versions of {path} were removed");
    let object = json!({"root": root.name, "path": path, "removed": count});
    report.line(words, object)?;
    if count == 0 {
        bail!("nothing is kept of {path} in {}", root.name);
    }
    Ok(())
}

fn chosen<'roots>(roots: &'roots Roots, name: Option<&str>) -> Result<&'roots NamedRoot> {
    let mut all = roots.iter();
    match (name, all.next(), all.next()) {
        (Some(name), ..) => roots
            .get(name)
            .ok_or_else(|| anyhow!("there is no root {name}")),
        (None, Some(only), None) => Ok(only),
        _ => bail!("name the root: there are several"),
    }
}

fn show(
    roots: &Roots,
    root: Option<&str>,
    path: Option<&str>,
    report: &mut Report<'_, impl Write>,
) -> Result<()> {
    let named = root.map(|name| chosen(roots, Some(name))).transpose()?;
    let path = path.map(recorded_path).transpose()?;
    let shown = roots
        .iter()
        .filter(|root| named.is_none_or(|named| named.name == root.name));
    for root in shown {
        let filter = ChangeFilter {
            path: path.clone().filter(|path| !path.is_empty()),
            limit: SHOWN + 1,
            ..ChangeFilter::default()
        };
        let all = ops::changes(&root.root, &filter);
        for told in all.iter().take(SHOWN) {
            report.line(|| line(&root.name, told), object(&root.name, told))?;
        }
        if all.len() > SHOWN {
            let name = &root.name;
            let words = || format!("{name}: there are older ones; name a path to see its changes");
            report.line(words, json!({"root": name, "more": true, "shown": SHOWN}))?;
        }
    }
    Ok(())
}

/// A change as people read it.
fn line(root: &str, told: &ToldChange) -> String {
    let author = &told.record.author;
    let parts: Vec<String> = told.record.parts.iter().map(in_words).collect();
    let time = shown_time(author.time);
    let undone = told.undone_by.map(change_id);
    let undone = undone.map_or(String::new(), |by| format!(" [undone by {by}]"));
    format!(
        "\u{1b}[33m{}\u{1b}[0m {time} {root} {} {} by {}{undone}",
        told.id(),
        author.tool,
        parts.join(", "),
        author.client
    )
}

fn in_words(part: &Part) -> String {
    let lost = if part.lost { " (not kept)" } else { "" };
    let verb = match part.kind {
        PartKind::Create => "+",
        PartKind::Replace => "~",
        PartKind::Append => ">>",
        PartKind::Cut => "<<",
        PartKind::Remove | PartKind::RemoveDir => "-",
        PartKind::MakeDir => "+/",
        PartKind::Move => {
            let to = part.to.as_deref().unwrap_or_default();
            return format!("{} -> {to}{lost}", part.path);
        }
    };
    format!("{verb}{}{lost}", part.path)
}

fn shown_time(milliseconds: u64) -> String {
    let milliseconds = i64::try_from(milliseconds).unwrap_or(i64::MAX);
    let time = jiff::Timestamp::from_millisecond(milliseconds);
    time.map_or(String::new(), |time| {
        let zoned = time.to_zoned(jiff::tz::TimeZone::system());
        zoned.strftime("%Y-%m-%d %H:%M:%S").to_string()
    })
}

fn verify(roots: &Roots, report: &mut Report<'_, impl Write>) -> Result<()> {
    let mut broken = Vec::new();
    for root in roots.iter() {
        let name = &root.name;
        let verified = root.root.history().and_then(|history| history.verify());
        match verified {
            None => report.line(
                || format!("{name}: no history"),
                json!({"root": name, "ok": true, "lines": 0, "history": false}),
            )?,
            Some(Ok(lines)) => report.line(
                || format!("{name}: {lines} lines, none altered"),
                json!({"root": name, "ok": true, "lines": lines}),
            )?,
            Some(Err(chain)) => {
                let words = format!("{name}: {}", broken_words(&chain));
                report.line(|| words.clone(), broken_object(name, &chain))?;
                broken.push(words);
            }
        }
    }
    if broken.is_empty() {
        Ok(())
    } else {
        bail!("{}", broken.join("; "))
    }
}

fn broken_words(broken: &BrokenChain) -> String {
    let file = &broken.file;
    match broken.line {
        Some(line) => format!("line {line} of {file} was altered, or the one before it is missing"),
        None => format!("the record file {file} is missing"),
    }
}

fn broken_object(root: &str, broken: &BrokenChain) -> Value {
    let fault = match broken.line {
        Some(_) => "altered",
        None => "missing",
    };
    json!({
        "root": root,
        "ok": false,
        "file": broken.file,
        "line": broken.line,
        "fault": fault,
        "message": broken_words(broken),
    })
}

fn prune(roots: &Roots, report: &mut Report<'_, impl Write>) -> Result<()> {
    for root in roots.iter() {
        let Some(history) = root.root.history() else {
            continue;
        };
        let pruned = history.prune();
        let words = || {
            let stuck = match pruned.stuck {
                0 => String::new(),
                stuck => format!("; {stuck} kept entries could not be removed"),
            };
            format!(
                "{}: {} changes were removed{stuck}",
                root.name, pruned.changes
            )
        };
        let object = json!({"root": root.name, "removed": pruned.changes, "stuck": pruned.stuck});
        report.line(words, object)?;
    }
    Ok(())
}

fn undo(
    settings: &Settings,
    (roots, root): (&Roots, &NamedRoot),
    target: UndoTarget,
    is_rehearsal: bool,
    report: &mut Report<'_, impl Write>,
) -> Result<()> {
    let all = roots.iter();
    let all = all.map(|other| OtherRoot::of(other.name.clone(), Arc::clone(&other.root)));
    let undo = Undo::by_operator(Arc::clone(&root.root), all.collect(), target, is_rehearsal);
    let context = OperatorContext::new(settings).context();
    let undone = match undo.run(&context) {
        Ok(undone) => undone,
        Err(ops::Error::UndoRefused(refusal)) => return Err(refused(&root.name, &refusal)),
        Err(error) => return Err(error.into()),
    };
    let by = context.change_notes.change_ids().pop();
    for record in &undone.changes {
        let id = change_id(record.number);
        let words = || match &by {
            _ if is_rehearsal => format!("{id} could be undone"),
            Some(by) => format!("{id} undone by {by}"),
            None => format!("{id} undone"),
        };
        let object =
            json!({"root": root.name, "change": id, "undone": !is_rehearsal, "undone_by": by});
        report.line(words, object)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_of_a_path_is_the_recorded_one() {
        for spelling in ["b/c", "./b/c", "/b/c", "b/c/", "b//./c"] {
            assert_eq!(recorded_path(spelling).unwrap(), "b/c", "{spelling}");
        }
        assert!(recorded_path("../b").is_err());
        assert_eq!(recorded_path("./").unwrap(), "");
    }
}
