//! The line that is logged for a request, exactly as gorouter writes it.

mod quote;
#[cfg(test)]
mod tests;

use std::borrow::Cow;

use aws_lc_rs::digest;
use wire::http1::RequestHead;

pub(super) use self::quote::quoted;
use self::quote::quoted_or_dash;
use super::identity::{CallerIdentity, Rules};
use super::pipeline::target::escaped;
use super::pipeline::text::{decimal, digits, hex, log_time};
use super::pipeline::{Client, Exchange, Pipeline, Times};
use super::settings::{AccessLogSettings, ExtraField, RedactQuery};
use crate::table::Nanos;

/// A line above this many bytes is told in an envelope with its texts cut: gorouter's bound
/// for lines that are sent on over UDP.
const MOST_BYTES: usize = 65_400;
/// Bytes of a referer, a user agent and the like within a line that is cut.
const MOST_SMALL_BYTES: usize = 1_000;
/// Bytes of the request's URI, and of all extra fields, within a line that is cut.
const MOST_LARGE_BYTES: usize = 20_000;

/// Appends the line of a request that has ended, with its line end.
pub fn write_line(
    pipeline: &Pipeline,
    head: &RequestHead,
    client: &Client,
    exchange: &Exchange,
    now: Times,
    out: &mut Vec<u8>,
) {
    let line = Line {
        pipeline,
        head,
        client,
        exchange,
        now,
        cut: false,
    };
    line.write(out);
}

/// Appends the same with its texts cut, if it is longer than a datagram can take.
pub(super) fn write_short_line(
    pipeline: &Pipeline,
    head: &RequestHead,
    client: &Client,
    exchange: &Exchange,
    now: Times,
    out: &mut Vec<u8>,
) {
    let mut line = Line {
        pipeline,
        head,
        client,
        exchange,
        now,
        cut: false,
    };
    let start = out.len();
    line.write(out);
    if out.len() - start > MOST_BYTES {
        out.truncate(start);
        line.cut = true;
        line.write(out);
    }
}

/// What the connection says of the client: told where domains ask for certificates, unless the
/// settings choose among these, and say where they stand.
const OF_CALLERS: [ExtraField; 4] = [
    ExtraField::TlsSni,
    ExtraField::CallerApp,
    ExtraField::CallerSpace,
    ExtraField::CallerOrganization,
];

struct Line<'a> {
    pipeline: &'a Pipeline,
    head: &'a RequestHead,
    client: &'a Client,
    exchange: &'a Exchange,
    now: Times,
    /// Texts are cut to their bounds.
    cut: bool,
}

