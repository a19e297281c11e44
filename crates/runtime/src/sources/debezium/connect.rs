//! Which type does a column have, as the `schema` part of a record tells it?
//!
//! Kafka Connect's JSON converter writes a schema of few plain types; what they stand for is in a schema's name. The names
//! are those of Debezium's documentation (data types of the connectors for `PostgreSQL`, `MySQL`, SQL Server and Oracle) and of
//! Kafka Connect.

use std::sync::Arc;

use arrow_schema::{DataType, Field, FieldRef, Fields, Schema, TimeUnit};

use super::super::json::Json;

/// Digits of a decimal where the schema does not say.
const DIGITS: u8 = 38;

/// A schema of Kafka Connect.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Connect {
    pub(super) kind: Kind,
    pub(super) meaning: Meaning,
}

/// The plain type.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Kind {
    Int8,
    Int16,
    Int32,
    Int64,
    Float32,
    Float64,
    Boolean,
    Text,
    Bytes,
    Array(Box<Connect>),
    Map(Box<Connect>, Box<Connect>),
    Struct(Vec<(String, Connect)>),
}

/// What the plain type stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Meaning {
    /// Nothing but itself.
    Plain,
    /// Bytes: an unscaled integer, big-endian two's complement.
    Decimal { precision: u8, scale: i32 },
    /// A struct of a scale and bytes as of [`Meaning::Decimal`].
    VariableScale,
    /// Days since 1970.
    Date,
    /// Since midnight.
    Clock(Unit),
    /// Since 1970, in a clock without zone.
    Instant(Unit),
    /// A text with a zone.
    Zoned,
    /// A text: a date with a `Z` behind it.
    IsoDate,
    /// A text: an instant of a clock without zone, with a `Z` behind it.
    IsoInstant,
}

/// What a number of a time counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    Milli,
    Micro,
    Nano,
}

impl Connect {
    /// The schema of `before` and `after` in the schema of an envelope; `None` where there is none.
    pub(super) fn of_rows(text: &str) -> Result<Option<Self>, String> {
        let node = Json::of(text)?;
        let fields = node.get("fields").map(Json::items).unwrap_or_default();
        let named =
            |name: &str| fields.iter().find(|field| field.get("field").and_then(Json::text) == Some(name));
        Ok(named("after").or_else(|| named("before")).and_then(Self::read))
    }

    /// `None` for what is no schema.
    fn read(node: &Json<'_>) -> Option<Self> {
        let part = |name: &str| node.get(name).and_then(Self::read).map(Box::new);
        let kind = match node.get("type")?.text()? {
            "int8" => Kind::Int8,
            "int16" => Kind::Int16,
            "int32" => Kind::Int32,
            "int64" => Kind::Int64,
            "float" | "float32" => Kind::Float32,
            "double" | "float64" => Kind::Float64,
            "boolean" => Kind::Boolean,
            "string" => Kind::Text,
            "bytes" => Kind::Bytes,
            "array" => Kind::Array(part("items")?),
            "map" => Kind::Map(part("keys")?, part("values")?),
            "struct" => {
                let fields = node.get("fields")?.items().iter();
                let named =
                    fields.map(|field| Some((field.get("field")?.text()?.to_owned(), Self::read(field)?)));
                Kind::Struct(named.collect::<Option<_>>()?)
            }
            _ => return None,
        };
        let name = node.get("name").and_then(Json::text).unwrap_or_default();
        Some(Self { meaning: meaning(name, node), kind })
    }

    /// The columns of a row.
    pub(super) fn columns(&self) -> &[(String, Connect)] {
        match &self.kind {
            Kind::Struct(fields) => fields,
            Kind::Int8
            | Kind::Int16
            | Kind::Int32
            | Kind::Int64
            | Kind::Float32
            | Kind::Float64
            | Kind::Boolean
            | Kind::Text
            | Kind::Bytes
            | Kind::Array(_)
            | Kind::Map(..) => &[],
        }
    }

    /// The columns of a row as a schema; every column may be NULL.
    pub(super) fn row_schema(&self) -> Schema {
        Schema::new(self.columns().iter().map(|(name, connect)| connect.field(name)).collect::<Vec<_>>())
    }

