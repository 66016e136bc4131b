//! Makes temporary names, and removes those that a killed process left behind: files, links and whole trees.
//!
//! A name tells who made it: a tag of this boot and process namespace, the process, and the run of it. A
//! leftover is removed when its process is certainly gone; one from another machine, container or boot,
//! whose process cannot be asked, when it is a day old. Replicas tell each other who is gone (`together/slots.rs`).

use std::os::fd::BorrowedFd;
use std::sync::{Arc, OnceLock};
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::process::{Pid, getpid, test_kill_process};

use crate::background;
use crate::change::{Change, Durability};
use crate::error::Result;
use crate::metadata::Metadata;
use crate::name::Name;
use crate::new_mode;
use crate::root::Root;
use crate::roots::Roots;
use crate::syscall::{self, Errno, SysResult};
use crate::together::DeadReplica;
use crate::walk::{WalkItem, WalkOptions, Walker};
use crate::{Follow, RelPath};

const PREFIX: &str = ".mcp-filesystem-";
const SUFFIX: &str = ".tmp";
/// How long a leftover of an unknown process is kept, in seconds.
const FOREIGN_AGE: i64 = 24 * 60 * 60;

/// The number of this run in the names that it makes.
pub(crate) fn own_run() -> u64 {
    Maker::own().run
}

/// Makes a new name that nobody can guess.
pub(crate) fn temporary_name() -> SysResult<Name> {
    let own = Maker::own();
    let random = random()?;
    let text = format!(
        "{PREFIX}{:x}-{}-{:x}-{random:032x}{SUFFIX}",
        own.place, own.process, own.run
    );
    Name::new(text.as_bytes()).ok_or(Errno::INVAL)
}

/// Tells whether a name is a temporary one. No listing and no walk shows such an entry to a client.
pub(crate) fn is_temporary(name: &[u8]) -> bool {
    // Asked for every name that is listed: the beginning settles it for nearly all.
    name.starts_with(PREFIX.as_bytes()) && Maker::of(name).is_some()
}

/// Tells whether an entry is a temporary one of a process that may still be using it.
pub(crate) fn is_in_use(item: &WalkItem) -> bool {
    let name = item.name.as_bytes();
    if !name.starts_with(PREFIX.as_bytes()) {
        return false;
    }
    let gone = |maker: Maker| {
        item.dir
            .stat(&item.name)
            .is_ok_and(|file| maker.is_gone(&file))
    };
    Maker::of(name).is_some_and(|maker| !gone(maker))
}

fn random() -> SysResult<u128> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|_| Errno::IO)?;
    Ok(u128::from_ne_bytes(bytes))
}

/// Who made a temporary name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Maker {
    /// This boot of this machine and this process namespace.
    place: u64,
    process: i32,
    /// A random number of this run, because containers give every run the same process number.
    run: u64,
}

impl Maker {
    fn own() -> Maker {
        static OWN: OnceLock<Maker> = OnceLock::new();
        *OWN.get_or_init(|| Maker {
            place: place(),
            process: getpid().as_raw_nonzero().get(),
            run: random().map_or(0, |number| number as u64),
        })
    }

    /// Reads a name; `None` if it is not one of ours.
    fn of(name: &[u8]) -> Option<Maker> {
        let text = std::str::from_utf8(name).ok()?;
        let mut pieces = text.strip_prefix(PREFIX)?.strip_suffix(SUFFIX)?.split('-');
        let place = u64::from_str_radix(pieces.next()?, 16).ok()?;
        let process = pieces.next()?.parse().ok()?;
        let run = u64::from_str_radix(pieces.next()?, 16).ok()?;
        let random = pieces.next()?;
        (random.len() == 32 && pieces.next().is_none()).then_some(Maker {
            place,
            process,
            run,
        })
    }

    fn is_gone(self, file: &Metadata) -> bool {
        let own = Maker::own();
        if self.place != own.place {
            return now() - file.changed.seconds > FOREIGN_AGE;
        }
        if self.process == own.process {
            return self.run != own.run;
        }
        let process = Pid::from_raw(self.process);
        process.is_none_or(|process| test_kill_process(process) == Err(Errno::SRCH))
    }
}

fn now() -> i64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |age| age.as_secs() as i64)
}

/// A number for this boot and process namespace.
fn place() -> u64 {
    let boot = std::fs::read("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let namespace = std::fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    let bytes = boot.iter().chain(namespace.as_os_str().as_encoded_bytes());
    // FNV-1a: the number only has to differ between places, and a collision is of no use to an attacker.
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

impl Root {
    /// Prepares what temporary files need, before Landlock closes `/proc`.
    pub(crate) fn prepare_temporary_names() {
        Maker::own();
        new_mode::umask();
    }

    /// Removes temporary files and trees whose process is gone. Walks the whole root, so it belongs on a background thread.
    pub fn sweep_leftovers(&self, stop: &dyn Fn() -> bool) -> u64 {
        self.sweep_leftovers_of(&[], stop).unwrap_or_default()
    }

    /// Removes temporary files and trees whose process is gone, and what these replicas left, wherever they ran.
    /// Fails if the root cannot be opened.
    pub fn sweep_leftovers_of(&self, dead: &[DeadReplica], stop: &dyn Fn() -> bool) -> Result<u64> {
        let top = self
            .locate(&RelPath::root(), Follow::Never)
            .and_then(|place| place.open_dir())?;
        let change = Change::begin(Durability::Fast);
        let mut walker = Walker::with_temporary(top, WalkOptions::default());
        let mut removed = 0;
        while let Some(item) = walker.next(&mut |item| !is_temporary(item.name.as_bytes())) {
            if stop() {
                break;
            }
            let Ok(item) = item else { continue };
            if is_leftover(&item, dead) && change.clear_in(&item.dir, &item.name, stop).is_ok() {
                removed += 1;
            }
        }
        Ok(removed + self.history().map_or(0, |history| history.sweep(dead)))
    }
}

/// Tells whether a temporary entry is no longer in use.
pub(crate) fn is_abandoned(dir: BorrowedFd<'_>, name: &Name, dead: &[DeadReplica]) -> bool {
    Maker::of(name.as_bytes()).is_some_and(|maker| {
        dead.iter().any(|replica| replica.run() == maker.run)
            || syscall::stat_at_unchecked(dir, name).is_ok_and(|file| maker.is_gone(&file))
    })
}

/// Only entries with such a name are examined: a root may hold millions of other files.
fn is_leftover(item: &WalkItem, dead: &[DeadReplica]) -> bool {
    is_abandoned(item.dir.fd(), &item.name, dead)
}

impl Roots {
    /// Returns a function that sweeps every writable root on a thread of its own.
    pub fn sweeper(&self) -> impl FnOnce() + Send + 'static {
        let writable = self.iter().filter(|root| !root.read_only);
        let roots: Vec<_> = writable.map(|root| Arc::clone(&root.root)).collect();
        let sweep = move || {
            for root in roots {
                root.sweep_leftovers(&|| false);
            }
        };
        // If no thread can be started the leftovers wait for the next start of the server.
        move || {
            background::run("sweeper", sweep);
        }
    }
}
