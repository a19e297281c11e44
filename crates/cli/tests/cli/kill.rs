//! A real process that is killed at many moments, and run again at once.

use std::{process::Stdio, time::Instant};

use crate::{example, strandline, succeed, tables, text};

#[test]
#[expect(clippy::disallowed_methods, reason = "a real process is killed after a real while")]
fn a_killed_process_leaves_nothing_that_the_next_one_cannot_finish() {
    let pipeline = example().join("pipeline.sql");
    let undisturbed = tempfile::tempdir().unwrap();
    let started = Instant::now();
    succeed(&["run", text(&pipeline), "--storage", text(undisturbed.path())]);
    let whole = started.elapsed();
    let expected = tables(text(undisturbed.path()));

    let mut killed = 0;
    for round in 0..10_u32 {
        let storage = tempfile::tempdir().unwrap();
        let call = ["run", text(&pipeline), "--storage", text(storage.path())];
        for kill in 0..5_u32 {
            // The moments spread over the time of a whole run, in an order without pattern.
            let wait = whole.mul_f64(f64::from((round * 5 + kill) * 7 % 24 + 1) / 40.0);
            let mut child = strandline(&call).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
            std::thread::sleep(wait);
            killed += u32::from(child.try_wait().unwrap().is_none());
            child.kill().unwrap();
            child.wait().unwrap();
        }
        succeed(&call);
        assert_eq!(tables(text(storage.path())), expected, "round {round}");
    }
    assert!(killed >= 25, "most of 50 runs were still going when they were killed: {killed}");
}
