//! A list of globs of which the last that matches decides, judged for a path one component at a time.
//!
//! All globs advance together, as bits: bit `i` of a glob stands for "its first `i` components are behind us". A glob that
//! has matched a directory has matched all below it, so its last bit stays.

use std::collections::HashMap;

use super::glob::{Component, GlobFault, ViewGlob};
use super::name_pattern::{NamePattern, NameTable};

/// The purpose of a list's globs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// They say what is visible.
    Show,
    /// They say what is hidden.
    Hide,
}

/// The list.
#[derive(Debug)]
pub(super) struct GlobList {
    /// Where every path begins.
    start: Vec<u64>,
    /// The components that are `*`.
    any: Vec<u64>,
    /// The components that are `**`.
    deep: Vec<u64>,
    /// A glob has been matched completely.
    accepted: Vec<u64>,
    /// The glob matches everything below.
    covers: Vec<u64>,
    /// The bits of all globs that make something visible.
    shows: Vec<u64>,
    /// Whether paths that no glob matches are visible.
    shown_unmatched: bool,
    names: NameTable,
    /// The names of globs that ignore case, in lower case.
    lowered: NameTable,
    /// No glob has a capital letter, so both tables say the same.
    is_lower: bool,
}

/// The bits of a list while it is built.
#[derive(Default)]
struct Bits(Vec<u64>);

impl Bits {
    fn set(&mut self, at: usize) {
        let word = at / 64;
        if self.0.len() <= word {
            self.0.resize(word + 1, 0);
        }
        if let Some(word) = self.0.get_mut(word) {
            *word |= 1 << (at % 64);
        }
    }

    fn sized(mut self, words: usize) -> Vec<u64> {
        self.0.resize(words, 0);
        self.0
    }
}

/// The states of all globs, one after the other, while a list is built.
#[derive(Default)]
struct States {
    start: Bits,
    any: Bits,
    deep: Bits,
    accepted: Bits,
    covers: Bits,
    shows: Bits,
    named: HashMap<NamePattern, Bits>,
    /// How many there are.
    count: usize,
}

impl States {
    /// Adds the states of one alternative: one before each component, and one at the end.
    fn add(&mut self, components: &[Component], is_shown: bool) {
        let first = self.count;
        let end = first + components.len();
        self.start.set(first);
        for (at, component) in (first..).zip(components) {
            match component {
                Component::Deep => self.deep.set(at),
                Component::Any => self.any.set(at),
                Component::Named(pattern) => {
                    self.named.entry(pattern.clone()).or_default().set(at);
                }
            }
        }
        self.accepted.set(end);
        self.covers.set(end);
        if components.last() == Some(&Component::Any) {
            self.covers.set(end - 1);
        }
        if is_shown {
            (first..=end).for_each(|bit| self.shows.set(bit));
        }
        self.count = end + 1;
    }
}

impl GlobList {
    /// Builds a list. One of exceptions alone begins with everything.
    pub(super) fn new(globs: &[ViewGlob], purpose: Purpose) -> GlobList {
        let mut states = States::default();
        for glob in globs {
            let is_shown = (purpose == Purpose::Show) != glob.is_exception;
            for components in &glob.alternatives {
                states.add(components, is_shown);
            }
        }
        let words = states.count.div_ceil(64);
        let all_exceptions = globs.iter().all(|glob| glob.is_exception);
        let is_lower = states
            .named
            .keys()
            .all(|pattern| pattern.lowered() == *pattern);
        let (names, lowered) = tables(states.named, words);
        let mut list = GlobList {
            start: Vec::new(),
            any: states.any.sized(words),
            deep: states.deep.sized(words),
            accepted: states.accepted.sized(words),
            covers: states.covers.sized(words),
            shows: states.shows.sized(words),
            shown_unmatched: purpose == Purpose::Hide || all_exceptions,
            names,
            lowered,
            is_lower,
        };
        let mut start = states.start.sized(words);
        list.pass_deep(&mut start);
        list.start = start;
        list
    }

    /// How many words its state has.
    pub(super) fn words(&self) -> usize {
        self.start.len()
    }

    /// The state at the root.
    pub(super) fn start(&self) -> &[u64] {
        &self.start
    }

    /// The state below a directory with the state `from`, at an entry of this name.
    pub(super) fn step(&self, from: &[u64], name: &[u8], into: &mut [u64]) {
        into.copy_from_slice(&self.any);
        self.names.add_fitting(name, into);
        self.advance(from, into);
    }

