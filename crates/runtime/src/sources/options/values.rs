//! The values of options, each taken once; what is left over was not understood.

use std::collections::BTreeMap;

use strandline_pipeline_sql::{OptionValue, ReadFiles};

use super::known;
use crate::error::{Error, ErrorKind, Result};

/// Options by their name in lower case.
pub(super) struct Values<'a>(BTreeMap<String, (&'a str, &'a OptionValue)>);

impl<'a> Values<'a> {
    /// The options of a call, without those that have no effect.
    ///
    /// # Errors
    /// `Definition` for one that can't be honoured.
    pub(super) fn new(call: &'a ReadFiles) -> Result<Self> {
        let mut values = BTreeMap::new();
        for (written, value) in &call.options {
            let name = written.to_lowercase();
            let name = name.strip_prefix("cloudfiles.").map_or(name.clone(), str::to_owned);
            if !known::has_no_effect(&name, &value.to_string())? {
                values.insert(name, (written.as_str(), value));
            }
        }
        Ok(Self(values))
    }

    /// Takes a text.
    pub(super) fn text(&mut self, name: &str) -> Option<String> {
        self.0.remove(name).map(|(_, value)| value.to_string())
    }

    /// Looks at a text.
    pub(super) fn text_of(&self, name: &str) -> Option<String> {
        self.0.get(name).map(|(_, value)| value.to_string())
    }

    fn parsed<T>(&mut self, name: &str, what: &str, parse: impl Fn(&str) -> Option<T>) -> Result<Option<T>> {
        let Some((written, value)) = self.0.remove(name) else { return Ok(None) };
        let text = value.to_string();
        parse(text.trim()).map(Some).ok_or_else(|| {
            let name = known::spelling(name).unwrap_or(written);
            let text = format!("option `{name}` of read_files must be {what}, it is `{text}`");
            Error::new(ErrorKind::Definition, text)
        })
    }

    /// Takes a whole number.
    pub(super) fn number(&mut self, name: &str) -> Result<Option<u64>> {
        self.parsed(name, "a whole number", |text| text.parse().ok())
    }

    /// Takes a flag.
    pub(super) fn flag(&mut self, name: &str) -> Result<Option<bool>> {
        self.parsed(name, "true or false", |text| text.to_lowercase().parse().ok())
    }

    /// Takes a number of bytes: `1024`, `512mb`, `10g`.
    pub(super) fn bytes(&mut self, name: &str) -> Result<Option<u64>> {
        self.parsed(name, "a number of bytes such as 1024, 512mb or 10g", parse_bytes)
    }

    /// Takes an ASCII character.
    pub(super) fn byte(&mut self, name: &str) -> Result<Option<u8>> {
        let Some((written, value)) = self.0.remove(name) else { return Ok(None) };
        let text = value.to_string();
        match (text.as_str(), text.as_bytes()) {
            ("\\t", _) => Ok(Some(b'\t')),
            ("\\\\", _) => Ok(Some(b'\\')),
            (_, [one]) if one.is_ascii() && !matches!(one, b'\n' | b'\r') => Ok(Some(*one)),
            _ => Err(Error::new(
                ErrorKind::Definition,
                format!("option `{written}` of read_files must be one ASCII character, it is `{text}`"),
            )),
        }
    }

    /// Refuses what was not taken.
    pub(super) fn finish(self) -> Result<()> {
        match self.0.into_iter().next() {
            None => Ok(()),
            Some((name, (written, _))) => Err(known::refusal(&name, written)),
        }
    }
}

fn parse_bytes(text: &str) -> Option<u64> {
    let text = text.to_lowercase();
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = text.get(digits.len()..)?;
    let factor = match unit.strip_suffix('b').unwrap_or(unit) {
        "" => 1,
        "k" => 1 << 10,
        "m" => 1 << 20,
        "g" => 1 << 30,
        "t" => 1_u64 << 40,
        _ => return None,
    };
    digits.trim_end().parse::<u64>().ok()?.checked_mul(factor).filter(|bytes| *bytes > 0)
}
