//! What a text must contain so that an expression can match in it: triples of bytes, all or any of them.
//!
//! An expression is read from left to right. What was read since the last gap is one of a few runs of bytes; at a gap, where
//! anything may stand, the runs become triples that one of them needs. Letters of ASCII are read in lower case, as sketches
//! have them, so that case never matters here.

use regex_syntax::ParserBuilder;
use regex_syntax::hir::{Class, Hir, HirKind, Repetition};

use super::sketch::{KELVIN, LONG_S, Sketch, triple};

/// How many runs are kept apart.
const RUNS_MAX: usize = 24;
/// How many characters a class may have to be read one by one.
const CLASS_MAX: usize = 16;
/// How often what is repeated is read.
const REPEATS_MAX: u32 = 3;
/// How many pieces of an expression are read: repetitions of repetitions would multiply.
const PIECES_MAX: usize = 20_000;

/// What a match needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Needs {
    need: Need,
    /// Assumes that `s` and `k` have no other form.
    relies_on_letters: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Need {
    /// All of these triples.
    Triples(Vec<u32>),
    /// Every one of these needs.
    Each(Vec<Need>),
    /// At least one of these needs.
    Any(Vec<Need>),
}

impl Needs {
    /// What a match of any of these expressions needs; `None` if that excludes nothing. Expressions are in the engine's
    /// syntax.
    pub(crate) fn of(texts: &[&str], ignores_case: bool, nesting: u32) -> Option<Needs> {
        let mut pieces = 0;
        let mut relies_on_letters = false;
        let mut any = Vec::new();
        for text in texts {
            let expression = ParserBuilder::new()
                .nest_limit(nesting)
                .utf8(false)
                .multi_line(true)
                .case_insensitive(ignores_case)
                .build()
                .parse(text)
                .ok()?;
            let mut reader = Reader::new(&mut pieces, &mut relies_on_letters);
            reader.read(&expression);
            any.push(reader.finish()?);
        }
        Some(Needs {
            need: one_or(any, Need::Any)?,
            relies_on_letters,
        })
    }

    /// Tells whether a text with this sketch cannot contain a match.
    pub(super) fn exclude(&self, has_odd_letters: bool, sketch: &Sketch) -> bool {
        let may_be_written_otherwise = self.relies_on_letters && has_odd_letters;
        !may_be_written_otherwise && !self.need.may_hold(sketch)
    }
}

impl Need {
    fn may_hold(&self, sketch: &Sketch) -> bool {
        match self {
            Need::Triples(triples) => triples.iter().all(|triple| sketch.may_have(*triple)),
            Need::Each(needs) => needs.iter().all(|need| need.may_hold(sketch)),
            Need::Any(needs) => needs.iter().any(|need| need.may_hold(sketch)),
        }
    }
}

/// The only need, or all of them together; `None` for none.
fn one_or(mut needs: Vec<Need>, together: fn(Vec<Need>) -> Need) -> Option<Need> {
    if needs.len() > 1 {
        Some(together(needs))
    } else {
        needs.pop()
    }
}

/// Reads an expression.
struct Reader<'a> {
    /// The runs that may directly precede what is read next.
    runs: Vec<Vec<u8>>,
    needs: Vec<Need>,
    pieces: &'a mut usize,
    relies_on_letters: &'a mut bool,
}

