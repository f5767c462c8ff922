//! What a connection to PostgreSQL says: the login, statements that are prepared once, rows.
//!
//! Messages and authentication are those of crate postgres-protocol. One request is under way at
//! a time: what stands between two `Sync` is one answer, which ends with `ReadyForQuery`.

use std::error::Error;

use bytes::{Buf as _, BytesMut};
use lab_load::Login;
use lab_load::request::Bound;
use postgres_protocol::IsNull;
use postgres_protocol::authentication::md5_hash;
use postgres_protocol::authentication::sasl::{ChannelBinding, SCRAM_SHA_256, ScramSha256};
use postgres_protocol::message::backend::{self, Message};
use postgres_protocol::message::frontend;
use wire::http1::Sink as _;
use wire::resp::ErrorCode;

use super::conversation::ResponseCapture;

/// Longest message of the target: a row, mostly. A longer one breaks the exchange.
const MOST_MESSAGE: usize = 64 << 20;
/// Memory that a connection keeps for the next answer.
const USUAL: usize = 64 * 1024;
/// Formats of parameters and columns: all are text.
const TEXT: [i16; 1] = [0];

const BAD: &str = "bad postgres message";
/// Cause of a login that needs a password when none was given.
pub(crate) const NO_PASSWORD: &str = "no password given";
pub(crate) const LOGIN_REFUSED: &str = "login refused";

/// How far a step's statement has come on this connection.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Prepared {
    #[default]
    No,
    Asked,
    Yes,
}

/// One connection's side.
pub(super) struct Postgres {
    login: Login,
    scram: Option<ScramSha256>,
    /// Bytes that came in and are no whole message yet.
    input: BytesMut,
    /// A message that is being made.
    message: BytesMut,
    value: Vec<u8>,
    /// Of each kind.
    prepared: Vec<Prepared>,
    /// The kind whose answer is awaited.
    asked: usize,
    /// What the answer came to so far.
    code: Option<ErrorCode>,
    rows: u64,
    bytes: u64,
    valued: bool,
}

/// A whole answer.
pub(super) struct Answered {
    /// Bytes of its values.
    pub(super) bytes: u64,
    /// Whether no transaction is open.
    pub(super) idle: bool,
}

impl Postgres {
    /// Begins with the login, which is appended to `out`.
    pub(super) fn start(login: &Login, kinds: usize, out: &mut Vec<u8>) -> Self {
        let mut conversation = Self {
            login: login.clone(),
            scram: None,
            input: BytesMut::new(),
            message: BytesMut::new(),
            value: Vec::new(),
            prepared: vec![Prepared::No; kinds],
            asked: 0,
            code: None,
            rows: 0,
            bytes: 0,
            valued: false,
        };
        let database = match login.database.as_str() {
            "" => login.user.as_str(),
            database => database,
        };
        let parameters = [
            ("user", login.user.as_str()),
            ("database", database),
            ("application_name", "headroom"),
            ("client_encoding", "UTF8"),
        ];
        // Fails only for texts with zero bytes, which no URL has.
        let _ = frontend::startup_message(parameters, &mut conversation.message);
        conversation.hand_over(out);
        conversation
    }

