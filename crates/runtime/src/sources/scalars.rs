//! How does a text become a number, an instant or a day without a digit lost?
//!
//! Decoders cut what does not fit: 1.9 becomes the integer 1, a timestamp loses what is finer than its unit. Since such a
//! value may be the sequence that decides, a text is taken exactly or refused.

use arrow_array::types::Date32Type;
use arrow_cast::parse::{Parser, string_to_datetime};
use chrono::{DateTime, FixedOffset, NaiveDate, NaiveDateTime, NaiveTime, Utc};

use crate::error::{Error, ErrorKind, Result as RuntimeResult};

/// How days and instants are written, where it is not ISO 8601; patterns of `chrono`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Formats {
    pub(crate) date: Option<String>,
    pub(crate) timestamp: Option<String>,
}

type Exactly<T> = Result<T, String>;

/// A decimal number's digits times ten to the power of `exponent`.
struct Digits<'a> {
    negative: bool,
    before: &'a str,
    behind: &'a str,
    exponent: i64,
}

impl<'a> Digits<'a> {
    fn of(text: &'a str) -> Option<Self> {
        let text = text.trim_ascii();
        let (negative, text) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text.strip_prefix('+').unwrap_or(text)),
        };
        let (mantissa, exponent) = match text.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?.into()),
            None => (text, 0),
        };
        let (before, behind) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let all_digits = |part: &str| part.bytes().all(|b| b.is_ascii_digit());
        let some = !before.is_empty() || !behind.is_empty();
        (some && all_digits(before) && all_digits(behind)).then_some(Self {
            negative,
            before,
            behind,
            exponent,
        })
    }
}

/// The number times ten to the power of `scale`, if that is whole.
pub(crate) fn scaled(text: &str, scale: i8) -> Exactly<i128> {
    let digits = Digits::of(text).ok_or("it is no number")?;
    let behind = i64::try_from(digits.behind.len()).unwrap_or(i64::MAX);
    // So many zeros are appended; so many digits go where it is negative.
    let shift = digits.exponent.saturating_sub(behind).saturating_add(scale.into());
    let all = format!("{}{}", digits.before, digits.behind);
    let significant = all.trim_start_matches('0');
    let dropped = usize::try_from(shift.saturating_neg().max(0)).unwrap_or(usize::MAX);
    let kept = significant.len().saturating_sub(dropped);
    let (kept, lost) = significant.split_at_checked(kept).unwrap_or((significant, ""));
    if lost.bytes().any(|digit| digit != b'0') {
        return Err(format!("{} digits behind the point are kept", scale.max(0)));
    }
    if kept.is_empty() {
        return Ok(0);
    }
    let zeros = usize::try_from(shift.max(0)).unwrap_or(usize::MAX);
    if kept.len().saturating_add(zeros) > 39 {
        return Err("it is too large".to_owned());
    }
    let whole: i128 = format!("{kept}{}", "0".repeat(zeros)).parse().map_err(|_| "it is too large")?;
    Ok(if digits.negative { -whole } else { whole })
}

/// A whole number that fits `T`.
pub(crate) fn integer<T: TryFrom<i128>>(text: &str) -> Exactly<T> {
    T::try_from(scaled(text, 0)?).map_err(|_| "it is too large".to_owned())
}

/// A decimal's unscaled value.
pub(crate) fn decimal(text: &str, precision: u8, scale: i8) -> Exactly<i128> {
    let value = scaled(text, scale)?;
    let limit = 10_i128.checked_pow(precision.into()).unwrap_or(i128::MAX);
    if value.abs() < limit { Ok(value) } else { Err("it has too many digits".to_owned()) }
}

/// A float; a number that is too large for one is no infinity.
pub(crate) fn float(text: &str) -> Exactly<f64> {
    let text = text.trim_ascii();
    match text {
        "NaN" => return Ok(f64::NAN),
        "Infinity" | "Inf" | "+Infinity" => return Ok(f64::INFINITY),
        "-Infinity" | "-Inf" => return Ok(f64::NEG_INFINITY),
        _ => {}
    }
    Digits::of(text).ok_or("it is no number")?;
    let value: f64 = text.parse().map_err(|_| "it is no number")?;
    if value.is_finite() { Ok(value) } else { Err("it is too large".to_owned()) }
}

