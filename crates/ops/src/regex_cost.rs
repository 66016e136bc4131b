//! How much work a regular expression can cause, estimated from its syntax before it is used.
//!
//! A search cannot be stopped inside the engine. In the worst case it costs the product of the text's length and of the
//! places the expression unfolds to (`[a-c]{0,200}` has 200). So the number of places is bounded, and the more places
//! there are, the shorter are the stretches of text that are searched at once.

use std::ops::RangeInclusive;

use regex_syntax::hir::{Hir, HirKind};

/// The most places an expression for lines may have, and one for paths, which are short.
pub(crate) const LINE_PLACES: u64 = 2_000;
pub(crate) const PATH_PLACES: u64 = 1_000;
/// Places times bytes that take a tenth of a second in the worst case, and a second, about.
const TENTH: u64 = 2_000_000;
const SECOND: u64 = 20_000_000;
/// How much is searched without a check of the clock, whatever the expression.
const STRETCH: RangeInclusive<u64> = 1024..=64 * 1024;
/// The longest line that is matched as a whole, whatever the expression.
const LINE: RangeInclusive<u64> = 8 * 1024..=1024 * 1024;

/// How much may be searched at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Reach {
    /// How many bytes of lines between two checks of the clock.
    pub(crate) stretch: usize,
    /// How long a line may be that is matched as a whole.
    pub(crate) line: usize,
}

impl Reach {
    /// The reach of an expression with this many places.
    pub(crate) fn of(places: u64) -> Reach {
        let within = |work: u64, bounds: RangeInclusive<u64>| {
            let bytes = (work / places.max(1)).clamp(*bounds.start(), *bounds.end());
            usize::try_from(bytes).unwrap_or(usize::MAX)
        };
        Reach {
            stretch: within(TENTH, STRETCH),
            line: within(SECOND, LINE),
        }
    }
}

/// How many places an expression unfolds to. The parser bounds its nesting, so this recursion is bounded too.
pub(crate) fn places(expression: &Hir) -> u64 {
    match expression.kind() {
        HirKind::Empty | HirKind::Look(_) => 0,
        HirKind::Class(_) => 1,
        HirKind::Literal(text) => text.0.len() as u64,
        HirKind::Capture(inner) => places(&inner.sub),
        HirKind::Repetition(inner) => {
            let times = inner.max.unwrap_or(inner.min.max(1));
            places(&inner.sub).saturating_mul(u64::from(times))
        }
        HirKind::Concat(all) | HirKind::Alternation(all) => {
            all.iter().map(places).fold(0, u64::saturating_add)
        }
    }
}

/// Refuses too many places.
pub(crate) fn check(places: u64, most: u64) -> Result<(), String> {
    if places > most {
        return Err(format!(
            "its repetitions unfold to {places} places, over the limit of {most}; use smaller counts"
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repetitions_unfold() {
        for (text, expected) in [
            ("", 0),
            ("abc", 3),
            (r"^\w+$", 1),
            ("(?:[a-c]{0,200}){0,200}x", 40_001),
            ("a{5,}", 5),
            ("(a|bc){3}", 9),
            ("((((a{99}){99}){99}){99}){99}", 9_509_900_499),
        ] {
            let expression = regex_syntax::parse(text).unwrap();
            assert_eq!(places(&expression), expected, "{text}");
        }
    }

    #[test]
    fn the_more_places_the_shorter_the_reach() {
        let plain = Reach::of(10);
        assert_eq!(plain.stretch, 64 * 1024);
        assert_eq!(plain.line, 1024 * 1024);
        let bomb = Reach::of(LINE_PLACES);
        assert_eq!(bomb.stretch, 1024);
        assert_eq!(bomb.line, 10_000);
    }
}
