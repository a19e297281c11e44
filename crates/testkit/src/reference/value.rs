//! What is a value, and which of two values is the larger one?
//!
//! Invariant: [`Ord`] is total and agrees with [`Eq`], floats included: NULL lowest, -0.0 below 0.0, NaN highest, structs
//! field by field, lists element by element, maps sorted by key.

use std::cmp::Ordering;

/// A value of a row, a key or a sequence.
#[derive(Clone, Debug)]
pub enum Value {
    /// No value. Below every other value; equal to itself.
    Null,
    /// A truth value, false below true.
    Bool(bool),
    /// Any integer, date or time that fits.
    Int(i64),
    /// A float, in total order.
    Float(f64),
    /// A string, compared by its bytes.
    Text(String),
    /// A byte string.
    Bytes(Vec<u8>),
    /// Named fields in schema order.
    Struct(Vec<(String, Value)>),
    /// Elements in order.
    List(Vec<Value>),
    /// Entries; their order has no meaning.
    Map(Vec<(Value, Value)>),
}

impl Value {
    /// A text value.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    /// A struct from its fields.
    pub fn fields<N: Into<String>>(fields: impl IntoIterator<Item = (N, Self)>) -> Self {
        Self::Struct(fields.into_iter().map(|(name, value)| (name.into(), value)).collect())
    }

    /// Whether this is NULL.
    pub fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }

    /// Whether this is NULL, or a struct in which some field at any depth is.
    pub fn has_null(&self) -> bool {
        match self {
            Self::Null => true,
            Self::Struct(fields) => fields.iter().any(|(_, value)| value.has_null()),
            Self::Bool(_)
            | Self::Int(_)
            | Self::Float(_)
            | Self::Text(_)
            | Self::Bytes(_)
            | Self::List(_)
            | Self::Map(_) => false,
        }
    }

    /// The value as a key sees it: -0.0 is 0.0.
    #[must_use]
    pub fn as_key(&self) -> Self {
        match self {
            Self::Float(float) if *float == 0.0 => Self::Float(0.0),
            Self::Struct(fields) => {
                Self::Struct(fields.iter().map(|(name, value)| (name.clone(), value.as_key())).collect())
            }
            Self::List(items) => Self::List(items.iter().map(Self::as_key).collect()),
            Self::Float(_)
            | Self::Null
            | Self::Bool(_)
            | Self::Int(_)
            | Self::Text(_)
            | Self::Bytes(_)
            | Self::Map(_) => self.clone(),
        }
    }

    /// The place of a kind of value among values of other kinds. Within one column only NULL meets another kind.
    fn kind(&self) -> u8 {
        match self {
            Self::Null => 0,
            Self::Bool(_) => 1,
            Self::Int(_) => 2,
            Self::Float(_) => 3,
            Self::Text(_) => 4,
            Self::Bytes(_) => 5,
            Self::Struct(_) => 6,
            Self::List(_) => 7,
            Self::Map(_) => 8,
        }
    }
}

/// Every NaN is the same value, above infinity.
fn compare_floats(left: f64, right: f64) -> Ordering {
    match (left.is_nan(), right.is_nan()) {
        (false, false) => left.total_cmp(&right),
        (left, right) => left.cmp(&right),
    }
}

fn sorted(entries: &[(Value, Value)]) -> Vec<&(Value, Value)> {
    let mut entries: Vec<_> = entries.iter().collect();
    entries.sort();
    entries
}

impl Ord for Value {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Bool(left), Self::Bool(right)) => left.cmp(right),
            (Self::Int(left), Self::Int(right)) => left.cmp(right),
            (Self::Float(left), Self::Float(right)) => compare_floats(*left, *right),
            (Self::Text(left), Self::Text(right)) => left.cmp(right),
            (Self::Bytes(left), Self::Bytes(right)) => left.cmp(right),
            (Self::Struct(left), Self::Struct(right)) => left.cmp(right),
            (Self::List(left), Self::List(right)) => left.cmp(right),
            (Self::Map(left), Self::Map(right)) => sorted(left).cmp(&sorted(right)),
            (left, right) => left.kind().cmp(&right.kind()),
        }
    }
}

impl PartialOrd for Value {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Value {}

impl From<i64> for Value {
    fn from(int: i64) -> Self {
        Self::Int(int)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::text(text)
    }
}

impl From<f64> for Value {
    fn from(float: f64) -> Self {
        Self::Float(float)
    }
}

impl From<bool> for Value {
    fn from(truth: bool) -> Self {
        Self::Bool(truth)
    }
}

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(option: Option<T>) -> Self {
        option.map_or(Self::Null, Into::into)
    }
}
