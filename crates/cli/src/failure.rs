//! How does the program end when something is wrong, and what does it say?

use std::fmt::Write as _;

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

impl Failure {
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
        let mut text = String::new();
        for error in &errors {
            // Writing to a string can't fail.
            _ = writeln!(text, "error: {}", error.full_text());
            if let Some(help) = error.help_text() {
                _ = writeln!(text, "  help: {help}");
            }
        }
        Self { text, code }
    }
}
