//! Merges a staged tree into an existing directory: each file and link in one step, replacing any entry of the same
//! name.

use std::sync::Arc;

use sandbox::{
    AllLeaves, Change, CopyStep, Descent, Dir, FileKind, Follow, Located, Metadata, Name,
    OnExisting, Parents, RelPath, Root, Sharing, WalkEvent, WalkItem, WalkOptions, Walker,
};

use super::{Attributes, FileCopy, occupied};
use crate::context::Cancel;
use crate::error::{Error, Result, TreeWork};

/// Moves everything below `staged` to its place below `top`. On failure, new entries are removed again.
///
/// The caller has the turn to change all below `top`.
pub(crate) fn merge(
    staged: &Dir,
    top: &Dir,
    root: &Arc<Root>,
    change: &Change,
    cancel: &Cancel,
) -> Result<()> {
    let mut merge = Merge {
        change,
        root,
        cancel,
        destination: Descent::new(),
        made: Vec::new(),
        replaced: 0,
    };
    merge.destination.enter(top.clone(), ())?;
    let merged = merge.run(staged);
    merged.map_err(|cause| merge.take_back(cause))
}

struct Merge<'a> {
    change: &'a Change,
    root: &'a Arc<Root>,
    cancel: &'a Cancel,
    destination: Descent<()>,
    /// The entries that are new, in the order they were made.
    made: Vec<MadeEntry>,
    replaced: u64,
}

/// Something is mounted inside the directory, or over the file itself.
fn is_mounted(error: &sandbox::Error) -> bool {
    match error {
        sandbox::Error::CrossDevice { .. } => true,
        sandbox::Error::Io { source, .. } => source.kind() == std::io::ErrorKind::ResourceBusy,
        _ => false,
    }
}

struct MadeEntry {
    path: String,
    metadata: Metadata,
}

impl Merge<'_> {
    fn run(&mut self, staged: &Dir) -> Result<()> {
        let mut walker = Walker::new(staged.clone(), WalkOptions::default());
        while let Some(event) = walker.step(&mut AllLeaves) {
            self.cancel.check_and_give_way()?;
            match event {
                WalkEvent::Item(item) => self.put(&item)?,
                WalkEvent::Entered(item, dir) => self.enter(&item.name, &dir)?,
                WalkEvent::Left(_) => {
                    if let Some((_, reopened)) = self.destination.leave() {
                        reopened?;
                    }
                }
                WalkEvent::Unreadable(_, error) => return Err(error.into()),
                WalkEvent::Fault(fault) => return Err(fault.error.into()),
                WalkEvent::Passed => {}
            }
        }
        Ok(())
    }

    fn innermost(&mut self) -> Result<Dir> {
        let innermost = self.destination.innermost().map(|(dir, ())| dir.clone());
        Ok(innermost.ok_or(sandbox::Error::Stopped)?)
    }

    fn enter(&mut self, name: &Name, staged: &Dir) -> Result<()> {
        let parent = self.innermost()?;
        let change = self.change.unsynced();
        let dir = match change.make_dir_in(&parent, name, staged.metadata()?.mode & 0o777) {
            Ok(dir) => {
                self.note_made(&parent, name, dir.metadata()?);
                dir
            }
            Err(sandbox::Error::AlreadyExists { path }) => match parent.open_dir(name) {
                Ok(dir) => dir,
                Err(_) => return Err(sandbox::Error::AlreadyExists { path }.into()),
            },
            Err(error) => return Err(error.into()),
        };
        Ok(self.destination.enter(dir, ())?)
    }

    fn put(&mut self, item: &WalkItem) -> Result<()> {
        let directory = self.innermost()?;
        let there = directory.locate(self.root, &item.name)?;
        let put = self
            .change
            .put_over(&item.dir, &item.name, &there, &directory);
        match put {
            Err(error) if is_mounted(&error) => self.carry_over(item, &there, &directory)?,
            put => put.map_err(|error| occupied(error, &there))?,
        }
        match there.metadata() {
            Some(_) => self.replaced += 1,
            None => self.note_made(&directory, &item.name, directory.stat(&item.name)?),
        }
        Ok(())
    }

    /// Copies an entry to a place that a rename cannot reach.
    fn carry_over(&self, item: &WalkItem, there: &Located<'_>, directory: &Dir) -> Result<()> {
        if item.kind == FileKind::Symlink {
            let text = item.dir.read_link(&item.name)?;
            return Ok(self.change.replace_by_link(directory, &item.name, &text)?);
        }
        let staged = self
            .change
            .stage(there, OnExisting::Replace, Parents::Require)?;
        let open = item.dir.open_file(&item.name)?;
        let mut copy = FileCopy::begin(staged, open, Attributes::Mode)?;
        let sharing = Sharing::default();
        while let CopyStep::Copied(_) = copy.step(&sharing)? {
            self.cancel.check_and_give_way()?;
        }
        copy.finish().map(drop)
    }

    fn note_made(&mut self, directory: &Dir, name: &Name, metadata: Metadata) {
        let path = directory.join(name);
        self.made.push(MadeEntry { path, metadata });
    }

    /// Removes new entries that are still as they were made, the last first; returns which entries stay.
    fn take_back(&self, cause: Error) -> Error {
        let taken_back = self.made.iter().rev();
        let taken_back = taken_back.filter(|made| self.remove(made).is_ok()).count() as u64;
        let left = (self.made.len() as u64).saturating_sub(taken_back);
        if self.replaced == 0 && left == 0 {
            return cause;
        }
        Error::Unfinished {
            done: TreeWork::Merged {
                replaced: self.replaced,
                taken_back,
                left,
            },
            cause: Box::new(cause),
        }
    }

    fn remove(&self, made: &MadeEntry) -> Result<()> {
        let path = RelPath::parse(&made.path)?;
        let there = self.root.locate(&path, Follow::Never)?;
        if !there.require()?.same_file(&made.metadata) {
            return Err(Error::Changed {
                path: made.path.clone(),
            });
        }
        let change = self.change.unsynced();
        let removed = if made.metadata.is_directory() {
            change.remove_empty_dir(&there)
        } else {
            change.unlink(&there)
        };
        Ok(removed?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Tree, context};

    fn made(tree: &Tree, path: &str) -> MadeEntry {
        let place = tree.place(path);
        let located = place.locate(Follow::Never).unwrap();
        MadeEntry {
            path: path.to_owned(),
            metadata: *located.metadata().unwrap(),
        }
    }

    #[test]
    fn a_merge_that_cannot_take_back_all_it_made_says_so() {
        let tree = Tree::new();
        tree.file("dst/new", "n").directory("dst/dir");
        let place = tree.place("dst");
        let context = context();
        let mut merge = Merge {
            change: &context.unseen_change(),
            root: &place.root,
            cancel: &context.cancel,
            destination: Descent::new(),
            made: vec![made(&tree, "dst/dir"), made(&tree, "dst/new")],
            replaced: 0,
        };
        tree.file("dst/dir/theirs", "of another program");
        let Error::Unfinished { done, cause } = merge.take_back(Error::Cancelled) else {
            panic!("an entry stays");
        };
        let expected = TreeWork::Merged {
            replaced: 0,
            taken_back: 1,
            left: 1,
        };
        assert_eq!(done, expected);
        assert!(matches!(*cause, Error::Cancelled));
        assert_eq!(tree.names("dst"), ["dir"]);
        merge.made.clear();
        assert!(matches!(
            merge.take_back(Error::Cancelled),
            Error::Cancelled
        ));
    }
}
