//! A barrier as an event of every key of a target.

use arrow_array::{ArrayRef, RecordBatch, UInt32Array, new_null_array};
use arrow_schema::SchemaRef;
use arrow_select::{concat::concat, concat::concat_batches, take::take};

use super::ChangeBatch;
use crate::{algebra::order::Op, error::CdcError, spec::CdcSpec};

impl ChangeBatch {
    /// These changes, and for each row of the target an event of its key: a barrier at `at`, an array of length 1.
    pub(crate) fn with_barrier(
        &self,
        spec: &CdcSpec,
        target: &RecordBatch,
        at: &ArrayRef,
    ) -> Result<Self, CdcError> {
        let rows = target.num_rows();
        let keys = spec.key_columns(target)?;
        let column = |(place, field): (usize, &arrow_schema::FieldRef)| {
            let key = spec.keys.iter().position(|&key| key == place);
            let key = key.and_then(|key| keys.get(key)).map(ArrayRef::clone);
            key.unwrap_or_else(|| new_null_array(field.data_type(), rows))
        };
        let columns = spec.kept.fields().iter().enumerate().map(column).collect();
        let barriers = RecordBatch::try_new(SchemaRef::clone(&spec.kept), columns)?;
        let sequences = take(at, &UInt32Array::from(vec![0; rows]), None)?;
        Ok(Self {
            rows: concat_batches(&spec.kept, [&self.rows, &barriers])?,
            sequence: concat(&[&self.sequence, &sequences])?,
            ops: self.ops.iter().copied().chain(std::iter::repeat_n(Op::Barrier, rows)).collect(),
            authored: self.authored.as_ref().map(|leaves| {
                let none = std::iter::repeat_n(false, rows);
                leaves.iter().map(|set| set.iter().chain(none.clone()).collect()).collect()
            }),
            ..self.clone()
        })
    }
}
