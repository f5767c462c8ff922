//! Answers that a router makes itself.

use wire::http1::RequestHead;

use super::Pipeline;
use super::answer::{write_options, write_own};
use super::exchange::{Exchange, Times};
use super::reason::reason;
use crate::http::identity::Denial;
use crate::selection::Instance;

/// An answer that the router makes itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// 400: the target is not one; the connection is closed. Go's parser says so, and
    /// nothing is logged.
    Malformed,
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
    /// 503: the route has no endpoint.
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
    /// 502: the signature of a route service is not valid. The exchange keeps why.
    InvalidSignature,
    /// 504: the signature of a route service has expired.
    ExpiredSignature,
    /// 400: a signature is not valid, of a route without a route service, with strict rules.
    StrictInvalidSignature,
    /// 504: the same, expired.
    StrictExpiredSignature,
    /// 500: the request to the route service could not be made.
    RouteServiceFailed,
    /// 502: the router itself is at fault.
    UnknownFailure,
    /// 421: the connection was not made for the domain of the host.
    Misdirected,
    /// 403: the route does not let the caller in.
    Denied(Denial),
    /// 200: `OPTIONS *`, which the server answers and nobody logs.
    Options,
}

/// What may be kept of an answer by those between router and client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Caching {
    Unsaid,
    Never,
    Briefly,
}

impl Refusal {
    /// The status that is answered.
    pub fn status(self) -> u16 {
        match self {
            Self::Options => 200,
            Self::Malformed
            | Self::EmptyHost
            | Self::InvalidAppInstance
            | Self::InvalidProcessInstance
            | Self::UnknownInstance
            | Self::StrictInvalidSignature => 400,
            Self::Denied(_) => 403,
            Self::UnknownRoute => 404,
            Self::Misdirected => 421,
            Self::HeadTooLarge => 431,
            Self::CertificateRequired => 496,
            Self::Cancelled => 499,
            Self::RouteServiceFailed => 500,
            Self::EndpointFailure
            | Self::RouteServiceDisabled
            | Self::InvalidSignature
            | Self::UnknownFailure => 502,
            Self::NoEndpoints
            | Self::Overloaded
            | Self::NameMismatch
            | Self::RouteServiceUpgrade => 503,
            Self::ExpiredSignature | Self::StrictExpiredSignature => 504,
            Self::HandshakeFailure => 525,
            Self::UntrustedCertificate => 526,
        }
    }

    /// Whether it stands in the access log.
    pub fn is_logged(self) -> bool {
        !matches!(self, Self::Malformed | Self::Options | Self::UnknownFailure)
    }

    /// Whether gorouter says it when it has set `X-Forwarded-Proto` already, which its log
    /// then tells.
    pub(super) fn is_behind_proto(self) -> bool {
        matches!(
            self,
            Self::RouteServiceDisabled
                | Self::RouteServiceUpgrade
                | Self::RouteServiceFailed
                | Self::StrictInvalidSignature
                | Self::StrictExpiredSignature
        )
    }

    /// Whether it counts as a rejected request (`rejected_requests`).
    pub fn is_rejection(self) -> bool {
        matches!(
            self,
            Self::EmptyHost
                | Self::InvalidAppInstance
                | Self::InvalidProcessInstance
                | Self::UnknownInstance
                | Self::UnknownRoute
        )
    }

    /// Its router error; `None`: it has none, or that of the failure.
    fn router_error(self) -> Option<&'static str> {
        Some(match self {
            Self::EmptyHost => "empty_host",
            Self::InvalidAppInstance => "invalid_cf_app_instance_header",
            Self::InvalidProcessInstance => "invalid_cf_process_instance_header",
            Self::UnknownInstance | Self::UnknownRoute => "unknown_route",
            Self::NoEndpoints => "no_endpoints",
            Self::Overloaded => "Connection Limit Reached",
            Self::HeadTooLarge => "max-request-size-exceeded",
            Self::RouteServiceDisabled | Self::RouteServiceUpgrade => "route_service_unsupported",
            Self::StrictInvalidSignature => "invalid_route_service_signature",
            Self::StrictExpiredSignature => "expired_route_service_signature",
            Self::UnknownFailure => "unknown_failure",
            Self::Misdirected => "misdirected_request",
            Self::Denied(denial) => denial.name(),
            _ => return None,
        })
    }

    fn caching(self) -> Caching {
        match self {
            Self::EmptyHost | Self::NoEndpoints => Caching::Briefly,
            Self::InvalidAppInstance
            | Self::InvalidProcessInstance
            | Self::UnknownInstance
            | Self::UnknownRoute => Caching::Never,
            _ => Caching::Unsaid,
        }
    }

    /// The whole body of those that gorouter writes without a template; `Some("")`: none.
    fn fixed_body(self) -> Option<&'static str> {
        Some(match self {
            Self::EndpointFailure => {
                "502 Bad Gateway: Registered endpoint failed to handle the request.\n"
            }
            Self::NameMismatch => "503 Service Unavailable\n",
            Self::UntrustedCertificate => "526 Invalid SSL Certificate\n",
            Self::HandshakeFailure => "525 SSL Handshake Failed\n",
            Self::CertificateRequired => "496 SSL Certificate Required\n",
            Self::Cancelled => "499 Request Cancelled\n",
            Self::HeadTooLarge | Self::UnknownFailure | Self::Misdirected | Self::Denied(_) => "",
            _ => return None,
        })
    }

    /// Appends what stands behind the status in the body.
    fn write_message(self, exchange: &Exchange, out: &mut Vec<u8>) {
        let mut write = |parts: &[&[u8]]| parts.iter().for_each(|part| out.extend_from_slice(part));
        let host: &[u8] = &exchange.host;
        match self {
            Self::EmptyHost => write(&[b"Request had empty Host header"]),
            Self::InvalidAppInstance => write(&[b"Invalid X-CF-App-Instance Header"]),
            Self::InvalidProcessInstance => write(&[b"Invalid X-CF-Process-Instance Header"]),
            Self::UnknownRoute => write(&[b"Requested route ('", host, b"') does not exist."]),
            Self::NoEndpoints => {
                write(&[
                    b"Requested route ('",
                    host,
                    b"') has no available endpoints.",
                ]);
            }
            Self::Overloaded => {
                write(&[
                    b"Requested route ('",
                    host,
                    b"') has reached the connection limit.",
                ]);
            }
            Self::UnknownInstance => {
                let (kind, guid, index) = match exchange.instance() {
                    Some(Instance::App { app, index }) => (&b"guid"[..], app, Some(index)),
                    Some(Instance::Process { process, index }) => {
                        (&b"process guid"[..], process, index)
                    }
                    None => (&b"guid"[..], &b""[..], None),
                };
                write(&[b"Requested instance "]);
                if let Some(index) = index {
                    write(&[b"('", index, b"') "]);
                }
                write(&[b"with ", kind, b" ('", guid]);
                write(&[b"') does not exist for route ('", host, b"')"]);
            }
            Self::RouteServiceDisabled => write(&[b"Support for route services is disabled."]),
            Self::RouteServiceUpgrade => write(&[
                b"Websocket requests are not supported for routes bound to Route Services.",
            ]),
            Self::InvalidSignature | Self::ExpiredSignature | Self::StrictExpiredSignature => {
                let detail = exchange.detail.as_bytes();
                write(&[b"Failed to validate Route Service Signature: ", detail]);
            }
            Self::StrictInvalidSignature => write(&[b"invalid route service signature detected"]),
            Self::RouteServiceFailed => write(&[b"Route service request failed."]),
            _ => {}
        }
    }
}

