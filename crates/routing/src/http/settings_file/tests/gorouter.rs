//! gorouter's YAML.

use std::time::Duration;

use telemetry::Level;
use wire::tls::{Attribute, Subject};

use super::{address, gorouter};
use crate::http::router::{DrainSettings, NatsSettings};
use crate::http::settings::{
    ClientCertificates, EnvelopeSettings, EnvelopesTo, ForwardedClientCert, RedactQuery,
};
use crate::http::settings_file::{Loaded, print};
use crate::table::{Algorithm, Segments};

/// What the BOSH release writes for a small foundation, shortened; the certificates are
/// not looked at here.
const BOSH: &str = r#"
status:
  port: 8080
  host: 0.0.0.0
  user: router-status
  pass: hush
  tls: {port: 8443, certificate: CERT, key: KEY}
  routes: {port: 8082}
nats:
  hosts:
  - {hostname: q-s3.nats.default.cf.bosh, port: 4224}
  - {hostname: 10.0.0.7, port: 4224}
  user: nats
  pass: hush2
  tls_enabled: true
  ca_certs: CA
  cert_chain: CHAIN
  private_key: KEY
logging:
  syslog: ""
  level: info
  redact_query_params: hash
  extra_access_log_fields: [failed_attempts, dns_time]
  disable_log_source_ip: true
  format: {timestamp: rfc3339}
prometheus: {enabled: true, port: 9100}
port: 80
index: 3
zone: z1
go_max_procs: -1
trace_key: "22"
access_log: {file: /var/log/access.log, enable_streaming: false}
enable_ssl: true
ssl_port: 443
tls_pem:
- cert_chain: ONE
  private_key: TWO
client_cert_validation: request
client_ca_certs: "CLIENTS"
ca_certs: [A, B]
skip_ssl_validation: true
forwarded_client_cert: sanitize_set
hop_by_hop_headers_to_filter: [X-Forwarded-For, B3]
isolation_segments: [gold]
routing_table_sharding_mode: segments
min_tls_version: TLSv1.2
max_tls_version: TLSv1.3
cipher_suites: ECDHE-RSA-AES128-GCM-SHA256
suspend_pruning_if_nats_unavailable: true
prune_stale_droplets_interval: 30s
droplet_stale_threshold: 1m40s
start_response_delay_interval: 20s
endpoint_timeout: 900s
endpoint_dial_timeout: 3s
frontend_idle_timeout: 15m
drain_wait: 20s
drain_timeout: 900s
secure_cookies: true
sticky_session_cookie_names: [JSESSIONID, SID]
healthcheck_user_agent: probe/1
routing_api: {uri: "https://api.example", port: 3001, auth_disabled: true, ca_certs: X}
oauth: {token_endpoint: uaa, port: 8443, client_name: gorouter, client_secret: hush3}
route_services_secret: hush4
route_services: {max_attempts: 3, cert_chain: SC, private_key: SK}
route_services_timeout: 30s
route_services_recommend_https: true
route_services_hairpinning: true
route_services_hairpinning_allowlist: [rs.example, "*.apps.example.com"]
backends: {max_conns: 500, max_attempts: 0, cert_chain: BC, private_key: BK}
extra_headers_to_log: [My-Header]
balancing_algorithm: least-connection
balancing_algorithm_az_preference: locally-optimistic
disable_keep_alives: false
max_idle_conns: 100
max_idle_conns_per_host: 49
max_request_header_bytes: 1024
http_rewrite:
  responses:
    remove_headers: [{name: X-Gone}]
    add_headers_if_not_present: [{name: X-Added, value: 1}]
empty_pool_response_code_503: true
empty_pool_timeout: 10s
tracing: {enable_zipkin: true, enable_w3c: true, w3c_tenant_id: t}
per_request_metrics_reporting: true
"#;

