//! How does one value of a record become the plain JSON that the rows of files are decoded from?
//!
//! What a value means is in the record's schema, where it has one; else in the type that the column is declared with.

use arrow_schema::{DataType, Fields};

use super::{
    Envelope,
    connect::{Connect, Kind, Meaning},
    encoding,
};
use crate::sources::json::{Json, quote};

/// Why a value can't be what its column says.
pub(super) type Refused = String;

impl Envelope {
    /// Writes a value for a column of type `target`; without one, as the type that its schema derives.
    pub(super) fn value(
        &self,
        out: &mut String,
        node: &Json<'_>,
        connect: Option<&Connect>,
        target: Option<&DataType>,
    ) -> Result<(), Refused> {
        if node.is_null() {
            out.push_str("null");
            return Ok(());
        }
        let natural = match (target, connect) {
            (None, Some(connect)) => Some(connect.data_type()),
            _ => None,
        };
        let target = target.or(natural.as_ref());
        let meaning = match (connect, target) {
            (Some(connect), _) => connect.meaning,
            (None, Some(target)) => self.guess(node, target)?,
            (None, None) => Meaning::Plain,
        };
        let is_text = matches!(target, Some(DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View));
        match meaning {
            Meaning::Plain => return self.plain(out, node, connect, target),
            Meaning::Decimal { scale, .. } => number(out, &decimal(node, scale)?, is_text),
            Meaning::VariableScale => number(out, &variable_scale(node)?, is_text),
            _ if target.is_some_and(DataType::is_integer) => node.write(out),
            Meaning::Date => quote(out, &date(node)?),
            Meaning::Clock(unit) => quote(out, &encoding::clock(integer(node)?, unit)),
            Meaning::Instant(unit) => {
                let text = encoding::instant(integer(node)?, unit).ok_or("the instant is out of range")?;
                quote(out, fit_date(&text, target)?);
            }
            Meaning::Zoned => node.write(out),
            Meaning::IsoDate => quote(out, text(node)?.trim_end_matches('Z')),
            Meaning::IsoInstant => quote(out, fit_date(text(node)?.trim_end_matches('Z'), target)?),
        }
        Ok(())
    }

    /// What a value means that has no schema, from the type of its column.
    fn guess(&self, node: &Json<'_>, target: &DataType) -> Result<Meaning, Refused> {
        Ok(match (target, node) {
            (DataType::Decimal128(precision, scale), Json::Text(_)) if self.decimals_are_bytes => {
                Meaning::Decimal { precision: *precision, scale: i32::from(*scale) }
            }
            (DataType::Decimal128(..), Json::Object(..)) => Meaning::VariableScale,
            (DataType::Date32, Json::Number(_)) => Meaning::Date,
            (DataType::Timestamp(..), Json::Number(_)) => Meaning::Instant(self.timestamp_unit.ok_or(
                "a number does not say what it counts: give the option timestampUnit => 'ms', 'us' or 'ns', or write records with their schema",
            )?),
            (DataType::Timestamp(..), _) => Meaning::Zoned,
            _ => Meaning::Plain,
        })
    }

    /// A value whose plain type says all.
    fn plain(
        &self,
        out: &mut String,
        node: &Json<'_>,
        connect: Option<&Connect>,
        target: Option<&DataType>,
    ) -> Result<(), Refused> {
        let kind = connect.map(|connect| &connect.kind);
        match (node, target) {
            (Json::Text(text), Some(DataType::Binary | DataType::LargeBinary)) => {
                // The JSON converter writes bytes as base64, whatever the connector does with columns.
                let mode = match kind {
                    Some(Kind::Bytes) => encoding::BinaryMode::Base64,
                    _ => self.binary,
                };
                let bytes = mode.decode(text).ok_or_else(|| format!("the text is no {mode:?}"))?;
                quote(out, &encoding::BinaryMode::Base64.encode(&bytes));
            }
            (Json::Number(number @ ("0" | "1")), Some(DataType::Boolean)) => {
                out.push_str(if *number == "1" { "true" } else { "false" });
            }
            (Json::Object(..) | Json::List(..), Some(DataType::Utf8)) => {
                let mut text = String::new();
                node.write(&mut text);
                quote(out, &text);
            }
            (Json::List(items, _), Some(DataType::List(item))) => {
                let connect = match kind {
                    Some(Kind::Array(items)) => Some(items.as_ref()),
                    _ => None,
                };
                list(out, items, |out, node| self.value(out, node, connect, Some(item.data_type())))?;
            }
            (Json::Object(..) | Json::List(..), Some(DataType::Map(entries, _))) => {
                let (keys, values) = match kind {
                    Some(Kind::Map(keys, values)) => (Some(keys.as_ref()), Some(values.as_ref())),
                    _ => (None, None),
                };
                let value_type = match entries.data_type() {
                    DataType::Struct(parts) => parts.get(1).map(|part| part.data_type()),
                    _ => None,
                };
                self.map(out, node, (keys, values), value_type)?;
            }
            (Json::Object(..), Some(DataType::Struct(fields))) => {
                let known = connect.map(Connect::columns).unwrap_or_default();
                self.object(out, node, known, fields)?;
            }
            _ => node.write(out),
        }
        Ok(())
    }

