//! Quotas: what a root may hold, and the account of what it holds.
//!
//! A walk opens the account, every change of this crate updates it, and a new walk corrects it now and then, because
//! other programs may write too. A change is entered before it is visible, so our own changes never exceed a quota,
//! however many run at once. While a walk and changes overlap, the account may be too high until the next walk.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::background;
use crate::change::Observers;
use crate::dir::{Dir, RootShare};
use crate::error::{Error, Result};
use crate::live_root::LiveRoot;
use crate::metadata::{FileKind, Metadata};
use crate::replace::UnnamedFiles;
use crate::syscall::{self, SysResult};
use crate::walk::{WalkOptions, Walker};

/// How long a change waits for the first walk.
const PATIENCE: Duration = Duration::from_secs(10);
/// The least time between two walks: after a refusal, and without one.
const AFTER_REFUSAL: Duration = Duration::from_secs(1);
const IN_PEACE: Duration = Duration::from_secs(60);
/// The least time to the next walk, as a multiple of what the last one took.
const REST: u32 = 20;

/// What a root may hold at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Quota {
    /// The bytes of all files, by their sizes.
    pub max_bytes: Option<u64>,
    /// The number of files, directories, links and all other entries.
    pub max_files: Option<u64>,
}

/// Which limit of a quota a change would exceed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QuotaLimit {
    /// The bytes of all files.
    Bytes,
    /// The number of entries.
    Files,
}

/// What something takes of a quota.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Amount {
    /// The bytes of files.
    pub bytes: u64,
    /// The number of entries.
    pub files: u64,
}

impl Amount {
    /// An entry without content: a directory, a link.
    pub(crate) const ENTRY: Amount = Amount { bytes: 0, files: 1 };

    /// An entry as it is.
    pub(crate) fn of(metadata: &Metadata) -> Amount {
        let bytes = match metadata.kind {
            FileKind::File => metadata.size,
            _ => 0,
        };
        Amount { bytes, files: 1 }
    }

    pub(crate) fn plus(self, other: Amount) -> Amount {
        Amount {
            bytes: self.bytes.saturating_add(other.bytes),
            files: self.files.saturating_add(other.files),
        }
    }

    fn minus(self, other: Amount) -> Amount {
        Amount {
            bytes: self.bytes.saturating_sub(other.bytes),
            files: self.files.saturating_sub(other.files),
        }
    }
}

/// What a root may hold, and what it holds by the account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuotaUse {
    /// The limits.
    pub quota: Quota,
    /// What is used; `None` until it was counted for the first time.
    pub used: Option<Amount>,
}

/// The account of one root.
#[derive(Debug)]
pub(crate) struct Ledger {
    quota: Quota,
    top: OwnedFd,
    account: Mutex<Account>,
    balanced: Condvar,
}

#[derive(Debug, Default)]
struct Account {
    used: Amount,
    /// What changes under way may add.
    reserved: Amount,
    /// A walk is under way.
    walking: bool,
    /// What was added since that walk began: it may have seen it or not.
    added_meanwhile: Amount,
    /// When the last walk ended, and how long it took.
    walked: Option<(Instant, Duration)>,
}

impl Account {
    fn add(&mut self, amount: Amount) {
        self.used = self.used.plus(amount);
        if self.walking {
            self.added_meanwhile = self.added_meanwhile.plus(amount);
        }
    }

    fn exchange(&mut self, old: Amount, new: Amount) {
        self.used = self.used.minus(old.minus(new));
        self.add(new.minus(old));
    }

    /// Tells whether the last walk is longer ago than `least`, and than a multiple of what it took.
    fn is_due(&self, least: Duration) -> bool {
        self.walked
            .is_none_or(|(end, took)| end.elapsed() >= least.max(took.saturating_mul(REST)))
    }
}

/// Room in a quota that is reserved for a change; freed on drop.
#[derive(Debug)]
pub(crate) struct Reservation {
    ledger: Arc<Ledger>,
    amount: Amount,
}

