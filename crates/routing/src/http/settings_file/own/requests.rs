//! What becomes of requests: how they are changed, bound to instances, and logged.

use routing_api::client::{PeerTls, describe_peer_tls};

use crate::http::settings::{
    AccessLogSettings, EnvelopeSettings, EnvelopesTo, HeaderSettings, RouteServiceSettings,
    StickySettings, SyslogNetwork, SyslogSettings, TracingSettings,
};
use crate::http::settings_file::choices::{
    EXTRA_FIELDS, FORWARDED_CERTIFICATES, REDACTIONS, SYSLOG_NETWORKS, hairpin_hosts, networks,
};
use document::Form;

/// The name that the platform gives the certificates of its agents.
const SERVER_NAME: &str = "metron";

pub(super) fn access_log(form: &mut Form<'_>, log: &mut AccessLogSettings) {
    form.value("file", "The file; opened again on SIGHUP.", &mut log.file);
    form.value("stdout", "Standard output too.", &mut log.stdout);
    form.choices(
        "extra_fields",
        "Fields at the end of the line.",
        &EXTRA_FIELDS,
        &mut log.extra_fields,
    );
    form.value(
        "extra_headers",
        "Request headers at the end of the line.",
        &mut log.extra_headers,
    );
    form.choice(
        "redact_query",
        "What becomes of queries of GET requests.",
        &REDACTIONS,
        &mut log.redact_query,
    );
    form.value(
        "hide_forwarded_for",
        "Leave out X-Forwarded-For.",
        &mut log.hide_forwarded_for,
    );
    form.value(
        "hide_client",
        "Leave out the client's address.",
        &mut log.hide_client,
    );
    form.optional(
        "syslog",
        "The same lines as messages of syslog (RFC 5424). What it does not take is dropped.",
        &mut log.syslog,
        syslog,
    );
}

fn syslog(form: &mut Form<'_>, syslog: &mut SyslogSettings) {
    form.choice(
        "network",
        "How messages get there; unix: through a socket of this machine.",
        &SYSLOG_NETWORKS,
        &mut syslog.network,
    );
    form.value(
        "address",
        "host:port, or the path of the socket; \"\": where this machine's is.",
        &mut syslog.address,
    );
    if syslog.network != SyslogNetwork::Unix && syslog.address.is_empty() {
        form.wrong("network", "expected an address (host:port) beside it");
    }
    form.value("name", "The messages' APP-NAME.", &mut syslog.name);
    form.value(
        "truncate",
        "Bytes above which a line is cut; 0: it is not.",
        &mut syslog.truncate,
    );
}

pub(super) fn envelopes(form: &mut Form<'_>, envelopes: &mut EnvelopeSettings) {
    let (mut datagrams, mut agent) = (String::new(), String::new());
    let (mut name, mut tls) = (SERVER_NAME.to_owned(), PeerTls::default());
    match &envelopes.to {
        EnvelopesTo::Datagrams { address } => datagrams.clone_from(address),
        EnvelopesTo::Agent {
            address,
            server_name,
            tls: own,
        } => {
            agent.clone_from(address);
            name.clone_from(server_name);
            tls = own.clone();
        }
    }
    if form.has("agent") && !form.has("datagrams") {
        datagrams.clear();
    }
    form.value(
        "datagrams",
        "host:port of one that takes datagrams (the first protocol).",
        &mut datagrams,
    );
    form.value(
        "agent",
        "host:port of an agent, instead: gRPC over mutual TLS (the second protocol).",
        &mut agent,
    );
    form.value(
        "server_name",
        "The name in the agent's certificate.",
        &mut name,
    );
    describe_peer_tls(form, &mut tls);
    if datagrams.is_empty() == agent.is_empty() {
        let key = if form.has("agent") {
            "agent"
        } else {
            "datagrams"
        };
        form.wrong(key, "expected one of datagrams and agent (host:port)");
    }
    let has_tls = !tls.authorities.is_empty() && !tls.certificate.is_empty();
    if !agent.is_empty() && !has_tls {
        form.wrong(
            "agent",
            "expected authorities, certificate and key beside it: agents let nobody in without",
        );
    }
    envelopes.to = match agent.is_empty() {
        true => EnvelopesTo::Datagrams { address: datagrams },
        false => EnvelopesTo::Agent {
            address: agent,
            server_name: name,
            tls,
        },
    };
    form.value(
        "logs",
        "The access log's lines, for applications' logs.",
        &mut envelopes.logs,
    );
    form.value(
        "server_events",
        "HttpStartStop, of the router as a server.",
        &mut envelopes.server_events,
    );
    form.value(
        "client_events",
        "The same of the router as the client of a backend.",
        &mut envelopes.client_events,
    );
}

