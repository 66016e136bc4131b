//! What is kept of a file's content: which triples of bytes occur in its lines, roughly.
//!
//! Every triple, with ASCII letters in lower case, sets one of a power of two of bits. A triple whose bit is not set does not
//! occur; one whose bit is set may. Half as many bits say the same less precisely, and are made without reading the file.

use memchr::{memchr_iter, memmem};

use super::remembered::LearnedFacts;

/// The least and the most bits of a sketch, as powers of two.
const BITS_MIN: u32 = 6;
const BITS_MAX: u32 = 17;
/// A sketch is halved while less than this percentage of its bits is set.
const FILLED_PERCENT: usize = 43;

/// How many triples are read from one block of lower case.
const BLOCK: usize = 2048;

/// Content from this size on has its lines measured; a smaller one is taken for a single line.
const MEASURED_FROM: usize = 8 * 1024;

/// Letters outside ASCII that are equal to `s` and `k` if case does not count: the long s and the Kelvin sign.
pub(super) const LONG_S: &str = "\u{17F}";
pub(super) const KELVIN: &str = "\u{212A}";

/// The number of a triple of bytes, the same in files and in expressions. Letters have to be in lower case.
pub(super) fn triple(bytes: [u8; 3]) -> u32 {
    let [a, b, c] = bytes;
    number(u32::from_le_bytes([a, b, c, 0]))
}

