//! Did a column of a version have another name when some of its files were written?
//!
//! Files keep the names of when they were written. As long as no name and no number of a field has moved since, names are
//! as good as numbers.

use std::collections::BTreeSet;

use iceberg::spec::{ManifestContentType, NestedFieldRef, Schema, SchemaRef, TableMetadata};

use super::{chain, metadata::State};
use crate::{
    contract::Result,
    error::{Error, ErrorKind},
};

/// True when columns must be found by their numbers.
///
/// # Errors
/// `Unsupported` when fields within a column moved, which are found by their names only.
pub(super) fn moved(state: &State, now: &Schema) -> Result<bool> {
    let mut moved = false;
    for then in schemas(state) {
        let of = then.as_struct().fields().iter();
        moved |= of.clone().any(|field| is_another(now.as_struct().fields(), field));
        let top: BTreeSet<i32> = of.map(|field| field.id).collect();
        for (id, name) in then.field_id_to_name_map().iter().filter(|(id, _)| !top.contains(id)) {
            let renamed =
                now.field_by_id(*id).zip(then.field_by_id(*id)).is_some_and(|(a, b)| a.name != b.name);
            let another = now.field_id_by_name(name).is_some_and(|known| known != *id);
            if renamed || another {
                let message = "a field within a column was renamed, or its name given to another one, after files \
                               were written: rewrite the table's files with the engine that did it";
                return Err(Error::new(ErrorKind::Unsupported, message).with("field", name));
            }
        }
    }
    Ok(moved)
}

/// True when a field of before has another name now, or its name is another field's.
fn is_another(now: &[NestedFieldRef], then: &NestedFieldRef) -> bool {
    now.iter().any(|now| (now.id == then.id) != (now.name == then.name))
}

/// The schemas that live files may have been written with.
fn schemas(state: &State) -> Vec<&SchemaRef> {
    let metadata: &TableMetadata = &state.loaded.metadata;
    let data = state.manifests.iter().filter(|m| m.file.content == ManifestContentType::Data);
    let oldest = data.flat_map(|manifest| manifest.live()).map(|e| e.sequence_number().unwrap_or(0)).min();
    let Some(oldest) = oldest else { return Vec::new() };
    let from = state.snapshot.as_ref().map(|snapshot| snapshot.snapshot_id());
    let since: Vec<_> =
        chain::of(metadata, from).take_while(|snapshot| snapshot.sequence_number() >= oldest).collect();
    let known = since.last().is_some_and(|first| first.sequence_number() == oldest);
    let ids: Option<BTreeSet<i32>> = since.iter().map(|snapshot| snapshot.schema_id()).collect();
    match ids.filter(|_| known) {
        Some(ids) => ids.into_iter().filter_map(|id| metadata.schema_by_id(id)).collect(),
        None => metadata.schemas_iter().collect(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use iceberg::spec::{NestedField, PrimitiveType, Type};

    use super::*;

    fn fields_of(names: &[(i32, &str)]) -> Vec<NestedFieldRef> {
        let of = || Type::Primitive(PrimitiveType::Int);
        names.iter().map(|(id, name)| Arc::new(NestedField::optional(*id, name, of()))).collect()
    }

    #[test]
    fn a_field_moved_when_its_number_or_its_name_did() {
        let now = fields_of(&[(1, "a"), (3, "b")]);
        for (then, expected) in [((1, "a"), false), ((1, "x"), true), ((2, "b"), true), ((2, "c"), false)] {
            assert_eq!(is_another(&now, &fields_of(&[then])[0]), expected, "{then:?}");
        }
    }
}