    /// A map: an object, or a list of pairs where its keys are no texts.
    fn map(
        &self,
        out: &mut String,
        node: &Json<'_>,
        (keys, values): (Option<&Connect>, Option<&Connect>),
        value_type: Option<&DataType>,
    ) -> Result<(), Refused> {
        let pairs: Vec<(String, &Json<'_>)> = match node {
            Json::List(pairs, _) => {
                let pair = |pair: &'_ Json<'_>| -> Result<String, Refused> {
                    let mut text = String::new();
                    self.value(&mut text, pair.items().first().unwrap_or(&Json::Null), keys, None)?;
                    Ok(text.trim_matches('"').to_owned())
                };
                pairs
                    .iter()
                    .map(|p| Ok((pair(p)?, p.items().get(1).ok_or("an entry of a map is no pair")?)))
                    .collect::<Result<_, Refused>>()?
            }
            _ => node.members().iter().map(|(name, value)| (name.to_string(), value)).collect(),
        };
        out.push('{');
        for (i, (key, value)) in pairs.into_iter().enumerate() {
            out.push_str(if i == 0 { "" } else { "," });
            quote(out, &key);
            out.push(':');
            self.value(out, value, values, value_type)?;
        }
        out.push('}');
        Ok(())
    }

    fn object(
        &self,
        out: &mut String,
        node: &Json<'_>,
        known: &[(String, Connect)],
        fields: &Fields,
    ) -> Result<(), Refused> {
        out.push('{');
        for (i, (name, value)) in node.members().iter().enumerate() {
            out.push_str(if i == 0 { "" } else { "," });
            quote(out, name);
            out.push(':');
            let connect = known.iter().find(|(known, _)| known == name).map(|(_, connect)| connect);
            let target = fields.find(name).map(|(_, field)| field.data_type());
            self.value(out, value, connect, target).map_err(|why| format!("field `{name}`: {why}"))?;
        }
        out.push('}');
        Ok(())
    }
}

fn list(
    out: &mut String,
    items: &[Json<'_>],
    mut item: impl FnMut(&mut String, &Json<'_>) -> Result<(), Refused>,
) -> Result<(), Refused> {
    out.push('[');
    for (i, node) in items.iter().enumerate() {
        out.push_str(if i == 0 { "" } else { "," });
        item(out, node)?;
    }
    out.push(']');
    Ok(())
}

fn number(out: &mut String, digits: &str, is_text: bool) {
    if is_text { quote(out, digits) } else { out.push_str(digits) }
}

fn text<'a>(node: &'a Json<'_>) -> Result<&'a str, Refused> {
    node.text().ok_or_else(|| "it must be a text".to_owned())
}

fn integer(node: &Json<'_>) -> Result<i64, Refused> {
    let whole = || "it must be a whole number of 64 bits".to_owned();
    match node {
        Json::Number(digits) => digits.parse().map_err(|_| whole()),
        Json::Null | Json::Bool(_) | Json::Text(_) | Json::List(..) | Json::Object(..) => Err(whole()),
    }
}

fn date(node: &Json<'_>) -> Result<String, Refused> {
    encoding::date(integer(node)?).ok_or_else(|| "the date is out of range".to_owned())
}

/// An instant where a date is wanted must be a midnight: nothing is cut off.
fn fit_date<'a>(text: &'a str, target: Option<&DataType>) -> Result<&'a str, Refused> {
    if target != Some(&DataType::Date32) {
        return Ok(text);
    }
    text.strip_suffix("T00:00:00").ok_or_else(|| "a date can't hold its time of day".to_owned())
}

/// A decimal in bytes; one that came as a number, or as a text with a point, is what it is.
fn decimal(node: &Json<'_>, scale: i32) -> Result<String, Refused> {
    if let Json::Number(digits) = node {
        return Ok((*digits).to_owned());
    }
    let text = text(node)?;
    let bytes = encoding::BinaryMode::Base64.decode(text).ok_or(
        "the text is no base64 of a number; of a connector with decimal.handling.mode `string` say decimalHandlingMode => 'string'",
    )?;
    encoding::decimal(&bytes, scale).ok_or_else(|| format!("the scale {scale} of a number is out of range"))
}

fn variable_scale(node: &Json<'_>) -> Result<String, Refused> {
    match node {
        Json::Object(..) => {
            let scale = node.get("scale").map(integer).transpose()?.unwrap_or(0);
            let scale = i32::try_from(scale).ok();
            let value = node.get("value").ok_or("a number of variable scale has no value")?;
            decimal(value, scale.ok_or("the scale of a number is out of range")?)
        }
        Json::Number(digits) => Ok((*digits).to_owned()),
        Json::Text(text) => Ok(text.to_string()),
        Json::Null | Json::Bool(_) | Json::List(..) => {
            Err("it must be a number of variable scale".to_owned())
        }
    }
}
