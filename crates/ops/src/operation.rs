//! What every operation is: a request that runs once and answers with what was done.

use crate::context::Context;
use crate::error::{Error, Result, Wanted};

/// How often a change is tried whose directory vanishes under it.
const TRIES: usize = 4;

/// A request that can be run. Its fields are what to do and with which knobs; its outcome is facts.
pub trait Operation {
    /// What was done or found.
    type Outcome;

    /// Runs it to its end, its failure or the caller's loss of patience.
    fn run(self, context: &Context) -> Result<Self::Outcome>;
}

/// Tries a change that makes its own directories again where one of them vanished meanwhile: another call that made it
/// too, and failed, took it back.
pub(crate) fn again_if_vanished<Outcome>(
    mut attempt: impl FnMut() -> Result<Outcome>,
) -> Result<Outcome> {
    let mut outcome = attempt();
    for _ in 1..TRIES {
        match outcome {
            Err(Error::NotFound {
                wanted: Wanted::Anything | Wanted::Directory,
                ..
            }) => outcome = attempt(),
            ended => return ended,
        }
    }
    outcome
}