impl Line<'_> {
    fn write(&self, out: &mut Vec<u8>) {
        let exchange = self.exchange;
        let settings = &self.pipeline.settings().access_log;
        // The host was checked by the parser: it cannot end the line.
        out.extend_from_slice(&exchange.host);
        out.extend_from_slice(b" - [");
        log_time(exchange.start.wall, out);
        out.extend_from_slice(b"] ");
        self.request_line(settings, out);
        out.push(b' ');
        match exchange.status {
            0 => out.extend_from_slice(b"\"-\""),
            status => decimal(u64::from(status), out),
        }
        for bytes in [
            exchange.progress.request_body,
            exchange.progress.answer_body,
        ] {
            out.push(b' ');
            decimal(bytes, out);
        }
        let seen = &exchange.seen;
        let part = |part| exchange.request.part(part);
        out.push(b' ');
        self.small(part(seen.referer), "REFERER", out);
        out.push(b' ');
        self.small(part(seen.user_agent), "USER-AGENT", out);
        let peer = match settings.hide_client {
            true => "-",
            false => self.client.peer_text(),
        };
        out.extend_from_slice(b" \"");
        out.extend_from_slice(peer.as_bytes());
        out.extend_from_slice(b"\" ");
        let endpoint = exchange.progress.endpoint.as_deref();
        let of = |text: Option<&str>, out: &mut Vec<u8>| {
            quoted_or_dash(text.unwrap_or_default().as_bytes(), out);
        };
        of(endpoint.map(|endpoint| &*endpoint.identity), out);
        let (forwarded_for, proto) = match exchange.sent {
            true => (seen.sent_for, seen.sent_proto),
            false => (seen.client_for, seen.client_proto),
        };
        out.extend_from_slice(b" x_forwarded_for:");
        let forwarded_for = match settings.hide_forwarded_for {
            true => b"-",
            false => part(forwarded_for),
        };
        self.small(forwarded_for, "X-FORWARDED-FOR", out);
        out.extend_from_slice(b" x_forwarded_proto:");
        self.small(part(proto), "X-FORWARDED-PROTO", out);
        out.extend_from_slice(b" vcap_request_id:");
        quoted_or_dash(exchange.request_id(), out);
        out.extend_from_slice(b" response_time:");
        let whole = self.now.mono.saturating_sub(exchange.start.mono);
        seconds(whole, out);
        out.extend_from_slice(b" gorouter_time:");
        seconds(self.own_time(whole), out);
        out.extend_from_slice(b" app_id:");
        of(endpoint.map(|endpoint| &*endpoint.app), out);
        out.extend_from_slice(b" app_index:");
        of(endpoint.map(|endpoint| &*endpoint.instance_index), out);
        out.extend_from_slice(b" instance_id:");
        of(endpoint.map(|endpoint| &*endpoint.instance_id), out);
        for field in &settings.extra_fields {
            self.extra_field(*field, out);
        }
        out.extend_from_slice(b" x_cf_routererror:");
        // gorouter says so when the answer is on its way already: only here.
        let error = match exchange.router_error.as_bytes() {
            b"" if self.head.target().contains(&b';') => b"deprecated-semicolon-params",
            error => error,
        };
        quoted_or_dash(error, out);
        let chosen = |field: &ExtraField| settings.extra_fields.contains(field);
        if !self.pipeline.settings().domains.is_empty() && !OF_CALLERS.iter().any(chosen) {
            for field in OF_CALLERS {
                self.extra_field(field, out);
            }
        }
        self.extra_headers(out);
        out.push(b'\n');
    }

    /// Who called, where a domain asks for it.
    fn caller(&self) -> Option<&CallerIdentity> {
        let caller = self.client.caller();
        caller.and_then(|caller| caller.identity.as_ref())
    }

    /// What the route's rules decided on; empty: it has none, or they were not looked at.
    fn policy(&self) -> String {
        let exchange = self.exchange;
        let pool = exchange.pool.as_ref().filter(|_| exchange.guarded);
        let rules = pool.and_then(|pool| Rules::of(pool.settings()));
        let endpoint = exchange.progress.endpoint.as_deref();
        rules.map_or_else(String::new, |rules| rules.deciding(self.caller(), endpoint))
    }

    /// `"GET /path?query HTTP/1.1"`
    fn request_line(&self, settings: &AccessLogSettings, out: &mut Vec<u8>) {
        let target = self.head.target();
        let taken = &self.exchange.target;
        let part = |range: &std::ops::Range<u32>| {
            target
                .get(range.start as usize..range.end as usize)
                .unwrap_or_default()
        };
        let (path, query) = (part(&taken.path), part(&taken.query));
        out.push(b'"');
        quoted(self.head.method(), out);
        out.push(b' ');
        let redact = match self.head.method() {
            b"GET" if !query.is_empty() => settings.redact_query,
            _ => RedactQuery::None,
        };
        let mut uri = Vec::with_capacity(target.len().max(1));
        uri.extend_from_slice(&escaped(if path.is_empty() { b"/" } else { path }));
        match redact {
            RedactQuery::None if taken.has_query => {
                uri.push(b'?');
                uri.extend_from_slice(query);
            }
            RedactQuery::None | RedactQuery::All => {}
            RedactQuery::Hash => {
                uri.extend_from_slice(b"?hash=");
                let algorithm = &digest::SHA1_FOR_LEGACY_USE_ONLY;
                hex(digest::digest(algorithm, query).as_ref(), &mut uri);
            }
        }
        if self.cut {
            quoted(&halved(&uri, MOST_LARGE_BYTES, "REQUEST-URI"), out);
        } else {
            quoted(&uri, out);
        }
        out.extend_from_slice(match (self.client.http2(), self.head.minor()) {
            (true, _) => b" HTTP/2.0\"",
            _ if self.head.is_http2_preface() => b" HTTP/2.0\"",
            (false, 0) => b" HTTP/1.0\"",
            (false, _) => b" HTTP/1.1\"",
        });
    }

    /// A text that browsers govern.
    fn small(&self, text: &[u8], name: &str, out: &mut Vec<u8>) {
        match self.cut {
            true => quoted_or_dash(&halved(text, MOST_SMALL_BYTES, name), out),
            false => quoted_or_dash(text, out),
        }
    }

    /// What of the time was the router's own: 0 for a request that reached no endpoint.
    fn own_time(&self, whole: Nanos) -> Nanos {
        let progress = &self.exchange.progress;
        match progress.backend_started {
            0 => 0,
            started => whole.saturating_sub(progress.backend_finished.saturating_sub(started)),
        }
    }

    fn extra_field(&self, field: ExtraField, out: &mut Vec<u8>) {
        let progress = &self.exchange.progress;
        let began = progress.backend_started;
        let failed = progress.failed_finished;
        let succeeded = began != 0 && progress.backend_finished != failed;
        match field {
            ExtraField::FailedAttempts => {
                out.extend_from_slice(b" failed_attempts:");
                decimal(u64::from(progress.failed_attempts), out);
            }
            ExtraField::FailedAttemptsTime => {
                out.extend_from_slice(b" failed_attempts_time:");
                let time = (failed != 0).then(|| failed.saturating_sub(began));
                seconds_or_dash(time, out);
            }
            // Endpoints are named by address: none is looked up.
            ExtraField::DnsTime => {
                out.extend_from_slice(b" dns_time:");
                seconds_or_dash(succeeded.then_some(0), out);
            }
            ExtraField::DialTime => {
                out.extend_from_slice(b" dial_time:");
                seconds_or_dash(succeeded.then_some(progress.dial), out);
            }
            ExtraField::TlsTime => {
                out.extend_from_slice(b" tls_time:");
                seconds_or_dash(succeeded.then_some(progress.tls), out);
            }
            ExtraField::BackendTime => {
                out.extend_from_slice(b" backend_time:");
                let from = if failed == 0 { began } else { failed };
                let time = progress.backend_finished.saturating_sub(from);
                seconds_or_dash(succeeded.then_some(time), out);
            }
            ExtraField::LocalAddress => {
                out.extend_from_slice(b" local_address:");
                match progress.local.filter(|_| succeeded) {
                    Some(local) => {
                        out.push(b'"');
                        address(local, out);
                        out.push(b'"');
                    }
                    None => out.extend_from_slice(b"\"-\""),
                }
            }
            ExtraField::TlsSni => {
                let name = self.client.tls().map(|tls| tls.server_name.as_str());
                text(b" tls_sni:", name, out);
            }
            ExtraField::CallerApp => {
                let app = self.caller().map(|caller| caller.app.as_str());
                text(b" caller_cf_app:", app, out);
            }
            ExtraField::CallerSpace => {
                let space = self.caller().map(|caller| caller.space.as_str());
                text(b" caller_cf_space:", space, out);
            }
            ExtraField::CallerOrganization => {
                let caller = self.caller();
                let organization = caller.map(|caller| caller.organization.as_str());
                text(b" caller_cf_org:", organization, out);
            }
            ExtraField::RoutePolicy => {
                text(b" route_policy:", Some(self.policy().as_str()), out);
            }
        }
    }

    /// Request fields that the settings name, and those of traces.
    fn extra_headers(&self, out: &mut Vec<u8>) {
        let start = out.len();
        for (name, label) in self.pipeline.logged() {
            let value = self.exchange.logged_value(self.head, name);
            if self.cut && out.len() - start + label.len() + value.len() + 4 >= MOST_LARGE_BYTES {
                out.extend_from_slice(b" ...EXTRA-REQUEST-HEADERS-TOO-LONG-TO-LOG--TRUNCATED");
                break;
            }
            out.push(b' ');
            out.extend_from_slice(label.as_bytes());
            out.push(b':');
            quoted_or_dash(value, out);
        }
    }
}

