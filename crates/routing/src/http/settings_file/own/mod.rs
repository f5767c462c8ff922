//! Our own form of the settings: every key, once, for reading and for printing.

mod feeds;
mod requests;

use super::choices::{
    ALGORITHMS, CERTIFICATE_FORMATS, CLIENT_CERTIFICATES, FORWARDED_CERTIFICATES, SHARDING,
    Sharding, check_error_template, served,
};
use super::client_rules;
use crate::http::identity;
use crate::http::router::{DrainSettings, PeerTls, RouterSettings, StatusSettings};
use crate::http::settings::{BackendSettings, ClientTls, HttpSettings, MOST_APP_LATENCIES};
use crate::settings_keys::keys;
use crate::table::{Segments, TableSettings};
use document::Form;
use telemetry::{Level, LineTimes};

/// Levels of the log.
const LEVELS: [(&str, Level); 3] = [
    ("debug", Level::Debug),
    ("info", Level::Info),
    ("error", Level::Error),
];

/// Every setting, those without a table first, as TOML wants it.
pub(super) fn describe(form: &mut Form<'_>, settings: &mut RouterSettings) {
    let http = &mut settings.http;
    keys! { form, http;
        /// Where plain connections are accepted; "": nowhere.
        listen: value,
        /// Where TLS connections are accepted; needs [client_tls].
        listen_tls: value,
    }
    if http.listen_tls.is_some() && !form.has("client_tls") {
        form.wrong(
            "listen_tls",
            "expected [[client_tls.certificate]] beside listen_tls, found none",
        );
    }
    form.value(
        "threads",
        "Threads of the data path; without it, one for each processor.",
        &mut http.threads,
    );
    if http
        .threads
        .is_some_and(|threads| !(1..=1024).contains(&threads))
    {
        form.wrong("threads", "expected a number from 1 to 1024");
    }
    form.value(
        "address",
        "Address of this router, as it tells it to others.",
        &mut http.address,
    );
    form.value(
        "index",
        "Number of this router among its like.",
        &mut settings.index,
    );
    form.value(
        "zone",
        "Availability zone of this router; empty: none.",
        &mut http.zone,
    );
    keys! { form, settings;
        /// Routes from a file; read again when it changes, and on SIGHUP.
        routes_file: value,
        /// Registrations are gathered for so long before the first connection is accepted.
        start_delay: value,
    }
    keys! { form, http;
        /// Requests of this User-Agent are health checks; empty: none is.
        health_check_user_agent: value,
        /// Offer HTTP/2 within TLS.
        http2: value,
        /// Expect the PROXY protocol, version 1 or 2.
        proxy_protocol: value,
    }
    let mut template = http.error_template.take().unwrap_or_default();
    form.file(
        "error_template_file",
        "HTML template of error answers, in the language of Go's html/template.",
        &mut template,
    );
    check_error_template(form, "error_template_file", &template);
    http.error_template = Some(template).filter(|template| !template.is_empty());
    keys! { form, settings;
        /// Where the process writes its id.
        pid_file: value,
        /// Least important lines that are logged.
        log_level: choice(&LEVELS),
        /// How its lines say their time; unix: seconds since 1970.
        log_times: choice(&[("unix", LineTimes::Unix), ("rfc3339", LineTimes::Rfc3339)]),
    }

    form.section("limits", "Bounds of what clients may do.", |form| {
        limits(form, &mut settings.http)
    });
    form.section(
        "client_tls",
        "TLS towards clients: [[client_tls.certificate]] with chain and key, files in PEM.",
        |form| {
            client_tls(form, &mut settings.http.client_tls);
        },
    );
    domains(form, &mut settings.http);
    form.section("backends", "Towards backends.", |form| {
        backends(form, &mut settings.http)
    });
    form.section("routes", "The table of routes.", |form| {
        table(form, &mut settings.table);
        keys! { form, settings;
            /// Time between two walks that prune stale endpoints.
            prune_interval: value,
            /// Prune nothing while NATS is away.
            suspend_pruning: value,
        }
    });
    form.optional("nats", "Routes over NATS.", &mut settings.nats, feeds::nats);
    form.optional(
        "routing_api",
        "Routes from the routing API.",
        &mut settings.routing_api,
        routing_api::client::describe,
    );
    form.section("status", "Health and routes, for operators.", |form| {
        status(form, &mut settings.status)
    });
    form.section("metrics", "Metrics for Prometheus.", |form| {
        form.value(
            "listen",
            "Where they answer, at /metrics.",
            &mut settings.metrics_listen,
        );
        keys! { form, settings.http;
            /// Applications whose latencies are told apart; 0: none. Later ones are "other".
            app_latencies: within(0..=MOST_APP_LATENCIES),
            /// So often the applications that were called are published over NATS; 0: never.
            active_apps: value,
        }
        form.optional(
            "tls",
            "TLS of that: nobody reads them without a certificate of the authorities.",
            &mut settings.metrics_tls,
            metrics_tls,
        );
    });
    form.section("drain", "What SIGUSR1 begins.", |form| {
        drain(form, &mut settings.drain)
    });
    form.section("access_log", "One line for each request.", |form| {
        requests::access_log(form, &mut settings.http.access_log)
    });
    form.optional(
        "envelopes",
        "Requests as envelopes of loggregator. What its agent does not take is dropped.",
        &mut settings.http.envelopes,
        requests::envelopes,
    );
    if let Some(envelopes) = &mut settings.http.envelopes {
        envelopes.instance = settings.index.to_string();
    }
    form.section("headers", "What becomes of headers.", |form| {
        requests::headers(form, &mut settings.http.headers)
    });
    form.section(
        "sticky",
        "Cookies that bind a client to an instance.",
        |form| requests::sticky(form, &mut settings.http.sticky),
    );
    form.section(
        "route_services",
        "Route services; on when there is a secret.",
        |form| {
            requests::route_services(form, &mut settings.http.route_services);
        },
    );
    form.section("tracing", "Trace headers.", |form| {
        requests::tracing(form, &mut settings.http.tracing)
    });
}

