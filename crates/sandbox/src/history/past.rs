//! Reconstructs what a file was at an earlier time, from what later changes have kept.
//!
//! The first change after that time that touched the path kept the content before it. If none did, the file is
//! unchanged since.

use std::fs::File;
use std::os::fd::AsFd;

use super::History;
use super::change_record::ChangeRecord;
use super::ledger::{Ledger, Mention};
use super::record::{Part, PartKind, Tail};
use super::store::{Store, errno_of};
use super::undo_ends::read_tail;
use crate::OpenFile;
use crate::metadata::FileKind;
use crate::name::{self, Name};
use crate::resolve::{Means, open_dir_below};
use crate::syscall::{self, Errno, Purpose, SysResult};

/// The largest file that is put together from what appends and cuts have left of it.
const REBUILT_MAX: u64 = 64 * 1024 * 1024;

/// What was at a path.
#[derive(Debug)]
pub enum Past {
    /// What is there now, under this path.
    Now(String),
    /// This file.
    File(Box<OpenFile>),
    /// A directory, a link or something else that has no content.
    Other(FileKind),
    /// Nothing.
    Nothing,
    /// It is not kept any more, or never was.
    Gone,
}

/// A change of a file's end that came later, and has to be reversed.
enum EndChange {
    /// The file was this long.
    Ended(u64),
    /// The file was this long, and had what this object holds behind it.
    HadTail(u64, Option<String>),
}

/// What was found from one change on.
enum Way {
    Found(Past),
    /// What was kept came back: it is at this path just after this change.
    CameBack(String, u64),
    /// It is under this path now.
    None(String),
}

/// The result on the way back.
enum Step {
    Found(Past),
    /// What was kept is not where it was; the rest of the path is inside it.
    Missing(String),
    /// It is under this path from there on.
    Moved(String),
    None,
}

impl History {
    /// Tells what was at a path just after the change of this number, by what is written down. `now` opens the current
    /// file at a path. It is called only if the file's end has changed since.
    pub fn past(
        &self,
        ledger: &Ledger<'_>,
        path: &str,
        after: u64,
        now: &dyn Fn(&str) -> Option<OpenFile>,
    ) -> Past {
        let Some(store) = self.existing_store() else {
            return Past::Now(path.to_owned());
        };
        let mut ends = Vec::new();
        let mut from = (path.to_owned(), after);
        loop {
            match found_after(store, ledger, from, &mut ends) {
                Way::Found(past) => return reversed(store, past, &ends),
                Way::CameBack(path, number) => from = (path, number),
                Way::None(path) => {
                    let file = if ends.is_empty() { None } else { now(&path) };
                    return match file {
                        Some(file) => reversed(store, Past::File(Box::new(file)), &ends),
                        None => Past::Now(path),
                    };
                }
            }
        }
    }
}

/// Looks for what was at a path just after a change, and collects what later changes did to the end of a file there.
fn found_after(
    store: &Store,
    ledger: &Ledger<'_>,
    (mut path, after): (String, u64),
    ends: &mut Vec<EndChange>,
) -> Way {
    let mut mention = Mention::of_path(&path);
    for change in ledger.after(after) {
        if !change.mentions(&mention) {
            continue;
        }
        let record = change.record().filter(ChangeRecord::is_made);
        for part in record.iter().flat_map(ChangeRecord::made) {
            match part.kind {
                PartKind::Append | PartKind::Cut if part.path == path => {
                    ends.extend(end_of(part));
                }
                _ => match step(store, part, &path) {
                    Step::Found(past) => return Way::Found(past),
                    Step::Missing(rest) => {
                        let object = part.object.as_deref().unwrap_or_default();
                        let came = came_back(ledger, object, change.number());
                        return came.map_or(Way::Found(Past::Gone), |(top, number)| {
                            Way::CameBack(format!("{top}{rest}"), number)
                        });
                    }
                    Step::Moved(to) => {
                        mention = Mention::of_path(&to);
                        path = to;
                    }
                    Step::None => {}
                },
            }
        }
    }
    Way::None(path)
}

/// Where an object is that something brought back: its path, and the change that did it.
fn came_back(ledger: &Ledger<'_>, object: &str, after: u64) -> Option<(String, u64)> {
    let later = ledger.undoing().filter(|(number, _)| *number > after);
    let mut later = later.filter_map(|(number, _)| ledger.get(number));
    later.find_map(|record| {
        let is_it = |part: &&Part| part.source.as_deref() == Some(object);
        let path = record.made().find(is_it)?.path.clone();
        Some((path, record.number))
    })
}

fn end_of(part: &Part) -> Option<EndChange> {
    let tail = part.tail.as_ref()?;
    Some(match part.kind {
        PartKind::Append => EndChange::Ended(tail.at),
        PartKind::Cut => EndChange::HadTail(tail.at, part.object.clone()),
        _ => return None,
    })
}

