//! Large files, which are searched in pieces, while they are learned: each search learns some of the pieces.
//!
//! Every piece is learned under the rules for a whole file, with the file's one stamp. What holds for each piece of that state
//! of the file holds for all of it, so once no piece is missing the file is known as a small one is.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::remembered::{FileStamp, Key, Remembered};
use super::sketch::{GROWING_BYTES, GrowingSketch};

/// How many files are learned at a time.
const FILES_MAX: usize = 64;
/// How many pieces a file has at most that is learned.
const PIECES_MAX: usize = 64 * 1024;
/// How many searches have to pass until a file is given up of which no piece was learned.
const UNMET_MAX: u32 = 16;

/// The files of which some pieces are known.
#[derive(Debug, Default)]
pub(super) struct LargeFiles(Mutex<HashMap<Key, PartlyKnown>>);

#[derive(Debug)]
struct PartlyKnown {
    stamp: FileStamp,
    sketch: GrowingSketch,
    /// Which pieces are known.
    known: Vec<bool>,
    missing: usize,
    /// The search that last learned a piece.
    met: u32,
}

/// A piece of a file in a state.
#[derive(Debug, Clone, Copy)]
pub(super) struct Piece {
    pub(super) stamp: FileStamp,
    /// Its number.
    pub(super) at: usize,
    /// How many pieces the file has.
    pub(super) of: usize,
}

impl PartlyKnown {
    fn new(piece: Piece) -> PartlyKnown {
        PartlyKnown {
            stamp: piece.stamp,
            sketch: GrowingSketch::new(),
            known: vec![false; piece.of],
            missing: piece.of,
            met: 0,
        }
    }

    fn bytes(&self) -> usize {
        bytes(self.known.len())
    }
}

/// What a file of so many pieces takes while it is learned.
fn bytes(pieces: usize) -> usize {
    GROWING_BYTES + pieces + 2 * size_of::<(Key, PartlyKnown)>()
}

impl LargeFiles {
    /// Tells whether a piece is yet to be learned.
    pub(super) fn lacks(&self, piece: Piece) -> bool {
        let partly = self.partly();
        let known = partly.get(&piece.stamp.key());
        let known = known.filter(|known| known.stamp == piece.stamp);
        known.is_none_or(|known| known.known.get(piece.at) == Some(&false))
    }

    /// Keeps what is known of a piece; all of the file, if it was the last one.
    pub(super) fn keep(
        &self,
        piece: Piece,
        learned: &GrowingSketch,
        files: &Remembered,
        search: u32,
    ) -> Option<GrowingSketch> {
        let mut partly = self.partly();
        let key = piece.stamp.key();
        if partly.get(&key).is_none_or(|old| old.stamp != piece.stamp) {
            forget(&mut partly, key, files);
            make_room(&mut partly, files, search);
            let has_room = piece.of <= PIECES_MAX && partly.len() < FILES_MAX;
            if !has_room || !files.take(bytes(piece.of)) {
                return None;
            }
            partly.insert(key, PartlyKnown::new(piece));
        }
        let known = partly.get_mut(&key)?;
        known.met = search;
        let is_known = known.known.get_mut(piece.at)?;
        if !std::mem::replace(is_known, true) {
            known.missing -= 1;
            known.sketch.add(learned);
        }
        (known.missing == 0).then(|| forget(&mut partly, key, files))?
    }

    /// Forgets everything.
    pub(super) fn forget(&self, files: &Remembered) {
        let mut partly = self.partly();
        partly
            .values()
            .for_each(|known| files.give_back(known.bytes()));
        *partly = HashMap::new();
    }

    fn partly(&self) -> MutexGuard<'_, HashMap<Key, PartlyKnown>> {
        // After a panic a file may lack a piece that it has: then it is never known.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn forget(
    partly: &mut HashMap<Key, PartlyKnown>,
    key: Key,
    files: &Remembered,
) -> Option<GrowingSketch> {
    let known = partly.remove(&key)?;
    files.give_back(known.bytes());
    Some(known.sketch)
}

