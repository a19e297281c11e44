//! How is a moment written, and which number is it?
//!
//! Invariant: a moment has one number, however its offset is written, and `print_time` writes it so that `parse_time` reads
//! it back. The calendar is the Gregorian one at all times, as in every table format.

/// Whether times are moments or what a clock on the wall shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Zone {
    /// A wall clock's reading: no offset is written, none is known.
    None,
    /// A moment: written in UTC, or with the offset at which it was read.
    Utc,
}

const DAY: i64 = 86_400;

/// Units since 1970 of `2024-01-31T23:59:59.123Z`; `digits` decimal digits of a second are one unit.
pub(super) fn parse_time(text: &str, digits: u8, zone: Zone) -> Option<i64> {
    let (date, time) = text.split_once('T')?;
    let (time, offset) = match zone {
        Zone::None => (time, 0),
        Zone::Utc => split_offset(time)?,
    };
    let (clock, fraction) = time.split_once('.').unwrap_or((time, ""));
    let days = days_since_1970(numbers(date, '-')?)?;
    let [hour, minute, second] = numbers(clock, ':')?;
    if !(hour < 24 && minute < 60 && second < 60) || fraction.len() > usize::from(digits) {
        return None;
    }
    let fraction = format!("{fraction:0<width$}", width = usize::from(digits));
    let seconds = days * DAY + hour * 3600 + minute * 60 + second - offset;
    seconds.checked_mul(10_i64.pow(digits.into()))?.checked_add(number(&fraction)?)
}

/// Writes the moment without trailing zeros of a fraction.
pub(super) fn print_time(units: i64, digits: u8, zone: Zone) -> String {
    let per_second = 10_i64.pow(digits.into());
    let (seconds, fraction) = (units.div_euclid(per_second), units.rem_euclid(per_second));
    let (year, month, day) = date_of(seconds.div_euclid(DAY));
    let of_day = seconds.rem_euclid(DAY);
    let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
    let fraction = format!(".{fraction:0>width$}", width = usize::from(digits));
    let fraction = fraction.trim_end_matches('0').trim_end_matches('.');
    let zone = if zone == Zone::Utc { "Z" } else { "" };
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}{fraction}{zone}")
}

/// The time, and how many seconds its clock is ahead of UTC.
fn split_offset(time: &str) -> Option<(&str, i64)> {
    if let Some(time) = time.strip_suffix('Z') {
        return Some((time, 0));
    }
    let at = time.rfind(['+', '-'])?;
    let (time, offset) = time.split_at_checked(at)?;
    let (sign, offset) = match offset.strip_prefix('+') {
        Some(offset) => (1, offset),
        None => (-1, offset.strip_prefix('-')?),
    };
    let [hours, minutes] = numbers(offset, ':')?;
    Some((time, sign * (hours * 3600 + minutes * 60)))
}

fn number(digits: &str) -> Option<i64> {
    if digits.bytes().all(|byte| byte.is_ascii_digit()) { digits.parse().ok() } else { None }
}

fn numbers<const N: usize>(text: &str, separator: char) -> Option<[i64; N]> {
    text.split(separator).map(number).collect::<Option<Vec<_>>>()?.try_into().ok()
}

/// Days of 400 years.
const ERA: i64 = 146_097;

/// The usual count in years that start in March, so that a leap day is the last of its year.
fn days_since_1970([year, month, day]: [i64; 3]) -> Option<i64> {
    let year = if month > 2 { year } else { year - 1 };
    let of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let days = year.div_euclid(400) * ERA + of_era * 365 + of_era / 4 - of_era / 100 + day_of_year - 719_468;
    // What is no day of its month comes back as another one.
    let (_, same_month, same_day) = date_of(days);
    (same_month == month && same_day == day).then_some(days)
}

fn date_of(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let (era, of_era) = (days.div_euclid(ERA), days.rem_euclid(ERA));
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let day_of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = era * 400 + year_of_era + i64::from(month <= 2);
    (year, month, day_of_year - (153 * shifted + 2) / 5 + 1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn known_moments() {
        let cases = [
            ("1970-01-01T00:00:00Z", 0),
            ("1969-12-31T23:59:59.5Z", -500_000),
            ("0001-01-01T00:00:00Z", -62_135_596_800_000_000),
            ("2024-02-29T12:00:00.000001Z", 1_709_208_000_000_001),
            ("2100-03-01T00:00:00Z", 4_107_542_400_000_000),
        ];
        for (text, units) in cases {
            assert_eq!(parse_time(text, 6, Zone::Utc), Some(units), "{text}");
            assert_eq!(print_time(units, 6, Zone::Utc), text);
        }
        let summer = parse_time("2024-10-27T02:30:00+02:00", 6, Zone::Utc);
        assert_eq!(summer, parse_time("2024-10-26T22:30:00-02:00", 6, Zone::Utc));
        assert_eq!(summer, parse_time("2024-10-27T00:30:00Z", 6, Zone::Utc));
        assert_eq!(print_time(0, 3, Zone::None), "1970-01-01T00:00:00");
    }

    #[test]
    fn what_is_no_time_is_refused() {
        for wrong in [
            "2023-02-29T00:00:00Z",
            "2024-13-01T00:00:00Z",
            "2024-00-01T00:00:00Z",
            "2024-01-00T00:00:00Z",
            "2024-01-01T24:00:00Z",
            "2024-01-01T00:00:00",
            "2024-01-01",
            "2024-01-01T00:00:00.1234567Z",
            "2024-01-01T00:00:00+1Z",
            "",
        ] {
            assert_eq!(parse_time(wrong, 6, Zone::Utc), None, "{wrong}");
        }
        assert_eq!(parse_time("2024-01-01T00:00:00Z", 6, Zone::None), None);
    }

    proptest! {
        #[test]
        fn times_read_what_they_print(units in 0..9_000_000_000_000_000_000_i64) {
            for (digits, zone) in [(9, Zone::Utc), (9, Zone::None)] {
                prop_assert_eq!(parse_time(&print_time(units, digits, zone), digits, zone), Some(units));
            }
        }
    }
}
