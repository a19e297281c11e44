// What the examples of the guide share: a target in memory, fed with lines of text and printed as lines of text.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, BooleanArray, Int64Array, RecordBatch, StringArray, UInt64Array, cast::AsArray};
use arrow_schema::{DataType, Field, Schema};
use strandline_cdc_core::*;

type Result<T = (), E = Box<dyn std::error::Error>> = std::result::Result<T, E>;

/// A target with a key `k`, a sequence of whole numbers, and columns of text.
struct Target {
    spec: CdcSpec,
    prior: Prior,
    columns: Vec<&'static str>,
}

impl Target {
    fn new(options: CdcOptions, columns: &[&'static str]) -> Result<Self> {
        let options = CdcOptions { keys: vec!["k".to_owned()], ..options };
        let fields = std::iter::once(&"k").chain(columns).map(|name| Field::new(*name, DataType::Utf8, true));
        let system = (options.stored_as == StoredAs::Bitemporal).then_some(DataType::Int64);
        let types = SequenceTypes { sequence: DataType::Int64, system };
        let spec = CdcSpec::new(&options, &Schema::new(fields.collect::<Vec<_>>()), types)?;
        Ok(Self { prior: Prior::empty(&spec), spec, columns: columns.to_vec() })
    }

    /// Each line is an event: key, sequence, perhaps system sequence, what it does (`U`, `D`, `T`), values (`-` is NULL).
    fn feed(&mut self, events: &[&str]) -> Result {
        let cells: Vec<Vec<&str>> = events.iter().map(|event| event.split_whitespace().collect()).collect();
        let cell = |row: usize, at: usize| cells[row].get(at).copied().filter(|cell| *cell != "-");
        let texts = |at: usize| -> ArrayRef { Arc::new((0..cells.len()).map(|row| cell(row, at)).collect::<StringArray>()) };
        let ints = |at: usize| -> ArrayRef {
            Arc::new((0..cells.len()).map(|row| cell(row, at).and_then(|cell| cell.parse().ok())).collect::<Int64Array>())
        };
        let system = self.spec.system_sequence_type().map(|_| ints(2));
        let op = 2 + usize::from(system.is_some());
        let is = |what: &str| -> BooleanArray { (0..cells.len()).map(|row| Some(cell(row, op) == Some(what))).collect() };
        let named = self.columns.iter().enumerate().map(|(i, name)| (*name, texts(op + 1 + i)));
        let source = RecordBatch::try_from_iter_with_nullable(
            std::iter::once(("k", texts(0))).chain(named).map(|(name, array)| (name, array, true)),
        )?;
        let (sequence, deletes, truncates) = (ints(1), is("D"), is("T"));
        let changes = ChangeBatch::of(&self.spec, &ChangeInput {
            system_sequence: system.as_ref(),
            deletes: Some(&deletes),
            truncates: Some(&truncates),
            ..ChangeInput::new(&source, &sequence)
        })?;
        // Everything is read here. A table asks `read_plan` what it needs.
        let Reconciliation::Done(done) = self.spec.reconcile(&self.prior, &changes)? else {
            return Err("everything was read".into());
        };
        apply(&mut self.prior.visible, &done.target)?;
        apply(&mut self.prior.hidden, &done.side)?;
        self.prior.barriers = done.barriers;
        Ok(())
    }

    /// The rows, sorted, with `-` for NULL.
    fn rows(&self) -> Vec<String> {
        let batch = &self.prior.visible.batch;
        let cell = |column: &ArrayRef, row: usize| match column.data_type() {
            _ if column.is_null(row) => "-".to_owned(),
            DataType::Utf8 => column.as_string::<i32>().value(row).to_owned(),
            _ => column.as_primitive::<arrow_array::types::Int64Type>().value(row).to_string(),
        };
        let line = |row: usize| batch.columns().iter().map(|column| cell(column, row)).collect::<Vec<_>>().join(" ");
        let mut rows: Vec<String> = (0..batch.num_rows()).map(line).collect();
        rows.sort();
        rows
    }
}

/// First some rows go, then some come.
fn apply(rows: &mut Rows, changes: &RowChanges) -> Result {
    let stays = |id: &u64| !changes.deletes.values().contains(id);
    let kept: BooleanArray = rows.ids.values().iter().map(|id| Some(stays(id))).collect();
    let kept = arrow_select::filter::filter_record_batch(&rows.batch, &kept)?;
    rows.batch = arrow_select::concat::concat_batches(&kept.schema(), [&kept, &changes.inserts])?;
    rows.ids = UInt64Array::from_iter_values(0..rows.batch.num_rows() as u64);
    Ok(())
}
