//! What operators look at: status, metrics, logs.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use telemetry::{Level, LineTimes};

use super::any;
use crate::http::router::{PeerTls, RouterSettings};
use crate::http::settings::{
    EnvelopeSettings, EnvelopesTo, ExtraField, SyslogNetwork, SyslogSettings,
};
use crate::http::settings_file::choices::{EXTRA_FIELDS, REDACTIONS};
use document::Form;

pub(super) fn status(form: &mut Form<'_>, settings: &mut RouterSettings) {
    let status = &mut settings.status;
    form.section("status", "", |form| {
        let (mut host, mut port) = (IpAddr::V4(Ipv4Addr::UNSPECIFIED), 8080_u16);
        form.value("host", "", &mut host);
        form.value("port", "", &mut port);
        let mut plain = true;
        form.value("enable_nontls_health_checks", "", &mut plain);
        status.listen = plain.then(|| SocketAddr::new(host, port));
        let key = "enable_deprecated_varz_healthz_endpoints";
        form.value(key, "", &mut status.deprecated);
        form.value("user", "", &mut status.user);
        form.value("pass", "", &mut status.password);
        form.section("tls", "", |form| {
            let mut port = 8443_u16;
            form.value("port", "", &mut port);
            form.value("certificate", "", &mut status.certificate.0);
            form.value("key", "", &mut status.certificate.1);
            let given = !status.certificate.0.is_empty();
            status.listen_tls = given.then(|| SocketAddr::new(host, port));
            if given == status.certificate.1.is_empty() {
                let (found, lacking) = match given {
                    true => ("certificate", "key"),
                    false => ("key", "certificate"),
                };
                form.wrong(found, format!("expected {lacking} beside it, found none"));
            }
        });
        form.section("routes", "", |form| {
            let mut port = 8082_u16;
            form.value("port", "", &mut port);
            status.routes_listen = Some(SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
        });
        if !plain && status.listen_tls.is_none() {
            form.wrong(
                "enable_nontls_health_checks",
                "expected tls with certificate and key beside it: health would be told nowhere",
            );
        }
    });
    let every = &mut settings.http.active_apps;
    form.value("publish_active_apps_interval", "", every);
    let mut by_app = false;
    form.value("per_app_prometheus_http_metrics_reporting", "", &mut by_app);
    settings.http.app_latencies = if by_app { APPS } else { 0 };
    form.section("prometheus", "", |form| {
        let (mut enabled, mut port) = (true, 0_u16);
        form.value("enabled", "", &mut enabled);
        form.value("port", "", &mut port);
        settings.metrics_listen = (enabled && port != 0).then(|| any(port));
        form.ignored(&[("meters", "the buckets of histograms are fixed")]);
        let mut tls = PeerTls::default();
        form.file("cert_path", "", &mut tls.certificate);
        form.file("key_path", "", &mut tls.key);
        form.file("ca_path", "", &mut tls.authorities);
        if form.has("cert_path") || form.has("key_path") || form.has("ca_path") {
            // With a part of it missing, what was meant for authenticated readers would be
            // open to all: the router does not start then.
            settings.metrics_tls = Some(tls);
        }
    });
}

/// Applications that are told apart where gorouter has no bound.
const APPS: usize = 2_000;

/// What `enable_attempts_details` adds to a line.
const OF_ATTEMPTS: [ExtraField; 6] = [
    ExtraField::FailedAttempts,
    ExtraField::FailedAttemptsTime,
    ExtraField::DnsTime,
    ExtraField::DialTime,
    ExtraField::TlsTime,
    ExtraField::BackendTime,
];

pub(super) fn log(form: &mut Form<'_>, settings: &mut RouterSettings) {
    let log = &mut settings.http.access_log;
    let (mut streams, mut syslog) = (false, SyslogSettings::default());
    let (mut told, mut envelopes) = (false, EnvelopeSettings::default());
    let mut address = "localhost:3457".to_owned();
    form.section("access_log", "", |form| {
        form.value("file", "", &mut log.file);
        form.value("enable_streaming", "", &mut streams);
    });
    form.value("extra_headers_to_log", "", &mut log.extra_headers);
    form.section("logging", "", |form| {
        let networks = [
            ("udp", SyslogNetwork::Udp),
            ("tcp", SyslogNetwork::Tcp),
            ("unix", SyslogNetwork::Unix),
            ("", SyslogNetwork::Unix),
        ];
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
        let redact = &mut log.redact_query;
        form.choice("redact_query_params", "", &REDACTIONS, redact);
        let fields = &mut log.extra_fields;
        form.choices("extra_access_log_fields", "", &EXTRA_FIELDS, fields);
        // What came before extra_access_log_fields: all fields of attempts, in this order.
        let mut attempts = false;
        form.value("enable_attempts_details", "", &mut attempts);
        if attempts && log.extra_fields.is_empty() {
            log.extra_fields = OF_ATTEMPTS.to_vec();
        }
        form.value("syslog", "", &mut syslog.name);
        form.value("syslog_addr", "", &mut syslog.address);
        // Without a network, the socket of this machine, as in Go's library.
        form.choice("syslog_network", "", &networks, &mut syslog.network);
        form.value("syslog_truncate", "", &mut syslog.truncate);
        form.section("format", "", |form| {
            let times = [
                ("rfc3339", LineTimes::Rfc3339),
                ("unix-epoch", LineTimes::Unix),
                ("deprecated", LineTimes::Unix),
                ("", LineTimes::Unix),
            ];
            form.choice("timestamp", "", &times, &mut settings.log_times);
        });
        form.value("loggregator_enabled", "", &mut told);
        form.value("metron_address", "", &mut address);
    });
    let (server, client) = (&mut envelopes.server_events, &mut envelopes.client_events);
    form.value("send_http_start_stop_server_event", "", server);
    form.value("send_http_start_stop_client_event", "", client);
    envelopes.to = EnvelopesTo::Datagrams { address };
    envelopes.instance = settings.index.to_string();
    let mut first_protocol = true;
    form.value("enable_envelope_v1_metrics", "", &mut first_protocol);
    settings.http.envelopes = (told && first_protocol).then_some(envelopes);
    let log = &mut settings.http.access_log;
    if streams && syslog.network != SyslogNetwork::Unix && syslog.address.is_empty() {
        let expected = "expected logging.syslog_addr beside it: lines are streamed to syslog";
        form.wrong("access_log", expected);
    }
    log.syslog = streams.then_some(syslog);
}
