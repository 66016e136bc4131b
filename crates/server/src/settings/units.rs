//! Sizes and times with a unit, as people write them: `10MB`, `1GiB`, `90m`, `7d`. Without a unit they are bytes and
//! seconds.

/// The expected form of a size.
pub(super) const SIZE: &str = "a number of bytes, or one with a unit such as 10MB or 1GiB";
/// The expected form of a time.
pub(super) const TIME: &str = "a number of seconds, or one with s, m, h or d such as 90m or 7d";

const SIZES: [(&str, u64); 10] = [
    ("", 1),
    ("B", 1),
    ("KB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("TB", 1_000_000_000_000),
    ("KIB", 1 << 10),
    ("MIB", 1 << 20),
    ("GIB", 1 << 30),
    ("TIB", 1 << 40),
];

const TIMES: [(&str, u64); 5] = [("", 1), ("S", 1), ("M", 60), ("H", 3_600), ("D", 86_400)];

/// Reads a size.
pub(super) fn bytes(text: &str) -> Option<u64> {
    with_unit(text, &SIZES)
}

/// Reads a time, in seconds.
pub(super) fn seconds(text: &str) -> Option<u64> {
    with_unit(text, &TIMES)
}

/// A whole number and one of these units, in any case and with at most a space between.
fn with_unit(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let end = text.find(|character: char| !character.is_ascii_digit());
    let (number, unit) = text.split_at(end.unwrap_or(text.len()));
    let unit = unit.strip_prefix(' ').unwrap_or(unit).to_ascii_uppercase();
    let (_, factor) = units.iter().find(|(name, _)| *name == unit)?;
    number.parse::<u64>().ok()?.checked_mul(*factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_decimal_and_binary_units() {
        assert_eq!(bytes("1048576"), Some(1_048_576));
        assert_eq!(bytes("10MB"), Some(10_000_000));
        assert_eq!(bytes("1 gib"), Some(1 << 30));
        assert_eq!(bytes("4kB"), Some(4_000));
        for wrong in [
            "",
            "MB",
            "1.5MB",
            "-1",
            "10 M B",
            "10M",
            "18446744073709551615KB",
        ] {
            assert_eq!(bytes(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn times_have_units_up_to_days() {
        assert_eq!(seconds("90"), Some(90));
        assert_eq!(seconds("90m"), Some(5_400));
        assert_eq!(seconds("7d"), Some(604_800));
        for wrong in ["", "d", "7w", "1h30m"] {
            assert_eq!(seconds(wrong), None, "{wrong}");
        }
    }
}