impl<'a> Reader<'a> {
    fn new(pieces: &'a mut usize, relies_on_letters: &'a mut bool) -> Reader<'a> {
        Reader {
            runs: vec![Vec::new()],
            needs: Vec::new(),
            pieces,
            relies_on_letters,
        }
    }

    /// All needs; `None` if there are none, or if the expression was too much to read.
    fn finish(mut self) -> Option<Need> {
        self.gap();
        if *self.pieces > PIECES_MAX {
            return None;
        }
        one_or(self.needs, Need::Each)
    }

    fn read(&mut self, expression: &Hir) {
        *self.pieces += 1;
        if *self.pieces > PIECES_MAX {
            return;
        }
        match expression.kind() {
            HirKind::Concat(parts) => parts.iter().for_each(|part| self.read(part)),
            HirKind::Capture(group) => self.read(&group.sub),
            HirKind::Repetition(repetition) if repetition.min > 0 => self.repeated(repetition),
            HirKind::Alternation(branches) => match self.exact(expression) {
                Some(texts) => self.append(&texts),
                None => self.branches(branches),
            },
            _ => match self.exact(expression) {
                Some(texts) => self.append(&texts),
                None => self.gap(),
            },
        }
    }

    fn repeated(&mut self, repetition: &Repetition) {
        let times = repetition.min.min(REPEATS_MAX);
        for _ in 0..times {
            self.read(&repetition.sub);
        }
        if repetition.max != Some(times) {
            self.gap();
        }
    }

    fn branches(&mut self, branches: &[Hir]) {
        self.gap();
        let needs: Option<Vec<Need>> = branches
            .iter()
            .map(|branch| {
                let mut reader = Reader::new(self.pieces, self.relies_on_letters);
                reader.read(branch);
                reader.finish()
            })
            .collect();
        self.needs
            .extend(needs.and_then(|needs| one_or(needs, Need::Any)));
    }

    /// Puts one of these texts behind each run. If that is too much, only the ends of the runs are kept.
    fn append(&mut self, texts: &[Vec<u8>]) {
        if self.runs.len() * texts.len() > RUNS_MAX {
            self.settle();
            let tail = |run: &Vec<u8>| {
                run.get(run.len().saturating_sub(2)..)
                    .unwrap_or(run)
                    .to_vec()
            };
            self.runs = self.runs.iter().map(tail).collect();
            self.runs.sort_unstable();
            self.runs.dedup();
        }
        if self.runs.len() * texts.len() > RUNS_MAX {
            self.runs = vec![Vec::new()];
        }
        self.runs = joined(&self.runs, texts);
    }

    /// Ends the runs: anything may follow.
    fn gap(&mut self) {
        self.settle();
        self.runs = vec![Vec::new()];
    }

    /// Writes down what one of the runs needs.
    fn settle(&mut self) {
        let triples: Vec<Need> = self.runs.iter().filter_map(|run| triples(run)).collect();
        if triples.len() == self.runs.len() {
            self.needs.extend(one_or(triples, Need::Any));
        }
    }

    /// All texts that an expression matches, if they are few.
    fn exact(&mut self, expression: &Hir) -> Option<Vec<Vec<u8>>> {
        *self.pieces += 1;
        if *self.pieces > PIECES_MAX {
            return None;
        }
        let texts = match expression.kind() {
            HirKind::Empty | HirKind::Look(_) => vec![Vec::new()],
            HirKind::Literal(text) => vec![text.0.to_ascii_lowercase()],
            HirKind::Class(class) => self.characters(class)?,
            HirKind::Capture(group) => self.exact(&group.sub)?,
            HirKind::Repetition(repetition) => self.exact_repeated(repetition)?,
            HirKind::Concat(parts) => {
                let mut texts = vec![Vec::new()];
                for part in parts {
                    let next = self.exact(part)?;
                    if texts.len() * next.len() > RUNS_MAX {
                        return None;
                    }
                    texts = joined(&texts, &next);
                }
                texts
            }
            HirKind::Alternation(branches) => {
                let mut texts = Vec::new();
                for branch in branches {
                    texts.extend(self.exact(branch)?);
                }
                texts
            }
        };
        few(texts, RUNS_MAX)
    }

    fn exact_repeated(&mut self, repetition: &Repetition) -> Option<Vec<Vec<u8>>> {
        if (repetition.min, repetition.max) != (0, Some(1)) {
            return None;
        }
        let mut texts = self.exact(&repetition.sub)?;
        texts.push(Vec::new());
        Some(texts)
    }

    /// The characters of a small class. The other forms of `s` and `k` are left out, and that is noted.
    fn characters(&mut self, class: &Class) -> Option<Vec<Vec<u8>>> {
        let texts: Vec<Vec<u8>> = match class {
            Class::Unicode(class) => {
                let count = class.iter().map(|range| range.len()).sum::<usize>();
                let all = class.iter().flat_map(|range| range.start()..=range.end());
                (count <= CLASS_MAX).then(|| all.map(lower_text).collect())?
            }
            Class::Bytes(class) => {
                let count = class.iter().map(|range| range.len()).sum::<usize>();
                let all = class.iter().flat_map(|range| range.start()..=range.end());
                (count <= CLASS_MAX)
                    .then(|| all.map(|byte| vec![byte.to_ascii_lowercase()]).collect())?
            }
        };
        let mut texts = few(texts, CLASS_MAX)?;
        for (plain, odd) in [(&b"s"[..], LONG_S), (b"k", KELVIN)] {
            if texts.iter().any(|text| text == plain) {
                let before = texts.len();
                texts.retain(|text| text != odd.as_bytes());
                *self.relies_on_letters |= texts.len() < before;
            }
        }
        Some(texts)
    }
}