fn number(key: u32) -> u32 {
    key.wrapping_mul(0x9E37_79B1) >> (32 - BITS_MAX)
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

    /// Halves the number of bits, at the cost of precision.
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

/// Half as many bits as there are bytes: most triples occur more than once.
fn bits_for(size: usize) -> u32 {
    let exponent = size.max(1).next_power_of_two().trailing_zeros();
    exponent.saturating_sub(1).clamp(BITS_MIN, BITS_MAX)
}

/// Space to make sketches in: a byte for each bit, and the bits.
#[derive(Debug, Default)]
pub(crate) struct SketchTable {
    slots: Vec<u8>,
    packed: Vec<u8>,
}

/// Learns a file's content. For a binary file, only that it is binary.
pub(super) fn learn(
    content: &[u8],
    is_binary: bool,
    table: &mut SketchTable,
) -> (LearnedFacts, Sketch) {
    if is_binary {
        let facts = LearnedFacts {
            is_binary,
            ..LearnedFacts::default()
        };
        return (facts, Sketch::default());
    }
    (facts(content), table.sketch(content))
}

/// What is kept of text besides its triples.
fn facts(content: &[u8]) -> LearnedFacts {
    let has = |letter: &str| memmem::find(content, letter.as_bytes()).is_some();
    LearnedFacts {
        is_binary: false,
        has_odd_letters: !content.is_ascii() && (has(LONG_S) || has(KELVIN)),
        longest_line: u32::try_from(longest_line(content)).unwrap_or(u32::MAX),
    }
}

/// What is known of content that is learned part by part. Each part has whole lines.
#[derive(Debug)]
pub(super) struct GrowingSketch {
    facts: LearnedFacts,
    packed: Vec<u8>,
}

/// How many bytes one takes.
pub(super) const GROWING_BYTES: usize = (1 << BITS_MAX) / 8;

impl GrowingSketch {
    pub(super) fn new() -> GrowingSketch {
        GrowingSketch {
            facts: LearnedFacts::default(),
            packed: vec![0; GROWING_BYTES],
        }
    }

    /// Adds what is known of another part.
    pub(super) fn add(&mut self, part: &GrowingSketch) {
        let LearnedFacts {
            has_odd_letters,
            longest_line,
            ..
        } = part.facts;
        self.facts.has_odd_letters |= has_odd_letters;
        self.facts.longest_line = self.facts.longest_line.max(longest_line);
        let bits = self.packed.iter_mut().zip(&part.packed);
        bits.for_each(|(own, more)| *own |= *more);
    }

    /// Learns a part.
    pub(super) fn of(content: &[u8], table: &mut SketchTable) -> GrowingSketch {
        table.set(content, BITS_MAX);
        GrowingSketch {
            facts: facts(content),
            packed: table.packed.clone(),
        }
    }

    /// All parts were added.
    pub(super) fn finish(mut self) -> (LearnedFacts, Sketch) {
        halve(&mut self.packed);
        (self.facts, Sketch(self.packed.into()))
    }
}

/// The longest line with its end, or more.
fn longest_line(content: &[u8]) -> usize {
    if content.len() < MEASURED_FROM {
        return content.len() + 1;
    }
    let mut start = 0;
    let mut longest = 0;
    for end in memchr_iter(b'\n', content).chain([content.len()]) {
        longest = longest.max(end + 1 - start);
        start = end + 1;
    }
    longest
}

impl SketchTable {
    /// Makes a sketch and halves it while it is mostly empty.
    fn sketch(&mut self, content: &[u8]) -> Sketch {
        self.set(content, bits_for(content.len()));
        halve(&mut self.packed);
        Sketch(self.packed.as_slice().into())
    }

    /// Makes the bits of content.
    fn set(&mut self, content: &[u8], bits: u32) {
        self.slots.clear();
        self.slots.resize(1 << bits, 0);
        self.fill(content);
        self.pack();
    }

    /// Sets the slot of every triple. With a length that is known when this is compiled no index has to be checked.
    fn fill(&mut self, content: &[u8]) {
        macro_rules! fill_one_of {
            ($($bits:literal)*) => {
                match self.slots.len().trailing_zeros() {
                    $($bits => {
                        if let Some(slots) = self.slots.first_chunk_mut() {
                            fill::<{ 1 << $bits }>(content, slots);
                        }
                    })*
                    _ => {}
                }
            };
        }
        fill_one_of!(6 7 8 9 10 11 12 13 14 15 16 17);
    }

    /// Makes a bit of each slot.
    fn pack(&mut self) {
        // Each of eight bytes, which are 0 or 1, is moved to a bit of its own in the highest byte.
        let (eights, _) = self.slots.as_chunks::<8>();
        let bits = |eight: &[u8; 8]| {
            let [.., bits] = u64::from_le_bytes(*eight)
                .wrapping_mul(0x0102_0408_1020_4080)
                .to_le_bytes();
            bits
        };
        self.packed.clear();
        self.packed.extend(eights.iter().map(bits));
    }
}

/// Halves a sketch while it is mostly empty.
fn halve(packed: &mut Vec<u8>) {
    while packed.len() * 8 > 1 << BITS_MIN && is_sparse(packed) {
        let half = packed.len() / 2;
        let (low, high) = packed.split_at_mut(half);
        low.iter_mut().zip(high).for_each(|(a, b)| *a |= *b);
        packed.truncate(half);
    }
}

/// Sets the slot of every three bytes in a row. Those across line ends only make the sketch a little less precise.
fn fill<const SLOTS: usize>(content: &[u8], slots: &mut [u8; SLOTS]) {
    // Lower case is made block by block, many bytes at a time; each triple is then read at once, with the byte behind it.
    let mut block = [0; BLOCK + 3];
    let mut rest = content;
    while rest.len() >= 3 {
        let (piece, _) = rest.split_at(rest.len().min(BLOCK + 2));
        if let Some(lower) = block.get_mut(..piece.len()) {
            lower.copy_from_slice(piece);
            lower.make_ascii_lowercase();
        }
        for four in block.get(..=piece.len()).unwrap_or_default().windows(4) {
            let &[a, b, c, d] = four else { continue };
            let key = u32::from_le_bytes([a, b, c, d]) & 0xFF_FFFF;
            if let Some(slot) = slots.get_mut(number(key) as usize & (SLOTS - 1)) {
                *slot = 1;
            }
        }
        rest = rest.get(BLOCK..).unwrap_or_default();
    }
}

fn is_sparse(packed: &[u8]) -> bool {
    let (words, _) = packed.as_chunks::<8>();
    let set = |word: &[u8; 8]| u64::from_le_bytes(*word).count_ones() as usize;
    words.iter().map(set).sum::<usize>() * 100 < FILLED_PERCENT * packed.len() * 8
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
        assert_eq!(facts("abcd").longest_line, 5);
        let long = "ab\n".repeat(4000) + "abcd\n";
        assert_eq!(facts(&long).longest_line, 5);
        assert_eq!(facts(&(long + "abcde")).longest_line, 6);
        assert!(!facts("kelvin").has_odd_letters);
        assert!(!facts("ünlike").has_odd_letters);
        assert!(facts("a \u{212A}elvin").has_odd_letters);
        assert!(facts("mi\u{17F}t").has_odd_letters);
    }

    /// The same bits, set one by one.
    fn plain(content: &[u8]) -> Vec<u8> {
        let lower = content.to_ascii_lowercase();
        let mut bits = vec![false; 1 << bits_for(content.len())];
        for three in lower.windows(3) {
            let at = triple([three[0], three[1], three[2]]) as usize % bits.len();
            bits[at] = true;
        }
        while bits.len() > 64
            && bits.iter().filter(|bit| **bit).count() * 100 < FILLED_PERCENT * bits.len()
        {
            let high = bits.split_off(bits.len() / 2);
            bits.iter_mut().zip(high).for_each(|(a, b)| *a |= b);
        }
        let pack = |bits: &[bool]| (0..8).map(|at| u8::from(bits[at]) << at).sum();
        bits.chunks(8).map(pack).collect()
    }

    #[test]
    fn bits_are_packed_and_halved_as_if_one_by_one() {
        let text = include_str!("needs.rs").repeat(20);
        let mut table = SketchTable::default();
        for length in [0, 1, 2, 3, 4, 63, 200, 1_000, 9_000, 70_000, text.len()] {
            let content = &text.as_bytes()[..length];
            let (_, sketch) = learn(content, false, &mut table);
            assert_eq!(sketch.0.as_ref(), plain(content), "{length}");
        }
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
