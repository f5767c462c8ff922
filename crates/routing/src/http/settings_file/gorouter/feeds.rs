//! Where routes come from.

use std::time::Duration;

use super::pem;
use crate::http::router::{
    NatsSettings, PeerTls, RouterSettings, RoutingApiSettings, TokenSettings,
};
use document::Form;

pub(super) fn nats(form: &mut Form<'_>, settings: &mut RouterSettings) {
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

pub(super) fn routing_api(form: &mut Form<'_>, settings: &mut RouterSettings) {
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
