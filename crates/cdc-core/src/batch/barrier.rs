//! A barrier as an event of every key of a target.

use arrow_array::{ArrayRef, RecordBatch, UInt32Array, new_null_array};
use arrow_schema::SchemaRef;
use arrow_select::{concat::concat, concat::concat_batches, take::take};

use super::ChangeBatch;
use crate::{
    algebra::order::Op,
    columnar::canonical::{Role, canonical},
    error::CdcError,
    spec::CdcSpec,
};

impl ChangeBatch {
    /// The sequence of the batch's barrier, as an array of length 1.
    pub(crate) fn barrier(&self) -> Option<&ArrayRef> {
        self.truncate.as_ref().or(self.snapshot.as_ref())
    }

    /// These changes, and for each stored row an event of its key: the batch's barrier. `None` without a barrier.
    pub(crate) fn with_barrier(
        &self,
        spec: &CdcSpec,
        stored: [&RecordBatch; 2],
    ) -> Result<Option<Self>, CdcError> {
        let Some(at) = self.barrier() else { return Ok(None) };
        let mut all = self.clone();
        for rows in stored {
            all = all.with_barrier_of(spec, rows, at)?;
        }
        Ok(Some(all))
    }

    fn with_barrier_of(&self, spec: &CdcSpec, stored: &RecordBatch, at: &ArrayRef) -> Result<Self, CdcError> {
        let rows = stored.num_rows();
        let keys = spec.key_columns(stored)?;
        let keys = keys.iter().map(|key| canonical(key, Role::Identity)).collect::<Result<Vec<_>, _>>()?;
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
