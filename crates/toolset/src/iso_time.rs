//! Times as every set tells them: ISO 8601 in UTC.

use jiff::Timestamp;
use ops::Time;
use serde::Serializer;

/// Writes a file's time as precisely as the file system keeps it.
pub(crate) fn iso(time: Time) -> String {
    let moment = Timestamp::new(time.seconds, i32::try_from(time.nanoseconds).unwrap_or(0));
    // Only a damaged file system has a time before the year -9999 or after 9999: the nearest valid time is shown.
    let end = if time.seconds < 0 {
        Timestamp::MIN
    } else {
        Timestamp::MAX
    };
    moment.unwrap_or(end).to_string()
}

/// Writes a time in milliseconds since the epoch, to the second.
pub(crate) fn iso_of_ms(milliseconds: u64) -> String {
    iso(Time {
        seconds: i64::try_from(milliseconds / 1000).unwrap_or(i64::MAX),
        nanoseconds: 0,
    })
}

/// Writes a time of a reply in ISO 8601.
pub(crate) fn serialize<S: Serializer>(time: &Time, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&iso(*time))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_iso_8601_in_utc() {
        let time = |seconds, nanoseconds| {
            iso(Time {
                seconds,
                nanoseconds,
            })
        };
        assert_eq!(time(0, 0), "1970-01-01T00:00:00Z");
        assert_eq!(time(1_712_763_000, 500_000_000), "2024-04-10T15:30:00.5Z");
        assert_eq!(time(-1, 0), "1969-12-31T23:59:59Z");
        assert!(time(i64::MAX, 0).starts_with("9999-"));
    }
}
