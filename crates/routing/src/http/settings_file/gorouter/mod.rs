//! gorouter's YAML (as of a602bb6 and the keys of 2025 and 2026), for the keys that are
//! served here. A key that has no effect here is a warning, whether gorouter knows it or
//! not.

mod feeds;
mod monitoring;
mod unserved;

use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::time::Duration;

use super::choices::{
    ALGORITHMS, CERTIFICATE_FORMATS, CLIENT_CERTIFICATES, FORWARDED_CERTIFICATES, SHARDING,
    Sharding, check_error_template, hairpin_hosts, networks, served,
};
use crate::http::identity;
use crate::http::router::{NatsSettings, RouterSettings};
use crate::http::settings::{ClientTls, ForwardedClientCert, HttpSettings};
use crate::http::settings_file::client_rules;
use document::{Form, Value};

/// Reads a whole file. Addresses and defaults are gorouter's where it has its own.
pub(super) fn read(form: &mut Form<'_>) -> RouterSettings {
    let mut settings = defaults();
    listeners(form, &mut settings);
    client_tls(form, &mut settings.http.client_tls);
    domains(form, &mut settings.http);
    monitoring::status(form, &mut settings);
    feeds::nats(form, &mut settings);
    feeds::routing_api(form, &mut settings);
    form.value("index", "", &mut settings.index);
    monitoring::log(form, &mut settings);
    backends(form, &mut settings.http);
    table(form, &mut settings);
    headers(form, &mut settings.http);
    route_services(form, &mut settings.http);
    rest(form, &mut settings);
    unserved::not_served(form);
    settings
}

/// gorouter's defaults where they differ from ours.
fn defaults() -> RouterSettings {
    let mut settings = RouterSettings {
        nats: Some(NatsSettings::default()),
        ..RouterSettings::default()
    };
    settings.http.listen = Some(any(8081));
    settings.http.address = local_address();
    settings.http.health_check_user_agent = "HTTP-Monitor/1.1".to_owned();
    settings.http.backends.idle = 0;
    settings.http.backends.in_flight = 0;
    settings.http.backends.attempts = 1;
    settings.http.route_services.attempts = 0;
    settings.http.route_services.recommend_https = false;
    settings.http.empty_pool_is_503 = false;
    settings.suspend_pruning = false;
    settings.status.listen = Some(any(8080));
    settings.drain.wait = Duration::ZERO;
    settings
}

fn any(port: u16) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::UNSPECIFIED, port))
}

/// The address that packets to the outside leave from. Nothing is sent: connecting a UDP
/// socket only looks up the route.
fn local_address() -> IpAddr {
    let looked_up = UdpSocket::bind(any(0)).and_then(|socket| {
        // TEST-NET-1 (RFC 5737): an address that belongs to nobody.
        socket.connect((Ipv4Addr::new(192, 0, 2, 1), 9))?;
        socket.local_addr()
    });
    looked_up.map_or(IpAddr::V4(Ipv4Addr::LOCALHOST), |address| address.ip())
}

fn listeners(form: &mut Form<'_>, settings: &mut RouterSettings) {
    let http = &mut settings.http;
    let (mut port, mut tls_port) = (8081_u16, 443_u16);
    let (mut disabled, mut tls) = (false, false);
    form.value("port", "", &mut port);
    form.value("disable_http", "", &mut disabled);
    form.value("enable_ssl", "", &mut tls);
    form.value("ssl_port", "", &mut tls_port);
    http.listen = (!disabled).then(|| any(port));
    http.listen_tls = tls.then(|| any(tls_port));
    if disabled && !tls {
        form.wrong(
            "disable_http",
            "expected enable_ssl beside disable_http: nothing would be listened on",
        );
    }
    if tls && !form.has("tls_pem") {
        form.wrong(
            "enable_ssl",
            "expected tls_pem beside enable_ssl, found none",
        );
    }
    form.value("enable_http2", "", &mut http.http2);
    form.value("enable_proxy", "", &mut http.proxy_protocol);
    limit(form, "frontend_idle_timeout", &mut http.idle_timeout);
    let mut head_timeout = Duration::ZERO;
    form.value("read_header_timeout", "", &mut head_timeout);
    if !head_timeout.is_zero() {
        http.head_timeout = head_timeout;
    }
    let mut threads = -1_i64;
    form.value("go_max_procs", "", &mut threads);
    http.threads = usize::try_from(threads).ok().filter(|threads| *threads > 0);
    for (key, into) in [
        ("max_request_header_bytes", &mut http.request_head_bytes),
        ("max_response_header_bytes", &mut http.response_head_bytes),
        ("max_request_headers", &mut http.request_fields),
        ("max_response_headers", &mut http.response_fields),
    ] {
        bounded(form, key, into);
    }
}

