//! gorouter's YAML (as of a602bb6 and the keys of 2025 and 2026), for the keys that are
//! served here. A key that gorouter knows and that has no effect here is a warning; a key
//! that it does not know is an error.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::time::Duration;

use telemetry::Level;

use super::own::{
    ALGORITHMS, CLIENT_CERTIFICATES, EXTRA_FIELDS, FORWARDED_CERTIFICATES, REDACTIONS, SHARDING,
    Sharding, served,
};
use crate::document::{Form, Kind, Value};
use crate::http::router::{
    NatsSettings, PeerTls, RouterSettings, RoutingApiSettings, TokenSettings,
};
use crate::http::settings::{ClientTls, HttpSettings};

/// Reads a whole file. Addresses and defaults are gorouter's where it has its own.
pub(super) fn read(form: &mut Form<'_>) -> RouterSettings {
    let mut settings = defaults();
    listeners(form, &mut settings);
    client_tls(form, &mut settings.http.client_tls);
    status(form, &mut settings);
    nats(form, &mut settings);
    routing_api(form, &mut settings);
    log(form, &mut settings);
    backends(form, &mut settings.http);
    table(form, &mut settings);
    headers(form, &mut settings.http);
    route_services(form, &mut settings.http);
    rest(form, &mut settings);
    refused(form);
    not_served(form);
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
    form.value("frontend_idle_timeout", "", &mut http.idle_timeout);
    let mut head_timeout = Duration::ZERO;
    form.value("read_header_timeout", "", &mut head_timeout);
    if !head_timeout.is_zero() {
        http.head_timeout = head_timeout;
    }
    let mut threads = -1_i64;
    form.value("go_max_procs", "", &mut threads);
    http.threads = usize::try_from(threads).ok().filter(|threads| *threads > 0);
    bounded(
        form,
        "max_request_header_bytes",
        HttpSettings::default().request_head_bytes,
        &mut http.request_head_bytes,
    );
    bounded(
        form,
        "max_response_header_bytes",
        HttpSettings::default().response_head_bytes,
        &mut http.response_head_bytes,
    );
    bounded(
        form,
        "max_request_headers",
        wire::http1::MOST_FIELDS,
        &mut http.request_fields,
    );
    bounded(
        form,
        "max_response_headers",
        wire::http1::MOST_FIELDS,
        &mut http.response_fields,
    );
}

/// A limit of which 0 means "no limit of its own" and more than `most` means `most`.
fn bounded(form: &mut Form<'_>, key: &'static str, most: usize, into: &mut usize) {
    let mut limit = 0_usize;
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
    form.choice(
        "client_cert_validation",
        "",
        &CLIENT_CERTIFICATES,
        &mut tls.client_certificates,
    );
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
        "TLSv1.2" | "TLSv1.3" | "" => {}
        "TLSv1.0" | "TLSv1.1" => {
            form.warn("min_tls_version", "1.2 is the least here, and is taken")
        }
        _ => form.wrong(
            "min_tls_version",
            format!("expected TLSv1.2, found \"{least}\""),
        ),
    }
}

/// PEM text: one, or a list of several.
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
}

