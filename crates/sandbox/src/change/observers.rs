//! The observers of changes in a root: each has a field, and is called by the function that makes a change.

use std::sync::Arc;

use super::EntryRef;
use crate::error::{Error, Result};
use crate::history::History;
use crate::quota::{Amount, Ledger, Reservation};
use crate::rights::{Right, Rights};
use crate::syscall::{self, Errno, SysResult};

/// The observers of one root: the quota, and the history. Locks belong here too.
#[derive(Debug, Clone, Default)]
pub(crate) struct Observers {
    /// The account of the root's content, if there is a quota.
    pub(crate) quota: Option<Arc<Ledger>>,
    /// The history, which keeps old content.
    pub(crate) history: Option<Arc<History>>,
    /// Who may access new entries.
    pub(crate) audience: NewEntries,
    /// The rights of the root's holder.
    pub(crate) rights: Rights,
}

/// Who may access the new entries of a root.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum NewEntries {
    /// Those whom the process's umask allows.
    #[default]
    AsUsual,
    /// Only their owner.
    Private,
}

impl NewEntries {
    /// The mode of a new entry that would usually have this one.
    pub(crate) fn mode(self, usual: u32) -> u32 {
        match self {
            NewEntries::AsUsual => usual,
            NewEntries::Private => usual & 0o700,
        }
    }
}

impl Observers {
    /// Makes a change that puts something at an entry, replacing what is there.
    ///
    /// `path` and `new` are only called if an observer needs them.
    pub(crate) fn put(
        &self,
        entry: EntryRef<'_>,
        path: &dyn Fn() -> String,
        new: impl FnOnce() -> SysResult<Amount>,
        held: Option<Reservation>,
        change: impl FnOnce() -> SysResult<()>,
    ) -> Result<SysResult<()>> {
        self.judge_put(entry, path)?;
        let Some(quota) = &self.quota else {
            return Ok(change());
        };
        match new() {
            Ok(new) => quota.exchange(&path(), new, held, &|| amount_at(entry), change),
            Err(errno) => Ok(Err(errno)),
        }
    }

    /// Security: every change that puts something somewhere passes through here, whichever tool makes it.
    fn judge_put(&self, entry: EntryRef<'_>, path: &dyn Fn() -> String) -> Result<()> {
        if self.rights == Rights::ALL {
            return Ok(());
        }
        let right = match syscall::stat_at_unchecked(entry.0, entry.1) {
            Err(Errno::NOENT) => Right::Create,
            _ => Right::Change,
        };
        self.judge(right, path)
    }

    /// Fails without a right.
    pub(crate) fn judge(&self, right: Right, path: &dyn Fn() -> String) -> Result<()> {
        if self.rights.has(right) {
            return Ok(());
        }
        Err(Error::NotGranted {
            path: path(),
            right,
        })
    }

    /// Makes a change that removes an entry.
    pub(crate) fn take_away(
        &self,
        entry: EntryRef<'_>,
        change: impl FnOnce() -> SysResult<()>,
    ) -> SysResult<()> {
        match &self.quota {
            None => change(),
            Some(quota) => quota.take_away(&|| amount_at(entry), change),
        }
    }

    /// Frees space that old changes use, because the disk is full; returns whether there was any.
    pub(crate) fn make_room(&self) -> bool {
        let history = self.history.as_ref();
        history.is_some_and(|history| history.make_room())
    }

    /// Makes a change below a hidden name, without a history.
    pub(crate) fn unrecorded(&self) -> Observers {
        Observers {
            quota: self.quota.clone(),
            history: None,
            audience: self.audience,
            // Hidden entries are ours; they are checked when they become visible.
            rights: Rights::ALL,
        }
    }

    /// Records that something was moved to another root.
    pub(crate) fn moved_away(&self, amount: Amount) {
        if let Some(quota) = &self.quota {
            quota.gone(amount);
        }
    }

    /// Reserves room for what a change will add, so that a change beyond the quota is refused before anything is
    /// written.
    pub(crate) fn reserve(&self, more: Amount, path: &str) -> Result<Option<Reservation>> {
        let quota = self.quota.as_ref();
        quota.map(|quota| quota.reserve(more, path)).transpose()
    }

    /// Reserves room for a file of `bytes` at an entry, replacing what is there.
    pub(crate) fn reserve_file(
        &self,
        entry: EntryRef<'_>,
        bytes: u64,
        path: &str,
    ) -> Result<Option<Reservation>> {
        if self.quota.is_none() {
            return Ok(None);
        }
        let old = amount_at(entry);
        let more = Amount {
            bytes: bytes.saturating_sub(old.bytes),
            files: 1_u64.saturating_sub(old.files),
        };
        self.reserve(more, path)
    }
}

/// How much of a quota an entry takes; zero if nothing is there.
fn amount_at((dir, name): EntryRef<'_>) -> Amount {
    syscall::stat_at_unchecked(dir, name).map_or_else(|_| Amount::default(), |m| Amount::of(&m))
}
