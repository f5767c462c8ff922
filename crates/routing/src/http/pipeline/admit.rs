//! May a request pass, and with which fields.

use rand::Rng;
use wire::http1::write::decimal_digits;
use wire::http1::{RequestBody, RequestHead};

use super::exchange::{Exchange, Times, Upgrade};
use super::fields::{Part, Slot, has_token, tokens};
use super::head_size::is_too_large;
use super::route_pass::Pass;
use super::target::{Target, escaped};
use super::{Admission, Client, Pipeline, Refusal, trace};
use crate::http::identity::{CertificateFormat, Rules, fits_handshake};
use crate::http::settings::{ForwardedClientCert, HttpSettings};
use crate::selection::is_overloaded;
use crate::table::{Lookup, Table};

impl Pipeline {
    /// Looks at a request: begins the exchange anew, finds its pool, prepares its fields.
    /// The order is gorouter's: it decides which of several faults is answered.
    pub fn admit(
        &self,
        head: &RequestHead,
        client: &Client,
        table: &Table,
        now: Times,
        random: &mut impl Rng,
        exchange: &mut Exchange,
    ) -> Admission {
        exchange.begin(now);
        let Some(target) = Target::of(head.method(), head.target()) else {
            return Admission::Answer(Refusal::Malformed);
        };
        exchange.target = target;
        if head.method() == b"OPTIONS" && head.target() == b"*" {
            return Admission::Answer(Refusal::Options);
        }
        read_fields(&self.settings, head, exchange);
        (exchange.seen.request_id, exchange.seen.traced) = trace::apply(
            &self.settings.tracing,
            &exchange.seen.trace,
            &mut exchange.request,
            random,
        );
        let agent = &self.settings.health_check_user_agent;
        if !agent.is_empty() && exchange.request.part(exchange.seen.user_agent) == agent.as_bytes()
        {
            return Admission::HealthCheck;
        }
        let admitted = self
            .check_host(client, exchange)
            .and_then(|()| self.find_pool(head, client, table, exchange))
            .and_then(|()| self.check_size(head, exchange))
            .and_then(|()| check_caller(client, exchange))
            .and_then(|()| self.route_pass(head, table, now, random, exchange));
        match admitted {
            Ok(pass) => {
                self.finish_fields(client, pass, exchange);
                Admission::Forward
            }
            Err(refusal) => {
                let said = !exchange.seen.client_proto.is_empty();
                if refusal.is_behind_proto()
                    && let Some(proto) = self.forwarded_proto(client, said)
                {
                    exchange.seen.client_proto =
                        exchange.request.push("X-Forwarded-Proto", proto.as_bytes());
                }
                Admission::Answer(refusal)
            }
        }
    }

