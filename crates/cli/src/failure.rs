//! How does the program end when something is wrong, and what does it say?

use strandline_runtime::{Error, ErrorKind};

/// Why the program ends without success: text for standard error, and its exit code.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) text: String,
    pub(crate) code: u8,
}

/// A flow failed.
pub(crate) const FLOW_FAILED: u8 = 1;
/// The pipeline or the call is wrong.
pub(crate) const WRONG: u8 = 2;
/// Another process is at work.
pub(crate) const BUSY: u8 = 3;
/// Keys have live changes that are not after their last seeded one.
pub(crate) const OVERLAP: u8 = 4;
/// The update was stopped by a signal: this and the signal's number, as shells have it.
pub(crate) const STOPPED: u8 = 128;

impl Failure {
    /// Everything was said already; only the code is left.
    pub(crate) fn code(code: u8) -> Self {
        Self { text: String::new(), code }
    }

    /// The call is wrong.
    pub(crate) fn wrong(text: impl Into<String>) -> Self {
        Self { text: text.into(), code: WRONG }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::from(vec![error])
    }
}

impl From<Vec<Error>> for Failure {
    fn from(errors: Vec<Error>) -> Self {
        let code = match errors.first().map(Error::kind) {
            Some(ErrorKind::Busy) => BUSY,
            Some(ErrorKind::Definition | ErrorKind::Unsupported | ErrorKind::NotFound) => WRONG,
            _ => FLOW_FAILED,
        };
        let lines = errors.iter().map(|error| {
            let help = error.help_text().map(|help| format!("\n  help: {help}"));
            format!("error: {}{}", error.full_text(), help.unwrap_or_default())
        });
        Self { text: lines.collect::<Vec<_>>().join("\n"), code }
    }
}
