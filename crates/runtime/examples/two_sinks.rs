//! How does a Rust program write what a pipeline gives it, in order, and nothing twice?
//!
//! Orders go into a ledger; mails go out only after the orders that they speak of are booked. The pipeline is
//! `examples/two-sinks/pipeline.sql`.

use std::{
    collections::BTreeSet,
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use arrow_array::{
    cast::AsArray,
    types::{Decimal128Type, Int64Type},
};
use async_trait::async_trait;
use object_store::path::Path as StorePath;
use strandline_runtime::{
    Error, ErrorKind, Project, Storage, UpdateReport,
    definition::{SourceFile, parse_pipeline},
    sinks::{BatchSink, SinkBatch, foreach_batch},
};
use strandline_table_formats::{DeltaFormat, DurableLocal};

/// A folder with a file a batch. The file's name is the batch's id: a batch that comes again takes the place of itself.
struct Ledger {
    folder: PathBuf,
}

impl Ledger {
    /// The orders that are booked, each as often as it is.
    fn orders(&self) -> Result<Vec<i64>, Error> {
        let mut orders = Vec::new();
        for file in fs::read_dir(&self.folder).map_err(failed)? {
            let text = fs::read_to_string(file.map_err(failed)?.path()).map_err(failed)?;
            orders.extend(text.lines().filter_map(|line| line.split(',').next()?.parse::<i64>().ok()));
        }
        Ok(orders)
    }
}

#[async_trait]
impl BatchSink for Ledger {
    async fn write(&self, batch: SinkBatch) -> Result<(), Error> {
        let name = format!("{}-{:06}.csv", batch.incarnation, batch.batch_id);
        let mut lines = String::new();
        for rows in batch.collect().await? {
            let (orders, customers) =
                (rows.column(0).as_primitive::<Int64Type>(), rows.column(1).as_string::<i32>());
            let amounts = rows.column(2).as_primitive::<Decimal128Type>();
            for row in 0..rows.num_rows() {
                let amount = amounts.value_as_string(row);
                // Writing to a string does not fail.
                let _ = writeln!(lines, "{},{},{amount}", orders.value(row), customers.value(row));
            }
        }
        // Written aside and renamed: a crash leaves the old file or the new one.
        let aside = self.folder.with_file_name(format!(".{name}"));
        fs::write(&aside, lines).map_err(failed)?;
        fs::rename(&aside, self.folder.join(name)).map_err(failed)
    }
}

fn failed(error: std::io::Error) -> Error {
    Error::new(ErrorKind::Unavailable, "the sink's folder can't be used").because(error)
}

/// Runs one update. What the sinks write comes below `out`; the mails that went out are returned too.
pub(crate) async fn run(example: &Path, out: &Path) -> Result<(UpdateReport, Vec<i64>), Vec<Error>> {
    let one = |error: std::io::Error| vec![failed(error)];
    let ledger = Arc::new(Ledger { folder: out.join("ledger") });
    fs::create_dir_all(&ledger.folder).map_err(one)?;

    let booked = Arc::clone(&ledger);
    let sent: Arc<std::sync::Mutex<Vec<i64>>> = Arc::default();
    let outbox = Arc::clone(&sent);
    let mail = foreach_batch(move |batch| {
        let (ledger, outbox) = (Arc::clone(&booked), Arc::clone(&outbox));
        async move {
            let booked: BTreeSet<i64> = ledger.orders()?.into_iter().collect();
            for rows in batch.collect().await? {
                for order in rows.column(0).as_primitive::<Int64Type>().values() {
                    // `DEPENDS ON (book)`: the ledger has all that there was when the update began.
                    if !booked.contains(order) {
                        return Err(Error::new(ErrorKind::State, "a mail about an order that is not booked")
                            .with("order", order));
                    }
                    if let Ok(mut outbox) = outbox.lock() {
                        outbox.push(*order);
                    }
                }
            }
            Ok(())
        }
    });

    let sql = fs::read_to_string(example.join("pipeline.sql")).map_err(one)?;
    let definition = parse_pipeline(&[SourceFile::new("pipeline.sql", &sql)]).map_err(|errors| {
        errors.iter().map(|e| Error::new(ErrorKind::Definition, e.render(&sql))).collect::<Vec<_>>()
    })?;
    let folder = out.join("state");
    let store =
        DurableLocal::new(&folder).map_err(|e| vec![Error::new(ErrorKind::Unavailable, e.to_string())])?;
    let store: Arc<dyn object_store::ObjectStore> = Arc::new(store);
    let format = Arc::new(DeltaFormat::new(Arc::clone(&store), StorePath::from("tables")));
    let storage = Storage { store, format, folder: Some(folder), url: None };
    let report = Project::new("two-sinks", definition, &[example.to_owned()], storage)
        .with_sink("ledger", ledger)
        .with_sink("mail", mail)
        .run()
        .await?;
    let sent = sent.lock().map(|sent| sent.clone()).unwrap_or_default();
    Ok((report, sent))
}

#[tokio::main]
#[expect(clippy::print_stdout, reason = "a program of a user prints")]
async fn main() -> Result<(), Vec<Error>> {
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/two-sinks");
    let out = std::env::args().nth(1).map_or_else(|| std::env::temp_dir().join("two-sinks"), PathBuf::from);
    let (report, sent) = run(&example, &out).await?;
    for flow in &report.flows {
        println!(
            "{} into {}: {} in {} batches, {} rows",
            flow.flow, flow.target, flow.status, flow.batches, flow.rows_in
        );
    }
    println!("mails about {} orders; the ledger is in {}", sent.len(), out.join("ledger").display());
    Ok(())
}