/// A float of 32 bits, rounded once.
pub(crate) fn small_float(text: &str) -> Exactly<f32> {
    if !float(text)?.is_finite() {
        return text.trim_ascii().parse().map_err(|_| "it is no number".to_owned());
    }
    let value: f32 = text.trim_ascii().parse().map_err(|_| "it is no number")?;
    if value.is_finite() { Ok(value) } else { Err("it is too large".to_owned()) }
}

/// True or false, in words.
pub(crate) fn boolean(text: &str) -> Exactly<bool> {
    let text = text.trim_ascii();
    if text.eq_ignore_ascii_case("true") {
        Ok(true)
    } else if text.eq_ignore_ascii_case("false") {
        Ok(false)
    } else {
        Err("it is neither true nor false".to_owned())
    }
}

/// Days since 1970.
pub(crate) fn date(text: &str, formats: &Formats) -> Exactly<i32> {
    let text = text.trim_ascii();
    if let Some(format) = &formats.date {
        let day = NaiveDate::parse_from_str(text, format)
            .map_err(|e| format!("it is no date of the dateFormat: {e}"))?;
        return Ok(Date32Type::from_naive_date(day));
    }
    let refused = || "it is no date, write 2026-03-01".to_owned();
    if text.len() > 10 && text.contains(':') {
        let instant = micros(text, &Formats::default())?;
        return match instant.rem_euclid(86_400_000_000) {
            0 => i32::try_from(instant.div_euclid(86_400_000_000)).map_err(|_| refused()),
            _ => Err("it has a time of day, which a date does not keep".to_owned()),
        };
    }
    Date32Type::parse(text).ok_or_else(refused)
}

/// Where a text says that its time is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Zone {
    /// It does not say.
    Unsaid,
    Utc,
    Elsewhere,
}

/// Microseconds since 1970. An instant without a zone is one of UTC.
pub(crate) fn micros(text: &str, formats: &Formats) -> Exactly<i64> {
    moment(text, formats).map(|(micros, _)| micros)
}

/// Microseconds from the beginning of 1970 to a time on the clock, wherever that hangs. To whom it hangs elsewhere than in
/// UTC, that time is another than the one that would be kept.
pub(crate) fn local_micros(text: &str, formats: &Formats) -> Exactly<i64> {
    match moment(text, formats)? {
        (micros, Zone::Unsaid | Zone::Utc) => Ok(micros),
        (_, Zone::Elsewhere) => Err("it has a zone, which a TIMESTAMP_NTZ does not keep".to_owned()),
    }
}

/// Microseconds since 1970, and the zone that the text names.
pub(crate) fn moment(text: &str, formats: &Formats) -> Exactly<(i64, Zone)> {
    let text = text.trim_ascii();
    if let Some(format) = &formats.timestamp {
        if let Ok(at) = DateTime::parse_from_str(text, format) {
            let zone = if at.offset().local_minus_utc() == 0 { Zone::Utc } else { Zone::Elsewhere };
            return Ok((whole_micros(at.naive_utc())?, zone));
        }
        let at = NaiveDateTime::parse_from_str(text, format)
            .or_else(|_| NaiveDate::parse_from_str(text, format).map(|day| day.and_time(NaiveTime::MIN)))
            .map_err(|e| format!("it is no instant of the timestampFormat: {e}"))?;
        return Ok((whole_micros(at)?, Zone::Unsaid));
    }
    // A bare number has no unit that everybody would guess.
    if Digits::of(text).is_some() {
        return Err("write instants as text, 2026-03-01T12:00:00Z".to_owned());
    }
    if let Some((_, fraction)) = text.split_once('.') {
        let digits = fraction.bytes().take_while(u8::is_ascii_digit).count();
        if fraction.get(6..digits).unwrap_or_default().bytes().any(|digit| digit != b'0') {
            return Err("6 digits behind the point are kept".to_owned());
        }
    }
    let at = string_to_datetime(&Utc, text).map_err(|e| {
        let why = e.to_string();
        why.strip_prefix("Parser error: ").map_or(why.clone(), str::to_owned)
    })?;
    Ok((whole_micros(at.naive_utc())?, zone_of(text, at)))
}

