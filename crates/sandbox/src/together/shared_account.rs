//! The account of a quota that replicas share: one small file for each root, changed under its lock.

use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::slots::{Cluster, has_name, name_hash};
use crate::quota::Amount;
use crate::syscall::{self, Errno, HowLocked, SysResult};
use crate::wanted::is_unwanted;

/// How often a waiting call checks whether its caller gave up.
const PATIENCE_CHECK: Duration = Duration::from_millis(50);

/// The most that is read of a record.
const RECORD_MAX: u64 = 64 * 1024;

/// The account as one replica sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct AccountRecord {
    /// What the root holds.
    pub(crate) used: Amount,
    /// Everything that was ever added: who counts finds what came meanwhile.
    pub(crate) added: Amount,
    /// How many times the root was counted.
    pub(crate) walks: u64,
    /// What this replica's changes under way may add.
    pub(crate) reserved: Amount,
}

/// How long somebody waits for an account that others have locked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Waits {
    /// For a while, and not longer than anybody waits for the call.
    WhileWanted,
    /// For a while, whoever waits for the call.
    Patiently,
    /// Hardly: what was known before will do.
    Shortly,
}

impl Waits {
    fn longest(self) -> Duration {
        match self {
            Waits::WhileWanted | Waits::Patiently => Duration::from_secs(10),
            Waits::Shortly => Duration::from_millis(500),
        }
    }

    /// Fails once the wait is over.
    fn check(self, start: Instant) -> SysResult<()> {
        if self == Waits::WhileWanted && is_unwanted() {
            return Err(Errno::CANCELED);
        }
        if start.elapsed() >= self.longest() {
            return Err(Errno::NOLCK);
        }
        Ok(())
    }
}

/// The account of a root in the directory that replicas share.
#[derive(Debug)]
pub(crate) struct SharedAccount {
    cluster: Arc<Cluster>,
    name: String,
    queue: Arc<Queue>,
}

/// The calls of this process that want the account: one at a time tries to lock it.
#[derive(Debug, Default)]
struct Queue {
    is_taken: Mutex<bool>,
    freed: Condvar,
}

/// The turn of one call.
#[derive(Debug)]
struct AccountTurn(Arc<Queue>);

