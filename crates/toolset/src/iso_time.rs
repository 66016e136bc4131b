//! Times as every set tells them: ISO 8601 in UTC.

use std::ops::Range;

use jiff::Timestamp;
use ops::Time;
use serde::Serializer;

/// The last second that the library for times knows, late in the year 9999.
const LAST: i64 = 253_402_207_200;
const SECONDS_OF_DAY: u64 = 24 * 60 * 60;

/// Writes a file's time as precisely as the file system keeps it.
pub(crate) fn iso(time: Time) -> String {
    match IsoTime::of(time) {
        Some(text) => text.as_str().to_owned(),
        None => unusual(time),
    }
}

/// A time before 1970, after the last one, or with a nonsensical part of a second.
fn unusual(time: Time) -> String {
    let moment = Timestamp::new(time.seconds, i32::try_from(time.nanoseconds).unwrap_or(0));
    // Only a damaged file system has a time before the year -9999 or after 9999: the nearest valid time is shown.
    let end = if time.seconds < 0 {
        Timestamp::MIN
    } else {
        Timestamp::MAX
    };
    moment.unwrap_or(end).to_string()
}

/// A time as text, without memory of its own: lists have a time for each of many entries.
struct IsoTime {
    text: [u8; 30],
    length: usize,
}

impl IsoTime {
    /// A time between 1970 and the last one.
    fn of(time: Time) -> Option<IsoTime> {
        if !(0..=LAST).contains(&time.seconds) || time.nanoseconds > 999_999_999 {
            return None;
        }
        let seconds = u64::try_from(time.seconds).ok()?;
        let (year, month, day) = date(seconds / SECONDS_OF_DAY);
        let mut iso = IsoTime {
            text: *b"0000-00-00T00:00:00.000000000Z",
            length: 30,
        };
        let of_day = seconds % SECONDS_OF_DAY;
        iso.put(0..4, year);
        iso.put(5..7, month);
        iso.put(8..10, day);
        iso.put(11..13, of_day / 3600);
        iso.put(14..16, of_day / 60 % 60);
        iso.put(17..19, of_day % 60);
        iso.put(20..29, time.nanoseconds.into());
        iso.end();
        Some(iso)
    }

    /// Writes a number with as many digits as there is room for.
    fn put(&mut self, room: Range<usize>, mut number: u64) {
        let digits = self.text.get_mut(room).unwrap_or_default();
        for digit in digits.iter_mut().rev() {
            *digit = b'0' + (number % 10) as u8;
            number /= 10;
        }
    }

    /// Leaves out the zeros at the end of the part of a second.
    fn end(&mut self) {
        let fraction = self.text.get(19..29).unwrap_or_default();
        let zeros = fraction.iter().rev().take_while(|byte| **byte == b'0');
        let kept = match fraction.len() - zeros.count() {
            // Only the point is left.
            1 => 0,
            kept => kept,
        };
        if let Some(end) = self.text.get_mut(19 + kept) {
            *end = b'Z';
        }
        self.length = 20 + kept;
    }

    fn as_str(&self) -> &str {
        let text = self.text.get(..self.length).unwrap_or_default();
        // It is all digits and marks.
        std::str::from_utf8(text).unwrap_or_default()
    }
}

/// The year, month and day that begins so many days after the epoch. Years are counted from March, so that the day which
/// some have more is their last.
fn date(days: u64) -> (u64, u64, u64) {
    // From the first of March of the year 0 on; 400 years have 146,097 days.
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let leap_days = day_of_era / 1460 + day_of_era / 146_096 - day_of_era / 36_524;
    let year_of_era = (day_of_era - leap_days) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = (month_from_march + 2) % 12 + 1;
    let year = 400 * era + year_of_era + u64::from(month <= 2);
    (year, month, day)
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
    match IsoTime::of(*time) {
        Some(text) => serializer.serialize_str(text.as_str()),
        None => serializer.serialize_str(&unusual(*time)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4096))]

        #[test]
        fn usual_times_are_written_like_all_others(
            seconds in prop_oneof![-5..LAST + 5, 0..4_000_000_000_i64],
            nanoseconds in prop_oneof![
                Just(0),
                0..1_000_000_000_u32,
                (0..1000_u32).prop_map(|milliseconds| milliseconds * 1_000_000),
            ],
        ) {
            let time = Time { seconds, nanoseconds };
            prop_assert_eq!(iso(time), unusual(time));
        }
    }

    #[test]
    fn every_day_has_its_date() {
        assert_eq!(Timestamp::MAX.as_second(), LAST);
        for day in 0..LAST / 86_400 {
            let time = Time {
                seconds: day * 86_400,
                nanoseconds: 0,
            };
            let moment = Timestamp::from_second(time.seconds).unwrap();
            let (year, month, date) = date(day as u64);
            let expected = moment.to_zoned(jiff::tz::TimeZone::UTC).date();
            let found = (year as i16, month as i8, date as i8);
            assert_eq!(found, (expected.year(), expected.month(), expected.day()));
        }
    }

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
