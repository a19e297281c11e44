//! Which type does a column have?
//!
//! One parser serves declared table columns and the `schema => '..'` text of `read_files`.

use std::fmt;

use sqlparser::tokenizer::Token;

use crate::{
    SourceFile, SqlError,
    cursor::Cursor,
    error::Problem,
    expr::whole,
    name::{literal, quoted},
    suggest::nearest,
};

/// A column of a table, or a field of a STRUCT.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnDef {
    /// Name.
    pub name: String,
    /// Type.
    pub data_type: SqlType,
    /// False for `NOT NULL`.
    pub nullable: bool,
    /// `COMMENT '..'`.
    pub comment: Option<String>,
}

impl ColumnDef {
    /// A nullable column.
    pub fn new(name: impl Into<String>, data_type: SqlType) -> Self {
        Self { name: name.into(), data_type, nullable: true, comment: None }
    }

    /// Parses `name TYPE [NOT NULL] [COMMENT '..'], ..`.
    ///
    /// # Errors
    /// Text that is no list of columns.
    pub fn parse(text: &str) -> Result<Vec<Self>, SqlError> {
        let source = SourceFile::new("<columns>", text);
        Self::parse_list(text).map_err(|problem| SqlError::located(&source, problem))
    }

    /// As [`ColumnDef::parse`], within another text.
    pub(crate) fn parse_list(text: &str) -> Result<Vec<Self>, Problem> {
        let tokens = whole(text)?;
        let mut cursor = Cursor::new(text, 0, &tokens);
        // Spark writes the type of a whole row as STRUCT<..>; people paste it.
        let columns =
            if cursor.at_words(&["STRUCT"]) && cursor.peek_nth(1).is_some_and(|t| t.token == Token::Lt) {
                if let SqlType::Struct(fields) = read_type(&mut cursor)? { fields } else { Vec::new() }
            } else {
                cursor.comma_separated(|cursor| read_column(cursor))?
            };
        cursor.expect_end()?;
        if columns.is_empty() {
            return Err(cursor.expected("a column"));
        }
        Ok(columns)
    }
}

impl fmt::Display for ColumnDef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", quoted(&self.name), self.data_type)?;
        if !self.nullable {
            f.write_str(" NOT NULL")?;
        }
        self.comment.as_ref().map_or(Ok(()), |comment| write!(f, " COMMENT {}", literal(comment)))
    }
}

/// A Spark SQL type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SqlType {
    /// `BOOLEAN`
    Boolean,
    /// `TINYINT`, `BYTE`: 8 bits
    TinyInt,
    /// `SMALLINT`, `SHORT`: 16 bits
    SmallInt,
    /// `INT`, `INTEGER`: 32 bits
    Int,
    /// `BIGINT`, `LONG`: 64 bits
    BigInt,
    /// `FLOAT`, `REAL`: 32 bits
    Float,
    /// `DOUBLE`: 64 bits
    Double,
    /// `DECIMAL(precision, scale)`, `DEC`, `NUMERIC`; (10, 0) when not given
    Decimal {
        /// Digits in all, 1 to 38.
        precision: u8,
        /// Digits behind the point.
        scale: u8,
    },
    /// `STRING`, `VARCHAR(n)`, `CHAR(n)`; lengths are not enforced
    String,
    /// `BINARY`
    Binary,
    /// `DATE`
    Date,
    /// `TIMESTAMP`, `TIMESTAMP_LTZ`: an instant
    Timestamp,
    /// `TIMESTAMP_NTZ`: date and time without zone
    TimestampNtz,
    /// `STRUCT<name: TYPE, ..>`
    Struct(Vec<ColumnDef>),
    /// `ARRAY<TYPE>`
    Array(Box<SqlType>),
    /// `MAP<KEY, VALUE>`
    Map(Box<SqlType>, Box<SqlType>),
}