fn limits(form: &mut Form<'_>, http: &mut HttpSettings) {
    keys! { form, http;
        /// Connections at once; above it they wait in the kernel's queue.
        client_connections: within(1..=10_000_000),
        /// Longest pause between requests of a connection.
        idle_timeout: time,
        /// Longest wait for a whole head once it began.
        head_timeout: time,
        /// A request whose head has so many bytes is refused with 431.
        request_head = request_head_bytes: size,
        /// Header fields above which a request is refused.
        request_fields: within(1..=wire::http1::MOST_FIELDS),
        /// Bytes of an answer's head above which it is a 502.
        response_head = response_head_bytes: size,
        /// Header fields above which it is.
        response_fields: within(1..=wire::http1::MOST_FIELDS),
    }
}

fn client_tls(form: &mut Form<'_>, tls: &mut ClientTls) {
    keys! { form, tls;
        /// What is asked of clients.
        client_certificates: choice(&CLIENT_CERTIFICATES),
        /// Authorities of client certificates, a file in PEM.
        client_authorities: file,
        /// TLS 1.3 beside 1.2.
        tls13: value,
        /// TLS 1.3 alone.
        only_tls13: value,
    }
    form.value(
        "cipher_suites",
        "Suites of TLS 1.2, by IANA's or OpenSSL's names; none named: all with forward\n\
         secrecy and an AEAD. Those of TLS 1.3 are always there.",
        &mut tls.cipher_suites,
    );
    let names = std::mem::take(&mut tls.cipher_suites);
    tls.cipher_suites = client_rules::cipher_suites(form, "cipher_suites", &names);
    client_rules::describe(form, ["subject_rule", "issuer", "allowed"], tls);
    form.tables(
        "certificate",
        &mut tls.certificates,
        |form, (chain, key)| {
            form.file("chain", "", chain);
            form.file("key", "", key);
        },
    );
}

fn metrics_tls(form: &mut Form<'_>, tls: &mut PeerTls) {
    keys! { form, tls;
        /// Authorities of readers, a file in PEM.
        authorities: file,
        /// The own certificate, a file in PEM.
        certificate: file,
        /// Its key, a file in PEM.
        key: file,
    }
}

/// Not printed, as no list of tables is: docs/routing.md has an example.
fn domains(form: &mut Form<'_>, http: &mut HttpSettings) {
    form.tables("domain", &mut http.domains, |form, domain| {
        form.value("name", "", &mut domain.name);
        form.file("authorities", "", &mut domain.authorities);
        form.choice(
            "client_cert",
            "",
            &FORWARDED_CERTIFICATES,
            &mut domain.client_cert,
        );
        form.choice("format", "", &CERTIFICATE_FORMATS, &mut domain.format);
    });
    if let Some(fault) = identity::fault(&http.domains) {
        form.wrong("domain", fault);
    }
    if http.listen_tls.is_none() && !http.domains.is_empty() {
        form.wrong("domain", "expected listen_tls beside [[domain]]");
    }
}

