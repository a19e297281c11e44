//! What flows of every kind have: name, target, predecessors, comment.

use crate::name::{literal, qualified, quoted};

/// Names of flows: one, or a list.
///
/// ```
/// use strandline_pipeline_sql::AppendFlow;
///
/// let one = AppendFlow::new("t", "SELECT * FROM STREAM s").depends_on("seed");
/// let two = AppendFlow::new("t", "SELECT * FROM STREAM s").depends_on(["seed", "more"]);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FlowNames(pub(super) Vec<String>);

impl From<&str> for FlowNames {
    fn from(name: &str) -> Self {
        Self(vec![name.to_owned()])
    }
}

impl From<String> for FlowNames {
    fn from(name: String) -> Self {
        Self(vec![name])
    }
}

impl<N: Into<String>, const COUNT: usize> From<[N; COUNT]> for FlowNames {
    fn from(names: [N; COUNT]) -> Self {
        names.into_iter().collect()
    }
}

impl<N: Into<String>> From<Vec<N>> for FlowNames {
    fn from(names: Vec<N>) -> Self {
        names.into_iter().collect()
    }
}

impl<N: Into<String>> FromIterator<N> for FlowNames {
    fn from_iter<I: IntoIterator<Item = N>>(names: I) -> Self {
        Self(names.into_iter().map(Into::into).collect())
    }
}

#[derive(Debug, Clone)]
pub(super) struct Head {
    target: String,
    pub(super) name: Option<String>,
    pub(super) once: bool,
    pub(super) depends_on: Vec<String>,
    pub(super) comment: Option<String>,
}

impl Head {
    pub(super) fn new(target: &str) -> Self {
        Self { target: target.to_owned(), name: None, once: false, depends_on: Vec::new(), comment: None }
    }

    pub(super) fn into_name(self) -> String {
        self.name.unwrap_or(self.target)
    }

    pub(super) fn once_sql(&self) -> &'static str {
        if self.once { " ONCE" } else { "" }
    }

    pub(super) fn target_sql(&self) -> String {
        qualified(&self.target)
    }

    /// The beginning of the flow's statement, through AS.
    pub(super) fn sql(&self) -> String {
        let mut words = vec![format!("CREATE FLOW {}", quoted(self.name.as_ref().unwrap_or(&self.target)))];
        words.extend(self.comment.as_ref().map(|comment| format!("COMMENT {}", literal(comment))));
        if !self.depends_on.is_empty() {
            let names: Vec<String> = self.depends_on.iter().map(|name| qualified(name)).collect();
            words.push(format!("DEPENDS ON ({})", names.join(", ")));
        }
        words.push("AS".to_owned());
        words.join(" ")
    }
}

macro_rules! head_methods {
    () => {
        /// Names the flow; without this it has its target's name.
        #[must_use]
        pub fn named(mut self, name: impl Into<String>) -> Self {
            self.head.name = Some(name.into());
            self
        }

        /// Starts only after this flow, or these, have ended well.
        #[must_use]
        pub fn depends_on(mut self, flows: impl Into<FlowNames>) -> Self {
            self.head.depends_on.extend(flows.into().0);
            self
        }

        /// Describes the flow.
        #[must_use]
        pub fn comment(mut self, comment: impl Into<String>) -> Self {
            self.head.comment = Some(comment.into());
            self
        }
    };
}

macro_rules! once_method {
    () => {
        /// Runs once, then rests until a full refresh.
        #[must_use]
        pub fn once(mut self) -> Self {
            self.head.once = true;
            self
        }
    };
}

pub(super) use head_methods;
pub(super) use once_method;
