//! What becomes of a request whose attempt failed, and of the endpoint.

use std::net::SocketAddr;

use super::{Exchange, Refusal};

/// How an attempt failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure<'a> {
    /// No connection: the error's text as the system names it (`connection refused`).
    Dial(&'a str),
    /// No connection in time.
    DialTimeout,
    /// TLS towards the endpoint.
    Tls(TlsFailure<'a>),
    /// The endpoint closed the connection before a whole head of an answer.
    Closed,
    /// The endpoint reset the connection while the answer was awaited.
    Reset,
    /// The request could not be written: the error's text (`broken pipe`).
    Write(&'a str),
    /// No end of the attempt in time.
    Timeout,
    /// The answer is not HTTP, or too large: what is wrong.
    Protocol(&'a str),
    /// The client went away.
    ClientGone,
}

/// How TLS towards an endpoint failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TlsFailure<'a> {
    /// The certificate is for other names: those that it has.
    Name(&'a str),
    /// The certificate's authority is not trusted.
    Authority,
    /// It has expired, or is not yet valid: the text says which.
    Expired(&'a str),
    /// The endpoint wants a certificate, or another one: the alert's name
    /// (`certificate required`, `bad certificate`, `unknown certificate authority`).
    Certificate(&'a str),
    /// The endpoint ended the handshake: the alert's name (`handshake failure`).
    Handshake(&'a str),
    /// The endpoint does not speak TLS.
    NotTls,
    /// No end of the handshake in time.
    Timeout,
    /// Anything else.
    Other(&'a str),
}

/// The attempt that failed.
#[derive(Debug, Clone, Copy)]
pub struct Attempt<'a> {
    /// 1 for the first. Attempts whose verdict was [`Verdict::Resend`] do not count.
    pub number: u32,
    /// Endpoints of the pool.
    pub endpoints: usize,
    /// `host:port` of the endpoint, or of the route service.
    pub address: &'a str,
    /// The router's own end of the connection; `None`: there was none.
    pub local: Option<SocketAddr>,
    /// The request went over a connection that an earlier one had used.
    pub reused: bool,
    /// The whole head of the request was given to the kernel.
    pub head_sent: bool,
    /// The request as it was can be sent again: it has no body, or all of it is kept.
    pub replayable: bool,
    /// The endpoint speaks TLS.
    pub tls: bool,
}

/// What becomes of the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Send it again to the same endpoint over a new connection: an idle connection was
    /// closed under it. It does not count as an attempt.
    Resend,
    /// Try the next endpoint; where there is none, answer this.
    Again(Refusal),
    /// Answer this.
    GiveUp(Refusal),
}

/// What becomes of the endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It stays.
    Stays,
    /// It is left out of choices for a while.
    MarkFailed,
    /// It leaves the pool.
    Remove,
}

/// Judges a failed attempt, and notes its router error in the exchange.
pub fn judge(
    failure: Failure<'_>,
    attempt: &Attempt<'_>,
    most_attempts: u32,
    exchange: &mut Exchange,
) -> (Verdict, Fate) {
    let _ = (failure, attempt, most_attempts, exchange);
    (Verdict::GiveUp(Refusal::EndpointFailure), Fate::Stays)
}
