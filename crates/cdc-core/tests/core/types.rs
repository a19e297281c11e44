//! Does every type do as a key, as a sequence and as a payload?
//!
//! The reference knows keys and sequences by their place in a list of values of the type; it never sees the type.

use std::sync::Arc;

use arrow_array::{
    Array, ArrayRef, BinaryArray, BooleanArray, FixedSizeBinaryArray, Float32Array, Float64Array, Int64Array,
    RecordBatch, StringArray, StructArray,
};
use arrow_cast::cast;
use arrow_schema::{DataType, Field, Fields, IntervalUnit, TimeUnit};
use arrow_select::interleave::interleave;
use proptest::prelude::*;
use strandline_cdc_core::{ChangeBatch, StoredAs, keys::KeyIndex};
use strandline_testkit::{
    generate::{Domain, arrivals, history},
    reference::{Event, Value},
    scenario::{Type, parse_type},
};

use crate::{
    convert::{Codec, data_type},
    flow::{Columns, Flow, delete, upsert},
};

const CASES: u32 = 2000;

fn config() -> ProptestConfig {
    ProptestConfig { cases: CASES, failure_persistence: None, ..ProptestConfig::default() }
}

/// For every orderable type, different values in ascending order.
fn ascending() -> Vec<ArrayRef> {
    let ints = |values: &[i64]| -> ArrayRef { Arc::new(Int64Array::from(values.to_vec())) };
    let to = |values: &[i64], data_type: DataType| cast(&ints(values), &data_type).unwrap();
    let small = [-128, -1, 0, 1, 127];
    let unsigned = [0, 1, 7, 254, 255];
    let mut all = vec![ints(&[i64::MIN, -1, 0, 1, i64::MAX])];
    all.extend(
        [DataType::Int8, DataType::Int16, DataType::Int32, DataType::Date32].map(|kind| to(&small, kind)),
    );
    all.extend([DataType::UInt8, DataType::UInt16, DataType::UInt32].map(|kind| to(&unsigned, kind)));
    let wide = arrow_array::UInt64Array::from(vec![0, 1, i64::MAX as u64, i64::MAX as u64 + 1, u64::MAX]);
    all.push(Arc::new(wide));
    all.push(to(&[-86_400_000, 0, 86_400_000, 864_000_000], DataType::Date64));
    let zone = || Some("+02:00".into());
    for unit in [TimeUnit::Second, TimeUnit::Millisecond, TimeUnit::Microsecond, TimeUnit::Nanosecond] {
        all.push(to(&[i64::MIN, -1, 0, 1, i64::MAX], DataType::Timestamp(unit, None)));
        all.push(to(&small, DataType::Timestamp(unit, zone())));
        all.push(to(&small, DataType::Duration(unit)));
    }
    for unit in [TimeUnit::Second, TimeUnit::Millisecond] {
        all.push(cast(&to(&[0, 1, 2, 86_399], DataType::Int32), &DataType::Time32(unit)).unwrap());
    }
    for unit in [TimeUnit::Microsecond, TimeUnit::Nanosecond] {
        all.push(to(&[0, 1, 2, 86_399], DataType::Time64(unit)));
    }
    for decimal in [
        DataType::Decimal32(6, 2),
        DataType::Decimal64(12, 2),
        DataType::Decimal128(30, 2),
        DataType::Decimal256(50, 2),
    ] {
        all.push(to(&small, decimal));
    }
    let floats: ArrayRef =
        Arc::new(Float64Array::from(vec![f64::NEG_INFINITY, -1.5, 0.0, 1.5, f64::INFINITY, f64::NAN]));
    all.extend([DataType::Float16, DataType::Float32].map(|kind| cast(&floats, &kind).unwrap()));
    all.push(floats);
    let texts: ArrayRef = Arc::new(StringArray::from(vec!["", "B", "a", "a longer text than twelve", "é"]));
    let dictionary = DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8));
    all.extend(
        [DataType::LargeUtf8, DataType::Utf8View, dictionary].map(|kind| cast(&texts, &kind).unwrap()),
    );
    let bytes: ArrayRef =
        Arc::new(BinaryArray::from(vec![&b""[..], &[0], &[0, 0], &[0, 1], &[0x80; 20], &[0xff]]));
    all.extend([DataType::LargeBinary, DataType::BinaryView].map(|kind| cast(&bytes, &kind).unwrap()));
    let fixed = [[0_u8, 0], [0, 1], [1, 0], [0xff, 0xff]];
    all.push(Arc::new(FixedSizeBinaryArray::try_from_iter(fixed.iter()).unwrap()));
    all.push(Arc::new(BooleanArray::from(vec![false, true])));
    let pair = |first: ArrayRef, second: ArrayRef| -> ArrayRef {
        let fields: Fields = [("x", &first), ("y", &second)]
            .map(|(name, array)| Field::new(name, array.data_type().clone(), true))
            .to_vec()
            .into();
        Arc::new(StructArray::new(fields, vec![first, second], None))
    };
    let nested = pair(ints(&[1, 1, 2, 2, 3]), Arc::clone(&texts));
    all.push(pair(to(&[-1, -1, 0, 0, 1], DataType::Timestamp(TimeUnit::Microsecond, zone())), nested));
    all.extend([texts, bytes]);
    all
}

