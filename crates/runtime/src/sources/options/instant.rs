//! When does `modifiedAfter` begin? A time of which everybody knows the zone.

use chrono::{NaiveDate, NaiveDateTime, NaiveTime};

use super::values::Values;
use crate::error::{Error, ErrorKind, Result};

/// Takes the option `name` as milliseconds since 1970.
pub(super) fn option(values: &mut Values<'_>, name: &str, written: &str) -> Result<Option<i64>> {
    let Some(text) = values.text(name) else { return Ok(None) };
    milliseconds(&text).map(Some).ok_or_else(|| {
        Error::new(
            ErrorKind::Definition,
            format!("{written} must be an instant with its zone, it is `{text}`"),
        )
        .help("write 2025-01-01T00:00:00Z, 2025-01-01T00:00:00.000+02:00 or 2025-01-01 00:00:00.000000 UTC+0")
    })
}

fn milliseconds(text: &str) -> Option<i64> {
    let text = text.trim();
    let (time, offset) = zone(text)?;
    let time = time.trim_end();
    let formats = ["%Y-%m-%dT%H:%M:%S%.f", "%Y-%m-%d %H:%M:%S%.f", "%Y-%m-%dT%H:%M", "%Y-%m-%d %H:%M"];
    let at = formats.iter().find_map(|format| NaiveDateTime::parse_from_str(time, format).ok());
    let at = at.or_else(|| {
        NaiveDate::parse_from_str(time, "%Y-%m-%d").ok().map(|day| day.and_time(NaiveTime::MIN))
    })?;
    Some(at.and_utc().timestamp_millis() - offset)
}

/// The time before the zone, and how much later clocks of that zone are, in milliseconds.
fn zone(text: &str) -> Option<(&str, i64)> {
    if let Some(time) = text.strip_suffix(['Z', 'z']) {
        return Some((time, 0));
    }
    let named = ["UTC", "GMT"].iter().find_map(|name| text.rsplit_once(name));
    if let Some((time, offset)) = named {
        return Some((time, if offset.is_empty() { 0 } else { shift(offset)? }));
    }
    // The day has minus signs of its own, so the zone's must come behind the time.
    let colon = text.find(':')?;
    let sign = text.get(colon..)?.rfind(['+', '-'])? + colon;
    Some((text.get(..sign)?, shift(text.get(sign..)?)?))
}

/// `+2`, `+02`, `+0200`, `-02:30`.
fn shift(text: &str) -> Option<i64> {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, text.strip_prefix('+')?),
    };
    let (hours, minutes) = match digits.split_once(':') {
        Some(parts) => parts,
        None if digits.len() > 2 => digits.split_at_checked(digits.len() - 2)?,
        None => (digits, "0"),
    };
    let part = |text: &str, limit: i64| -> Option<i64> {
        let all_digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        all_digits.then(|| text.parse::<i64>().ok()).flatten().filter(|n| *n <= limit)
    };
    Some(sign * (part(hours, 18)? * 60 + part(minutes, 59)?) * 60_000)
}

#[cfg(test)]
mod tests {
    use super::milliseconds;

    #[test]
    fn a21_instants_have_a_zone() {
        let new_year = 1_735_689_600_000;
        for text in [
            "2025-01-01T00:00:00Z",
            "2025-01-01T00:00:00.000Z",
            "2025-01-01 00:00:00.000000 UTC+0",
            "2025-01-01 00:00:00 UTC",
            "2025-01-01T02:00:00+02:00",
            "2025-01-01T02:00:00+0200",
            "2024-12-31T21:30:00.000 GMT-02:30",
            "2025-01-01T00:00Z",
            "2025-01-01 UTC",
            " 2025-01-01T00:00:00+00:00 ",
        ] {
            assert_eq!(milliseconds(text), Some(new_year), "{text}");
        }
        assert_eq!(milliseconds("2024-12-31T23:59:59.999Z"), Some(new_year - 1));
        for text in [
            "2025-01-01T00:00:00.000",
            "2025-01-01",
            "soon",
            "",
            "2025-01-01T00:00:00+99:00",
            "Z",
            "UTC+",
            "2025-13-01Z",
        ] {
            assert_eq!(milliseconds(text), None, "{text}");
        }
    }
}