impl fmt::Display for SqlType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Boolean => f.write_str("BOOLEAN"),
            Self::TinyInt => f.write_str("TINYINT"),
            Self::SmallInt => f.write_str("SMALLINT"),
            Self::Int => f.write_str("INT"),
            Self::BigInt => f.write_str("BIGINT"),
            Self::Float => f.write_str("FLOAT"),
            Self::Double => f.write_str("DOUBLE"),
            Self::Decimal { precision, scale } => write!(f, "DECIMAL({precision}, {scale})"),
            Self::String => f.write_str("STRING"),
            Self::Binary => f.write_str("BINARY"),
            Self::Date => f.write_str("DATE"),
            Self::Timestamp => f.write_str("TIMESTAMP"),
            Self::TimestampNtz => f.write_str("TIMESTAMP_NTZ"),
            Self::Struct(fields) => {
                let fields: Vec<String> = fields.iter().map(ToString::to_string).collect();
                write!(f, "STRUCT<{}>", fields.join(", "))
            }
            Self::Array(item) => write!(f, "ARRAY<{item}>"),
            Self::Map(key, value) => write!(f, "MAP<{key}, {value}>"),
        }
    }
}

const NAMES: &[&str] = &[
    "BOOLEAN",
    "TINYINT",
    "BYTE",
    "SMALLINT",
    "SHORT",
    "INT",
    "INTEGER",
    "BIGINT",
    "LONG",
    "FLOAT",
    "REAL",
    "DOUBLE",
    "DECIMAL",
    "DEC",
    "NUMERIC",
    "STRING",
    "VARCHAR",
    "CHAR",
    "BINARY",
    "DATE",
    "TIMESTAMP",
    "TIMESTAMP_LTZ",
    "TIMESTAMP_NTZ",
    "STRUCT",
    "ARRAY",
    "MAP",
];

/// Reads `name TYPE [NOT NULL] [COMMENT '..']`.
pub(crate) fn read_column(cursor: &mut Cursor<'_>) -> Result<ColumnDef, Problem> {
    Types::default().closed(cursor, Types::column)
}

/// Reads a type.
pub(crate) fn read_type(cursor: &mut Cursor<'_>) -> Result<SqlType, Problem> {
    Types::default().closed(cursor, Types::data_type)
}

/// How deep types may nest.
const MAX_DEPTH: usize = 50;

/// Reads types that may nest. The tokenizer takes `>>` for one operator, so one token may close two types.
#[derive(Default)]
struct Types {
    depth: usize,
    /// The second half of a `>>` whose first half has been used.
    half: bool,
}

