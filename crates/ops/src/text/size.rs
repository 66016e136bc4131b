//! Sizes as people write them: `500B`, `1.5KB`, `1MB`.

const UNITS: [&str; 7] = ["B", "KB", "MB", "GB", "TB", "PB", "EB"];

/// Words a number of bytes: 1024-based, at most one decimal, no `.0`.
#[must_use]
pub fn human(bytes: u64) -> String {
    let mut tenths = u128::from(bytes) * 10;
    let mut unit = 1u128;
    for name in UNITS {
        tenths = (u128::from(bytes) * 10 + unit / 2) / unit;
        // What would round to 1024 of one unit is 1 of the next.
        if tenths < 10_240 {
            return worded(tenths, name);
        }
        unit *= 1024;
    }
    worded(tenths, "EB")
}

fn worded(tenths: u128, unit: &str) -> String {
    match (tenths / 10, tenths % 10) {
        (whole, 0) => format!("{whole}{unit}"),
        (whole, tenth) => format!("{whole}.{tenth}{unit}"),
    }
}

#[cfg(test)]
mod tests {
    use super::human;

    #[test]
    fn sizes_read_as_the_spec_words_them() {
        let table = [
            (0, "0B"),
            (500, "500B"),
            (1023, "1023B"),
            (1024, "1KB"),
            (1536, "1.5KB"),
            (1024 * 1024 - 1, "1MB"),
            (1024 * 1024, "1MB"),
            (5_452_595, "5.2MB"),
            (10 * 1024 * 1024, "10MB"),
            (1023 * 1024 * 1024, "1023MB"),
            (1 << 30, "1GB"),
            (1 << 40, "1TB"),
            (u64::MAX, "16EB"),
        ];
        for (bytes, words) in table {
            assert_eq!(human(bytes), words, "{bytes}");
        }
    }
}
