//! Columns as Iceberg has them and back, and the numbers that they keep.

use super::*;

fn everything() -> Schema {
    let struct_of = |fields: Vec<Field>| DataType::Struct(Fields::from(fields));
    let at = DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
    let point =
        struct_of(vec![Field::new("x", DataType::Float64, true), Field::new("seen", at.clone(), false)]);
    let entries =
        struct_of(vec![Field::new("key", DataType::Utf8, false), Field::new("value", point.clone(), true)]);
    Schema::new(vec![
        Field::new("id", DataType::Int64, false),
        Field::new("day", DataType::Date32, true),
        Field::new("at", at, true),
        Field::new("money", DataType::Decimal128(20, 4), true),
        Field::new("point", point, true),
        Field::new("tags", DataType::List(Arc::new(Field::new("element", DataType::Utf8, true))), true),
        Field::new("points", DataType::Map(Arc::new(Field::new("key_value", entries, false)), false), true),
    ])
}

fn keys() -> Vec<String> {
    vec!["id".to_owned()]
}

#[test]
fn columns_come_back_as_they_were() {
    let columns = everything();
    check(&columns).unwrap();
    let schema = evolved(None, 0, &columns, &keys()).unwrap();
    assert_eq!(to_arrow(&schema).unwrap().as_ref(), &columns);
    assert_eq!(schema.highest_field_id(), 14);
    assert_eq!(schema.identifier_field_ids().collect::<Vec<_>>(), [1]);
    let numbered = with_numbers(&schema).unwrap();
    let plain: Vec<_> =
        numbered.fields().iter().map(|f| f.metadata()[PARQUET_FIELD_ID_META_KEY].clone()).collect();
    assert_eq!(plain.len(), columns.fields().len());
    let DataType::List(element) = numbered.field(5).data_type() else { panic!("a list") };
    assert!(element.metadata().contains_key(PARQUET_FIELD_ID_META_KEY), "nested fields have numbers too");
}

#[test]
fn t08_t10_fields_keep_their_numbers_and_new_ones_get_new_numbers() {
    let old = evolved(None, 0, &everything(), &keys()).unwrap();
    let mut fields: Vec<Field> = everything().fields().iter().map(|f| f.as_ref().clone()).collect();
    fields[3] = Field::new("money", DataType::Decimal128(30, 4), true);
    fields[1] = Field::new("day", DataType::Utf8, true);
    fields.swap(0, 2);
    fields.push(Field::new("more", DataType::Int32, true));
    let columns = Schema::new(fields);
    let new = evolved(Some(&old), 40, &columns, &[]).unwrap();
    for name in ["id", "at", "money", "point", "point.seen", "tags.element", "points.value.x"] {
        assert_eq!(new.field_id_by_name(name), old.field_id_by_name(name), "{name}");
    }
    assert_eq!((new.field_id_by_name("day"), new.field_id_by_name("more")), (Some(41), Some(42)));
    assert_eq!(to_arrow(&new).unwrap().as_ref(), &columns);
    assert_eq!(new.identifier_field_ids().len(), 0);
}

#[test]
fn keys_are_identifiers_only_where_iceberg_lets_them_be() {
    let columns = |nullable, of: DataType| Schema::new(vec![Field::new("id", of, nullable)]);
    for (nullable, of, count) in
        [(false, DataType::Utf8, 1), (true, DataType::Utf8, 0), (false, DataType::Float64, 0)]
    {
        let schema = evolved(None, 0, &columns(nullable, of), &keys()).unwrap();
        assert_eq!(schema.identifier_field_ids().len(), count);
    }
}
