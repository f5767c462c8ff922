//! Files in the shapes that several years' releases of routing-release render: whatever
//! served there serves here, and what has no effect is named.

use rcgen::{CertificateParams, CertifiedIssuer, IsCa, KeyPair};

use super::*;
use crate::http::engine;
use crate::http::settings::{ClientCertificates, ExtraField, SyslogNetwork, SyslogSettings};

const OF_2018: &str = include_str!("data/2018.yml");
const OF_2021: &str = include_str!("data/2021.yml");
const OF_2024: &str = include_str!("data/2024.yml");
const OF_2026: &str = include_str!("data/2026.yml");

/// The template with real certificates in place of names, and what it comes to.
fn rendered(template: &str, folder: &Path) -> Loaded {
    let mut params = CertificateParams::new(vec!["router.example".to_owned()]).unwrap();
    params.is_ca = IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    let quoted = |text: &str| serde_json::to_string(text).unwrap();
    let (chain, key) = (quoted(&issuer.pem()), quoted(&issuer.key().serialize_pem()));
    std::fs::write(folder.join("uaa.pem"), issuer.pem()).unwrap();
    let text = ["SERVER-KEY", "CLIENT-KEY"]
        .iter()
        .fold(template.to_owned(), |text, name| text.replace(name, &key));
    let text = ["SERVER-CHAIN", "CLIENT-CHAIN", "AUTHORITY"]
        .iter()
        .fold(text, |text, name| text.replace(name, &chain))
        .replace("UAA-FILE", "uaa.pem");
    read_gorouter(&source(&text), folder).unwrap()
}

/// What has no effect, by key.
fn without_effect(warnings: &[String]) -> Vec<&str> {
    let mut keys: Vec<&str> = warnings
        .iter()
        .filter(|one| one.contains("has no effect here"))
        .filter_map(|one| one.split('"').nth(1))
        .collect();
    keys.sort_unstable();
    keys
}

/// The data path takes the certificates; its log would need a folder of the system's.
fn assert_startable(settings: &RouterSettings) {
    let mut http = settings.http.clone();
    http.access_log.file = None;
    engine::check(&http).unwrap();
}

#[test]
fn texts_that_look_like_numbers_stay_as_they_are_written() {
    let settings = gorouter(OF_2018).unwrap().settings;
    assert_eq!(settings.http.headers.trace_key, "22".into());
    assert_eq!(settings.status.password, "4711".into());
    let nats = settings.nats.unwrap();
    assert_eq!(nats.servers, ["10.0.16.10:4222", "10.0.16.11:4222"]);
    assert_eq!((&*nats.user, nats.password), ("nats", "0042".into()));
    assert!(settings.suspend_pruning);
    assert_eq!(settings.http.route_services.secret, "".into());
    for (written, expected) in [
        ("0022", "0022"),
        ("0x16", "0x16"),
        ("1e3", "1e3"),
        ("-7", "-7"),
        ("true", "true"),
        ("\"22\"", "22"),
        ("22 # of the template", "22"),
    ] {
        let text = format!("zone: é\ntrace_key: {written}\nport: 81.0\n");
        let settings = gorouter(&text).unwrap().settings;
        assert_eq!(*settings.http.headers.trace_key, expected);
        assert_eq!(settings.http.listen, address("0.0.0.0:81"));
    }
}

#[test]
fn what_no_library_coerces_is_refused() {
    for text in [
        "port: \"80\"",
        "port: 80.5",
        "enable_ssl: 1",
        "endpoint_timeout: 60",
    ] {
        let problems = gorouter(text).unwrap_err().to_string();
        assert!(problems.contains("expected"), "{problems}");
    }
}

#[test]
fn a_file_of_2021_serves_here() {
    let folder = tempfile::tempdir().unwrap();
    let Loaded { settings, warnings } = rendered(OF_2021, folder.path());
    assert_startable(&settings);
    assert_eq!(settings.http.access_log.file, None);
    assert_eq!(settings.http.listen, None);
    assert_eq!(settings.http.client_tls.client_authorities, "");
    assert_eq!(*settings.nats.unwrap().password, "1e3");
    let segments = ["gold".to_owned(), "7".to_owned()].to_vec();
    assert_eq!(settings.table.segments, Segments::SharedAnd(segments));
    let tokens = settings.routing_api.unwrap().tokens.unwrap();
    assert_eq!(tokens.url, "https://uaa.service.cf.internal:8443");
    assert!(
        tokens
            .authorities
            .starts_with("-----BEGIN CERTIFICATE-----")
    );
    assert!(
        without_effect(&warnings).contains(&"ip_local_port_range"),
        "{warnings:#?}"
    );
}

