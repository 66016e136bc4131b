//! Defaults of arguments that several tools have.

/// For switches that are on unless a client turns them off.
pub(crate) fn yes() -> bool {
    true
}
