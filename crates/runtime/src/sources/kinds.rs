//! Which type do all the values of a column have in common?

use std::{borrow::Cow, sync::Arc};

use arrow_schema::{DataType, Field, FieldRef, TimeUnit};

use super::{
    json::Json,
    scalars::{self, Formats, Zone},
};

/// What is known of the values of a column. Values that have nothing else in common are texts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Kind {
    /// No value yet.
    Null,
    Boolean,
    /// A whole number of 64 bits.
    Integer,
    /// A whole number of up to 38 digits.
    Long,
    Double,
    Date,
    /// A time without a zone.
    Local,
    /// A time with one.
    Instant,
    Text,
    List(Box<Self>),
    Object(Fields),
}

/// Named kinds, in the order in which they were met.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Fields(pub(super) Vec<(String, Kind)>);

impl Fields {
    /// Adds what another record says.
    pub(super) fn merge(&mut self, name: &str, kind: Kind, guess: usize) {
        let at = match self.0.get(guess) {
            Some((known, _)) if known == name => Some(guess),
            _ => self.0.iter().position(|(known, _)| known == name),
        };
        match at.and_then(|at| self.0.get_mut(at)) {
            Some((_, known)) => *known = std::mem::replace(known, Kind::Null).with(kind),
            None => self.0.push((name.to_owned(), kind)),
        }
    }

    /// Adds the fields of a record.
    pub(super) fn record<'f, 'a: 'f>(
        &mut self,
        fields: impl IntoIterator<Item = &'f (Cow<'a, str>, Json<'a>)>,
    ) {
        for (at, (name, value)) in fields.into_iter().enumerate() {
            self.merge(name, Kind::of(value), at);
        }
    }

    /// Adds the records of a JSON text: an object, or a list of them. One that can't be read says nothing: reading it as a row
    /// tells why.
    pub(super) fn text(&mut self, text: &[u8]) {
        match Json::parse(text) {
            Ok(Json::List(items, _)) => {
                items.iter().filter_map(Json::fields).for_each(|fields| self.record(fields));
            }
            Ok(value) => value.fields().into_iter().for_each(|fields| self.record(fields)),
            Err(_) => {}
        }
    }

    /// The same where names that differ in case only are one name: the first that was met.
    pub(super) fn folded(self) -> Self {
        let mut folded = Self::default();
        for (name, kind) in self.0 {
            let known = folded.0.iter().find(|(known, _)| known.eq_ignore_ascii_case(&name));
            let name = known.map_or(name, |(known, _)| known.clone());
            folded.merge(&name, kind.folded(), usize::MAX);
        }
        folded
    }

    /// Columns of these types.
    pub(super) fn columns(&self, typed: bool) -> impl Iterator<Item = FieldRef> {
        self.0.iter().map(move |(name, kind)| Arc::new(Field::new(name, kind.data_type(typed), true)))
    }
}

impl Kind {
    /// What a JSON value is.
    pub(super) fn of(value: &Json<'_>) -> Self {
        match value {
            Json::Null => Self::Null,
            Json::Bool(_) => Self::Boolean,
            Json::Number(text) if text.contains(['.', 'e', 'E', 'N', 'I']) => Self::Double,
            Json::Number(text) if scalars::integer::<i64>(text).is_ok() => Self::Integer,
            Json::Number(text) if scalars::decimal(text, 38, 0).is_ok() => Self::Long,
            Json::Number(_) | Json::Text(_) => Self::Text,
            Json::List(items, _) => {
                Self::List(Box::new(items.iter().map(Self::of).fold(Self::Null, Self::with)))
            }
            Json::Object(fields, _) => {
                let mut known = Fields::default();
                known.record(fields);
                Self::Object(known)
            }
        }
    }

    /// What a text says that has no type.
    pub(super) fn of_text(text: &str, formats: &Formats) -> Self {
        let text = text.trim_ascii();
        let digits = text.strip_prefix('-').unwrap_or(text);
        // 007 is a name rather than a number: its zeros must not get lost.
        let padded = digits.len() > 1 && digits.starts_with('0') && !digits.starts_with("0.");
        let numeric = digits.starts_with(|c: char| c.is_ascii_digit() || c == '.');
        if scalars::boolean(text).is_ok() {
            Self::Boolean
        } else if numeric && !padded && digits.bytes().all(|b| b.is_ascii_digit()) {
            if scalars::integer::<i64>(text).is_ok() { Self::Integer } else { Self::Text }
        } else if numeric && !padded && scalars::float(text).is_ok() {
            Self::Double
        } else if looks_like_date(text, formats) && scalars::date(text, formats).is_ok() {
            Self::Date
        } else {
            match scalars::moment(text, formats) {
                Ok((_, Zone::Unsaid)) => Self::Local,
                Ok((_, Zone::Utc | Zone::Elsewhere)) => Self::Instant,
                Err(_) => Self::Text,
            }
        }
    }

