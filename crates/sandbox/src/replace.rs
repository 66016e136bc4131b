//! Atomic replace and create.

/// Whether a write is on disk before it is confirmed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// File and directory are synced first.
    #[default]
    Fsync,
    /// The system writes when it likes; a crash of the machine may lose the newest writes.
    Fast,
}
