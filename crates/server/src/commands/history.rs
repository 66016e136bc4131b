//! `mcp-filesystem history` and `mcp-filesystem undo`: see the changes of the roots and take them back, also while no
//! server runs.
//!
//! On a terminal a change is a line that people read; in a pipe it is a JSON object.

use std::io::{IsTerminal, Write};
use std::sync::Arc;

use anyhow::{Result, anyhow, bail};
use ops::{ChangeFilter, Operation, Part, PartKind, ToldChange, Undo, UndoTarget};
use sandbox::{NamedRoot, Roots, change_id, parse_change_id};

use crate::change_words::{OperatorContext, none_kept, object, refused};
use crate::command_line::HistoryRequest;
use crate::open_roots;
use crate::settings::Settings;

/// How many changes are shown.
const SHOWN: usize = 10_000;

/// Does what was asked for.
pub(crate) fn run(
    settings: &Settings,
    request: &HistoryRequest,
    output: &mut impl Write,
) -> Result<()> {
    let roots = open_roots::open(settings)?;
    match request {
        HistoryRequest::Show { root, path } => show(&roots, root.as_deref(), path, output),
        HistoryRequest::Verify => verify(&roots, output),
        HistoryRequest::Prune => prune(&roots, output),
        HistoryRequest::Forget { path, root } => {
            let root = chosen(&roots, root.as_deref())?;
            let history = root.root.history().ok_or_else(|| none_kept(&root.name))?;
            let count = history.forget(path);
            Ok(writeln!(
                output,
                "{count} kept versions of {path} were removed"
            )?)
        }
        HistoryRequest::Undo {
            change,
            root,
            since,
            dry_run,
        } => {
            let root = chosen(&roots, root.as_deref())?;
            let number = parse_change_id(change);
            let number = number.ok_or_else(|| anyhow!("{change} is no name of a change"))?;
            let target = if *since {
                UndoTarget::Since(number, None)
            } else {
                UndoTarget::Change(number)
            };
            undo(settings, root, target, *dry_run, output)
        }
    }
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
    path: &Option<String>,
    output: &mut impl Write,
) -> Result<()> {
    let is_terminal = std::io::stdout().is_terminal();
    let named = root.map(|name| chosen(roots, Some(name))).transpose()?;
    let shown = roots
        .iter()
        .filter(|root| named.is_none_or(|named| named.name == root.name));
    for root in shown {
        let filter = ChangeFilter {
            path: path.clone(),
            limit: SHOWN,
            ..ChangeFilter::default()
        };
        for told in ops::changes(&root.root, &filter) {
            if is_terminal {
                writeln!(output, "{}", line(&root.name, &told))?;
            } else {
                writeln!(output, "{}", object(&root.name, &told))?;
            }
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

fn verify(roots: &Roots, output: &mut impl Write) -> Result<()> {
    for root in roots.iter() {
        let Some(verified) = root.root.history().and_then(|history| history.verify()) else {
            writeln!(output, "{}: no history", root.name)?;
            continue;
        };
        match verified {
            Ok(lines) => writeln!(output, "{}: {lines} lines, none altered", root.name)?,
            Err(broken) => bail!(
                "{}: line {} of {} was altered, or the one before it is missing",
                root.name,
                broken.line,
                broken.file
            ),
        }
    }
    Ok(())
}

fn prune(roots: &Roots, output: &mut impl Write) -> Result<()> {
    for root in roots.iter() {
        let Some(history) = root.root.history() else {
            continue;
        };
        let pruned = history.prune();
        writeln!(
            output,
            "{}: {} changes were removed",
            root.name, pruned.changes
        )?;
        if pruned.stuck > 0 {
            writeln!(
                output,
                "{}: {} kept entries could not be removed",
                root.name, pruned.stuck
            )?;
        }
    }
    Ok(())
}

fn undo(
    settings: &Settings,
    root: &NamedRoot,
    target: UndoTarget,
    is_rehearsal: bool,
    output: &mut impl Write,
) -> Result<()> {
    let undo = Undo::by_operator(Arc::clone(&root.root), target, is_rehearsal);
    let context = OperatorContext::new(settings).context();
    match undo.run(&context) {
        Ok(undone) => {
            let ids = context.change_notes.change_ids();
            for record in &undone.changes {
                let (id, by) = (change_id(record.number), ids.join(" "));
                let verb = if is_rehearsal {
                    "could be undone"
                } else {
                    "undone"
                };
                let by = if by.is_empty() {
                    String::new()
                } else {
                    format!(" by {by}")
                };
                writeln!(output, "{id} {verb}{by}")?;
            }
            Ok(())
        }
        Err(ops::Error::UndoRefused(refusal)) => Err(refused(&root.name, &refusal)),
        Err(error) => Err(error.into()),
    }
}