fn int_codec() -> Codec {
    Codec::Plain(DataType::Int64)
}

fn columns(key: Codec, payload: Codec, sequence: Codec) -> Columns {
    let payload = vec![("a".to_owned(), payload), ("b".to_owned(), int_codec())];
    Columns { keys: vec![("k".to_owned(), key)], payload, sequence }
}

fn domain() -> Domain {
    Domain { keys: 6, sequences: 6, ..Domain::default() }
}

fn arrived(domain: &Domain) -> impl Strategy<Value = Vec<Vec<Event>>> + use<> {
    history(domain, 0..10).prop_flat_map(arrivals)
}

/// The key `ki` as the number `i` below `keys`.
fn key_number(event: &Event, keys: usize) -> Value {
    let Value::Text(name) = &event.key[0] else { panic!("keys are texts") };
    let number: usize = name[1..].parse().unwrap();
    Value::Int(i64::try_from(number % keys).unwrap())
}

fn seq_number(event: &Event, sequences: usize) -> Value {
    let Value::Int(seq) = event.seq else { panic!("sequences are numbers") };
    Value::Int(seq % i64::try_from(sequences).unwrap())
}

fn both_shapes(columns: &Columns, batches: &[Vec<Event>], map: impl Fn(&Event) -> Event) {
    for stored_as in [StoredAs::Scd1, StoredAs::Scd2] {
        let mut flow = Flow::new(columns.clone(), stored_as, None);
        let mut known = Vec::new();
        for batch in batches {
            let batch: Vec<Event> = batch.iter().map(&map).collect();
            flow.apply(&batch);
            known.extend(batch);
        }
        flow.check(&known);
    }
}

/// Payload types with values that collide, or differ by as little as possible.
fn payloads() -> Vec<(Type, Vec<Value>)> {
    let text = |text: &str| Value::text(text);
    let pair = |x: Value, y: Value| Value::fields([("x", x), ("y", y)]);
    let map = |entries: &[(&str, i64)]| {
        Value::Map(entries.iter().map(|&(key, value)| (text(key), Value::Int(value))).collect())
    };
    let pairs = vec![
        pair(Value::Null, Value::Null),
        pair(Value::Null, text("a")),
        pair(Value::Int(1), Value::Null),
        pair(Value::Int(1), text("a")),
    ];
    let maps = vec![map(&[]), map(&[("a", 1), ("b", 2)]), map(&[("b", 2), ("a", 1)]), map(&[("a", 2)])];
    let lists = |items: &[Value]| -> Vec<Value> {
        let mut lists = vec![Value::List(vec![]), Value::List(vec![Value::Null])];
        lists.extend(items.iter().map(|item| Value::List(vec![item.clone()])));
        lists.push(Value::List(vec![items[0].clone(), Value::Null]));
        lists
    };
    let floats: Vec<Value> = [-0.0, 0.0, f64::NAN, -f64::NAN, 1.5].map(Value::Float).to_vec();
    let bytes = vec![Value::Bytes(vec![]), Value::Bytes(vec![0]), Value::Bytes(vec![0xff])];
    let of = |name: &str| parse_type(name).unwrap();
    vec![
        (of("bool"), vec![false.into(), true.into()]),
        (of("text"), vec![text(""), text("a"), text("é")]),
        (of("bytes"), bytes),
        (of("list(float)"), lists(&floats)),
        (of("float"), floats.clone()),
        (of("list(struct(x int, y text))"), lists(&pairs)),
        (of("list(map(text, int))"), lists(&maps)),
        (
            of("struct(x map(text, int), y float)"),
            maps.iter().zip(&floats).map(|(map, float)| pair(map.clone(), float.clone())).collect(),
        ),
        (of("map(text, list(int))"), vec![Value::Map(vec![(text("a"), Value::List(vec![Value::Null]))])]),
        (of("struct(x int, y text)"), pairs),
        (of("map(text, int)"), maps),
    ]
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn c05_c06_every_type_of_sequence(batches in arrived(&domain()), which in any::<prop::sample::Index>()) {
        let types = ascending();
        let values = &types[which.index(types.len())];
        let columns = columns(Codec::Plain(DataType::Utf8), int_codec(), Codec::Domain(Arc::clone(values)));
        both_shapes(&columns, &batches, |event| {
            Event { seq: seq_number(event, values.len()), key: vec![Value::text("k")], ..event.clone() }
        });
    }

    #[test]
    fn c05_c06_every_type_of_key(batches in arrived(&domain()), which in any::<prop::sample::Index>()) {
        let types = ascending();
        let values = &types[which.index(types.len())];
        let columns = columns(Codec::Domain(Arc::clone(values)), int_codec(), int_codec());
        both_shapes(&columns, &batches, |event| {
            Event { key: vec![key_number(event, values.len())], ..event.clone() }
        });
    }

    #[test]
    fn c05_c06_composite_keys(
        batches in arrived(&domain()),
        which in any::<(prop::sample::Index, prop::sample::Index)>(),
    ) {
        let types = ascending();
        let (x, y) = (&types[which.0.index(types.len())], &types[which.1.index(types.len())]);
        let mut columns = columns(Codec::Domain(Arc::clone(x)), int_codec(), int_codec());
        columns.keys.push(("l".to_owned(), Codec::Domain(Arc::clone(y))));
        both_shapes(&columns, &batches, |event| {
            let (Value::Int(x), Value::Int(y)) = (key_number(event, 2), key_number(event, 3)) else { panic!("numbers") };
            let last = i64::try_from(y_len(&types, which.1)).unwrap() - 1;
            Event { key: vec![Value::Int(x), Value::Int(y.min(last))], ..event.clone() }
        });
    }

    #[test]
    fn c05_c06_c20_nested_payloads_and_odd_floats(
        batches in arrived(&Domain { keys: 1, sequences: 5, values: 5, ..Domain::default() }),
        which in any::<prop::sample::Index>(),
    ) {
        let types = payloads();
        let (kind, values) = &types[which.index(types.len())];
        let columns = columns(Codec::Plain(DataType::Utf8), Codec::Plain(data_type(kind)), int_codec());
        both_shapes(&columns, &batches, |event| {
            let mut event = event.clone();
            if let Some(value) = event.values.get_mut("a") && let Value::Int(i) = value {
                *value = values[usize::try_from(*i).unwrap() % values.len()].clone();
            }
            event
        });
    }
}

