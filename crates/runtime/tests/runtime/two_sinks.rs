//! The example of two sinks in order, as it is shipped.

use std::path::Path;

use serde_json::json;
use strandline_runtime::FlowStatus;

#[expect(dead_code, reason = "the program's own beginning is not called here")]
#[path = "../../examples/two_sinks.rs"]
mod example;

fn booked(out: &Path) -> Vec<String> {
    let files = std::fs::read_dir(out.join("ledger")).unwrap();
    let mut files: Vec<_> = files.map(|file| file.unwrap().path()).collect();
    files.sort();
    files
        .iter()
        .flat_map(|file| {
            std::fs::read_to_string(file).unwrap().lines().map(str::to_owned).collect::<Vec<_>>()
        })
        .collect()
}

#[tokio::test]
async fn r12_r25_mails_go_out_after_their_orders_are_booked() {
    let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/two-sinks");
    let folder = tempfile::tempdir().unwrap();
    let (input, out) = (folder.path().join("example"), folder.path().join("out"));
    std::fs::create_dir_all(input.join("orders")).unwrap();
    std::fs::copy(shipped.join("pipeline.sql"), input.join("pipeline.sql")).unwrap();
    for file in std::fs::read_dir(shipped.join("orders")).unwrap() {
        let file = file.unwrap();
        std::fs::copy(file.path(), input.join("orders").join(file.file_name())).unwrap();
    }
    let (report, sent) = example::run(&input, &out).await.unwrap();
    assert!(report.flows.iter().all(|flow| flow.status == FlowStatus::Completed), "{report:?}");
    assert_eq!((report.flows[0].batches, sent.len(), booked(&out).len()), (3, 20, 20));
    // Nothing is new.
    let (_, sent) = example::run(&input, &out).await.unwrap();
    assert_eq!((sent.len(), booked(&out).len()), (0, 20));
    let more = json!({"order_id": 2000, "customer": "Gro", "amount": "12.50"});
    std::fs::write(input.join("orders/2026-03-06.json"), more.to_string()).unwrap();
    let (_, sent) = example::run(&input, &out).await.unwrap();
    assert_eq!(sent, [2000]);
    assert_eq!(booked(&out).last().map(String::as_str), Some("2000,Gro,12.50"));
}