    /// The state at an entry whose name no glob names.
    pub(super) fn step_unnamed(&self, from: &[u64], into: &mut [u64]) {
        into.copy_from_slice(&self.any);
        self.advance(from, into);
    }

    /// Tells whether any glob names an entry, by its own name.
    pub(super) fn names(&self, name: &[u8]) -> bool {
        self.names.has_fitting(name)
    }

    /// Goes on from a directory to an entry that fits these components.
    fn advance(&self, from: &[u64], into: &mut [u64]) {
        let mut carried = 0;
        let masks = self.deep.iter().zip(&self.accepted);
        for ((word, &before), (&deep, &accepted)) in into.iter_mut().zip(from).zip(masks) {
            let moved = before & *word;
            *word = (moved << 1) | carried | (before & (deep | accepted));
            carried = moved >> 63;
        }
        self.pass_deep(into);
    }

    /// Any number of directories may be none.
    fn pass_deep(&self, state: &mut [u64]) {
        let mut carried = 0;
        for (word, &deep) in state.iter_mut().zip(&self.deep) {
            // Two of them never follow each other, so one pass is enough.
            let passed = *word & deep;
            *word |= (passed << 1) | carried;
            carried = passed >> 63;
        }
    }

    /// Tells whether the last matching glob makes a path visible.
    pub(super) fn shows(&self, state: &[u64]) -> bool {
        match highest(state, |at| word(&self.accepted, at)) {
            Some(bit) => is_set(&self.shows, bit),
            None => self.shown_unmatched,
        }
    }

    /// Tells whether anything below a directory may be visible. If several globs together hide all of it, this may
    /// still return true.
    pub(super) fn may_show_below(&self, state: &[u64]) -> bool {
        let shown = highest(state, |at| word(&self.shows, at));
        let hidden = highest(state, |at| word(&self.covers, at) & !word(&self.shows, at));
        shown > hidden || (hidden.is_none() && self.shown_unmatched)
    }

    /// Tells whether everything below a directory is visible; false too if only several globs together show that.
    pub(super) fn shows_all_below(&self, state: &[u64]) -> bool {
        let shown = highest(state, |at| word(&self.covers, at) & word(&self.shows, at));
        let hidden = highest(state, |at| !word(&self.shows, at));
        shown > hidden || (hidden.is_none() && self.shown_unmatched)
    }

    /// Tells whether a name would be judged differently if case did not matter.
    pub(super) fn case_decides(&self, from: &[u64], name: &[u8], lowered: &[u8]) -> bool {
        if self.is_lower && name == lowered {
            return false;
        }
        if !self.names.has_fitting(name) && !self.lowered.has_fitting(lowered) {
            return false;
        }
        let (mut exact, mut folded) = (vec![0; self.words()], vec![0; self.words()]);
        self.names.add_fitting(name, &mut exact);
        self.lowered.add_fitting(lowered, &mut folded);
        let pairs = exact.iter().zip(&folded).zip(from);
        pairs
            .into_iter()
            .any(|((exact, folded), from)| (exact ^ folded) & from != 0)
    }
}

fn tables(named: HashMap<NamePattern, Bits>, words: usize) -> (NameTable, NameTable) {
    let mut exact = HashMap::new();
    let mut lowered: HashMap<NamePattern, Vec<u64>> = HashMap::new();
    for (pattern, bits) in named {
        let bits = bits.sized(words);
        let known = lowered.entry(pattern.lowered()).or_default();
        known.resize(words, 0);
        known
            .iter_mut()
            .zip(&bits)
            .for_each(|(into, more)| *into |= more);
        exact.insert(pattern, bits);
    }
    (NameTable::new(exact), NameTable::new(lowered))
}

fn word(words: &[u64], at: usize) -> u64 {
    words.get(at).copied().unwrap_or_default()
}

fn is_set(words: &[u64], bit: usize) -> bool {
    word(words, bit / 64) >> (bit % 64) & 1 == 1
}

/// The highest bit of a state under a mask. Globs that come later have higher bits.
fn highest(state: &[u64], mask: impl Fn(usize) -> u64) -> Option<usize> {
    let words = state.iter().enumerate().rev();
    let mut found = words.filter_map(|(at, &bits)| {
        let left = bits & mask(at);
        left.checked_ilog2().map(|bit| at * 64 + bit as usize)
    });
    found.next()
}

/// Reads all globs of a list.
pub(super) fn parsed<'a>(
    globs: impl IntoIterator<Item = &'a str>,
) -> Result<Vec<ViewGlob>, GlobFault> {
    globs.into_iter().map(ViewGlob::parse).collect()
}