fn y_len(types: &[ArrayRef], which: prop::sample::Index) -> usize {
    types[which.index(types.len())].len()
}

/// A payload of any type is stored, compared and repeated; the values are in ascending order.
#[test]
fn every_flat_and_wrapped_type_does_as_payload() {
    let mut types = ascending();
    let ints: ArrayRef = Arc::new(Int64Array::from(vec![1, 2, 3, 4]));
    let field = Arc::new(Field::new("item", DataType::Int64, true));
    for kind in [
        DataType::FixedSizeList(Arc::clone(&field), 1),
        DataType::LargeList(field),
        DataType::Interval(IntervalUnit::YearMonth),
    ] {
        let from = if kind.is_nested() { Arc::clone(&ints) } else { cast(&ints, &DataType::Int32).unwrap() };
        types.push(cast(&from, &kind).unwrap());
    }
    for values in types {
        let kind = values.data_type().clone();
        let columns = columns(Codec::Plain(DataType::Utf8), Codec::Domain(values), int_codec());
        let of = |seq: i64, value: i64| upsert("k", seq, &[("a", value.into()), ("b", 0.into())]);
        let events = [of(1, 0), of(2, 1), of(2, 0), of(3, 1), delete("k", 4), of(5, 1), of(4, 0)];
        for stored_as in [StoredAs::Scd1, StoredAs::Scd2] {
            let mut flow = Flow::new(columns.clone(), stored_as, None);
            for event in &events {
                flow.apply(std::slice::from_ref(event));
            }
            flow.check(&events);
            assert!(flow.apply(&events).target.is_empty(), "{kind}");
        }
    }
}

#[test]
fn c73_a31_keys_that_are_equal_are_one_key_and_stored_in_one_form() {
    let odd = Float64Array::from(vec![-0.0, 0.0, f64::NAN, f64::from_bits(0xfff8_0000_0000_0001), 1.0]);
    let thin = Float32Array::from(vec![-0.0, 0.0, f32::NAN, f32::from_bits(0xffc0_0001), 1.0]);
    let half = cast(&odd, &DataType::Float16).unwrap();
    let wrapped: ArrayRef = {
        let fields: Fields = vec![Field::new("x", DataType::Float64, true)].into();
        Arc::new(StructArray::new(fields, vec![Arc::new(odd.clone())], None))
    };
    let same: ArrayRef = Arc::new(Int64Array::from(vec![7; 5]));
    for keys in [Arc::new(odd) as ArrayRef, Arc::new(thin), half, wrapped] {
        let kind = keys.data_type().clone();
        let columns = columns(Codec::Domain(Arc::clone(&keys)), int_codec(), int_codec());
        let spec = columns.spec(StoredAs::Scd1, None);
        let source = RecordBatch::try_from_iter([
            ("k", Arc::clone(&keys)),
            ("a", Arc::clone(&same)),
            ("b", Arc::clone(&same)),
        ]);
        let sequence: ArrayRef = Arc::new(Int64Array::from(vec![1, 2, 3, 4, 5]));
        let batch = ChangeBatch::new(&spec, &source.unwrap(), &sequence, None).unwrap();
        let plan_keys = spec.read_plan(&batch).unwrap().keys.unwrap();
        let expected = interleave(&[keys.as_ref()], &[(0, 1), (0, 2), (0, 4)]).unwrap();
        assert_eq!(plan_keys.column(0), &expected, "{kind}: zero, NaN and one");
        let index = KeyIndex::new(plan_keys.columns()).unwrap();
        assert_eq!(
            index.probe(&[keys]).unwrap(),
            [0, 0, 1, 1, 2],
            "{kind}: stored rows are found in any form"
        );
    }
}