impl AccountTurn {
    fn wait(queue: &Arc<Queue>, waits: Waits, start: Instant) -> SysResult<AccountTurn> {
        let mut is_taken = queue.lock();
        while *is_taken {
            waits.check(start)?;
            let woken = queue.freed.wait_timeout(is_taken, PATIENCE_CHECK);
            is_taken = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
        *is_taken = true;
        Ok(AccountTurn(Arc::clone(queue)))
    }
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, bool> {
        self.is_taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for AccountTurn {
    fn drop(&mut self) {
        *self.0.lock() = false;
        self.0.freed.notify_one();
    }
}

/// The record of an account, locked until it is dropped.
#[derive(Debug)]
pub(crate) struct LockedRecord {
    file: File,
    cluster: Arc<Cluster>,
    /// What is in the file.
    text: String,
    record: AccountRecord,
    /// What each other replica reserved.
    others: Vec<(String, Amount)>,
    /// Ends last: the next call finds the file unlocked.
    _turn: AccountTurn,
}

impl SharedAccount {
    pub(crate) fn new(cluster: Arc<Cluster>, root: &str) -> SharedAccount {
        SharedAccount {
            cluster,
            name: format!("quota-{:016x}", name_hash(root)),
            queue: Arc::default(),
        }
    }

    /// Waits for the record and reads it. It is held for one change at a time, so the wait is short.
    pub(crate) fn lock(&self, waits: Waits) -> SysResult<LockedRecord> {
        let start = Instant::now();
        let turn = AccountTurn::wait(&self.queue, waits, start)?;
        let (file, turn) = self.locked_file(turn, waits, start)?;
        syscall::sync_attributes_unchecked(file.as_fd())?;
        let mut file = File::from(file);
        let mut text = String::new();
        let read = (&mut file).take(RECORD_MAX).read_to_string(&mut text);
        read.map_err(|_| Errno::IO)?;
        let (record, others) = parse(&text, &self.cluster.replica());
        Ok(LockedRecord {
            file,
            cluster: Arc::clone(&self.cluster),
            text,
            record,
            others,
            _turn: turn,
        })
    }

    /// Opens the record and locks it, anew if somebody has removed the file meanwhile.
    fn locked_file(
        &self,
        mut turn: AccountTurn,
        waits: Waits,
        start: Instant,
    ) -> SysResult<(OwnedFd, AccountTurn)> {
        loop {
            let mut file = self.cluster.open_own(&self.name)?;
            if !syscall::hold_surely_unchecked(file.as_fd(), HowLocked::Exclusive)? {
                (file, turn) = locked_in_turn(file, turn, waits, start)?;
            }
            if has_name(self.cluster.fd(), self.name.as_bytes(), file.as_fd()) {
                return Ok((file, turn));
            }
            waits.check(start)?;
        }
    }
}

/// Waits in the kernel's queue, which lets replicas take turns, on a thread of its own, which a call can leave. The thread keeps
/// the turn of this process: there is one of it at most.
fn locked_in_turn(
    file: OwnedFd,
    turn: AccountTurn,
    waits: Waits,
    start: Instant,
) -> SysResult<(OwnedFd, AccountTurn)> {
    let (told, locked) = mpsc::channel();
    let wait = move || {
        let is_locked = syscall::lock_unchecked(file.as_fd());
        // Nobody listens if the call was given up: then both are freed here.
        let _ = told.send(is_locked.map(|()| (file, turn)));
    };
    let thread = thread::Builder::new().name("quota-lock".to_owned());
    thread.spawn(wait).map_err(|_| Errno::AGAIN)?;
    loop {
        match locked.recv_timeout(PATIENCE_CHECK) {
            Ok(locked) => return locked,
            Err(RecvTimeoutError::Timeout) => waits.check(start)?,
            Err(RecvTimeoutError::Disconnected) => return Err(Errno::IO),
        }
    }
}

impl LockedRecord {
    pub(crate) fn record(&self) -> AccountRecord {
        self.record
    }

    /// What changes under way in other replicas may add.
    pub(crate) fn reserved_by_others(&self) -> Amount {
        let others = self.others.iter();
        others.fold(Amount::default(), |sum, (_, own)| sum.plus(*own))
    }

    /// Drops what replicas had reserved that are gone: the kernel has freed their locks.
    pub(crate) fn forget_the_dead(&mut self) {
        let cluster = Arc::clone(&self.cluster);
        self.others.retain(|(replica, _)| cluster.lives(replica));
    }

    /// Writes the record if it is another one now.
    pub(crate) fn store(&mut self, record: AccountRecord) {
        let text = written(record, &self.cluster.replica(), &self.others);
        if text == self.text {
            return;
        }
        // If it cannot be written, the next walk corrects it.
        let _ = self.file.write_all_at(text.as_bytes(), 0);
        let _ = self.file.set_len(text.len() as u64);
    }
}

/// Numbers as text, so that an operator can read them: the account, then a line for each replica that reserved something.
fn written(record: AccountRecord, own: &str, others: &[(String, Amount)]) -> String {
    let AccountRecord {
        used,
        added,
        walks,
        reserved,
    } = record;
    let mut text = format!(
        "{} {} {} {} {walks}\n",
        used.bytes, used.files, added.bytes, added.files
    );
    let own = (reserved != Amount::default()).then(|| (own.to_owned(), reserved));
    for (replica, reserved) in others.iter().chain(&own) {
        text.push_str(&format!(
            "{replica} {} {}\n",
            reserved.bytes, reserved.files
        ));
    }
    text
}

/// Reads a record. One that a killed replica left half written is counted anew.
fn parse(text: &str, own: &str) -> (AccountRecord, Vec<(String, Amount)>) {
    let mut lines = text.lines();
    let numbers: Vec<u64> = lines
        .next()
        .unwrap_or_default()
        .split(' ')
        .map_while(|number| number.parse().ok())
        .collect();
    let mut record = match numbers.as_slice() {
        [bytes, files, more_bytes, more_files, walks] => AccountRecord {
            used: amount(*bytes, *files),
            added: amount(*more_bytes, *more_files),
            walks: *walks,
            ..AccountRecord::default()
        },
        _ => AccountRecord::default(),
    };
    let mut others = Vec::new();
    for line in lines {
        let mut words = line.split(' ');
        let (Some(replica), Some(bytes), Some(files)) = (words.next(), words.next(), words.next())
        else {
            continue;
        };
        let reserved = amount(bytes.parse().unwrap_or(0), files.parse().unwrap_or(0));
        if replica == own {
            record.reserved = reserved;
        } else {
            others.push((replica.to_owned(), reserved));
        }
    }
    (record, others)
}

fn amount(bytes: u64, files: u64) -> Amount {
    Amount { bytes, files }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replicas_read_what_the_others_wrote() {
        let temp = tempfile::tempdir().unwrap();
        let open = || SharedAccount::new(Cluster::open(temp.path()).unwrap(), "main");
        let record = AccountRecord {
            used: amount(5, 2),
            added: amount(70, 3),
            walks: 4,
            reserved: amount(8, 1),
        };
        let (one, other) = (open(), open());
        assert_eq!(
            one.lock(Waits::Patiently).unwrap().record(),
            AccountRecord::default()
        );
        one.lock(Waits::Patiently).unwrap().store(record);
        assert_eq!(one.lock(Waits::Patiently).unwrap().record(), record);
        let seen = other.lock(Waits::Patiently).unwrap();
        assert_eq!(seen.reserved_by_others(), amount(8, 1));
        assert_eq!(
            seen.record(),
            AccountRecord {
                reserved: amount(0, 0),
                ..record
            }
        );
        drop(seen);
        let mut seen = other.lock(Waits::Patiently).unwrap();
        seen.forget_the_dead();
        assert_eq!(seen.reserved_by_others(), amount(8, 1), "it lives");
        drop(seen);
        drop(one);
        let mut seen = other.lock(Waits::Patiently).unwrap();
        seen.forget_the_dead();
        assert_eq!(seen.reserved_by_others(), amount(0, 0));
        assert_eq!(parse("12 3 nonsense", "x").0, AccountRecord::default());
    }
}
