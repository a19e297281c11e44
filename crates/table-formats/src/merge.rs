//! Merging streams of rows that are sorted by key into one.
//!
//! When a stream is not sorted after all (somebody else wrote the file), no row is lost; the result is merely not sorted
//! either.

use std::sync::Arc;

use arrow_array::{RecordBatch, UInt32Array};
use arrow_select::{concat::concat_batches, take::take_record_batch};
use futures::{StreamExt, stream};

use crate::{
    contract::{BatchStream, Result},
    keys::{self, KeyCodec, KeyRows},
};

struct Merge {
    inputs: Vec<Input>,
    codec: KeyCodec,
    names: Vec<String>,
}

struct Input {
    batches: BatchStream,
    /// What is left of the current batch, with its keys.
    current: Option<(RecordBatch, KeyRows)>,
    /// The first row of it that has not gone out.
    at: usize,
}

/// Rows of all inputs by key. All have one schema.
pub(crate) fn by_key(
    inputs: Vec<BatchStream>,
    schema: &arrow_schema::Schema,
    names: &[String],
) -> Result<BatchStream> {
    if names.is_empty() || inputs.len() < 2 {
        return Ok(stream::iter(inputs).flatten().boxed());
    }
    let types = names
        .iter()
        .map(|name| Ok(schema.field_with_name(name)?.data_type().clone()))
        .collect::<Result<Vec<_>>>()?;
    let inputs = inputs.into_iter().map(|batches| Input { batches, current: None, at: 0 }).collect();
    let merge = Merge { inputs, codec: KeyCodec::new(&types)?, names: names.to_vec() };
    Ok(stream::try_unfold(merge, async |mut merge| Ok(merge.next().await?.map(|batch| (batch, merge))))
        .boxed())
}

/// A batch's rows in key order.
pub(crate) fn sorted(batch: RecordBatch, names: &[String]) -> Result<RecordBatch> {
    if names.is_empty() || batch.num_rows() < 2 {
        return Ok(batch);
    }
    let columns = keys::columns(&batch, names)?;
    let types: Vec<_> = columns.iter().map(|c| c.data_type().clone()).collect();
    let keys = KeyCodec::new(&types)?.encode(&columns)?;
    if keys.is_sorted() {
        return Ok(batch);
    }
    Ok(take_record_batch(&batch, &UInt32Array::from(keys.sorted()))?)
}

impl Merge {
    async fn next(&mut self) -> Result<Option<RecordBatch>> {
        self.fill().await?;
        if let [only] = &mut self.inputs[..] {
            return Ok(only.take_rest());
        }
        // Every row up to the smallest last key may go out: what comes later is not before it.
        let Some(pivot) = self.pivot() else { return Ok(None) };
        let ends = self.ends(pivot);
        let mut pieces = Vec::new();
        for (input, end) in self.inputs.iter_mut().zip(ends) {
            pieces.extend(input.take_until(end));
        }
        let [piece] = &pieces[..] else {
            let Some(first) = pieces.first() else { return Ok(None) };
            let schema = Arc::clone(first.schema_ref());
            let together = concat_batches(&schema, &pieces)?;
            let keys = self.codec.encode(&keys::columns(&together, &self.names)?)?;
            return Ok(Some(take_record_batch(&together, &UInt32Array::from(keys.sorted()))?));
        };
        Ok(Some(piece.clone()))
    }

    /// Gives each input a current batch, and forgets those that have none.
    async fn fill(&mut self) -> Result<()> {
        for input in &mut self.inputs {
            while input.current.is_none() {
                let Some(batch) = input.batches.next().await else { break };
                let batch = batch?;
                if batch.num_rows() > 0 {
                    let keys = self.codec.encode(&keys::columns(&batch, &self.names)?)?;
                    input.current = Some((batch, keys));
                    input.at = 0;
                }
            }
        }
        self.inputs.retain(|input| input.current.is_some());
        Ok(())
    }

    fn pivot(&self) -> Option<usize> {
        let last = |i: &usize| self.inputs.get(*i).and_then(|input| input.current.as_ref()).map(|c| &c.1);
        (0..self.inputs.len()).min_by(|a, b| match (last(a), last(b)) {
            (Some(a), Some(b)) => a.compare(a.len() - 1, b, b.len() - 1),
            _ => std::cmp::Ordering::Equal,
        })
    }

    /// Where the rows up to the pivot's last key end, in each input's current batch.
    fn ends(&self, pivot: usize) -> Vec<usize> {
        let last = self.inputs.get(pivot).and_then(|input| input.current.as_ref()).map(|c| &c.1);
        self.inputs
            .iter()
            .enumerate()
            .map(|(i, input)| match (&input.current, last) {
                (Some((batch, _)), _) if i == pivot => batch.num_rows(),
                (Some((_, keys)), Some(last)) => {
                    keys.first_not(input.at, |k| keys.compare(k, last, last.len() - 1).is_le())
                }
                _ => input.at,
            })
            .collect()
    }
}

impl Input {
    fn take_rest(&mut self) -> Option<RecordBatch> {
        let (batch, _) = self.current.take()?;
        Some(batch.slice(self.at, batch.num_rows() - self.at))
    }

    fn take_until(&mut self, end: usize) -> Option<RecordBatch> {
        let rows = self.current.as_ref()?.0.num_rows();
        if end >= rows {
            return self.take_rest();
        }
        let piece =
            (end > self.at).then(|| self.current.as_ref().map(|c| c.0.slice(self.at, end - self.at)))?;
        self.at = end;
        piece
    }
}