/// A text that is halved until it has at most so many bytes, and says so each time, as
/// gorouter does it.
fn halved<'t>(text: &'t [u8], most: usize, name: &str) -> Cow<'t, [u8]> {
    let mut text = Cow::Borrowed(text);
    while text.len() > most {
        let mut half = text[..text.len() / 2].to_vec();
        half.extend_from_slice(b"...");
        half.extend_from_slice(name.as_bytes());
        half.extend_from_slice(b"-TOO-LONG-TO-LOG--TRUNCATED");
        text = Cow::Owned(half);
    }
    text
}

/// Appends a name and a text in quotes, or a dash in place of nothing.
fn text(name: &[u8], value: Option<&str>, out: &mut Vec<u8>) {
    out.extend_from_slice(name);
    quoted_or_dash(value.unwrap_or_default().as_bytes(), out);
}

/// Appends nanoseconds as seconds with six decimals, rounded.
fn seconds(nanos: Nanos, out: &mut Vec<u8>) {
    let micros = nanos.saturating_add(500) / 1_000;
    decimal(micros / 1_000_000, out);
    out.push(b'.');
    digits::<6>(micros % 1_000_000, out);
}

fn seconds_or_dash(nanos: Option<Nanos>, out: &mut Vec<u8>) {
    match nanos {
        Some(nanos) => seconds(nanos, out),
        None => out.extend_from_slice(b"\"-\""),
    }
}

/// Appends `ip:port`.
fn address(address: std::net::SocketAddr, out: &mut Vec<u8>) {
    use std::io::Write as _;
    if let std::net::IpAddr::V4(ip) = address.ip() {
        for (at, octet) in ip.octets().into_iter().enumerate() {
            if at > 0 {
                out.push(b'.');
            }
            decimal(u64::from(octet), out);
        }
        out.push(b':');
        decimal(u64::from(address.port()), out);
    } else {
        // Writing to a Vec cannot fail.
        let _ = write!(out, "{address}");
    }
}
