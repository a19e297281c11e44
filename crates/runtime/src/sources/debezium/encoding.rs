//! How do bytes, exact numbers and times come out of the encodings of Debezium and Kafka Connect?

use base64::{
    Engine,
    engine::{
        DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig,
        general_purpose::{STANDARD, URL_SAFE},
    },
};
use chrono::{DateTime, NaiveDate, TimeDelta};

use super::connect::Unit;

/// How the connector writes bytes: its property `binary.handling.mode`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum BinaryMode {
    /// Bytes, which the JSON converter writes as base64; or base64 itself.
    #[default]
    Base64,
    /// base64 for addresses, with or without padding.
    Base64UrlSafe,
    /// Two hexadecimal digits a byte.
    Hex,
}

/// `PostgreSQL`, whose numbers are the longest, has scales from -1000 to 16383.
const SCALES: std::ops::RangeInclusive<i32> = -1000..=16_383;

const UNPADDED: GeneralPurpose = GeneralPurpose::new(
    &base64::alphabet::URL_SAFE,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

impl BinaryMode {
    pub(super) fn decode(self, text: &str) -> Option<Vec<u8>> {
        match self {
            Self::Base64 => STANDARD.decode(text).ok(),
            Self::Base64UrlSafe => UNPADDED.decode(text).ok(),
            Self::Hex => from_hex(text),
        }
    }

    pub(super) fn encode(self, bytes: &[u8]) -> String {
        match self {
            Self::Base64 => STANDARD.encode(bytes),
            Self::Base64UrlSafe => URL_SAFE.encode(bytes),
            Self::Hex => to_hex(bytes),
        }
    }
}

pub(super) fn to_hex(bytes: &[u8]) -> String {
    let halves = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    halves.filter_map(|half| char::from_digit(u32::from(half), 16)).collect()
}

pub(super) fn from_hex(text: &str) -> Option<Vec<u8>> {
    if !text.is_ascii() || !text.len().is_multiple_of(2) {
        return None;
    }
    let pairs = text.as_bytes().chunks(2).map(|pair| {
        let digit = |at: usize| pair.get(at).and_then(|byte| char::from(*byte).to_digit(16));
        u8::try_from(digit(0)? * 16 + digit(1)?).ok()
    });
    pairs.collect()
}

/// The number that bytes stand for, big-endian two's complement, with `scale` digits behind its point. Any length; `None` for a
/// scale that no database has, which would make a number of any size out of a few bytes.
pub(super) fn decimal(bytes: &[u8], scale: i32) -> Option<String> {
    if !SCALES.contains(&scale) {
        return None;
    }
    let negative = bytes.first().is_some_and(|first| first & 0x80 != 0);
    let mut carry = negative;
    let mut magnitude: Vec<u8> = bytes.to_vec();
    if negative {
        for byte in magnitude.iter_mut().rev() {
            let (flipped, over) = (!*byte).overflowing_add(u8::from(carry));
            (*byte, carry) = (flipped, over);
        }
    }
    let digits = digits_of(&magnitude);
    let text = match usize::try_from(scale) {
        Ok(0) => digits,
        Ok(scale) => {
            let padded = format!("{digits:0>width$}", width = scale.saturating_add(1));
            let (whole, fraction) = padded.split_at(padded.len() - scale);
            format!("{whole}.{fraction}")
        }
        // A negative scale: zeros before the point.
        Err(_) if digits == "0" => digits,
        Err(_) => digits + &"0".repeat(usize::try_from(scale.unsigned_abs()).unwrap_or(0)),
    };
    Some(if negative { format!("-{text}") } else { text })
}

/// The digits of a big-endian number without sign.
fn digits_of(bytes: &[u8]) -> String {
    const BASE: u64 = 1_000_000_000;
    // Least significant first.
    let mut groups: Vec<u64> = Vec::new();
    for byte in bytes {
        let mut carry = u64::from(*byte);
        for group in &mut groups {
            let sum = *group * 256 + carry;
            (*group, carry) = (sum % BASE, sum / BASE);
        }
        if carry > 0 {
            groups.push(carry);
        }
    }
    let mut text = groups.last().map_or_else(|| "0".to_owned(), ToString::to_string);
    for group in groups.iter().rev().skip(1) {
        let digits = format!("{group:09}");
        text.push_str(&digits);
    }
    text
}

/// A date, from days since 1970.
pub(super) fn date(days: i64) -> Option<String> {
    let epoch = NaiveDate::from_ymd_opt(1970, 1, 1)?;
    let date = epoch.checked_add_signed(TimeDelta::try_days(days)?)?;
    Some(date.format("%Y-%m-%d").to_string())
}

impl Unit {
    fn in_a_second(self) -> i64 {
        match self {
            Self::Milli => 1_000,
            Self::Micro => 1_000_000,
            Self::Nano => 1_000_000_000,
        }
    }

    /// What is behind the point of a second, without zeros at its end.
    fn fraction(self, part: i64) -> String {
        let width = match self {
            Self::Milli => 3,
            Self::Micro => 6,
            Self::Nano => 9,
        };
        if part == 0 {
            return String::new();
        }
        let digits = format!("{part:0width$}");
        format!(".{}", digits.trim_end_matches('0'))
    }
}

/// An instant of a clock without zone, from its number since 1970.
pub(super) fn instant(number: i64, unit: Unit) -> Option<String> {
    let at = DateTime::from_timestamp(number.div_euclid(unit.in_a_second()), 0)?;
    let fraction = unit.fraction(number.rem_euclid(unit.in_a_second()));
    Some(format!("{}{fraction}", at.format("%Y-%m-%dT%H:%M:%S")))
}

/// A time of day, from its number since midnight. `MySQL`'s times go beyond a day, and below zero.
pub(super) fn clock(number: i64, unit: Unit) -> String {
    let sign = if number < 0 { "-" } else { "" };
    let size = number.unsigned_abs();
    let in_a_second = unit.in_a_second().unsigned_abs();
    let seconds = size / in_a_second;
    let fraction = unit.fraction(i64::try_from(size % in_a_second).unwrap_or(0));
    format!("{sign}{:02}:{:02}:{:02}{fraction}", seconds / 3600, seconds / 60 % 60, seconds % 60)
}

#[cfg(test)]
#[path = "encoding_tests.rs"]
mod tests;