/// What stands for no limit: a century.
const NO_LIMIT: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

/// A time of which 0 means "no limit", as in Go.
fn limit(form: &mut Form<'_>, key: &'static str, into: &mut Duration) {
    form.value(key, "", into);
    if into.is_zero() {
        *into = NO_LIMIT;
    }
}

/// A limit of which 0 means "no limit of its own". Our default is the most, and taken for more.
fn bounded(form: &mut Form<'_>, key: &'static str, into: &mut usize) {
    let (mut limit, most) = (0_usize, *into);
    form.value(key, "", &mut limit);
    if limit > most {
        form.warn(
            key,
            format!("this limit is {most} here at most, and {most} is taken"),
        );
    }
    *into = if limit == 0 { most } else { limit.min(most) };
}

fn client_tls(form: &mut Form<'_>, tls: &mut ClientTls) {
    form.tables("tls_pem", &mut tls.certificates, |form, (chain, key)| {
        form.value("cert_chain", "", chain);
        form.value("private_key", "", key);
    });
    pem(form, "client_ca_certs", &mut tls.client_authorities);
    let (key, into) = ("client_cert_validation", &mut tls.client_certificates);
    form.choice(key, "", &CLIENT_CERTIFICATES, into);
    let mut most = "TLSv1.2".to_owned();
    form.value("max_tls_version", "", &mut most);
    match most.as_str() {
        "TLSv1.2" | "" => tls.tls13 = false,
        "TLSv1.3" => tls.tls13 = true,
        _ => form.wrong(
            "max_tls_version",
            format!("expected TLSv1.2 or TLSv1.3, found \"{most}\""),
        ),
    }
    let mut least = "TLSv1.2".to_owned();
    form.value("min_tls_version", "", &mut least);
    match least.as_str() {
        "TLSv1.2" | "" => {}
        "TLSv1.3" if tls.tls13 => tls.only_tls13 = true,
        "TLSv1.3" => form.wrong(
            "min_tls_version",
            "expected a max_tls_version of TLSv1.3 beside it: no version would be left",
        ),
        "TLSv1.0" | "TLSv1.1" => {
            form.warn("min_tls_version", "1.2 is the least here, and is taken")
        }
        _ => form.wrong(
            "min_tls_version",
            format!("expected TLSv1.2 or TLSv1.3, found \"{least}\""),
        ),
    }
    let mut suites = String::new();
    form.value("cipher_suites", "", &mut suites);
    let names: Vec<String> = suites.split_terminator(':').map(str::to_owned).collect();
    tls.cipher_suites = client_rules::cipher_suites(form, "cipher_suites", &names);
    let mut by_subject = false;
    let enable = "enable_verify_client_certificate_metadata";
    form.value(enable, "", &mut by_subject);
    let list = "verify_client_certificate_metadata";
    client_rules::describe(form, [list, "issuer_in_chain", "valid_cert_subjects"], tls);
    if !by_subject {
        tls.subject_rules.clear();
    }
}

fn domains(form: &mut Form<'_>, http: &mut HttpSettings) {
    form.tables("domains", &mut http.domains, |form, domain| {
        form.value("domain", "", &mut domain.name);
        // As the first versions of the key had it.
        form.value("name", "", &mut domain.name);
        pem(form, "ca_certs", &mut domain.authorities);
        forwarded_certificate(form, &mut domain.client_cert);
        form.choice("xfcc_format", "", &CERTIFICATE_FORMATS, &mut domain.format);
    });
    if let Some(fault) = identity::fault(&http.domains) {
        form.wrong("domains", fault);
    }
    if http.listen_tls.is_none() && !http.domains.is_empty() {
        form.wrong("domains", "expected enable_ssl beside domains");
    }
}

