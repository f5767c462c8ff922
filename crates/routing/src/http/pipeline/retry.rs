//! What becomes of a request whose attempt failed, and of the endpoint.

use std::fmt::Write as _;
use std::net::{IpAddr, SocketAddr};

use wire::tls::TlsFailure;

use super::{Exchange, Refusal};

/// How an attempt failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure<'a> {
    /// No connection: the error's text as the system names it (`connection refused`).
    Dial(&'a str),
    /// No connection in time.
    DialTimeout,
    /// No connection: it would lead to a route service where none may be.
    Blocked(SocketAddr),
    /// TLS towards the endpoint.
    Tls(&'a TlsFailure),
    /// No end of TLS's handshake in time.
    TlsTimeout,
    /// No TLS for another reason: its text.
    TlsOther(&'a str),
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

/// The attempt that failed.
#[derive(Debug, Clone, Copy)]
pub struct Attempt<'a> {
    /// 1 for the first. Attempts whose verdict was [`Verdict::Resend`] do not count.
    pub number: u32,
    /// Endpoints that would do, those included that were tried and have left the pool. Each is
    /// tried once, but a route service again and again.
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

/// Judges a failed attempt, and notes its router error in the exchange. Nothing of an
/// answer has come. `most_attempts`: as many as the settings allow; 0: as many as there are
/// endpoints.
pub fn judge(
    failure: Failure<'_>,
    attempt: &Attempt<'_>,
    most_attempts: u32,
    exchange: &mut Exchange,
) -> (Verdict, Fate) {
    note(failure, attempt, &mut exchange.router_error);
    let refusal = refusal(failure);
    let fate = fate(failure, attempt.tls);
    if failure == Failure::ClientGone {
        return (Verdict::GiveUp(refusal), fate);
    }
    let idempotent = exchange.idempotent;
    let stale = matches!(
        failure,
        Failure::Closed | Failure::Reset | Failure::Write(_)
    );
    if stale && attempt.reused && attempt.replayable && (idempotent || !attempt.head_sent) {
        return (Verdict::Resend, Fate::Stays);
    }
    let unsent = match failure {
        Failure::Dial(_) | Failure::DialTimeout => true,
        Failure::Tls(_) | Failure::TlsTimeout | Failure::TlsOther(_) => true,
        Failure::Closed => !attempt.head_sent || (idempotent && attempt.replayable),
        _ => !attempt.head_sent,
    };
    let most = match (exchange.service.is_some(), most_attempts) {
        (true, most) => most,
        (false, 0) => attempt.endpoints as u32,
        (false, most) => most.min(attempt.endpoints as u32),
    };
    if unsent && attempt.number < most {
        (Verdict::Again(refusal), fate)
    } else {
        (Verdict::GiveUp(refusal), fate)
    }
}

/// Notes that the client went away while an attempt was under way: as
/// [`Failure::ClientGone`], where there is nothing left to judge.
pub fn note_cancelled(exchange: &mut Exchange) {
    exchange.router_error.clear();
    exchange
        .router_error
        .push_str("endpoint_failure (context canceled)");
}

/// Notes that no endpoint of the pool may be asked: all have left since it was found, or the
/// client is bound to one that is gone.
pub fn note_no_endpoint(exchange: &mut Exchange) {
    exchange.router_error.clear();
    exchange
        .router_error
        .push_str("endpoint_failure (No endpoints available)");
    // gorouter has made the head by then, and its log tells what would have been sent.
    exchange.sent = true;
}

/// What the client is told of a failure.
fn refusal(failure: Failure<'_>) -> Refusal {
    match failure {
        Failure::Tls(failure) => match failure {
            TlsFailure::OtherName { .. } | TlsFailure::CommonNameOnly => Refusal::NameMismatch,
            TlsFailure::UnknownAuthority
            | TlsFailure::BadCertificate
            | TlsFailure::WrongUsage
            | TlsFailure::CriticalExtension
            | TlsFailure::TooManyIntermediates
            | TlsFailure::Expired => Refusal::UntrustedCertificate,
            TlsFailure::AlertBadCertificate
            | TlsFailure::AlertUnknownAuthority
            | TlsFailure::AlertCertificateRequired => Refusal::CertificateRequired,
            TlsFailure::AlertHandshakeFailure | TlsFailure::Incompatible | TlsFailure::NotTls => {
                Refusal::HandshakeFailure
            }
            TlsFailure::Alert(_) | TlsFailure::Other => Refusal::EndpointFailure,
        },
        Failure::ClientGone => Refusal::Cancelled,
        _ => Refusal::EndpointFailure,
    }
}

fn fate(failure: Failure<'_>, tls: bool) -> Fate {
    match failure {
        Failure::Tls(TlsFailure::Alert(_) | TlsFailure::Other) => Fate::Stays,
        Failure::Reset => Fate::MarkFailed,
        Failure::Dial(_) | Failure::DialTimeout | Failure::Tls(_) | Failure::TlsTimeout => {
            match tls {
                true => Fate::Remove,
                false => Fate::MarkFailed,
            }
        }
        _ => Fate::Stays,
    }
}

/// Of an answer with more fields than it may have: gorouter's own text.
pub const TOO_MANY_FIELDS: &str = "Too many response headers";

/// Of an endpoint whose name has no address.
pub const NO_SUCH_HOST: &str = "no such host";

/// Writes the router error as gorouter does: `endpoint_failure (...)` around the text that
/// Go's library has for it.
fn note(failure: Failure<'_>, attempt: &Attempt<'_>, text: &mut String) {
    text.clear();
    text.push_str("endpoint_failure (");
    let written = match failure {
        Failure::Dial(NO_SUCH_HOST) => {
            let (host, _) = attempt.address.rsplit_once(':').unwrap_or_default();
            write!(text, "dial tcp: lookup {host}: {NO_SUCH_HOST}")
        }
        Failure::Dial(error) => write!(text, "dial tcp {}: connect: {error}", Far(attempt.address)),
        Failure::DialTimeout => write!(text, "dial tcp {}: i/o timeout", Far(attempt.address)),
        Failure::Blocked(address) => write!(
            text,
            "dial tcp {address}: connection to {} not allowed",
            address.ip()
        ),
        Failure::Tls(failure) => tls_text(failure, text),
        Failure::TlsTimeout => text.write_str("net/http: TLS handshake timeout"),
        Failure::TlsOther(error) => text.write_str(error),
        Failure::Closed => text.write_str("EOF"),
        Failure::Reset => connection(attempt, "read", text)
            .and_then(|()| text.write_str("connection reset by peer")),
        Failure::Write(error) => {
            connection(attempt, "write", text).and_then(|()| text.write_str(error))
        }
        Failure::Timeout => text.write_str("context deadline exceeded"),
        Failure::Protocol(TOO_MANY_FIELDS) => text.write_str(TOO_MANY_FIELDS),
        Failure::Protocol(error) => write!(
            text,
            "net/http: HTTP/1.x transport connection broken: {error}"
        ),
        Failure::ClientGone => text.write_str("context canceled"),
    };
    // Writing to a String cannot fail.
    debug_assert!(written.is_ok());
    text.push(')');
}

fn tls_text(failure: &TlsFailure, text: &mut String) -> std::fmt::Result {
    const VERIFY: &str = "tls: failed to verify certificate: x509: ";
    const ALERT: &str = "remote error: tls: ";
    let names;
    let (kind, what) = match failure {
        TlsFailure::OtherName { proven, expected } => {
            names = other_name(proven, expected);
            (VERIFY, names.as_str())
        }
        TlsFailure::CommonNameOnly => (
            VERIFY,
            "certificate relies on legacy Common Name field, use SANs instead",
        ),
        TlsFailure::UnknownAuthority => (VERIFY, "certificate signed by unknown authority"),
        TlsFailure::WrongUsage => (VERIFY, "certificate specifies an incompatible key usage"),
        TlsFailure::CriticalExtension => (VERIFY, "unhandled critical extension"),
        TlsFailure::TooManyIntermediates => {
            (VERIFY, "too many intermediates for path length constraint")
        }
        TlsFailure::BadCertificate => (VERIFY, "certificate is of no use"),
        TlsFailure::Expired => (
            VERIFY,
            "certificate has expired or is not yet valid: by this router's clock",
        ),
        TlsFailure::NotTls => ("tls: ", "first record does not look like a TLS handshake"),
        TlsFailure::AlertBadCertificate => (ALERT, "bad certificate"),
        TlsFailure::AlertUnknownAuthority => (ALERT, "unknown certificate authority"),
        TlsFailure::AlertCertificateRequired => (ALERT, "certificate required"),
        TlsFailure::AlertHandshakeFailure | TlsFailure::Incompatible => {
            (ALERT, "handshake failure")
        }
        TlsFailure::Alert(_) | TlsFailure::Other => (ALERT, "alert"),
    };
    write!(text, "{kind}{what}")
}

fn other_name(proven: &[String], expected: &str) -> String {
    if !proven.is_empty() {
        let proven = proven.join(", ");
        format!("certificate is valid for {proven}, not {expected}")
    } else if expected.parse::<IpAddr>().is_ok() {
        let none = "because it doesn't contain any IP SANs";
        format!("cannot validate certificate for {expected} {none}")
    } else {
        format!("certificate is not valid for any names, but wanted to match {expected}")
    }
}

/// `read tcp 127.0.0.1:48736->127.0.0.1:9108: read: `
fn connection(attempt: &Attempt<'_>, what: &str, text: &mut String) -> std::fmt::Result {
    write!(text, "{what} tcp ")?;
    if let Some(local) = attempt.local {
        write!(text, "{local}->")?;
    }
    write!(text, "{}: {what}: ", Far(attempt.address))
}

/// `host:port` as Go writes it of a connection: an address of IPv6 stands in brackets.
struct Far<'a>(&'a str);

impl std::fmt::Display for Far<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0.rsplit_once(':') {
            Some((host, port)) if host.contains(':') && !host.starts_with('[') => {
                write!(formatter, "[{host}]:{port}")
            }
            _ => formatter.write_str(self.0),
        }
    }
}