/// A time that may be left out, above zero otherwise.
fn own_timeout(
    form: &mut Form<'_>,
    key: &'static str,
    about: &str,
    into: &mut Option<std::time::Duration>,
) {
    form.value(key, about, into);
    if into.is_some_and(|time| time.is_zero()) {
        form.wrong(key, "expected a length of time above 0, found 0");
    }
}

fn backends(form: &mut Form<'_>, http: &mut HttpSettings) {
    keys! { form, http;
        /// How an endpoint is chosen when the route does not say it.
        algorithm: choice(&ALGORITHMS),
        /// The first attempt prefers endpoints of the own zone.
        prefer_zone: value,
        /// A route without endpoints answers 503 and not 404.
        empty_pool_is_503: value,
    }
    let backends: &mut BackendSettings = &mut http.backends;
    keys! { form, backends;
        /// Attempts for a request.
        attempts: within(1..=100),
        /// Requests in flight to one endpoint above which it is left out; 0: no limit.
        in_flight: value,
        /// Idle connections kept for one endpoint by one thread; 0: none.
        idle: value,
        /// How long an idle connection is kept.
        idle_timeout: time,
        /// Longest wait for a connection.
        dial_timeout: time,
        /// The same for upgrades.
        upgrade_dial_timeout: time,
        /// Longest wait for a TLS handshake.
        handshake_timeout: time,
        /// Longest time of one attempt, from the request to the end of the answer.
        timeout: time,
    }
    own_timeout(
        form,
        "timeout_http1",
        "The same of requests that came over HTTP/1; without it, timeout.",
        &mut backends.timeout_http1,
    );
    own_timeout(
        form,
        "timeout_http2",
        "The same of requests that came over HTTP/2.",
        &mut backends.timeout_http2,
    );
    keys! { form, backends;
        /// How long a failed endpoint is left out of choices.
        failed_for: value,
        /// Accept any certificate of a backend.
        insecure: value,
        /// Keep the connection of a request with Expect: 100-continue.
        keep_alive_after_continue: value,
        /// The own certificate towards backends, a file in PEM.
        certificate = certificate.0: file,
        /// Its key, a file in PEM.
        key = certificate.1: file,
        /// Authorities of backends beside those of the public web, a file in PEM.
        authorities: file,
    }
}

fn table(form: &mut Form<'_>, table: &mut TableSettings) {
    keys! { form, table;
        /// An endpoint without TLS that nobody refreshed for so long is pruned.
        stale_after: value,
        /// A route that lost its last endpoint answers 503 for so long before it is gone.
        empty_pool_stays: value,
        /// Routes above which further ones are refused.
        most = most_routes: within(1..=100_000_000),
        /// Endpoints of one route above which further ones are refused.
        most_endpoints: within(1..=65_536),
        /// Endpoints of all routes together above which further ones are refused.
        most_endpoints_in_all: within(1..=400_000_000),
    }
    let (mut sharding, mut segments) = match &table.segments {
        Segments::All => (Sharding::All, Vec::new()),
        Segments::Only(names) => (Sharding::Segments, names.clone()),
        Segments::SharedAnd(names) => (Sharding::SharedAndSegments, names.clone()),
    };
    form.choice(
        "sharding",
        "Which isolation segments are served.",
        &SHARDING,
        &mut sharding,
    );
    form.value("isolation_segments", "Their names.", &mut segments);
    // The TCP router serves those that are named, and whoever moves them here means the same.
    if !segments.is_empty() && !form.has("sharding") {
        form.wrong(
            "isolation_segments",
            "expected sharding beside it, segments or shared-and-segments: without it all are \
             served",
        );
    }
    match served(sharding, segments) {
        Some(segments) => table.segments = segments,
        None => form.wrong(
            "sharding",
            "expected isolation_segments to name at least one, found none",
        ),
    }
}

fn status(form: &mut Form<'_>, status: &mut StatusSettings) {
    keys! { form, status;
        /// Where /health answers; "": nowhere.
        listen: value,
        /// The same within TLS; needs certificate and key.
        listen_tls: value,
        /// Certificate of that, a file in PEM.
        certificate = certificate.0: file,
        /// Its key, a file in PEM.
        key = certificate.1: file,
        /// Where /routes answers, to user and password.
        routes_listen: value,
        /// User of /routes; while user and password are empty, nobody gets in.
        user: value,
        /// Its password, in a file.
        password_file = password: secret_file,
        /// gorouter's old /varz, /healthz and /routes on the status port.
        deprecated: value,
    }
}

fn drain(form: &mut Form<'_>, drain: &mut DrainSettings) {
    keys! { form, drain;
        /// How long it serves on after it said that it is not healthy.
        wait: value,
        /// Longest wait for requests under way after that.
        timeout: value,
    }
}
