//! What a table is after a commit, apart from its files: columns, partitioning, order.

use arrow_schema::Schema;
use iceberg::{
    TableUpdate,
    spec::{
        NullOrder, PartitionSpec, Schema as IcebergSchema, SortDirection, SortField, SortOrder,
        TableMetadata as IcebergTable, TableMetadataBuilder, Transform, UnboundPartitionSpec,
    },
};

use crate::{
    contract::Result,
    error::{Error, ErrorKind},
    iceberg::schema,
    metadata::{FileChanges, TableHead},
};

/// The table after a commit, but for snapshot and properties.
pub(in crate::iceberg) struct Shape {
    /// What makes the table so; none when it stays as it is.
    pub(in crate::iceberg) updates: Vec<TableUpdate>,
    /// The metadata that the updates make.
    pub(in crate::iceberg) metadata: IcebergTable,
}

impl Shape {
    /// The shape after a change.
    pub(super) fn of(metadata: &IcebergTable, base: &TableHead, change: &FileChanges) -> Result<Self> {
        let mut updates = Vec::new();
        if let Some(definition) = &change.definition {
            let new = numbered(metadata, &definition.schema, &definition.keys)?;
            let order = sort_order(&new, &definition.keys);
            updates.extend(departitioned(metadata, &new));
            updates.extend(columns(metadata, new));
            updates.extend(sorted(metadata, order));
        } else if let Some(schema) = &change.schema {
            updates.extend(columns(metadata, numbered(metadata, schema, &base.keys)?));
        }
        let failed =
            |e| Error::new(ErrorKind::Unsupported, "the table's columns can't be changed so").because(e);
        let metadata = if updates.is_empty() {
            metadata.clone()
        } else {
            let builder = metadata.clone().into_builder(None);
            let applied = updates.iter().cloned().try_fold(builder, |builder, update| update.apply(builder));
            applied.and_then(TableMetadataBuilder::build).map_err(failed)?.metadata
        };
        Ok(Self { updates, metadata })
    }
}

/// Columns with the numbers that the table has for them, or gets.
pub(in crate::iceberg) fn numbered(
    metadata: &IcebergTable,
    columns: &Schema,
    keys: &[String],
) -> Result<IcebergSchema> {
    schema::evolved(Some(metadata.current_schema()), metadata.last_column_id(), columns, keys)
}

fn columns(metadata: &IcebergTable, new: IcebergSchema) -> Vec<TableUpdate> {
    let now = metadata.current_schema();
    let same =
        now.as_struct() == new.as_struct() && now.identifier_field_ids().eq(new.identifier_field_ids());
    if same {
        return Vec::new();
    }
    // A server adds no second schema that is the same, and then none was added last.
    let known = metadata.schemas_iter().find(|known| {
        known.as_struct() == new.as_struct() && known.identifier_field_ids().eq(new.identifier_field_ids())
    });
    if let Some(known) = known {
        return vec![TableUpdate::SetCurrentSchema { schema_id: known.schema_id() }];
    }
    let schema_id = TableMetadataBuilder::LAST_ADDED;
    vec![TableUpdate::AddSchema { schema: new }, TableUpdate::SetCurrentSchema { schema_id }]
}

fn sorted(metadata: &IcebergTable, order: SortOrder) -> Vec<TableUpdate> {
    if metadata.default_sort_order().fields == order.fields {
        return Vec::new();
    }
    // As with schemas.
    if let Some(known) = metadata.sort_orders_iter().find(|known| known.fields == order.fields) {
        return vec![TableUpdate::SetDefaultSortOrder { sort_order_id: known.order_id }];
    }
    let sort_order_id = i64::from(TableMetadataBuilder::LAST_ADDED);
    vec![TableUpdate::AddSortOrder { sort_order: order }, TableUpdate::SetDefaultSortOrder { sort_order_id }]
}

/// A table that lost a column by which it is partitioned is not partitioned any more.
fn departitioned(metadata: &IcebergTable, new: &IcebergSchema) -> Vec<TableUpdate> {
    if !lacks_source(metadata.default_partition_spec(), new) {
        return Vec::new();
    }
    let known = metadata.partition_specs_iter().find(|spec| spec.is_unpartitioned());
    if let Some(known) = known {
        return vec![TableUpdate::SetDefaultSpec { spec_id: known.spec_id() }];
    }
    let spec_id = TableMetadataBuilder::LAST_ADDED;
    let spec = UnboundPartitionSpec::builder().build();
    vec![TableUpdate::AddSpec { spec }, TableUpdate::SetDefaultSpec { spec_id }]
}

/// True when a column by which files are partitioned is none of these.
pub(in crate::iceberg) fn lacks_source(spec: &PartitionSpec, columns: &IcebergSchema) -> bool {
    spec.fields().iter().any(|field| columns.field_by_id(field.source_id).is_none())
}

/// Files are sorted by key, as far as Iceberg can say it.
pub(in crate::iceberg) fn sort_order(schema: &IcebergSchema, keys: &[String]) -> SortOrder {
    let field = |key: &String| {
        let field = schema.as_struct().field_by_name(key)?;
        field.field_type.is_primitive().then(|| SortField {
            source_id: field.id,
            transform: Transform::Identity,
            direction: SortDirection::Ascending,
            null_order: NullOrder::First,
        })
    };
    let fields: Vec<_> = keys.iter().map_while(field).collect();
    if fields.is_empty() { SortOrder::unsorted_order() } else { SortOrder { order_id: 1, fields } }
}
