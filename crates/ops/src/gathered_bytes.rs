//! Counts what a search or a listing gathers against the room for its reply, while it runs.
//!
//! Otherwise many of them at once could hold far more than the budget allows before the first reply is made. Work that
//! finds no room discards its results, waits for room while holding none, and begins again.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::byte_budget::{ReplyRoom, SMALL_BYTES};
use crate::context::Context;
use crate::error::{Error, Result};

/// How much room is taken at once, so that the budget is not asked for every match.
const STEP: u64 = 256 * 1024;

/// The size of what a reply says about an entry besides its path, in both halves.
const TOLD_OF_ENTRY: usize = 256;

/// What an entry of a listing takes in memory until its reply is written, about: itself, and its path in what is made of it.
pub(crate) fn told_entry<Entry>(path_length: usize) -> u64 {
    (size_of::<Entry>() + 3 * path_length + TOLD_OF_ENTRY) as u64
}

/// How often work begins again.
const TRIES: usize = 4;

/// Runs work that counts what it gathers. If there is no room for it, waits for twice as much and begins again.
pub(crate) fn with_room<T>(
    context: &Context,
    mut work: impl FnMut(&Arc<Gathered>) -> Result<T>,
) -> Result<T> {
    let mut taken = SMALL_BYTES;
    for _ in 0..TRIES {
        let gathered = Arc::new(Gathered {
            room: context.room.clone(),
            bytes: AtomicU64::new(0),
            taken: AtomicU64::new(taken),
            is_refused: AtomicBool::new(false),
        });
        let outcome = work(&gathered);
        let Some(room) = context.room.as_ref().filter(|_| gathered.is_refused()) else {
            return outcome;
        };
        drop(outcome);
        taken = gathered.bytes.load(Ordering::Relaxed).saturating_mul(2);
        room.wait_to_grow(taken, &context.cancel)?;
    }
    Err(Error::NoRoom { bytes: taken })
}

/// What a call has gathered so far, on all its threads.
#[derive(Debug)]
pub(crate) struct Gathered {
    room: Option<Arc<ReplyRoom>>,
    bytes: AtomicU64,
    /// How much there is room for.
    taken: AtomicU64,
    is_refused: AtomicBool,
}

impl Gathered {
    /// Counts more bytes, with what their reply will need. Tells whether there is room for them; if not, the work should
    /// throw away what it has and stop. Never waits.
    pub(crate) fn add(&self, bytes: u64) -> bool {
        let Some(room) = &self.room else { return true };
        if self.is_refused() {
            return false;
        }
        let total = self.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes;
        if total <= self.taken.load(Ordering::Relaxed) {
            return true;
        }
        let wanted = total.saturating_add(STEP);
        if room.try_grow(wanted).is_err() {
            self.is_refused.store(true, Ordering::Relaxed);
            return false;
        }
        self.taken.fetch_max(wanted, Ordering::Relaxed);
        true
    }

    /// Whether there was no room.
    pub(crate) fn is_refused(&self) -> bool {
        self.is_refused.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::byte_budget::{ByteBudget, ByteLimits, COPIES};
    use crate::error::ErrorKind;
    use crate::ignore_rules::IgnoreRules;
    use crate::operation::Operation;
    use crate::testing::{Tree, context};
    use crate::{
        Case, CompressedFiles, Detail, Glob, GlobOrder, Grep, Hidden, Kinds, List, PathPattern,
        Pattern, SearchFrom, SearchOutput, Syntax,
    };

    const MIB: u64 = 1024 * 1024;

    fn budget() -> Arc<ByteBudget> {
        ByteBudget::new(ByteLimits {
            all: 16 * MIB,
            of_one: 8 * MIB,
        })
    }

    fn context_of(budget: &Arc<ByteBudget>) -> Context {
        let room = ReplyRoom::new(Arc::clone(budget), "client".into(), Duration::ZERO);
        Context {
            room: Some(Arc::new(room)),
            ..context()
        }
    }

    fn grep(tree: &Tree) -> Grep {
        Grep {
            place: tree.place("."),
            pattern: Pattern {
                texts: vec!["line".to_owned()],
                syntax: Syntax::Regex,
                case: Case::Sensitive,
            },
            filter: None,
            context_lines: 0,
            max_results: 1_000_000,
            timeout: Duration::from_secs(300),
            max_depth: None,
            max_file_size: None,
            ignore_rules: IgnoreRules::Disregard,
            output: SearchOutput::Matches,
            from: SearchFrom::Start,
            compressed: CompressedFiles::AsTheyAre,
        }
    }

    fn glob(tree: &Tree) -> Glob {
        Glob {
            place: tree.place("."),
            pattern: PathPattern::Glob("**/*".to_owned()),
            kinds: Kinds::All,
            max_results: 1_000_000,
            timeout: Duration::from_secs(300),
            max_depth: None,
            ignore_rules: IgnoreRules::Disregard,
            order: GlobOrder::Path,
            exclude: Vec::new(),
        }
    }

    fn list(tree: &Tree, max_depth: usize) -> List {
        List {
            place: tree.place("."),
            max_depth: Some(max_depth),
            hidden: Hidden::Include,
            pattern: None,
            detail: Detail::Names,
            max_entries: List::MAX_ENTRIES,
        }
    }

    #[test]
    fn what_is_gathered_is_counted_until_the_reply() {
        let tree = Tree::new();
        tree.file("large", "a line of text\n".repeat(20_000));
        let budget = budget();
        let context = context_of(&budget);
        let found = grep(&tree).run(&context).unwrap();
        assert_eq!(found.total_matches, 20_000);
        assert!(budget.bytes_held() > 20_000 * 14 * COPIES, "{budget:?}");
        drop(context);
        assert_eq!(budget.bytes_held(), 0);
    }

    #[test]
    fn without_room_nothing_more_is_gathered() {
        let tree = Tree::new();
        for number in 0..1000 {
            tree.file(&format!("{number:0100}"), "a line of text\n".repeat(20));
        }
        let budget = budget();
        let held = budget.hold(&"client".into(), 8 * MIB - 1);
        let bytes_held = budget.bytes_held();
        for attempt in 0..4 {
            let context = context_of(&budget);
            let refused = match attempt {
                0 => grep(&tree).run(&context).map(drop),
                1 => glob(&tree).run(&context).map(drop),
                depth => list(&tree, depth - 1).run(&context).map(drop),
            };
            assert_eq!(refused.unwrap_err().kind(), ErrorKind::NoRoom, "{attempt}");
            assert_eq!(budget.bytes_held(), bytes_held, "{attempt}");
        }
        // Small ones are not counted.
        let mut few = grep(&tree);
        few.max_results = 10;
        assert_eq!(few.run(&context_of(&budget)).unwrap().total_matches, 10);
        drop(held);
        assert_eq!(
            glob(&tree).run(&context_of(&budget)).unwrap().entries.len(),
            1000
        );
    }
}
