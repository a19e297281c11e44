//! How are values written that are whole numbers inside, but no numbers to a reader?
//!
//! Times and decimals order and compare as the number of their smallest units, so their [`Type`] is that of a number. What
//! holds them in a real table, and how a cell shows them, is their physical type.
//!
//! Invariant: `physical.parse(&physical.print(&value)) == Ok(value)` for every value that `parse` gives.

use super::Type;
use super::time::{Zone, parse_time, print_time};
use crate::reference::Value;

/// The type that a real table gives to a column, where it is not the obvious one of its [`Type`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Physical {
    /// `int32`: 32 bits.
    Int32,
    /// `timestamp(us, UTC)`, or `timestamp(us)` without a zone; whole units since 1970, `ms`, `us` or `ns`.
    Timestamp(Unit, Zone),
    /// `decimal(precision, scale)`: the number of smallest units, as far as it fits an `int`; beyond 18 digits a text.
    Decimal(u8, u8),
}

/// The unit of a timestamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// `ms`
    Millisecond,
    /// `us`
    Microsecond,
    /// `ns`
    Nanosecond,
}

impl Unit {
    const ALL: [Self; 3] = [Self::Millisecond, Self::Microsecond, Self::Nanosecond];

    /// How many decimal digits of a second the unit holds.
    pub fn digits(self) -> u8 {
        match self {
            Self::Millisecond => 3,
            Self::Microsecond => 6,
            Self::Nanosecond => 9,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Millisecond => "ms",
            Self::Microsecond => "us",
            Self::Nanosecond => "ns",
        }
    }
}

/// Digits that always fit an `i64`.
const INT_DIGITS: u8 = 18;

impl Physical {
    /// Reads the type's name; `None` if this is no name of a physical type.
    pub(super) fn named(text: &str) -> Option<Self> {
        if text == "int32" {
            return Some(Self::Int32);
        }
        let (name, arguments) = text.strip_suffix(')')?.split_once('(')?;
        let arguments: Vec<&str> = arguments.split(',').map(str::trim).collect();
        match (name, arguments.as_slice()) {
            ("timestamp", [unit, zone @ ..]) => {
                let unit = Unit::ALL.into_iter().find(|known| known.name() == *unit)?;
                let zone = match zone {
                    [] => Zone::None,
                    ["UTC"] => Zone::Utc,
                    _ => return None,
                };
                Some(Self::Timestamp(unit, zone))
            }
            ("decimal", [precision, scale]) => {
                let (precision, scale) = (precision.parse().ok()?, scale.parse().ok()?);
                ((1..=38).contains(&precision) && scale <= precision)
                    .then_some(Self::Decimal(precision, scale))
            }
            _ => None,
        }
    }

    /// The type's name.
    pub(super) fn name(self) -> String {
        match self {
            Self::Int32 => "int32".to_owned(),
            Self::Timestamp(unit, Zone::Utc) => format!("timestamp({}, UTC)", unit.name()),
            Self::Timestamp(unit, Zone::None) => format!("timestamp({})", unit.name()),
            Self::Decimal(precision, scale) => format!("decimal({precision}, {scale})"),
        }
    }

    /// How the values order and compare.
    pub fn logical(self) -> Type {
        match self {
            Self::Decimal(precision, _) if precision > INT_DIGITS => Type::Text,
            Self::Int32 | Self::Timestamp(..) | Self::Decimal(..) => Type::Int,
        }
    }

    /// Reads a cell that is not NULL.
    pub(super) fn parse(self, text: &str) -> Result<Value, String> {
        let wrong = || format!("`{text}` is no {}", self.name());
        match self {
            Self::Int32 => text.parse::<i32>().map(|int| Value::Int(int.into())).map_err(|_| wrong()),
            Self::Timestamp(unit, zone) => {
                parse_time(text, unit.digits(), zone).map(Value::Int).ok_or_else(wrong)
            }
            Self::Decimal(precision, scale) => {
                let units = parse_units(text, precision, scale).ok_or_else(wrong)?;
                Ok(if precision > INT_DIGITS {
                    Value::Text(print_units(&units, scale))
                } else {
                    Value::Int(units.parse().map_err(|_| wrong())?)
                })
            }
        }
    }

    /// Writes a value that is not NULL.
    pub(super) fn print(self, value: &Value) -> String {
        match (self, value) {
            (Self::Timestamp(unit, zone), Value::Int(units)) => print_time(*units, unit.digits(), zone),
            (Self::Decimal(_, scale), Value::Int(units)) => print_units(&units.to_string(), scale),
            (_, other) => super::print_cell(other),
        }
    }
}

/// A decimal as the whole number of its smallest units; `None` if it has too many digits on either side.
fn parse_units(text: &str, precision: u8, scale: u8) -> Option<String> {
    let (sign, digits) = text.strip_prefix('-').map_or(("", text), |digits| ("-", digits));
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    if whole.is_empty() || !format!("{whole}{fraction}").bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let scale = usize::from(scale);
    let zeros = scale.checked_sub(fraction.len())?;
    let units = format!("{whole}{fraction}{}", "0".repeat(zeros));
    let units = units.trim_start_matches('0');
    if units.len() > usize::from(precision) {
        return None;
    }
    Some(if units.is_empty() { "0".to_owned() } else { format!("{sign}{units}") })
}

fn print_units(units: &str, scale: u8) -> String {
    let (sign, digits) = units.strip_prefix('-').map_or(("", units), |digits| ("-", digits));
    let scale = usize::from(scale);
    let digits = format!("{digits:0>width$}", width = scale + 1);
    let (whole, fraction) = digits.split_at(digits.len() - scale);
    if scale == 0 { format!("{sign}{whole}") } else { format!("{sign}{whole}.{fraction}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_written() {
        for name in ["int32", "timestamp(us, UTC)", "timestamp(ns)", "decimal(38, 3)", "decimal(1, 0)"] {
            assert_eq!(Physical::named(name).map(Physical::name).as_deref(), Some(name));
        }
        for wrong in ["int", "timestamp(s)", "timestamp(us, Oslo)", "decimal(39, 0)", "decimal(2, 3)"] {
            assert_eq!(Physical::named(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn decimals_are_units_and_have_one_spelling() {
        let cell = |kind: &str, text: &str| {
            let physical = Physical::named(kind).unwrap();
            physical.parse(text).map(|value| (value.clone(), physical.print(&value)))
        };
        assert_eq!(cell("decimal(10, 2)", "1.0"), Ok((Value::Int(100), "1.00".to_owned())));
        assert_eq!(cell("decimal(10, 2)", "-0.05"), Ok((Value::Int(-5), "-0.05".to_owned())));
        assert_eq!(cell("decimal(10, 2)", "-0"), Ok((Value::Int(0), "0.00".to_owned())));
        let long = "12345678901234567890123456789012345.678";
        assert_eq!(cell("decimal(38, 3)", long), Ok((Value::text(long), long.to_owned())));
        for wrong in ["123456.78", "1.234", "", "1.", ".5", "1e3", "--1"] {
            assert_eq!(cell("decimal(6, 2)", wrong).is_err(), wrong != "1.", "{wrong}");
        }
        assert!(cell("int32", "3000000000").is_err());
    }
}
