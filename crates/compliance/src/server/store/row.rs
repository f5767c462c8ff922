//! A row of either database. Texts that clients send are bytes in PostgreSQL, which refuses a zero
//! byte in a text: what one client sends must not fail the batch of others.

use super::RowError;

/// A row of a query that both databases understand.
pub(super) enum Row<'a> {
    Sqlite(&'a rusqlite::Row<'a>),
    Postgres(&'a commit::postgres::Row),
}

macro_rules! columns {
    ($($(#[$doc:meta])* $name:ident -> $type:ty;)*) => {
        impl Row<'_> {
            $($(#[$doc])*
            pub(super) fn $name(&self, column: usize) -> Result<$type, RowError> {
                Ok(match self {
                    Self::Sqlite(row) => row.get(column)?,
                    Self::Postgres(row) => row.try_get(column)?,
                })
            })*
        }
    };
}

columns! {
    /// A number.
    number -> i64;
    /// A number, or none.
    number_or_none -> Option<i64>;
    /// A fraction.
    fraction -> f64;
    /// Yes or no.
    flag -> bool;
    /// Bytes.
    bytes -> Vec<u8>;
    /// Bytes, or none.
    bytes_or_none -> Option<Vec<u8>>;
}

impl Row<'_> {
    /// A text.
    pub(super) fn text(&self, column: usize) -> Result<String, RowError> {
        Ok(match self {
            Self::Sqlite(row) => row.get(column)?,
            Self::Postgres(row) => String::from_utf8(row.try_get(column)?)?,
        })
    }

    /// A text, or none.
    pub(super) fn text_or_none(&self, column: usize) -> Result<Option<String>, RowError> {
        Ok(match self {
            Self::Sqlite(row) => row.get(column)?,
            Self::Postgres(row) => {
                let bytes: Option<Vec<u8>> = row.try_get(column)?;
                bytes.map(String::from_utf8).transpose()?
            }
        })
    }
}
