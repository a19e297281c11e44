//! One column that grows.

use std::sync::Arc;

use arrow_array::{
    ArrayRef, NullArray,
    builder::{
        ArrayBuilder, BinaryBuilder, BooleanBuilder, Date32Builder, Decimal128Builder, Float32Builder,
        Float64Builder, Int8Builder, Int16Builder, Int32Builder, Int64Builder, StringBuilder,
        TimestampMicrosecondBuilder,
    },
};
use arrow_schema::{DataType, Field, TimeUnit};
use base64::{Engine, engine::general_purpose::STANDARD};

use super::{
    Columns, Json, Look, Rest,
    lists::{ListColumn, MapColumn},
};
use crate::{
    error::{Error, ErrorKind, Result},
    sources::scalars,
};

#[derive(Debug)]
pub(super) enum Builder {
    Null(usize),
    Boolean(BooleanBuilder),
    Int8(Int8Builder),
    Int16(Int16Builder),
    Int32(Int32Builder),
    Int64(Int64Builder),
    Float32(Float32Builder),
    Float64(Float64Builder),
    Decimal(Decimal128Builder, u8, i8),
    Text(StringBuilder),
    Binary(BinaryBuilder),
    Date(Date32Builder),
    Instant(TimestampMicrosecondBuilder),
    /// A time without a zone.
    Local(TimestampMicrosecondBuilder),
    List(Box<ListColumn>),
    Map(Box<MapColumn>),
    Struct(Box<Columns>),
}

impl Builder {
    pub(super) fn new(field: &Field) -> Result<Self> {
        Ok(match field.data_type() {
            DataType::Null => Self::Null(0),
            DataType::Boolean => Self::Boolean(BooleanBuilder::new()),
            DataType::Int8 => Self::Int8(Int8Builder::new()),
            DataType::Int16 => Self::Int16(Int16Builder::new()),
            DataType::Int32 => Self::Int32(Int32Builder::new()),
            DataType::Int64 => Self::Int64(Int64Builder::new()),
            DataType::Float32 => Self::Float32(Float32Builder::new()),
            DataType::Float64 => Self::Float64(Float64Builder::new()),
            DataType::Decimal128(p, s) => {
                Self::Decimal(Decimal128Builder::new().with_precision_and_scale(*p, *s)?, *p, *s)
            }
            DataType::Utf8 => Self::Text(StringBuilder::new()),
            DataType::Binary => Self::Binary(BinaryBuilder::new()),
            DataType::Date32 => Self::Date(Date32Builder::new()),
            DataType::Timestamp(TimeUnit::Microsecond, None) => {
                Self::Local(TimestampMicrosecondBuilder::new())
            }
            DataType::Timestamp(TimeUnit::Microsecond, zone) => {
                Self::Instant(TimestampMicrosecondBuilder::new().with_timezone_opt(zone.clone()))
            }
            DataType::List(item) => Self::List(Box::new(ListColumn::new(item)?)),
            DataType::Map(entries, _) => match entries.data_type() {
                DataType::Struct(parts) => Self::Map(Box::new(MapColumn::new(entries, parts)?)),
                _ => return Err(unreadable(field)),
            },
            DataType::Struct(fields) => Self::Struct(Box::new(Columns::new(fields)?)),
            _ => return Err(unreadable(field)),
        })
    }

    /// Appends a value; one that does not fit is NULL here and a misfit in `rest`.
    pub(super) fn append(&mut self, name: &str, value: &Json<'_>, look: &Look, rest: &mut Rest) {
        match (&mut *self, value) {
            (_, Json::Null) => self.append_null(),
            (Self::Text(builder), Json::Text(text)) => builder.append_value(text),
            // A column of text holds what is no text as it was written.
            (Self::Text(builder), other) => builder.append_value(other.raw()),
            (Self::Binary(builder), Json::Text(text)) => match STANDARD.decode(text.as_bytes()) {
                Ok(bytes) => builder.append_value(bytes),
                Err(why) => self.refuse(name, value, format!("it is no base64: {why}"), rest),
            },
            (Self::Struct(columns), Json::Object(fields, _)) => {
                rest.nested(name, |rest| columns.append(fields, look, rest));
            }
            (Self::List(list), Json::List(items, _)) => {
                if let Some(misfit) = list.append(items, look) {
                    rest.whole(name, &value.raw(), misfit);
                }
            }
            (Self::Map(map), Json::Object(fields, _)) => {
                if let Some(misfit) = map.append(fields, look) {
                    rest.whole(name, &value.raw(), misfit);
                }
            }
            (Self::Boolean(builder), Json::Bool(value)) => builder.append_value(*value),
            (Self::Boolean(_) | Self::Date(_), Json::Number(_)) => {
                self.refuse(name, value, "it is a number".to_owned(), rest);
            }
            (_, Json::Text(_) | Json::Number(_)) => {
                let text = match value {
                    Json::Text(text) => text.as_ref(),
                    Json::Number(text) => text,
                    _ => "",
                };
                if let Err(why) = self.append_text(text, look) {
                    self.refuse(name, value, why, rest);
                }
            }
            (_, other) => {
                let why = format!("it is {}", other.kind());
                self.refuse(name, value, why, rest);
            }
        }
    }

