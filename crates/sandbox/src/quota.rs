//! Quotas: the limits of a root, and the account of its content.
//!
//! A walk opens the account, every change of this crate updates it, and a new walk corrects it from time to time,
//! because other programs may write too. A change is entered before it is visible, so our own changes never exceed a
//! quota, however many run at once. While a walk and changes overlap, the account may be too high until the next walk.

use std::ops::{Deref, DerefMut};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use crate::background;
use crate::change::Observers;
use crate::dir::{Dir, RootShare};
use crate::error::{Error, Result};
use crate::leftovers;
use crate::live_root::LiveRoot;
use crate::metadata::{FileKind, Metadata};
use crate::name::Name;
use crate::replace::UnnamedFiles;
use crate::syscall::{self, Errno, SysResult};
use crate::together::{AccountRecord, LockedRecord, SharedAccount, Waits};
use crate::walk::{WalkItem, WalkOptions, Walker};

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

/// The share of a quota that something takes.
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

/// A root's limits, and its content according to the account.
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
    /// The account that replicas share, if there are any: then this one is a copy of it while it is locked.
    shared: Option<SharedAccount>,
}

#[derive(Debug, Default)]
struct Account {
    used: Amount,
    /// What changes under way may add.
    reserved: Amount,
    /// What changes under way in other replicas may add.
    reserved_by_others: Amount,
    /// A walk is under way.
    walking: bool,
    /// Everything that was ever added, because a walk may or may not have seen concurrent additions.
    added: Amount,
    /// How many walks corrected the account.
    walks: u64,
    /// When the last walk ended, and how long it took.
    walked: Option<(Instant, Duration)>,
}

impl Account {
    fn add(&mut self, amount: Amount) {
        self.used = self.used.plus(amount);
        self.added = self.added.plus(amount);
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
        self.ledger.lock_or_guess(Waits::Patiently).add(added);
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        let mut account = self.ledger.lock_or_guess(Waits::Patiently);
        account.reserved = account.reserved.minus(self.amount);
    }
}

/// The account while it is locked, in this process and for all replicas.
struct LockedAccount<'ledger> {
    account: MutexGuard<'ledger, Account>,
    record: Option<LockedRecord>,
}

impl Deref for LockedAccount<'_> {
    type Target = Account;

    fn deref(&self) -> &Account {
        &self.account
    }
}

impl DerefMut for LockedAccount<'_> {
    fn deref_mut(&mut self) -> &mut Account {
        &mut self.account
    }
}

impl Drop for LockedAccount<'_> {
    fn drop(&mut self) {
        if let Some(record) = &mut self.record {
            record.store(AccountRecord {
                used: self.account.used,
                added: self.account.added,
                walks: self.account.walks,
                reserved: self.account.reserved,
            });
        }
    }
}

impl Ledger {
    pub(crate) fn new(quota: Quota, top: OwnedFd) -> Ledger {
        Ledger {
            quota,
            top,
            account: Mutex::default(),
            balanced: Condvar::new(),
            shared: None,
        }
    }

    /// The limits, and what is used of them. Never waits for a walk.
    pub(crate) fn usage(&self) -> QuotaUse {
        let account = self.lock_or_guess(Waits::Shortly);
        QuotaUse {
            quota: self.quota,
            used: (account.walks > 0).then_some(account.used),
        }
    }

    /// The limits of a root whose account replicas share.
    pub(crate) fn shared(quota: Quota, top: OwnedFd, account: SharedAccount) -> Ledger {
        Ledger {
            shared: Some(account),
            ..Ledger::new(quota, top)
        }
    }

    /// What the root may hold.
    pub(crate) fn quota(&self) -> Quota {
        self.quota
    }

    /// Reserves room for a change that adds up to `most`.
    pub(crate) fn reserve(self: &Arc<Self>, most: Amount, path: &str) -> Result<Reservation> {
        let nothing = Amount::default();
        let mut account = self.with_room(None, &|| (nothing, most), path)?;
        account.reserved = account.reserved.plus(most);
        Ok(Reservation {
            ledger: Arc::clone(self),
            amount: most,
        })
    }

    /// Makes a change that replaces what `old` finds with something `new`, if there is room.
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
        let mut account = self.with_room(held.as_ref(), &|| (old(), new), path)?;
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

