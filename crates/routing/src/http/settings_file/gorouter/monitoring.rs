//! What operators look at: status, metrics, logs.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use telemetry::Level;

use super::any;
use crate::http::router::RouterSettings;
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

pub(super) fn log(form: &mut Form<'_>, settings: &mut RouterSettings) {
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