    fn field(&self, name: &str) -> FieldRef {
        Arc::new(Field::new(name, self.data_type(), true))
    }

    /// The type in which a column is stored that nobody declared.
    pub(super) fn data_type(&self) -> DataType {
        match self.meaning {
            Meaning::Decimal { precision, scale } => decimal(precision, scale),
            Meaning::VariableScale | Meaning::Clock(_) => DataType::Utf8,
            Meaning::Date | Meaning::IsoDate => DataType::Date32,
            Meaning::Instant(_) | Meaning::IsoInstant => DataType::Timestamp(TimeUnit::Microsecond, None),
            Meaning::Zoned => DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
            Meaning::Plain => match &self.kind {
                Kind::Int8 => DataType::Int8,
                Kind::Int16 => DataType::Int16,
                Kind::Int32 => DataType::Int32,
                Kind::Int64 => DataType::Int64,
                Kind::Float32 => DataType::Float32,
                Kind::Float64 => DataType::Float64,
                Kind::Boolean => DataType::Boolean,
                Kind::Text => DataType::Utf8,
                Kind::Bytes => DataType::Binary,
                Kind::Array(items) => {
                    DataType::List(Arc::new(Field::new_list_field(items.data_type(), true)))
                }
                Kind::Map(_, values) => {
                    let entries = Fields::from(vec![
                        Field::new("key", DataType::Utf8, false),
                        Field::new("value", values.data_type(), true),
                    ]);
                    DataType::Map(Arc::new(Field::new("entries", DataType::Struct(entries), false)), false)
                }
                Kind::Struct(fields) => {
                    DataType::Struct(fields.iter().map(|(name, connect)| connect.field(name)).collect())
                }
            },
        }
    }
}

/// A decimal that Arrow can hold, or a text that holds every digit.
fn decimal(precision: u8, scale: i32) -> DataType {
    // A negative scale counts zeros before the point, which become digits.
    let zeros = u8::try_from(scale.saturating_neg().max(0)).unwrap_or(u8::MAX);
    let digits = precision.saturating_add(zeros);
    match i8::try_from(scale.max(0)) {
        Ok(scale) if digits <= DIGITS && scale <= 38 => DataType::Decimal128(digits.max(1), scale),
        _ => DataType::Utf8,
    }
}

fn meaning(name: &str, node: &Json<'_>) -> Meaning {
    match name {
        "org.apache.kafka.connect.data.Decimal" => {
            let number = |name: &str| node.get("parameters")?.get(name)?.text()?.parse::<i32>().ok();
            let precision =
                number("connect.decimal.precision").map_or(DIGITS, |p| u8::try_from(p).unwrap_or(u8::MAX));
            Meaning::Decimal { precision, scale: number("scale").unwrap_or(0) }
        }
        "io.debezium.data.VariableScaleDecimal" => Meaning::VariableScale,
        "io.debezium.time.Date" | "org.apache.kafka.connect.data.Date" => Meaning::Date,
        "io.debezium.time.Time" | "org.apache.kafka.connect.data.Time" => Meaning::Clock(Unit::Milli),
        "io.debezium.time.MicroTime" => Meaning::Clock(Unit::Micro),
        "io.debezium.time.NanoTime" => Meaning::Clock(Unit::Nano),
        "io.debezium.time.Timestamp" | "org.apache.kafka.connect.data.Timestamp" => {
            Meaning::Instant(Unit::Milli)
        }
        "io.debezium.time.MicroTimestamp" => Meaning::Instant(Unit::Micro),
        "io.debezium.time.NanoTimestamp" => Meaning::Instant(Unit::Nano),
        "io.debezium.time.ZonedTimestamp" => Meaning::Zoned,
        "io.debezium.time.IsoDate" => Meaning::IsoDate,
        "io.debezium.time.IsoTimestamp" => Meaning::IsoInstant,
        // Json, Xml, Uuid, Enum, EnumSet, Bits, Year, ZonedTime, MicroDuration, Interval, geometry, vectors: themselves.
        _ => Meaning::Plain,
    }
}
