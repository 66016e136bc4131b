//! The commands that change something.

use ops::{
    EditFiles, EditMatching, EditScope, Error, FileEdit, FileKind, InsertLines, Move, OnDirectory,
    OnExisting, OnFault, OnMissing, Operation, Parents, Place, Recurse, Rehearsal, Remove,
    RemoveTarget, SyntaxCheck, Wanted, Write, WriteMode,
};

use super::memory::Arguments;
use super::paths::{TOP, is_top, place};
use crate::deployment::MemoryCreate;
use crate::tool::Call;

/// How many lines before and after a replacement are shown.
const AROUND: usize = 2;

/// An argument that the command needs.
pub(super) fn needed<'a, T: ?Sized>(
    value: Option<&'a T>,
    name: &'static str,
) -> ops::Result<&'a T> {
    value.ok_or_else(|| Error::InvalidArgument {
        argument: name,
        reason: format!("Error: Missing required parameter: {name}"),
    })
}

/// The path of a command that names one.
pub(super) fn path(arguments: &Arguments) -> ops::Result<&str> {
    needed(arguments.path.as_deref(), "path")
}

/// Fails if the operator forbids changes.
pub(super) fn check_writable(arguments: &Arguments, call: &Call) -> ops::Result<()> {
    if call.may_change {
        return Ok(());
    }
    let path = arguments.path.as_deref().or(arguments.old_path.as_deref());
    Err(Error::PermissionDenied {
        path: path.unwrap_or(TOP).to_owned(),
    })
}

pub(super) fn create(arguments: &Arguments, call: &Call) -> ops::Result<String> {
    let path = path(arguments)?;
    let text = needed(arguments.file_text.as_deref(), "file_text")?;
    let write = Write {
        place: place(call, path)?,
        bytes: text.as_bytes().to_vec(),
        mode: match call.memory_tool.create {
            MemoryCreate::Fail => WriteMode::CreateOnly,
            MemoryCreate::Overwrite => WriteMode::Overwrite,
        },
        parents: Parents::Create,
        syntax: SyntaxCheck::Skip,
    };
    match write.run(&call.context) {
        Ok(_) => Ok(format!("File created successfully at: {path}")),
        Err(Error::IsADirectory { .. }) => Err(Error::AlreadyExists {
            path: path.to_owned(),
            kind: FileKind::Directory,
        }),
        Err(error) => Err(error),
    }
}

pub(super) fn str_replace(arguments: &Arguments, call: &Call) -> ops::Result<String> {
    let path = path(arguments)?;
    let old = needed(arguments.old_str.as_deref(), "old_str")?;
    if old.is_empty() {
        return Err(Error::EmptySearchString);
    }
    let place = existing_file(call, path)?;
    let edit = EditFiles {
        edits: vec![FileEdit {
            place,
            old: old.to_owned(),
            new: arguments.new_str.clone().unwrap_or_default(),
            scope: EditScope::Unique,
            matching: EditMatching::Exact,
        }],
        rehearsal: Rehearsal::None,
        diff_context: Some(AROUND),
    };
    let edited = edit.run(&call.context)?;
    let hunks = edited.files.first().and_then(|file| file.diff.as_deref());
    let lines = numbered(hunks.unwrap_or_default());
    Ok(format!("The memory file has been edited.{lines}"))
}

/// The lines of the new text that a diff shows, with their numbers.
fn numbered(hunks: &str) -> String {
    let mut text = String::new();
    let mut number: u64 = 1;
    for line in hunks.lines() {
        if let Some(head) = line.strip_prefix("@@ ") {
            let start = head.split(['+', ',']).nth(2);
            number = start.and_then(|start| start.parse().ok()).unwrap_or(1);
        } else if let Some(line) = line.strip_prefix(['+', ' ']) {
            text.push_str(&format!("\n{number:>6}\t{line}"));
            number += 1;
        }
    }
    text
}

pub(super) fn insert(arguments: &Arguments, call: &Call) -> ops::Result<String> {
    let path = path(arguments)?;
    let line = *needed(arguments.insert_line.as_ref(), "insert_line")?;
    let text = needed(arguments.insert_text.as_deref(), "insert_text")?;
    let mut text = text.to_owned();
    if !text.ends_with('\n') {
        text.push('\n');
    }
    let insert = InsertLines {
        place: existing_file(call, path)?,
        line: line.saturating_add(1),
        text,
    };
    insert.run(&call.context)?;
    Ok(format!("The file {path} has been edited."))
}

pub(super) fn delete(arguments: &Arguments, call: &Call) -> ops::Result<String> {
    let path = path(arguments)?;
    refuse_top(path)?;
    let remove = Remove {
        place: place(call, path)?,
        target: RemoveTarget::Any,
        recurse: Recurse::Yes,
        on_missing: OnMissing::Fail,
        on_fault: OnFault::Stop,
    };
    remove.run(&call.context)?;
    Ok(format!("Successfully deleted {path}"))
}

pub(super) fn rename(arguments: &Arguments, call: &Call) -> ops::Result<String> {
    let old_path = needed(arguments.old_path.as_deref(), "old_path")?;
    let new_path = needed(arguments.new_path.as_deref(), "new_path")?;
    refuse_top(old_path)?;
    refuse_top(new_path)?;
    let (source, destination) = (place(call, old_path)?, place(call, new_path)?);
    if !source.is_there() {
        return Err(missing(old_path));
    }
    let move_to = Move {
        source,
        destination,
        on_existing: OnExisting::Fail,
        on_directory: OnDirectory::Onto,
    };
    move_to.run(&call.context)?;
    Ok(format!("Successfully renamed {old_path} to {new_path}"))
}

/// The store itself stays.
fn refuse_top(path: &str) -> ops::Result<()> {
    if is_top(path) {
        Err(Error::RootProtected)
    } else {
        Ok(())
    }
}

/// A directory is told as missing: no command changes the text of one.
fn existing_file(call: &Call, path: &str) -> ops::Result<Place> {
    let place = place(call, path)?;
    match place.resolved_directory() {
        Ok(_) => Err(missing(path)),
        Err(_) => Ok(place),
    }
}

fn missing(path: &str) -> Error {
    Error::NotFound {
        path: path.to_owned(),
        wanted: Wanted::Anything,
        near: Vec::new(),
        denied: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changed_lines_have_their_numbers() {
        let hunks = "@@ -3,3 +3,2 @@\n a\n-b\n-c\n+d\n@@ -9,1 +8,2 @@\n x\n+y\n\\ No newline at end of file\n";
        assert_eq!(
            numbered(hunks),
            "\n     3\ta\n     4\td\n     8\tx\n     9\ty"
        );
    }
}
