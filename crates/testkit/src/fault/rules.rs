//! Which operation fails, how, and what comes after?

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use object_store::path::Path;

/// How an operation fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Nothing happens but the error.
    Before,
    /// It lands, and its answer is lost.
    After,
    /// Half of it lands: the first half of a multipart part, the copy of a rename. Other operations are atomic and fail
    /// before they happen.
    Torn,
}

/// Which operation fails, how, and what comes after. Works once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    name: Option<&'static str>,
    path: Option<String>,
    left: usize,
    fault: Fault,
    dies: bool,
}

impl Rule {
    /// Fails the n-th operation from now, counted from 1.
    pub fn nth(nth: usize, fault: Fault) -> Self {
        Self { name: None, path: None, left: nth, fault, dies: false }
    }

    /// Counts only operations of this name, as the trace shows it.
    #[must_use]
    pub fn of(self, name: &'static str) -> Self {
        Self { name: Some(name), ..self }
    }

    /// Counts only operations on paths that contain this text.
    #[must_use]
    pub fn on(self, path: impl Into<String>) -> Self {
        Self { path: Some(path.into()), ..self }
    }

    /// All later operations fail, until [`Faults::revive`].
    #[must_use]
    pub fn and_dies(self) -> Self {
        Self { dies: true, ..self }
    }

    fn counts(&self, operation: &Operation) -> bool {
        self.name.is_none_or(|name| name == operation.name)
            && self.path.as_ref().is_none_or(|path| operation.path.contains(path))
    }
}

/// One operation that was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operation {
    /// The method, `delete` for each path of a `delete_stream`.
    pub name: &'static str,
    /// The path or prefix; the target of a copy or rename.
    pub path: String,
    /// Whether it was made to fail, and how. What a dead process asks for is not in the trace.
    pub fault: Option<Fault>,
}

/// The error of an operation that was made to fail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Injected {
    /// The method.
    pub name: &'static str,
    /// How it failed; `None` if the process was dead already.
    pub fault: Option<Fault>,
}

impl fmt::Display for Injected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.fault {
            Some(fault) => write!(f, "injected fault {fault:?} in {}", self.name),
            None => write!(f, "{} after the process died", self.name),
        }
    }
}

impl std::error::Error for Injected {}

impl From<Injected> for object_store::Error {
    fn from(injected: Injected) -> Self {
        Self::Generic { store: "FaultStore", source: Box::new(injected) }
    }
}

/// The rules of a [`FaultStore`](super::FaultStore) and what it did. Shared between the store and the test.
#[derive(Debug, Default)]
pub struct Faults {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    rules: Vec<Rule>,
    dead: bool,
    trace: Vec<Operation>,
}

impl Faults {
    /// Adds a rule. Of several rules that strike at once the first decides how, and the process dies if any says so.
    pub fn add(&self, rule: Rule) {
        self.state().rules.push(rule);
    }

    /// From now on everything fails, until [`Faults::revive`].
    pub fn die(&self) {
        self.state().dead = true;
    }

    /// Whether the process is dead.
    pub fn is_dead(&self) -> bool {
        self.state().dead
    }

    /// The process starts again, without rules. The trace goes on.
    pub fn revive(&self) {
        let mut state = self.state();
        state.dead = false;
        state.rules.clear();
    }

    /// How many operations the trace holds.
    pub fn count(&self) -> usize {
        self.state().trace.len()
    }

    /// The operations so far, in order.
    pub fn trace(&self) -> Vec<Operation> {
        self.state().trace.clone()
    }

    /// Forgets the operations so far; returns them.
    pub fn take_trace(&self) -> Vec<Operation> {
        std::mem::take(&mut self.state().trace)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts an operation that is about to happen. The answer is how it shall fail, if it shall.
    pub(super) fn meet(&self, name: &'static str, path: Option<&Path>) -> Option<Injected> {
        let mut state = self.state();
        if state.dead {
            return Some(Injected { name, fault: None });
        }
        let path = path.map(ToString::to_string).unwrap_or_default();
        let mut operation = Operation { name, path, fault: None };
        let mut dies = false;
        state.rules.retain_mut(|rule| {
            if rule.counts(&operation) {
                rule.left = rule.left.saturating_sub(1);
            }
            if rule.left == 0 {
                operation.fault = operation.fault.or(Some(rule.fault));
                dies |= rule.dies;
            }
            rule.left > 0
        });
        state.dead = dies;
        let fault = operation.fault;
        state.trace.push(operation);
        fault.map(|fault| Injected { name, fault: Some(fault) })
    }
}