/// The zone of a text that is this instant where it names none but UTC's. One that names a zone is the same instant wherever
/// it is read; that tells also the names that zones have.
fn zone_of(text: &str, at: DateTime<Utc>) -> Zone {
    let is_clock = |byte: u8| byte.is_ascii_digit() || matches!(byte, b':' | b'.' | b' ' | b'T' | b't');
    let behind_day = text.get(10..).unwrap_or_default();
    let elsewhere = || FixedOffset::east_opt(3600).map(|zone| string_to_datetime(&zone, text));
    if behind_day.bytes().all(is_clock) || elsewhere().is_none_or(|read| read.is_ok_and(|read| read != at)) {
        return Zone::Unsaid;
    }
    // Zones have names that end in Z, too.
    let names_utc = |rest: &str| rest.ends_with(|c: char| c.is_ascii_digit() || c == ' ');
    let is_utc = ["UTC", "GMT", "+00:00", "-00:00", "+0000", "+00"].iter().any(|utc| text.ends_with(utc))
        || text.strip_suffix(['Z', 'z']).is_some_and(names_utc);
    if is_utc { Zone::Utc } else { Zone::Elsewhere }
}

fn whole_micros(at: NaiveDateTime) -> Exactly<i64> {
    let at = at.and_utc();
    if !at.timestamp_subsec_nanos().is_multiple_of(1000) {
        return Err("6 digits behind the point are kept".to_owned());
    }
    Ok(at.timestamp_micros())
}

/// The pattern that Spark would call `pattern`, for `chrono`.
///
/// # Errors
/// `Definition` for a letter that has no counterpart.
pub(crate) fn pattern(option: &str, pattern: &str) -> RuntimeResult<String> {
    let mut translated = String::new();
    let mut letters = pattern.chars().peekable();
    while let Some(letter) = letters.next() {
        if letter == '\'' {
            let mut literal: String = letters.by_ref().take_while(|&c| c != '\'').collect();
            if literal.is_empty() {
                literal.push('\'');
            }
            translated.push_str(&literal.replace('%', "%%"));
            continue;
        }
        if !letter.is_ascii_alphabetic() {
            translated.push_str(&match letter {
                '%' => "%%".to_owned(),
                // A part that may be missing: only fractions and zones are, and those are read where they stand.
                '[' | ']' => String::new(),
                other => other.to_string(),
            });
            continue;
        }
        let mut count = 1;
        while letters.next_if_eq(&letter).is_some() {
            count += 1;
        }
        let part = match (letter, count) {
            ('y' | 'u', 1 | 4) => "%Y",
            ('y' | 'u', 2) => "%y",
            ('M' | 'L', 1 | 2) => "%m",
            ('M' | 'L', 3) => "%b",
            ('M' | 'L', 4) => "%B",
            ('d', 1 | 2) => "%d",
            ('D', 1..=3) => "%j",
            ('E', 1..=3) => "%a",
            ('E', 4) => "%A",
            ('H', 1 | 2) => "%H",
            ('h', 1 | 2) => "%I",
            ('m', 1 | 2) => "%M",
            ('s', 1 | 2) => "%S",
            ('a', 1) => "%p",
            ('S', 1..=9) => "%f",
            ('X' | 'x', 1..=3) | ('Z', 1..=5) => "%#z",
            _ => {
                return Err(Error::new(ErrorKind::Definition, "a pattern has a part that is not understood")
                    .with("option", option)
                    .with("pattern", pattern)
                    .with("part", letter.to_string().repeat(count))
                    .help("known are y M d D E H h m s S a X, and text in 'quotes'"));
            }
        };
        // `%f` counts nanoseconds; behind a point, and only there, a fraction of a second is meant.
        if part == "%f" && translated.ends_with('.') {
            translated.pop();
            translated.push_str("%.f");
        } else if part == "%f" {
            translated.extend(["%", count.to_string().as_str(), "f"]);
        } else {
            translated.push_str(part);
        }
    }
    Ok(translated)
}

#[cfg(test)]
#[path = "scalars_tests.rs"]
mod tests;
