//! Moves a tree by copying it.
//!
//! 1. Without a lock, everything is copied to a hidden tree beside the destination, with a record of how each entry was.
//! 2. With both trees locked, what came or changed since is copied too, and what is gone is removed from the copy. Then the
//!    copy is put on disk and appears in one step, and the source vanishes in one step.
//! 3. Still with the lock, the hidden source is removed: only entries that are as they were when they were copied. If another
//!    program has changed something there, the rest gets its name back, and the call says so.
//!
//! A crash in between leaves the source, the copy, or both; the next start removes what is hidden. A source that cannot be
//! renamed (a lower layer of overlayfs) is not hidden: a crash may then leave a part of it, beside the whole copy.

use std::sync::Arc;

use sandbox::{Approval, Change, HiddenTree, Located, Name, OnExisting, OnFault, Removal, shown};

use crate::context::{Cancel, Context};
use crate::copy::settle;
use crate::copy_tree::{
    Attributes, CopyOptions, CopyRecord, CopySide, CopyTally, OnSkip, below, copy_tree, dress,
    prune, vanished,
};
use crate::destination::parent_dir;
use crate::error::{Error, Result};
use crate::move_to::{Move, Moved, Moving};
use crate::remove::{entries_from, entries_left, run_remover};

/// How many other names are tried for what is left of a source.
const NAMES_MAX: u32 = 100;
/// The mode of the copy while it is hidden.
const PRIVATE: u32 = 0o700;

/// Moves a directory to a place that a rename cannot reach.
pub(crate) fn by_copying(request: &Move, context: &Context) -> Result<Moved> {
    // Synced whatever the process's durability setting, because the source is removed next.
    let change = context.unseen_change().synced().irrevocable();
    let begun = request.without_turn(context, |moving| TreeMove::begin(moving, &change, context));
    let (mut tree_move, made) = begun?;
    let moved = tree_move
        .copy()
        .and_then(|_| request.with_turn(context, |moving| tree_move.exchange(moving)));
    settle(moved, tree_move.staging, made, &context.cancel)
}

struct TreeMove<'a> {
    source: CopySide,
    destination: CopySide,
    staging: HiddenTree,
    options: CopyOptions,
    record: Arc<CopyRecord>,
    change: &'a Change,
    cancel: &'a Cancel,
}

impl<'a> TreeMove<'a> {
    /// Prepares a hidden tree beside the destination.
    fn begin(
        moving: &Moving<'_, '_>,
        change: &'a Change,
        context: &'a Context,
    ) -> Result<(TreeMove<'a>, Option<sandbox::NewDirs>)> {
        let source = moving.source.side()?;
        let name = moving.target.name().ok_or(Error::RootProtected)?;
        let (parent, made) = parent_dir(moving.target, change)?;
        let staging = change.stage_tree(&parent, name, PRIVATE)?;
        let record = Arc::new(CopyRecord::default());
        let tree_move = TreeMove {
            source,
            destination: CopySide {
                root: Arc::clone(&moving.place.root),
                top: staging.top().clone(),
            },
            staging,
            options: CopyOptions {
                on_skip: OnSkip::Fail,
                attributes: Attributes::All,
                record: Some(Arc::clone(&record)),
            },
            record,
            change,
            cancel: &context.cancel,
        };
        Ok((tree_move, made))
    }

    /// Copies what is new or changed, and puts it on disk.
    fn copy(&self) -> Result<CopyTally> {
        let (source, destination) = (&self.source, &self.destination);
        let tally = copy_tree(source, destination, self.change, &self.options, self.cancel)?;
        self.change.sync_tree(self.staging.top())?;
        Ok(tally)
    }

    /// Lets the copy take the place of the source, with the turn to change both.
    fn exchange(&mut self, moving: &Moving<'_, '_>) -> Result<Moved> {
        let is_source = moving.metadata.same_file(&self.source.top.metadata()?);
        if !is_source || !self.staging.is_beside(moving.target)? {
            return Err(vanished(moving.target));
        }
        self.record.begin_pass();
        let tally = self.copy()?;
        prune(&self.staging, &self.record, self.change, self.cancel)?;
        let source = &self.source.top;
        dress(source, &mut self.staging, self.change, self.cancel)?;
        self.cancel.check()?;
        let name = moving.target.name().ok_or(Error::RootProtected)?;
        self.staging
            .appear_as(name, moving.on_existing)
            .map_err(|error| moving.occupied(error))?;
        let source = moving.source.located;
        // It is removed entry by entry, even if it could be kept whole, because entries that are new since the copy
        // have to stay.
        let hidden = self.change.note_lost(source);
        let hidden = match hidden.and_then(|()| self.change.hide_tree(source)) {
            Ok(hidden) => hidden,
            Err(error) => return Err(self.take_back(moving, error.into())),
        };
        self.remove_source(moving, &hidden)?;
        Ok(moving.outcome(Some(&tally)))
    }

    /// Removes the copy again: the source has to stay, and nobody has changed the copy because both are locked.
    fn take_back(&self, moving: &Moving<'_, '_>, cause: Error) -> Error {
        let copy = moving.place.locate(sandbox::Follow::Never);
        let hidden = copy.and_then(|copy| Ok(self.change.hide_tree(&copy)?));
        match hidden.and_then(|hidden| Ok(hidden.discard(&|| false)?)) {
            Ok(()) => cause,
            Err(_) => moving.source_stays(cause, entries_left(moving.source.located)),
        }
    }

    /// Removes what was copied. The caller's deadline no longer applies, because the move is done.
    fn remove_source(&self, moving: &Moving<'_, '_>, hidden: &HiddenTree) -> Result<()> {
        let record = Arc::clone(&self.record);
        let top = self.source.top.path_bytes().to_vec();
        let approval = Approval::by(move |item| {
            let now = item.dir.stat(&item.name);
            now.is_ok_and(|now| record.verifies(below(&item.path_bytes(), &top), &now))
        });
        let patience = self.cancel.untiring();
        let removed = run_remover(hidden.remover(approval), OnFault::Collect, &patience);
        let cause = match removed.and_then(first_fault) {
            Ok(()) => match hidden.remove_emptied() {
                Ok(()) => return Ok(()),
                Err(error) => error.into(),
            },
            Err(error) => error,
        };
        Err(restore(moving, hidden, cause))
    }
}

fn first_fault((removal, failure): (Removal, Option<Error>)) -> Result<()> {
    let fault = removal.faults.into_iter().next().map(Error::from);
    failure.or(fault).map_or(Ok(()), Err)
}

/// Gives what is left of the source its name back, or one beside it if another program has taken that name by now: the
/// sweep at the next start would remove what stays hidden.
fn restore(moving: &Moving<'_, '_>, hidden: &HiddenTree, cause: Error) -> Error {
    let source: &Located<'_> = moving.source.located;
    let names = source.name().into_iter().flat_map(|name| {
        let others = (1..=NAMES_MAX).filter_map(|number| name_beside(name, number));
        std::iter::once(name.clone()).chain(others)
    });
    let mut rest = source.path();
    for name in names {
        match hidden.appear_as(&name, OnExisting::Fail) {
            Err(sandbox::Error::AlreadyExists { .. }) => {}
            _ => {
                rest = shown(&hidden.path_as(&name)).into_owned();
                break;
            }
        }
    }
    moving.source_stays_as(cause, entries_from(hidden.top().clone()), rest)
}

fn name_beside(name: &Name, number: u32) -> Option<Name> {
    Name::new(&[name.as_bytes(), format!(".left-{number}").as_bytes()].concat())
}