fn forwarded_certificate(form: &mut Form<'_>, into: &mut ForwardedClientCert) {
    let key = "forwarded_client_cert";
    form.choice(key, "", &FORWARDED_CERTIFICATES, into);
}

/// PEM text: one, or a list of several. Templates join what there is with line ends: nothing
/// but these is none.
fn pem(form: &mut Form<'_>, key: &'static str, into: &mut String) {
    match form.node(key).map(|node| &node.value) {
        Some(Value::List(_)) => {
            let mut parts: Vec<String> = Vec::new();
            form.value(key, "", &mut parts);
            *into = parts.join("\n");
        }
        Some(_) => form.value(key, "", into),
        None => {}
    }
    if into.trim().is_empty() {
        into.clear();
    }
}

fn backends(form: &mut Form<'_>, http: &mut HttpSettings) {
    let backends = &mut http.backends;
    form.section("backends", "", |form| {
        form.value("max_conns", "", &mut backends.in_flight);
        form.value("max_attempts", "", &mut backends.attempts);
        form.value("cert_chain", "", &mut backends.certificate.0);
        form.value("private_key", "", &mut backends.certificate.1);
    });
    backends.attempts = backends.attempts.max(1);
    pem(form, "ca_certs", &mut backends.authorities);
    // Of route services alone: an endpoint that has moved is known by its certificate.
    let insecure = &mut http.route_services.insecure;
    form.value("skip_ssl_validation", "", insecure);
    limit(form, "endpoint_timeout", &mut backends.timeout);
    // Of one protocol; 0 is not "no limit" but "as endpoint_timeout says".
    for (key, into) in [
        ("http_1_endpoint_timeout", &mut backends.timeout_http1),
        ("http_2_endpoint_timeout", &mut backends.timeout_http2),
    ] {
        let mut timeout = Duration::ZERO;
        form.value(key, "", &mut timeout);
        *into = Some(timeout).filter(|timeout| !timeout.is_zero());
    }
    limit(form, "endpoint_dial_timeout", &mut backends.dial_timeout);
    let mut upgrade = Duration::ZERO;
    form.value("websocket_dial_timeout", "", &mut upgrade);
    backends.upgrade_dial_timeout = match upgrade.is_zero() {
        true => backends.dial_timeout,
        false => upgrade,
    };
    let handshake = &mut backends.handshake_timeout;
    limit(form, "tls_handshake_timeout", handshake);
    let keep_alive = &mut backends.keep_alive_after_continue;
    form.value("keep_alive_100_continue_requests", "", keep_alive);
    // gorouter keeps no connection unless it is told to.
    let (mut disabled, mut idle) = (true, 2_usize);
    form.value("disable_keep_alives", "", &mut disabled);
    form.value("max_idle_conns_per_host", "", &mut idle);
    // 0 means what Go's library does without it.
    backends.idle = match (disabled, idle) {
        (true, _) => 0,
        (false, 0) => 2,
        (false, idle) => idle,
    };
    form.choice("balancing_algorithm", "", &ALGORITHMS, &mut http.algorithm);
    let key = "balancing_algorithm_az_preference";
    let preferences = [("none", false), ("locally-optimistic", true)];
    form.choice(key, "", &preferences, &mut http.prefer_zone);
    form.value("zone", "", &mut http.zone);
    let with_503 = &mut http.empty_pool_is_503;
    form.value("empty_pool_response_code_503", "", with_503);
}

fn table(form: &mut Form<'_>, settings: &mut RouterSettings) {
    let (table, prune) = (&mut settings.table, &mut settings.prune_interval);
    for (key, into) in [
        ("prune_stale_droplets_interval", prune),
        ("droplet_stale_threshold", &mut table.stale_after),
        ("start_response_delay_interval", &mut settings.start_delay),
        ("empty_pool_timeout", &mut table.empty_pool_stays),
    ] {
        form.value(key, "", into);
    }
    // A route that is not told to be there must not hide a wildcard that would serve.
    if !settings.http.empty_pool_is_503 {
        table.empty_pool_stays = Duration::ZERO;
    }
    let suspend = &mut settings.suspend_pruning;
    form.value("suspend_pruning_if_nats_unavailable", "", suspend);
    // Senders that were told to wait longer than the threshold must not be pruned.
    table.stale_after = table.stale_after.max(settings.start_delay);
    settings.http.backends.failed_for = table.stale_after / 4;
    let (mut sharding, mut segments) = (Sharding::All, Vec::new());
    form.choice("routing_table_sharding_mode", "", &SHARDING, &mut sharding);
    form.value("isolation_segments", "", &mut segments);
    match served(sharding, segments) {
        Some(segments) => table.segments = segments,
        None => form.wrong(
            "routing_table_sharding_mode",
            "expected isolation_segments to name at least one, found none",
        ),
    }
}