fn step(store: &Store, part: &Part, path: &str) -> Step {
    let is_at = |top: &str| crate::is_within(path, top);
    match part.kind {
        PartKind::Create | PartKind::MakeDir if is_at(&part.path) => Step::Found(Past::Nothing),
        PartKind::Replace | PartKind::Remove if is_at(&part.path) => {
            kept(store, part, &part.path, path)
        }
        PartKind::RemoveDir if part.path == path => Step::Found(Past::Other(FileKind::Directory)),
        PartKind::Move => match part.to.as_deref() {
            Some(to) if is_at(to) && part.old.is_none() => Step::Found(Past::Nothing),
            Some(to) if is_at(to) => kept(store, part, to, path),
            Some(to) if is_at(&part.path) => {
                let rest = path.get(part.path.len()..).unwrap_or_default();
                Step::Moved(format!("{to}{rest}"))
            }
            _ => Step::None,
        },
        _ => Step::None,
    }
}

/// What a part kept of a path; `top` is what its object was called.
fn kept(store: &Store, part: &Part, top: &str, path: &str) -> Step {
    let Some(object) = &part.object else {
        return Step::Found(Past::Gone);
    };
    let rest = path.get(top.len()..).unwrap_or_default();
    match open_object(store, object, rest, path) {
        Ok(past) => Step::Found(past),
        Err(Errno::NOENT | Errno::NOTDIR) if !is_there(store, object) => {
            Step::Missing(rest.to_owned())
        }
        // In a tree that is kept, the entry was not there.
        Err(Errno::NOENT | Errno::NOTDIR) if !rest.is_empty() => Step::Found(Past::Nothing),
        Err(_) => Step::Found(Past::Gone),
    }
}

fn is_there(store: &Store, object: &str) -> bool {
    let name = Name::new(object.as_bytes());
    name.is_some_and(|name| syscall::stat_at_unchecked(store.objects(), &name).is_ok())
}

/// Security: no link inside a tree that is kept is followed.
fn open_object(store: &Store, object: &str, rest: &str, shown: &str) -> SysResult<Past> {
    let whole = [object.as_bytes(), &name::to_bytes(rest)].concat();
    let split = whole.iter().rposition(|&byte| byte == b'/');
    let (parent, last) = match split {
        Some(slash) => (whole.get(..slash), whole.get(slash + 1..)),
        None => (Some(&[][..]), Some(&*whole)),
    };
    let last = last.and_then(Name::new).ok_or(Errno::INVAL)?;
    let parent = open_dir_below(store.objects(), parent.unwrap_or_default(), Means::OneCall)?;
    let dir = parent.as_ref().map_or(store.objects(), AsFd::as_fd);
    let metadata = syscall::stat_at_unchecked(dir, &last)?;
    if metadata.kind != FileKind::File {
        return Ok(Past::Other(metadata.kind));
    }
    let file = File::from(syscall::open_content_unchecked(dir, &last, Purpose::Read)?);
    let metadata = syscall::stat_unchecked(file.as_fd())?;
    Ok(Past::File(Box::new(OpenFile::new(
        file,
        metadata,
        shown.to_owned(),
    ))))
}

/// Reverses what later appends and cuts did to a file's end, the last first.
fn reversed(store: &Store, past: Past, ends: &[EndChange]) -> Past {
    let file = match past {
        Past::File(file) if !ends.is_empty() => file,
        past => return past,
    };
    rebuilt(store, &file, ends).map_or(Past::Gone, |content| {
        Past::File(Box::new((*file).with_content(content)))
    })
}

fn rebuilt(store: &Store, file: &OpenFile, ends: &[EndChange]) -> SysResult<Vec<u8>> {
    if file.metadata.size > REBUILT_MAX {
        return Err(Errno::FBIG);
    }
    let whole = Tail {
        at: 0,
        length: file.metadata.size,
        step: 1,
        hashes: Vec::new(),
    };
    let mut content = read_tail(&file.file, &whole)?;
    for end in ends.iter().rev() {
        match end {
            EndChange::Ended(at) => {
                let at = usize::try_from(*at).map_err(|_| Errno::FBIG)?;
                if content.len() < at {
                    return Err(Errno::NODATA);
                }
                content.truncate(at);
            }
            EndChange::HadTail(at, object) => {
                let object = object.as_deref().ok_or(Errno::NOENT)?;
                let object = Name::new(object.as_bytes()).ok_or(Errno::INVAL)?;
                let kept =
                    syscall::open_content_unchecked(store.objects(), &object, Purpose::Read)?;
                let mut added = Vec::new();
                let read = std::io::Read::read_to_end(&mut File::from(kept), &mut added);
                read.map_err(|error| errno_of(&error))?;
                if content.len() as u64 != *at {
                    return Err(Errno::NODATA);
                }
                content.append(&mut added);
            }
        }
    }
    Ok(content)
}
