//! Where routes come from.

use std::time::Duration;

use super::pem;
use crate::http::router::{
    NatsSettings, PeerTls, RouterSettings, RoutingApiSettings, TokenSettings,
};
use document::{Form, Secret, Value};

pub(super) fn nats(form: &mut Form<'_>, settings: &mut RouterSettings) {
    let mut ping = Duration::from_secs(20);
    form.value("nats_client_ping_interval", "", &mut ping);
    let mut nats = NatsSettings {
        ping_interval: ping,
        ..NatsSettings::default()
    };
    if matches!(form.node("nats"), Some(node) if matches!(node.value, Value::List(_))) {
        listed_servers(form, &mut nats);
        settings.nats = Some(nats);
        return;
    }
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

/// Servers with a user each, as templates had it until TLS came. Any of them may be asked
/// to let us in, and all of one cluster know the same users.
fn listed_servers(form: &mut Form<'_>, nats: &mut NatsSettings) {
    let mut servers: Vec<ListedServer> = Vec::new();
    form.tables("nats", &mut servers, |form, server| {
        server.port = 4222;
        form.value("host", "", &mut server.host);
        form.value("port", "", &mut server.port);
        form.value("user", "", &mut server.user);
        form.value("pass", "", &mut server.password);
    });
    nats.servers = servers
        .iter()
        .map(|server| format!("{}:{}", server.host, server.port))
        .collect();
    let Some(first) = servers.first() else { return };
    if servers.iter().any(|other| !other.same_user(first)) {
        form.wrong("nats", "expected the same user and pass for every server");
    }
    nats.user.clone_from(&first.user);
    nats.password = first.password.clone();
}

#[derive(Default)]
struct ListedServer {
    host: String,
    port: u16,
    user: String,
    password: Secret,
}

impl ListedServer {
    fn same_user(&self, other: &Self) -> bool {
        (&self.user, &self.password) == (&other.user, &other.password)
    }
}

pub(super) fn routing_api(form: &mut Form<'_>, settings: &mut RouterSettings) {
    let mut api: Option<RoutingApiSettings> = None;
    let mut open = false;
    form.section("routing_api", "", |form| {
        let (mut url, mut port) = (String::new(), 0_u16);
        let mut tls = PeerTls::default();
        form.value("uri", "", &mut url);
        form.value("port", "", &mut port);
        form.value("auth_disabled", "", &mut open);
        pem(form, "ca_certs", &mut tls.authorities);
        form.value("cert_chain", "", &mut tls.certificate);
        form.value("private_key", "", &mut tls.key);
        // As in gorouter, an address without a port means: no routing API.
        api = (!url.is_empty() && port != 0).then(|| RoutingApiSettings {
            url: format!("{}:{port}", url.trim_end_matches('/')),
            tls,
            tokens: None,
        });
    });
    let mut tokens = TokenSettings::default();
    let needed = api.is_some() && !open;
    form.section("oauth", "", |form| oauth(form, &mut tokens, needed));
    if let Some(api) = &mut api {
        api.tokens = needed.then_some(tokens);
    }
    settings.routing_api = api;
}

/// Where tokens come from. Templates name the file of authorities also where nobody asks for
/// a token, and gorouter does not look for it then.
fn oauth(form: &mut Form<'_>, tokens: &mut TokenSettings, needed: bool) {
    let (mut host, mut port) = (String::new(), 443_u16);
    form.value("token_endpoint", "", &mut host);
    form.value("port", "", &mut port);
    form.value("client_name", "", &mut tokens.client);
    form.value("client_secret", "", &mut tokens.secret);
    form.value("skip_ssl_validation", "", &mut tokens.insecure);
    match needed {
        // gorouter has a path here, and text everywhere else.
        true => form.pem_or_file("ca_certs", "", &mut tokens.authorities),
        false => form.value("ca_certs", "", &mut tokens.authorities),
    }
    tokens.url = format!("https://{host}:{port}");
}
