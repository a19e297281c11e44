//! Row ids, and reading rows with their positions.

use std::sync::Arc;

use arrow_array::{BooleanArray, RecordBatch, UInt64Array};
use arrow_schema::SchemaRef;
use arrow_select::filter::filter_record_batch;
use futures::{Stream, StreamExt, TryStreamExt, stream};
use roaring::RoaringBitmap;

use crate::{
    contract::{BatchStream, Result},
    error::{Error, ErrorKind},
    parquet::{FileReader, GroupRows, Read, Spans},
    schema::adapt,
};

/// Bits of a row id that hold the position; the rest holds the file's place in its snapshot's list.
const POSITION_BITS: u32 = 40;

/// The id of a row.
pub(crate) fn row_id(file: usize, position: u32) -> u64 {
    ((file as u64) << POSITION_BITS) | u64::from(position)
}

/// Positions to delete, by file; an id that is not of these files is an error.
pub(crate) fn positions_by_file(
    ids: impl IntoIterator<Item = u64>,
    rows_of: impl Fn(usize) -> Option<u64>,
) -> Result<std::collections::BTreeMap<usize, RoaringBitmap>> {
    let mut files = std::collections::BTreeMap::<usize, RoaringBitmap>::new();
    for id in ids {
        let file = usize::try_from(id >> POSITION_BITS).unwrap_or(usize::MAX);
        let position = id & ((1 << POSITION_BITS) - 1);
        let known = rows_of(file).is_some_and(|rows| position < rows);
        match u32::try_from(position) {
            Ok(position) if known => files.entry(file).or_default().insert(position),
            _ => {
                return Err(Error::new(
                    ErrorKind::Invalid,
                    format!("row id {id} is not of the base version"),
                ));
            }
        };
    }
    Ok(files)
}

/// Turns places in consecutive batches into positions in the file, when only some row groups are read.
#[derive(Debug)]
pub(crate) struct Positions {
    spans: std::vec::IntoIter<(u64, u64)>,
    at: u64,
    left: u64,
}

impl Positions {
    /// Positions of these rows of row groups.
    pub(crate) fn of_parts(group_rows: &[u64], parts: &[GroupRows]) -> Self {
        let starts = starts(group_rows);
        let spans: Vec<_> = parts
            .iter()
            .filter_map(|part| Some((*starts.get(part.group)?, part)))
            .flat_map(|(start, part)| {
                part.spans.iter().map(move |span| (start + span.start, span.end - span.start))
            })
            .collect();
        Self { spans: spans.into_iter(), at: 0, left: 0 }
    }

    /// Positions of the next rows.
    pub(crate) fn next(&mut self, rows: usize) -> Result<Vec<u32>> {
        let mut positions = Vec::with_capacity(rows);
        let mut wanted = rows as u64;
        while wanted > 0 {
            if self.left == 0 {
                let span = self
                    .spans
                    .next()
                    .ok_or_else(|| Error::new(ErrorKind::Corrupt, "more rows than the footer says"))?;
                (self.at, self.left) = span;
            }
            let some = wanted.min(self.left);
            for position in self.at..self.at + some {
                positions.push(
                    u32::try_from(position)
                        .map_err(|_| Error::new(ErrorKind::Unsupported, "a file of over 4 billion rows"))?,
                );
            }
            self.at += some;
            self.left -= some;
            wanted -= some;
        }
        Ok(positions)
    }
}

/// The first position of each row group.
fn starts(group_rows: &[u64]) -> Vec<u64> {
    let ends = group_rows.iter().scan(0_u64, |end, rows| {
        let start = *end;
        *end = end.saturating_add(*rows);
        Some(start)
    });
    ends.collect()
}

/// The rows at ascending positions, by row group.
pub(crate) fn at_positions(group_rows: &[u64], positions: &[u32]) -> Vec<GroupRows> {
    let mut left = positions;
    let mut parts = Vec::new();
    for (group, (start, rows)) in starts(group_rows).into_iter().zip(group_rows).enumerate() {
        let end = start.saturating_add(*rows);
        let (these, after) = left.split_at(left.partition_point(|position| u64::from(*position) < end));
        left = after;
        let rows = these.iter().map(|position| u64::from(*position).saturating_sub(start));
        let spans = Spans::of(rows.map(|row| row..row + 1));
        if !spans.is_empty() {
            parts.push(GroupRows { group, spans });
        }
    }
    parts
}

/// A file's rows without the deleted ones, in a schema.
pub(crate) fn live_rows(
    reader: &FileReader,
    deleted: Option<Arc<RoaringBitmap>>,
    schema: &SchemaRef,
) -> Result<impl Stream<Item = Result<RecordBatch>> + Send + 'static> {
    let columns = schema.fields().iter().map(|f| f.name().clone()).collect();
    let batches = reader.read(Read { columns: Some(columns), ..Read::default() })?;
    let schema = Arc::clone(schema);
    let mut from = 0_u32;
    Ok(batches.map(move |batch| {
        let batch = batch?;
        let to = from.saturating_add(u32::try_from(batch.num_rows()).unwrap_or(u32::MAX));
        let gone = deleted.as_ref().filter(|d| d.range_cardinality(from..to) > 0);
        let batch = match gone {
            None => batch,
            Some(deleted) => {
                let keep: BooleanArray = (from..to).map(|p| Some(!deleted.contains(p))).collect();
                filter_record_batch(&batch, &keep)?
            }
        };
        from = to;
        adapt(&batch, &schema)
    }))
}

/// Ids of rows of one file.
pub(crate) fn ids(file: usize, positions: impl IntoIterator<Item = u32>) -> UInt64Array {
    positions.into_iter().map(|p| row_id(file, p)).collect::<Vec<_>>().into()
}

/// The same stream, read ahead by another task, so that decoding and encoding overlap.
pub(crate) fn ahead(mut batches: BatchStream) -> BatchStream {
    let (sender, receiver) = tokio::sync::mpsc::channel(4);
    let task = tokio::spawn(async move {
        while let Some(batch) = batches.next().await {
            if sender.send(batch).await.is_err() {
                break;
            }
        }
    });
    let rest = stream::once(task).filter_map(async |ended| match ended {
        Ok(()) => None,
        Err(e) => Some(Err(Error::new(ErrorKind::Internal, "a reading task failed").because(e))),
    });
    stream::unfold(receiver, async |mut r| r.recv().await.map(|batch| (batch, r))).chain(rest).boxed()
}

/// Streams one after the other, each opened when the one before is at its end.
pub(crate) fn chained<F>(opens: impl IntoIterator<Item = F, IntoIter: Send + 'static>) -> BatchStream
where
    F: Future<Output = Result<BatchStream>> + Send + 'static,
{
    stream::iter(opens).then(|open| open).try_flatten().boxed()
}