/// Gives up what is not met any more, if there are too many files.
fn make_room(partly: &mut HashMap<Key, PartlyKnown>, files: &Remembered, search: u32) {
    if partly.len() < FILES_MAX {
        return;
    }
    partly.retain(|_, known| {
        let is_met = search.wrapping_sub(known.met) <= UNMET_MAX;
        if !is_met {
            files.give_back(known.bytes());
        }
        is_met
    });
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;
    use sandbox::{FileKind, Metadata, Time};

    use super::*;
    use crate::search_memory::sketch::SketchTable;

    /// The state number `state` of a file.
    fn stamp(file: u64, state: i64) -> FileStamp {
        let time = Time {
            seconds: state,
            nanoseconds: 0,
        };
        let metadata = Metadata {
            kind: FileKind::File,
            size: 1 << 21,
            mode: 0o644,
            uid: 0,
            gid: 0,
            links: 1,
            modified: time,
            accessed: time,
            changed: time,
            created: None,
            device: 1,
            inode: file,
        };
        FileStamp::of(&metadata).unwrap()
    }

    fn held(large: &LargeFiles) -> usize {
        large.partly().values().map(PartlyKnown::bytes).sum()
    }

    #[test]
    fn files_that_no_search_meets_make_room_for_others() {
        let files = Remembered::new(64 << 20);
        let empty = files.bytes();
        let large = LargeFiles::default();
        let learned = GrowingSketch::of(b"line\n", &mut SketchTable::default());
        let keep = |file: u64, search: u32| {
            let piece = Piece {
                stamp: stamp(file, 0),
                at: 0,
                of: 2,
            };
            large.keep(piece, &learned, &files, search);
            large.lacks(piece)
        };
        for file in 0..FILES_MAX as u64 {
            assert!(!keep(file, 1));
        }
        assert!(keep(1000, 1 + UNMET_MAX), "all others are still met");
        assert!(!keep(1000, 2 + UNMET_MAX), "they are not met any more");
        assert_eq!(large.partly().len(), 1);
        assert_eq!(files.bytes() - empty, held(&large));
        large.forget(&files);
        assert_eq!(files.bytes(), empty);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        /// What is taken is what is held, within the bound; and a file is known only when every piece of one state was learned.
        #[test]
        fn room_is_taken_and_given_back(
            limit in 300_000..3_000_000_usize,
            steps in prop::collection::vec(
                (0..100_u64, 0..2_i64, 0..3_usize, 1..4_usize, 0..60_u32, 0..40_u8),
                1..250,
            ),
        ) {
            let files = Remembered::new(limit);
            let empty = files.bytes();
            let large = LargeFiles::default();
            let learned = GrowingSketch::of(b"line\n", &mut SketchTable::default());
            let mut last = None;
            let mut kept: HashSet<(u64, i64, usize)> = HashSet::new();
            for (file, state, at, of, search, forget) in steps {
                if forget == 0 {
                    large.forget(&files);
                    kept.clear();
                }
                // Often the same file, so that some become whole. A state has one number of pieces.
                let (file, of) = last.filter(|_| search % 4 > 0).unwrap_or((file, of));
                last = Some((file, of));
                let of = of + state as usize;
                let piece = Piece { stamp: stamp(file, state * 8 + of as i64), at: at % of, of };
                kept.insert((file, state * 8 + of as i64, piece.at));
                if large.keep(piece, &learned, &files, search).is_some() {
                    let own = |at| kept.contains(&(file, state * 8 + of as i64, at));
                    prop_assert!((0..of).all(own), "a piece is missing");
                }
                prop_assert_eq!(files.bytes() - empty, held(&large));
                prop_assert!(files.bytes() <= limit);
                prop_assert!(large.partly().len() <= FILES_MAX);
            }
            large.forget(&files);
            prop_assert_eq!(files.bytes(), empty);
        }
    }
}
