//! Which columns do side rows have?

use std::sync::Arc;

use arrow_schema::{DataType, Field, FieldRef, SchemaRef};

use super::{CdcSpec, SystemTime, resolve::system, schema_of};
use crate::names;

/// The kept columns, then those that say what a side row stands for.
pub(super) fn side_schema(spec: &CdcSpec) -> SchemaRef {
    let given = |data_type: &DataType| {
        let monotonic = spec.system_time == SystemTime::Monotonic;
        monotonic.then(|| system(names::SYSTEM_SEQUENCE_GIVEN, data_type))
    };
    let own = [system(names::SEQUENCE_AT, &spec.sequence_type), system(names::SIDE_KIND, &DataType::Int8)];
    let of_partial_updates = spec.is_partial().then(authored_field);
    let of_bitemporal = spec.system_type.iter().flat_map(|data_type| {
        [Some(system(names::SYSTEM_SEQUENCE_AT, data_type)), given(data_type)].into_iter().flatten()
    });
    let of_expiry = spec.tombstones_expire.then(|| system(names::APPLIED_AT, &DataType::Int64));
    let kept = spec.kept.fields().iter().cloned();
    schema_of(kept.chain(own).chain(of_partial_updates).chain(of_bitemporal).chain(of_expiry))
}

/// The side column that lists the columns which an event authored.
fn authored_field() -> FieldRef {
    system(names::AUTHORED, &DataType::List(Arc::new(Field::new("item", DataType::Utf8, true))))
}