    /// The protocol that endpoints are told in place of what the client said, if it `said`
    /// any; `None`: that one counts.
    fn forwarded_proto(&self, client: &Client, said: bool) -> Option<&'static str> {
        let rules = &self.settings.headers;
        match client.tls() {
            _ if rules.force_https => Some("https"),
            tls if rules.sanitize_proto || !said => {
                Some(if tls.is_some() { "https" } else { "http" })
            }
            _ => None,
        }
    }

    /// Before anything is told of the host's routes.
    fn check_host(&self, client: &Client, exchange: &Exchange) -> Result<(), Refusal> {
        let domains = &self.settings.domains;
        if domains.is_empty() {
            return Ok(());
        }
        let handshake = client.caller().map(|caller| caller.domain);
        let fits = fits_handshake(domains, &exchange.host, handshake);
        fits.then_some(()).ok_or(Refusal::Misdirected)
    }

    fn find_pool(
        &self,
        head: &RequestHead,
        client: &Client,
        table: &Table,
        exchange: &mut Exchange,
    ) -> Result<(), Refusal> {
        let until_colon = |text| memchr::memchr(b':', text).map_or(text, |at| &text[..at]);
        // Balancers put the address of their own end where a client sent no host.
        if exchange.host.is_empty()
            || until_colon(&exchange.host) == until_colon(client.peer_text().as_bytes())
        {
            return Err(Refusal::EmptyHost);
        }
        let path = escaped(part_of(head.target(), &exchange.target.path));
        let named = exchange.request.part(exchange.seen.app_instance);
        if !named.is_empty() && !is_instance(named, true) {
            return Err(Refusal::InvalidAppInstance);
        }
        let named = exchange.request.part(exchange.seen.process_instance);
        if exchange.seen.app_instance.is_empty() && !named.is_empty() && !is_instance(named, false)
        {
            return Err(Refusal::InvalidProcessInstance);
        }
        let instance = exchange.instance();
        let missing = match instance {
            Some(_) => Refusal::UnknownInstance,
            None => Refusal::UnknownRoute,
        };
        let pool = match table.lookup(&exchange.host, &path) {
            Lookup::Found(pool) => pool,
            Lookup::Empty(_) if self.settings.empty_pool_is_503 && instance.is_none() => {
                return Err(Refusal::NoEndpoints);
            }
            _ => return Err(missing),
        };
        if instance.is_some_and(|wanted| !wanted.exists_in(&pool)) {
            return Err(missing);
        }
        if is_overloaded(&pool, self.settings.backends.in_flight) {
            return Err(Refusal::Overloaded);
        }
        exchange.pool = Some(pool);
        Ok(())
    }

    fn check_size(&self, head: &RequestHead, exchange: &mut Exchange) -> Result<(), Refusal> {
        let (bytes, fields) = (
            self.settings.request_head_bytes,
            self.settings.request_fields,
        );
        if !is_too_large(head, exchange, bytes, fields) {
            return Ok(());
        }
        // Whose turn it is, the engine knows.
        let pool = exchange.pool.as_ref();
        exchange.progress.endpoint = pool.and_then(|pool| pool.endpoints().first().cloned());
        Err(Refusal::HeadTooLarge)
    }

    /// Everything between the route service's rules and the endpoint: what a client may not
    /// say, and what the router says instead.
    fn finish_fields(&self, client: &Client, pass: Pass, exchange: &mut Exchange) {
        let rules = &self.settings.headers;
        let returned = matches!(pass, Pass::Returned | Pass::Vouched);
        let Exchange {
            request: fields,
            seen,
            options,
            forwarded_for,
            closes,
            ..
        } = exchange;
        let domain = client
            .caller()
            .and_then(|caller| Some((caller, self.settings.domains.get(caller.domain)?)));
        let (mode, certificate) = match domain {
            Some((caller, domain)) => match domain.format {
                CertificateFormat::Envoy => (domain.client_cert, caller.envoy()),
                CertificateFormat::Raw => (domain.client_cert, client.certificate_text()),
            },
            None => (rules.client_cert, client.certificate_text()),
        };
        // A route service may tell of another client's certificate, but not where callers are
        // known by theirs: it is the caller there.
        let told = returned && domain.is_none() && client.tls().is_some();
        match mode {
            ForwardedClientCert::AlwaysForward => {}
            ForwardedClientCert::Forward => {
                // What came back with a request goes no further, what a service is told does.
                let kept = match told {
                    true => pass == Pass::Vouched,
                    false => !certificate.is_empty(),
                };
                if !kept {
                    fields.remove(b"X-Forwarded-Client-Cert");
                }
            }
            ForwardedClientCert::SanitizeSet => {
                if !told {
                    fields.remove(b"X-Forwarded-Client-Cert");
                    if !certificate.is_empty() {
                        fields.push("X-Forwarded-Client-Cert", certificate.as_bytes());
                    }
                }
            }
        }
        seen.sent_proto = seen.client_proto;
        let said = !seen.client_proto.is_empty();
        if !returned && let Some(proto) = self.forwarded_proto(client, said) {
            if fields.has(b"X-Forwarded-Proto") {
                fields.remove(b"X-Forwarded-Proto");
            }
            seen.sent_proto = fields.push("X-Forwarded-Proto", proto.as_bytes());
        }
        if !seen.request_start {
            let mut start = [0; 20];
            let start = decimal_digits(exchange.start.wall / 1_000_000, &mut start);
            fields.push("X-Request-Start", start);
        }
        let mut removed = Vec::new();
        for option in tokens(options) {
            let protected = |name: &String| name.as_bytes().eq_ignore_ascii_case(option);
            // The id is the router's, whatever the client says of it.
            let is_id = option.eq_ignore_ascii_case(b"X-Vcap-Request-Id");
            if is_id || is_plain_option(option) || rules.protected.iter().any(protected) {
                continue;
            }
            removed.push(option);
            match option.to_ascii_lowercase().as_slice() {
                b"x-forwarded-for" => forwarded_for.clear(),
                b"x-forwarded-proto" => seen.sent_proto = Part::default(),
                b"user-agent" => seen.user_agent = Part::default(),
                b"referer" => seen.referer = Part::default(),
                _ => {}
            }
        }
        fields.remove_all(&mut removed);
        if seen.wants_trailers {
            fields.push("Te", b"trailers");
        }
        // Also without a body; and a backend that is told so changes to no other protocol.
        let expects = fields
            .part(seen.expect)
            .eq_ignore_ascii_case(b"100-continue");
        *closes = expects && !self.settings.backends.keep_alive_after_continue;
        if *closes {
            fields.push("Connection", b"close");
        } else if exchange.upgrade != Upgrade::None {
            fields.push("Connection", b"Upgrade");
        }
        if !forwarded_for.is_empty() {
            forwarded_for.extend_from_slice(b", ");
        }
        forwarded_for.extend_from_slice(client.ip_text().as_bytes());
        seen.sent_for = fields.push("X-Forwarded-For", forwarded_for);
        if pass != Pass::Outward {
            for (name, slot) in [
                ("X-Cf-Applicationid", Slot::Application),
                ("X-Cf-Instanceid", Slot::InstanceId),
                ("X-Cf-Instanceindex", Slot::InstanceIndex),
            ] {
                fields.push_slot(name, slot);
            }
        }
        fields.sort();
    }
}

