//! How are the bytes of a file read, and unpacked, without holding all of them?
//!
//! Decoding is plain blocking code over a reader. It runs on a thread of its own and hands rows over a channel that holds
//! few of them: a reader that is faster than its consumer waits.

use std::{
    io::{self, BufRead, BufReader, Read},
    sync::Arc,
};

use arrow_array::RecordBatch;
use bytes::{Buf, Bytes};
use futures::{StreamExt, stream, stream::BoxStream};
use object_store::{GetResultPayload, ObjectStore, ObjectStoreExt, path::Path};
use tokio::{runtime::Handle, sync::mpsc};

use super::SourceStream;
use crate::error::{Error, ErrorKind, Result, store_error};

/// Bytes that are read at once.
const BUFFER: usize = 256 << 10;
/// Batches that wait for their consumer.
const WAITING: usize = 2;

/// How the content of a file is packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Compression {
    /// Not at all.
    None,
    /// gzip, one member or several.
    Gzip,
    /// bzip2, one stream or several.
    Bzip2,
    /// Zstandard.
    Zstd,
}

impl Compression {
    /// What the ending of a path says.
    pub(super) fn of_path(path: &str) -> Self {
        match path.rsplit_once('.').map_or("", |(_, ending)| ending) {
            "gz" | "gzip" => Self::Gzip,
            "bz2" => Self::Bzip2,
            "zst" | "zstd" => Self::Zstd,
            _ => Self::None,
        }
    }

    /// Unpacks what `packed` gives, as it comes.
    pub(super) fn unpack(self, packed: Box<dyn BufRead + Send>) -> io::Result<Box<dyn BufRead + Send>> {
        Ok(match self {
            Self::None => packed,
            Self::Gzip => {
                Box::new(BufReader::with_capacity(BUFFER, flate2::bufread::MultiGzDecoder::new(packed)))
            }
            Self::Bzip2 => {
                Box::new(BufReader::with_capacity(BUFFER, bzip2::bufread::MultiBzDecoder::new(packed)))
            }
            Self::Zstd => {
                let mut decoder = zstd::stream::read::Decoder::with_buffer(packed)?;
                // The window that the decoder keeps: a frame may ask for more than memory holds.
                decoder.window_log_max(27)?;
                Box::new(BufReader::with_capacity(BUFFER, decoder))
            }
        })
    }
}

/// Chunks that come over the network, as a reader. It waits, so only a thread that may wait can read it.
struct Incoming {
    handle: Handle,
    chunks: BoxStream<'static, object_store::Result<Bytes>>,
    chunk: Bytes,
}

impl Read for Incoming {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let ready = self.fill_buf()?;
        let count = ready.len().min(buffer.len());
        if let (Some(to), Some(from)) = (buffer.get_mut(..count), ready.get(..count)) {
            to.copy_from_slice(from);
        }
        self.consume(count);
        Ok(count)
    }
}

impl BufRead for Incoming {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        while self.chunk.is_empty() {
            match self.handle.block_on(self.chunks.next()) {
                Some(chunk) => self.chunk = chunk.map_err(io::Error::other)?,
                None => break,
            }
        }
        Ok(&self.chunk)
    }

    fn consume(&mut self, count: usize) {
        self.chunk.advance(count.min(self.chunk.len()));
    }
}

/// A file's content as it lies there.
pub(super) async fn open(
    store: &Arc<dyn ObjectStore>,
    path: &Path,
    name: &str,
) -> Result<Box<dyn BufRead + Send>> {
    let found = store.get(path).await.map_err(|error| gone(error, name))?;
    Ok(match found.payload {
        GetResultPayload::File(file, _) => Box::new(BufReader::with_capacity(BUFFER, file)),
        GetResultPayload::Stream(chunks) => {
            Box::new(Incoming { handle: Handle::current(), chunks, chunk: Bytes::new() })
        }
    })
}

/// The error of a file that can't be opened.
pub(super) fn gone(error: object_store::Error, name: &str) -> Error {
    match error {
        object_store::Error::NotFound { .. } => {
            Error::new(ErrorKind::Gone, "a file that was listed is gone").with("file", name)
        }
        other => store_error(other, &name),
    }
}

/// The error of bytes that can't be read on.
pub(super) fn broken(error: io::Error, name: &str) -> Error {
    match error.downcast::<object_store::Error>() {
        Ok(error) => gone(error, name),
        Err(error) => Error::new(ErrorKind::Data, "the file can't be read on")
            .with("file", name)
            .because(error)
            .help("mend or remove the file and run again: nothing of its batch was written"),
    }
}

/// Whoever waits for rows of a decoder.
pub(super) struct Consumer(mpsc::Sender<Result<RecordBatch>>);

impl Consumer {
    /// Hands a batch over; `false` when nobody wants it any more.
    pub(super) fn take(&self, batch: RecordBatch) -> bool {
        self.0.blocking_send(Ok(batch)).is_ok()
    }
}

/// The rows that `decode` gives its consumer, while it runs on a thread of its own.
pub(super) fn decoded(decode: impl FnOnce(&Consumer) -> Result<()> + Send + 'static) -> SourceStream {
    let (sender, receiver) = mpsc::channel(WAITING);
    let thread = tokio::task::spawn_blocking(move || {
        let consumer = Consumer(sender);
        if let Err(error) = decode(&consumer) {
            // A consumer that is gone misses nothing.
            drop(consumer.0.blocking_send(Err(error)));
        }
    });
    let rows = stream::unfold((receiver, Some(thread)), |(mut receiver, mut thread)| async move {
        if let Some(batch) = receiver.recv().await {
            return Some((batch, (receiver, thread)));
        }
        // A thread that died must not look like the end of its file.
        match thread.take()?.await {
            Ok(()) => None,
            Err(error) => {
                let error = Error::new(ErrorKind::Internal, "a decoder ended abnormally").because(error);
                Some((Err(error), (receiver, thread)))
            }
        }
    });
    rows.boxed()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::RecordBatchOptions;
    use arrow_schema::Schema;

    use super::*;

    #[tokio::test]
    async fn a_thread_that_dies_is_no_end() {
        let rows = |n| {
            let options = RecordBatchOptions::new().with_row_count(Some(n));
            RecordBatch::try_new_with_options(Arc::new(Schema::empty()), Vec::new(), &options).unwrap()
        };
        let mut found = decoded(move |consumer| {
            consumer.take(rows(1));
            panic!("as a decoder with a fault does");
        });
        assert_eq!(found.next().await.unwrap().unwrap().num_rows(), 1);
        assert_eq!(found.next().await.unwrap().unwrap_err().kind(), ErrorKind::Internal);
        let whole: Vec<_> = decoded(move |consumer| {
            consumer.take(rows(2));
            Ok(())
        })
        .collect()
        .await;
        assert_eq!(whole.len(), 1);
    }
}
