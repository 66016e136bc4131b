//! The end of a move by copying, before the copy becomes visible: entries that left the source are removed from the
//! copy, and directories get the attributes they keep.

use sandbox::{
    Change, Choice, Descent, Dir, HiddenTree, Seen, WalkEvent, WalkItem, WalkOptions, Walker,
};

use super::record::{CopyRecord, below};
use crate::context::Cancel;
use crate::error::Result;

/// Removes from a copy what the last pass has not met in the source.
pub(crate) fn prune(
    copy: &HiddenTree,
    record: &CopyRecord,
    change: &Change,
    cancel: &Cancel,
) -> Result<()> {
    if !record.has_unmet() {
        return Ok(());
    }
    let top = copy.top().path_bytes();
    let is_met = |item: &WalkItem| record.is_met(below(&item.path_bytes(), top));
    let mut walker = Walker::new(copy.top().clone(), WalkOptions::default());
    while let Some(item) = walker.next(&mut |item| is_met(item)) {
        cancel.check_and_give_way()?;
        let item = item.map_err(|fault| fault.error)?;
        if !is_met(&item) {
            let stop = || cancel.must_stop();
            change
                .clear_in(&item.dir, &item.name, &stop)
                .map_err(|error| cancel.explain(error))?;
        }
    }
    Ok(())
}

/// Gives every directory of a copy the owner, lists, attributes, mode and times of the one it stands for.
pub(crate) fn dress(
    source: &Dir,
    copy: &mut HiddenTree,
    change: &Change,
    cancel: &Cancel,
) -> Result<()> {
    let mut walker = Walker::new(source.clone(), WalkOptions::default());
    let mut copies = Descent::new();
    copies.enter(copy.top().clone(), ())?;
    while let Some(event) = walker.step(&mut DirectoriesOnly) {
        cancel.check_and_give_way()?;
        let innermost = copies.innermost().map(|(dir, ())| dir.clone());
        let innermost = innermost.ok_or(sandbox::Error::Stopped)?;
        match event {
            WalkEvent::Entered(item, _) => copies.enter(innermost.open_dir(&item.name)?, ())?,
            WalkEvent::Left(left) => {
                let original = left.item.dir.open_dir(&left.item.name)?;
                change.dress_dir(&original, &innermost)?;
                if let Some((_, reopened)) = copies.leave() {
                    reopened?;
                }
            }
            WalkEvent::Unreadable(_, error) => return Err(error.into()),
            WalkEvent::Fault(fault) => return Err(fault.error.into()),
            WalkEvent::Item(_) | WalkEvent::Passed => {}
        }
    }
    Ok(copy.dress(source)?)
}

/// Chooses no entry and enters every directory.
struct DirectoriesOnly;

impl Choice for DirectoriesOnly {
    fn wants(&self, _: &Seen<'_>) -> bool {
        false
    }

    fn enters(&self, _: &Seen<'_>) -> bool {
        true
    }

    fn emits(&mut self, _: &WalkItem) -> bool {
        false
    }

    fn descends(&mut self, _: &WalkItem) -> bool {
        true
    }
}
