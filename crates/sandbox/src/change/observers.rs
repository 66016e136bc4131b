//! What watches the changes in a root: each observer has a field, and hears of a change from the function that makes it.

use std::sync::Arc;

use super::EntryRef;
use crate::error::{Error, Result};
use crate::history::History;
use crate::quota::{Amount, Ledger, Reservation};
use crate::rights::{Right, Rights};
use crate::syscall::{self, Errno, SysResult};

/// The observers of one root: the quota, and the history. What holds locks belongs here too.
#[derive(Debug, Clone, Default)]
pub(crate) struct Observers {
    /// The account of what the root holds, if that has a limit.
    pub(crate) quota: Option<Arc<Ledger>>,
    /// What keeps old content.
    pub(crate) history: Option<Arc<History>>,
    /// Whom new entries are for.
    pub(crate) audience: NewEntries,
    /// What whoever has the root may do in it.
    pub(crate) rights: Rights,
}

/// Whom the new entries of a root are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum NewEntries {
    /// Whom the process's umask lets.
    #[default]
    AsUsual,
    /// Their owner alone.
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
    /// Makes a change that puts something at an entry, in the place of what is there.
    ///
    /// `path` and `new` are only asked if somebody needs them.
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

    /// Security: every change that puts something somewhere comes through here, whatever tool makes it.
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

    /// Makes a change that takes an entry away.
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

    /// Frees what is kept of old changes, because the disk is full; tells whether there was anything.
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
            // What nobody sees is ours; what appears of it is judged then.
            rights: Rights::ALL,
        }
    }

    /// Says that something moved to another root, where it was put.
    pub(crate) fn moved_away(&self, amount: Amount) {
        if let Some(quota) = &self.quota {
            quota.gone(amount);
        }
    }

    /// Keeps room for what a change will add, so that too much is refused before anything is written.
    pub(crate) fn reserve(&self, more: Amount, path: &str) -> Result<Option<Reservation>> {
        let quota = self.quota.as_ref();
        quota.map(|quota| quota.reserve(more, path)).transpose()
    }

    /// Keeps room for a file of `bytes` at an entry, in the place of what is there.
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

/// What an entry takes of a quota; nothing if nothing is there.
fn amount_at((dir, name): EntryRef<'_>) -> Amount {
    syscall::stat_at_unchecked(dir, name).map_or_else(|_| Amount::default(), |m| Amount::of(&m))
}