fn headers(form: &mut Form<'_>, http: &mut HttpSettings) {
    let headers = &mut http.headers;
    form.value("hop_by_hop_headers_to_filter", "", &mut headers.protected);
    form.value("force_forwarded_proto_https", "", &mut headers.force_https);
    form.value("sanitize_forwarded_proto", "", &mut headers.sanitize_proto);
    forwarded_certificate(form, &mut headers.client_cert);
    form.value("trace_key", "", &mut headers.trace_key);
    form.section("http_rewrite", "", |form| {
        form.section("responses", "", |form| {
            let mut names: Vec<(String, String)> = Vec::new();
            form.tables("remove_headers", &mut names, named);
            headers.remove = names.into_iter().map(|(name, _)| name).collect();
            form.tables("add_headers_if_not_present", &mut headers.add, named);
        });
    });
    let sticky = &mut http.sticky;
    form.value("secure_cookies", "", &mut sticky.secure);
    form.value("sticky_session_cookie_names", "", &mut sticky.cookies);
    let negotiate = &mut sticky.auth_negotiate;
    form.value("sticky_sessions_for_auth_negotiate", "", negotiate);
    form.section("tracing", "", |form| {
        form.value("enable_zipkin", "", &mut http.tracing.zipkin);
        form.value("enable_w3c", "", &mut http.tracing.w3c);
        form.value("w3c_tenant_id", "", &mut http.tracing.w3c_tenant);
    });
}

fn named(form: &mut Form<'_>, (name, value): &mut (String, String)) {
    form.value("name", "", name);
    form.value("value", "", value);
}

fn route_services(form: &mut Form<'_>, http: &mut HttpSettings) {
    let services = &mut http.route_services;
    form.value("route_services_secret", "", &mut services.secret);
    let previous = &mut services.secret_previous;
    form.value("route_services_secret_decrypt_only", "", previous);
    form.value("route_services_timeout", "", &mut services.timeout);
    let https = &mut services.recommend_https;
    form.value("route_services_recommend_https", "", https);
    form.value("route_services_hairpinning", "", &mut services.hairpin);
    let key = "route_services_hairpinning_allowlist";
    form.value(key, "", &mut services.hairpin_hosts);
    hairpin_hosts(form, key, &services.hairpin_hosts);
    form.section("route_services", "", |form| {
        form.value("max_attempts", "", &mut services.attempts);
        form.value("strict_signature_validation", "", &mut services.strict);
        form.value("enable_websockets", "", &mut services.upgrades);
        let blocked = &mut services.blocked_networks;
        form.value("egress_blocklist", "", blocked);
        networks(form, "egress_blocklist", blocked);
        form.value("cert_chain", "", &mut services.certificate.0);
        form.value("private_key", "", &mut services.certificate.1);
    });
    if services.attempts == 0 && !services.secret.is_empty() {
        form.warn(
            "route_services_secret",
            "as in gorouter, without route_services.max_attempts (3 is usual) every request to \
             a route service is answered with 502 unknown_failure",
        );
    }
}

fn rest(form: &mut Form<'_>, settings: &mut RouterSettings) {
    form.value("pid_file", "", &mut settings.pid_file);
    let user_agent = &mut settings.http.health_check_user_agent;
    form.value("healthcheck_user_agent", "", user_agent);
    form.value("drain_wait", "", &mut settings.drain.wait);
    form.value("drain_timeout", "", &mut settings.drain.timeout);
    if settings.drain.timeout.is_zero() || !form.has("drain_timeout") {
        settings.drain.timeout = settings.http.backends.timeout;
    }
    let mut template = String::new();
    let key = "html_error_template_file";
    form.file(key, "", &mut template);
    check_error_template(form, key, &template);
    settings.http.error_template = Some(template).filter(|template| !template.is_empty());
}