fn status(form: &mut Form<'_>, settings: &mut RouterSettings) {
    let status = &mut settings.status;
    form.section("status", "", |form| {
        let (mut host, mut port) = (IpAddr::V4(Ipv4Addr::UNSPECIFIED), 8080_u16);
        form.value("host", "", &mut host);
        form.value("port", "", &mut port);
        let mut plain = true;
        form.value("enable_nontls_health_checks", "", &mut plain);
        status.listen = plain.then(|| SocketAddr::new(host, port));
        form.value(
            "enable_deprecated_varz_healthz_endpoints",
            "",
            &mut status.deprecated,
        );
        form.value("user", "", &mut status.user);
        form.value("pass", "", &mut status.password);
        form.section("tls", "", |form| {
            let mut port = 8443_u16;
            form.value("port", "", &mut port);
            form.value("certificate", "", &mut status.certificate.0);
            form.value("key", "", &mut status.certificate.1);
            let given = !status.certificate.0.is_empty();
            status.listen_tls = given.then(|| SocketAddr::new(host, port));
        });
        form.section("routes", "", |form| {
            let mut port = 8082_u16;
            form.value("port", "", &mut port);
            status.routes_listen = Some(SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
        });
    });
    form.section("prometheus", "", |form| {
        let (mut enabled, mut port) = (true, 0_u16);
        form.value("enabled", "", &mut enabled);
        form.value("port", "", &mut port);
        settings.metrics_listen = (enabled && port != 0).then(|| any(port));
        form.ignored(&[
            ("cert_path", "metrics are plain; put them behind a proxy, or bind them with our own settings file"),
            ("key_path", "metrics are plain"),
            ("ca_path", "metrics are plain"),
            ("meters", "the buckets of histograms are fixed"),
        ]);
        if form.has("cert_path") {
            // Without TLS what was meant for authenticated readers would be open to all.
            settings.metrics_listen = settings.metrics_listen.map(|mut address| {
                address.set_ip(IpAddr::V4(Ipv4Addr::LOCALHOST));
                address
            });
        }
    });
}

fn nats(form: &mut Form<'_>, settings: &mut RouterSettings) {
    let mut ping = Duration::from_secs(20);
    form.value("nats_client_ping_interval", "", &mut ping);
    let mut nats = NatsSettings {
        ping_interval: ping,
        ..NatsSettings::default()
    };
    form.section("nats", "", |form| {
        let mut hosts: Vec<(String, u16)> = Vec::new();
        form.tables("hosts", &mut hosts, |form, (name, port)| {
            *port = 4222;
            form.value("hostname", "", name);
            form.value("port", "", port);
        });
        if !hosts.is_empty() {
            nats.servers = hosts
                .iter()
                .map(|(name, port)| format!("{name}:{port}"))
                .collect();
        }
        form.value("user", "", &mut nats.user);
        form.value("pass", "", &mut nats.password);
        let mut tls = false;
        form.value("tls_enabled", "", &mut tls);
        let mut peer = PeerTls::default();
        pem(form, "ca_certs", &mut peer.authorities);
        form.value("cert_chain", "", &mut peer.certificate);
        form.value("private_key", "", &mut peer.key);
        nats.tls = tls.then_some(peer);
    });
    settings.nats = Some(nats);
}

fn routing_api(form: &mut Form<'_>, settings: &mut RouterSettings) {
    let mut tokens = TokenSettings::default();
    form.section("oauth", "", |form| {
        let (mut host, mut port) = (String::new(), 443_u16);
        form.value("token_endpoint", "", &mut host);
        form.value("port", "", &mut port);
        form.value("client_name", "", &mut tokens.client);
        form.value("client_secret", "", &mut tokens.secret);
        form.value("skip_ssl_validation", "", &mut tokens.insecure);
        pem(form, "ca_certs", &mut tokens.authorities);
        tokens.url = format!("https://{host}:{port}");
    });
    form.section("routing_api", "", |form| {
        let (mut url, mut port, mut open) = (String::new(), 0_u16, false);
        let mut tls = PeerTls::default();
        form.value("uri", "", &mut url);
        form.value("port", "", &mut port);
        form.value("auth_disabled", "", &mut open);
        pem(form, "ca_certs", &mut tls.authorities);
        form.value("cert_chain", "", &mut tls.certificate);
        form.value("private_key", "", &mut tls.key);
        // As in gorouter, an address without a port means: no routing API.
        settings.routing_api = (!url.is_empty() && port != 0).then(|| RoutingApiSettings {
            url: format!("{}:{port}", url.trim_end_matches('/')),
            tls,
            tokens: (!open).then(|| tokens.clone()),
        });
    });
}

fn log(form: &mut Form<'_>, settings: &mut RouterSettings) {
    let log = &mut settings.http.access_log;
    form.section("access_log", "", |form| {
        form.value("file", "", &mut log.file);
        form.value("enable_streaming", "", &mut log.stdout);
    });
    form.value("extra_headers_to_log", "", &mut log.extra_headers);
    form.section("logging", "", |form| {
        let levels = [
            ("debug", Level::Debug),
            ("info", Level::Info),
            ("warn", Level::Error),
            ("error", Level::Error),
            ("fatal", Level::Fatal),
        ];
        form.choice("level", "", &levels, &mut settings.log_level);
        form.value("disable_log_forwarded_for", "", &mut log.hide_forwarded_for);
        form.value("disable_log_source_ip", "", &mut log.hide_client);
        form.choice(
            "redact_query_params",
            "",
            &REDACTIONS,
            &mut log.redact_query,
        );
        form.choices(
            "extra_access_log_fields",
            "",
            &EXTRA_FIELDS,
            &mut log.extra_fields,
        );
        form.ignored(&[
            (
                "syslog",
                "there is no syslog; use access_log.file or standard output",
            ),
            ("syslog_addr", "there is no syslog"),
            ("syslog_network", "there is no syslog"),
            ("syslog_truncate", "there is no syslog"),
            (
                "loggregator_enabled",
                "there is no loggregator; metrics are Prometheus'",
            ),
            ("metron_address", "there is no loggregator"),
            (
                "enable_attempts_details",
                "name the fields in extra_access_log_fields",
            ),
            (
                "format",
                "lines are written in lager's form, with Unix times",
            ),
        ]);
    });
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
    form.value("skip_ssl_validation", "", &mut backends.insecure);
    http.route_services.insecure = backends.insecure;
    form.value("endpoint_timeout", "", &mut backends.timeout);
    form.value("endpoint_dial_timeout", "", &mut backends.dial_timeout);
    backends.upgrade_dial_timeout = backends.dial_timeout;
    form.value(
        "websocket_dial_timeout",
        "",
        &mut backends.upgrade_dial_timeout,
    );
    form.value("tls_handshake_timeout", "", &mut backends.handshake_timeout);
    form.value(
        "keep_alive_100_continue_requests",
        "",
        &mut backends.keep_alive_after_continue,
    );
    // gorouter keeps no connection unless it is told to.
    let (mut disabled, mut idle) = (true, 2_usize);
    form.value("disable_keep_alives", "", &mut disabled);
    form.value("max_idle_conns_per_host", "", &mut idle);
    backends.idle = if disabled { 0 } else { idle };
    form.choice("balancing_algorithm", "", &ALGORITHMS, &mut http.algorithm);
    let preferences = [("none", false), ("locally-optimistic", true)];
    form.choice(
        "balancing_algorithm_az_preference",
        "",
        &preferences,
        &mut http.prefer_zone,
    );
    form.value("zone", "", &mut http.zone);
    form.value(
        "empty_pool_response_code_503",
        "",
        &mut http.empty_pool_is_503,
    );
}

fn table(form: &mut Form<'_>, settings: &mut RouterSettings) {
    let table = &mut settings.table;
    form.value(
        "prune_stale_droplets_interval",
        "",
        &mut settings.prune_interval,
    );
    form.value("droplet_stale_threshold", "", &mut table.stale_after);
    form.value(
        "start_response_delay_interval",
        "",
        &mut settings.start_delay,
    );
    form.value(
        "suspend_pruning_if_nats_unavailable",
        "",
        &mut settings.suspend_pruning,
    );
    form.value("empty_pool_timeout", "", &mut table.empty_pool_stays);
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
    form.choice(
        "forwarded_client_cert",
        "",
        &FORWARDED_CERTIFICATES,
        &mut headers.client_cert,
    );
    form.value("trace_key", "", &mut headers.trace_key);
    form.section("http_rewrite", "", |form| {
        form.section("responses", "", |form| {
            let mut names: Vec<(String, String)> = Vec::new();
            form.tables("remove_headers", &mut names, |form, (name, value)| {
                named(form, name, value)
            });
            headers.remove = names.into_iter().map(|(name, _)| name).collect();
            form.tables(
                "add_headers_if_not_present",
                &mut headers.add,
                |form, (name, value)| {
                    named(form, name, value);
                },
            );
        });
    });
    let sticky = &mut http.sticky;
    form.value("secure_cookies", "", &mut sticky.secure);
    form.value("sticky_session_cookie_names", "", &mut sticky.cookies);
    form.value(
        "sticky_sessions_for_auth_negotiate",
        "",
        &mut sticky.auth_negotiate,
    );
    form.section("tracing", "", |form| {
        form.value("enable_zipkin", "", &mut http.tracing.zipkin);
        form.value("enable_w3c", "", &mut http.tracing.w3c);
        form.value("w3c_tenant_id", "", &mut http.tracing.w3c_tenant);
    });
}

fn named(form: &mut Form<'_>, name: &mut String, value: &mut String) {
    form.value("name", "", name);
    // YAML reads `value: 1` as a number; a header has a text.
    match form.node("value").map(|node| &node.value) {
        Some(Value::Integer(number)) => *value = number.to_string(),
        Some(Value::Bool(truth)) => *value = truth.write(),
        _ => form.value("value", "", value),
    }
}

fn route_services(form: &mut Form<'_>, http: &mut HttpSettings) {
    let services = &mut http.route_services;
    form.value("route_services_secret", "", &mut services.secret);
    form.value(
        "route_services_secret_decrypt_only",
        "",
        &mut services.secret_previous,
    );
    form.value("route_services_timeout", "", &mut services.timeout);
    form.value(
        "route_services_recommend_https",
        "",
        &mut services.recommend_https,
    );
    form.section("route_services", "", |form| {
        form.value("max_attempts", "", &mut services.attempts);
        form.value("strict_signature_validation", "", &mut services.strict);
        form.value("enable_websockets", "", &mut services.upgrades);
        form.ignored(&[
            ("cert_chain", "route services are shown no certificate"),
            ("private_key", "route services are shown no certificate"),
        ]);
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
    form.value("index", "", &mut settings.index);
    form.value("pid_file", "", &mut settings.pid_file);
    form.value(
        "healthcheck_user_agent",
        "",
        &mut settings.http.health_check_user_agent,
    );
    form.value("drain_wait", "", &mut settings.drain.wait);
    settings.drain.timeout = settings.http.backends.timeout;
    form.value("drain_timeout", "", &mut settings.drain.timeout);
    let mut template = String::new();
    form.file("html_error_template_file", "", &mut template);
    settings.http.error_template = Some(template).filter(|template| !template.is_empty());
}

/// Keys that would make a router safer than this one is: ignoring them would open doors.
fn refused(form: &mut Form<'_>) {
    let mut subjects = false;
    form.value(
        "enable_verify_client_certificate_metadata",
        "",
        &mut subjects,
    );
    if subjects {
        form.wrong(
            "enable_verify_client_certificate_metadata",
            "subjects of client certificates are not checked here; expected false",
        );
    }
    form.ignored(&[
        (
            "only_trust_client_ca_certs",
            "only client_ca_certs are ever trusted",
        ),
        (
            "verify_client_certificate_metadata",
            "subjects of client certificates are not checked",
        ),
    ]);
    if form.node("domains").is_some() {
        form.wrong(
            "domains",
            "client certificates for single domains are not served here; expected no domains",
        );
    }
}

/// Keys of gorouter that have no effect here.
fn not_served(form: &mut Form<'_>) {
    const ENVELOPES: &str = "there is no loggregator; metrics are Prometheus'";
    const HAIRPIN: &str = "requests to route services always leave the router";
    form.ignored(&[
        ("debug_addr", "there is no pprof"),
        (
            "max_header_bytes",
            "gorouter does not use it any more either; its successor is max_request_header_bytes",
        ),
        (
            "enable_http1_concurrent_read_write",
            "bodies always flow both ways at once",
        ),
        (
            "cipher_suites",
            "the suites are those of rustls: AEAD with forward secrecy",
        ),
        (
            "load_balancer_healthy_threshold",
            "gorouter does not use it either",
        ),
        (
            "publish_start_message_interval",
            "gorouter does not use it either",
        ),
        (
            "publish_active_apps_interval",
            "active applications are not published",
        ),
        (
            "endpoint_keep_alive_probe_interval",
            "connections to backends are not probed",
        ),
        (
            "http_1_endpoint_timeout",
            "endpoint_timeout counts for both protocols",
        ),
        (
            "http_2_endpoint_timeout",
            "endpoint_timeout counts for both protocols",
        ),
        (
            "route_latency_metric_muzzle_duration",
            "the first registrations are measured too",
        ),
        ("route_services_hairpinning", HAIRPIN),
        ("route_services_hairpinning_allowlist", HAIRPIN),
        ("route_services_internal_server_port", HAIRPIN),
        (
            "token_fetcher_max_retries",
            "tokens are fetched with fixed retries",
        ),
        (
            "token_fetcher_retry_interval",
            "tokens are fetched with fixed retries",
        ),
        (
            "token_fetcher_expiration_buffer_time",
            "tokens are renewed 30 s before they expire",
        ),
        (
            "max_idle_conns",
            "idle connections are bounded for each host: max_idle_conns_per_host",
        ),
        ("per_request_metrics_reporting", ENVELOPES),
        ("enable_envelope_v1_metrics", ENVELOPES),
        ("send_http_start_stop_server_event", ENVELOPES),
        ("send_http_start_stop_client_event", ENVELOPES),
        (
            "per_app_prometheus_http_metrics_reporting",
            "latencies are not told by application",
        ),
    ]);
}
