//! What every operation is: a request that runs once and answers with what was done.

use crate::context::Context;
use crate::error::Result;

/// A request that can be run. Its fields are what to do and with which knobs; its outcome is facts.
pub trait Operation {
    /// What was done or found.
    type Outcome;

    /// Runs it to its end, its failure or the caller's loss of patience.
    fn run(self, context: &Context) -> Result<Self::Outcome>;
}