    /// What holds the values of both.
    pub(super) fn with(self, other: Self) -> Self {
        match (self, other) {
            (Self::Null, kind) | (kind, Self::Null) => kind,
            (a, b) if a == b => a,
            (Self::Integer, Self::Long) | (Self::Long, Self::Integer) => Self::Long,
            (Self::Double, Self::Integer | Self::Long) | (Self::Integer | Self::Long, Self::Double) => {
                Self::Double
            }
            (Self::Date, Self::Local) | (Self::Local, Self::Date) => Self::Local,
            (Self::List(a), Self::List(b)) => Self::List(Box::new(a.with(*b))),
            (Self::Object(mut a), Self::Object(b)) => {
                for (at, (name, kind)) in b.0.into_iter().enumerate() {
                    a.merge(&name, kind, at);
                }
                Self::Object(a)
            }
            _ => Self::Text,
        }
    }

    fn folded(self) -> Self {
        match self {
            Self::List(item) => Self::List(Box::new(item.folded())),
            Self::Object(fields) => Self::Object(fields.folded()),
            other => other,
        }
    }

    /// Whether any value said what it is.
    pub(super) fn is_typed(&self) -> bool {
        match self {
            Self::Null => false,
            Self::List(item) => item.is_typed(),
            Self::Object(fields) => fields.0.iter().any(|(_, kind)| kind.is_typed()),
            _ => true,
        }
    }

    /// The type of the column. What no value told is text; all is where types are not wanted.
    pub(super) fn data_type(&self, typed: bool) -> DataType {
        match self {
            Self::List(item) => DataType::List(Arc::new(Field::new_list_field(item.data_type(typed), true))),
            Self::Object(fields) if !fields.0.is_empty() => DataType::Struct(
                fields.0.iter().map(|(name, kind)| Field::new(name, kind.data_type(typed), true)).collect(),
            ),
            Self::Boolean if typed => DataType::Boolean,
            Self::Integer if typed => DataType::Int64,
            Self::Long if typed => DataType::Decimal128(38, 0),
            Self::Double if typed => DataType::Float64,
            Self::Date if typed => DataType::Date32,
            Self::Local if typed => DataType::Timestamp(TimeUnit::Microsecond, None),
            Self::Instant if typed => DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
            _ => DataType::Utf8,
        }
    }
}

fn looks_like_date(text: &str, formats: &Formats) -> bool {
    formats.date.is_some() || (text.len() == 10 && text.bytes().filter(|b| *b == b'-').count() == 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Kind {
        Kind::of(&Json::parse(text.as_bytes()).unwrap())
    }

    #[test]
    fn values_agree_on_what_holds_them_all() {
        assert_eq!(of("1").with(of("2.5")), Kind::Double);
        assert_eq!(of("1").with(of("12345678901234567890")), Kind::Long);
        assert_eq!(of("1").with(of("\"x\"")), Kind::Text);
        assert_eq!(of("null").with(of("true")), Kind::Boolean);
        assert_eq!(of("[1, null]").with(of("[]")).data_type(true), DataType::new_list(DataType::Int64, true));
        let merged = of(r#"{"a": 1, "b": {}}"#).with(of(r#"{"c": "x", "a": 2.0}"#)).data_type(true);
        let fields = [("a", DataType::Float64), ("b", DataType::Utf8), ("c", DataType::Utf8)];
        let fields = fields.map(|(name, data_type)| Field::new(name, data_type, true));
        assert_eq!(merged, DataType::Struct(fields.to_vec().into()));
        assert_eq!(
            of(r#"{"a": [1]}"#).data_type(false).to_string(),
            of(r#"{"a": ["x"]}"#).data_type(true).to_string()
        );
        assert!(!of(r#"[{"a": null}]"#).is_typed() && of(r#"[{"a": 0}]"#).is_typed());
    }

    #[test]
    fn names_that_differ_in_case_only_can_be_one() {
        let mut fields = Fields::default();
        fields.text(
            br#"[{"id": 1, "at": {"X": 1}}, {"ID": 2.5, "at": {"x": "a"}}, {"Id": null, "more": true}]"#,
        );
        assert_eq!(fields.0.len(), 5);
        let at = Kind::Object(Fields(vec![("X".to_owned(), Kind::Text)]));
        let folded =
            [("id".to_owned(), Kind::Double), ("at".to_owned(), at), ("more".to_owned(), Kind::Boolean)];
        assert_eq!(fields.folded(), Fields(folded.into()));
    }

    #[test]
    fn texts_are_what_they_say() {
        let formats = Formats::default();
        for (text, kind) in [
            ("12", Kind::Integer),
            ("-1.5e3", Kind::Double),
            ("0.5", Kind::Double),
            ("007", Kind::Text),
            ("99999999999999999999", Kind::Text),
            ("True", Kind::Boolean),
            ("2026-03-01", Kind::Date),
            ("20260301", Kind::Integer),
            ("2026-03-01 12:00:00", Kind::Local),
            ("2026-03-01T12:00:00Z", Kind::Instant),
            ("2026-03-01T12:00:00+01:00", Kind::Instant),
            ("2026-03-01 12:00:00 UTC", Kind::Instant),
            ("2026-03-01 12:00:00 Europe/Berlin", Kind::Instant),
            ("2026-03-01 12:00:00-03", Kind::Instant),
            ("NaN", Kind::Text),
            ("1-2", Kind::Text),
            ("", Kind::Text),
        ] {
            assert_eq!(Kind::of_text(text, &formats), kind, "{text}");
        }
    }
}