#[test]
fn a_file_of_gorouter_serves_here() {
    let Loaded { settings, warnings } = gorouter(BOSH).unwrap();
    let http = &settings.http;
    assert_eq!(http.listen, address("0.0.0.0:80"));
    assert_eq!(http.listen_tls, address("0.0.0.0:443"));
    assert_eq!(
        http.client_tls.certificates,
        [("ONE".to_owned(), "TWO".to_owned())]
    );
    assert_eq!(
        http.client_tls.client_certificates,
        ClientCertificates::Request
    );
    assert!(http.client_tls.tls13);
    assert_eq!(http.backends.authorities, "A\nB");
    assert!(http.route_services.insecure && !http.backends.insecure);
    assert_eq!((http.backends.attempts, http.backends.in_flight), (1, 500));
    assert_eq!(http.backends.idle, 49);
    assert_eq!(http.backends.timeout, Duration::from_secs(900));
    assert_eq!(http.backends.upgrade_dial_timeout, Duration::from_secs(3));
    assert_eq!(http.backends.failed_for, Duration::from_secs(25));
    assert_eq!(http.idle_timeout, Duration::from_secs(900));
    assert_eq!(http.request_head_bytes, 1024);
    assert_eq!(http.algorithm, Algorithm::LeastConnection);
    assert!(http.prefer_zone && http.zone == "z1" && http.empty_pool_is_503);
    assert_eq!(http.headers.client_cert, ForwardedClientCert::SanitizeSet);
    assert_eq!(http.headers.protected, ["X-Forwarded-For", "B3"]);
    assert_eq!(http.headers.remove, ["X-Gone"]);
    assert_eq!(http.headers.add, [("X-Added".to_owned(), "1".to_owned())]);
    assert_eq!(http.headers.trace_key, "22".into());
    assert_eq!(http.sticky.cookies, ["JSESSIONID", "SID"]);
    assert_eq!(http.access_log.redact_query, RedactQuery::Hash);
    assert!(http.access_log.hide_client && !http.access_log.hide_forwarded_for);
    assert!(http.tracing.zipkin && http.tracing.w3c && http.tracing.w3c_tenant == "t");
    assert_eq!(http.route_services.secret, "hush4".into());
    let shown = ("SC".to_owned(), "SK".into());
    assert_eq!(http.route_services.certificate, shown);
    assert!(http.route_services.hairpin);
    let hosts = &http.route_services.hairpin_hosts;
    assert_eq!(*hosts, ["rs.example", "*.apps.example.com"]);
    assert_eq!(
        settings.table.segments,
        Segments::Only(vec!["gold".to_owned()])
    );
    assert_eq!(settings.table.stale_after, Duration::from_secs(100));
    assert_eq!(settings.table.empty_pool_stays, Duration::from_secs(10));
    let nats = settings.nats.as_ref().unwrap();
    assert_eq!(
        nats.servers,
        ["q-s3.nats.default.cf.bosh:4224", "10.0.0.7:4224"]
    );
    assert_eq!(nats.tls.as_ref().unwrap().authorities, "CA");
    let api = settings.routing_api.as_ref().unwrap();
    assert_eq!(
        (api.url.as_str(), api.tokens.is_none()),
        ("https://api.example:3001", true)
    );
    assert_eq!(settings.status.listen_tls, address("0.0.0.0:8443"));
    assert_eq!(settings.status.routes_listen, address("127.0.0.1:8082"));
    assert_eq!(settings.metrics_listen, address("0.0.0.0:9100"));
    assert_eq!((settings.index, settings.log_level), (3, Level::Info));
    let drain = DrainSettings {
        wait: Duration::from_secs(20),
        timeout: Duration::from_secs(900),
    };
    assert_eq!(settings.drain, drain);
    assert_eq!(settings.log_times, telemetry::LineTimes::Rfc3339);
    // What has no effect is named, each with its line.
    let named = |key: &str| {
        warnings
            .iter()
            .any(|one| one.contains(&format!("\"{key}\" has no effect")))
    };
    for key in ["max_idle_conns", "per_request_metrics_reporting"] {
        assert!(named(key), "{key} is not in {warnings:?}");
    }
    assert_eq!(warnings.len(), 2, "{warnings:#?}");
}

#[test]
fn secrets_are_in_no_debug_text() {
    let bosh = gorouter(BOSH).unwrap().settings;
    let others = "\
trace_key: hush-trace
route_services_secret_decrypt_only: hush-second
backends: {cert_chain: chain, private_key: hush-backend}
tls_pem: [{cert_chain: chain, private_key: hush-client}]
";
    let others = gorouter(others).unwrap().settings;
    assert_eq!(*others.http.headers.trace_key, "hush-trace");
    for shown in [format!("{bosh:?}"), format!("{others:?}"), print(&bosh)] {
        assert!(!shown.contains("hush"), "{shown}");
    }
}