#[test]
fn the_template_of_2024_with_its_defaults_serves_here() {
    let folder = tempfile::tempdir().unwrap();
    let Loaded { settings, warnings } = rendered(OF_2024, folder.path());
    assert_startable(&settings);
    assert_eq!(settings.http.headers.trace_key, "22".into());
    assert_eq!(settings.http.listen, address("0.0.0.0:80"));
    assert_eq!(settings.status.listen_tls, address("0.0.0.0:8443"));
    assert_eq!(
        settings.http.access_log.extra_fields[0],
        ExtraField::FailedAttempts
    );
    assert_eq!(settings.http.access_log.extra_fields.len(), 6);
    assert_eq!(settings.http.error_template, None);
    let named = without_effect(&warnings);
    for key in ["debug_addr", "ip_local_port_range", "max_header_bytes"] {
        assert!(named.contains(&key), "{key} is not in {warnings:#?}");
    }
    // Each warning is one line of the file with its number.
    assert!(warnings.iter().all(|one| one.starts_with("gorouter.yml:")));
}

#[test]
fn a_file_of_2026_serves_here_and_unknown_keys_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let Loaded { settings, warnings } = rendered(OF_2026, folder.path());
    assert_startable(&settings);
    let tls = &settings.http.client_tls;
    assert_eq!(tls.client_certificates, ClientCertificates::Require);
    assert_eq!(settings.http.domains[0].name, "*.apps.mtls.internal");
    let fields = &settings.http.access_log.extra_fields;
    assert_eq!((fields.len(), fields[5]), (6, ExtraField::RoutePolicy));
    let backends = &settings.http.backends;
    // 0 of one protocol: the limit of both.
    let limits = [false, true].map(|http2| backends.timeout_of(http2).as_secs());
    assert_eq!(limits, [300, 900]);
    let unknown: Vec<&String> = warnings
        .iter()
        .filter(|one| one.contains("unknown key"))
        .collect();
    let [told] = unknown.as_slice() else {
        panic!("{warnings:#?}");
    };
    assert!(
        told.contains("unknown key \"key_to_come\" has no effect here"),
        "{told}"
    );
}

#[test]
fn an_unknown_key_proposes_the_one_that_was_meant() {
    let warnings = gorouter("prot: 80\nnats:\n  hots: []\n").unwrap().warnings;
    assert!(warnings[0].starts_with("gorouter.yml:1:1: unknown key \"prot\""));
    assert!(
        warnings[0].contains("did you mean \"port\"?"),
        "{}",
        warnings[0]
    );
    assert!(warnings[1].starts_with("gorouter.yml:3:3: unknown key \"hots\""));
}

#[test]
fn authorities_of_tokens_are_a_file_or_a_text() {
    let folder = tempfile::tempdir().unwrap();
    let pem = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    std::fs::write(folder.path().join("uaa.pem"), pem).unwrap();
    let of = |authorities: &str, open: bool| {
        let text = format!(
            "routing_api: {{uri: \"https://api\", port: 3001, auth_disabled: {open}}}\n\
             oauth: {{token_endpoint: uaa, ca_certs: {authorities}}}\n"
        );
        let loaded = read_gorouter(&source(&text), folder.path())?;
        Ok::<_, Problems>(loaded.settings.routing_api.unwrap().tokens)
    };
    let quoted = serde_json::to_string(pem).unwrap();
    assert_eq!(of(&quoted, false).unwrap().unwrap().authorities, pem);
    assert_eq!(of("uaa.pem", false).unwrap().unwrap().authorities, pem);
    let refused = of("none.pem", false).unwrap_err().to_string();
    assert!(
        refused.contains("gorouter.yml:2:40: cannot read"),
        "{refused}"
    );
    // Nobody asks for a token: gorouter does not look for the file either.
    assert!(of("none.pem", true).unwrap().is_none());
}

#[test]
fn a_streamed_access_log_goes_to_syslog() {
    let of = |logging: &str| {
        let text = format!("access_log: {{enable_streaming: true}}\nlogging: {{{logging}}}\n");
        gorouter(&text).map(|loaded| loaded.settings.http.access_log)
    };
    let log = of("syslog: vcap.gorouter, syslog_addr: \"localhost:514\", syslog_network: udp");
    let expected = SyslogSettings {
        network: SyslogNetwork::Udp,
        address: "localhost:514".to_owned(),
        name: "vcap.gorouter".to_owned(),
        truncate: 0,
    };
    assert_eq!(log.unwrap().syslog, Some(expected));
    let local = SyslogSettings {
        truncate: 1000,
        ..SyslogSettings::default()
    };
    assert_eq!(of("syslog_truncate: 1000").unwrap().syslog, Some(local));
    let refused = of("syslog_network: tcp").unwrap_err().to_string();
    assert!(
        refused.contains("expected logging.syslog_addr"),
        "{refused}"
    );
    let silent = gorouter("logging: {syslog: a, syslog_addr: \"b:1\"}").unwrap();
    assert_eq!(silent.settings.http.access_log.syslog, None);
}

#[test]
fn latencies_by_application_have_a_bound() {
    for (given, expected) in [("true", 2_000), ("false", 0)] {
        let text = format!("per_app_prometheus_http_metrics_reporting: {given}\n");
        let settings = gorouter(&text).unwrap().settings;
        assert_eq!(settings.http.app_latencies, expected);
    }
}

#[test]
fn listed_servers_have_one_user() {
    let two = "nats: [{host: a, user: u, pass: one}, {host: b, user: u, pass: two}]";
    let refused = gorouter(two).unwrap_err().to_string();
    assert!(
        refused.contains("expected the same user and pass"),
        "{refused}"
    );
}