/// Whether the route lets the caller in. Enforced on every domain: a route with rules that
/// is asked for by another name stays closed.
fn check_caller(client: &Client, exchange: &mut Exchange) -> Result<(), Refusal> {
    let Some(pool) = &exchange.pool else {
        return Ok(());
    };
    let Some(rules) = Rules::of(pool.settings()) else {
        return Ok(());
    };
    exchange.guarded = true;
    let caller = client.caller().and_then(|caller| caller.identity.as_ref());
    let admitted = rules.admit(caller);
    if admitted.is_err() {
        // Its application is told of it.
        exchange.progress.endpoint = pool.endpoints().first().cloned();
    }
    admitted.map_err(Refusal::Denied)
}

/// Options of `Connection` that are not names of fields.
fn is_plain_option(option: &[u8]) -> bool {
    option.eq_ignore_ascii_case(b"keep-alive")
        || option.eq_ignore_ascii_case(b"close")
        || option.eq_ignore_ascii_case(b"upgrade")
        || option.eq_ignore_ascii_case(b"te")
}

/// The one pass over a request's fields: each is kept, kept and remembered, or dropped.
fn read_fields(settings: &HttpSettings, head: &RequestHead, exchange: &mut Exchange) {
    let Exchange {
        request: fields,
        seen,
        asked,
        host,
        target,
        forwarded_for,
        trailers,
        options,
        ..
    } = exchange;
    host.extend_from_slice(part_of(head.target(), &target.host));
    let mut key = false;
    let (mut pragma, mut cache_control) = (None, false);
    for (name, value) in head.fields() {
        let at = fields.begin(name);
        // The first one of a name counts, as in Go.
        let first = |part: &mut Part, found: Part| {
            if part.is_empty() {
                *part = found;
            }
        };
        match fields.name(at) {
            b"Host" => {
                if host.is_empty() && !seen.host_given {
                    host.extend_from_slice(value);
                }
                seen.host_given = true;
                fields.drop(at);
            }
            b"User-Agent" => {
                let part = fields.stash(at, value);
                first(&mut seen.user_agent, part);
            }
            b"Content-Length"
            | b"Transfer-Encoding"
            | b"Keep-Alive"
            | b"Proxy-Connection"
            | b"Proxy-Authenticate"
            | b"Proxy-Authorization"
            | b"X-Vcap-Request-Id" => {
                fields.drop(at);
            }
            // What an endpoint says of itself is never the client's to say; on the way to a
            // route service it is nobody's.
            b"X-Cf-Applicationid" | b"X-Cf-Instanceid" | b"X-Cf-Instanceindex" => fields.drop(at),
            b"Connection" => {
                fields.drop(at);
                join(options, b",", value);
            }
            b"Trailer" => {
                fields.drop(at);
                join(trailers, b",", value);
            }
            b"Te" => {
                fields.drop(at);
                seen.wants_trailers |= has_token(value, b"trailers");
            }
            b"Upgrade" if seen.upgrade.is_empty() && !value.is_empty() => {
                seen.upgrade = fields.keep(at, value)
            }
            b"Upgrade" => fields.drop(at),
            b"X-Cf-App-Instance" => {
                let part = fields.stash(at, value);
                first(&mut seen.app_instance, part);
            }
            b"X-Cf-Process-Instance" => {
                let part = fields.keep(at, value);
                first(&mut seen.process_instance, part);
            }
            b"X-Forwarded-For" => {
                let part = fields.stash(at, value);
                first(&mut seen.client_for, part);
                join(forwarded_for, b", ", value);
            }
            b"X-Forwarded-Proto" => {
                let part = fields.keep(at, value);
                first(&mut seen.client_proto, part);
            }
            b"Pragma" => {
                fields.keep(at, value);
                pragma.get_or_insert(value == b"no-cache");
            }
            b"Cache-Control" => {
                fields.keep(at, value);
                cache_control = true;
            }
            b"X-Request-Start" => {
                fields.keep(at, value);
                seen.request_start = true;
            }
            b"Cookie" => {
                fields.keep(at, value);
                asked.read(&settings.sticky, value);
            }
            b"Authorization" => {
                fields.keep(at, value);
                asked.read_authorization(&settings.sticky, value);
            }
            b"Referer" => {
                let part = fields.keep(at, value);
                first(&mut seen.referer, part);
            }
            b"Expect" => first(&mut seen.expect, fields.keep(at, value)),
            b"Idempotency-Key" | b"X-Idempotency-Key" => {
                fields.keep(at, value);
                key |= !value.is_empty();
            }
            b"X-Vcap-Trace" => {
                fields.keep(at, value);
                let wanted = settings.headers.trace_key.as_bytes();
                seen.trace_key |= !wanted.is_empty() && value == wanted;
            }
            b"B3" => first(&mut seen.trace.b3, fields.keep(at, value)),
            b"X-B3-Traceid" => first(&mut seen.trace.trace_id, fields.keep(at, value)),
            b"X-B3-Spanid" => first(&mut seen.trace.span_id, fields.keep(at, value)),
            b"X-B3-Parentspanid" => first(&mut seen.trace.parent_id, fields.keep(at, value)),
            b"X-B3-Sampled" => first(&mut seen.trace.sampled, fields.keep(at, value)),
            b"X-B3-Flags" => first(&mut seen.trace.flags, fields.keep(at, value)),
            b"Traceparent" => first(&mut seen.trace.traceparent, fields.keep(at, value)),
            b"Tracestate" => first(&mut seen.trace.tracestate, fields.keep(at, value)),
            b"X-Cf-Proxy-Signature" => first(&mut seen.signature, fields.keep(at, value)),
            b"X-Cf-Proxy-Metadata" => first(&mut seen.metadata, fields.keep(at, value)),
            b"X-Cf-Forwarded-Url" => first(&mut seen.forwarded_url, fields.keep(at, value)),
            _ => {
                fields.keep(at, value);
            }
        }
    }
    // What the old field means, Go's server says in the new one.
    if pragma == Some(true) && !cache_control {
        fields.push("Cache-Control", b"no-cache");
    }
    let wanted = fields.part(seen.upgrade);
    // Streams of HTTP/2 have these fields only where they open a WebSocket (RFC 8441).
    exchange.upgrade = if wanted.is_empty() || !has_token(options, b"upgrade") {
        Upgrade::None
    } else if wanted.eq_ignore_ascii_case(b"websocket") {
        Upgrade::WebSocket
    } else {
        Upgrade::Other
    };
    if exchange.upgrade == Upgrade::None && !seen.upgrade.is_empty() {
        fields.remove(b"Upgrade");
    }
    let safe = matches!(head.method(), b"GET" | b"HEAD" | b"OPTIONS" | b"TRACE");
    exchange.idempotent = head.body() == RequestBody::None && (safe || key);
}

fn join(list: &mut Vec<u8>, between: &[u8], value: &[u8]) {
    if !list.is_empty() {
        list.extend_from_slice(between);
    }
    list.extend_from_slice(value);
}

/// `<guid>:<digits>`; the index may be missing where it need not be there.
fn is_instance(text: &[u8], with_index: bool) -> bool {
    let hex = |byte: &u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(byte);
    let Some((guid, index)) = text.split_at_checked(36) else {
        return false;
    };
    let guid = guid.iter().enumerate().all(|(at, byte)| match at {
        8 | 13 | 18 | 23 => *byte == b'-',
        _ => hex(byte),
    });
    let index = match index {
        [b':', digits @ ..] => !digits.is_empty() && digits.iter().all(u8::is_ascii_digit),
        [] => !with_index,
        _ => false,
    };
    guid && index
}

/// A part of a target.
pub(super) fn part_of<'t>(target: &'t [u8], part: &std::ops::Range<u32>) -> &'t [u8] {
    target
        .get(part.start as usize..part.end as usize)
        .unwrap_or_default()
}
