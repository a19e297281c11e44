//! Which rows are among the old ones and not among the new ones, and the other way round?
//!
//! Rows are compared by a hash of 128 bits of their values, each as often as it occurs, so that moved rows need little
//! memory however many they are. Only what really changed is held.

use std::{
    collections::BTreeMap,
    hash::{DefaultHasher, Hasher},
    sync::Arc,
};

use arrow_array::{ArrayRef, BooleanArray, RecordBatch, StringArray};
use arrow_row::{RowConverter, Rows, SortField};
use arrow_schema::SchemaRef;
use arrow_select::{concat::concat_batches, filter::filter_record_batch};
use futures::StreamExt;

use crate::contract::{BatchStream, DELETE, INSERT, Result, UPDATE_POSTIMAGE, UPDATE_PREIMAGE};

/// Rows that went and rows that came.
pub(super) struct Difference {
    gone: RecordBatch,
    come: RecordBatch,
}

/// The difference of two sets of rows of one schema. Each is a function, for rows may have to be read twice.
pub(super) async fn of(
    old: &(dyn Fn() -> BatchStream + Sync),
    new: &(dyn Fn() -> BatchStream + Sync),
    schema: &SchemaRef,
) -> Result<Difference> {
    let codec = Codec::new(schema)?;
    let mut left: BTreeMap<u128, u32> = BTreeMap::new();
    let mut rows = old();
    while let Some(batch) = rows.next().await {
        for hash in codec.hashes(&batch?)? {
            *left.entry(hash).or_default() += 1;
        }
    }
    // What is among the new rows too did not go; the new rows that are left over came.
    let come = unmatched(new(), &codec, &mut left, schema).await?;
    left.retain(|_, count| *count > 0);
    let gone = if left.is_empty() {
        RecordBatch::new_empty(Arc::clone(schema))
    } else {
        matched(old(), &codec, &mut left, schema).await?
    };
    Ok(Difference { gone, come })
}

/// Rows that find no partner; each partner serves once.
async fn unmatched(
    rows: BatchStream,
    codec: &Codec,
    left: &mut BTreeMap<u128, u32>,
    schema: &SchemaRef,
) -> Result<RecordBatch> {
    kept(rows, codec, schema, |hash| !serve(left, hash)).await
}

/// Rows that find a partner.
async fn matched(
    rows: BatchStream,
    codec: &Codec,
    left: &mut BTreeMap<u128, u32>,
    schema: &SchemaRef,
) -> Result<RecordBatch> {
    kept(rows, codec, schema, |hash| serve(left, hash)).await
}

fn serve(left: &mut BTreeMap<u128, u32>, hash: u128) -> bool {
    match left.get_mut(&hash) {
        Some(count) if *count > 0 => {
            *count -= 1;
            true
        }
        _ => false,
    }
}

async fn kept(
    mut rows: BatchStream,
    codec: &Codec,
    schema: &SchemaRef,
    mut keep: impl FnMut(u128) -> bool,
) -> Result<RecordBatch> {
    let mut all = Vec::new();
    while let Some(batch) = rows.next().await {
        let batch = batch?;
        let mask: BooleanArray = codec.hashes(&batch)?.into_iter().map(|hash| Some(keep(hash))).collect();
        if mask.true_count() > 0 {
            all.push(filter_record_batch(&batch, &mask)?);
        }
    }
    Ok(concat_batches(schema, &all)?)
}

/// The rows of a difference with what became of each. Rows of one key are one row before and after.
pub(super) fn paired(
    difference: Difference,
    keys: &[String],
    schema: &SchemaRef,
) -> Result<Vec<(RecordBatch, ArrayRef)>> {
    let Difference { gone, come } = difference;
    let (mut before, mut after) = (vec![DELETE; gone.num_rows()], vec![INSERT; come.num_rows()]);
    if !keys.is_empty() && gone.num_rows() > 0 && come.num_rows() > 0 {
        let places = keys.iter().map(|key| schema.index_of(key)).collect::<Result<Vec<_>, _>>()?;
        let codec = Codec::new(&Arc::new(schema.project(&places)?))?;
        let (old, new) = (codec.rows(&gone.project(&places)?)?, codec.rows(&come.project(&places)?)?);
        let mut waiting: BTreeMap<&[u8], Vec<usize>> = BTreeMap::new();
        for at in (0..old.num_rows()).rev() {
            waiting.entry(old.row(at).data()).or_default().push(at);
        }
        for (at, word) in after.iter_mut().enumerate() {
            let partner = waiting.get_mut(new.row(at).data()).and_then(Vec::pop);
            if let Some(was) = partner.and_then(|partner| before.get_mut(partner)) {
                (*was, *word) = (UPDATE_PREIMAGE, UPDATE_POSTIMAGE);
            }
        }
    }
    let words = |words: Vec<&str>| -> ArrayRef { Arc::new(StringArray::from(words)) };
    let batches = [(gone, words(before)), (come, words(after))];
    Ok(batches.into_iter().filter(|(rows, _)| rows.num_rows() > 0).collect())
}

/// Values of rows as bytes that are equal when the values are.
struct Codec {
    converter: RowConverter,
}

impl Codec {
    fn new(schema: &SchemaRef) -> Result<Self> {
        let fields = schema.fields().iter().map(|field| SortField::new(field.data_type().clone()));
        Ok(Self { converter: RowConverter::new(fields.collect())? })
    }

    fn rows(&self, batch: &RecordBatch) -> Result<Rows> {
        Ok(self.converter.convert_columns(batch.columns())?)
    }

    fn hashes(&self, batch: &RecordBatch) -> Result<Vec<u128>> {
        let rows = self.rows(batch)?;
        Ok(rows.iter().map(|row| hash(row.data())).collect())
    }
}

fn hash(bytes: &[u8]) -> u128 {
    let half = |seed: u8| {
        let mut hasher = DefaultHasher::new();
        hasher.write_u8(seed);
        hasher.write(bytes);
        u128::from(hasher.finish())
    };
    (half(1) << 64) | half(2)
}
