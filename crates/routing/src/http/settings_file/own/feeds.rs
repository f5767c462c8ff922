//! Where routes come from.

use crate::http::router::{NatsSettings, PeerTls, RoutingApiSettings, TokenSettings};
use document::Form;

pub(super) fn nats(form: &mut Form<'_>, nats: &mut NatsSettings) {
    form.value(
        "servers",
        "host:port of each server; tried in turn. None: the embedded endpoint, or 127.0.0.1:4222.",
        &mut nats.servers,
    );
    form.value(
        "embedded",
        "An endpoint of NATS within this process listens here.",
        &mut nats.embedded,
    );
    form.value("user", "User; empty: none.", &mut nats.user);
    form.secret_file(
        "password_file",
        "Its password, in a file.",
        &mut nats.password,
    );
    form.time(
        "ping_interval",
        "Time between two pings.",
        &mut nats.ping_interval,
    );
    form.optional("tls", "TLS towards the servers.", &mut nats.tls, peer_tls);
}

fn peer_tls(form: &mut Form<'_>, tls: &mut PeerTls) {
    form.file(
        "authorities",
        "Authorities of the server, a file in PEM; without it those of the public web.",
        &mut tls.authorities,
    );
    form.file(
        "certificate",
        "The own certificate, a file in PEM.",
        &mut tls.certificate,
    );
    form.file("key", "Its key, a file in PEM.", &mut tls.key);
}

pub(super) fn routing_api(form: &mut Form<'_>, api: &mut RoutingApiSettings) {
    form.value(
        "url",
        "Its address, for instance \"https://routing-api.example:3001\".",
        &mut api.url,
    );
    form.section("tls", "TLS towards it.", |form| {
        peer_tls(form, &mut api.tls)
    });
    form.optional(
        "tokens",
        "Where tokens come from; without it calls carry none.",
        &mut api.tokens,
        |form, tokens: &mut TokenSettings| {
            form.value("url", "The token endpoint.", &mut tokens.url);
            form.value("client", "Name of the client.", &mut tokens.client);
            form.secret_file("secret_file", "Its secret, in a file.", &mut tokens.secret);
            form.file(
                "authorities",
                "Authorities of the endpoint, a file in PEM.",
                &mut tokens.authorities,
            );
            form.value("insecure", "Accept any certificate.", &mut tokens.insecure);
        },
    );
}
