//! The trait of all operations: a request that runs once and returns what was done.

use crate::context::Context;
use crate::error::{Error, Result, Wanted};
use crate::place::Place;

/// How many times a change is tried if its directory vanishes.
const TRIES: usize = 4;

/// A request that can be run. Its fields say what to do and how; its outcome holds facts.
pub trait Operation {
    /// What was done or found.
    type Outcome;

    /// Runs until it is done, fails, or the caller gives up.
    fn run(self, context: &Context) -> Result<Self::Outcome>;
}

/// Repeats a change for which the disk has no room, as long as space that only a history uses can be freed.
pub(crate) fn again_if_full<'p, Outcome>(
    places: impl IntoIterator<Item = &'p Place> + Clone,
    mut attempt: impl FnMut() -> Result<Outcome>,
) -> Result<Outcome> {
    let make_room = || {
        places
            .clone()
            .into_iter()
            .any(|place| place.root.make_room())
    };
    loop {
        match attempt() {
            Err(Error::DiskFull { .. }) if make_room() => {}
            ended => return ended,
        }
    }
}

/// Repeats a change if what it found was replaced by another process before it was used.
pub(crate) fn again_if_replaced<Outcome>(
    mut attempt: impl FnMut() -> Result<Outcome>,
) -> Result<Outcome> {
    let mut outcome = attempt();
    for _ in 1..TRIES {
        match outcome {
            Err(Error::Stale { .. }) => outcome = attempt(),
            ended => return ended,
        }
    }
    outcome
}

/// Repeats a change if a directory it made vanished meanwhile: another call that made the same directory failed and
/// removed it. And if what it found was replaced by another process before it was used.
pub(crate) fn again_if_vanished<Outcome>(
    mut attempt: impl FnMut() -> Result<Outcome>,
) -> Result<Outcome> {
    let mut outcome = attempt();
    for _ in 1..TRIES {
        match outcome {
            Err(Error::NotFound {
                wanted: Wanted::Anything | Wanted::Directory,
                ..
            })
            | Err(Error::Stale { .. }) => outcome = attempt(),
            ended => return ended,
        }
    }
    outcome
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_replaced_on_its_server_is_looked_up_again_a_few_times() {
        let stale = || Error::Stale {
            path: "f".to_owned(),
        };
        let mut tries = 0;
        let found = again_if_vanished(|| {
            tries += 1;
            if tries < 3 { Err(stale()) } else { Ok(tries) }
        });
        assert_eq!(found.unwrap(), 3);
        let mut tries = 0;
        let never = again_if_vanished(|| -> Result<()> {
            tries += 1;
            Err(stale())
        });
        assert!(matches!(never, Err(Error::Stale { .. })) && tries == TRIES);
    }
}
