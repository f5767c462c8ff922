//! Answers that a router makes itself.

/// An answer that the router makes itself, with all that differs between them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// 400: the host is empty, or the client's own address.
    EmptyHost,
    /// 400: `X-CF-App-Instance` is malformed.
    InvalidAppInstance,
    /// 400: `X-CF-Process-Instance` is malformed.
    InvalidProcessInstance,
    /// 400: the instance that the client names does not exist.
    UnknownInstance,
    /// 404: no such route.
    UnknownRoute,
    /// 503 (or 404): the route has no endpoint.
    NoEndpoints,
    /// 503: every endpoint has as many requests as it may.
    Overloaded,
    /// 431: the head is too large.
    HeadTooLarge,
    /// 502: the endpoint failed; the router error says how.
    EndpointFailure,
    /// 503: the endpoint's certificate has another name.
    NameMismatch,
    /// 526: the endpoint's certificate is not trusted.
    UntrustedCertificate,
    /// 525: the endpoint does not speak TLS as it should.
    HandshakeFailure,
    /// 496: the endpoint wants a certificate of the router.
    CertificateRequired,
    /// 499: the client went away; nobody reads this answer, only the log tells of it.
    Cancelled,
    /// 502: the route wants a route service, and there are none.
    RouteServiceDisabled,
    /// 503: an upgrade of a route that has a route service.
    RouteServiceUpgrade,
    /// 502, or 400 when strict: the signature of a route service is not valid. The
    /// exchange keeps why.
    InvalidSignature,
    /// 504: the signature of a route service has expired.
    ExpiredSignature,
    /// 500: the request to the route service could not be made.
    RouteServiceFailed,
    /// 502: the router itself is at fault.
    UnknownFailure,
    /// 200: `OPTIONS *`, which the server answers and nobody logs.
    Options,
}