#[test]
fn gorouters_defaults_are_taken_for_its_file() {
    let settings = gorouter("{}").unwrap().settings;
    assert_eq!(settings.http.listen, address("0.0.0.0:8081"));
    assert_eq!(settings.status.listen, address("0.0.0.0:8080"));
    assert_eq!(settings.http.backends.idle, 0);
    assert_eq!(settings.drain.timeout, Duration::from_secs(60));
    assert_eq!(settings.nats, Some(NatsSettings::default()));
    // A registration may wait as long as the router says it may.
    let settings = gorouter("start_response_delay_interval: 3m")
        .unwrap()
        .settings;
    assert_eq!(settings.table.stale_after, Duration::from_secs(180));
}

#[test]
fn a_time_of_nothing_is_no_limit() {
    let text = "{endpoint_timeout: 0s, endpoint_dial_timeout: 0s, tls_handshake_timeout: 0s, \
                frontend_idle_timeout: 0s, websocket_dial_timeout: 0s, drain_timeout: 0s}";
    let settings = gorouter(text).unwrap().settings;
    let backends = &settings.http.backends;
    let day = Duration::from_secs(86_400);
    for time in [
        backends.timeout,
        backends.dial_timeout,
        backends.upgrade_dial_timeout,
        backends.handshake_timeout,
        settings.http.idle_timeout,
        settings.drain.timeout,
    ] {
        assert!(time > 1000 * day, "{time:?}");
    }
    // What was translated into our own form is read there.
    let printed = crate::http::settings_file::print(&settings);
    let again = super::toml(&printed).unwrap().settings;
    assert_eq!(again.http.backends.timeout, backends.timeout);
    let short = "{endpoint_timeout: 7s, websocket_dial_timeout: 3s}";
    let settings = gorouter(short).unwrap().settings;
    assert_eq!(settings.drain.timeout, Duration::from_secs(7));
    let upgrade = settings.http.backends.upgrade_dial_timeout;
    assert_eq!(upgrade, Duration::from_secs(3));
}

#[test]
fn clients_are_chosen_by_versions_suites_and_subjects() {
    let text = r#"
min_tls_version: TLSv1.3
max_tls_version: TLSv1.3
cipher_suites: ECDHE-RSA-AES128-GCM-SHA256:AES128-SHA:TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384
enable_verify_client_certificate_metadata: true
verify_client_certificate_metadata:
- issuer_in_chain: {common_name: client-ca, organization: [Example, 42]}
  valid_cert_subjects:
  - {organization: [Example], serial_number: 7}
"#;
    let Loaded { settings, warnings } = gorouter(text).unwrap();
    let tls = &settings.http.client_tls;
    assert!(tls.tls13 && tls.only_tls13);
    let suites = [
        "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
        "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
    ];
    assert_eq!(tls.cipher_suites, suites);
    assert!(warnings[0].contains("\"AES128-SHA\" is not offered here"));
    let name = |pairs: &[(Attribute, &str)]| {
        Subject::new(
            pairs
                .iter()
                .map(|(kind, value)| (*kind, (*value).to_owned()))
                .collect(),
        )
    };
    let [rule] = tls.subject_rules.as_slice() else {
        panic!("{tls:?}");
    };
    assert!(rule.issuer.is_same(&name(&[
        (Attribute::Organization, "Example"),
        (Attribute::Organization, "42"),
        (Attribute::CommonName, "client-ca"),
    ])));
    let [allowed] = rule.allowed.as_slice() else {
        panic!("{rule:?}");
    };
    assert!(allowed.is_same(&name(&[
        (Attribute::SerialNumber, "7"),
        (Attribute::Organization, "Example"),
    ])));
    // Rules that are not switched on do not count, as in gorouter.
    let off = text.replace("metadata: true", "metadata: false");
    let off = gorouter(&off).unwrap().settings;
    assert!(off.http.client_tls.subject_rules.is_empty());
}

#[test]
fn a_mistake_comes_first_and_what_has_no_effect_is_told_apart() {
    let text = "router_groups: x\nendpoint_timeout: 60\nno_such_key: 1\n";
    let told = gorouter(text).unwrap_err().to_string();
    let heads: Vec<&str> = told
        .lines()
        .filter_map(|line| line.split_once("gorouter.yml:").map(|(before, _)| before))
        .collect();
    assert_eq!(heads, ["", "warning: ", "warning: "], "{told}");
    let (mistake, _) = told.split_once("warning: ").unwrap();
    assert!(
        mistake.starts_with("gorouter.yml:2:19: expected a length of time"),
        "{told}"
    );
}