impl Reservation {
    /// Ends the reservation and enters what the change really added.
    pub(crate) fn settle(self, added: Amount) {
        self.ledger.lock().add(added);
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        let mut account = self.ledger.lock();
        account.reserved = account.reserved.minus(self.amount);
    }
}

impl Ledger {
    pub(crate) fn new(quota: Quota, top: OwnedFd) -> Ledger {
        Ledger {
            quota,
            top,
            account: Mutex::default(),
            balanced: Condvar::new(),
        }
    }

    /// The limits, and what is used of them. Never waits for a walk.
    pub(crate) fn usage(&self) -> QuotaUse {
        let account = self.lock();
        QuotaUse {
            quota: self.quota,
            used: account.walked.is_some().then_some(account.used),
        }
    }

    /// Keeps room for a change that adds up to `most`.
    pub(crate) fn reserve(self: &Arc<Self>, most: Amount, path: &str) -> Result<Reservation> {
        let nothing = Amount::default();
        let mut account = self.with_room(nothing, &|| (nothing, most), path)?;
        account.reserved = account.reserved.plus(most);
        Ok(Reservation {
            ledger: Arc::clone(self),
            amount: most,
        })
    }

    /// Makes a change that puts something `new` in the place of what `old` finds there, if that has room.
    ///
    /// The account stays locked meanwhile, so that it is exact even if two changes want the same place.
    pub(crate) fn exchange<T>(
        &self,
        path: &str,
        new: Amount,
        held: Option<Reservation>,
        old: &dyn Fn() -> Amount,
        change: impl FnOnce() -> SysResult<T>,
    ) -> Result<SysResult<T>> {
        let own = held.as_ref().map(|held| held.amount).unwrap_or_default();
        let mut account = self.with_room(own, &|| (old(), new), path)?;
        let old = old();
        let changed = change();
        if changed.is_ok() {
            account.exchange(old, new);
        }
        // Dropping the reservation locks the account.
        drop(account);
        drop(held);
        Ok(changed)
    }

    /// Makes a change that takes away what `old` finds.
    pub(crate) fn take_away<T>(
        &self,
        old: &dyn Fn() -> Amount,
        change: impl FnOnce() -> SysResult<T>,
    ) -> SysResult<T> {
        let mut account = self.lock();
        let old = old();
        let changed = change();
        if changed.is_ok() {
            account.exchange(old, Amount::default());
        }
        changed
    }

    /// Subtracts what was moved to another root.
    pub(crate) fn gone(&self, amount: Amount) {
        self.lock().exchange(amount, Amount::default());
    }

