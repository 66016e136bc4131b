//! What is kept of a file's content: which triples of bytes occur in its lines, roughly.
//!
//! Every triple, with ASCII letters in lower case, sets one of a power of two of bits. A triple whose bit is not set does not
//! occur; one whose bit is set may. Half as many bits say the same less precisely, and are made without reading the file.

use memchr::{memchr_iter, memmem};

use super::remembered::FileFacts;

/// The least and the most bits of a sketch, as powers of two.
const BITS_MIN: u32 = 6;
const BITS_MAX: u32 = 17;
/// A sketch is made smaller while less than so many of a hundred bits are set.
const FILLED_PERCENT: usize = 43;

/// Letters outside ASCII that are equal to `s` and `k` where case does not count: the long s and the Kelvin sign.
pub(super) const LONG_S: &str = "\u{17F}";
pub(super) const KELVIN: &str = "\u{212A}";

/// The number of a triple of bytes, the same in files and in expressions. Letters have to be in lower case.
pub(super) fn triple(bytes: [u8; 3]) -> u32 {
    let [a, b, c] = bytes.map(u32::from);
    ((a << 16) | (b << 8) | c).wrapping_mul(0x9E37_79B1) >> (32 - BITS_MAX)
}

/// Which triples a file has, roughly.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Sketch(Box<[u8]>);

impl Sketch {
    /// Tells whether a triple may occur.
    pub(super) fn may_have(&self, triple: u32) -> bool {
        let mask = (self.0.len() * 8).wrapping_sub(1);
        let bit = triple as usize & mask;
        self.0
            .get(bit / 8)
            .is_some_and(|byte| byte & (1 << (bit % 8)) != 0)
    }

    /// Says the same with half the bits, less precisely.
    pub(super) fn fold(&mut self) {
        let half = self.0.len() / 2;
        if half * 8 >= 1 << BITS_MIN {
            let (low, high) = self.0.split_at(half);
            self.0 = low.iter().zip(high).map(|(a, b)| a | b).collect();
        }
    }

    /// How many bytes it takes.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
}

/// How many bytes a sketch of content of this size takes at most.
pub(super) fn largest(size: usize) -> usize {
    (1 << bits_for(size)) / 8
}

fn bits_for(size: usize) -> u32 {
    let exponent = size.max(1).next_power_of_two().trailing_zeros();
    exponent.clamp(BITS_MIN, BITS_MAX)
}

/// Space to make sketches in: a byte for each bit.
#[derive(Debug, Default)]
pub(crate) struct SketchTable(Vec<u8>);

/// Learns what is kept of a file's content. Of a binary file only that it is one.
pub(super) fn learn(
    content: &[u8],
    is_binary: bool,
    table: &mut SketchTable,
) -> (FileFacts, Sketch) {
    let mut facts = FileFacts {
        is_binary,
        ..FileFacts::default()
    };
    if is_binary {
        return (facts, Sketch::default());
    }
    let has = |letter: &str| memmem::find(content, letter.as_bytes()).is_some();
    facts.has_odd_letters = has(LONG_S) || has(KELVIN);
    table.clear(1 << bits_for(content.len()));
    let mut start = 0;
    let mut longest = 0;
    // No line matches across its end, so triples across line ends need no room.
    for end in memchr_iter(b'\n', content).chain([content.len()]) {
        let line = content.get(start..end).unwrap_or_default();
        longest = longest.max(line.len() + 1);
        table.add(line);
        start = end + 1;
    }
    facts.longest_line = u32::try_from(longest).unwrap_or(u32::MAX);
    (facts, table.sketch())
}

impl SketchTable {
    fn clear(&mut self, slots: usize) {
        self.0.clear();
        self.0.resize(slots, 0);
    }

    fn add(&mut self, line: &[u8]) {
        let mask = self.0.len().wrapping_sub(1);
        let mut last = [0; 3];
        for (position, byte) in line.iter().enumerate() {
            last = [last[1], last[2], byte.to_ascii_lowercase()];
            if position >= 2
                && let Some(slot) = self.0.get_mut(triple(last) as usize & mask)
            {
                *slot = 1;
            }
        }
    }

    /// Halves the table while it is mostly empty, and packs it.
    fn sketch(&mut self) -> Sketch {
        while self.0.len() > 1 << BITS_MIN && self.is_sparse() {
            let half = self.0.len() / 2;
            let (low, high) = self.0.split_at_mut(half);
            low.iter_mut().zip(high).for_each(|(a, b)| *a |= *b);
            self.0.truncate(half);
        }
        let pack = |bits: &[u8]| {
            let numbered = bits.iter().enumerate();
            numbered.fold(0, |packed, (at, bit)| packed | (bit << at))
        };
        Sketch(self.0.chunks(8).map(pack).collect())
    }

    fn is_sparse(&self) -> bool {
        let set: usize = self.0.iter().map(|slot| usize::from(*slot)).sum();
        set * 100 < FILLED_PERCENT * self.0.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn has(sketch: &Sketch, text: &str) -> bool {
        let lower = text.to_ascii_lowercase();
        let mut triples = lower.as_bytes().windows(3);
        triples.all(|three| sketch.may_have(triple([three[0], three[1], three[2]])))
    }

    #[test]
    fn what_occurs_is_never_missing_and_much_else_is() {
        let text = include_str!("clock.rs");
        let (facts, sketch) = learn(text.as_bytes(), false, &mut SketchTable::default());
        assert!(!facts.is_binary);
        assert!(text.lines().all(|line| has(&sketch, line)));
        let absent = ["zyzzyva qux", "QWOPQWOPQ", "no such words in here, surely"];
        assert!(absent.iter().all(|text| !has(&sketch, text)));
        assert!(sketch.len() < text.len() / 4, "{}", sketch.len());
    }

    #[test]
    fn long_lines_and_odd_letters_are_noticed() {
        let mut table = SketchTable::default();
        let mut facts = |text: &str| learn(text.as_bytes(), false, &mut table).0;
        assert_eq!(facts("ab\nabc\n").longest_line, 4);
        assert_eq!(facts("abcd").longest_line, 5);
        assert!(!facts("kelvin").has_odd_letters);
        assert!(facts("a \u{212A}elvin").has_odd_letters);
        assert!(facts("mi\u{17F}t").has_odd_letters);
    }

    #[test]
    fn a_sketch_is_never_larger_than_was_said() {
        let mut random = 1_u32;
        for size in [0, 1, 63, 64, 65, 1000, 5000, 200_000] {
            let content: Vec<u8> = (0..size)
                .map(|_| {
                    random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    u8::try_from(random >> 24).unwrap()
                })
                .collect();
            let (_, sketch) = learn(&content, false, &mut SketchTable::default());
            assert!(sketch.len() <= largest(size), "{size}: {}", sketch.len());
        }
    }

    proptest! {
        #[test]
        fn folding_never_loses_a_triple(text in "[a-zA-Z0-9 é\n]{0,400}", folds in 0..12_u32) {
            let (_, mut sketch) = learn(text.as_bytes(), false, &mut SketchTable::default());
            for _ in 0..folds {
                sketch.fold();
            }
            prop_assert!(text.lines().all(|line| has(&sketch, line)));
        }
    }
}