    /// Makes a change that removes what `old` finds.
    pub(crate) fn take_away<T>(
        &self,
        old: &dyn Fn() -> Amount,
        change: impl FnOnce() -> SysResult<T>,
    ) -> SysResult<T> {
        // A call that was given up removes what it made, so it waits too.
        let locked = self.lock(Waits::Patiently);
        let mut account = locked.map_err(|errno| match errno {
            Errno::MFILE | Errno::NFILE => errno,
            _ => Errno::NOLCK,
        })?;
        let old = old();
        let changed = change();
        if changed.is_ok() {
            account.exchange(old, Amount::default());
        }
        changed
    }

    /// Subtracts what was moved to another root.
    pub(crate) fn gone(&self, amount: Amount) {
        self.lock_or_guess(Waits::Patiently)
            .exchange(amount, Amount::default());
    }

    /// Counts anew before the next change, because changes were taken back past the account.
    pub(crate) fn distrust(&self) {
        self.lock_or_guess(Waits::Patiently).walks = 0;
    }

    /// Locks the account if there is room for the new amount in place of the old one and of the change's own reservation.
    /// Before it refuses, it walks again.
    fn with_room(
        &self,
        own: Option<&Reservation>,
        change: &dyn Fn() -> (Amount, Amount),
        path: &str,
    ) -> Result<LockedAccount<'_>> {
        let mut walked_again = false;
        loop {
            let account = self.balanced_account(path)?;
            let (old, new) = change();
            let taken = taken_by_others(&account, own);
            let Some(limit) = self.exceeded(taken, old, new) else {
                return Ok(account);
            };
            if walked_again || !account.is_due(AFTER_REFUSAL) {
                return Err(self.refusal(taken, limit, new.minus(old), path));
            }
            drop(account);
            // If the walk fails, the old account applies.
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
    fn balanced_account(&self, path: &str) -> Result<LockedAccount<'_>> {
        let lock = || {
            self.lock(Waits::WhileWanted)
                .map_err(|errno| unlocked(path, errno))
        };
        let mut account = lock()?;
        let start = Instant::now();
        while account.walks == 0 {
            if start.elapsed() >= PATIENCE {
                return Err(Error::QuotaUnknown);
            }
            if !account.walking {
                drop(account);
                self.balance()?;
                account = lock()?;
                continue;
            }
            drop(account);
            let waiting = self.own();
            let is_walking = |account: &mut Account| account.walking;
            let waited = self
                .balanced
                .wait_timeout_while(waiting, PATIENCE, is_walking);
            drop(waited);
            account = lock()?;
        }
        Ok(account)
    }

    /// Walks through the root and corrects the account. Only one walk runs at a time; a second call does nothing.
    fn balance(&self) -> Result<()> {
        let lock = || {
            self.lock(Waits::Patiently)
                .map_err(|errno| unlocked(".", errno))
        };
        let before = {
            let mut account = lock()?;
            if account.walking {
                return Ok(());
            }
            account.walking = true;
            account.added
        };
        let start = Instant::now();
        let found = self.walk();
        let locked = lock();
        if locked.is_err() {
            self.own().walking = false;
        }
        self.balanced.notify_all();
        let mut account = locked?;
        account.walking = false;
        account.used = found?.plus(account.added.minus(before));
        account.walks += 1;
        if let Some(record) = &mut account.record {
            record.forget_the_dead();
        }
        account.walked = Some((Instant::now(), start.elapsed()));
        Ok(())
    }

    /// Counts everything in the root that this process may read.
    fn walk(&self) -> Result<Amount> {
        let share = RootShare {
            unnamed: UnnamedFiles::Avoided,
            observers: Observers::default(),
            view: None,
        };
        let top = syscall::reopen_dir_unchecked(self.top.as_fd())
            .map_err(|errno| Error::from_errno("open", ".", errno))?;
        let top = Dir::new(top, Vec::new(), share);
        let caches = match self.shared {
            Some(_) => Caches::Passed,
            None => Caches::Trusted,
        };
        count(top, self.quota.max_bytes.is_some(), caches, &|| false)
    }

    fn balance_if_due(&self) {
        if self.own().is_due(IN_PEACE) {
            // If it fails, the next turn tries again.
            let _ = self.balance();
        }
    }

