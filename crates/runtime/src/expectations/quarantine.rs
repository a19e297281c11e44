//! Where do rows go that a constraint drops, if they are not to be lost?
//!
//! Into a table of their own, which the engine makes. What a batch drops is committed there once, with the stamp of the
//! batch, before its other rows are committed to the target: a batch that is applied again finds it there.

use std::sync::Arc;

use arrow_array::{
    ArrayRef, BooleanArray, Int64Array, RecordBatch, StringArray, TimestampMicrosecondArray,
    builder::{ListBuilder, StringBuilder},
};
use arrow_schema::{DataType, Field, Schema, SchemaRef, TimeUnit};
use arrow_select::filter::filter_record_batch;
use futures::{FutureExt, StreamExt, stream};
use strandline_table_formats::contract::{Table, TableDefinition, TableFormat};

use super::{Expectations, Verdict};
use crate::{
    batch::{self, Writer},
    clock::milliseconds,
    error::{Error, ErrorKind, Result},
    sources::SourceStream,
    state::PlannedBatch,
    types::conform,
};

/// Names of the constraints that the row violates.
const VIOLATED: &str = "_violated_constraints";
/// The flow that brought the row.
const FLOW: &str = "_flow";
/// The batch of that flow.
const BATCH: &str = "_batch";
/// When the batch was planned.
const QUARANTINED_AT: &str = "_quarantined_at";
/// Of an AUTO CDC flow: the row's place in the order of changes.
pub(crate) const SEQUENCE: &str = "_sequence";

/// The columns of a quarantine table: those of the rows, [`SEQUENCE`] where rows have one, and what happened to them.
///
/// # Errors
/// `Definition` when the rows have a column of such a name.
pub(crate) fn columns(rows: &Schema, sequence: Option<&DataType>) -> Result<SchemaRef> {
    let violated = DataType::List(Arc::new(Field::new_list_field(DataType::Utf8, true)));
    let at = DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
    let own = sequence.map(|sequence| (SEQUENCE, sequence.clone())).into_iter();
    let own = own.chain([
        (VIOLATED, violated),
        (FLOW, DataType::Utf8),
        (BATCH, DataType::Int64),
        (QUARANTINED_AT, at),
    ]);
    let mut fields: Vec<Field> =
        rows.fields().iter().map(|field| field.as_ref().clone().with_nullable(true)).collect();
    for (name, data_type) in own {
        if rows.field_with_name(name).is_ok() {
            return Err(Error::new(
                ErrorKind::Definition,
                "a column has a name that the quarantine table needs",
            )
            .with("column", name)
            .help("give it an alias in the flow's query"));
        }
        fields.push(Field::new(name, data_type, true));
    }
    Ok(Arc::new(Schema::new(fields)))
}

/// Property of a quarantine table: the table whose rows it takes.
const PROPERTY: &str = "strandline.quarantine_of";

/// The quarantine table of a target, and which flow writes to it.
#[derive(Debug, Clone)]
pub(crate) struct Quarantine {
    table: Arc<dyn Table>,
    writer: Writer,
    schema: SchemaRef,
}

/// What a new quarantine table is.
pub(crate) fn definition(of: &str, schema: SchemaRef) -> TableDefinition {
    TableDefinition {
        schema,
        keys: Vec::new(),
        properties: [(PROPERTY.to_owned(), of.to_owned())].into(),
        comment: Some(format!("rows that the constraints of {of} dropped")),
    }
}

impl Quarantine {
    /// Opens or creates the table `name` for what is dropped of the rows of `of`.
    pub(crate) async fn open(
        format: &dyn TableFormat,
        name: &str,
        of: &str,
        schema: SchemaRef,
        writer: Writer,
    ) -> Result<Self> {
        let table = if let Some(table) = format.open(name).await? {
            let found = table.snapshot().await?.properties().get(PROPERTY).cloned();
            if found.as_deref() != Some(of) {
                return Err(Error::new(
                    ErrorKind::State,
                    "the quarantine table exists and is something else",
                )
                .with("table", name)
                .with("quarantine of", found.as_deref().unwrap_or("nothing"))
                .help("name another table in strandline.quarantine, or drop this one"));
            }
            table
        } else {
            format.check_schema(&schema)?;
            format.create(name, &definition(of, Arc::clone(&schema))).await?
        };
        Ok(Self { table, writer, schema })
    }

    /// What the table gets of the rows that were judged. `sequence` is theirs.
    pub(crate) fn rows(
        &self,
        (expectations, verdict): (&Expectations, &Verdict),
        judged: &RecordBatch,
        sequence: Option<&ArrayRef>,
        planned: &PlannedBatch,
    ) -> Result<RecordBatch> {
        let mut fields: Vec<_> = judged.schema().fields().iter().cloned().collect();
        let mut columns = judged.columns().to_vec();
        if let Some(sequence) = sequence {
            fields.push(Arc::new(Field::new(SEQUENCE, sequence.data_type().clone(), true)));
            columns.push(Arc::clone(sequence));
        }
        let with_sequence = RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)?;
        let drop = complement(&verdict.keep);
        let dropped = filter_record_batch(&with_sequence, &drop)?;
        let n = dropped.num_rows();
        let mut violated = ListBuilder::new(StringBuilder::new());
        for row in drop.values().set_indices() {
            verdict.violated_by(expectations, row).for_each(|name| violated.values().append_value(name));
            violated.append(true);
        }
        let batch = i64::try_from(planned.number).unwrap_or(i64::MAX);
        let at = milliseconds(&planned.plan.planned_at).map(|millis| millis.saturating_mul(1000));
        let own: [(&str, ArrayRef); 4] = [
            (VIOLATED, Arc::new(violated.finish())),
            (FLOW, Arc::new(StringArray::from(vec![self.writer.id.flow.as_str(); n]))),
            (BATCH, Arc::new(Int64Array::from(vec![batch; n]))),
            (QUARANTINED_AT, Arc::new(TimestampMicrosecondArray::from(vec![at; n]).with_timezone("UTC"))),
        ];
        let names = dropped.schema().fields().iter().map(|field| field.name().clone()).collect::<Vec<_>>();
        let all = names.iter().map(String::as_str).zip(dropped.columns().iter().cloned()).chain(own);
        let all = RecordBatch::try_from_iter_with_nullable(all.map(|(name, column)| (name, column, true)))?;
        conform(&all, &self.schema)
    }
}

/// Rows on their way into quarantine.
#[derive(Debug, Clone)]
pub(crate) struct Dropped {
    pub(crate) quarantine: Quarantine,
    pub(crate) rows: Vec<RecordBatch>,
}

impl Dropped {
    /// Commits them as what batch `number` dropped, unless that is there.
    pub(crate) async fn commit(&self, number: u64) -> Result<()> {
        let rows = || {
            let rows: Vec<Result<RecordBatch>> = self.rows.iter().cloned().map(Ok).collect();
            async move { Ok(stream::iter(rows).boxed() as SourceStream) }.boxed()
        };
        let Quarantine { table, writer, .. } = &self.quarantine;
        batch::append(table.as_ref(), writer, number, &rows).await.map(drop)
    }
}

fn complement(flags: &BooleanArray) -> BooleanArray {
    BooleanArray::new(!flags.values(), None)
}