fn lower_text(character: char) -> Vec<u8> {
    let mut buffer = [0; 4];
    let text = character.encode_utf8(&mut buffer);
    text.as_bytes().to_ascii_lowercase()
}

/// Drops texts that are there twice; `None` if none or too many are left.
fn few(mut texts: Vec<Vec<u8>>, most: usize) -> Option<Vec<Vec<u8>>> {
    texts.sort_unstable();
    texts.dedup();
    (1..=most).contains(&texts.len()).then_some(texts)
}

fn joined(beginnings: &[Vec<u8>], ends: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let pairs = beginnings
        .iter()
        .flat_map(|beginning| ends.iter().map(move |end| (beginning, end)));
    pairs
        .map(|(beginning, end)| [beginning.as_slice(), end].concat())
        .collect()
}

/// What one run needs; `None` if it is too short to need anything.
fn triples(run: &[u8]) -> Option<Need> {
    let mut triples: Vec<u32> = run
        .windows(3)
        .filter_map(|three| three.try_into().ok().map(triple))
        .collect();
    triples.sort_unstable();
    triples.dedup();
    (!triples.is_empty()).then_some(Need::Triples(triples))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search_memory::sketch::{SketchTable, learn};

    fn excludes(text: &str, ignores_case: bool, content: &str) -> Option<bool> {
        let needs = Needs::of(&[text], ignores_case, 100)?;
        let (facts, sketch) = learn(content.as_bytes(), false, &mut SketchTable::default());
        Some(needs.exclude(facts.has_odd_letters, &sketch))
    }

    #[test]
    fn expressions_without_a_run_of_three_exclude_nothing() {
        for text in [
            "", "ab", "a.b.c", r"\w+", "[a-z]{5}", "abc|", "(abc)?", "a*", "^$", "abc|xy",
        ] {
            assert_eq!(Needs::of(&[text], false, 100), None, "{text}");
        }
        assert_eq!(Needs::of(&["abcdef", "x"], false, 100), None);
    }

    #[test]
    fn what_is_needed_is_found_and_what_is_absent_excludes() {
        for (text, with, without) in [
            ("needle", "a needle here", "a haystack only"),
            (r"fn\s+main\(", "fn  main()", "fn minor()"),
            ("colou?r_of", "color_of", "cooler_of"),
            ("colou?r_of", "colour_of", "cooler_of"),
            ("(alpha|omega)_value", "omega_value", "gamma_volume"),
            ("alpha.*omega", "alpha to omega", "alpha to gamma"),
            ("(?:alph.|omeg.)x", "omegaax", "nothing of it"),
            (r"\bTODO\b", "// TODO: x", "// to do"),
            ("x{3}yz", "xxxyz", "xx yz"),
            ("(abc){2,}", "abcabc", "acb acb"),
            ("v[0-9]beta", "v7beta", "version beta"),
            ("é1é", "é1é", "e1e"),
            ("[ab]1[cd]2[ef]3[gh]4[ij]5", "a1d2e3h4i5", "a1b2c3d4"),
        ] {
            assert_eq!(excludes(text, false, with), Some(false), "{text} in {with}");
            assert_eq!(
                excludes(text, false, without),
                Some(true),
                "{text} in {without}"
            );
        }
    }

    #[test]
    fn case_never_excludes_and_other_forms_of_letters_are_kept() {
        assert_eq!(excludes("Needle", false, "NEEDLE"), Some(false));
        assert_eq!(excludes("needle", true, "NEEDLE"), Some(false));
        assert_eq!(excludes("kiss_disk", true, "haystack"), Some(true));
        assert_eq!(
            excludes("kiss_disk", true, "\u{212A}i\u{17F}s_di\u{17F}k"),
            Some(false)
        );
        assert_eq!(
            excludes("kiss_disk", false, "\u{212A}i\u{17F}s_di\u{17F}k"),
            Some(true)
        );
        assert_eq!(excludes("straße", true, "STRA\u{1E9E}E"), Some(false));
    }

    #[test]
    fn expressions_that_unfold_to_very_much_are_given_up() {
        let deep = (0..60).fold("(?:ab|c.)".to_owned(), |inner, _| {
            format!("(?:{inner}){{3}}")
        });
        assert_eq!(Needs::of(&[&deep], false, 200), None);
    }
}