impl Types {
    fn closed<T>(
        mut self,
        cursor: &mut Cursor<'_>,
        read: impl FnOnce(&mut Self, &mut Cursor<'_>) -> Result<T, Problem>,
    ) -> Result<T, Problem> {
        let read = read(&mut self, cursor)?;
        if self.half {
            return Err(Problem::new(cursor.here(), "there is one `>` too many before this"));
        }
        Ok(read)
    }

    fn column(&mut self, cursor: &mut Cursor<'_>) -> Result<ColumnDef, Problem> {
        let (name, _) = cursor.name("a column name")?;
        if self.depth > 0 {
            cursor.eat_token(&Token::Colon);
        }
        let mut column = ColumnDef::new(name, self.data_type(cursor)?);
        loop {
            if self.half {
                return Ok(column);
            } else if cursor.eat_words(&["NOT", "NULL"]).is_some() {
                column.nullable = false;
            } else if cursor.eat_words(&["COMMENT"]).is_some() {
                column.comment = Some(cursor.string("a comment in quotes")?);
            } else {
                return Ok(column);
            }
        }
    }

    fn data_type(&mut self, cursor: &mut Cursor<'_>) -> Result<SqlType, Problem> {
        let here = cursor.here();
        let Some(word) = cursor.peek().and_then(crate::lexer::Tok::keyword) else {
            return Err(cursor.expected("a type"));
        };
        cursor.skip(1);
        Ok(match word.as_str() {
            "BOOLEAN" => SqlType::Boolean,
            "TINYINT" | "BYTE" => SqlType::TinyInt,
            "SMALLINT" | "SHORT" => SqlType::SmallInt,
            "INT" | "INTEGER" => SqlType::Int,
            "BIGINT" | "LONG" => SqlType::BigInt,
            "FLOAT" | "REAL" => SqlType::Float,
            "DOUBLE" => SqlType::Double,
            "DECIMAL" | "DEC" | "NUMERIC" => decimal(cursor)?,
            "STRING" => SqlType::String,
            "VARCHAR" | "CHAR" => {
                if cursor.at_token(&Token::LParen) {
                    let mut length = cursor.parenthesized()?;
                    number(&mut length)?;
                    length.expect_end()?;
                }
                SqlType::String
            }
            "BINARY" => SqlType::Binary,
            "DATE" => SqlType::Date,
            "TIMESTAMP" | "TIMESTAMP_LTZ" => SqlType::Timestamp,
            "TIMESTAMP_NTZ" => SqlType::TimestampNtz,
            "STRUCT" | "ARRAY" | "MAP" => self.nested(cursor, &word)?,
            other => {
                let problem = Problem::new(here, format!("unknown type {other}"));
                return Err(match nearest(other, NAMES.iter().copied()) {
                    Some(near) => problem.help(format!("did you mean {near}?")),
                    None => problem.help(format!("known types: {}", NAMES.join(", "))),
                });
            }
        })
    }

    fn nested(&mut self, cursor: &mut Cursor<'_>, word: &str) -> Result<SqlType, Problem> {
        if word == "STRUCT" && cursor.eat_token(&Token::Neq).is_some() {
            return Ok(SqlType::Struct(Vec::new()));
        }
        if self.depth >= MAX_DEPTH {
            return Err(Problem::new(cursor.here(), "this type nests too deeply"));
        }
        self.depth += 1;
        cursor.expect_token(&Token::Lt)?;
        let read = match word {
            "ARRAY" => SqlType::Array(Box::new(self.data_type(cursor)?)),
            "MAP" => {
                let key = self.data_type(cursor)?;
                cursor.expect_token(&Token::Comma)?;
                SqlType::Map(Box::new(key), Box::new(self.data_type(cursor)?))
            }
            _ if cursor.at_token(&Token::Gt) => SqlType::Struct(Vec::new()),
            _ => {
                let mut fields = vec![self.column(cursor)?];
                while !self.half && cursor.eat_token(&Token::Comma).is_some() {
                    fields.push(self.column(cursor)?);
                }
                SqlType::Struct(fields)
            }
        };
        self.depth -= 1;
        if self.half {
            self.half = false;
        } else if self.depth > 0 && cursor.eat_token(&Token::ShiftRight).is_some() {
            self.half = true;
        } else {
            cursor.expect_token(&Token::Gt)?;
        }
        Ok(read)
    }
}

fn decimal(cursor: &mut Cursor<'_>) -> Result<SqlType, Problem> {
    let (mut precision, mut scale) = (10, 0);
    let here = cursor.here();
    if cursor.at_token(&Token::LParen) {
        let mut inner = cursor.parenthesized()?;
        precision = number(&mut inner)?;
        if inner.eat_token(&Token::Comma).is_some() {
            scale = number(&mut inner)?;
        }
        inner.expect_end()?;
    }
    match (u8::try_from(precision), u8::try_from(scale)) {
        (Ok(precision @ 1..=38), Ok(scale)) if scale <= precision => {
            Ok(SqlType::Decimal { precision, scale })
        }
        _ => {
            Err(Problem::new(here, "DECIMAL takes a precision from 1 to 38 and a scale up to the precision"))
        }
    }
}

fn number(cursor: &mut Cursor<'_>) -> Result<u32, Problem> {
    let value = match cursor.peek().map(|tok| &tok.token) {
        Some(Token::Number(digits, _)) => digits.parse().ok(),
        _ => None,
    };
    let value = value.ok_or_else(|| cursor.expected("a number"))?;
    cursor.skip(1);
    Ok(value)
}