    /// Appends what was made to what is to be sent.
    fn hand_over(&mut self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.message);
        self.message.clear();
    }

    /// Takes what came in during the login; what it is answered with is appended to `out`. Says
    /// whether the target takes statements.
    pub(super) fn log_in(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<bool, &'static str> {
        self.input.extend_from_slice(input);
        while let Some(message) = next(&mut self.input)? {
            match message {
                Message::ReadyForQuery(_) => return Ok(true),
                Message::ErrorResponse(error) => return Err(refusal(code(&error)?)),
                Message::AuthenticationOk
                | Message::BackendKeyData(_)
                | Message::NoticeResponse(_)
                | Message::ParameterStatus(_) => {}
                other => {
                    self.authenticate(&other)?;
                    self.hand_over(out);
                }
            }
        }
        Ok(false)
    }

    /// Answers what is asked to prove who we are.
    fn authenticate(&mut self, asked: &Message) -> Result<(), &'static str> {
        let password = self.login.password.as_bytes();
        if password.is_empty() {
            return Err(NO_PASSWORD);
        }
        let answer = &mut self.message;
        let made = match asked {
            Message::AuthenticationCleartextPassword => {
                frontend::password_message(password, answer)
            }
            Message::AuthenticationMd5Password(body) => {
                let hash = md5_hash(self.login.user.as_bytes(), password, body.salt());
                frontend::password_message(hash.as_bytes(), answer)
            }
            Message::AuthenticationSasl(_) => {
                // The only mechanism there is, but for that which is bound to TLS.
                let scram = ScramSha256::new(password, ChannelBinding::unsupported());
                let scram = self.scram.insert(scram);
                frontend::sasl_initial_response(SCRAM_SHA_256, scram.message(), answer)
            }
            Message::AuthenticationSaslContinue(body) => {
                let scram = self.scram.as_mut().ok_or(BAD)?;
                scram.update(body.data()).map_err(|_| LOGIN_REFUSED)?;
                frontend::sasl_response(scram.message(), answer)
            }
            Message::AuthenticationSaslFinal(body) => {
                let scram = self.scram.as_mut().ok_or(BAD)?;
                // A target that does not know the password either is somebody else.
                return scram.finish(body.data()).map_err(|_| LOGIN_REFUSED);
            }
            _ => return Err("unknown authentication"),
        };
        made.map_err(|_| BAD)
    }

    /// Appends the messages that a statement of this kind needs.
    ///
    /// # Errors
    /// When its values do not make one.
    pub(super) fn write_statement(
        &mut self,
        kind: usize,
        bound: Bound<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), ()> {
        let made = self.make(kind, bound);
        match made {
            Ok(()) => {
                (self.asked, self.code) = (kind, None);
                (self.rows, self.bytes, self.valued) = (0, 0, false);
                self.hand_over(out);
                Ok(())
            }
            Err(_) => {
                self.message.clear();
                Err(())
            }
        }
    }

    fn make(&mut self, kind: usize, bound: Bound<'_>) -> Result<(), Box<dyn Error + Send + Sync>> {
        let name = format!("s{kind}");
        let (message, value) = (&mut self.message, &mut self.value);
        let prepared = self.prepared.get_mut(kind).ok_or("no such kind")?;
        if *prepared == Prepared::No {
            frontend::parse(&name, bound.sql(), [], message)?;
            *prepared = Prepared::Asked;
        }
        let write = |parameter: usize, out: &mut BytesMut| {
            value.clear();
            bound.write(parameter, value)?;
            out.extend_from_slice(value);
            Ok(IsNull::No)
        };
        let parameters = 0..bound.parameters();
        let bind = frontend::bind("", &name, TEXT, parameters, write, TEXT, message);
        if bind.is_err() {
            // What asked for the statement is thrown away with it.
            if *prepared == Prepared::Asked {
                *prepared = Prepared::No;
            }
            return Err("a value does not fit".into());
        }
        frontend::execute("", 0, message)?;
        frontend::sync(message);
        Ok(())
    }

    /// Takes what came in, all of it. There may be no request, when `kept` is nothing. Gives the
    /// answer if it is whole.
    pub(super) fn take(
        &mut self,
        input: &[u8],
        mut kept: Option<&mut ResponseCapture>,
    ) -> Result<Option<Answered>, &'static str> {
        self.input.extend_from_slice(input);
        while let Some(message) = next(&mut self.input)? {
            match message {
                Message::DataRow(row) => self.row(&row, kept.as_deref_mut())?,
                Message::CommandComplete(done) => {
                    let tag = done.tag().map_err(|_| BAD)?;
                    let count = tag.rsplit(' ').next().and_then(|last| last.parse().ok());
                    self.rows = count.unwrap_or(0);
                }
                Message::ErrorResponse(error) => {
                    let code = code(&error)?;
                    self.code.get_or_insert(code);
                }
                Message::ParseComplete => self.parsed(Prepared::Yes),
                Message::ReadyForQuery(ready) => {
                    // A statement that could not be prepared is asked for again.
                    self.parsed(Prepared::No);
                    let Some(kept) = kept else {
                        return Err("unasked answer");
                    };
                    (kept.code, kept.rows) = (self.code.take(), self.rows);
                    if self.input.is_empty() && self.input.capacity() > USUAL {
                        self.input = BytesMut::new();
                    }
                    return Ok(Some(Answered {
                        bytes: self.bytes,
                        idle: ready.status() == b'I',
                    }));
                }
                Message::CopyInResponse(_) | Message::CopyOutResponse(_) => {
                    return Err("copy is not supported");
                }
                _ => {}
            }
        }
        Ok(None)
    }

    /// What became of the statement that was to be prepared, if one was.
    fn parsed(&mut self, to: Prepared) {
        if let Some(prepared) = self.prepared.get_mut(self.asked)
            && *prepared == Prepared::Asked
        {
            *prepared = to;
        }
    }

    /// Keeps a row: a line, with tabs between its columns.
    fn row(
        &mut self,
        row: &backend::DataRowBody,
        mut kept: Option<&mut ResponseCapture>,
    ) -> Result<(), &'static str> {
        let mut keep = |bytes: &[u8]| {
            if let Some(kept) = &mut kept {
                kept.body(bytes);
            }
        };
        if std::mem::replace(&mut self.valued, true) {
            keep(b"\n");
        }
        // The library's iterator of a row; nulls have no bytes.
        let mut rest = row.buffer();
        let mut first = true;
        while rest.has_remaining() {
            if !std::mem::take(&mut first) {
                keep(b"\t");
            }
            let length = rest.try_get_i32().map_err(|_| BAD)?;
            let length = usize::try_from(length).unwrap_or(0);
            let value = rest.get(..length).ok_or(BAD)?;
            keep(value);
            self.bytes += length as u64;
            rest = &rest[length..];
        }
        Ok(())
    }
}

/// The next whole message, if there is one.
fn next(input: &mut BytesMut) -> Result<Option<Message>, &'static str> {
    match backend::Header::parse(input).map_err(|_| BAD)? {
        Some(header) if usize::try_from(header.len()).map_err(|_| BAD)? > MOST_MESSAGE => {
            Err("postgres message too long")
        }
        Some(_) => Message::parse(input).map_err(|_| BAD),
        None => Ok(None),
    }
}

/// The SQLSTATE of an error.
fn code(error: &backend::ErrorResponseBody) -> Result<ErrorCode, &'static str> {
    use fallible_iterator::FallibleIterator as _;
    let mut fields = error.fields();
    let mut state = ErrorCode::of(b"");
    while let Some(field) = fields.next().map_err(|_| BAD)? {
        if field.type_() == b'C' {
            state = ErrorCode::of(field.value_bytes());
        }
    }
    Ok(state)
}

/// Why a login was refused, in words.
fn refusal(code: ErrorCode) -> &'static str {
    match code.as_str() {
        "53300" => "too many connections",
        "3D000" => "no such database",
        "57P03" => "starting",
        _ => LOGIN_REFUSED,
    }
}