    fn refuse(&mut self, name: &str, value: &Json<'_>, why: String, rest: &mut Rest) {
        self.append_null();
        rest.mismatch(name, &value.raw(), why);
    }

    /// Appends what a text says; nothing is appended where it says nothing of this type.
    pub(super) fn append_text(&mut self, text: &str, look: &Look) -> Result<(), String> {
        match self {
            Self::Boolean(builder) => builder.append_value(scalars::boolean(text)?),
            Self::Int8(builder) => builder.append_value(scalars::integer(text)?),
            Self::Int16(builder) => builder.append_value(scalars::integer(text)?),
            Self::Int32(builder) => builder.append_value(scalars::integer(text)?),
            Self::Int64(builder) => builder.append_value(scalars::integer(text)?),
            Self::Float32(builder) => builder.append_value(scalars::small_float(text)?),
            Self::Float64(builder) => builder.append_value(scalars::float(text)?),
            Self::Decimal(builder, p, s) => builder.append_value(scalars::decimal(text, *p, *s)?),
            Self::Text(builder) => builder.append_value(text),
            Self::Binary(builder) => builder.append_value(text.as_bytes()),
            Self::Date(builder) => builder.append_value(scalars::date(text, &look.formats)?),
            Self::Instant(builder) => builder.append_value(scalars::micros(text, &look.formats)?),
            Self::Local(builder) => builder.append_value(scalars::local_micros(text, &look.formats)?),
            Self::Null(_) => return Err("the column has no type".to_owned()),
            Self::List(_) | Self::Map(_) | Self::Struct(_) => return Err("it is a text".to_owned()),
        }
        Ok(())
    }

    pub(super) fn append_null(&mut self) {
        match self {
            Self::Null(rows) => *rows += 1,
            Self::Boolean(builder) => builder.append_null(),
            Self::Int8(builder) => builder.append_null(),
            Self::Int16(builder) => builder.append_null(),
            Self::Int32(builder) => builder.append_null(),
            Self::Int64(builder) => builder.append_null(),
            Self::Float32(builder) => builder.append_null(),
            Self::Float64(builder) => builder.append_null(),
            Self::Decimal(builder, ..) => builder.append_null(),
            Self::Text(builder) => builder.append_null(),
            Self::Binary(builder) => builder.append_null(),
            Self::Date(builder) => builder.append_null(),
            Self::Instant(builder) | Self::Local(builder) => builder.append_null(),
            Self::List(list) => list.append_null(),
            Self::Map(map) => map.append_null(),
            Self::Struct(columns) => columns.append_null(),
        }
    }

    /// The column, which begins anew.
    pub(super) fn finish(&mut self) -> Result<ArrayRef> {
        Ok(match self {
            Self::Null(rows) => Arc::new(NullArray::new(std::mem::take(rows))),
            Self::Boolean(builder) => ArrayBuilder::finish(builder),
            Self::Int8(builder) => ArrayBuilder::finish(builder),
            Self::Int16(builder) => ArrayBuilder::finish(builder),
            Self::Int32(builder) => ArrayBuilder::finish(builder),
            Self::Int64(builder) => ArrayBuilder::finish(builder),
            Self::Float32(builder) => ArrayBuilder::finish(builder),
            Self::Float64(builder) => ArrayBuilder::finish(builder),
            Self::Decimal(builder, ..) => ArrayBuilder::finish(builder),
            Self::Text(builder) => ArrayBuilder::finish(builder),
            Self::Binary(builder) => ArrayBuilder::finish(builder),
            Self::Date(builder) => ArrayBuilder::finish(builder),
            Self::Instant(builder) | Self::Local(builder) => ArrayBuilder::finish(builder),
            Self::Struct(columns) => columns.finish_structs()?,
            Self::List(list) => list.finish()?,
            Self::Map(map) => map.finish()?,
        })
    }
}

fn unreadable(field: &Field) -> Error {
    Error::new(ErrorKind::Unsupported, "a column has a type that is not read from text")
        .with("column", field.name())
        .with("type", field.data_type())
}
