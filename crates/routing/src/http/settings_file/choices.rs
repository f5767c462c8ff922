//! Settings that are one of several names, the same in both forms.

use document::Form;

use crate::http::identity::CertificateFormat;
use crate::http::pipeline::ErrorTemplate;
use crate::http::route_service;
use crate::http::settings::{
    ClientCertificates, ExtraField, ForwardedClientCert, RedactQuery, SyslogNetwork,
};
use crate::table::{Algorithm, Segments};

/// Names of the algorithms that a router may use by default.
pub(super) const ALGORITHMS: [(&str, Algorithm); 2] = [
    ("round-robin", Algorithm::RoundRobin),
    ("least-connection", Algorithm::LeastConnection),
];

/// Names of the fields that may be added to the access log.
pub(super) const EXTRA_FIELDS: [(&str, ExtraField); 12] = [
    ("failed_attempts", ExtraField::FailedAttempts),
    ("failed_attempts_time", ExtraField::FailedAttemptsTime),
    ("dns_time", ExtraField::DnsTime),
    ("dial_time", ExtraField::DialTime),
    ("tls_time", ExtraField::TlsTime),
    ("backend_time", ExtraField::BackendTime),
    ("local_address", ExtraField::LocalAddress),
    ("tls_sni", ExtraField::TlsSni),
    ("caller_cf_app", ExtraField::CallerApp),
    ("caller_cf_space", ExtraField::CallerSpace),
    ("caller_cf_org", ExtraField::CallerOrganization),
    ("route_policy", ExtraField::RoutePolicy),
];

/// What may become of queries in the access log.
pub(super) const REDACTIONS: [(&str, RedactQuery); 3] = [
    ("none", RedactQuery::None),
    ("all", RedactQuery::All),
    ("hash", RedactQuery::Hash),
];

/// How messages of syslog may travel.
pub(super) const SYSLOG_NETWORKS: [(&str, SyslogNetwork); 3] = [
    ("unix", SyslogNetwork::Unix),
    ("udp", SyslogNetwork::Udp),
    ("tcp", SyslogNetwork::Tcp),
];

/// What may be asked of clients.
pub(super) const CLIENT_CERTIFICATES: [(&str, ClientCertificates); 3] = [
    ("none", ClientCertificates::None),
    ("request", ClientCertificates::Request),
    ("require", ClientCertificates::Require),
];

/// What may happen to `X-Forwarded-Client-Cert`.
pub(super) const FORWARDED_CERTIFICATES: [(&str, ForwardedClientCert); 3] = [
    ("always_forward", ForwardedClientCert::AlwaysForward),
    ("forward", ForwardedClientCert::Forward),
    ("sanitize_set", ForwardedClientCert::SanitizeSet),
];

/// How a certificate stands in `X-Forwarded-Client-Cert`.
pub(super) const CERTIFICATE_FORMATS: [(&str, CertificateFormat); 2] = [
    ("raw", CertificateFormat::Raw),
    ("envoy", CertificateFormat::Envoy),
];

/// `routing_table_sharding_mode`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sharding {
    All,
    Segments,
    SharedAndSegments,
}

pub(super) const SHARDING: [(&str, Sharding); 3] = [
    ("all", Sharding::All),
    ("segments", Sharding::Segments),
    ("shared-and-segments", Sharding::SharedAndSegments),
];

/// The segments that are served; `None` when names are missing.
pub(super) fn served(sharding: Sharding, names: Vec<String>) -> Option<Segments> {
    match sharding {
        Sharding::All => Some(Segments::All),
        Sharding::Segments if names.is_empty() => None,
        Sharding::Segments => Some(Segments::Only(names)),
        Sharding::SharedAndSegments => Some(Segments::SharedAnd(names)),
    }
}

/// Says what is wrong with the text of an error template.
pub(super) fn check_error_template(form: &mut Form<'_>, key: &str, text: &str) {
    if let Err(error) = ErrorTemplate::parse(text) {
        form.wrong(key, error.to_string());
    }
}

/// Says which networks are none.
pub(super) fn networks(form: &mut Form<'_>, key: &str, list: &[String]) {
    for network in list.iter().filter(|it| !route_service::is_network(it)) {
        form.wrong(
            key,
            format!("expected networks like 10.0.0.0/8 or fd00::/8, found \"{network}\""),
        );
    }
}

/// Says which hosts are none that could be allowed to hairpin.
pub(super) fn hairpin_hosts(form: &mut Form<'_>, key: &str, hosts: &[String]) {
    for host in hosts.iter().filter(|host| !route_service::is_entry(host)) {
        form.wrong(
            key,
            format!("expected hosts like a.example or *.example.com, found \"{host}\""),
        );
    }
}