pub(super) fn headers(form: &mut Form<'_>, headers: &mut HeaderSettings) {
    form.value(
        "protected",
        "Names that a client's Connection field cannot remove.",
        &mut headers.protected,
    );
    form.value(
        "force_https",
        "Always say https in X-Forwarded-Proto.",
        &mut headers.force_https,
    );
    form.value(
        "sanitize_proto",
        "Never trust the client's X-Forwarded-Proto.",
        &mut headers.sanitize_proto,
    );
    form.choice(
        "client_cert",
        "What happens to X-Forwarded-Client-Cert.",
        &FORWARDED_CERTIFICATES,
        &mut headers.client_cert,
    );
    form.value("remove", "Removed from answers.", &mut headers.remove);
    form.value("add", "Added to answers that lack them.", &mut headers.add);
    form.secret_file(
        "trace_key_file",
        "A request whose X-Vcap-Trace has the value in this file learns its backend.",
        &mut headers.trace_key,
    );
}

pub(super) fn sticky(form: &mut Form<'_>, sticky: &mut StickySettings) {
    form.value(
        "cookies",
        "Names of the applications' cookies.",
        &mut sticky.cookies,
    );
    form.value(
        "secure",
        "__VCAP_ID__ is always Secure.",
        &mut sticky.secure,
    );
    form.value(
        "auth_negotiate",
        "Authorization: Negotiate binds too.",
        &mut sticky.auth_negotiate,
    );
    form.value(
        "metadata",
        "Keep attributes in __VCAP_ID_META__, for when the instance is gone.",
        &mut sticky.metadata,
    );
}

pub(super) fn route_services(form: &mut Form<'_>, services: &mut RouteServiceSettings) {
    form.secret_file(
        "secret_file",
        "Secret that signatures are made of, in a file.",
        &mut services.secret,
    );
    form.secret_file(
        "secret_previous_file",
        "A second one that is accepted.",
        &mut services.secret_previous,
    );
    form.value(
        "timeout",
        "Longest time between both passes.",
        &mut services.timeout,
    );
    form.value(
        "recommend_https",
        "Say https in X-CF-Forwarded-Url.",
        &mut services.recommend_https,
    );
    form.value(
        "strict",
        "Answer 400 and 504 to bad signatures.",
        &mut services.strict,
    );
    form.within(
        "attempts",
        "Attempts; with 0 every request to one fails.",
        0..=100,
        &mut services.attempts,
    );
    form.value("upgrades", "Let upgrades through.", &mut services.upgrades);
    form.file(
        "certificate",
        "The own certificate towards route services, a file in PEM; without it they are shown none.",
        &mut services.certificate.0,
    );
    form.file(
        "key",
        "Its key, a file in PEM.",
        &mut services.certificate.1,
    );
    form.value(
        "insecure",
        "Accept any certificate of a route service.",
        &mut services.insecure,
    );
    form.value(
        "hairpin",
        "Call a service that is a route of this router through the router itself.",
        &mut services.hairpin,
    );
    form.value(
        "hairpin_hosts",
        "Hosts of routes for which that is allowed, as \"a.example\" or \"*.example.com\"; none: all.",
        &mut services.hairpin_hosts,
    );
    hairpin_hosts(form, "hairpin_hosts", &services.hairpin_hosts);
    form.value(
        "blocked_networks",
        "Networks in which no service is called over the network, as \"10.0.0.0/8\".",
        &mut services.blocked_networks,
    );
    networks(form, "blocked_networks", &services.blocked_networks);
}

pub(super) fn tracing(form: &mut Form<'_>, tracing: &mut TracingSettings) {
    form.value("zipkin", "B3.", &mut tracing.zipkin);
    form.value("w3c", "W3C.", &mut tracing.w3c);
    form.value(
        "w3c_tenant",
        "Tenant in tracestate; empty: none.",
        &mut tracing.w3c_tenant,
    );
}
