//! A statement that is sent to PostgreSQL again and again, over a connection that is kept.

use std::cell::RefCell;

use tokio::task::JoinHandle;
use tokio_postgres::{Client, Config, NoTls, SimpleQueryMessage};

use super::value::Value;

/// The statement, and where it is sent.
pub(super) struct Statement {
    config: Config,
    sql: String,
    /// `None` before the first try, and after one that lost its connection.
    session: RefCell<Option<Session>>,
}

/// A connection, which closes when this is dropped: also in the middle of an answer.
struct Session {
    client: Client,
    connection: JoinHandle<()>,
}

impl Drop for Session {
    fn drop(&mut self) {
        self.connection.abort();
    }
}

impl Statement {
    /// A statement for the database of a URL.
    ///
    /// # Errors
    /// When the URL, with its names filled in, is none.
    pub(super) fn new(url: &str, sql: String, password: &str) -> Result<Self, String> {
        let mut config: Config = url.parse().map_err(|error| {
            format!(
                "{url:?} is no address of a database: {}",
                error_text(&error)
            )
        })?;
        if !password.is_empty() {
            config.password(password);
        }
        config.application_name("headroom probe");
        Ok(Self {
            config,
            sql,
            session: RefCell::default(),
        })
    }

    /// The first column of the first row, if there is one and it is not null.
    ///
    /// # Errors
    /// When there is no connection, or the server refuses the statement.
    pub(super) async fn query(&self) -> Result<Option<Value>, String> {
        // Taken out, so that a try which is given up closes its connection: its answer may come
        // at any time.
        let kept = self.session.take();
        let session = match kept.filter(|session| !session.client.is_closed()) {
            Some(session) => session,
            None => self.connect().await?,
        };
        let answer = session.client.simple_query(&self.sql).await;
        let answer = answer.map_err(|error| error_text(&error));
        self.session.replace(Some(session));
        let row = answer?.into_iter().find_map(|message| match message {
            SimpleQueryMessage::Row(row) => Some(row),
            _ => None,
        });
        let first = row.as_ref().and_then(|row| row.try_get(0).ok().flatten());
        Ok(first
            .and_then(truth)
            .or_else(|| first.and_then(Value::of_text)))
    }

    async fn connect(&self) -> Result<Session, String> {
        let connected = self.config.connect(NoTls).await;
        let (client, connection) = connected.map_err(|error| error_text(&error))?;
        let connection = tokio::spawn(async move {
            // How it ended is told by the statement that meets its end.
            let _ = connection.await;
        });
        Ok(Session { client, connection })
    }
}

/// PostgreSQL writes `t` and `f` for what other answers call true and false.
fn truth(text: &str) -> Option<Value> {
    match text {
        "t" => Some(Value::Number(1.0)),
        "f" => Some(Value::Number(0.0)),
        _ => None,
    }
}

/// What the server says, or else every cause that the library knows.
fn error_text(error: &tokio_postgres::Error) -> String {
    if let Some(refused) = error.as_db_error() {
        return format!("{} ({})", refused.message(), refused.code().code());
    }
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        text += &format!(": {error}");
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_that_is_none_is_refused_before_the_run() {
        let new = |url: &str| Statement::new(url, String::new(), "").err();
        assert_eq!(new("postgres://app@127.0.0.1:5432/shop"), None);
        let refused = new("postgres://app@127.0.0.1:port/shop").unwrap();
        assert!(refused.contains("invalid"), "{refused}");
    }

    #[test]
    fn a_password_is_never_shown() {
        let statement = Statement::new("postgres://app@h/x", String::new(), "geheim").unwrap();
        assert!(!format!("{:?}", statement.config).contains("geheim"));
    }
}