    /// Locks the account. Without that of the replicas no change is made: their changes would not be counted.
    fn lock(&self, waits: Waits) -> SysResult<LockedAccount<'_>> {
        // First, because others of this process must not wait for it with their own account locked.
        let record = self.shared.as_ref().map(|shared| shared.lock(waits));
        let record = record.transpose()?;
        let mut account = self.own();
        if let Some(record) = &record {
            let AccountRecord {
                used, added, walks, ..
            } = record.record();
            (account.used, account.added, account.walks) = (used, added, walks);
            account.reserved_by_others = record.reserved_by_others();
        }
        Ok(LockedAccount { account, record })
    }

    /// Locks the account. If that of the replicas cannot be locked, what was last read of it is taken, and the next walk
    /// corrects it.
    fn lock_or_guess(&self, waits: Waits) -> LockedAccount<'_> {
        self.lock(waits).unwrap_or_else(|_| LockedAccount {
            account: self.own(),
            record: None,
        })
    }

    /// The account of this process.
    fn own(&self) -> MutexGuard<'_, Account> {
        self.account.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The error of a change whose account cannot be locked.
fn unlocked(path: &str, errno: Errno) -> Error {
    match errno {
        Errno::CANCELED => Error::Stopped,
        Errno::MFILE | Errno::NFILE => Error::TooManyOpenFiles,
        errno => Error::Io {
            operation: "lock the quota's account for",
            path: path.to_owned(),
            source: errno.into(),
        },
    }
}

/// The current content plus what others reserved.
fn taken_by_others(account: &Account, own: Option<&Reservation>) -> Amount {
    let own = own.map(|own| own.amount).unwrap_or_default();
    let reserved = account.reserved_by_others.plus(account.reserved.minus(own));
    account.used.plus(reserved)
}

/// Whether a count trusts what this machine remembers of a file server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Caches {
    Trusted,
    /// The file server is asked, so that what other machines just did counts.
    Passed,
}

impl Caches {
    /// Asks the file server about an entry if the cache is not trusted. If that fails, the cached state counts.
    fn pass(self, dir: BorrowedFd<'_>, name: &Name) {
        if self == Caches::Passed {
            let _ = syscall::sync_entry_unchecked(dir, name);
        }
    }
}

/// Counts what is below a directory; adds sizes only if `sizes` is set.
pub(crate) fn measure(top: Dir, sizes: bool, stop: &dyn Fn() -> bool) -> Result<Amount> {
    count(top, sizes, Caches::Trusted, stop)
}

fn count(top: Dir, sizes: bool, caches: Caches, stop: &dyn Fn() -> bool) -> Result<Amount> {
    if caches == Caches::Passed {
        let _ = syscall::sync_attributes_unchecked(top.fd());
    }
    let mut walker = Walker::with_temporary(top, WalkOptions::default());
    let mut all = Amount::default();
    let mut enters = |directory: &WalkItem| {
        caches.pass(directory.dir.fd(), &directory.name);
        true
    };
    while let Some(item) = walker.next(&mut enters) {
        if stop() {
            return Err(Error::Stopped);
        }
        let item = match item {
            Ok(item) => item,
            Err(fault) if matches!(fault.error, Error::TooManyOpenFiles) => return Err(fault.error),
            Err(_) => continue,
        };
        // Content that a call is writing is already in the account, or is added when it gets its name.
        if item.kind != FileKind::Directory && leftovers::is_in_use(&item) {
            continue;
        }
        let size = match item.kind {
            FileKind::File if sizes => {
                caches.pass(item.dir.fd(), &item.name);
                item.dir.stat(&item.name).map_or(0, |file| file.size)
            }
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
        let roots = roots.filter(has_quota);
        let mut roots: Vec<Weak<LiveRoot>> = roots.map(|root| Arc::downgrade(&root)).collect();
        if roots.is_empty() {
            return;
        }
        let count = move || {
            // Roots that the operator removed are no longer counted.
            while !roots.is_empty() {
                roots.retain(|root| {
                    root.upgrade().is_some_and(|root| {
                        root.count_if_due();
                        true
                    })
                });
                std::thread::sleep(IN_PEACE / 4);
            }
        };
        // If no thread can be started, the first change that needs the account counts.
        background::run("quota", count);
    }

    /// The account of the root's current directory. A directory that was opened again has another account.
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
mod tests;
