//! Statements over many rows at once: a statement for each row would cost a round trip each.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::Poll;

use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Error, Row};

/// A statement and its parameters, each of which is a column: an array with a value for each
/// row, to be joined by `unnest`.
#[derive(Debug)]
pub struct Statement<'a> {
    text: &'a str,
    columns: Vec<Column<'a>>,
}

impl<'a> Statement<'a> {
    /// This text, of which `$1` is the first column.
    pub fn new(text: &'a str, columns: Vec<Column<'a>>) -> Self {
        Self { text, columns }
    }

    /// Does it, and returns what it found.
    pub(super) async fn query(&self, client: &Client) -> Result<Vec<Row>, Error> {
        let columns: Vec<_> = self.columns.iter().map(Column::parameter).collect();
        client.query_typed(self.text, &columns).await
    }
}

macro_rules! columns {
    ($($(#[$doc:meta])* $name:ident($value:ty, $type:ident);)*) => {
        /// The values of one column, by their types in PostgreSQL.
        #[derive(Debug)]
        pub enum Column<'a> {
            $($(#[$doc])* $name(Vec<$value>),)*
        }

        $(impl<'a> From<Vec<$value>> for Column<'a> {
            fn from(values: Vec<$value>) -> Self {
                Self::$name(values)
            }
        })*

        impl Column<'_> {
            fn parameter(&self) -> (&(dyn ToSql + Sync), Type) {
                match self {
                    $(Self::$name(values) => (values, Type::$type),)*
                }
            }
        }
    };
}

columns! {
    /// `bigint`
    Bigint(i64, INT8_ARRAY);
    /// `bigint` or null
    BigintOrNull(Option<i64>, INT8_ARRAY);
    /// `integer`
    Integer(i32, INT4_ARRAY);
    /// `boolean`
    Boolean(bool, BOOL_ARRAY);
    /// `text`; refused by PostgreSQL where it has a zero byte
    Text(&'a str, TEXT_ARRAY);
    /// `text` or null
    TextOrNull(Option<&'a str>, TEXT_ARRAY);
    /// `double precision`
    Double(f64, FLOAT8_ARRAY);
    /// `bytea`
    Bytea(&'a [u8], BYTEA_ARRAY);
    /// `bytea` or null
    ByteaOrNull(Option<&'a [u8]>, BYTEA_ARRAY);
}

type Doing<'a> = Pin<Box<dyn Future<Output = Result<(), Error>> + 'a>>;

/// Does statements as one transaction in one flight: none waits for the answer to the one before.
///
/// # Errors
/// That of the first statement that failed. The transaction has then not taken place, unless the
/// connection broke.
pub(super) async fn transaction(
    client: &Client,
    statements: &[Statement<'_>],
    last: &str,
) -> Result<(), Error> {
    let mut flight: Vec<Doing<'_>> = vec![Box::pin(client.batch_execute("BEGIN"))];
    for statement in statements {
        flight.push(Box::pin(async move {
            let columns = statement.columns.iter().map(Column::parameter);
            let columns: Vec<_> = columns.collect();
            let done = client.execute_typed(statement.text, &columns).await;
            done.map(drop)
        }));
    }
    flight.push(Box::pin(client.batch_execute(last)));
    flight.push(Box::pin(client.batch_execute("COMMIT")));
    // A commit after a statement that failed undoes all, and says that it did well.
    in_order(flight).await.into_iter().collect()
}

/// Awaits all of them. Each is begun, which sends it, before the next.
async fn in_order(mut doing: Vec<Doing<'_>>) -> Vec<Result<(), Error>> {
    let mut done: Vec<Option<Result<(), Error>>> = doing.iter().map(|_| None).collect();
    poll_fn(|context| {
        let mut all = true;
        for (one, done) in doing.iter_mut().zip(&mut done) {
            if done.is_none() {
                match one.as_mut().poll(context) {
                    Poll::Ready(result) => *done = Some(result),
                    Poll::Pending => all = false,
                }
            }
        }
        if all { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    done.into_iter().flatten().collect()
}
