//! Faults that a test plants: to show that it would find them, or to see what they lead to. Product code cannot plant any.

/// One way in which a change or confinement could be broken.
#[cfg_attr(
    not(test),
    expect(dead_code, reason = "only tests plant and read the names")
)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PlantedFault {
    /// Entries are looked at and opened without `O_NOFOLLOW`.
    FollowLinks,
    /// Content is opened by the name that was looked at, not by the inode.
    ReopenByName,
    /// `openat2` gets no RESOLVE flags.
    NoResolveFlags,
    /// `..` opens the directory above again by its host path.
    RewalkByString,
    /// `..` opens the directory above the descriptor, wherever that is by now.
    KernelParent,
    /// A tree's directories are taken on the way up without a look at their identity.
    UncheckedAbove,
    /// Directories cannot be synced, as on a disk that breaks.
    UnsyncedDirectories,
    /// A rename cannot refuse to replace, and there are no hard links, as on many file systems in user space.
    NoHardLinks,
    /// A rename takes no flags, as on many network file systems.
    NoRenameFlags,
    /// A rename says nothing about its flags and replaces, as on some file systems in user space.
    IgnoredFlags,
}

/// Tells whether a test planted the fault in this thread.
#[cfg(not(test))]
pub(crate) const fn planted(_fault: PlantedFault) -> bool {
    false
}

#[cfg(test)]
pub(crate) use planting::{plant_stale, planted, take_stale, with};

#[cfg(test)]
mod planting {
    use std::cell::Cell;

    use super::PlantedFault;

    thread_local! {
        static PLANTED: Cell<Option<PlantedFault>> = const { Cell::new(None) };
        static STALE: Cell<u32> = const { Cell::new(0) };
    }

    /// Tells whether a test planted the fault in this thread.
    pub(crate) fn planted(fault: PlantedFault) -> bool {
        PLANTED.get() == Some(fault)
    }

    /// Plants that many look-ups that fail.
    pub(crate) fn plant_stale(look_ups: u32) {
        STALE.set(look_ups);
    }

    /// Tells whether this look-up is one of those.
    pub(crate) fn take_stale() -> bool {
        let left = STALE.get();
        STALE.set(left.saturating_sub(1));
        left > 0
    }

    /// Runs `body` with a fault planted.
    pub(crate) fn with<T>(fault: Option<PlantedFault>, body: impl FnOnce() -> T) -> T {
        PLANTED.set(fault);
        let result = body();
        PLANTED.set(None);
        result
    }
}
