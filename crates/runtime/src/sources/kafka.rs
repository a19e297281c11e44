//! How are topics of Apache Kafka read, each record once?
//!
//! A slice is a range of offsets of each partition; the progress is the next offset of each. How far the topics go is asked
//! once, when the source is opened. Nothing is committed to Kafka: what was read is in the plans of the flow.
//!
//! The client is a C library, so it is built only where the feature `kafka` asks for it. Without it `read_kafka` is parsed
//! and refused.

/// The column that has all of a record but its value.
pub(crate) const FRAME: &str = "_kafka";

#[cfg(feature = "kafka")]
mod broker;
#[cfg(feature = "kafka")]
mod columns;
#[cfg(feature = "kafka")]
mod offsets;
#[cfg(feature = "kafka")]
mod options;
#[cfg(feature = "kafka")]
mod payload;
#[cfg(feature = "kafka")]
mod source;

#[cfg(feature = "kafka")]
pub(crate) use source::{columns, envelope, open};

#[cfg(not(feature = "kafka"))]
pub(crate) use absent::{columns, envelope, open};

/// What stands in the place of the source in a build without it.
#[cfg(not(feature = "kafka"))]
mod absent {
    use arrow_schema::SchemaRef;
    use strandline_cdc_core::CdcOptions;
    use strandline_pipeline_sql::ReadKafka;

    use crate::{
        error::{Error, ErrorKind, Result},
        sources::{Envelope, Source},
    };

    fn refused() -> Error {
        Error::new(ErrorKind::Unsupported, "this build of strandline can't read topics of Kafka")
            .help("build it with the feature `kafka`: cargo install strandline --features kafka")
    }

    pub(crate) fn columns(_: &ReadKafka) -> Result<Option<SchemaRef>> {
        Err(refused())
    }

    pub(crate) fn envelope(_: &ReadKafka) -> Result<Option<Envelope>> {
        Err(refused())
    }

    #[expect(clippy::unused_async, reason = "the source that this stands for is asynchronous")]
    pub(crate) async fn open(
        _: &ReadKafka,
        _: Option<SchemaRef>,
        _: Option<&CdcOptions>,
    ) -> Result<Box<dyn Source>> {
        Err(refused())
    }
}
