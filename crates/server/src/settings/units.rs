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

/// A size in the largest unit that it is a whole number of, as the config file has it.
pub(crate) fn size_in_words(bytes: u64) -> String {
    let whole = SIZES
        .iter()
        .filter(|(_, factor)| bytes >= *factor && bytes.is_multiple_of(*factor));
    match whole.max_by_key(|(_, factor)| *factor) {
        Some((unit, factor)) if *factor > 1 => {
            let unit = unit.replace("IB", "iB");
            format!("{} {unit}", bytes / factor)
        }
        _ => format!("{bytes} bytes"),
    }
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
    fn sizes_are_told_in_their_largest_unit() {
        for (size, told) in [
            (0, "0 bytes"),
            (1_000, "1 KB"),
            (1_048_576, "1 MiB"),
            (1_048_577, "1048577 bytes"),
            (2_000_000, "2 MB"),
            (10 << 30, "10 GiB"),
        ] {
            assert_eq!(size_in_words(size), told);
            assert_eq!(bytes(&told.replace("bytes", "")).unwrap_or(size), size);
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
