//! What does a pipeline remember between its runs, and how does that survive a kill at any moment?
//!
//! Everything is kept in small registers on an object store. A [`Register`] is a series of numbered objects, written
//! with create-only puts; the newest one counts. Nothing is ever changed in place, so a crash leaves the old value or the
//! new one. Under the pipeline's storage:
//!
//! ```text
//! _strandline/
//!   lock                                  held by the running process, where the storage is a local folder
//!   lease/<n>.json                        who may write, and until when, where it is a store that other machines reach
//!   created-once                          shows that the store creates an object once
//!   epoch/<n>.json                        one a run: fences a process that lost its lock
//!   refresh/<n>.json                      what a full refresh or a reset clears; written before anything is cleared
//!   refresh-done/<n>.json                 all of that is cleared
//!   flows/<flow>/incarnation/<n>.json     a full refresh or a reset began incarnation n
//!   flows/<flow>/<incarnation>/plan/<n>.json   which input batch n takes; written before the batch is read
//!   flows/<flow>/<incarnation>/done/<n>.json   batch n is in the target
//!   flows/<flow>/<incarnation>/input/1.json    what a ONCE flow will take, fixed before its first batch
//!   flows/<flow>/<incarnation>/complete/1.json a ONCE flow has taken all of it
//!   flows/<flow>/<incarnation>/schema/<n>.json columns of the source: inferred at first, widened since
//!   pipeline/1.json                       the name that commits are stamped with
//!   state/<table>/                        side state of a target, see `strandline_table_formats::side_state`
//!   events/<n>/<first>-<last>.jsonl        event log of run n: events `first` to `last`
//! ```

mod flow;
mod lease;
mod register;

pub use flow::{FlowState, Made, Plan, PlannedBatch};
pub use lease::{LEASE_DURATION, Lease};
pub use register::Register;

use object_store::path::Path;

/// Folder of everything that is the engine's own, within a pipeline's storage.
pub const ENGINE_FOLDER: &str = "_strandline";

/// Path of something of the engine's own. Names of flows and tables are encoded by `Path` where they hold odd characters.
pub fn engine_path(parts: &[&str]) -> Path {
    std::iter::once(ENGINE_FOLDER).chain(parts.iter().copied()).collect()
}

/// What a part of a path stands for: odd characters are written as `%` and two hexadecimal digits, a byte each.
pub(crate) fn decoded(part: &str) -> String {
    let mut bytes = Vec::with_capacity(part.len());
    let mut rest = part.as_bytes();
    while let [first, after @ ..] = rest {
        let code = after.get(..2).filter(|_| *first == b'%').and_then(|hex| std::str::from_utf8(hex).ok());
        let byte = code.and_then(|hex| u8::from_str_radix(hex, 16).ok());
        bytes.push(byte.unwrap_or(*first));
        rest = if byte.is_some() { after.get(2..).unwrap_or_default() } else { after };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