#[test]
fn mistakes_in_gorouters_file_are_named_with_their_line() {
    for (text, expected) in [
        (
            "endpoint_timeout: 60",
            "gorouter.yml:1:19: expected a length of time",
        ),
        (
            "max_tls_version: TLSv1.4",
            "expected TLSv1.2 or TLSv1.3, found \"TLSv1.4\"",
        ),
        (
            "min_tls_version: TLSv1.3",
            "expected a max_tls_version of TLSv1.3 beside it",
        ),
        (
            "cipher_suites: AES128-SHA:RC4-SHA",
            "none of these suites is offered here",
        ),
        (
            "verify_client_certificate_metadata: [{valid_cert_subjects: []}]",
            "expected issuer_in_chain beside it",
        ),
        (
            "routing_table_sharding_mode: segments",
            "expected isolation_segments to name at least one",
        ),
        ("disable_http: true", "nothing would be listened on"),
        (
            "status: {enable_nontls_health_checks: false}",
            "expected tls with certificate and key beside it",
        ),
        (
            "status: {tls: {certificate: C}}",
            "expected key beside it, found none",
        ),
        (
            "status: {tls: {port: 8443, key: K}}",
            "expected certificate beside it, found none",
        ),
        (
            "route_services_hairpinning_allowlist: [a.b, \"*.*.b\"]",
            "gorouter.yml:1:39: expected hosts like a.example or *.example.com, found \"*.*.b\"",
        ),
        (
            "route_services: {egress_blocklist: [10.0.0.0/8, 10.0.0.1]}",
            "expected networks like 10.0.0.0/8 or fd00::/8, found \"10.0.0.1\"",
        ),
        ("enable_ssl: true", "expected tls_pem beside enable_ssl"),
        (
            "balancing_algorithm: hash",
            "expected one of round-robin, least-connection",
        ),
        (
            "port: {a: 1}",
            "expected a whole number from 0 to 65535, found a table",
        ),
    ] {
        let problems = gorouter(text).unwrap_err().to_string();
        assert!(problems.contains(expected), "{problems}\nlacks {expected}");
    }
}

#[test]
fn networks_without_route_services_are_read() {
    let text = "route_services: {egress_blocklist: [10.0.0.0/8, \"fd00::/8\"]}";
    let services = gorouter(text).unwrap().settings.http.route_services;
    assert_eq!(services.blocked_networks, ["10.0.0.0/8", "fd00::/8"]);
}

#[test]
fn no_bound_of_idle_connections_is_gos_own() {
    let idle = |text: &str| gorouter(text).unwrap().settings.http.backends.idle;
    assert_eq!(
        idle("disable_keep_alives: false\nmax_idle_conns_per_host: 0\n"),
        2
    );
    assert_eq!(
        idle("disable_keep_alives: false\nmax_idle_conns_per_host: 7\n"),
        7
    );
    assert_eq!(idle("max_idle_conns_per_host: 7\n"), 0);
}

#[test]
fn a_route_without_endpoints_stays_only_where_it_is_answered_with_503() {
    for (with_503, expected) in [("true", 10), ("false", 0)] {
        let text = format!("empty_pool_response_code_503: {with_503}\nempty_pool_timeout: 10s\n");
        let table = gorouter(&text).unwrap().settings.table;
        assert_eq!(table.empty_pool_stays, Duration::from_secs(expected));
    }
}

#[test]
fn envelopes_go_where_gorouter_sends_them() {
    let read = |text: &str| gorouter(text).unwrap().settings.http.envelopes;
    assert_eq!(read("logging: {level: info}\n"), None);
    let told = read("index: 3\nlogging: {loggregator_enabled: true}\n").unwrap();
    let address = |address: &str| EnvelopesTo::Datagrams {
        address: address.to_owned(),
    };
    assert_eq!(
        told,
        EnvelopeSettings {
            to: address("localhost:3457"),
            instance: "3".to_owned(),
            ..EnvelopeSettings::default()
        }
    );
    let told = read(
        "logging: {loggregator_enabled: true, metron_address: \"127.0.0.1:9\"}\n\
         send_http_start_stop_server_event: false\n",
    )
    .unwrap();
    assert_eq!(told.to, address("127.0.0.1:9"));
    assert!(told.logs && told.client_events && !told.server_events);
    let off = "logging: {loggregator_enabled: true}\nenable_envelope_v1_metrics: false\n";
    assert_eq!(read(off), None);
}