    /// Locks the account if there is room for the new amount in place of the old one and of the change's own reservation.
    /// Before it refuses, it walks again.
    fn with_room(
        &self,
        own: Amount,
        change: &dyn Fn() -> (Amount, Amount),
        path: &str,
    ) -> Result<MutexGuard<'_, Account>> {
        let mut walked_again = false;
        loop {
            let account = self.balanced_account()?;
            let (old, new) = change();
            let taken = account.used.plus(account.reserved.minus(own));
            let Some(limit) = self.exceeded(taken, old, new) else {
                return Ok(account);
            };
            if walked_again || !account.is_due(AFTER_REFUSAL) {
                return Err(self.refusal(taken, limit, new.minus(old), path));
            }
            drop(account);
            // If the walk fails, the old account decides.
            let _ = self.balance();
            walked_again = true;
        }
    }

    fn exceeded(&self, taken: Amount, old: Amount, new: Amount) -> Option<QuotaLimit> {
        let after = taken.plus(new.minus(old));
        let over = |grows: bool, after: u64, most: Option<u64>| {
            grows && most.is_some_and(|most| after > most)
        };
        if over(new.bytes > old.bytes, after.bytes, self.quota.max_bytes) {
            Some(QuotaLimit::Bytes)
        } else if over(new.files > old.files, after.files, self.quota.max_files) {
            Some(QuotaLimit::Files)
        } else {
            None
        }
    }

    fn refusal(&self, taken: Amount, limit: QuotaLimit, more: Amount, path: &str) -> Error {
        let (most, used, needed) = match limit {
            QuotaLimit::Bytes => (self.quota.max_bytes, taken.bytes, more.bytes),
            QuotaLimit::Files => (self.quota.max_files, taken.files, more.files),
        };
        Error::OverQuota {
            path: path.to_owned(),
            limit,
            most: most.unwrap_or_default(),
            used,
            needed,
        }
    }

    /// Locks the account after the first walk, which this call makes if nobody else does.
    fn balanced_account(&self) -> Result<MutexGuard<'_, Account>> {
        let mut account = self.lock();
        let start = Instant::now();
        while account.walked.is_none() {
            if start.elapsed() >= PATIENCE {
                return Err(Error::QuotaUnknown);
            }
            if !account.walking {
                drop(account);
                self.balance()?;
                account = self.lock();
                continue;
            }
            let woken = self.balanced.wait_timeout(account, PATIENCE);
            account = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
        Ok(account)
    }

    /// Walks through the root and corrects the account. Only one walk runs at a time; a second call does nothing.
    fn balance(&self) -> Result<()> {
        {
            let mut account = self.lock();
            if account.walking {
                return Ok(());
            }
            account.walking = true;
            account.added_meanwhile = Amount::default();
        }
        let start = Instant::now();
        let found = self.walk();
        let mut account = self.lock();
        account.walking = false;
        self.balanced.notify_all();
        account.used = found?.plus(account.added_meanwhile);
        account.walked = Some((Instant::now(), start.elapsed()));
        Ok(())
    }

    /// Counts everything in the root that this process may read.
    fn walk(&self) -> Result<Amount> {
        let share = RootShare {
            unnamed: UnnamedFiles::Avoided,
            observers: Observers::default(),
        };
        let top = syscall::reopen_dir_unchecked(self.top.as_fd())
            .map_err(|errno| Error::from_errno("open", ".", errno))?;
        let top = Dir::new(top, Vec::new(), share);
        measure(top, self.quota.max_bytes.is_some(), &|| false)
    }

    fn balance_if_due(&self) {
        if self.lock().is_due(IN_PEACE) {
            // If it fails, the next turn tries again.
            let _ = self.balance();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Account> {
        self.account.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Counts what is below a directory; adds sizes only if `sizes` is set.
pub(crate) fn measure(top: Dir, sizes: bool, stop: &dyn Fn() -> bool) -> Result<Amount> {
    let mut walker = Walker::with_temporary(top, WalkOptions::default());
    let mut all = Amount::default();
    while let Some(item) = walker.next(&mut |_| true) {
        if stop() {
            return Err(Error::Stopped);
        }
        let item = match item {
            Ok(item) => item,
            Err(fault) if matches!(fault.error, Error::TooManyOpenFiles) => return Err(fault.error),
            Err(_) => continue,
        };
        let size = match item.kind {
            FileKind::File if sizes => item.dir.stat(&item.name).map_or(0, |file| file.size),
            _ => 0,
        };
        all = all.plus(Amount {
            bytes: size,
            files: 1,
        });
    }
    Ok(all)
}

impl LiveRoot {
    /// Counts what the roots with a quota hold, repeatedly, on a thread of its own.
    pub fn count_in_background(roots: impl Iterator<Item = Arc<LiveRoot>>) {
        let has_quota = |root: &Arc<LiveRoot>| root.ledger().is_some();
        let roots: Vec<Arc<LiveRoot>> = roots.filter(has_quota).collect();
        if roots.is_empty() {
            return;
        }
        let count = move || {
            loop {
                roots.iter().for_each(|root| root.count_if_due());
                std::thread::sleep(IN_PEACE / 4);
            }
        };
        // If no thread can be started, the first change that needs the account counts.
        background::run("quota", count);
    }

    /// The account of the directory that the root is by now: one that was opened again has its own.
    fn ledger(&self) -> Option<Arc<Ledger>> {
        self.current()?.observers().quota.clone()
    }

    fn count_if_due(&self) {
        if let Some(ledger) = self.ledger() {
            ledger.balance_if_due();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::root::Root;

    fn ledger(quota: Quota) -> (tempfile::TempDir, Arc<Ledger>) {
        let temp = tempfile::tempdir().unwrap();
        std::fs::create_dir(temp.path().join("dir")).unwrap();
        std::fs::write(temp.path().join("dir/file"), "12345").unwrap();
        let top = syscall::open_root_unchecked(temp.path()).unwrap();
        (temp, Arc::new(Ledger::new(quota, top)))
    }

    fn bytes(bytes: u64) -> Amount {
        Amount { bytes, files: 0 }
    }

    #[test]
    fn what_is_there_counts_and_reservations_do() {
        let (_temp, ledger) = ledger(Quota {
            max_bytes: Some(10),
            max_files: Some(3),
        });
        let first = ledger.reserve(bytes(4), "a").unwrap();
        let refused = ledger.reserve(bytes(2), "b").unwrap_err();
        assert!(
            matches!(
                refused,
                Error::OverQuota {
                    limit: QuotaLimit::Bytes,
                    most: 10,
                    used: 9,
                    needed: 2,
                    ..
                }
            ),
            "{refused:?}"
        );
        drop(first);
        ledger.reserve(bytes(5), "b").unwrap().settle(bytes(5));
        assert!(ledger.reserve(bytes(1), "c").is_err());
        ledger
            .reserve(Amount::ENTRY, "d")
            .unwrap()
            .settle(Amount::ENTRY);
        let refused = ledger.reserve(Amount::ENTRY, "e").unwrap_err();
        assert!(matches!(
            refused,
            Error::OverQuota {
                limit: QuotaLimit::Files,
                ..
            }
        ));
    }

    #[test]
    fn getting_smaller_is_always_allowed() {
        let (_temp, ledger) = ledger(Quota {
            max_bytes: Some(3),
            max_files: None,
        });
        let change = |new, old: u64| {
            ledger
                .exchange("a", bytes(new), None, &|| bytes(old), || Ok(()))
                .map(drop)
        };
        assert!(change(4, 4).is_ok() && change(3, 4).is_ok());
        assert!(change(5, 4).is_err());
        assert_eq!(ledger.lock().used.bytes, 4);
    }

    #[test]
    fn a_walk_finds_what_others_did() {
        let (temp, ledger) = ledger(Quota {
            max_bytes: Some(10),
            max_files: None,
        });
        assert!(ledger.reserve(bytes(6), "a").is_err());
        std::fs::remove_file(temp.path().join("dir/file")).unwrap();
        ledger.lock().walked = Some((Instant::now() - AFTER_REFUSAL * 2, Duration::ZERO));
        assert!(ledger.reserve(bytes(6), "a").is_ok());
    }

    #[test]
    fn a_directory_that_was_opened_again_is_counted_anew() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("root");
        let fill = |bytes: usize| {
            std::fs::create_dir(&path).unwrap();
            std::fs::write(path.join("file"), vec![0; bytes]).unwrap();
        };
        let open = |path: &std::path::Path| Root::open(path)?.with_quota(Quota::default());
        fill(5);
        let reopened = path.clone();
        let reopen = move || open(&reopened).ok();
        let live = LiveRoot::new(Arc::new(open(&path).unwrap()), Some(Box::new(reopen)));
        live.count_if_due();
        let used = || live.ledger().unwrap().lock().used.files;
        assert_eq!(used(), 1);
        std::fs::rename(&path, temp.path().join("old")).unwrap();
        fill(7);
        std::fs::create_dir(path.join("dir")).unwrap();
        live.check().unwrap();
        assert!(live.ledger().unwrap().lock().walked.is_none());
        live.count_if_due();
        assert_eq!(used(), 2);
    }

    #[test]
    fn what_comes_during_a_walk_is_not_forgotten() {
        let (_temp, ledger) = ledger(Quota::default());
        ledger.lock().walking = true;
        ledger.lock().add(bytes(7));
        ledger.lock().exchange(bytes(7), bytes(2));
        assert_eq!(ledger.lock().added_meanwhile, bytes(7));
    }
}