impl Pipeline {
    /// Appends a whole answer that the router makes itself, and notes status, router error
    /// and length for the log. Says whether the client's connection goes on.
    pub fn write_refusal(
        &self,
        head: &RequestHead,
        exchange: &mut Exchange,
        refusal: Refusal,
        keep_alive: bool,
        now: Times,
        out: &mut Vec<u8>,
    ) -> bool {
        let status = refusal.status();
        exchange.status = status;
        if refusal == Refusal::Malformed {
            out.extend_from_slice(
                b"HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\n\
                  Connection: close\r\n\r\n400 Bad Request",
            );
            return false;
        }
        if refusal == Refusal::Options {
            return write_options(head, keep_alive, now, out);
        }
        if let Some(error) = refusal.router_error() {
            exchange.router_error.clear();
            exchange.router_error.push_str(error);
        }
        let mut list = std::mem::take(&mut exchange.answer);
        list.clear();
        if !exchange.router_error.is_empty() {
            list.push("X-Cf-Routererror", exchange.router_error.as_bytes());
        }
        let mut body = std::mem::take(&mut exchange.options);
        body.clear();
        let mut kind: &[u8] = b"text/plain; charset=utf-8";
        if let Some(fixed) = refusal.fixed_body() {
            body.extend_from_slice(fixed.as_bytes());
        } else {
            match refusal.caching() {
                Caching::Unsaid => {}
                Caching::Never => {
                    list.push("Cache-Control", b"no-cache, no-store");
                }
                Caching::Briefly => {
                    list.push("Cache-Control", b"public,max-age=2");
                }
            }
            let mut message = Vec::new();
            refusal.write_message(exchange, &mut message);
            if let Some(template) = &self.template {
                kind = b"text/html; charset=utf-8";
                template.write(status, &message, exchange, &mut body);
            } else {
                super::text::decimal(u64::from(status), &mut body);
                body.push(b' ');
                body.extend_from_slice(reason(status).unwrap_or_default().as_bytes());
                body.extend_from_slice(b": ");
                body.extend_from_slice(&message);
                body.push(b'\n');
            }
        }
        if refusal.fixed_body() != Some("") {
            list.push("Content-Type", kind);
            list.push("X-Content-Type-Options", b"nosniff");
        }
        // Those of the parser and of the guard are not rewritten.
        if refusal != Refusal::UnknownFailure {
            self.rewrite(&mut list);
        }
        exchange.progress.answer_body = body.len() as u64;
        let keep_alive = keep_alive && refusal != Refusal::HeadTooLarge;
        let kept = write_own(head, &mut list, status, &body, keep_alive, now, out);
        exchange.answer = list;
        exchange.options = body;
        kept
    }

    /// Appends the answer to a health check: 200, or 503 when the router is not healthy.
    /// Says whether the client's connection goes on.
    pub fn write_health(
        &self,
        head: &RequestHead,
        exchange: &mut Exchange,
        healthy: bool,
        keep_alive: bool,
        now: Times,
        out: &mut Vec<u8>,
    ) -> bool {
        let (status, body): (u16, &[u8]) = if healthy { (200, b"ok\n") } else { (503, b"") };
        exchange.status = status;
        exchange.progress.answer_body = body.len() as u64;
        let list = &mut exchange.answer;
        list.clear();
        list.push("Cache-Control", b"private, max-age=0");
        list.push("Expires", b"0");
        self.rewrite(list);
        write_own(head, list, status, body, keep_alive, now, out)
    }
}
