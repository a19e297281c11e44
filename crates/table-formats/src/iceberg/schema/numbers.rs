//! Which number does each field of a schema have?
//!
//! A field keeps its number as long as it is the same one to readers: of the same name within its parent, and of the same
//! type or of one that widened as the format allows. Every other field gets one that the table never used.

use std::sync::Arc;

use arrow_schema::{DataType, Field, Schema};
use iceberg::spec::{
    ListType, MapType, NestedField, NestedFieldRef, PrimitiveType, Schema as IcebergSchema, StructType, Type,
};

use super::from_primitive;
use crate::{
    contract::Result,
    error::{Error, ErrorKind},
};

/// The schema of these columns, after a table's that had `known` ones.
pub(in crate::iceberg) fn evolved(
    known: Option<&IcebergSchema>,
    last_number: i32,
    columns: &Schema,
    keys: &[String],
) -> Result<IcebergSchema> {
    let mut numbers = Numbers { last: last_number };
    let known = known.map(|known| known.as_struct().fields()).unwrap_or_default();
    let fields = numbers.fields(columns.fields(), known)?;
    built(fields, keys)
}

fn built(fields: Vec<NestedFieldRef>, keys: &[String]) -> Result<IcebergSchema> {
    let identifiers = identifiers(&fields, keys);
    IcebergSchema::builder()
        .with_fields(fields)
        .with_identifier_field_ids(identifiers)
        .build()
        .map_err(|e| Error::new(ErrorKind::Unsupported, "the columns make no Iceberg schema").because(e))
}

/// The numbers of the keys, if all of them can be what Iceberg calls identifiers: required, and no floats.
fn identifiers(fields: &[NestedFieldRef], keys: &[String]) -> Vec<i32> {
    let number = |key: &String| {
        let field = fields.iter().find(|field| &field.name == key)?;
        let floats = [PrimitiveType::Float, PrimitiveType::Double];
        let fits = field.field_type.as_primitive_type().is_some_and(|of| !floats.contains(of));
        (field.required && fits).then_some(field.id)
    };
    keys.iter().map(number).collect::<Option<_>>().unwrap_or_default()
}

struct Numbers {
    last: i32,
}

impl Numbers {
    fn next(&mut self) -> Result<i32> {
        self.last = self
            .last
            .checked_add(1)
            .ok_or_else(|| Error::new(ErrorKind::Unsupported, "the table has used up its field numbers"))?;
        Ok(self.last)
    }

    fn fields<'a>(
        &mut self,
        fields: impl IntoIterator<Item = &'a Arc<Field>>,
        known: &[NestedFieldRef],
    ) -> Result<Vec<NestedFieldRef>> {
        let one = |field: &Arc<Field>| {
            let known = known.iter().find(|known| &known.name == field.name());
            Ok(Arc::new(self.field(field, field.name(), known)?))
        };
        fields.into_iter().map(one).collect()
    }

    fn field(&mut self, field: &Field, name: &str, known: Option<&NestedFieldRef>) -> Result<NestedField> {
        let known = known.filter(|known| goes_on(&known.field_type, field.data_type()));
        let number = known.map_or_else(|| self.next(), |known| Ok(known.id))?;
        let of = self.data_type(field.data_type(), known.map(|known| known.field_type.as_ref()))?;
        let mut made = NestedField::new(number, name, of, !field.is_nullable());
        if let Some(known) = known {
            made.doc.clone_from(&known.doc);
            made.initial_default.clone_from(&known.initial_default);
            made.write_default.clone_from(&known.write_default);
        }
        Ok(made)
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "a type that is not named has no parts")]
    fn data_type(&mut self, of: &DataType, known: Option<&Type>) -> Result<Type> {
        Ok(match of {
            DataType::Struct(fields) => {
                let known = match known {
                    Some(Type::Struct(known)) => known.fields(),
                    _ => &[],
                };
                Type::Struct(StructType::new(self.fields(fields, known)?))
            }
            DataType::List(element) => {
                let known = match known {
                    Some(Type::List(known)) => Some(&known.element_field),
                    _ => None,
                };
                Type::List(ListType::new(Arc::new(self.field(element, "element", known)?)))
            }
            DataType::Map(entries, _) => {
                let DataType::Struct(parts) = entries.data_type() else { return Err(no_type(of)) };
                let (Some(key), Some(value)) = (parts.first(), parts.get(1)) else {
                    return Err(no_type(of));
                };
                let known = match known {
                    Some(Type::Map(known)) => Some((&known.key_field, &known.value_field)),
                    _ => None,
                };
                let key = self.field(key, "key", known.map(|known| known.0))?;
                let value = self.field(value, "value", known.map(|known| known.1))?;
                Type::Map(MapType::new(Arc::new(key), Arc::new(value)))
            }
            of => {
                let made = from_primitive(of).ok_or_else(|| no_type(of))?;
                // A UUID is bytes to Arrow, and stays one.
                let same =
                    known.and_then(Type::as_primitive_type).filter(|known| **known == PrimitiveType::Uuid);
                Type::Primitive(same.cloned().unwrap_or(made))
            }
        })
    }
}

fn no_type(of: &DataType) -> Error {
    Error::new(ErrorKind::Unsupported, format!("Iceberg has no type for {of}"))
}

/// True when a field of the one type may become one of the other and be the same field. Source: the format's
/// specification, "Schema Evolution".
fn goes_on(known: &Type, now: &DataType) -> bool {
    match (known, now) {
        (Type::Struct(_), DataType::Struct(_))
        | (Type::List(_), DataType::List(_))
        | (Type::Map(_), DataType::Map(_, _)) => true,
        (Type::Primitive(known), now) => match (known, from_primitive(now)) {
            (PrimitiveType::Int, Some(PrimitiveType::Long))
            | (PrimitiveType::Float, Some(PrimitiveType::Double))
            | (PrimitiveType::Uuid, Some(PrimitiveType::Fixed(16))) => true,
            (
                PrimitiveType::Decimal { precision, scale },
                Some(PrimitiveType::Decimal { precision: wider, scale: same }),
            ) => *scale == same && *precision <= wider,
            (known, Some(now)) => *known == now,
            (_, None) => false,
        },
        (Type::Struct(_) | Type::List(_) | Type::Map(_), _) => false,
    }
}
