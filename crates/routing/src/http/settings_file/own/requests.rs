//! What becomes of requests: how they are changed, bound to instances, and logged.

use routing_api::client::{PeerTls, describe_peer_tls};

use crate::http::settings::{
    AccessLogSettings, EnvelopeSettings, EnvelopesTo, HeaderSettings, RouteServiceSettings,
    StickySettings, SyslogNetwork, SyslogSettings, TracingSettings,
};
use crate::http::settings_file::choices::{
    EXTRA_FIELDS, FORWARDED_CERTIFICATES, REDACTIONS, SYSLOG_NETWORKS, hairpin_hosts, networks,
};
use crate::settings_keys::keys;
use document::Form;

/// The name that the platform gives the certificates of its agents.
const SERVER_NAME: &str = "metron";

pub(super) fn access_log(form: &mut Form<'_>, log: &mut AccessLogSettings) {
    keys! { form, log;
        /// The file; opened again on SIGHUP.
        file: value,
        /// Standard output too.
        stdout: value,
        /// Fields at the end of the line.
        extra_fields: choices(&EXTRA_FIELDS),
        /// Request headers at the end of the line.
        extra_headers: value,
        /// What becomes of queries of GET requests.
        redact_query: choice(&REDACTIONS),
        /// Leave out X-Forwarded-For.
        hide_forwarded_for: value,
        /// Leave out the client's address.
        hide_client: value,
    }
    form.optional(
        "syslog",
        "The same lines as messages of syslog (RFC 5424). What it does not take is dropped.",
        &mut log.syslog,
        syslog,
    );
}

fn syslog(form: &mut Form<'_>, syslog: &mut SyslogSettings) {
    keys! { form, syslog;
        /// How messages get there; unix: through a socket of this machine.
        network: choice(&SYSLOG_NETWORKS),
        /// host:port, or the path of the socket; "": where this machine's is.
        address: value,
    }
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
    keys! { form, envelopes;
        /// The access log's lines, for applications' logs.
        logs: value,
        /// HttpStartStop, of the router as a server.
        server_events: value,
        /// The same of the router as the client of a backend.
        client_events: value,
    }
}

pub(super) fn headers(form: &mut Form<'_>, headers: &mut HeaderSettings) {
    keys! { form, headers;
        /// Names that a client's Connection field cannot remove.
        protected: value,
        /// Always say https in X-Forwarded-Proto.
        force_https: value,
        /// Never trust the client's X-Forwarded-Proto.
        sanitize_proto: value,
        /// What happens to X-Forwarded-Client-Cert.
        client_cert: choice(&FORWARDED_CERTIFICATES),
        /// Removed from answers.
        remove: value,
        /// Added to answers that lack them.
        add: value,
        /// A request whose X-Vcap-Trace has the value in this file learns its backend.
        trace_key_file = trace_key: secret_file,
    }
}

pub(super) fn sticky(form: &mut Form<'_>, sticky: &mut StickySettings) {
    keys! { form, sticky;
        /// Names of the applications' cookies.
        cookies: value,
        /// __VCAP_ID__ is always Secure.
        secure: value,
        /// Authorization: Negotiate binds too.
        auth_negotiate: value,
        /// Keep attributes in __VCAP_ID_META__, for when the instance is gone.
        metadata: value,
    }
}

pub(super) fn route_services(form: &mut Form<'_>, services: &mut RouteServiceSettings) {
    keys! { form, services;
        /// Secret that signatures are made of, in a file.
        secret_file = secret: secret_file,
        /// A second one that is accepted.
        secret_previous_file = secret_previous: secret_file,
        /// Longest time between both passes.
        timeout: value,
        /// Say https in X-CF-Forwarded-Url.
        recommend_https: value,
        /// Answer 400 and 504 to bad signatures.
        strict: value,
        /// Attempts; with 0 every request to one fails.
        attempts: within(0..=100),
        /// Let upgrades through.
        upgrades: value,
        /// The own certificate towards route services, a file in PEM; without it they are shown
        /// none.
        certificate = certificate.0: file,
        /// Its key, a file in PEM.
        key = certificate.1: file,
        /// Accept any certificate of a route service.
        insecure: value,
        /// Call a service that is a route of this router through the router itself.
        hairpin: value,
        /// Hosts of routes for which that is allowed, as "a.example" or "*.example.com"; none: all.
        hairpin_hosts: value,
    }
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
